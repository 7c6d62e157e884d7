//! What is decided about all inputs before their records are merged.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use perfdata_core::attr::Attr;
use perfdata_core::feature::FeatureId;
use perfdata_core::read::Limits;
use perfdata_core::record::RawRecord;
use perfdata_core::{Error, Events, Recording};

use super::blocks::{Blocks, Changed};
use super::changes::Changes;
use super::checks::{self, CheckedInput, refused};
use super::lane::{Lane, LanePlan};
use super::prepare::{Prepared, again, named, prepared, surveyed};
use super::sideband::{Opening, Sideband, is_kernel, thread_of};
use super::sorted::Sorted;
use super::source::MergedRecords;
use super::survey::Survey;
use super::{Align, Merge, events, features, kernel};
use perfdata_convert::error::{Result, Step};
use perfdata_convert::io::{BoxedSource, Combined, Input, Written};

/// Distance of the process IDs of two machines: the kernel's PID_MAX_LIMIT.
const PIDS: u32 = 1 << 22;
/// Distances of the IDs of cgroups and of BPF programs of two machines.
const CGROUPS: u64 = 1 << 48;
const BPF_IDS: u32 = 1 << 24;
/// Maximum number of machines: the largest process ID is a positive number.
const MACHINES: u32 = 1 << 9;

/// Several inputs, and how they become one recording. Can be read more than once.
pub(super) struct Plan {
    /// The inputs in the order in which they start.
    inputs: Vec<Input>,
    decided: Arc<Decided>,
}

/// The decisions.
struct Decided {
    recording: Recording,
    lanes: Vec<LaneSource>,
    /// The records about what existed before each input, which have no time.
    openings: Vec<Vec<Vec<u8>>>,
    /// Those of further parts of the recording that starts first, still without a time, about
    /// processes that the parts before do not describe.
    more: Vec<Vec<u8>>,
}

/// A lane without its reader.
struct LaneSource {
    name: String,
    events: Events,
    plan: LanePlan,
    is_orderly: bool,
    has_aux: bool,
}

impl Plan {
    /// Decides how to merge the inputs; also returns notes for the user.
    ///
    /// # Errors
    /// An input cannot be read, or contradicts another one.
    pub(super) fn of(merge: Merge, inputs: Vec<(String, Input)>) -> Result<(Plan, Vec<String>)> {
        let mut endian = None;
        let mut ready = Vec::with_capacity(inputs.len());
        let mut limits = None;
        for (name, input) in inputs {
            limits.get_or_insert(input.limits());
            let (input, own) = prepared(input, endian, merge.unknown).map_err(named(&name))?;
            endian.get_or_insert(own);
            ready.push((name, input));
        }
        let ready = surveyed(ready, limits.unwrap_or_default())?;
        let parts: Vec<CheckedInput<'_>> = ready.iter().map(Prepared::part).collect();
        checks::check(&merge, &parts)?;
        let moves = kernel::moves(&merge, &parts)?;
        let shifts = shifts(&merge, &parts)?;
        let are_apart = merge.machines
            || merge.align != Align::Boot
            || moves.iter().any(|moves| *moves != Default::default());
        let models: Vec<(&str, &Recording)> = parts
            .iter()
            .map(|part| (part.name, part.recording))
            .collect();
        let mut united = events::unite(&models, are_apart, merge.machines)?;
        let mut changes = std::mem::take(&mut united.changes);
        checks::check_aux(&parts, &changes, &moves)?;
        let mut hosts = Offsets::default();
        for (((part, change), moves), shift) in
            parts.iter().zip(&mut changes).zip(moves).zip(shifts)
        {
            change.moves = moves;
            change.time = shift;
            if merge.machines {
                hosts.apply(part, change)?;
            }
        }
        let features::United {
            recording,
            mut notes,
        } = features::unite(&merge, &parts, united, &changes)?;
        let time_conv = time_conv_of(&merge, &parts, &mut notes);
        if merge.machines {
            let raw = parts
                .iter()
                .skip(1)
                .any(|part| features::has_raw(&part.recording.events));
            if raw {
                notes.push(
                    "process IDs and CPUs in the raw data of tracepoints stay as recorded".into(),
                );
            }
        }
        let groups = match are_apart {
            true => (0..parts.len()).collect(),
            false => recordings_of(&parts),
        };
        let plans = lane_plans(&parts, &changes, &groups, time_conv);
        Ok((Self::decided(recording, ready, plans)?, notes))
    }

    /// Brings the inputs into the order in which they start.
    fn decided(
        recording: Recording,
        ready: Vec<Prepared>,
        plans: Vec<(u64, LanePlan)>,
    ) -> Result<Plan> {
        let mut lanes: Vec<(u64, Prepared, LanePlan)> = ready
            .into_iter()
            .zip(plans)
            .map(|(input, (start, plan))| (start, input, plan))
            .collect();
        // Stable: recordings that start together keep the order of the arguments.
        lanes.sort_by_key(|(start, ..)| *start);
        let mut inputs = Vec::with_capacity(lanes.len());
        let mut sources = Vec::with_capacity(lanes.len());
        let mut openings = Vec::with_capacity(lanes.len());
        let mut more = Vec::new();
        let mut described = HashSet::new();
        for (_, prepared, plan) in lanes {
            let Prepared {
                name,
                input,
                recording: own,
                survey,
            } = prepared;
            let mut opening = Vec::new();
            if plan.is_timed && !plan.is_empty {
                let mut processes = Vec::new();
                for record in survey.opening {
                    let raw = RawRecord::first(&record, own.endian, 0)?;
                    let changed = |time: Option<u64>| {
                        let mut new = Vec::with_capacity(record.len().saturating_add(8));
                        plan.changes
                            .apply(&raw, &own.events, time, &mut new)
                            .map_err(|error| error.inside(&name))?;
                        Ok::<_, Error>(new)
                    };
                    opening.push(changed(plan.opening)?);
                    let thread = thread_of(&raw, &own.events)?;
                    if let Some(thread) = thread.filter(|thread| !is_kernel(thread)) {
                        if plan.continues_first && !described.contains(&thread.pid) {
                            more.push(changed(None)?);
                        }
                        processes.push(thread.pid);
                    }
                }
                described.extend(processes);
            }
            openings.push(opening);
            inputs.push(input);
            sources.push(LaneSource {
                name,
                events: own.events,
                plan,
                is_orderly: survey.is_orderly,
                has_aux: survey.has_aux,
            });
        }
        Ok(Plan {
            inputs,
            decided: Arc::new(Decided {
                recording,
                lanes: sources,
                openings,
                more,
            }),
        })
    }
}

impl Combined for Plan {
    /// Returns the inputs. Those with AUX data are read twice.
    fn inputs(&self) -> Result<Vec<Input>> {
        let lanes = self.inputs.iter().zip(&self.decided.lanes);
        let inputs = lanes.flat_map(|(input, lane)| {
            let times = if lane.has_aux { 2 } else { 1 };
            (0..times).map(move |_| again(input))
        });
        inputs.collect()
    }

    fn reader(&self, readers: Vec<BoxedSource>, limits: Limits) -> Result<BoxedSource> {
        let Decided {
            recording,
            lanes: sources,
            openings,
            more,
        } = &*self.decided;
        let mut readers = readers.into_iter();
        let mut lanes = Vec::with_capacity(sources.len());
        for source in sources {
            let missing = || refused("a reader is missing");
            let records = readers.next().ok_or_else(missing)?;
            let aux = if source.has_aux { readers.next() } else { None };
            let sorted = Sorted::new(records, source.is_orderly).map_err(named(&source.name))?;
            let LaneSource {
                name, events, plan, ..
            } = source;
            let changed = Changed::new(name.clone(), sorted, events.clone(), plan.clone());
            let has_thread = limits.threads() > 1 && (2..=MOST_THREADS).contains(&sources.len());
            let blocks = Blocks::new(changed, has_thread);
            lanes.push(Lane::new(name.clone(), blocks, plan.clone(), aux));
        }
        let opening_of = |records: &Vec<Vec<u8>>| {
            let mut opening = Opening::default();
            for record in records {
                opening.push(record.clone(), recording.endian, &recording.events)?;
            }
            Ok(opening)
        };
        let known: Vec<Opening> = openings.iter().map(opening_of).collect::<Result<_>>()?;
        let more = opening_of(more)?;
        let sideband = Sideband::new(known, recording.endian, limits);
        let merged = MergedRecords::new(recording.clone(), lanes, sideband, more)?;
        Ok(Box::new(merged))
    }

    fn again(&self) -> Option<Box<dyn Combined>> {
        Some(Box::new(Plan {
            inputs: self
                .inputs
                .iter()
                .map(Input::again)
                .collect::<Option<_>>()?,
            decided: self.decided.clone(),
        }))
    }

    fn written(&self) -> Option<Written> {
        let all: Option<Vec<Written>> = self.inputs.iter().map(Input::written).collect();
        all?.into_iter().max_by_key(|written| written.modified)
    }

    fn size(&self) -> Option<u64> {
        self.inputs.iter().try_fold(0_u64, |sum, input| {
            Some(sum.saturating_add(input.size().known()?))
        })
    }
}

/// Maximum number of inputs that are read on threads of their own.
const MOST_THREADS: usize = 8;

impl Prepared {
    fn part(&self) -> CheckedInput<'_> {
        CheckedInput {
            name: &self.name,
            recording: &self.recording,
            survey: &self.survey,
        }
    }
}

/// What the machines so far use.
#[derive(Default)]
struct Offsets {
    machines: u32,
    cpus: u32,
}

impl Offsets {
    /// Sets the offsets of the next recording.
    fn apply(&mut self, part: &CheckedInput<'_>, change: &mut Changes) -> Result<()> {
        let Some(cpus) = features::cpus_of(part.recording) else {
            return Err(refused(format!(
                "{}: there is no NRCPUS, so its CPUs cannot be told from those of other machines",
                part.name
            )));
        };
        change.pids = self.machines.saturating_mul(PIDS);
        change.cgroups = u64::from(self.machines).saturating_mul(CGROUPS);
        change.bpf = self.machines.wrapping_mul(BPF_IDS);
        change.cpus = self.cpus;
        // A merged recording names its machines.
        let names = checks::text(part.recording, FeatureId::HOSTNAME).unwrap_or_default();
        let machines = u32::try_from(names.split(',').count()).unwrap_or(u32::MAX);
        self.machines = self.machines.saturating_add(machines);
        self.cpus = self.cpus.saturating_add(cpus.available);
        if self.machines > MACHINES {
            return Err(refused(format!(
                "{}: there are more than {MACHINES} machines",
                part.name
            )));
        }
        Ok(())
    }
}

/// Returns what is added to the times of each recording.
///
/// # Errors
/// The times cannot be aligned in this way.
fn shifts(merge: &Merge, parts: &[CheckedInput<'_>]) -> Result<Vec<i128>> {
    let range = |survey: &Survey| {
        let (first, last) = survey.spans.range()?;
        Some((i128::from(first), i128::from(last)))
    };
    match merge.align {
        Align::Boot => {
            let other = parts
                .iter()
                .find(|part| !checks::is_wall_clock(&part.recording.events));
            match other {
                Some(_) if merge.machines => {
                    let clocks: Vec<String> = parts
                        .iter()
                        .map(|part| {
                            format!("{} in {}", checks::clock(&part.recording.events), part.name)
                        })
                        .collect();
                    Err(refused(format!(
                        "the clocks of different machines do not agree: {}",
                        clocks.join(", ")
                    ))
                    .with_step(Step::InOrder))
                }
                _ => Ok(vec![0; parts.len()]),
            }
        }
        Align::After => {
            let mut end: Option<i128> = None;
            Ok(parts
                .iter()
                .map(|part| {
                    let Some((first, last)) = range(part.survey) else {
                        return 0;
                    };
                    // What existed before it comes between the two.
                    let shift = end.map_or(0, |end| end.saturating_add(2).saturating_sub(first));
                    end = Some(last.saturating_add(shift));
                    shift
                })
                .collect())
        }
        Align::Wall => {
            let offsets = parts
                .iter()
                .map(checks::wall_offset)
                .collect::<Result<Vec<i128>>>()?;
            let base = offsets.first().copied().unwrap_or(0);
            let shifts: Vec<i128> = offsets
                .into_iter()
                .map(|offset| offset.saturating_sub(base))
                .collect();
            // No time may become 0 or negative.
            let starts = parts
                .iter()
                .zip(&shifts)
                .filter_map(|(part, shift)| Some(range(part.survey)?.0.saturating_add(*shift)));
            let more = starts
                .min()
                .map_or(0, |first| 2_i128.saturating_sub(first).max(0));
            Ok(shifts
                .into_iter()
                .map(|shift| shift.saturating_add(more))
                .collect())
        }
    }
}

/// Returns the recording whose TIME_CONV is kept.
fn time_conv_of(
    merge: &Merge,
    parts: &[CheckedInput<'_>],
    notes: &mut Vec<String>,
) -> Option<usize> {
    let mut all = parts
        .iter()
        .enumerate()
        .filter_map(|(at, part)| Some((at, part.survey.time_conv.as_ref()?)));
    let (first, known) = all.next()?;
    let is_same = merge.align == Align::Boot && !merge.machines && all.all(|(_, own)| own == known);
    if !is_same {
        notes.push("TIME_CONV is left out: it does not apply to all times".into());
    }
    is_same.then_some(first)
}

/// Returns for each input the first input that is a part of the same recording. The kernel gives each
/// ID to one event between two boots, so parts of a recording are those with the same event IDs.
fn recordings_of(parts: &[CheckedInput<'_>]) -> Vec<usize> {
    let mut by_id: HashMap<u64, (usize, &Attr)> = HashMap::new();
    let mut recordings = Vec::with_capacity(parts.len());
    for (at, part) in parts.iter().enumerate() {
        let mut recording = at;
        for event in part.recording.events.iter() {
            for &id in event.ids.iter().filter(|&&id| id != 0) {
                let (first, attr) = *by_id.entry(id).or_insert((recording, &event.attr));
                if *attr == event.attr {
                    recording = recording.min(first);
                }
            }
        }
        recordings.push(recording);
    }
    recordings
}

/// Returns the start of each input in the result, and what is decided about it. `recordings` says which
/// inputs are parts of one recording.
fn lane_plans(
    parts: &[CheckedInput<'_>],
    changes: &[Changes],
    recordings: &[usize],
    time_conv: Option<usize>,
) -> Vec<(u64, LanePlan)> {
    let is_timed = parts
        .iter()
        .all(|part| checks::is_timed(&part.recording.events));
    let ranges: Vec<Option<(u64, u64)>> = parts
        .iter()
        .zip(changes)
        .map(|(part, change)| moved(change, part.survey.spans.range()))
        .collect();
    let end = ranges
        .iter()
        .flatten()
        .map(|range| range.1)
        .max()
        .unwrap_or(0);
    let starts: Vec<u64> = ranges
        .iter()
        .map(|range| match range {
            _ if !is_timed => 0,
            Some((first, _)) => *first,
            None => end.saturating_add(2),
        })
        .collect();
    let earliest = starts
        .iter()
        .enumerate()
        .min_by_key(|(_, start)| **start)
        .map(|(at, _)| at);
    let recording_of = |at: usize| recordings.get(at);
    let mut plans: Vec<(u64, LanePlan)> = changes
        .iter()
        .zip(&starts)
        .zip(parts)
        .enumerate()
        .map(|(at, ((change, &start), part))| {
            let openings = part.survey.spans.openings.iter();
            let is_first = Some(at) == earliest;
            let plan = LanePlan {
                changes: change.clone(),
                opening: (is_timed && !is_first).then(|| start.saturating_sub(1).max(1)),
                is_empty: is_timed && !is_first && part.survey.spans.range().is_none(),
                comes_after: false,
                continues_first: is_timed
                    && !is_first
                    && earliest.is_some_and(|first| recording_of(first) == recording_of(at)),
                openings: openings.map(|&time| change.time_of(time)).collect(),
                gaps: HashMap::new(),
                keeps_maps: at == 0,
                keeps_time_conv: time_conv == Some(at),
                is_timed,
            };
            (start, plan)
        })
        .collect();
    if is_timed {
        find_gaps(parts, recordings, &mut plans);
    }
    plans
}

/// Returns a range of moments in the result.
fn moved(change: &Changes, range: Option<(u64, u64)>) -> Option<(u64, u64)> {
    let (first, last) = range?;
    Some((change.time_of(first), change.time_of(last)))
}

/// Finds the gaps: where all parts of recordings that started before have ended.
///
/// There is none between parts of a recording.
fn find_gaps(parts: &[CheckedInput<'_>], recordings: &[usize], plans: &mut [(u64, LanePlan)]) {
    // Of each part of each recording: the start, the recording, the time of the gap before it, and
    // the last moment.
    let mut all = Vec::new();
    for (at, (part, (start, plan))) in parts.iter().zip(&*plans).enumerate() {
        if plan.is_empty {
            continue;
        }
        for (gap, range) in part.survey.spans.iter() {
            let gap = gap.map(|gap| plan.changes.time_of(gap));
            let range = moved(&plan.changes, range);
            let before = gap.unwrap_or(0);
            let first = range.map_or(before.saturating_add(1), |(first, _)| first);
            let first = gap.map_or(*start, |_| first);
            let last = range.map_or(before, |(_, last)| last);
            all.push((first, at, gap, last));
        }
    }
    all.sort_unstable();
    let mut end = 0;
    let mut started = HashSet::new();
    for (_, at, gap, last) in all {
        let is_new = recordings.get(at).is_none_or(|of| started.insert(*of));
        if let Some((_, plan)) = plans.get_mut(at) {
            let is_after = |time| is_new && end < time;
            match gap {
                Some(gap) => drop(plan.gaps.insert(gap, end < gap)),
                None => plan.comes_after = plan.opening.is_some_and(is_after),
            }
        }
        end = end.max(last);
    }
}
