//! Comparison of two texts line by line, with a named list of accepted differences.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    sync::Mutex,
};

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::{perf::Question, recordings::Recording};

/// Maximum number of unexplained differences in a message.
const SHOWN: usize = 8;

/// An accepted difference between two outputs, with the reason.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// A short name, for the list of differences that occurred.
    pub name: &'static str,
    /// The reason why this difference is correct.
    pub reason: &'static str,
    /// The question whose output it occurs in.
    pub question: Question,
    /// The recordings in which it may occur; [`ANY`] for all.
    pub recordings: fn(&Recording) -> bool,
    /// Returns whether a difference is of this kind.
    pub applies: fn(Difference<'_>) -> bool,
}

/// Accepts all recordings.
pub const ANY: fn(&Recording) -> bool = |_| true;

/// A difference between the lines of two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference<'a> {
    /// A line that is different in the second text.
    Changed(&'a str, &'a str),
    /// A line that exists only in the first text.
    Lost(&'a str),
    /// A line that exists only in the second text.
    New(&'a str),
}

/// Number of occurrences of each accepted difference, by name.
pub type Uses = BTreeMap<&'static str, usize>;

/// Occurrences of accepted differences, summed over many comparisons.
#[derive(Debug, Default)]
pub struct Tally(Mutex<Uses>);

impl<'a> Difference<'a> {
    /// Returns the rest of both lines of a change if both start with `start`.
    pub fn changed_after(self, start: &str) -> Option<(&'a str, &'a str)> {
        match self {
            Self::Changed(old, new) => old.strip_prefix(start).zip(new.strip_prefix(start)),
            _ => None,
        }
    }

    /// Returns whether all its lines (one or two) satisfy `test`.
    pub fn all_lines(self, test: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Changed(old, new) => test(old) && test(new),
            Self::Lost(line) | Self::New(line) => test(line),
        }
    }
}

impl fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed(old, new) => write!(f, "- {old}\n+ {new}"),
            Self::Lost(line) => write!(f, "- {line}"),
            Self::New(line) => write!(f, "+ {line}"),
        }
    }
}

/// Compares two outputs for `question` about `recording` and its conversion. Returns the number of
/// occurrences of each difference in `allowed`, or the differences that are not accepted as an
/// error.
pub fn compare(
    recording: &Recording,
    question: Question,
    old: &str,
    new: &str,
    allowed: &[Allowed],
) -> Result<Uses, String> {
    let mut uses = Uses::new();
    let mut unexplained = Vec::new();
    if old != new {
        let old: Vec<&str> = old.lines().collect();
        let new: Vec<&str> = new.lines().collect();
        let allowed: Vec<&Allowed> = allowed
            .iter()
            .filter(|allowed| allowed.question == question && (allowed.recordings)(recording))
            .collect();
        let mut explain = |difference| {
            let known = allowed.iter().find(|allowed| (allowed.applies)(difference));
            if let Some(allowed) = known {
                *uses.entry(allowed.name).or_default() += 1;
            }
            known.is_some()
        };
        for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
            if let DiffOp::Equal { .. } = op {
                continue;
            }
            pair(
                &old[op.old_range()],
                &new[op.new_range()],
                &mut explain,
                &mut unexplained,
            );
        }
    }
    if unexplained.is_empty() {
        return Ok(uses);
    }
    let mut message = format!("{question:?}: {} differences", unexplained.len());
    for difference in unexplained.iter().take(SHOWN) {
        let _ = write!(message, "\n{difference}");
    }
    if unexplained.len() > SHOWN {
        message.push_str("\n…");
    }
    Err(message)
}

/// Compares two blocks of lines at the same position: as changes if these are accepted, otherwise
/// as lost and new lines if these are accepted. All other lines are reported in order.
fn pair<'a>(
    mut old: &[&'a str],
    mut new: &[&'a str],
    explain: &mut impl FnMut(Difference<'a>) -> bool,
    unexplained: &mut Vec<Difference<'a>>,
) {
    loop {
        match (old.split_first(), new.split_first()) {
            (Some((&a, more_old)), Some((&b, more_new))) => {
                if explain(Difference::Changed(a, b)) {
                    (old, new) = (more_old, more_new);
                } else if explain(Difference::Lost(a)) {
                    old = more_old;
                } else if explain(Difference::New(b)) {
                    new = more_new;
                } else {
                    unexplained.push(Difference::Changed(a, b));
                    (old, new) = (more_old, more_new);
                }
            }
            (Some((&a, more)), None) => {
                old = more;
                if !explain(Difference::Lost(a)) {
                    unexplained.push(Difference::Lost(a));
                }
            }
            (None, Some((&b, more))) => {
                new = more;
                if !explain(Difference::New(b)) {
                    unexplained.push(Difference::New(b));
                }
            }
            (None, None) => return,
        }
    }
}

impl Tally {
    /// Adds the occurrences of one comparison.
    pub fn add(&self, uses: &Uses) {
        let mut sum = self.0.lock().expect("adding does not panic");
        for (name, count) in uses {
            *sum.entry(name).or_default() += count;
        }
    }

    /// Returns the names in `allowed` that never occurred: candidates for deletion.
    pub fn unused(&self, allowed: &[Allowed]) -> Vec<&'static str> {
        let sum = self.0.lock().expect("adding does not panic");
        allowed
            .iter()
            .map(|allowed| allowed.name)
            .filter(|name| !sum.contains_key(name))
            .collect()
    }

    /// Returns the occurrences, their reasons and numbers, one per line.
    pub fn describe(&self, allowed: &[Allowed]) -> String {
        let sum = self.0.lock().expect("adding does not panic");
        let mut text = String::new();
        for Allowed { name, reason, .. } in allowed {
            let count = sum.get(name).copied().unwrap_or_default();
            let _ = writeln!(text, "{count:>7} × {name}: {reason}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings::fixtures;

    fn compare_header(old: &str, new: &str, allowed: &[Allowed]) -> Result<Uses, String> {
        let recording = fixtures().swap_remove(0);
        compare(&recording, Question::Header, old, new, allowed)
    }

    const OFFSET: Allowed = Allowed {
        name: "offset",
        reason: "the data moved",
        question: Question::Header,
        recordings: ANY,
        applies: |difference| difference.changed_after("# data offset").is_some(),
    };
    const GONE: Allowed = Allowed {
        name: "gone",
        reason: "it was dropped",
        question: Question::Header,
        recordings: ANY,
        applies: |difference| matches!(difference, Difference::Lost(line) if line == "b"),
    };

    #[test]
    fn allowed_differences_are_counted() {
        let old = "a\n# data offset : 1\nb\nc\n";
        let new = "a\n# data offset : 2\nc\n";
        let uses = compare_header(old, new, &[OFFSET, GONE]).expect("both are allowed");
        assert_eq!(uses, Uses::from([("offset", 1), ("gone", 1)]));

        let tally = Tally::default();
        tally.add(&compare_header("b\nx\n", "x\n", &[OFFSET, GONE]).expect("allowed"));
        assert_eq!(tally.unused(&[OFFSET, GONE]), ["offset"]);
    }

    #[test]
    fn other_differences_are_shown() {
        let nowhere = Allowed {
            recordings: |_| false,
            ..GONE
        };
        let message = compare_header("b\nc\n", "c\nd\n", &[OFFSET, nowhere]).unwrap_err();
        assert_eq!(message, "Header: 2 differences\n- b\n+ d");
    }
}
