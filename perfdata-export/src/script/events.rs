//! What the text of a sample depends on in its event and in the other events.

use perfdata_core::Recording;
use perfdata_core::attr::{Attr, HardwareEvent, ReadFormat, SampleType, SoftwareEvent};
use perfdata_core::feature::FeatureId;
use perfdata_core::names::{EventNames, Modifiers};
use perfdata_core::read::RecordRef;
use perfdata_core::record::{ReadValue, Registers};

use super::Style;
use super::fields::{EventKind, FieldsError, Set, Shown};
use crate::counters::Counters;
use crate::events::{is_dummy, is_software};
use perfdata_tracepoint::Like;

/// The name that perf gives to off-CPU samples (`perf record --off-cpu`).
const OFF_CPU: &[u8] = b"offcpu-time";

/// An event.
#[derive(Debug)]
pub(super) struct Event {
    pub kind: EventKind,
    pub name: Box<[u8]>,
    pub has_callchain: bool,
    /// Whether user stacks are unwound after the callchain.
    pub is_unwound: bool,
    /// Whether each sample is a branch: the event of a branch trace (`is_bts_event`).
    pub is_branch: bool,
    /// Whether samples contain data of a BPF program.
    pub is_bpf_output: bool,
    /// The `config` of an event whose samples perf synthesises of a trace.
    pub synthesised: Option<u64>,
    /// Whether the data address is looked up (`sample_addr_correlates_sym`).
    pub has_data_symbol: bool,
    pub has_data_address: bool,
    /// The period of samples that do not contain it.
    pub period: u64,
    /// How counters are read, if samples contain them.
    pub read: Option<ReadFormat>,
    /// Whether counters are those of a thread.
    pub is_per_thread: bool,
    /// Masks of the registers at the interrupt and of the user.
    pub registers: [u64; 2],
}

impl Event {
    fn of(attr: &Attr, name: &[u8], like: Like) -> Self {
        let parts = attr.sample_type;
        let is_bpf_output = is_software(attr, SoftwareEvent::BPF_OUTPUT);
        let is_fault = [
            SoftwareEvent::PAGE_FAULTS,
            SoftwareEvent::PAGE_FAULTS_MIN,
            SoftwareEvent::PAGE_FAULTS_MAJ,
        ]
        .into_iter()
        .any(|event| is_software(attr, event));
        let kind = EventKind::of(attr);
        let is_branch = kind == EventKind::Hardware
            && attr.config == HardwareEvent::BRANCH_INSTRUCTIONS.0
            && attr.period() == Some(1);
        Event {
            kind,
            name: name.into(),
            has_callchain: parts.has(SampleType::CALLCHAIN),
            is_unwound: parts.has(SampleType::REGS_USER) && parts.has(SampleType::STACK_USER),
            is_branch,
            is_bpf_output: is_bpf_output && name != OFF_CPU,
            synthesised: (kind == EventKind::Synth).then_some(attr.config),
            has_data_symbol: is_fault || is_branch,
            has_data_address: parts.has(SampleType::ADDR),
            period: attr.sample_period,
            read: parts.has(SampleType::READ).then_some(attr.read_format),
            is_per_thread: like > Like::Perf6_1
                && attr.flags.inherit() == 1
                && parts.has(SampleType::TID),
            registers: [
                attr.sample_regs_intr.unwrap_or_default(),
                attr.sample_regs_user.unwrap_or_default(),
            ],
        }
    }
}

/// All events.
#[derive(Debug, Default)]
pub(super) struct Events {
    list: Vec<Event>,
    /// Number of events whose fields are determined.
    checked: usize,
    names: EventNames,
    /// Whether records have changed the names since the last update.
    has_new_names: bool,
    /// Whether perf looks at callchains at all.
    uses_callchains: bool,
    /// Width of the names of events, since the first sample.
    pub name_width: Option<usize>,
    /// The registers of the recording machine.
    pub registers: Option<&'static Registers>,
    counters: Counters,
}

impl Events {
    /// Takes over names of events from a record.
    pub fn see(&mut self, record: &RecordRef<'_>) {
        self.has_new_names |= self.names.see(record);
    }

    /// Takes over new events and names of the recording.
    pub fn update_names(&mut self, recording: &Recording, like: Like) {
        if self.list.len() == recording.events.len() && !self.has_new_names {
            return;
        }
        self.has_new_names = false;
        let names = std::mem::take(&mut self.names);
        self.names = names.with_modifiers(match like < Like::Perf7_2 {
            true => Modifiers::Before6_13,
            false => Modifiers::Since6_13,
        });
        self.registers = Registers::of(recording);
        self.names.update(recording);
        for (number, event) in recording.events.iter().enumerate() {
            let name = self.names.get(recording, number).unwrap_or_default();
            match self.list.get_mut(number) {
                Some(event) => event.name = name.as_ref().into(),
                None => {
                    let event = Event::of(&event.attr, &name, like);
                    self.list.push(event);
                }
            }
        }
    }

    /// Takes over new events of the recording, and determines which fields they show.
    pub fn update(
        &mut self,
        recording: &Recording,
        style: Style,
        shown: &mut Shown,
    ) -> Result<(), FieldsError> {
        self.update_names(recording, style.like);
        let known = std::mem::replace(&mut self.checked, self.list.len());
        if known == self.list.len() {
            return Ok(());
        }
        let names = &self.names;
        let name_of = |number| names.get(recording, number).unwrap_or_default();
        let attrs: Vec<&Attr> = recording.events.iter().map(|event| &event.attr).collect();
        let has_aux = recording.features.contains_key(&FeatureId::AUXTRACE);
        let check = |shown: &mut Shown, attr: &Attr, number: usize| {
            let is_shown = !shown.of(EventKind::of(attr)).is_empty() && !is_dummy(Some(attr));
            match is_shown && !recording.features.contains_key(&FeatureId::STAT) {
                true => shown.check(attr, &name_of(number), has_aux),
                false => Ok(()),
            }
        };
        if style.is_stream {
            self.uses_callchains = true;
            for (number, attr) in attrs.iter().enumerate().skip(known) {
                let before = attrs.get(..number).unwrap_or_default();
                let kind = EventKind::of(attr);
                if kind == EventKind::Other || before.iter().any(|other| other.kind == attr.kind) {
                    continue;
                }
                check(shown, attr, number)?;
                let all = before.iter().chain([attr]);
                let parts = SampleType(all.fold(0, |all, attr| all | attr.sample_type.0));
                let is_unwound =
                    parts.has(SampleType::REGS_USER) && parts.has(SampleType::STACK_USER);
                let has_chains = parts.has(SampleType::CALLCHAIN)
                    || parts.has(SampleType::BRANCH_STACK)
                    || is_unwound;
                if has_chains {
                    let fields = Set::IP.with(Set::SYM).without(shown.removed(kind));
                    shown.add(kind, fields);
                }
            }
            return Ok(());
        }
        for kind in EventKind::ALL {
            let first = attrs
                .iter()
                .position(|attr| EventKind::of(attr) == kind && !is_dummy(Some(attr)));
            if let Some((number, attr)) = first.and_then(|at| Some((at, attrs.get(at)?))) {
                check(shown, attr, number)?;
            }
        }
        self.uses_callchains = self
            .list
            .iter()
            .any(|event| event.has_callchain || *event.name == *OFF_CPU);
        let has_chain = |event: &Event| event.kind == EventKind::Tracepoint && event.has_callchain;
        if !shown.is_set(EventKind::Tracepoint) && self.list.iter().any(has_chain) {
            let frame = Set::IP.with(Set::SYM).with(Set::SYMOFF).with(Set::DSO);
            shown.add(EventKind::Tracepoint, frame);
        }
        Ok(())
    }

    /// Returns all events.
    pub fn iter(&self) -> impl Iterator<Item = &Event> {
        self.list.iter()
    }

    /// Returns an event.
    pub fn get(&self, number: usize) -> Option<&Event> {
        self.list.get(number)
    }

    /// Returns whether the samples of an event are branches; true as long as no event is known.
    pub fn has_branch_samples(&self) -> bool {
        self.list.is_empty() || self.list.iter().any(|event| event.is_branch)
    }

    /// Returns whether a sample of an event shows a callchain.
    pub fn shows_callchain(&self, event: &Event) -> bool {
        self.uses_callchains && event.has_callchain
    }

    /// Returns the width of the longest name of an event at the first sample.
    pub fn name_width(&mut self) -> usize {
        let longest = || self.list.iter().map(|event| event.name.len()).max();
        let width = self.name_width.or_else(longest).unwrap_or_default();
        *self.name_width.insert(width)
    }

    /// Returns the events whose counters a sample contains, each with its increase since the last
    /// sample, without those that did not increase.
    pub fn increases(
        &mut self,
        recording: &Recording,
        event: usize,
        read: &ReadValue,
        tid: Option<u32>,
    ) -> Vec<(usize, u64)> {
        let tid = tid.filter(|_| self.get(event).is_some_and(|event| event.is_per_thread));
        let one = read.value.map(|value| (read.id, value));
        let group = read.values.iter().map(|value| (value.id, value.value));
        let mut increases = Vec::new();
        let counters = one.into_iter().chain(group);
        self.counters.see(recording, counters, tid, &mut increases);
        increases
    }
}
