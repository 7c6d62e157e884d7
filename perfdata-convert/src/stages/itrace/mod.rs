//! Samples instead of AUX data (`perf inject --itrace`), for Arm SPE.
//!
//! Each record of the trace is a sampled operation. It becomes a sample of every new event that it
//! matches: a miss in a cache, a branch, an access to memory. The samples are those of perf 7.2
//! (tools/perf/util/arm-spe.c and arm-spe-decoder/, Linux 7.1). Intel PT and CoreSight trace the
//! control flow: their decoders need the code of all programs, and are not part of this crate.

mod data_source;
mod events;
mod options;
mod sample;
mod tasks;
mod trace;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use perfdata_core::Events;
use perfdata_core::Recording;
use perfdata_core::arm_spe::SpeRecord;
use perfdata_core::attr::SampleType;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::names::name_records;
use perfdata_core::record::{
    ArmSpeContent, AuxtraceInfo, AuxtracePrivate, AuxtraceType, RawRecord, RecordType, SpeUnit,
    Tid, TimeConv, TraceUnitParams, is_known_time,
};

pub use options::ItraceOptions;

use super::attributes::has_late_events;
use super::cycles::{CycleClock, nanoseconds};
use crate::count::number_of;
use crate::error::{Error, Result, Step};
use crate::io::InputSource;
use crate::pipeline::{Link, ReadsAhead, Requirements, Stage};
use data_source::{CpuSources, Encoding};
use events::Synthesised;
use sample::Common;
use tasks::{NONE, Tasks};
use trace::Traces;

/// Replaces the AUX data of Arm SPE by samples, and removes the records about AUX data, as
/// `perf inject --itrace` does.
///
/// The records must be in the order of time: see [`Sort`](super::sort::Sort).
#[derive(Debug)]
pub struct Itrace {
    options: ItraceOptions,
    /// Whether to drop all other samples.
    strip: bool,
    decoder: Option<Decoder>,
    /// EVENT_UPDATE records to insert before the first record.
    names: Vec<Vec<u8>>,
}

/// The state of decoding.
#[derive(Debug)]
struct Decoder {
    traces: Traces,
    options: ItraceOptions,
    /// The clock of timestamps; `None` if the records of the recording have no times.
    clock: Option<TimeConv>,
    cpus: Cpus,
    new: Vec<Synthesised>,
    /// The events after the stage.
    to: Events,
    queues: Vec<Queue>,
    /// The queues that have a record, by its timestamp.
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    /// Whether the first records of all queues were decoded.
    has_begun: bool,
    tasks: Tasks,
    /// Whether the trace says which threads ran.
    has_contexts: bool,
    records: u64,
    samples: u64,
}

/// The state of a buffer.
#[derive(Debug, Clone, Copy)]
struct Queue {
    /// The next record.
    record: Option<SpeRecord>,
    /// The latest timestamp so far.
    timestamp: u64,
    cpu: u32,
    pid: u32,
    tid: u32,
    /// Number of records since the last one with samples.
    skipped: u64,
}

/// What AUXTRACE_INFO says of the CPUs.
#[derive(Debug, Clone, Default)]
enum Cpus {
    /// All CPUs are the same.
    Same(CpuSources),
    /// By number.
    Each(Vec<(u64, u64, CpuSources)>),
    #[default]
    Unknown,
}

impl Itrace {
    /// Returns a stage that synthesises these samples. With `strip`, it drops all others, and the
    /// records of context switches.
    pub fn new(options: ItraceOptions, strip: bool) -> Self {
        Itrace {
            options,
            strip,
            decoder: None,
            names: Vec::new(),
        }
    }

    /// Returns whether the record is only about the trace, or is to be stripped.
    fn drops(&self, kind: RecordType) -> bool {
        let is_about_trace = matches!(
            kind,
            RecordType::AUXTRACE
                | RecordType::AUXTRACE_INFO
                | RecordType::ID_INDEX
                | RecordType::AUX
                | RecordType::ITRACE_START
                | RecordType::AUX_OUTPUT_HW_ID
        );
        let is_stripped = matches!(
            kind,
            RecordType::SAMPLE | RecordType::SWITCH | RecordType::SWITCH_CPU_WIDE
        );
        is_about_trace || self.strip && is_stripped
    }

    fn send_names(&mut self, next: &mut Link<'_>) -> Result<()> {
        let endian = next.recording().endian;
        let names = std::mem::take(&mut self.names);
        names
            .iter()
            .try_for_each(|bytes| next.record(&RawRecord::first(bytes, endian, 0)?))
    }
}

/// Returns the type number of the PMU, and the CPUs, of a trace of Arm SPE.
///
/// # Errors
/// It is another trace.
fn spe(info: &AuxtraceInfo, recording: &Recording) -> Result<(u64, Cpus)> {
    let other = |why: &str| {
        Err(Error::Refused(format!(
            "--itrace decodes Arm SPE, and this is a trace of {}: {why}",
            info.kind
        )))
    };
    match &info.private {
        AuxtracePrivate::ArmSpe1(v1) => {
            let midr = match recording.feature(FeatureId::CPUID) {
                Some(Ok(Section {
                    value: Feature::CpuId(text),
                    ..
                })) => midr_of_cpuid(text.text()),
                _ => None,
            };
            let cpus = midr.map_or(Cpus::Unknown, |midr| {
                Cpus::Same(CpuSources {
                    encoding: Encoding::of_midr(midr),
                    reports_snoops: false,
                })
            });
            Ok((v1.pmu_type, cpus))
        }
        AuxtracePrivate::ArmSpe(spe) => match &spe.content {
            ArmSpeContent::V2(v2) => {
                let unit = |unit: &perfdata_core::record::TraceUnit| match &unit.params {
                    TraceUnitParams::ArmSpe(spe) => Some((unit.cpu, spe.midr, sources(spe))),
                    _ => None,
                };
                Ok((
                    v2.pmu_type,
                    Cpus::Each(v2.units.iter().filter_map(unit).collect()),
                ))
            }
            _ => other("its AUXTRACE_INFO record has an unknown version"),
        },
        _ => match info.kind {
            AuxtraceType::INTEL_PT | AuxtraceType::INTEL_BTS | AuxtraceType::CS_ETM => {
                other("its decoder needs the code of all recorded programs; use perf inject")
            }
            _ => other("use perf inject, or perfconv extract-aux for the raw data"),
        },
    }
}

fn sources(unit: &SpeUnit) -> CpuSources {
    let snooped = perfdata_core::arm_spe::SpeEvents::SNOOPED.0;
    CpuSources {
        encoding: Encoding::of_midr(unit.midr),
        reports_snoops: unit
            .event_filter
            .is_some_and(|events| events & snooped != 0),
    }
}

/// Returns the main ID register, which is the feature CPUID of arm64 in hexadecimal digits.
fn midr_of_cpuid(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let end = digits
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(digits.len());
    u64::from_str_radix(digits.get(..end)?, 16).ok()
}

impl Cpus {
    fn sources(&self, cpu: u32) -> CpuSources {
        match self {
            Cpus::Same(sources) => *sources,
            Cpus::Each(units) if cpu == NONE => {
                // Without a CPU, all must be the same.
                let mut units = units.iter();
                let first = units.next();
                let is_same = |(_, midr, _): &(u64, u64, CpuSources)| {
                    first.is_some_and(|(_, first, _)| first == midr)
                };
                match first {
                    Some((.., sources)) if units.all(is_same) => *sources,
                    _ => CpuSources::default(),
                }
            }
            Cpus::Each(units) => units
                .iter()
                .find(|(number, ..)| *number == u64::from(cpu))
                .map_or(CpuSources::default(), |(.., sources)| *sources),
            Cpus::Unknown => CpuSources::default(),
        }
    }
}

impl Decoder {
    /// Decodes the first record of each queue.
    fn begin(&mut self) -> Result<()> {
        self.has_begun = true;
        for at in 0..self.traces.queues.len() {
            let record = self.traces.next(at)?;
            let Some(trace) = self.traces.queues.get(at) else {
                continue;
            };
            let timestamp = record.and_then(|record| record.timestamp).unwrap_or(0);
            self.queues.push(Queue {
                record,
                timestamp,
                cpu: trace.cpu,
                pid: NONE,
                tid: NONE,
                skipped: 0,
            });
            if record.is_some() {
                self.heap.push(Reverse((timestamp, at)));
            }
        }
        Ok(())
    }

    /// Writes the samples of all records before the timestamp `until`.
    fn advance(&mut self, until: u64, next: &mut Link<'_>) -> Result<()> {
        if !self.has_begun {
            self.begin()?;
        }
        while let Some(&Reverse((timestamp, at))) = self.heap.peek() {
            if timestamp >= until {
                break;
            }
            self.heap.pop();
            let other = self.heap.peek();
            let limit = other.map_or(until, |Reverse((other, _))| {
                other.saturating_add(1).min(until)
            });
            if !self.has_contexts {
                self.find_task(at);
            }
            self.run(at, Some(limit), next)?;
            if let Some(queue) = self.queues.get(at).filter(|queue| queue.record.is_some()) {
                self.heap.push(Reverse((queue.timestamp, at)));
            }
        }
        Ok(())
    }

    /// Writes the samples of all records.
    fn finish(&mut self, next: &mut Link<'_>) -> Result<()> {
        if self.clock.is_some() {
            return self.advance(u64::MAX, next);
        }
        self.begin()?;
        for at in 0..self.queues.len() {
            self.find_task(at);
            self.run(at, None, next)?;
        }
        Ok(())
    }

    /// Writes the samples of a queue, up to the timestamp `limit`.
    fn run(&mut self, at: usize, limit: Option<u64>, next: &mut Link<'_>) -> Result<()> {
        while let Some(record) = self.queues.get(at).and_then(|queue| queue.record) {
            if let Some(tid) = record.context {
                self.has_contexts = true;
                self.set_task(at, tid);
            }
            self.sample(at, &record, next)?;
            let record = self.traces.next(at)?;
            let Some(queue) = self.queues.get_mut(at) else {
                break;
            };
            queue.record = record;
            let timestamp = record.and_then(|record| record.timestamp).unwrap_or(0);
            queue.timestamp = queue.timestamp.max(timestamp);
            if limit.is_some_and(|limit| queue.timestamp >= limit) {
                break;
            }
        }
        Ok(())
    }

    /// Determines the task of a queue from context switches, or else from its AUXTRACE record.
    fn find_task(&mut self, at: usize) {
        let Some((queue, trace)) = self.queues.get_mut(at).zip(self.traces.queues.get(at)) else {
            return;
        };
        let tid = self.tasks.running(queue.cpu).unwrap_or(trace.tid);
        queue.tid = tid;
        if tid == NONE {
            return;
        }
        queue.pid = self.tasks.pid(tid);
        if trace.cpu == NONE {
            queue.cpu = self.tasks.cpu(tid);
        }
    }

    /// Sets the task of a queue to that of a context packet.
    fn set_task(&mut self, at: usize, tid: u32) {
        let pid = self.tasks.pid(tid);
        if let Some(queue) = self.queues.get_mut(at) {
            self.tasks.run(queue.cpu, tid);
            (queue.pid, queue.tid) = (pid, tid);
        }
    }

    /// Writes the samples of a record.
    fn sample(&mut self, at: usize, record: &SpeRecord, next: &mut Link<'_>) -> Result<()> {
        self.records = self.records.saturating_add(1);
        let Some(queue) = self.queues.get_mut(at) else {
            return Ok(());
        };
        queue.skipped = queue.skipped.saturating_add(1);
        if queue.skipped < self.options.period {
            return Ok(());
        }
        queue.skipped = 0;
        let common = Common {
            tid: Tid {
                pid: queue.pid,
                tid: queue.tid,
            },
            cpu: queue.cpu,
            time: self
                .clock
                .as_ref()
                .map_or(0, |clock| nanoseconds(clock, record.timestamp.unwrap_or(0))),
            period: self.options.period,
            sources: self.cpus.sources(queue.cpu),
            last_branches: self.options.last_branches.unwrap_or(0),
        };
        for new in self.new.iter().filter(|new| sample::has(new.kind, record)) {
            next.write_for(&sample::sample(new, record, &common), &self.to)?;
            self.samples = self.samples.saturating_add(1);
        }
        Ok(())
    }
}

impl Stage for Itrace {
    fn requirements(&self) -> Requirements {
        Requirements {
            keeps_samples: false,
            reads_ahead: ReadsAhead::Always,
            ..Requirements::default()
        }
    }

    fn look_ahead(&mut self, source: &InputSource, recording: &Recording) -> Result<()> {
        let mut traces = Traces::read(source)?;
        let Some(info) = traces.info.take() else {
            return Ok(());
        };
        let (pmu, cpus) = spe(&info, recording)?;
        let has_times = recording
            .events
            .iter()
            .any(|event| event.attr.sample_type.has(SampleType::TIME));
        let clock = traces.clock.take();
        if has_times && !traces.queues.is_empty() {
            let is_usable = |clock: &TimeConv| CycleClock::of(clock).is_usable();
            if !clock.as_ref().is_some_and(is_usable) {
                return Err(Error::Refused(
                    "the recording has no usable TIME_CONV record, which relates the timestamps of Arm SPE to the times of other records"
                        .into(),
                ));
            }
        }
        let new = events::synthesised(&recording.events, pmu, &self.options, has_times)?;
        self.decoder = Some(Decoder {
            traces,
            options: self.options,
            clock: clock.filter(|_| has_times),
            cpus,
            new,
            to: Events::default(),
            queues: Vec::new(),
            heap: BinaryHeap::new(),
            has_begun: false,
            tasks: Tasks::default(),
            has_contexts: false,
            records: 0,
            samples: 0,
        });
        Ok(())
    }

    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        recording.features.remove(&FeatureId::AUXTRACE);
        let Some(decoder) = &mut self.decoder else {
            return Ok(());
        };
        if has_late_events(recording, container_layout) {
            let what = "the attributes are not at the start of the stream";
            let step = Step::Other("perfconv pipe2file, and --itrace of the file".into());
            return Err(Error::Refused(what.into()).with_step(step));
        }
        for new in &decoder.new {
            recording.events.push(new.event.clone());
        }
        decoder.to = recording.events.clone();
        let is_described = events::describe(recording, &decoder.new)?;
        // perf reads the names of a pipe from these records only.
        if !is_described || matches!(container_layout, ContainerLayout::Pipe(_)) {
            let names: Vec<_> = decoder.new.iter().map(Synthesised::name).collect();
            self.names = name_records(&names, recording.endian);
        }
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        let has_trace = self.decoder.is_some();
        has_trace && kind.is_kernel() || self.drops(kind) || !self.names.is_empty()
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        self.send_names(next)?;
        let recording = next.recording();
        if let Some(decoder) = &mut self.decoder
            && raw.kind.is_kernel()
        {
            let time = recording
                .events
                .time(raw)
                .filter(|&time| is_known_time(time));
            if let (Some(time), Some(clock)) = (time, &decoder.clock) {
                let until = CycleClock::of(clock).counter(time);
                decoder.advance(until, next)?;
            }
            if Tasks::wants(raw.kind) {
                // Without times, it is not known which thread ran when.
                let heeds_switches = !decoder.has_contexts && decoder.clock.is_some();
                decoder
                    .tasks
                    .see(raw, recording, heeds_switches, next.limits())?;
            }
        }
        if self.drops(raw.kind) {
            return Ok(());
        }
        next.record(raw)
    }

    fn finish(&mut self, _: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        self.send_names(next)?;
        match &mut self.decoder {
            Some(decoder) => decoder.finish(next),
            None => Ok(()),
        }
    }

    fn notes(&self) -> Vec<String> {
        let Some(decoder) = &self.decoder else {
            return vec!["the recording has no AUX data: nothing to decode".into()];
        };
        let mut notes = vec![format!(
            "{} of {}",
            number_of(decoder.samples, "synthesised sample"),
            number_of(decoder.records, "record") + " of Arm SPE"
        )];
        let damaged = decoder.traces.queues.iter().map(|queue| queue.damaged);
        let damaged: u64 = damaged.fold(0, u64::saturating_add);
        if damaged > 0 {
            notes.push(format!(
                "{} of Arm SPE dropped: they contain bytes that are no packet",
                number_of(damaged, "record")
            ));
        }
        notes
    }
}
