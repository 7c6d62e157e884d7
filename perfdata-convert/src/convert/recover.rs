//! Recovering: what can be believed of a damaged recording becomes one that is whole.
//!
//! The reader does the work ([`Survey`], [`RecordingReader::mended`](perfdata_core::read::RecordingReader::mended)): it
//! gives records that can be believed, and an arrangement without what is lost. At first the input is surveyed, so that
//! nothing is written where nothing is left, or all is asked for; and one that needs nothing is copied.

use std::fmt;
use std::fs::File;
use std::io::{self, Seek};
use std::time::Instant;

use perfdata_core::arrangement::{Arrangement, SlotContent};
use perfdata_core::attr::EventType;
use perfdata_core::feature::{FeatureId, SampleTime};
use perfdata_core::header::{ContainerKind, FileSection};
use perfdata_core::read::{CompressedData, Ids, Losses, Skipped, Survey, is_metadata};
use perfdata_core::record::{Body, RawRecord, Record, RecordHeader, RecordType};
use perfdata_core::{Layout, Recording};

use super::decompress::Decompress;
use super::{Conversion, Link, Stage, Summary};
use crate::error::{Error, Result};
use crate::io::{Input, Output};
use crate::verify::{Seen, without_place, wrong_sections};

/// What became of a damaged recording.
#[derive(Debug)]
pub struct Recovery {
    /// What the conversion did.
    pub summary: Summary,
    /// Ranges of the input that were skipped, ascending; the first thousand, if there are more.
    pub skipped: Vec<Gap>,
    /// What else is lost, and what was done about it.
    pub losses: Vec<String>,
}

/// A range of the input that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// In which file of a directory.
    pub file: Option<String>,
    /// Where it is.
    pub place: FileSection,
    /// What is wrong with its first bytes.
    pub why: String,
}

impl Gap {
    fn of(file: &Option<String>, skipped: &Skipped) -> Self {
        Gap { file: file.clone(), place: skipped.place, why: without_place(&skipped.why) }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gap { file, place: FileSection { offset, size }, why } = self;
        if let Some(file) = file {
            write!(f, "{file}: ")?;
        }
        write!(f, "{offset:#x} to {:#x} ({size} bytes): {why}", offset.saturating_add(*size))
    }
}

/// The most rounds in which what is left is looked at again.
const ROUNDS: usize = 16;

/// Writes what can be believed of `input` to `output`. A recording that needs nothing comes out byte-identical. With
/// `strict`, one with records behind damaged bytes is refused.
///
/// Without the damaged bytes other records stand next to each other, and one of them may not be believed any more. So
/// what is left is looked at as often as something else has to go: what was recovered needs nothing.
///
/// # Errors
/// The input cannot be read, has no attribute left, or is refused. There is no output then.
pub fn recover(input: Input, output: Output, strict: bool) -> Result<Recovery> {
    let start = Instant::now();
    let input = input.into_seekable()?;
    let Plan { skipped, mut losses, conversion } = Plan::of(&input, strict)?;
    let Some((stages, damaged)) = conversion else {
        let summary = Conversion { stages: Vec::new(), to: None }.run_on(input, output)?;
        return Ok(Recovery { summary, skipped, losses });
    };
    let summary = output.write_seekable(|file| {
        let mut summary = Conversion { stages, to: None }.run_into(damaged, file)?;
        for _ in 0..ROUNDS {
            let left = input.in_file(file)?;
            let again = Plan::of(&left, false)?;
            let Some((stages, damaged)) = again.conversion else { break };
            let gone =
                again.skipped.iter().map(|gap| format!("of what is left, {} bytes more: {}", gap.place.size, gap.why));
            for line in gone.chain(again.losses) {
                if !losses.contains(&line) {
                    losses.push(line);
                }
            }
            let mut rest = tempfile::tempfile().map_err(Error::io("temporary file"))?;
            let Summary { bytes_out, features, .. } = Conversion { stages, to: None }.run_into(damaged, &mut rest)?;
            (summary.bytes_out, summary.features) = (bytes_out, features);
            replace(file, &mut rest).map_err(Error::io("output"))?;
        }
        Ok(summary)
    })?;
    let summary = Summary { bytes_in: input.size().bytes(), elapsed: start.elapsed(), ..summary };
    Ok(Recovery { summary, skipped, losses })
}

/// Makes the bytes of `from` those of `file`.
fn replace(file: &mut File, from: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    from.rewind()?;
    io::copy(from, file).map(drop)
}

/// What has to be done with a recording so that all of it can be believed.
struct Plan {
    skipped: Vec<Gap>,
    losses: Vec<String>,
    /// How to read what can be believed, and what else has to change; nothing if the recording needs nothing.
    conversion: Option<(Vec<Box<dyn Stage>>, Input)>,
}

impl Plan {
    fn of(input: &Input, strict: bool) -> Result<Self> {
        let surveys = input.survey().map_err(hopeless)?;
        let Some((_, main)) = surveys.first() else { return Err(unmended()) };
        let all = || surveys.iter().map(|(file, survey)| (file, &survey.mending));
        let skipped: Vec<Gap> =
            all().flat_map(|(file, found)| found.skipped.iter().map(|gap| Gap::of(file, gap))).collect();
        if strict && all().any(|(_, found)| found.inside > 0) {
            let first = skipped.first().map(ToString::to_string).unwrap_or_default();
            return Err(Error::Refused(format!("there are records behind damaged bytes: {first}")));
        }
        if main.recording.events.is_empty() && all().all(|(_, found)| found.left.records == 0) {
            return Err(Error::Refused("nothing can be recovered: no whole attribute is left".into()));
        }
        let foreknown = surveys.iter().map(|(_, survey)| survey.foreknown).collect();
        let damaged = input.again().ok_or_else(unmended)?.mended(foreknown)?;
        let container = {
            let (reader, _) = damaged.again().ok_or_else(unmended)?.reader().map_err(hopeless)?;
            reader.arrangement().container()
        };
        let is_split = surveys.len() > 1;
        let mut losses = Vec::new();
        let (more, bytes) = all().fold((0, 0), |(more, bytes), (_, found)| (more + found.more, bytes + found.bytes));
        if more > 0 {
            losses.push(format!("{more} more ranges were skipped; {bytes} bytes in all"));
        }
        let mut rest = main.recording.clone();
        // The index of AUX data is made anew where records move.
        let is_index_remade = (bytes > 0 || is_split) && container == ContainerKind::File;
        let wrong =
            wrong_ones(&mut rest, &seen(&surveys), container, |id| is_index_remade && id == FeatureId::AUXTRACE);
        tell_losses(&mut losses, &main.mending.losses, &wrong, &main.recording);
        let mut stages: Vec<Box<dyn Stage>> = Vec::new();
        let has_lost_ids = main.foreknown.ids == Ids::Lost;
        if has_lost_ids {
            losses.push("the ids of the event are left out: its records bear others".into());
        }
        if has_lost_ids || !wrong.is_empty() {
            stages.push(Box::new(Without { ids: has_lost_ids, sections: wrong, leaves_out: false }));
        }
        let mut is_decompressed = false;
        for (file, survey) in &surveys {
            let why = match survey.compressed {
                CompressedData::Cut(at) => format!("it ends inside a record, which begins in the one at {at:#x}"),
                CompressedData::Whole if !is_split && !rest.features.contains_key(&FeatureId::COMPRESSED.0) => {
                    "feature COMPRESSED is not there".into()
                }
                _ => continue,
            };
            let file = file.as_ref().map(|file| format!("{file}: ")).unwrap_or_default();
            losses.push(format!("{file}the compressed data is written plain: {why}"));
            is_decompressed = true;
        }
        // Files are decompressed when they are merged.
        if is_decompressed && !is_split {
            stages.push(Box::new(Decompress::default()));
        }
        if losses.is_empty() && skipped.is_empty() {
            return Ok(Plan { skipped, losses, conversion: None });
        }
        tell_missing(&mut losses, &rest, container);
        Ok(Plan { skipped, losses, conversion: Some((stages, damaged)) })
    }
}

/// What the records that are left say of feature sections.
fn seen(surveys: &[(Option<String>, Survey)]) -> Seen {
    let mut seen = Seen::default();
    for (_, Survey { samples, mending, .. }) in surveys {
        seen.auxtrace.extend(&mending.left.auxtrace);
        let times = [seen.times.take(), samples.clone()].into_iter().flatten();
        seen.times = times.reduce(|a, b| SampleTime { first: a.first.min(b.first), last: a.last.max(b.last) });
    }
    seen
}

/// Takes the sections out of a recording that contradict the rest of it, but for those that are `exempt`.
fn wrong_ones(
    rest: &mut Recording,
    seen: &Seen,
    container: ContainerKind,
    exempt: impl Fn(FeatureId) -> bool,
) -> Vec<FeatureId> {
    let mut wrong = Vec::new();
    loop {
        let more: Vec<_> = wrong_sections(rest, seen, container).into_iter().filter(|&id| !exempt(id)).collect();
        if more.is_empty() {
            return wrong;
        }
        // What others say may depend on them.
        more.iter().for_each(|id| drop(rest.features.remove(&id.0)));
        wrong.extend(more);
    }
}

/// An input that is mended can be read twice.
fn unmended() -> Error {
    Error::Refused("the input cannot be read twice".into())
}

fn hopeless(error: Error) -> Error {
    match error {
        Error::Read(error) if !error.is_io() => Error::Refused(format!("nothing can be recovered: {error}")),
        other => other,
    }
}

/// Leaves out what contradicts the records.
struct Without {
    /// The ids of the events.
    ids: bool,
    sections: Vec<FeatureId>,
    /// Whether the last record was left out, with what follows it.
    leaves_out: bool,
}

impl Without {
    fn is_without(&self, record: &RawRecord<'_>) -> bool {
        let said = match record.kind {
            RecordType::HEADER_FEATURE => record.word(RecordHeader::SIZE),
            RecordType::HEADER_TRACING_DATA => Some(FeatureId::TRACING_DATA.0.into()),
            _ => None,
        };
        said.is_some_and(|id| self.sections.iter().any(|section| u64::from(section.0) == id))
    }
}

impl Stage for Without {
    fn begin(&mut self, recording: &mut Recording, arrangement: &mut Arrangement) -> Result<()> {
        let is_without = |id: u32| self.sections.contains(&FeatureId(id));
        recording.features.retain(|&id, _| !is_without(id));
        if self.ids {
            recording.events = std::mem::take(&mut recording.events).without_ids();
        }
        if let Arrangement::Pipe(head) = arrangement {
            let endian = recording.endian;
            head.slots.retain(|slot| match &slot.content {
                SlotContent::Verbatim(bytes) => {
                    RawRecord::first(bytes, endian, 0).is_ok_and(|record| !self.is_without(&record))
                }
                _ => slot.feature().is_none_or(|id| !is_without(id.0)),
            });
        }
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        is_metadata(kind) || kind == RecordType::AUXTRACE
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        self.leaves_out = self.is_without(record);
        if self.leaves_out {
            return Ok(());
        }
        if !self.ids || record.kind != RecordType::HEADER_ATTR {
            return next.record(record);
        }
        let mut attr = Record::decode(record, &Layout::default())?;
        if let Body::HeaderAttr(attr) = &mut attr.body {
            attr.ids.0.clear();
        }
        let bytes = attr.encode(record.endian)?;
        next.record(&RawRecord { bytes: &bytes, ..*record })
    }

    fn payload(&mut self, bytes: &[u8], next: &mut Link<'_>) -> Result<()> {
        if self.leaves_out { Ok(()) } else { next.payload(bytes) }
    }
}

/// What is lost outside of the records: what is not there, and `wrong` sections.
fn tell_losses(lines: &mut Vec<String>, lost: &Losses, wrong: &[FeatureId], recording: &Recording) {
    if lost.end_of_records {
        lines.push("the header did not say where the records end: the recording was never finished, or is cut".into());
    }
    if lost.attrs > 0 {
        let left = recording.events.len();
        lines.push(format!("{} attributes are lost, {left} are left", lost.attrs));
    }
    for event in &lost.ids {
        lines.push(format!("the ids of event {event} are lost"));
    }
    if lost.event_types {
        lines.push("the names of events are lost".into());
    }
    let names = |ids: &[FeatureId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if !lost.features.is_empty() {
        lines.push(format!("feature sections are lost: {}", names(&lost.features)));
    }
    if !wrong.is_empty() {
        lines.push(format!("feature sections that contradict the rest are left out: {}", names(wrong)));
    }
}

/// What perf will miss.
fn tell_missing(lines: &mut Vec<String>, recording: &Recording, container: ContainerKind) {
    let has = |id: FeatureId| recording.features.contains_key(&id.0);
    if recording.events.iter().any(|event| event.attr.kind == EventType::TRACEPOINT) && !has(FeatureId::TRACING_DATA) {
        lines.push("there is no tracing data: perf shows no tracepoint events without it".into());
    }
    if container == ContainerKind::File && !has(FeatureId::EVENT_DESC) {
        lines.push("there are no names of events: perf makes some from the attributes".into());
    }
}
