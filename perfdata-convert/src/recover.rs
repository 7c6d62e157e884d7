//! Recovery: writes the intact data of a damaged recording as a valid recording.
//!
//! The reader does most of the work ([`Survey`],
//! [`RecordingReader::salvaged`](perfdata_core::read::RecordingReader::salvaged)): it returns
//! intact records, and a layout without the lost parts. The input is first surveyed, so that
//! nothing is written if nothing is left, or if everything is required. An undamaged input is
//! copied.

use std::fmt;
use std::fs::File;
use std::io::{self, Seek};
use std::time::Instant;

use perfdata_core::container_layout::{ContainerLayout, SlotContent};
use perfdata_core::error::Problem;
use perfdata_core::feature::{FeatureId, SampleTime};
use perfdata_core::header::{ContainerKind, FileSection};
use perfdata_core::read::{CompressedData, Ids, Losses, Skipped, Survey};
use perfdata_core::record::{Body, RawRecord, Record, RecordType};
use perfdata_core::{DecodeContext, Recording};

use crate::count::number_of;
use crate::error::{Error, Result};
use crate::inspect::verify::{
    Finding, Report, SeenData, Severity, lacks_tracing_data, wrong_end, wrong_sections,
};
use crate::io::{Input, Output, OutputDirectory, in_temporary, temporary_file};
use crate::leftover::{CUT, without_place};
use crate::pipeline::{
    CompressedRecords, Conversion, Link, Requirements, Stage, Summary, to_directory,
};
use crate::stages::decompress::Decompress;

/// The result of recovering a damaged recording.
#[derive(Debug)]
#[non_exhaustive]
pub struct Recovery {
    /// The summary of the conversion.
    pub summary: Summary,
    /// The skipped ranges of the input, ascending; only the first thousand, if there are more.
    pub skipped: Vec<Gap>,
    /// Other losses, and how they were handled.
    pub losses: Vec<String>,
}

/// A skipped range of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The name of the file in a directory.
    pub file: Option<String>,
    /// Its offset and size.
    pub place: FileSection,
    /// The reason why its first bytes cannot be read.
    pub why: String,
}

impl Gap {
    /// Returns the range `skipped`; `is_last` if no records follow it.
    fn of(file: &Option<String>, skipped: &Skipped, is_last: bool) -> Self {
        let why = without_place(&skipped.why);
        let is_cut = is_last && matches!(skipped.why.problem(), Problem::Truncated { .. });
        let why = if is_cut { format!("{why}: {CUT}") } else { why };
        Gap {
            file: file.clone(),
            place: skipped.place,
            why,
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gap {
            file,
            place: FileSection { offset, size },
            why,
        } = self;
        if let Some(file) = file {
            write!(f, "{file}: ")?;
        }
        write!(
            f,
            "{offset:#x} to {:#x} ({size} bytes): {why}",
            offset.saturating_add(*size)
        )
    }
}

/// Maximum number of rounds in which the remaining data are checked again.
const ROUNDS: usize = 16;

/// The recovery of a damaged recording.
///
/// When damaged bytes are removed, other records become adjacent, and one of them may then no
/// longer be plausible. So the remaining data are checked again until nothing else must be removed:
/// a recovered recording needs no recovery.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Recover {
    /// Whether a recording with records after damaged bytes is refused.
    pub strict: bool,
}

impl Recover {
    /// Sets [`strict`](Self::strict).
    #[must_use]
    pub fn with_strict(self, strict: bool) -> Self {
        Recover { strict, ..self }
    }

    /// Writes the intact data of `input` to `output`. The output of an undamaged recording is
    /// byte-identical.
    ///
    /// # Errors
    /// The input cannot be read, has no attribute left, or is refused. In these cases, there is no
    /// output.
    pub fn run(&self, input: Input, output: Output) -> Result<Recovery> {
        let input = input.into_seekable()?;
        output.write_seekable(|file| {
            let recovery = recover_into(&input, file, self.strict)?;
            check(&input.in_file(file)?)?;
            Ok(recovery)
        })
    }

    /// Recovers like [`run`](Self::run), and then converts the recovered recording with
    /// `to_output`.
    ///
    /// # Errors
    /// As [`run`](Self::run), and the errors of `to_output`.
    pub fn run_and(
        &self,
        input: Input,
        to_output: impl FnOnce(Input) -> Result<Summary>,
    ) -> Result<Recovery> {
        let input = input.into_seekable()?;
        let mut plain = temporary_file()?;
        let recovery = recover_into(&input, &mut plain, self.strict).map_err(in_temporary)?;
        let plain = input.in_file(&plain)?;
        check(&plain)?;
        let summary = to_output(plain)?;
        let Summary {
            bytes_in,
            from,
            elapsed,
            ..
        } = recovery.summary;
        let elapsed = summary.elapsed.saturating_add(elapsed);
        Ok(Recovery {
            summary: Summary {
                bytes_in,
                from,
                elapsed,
                ..summary
            },
            ..recovery
        })
    }
}

/// Converts the recovered recording to `output`, which only becomes visible if it contains no
/// errors.
///
/// # Errors
/// The errors of the conversion; or [`Report`] finds an error in the output.
pub fn convert_recovered(
    conversion: Conversion,
    recovered: Input,
    output: Output,
) -> Result<Summary> {
    let start = Instant::now();
    output.write_seekable(|file| {
        let as_file = recovered.again().ok_or_else(unsalvaged)?;
        let summary = conversion.run_into(recovered, file)?;
        check(&as_file.in_file(file)?)?;
        Ok(Summary {
            elapsed: start.elapsed(),
            ..summary
        })
    })
}

/// Converts the recovered recording to a directory, through new `stages` for each of its files.
///
/// # Errors
/// As [`convert_recovered`].
pub fn convert_recovered_to_directory(
    recovered: Input,
    output: OutputDirectory,
    stages: impl Fn() -> Result<Vec<Box<dyn Stage>>>,
) -> Result<Summary> {
    let start = Instant::now();
    let there = recovered.again().ok_or_else(unsalvaged)?;
    let summary = to_directory::convert_and(recovered, output, stages, |folder| {
        check(&there.in_folder(folder)?)
    })?;
    Ok(Summary {
        elapsed: start.elapsed(),
        ..summary
    })
}

/// Recovers what was recovered: discarded bytes may have hidden others. Returns whether anything
/// changed.
fn recover_again(
    input: &Input,
    file: &mut File,
    summary: &mut Summary,
    losses: &mut Vec<String>,
) -> Result<bool> {
    let again = Plan::of(&input.in_file(file)?, false)?;
    let Some((stages, damaged)) = again.conversion else {
        return Ok(false);
    };
    let gone = again.skipped.iter().map(|gap| {
        format!(
            "dropped {} of the remaining data: {}",
            number_of(gap.place.size, "more byte"),
            gap.why
        )
    });
    for line in gone.chain(again.losses) {
        if !losses.contains(&line) {
            losses.push(line);
        }
    }
    let mut rest = temporary_file()?;
    let Summary {
        counts,
        bytes_out,
        features,
        ..
    } = Conversion { stages, to: None }
        .run_into(damaged, &mut rest)
        .map_err(in_temporary)?;
    (summary.counts, summary.bytes_out, summary.features) = (counts, bytes_out, features);
    replace(file, &mut rest).map_err(Error::io("output"))?;
    Ok(true)
}

/// Writes the intact data of `input` to `file`.
fn recover_into(input: &Input, file: &mut File, strict: bool) -> Result<Recovery> {
    let start = Instant::now();
    let Plan {
        skipped,
        mut losses,
        conversion,
    } = Plan::of(input, strict)?;
    let is_whole = conversion.is_none();
    let (stages, readable) = match conversion {
        Some(conversion) => conversion,
        None => (Vec::new(), input.again().ok_or_else(unsalvaged)?),
    };
    let mut summary = Conversion { stages, to: None }.run_into(readable, file)?;
    // A copy of an undamaged recording needs no further pass.
    let mut rounds = if is_whole { 0 } else { ROUNDS };
    while rounds > 0 && recover_again(input, file, &mut summary, &mut losses)? {
        rounds -= 1;
    }
    let summary = Summary {
        bytes_in: input.size().bytes(),
        elapsed: start.elapsed(),
        ..summary
    };
    Ok(Recovery {
        summary,
        skipped,
        losses,
    })
}

/// Refuses a recording in which `perfconv verify` finds an error.
fn check(recovered: &Input) -> Result<()> {
    let report = Report::of(recovered.again().ok_or_else(unsalvaged)?)?;
    match report
        .findings
        .iter()
        .find(|finding| finding.severity == Severity::Error)
    {
        None => Ok(()),
        Some(Finding {
            offset, meaning, ..
        }) => {
            let errors = number_of(report.count(Severity::Error), "error");
            let what = format!(
                "nothing is written: the recovered recording has {errors}, the first at its offset {offset:#x}: {meaning}"
            );
            Err(Error::Refused(what))
        }
    }
}

/// Replaces the content of `file` by the content of `from`.
fn replace(file: &mut File, from: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    from.rewind()?;
    io::copy(from, file).map(drop)
}

/// The steps to make a recording valid.
struct Plan {
    skipped: Vec<Gap>,
    losses: Vec<String>,
    /// The stages and the input for reading the intact data; `None` if the recording is undamaged.
    conversion: Option<(Vec<Box<dyn Stage>>, Input)>,
}

impl Plan {
    fn of(input: &Input, strict: bool) -> Result<Self> {
        let surveys = input.survey().map_err(hopeless)?;
        let Some((_, main)) = surveys.first() else {
            return Err(unsalvaged());
        };
        let all = || {
            surveys
                .iter()
                .map(|(file, survey)| (file, &survey.salvaging))
        };
        let skipped = all().flat_map(|(file, found)| {
            let last = found.skipped.len().saturating_sub(1);
            let is_last = move |at| at == last && found.more == 0 && found.ends_in_gap();
            found
                .skipped
                .iter()
                .enumerate()
                .map(move |(at, gap)| Gap::of(file, gap, is_last(at)))
        });
        let skipped: Vec<Gap> = skipped.collect();
        if strict && all().any(|(_, found)| found.inside > 0) {
            let first = skipped.first().map(ToString::to_string).unwrap_or_default();
            return Err(Error::Refused(format!(
                "there are intact records after corrupt bytes: {first}"
            )));
        }
        if main.recording.events.is_empty() && all().all(|(_, found)| found.left.records == 0) {
            return Err(Error::Refused(
                "nothing can be recovered: no intact attribute is left".into(),
            ));
        }
        let foreknown = surveys.iter().map(|(_, survey)| survey.foreknown).collect();
        let damaged = input.again().ok_or_else(unsalvaged)?.salvaged(foreknown)?;
        let container = {
            let (reader, _) = damaged
                .again()
                .ok_or_else(unsalvaged)?
                .reader()
                .map_err(hopeless)?;
            reader.container_layout().container()
        };
        let is_split = surveys.len() > 1;
        let said = input
            .again()
            .and_then(|input| input.reader().ok())
            .and_then(|(reader, _)| match reader.container_layout() {
                ContainerLayout::File(file) => wrong_end(file),
                ContainerLayout::Pipe(_) => None,
            });
        let mut losses = Vec::new();
        let (more, bytes) = all().fold((0, 0), |(more, bytes), (_, found)| {
            (more + found.more, bytes + found.bytes)
        });
        if more > 0 {
            let more = number_of(more, "more range");
            losses.push(format!("{more} skipped; {bytes} bytes in total"));
        }
        let mut rest = main.recording.clone();
        // If records move, the index of AUX data is created again.
        let is_index_remade = (bytes > 0 || is_split) && container == ContainerKind::File;
        let wrong = wrong_ones(&mut rest, &seen(&surveys), container, |id| {
            is_index_remade && id == FeatureId::AUXTRACE
        });
        tell_losses(
            &mut losses,
            &main.salvaging.losses,
            said,
            &wrong,
            &main.recording,
        );
        let has_lost_ids = main.foreknown.ids == Ids::Lost;
        if has_lost_ids {
            losses.push("dropped the IDs of the event: its records use other IDs".into());
        }
        let mut stages: Vec<Box<dyn Stage>> = vec![Box::new(Without {
            ids: has_lost_ids,
            sections: wrong,
        })];
        let mut is_decompressed = false;
        for (file, survey) in &surveys {
            let why = match survey.compressed {
                CompressedData::Cut(at) => {
                    format!(
                        "it ends inside a record that starts in the compressed record at {at:#x}"
                    )
                }
                CompressedData::Whole
                    if !is_split && !rest.features.contains_key(&FeatureId::COMPRESSED) =>
                {
                    "feature COMPRESSED is missing".into()
                }
                _ => continue,
            };
            let file = file
                .as_ref()
                .map(|file| format!("{file}: "))
                .unwrap_or_default();
            losses.push(format!("{file}the records are decompressed: {why}"));
            is_decompressed = true;
        }
        // Directories are decompressed when their files are merged.
        if is_decompressed && !is_split {
            stages.push(Box::new(Decompress::judged()));
        }
        if losses.is_empty() && skipped.is_empty() {
            return Ok(Plan {
                skipped,
                losses,
                conversion: None,
            });
        }
        tell_missing(&mut losses, &rest, container);
        Ok(Plan {
            skipped,
            losses,
            conversion: Some((stages, damaged)),
        })
    }
}

/// Returns the data of the remaining records that feature sections also contain.
fn seen(surveys: &[(Option<String>, Survey)]) -> SeenData {
    let mut seen = SeenData::default();
    for (
        _,
        Survey {
            samples, salvaging, ..
        },
    ) in surveys
    {
        seen.auxtrace.extend(&salvaging.left.auxtrace);
        let times = [seen.times.take(), samples.clone()].into_iter().flatten();
        seen.times = times.reduce(|a, b| SampleTime {
            first: a.first.min(b.first),
            last: a.last.max(b.last),
        });
    }
    seen
}

/// Removes sections that contradict the rest of a recording, except those that are `exempt`.
fn wrong_ones(
    rest: &mut Recording,
    seen: &SeenData,
    container: ContainerKind,
    exempt: impl Fn(FeatureId) -> bool,
) -> Vec<FeatureId> {
    let mut wrong = Vec::new();
    loop {
        let more: Vec<_> = wrong_sections(rest, seen, container)
            .into_iter()
            .filter(|&id| !exempt(id))
            .collect();
        if more.is_empty() {
            return wrong;
        }
        // The check of other sections may depend on them.
        more.iter().for_each(|id| drop(rest.features.remove(id)));
        wrong.extend(more);
    }
}

/// Returns an internal error: an input for recovery can always be read twice.
fn unsalvaged() -> Error {
    Error::Refused("the input cannot be read twice: write it to a file first".into())
}

fn hopeless(error: Error) -> Error {
    match error {
        Error::Read(error) if !error.is_io() => {
            Error::Refused(format!("nothing can be recovered: {error}"))
        }
        other => other,
    }
}

/// Drops data that contradict the records.
struct Without {
    /// Whether to drop the IDs of the events.
    ids: bool,
    sections: Vec<FeatureId>,
}

impl Without {
    fn is_without(&self, record: &RawRecord<'_>) -> bool {
        let said = match record.kind {
            RecordType::HEADER_TRACING_DATA => Some(FeatureId::TRACING_DATA),
            _ => record.feature(),
        };
        said.is_some_and(|id| self.sections.contains(&id))
    }
}

impl Stage for Without {
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
        let is_without = |id: FeatureId| self.sections.contains(&id);
        recording.features.retain(|&id, _| !is_without(id));
        if self.ids {
            recording.events = std::mem::take(&mut recording.events).without_ids();
        }
        if let ContainerLayout::Pipe(head) = container_layout {
            let endian = recording.endian;
            head.slots.retain(|slot| match &slot.content {
                SlotContent::Verbatim(bytes) => {
                    RawRecord::first(bytes, endian, 0).is_ok_and(|record| !self.is_without(&record))
                }
                _ => slot.feature().is_none_or(|id| !is_without(id)),
            });
        }
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        kind.is_metadata()
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if self.is_without(record) {
            return Ok(());
        }
        if !self.ids || record.kind != RecordType::HEADER_ATTR {
            return next.record(record);
        }
        let mut attr = Record::decode(record, &DecodeContext::default())?;
        if let Body::HeaderAttr(attr) = &mut attr.body {
            attr.ids.0.clear();
        }
        let bytes = attr.encode(record.endian)?;
        next.record(&RawRecord {
            bytes: &bytes,
            ..*record
        })
    }
}

/// Reports losses other than records: missing data, and `wrong` sections.
fn tell_losses(
    lines: &mut Vec<String>,
    lost: &Losses,
    wrong_end: Option<String>,
    wrong: &[FeatureId],
    recording: &Recording,
) {
    if lost.end_of_records {
        let unknown = || "the header does not contain the end of the records".into();
        lines.push(wrong_end.unwrap_or_else(unknown));
    }
    if lost.attrs > 0 {
        let left = recording.events.len();
        lines.push(format!(
            "{} lost, {left} left",
            number_of(lost.attrs, "attribute")
        ));
    }
    if lost.shared {
        lines.push("feature sections share bytes: they are written separately".into());
    }
    for event in &lost.ids {
        lines.push(format!("the IDs of event {event} are lost"));
    }
    if lost.event_types {
        lines.push("the names of events are lost".into());
    }
    let names = |ids: &[FeatureId]| {
        ids.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    if !lost.features.is_empty() {
        lines.push(format!(
            "feature sections are lost: {}",
            names(&lost.features)
        ));
    }
    if !wrong.is_empty() {
        lines.push(format!(
            "dropped inconsistent feature sections: {}",
            names(wrong)
        ));
    }
}

/// Reports missing data that perf requires.
fn tell_missing(lines: &mut Vec<String>, recording: &Recording, container: ContainerKind) {
    if lacks_tracing_data(recording) {
        lines
            .push("the tracing data is missing: perf shows no tracepoint events without it".into());
    }
    if container == ContainerKind::File && !recording.features.contains_key(&FeatureId::EVENT_DESC)
    {
        lines.push("the names of events are missing: perf derives them from the attributes".into());
    }
}
