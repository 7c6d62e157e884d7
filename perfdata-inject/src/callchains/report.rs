//! What became of user stacks, in numbers.

use perfdata_symbols::Reason;
use perfdata_unwind::{End, ObjectId, Objects, Outcome, Outcomes};

use perfdata_convert::count::number_of;

/// Maximum number of objects in the notes.
const MOST_OBJECTS: usize = 20;

/// The numbers of samples by what was done.
#[derive(Debug, Default)]
pub(super) struct CallchainCounts {
    /// Returns what could help if an object cannot be used.
    pub(super) help: Option<fn(&Reason) -> &'static str>,
    outcomes: Outcomes,
    dropped: u64,
    before: u64,
    after: u64,
}

impl CallchainCounts {
    /// Counts a sample that had `before` bytes, and has `after` bytes.
    pub(super) fn sample(&mut self, before: usize, after: usize, outcome: Outcome) {
        self.count(before, after);
        self.outcomes.add(outcome);
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
        let summary = unwound_in_total(&self.outcomes);
        let mut notes = vec![format!("{summary}: {smaller}")];
        notes.extend(unwinding_notes(&self.outcomes, objects, self.help));
        match self.outcomes.count(Outcome::NoRegisters) {
            0 => {}
            1 => notes.push("1 sample has no user registers".into()),
            count => notes.push(format!(
                "{} have no user registers",
                number_of(count, "sample")
            )),
        }
        notes
    }
}

/// Returns how many user callchains were unwound.
pub fn unwound_in_total(outcomes: &Outcomes) -> String {
    let complete = outcomes.count(Outcome::Unwound(End::Outermost));
    format!(
        "{} unwound, {complete} of them completely",
        number_of(outcomes.unwound(), "user callchain")
    )
}

/// Returns notes about the user stacks that were not unwound completely, with the reasons: none if
/// all were. `objects` are those of the callchains; `help` returns what could help if one of them
/// cannot be used.
pub fn unwinding_notes(
    outcomes: &Outcomes,
    objects: &Objects,
    help: Option<fn(&Reason) -> &'static str>,
) -> Vec<String> {
    let mut notes = Vec::new();
    let ends = |end| outcomes.count(Outcome::Unwound(end));
    let reasons: [(u64, &str); 6] = [
        (
            ends(End::StackCopy),
            "because the copy of the stack ends there (perf record --call-graph dwarf,SIZE)",
        ),
        (ends(End::Frames), "with the maximum number of frames"),
        (
            ends(End::Anonymous),
            "in memory that is not a file, such as generated code",
        ),
        (ends(End::Unmapped), "at an address where nothing is mapped"),
        (
            ends(End::Other),
            "because a register or memory that is needed is not in the sample",
        ),
        (
            outcomes.count(Outcome::Full),
            "before the user frames, because the frames of the kernel are too many",
        ),
    ];
    for (count, why) in reasons {
        if count > 0 {
            let (chains, end) = verb(count, "user callchain", "end");
            notes.push(format!("{chains} {end} {why}"));
        }
    }
    let machines = [
        (Outcome::Machine, "stacks of this machine cannot be unwound"),
        (
            Outcome::UnknownMachine,
            "the recording does not contain its architecture (feature E_MACHINE or ARCH)",
        ),
    ];
    for (outcome, why) in machines {
        match outcomes.count(outcome) {
            0 => {}
            count => notes.push(format!("{} not unwound: {why}", number_of(count, "sample"))),
        }
    }
    add_objects(outcomes, objects, help, &mut notes);
    notes
}

/// Adds the objects in which callchains end, those with the most callchains first.
fn add_objects(
    outcomes: &Outcomes,
    objects: &Objects,
    help: Option<fn(&Reason) -> &'static str>,
    notes: &mut Vec<String>,
) {
    let of = |end: End| match end {
        End::Object(id) => Some((id, true)),
        End::NoRule(id) => Some((id, false)),
        _ => None,
    };
    let mut list: Vec<(ObjectId, bool, u64)> = outcomes
        .ends()
        .filter_map(|(end, count)| of(end).map(|(id, is_missing)| (id, is_missing, count)))
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
                let help = help.map_or("", |help| help(reason));
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

/// Returns a number of things, and the verb for it.
fn verb(count: u64, what: &str, verb: &str) -> (String, String) {
    let verb = match count {
        1 => format!("{verb}s"),
        _ => verb.to_owned(),
    };
    (number_of(count, what), verb)
}
