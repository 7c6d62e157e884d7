//! Samples instead of AUX data (`perf inject --itrace`), for Arm SPE.
//!
//! Each record of the trace is a sampled operation. It becomes a sample of every new event that it
//! matches: a miss in a cache, a branch, an access to memory. The samples are those of perf 7.2
//! (tools/perf/util/arm-spe.c and arm-spe-decoder/, Linux 7.1). Intel PT and CoreSight trace the
//! control flow: their decoders need the code of all programs, and are not part of this crate.

mod cpus;
mod data_source;
mod decoder;
mod events;
mod options;
mod sample;
mod tasks;
mod trace;

use perfdata_core::Recording;
use perfdata_core::attr::SampleType;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::FeatureId;
use perfdata_core::record::{RawRecord, RecordType, TimeConv};

pub use options::ItraceOptions;

use crate::new_events;
use decoder::Decoder;
use events::Synthesised;
use perfdata_convert::error::{Error, Result, Step};
use perfdata_convert::io::InputSource;
use perfdata_convert::pipeline::{Link, ReadsAhead, Requirements, Stage};
use perfdata_convert::support::attributes::has_late_events;
use perfdata_convert::support::cycles::CycleClock;
use trace::Traces;

/// Replaces the AUX data of Arm SPE by samples, and removes the records about AUX data, as
/// `perf inject --itrace` does.
///
/// The records must be in the order of time: see `perfdata_edit::sort::Sort`.
#[derive(Debug)]
pub struct Itrace {
    /// Which samples to make; `None`: the trace is not decoded.
    options: Option<ItraceOptions>,
    /// Whether to drop all other samples.
    strip: bool,
    decoder: Option<Decoder>,
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
            decoder: None,
            names: Vec::new(),
        }
    }

    /// Returns a stage that removes traces of all kinds without decoding them. With `strip`, it
    /// drops all samples, and the records of context switches.
    pub fn without_samples(strip: bool) -> Self {
        Itrace {
            options: None,
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
        let mut traces = Traces::read(source)?;
        let Some(info) = traces.info.take() else {
            return Ok(());
        };
        let (pmu, cpus) = cpus::spe(&info, recording)?;
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
        self.decoder = Some(Decoder::new(traces, options, clock, cpus, new));
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
        let new = decoder.synthesised();
        for new in new {
            recording.events.push(new.event.clone());
        }
        let named: Vec<_> = new.iter().map(Synthesised::named).collect();
        self.names = new_events::describe(recording, container_layout, &named)?;
        decoder.set_events(&recording.events);
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        let has_trace = self.decoder.is_some();
        has_trace && kind.is_kernel() || self.drops(kind) || !self.names.is_empty()
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        self.send_names(next)?;
        if let Some(decoder) = self.decoder.as_mut().filter(|_| raw.kind.is_kernel()) {
            decoder.see(raw, next)?;
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
        match &self.decoder {
            Some(decoder) => decoder.notes(),
            None if self.options.is_none() => Vec::new(),
            None => vec!["the recording has no AUX data: nothing to decode".into()],
        }
    }
}
