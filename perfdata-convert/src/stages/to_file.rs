//! Pipe to file: metadata records become the sections that the file header refers to.

use std::collections::HashSet;

use perfdata_core::attr::{Attr, BranchSampleType, SampleType};
use perfdata_core::container_layout::{ContainerLayout, SlotContent};
use perfdata_core::feature::{
    BuildIdEntry, BuildIds, EventDescs, Feature, FeatureId, SampleTime, Section,
};
use perfdata_core::names::{DescribedNames, NamesById, ids_of, name_in};
use perfdata_core::read::{BatchPart, Chunk};
use perfdata_core::record::{Body, RawRecord, Record, RecordType};
use perfdata_core::wire::HeaderString;
use perfdata_core::{Event, Events, Recording};

use super::sample_times::{SampleTimes, are_unknown};
use crate::error::{Error, Result};
use crate::pipeline::{CompressedRecords, Link, Requirements, Stage};

/// Removes the metadata from the stream, and collects the data about records that a file's metadata
/// contain.
///
/// Everything comes from the recording. No feature is invented or taken from this machine.
#[derive(Default)]
pub(crate) struct ToFile {
    /// The model before the first record.
    before: Option<Recording>,
    /// Whether there are attributes at the start of the stream.
    has_early_events: bool,
    /// Number of events so far.
    events: usize,
    build_ids: Vec<BuildIdEntry>,
    /// The names in EVENT_DESC, until a record contradicts them.
    described: Option<DescribedNames>,
    /// Names in EVENT_UPDATE records.
    names: NamesById,
    has_stat: bool,
    /// Whether there are records that can be decoded without attributes, such as those of
    /// `perf sched stats`.
    has_plain_records: bool,
    /// Whether there are records that cannot be decoded without attributes.
    needs_events: bool,
    /// Whether to determine the times of the samples.
    wants_times: bool,
    times: SampleTimes,
    /// The times, if they are known already.
    known_times: Option<SampleTime>,
}

impl ToFile {
    /// Returns the stage. `times` are those of all samples that it will receive, if they are known.
    pub(crate) fn new(times: Option<SampleTime>) -> Self {
        ToFile {
            known_times: times,
            ..ToFile::default()
        }
    }
}

impl Stage for ToFile {
    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::AsTheyAre
    }

    fn requirements(&self) -> Requirements {
        Requirements::none()
    }

    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        self.has_early_events = has_attrs(container_layout);
        self.events = recording.events.len();
        check_ids(&recording.events)?;
        match are_unknown(recording) {
            true => self.wants_times = self.known_times.is_none(),
            false => self.known_times = None,
        }
        self.described = Some(DescribedNames::of(recording));
        let mut before = recording.clone();
        if !self.has_early_events {
            before.events = Events::default();
        }
        self.before = Some(before);
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        if self.described.is_some() {
            return true;
        }
        if kind.is_kernel() {
            return !self.needs_events;
        }
        let is_taken = kind.is_metadata() || kind == RecordType::HEADER_BUILD_ID;
        !self.has_plain_records
            || is_taken
            || matches!(kind, RecordType::EVENT_UPDATE | RecordType::STAT)
            || (self.wants_times && kind.is_compressed())
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, next: &mut Link<'_>) -> Result<()> {
        let batch = match chunk {
            Chunk::Records(batch) => batch,
            Chunk::Payload(_) => return next.chunk(chunk),
            // In a file, the records end with the data section.
            Chunk::Unreadable(_) => return Ok(()),
        };
        let mut rest = *batch;
        while !rest.is_empty() {
            let model = next.recording();
            let others = rest.take_while(|record| {
                let is_other = !self.wants(record.kind);
                if is_other && self.wants_times && record.kind == RecordType::SAMPLE {
                    self.times.sample(record, model);
                }
                is_other
            });
            if !others.is_empty() {
                next.records(&others)?;
            }
            match rest.take_part(|_| true) {
                Some(BatchPart::Wanted(record)) => self.record(&record, next)?,
                _ => break,
            }
        }
        Ok(())
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let model = next.recording();
        if record.kind.is_metadata() {
            let known = std::mem::replace(&mut self.events, model.events.len());
            return match model.events.get(known) {
                Some(event) if self.has_early_events => Err(late(record, event, model)),
                _ => Ok(()),
            };
        }
        self.needs_events |= record.kind.is_kernel();
        self.has_plain_records |= !record.kind.is_kernel();
        match record.kind {
            RecordType::HEADER_BUILD_ID => {
                self.build_ids.extend(build_id(record, model)?);
                return Ok(());
            }
            // If the pipe was made from a file, these are the first records.
            RecordType::EVENT_UPDATE
                if self
                    .described
                    .as_ref()
                    .is_some_and(|names| names.has(record)) =>
            {
                return Ok(());
            }
            RecordType::EVENT_UPDATE => {
                if let Some((id, name)) = name_in(record) {
                    self.names.insert(id, name);
                }
            }
            RecordType::STAT => self.has_stat = true,
            _ => {}
        }
        self.described = None;
        if self.wants_times {
            self.times.see(record, model, next.limits())?;
        }
        next.record(record)
    }

    fn finish(&mut self, recording: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        let model = next.recording().clone();
        if model.events.is_empty() && (self.needs_events || !self.has_plain_records) {
            return Err(Error::Refused(
                "the recording has no attributes, so its records cannot be decoded".into(),
            ));
        }
        if !self.has_early_events {
            check_ids(&model.events)?;
        }
        let changed = std::mem::replace(recording, model);
        if let Some(before) = self.before.take() {
            repeat_changes(recording, &before, changed);
        }
        self.add_features(recording)
    }
}

/// Returns whether a pipe has attributes at its start.
pub(crate) fn has_attrs(container_layout: &ContainerLayout) -> bool {
    match container_layout {
        ContainerLayout::Pipe(head) => head
            .slots
            .iter()
            .any(|slot| matches!(slot.content, SlotContent::Attr(_))),
        ContainerLayout::File(_) => true,
    }
}

/// Applies the difference between `before` and `changed` to `model`: the changes by the other
/// stages.
fn repeat_changes(model: &mut Recording, before: &Recording, mut changed: Recording) {
    (model.magic, model.endian) = (changed.magic, changed.endian);
    if changed.events[..] != before.events[..] {
        model.events = changed.events;
    }
    if changed.event_types != before.event_types {
        model.event_types = changed.event_types;
    }
    for (id, bytes) in &before.features {
        match changed.features.remove(id) {
            Some(other) if other != *bytes => drop(model.features.insert(*id, other)),
            Some(_) => {}
            None => drop(model.features.remove(id)),
        }
    }
    model.features.append(&mut changed.features);
}

impl ToFile {
    fn add_features(&mut self, recording: &mut Recording) -> Result<()> {
        let found = self.times.range().filter(|_| self.wants_times);
        if let Some(times) = self.known_times.take().or(found) {
            recording.set_feature(FeatureId::SAMPLE_TIME, Feature::SampleTime(times))?;
        }
        if self.has_stat {
            recording.features.entry(FeatureId::STAT).or_default();
        }
        if recording
            .events
            .iter()
            .any(|event| samples_branches(&event.attr))
        {
            recording
                .features
                .entry(FeatureId::BRANCH_STACK)
                .or_default();
        }
        self.add_build_ids(recording)?;
        if !recording.features.contains_key(&FeatureId::EVENT_DESC)
            && let Some(section) = self.event_desc(recording)
        {
            recording.set_feature(FeatureId::EVENT_DESC, Feature::EventDescs(section))?;
        }
        Ok(())
    }

    /// Adds the build IDs in records to the section, without repetitions: a file made by perf
    /// inject may have both.
    fn add_build_ids(&mut self, recording: &mut Recording) -> Result<()> {
        let known = match recording.feature(FeatureId::BUILD_ID) {
            Some(Ok(Section {
                value: Feature::BuildIds(BuildIds(known)),
                ..
            })) => known,
            _ => Vec::new(),
        };
        let key = |entry: &BuildIdEntry| {
            (
                entry.build_id.pid,
                entry.build_id.build_id,
                entry.build_id.filename.text().to_vec(),
            )
        };
        let mut seen: HashSet<_> = known.iter().map(key).collect();
        let all = std::mem::take(&mut self.build_ids).into_iter();
        let new: Vec<_> = all.filter(|entry| seen.insert(key(entry))).collect();
        if !new.is_empty() {
            recording.add_build_ids(new)?;
        }
        Ok(())
    }

    /// Returns the names that EVENT_UPDATE records give to the events. perf matches the entries of
    /// the section with the events by their order, so there is only a section if every event has a
    /// name.
    fn event_desc(&self, recording: &Recording) -> Option<EventDescs> {
        if recording.events.is_empty() {
            return None;
        }
        let entry = |(at, event): (usize, &Event)| {
            let name = ids_of(at, event).find_map(|id| self.names.get(id))?;
            Some((
                event.attr.clone(),
                HeaderString::new(name),
                event.ids.clone(),
            ))
        };
        EventDescs::new(
            recording
                .events
                .iter()
                .enumerate()
                .map(entry)
                .collect::<Option<_>>()?,
        )
    }
}

/// Refuses two events with the same ID but different attributes or IDs. Readers of files and of
/// pipes differ in which event gets the records and the name of such an ID.
pub(crate) fn check_ids(events: &Events) -> Result<()> {
    for (at, event) in events.iter().enumerate() {
        for &id in &event.ids {
            if let Some(other) = events.of_id_strict(id).filter(|&other| other != at) {
                let what = format!("the attribute of event {at}: {}", taken(id, other));
                return Err(Error::Refused(what));
            }
        }
    }
    Ok(())
}

fn taken(id: u64, event: usize) -> String {
    format!("ID {id} also belongs to event {event}, which has another attribute or other IDs")
}

/// Returns the error about an attribute after records of other events. In a file, it would precede
/// them.
fn late(record: &RawRecord<'_>, event: &Event, model: &Recording) -> Error {
    let known = event
        .ids
        .iter()
        .find_map(|&id| Some((id, model.events.of_id_strict(id)?)));
    let other = known.and_then(|(id, at)| Some((id, at, model.events.get(at)?)));
    let what = match other.filter(|(.., other)| *other != event) {
        Some((id, at, _)) => taken(id, at),
        None => "a new event after other records: the recording has attributes before and after its first data record"
            .into(),
    };
    Error::Refused(format!(
        "at offset {:#x}: HEADER_ATTR record: {what}",
        record.offset
    ))
}

/// Returns whether branches are sampled for their own sake, and not for callchains
/// (`--call-graph lbr`). If a file says so, perf report shows branches instead of samples.
fn samples_branches(attr: &Attr) -> bool {
    let kinds = attr.branch_sample_type.unwrap_or_default();
    let is_callchain =
        attr.sample_type.has(SampleType::CALLCHAIN) && kinds.has(BranchSampleType::CALL_STACK);
    attr.sample_type.has(SampleType::BRANCH_STACK) && !is_callchain
}

/// Returns the build ID of a record as an entry of the section: type 0, no trailer.
fn build_id(record: &RawRecord<'_>, model: &Recording) -> Result<Option<BuildIdEntry>> {
    let record = Record::decode(record, &model.events.layout_of(record))?;
    let Body::HeaderBuildId(found) = record.body else {
        return Ok(None);
    };
    let too_long = || {
        Error::Refused("the file name of a build ID is too long for the BUILD_ID section".into())
    };
    BuildIdEntry::of_record(record.misc, found)
        .map(Some)
        .ok_or_else(too_long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callchains_of_branch_records_are_no_branches() {
        let of = |sample_type: u64, kinds: u64| {
            let branch_sample_type = Some(BranchSampleType(kinds));
            samples_branches(&Attr {
                sample_type: SampleType(sample_type),
                branch_sample_type,
                ..Attr::default()
            })
        };
        let (chain, stack) = (SampleType::CALLCHAIN.0, SampleType::BRANCH_STACK.0);
        let (user, call_stack) = (BranchSampleType::USER.0, BranchSampleType::CALL_STACK.0);
        assert!(of(stack | chain, user));
        assert!(of(stack, user | call_stack));
        assert!(!of(stack | chain, user | call_stack));
        assert!(!of(chain, 0));
    }
}
