//! What became of user stacks, in numbers.

use std::collections::HashMap;

use perfdata_symbols::Reason;
use perfdata_unwind::{End, ObjectId, Objects};

use super::sample::Outcome;
use crate::count::number_of;

/// Maximum number of objects in the notes.
const MOST_OBJECTS: usize = 20;

/// The numbers of samples by what was done.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Returns what could help if an object cannot be used.
    pub(super) help: Option<fn(&Reason) -> &'static str>,
    unwound: u64,
    dropped: u64,
    no_registers: u64,
    full: u64,
    machine: u64,
    ends: HashMap<End, u64>,
    before: u64,
    after: u64,
}

impl Report {
    /// Counts a sample that had `before` bytes, and has `after` bytes.
    pub(super) fn sample(&mut self, before: usize, after: usize, outcome: Outcome) {
        self.count(before, after);
        let number = match outcome {
            Outcome::NoRegisters => &mut self.no_registers,
            Outcome::Full => &mut self.full,
            Outcome::Machine => &mut self.machine,
            Outcome::Unwound(end) => {
                self.unwound = self.unwound.saturating_add(1);
                self.ends.entry(end).or_default()
            }
        };
        *number = number.saturating_add(1);
    }

    /// Counts a sample whose user stack was dropped.
    pub(super) fn dropped(&mut self, before: usize, after: usize) {
        self.count(before, after);
        self.dropped = self.dropped.saturating_add(1);
    }

    fn count(&mut self, before: usize, after: usize) {
        self.before = self.before.saturating_add(before as u64);
        self.after = self.after.saturating_add(after as u64);
    }

    /// Returns the number of callchains with an end for which `is_it` holds.
    fn ends(&self, is_it: impl Fn(&End) -> bool) -> u64 {
        let ends = self.ends.iter().filter(|(end, _)| is_it(end));
        ends.fold(0, |sum: u64, (_, count)| sum.saturating_add(*count))
    }

    /// Returns the notes. `objects` are those of the callchains, if stacks were unwound.
    pub(super) fn notes(&self, objects: Option<&Objects>) -> Vec<String> {
        let smaller = format!(
            "samples {} smaller",
            number_of(self.before.saturating_sub(self.after), "byte")
        );
        let Some(objects) = objects else {
            return vec![match self.dropped {
                0 => "no event has callchains with user registers and user stacks: nothing changed"
                    .into(),
                count => format!(
                    "user registers and user stack of {} dropped: {smaller}",
                    number_of(count, "sample")
                ),
            }];
        };
        let complete = self.ends(|end| *end == End::Outermost);
        let mut notes = vec![format!(
            "{} unwound, {complete} of them completely: {smaller}",
            number_of(self.unwound, "user callchain")
        )];
        let reasons: [(u64, &str); 6] = [
            (
                self.ends(|end| *end == End::StackCopy),
                "because the copy of the stack ends there (perf record --call-graph dwarf,SIZE)",
            ),
            (
                self.ends(|end| *end == End::Frames),
                "with the maximum number of frames",
            ),
            (
                self.ends(|end| *end == End::Anonymous),
                "in memory that is not a file, such as generated code",
            ),
            (
                self.ends(|end| *end == End::Unmapped),
                "at an address where nothing is mapped",
            ),
            (
                self.ends(|end| *end == End::Other),
                "because a register or memory that is needed is not in the sample",
            ),
            (
                self.full,
                "before the user frames, because the frames of the kernel are too many",
            ),
        ];
        for (count, why) in reasons {
            if count > 0 {
                let (chains, end) = verb(count, "user callchain", "end");
                notes.push(format!("{chains} {end} {why}"));
            }
        }
        if self.machine > 0 {
            notes.push(format!(
                "{} not unwound: stacks of this machine cannot be unwound",
                number_of(self.machine, "sample")
            ));
        }
        if self.no_registers > 0 {
            let (samples, have) = match self.no_registers {
                1 => ("1 sample".to_owned(), "has"),
                count => (number_of(count, "sample"), "have"),
            };
            notes.push(format!("{samples} {have} no user registers"));
        }
        self.add_objects(objects, &mut notes);
        notes
    }

    /// Adds the objects in which callchains end, those with the most callchains first.
    fn add_objects(&self, objects: &Objects, notes: &mut Vec<String>) {
        let of = |end: &End| match end {
            End::Object(id) => Some((*id, true)),
            End::NoRule(id) => Some((*id, false)),
            _ => None,
        };
        let mut list: Vec<(ObjectId, bool, u64)> = self
            .ends
            .iter()
            .filter_map(|(end, count)| of(end).map(|(id, is_missing)| (id, is_missing, *count)))
            .collect();
        list.sort_by_key(|(id, is_missing, count)| (u64::MAX - count, *id, *is_missing));
        for (id, is_missing, count) in list.iter().take(MOST_OBJECTS) {
            let Some((dso, build_id)) = objects.dso(*id) else {
                continue;
            };
            let name = String::from_utf8_lossy(&dso.name);
            let build_id = build_id.map_or(String::new(), |id| format!(" (build ID {id})"));
            let (chains, end) = verb(*count, "user callchain", "end");
            let why = match (is_missing, objects.get(*id)) {
                (true, Err(reason)) => {
                    let help = self.help.map_or("", |help| help(reason));
                    format!("{reason}{help}")
                }
                _ => "it has no call frame information for the address".into(),
            };
            notes.push(format!("{chains} {end} in {name}{build_id}: {why}"));
        }
        let more = list.get(MOST_OBJECTS..).unwrap_or_default();
        if !more.is_empty() {
            let chains = more
                .iter()
                .fold(0, |sum: u64, (.., count)| sum.saturating_add(*count));
            let (chains, end) = verb(chains, "user callchain", "end");
            notes.push(format!(
                "{chains} {end} in {}",
                number_of(more.len() as u64, "more object")
            ));
        }
    }
}

/// Returns a number of things, and the verb for it.
fn verb(count: u64, what: &str, verb: &str) -> (String, String) {
    let verb = match count {
        1 => format!("{verb}s"),
        _ => verb.to_owned(),
    };
    (number_of(count, what), verb)
}
