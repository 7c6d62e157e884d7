//! Expands off-CPU samples: their task, period and callchain from their RAW data.
//!
//! `perf record --off-cpu` writes when, how long and with which stack tasks slept, as samples of
//! the software event `bpf-output` called `offcpu-time`. Since 6.16, task, period, callchain and
//! cgroup are in the RAW data of the sample (tools/perf/util/bpf_off_cpu.c), and perf puts them
//! into the sample when it reads (tools/perf/util/evsel.c, `__set_offcpu_sample`). Other readers,
//! and older versions of perf, show samples of process 0 without a callchain.

use std::collections::HashSet;

use perfdata_core::attr::{Attr, EventType, SampleType, SoftwareEvent};
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::error::Error as ReadError;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::names::EventNames;
use perfdata_core::record::{Body, RawRecord, Record, RecordType, Sample, Tid};
use perfdata_core::wire::Rest;
use perfdata_core::{DecodeContext, Endian, Event, Events, Recording};

use perfdata_convert::count::number_of;
use perfdata_convert::error::Result;
use perfdata_convert::io::InputSource;
use perfdata_convert::pipeline::{CompressedRecords, Link, ReadsAhead, Requirements, Stage};

/// The name of the event.
pub(crate) const NAME: &[u8] = b"offcpu-time";

/// Moves the parts of off-CPU samples from their RAW data to the sample, and changes the attribute
/// of their event accordingly. The samples then have the form of perf before 6.16.
#[derive(Debug, Default)]
pub struct ExpandOffCpu {
    /// Whether there is no note if nothing is to be expanded.
    is_silent: bool,
    /// The IDs of the events with such samples.
    ids: HashSet<u64>,
    /// The events before and after the stage.
    from: Events,
    to: Events,
    expanded: u64,
}

impl ExpandOffCpu {
    /// Returns a stage that has not seen a recording.
    pub fn new() -> Self {
        ExpandOffCpu::default()
    }

    /// Returns a stage that has no note about recordings without such samples.
    pub fn where_possible() -> Self {
        ExpandOffCpu {
            is_silent: true,
            ..ExpandOffCpu::default()
        }
    }

    /// Adds the IDs of the events called `offcpu-time`.
    fn learn(&mut self, recording: &Recording, names: &mut EventNames) {
        names.update(recording);
        for (at, event) in recording.events.iter().enumerate() {
            if has_form(&event.attr) && names.get(recording, at).is_some_and(|name| name == NAME) {
                self.ids.extend(&event.ids);
            }
        }
    }

    /// Returns whether an event has samples to expand.
    fn expands(&self, attr: &Attr, ids: &[u64]) -> bool {
        has_form(attr) && ids.iter().any(|id| self.ids.contains(id))
    }

    /// Returns an EVENT_DESC section with the new attributes.
    fn section(&self, bytes: &[u8], endian: Endian) -> Result<Vec<u8>> {
        let (id, context) = (FeatureId::EVENT_DESC, DecodeContext::default());
        let Ok(mut section) = Section::decode(id, bytes, endian, &context) else {
            // A damaged section remains unchanged.
            return Ok(bytes.to_vec());
        };
        if let Feature::EventDescs(descs) = &mut section.value {
            for desc in &mut descs.events.0 {
                if self.expands(&desc.attr.0, &desc.ids) {
                    change(&mut desc.attr.0);
                }
            }
        }
        Ok(section.encode(endian)?)
    }

    fn sample(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let event = self.from.of_record(raw).and_then(|at| self.from.get(at));
        if !event.is_some_and(|event| self.expands(&event.attr, &event.ids)) {
            return next.record(raw);
        }
        let mut record = Record::decode(raw, &self.from.layout_of(raw))?;
        if let Body::Sample(sample) = &mut record.body {
            expand(sample, raw.endian).map_err(|error| error.at(raw.offset))?;
            self.expanded = self.expanded.saturating_add(1);
        }
        next.write_for(&record, &self.to).map(|_| ())
    }
}

/// Returns whether an event is that of `perf record --off-cpu`, or one in its form.
pub(crate) fn is_off_cpu(attr: &Attr, name: &[u8]) -> bool {
    attr.kind == EventType::SOFTWARE && attr.config == SoftwareEvent::BPF_OUTPUT.0 && name == NAME
}

/// Returns whether samples of an event may have off-CPU data in the form of perf since 6.16.
fn has_form(attr: &Attr) -> bool {
    attr.kind == EventType::SOFTWARE
        && attr.config == SoftwareEvent::BPF_OUTPUT.0
        && attr.sample_type.has(SampleType::RAW)
        && !attr.sample_type.has(SampleType::CALLCHAIN)
}

/// Changes an attribute to that of expanded samples.
fn change(attr: &mut Attr) {
    let bits = attr.sample_type.0 & !SampleType::RAW.0 | SampleType::CALLCHAIN.0;
    attr.sample_type = SampleType(bits);
}

/// The content of the RAW data.
struct OffCpu {
    task: Tid,
    period: u64,
    callchain: Vec<u64>,
    cgroup: Option<u64>,
}

impl OffCpu {
    /// Returns the content of `raw`, whose numbers have this byte order; `None` if the length of
    /// the callchain contradicts the size.
    fn of(raw: &[u8], endian: Endian) -> Option<Self> {
        let mut words = raw.chunks_exact(8).map(|word| {
            let word = word.try_into().unwrap_or_default();
            match endian {
                Endian::Little => u64::from_le_bytes(word),
                Endian::Big => u64::from_be_bytes(word),
            }
        });
        let (task, period, nr) = (words.next()?, words.next()?, words.next()?);
        let nr = usize::try_from(nr).ok().filter(|&nr| nr <= words.len())?;
        let callchain = words.by_ref().take(nr).collect();
        Some(OffCpu {
            // The process is in the lower half.
            task: Tid {
                pid: task as u32,
                tid: (task >> 32) as u32,
            },
            period,
            callchain,
            cgroup: words.next(),
        })
    }
}

/// Moves the content of the RAW data of a sample to the sample.
fn expand(sample: &mut Sample, endian: Endian) -> std::result::Result<(), ReadError> {
    let raw = sample.raw.take();
    let raw: &[u8] = raw.as_ref().map_or(&[], |raw| raw);
    let Some(data) = OffCpu::of(raw, endian) else {
        return Err(ReadError::invalid(
            "SAMPLE record",
            "raw",
            format!("{} bytes", raw.len()),
            "task, period and callchain of an off-CPU sample",
        ));
    };
    sample.tid = sample.tid.take().map(|_| data.task);
    sample.period = sample.period.map(|_| data.period);
    sample.cgroup = sample.cgroup.map(|own| data.cgroup.unwrap_or(own));
    // The first word is the marker of user space.
    if let Some(&ip) = data.callchain.get(1) {
        sample.ip = sample.ip.map(|_| ip);
    }
    sample.callchain = Some(data.callchain.into());
    Ok(())
}

impl Stage for ExpandOffCpu {
    fn requirements(&self) -> Requirements {
        Requirements {
            events_first: true,
            all_records: true,
            may_refuse: true,
            // The name of an event follows its attribute in a stream.
            reads_ahead: ReadsAhead::Always,
            ..Requirements::none()
        }
    }

    fn compressed(&self, kind: RecordType) -> CompressedRecords {
        if self.ids.is_empty() {
            CompressedRecords::AsTheyAre
        } else {
            CompressedRecords::Opened(kind)
        }
    }

    fn look_ahead(&mut self, source: &InputSource, recording: &Recording) -> Result<()> {
        if !recording.events.iter().any(|event| has_form(&event.attr)) {
            return Ok(());
        }
        let mut names = EventNames::default();
        self.learn(recording, &mut names);
        if self.ids.is_empty() {
            source.each_record_of(recording, EventNames::reads, |raw, now| {
                names.see(raw);
                self.learn(now, &mut names);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn begin(&mut self, recording: &mut Recording, _: &mut ContainerLayout) -> Result<()> {
        if self.ids.is_empty() {
            return Ok(());
        }
        self.from = recording.events.clone();
        let changed = self.from.iter().map(|event| {
            let (mut attr, ids) = (event.attr.clone(), event.ids.clone());
            if self.expands(&attr, &ids) {
                change(&mut attr);
            }
            Event { attr, ids }
        });
        self.to = changed.collect();
        recording.events = self.to.clone();
        if let Some(bytes) = recording.features.get_mut(&FeatureId::EVENT_DESC) {
            *bytes = self.section(bytes, recording.endian)?;
        }
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        let changed = [
            RecordType::SAMPLE,
            RecordType::HEADER_ATTR,
            RecordType::HEADER_FEATURE,
        ];
        !self.ids.is_empty() && changed.contains(&kind)
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if raw.kind == RecordType::SAMPLE {
            return self.sample(raw, next);
        }
        let mut record = Record::decode(raw, &DecodeContext::default())?;
        match &mut record.body {
            Body::HeaderAttr(body) if self.expands(&body.attr, &body.ids) => change(&mut body.attr),
            Body::HeaderFeature(body) if body.feat_id == u64::from(FeatureId::EVENT_DESC.0) => {
                body.section = Rest(self.section(&body.section.0, raw.endian)?);
            }
            _ => return next.record(raw),
        }
        let bytes = record.encode(raw.endian)?;
        next.record(&RawRecord {
            bytes: &bytes,
            ..*raw
        })
    }

    fn notes(&self) -> Vec<String> {
        if self.is_silent && self.ids.is_empty() {
            return Vec::new();
        }
        vec![if self.ids.is_empty() {
            "no event has off-CPU samples in the form of perf since 6.16".into()
        } else {
            format!("{} expanded", number_of(self.expanded, "off-CPU sample"))
        }]
    }
}
