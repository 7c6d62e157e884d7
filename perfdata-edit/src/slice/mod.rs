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
mod by;
mod counters;
mod decisions;
mod deferred;
mod lists;
mod numbers;
mod parts;
mod processes;
mod related;
mod router;
mod sample_runs;
mod select;
mod survey;
mod tasks;
mod time_ranges;

pub use by::By;
pub(crate) use by::duration;
pub use lists::{Cpus, Ids, Patterns};
pub use select::{Select, Sideband};
pub use time_ranges::{TimeRange, TimeRanges};

use std::ops::Range;
use std::sync::Arc;

use perfdata_core::Recording;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{Feature, FeatureId, SampleTime};
use perfdata_core::read::{Chunk, Limits, RecordBatch};
use perfdata_core::record::{RawRecord, Record, RecordType};

#[cfg(test)]
pub(crate) use decisions::Part;
pub(crate) use decisions::{Decisions, PartKey};
use perfdata_convert::count::number_of;
use perfdata_convert::error::Result;
use perfdata_convert::io::{InputSource, RecordFilter};
use perfdata_convert::pipeline::to_parts::{self, Division, Outlets, PartNumber};
use perfdata_convert::pipeline::{
    CompressedRecords, Link, ReadsAhead, Requirements, Selection, Stage,
};
use router::Router;

/// Keeps the samples that meet conditions, and what perf needs to show them.
///
/// This must be the first stage of a conversion. If all records remain, the output is the input.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let input = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-z.data");
/// # let output = folder.path().join("tenth.data");
/// use perfdata_convert::io::Output;
/// use perfdata_convert::pipeline::Conversion;
/// use perfdata_edit::slice::{Select, Slice};
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
    decisions: Arc<Decisions>,
    /// `None` before the first pass.
    router: Option<Router>,
    is_whole: bool,
}

/// The number of the only part.
const SLICE: PartNumber = 0;

impl Slice {
    /// Returns a stage that keeps the samples that `select` describes.
    pub fn new(select: Select) -> Self {
        Slice {
            select,
            decisions: Arc::default(),
            router: None,
            is_whole: false,
        }
    }

    /// Returns whether the slice is the whole recording.
    fn is_everything(&self) -> bool {
        self.is_whole
    }
}

/// Removes the build IDs of objects that only processes map which `part` does not need.
fn drop_build_ids(
    decisions: &Decisions,
    part: PartNumber,
    recording: &mut Recording,
) -> Result<()> {
    let Some(Ok(mut section)) = recording.feature(FeatureId::BUILD_ID) else {
        return Ok(());
    };
    let Feature::BuildIds(ids) = &mut section.value else {
        return Ok(());
    };
    let before = ids.0.len();
    let is_left_out = |name: &[u8]| decisions.is_left_out(part, name);
    ids.0
        .retain(|entry| !is_left_out(entry.build_id.filename.text()));
    if ids.0.len() < before {
        let bytes = section.encode(recording.endian)?;
        recording.features.insert(FeatureId::BUILD_ID, bytes);
    }
    Ok(())
}

impl Division for Decisions {
    fn filter(self: Arc<Self>, part: PartNumber) -> RecordFilter {
        Decisions::filter(self, part)
    }

    fn times(&self) -> Option<SampleTime> {
        self.times.clone()
    }

    fn reduce(&self, part: PartNumber, recording: &mut Recording) -> Result<()> {
        drop_build_ids(self, part, recording)
    }

    fn router(
        self: Arc<Self>,
        source: &InputSource,
        recording: &Recording,
    ) -> Result<Box<dyn to_parts::Router>> {
        Ok(Box::new(Router::new(self, source, recording)?))
    }
}

/// The rest of the pipeline, as the destination of the only part.
struct Only<'a, 'b>(&'a mut Link<'b>);

impl Outlets for Only<'_, '_> {
    fn parts(&self) -> Range<PartNumber> {
        SLICE..SLICE.saturating_add(1)
    }

    fn recording(&self) -> &Recording {
        self.0.recording()
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn at(&mut self, offset: u64) {
        self.0.at(offset);
    }

    fn records(&mut self, _: PartNumber, batch: &RecordBatch<'_>) -> Result<()> {
        self.0.records(batch)
    }

    fn record(&mut self, _: PartNumber, record: &RawRecord<'_>) -> Result<()> {
        self.0.record(record)
    }

    fn write(&mut self, _: PartNumber, record: &Record) -> Result<()> {
        self.0.write(record)
    }

    fn payload(&mut self, _: PartNumber, bytes: &[u8]) -> Result<()> {
        self.0.payload(bytes)
    }
}

impl Stage for Slice {
    fn requirements(&self) -> Requirements {
        Requirements {
            reads_ahead: ReadsAhead::ByNumber,
            keeps_samples: self.is_everything(),
            is_neutral: self.is_everything(),
            may_refuse: self.router.as_ref().is_some_and(Router::has_counters),
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
        let decisions = Decisions::of(&self.select, None, source, recording)?;
        self.decisions = Arc::new(decisions);
        let router = Router::new(self.decisions.clone(), source, recording)?;
        self.is_whole = self.decisions.are_none_dropped() && router.has_all_aux_data(SLICE);
        self.router = Some(router);
        Ok(())
    }

    fn selection(&self) -> Selection<'_> {
        let has_filter = !self.is_everything() && self.router.is_some();
        Selection {
            filter: has_filter.then(|| Decisions::filter(self.decisions.clone(), SLICE)),
            gaps: self.router.as_ref().and_then(Router::gaps),
        }
    }

    fn begin(&mut self, recording: &mut Recording, _: &mut ContainerLayout) -> Result<()> {
        drop_build_ids(&self.decisions, SLICE, recording)
    }

    fn wants(&self, _: RecordType) -> bool {
        !self.is_everything()
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, next: &mut Link<'_>) -> Result<()> {
        match (&mut self.router, chunk) {
            (Some(router), Chunk::Records(batch)) if !self.is_whole => {
                router.records(batch, &mut Only(next))
            }
            (Some(router), Chunk::Payload(bytes)) if !self.is_whole => {
                router.payload(bytes, &mut Only(next))
            }
            _ => next.chunk(chunk),
        }
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        match &mut self.router {
            Some(router) if !self.is_whole => router.record(record, &mut Only(next)),
            _ => next.record(record),
        }
    }

    fn finish(&mut self, recording: &mut Recording, _: &mut Link<'_>) -> Result<()> {
        drop_build_ids(&self.decisions, SLICE, recording)
    }

    fn notes(&self) -> Vec<String> {
        let Decisions {
            other_samples,
            has_aux_data,
            ..
        } = *self.decisions;
        let samples = self.decisions.samples();
        let Some(router) = self.router.as_ref().filter(|_| !self.is_whole) else {
            return vec![format!("all {} are selected", number_of(samples, "sample"))];
        };
        let all = samples.saturating_add(other_samples);
        let mut notes = vec![format!(
            "selected {samples} of {}",
            number_of(all, "sample")
        )];
        notes.extend(self.decisions.notes());
        notes.extend(router.note());
        if has_aux_data {
            notes.push(match router.has_all_aux_data(SLICE) {
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
