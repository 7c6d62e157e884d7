//! Makes a recording that can be shared: pseudonyms replace names and IDs, addresses move, and what
//! no rule allows is removed.
//!
//! The declaration of each field says what it contains ([`Content`]). The [`Policy`] decides what
//! happens to each kind of content, and everything that it does not keep is replaced or removed:
//! unknown records, features and fields, padding, and the bytes between the parts of a file. No
//! sample is dropped. The complete output is checked before it appears: none of the replaced names
//! and addresses is in it.
//!
//! ```no_run
//! use perfdata_convert::io::Output;
//! use perfdata_convert::pipeline::Conversion;
//! use perfdata_sanitize::{Audience, Key, Kept, Policy, Sanitize};
//!
//! fn main() -> perfdata_convert::Result<()> {
//!     let policy = Policy::new(Audience::Vendor).keep(Kept::Comms);
//!     let sanitize = Sanitize::new(policy, Key::random()?);
//!     let (input, output) = ("perf.data".as_ref(), "shared.data".as_ref());
//!     let conversion = Conversion::new(vec![Box::new(sanitize)]);
//!     let summary = conversion.run(input, Output::create(output, input, false)?)?;
//!     summary.notes.iter().for_each(|note| println!("{note}"));
//!     Ok(())
//! }
//! ```

#![forbid(unsafe_code)]
#![allow(
    clippy::arithmetic_side_effects,
    reason = "sums of sizes and counts that are smaller than the recording"
)]

mod addresses;
mod area;
mod arguments;
mod cache;
mod check;
mod distinct;
mod event_names;
mod key;
mod known;
pub mod leaks;
mod names;
mod numbers;
mod places;
mod policy;
#[cfg(test)]
mod properties;
mod raw;
mod report;
mod samples;
mod search;
mod sections;
mod state;
mod survey;
mod tracing;
mod written;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::content::Content;
use perfdata_core::feature::{BuildIdEntry, FeatureId, TracingData};
use perfdata_core::read::{Chunk, Limits, RecordBatch};
use perfdata_core::record::{Body, HeaderTracingData, RawRecord, Record, RecordType};
use perfdata_core::wire::{Rest, Text, Wire, until_nul};
use perfdata_core::{DecodeContext, Endian, Error as ReadError, Event, Events, Recording};

pub use key::Key;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::{Input, InputSource};
use perfdata_convert::pipeline::{Link, OutputCheck, ReadsAhead, Requirements, SharedWatch, Stage};
use perfdata_convert::support::user_stack::{DUMPED, cut_stack};
pub(crate) use policy::Action;
pub use policy::{Audience, Kept, Policy};
use report::Removals;
use state::State;
use written::Written;

/// Sanitizes a recording.
#[derive(Debug)]
pub struct Sanitize {
    policy: Policy,
    key: Key,
    state: Option<State>,
    /// The events before and after the stage.
    from: Events,
    to: Events,
    /// Whether samples of all events keep all of their parts.
    keeps_parts: bool,
    /// The bits of `misc` of samples with a known meaning.
    flags: u16,
    /// The tracing data in the stream so far, and its number of bytes.
    tracing: Option<(Vec<u8>, u64)>,
    /// The sections before the first stage ended.
    sections: BTreeMap<FeatureId, Vec<u8>>,
    report: Removals,
    buffer: Vec<u8>,
    /// Samples that are not yet forwarded.
    samples: Vec<u8>,
    /// What was checked while it was written.
    written: Option<Arc<Mutex<Written>>>,
}

impl Sanitize {
    /// Returns a stage that sanitizes a recording according to `policy`. `key` determines the
    /// pseudonyms: those of several recordings agree if they have the same key.
    pub fn new(policy: Policy, key: Key) -> Self {
        Sanitize {
            policy,
            key,
            state: None,
            from: Events::default(),
            to: Events::default(),
            keeps_parts: false,
            flags: state::known_flags(RecordType::SAMPLE),
            tracing: None,
            sections: BTreeMap::new(),
            report: Removals::default(),
            buffer: Vec::new(),
            samples: Vec::new(),
            written: None,
        }
    }

    fn state(&mut self, limits: Limits) -> &mut State {
        self.state
            .get_or_insert_with(|| State::new(self.key.clone(), self.policy.clone(), limits))
    }

    /// Learns the events of `recording`.
    fn set_events(&mut self, recording: &Recording, limits: Limits) -> Result<()> {
        let fields = raw::RawFields::of(recording, self.policy.fields())?;
        let state = self.state(limits);
        state.raw = fields;
        sections::learn_pmus(recording, &mut state.pmus);
        state.number_events(&recording.events);
        let mut to = Vec::with_capacity(recording.events.len());
        for event in recording.events.iter() {
            to.push(state.event(event)?);
        }
        self.report.parts(&recording.events, &to);
        self.from = recording.events.clone();
        self.to = to.into_iter().collect();
        let parts = |events: &Events| -> Vec<_> {
            let events = events.iter();
            events.map(|event| event.attr.sample_type).collect()
        };
        self.keeps_parts = parts(&self.from) == parts(&self.to);
        Ok(())
    }

    /// Gives new values to the sections of `recording`, except those that were there before the
    /// first stage ended. `from` is the recording before the stage.
    fn sections(&mut self, recording: &mut Recording, from: &Recording) -> Result<()> {
        let state = state_of(&mut self.state)?;
        let endian = recording.endian;
        let all = std::mem::take(&mut recording.features);
        for (id, bytes) in all {
            let new = match self.sections.get(&id) {
                Some(made) if *made == bytes => Some(bytes),
                _ => state.section(id, &bytes, endian, from)?,
            };
            match new {
                Some(bytes) => {
                    recording.features.insert(id, bytes);
                }
                None => self.report.section(id),
            }
        }
        Ok(())
    }

    /// Forwards a record with new values; drops it if nothing allows it.
    fn other(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let content = raw
            .kind
            .info()
            .map_or(Content::Unknown, |info| info.content);
        if self.policy.action(content) == Action::Remove {
            self.report.record(raw.kind);
            return Ok(());
        }
        let event = match self.from.of_record(raw) {
            Some(event) => event,
            None if raw.kind != RecordType::SAMPLE || self.from.have_one_layout() => 0,
            None => {
                let expected = "the ID of an event, because the events have different layouts";
                let error = ReadError::invalid("SAMPLE record", "id", "an unknown ID", expected);
                return Err(Error::from(error.at(raw.offset)));
            }
        };
        let mut record = Record::decode(raw, &self.from.layout_of(raw))?;
        // Fields of a newer form.
        record.tail.clear();
        let limits = next.limits();
        let to = self.to.get(event).map(|event| event.attr.sample_type);
        let config = self.from.get(event).map_or(0, |event| event.attr.config);
        let state = self.state(limits);
        if let (Body::Sample(sample), Some(parts)) = (&mut record.body, to) {
            sample.keep_parts(parts);
            if let Some(stack) = &mut sample.stack_user {
                cut_stack(stack, DUMPED);
                let dumped = usize::try_from(stack.dyn_size.unwrap_or(0)).unwrap_or(usize::MAX);
                let rest = stack.data.0.get_mut(dumped..).unwrap_or_default();
                rest.fill(0);
            }
            if let Some(bytes) = &mut sample.raw
                && self.policy.action(Content::Raw) == Action::Replace
            {
                state_of(&mut self.state)?.raw.clear_others(config, bytes);
            }
            return self.put(raw, record, next);
        }
        match &mut record.body {
            Body::HeaderAttr(body) => {
                let event = Event {
                    attr: body.attr.clone(),
                    ids: body.ids.0.clone(),
                };
                let Event { attr, ids } = state.event(&event)?;
                (body.attr, body.ids.0) = (attr, ids);
                return self.write(raw, record, next);
            }
            Body::HeaderFeature(body) => {
                let id = FeatureId(u32::try_from(body.feat_id).unwrap_or(u32::MAX));
                if body.section.0.is_empty() {
                    // The number is the first one that the recorder does not know.
                    body.feat_id = body.feat_id.min(u64::from(u8::MAX));
                } else {
                    let section = &body.section.0;
                    let new = state.section(id, section, raw.endian, next.recording())?;
                    let Some(new) = new.filter(|new| !new.is_empty()) else {
                        self.report.section(id);
                        return Ok(());
                    };
                    body.section = Rest(new);
                }
                return self.write(raw, record, next);
            }
            _ => {}
        }
        self.put(raw, record, next)
    }

    /// Gives new values to the fields of a record, and forwards it.
    fn put(&mut self, raw: &RawRecord<'_>, mut record: Record, next: &mut Link<'_>) -> Result<()> {
        let state = state_of(&mut self.state)?;
        state
            .record(&mut record)
            .map_err(|error| error.at(raw.offset))?;
        if let Body::HeaderBuildId(id) = &mut record.body {
            // A trailer is recognised by the shortest possible padding of the name.
            let Text(name) = &mut id.filename;
            let text = until_nul(name).len().saturating_add(1);
            let whole = BuildIdEntry::FIXED.saturating_add(text).next_multiple_of(8);
            name.resize(whole.saturating_sub(BuildIdEntry::FIXED), 0);
        }
        self.write(raw, record, next)
    }

    /// Forwards a record with zeros at its end up to a multiple of 8 bytes, as readers expect.
    fn write(
        &mut self,
        raw: &RawRecord<'_>,
        mut record: Record,
        next: &mut Link<'_>,
    ) -> Result<()> {
        self.buffer.clear();
        let encode = |record: &Record, out: &mut Vec<u8>| {
            let result = record.encode_into(out, raw.endian);
            result.map_err(|error| error.at(raw.offset))
        };
        encode(&record, &mut self.buffer)?;
        let len = self.buffer.len();
        let missing = len.next_multiple_of(8).saturating_sub(len);
        if missing > 0 {
            record
                .tail
                .resize(record.tail.len().saturating_add(missing), 0);
            self.buffer.clear();
            encode(&record, &mut self.buffer)?;
        }
        next.record(&RawRecord {
            misc: record.misc,
            bytes: &self.buffer,
            ..*raw
        })
    }

    /// Forwards records with new values.
    fn records(&mut self, batch: &RecordBatch<'_>, next: &mut Link<'_>) -> Result<()> {
        if self.keeps_parts {
            return self.copied(batch, next);
        }
        let endian = batch.endian();
        let mut samples = std::mem::take(&mut self.samples);
        samples.clear();
        // The original offset of `samples`.
        let mut start = batch.offset();
        for raw in batch.iter() {
            let (before, end) = (
                samples.len(),
                raw.offset.saturating_add(raw.bytes.len() as u64),
            );
            next.at(raw.offset);
            if !self.append(&raw, &mut samples)? {
                self.give(&mut samples, endian, start, next)?;
                self.record(&raw, next)?;
                start = end;
            } else if samples.len().saturating_sub(before) != raw.bytes.len() {
                // The next record did not follow directly in the input.
                self.give(&mut samples, endian, start, next)?;
                start = end;
            }
        }
        self.give(&mut samples, endian, start, next)?;
        self.samples = samples;
        Ok(())
    }

    /// Collects tracing data; forwards other payloads.
    fn payload(&mut self, bytes: &[u8], next: &mut Link<'_>) -> Result<()> {
        let Some((all, len)) = &mut self.tracing else {
            return next.payload(bytes);
        };
        all.extend_from_slice(bytes);
        next.limits()
            .check_metadata("tracing data", all.len() as u64)?;
        if all.len() as u64 >= *len {
            let endian = next.recording().endian;
            self.end_of_tracing(endian, next)?;
        }
        Ok(())
    }

    /// Forwards the tracing data of a stream, when all of it has arrived.
    fn end_of_tracing(&mut self, endian: Endian, next: &mut Link<'_>) -> Result<()> {
        let Some((bytes, _)) = self.tracing.take() else {
            return Ok(());
        };
        let limits = next.limits();
        let Ok((data, _)) = TracingData::decode(&bytes, endian, DecodeContext::default()) else {
            self.report.section(FeatureId::TRACING_DATA);
            return Ok(());
        };
        let mut new = self.state(limits).tracing(data)?.encode(endian)?;
        new.resize(new.len().next_multiple_of(8), 0);
        let size = u32::try_from(new.len()).unwrap_or(u32::MAX);
        let body = HeaderTracingData {
            size,
            pad: Some(0),
            data: None,
        };
        let record = Record::new(Body::HeaderTracingData(body));
        let bytes = record.encode(endian)?;
        next.record(&RawRecord::first(&bytes, endian, 0)?)?;
        next.payload(&new)
    }
}

fn state_of(state: &mut Option<State>) -> Result<&mut State> {
    let missing = || Error::Refused("the stage has not begun".into());
    state.as_mut().ok_or_else(missing)
}

impl Stage for Sanitize {
    fn requirements(&self) -> Requirements {
        Requirements {
            keeps_samples: true,
            // Of a directory, it has seen all files before the first one.
            all_records: false,
            reads_ahead: ReadsAhead::Always,
            ..Requirements::default()
        }
    }

    fn look_ahead(&mut self, source: &InputSource, recording: &Recording) -> Result<()> {
        let limits = source.limits();
        let state = self.state(limits);
        match state.has_looked_ahead {
            // All files of the directory.
            true => Ok(()),
            false => survey::read(source, recording, state),
        }
    }

    fn begin(&mut self, recording: &mut Recording, _: &mut ContainerLayout) -> Result<()> {
        let limits = Limits::default();
        self.set_events(recording, limits)?;
        let from = recording.clone();
        recording.events = self.to.clone();
        self.sections(recording, &from)?;
        let state = state_of(&mut self.state)?;
        let configs: Vec<u64> = from.events.iter().map(|event| event.attr.config).collect();
        for name in &mut recording.event_types {
            state.event_type_name(&mut name.name);
            if !configs.contains(&name.event_id) {
                name.event_id = 0;
            }
        }
        Ok(state.failed()?)
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, next: &mut Link<'_>) -> Result<()> {
        match chunk {
            Chunk::Records(batch) => self.records(batch, next),
            Chunk::Payload(bytes) => self.payload(bytes, next),
            Chunk::Unreadable(bytes) => {
                self.report.unreadable(bytes.len());
                Ok(())
            }
        }
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if raw.kind == RecordType::HEADER_TRACING_DATA {
            self.tracing = Some((Vec::new(), raw.payload_len()?));
            return Ok(());
        }
        if raw.kind == RecordType::HEADER_ATTR {
            let events = &next.recording().events;
            if events.len() > self.from.len() {
                self.set_events(next.recording(), next.limits())?;
            }
        }
        self.other(raw, next)
    }

    /// Stages before this one may have added sections about the records, such as build IDs.
    fn finish(&mut self, recording: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        self.sections(recording, next.recording())
    }

    fn output_check(&mut self) -> Option<&mut dyn OutputCheck> {
        Some(self)
    }

    fn notes(&self) -> Vec<String> {
        let unknown = self.state.as_ref().map_or(0, |state| state.removed_unknown);
        self.report.notes(unknown, &self.policy)
    }
}

impl OutputCheck for Sanitize {
    fn before_finish(&mut self, recording: &Recording) {
        self.sections = recording.features.clone();
    }

    fn watch(&mut self, recording: &Recording) -> Option<SharedWatch> {
        let written = Written::new(self.state.as_ref()?, recording);
        let written = Arc::new(Mutex::new(written));
        self.written = Some(Arc::clone(&written));
        Some(written)
    }

    fn check(&mut self, output: Input) -> Result<()> {
        let written = self.written.take();
        let mut written = written.as_deref().map(written::locked);
        match &self.state {
            Some(state) => check::check(state, output, written.as_deref_mut()),
            None => Ok(()),
        }
    }
}
