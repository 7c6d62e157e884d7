//! Whether a recording is whole and consistent, and whether reading and writing it gives the same bytes: what
//! `perfconv verify` reports.

mod container;
mod features;
mod records;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use perfdata_core::arrangement::Arrangement;
use perfdata_core::read::Head;

use crate::error::Result;
use crate::io::Input;
use crate::show::json::Json;
use crate::walk::{Item, walk};

use records::Records;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something is wrong: damaged, lost, or contradicted by another part.
    Error,
    /// Readers may stumble.
    Warning,
    /// Worth knowing, but in order.
    Note,
}

impl Severity {
    const ALL: [Severity; 3] = [Severity::Error, Severity::Warning, Severity::Note];

    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// Something that was found, once or several times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Where it is, first, in bytes from the start of the input.
    pub offset: u64,
    /// What it is.
    pub meaning: String,
    /// How often it was found.
    pub count: u64,
}

/// Findings that are kept; of more than that only the number is.
const MOST: usize = 1000;

/// What one pass over a recording found.
#[derive(Debug, Default)]
pub struct Report {
    /// In the order in which they were found.
    pub findings: Vec<Finding>,
    /// Records, those inside compressed ones counted, too.
    pub records: u64,
    known: HashMap<(Severity, String), usize>,
    left_out: u64,
    counts: HashMap<Severity, u64>,
}

impl Report {
    /// Checks `input`.
    ///
    /// # Errors
    /// The input cannot be read, or is no recording at all.
    pub fn of(input: Input) -> Result<Self> {
        let (mut reader, source) = input.reader_with(Head::Pass)?;
        let mut report = Report::default();
        let arrangement = reader.arrangement().clone();
        if let Arrangement::File(file) = &arrangement {
            container::check(&mut report, file, reader.recording(), &source)?;
        }
        let mut records = Records::default();
        let mut unreadable = 0_u64;
        let undecoded = walk(&mut reader, |item, recording| {
            match item {
                Item::Record(record) => records.check(&mut report, &record, false, recording),
                Item::Inner(record, _) => records.check(&mut report, &record, true, recording),
                Item::Payload(_) => {}
                Item::Unreadable(bytes) => unreadable = unreadable.saturating_add(bytes.len() as u64),
                Item::Undecodable(error) => report.blame(&error, 0),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if let Some(error) = reader.damage() {
            let lost = format!("; {unreadable} bytes from here on are no records");
            let lost = if unreadable > 0 { lost } else { String::new() };
            report.add(Severity::Error, error.offset().unwrap_or(0), format!("{}{lost}", without_place(error)));
        }
        if undecoded > 0 {
            let meaning = format!("{undecoded} bytes at the end of the compressed data make no whole record");
            report.add(Severity::Error, records.last_compressed(), meaning);
        }
        records.finish(&mut report, reader.recording(), &arrangement);
        Ok(report)
    }

    fn add(&mut self, severity: Severity, offset: u64, meaning: impl Into<String>) {
        let meaning = meaning.into();
        *self.counts.entry(severity).or_default() += 1;
        if let Some(known) = self.known.get(&(severity, meaning.clone())).and_then(|&at| self.findings.get_mut(at)) {
            known.count += 1;
        } else if self.findings.len() < MOST {
            self.known.insert((severity, meaning.clone()), self.findings.len());
            self.findings.push(Finding { severity, offset, meaning, count: 1 });
        } else {
            self.left_out += 1;
        }
    }

    /// An error of the library, whose offset is relative to `base`.
    fn blame(&mut self, error: &perfdata_core::Error, base: u64) {
        self.add(Severity::Error, base.saturating_add(error.offset().unwrap_or(0)), without_place(error));
    }

    /// How many findings of a severity there are.
    pub fn count(&self, severity: Severity) -> u64 {
        self.counts.get(&severity).copied().unwrap_or(0)
    }

    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for Finding { severity, offset, meaning, count } in &self.findings {
            let _ = write!(out, "{:<7} {offset:#x}: {meaning}", severity.name());
            let _ = if *count > 1 { writeln!(out, " ({count} times)") } else { writeln!(out) };
        }
        if self.left_out > 0 {
            let _ = writeln!(out, "{} more findings are left out", self.left_out);
        }
        let [errors, warnings, notes] = Severity::ALL.map(|severity| self.count(severity));
        let _ = writeln!(out, "{} records: {errors} errors, {warnings} warnings, {notes} notes", self.records);
        out
    }

    /// For programs.
    pub fn json(&self) -> String {
        let mut json = Json::pretty();
        json.object("");
        json.number("records", self.records);
        for severity in Severity::ALL {
            json.number(&format!("{}s", severity.name()), self.count(severity));
        }
        json.list("findings");
        for finding in &self.findings {
            json.object("");
            json.text("severity", finding.severity.name().as_bytes());
            json.number("offset", finding.offset);
            json.text("meaning", finding.meaning.as_bytes());
            json.number("count", finding.count);
            json.close();
        }
        json.close();
        json.number("left_out", self.left_out);
        json.close();
        json.out.push('\n');
        json.out
    }
}

/// What an error of the library says behind its offset.
pub(crate) fn without_place(error: &perfdata_core::Error) -> String {
    let text = error.to_string();
    match (error.offset(), text.split_once(": ")) {
        (Some(_), Some((_, rest))) => rest.to_owned(),
        _ => text,
    }
}

/// The first place where two byte strings differ, and what to say of it.
fn difference(was: &[u8], is: &[u8]) -> Option<String> {
    if was == is {
        return None;
    }
    let at = was.iter().zip(is).position(|(a, b)| a != b).unwrap_or(was.len().min(is.len()));
    let byte = |bytes: &[u8]| bytes.get(at).map_or("nothing".to_owned(), |byte| format!("{byte:#04x}"));
    Some(format!("written again, byte {at} is {} in place of {}", byte(is), byte(was)))
}
