//! Samples instead of AUX data (`perf inject --itrace`), for Intel PT, Intel BTS and Arm SPE.
//!
//! A trace of Intel PT says which way a program took through its code, which is followed. A record of
//! Intel BTS is a branch. A record of Arm SPE is a sampled operation, and becomes a sample of every
//! new event that it matches: a miss in a cache, a branch, an access to memory. The samples are those
//! of perf 7.2 (tools/perf/util/intel-pt.c, intel-bts.c, arm-spe.c and arm-spe-decoder/, Linux 7.1).

mod branches;
mod code;
mod cpus;
mod data_source;
mod decoder;
mod events;
mod intel_pt;
mod options;
mod sample;
mod tasks;
mod trace;

use perfdata_core::Recording;
use perfdata_core::attr::SampleType;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::FeatureId;
use perfdata_core::record::{AuxtracePrivate, RawRecord, RecordType, TimeConv};
use perfdata_core::{Event, Events};
use perfdata_symbols::{Reason, Sources};

pub use options::{ItraceCommand, ItraceOptions};

use crate::new_events;
use branches::Branches;
use code::Help;
use decoder::SpeDecoder;
use events::Synthesised;
use intel_pt::Decoding;
use options::TraceKind;
use perfdata_convert::error::{Error, Result, Step};
use perfdata_convert::io::InputSource;
use perfdata_convert::pipeline::{Link, ReadsAhead, Requirements, Stage};
use perfdata_convert::support::attributes::has_late_events;
use perfdata_convert::support::cycles::CycleClock;
use trace::Traces;

/// The decoder of a kind of trace.
#[derive(Debug)]
enum Tracer {
    ArmSpe(Box<SpeDecoder>),
    IntelBts(Box<Branches>),
    IntelPt(Box<Decoding>),
}

impl Tracer {
    /// Returns the new events and their names.
    fn named(&self, recording: &Recording) -> Vec<(Event, Vec<u8>)> {
        match self {
            Tracer::ArmSpe(decoder) => {
                let new = decoder.synthesised().iter();
                new.map(Synthesised::named).collect()
            }
            Tracer::IntelBts(branches) => branches.named(recording),
            Tracer::IntelPt(decoding) => decoding.named(recording),
        }
    }

    fn set_events(&mut self, events: &Events) {
        match self {
            Tracer::ArmSpe(decoder) => decoder.set_events(events),
            Tracer::IntelBts(branches) => branches.set_events(events),
            Tracer::IntelPt(decoding) => decoding.set_events(events),
        }
    }

    fn see(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        match self {
            Tracer::ArmSpe(decoder) => decoder.see(raw, next),
            Tracer::IntelBts(branches) => branches.see(raw, next),
            Tracer::IntelPt(decoding) => decoding.see(raw, next),
        }
    }

    fn finish(&mut self, next: &mut Link<'_>) -> Result<()> {
        match self {
            Tracer::ArmSpe(decoder) => decoder.finish(next),
            Tracer::IntelBts(branches) => branches.finish(next),
            Tracer::IntelPt(decoding) => decoding.finish(next),
        }
    }

    fn notes(&self, help: Help) -> Vec<String> {
        match self {
            Tracer::ArmSpe(decoder) => decoder.notes(),
            Tracer::IntelBts(branches) => branches.notes(),
            Tracer::IntelPt(decoding) => decoding.notes(help),
        }
    }
}

/// Replaces the AUX data of Intel PT, Intel BTS and Arm SPE by samples, and removes the records about AUX
/// data, as `perf inject --itrace` does.
///
/// The records must be in the order of time: see `perfdata_edit::sort::Sort`.
#[derive(Debug)]
pub struct Itrace {
    /// Which samples to make; `None`: the trace is not decoded.
    options: Option<ItraceOptions>,
    /// Whether to drop all other samples.
    strip: bool,
    /// Where the code of the traced programs is.
    sources: Sources,
    help: Help,
    where_possible: bool,
    tracer: Option<Tracer>,
    /// Why the trace is not decoded, where that is no error.
    refusal: Option<String>,
    /// EVENT_UPDATE records to insert before the first record.
    names: Vec<Vec<u8>>,
}

impl Itrace {
    /// Returns a stage that synthesises these samples. With `strip`, it drops all others, and the
    /// records of context switches.
    pub fn new(options: ItraceOptions, strip: bool) -> Self {
        Itrace {
            options: Some(options),
            strip,
            sources: Sources::default(),
            help: None,
            where_possible: false,
            tracer: None,
            refusal: None,
            names: Vec::new(),
        }
    }

    /// Sets where the code of the traced programs is; by default, where perf searches it on this
    /// machine. Traces of Arm SPE need none.
    #[must_use]
    pub fn with_sources(self, sources: Sources) -> Self {
        Itrace { sources, ..self }
    }

    /// Returns the stage, which adds the text that `help` returns to a note about an object that
    /// cannot be used, for instance the options that could help.
    #[must_use]
    pub fn with_help(self, help: fn(&Reason) -> &'static str) -> Self {
        let help = Some(help);
        Itrace { help, ..self }
    }

    /// Returns the same stage, but traces that cannot be decoded are only removed, with a note.
    #[must_use]
    pub fn where_possible(self) -> Self {
        Itrace {
            where_possible: true,
            ..self
        }
    }

    /// Returns a stage that removes traces of all kinds without decoding them. With `strip`, it
    /// drops all samples, and the records of context switches.
    pub fn without_samples(strip: bool) -> Self {
        Itrace {
            options: None,
            strip,
            sources: Sources::default(),
            help: None,
            where_possible: false,
            tracer: None,
            refusal: None,
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

    /// Returns the decoder of the trace, if there is one.
    fn tracer_of(
        &self,
        options: ItraceOptions,
        source: &InputSource,
        recording: &Recording,
    ) -> Result<Option<Tracer>> {
        let mut traces = Traces::read(source)?;
        let Some(info) = traces.info.take() else {
            return Ok(None);
        };
        let sources = self.sources.clone();
        if let AuxtracePrivate::IntelBts(info) = &info.private {
            let options = options.of_trace(TraceKind::IntelBts);
            let branches = Branches::new(traces, info, options, sources, recording)?;
            return Ok(Some(Tracer::IntelBts(Box::new(branches))));
        }
        if let AuxtracePrivate::IntelPt(info) = &info.private {
            let options = options.of_trace(TraceKind::IntelPt);
            let decoding = Decoding::new(traces, info, options, sources, recording)?;
            return Ok(Some(Tracer::IntelPt(Box::new(decoding))));
        }
        let options = options.of_trace(TraceKind::ArmSpe);
        let (pmu, cpus) = cpus::spe(&info, recording)?;
        options.check_arm_spe()?;
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
        let new = events::synthesised(&recording.events, pmu, &options, has_times)?;
        let clock = clock.filter(|_| has_times);
        let decoder = SpeDecoder::new(traces, options, clock, cpus, new);
        Ok(Some(Tracer::ArmSpe(Box::new(decoder))))
    }

    /// Remembers why the trace is not decoded, where that is no error.
    fn refuse(&mut self, error: Error) -> Result<()> {
        if !self.where_possible || matches!(error, Error::Io { .. }) {
            return Err(error);
        }
        self.refusal = Some(error.to_string());
        self.tracer = None;
        Ok(())
    }

    fn send_names(&mut self, next: &mut Link<'_>) -> Result<()> {
        let endian = next.recording().endian;
        let names = std::mem::take(&mut self.names);
        names
            .iter()
            .try_for_each(|bytes| next.record(&RawRecord::first(bytes, endian, 0)?))
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
        let Some(options) = self.options else {
            return Ok(());
        };
        match self.tracer_of(options, source, recording) {
            Ok(tracer) => self.tracer = tracer,
            Err(error) => self.refuse(error)?,
        }
        Ok(())
    }

    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        recording.features.remove(&FeatureId::AUXTRACE);
        if self.tracer.is_some() && has_late_events(recording, container_layout) {
            let what = "the attributes are not at the start of the stream";
            let step = Step::Other("perfconv pipe2file, and --itrace of the file".into());
            self.refuse(Error::Refused(what.into()).with_step(step))?;
        }
        let Some(tracer) = &mut self.tracer else {
            return Ok(());
        };
        let named = tracer.named(recording);
        for (event, _) in &named {
            recording.events.push(event.clone());
        }
        self.names = new_events::describe(recording, container_layout, &named)?;
        tracer.set_events(&recording.events);
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        let has_trace = self.tracer.is_some();
        has_trace && kind.is_kernel() || self.drops(kind) || !self.names.is_empty()
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        self.send_names(next)?;
        if let Some(tracer) = self.tracer.as_mut().filter(|_| raw.kind.is_kernel()) {
            tracer.see(raw, next)?;
        }
        if self.drops(raw.kind) {
            return Ok(());
        }
        next.record(raw)
    }

    fn finish(&mut self, _: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        self.send_names(next)?;
        match &mut self.tracer {
            Some(tracer) => tracer.finish(next),
            None => Ok(()),
        }
    }

    fn notes(&self) -> Vec<String> {
        match &self.tracer {
            Some(tracer) => tracer.notes(self.help),
            None if self.refusal.is_some() => {
                let refusal = self.refusal.iter();
                refusal
                    .map(|why| format!("traces are not decoded: {why}"))
                    .collect()
            }
            None if self.options.is_none() => Vec::new(),
            None => vec!["the recording has no AUX data: nothing to decode".into()],
        }
    }
}
