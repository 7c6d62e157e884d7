//! The table: a line for each way, and below it what was skipped and what failed.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
};

use perfdata_tests::recordings::Recording;

use crate::ways::{WAYS, Way};

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Byte for byte; for `verify`: nothing is wrong.
    Same,
    /// Nothing that counts differs; for `verify`: nothing is wrong that was not wrong before.
    Alike,
    /// Not asked, and why.
    Skipped(String),
    /// Wrong, and what.
    Failed(String),
}

/// The answers about one recording on one way.
#[derive(Clone, Debug)]
pub struct Row {
    pub identity: Verdict,
    pub verify: Verdict,
    pub perf: Verdict,
}

impl Row {
    /// For a way that was not gone to its end.
    pub fn stopped(why: Verdict) -> Self {
        Row { identity: why.clone(), verify: why.clone(), perf: why }
    }

    fn verdicts(&self) -> [&Verdict; 3] {
        [&self.identity, &self.verify, &self.perf]
    }
}

/// The questions, and what [`Verdict::Same`] and [`Verdict::Alike`] are called there.
const QUESTIONS: [(&str, &str, &str); 3] =
    [("identity", "bytes", "diff"), ("verify", "clean", "as before"), ("perf's text", "bytes", "asked")];

/// Names shown with what was skipped.
const SHOWN: usize = 3;

/// All answers.
#[derive(Debug, Default)]
pub struct Table {
    /// For each way and question how often each answer was given: same, alike, skipped, failed.
    counts: BTreeMap<(&'static str, usize), [usize; 4]>,
    /// Recordings by way, question (nothing for the whole way) and reason.
    skipped: BTreeMap<(&'static str, Option<usize>, String), Vec<String>>,
    failed: Vec<String>,
}

impl Table {
    /// Enters the answers about one recording on one way.
    pub fn enter(&mut self, recording: &Recording, way: &Way, row: Row) {
        let is_stopped = row.identity == row.verify && row.verify == row.perf;
        for (question, verdict) in row.verdicts().into_iter().enumerate() {
            let at = match verdict {
                Verdict::Same => 0,
                Verdict::Alike => 1,
                Verdict::Skipped(why) => {
                    if !is_stopped || question == 0 {
                        let key = (way.name, (!is_stopped).then_some(question), why.clone());
                        self.skipped.entry(key).or_default().push(recording.name.clone());
                    }
                    2
                }
                Verdict::Failed(what) => {
                    if !is_stopped || question == 0 {
                        let question = QUESTIONS[question].0;
                        self.failed.push(format!("{}, {}, {question}: {what}", recording.name, way.name));
                    }
                    3
                }
            };
            self.counts.entry((way.name, question)).or_default()[at] += 1;
        }
    }

    /// Whether anything is wrong.
    pub fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut first, mut second) = (format!("{:20}", ""), format!("{:20}", "way"));
        for (question, same, alike) in QUESTIONS {
            let _ = write!(first, "| {question:33} ");
            let _ = write!(second, "| {same:>6} {alike:>9} {:>8} {:>7} ", "skipped", "failed");
        }
        writeln!(f, "{}\n{}", first.trim_end(), second.trim_end())?;
        for Way { name, .. } in WAYS {
            write!(f, "{name:20}")?;
            for question in 0..QUESTIONS.len() {
                let [same, alike, skipped, failed] = self.counts.get(&(*name, question)).copied().unwrap_or_default();
                write!(f, "| {same:6} {alike:9} {skipped:8} {failed:7} ")?;
            }
            writeln!(f)?;
        }
        if !self.skipped.is_empty() {
            writeln!(f, "\nskipped:")?;
        }
        for ((way, question, why), names) in &self.skipped {
            let what = question.map_or(String::new(), |question| format!(", {}", QUESTIONS[question].0));
            let more = if names.len() > SHOWN { ", …" } else { "" };
            let names_shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
            writeln!(f, "{:5} × {way}{what}: {why} ({names_shown}{more})", names.len())?;
        }
        if !self.failed.is_empty() {
            writeln!(f, "\nfailed:\n{}", self.failed.join("\n"))?;
        }
        writeln!(f)
    }
}
