//! Checks whether a recording is complete and consistent, and whether reading and writing it
//! produces the same bytes, as reported by `perfconv verify`.

mod container;
mod counters;
mod features;
mod missing;
mod records;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::Head;

use crate::count::{Counts, number_of};
use crate::error::Result;
use crate::io::{BoxedSource, Input};
use crate::json::Json;
use crate::leftover::{Leftover, without_place};
use crate::support::batch::{Batch, JobQueue, in_order};
use crate::support::dispatch::{Dispatcher, Job, StateAt};
use crate::walk::{Item, walk};

#[doc(hidden)]
pub use container::wrong_end;
pub(crate) use features::{unread_build_ids, wrong_sections};
pub(crate) use missing::{has_raw_data, lacks_tracing_data};
pub(crate) use records::SeenData;

use records::RecordChecks;

/// The severity of a finding; the worst is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Damaged, lost, or inconsistent data.
    Error,
    /// Data that other readers may not handle.
    Warning,
    /// Valid, but unusual.
    Note,
}

impl Severity {
    const ALL: [Severity; 3] = [Severity::Error, Severity::Warning, Severity::Note];

    /// Returns the word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// A problem that was found once or several times.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Its severity.
    pub severity: Severity,
    /// The offset of its first occurrence, in bytes from the start of the input.
    pub offset: u64,
    /// Its description.
    pub meaning: String,
    /// Number of occurrences.
    pub count: u64,
}

/// Maximum number of findings that are kept. Further findings are only counted.
const MOST: usize = 1000;

/// The findings of one pass over a recording.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// The findings in the order in which they were found.
    pub findings: Vec<Finding>,
    /// The numbers of checked records.
    pub records: Counts,
    known: HashMap<(Severity, String), usize>,
    left_out: u64,
    counts: HashMap<Severity, u64>,
    /// Whether the report covers only a batch of records, whose number limits the findings.
    is_part: bool,
}

/// Which findings are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    /// Without those that are no reason to recover a recording: missing sections, and counters that
    /// go back. Following the counters takes a third as long as all other checks.
    Damage,
}

/// Submits all records. Returns the number of bytes of compressed data that do not form a complete
/// record, and the number of bytes that are not records.
fn feed(
    reader: &mut BoxedSource,
    intake: &mut JobQueue<'_, Job<(Report, RecordChecks)>>,
    scope: Scope,
) -> Result<(usize, u64)> {
    let check = move |batch: &Batch, known: StateAt<'_>| check_batch(batch, known, scope);
    let mut feed = Dispatcher::new(reader.recording().endian, intake, check);
    let mut unreadable = 0_u64;
    let undecoded = walk(reader, |item, recording| match item {
        Item::Records(batch, inner) => Ok(feed.take(batch, inner, recording)),
        Item::Undecodable(error) => Ok(feed.push_error(error, recording)),
        Item::Unreadable(bytes) => {
            unreadable = unreadable.saturating_add(bytes.len() as u64);
            Ok(ControlFlow::Continue(()))
        }
        Item::Payload(bytes) => {
            feed.see_payload(bytes.len());
            Ok(ControlFlow::Continue(()))
        }
        Item::Pause { .. } => Ok(feed.pause(recording)),
    })?;
    let _ = feed.hand_in(reader.recording());
    Ok((undecoded, unreadable))
}

/// Checks each record of a batch separately.
fn check_batch(batch: &Batch, known: StateAt<'_>, scope: Scope) -> (Report, RecordChecks) {
    let mut report = Report {
        is_part: true,
        ..Report::default()
    };
    let mut records = RecordChecks::following_counters(scope == Scope::All);
    for (run, inner) in batch.runs() {
        for record in run {
            report.records.add_at(record.kind, inner);
            records.check(&mut report, &record, inner.is_some(), known.recording);
        }
    }
    if let Some(error) = &batch.broken {
        report.blame(error, 0);
    }
    (report, records)
}

impl Report {
    /// Checks `input`.
    ///
    /// # Errors
    /// The input cannot be read, or is not a recording.
    pub fn of(input: Input) -> Result<Self> {
        Self::until(input, Scope::All, |_| false)
    }

    /// Returns whether `input` has records, and no check finds anything that recovery may change.
    /// Ends at the first finding.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub(crate) fn finds_nothing(input: Input) -> Result<bool> {
        let is_found = |report: &Report| !report.findings.is_empty();
        let report = Self::until(input, Scope::Damage, is_found)?;
        Ok(report.records.records > 0 && !is_found(&report))
    }

    /// Checks `input` until the findings so far are `enough`.
    fn until(input: Input, scope: Scope, enough: impl Fn(&Report) -> bool) -> Result<Self> {
        let (mut reader, source) = input.reader_with(Head::Pass)?;
        let mut report = Report::default();
        let container_layout = reader.container_layout().clone();
        if let ContainerLayout::File(file) = &container_layout {
            container::check(&mut report, file, reader.recording(), &source)?;
        }
        let mut records = RecordChecks::default();
        let take = |(part, seen): (Report, RecordChecks)| {
            records.append(seen, part, &mut report);
            Ok(match enough(&report) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        };
        let work = |job: Job<_>| job.finish(move |batch, known| check_batch(batch, known, scope));
        let threads = reader.limits().threads();
        let (undecoded, unreadable) = in_order(
            threads,
            |intake| feed(&mut reader, intake, scope),
            work,
            take,
        )?;
        if enough(&report) {
            return Ok(report);
        }
        if let Some(leftover) = Leftover::of(&reader, unreadable) {
            report.add(Severity::Error, leftover.offset, leftover.meaning());
        }
        if undecoded > 0 {
            let meaning = format!(
                "an incomplete record of {} at the end of the compressed data",
                number_of(undecoded as u64, "byte")
            );
            report.add(Severity::Error, records.last_compressed(), meaning);
        }
        let (recording, container) = (reader.recording(), container_layout.container());
        if scope == Scope::All && container == ContainerKind::File {
            missing::note(&mut report, recording, records.sample());
        }
        records.finish(&mut report, recording, &container_layout);
        Ok(report)
    }

    fn add(&mut self, severity: Severity, offset: u64, meaning: impl Into<String>) {
        self.add_finding(Finding {
            severity,
            offset,
            meaning: meaning.into(),
            count: 1,
        });
    }

    fn add_finding(&mut self, finding: Finding) {
        let Finding {
            severity,
            ref meaning,
            count,
            ..
        } = finding;
        *self.counts.entry(severity).or_default() += count;
        let key = (severity, meaning.clone());
        if let Some(known) = self
            .known
            .get(&key)
            .and_then(|&at| self.findings.get_mut(at))
        {
            known.count += count;
        } else if self.is_part || self.findings.len() < MOST {
            self.known.insert(key, self.findings.len());
            self.findings.push(finding);
        } else {
            self.left_out += count;
        }
    }

    /// Adds the findings of a part of the recording.
    fn append(&mut self, part: Report) {
        self.records.merge(part.records);
        part.findings
            .into_iter()
            .for_each(|finding| self.add_finding(finding));
    }

    /// Adds an error of the library, whose offset is relative to `base`.
    fn blame(&mut self, error: &perfdata_core::Error, base: u64) {
        self.add(
            Severity::Error,
            base.saturating_add(error.offset().unwrap_or(0)),
            without_place(error),
        );
    }

    /// Returns the number of findings with a severity.
    pub fn count(&self, severity: Severity) -> u64 {
        self.counts.get(&severity).copied().unwrap_or(0)
    }

    /// Returns whether there are no errors.
    pub fn is_clean(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    /// Returns the severity of the worst finding; `None` if there are no findings.
    pub fn worst(&self) -> Option<Severity> {
        let mut all = Severity::ALL.into_iter();
        all.find(|&severity| self.count(severity) > 0)
    }

    /// Returns the report for people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for Finding {
            severity,
            offset,
            meaning,
            count,
        } in &self.findings
        {
            let _ = write!(out, "{:<7} {offset:#x}: {meaning}", severity.name());
            let _ = if *count > 1 {
                writeln!(out, " ({count} times)")
            } else {
                writeln!(out)
            };
        }
        if self.left_out > 0 {
            let _ = writeln!(
                out,
                "{} not shown",
                number_of(self.left_out, "more finding")
            );
        }
        let found = Severity::ALL.map(|severity| number_of(self.count(severity), severity.name()));
        let _ = writeln!(out, "{}: {}", self.records, found.join(", "));
        out
    }

    /// Returns the report for programs.
    pub fn json(&self) -> String {
        self.json_of(None)
    }

    /// Returns the report for programs, with the name of the input.
    pub fn json_of(&self, input: Option<&Path>) -> String {
        let mut json = Json::pretty();
        json.object("");
        if let Some(input) = input {
            json.text("file", input.as_os_str().as_encoded_bytes());
        }
        json.number("records", self.records.records);
        self.records.json(&mut json, "counts");
        for (name, severity) in ["errors", "warnings", "notes"]
            .into_iter()
            .zip(Severity::ALL)
        {
            json.number(name, self.count(severity));
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
        json.end_line();
        json.into_text()
    }
}

/// Returns a description of the first difference between two byte strings.
fn difference(was: &[u8], is: &[u8]) -> Option<String> {
    if was == is {
        return None;
    }
    let at = was
        .iter()
        .zip(is)
        .position(|(a, b)| a != b)
        .unwrap_or(was.len().min(is.len()));
    let byte = |bytes: &[u8]| {
        bytes
            .get(at)
            .map_or("nothing".to_owned(), |byte| format!("{byte:#04x}"))
    };
    Some(format!(
        "reading and writing changes byte {at} from {} to {}",
        byte(was),
        byte(is)
    ))
}
