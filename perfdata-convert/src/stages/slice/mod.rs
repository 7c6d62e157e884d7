//! Slices: the samples that meet conditions, and the records that perf needs to show them as it
//! shows them in the whole recording.
//!
//! What `perf script` prints for a slice is what `perf script --time …`, `--pid …`, `--comms …` and
//! so on prints for the recording. For this purpose,
//!
//! - conditions have the meaning that they have in perf (tools/perf/builtin-script.c, Linux 7.2);
//!   the state for them, such as the name of a thread at a sample, is followed in the order of
//!   time, while the output keeps the order of the file;
//! - records about tasks and mappings remain up to the end of the slice, except those of processes
//!   without importance for its samples;
//! - the counter values of samples (SAMPLE_READ) are changed, because perf shows their differences;
//! - deferred callchains stay with their samples;
//! - all events keep their attributes.
//!
//! The recording is read twice; a stream is stored in a temporary file. One bit of memory for each
//! record, and the tasks, are kept in between.

#[doc(hidden)]
mod aux_cuts;
mod aux_data;
mod counters;
mod deferred;
mod lists;
mod numbers;
mod processes;
mod select;
mod survey;
mod tasks;
mod time_ranges;

pub use lists::{Cpus, Ids, Patterns};
pub use select::{Select, Sideband};
pub use time_ranges::{TimeRange, TimeRanges};

use perfdata_core::Recording;
use perfdata_core::attr::SampleType;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::read::RecordBatch;
use perfdata_core::record::{Body, RawRecord, RecordType};

use crate::count::number_of;
use crate::error::Result;
use crate::io::InputSource;
use crate::pipeline::{CompressedRecords, Link, ReadsAhead, Requirements, Stage};
use aux_cuts::{AuxCuts, Cut};
use counters::Counters;
use survey::Decisions;

/// Keeps the samples that meet conditions, and what perf needs to show them.
///
/// This must be the first stage that drops or adds records. If all records remain, the output is
/// the input.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let input = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/6.1-x86_64-file-z.data");
/// # let output = folder.path().join("tenth.data");
/// use perfdata_convert::io::Output;
/// use perfdata_convert::pipeline::Conversion;
/// use perfdata_convert::stages::slice::{Select, Slice};
///
/// let mut select = Select::default();
/// select.times = Some("10%/2".parse()?);
/// let output = Output::create(&output, input.as_ref(), false)?;
/// Conversion::new(vec![Box::new(Slice::new(select))]).run(input.as_ref(), output)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Slice {
    select: Select,
    decisions: Decisions,
    /// Number of records so far.
    number: u64,
    /// Whether the recording has samples with counter values.
    has_counters: bool,
    counters: Counters,
    /// Whether records were dropped since the last FINISHED_ROUND record, and whether others were
    /// kept.
    dropped_in_round: bool,
    kept_in_round: bool,
    cuts: AuxCuts,
    is_whole: bool,
    /// Number of AUXTRACE records so far.
    traces: u64,
    /// What is kept of the payload of the last one, and the offset of the next part of it.
    cut: Cut,
    cut_at: u64,
}

impl Slice {
    /// Returns a stage that keeps the samples that `select` describes.
    pub fn new(select: Select) -> Self {
        Slice {
            select,
            decisions: Decisions::default(),
            number: 0,
            has_counters: false,
            counters: Counters::default(),
            dropped_in_round: false,
            kept_in_round: true,
            cuts: AuxCuts::default(),
            is_whole: false,
            traces: 0,
            cut: Cut::WHOLE,
            cut_at: 0,
        }
    }

    /// Returns whether the slice is the whole recording.
    fn is_everything(&self) -> bool {
        self.is_whole
    }

    /// Decides about the next record. Returns `None` if it must be seen alone.
    #[inline]
    fn next(&mut self, record: &RawRecord<'_>) -> Option<bool> {
        let is_special = match record.kind {
            RecordType::SAMPLE => self.has_counters,
            RecordType::FINISHED_ROUND | RecordType::HEADER_BUILD_ID | RecordType::AUXTRACE => true,
            _ => false,
        };
        if is_special {
            return None;
        }
        let is_dropped = self.decisions.dropped.contains(self.number);
        self.number = self.number.saturating_add(1);
        match is_dropped {
            true => self.dropped_in_round = true,
            false => self.kept_in_round = true,
        }
        Some(!is_dropped)
    }

    /// Processes a record whose content or position matters.
    fn special(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let is_kept = !self.decisions.dropped.contains(self.number);
        self.number = self.number.saturating_add(1);
        match record.kind {
            RecordType::FINISHED_ROUND => {
                // A round of which nothing is left only delays perf.
                let is_empty = self.dropped_in_round && !self.kept_in_round;
                (self.dropped_in_round, self.kept_in_round) = (false, false);
                match is_empty {
                    true => Ok(()),
                    false => next.record(record),
                }
            }
            RecordType::HEADER_BUILD_ID => {
                let decoded = survey::decode(record, next.recording())?;
                let is_left_out = match &decoded.body {
                    Body::HeaderBuildId(entry) => self.is_left_out(entry.filename.text()),
                    _ => false,
                };
                match is_left_out {
                    true => Ok(()),
                    false => next.record(record),
                }
            }
            RecordType::AUXTRACE => self.trace(record, is_kept, next),
            _ => self.sample(record, is_kept, next),
        }
    }

    /// Processes an AUXTRACE record.
    fn trace(&mut self, record: &RawRecord<'_>, is_kept: bool, next: &mut Link<'_>) -> Result<()> {
        self.cut = self.cuts.get(self.traces);
        (self.traces, self.cut_at) = (self.traces.saturating_add(1), 0);
        if !is_kept || self.cut.len == 0 {
            return Ok(());
        }
        if self.cut == Cut::WHOLE {
            return next.record(record);
        }
        let mut decoded = survey::decode(record, next.recording())?;
        if let Body::Auxtrace(trace) = &mut decoded.body {
            *trace = aux_cuts::apply(trace, self.cut);
        }
        next.write(&decoded)
    }

    /// Processes a sample of a recording with counter values.
    fn sample(&mut self, record: &RawRecord<'_>, is_kept: bool, next: &mut Link<'_>) -> Result<()> {
        match is_kept {
            true => self.kept_in_round = true,
            false => self.dropped_in_round = true,
        }
        let recording = next.recording();
        if recording.events.of_record(record).is_some() {
            let mut decoded = survey::decode(record, recording)?;
            if let Body::Sample(sample) = &mut decoded.body {
                let is_inherited = counters::is_inherited(record, &recording.events);
                let is_changed = self.counters.see(sample, is_inherited, is_kept);
                let held = self.counters.held() as u64;
                next.limits().check_metadata("counters", held)?;
                if is_changed {
                    return next.write(&decoded);
                }
            }
        }
        match is_kept {
            true => next.record(record),
            false => Ok(()),
        }
    }

    /// Returns whether only records that are not in the slice map an object.
    fn is_left_out(&self, name: &[u8]) -> bool {
        self.decisions.objects_left_out.contains(name)
    }

    /// Removes the build IDs of objects that only other processes mapped.
    fn drop_build_ids(&self, recording: &mut Recording) -> Result<()> {
        let Some(section) = recording.feature(FeatureId::BUILD_ID) else {
            return Ok(());
        };
        let Section {
            value: Feature::BuildIds(mut ids),
            ..
        } = section?
        else {
            return Ok(());
        };
        let before = ids.0.len();
        ids.0
            .retain(|entry| !self.is_left_out(entry.build_id.filename.text()));
        if ids.0.len() < before {
            recording.set_feature(FeatureId::BUILD_ID, Feature::BuildIds(ids))?;
        }
        Ok(())
    }
}

impl Stage for Slice {
    fn requirements(&self) -> Requirements {
        Requirements {
            reads_ahead: ReadsAhead::Always,
            keeps_samples: self.is_everything(),
            is_neutral: self.is_everything(),
            may_refuse: self.has_counters,
            ..Requirements::default()
        }
    }

    fn compressed(&self, kind: RecordType) -> CompressedRecords {
        match self.is_everything() {
            true => CompressedRecords::AsTheyAre,
            false => CompressedRecords::Opened(kind),
        }
    }

    fn look_ahead(&mut self, source: &InputSource, recording: &Recording) -> Result<()> {
        self.decisions = Decisions::of(&self.select, source, recording)?;
        if self.decisions.has_aux_data
            && let Some(span) = self.decisions.span
        {
            self.cuts = AuxCuts::of(source, recording, span)?;
        }
        self.is_whole = self.decisions.dropped.len() == 0 && self.cuts.are_none();
        let has_counters = |sample_type: SampleType| sample_type.has(SampleType::READ);
        let mut events = recording.events.iter();
        self.has_counters = events.any(|event| has_counters(event.attr.sample_type));
        Ok(())
    }

    fn begin(&mut self, recording: &mut Recording, _: &mut ContainerLayout) -> Result<()> {
        self.drop_build_ids(recording)
    }

    fn wants(&self, _: RecordType) -> bool {
        !self.is_everything()
    }

    fn records(&mut self, batch: &RecordBatch<'_>, next: &mut Link<'_>) -> Result<()> {
        if self.is_everything() {
            return next.records(batch);
        }
        let mut rest = *batch;
        while !rest.is_empty() {
            let mut stopped = None;
            let kept = rest.take_while(|record| match self.next(record) {
                Some(true) => true,
                other => {
                    stopped = Some(other);
                    false
                }
            });
            if !kept.is_empty() {
                next.records(&kept)?;
            }
            let Some(stopped) = stopped else {
                return Ok(());
            };
            let mut is_first = true;
            let one = rest.take_while(|_| std::mem::take(&mut is_first));
            if stopped.is_none() {
                for record in one.iter() {
                    next.at(record.offset);
                    self.special(&record, next)?;
                }
            }
        }
        Ok(())
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if self.is_everything() {
            return next.record(record);
        }
        match self.next(record) {
            Some(true) => next.record(record),
            Some(false) => Ok(()),
            None => self.special(record, next),
        }
    }

    fn payload(&mut self, bytes: &[u8], next: &mut Link<'_>) -> Result<()> {
        let kept = self.cut.of(self.cut_at, bytes);
        self.cut_at = self.cut_at.saturating_add(bytes.len() as u64);
        next.payload(kept)
    }

    fn finish(&mut self, recording: &mut Recording, _: &mut Link<'_>) -> Result<()> {
        self.drop_build_ids(recording)
    }

    fn notes(&self) -> Vec<String> {
        let Decisions {
            samples,
            other_samples,
            left_out,
            ..
        } = &self.decisions;
        if self.is_everything() {
            return vec![format!(
                "all {} are selected",
                number_of(*samples, "sample")
            )];
        }
        let all = samples.saturating_add(*other_samples);
        let mut notes = vec![format!(
            "selected {samples} of {}",
            number_of(all, "sample")
        )];
        if *left_out > 0 {
            let records = number_of(*left_out, "record");
            notes.push(format!(
                "left out {records} about tasks that no selected sample needs"
            ));
        }
        if self.counters.changed > 0 {
            let samples = number_of(self.counters.changed, "sample");
            notes.push(format!(
                "changed the counter values of {samples}: perf shows their differences"
            ));
        }
        if self.decisions.has_lost_samples && *other_samples > 0 {
            notes.push("the numbers of lost samples still apply to the whole recording".into());
        }
        if self.decisions.has_aux_data {
            notes.push(match self.cuts.are_none() {
                true => "AUX data is kept as it is: its samples are known only when it is decoded".into(),
                false => "AUX data is kept from the last PSB packet before the slice to the first one after it".to_owned(),
            });
        }
        if self.select.every.is_some_and(|every| every.get() > 1) {
            notes.push(
                "periods are not scaled: event counts are lower than in the recording".into(),
            );
        }
        notes
    }
}
