//! Recovering: what can be believed of a damaged recording becomes one that is whole.
//!
//! The reader does the work ([`RecordingReader::mended`]): it gives records that can be believed, and an arrangement
//! without what is lost. It reads the input twice: at first to find out what is lost, and where the records end, so that
//! nothing is written where nothing is left, or all is asked for.

use std::fmt;

use perfdata_core::Recording;
use perfdata_core::arrangement::Arrangement;
use perfdata_core::attr::EventType;
use perfdata_core::feature::FeatureId;
use perfdata_core::header::FileSection;
use perfdata_core::read::{CompressedData, Losses, Piece, RecordingReader, Skipped};

use super::decompress::Decompress;
use super::{Conversion, Stage, Summary};
use crate::error::{Error, Result};
use crate::io::{Input, InputReader, Output};
use crate::verify::without_place;

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
    /// Where it is.
    pub place: FileSection,
    /// What is wrong with its first bytes.
    pub why: String,
}

impl Gap {
    fn of(skipped: &Skipped) -> Self {
        Gap { place: skipped.place, why: without_place(&skipped.why) }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gap { place: FileSection { offset, size }, why } = self;
        write!(f, "{offset:#x} to {:#x} ({size} bytes): {why}", offset.saturating_add(*size))
    }
}

/// Writes what can be believed of `input` to `output`. A recording that needs nothing comes out byte-identical. With
/// `strict`, one with records behind damaged bytes is refused.
///
/// # Errors
/// The input cannot be read, has no attribute left, or is refused. There is no output then.
pub fn recover(input: Input, output: Output, strict: bool) -> Result<Recovery> {
    let input = input.mended(None)?;
    let mut reader = open(&input)?;
    let (mut records, mut of_events) = (0_u64, false);
    while let Some(piece) = reader.next()? {
        if let Piece::Record(record) = piece {
            records = records.saturating_add(1);
            of_events |= record.kind.is_kernel();
        }
    }
    let mended = reader.input().mended().ok_or_else(unmended)?;
    let found = mended.mending();
    if strict && found.inside > 0 {
        let first = found.skipped.first().map(|skipped| Gap::of(skipped).to_string()).unwrap_or_default();
        return Err(Error::Refused(format!("there are records behind damaged bytes: {first}")));
    }
    if reader.recording().events.is_empty() && (of_events || records == 0) {
        return Err(Error::Refused("nothing can be recovered: no whole attribute is left".into()));
    }
    // Opened again, the recording has the features behind its records.
    let input = input.mended(found.losses.end_of_records.then(|| mended.end()))?;
    let again = open(&input)?;
    let mut losses = Vec::new();
    if found.more > 0 {
        losses.push(format!("{} more ranges were skipped; {} bytes in all", found.more, found.bytes));
    }
    let lost = &again.input().mended().ok_or_else(unmended)?.mending().losses;
    tell_losses(&mut losses, &found.losses, lost, reader.recording());
    let mut stages: Vec<Box<dyn Stage>> = Vec::new();
    let why = match mended.compressed() {
        CompressedData::Cut(offset) => Some(format!("it ends inside a record, which begins in the one at {offset:#x}")),
        CompressedData::Whole if !again.recording().features.contains_key(&FeatureId::COMPRESSED.0) => {
            Some("feature COMPRESSED is not there".into())
        }
        _ => None,
    };
    if let Some(why) = why {
        losses.push(format!("the compressed data is written plain: {why}"));
        stages.push(Box::new(Decompress::default()));
    }
    if !(losses.is_empty() && found.skipped.is_empty()) {
        tell_missing(&mut losses, &again);
    }
    let skipped = found.skipped.iter().map(Gap::of).collect();
    let summary = Conversion { stages, to: None }.run_on(input, output)?;
    Ok(Recovery { summary, skipped, losses })
}

/// An input that is mended can be read twice, and says what it found.
fn unmended() -> Error {
    Error::Refused("the input cannot be read twice".into())
}

fn open(input: &Input) -> Result<RecordingReader<InputReader>> {
    let again = input.again().ok_or_else(unmended)?;
    again.reader().map(|(reader, _)| reader).map_err(|error| match error {
        Error::Read(error) if !error.is_io() => Error::Refused(format!("nothing can be recovered: {error}")),
        other => other,
    })
}

/// What a file lost outside of its records.
fn tell_losses(lines: &mut Vec<String>, found: &Losses, lost: &Losses, recording: &Recording) {
    if found.end_of_records {
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
    if !lost.features.is_empty() {
        let names: Vec<String> = lost.features.iter().map(ToString::to_string).collect();
        lines.push(format!("feature sections are lost: {}", names.join(", ")));
    }
}

/// What perf will miss.
fn tell_missing(lines: &mut Vec<String>, reader: &RecordingReader<InputReader>) {
    let recording = reader.recording();
    let has = |id: FeatureId| recording.features.contains_key(&id.0);
    if recording.events.iter().any(|event| event.attr.kind == EventType::TRACEPOINT) && !has(FeatureId::TRACING_DATA) {
        lines.push("there is no tracing data: perf shows no tracepoint events without it".into());
    }
    if matches!(reader.arrangement(), Arrangement::File(_)) && !has(FeatureId::EVENT_DESC) {
        lines.push("there are no names of events: perf makes some from the attributes".into());
    }
}
