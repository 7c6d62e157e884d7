//! The table: a line for each conversion, then the skipped and failed checks.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
};

use perfdata_tests::recordings::Recording;

use crate::ways::{WAYS, Way};

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Byte-identical; for `verify`: no errors.
    Same,
    /// No relevant differences; for `verify`: no new errors.
    Alike,
    /// Skipped, with the reason.
    Skipped(String),
    /// Failed, with the reason.
    Failed(String),
}

/// The results for one recording and one conversion.
#[derive(Clone, Debug)]
pub struct Row {
    pub identity: Verdict,
    pub verify: Verdict,
    pub perf: Verdict,
}

impl Row {
    /// Returns the row of a conversion that did not complete.
    pub fn stopped(why: Verdict) -> Self {
        Row {
            identity: why.clone(),
            verify: why.clone(),
            perf: why,
        }
    }

    fn verdicts(&self) -> [&Verdict; 3] {
        [&self.identity, &self.verify, &self.perf]
    }
}

/// The checks, and their names for [`Verdict::Same`] and [`Verdict::Alike`].
const QUESTIONS: [(&str, &str, &str); 3] = [
    ("identity", "bytes", "diff"),
    ("verify", "clean", "as before"),
    ("perf's text", "bytes", "asked"),
];

/// Maximum number of names in a line about skipped checks.
const SHOWN: usize = 3;

/// All results.
#[derive(Debug, Default)]
pub struct Table {
    /// For each conversion and check, the number of results of each kind: same, alike, skipped,
    /// failed.
    counts: BTreeMap<(&'static str, usize), [usize; 4]>,
    /// Recordings by conversion, check (`None` for the whole conversion) and reason.
    skipped: BTreeMap<(&'static str, Option<usize>, String), Vec<String>>,
    failed: Vec<String>,
}

impl Table {
    /// Adds the results for one recording and one conversion.
    pub fn enter(&mut self, recording: &Recording, way: &Way, row: Row) {
        let is_stopped = row.identity == row.verify && row.verify == row.perf;
        for (question, verdict) in row.verdicts().into_iter().enumerate() {
            let at = match verdict {
                Verdict::Same => 0,
                Verdict::Alike => 1,
                Verdict::Skipped(why) => {
                    if !is_stopped || question == 0 {
                        let key = (way.name, (!is_stopped).then_some(question), why.clone());
                        self.skipped
                            .entry(key)
                            .or_default()
                            .push(recording.name.clone());
                    }
                    2
                }
                Verdict::Failed(what) => {
                    if !is_stopped || question == 0 {
                        let question = QUESTIONS[question].0;
                        self.failed.push(format!(
                            "{}, {}, {question}: {what}",
                            recording.name, way.name
                        ));
                    }
                    3
                }
            };
            self.counts.entry((way.name, question)).or_default()[at] += 1;
        }
    }

    /// Returns whether any check failed.
    pub fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut first, mut second) = (format!("{:20}", ""), format!("{:20}", "way"));
        for (question, same, alike) in QUESTIONS {
            let _ = write!(first, "| {question:33} ");
            let _ = write!(
                second,
                "| {same:>6} {alike:>9} {:>8} {:>7} ",
                "skipped", "failed"
            );
        }
        writeln!(f, "{}\n{}", first.trim_end(), second.trim_end())?;
        for Way { name, .. } in WAYS {
            write!(f, "{name:20}")?;
            for question in 0..QUESTIONS.len() {
                let [same, alike, skipped, failed] = self
                    .counts
                    .get(&(*name, question))
                    .copied()
                    .unwrap_or_default();
                write!(f, "| {same:6} {alike:9} {skipped:8} {failed:7} ")?;
            }
            writeln!(f)?;
        }
        if !self.skipped.is_empty() {
            writeln!(f, "\nskipped:")?;
        }
        for ((way, question, why), names) in &self.skipped {
            let what = question.map_or(String::new(), |question| {
                format!(", {}", QUESTIONS[question].0)
            });
            let more = if names.len() > SHOWN { ", …" } else { "" };
            let names_shown = names
                .iter()
                .take(SHOWN)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            writeln!(
                f,
                "{:5} × {way}{what}: {why} ({names_shown}{more})",
                names.len()
            )?;
        }
        if !self.failed.is_empty() {
            writeln!(f, "\nfailed:\n{}", self.failed.join("\n"))?;
        }
        writeln!(f)
    }
}
