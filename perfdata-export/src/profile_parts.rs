//! Profiles of parts of the samples, whose stacks are added to those of the others.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_session::Mapping;

use crate::error::Result;
use crate::events::Events;
use crate::locations::{Line, Location, Locations};
use crate::machine::Machine;
use crate::parts::numbers::{of_part, renumbered};
use crate::parts::{Made, MadeOf, SinkPart};
use crate::process_names::ProcessNames;
use crate::profile::{Profile, ProfileMapping};
use crate::resolve::{ResolvedSample, Sink};
use crate::stack_list::StackList;
use crate::table_entries::{TableEntries, TableNumbers, TakenEntries};
use crate::tables::{ModuleId, Tables};

/// Maximum number of locations of a part, after which they are numbered from 1 again.
const MOST_LOCATIONS: usize = 1 << 17;

/// Samples of a part as numbers, and what is new in them.
#[derive(Debug, Default)]
pub(crate) struct ProfileSamples {
    entries: TableEntries,
    mappings: Vec<(Option<ModuleId>, Option<Mapping>)>,
    /// Whether locations are numbered from 1 again.
    is_restarted: bool,
    /// Further locations with their lines; `None` for that of all addresses that are not mapped.
    locations: Vec<Option<(Location, Box<[Line]>)>>,
    strings: Vec<Box<str>>,
    machine: Option<Machine>,
    program: Option<u32>,
    processes: Option<ProcessNames>,
    events: Events,
    /// The numbers of each event of a sample, and its weight.
    stacks: StackList,
    weights: Vec<u64>,
    /// What is known after the last sample.
    end: Option<ProfileEnd>,
}

/// What is known after all samples of a part.
#[derive(Debug)]
struct ProfileEnd {
    mappings: Vec<ProfileMapping>,
    first_time: Option<u64>,
    last_time: u64,
}

/// Makes a profile of a part of the samples.
#[derive(Debug)]
pub(crate) struct ProfilePart {
    profile: Profile,
    entries: TakenEntries,
    /// How much was taken of the profile.
    mappings: usize,
    locations: usize,
    strings: usize,
    program: Option<u32>,
    /// What was not taken yet, and what precedes it if locations were numbered again since.
    waiting: ProfileSamples,
    before: Vec<ProfileSamples>,
}

impl ProfilePart {
    /// Returns a part of a profile.
    pub fn of(profile: &Profile) -> Self {
        let part = Profile::with_labels(profile.labels.clone());
        ProfilePart {
            profile: match profile.processes {
                Some(_) => part.with_processes(),
                None => part,
            },
            entries: TakenEntries::default(),
            mappings: 0,
            locations: 0,
            // All profiles have the empty string.
            strings: 1,
            program: None,
            waiting: ProfileSamples::default(),
            before: Vec::new(),
        }
    }

    /// Returns the samples that wait with what is new in them.
    fn take_waiting(&mut self, tables: &Tables) -> ProfileSamples {
        let Profile {
            events,
            strings,
            locations,
            mappings,
            program,
            machine,
            processes,
            ..
        } = &mut self.profile;
        let new = ProfileSamples {
            entries: self.entries.take(tables),
            mappings: mappings
                .iter()
                .skip(self.mappings)
                .map(|mapping| (mapping.module, mapping.mapping))
                .collect(),
            locations: locations.after(self.locations).collect(),
            strings: strings.0.list.iter().skip(self.strings).cloned().collect(),
            machine: machine.clone(),
            program: program.filter(|_| self.program.is_none()),
            processes: processes.as_mut().map(std::mem::take),
            events: events.take_samples(),
            ..std::mem::take(&mut self.waiting)
        };
        self.mappings = mappings.len();
        self.locations = locations.len();
        self.strings = strings.0.list.len();
        self.program = *program;
        new
    }
}

impl Sink for ProfilePart {
    fn sample(&mut self, resolved: &ResolvedSample<'_>) -> Result<()> {
        let Some(counted) = self.profile.stack(resolved)? else {
            return Ok(());
        };
        for (event, weight) in counted {
            let rest = self.profile.stack.iter().skip(1).copied();
            let waiting = &mut self.waiting;
            waiting.stacks.push([event].into_iter().chain(rest));
            waiting.weights.push(weight);
        }
        if self.profile.locations.len() >= MOST_LOCATIONS {
            let before = self.take_waiting(resolved.tables);
            self.before.push(before);
            self.profile.locations = Locations::default();
            self.locations = 0;
            self.waiting.is_restarted = true;
        }
        Ok(())
    }
}

impl SinkPart for ProfilePart {
    fn take(&mut self, tables: &Tables) -> Option<Made> {
        let waiting = self.take_waiting(tables);
        let mut all = std::mem::take(&mut self.before);
        all.push(waiting);
        Some(Made::new(MadeOf::Profile(all)))
    }

    fn end(self: Box<Self>) -> Option<Made> {
        let end = ProfileEnd {
            mappings: self.profile.mappings,
            first_time: self.profile.first_time,
            last_time: self.profile.last_time,
        };
        let last = ProfileSamples {
            end: Some(end),
            ..ProfileSamples::default()
        };
        Some(Made::new(MadeOf::Profile(vec![last])))
    }
}

/// The numbers of a profile by those of a part.
#[derive(Debug, Default)]
struct ProfileNumbers {
    tables: TableNumbers,
    mappings: Vec<u32>,
    locations: Vec<u32>,
    strings: Vec<u32>,
}

/// Returns the number in a list for one that counts from 1; 0 has no entry.
fn from_one(list: &[u32], number: u32) -> u32 {
    let at = number.checked_sub(1);
    at.and_then(|at| renumbered(list, at)).unwrap_or(0)
}

/// What a profile has of parts of the samples.
#[derive(Debug, Default)]
pub(crate) struct ProfileParts {
    /// The functions and modules of all parts; `None` if there are none.
    pub tables: Option<Tables>,
    numbers: Vec<ProfileNumbers>,
    mappings: HashMap<(Option<ModuleId>, Option<Mapping>), u32, RandomState>,
}

impl Profile {
    /// Adds samples of a part.
    pub fn join(&mut self, made: Made) -> Result<()> {
        let MadeOf::Profile(all) = made.of else {
            return Ok(());
        };
        let mut parts = std::mem::take(&mut self.parts);
        let ProfileParts {
            tables,
            numbers,
            mappings,
        } = &mut parts;
        let tables = tables.get_or_insert_default();
        if let Some(numbers) = of_part(numbers, made.part) {
            for samples in all {
                self.learn(&samples, mappings, numbers, tables);
                self.add_samples(samples, numbers)?;
            }
        }
        self.parts = parts;
        Ok(())
    }

    /// Takes over what is new in the samples of a part.
    fn learn(
        &mut self,
        samples: &ProfileSamples,
        mappings: &mut HashMap<(Option<ModuleId>, Option<Mapping>), u32, RandomState>,
        numbers: &mut ProfileNumbers,
        tables: &mut Tables,
    ) {
        tables.join(&samples.entries, &mut numbers.tables);
        for &(module, mapping) in &samples.mappings {
            let module = module.and_then(|id| numbers.tables.module(id));
            let number = mappings.entry((module, mapping)).or_insert_with(|| {
                self.mappings.push(ProfileMapping::new(module, mapping));
                u32::try_from(self.mappings.len()).unwrap_or(u32::MAX)
            });
            numbers.mappings.push(*number);
        }
        if samples.is_restarted {
            numbers.locations.clear();
        }
        let function = |id| numbers.tables.function(id);
        for new in &samples.locations {
            let number = match new {
                None => self.locations.unmapped(),
                Some((location, lines)) => {
                    let own = Location {
                        mapping: from_one(&numbers.mappings, location.mapping),
                        function: location.function.and_then(function),
                        ..*location
                    };
                    let lines = lines.iter();
                    let lines = lines.filter_map(|&(id, line)| Some((function(id)?, line)));
                    self.locations.number(own, lines)
                }
            };
            numbers.locations.push(number);
        }
        let strings = samples.strings.iter();
        let strings = strings.map(|string| self.strings.0.number_of(&**string));
        numbers.strings.extend(strings);
        if self.machine.is_none() {
            self.machine.clone_from(&samples.machine);
        }
        if let (Some(names), Some(later)) = (&mut self.processes, &samples.processes) {
            names.join(later);
        }
        let program = samples.program;
        let program = program.map(|number| from_one(&numbers.mappings, number));
        self.program = self.program.or(program);
    }

    /// Adds the sums of samples of a part about which all is known.
    fn add_samples(&mut self, samples: ProfileSamples, numbers: &ProfileNumbers) -> Result<()> {
        let events = self.events.join(samples.events);
        let are_texts: Vec<bool> = self.labels.iter().map(|label| label.is_text()).collect();
        let mut own = Vec::new();
        for (stack, &weight) in samples.stacks.iter().zip(&samples.weights) {
            let Some((&event, rest)) = stack.split_first() else {
                continue;
            };
            let event = renumbered(&events, event);
            let (values, locations) = rest.split_at_checked(are_texts.len()).unwrap_or_default();
            own.clear();
            own.push(0);
            let values = values.iter().zip(&are_texts);
            own.extend(values.map(|(&value, is_text)| match is_text {
                true => from_one(&numbers.strings, value),
                false => value,
            }));
            let locations = locations.iter();
            own.extend(locations.map(|&number| from_one(&numbers.locations, number)));
            if let Some(event) = event {
                self.count(&mut own, event, weight)?;
            }
        }
        let Some(end) = samples.end else {
            return Ok(());
        };
        for (&number, of_part) in numbers.mappings.iter().zip(&end.mappings) {
            let at = number
                .checked_sub(1)
                .and_then(|at| usize::try_from(at).ok());
            if let Some(mapping) = at.and_then(|at| self.mappings.get_mut(at)) {
                mapping.has_functions |= of_part.has_functions;
                mapping.has_lines |= of_part.has_lines;
                mapping.has_inlined |= of_part.has_inlined;
            }
        }
        if let Some(time) = end.first_time {
            let first = self.first_time.get_or_insert(time);
            *first = time.min(*first);
        }
        self.last_time = self.last_time.max(end.last_time);
        Ok(())
    }
}
