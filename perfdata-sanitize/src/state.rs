//! The new value of every field.

mod attributes;
mod moved;

pub(super) use moved::space_of;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_core::content::{Content, Rewrite, Rewriter};
use perfdata_core::read::Limits;
use perfdata_core::record::{Body, CpuMode, EventTypeName, Record, RecordType, is_moment};
use perfdata_core::wire::{Text, until_nul};
use perfdata_core::{Endian, Events};
use perfdata_session::Mapped;

use super::addresses::{Addresses, Space};
use super::cache::{Cache, Ranges};
use super::key::{Domain, Key};
use super::names::Names;
use super::policy::{Action, Policy};
use super::raw::RawFields;

/// The new time of the first moment, in nanoseconds: not 0, which perf takes for an unknown time.
pub(super) const FIRST: u64 = 1_000_000_000;

/// The maximum number of original addresses and process IDs that are remembered.
pub(super) const REMEMBERED: usize = 1 << 16;

/// The maximum number of addresses that are looked up in order to remember them: in a large
/// recording, each lookup costs more than the rest of its sample.
const LOOKED_UP: u32 = 1 << 18;

/// What decides the new value of a field, and what was seen so far.
#[derive(Debug)]
pub(super) struct State {
    pub(super) policy: Policy,
    pub(super) names: Names,
    pub(super) addresses: Arc<Addresses>,
    /// What happens to each kind of content, in the order of [`Content::ALL`].
    actions: [Action; Content::ALL.len()],
    /// The last new addresses.
    cache: Cache,
    /// The last ranges of the kernel and of processes.
    kernel: Ranges,
    user: Ranges,
    /// Whether the mappings and the first moment are known.
    pub(super) has_looked_ahead: bool,
    /// The first moment of the recording in nanoseconds on its clock.
    pub(super) first: Option<u64>,
    /// The first ticks of the recording.
    first_ticks: Option<u64>,
    /// New event IDs.
    ids: HashMap<u64, u64, RandomState>,
    /// New process IDs, as far as they are remembered.
    pids: HashMap<u32, u32, RandomState>,
    /// The last process IDs, with the new ones.
    last_pids: [(u32, u32); 256],
    /// The names of PMUs by event type.
    pub(super) pmus: HashMap<u32, Vec<u8>, RandomState>,
    pub(super) raw: RawFields,
    /// Original addresses, as far as they are remembered.
    pub(super) seen: HashSet<u64, RandomState>,
    /// Number of addresses that may still be looked up in order to remember them.
    to_see: u32,
    /// The address space of the addresses in the current record.
    space: Space,
    /// The new file offset of the current mapping.
    offset: u64,
    /// Whether bytes of unknown meaning were removed.
    pub(super) removed_unknown: u64,
    error: Option<perfdata_core::Error>,
}

impl State {
    pub(super) fn new(key: Key, policy: Policy, limits: Limits) -> Self {
        State {
            names: Names::new(key, policy.clone(), limits),
            actions: Content::ALL.map(|content| policy.action(content)),
            cache: Cache::default(),
            kernel: Ranges::default(),
            user: Ranges::default(),
            policy,
            addresses: Arc::default(),
            has_looked_ahead: false,
            first: None,
            first_ticks: None,
            ids: HashMap::default(),
            pids: HashMap::default(),
            // 0 stays.
            last_pids: [(0, 0); 256],
            pmus: HashMap::default(),
            raw: RawFields::default(),
            seen: HashSet::default(),
            to_see: LOOKED_UP,
            space: Space::Any,
            offset: 0,
            removed_unknown: 0,
            error: None,
        }
    }

    fn key(&self) -> &Key {
        self.names.key()
    }

    /// Gives new IDs to the events, from 1 on in their order.
    pub(super) fn number_events(&mut self, events: &Events) {
        for &id in events.iter().flat_map(|event| &event.ids) {
            self.id(id, true);
        }
    }

    /// Returns the new ID for `id` of an event. `is_known` IDs are numbered; others get a number
    /// that none of them has.
    fn id(&mut self, id: u64, is_known: bool) -> u64 {
        if id == 0 {
            return 0;
        }
        if let Some(&new) = self.ids.get(&id) {
            return new;
        }
        if !is_known {
            return self.pseudonym(id) | 1 << 40;
        }
        let new = (self.ids.len() as u64).saturating_add(1);
        self.ids.insert(id, new);
        new
    }

    /// Returns the pseudonym of a number: 40 bits, and not 0.
    fn pseudonym(&self, number: u64) -> u64 {
        match number {
            0 | u64::MAX => number,
            _ => (self.key().number(Domain::Number, number) & ((1 << 40) - 1)).max(1),
        }
    }

    #[inline]
    fn pid(&mut self, pid: u32) -> u32 {
        match self.last_pids.get(pid as usize % 256) {
            Some(&(last, new)) if last == pid => new,
            _ => self.look_up_pid(pid),
        }
    }

    #[inline(never)]
    fn look_up_pid(&mut self, pid: u32) -> u32 {
        let new = match self.pids.get(&pid) {
            Some(&new) => new,
            None => self.key().pid(pid),
        };
        if self.pids.len() < REMEMBERED {
            self.pids.insert(pid, new);
        }
        if let Some(last) = self.last_pids.get_mut(pid as usize % 256) {
            *last = (pid, new);
        }
        new
    }

    /// Returns the new process IDs, unless there were too many to remember all of them.
    pub(super) fn new_pids(&self) -> Option<HashSet<u32, RandomState>> {
        (self.pids.len() < REMEMBERED).then(|| self.pids.values().copied().collect())
    }

    fn time(&self, time: u64) -> u64 {
        match self.first.filter(|_| is_moment(time)) {
            Some(first) => time.wrapping_sub(first).wrapping_add(FIRST),
            None => time,
        }
    }

    /// Returns the new value of ticks: the first ones become 1.
    fn ticks(&mut self, ticks: u64) -> u64 {
        if ticks == 0 {
            return 0;
        }
        let first = *self.first_ticks.get_or_insert(ticks);
        ticks.wrapping_sub(first).wrapping_add(1)
    }

    /// Returns what happens to each kind of content, in the order of [`Content::ALL`].
    pub(super) fn actions(&self) -> [Action; Content::ALL.len()] {
        self.actions
    }

    /// Returns what happens to `content`.
    #[inline]
    pub(super) fn action(&self, content: Content) -> Action {
        let action = self.actions.get(content as usize);
        action.copied().unwrap_or(Action::Remove)
    }

    /// Gives new values to all fields of a record.
    ///
    /// # Errors
    /// The names exceed the limits of the reader.
    pub(super) fn record(&mut self, record: &mut Record) -> perfdata_core::Result<()> {
        let mode = CpuMode::of(record.misc);
        self.enter(mode);
        match &record.body {
            Body::Mmap(map) => {
                self.space = space_of(mode);
                self.offset = self.offset(&Mapped::of_mmap(map, record.misc));
            }
            Body::Mmap2(map) => {
                self.space = space_of(mode);
                self.offset = self.offset(&Mapped::of_mmap2(map, record.misc));
            }
            Body::Ksymbol(_) => self.space = Space::Kernel,
            _ => {}
        }
        record.misc &= known_flags(record.kind);
        if let Body::HeaderEventType(event) = &mut record.body {
            self.event_type_name(&mut event.name);
            event.event_id.rewrite("event_id", Content::Config, self);
        } else {
            record.rewrite("", Content::Fields, self);
        }
        self.failed()
    }

    /// Gives a new name to an event type. It stays within its field, and a record of it a multiple
    /// of 8 bytes.
    pub(super) fn event_type_name(&mut self, name: &mut Text) {
        let Text(field) = name;
        let most = EventTypeName::NAME.saturating_sub(1);
        let old = until_nul(field).to_vec();
        let text = self.text("name", &old, most, Content::EventName);
        let text = text.unwrap_or(old);
        // The whole field may be a name, without a NUL.
        let size = match text.len() > field.len() {
            true => text.len().saturating_add(1).next_multiple_of(8),
            false => field.len(),
        };
        *field = text;
        field.resize(size, 0);
    }

    /// Returns the error of the last change, if there was one.
    pub(super) fn failed(&mut self) -> perfdata_core::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }
}

/// Returns the bits of `misc` with a known meaning.
pub(super) fn known_flags(kind: RecordType) -> u16 {
    let flags = kind.info().map_or(&[][..], |info| info.misc);
    let bits = flags.iter();
    bits.fold(CpuMode::MASK, |all, flag| all | 1 << flag.bit)
}

impl Rewriter for State {
    fn number(&mut self, name: &'static str, value: u64, size: usize, content: Content) -> u64 {
        match self.action(content) {
            // A number of a damaged record, or one that contains an address against the rules.
            Action::Keep if content == Content::Number && self.is_address(value) => return 0,
            // What the recorder did not set.
            Action::Keep if !content.permits(value, size) => {
                self.removed_unknown += 1;
                return 0;
            }
            Action::Keep => return value,
            Action::Remove => {
                self.removed_unknown += u64::from(content == Content::Unknown && value != 0);
                return 0;
            }
            Action::Replace => {}
        }
        let none = u64::MAX >> (64 - 8 * size.clamp(1, 8));
        match content {
            // Sample addresses and branches may be of another space than the sample.
            Content::Address
                if matches!(name, "addr" | "from" | "to") && self.space != Space::Any =>
            {
                let space = match self.addresses.of(self.space, value) {
                    Some(_) => self.space,
                    None => Space::Any,
                };
                self.address(space, value)
            }
            Content::Address => self.address(self.space, value),
            Content::MappingOffset => self.offset,
            Content::Pid if value == none => value,
            Content::Pid => u32::try_from(value).map_or(0, |pid| u64::from(self.pid(pid))),
            Content::Time => self.time(value),
            Content::Ticks => self.ticks(value),
            Content::Id => self.id(value, false),
            Content::StreamId => match self.ids.get(&value) {
                Some(&id) => id,
                None => self.pseudonym(value),
            },
            Content::BpfId | Content::Namespace if value != none => {
                self.pseudonym(value) & (none >> 1).min(0x7fff_ffff)
            }
            Content::Cookie | Content::CgroupId => self.pseudonym(value),
            _ if value == none => value,
            _ => 0,
        }
    }

    fn text(
        &mut self,
        _: &'static str,
        text: &[u8],
        most: usize,
        content: Content,
    ) -> Option<Vec<u8>> {
        let most = match content {
            // PATH_MAX and TASK_COMM_LEN of the kernel, with the NUL.
            Content::Path | Content::CgroupPath => most.min(4095),
            Content::Comm => most.min(15),
            _ => most,
        };
        let new = match content {
            Content::Format if self.action(content) == Action::Replace => {
                super::tracing::format(text, &mut self.names)
            }
            _ => self.names.of(content, text, most),
        };
        new.unwrap_or_else(|error| {
            self.error.get_or_insert(error);
            Some(Vec::new())
        })
    }

    fn bytes(&mut self, _: &'static str, bytes: &mut [u8], content: Content) {
        match self.action(content) {
            Action::Keep => {}
            Action::Replace if content == Content::BuildId => {
                // Readers recognise an ID of fewer bytes by the zeros after it.
                let end = bytes.iter().rposition(|&byte| byte != 0);
                let id = bytes.get(..end.map_or(0, |end| end.saturating_add(1)));
                let new = self.key().hash(Domain::BuildId, id.unwrap_or_default());
                let len = id.map_or(0, <[u8]>::len);
                for (to, from) in bytes.iter_mut().take(len).zip(new) {
                    *to = from;
                }
            }
            // The record's own stage decides which of its fields stay.
            Action::Replace if content == Content::Raw => {}
            _ => {
                let is_set = bytes.iter().any(|&byte| byte != 0);
                self.removed_unknown += u64::from(content == Content::Unknown && is_set);
                bytes.fill(0);
            }
        }
    }

    fn words(&mut self, name: &'static str, words: &mut [u64], content: Content) {
        if content != Content::Callchain {
            for word in words {
                *word = self.number(name, *word, size_of::<u64>(), content);
            }
            return;
        }
        let mut chain: Vec<[u8; 8]> = words.iter().map(|word| word.to_le_bytes()).collect();
        self.chain(&mut chain, Endian::Little);
        for (word, new) in words.iter_mut().zip(chain) {
            *word = u64::from_le_bytes(new);
        }
    }
}
