//! Checks of each record, and of all records together.

use std::collections::{BTreeMap, HashSet};

use perfdata_core::Recording;
use perfdata_core::attr::SampleType;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{FeatureId, SampleTime};
use perfdata_core::header::FileSection;
use perfdata_core::record::{EventIds, RawRecord, Record, RecordHeader, RecordType, SampleView};

use super::counters::CounterCheck;
use super::{MOST, Report, Severity, difference, features, missing};
use crate::count::number_of;
use crate::leftover::without_place;

/// Data of the records that feature sections also contain.
#[derive(Debug, Default)]
pub(crate) struct SeenData {
    /// The offsets and sizes of the AUXTRACE records, ascending, without the AUX data after them.
    pub(crate) auxtrace: Vec<FileSection>,
    /// The earliest and the latest time of a SAMPLE record.
    pub(crate) times: Option<SampleTime>,
}

/// Data collected from the records so far.
#[derive(Debug, Default)]
pub(super) struct RecordChecks {
    scratch: Vec<u8>,
    pub(super) seen: SeenData,
    /// The offset of each feature section in a pipe.
    pub(super) sections: BTreeMap<FeatureId, u64>,
    compressed: Option<u64>,
    /// The offset of the first record that requires an attribute.
    of_event: Option<u64>,
    /// The offset of the first sample.
    sample: Option<u64>,
    /// The unknown types that were already reported, up to the maximum number of findings.
    unknown: HashSet<RecordType>,
    /// Whether an MMAP2 record without `prot` and `flags` was reported.
    has_short_mapping: bool,
    /// Whether an MMAP2 record with an inode that announces a build ID was reported.
    has_false_build_id: bool,
    counters: CounterCheck,
    /// Whether counters of samples are not followed.
    skips_counters: bool,
}

impl RecordChecks {
    /// Returns no data. Counters of samples are checked if `follows`.
    pub(super) fn following_counters(follows: bool) -> Self {
        RecordChecks {
            skips_counters: !follows,
            ..RecordChecks::default()
        }
    }

    /// Returns the offset of the last compressed record.
    pub(super) fn last_compressed(&self) -> u64 {
        self.compressed.unwrap_or(0)
    }

    /// Adds the data of later records, and what was `found` in them to the `report`: those findings
    /// that are reported only once, if they are new.
    pub(super) fn append(&mut self, later: RecordChecks, mut found: Report, report: &mut Report) {
        let RecordChecks {
            seen: SeenData { auxtrace, times },
            sections,
            compressed,
            of_event,
            sample,
            unknown,
            has_short_mapping,
            has_false_build_id,
            counters,
            ..
        } = later;
        self.seen.auxtrace.extend(auxtrace);
        self.sections.extend(sections);
        self.compressed = compressed.or(self.compressed);
        self.of_event = self.of_event.or(of_event);
        self.sample = self.sample.or(sample);
        if let Some(SampleTime { first, last }) = times {
            let known = self.seen.times.get_or_insert(SampleTime { first, last });
            (known.first, known.last) = (known.first.min(first), known.last.max(last));
        }
        let is_full = self.unknown.len() >= MOST;
        let said = unknown
            .into_iter()
            .filter(|&kind| is_full || !self.unknown.insert(kind));
        let mut said: HashSet<_> = said.map(unknown_type).collect();
        if has_short_mapping && std::mem::replace(&mut self.has_short_mapping, true) {
            said.insert(SHORT_MAPPING.into());
        }
        if has_false_build_id && std::mem::replace(&mut self.has_false_build_id, true) {
            said.insert(FALSE_BUILD_ID.into());
        }
        if !said.is_empty() {
            found
                .findings
                .retain(|finding| !said.contains(&finding.meaning));
        }
        // A counter of these records may be lower than in the records before.
        self.counters.append(report, counters);
        report.append(found);
    }

    /// Checks one record, which may be inside a compressed record.
    pub(super) fn check(
        &mut self,
        report: &mut Report,
        raw: &RawRecord<'_>,
        inner: bool,
        recording: &Recording,
    ) {
        self.note_kind(report, raw, inner);
        if recording.events.has_false_build_id(raw) && !self.has_false_build_id {
            self.has_false_build_id = true;
            report.add(Severity::Warning, raw.offset, FALSE_BUILD_ID);
        }
        // Decoding and encoding such records produces the same bytes.
        if let Some((event, sample)) = recording.events.look(raw) {
            if !self.skips_counters {
                let counters = &mut self.counters;
                counters.check(report, raw.offset, (event, &sample), &recording.events);
            }
            if sample.is_whole() {
                return self.check_whole(report, raw, &sample, recording);
            }
        }
        if let Some(fixed) = recording.events.fixed_record(raw) {
            if raw.kind == RecordType::MMAP2 && !self.has_short_mapping {
                let mapping = fixed.mapping();
                self.has_short_mapping = mapping.is_some_and(|map| map.prot_flags.is_none());
                if self.has_short_mapping {
                    report.add(Severity::Note, raw.offset, SHORT_MAPPING);
                }
            }
            return Self::check_ids(report, raw, fixed.event_ids(&recording.events));
        }
        let record = match Record::decode(raw, &recording.events.layout_of(raw)) {
            Ok(record) => record,
            // Compressed data have no offsets in the input.
            Err(error) if inner => {
                return report.add(Severity::Error, raw.offset, without_place(&error));
            }
            Err(error) => return report.blame(&error, 0),
        };
        self.scratch.clear();
        match record.encode_into(&mut self.scratch, raw.endian) {
            Ok(()) => {
                if let Some(what) = difference(raw.bytes, &self.scratch) {
                    report.add(
                        Severity::Error,
                        raw.offset,
                        format!("{} record: {what}", raw.kind),
                    );
                }
            }
            Err(error) => report.blame(&error, raw.offset),
        }
        if record.tail.iter().any(|&byte| byte != 0) {
            // `perf record --overwrite -o -` writes such records.
            let (severity, what) = match raw.kind.is_kernel() && recording.events.is_empty() {
                true => (
                    Severity::Warning,
                    "that require an attribute, but no attribute precedes the record",
                ),
                false => (Severity::Note, "after the last known field"),
            };
            report.add(
                severity,
                raw.offset,
                format!(
                    "{} record: {} {what}",
                    raw.kind,
                    number_of(record.tail.len() as u64, "byte")
                ),
            );
        }
        Self::check_ids(report, raw, record.event_ids(&recording.events));
        self.check_time(report, raw, recording);
    }

    fn note_kind(&mut self, report: &mut Report, raw: &RawRecord<'_>, inner: bool) {
        if raw.kind.info().is_none() && self.unknown.len() < MOST && self.unknown.insert(raw.kind) {
            report.add(Severity::Note, raw.offset, unknown_type(raw.kind));
        }
        if raw.kind.is_kernel() {
            self.of_event.get_or_insert(raw.offset);
        }
        if raw.kind == RecordType::SAMPLE {
            self.sample.get_or_insert(raw.offset);
        }
        if raw.kind.is_kernel() && !raw.bytes.len().is_multiple_of(8) {
            report.add(
                Severity::Warning,
                raw.offset,
                format!("{} record: its size is not a multiple of 8", raw.kind),
            );
        }
        match raw.kind {
            RecordType::AUXTRACE if !inner => {
                self.seen.auxtrace.push(FileSection {
                    offset: raw.offset,
                    size: raw.bytes.len() as u64,
                });
            }
            kind if kind.is_compressed() => self.compressed = Some(raw.offset),
            RecordType::HEADER_FEATURE => {
                // Behind the feature's number.
                self.sections.extend(
                    raw.feature()
                        .map(|id| (id, raw.offset.saturating_add(RecordHeader::SIZE as u64 + 8))),
                );
            }
            _ => {}
        }
    }

    /// Checks that every event ID in a record belongs to an event of the recording. Records about
    /// the time before the recording have ID 0; attributes in a pipe contain their own IDs.
    fn check_ids(report: &mut Report, raw: &RawRecord<'_>, ids: EventIds) {
        if let Some(id) = ids.unknown {
            report.add(
                Severity::Error,
                raw.offset,
                format!("{} record: no event has the ID {id}", raw.kind),
            );
        }
    }

    /// Checks a SAMPLE that consists entirely of words, counted words and RAW data
    /// ([`SampleView::is_whole`]).
    fn check_whole(
        &mut self,
        report: &mut Report,
        raw: &RawRecord<'_>,
        sample: &SampleView<'_>,
        recording: &Recording,
    ) {
        Self::check_ids(report, raw, sample.event_ids(&recording.events));
        if let Some(time) = sample.time() {
            self.note_time(report, raw, Some(time));
        }
    }

    fn check_time(&mut self, report: &mut Report, raw: &RawRecord<'_>, recording: &Recording) {
        if raw.kind == RecordType::SAMPLE
            && recording
                .events
                .layout_of(raw)
                .sample_type
                .has(SampleType::TIME)
        {
            self.note_time(report, raw, recording.events.sample_time(raw));
        }
    }

    fn note_time(&mut self, report: &mut Report, raw: &RawRecord<'_>, time: Option<u64>) {
        match time {
            Some(time) if time != 0 => {
                let known = self.seen.times.get_or_insert(SampleTime {
                    first: time,
                    last: time,
                });
                (known.first, known.last) = (known.first.min(time), known.last.max(time));
            }
            _ => report.add(
                Severity::Warning,
                raw.offset,
                "SAMPLE record: has no time, although its event requests it",
            ),
        }
    }

    /// Returns the offset of the first sample.
    pub(super) fn sample(&self) -> Option<u64> {
        self.sample
    }

    /// Checks everything that is known only at the end.
    pub(super) fn finish(
        self,
        report: &mut Report,
        recording: &Recording,
        container_layout: &ContainerLayout,
    ) {
        if let Some(offset) = self.of_event.filter(|_| recording.events.is_empty()) {
            report.add(
                Severity::Error,
                offset,
                "the recording has no attributes, so its records cannot be decoded",
            );
        }
        let is_told = recording.features.contains_key(&FeatureId::COMPRESSED);
        if let Some(offset) = self.compressed.filter(|_| !is_told) {
            let meaning =
                "compressed records without the feature COMPRESSED: perf does not decompress them";
            report.add(Severity::Warning, offset, meaning);
        }
        missing::check(report, recording, container_layout.container(), self.sample);
        features::check(report, recording, container_layout, &self);
    }
}

const SHORT_MAPPING: &str = "MMAP2 record: has its name in place of prot and flags, as the \
                              kernel 3.10 of RHEL 7 writes it: perf loses the start of these \
                              names, and conversions write the usual form";

const FALSE_BUILD_ID: &str = "MMAP2 record: has an inode, but announces a build ID, as kernels \
                              write it while another recorder requests build IDs: perf up to 6.12 \
                              may abort, and conversions clear the flag MMAP_BUILD_ID";

fn unknown_type(kind: RecordType) -> String {
    format!("type {kind}: records of a type that is not known")
}
