//! Older forms of records: which records change, and how.

use perfdata_core::attr::SampleType;
use perfdata_core::record::{
    AuxFlags, AuxtraceErrorDetail, Body, BranchFlags, CpuMode, CpuSet, DataSource,
    EventUpdateValue, MISC_MMAP_DATA, Mmap, Mmap2, RawRecord, ReadValue, Record, RecordType,
    Sample, SampleId, TABLE, deferred_cookie,
};
use perfdata_core::wire::Text;
use perfdata_core::{DecodeContext, Event, Events, Version};

/// Since this release, sets of CPUs may be ranges, and AUX data errors contain the machine of a
/// guest.
const RANGES_AND_GUESTS: &str = "6.0";

/// Since this release, AUX data errors contain a time.
const TIMED_ERRORS: &str = "4.20";

/// `PROT_EXEC`, which is the same on all architectures.
const PROT_EXEC: u32 = 4;

/// The original and the converted events of a recording.
#[derive(Debug)]
pub(super) struct Forms {
    version: Version,
    from: Events,
    to: Events,
    /// Whether the samples of each event change, and those of any event.
    samples: Vec<bool>,
    any_samples: bool,
    /// Whether the trailers of other records, or the counter values, of any event change.
    others: bool,
    /// By record type: whether this perf knows it, and which bits of its `misc`.
    types: Vec<(bool, u16)>,
}

/// Returns, by record type, whether perf of release `version` knows it, and which bits of its
/// `misc`.
fn known_types(version: Version) -> Vec<(bool, u16)> {
    let mut types = Vec::new();
    for info in TABLE {
        let newer = info.misc.iter().filter(|flag| !version.has(flag.since));
        let mask = newer.fold(u16::MAX, |known, flag| {
            known & !(1_u16.checked_shl(flag.bit).unwrap_or(0))
        });
        let at = info.kind.0 as usize;
        types.resize(types.len().max(at.saturating_add(1)), (false, u16::MAX));
        if let Some(known) = types.get_mut(at) {
            *known = (version.has(info.since), mask);
        }
    }
    types
}

impl Forms {
    pub(super) fn new(version: Version) -> Self {
        Forms {
            types: known_types(version),
            version,
            from: Events::default(),
            to: Events::default(),
            samples: Vec::new(),
            any_samples: false,
            others: false,
        }
    }

    pub(super) fn set(&mut self, from: &Events, to: &Events) {
        (self.from, self.to) = (from.clone(), to.clone());
        self.compare();
    }

    /// Adds an event that appears in the stream.
    pub(super) fn add(&mut self, from: Event, to: Event) {
        self.from.push(from);
        self.to.push(to);
        self.compare();
    }

    fn compare(&mut self) {
        let layouts = || {
            let pairs = self.from.iter().zip(self.to.iter());
            pairs.map(|(from, to)| {
                (
                    DecodeContext::of_attr(&from.attr),
                    DecodeContext::of_attr(&to.attr),
                )
            })
        };
        let lost = |kinds: fn(&DecodeContext) -> bool| {
            layouts().any(|(from, to)| kinds(&from) && !kinds(&to))
        };
        // Samples of every event of the group may contain them.
        let loses_counters = lost(|layout| layout.branch_form.counters);
        let flags = BranchFlags(u64::MAX).known_in(self.version)
            != BranchFlags(!BranchFlags(u64::MAX).unknown());
        let sources = DataSource(u64::MAX).known_in(self.version)
            != DataSource(!DataSource(u64::MAX).unknown());
        let knows_deferred = RecordType::CALLCHAIN_DEFERRED
            .info()
            .is_none_or(|info| self.version.has(info.since));
        let changes = |(event, (from, to)): (&Event, (DecodeContext, DecodeContext))| {
            let has = |part| to.sample_type.has(part);
            let is_deferred = !knows_deferred
                && event.attr.flags.defer_callchain() != 0
                && has(SampleType::CALLCHAIN);
            from != to
                || (has(SampleType::BRANCH_STACK) && (flags || loses_counters))
                || (has(SampleType::DATA_SRC) && sources)
                || is_deferred
        };
        self.samples = self.from.iter().zip(layouts()).map(changes).collect();
        self.any_samples = self.samples.contains(&true);
        self.others = layouts().any(|(from, to)| from != to);
    }

    /// Returns whether any record of the kernel changes.
    pub(super) fn have_changes(&self) -> bool {
        self.others || self.any_samples
    }

    /// Returns a mask of the bits in `misc` without the flags that this perf does not know.
    pub(super) fn known_misc(&self, kind: RecordType) -> u16 {
        self.types
            .get(kind.0 as usize)
            .map_or(u16::MAX, |known| known.1)
    }

    /// Returns whether this perf knows records of type `kind`.
    pub(super) fn knows(&self, kind: RecordType) -> bool {
        self.types.get(kind.0 as usize).is_some_and(|known| known.0)
    }

    /// Returns whether `raw` has, or may have, another form for this perf.
    pub(super) fn changes(&self, raw: &RawRecord<'_>) -> bool {
        match raw.kind {
            RecordType::SAMPLE if self.any_samples => match self.from.of_record(raw) {
                Some(event) => self.samples.get(event) == Some(&true),
                None => !self.from.have_one_layout() || self.samples.first() == Some(&true),
            },
            RecordType::SAMPLE => false,
            RecordType::MMAP2 => {
                self.others || !self.knows(raw.kind) || raw.misc & !self.known_misc(raw.kind) != 0
            }
            RecordType::AUX => {
                self.others || AuxFlags(u64::MAX).known_in(self.version) != AuxFlags::KNOWN
            }
            RecordType::CPU_MAP | RecordType::EVENT_UPDATE | RecordType::AUXTRACE_ERROR => {
                !self.version.has(RANGES_AND_GUESTS)
            }
            RecordType::HEADER_BUILD_ID => self.others,
            kind => kind.is_kernel() && kind.info().is_some() && self.others,
        }
    }

    /// Returns the original and the converted layout of `raw`; `None` if its event is not known.
    pub(super) fn layouts(&self, raw: &RawRecord<'_>) -> Option<(DecodeContext, DecodeContext)> {
        let event = self.from.of_record(raw);
        if event.is_none() && raw.kind == RecordType::SAMPLE && !self.from.have_one_layout() {
            return None;
        }
        let to = self
            .to
            .get(event.unwrap_or(0))
            .map(|event| DecodeContext::of_attr(&event.attr))
            .unwrap_or_default();
        Some((self.from.layout_of(raw), to))
    }

    /// Converts a record to the form for this perf, in which its event has the layout `to`.
    pub(super) fn rewrite(&self, record: &mut Record, to: &DecodeContext) {
        match &mut record.body {
            Body::Sample(sample) => self.sample(sample, to),
            Body::Read(read) => self.read(&mut read.values),
            Body::Aux(aux) => aux.flags = aux.flags.known_in(self.version),
            Body::CpuMap(map) => self.cpus(&mut map.kind, &mut map.cpus),
            Body::EventUpdate(update) => {
                if let EventUpdateValue::Cpus(map) = &mut update.update {
                    self.cpus(&mut map.kind, &mut map.cpus);
                }
            }
            Body::AuxtraceError(error) => self.error(&mut error.fmt, &mut error.detail),
            _ => {}
        }
        if !self.knows(RecordType::MMAP2) {
            mmap(record);
        }
        record.misc &= self.known_misc(record.kind);
        match &mut record.sample_id {
            Some(trailer) if to.sample_id_all || !record.kind.is_kernel() => {
                trailer_parts(trailer, to)
            }
            trailer => *trailer = None,
        }
    }

    fn sample(&self, sample: &mut Sample, to: &DecodeContext) {
        let parts = to.sample_type;
        if parts.has(SampleType::ID) {
            sample.id = sample.id.or(sample.identifier);
        }
        if parts.has(SampleType::WEIGHT) {
            sample.weight = sample
                .weight
                .or(sample.weight_struct.map(|weights| weights.var1_dw()));
        }
        sample.keep_parts(parts);
        if let Some(read) = &mut sample.read {
            self.read(read);
        }
        if let Some(branches) = &mut sample.branch_stack {
            if !self.knows_counters() {
                branches.counters.0.clear();
            }
            branches.hw_idx = branches.hw_idx.filter(|_| to.branch_form.hw_idx);
            for entry in &mut branches.entries.0 {
                entry.flags =
                    BranchFlags(entry.flags.known_in(self.version).0 | entry.flags.unknown());
            }
        }
        let known =
            |source: DataSource| DataSource(source.known_in(self.version).0 | source.unknown());
        sample.data_src = sample.data_src.map(known);
        let knows_deferred = self.knows(RecordType::CALLCHAIN_DEFERRED);
        if let Some(chain) = sample.callchain.as_mut().filter(|_| !knows_deferred)
            && deferred_cookie(chain.iter().copied()).is_some()
        {
            // The marker and the cookie after it.
            let kept = chain.len().saturating_sub(2);
            *chain = chain.get(..kept).unwrap_or_default().to_vec().into();
        }
    }

    fn knows_counters(&self) -> bool {
        let counters = perfdata_core::attr::BranchSampleType::COUNTERS;
        counters.known_in(self.version) == counters
    }

    /// Removes the counts of lost samples from a read value.
    fn read(&self, read: &mut ReadValue) {
        let lost = perfdata_core::attr::ReadFormat::LOST;
        if lost.known_in(self.version) != lost {
            read.lost = None;
            read.values.0.iter_mut().for_each(|value| value.lost = None);
        }
    }

    /// Converts a range of CPUs to a list.
    fn cpus(&self, kind: &mut perfdata_core::record::CpuMapType, cpus: &mut CpuSet) {
        /// Any CPU, in a list.
        const ANY: u16 = u16::MAX;
        if let CpuSet::Range(range) = cpus
            && !self.version.has(RANGES_AND_GUESTS)
        {
            let any = (range.any_cpu != 0).then_some(ANY);
            *cpus = CpuSet::Cpus(
                any.into_iter()
                    .chain(range.start_cpu..=range.end_cpu)
                    .collect::<Vec<u16>>()
                    .into(),
            );
            *kind = perfdata_core::record::CpuMapType::CPUS;
        }
    }

    /// Removes newer fields from an AUX data error.
    fn error(&self, fmt: &mut u32, detail: &mut AuxtraceErrorDetail) {
        if let AuxtraceErrorDetail::Guest(guest) = detail
            && !self.version.has(RANGES_AND_GUESTS)
        {
            let msg = Text::padded(guest.msg.text(), 8);
            *detail = AuxtraceErrorDetail::Timed(perfdata_core::record::TimedMessage {
                time: guest.time,
                msg,
            });
            *fmt = 1;
        }
        if let AuxtraceErrorDetail::Timed(timed) = detail
            && !self.version.has(TIMED_ERRORS)
        {
            *detail = AuxtraceErrorDetail::Message(timed.msg.clone());
            *fmt = 0;
        }
    }
}

/// Converts a trailer to the fields of `to`.
fn trailer_parts(trailer: &mut SampleId, to: &DecodeContext) {
    if to.sample_type.has(SampleType::ID) {
        trailer.id = trailer.id.or(trailer.identifier);
    }
    trailer.keep_parts(to.sample_type);
}

/// Converts an MMAP2 record to an MMAP record, with the same process, address range and name.
fn mmap(record: &mut Record) {
    let Body::Mmap2(map) = &record.body else {
        return;
    };
    let Mmap2 {
        pid,
        tid,
        addr,
        len,
        pgoff,
        prot,
        ..
    } = *map;
    let body = Mmap {
        pid,
        tid,
        addr,
        len,
        pgoff,
        filename: map.filename.clone(),
    };
    // perf records the protection of synthesized mappings only for processes.
    let is_user = matches!(
        CpuMode::of(record.misc),
        CpuMode::USER | CpuMode::GUEST_USER
    );
    if is_user && prot.is_some_and(|prot| prot != 0 && prot & PROT_EXEC == 0) {
        record.misc |= MISC_MMAP_DATA;
    }
    record.kind = RecordType::MMAP;
    record.body = Body::Mmap(body);
}
