//! The steps to make a recording valid.

use perfdata_core::Recording;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{FeatureId, SampleTime};
use perfdata_core::header::ContainerKind;
use perfdata_core::read::{CompressedData, Ids, Survey};

use super::losses::{tell_losses, tell_missing};
use super::without::Without;
use super::{Gap, unsalvaged};
use crate::count::number_of;
use crate::error::{Error, Result};
use crate::io::Input;
use crate::pipeline::Stage;
use crate::stages::decompress::Decompress;
use crate::verify::{SeenData, wrong_end, wrong_sections};

/// The steps to make a recording valid.
pub(super) struct Plan {
    pub(super) skipped: Vec<Gap>,
    pub(super) losses: Vec<String>,
    /// The stages and the input for reading the intact data; `None` if the recording is undamaged.
    pub(super) conversion: Option<(Vec<Box<dyn Stage>>, Input)>,
}

impl Plan {
    pub(super) fn of(input: &Input, strict: bool) -> Result<Self> {
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
        // Their bit is cleared in every conversion.
        let has_false_build_ids = surveys.iter().any(|(_, survey)| survey.has_false_build_ids);
        if losses.is_empty() && skipped.is_empty() && !has_false_build_ids {
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

fn hopeless(error: Error) -> Error {
    match error {
        Error::Read(error) if !error.is_io() => {
            Error::Refused(format!("nothing can be recovered: {error}"))
        }
        other => other,
    }
}
