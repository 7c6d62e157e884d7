//! The new value of every field.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_core::attr::{Attr, EventType, SampleType};
use perfdata_core::content::{Content, Rewrite, Rewriter};
use perfdata_core::read::Limits;
use perfdata_core::record::{
    Body, CallchainContext, CpuMode, Record, RecordType, Sample, deferred_cookie, is_moment,
};
use perfdata_core::{Endian, Events};
use perfdata_session::{DsoKind, Mapped};

use super::addresses::{Addresses, Space, is_distinct};
use super::cache::{Cache, Ranges, bytes, number};
use super::key::{Domain, Key};
use super::names::Names;
use super::policy::{Action, Kept, Policy};
use super::raw::RawFields;

/// The new time of the first moment, in nanoseconds: not 0, which perf takes for an unknown time.
pub(super) const FIRST: u64 = 1_000_000_000;

/// The maximum number of original addresses and process IDs that are remembered.
pub(super) const REMEMBERED: usize = 1 << 16;

/// The maximum number of addresses that are looked up in order to remember them: in a large recording,
/// each lookup costs more than the rest of its sample.
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

    /// Returns the new ID for `id` of an event. `is_known` IDs are numbered; others get a number that
    /// none of them has.
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

    #[inline]
    fn address(&mut self, space: Space, address: u64) -> u64 {
        let known = match (self.to_see, space) {
            (0, Space::Kernel) => self.kernel.get(address),
            (0, Space::User) => self.user.get(address),
            (0, Space::Any) => None,
            _ => match self.cache.get(space, address) {
                Some(new) => return new,
                None => None,
            },
        };
        match known {
            Some(delta) => address.wrapping_add(delta),
            None => self.look_up(space, address),
        }
    }

    #[inline(never)]
    fn look_up(&mut self, space: Space, address: u64) -> u64 {
        let range = self.addresses.range_of(space, address);
        if self.to_see > 0 {
            self.see(address, range.is_some());
        }
        let new = match range {
            Some(range) => {
                match space {
                    Space::Kernel => self.kernel.put(address, range),
                    _ => self.user.put(address, range),
                }
                let (.., delta) = range;
                address.wrapping_add(delta)
            }
            None => self.addresses.of(space, address).unwrap_or(0),
        };
        self.cache.put(space, address, new);
        new
    }

    /// Gives new values to the words of a callchain in a record with this byte order.
    #[inline]
    pub(super) fn chain(&mut self, words: &mut [[u8; 8]], endian: Endian) {
        match endian {
            Endian::Little => self.chain_of::<true>(words),
            Endian::Big => self.chain_of::<false>(words),
        }
    }

    fn chain_of<const LITTLE: bool>(&mut self, words: &mut [[u8; 8]]) {
        let numbers = words.iter().map(|word| number::<LITTLE>(*word));
        let has_cookie = deferred_cookie(numbers).is_some();
        let (mut rest, cookie) = words.split_at_mut(words.len() - usize::from(has_cookie));
        for word in cookie {
            let old = number::<LITTLE>(*word);
            *word = bytes::<LITTLE>(self.number("callchain", old, 8, Content::Cookie));
        }
        if self.action(Content::Callchain) == Action::Keep {
            return;
        }
        let mut space = self.space;
        loop {
            let moved = match (self.to_see, space) {
                (0, Space::Kernel) => self.kernel.move_all::<LITTLE>(rest),
                (0, Space::User) => self.user.move_all::<LITTLE>(rest),
                _ => 0,
            };
            let behind = rest.get_mut(moved..).unwrap_or_default();
            let Some((word, behind)) = behind.split_first_mut() else {
                return;
            };
            let old = number::<LITTLE>(*word);
            let new = match CallchainContext::of(old) {
                None => self.address(space, old),
                Some(context) => {
                    space = space_of_context(context);
                    // perf discards the whole callchain because of a marker without a meaning.
                    let has_name = context.name().is_some();
                    if has_name {
                        old
                    } else {
                        CallchainContext::FIRST
                    }
                }
            };
            *word = bytes::<LITTLE>(new);
            rest = behind;
        }
    }

    /// Remembers an original address, while there are few. `is_mapped` says whether it is known that
    /// something maps it.
    fn see(&mut self, address: u64, is_mapped: bool) {
        self.to_see = match self.seen.len() < REMEMBERED {
            true => self.to_see.saturating_sub(1),
            false => 0,
        };
        let is_original = match is_mapped {
            true => self.addresses.is_original_if_mapped(address),
            false => self.addresses.is_original(address),
        };
        if is_original {
            self.seen.insert(address);
        }
    }

    /// Returns whether a number is an original address that must not remain.
    fn is_address(&self, number: u64) -> bool {
        number >= 1 << 32
            && is_distinct(number)
            && self.action(Content::Address) != Action::Keep
            && self.addresses.is_original(number)
    }

    /// Returns the new value of the file offset of a mapping.
    fn offset(&mut self, mapped: &Mapped<'_>) -> u64 {
        let pgoff = mapped.pgoff;
        if self.policy.action(Content::MappingOffset) == Action::Keep || pgoff == 0 {
            return pgoff;
        }
        let space = self.space;
        let start = self.addresses.of(space, mapped.start);
        match mapped.dso.kind {
            // The address of the relocation symbol.
            DsoKind::Kernel => self.addresses.of(space, pgoff).unwrap_or_else(|| {
                let distance = pgoff.wrapping_sub(mapped.start);
                start.map_or(0, |start| start.wrapping_add(distance))
            }),
            // The address, before the memory was moved.
            DsoKind::Anonymous if pgoff == mapped.start => start.unwrap_or(0),
            DsoKind::Anonymous => match self.addresses.of(space, pgoff) {
                Some(new) if pgoff >= 1 << 32 => new,
                _ if pgoff < 1 << 32 => pgoff,
                _ => 0,
            },
            _ if self.addresses.is_original(pgoff) => 0,
            _ => pgoff,
        }
    }

    /// Returns the parts of a sample that the recording must not contain.
    pub(super) fn removed_parts(&self) -> SampleType {
        let removed = Sample::CONTENTS
            .iter()
            .filter(|(_, content)| self.policy.action(*content) == Action::Remove);
        SampleType(removed.fold(0, |all, (part, _)| all | part.0))
    }

    /// Returns the attribute without the parts of samples, the addresses and the unknown content
    /// that the recording must not contain.
    pub(super) fn attr(&mut self, attr: &Attr) -> Attr {
        let mut removed = self.removed_parts();
        if attr.kind == EventType::TRACEPOINT
            && self.policy.action(Content::Raw) == Action::Replace
            && !self.raw.has(attr.config)
        {
            removed = removed | SampleType::RAW;
        }
        if attr.kind != EventType::TRACEPOINT && !self.policy.keeps(Kept::Raw) {
            removed = removed | SampleType::RAW;
        }
        let unplaced = SampleType(attr.sample_type.0 & !attr.placed_parts().0);
        let mut new = attr.without(removed | unplaced);
        let configs = [
            Some(attr.config),
            Some(attr.config1),
            attr.config2,
            attr.config3,
            attr.config4,
        ];
        new.rewrite("attr", Content::Fields, self);
        let [config, config1, config2, config3, config4] = self.configs(attr, configs);
        new.config = config.unwrap_or(0);
        new.config1 = config1.unwrap_or(0);
        (new.config2, new.config3, new.config4) = (config2, config3, config4);
        new
    }

    /// Returns the words that configure an event: numbers of its PMU stay, addresses do not.
    fn configs(&mut self, attr: &Attr, configs: [Option<u64>; 5]) -> [Option<u64>; 5] {
        if self.policy.action(Content::Config) == Action::Keep {
            return configs;
        }
        let pmu = self.pmus.get(&attr.kind.0).map(Vec::as_slice);
        let [config, config1, config2, config3, config4] = configs;
        let zero = |word: Option<u64>| word.map(|_| 0);
        let [config, config1, config2, config3, config4] = match attr.kind {
            EventType::BREAKPOINT => {
                let address = config1.map(|address| self.address(Space::Any, address));
                let len = config2.map(|len| if len <= PAGE { len } else { 0 });
                return [config, address, len, zero(config3), zero(config4)];
            }
            EventType::SOFTWARE | EventType::TRACEPOINT => [
                config,
                zero(config1),
                zero(config2),
                zero(config3),
                zero(config4),
            ],
            EventType::HARDWARE | EventType::HW_CACHE | EventType::RAW => configs,
            _ => match pmu {
                // Whether it probes the return; the rest are addresses and offsets in programs.
                Some(b"kprobe" | b"uprobe") => {
                    let config = config.map(|config| config & 1);
                    [
                        config,
                        zero(config1),
                        zero(config2),
                        zero(config3),
                        zero(config4),
                    ]
                }
                Some(_) => configs,
                None => [
                    zero(config),
                    zero(config1),
                    zero(config2),
                    zero(config3),
                    zero(config4),
                ],
            },
        };
        [config, config1, config2, config3, config4].map(|word| {
            word.map(|word| {
                if self.addresses.is_original(word) {
                    0
                } else {
                    word
                }
            })
        })
    }

    /// Notes the mode of the current record.
    pub(super) fn enter(&mut self, mode: CpuMode) {
        self.space = match mode {
            CpuMode::KERNEL | CpuMode::GUEST_KERNEL | CpuMode::HYPERVISOR => Space::Kernel,
            CpuMode::USER | CpuMode::GUEST_USER => Space::User,
            _ => Space::Any,
        };
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
        record.rewrite("", Content::Fields, self);
        self.failed()
    }

    /// Returns the error of the last change, if there was one.
    pub(super) fn failed(&mut self) -> perfdata_core::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }
}

/// Largest length of a breakpoint that is not taken for an address, in bytes.
const PAGE: u64 = 4096;

/// Returns the bits of `misc` with a known meaning.
pub(super) fn known_flags(kind: RecordType) -> u16 {
    let flags = kind.info().map_or(&[][..], |info| info.misc);
    let bits = flags.iter();
    bits.fold(CpuMode::MASK, |all, flag| all | 1 << flag.bit)
}

/// Returns the address space of the addresses behind a marker.
fn space_of_context(context: CallchainContext) -> Space {
    match context {
        CallchainContext::KERNEL | CallchainContext::GUEST_KERNEL | CallchainContext::HV => {
            Space::Kernel
        }
        CallchainContext::USER | CallchainContext::USER_DEFERRED | CallchainContext::GUEST_USER => {
            Space::User
        }
        _ => Space::Any,
    }
}

/// Returns the address space of a mapping.
pub(super) fn space_of(mode: CpuMode) -> Space {
    match mode {
        CpuMode::KERNEL | CpuMode::GUEST_KERNEL => Space::Kernel,
        _ => Space::User,
    }
}

impl Rewriter for State {
    fn number(&mut self, name: &'static str, value: u64, size: usize, content: Content) -> u64 {
        match self.action(content) {
            // A number of a damaged record, or one that contains an address against the rules.
            Action::Keep if content == Content::Number && self.is_address(value) => return 0,
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

#[cfg(test)]
mod tests {
    use super::super::addresses::Identity;
    use super::*;

    /// The two ways to look up an address agree.
    #[test]
    fn addresses_move_alike_when_no_more_of_them_are_remembered() {
        let key = Key::of_secret(b"a secret of some length").unwrap();
        let mut state = State::new(key.clone(), Policy::default(), Limits::default());
        let ranges = [
            (Space::User, 0x40_0000..0x40_8000),
            (Space::User, 0x7f12_3456_7000..0x7f12_3476_7000),
            (Space::User, 0xff00_0000_0000_0000..0xff00_0000_0000_1000),
            (Space::Kernel, 0x5000..0x9000),
            (Space::Kernel, 0xffff_ffff_a123_4000..0xffff_ffff_a923_4000),
        ];
        let mut addresses = Addresses::default();
        for (space, range) in ranges.clone() {
            addresses.add(space, range, Identity::default);
        }
        addresses.settle(&key);
        state.addresses = Arc::new(addresses);
        let near = |at: u64| [at.wrapping_sub(1), at, at + 1, at + 0x7ff];
        let places: Vec<u64> = ranges
            .iter()
            .flat_map(|(_, range)| [range.start, range.end, range.start / 2 + range.end / 2])
            .flat_map(near)
            .collect();
        let mut all = |to_see| {
            state.to_see = to_see;
            let mut all = Vec::new();
            for space in [Space::User, Space::Kernel, Space::Any] {
                // The second time, all of them are in a cache.
                for &place in places.iter().chain(&places) {
                    all.push((space, place, state.address(space, place)));
                }
            }
            all
        };
        let remembered = all(LOOKED_UP);
        assert_eq!(all(0), remembered);
        for (space, place, new) in remembered {
            assert_eq!(
                state.addresses.of(space, place).unwrap_or(0),
                new,
                "{place:#x}"
            );
        }
        assert!(state.seen.contains(&0x7f12_3456_7000) && !state.seen.contains(&0x5000));
    }
}
