//! The report of `perfconv diff`: for people what differs in features and events, numbers, and then records; for
//! programs one difference after the other.

use std::io::{self, Seek, Write};
use std::ops::ControlFlow;
use std::path::Path;

use perfdata_core::read::Limits;
use tempfile::SpooledTempFile;

use super::{Difference, Part, compare};
use crate::error::{Error, Result};
use crate::show::json::Json;

/// What is reported.
#[derive(Debug, Clone, Copy, Default)]
pub struct Diff {
    /// JSON instead of text.
    pub json: bool,
    /// Nothing: whether anything differs is known at the first difference.
    pub brief: bool,
    /// Numbers alone.
    pub stat: bool,
    /// The most differences of records, and of features and events, to show; 0 for all. Without it, 100 in text, and all
    /// in JSON.
    pub limit: Option<u64>,
}

/// As many differences of records, and of features and events, are shown in text.
pub const SHOWN: u64 = 100;

/// Bytes of differences that are held in memory; more are in a temporary file.
const HELD: usize = 1 << 20;

/// Characters of a value that are shown where there is a limit.
const WIDTH: usize = 320;

impl Diff {
    /// Compares the recordings at `a` and `b`, writes the report to `out`, and returns whether anything differs.
    ///
    /// # Errors
    /// One of them cannot be read, or the output not be written.
    pub fn run(&self, a: &Path, b: &Path, limits: Limits, out: &mut dyn Write) -> Result<bool> {
        if self.brief {
            return Ok(compare(a, b, limits, &mut |_, _| Ok(ControlFlow::Break(())))?.differs);
        }
        if self.stat {
            let summary = compare(a, b, limits, &mut |_, _| Ok(ControlFlow::Continue(())))?;
            let text = if self.json {
                summary.json()
            } else {
                let parts = [summary.heads(), summary.metadata(), summary.table(true)];
                parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
            };
            write(out, &text)?;
            return Ok(summary.differs);
        }
        if self.json { self.objects(a, b, limits, out) } else { self.text(a, b, limits, out) }
    }

    /// One object for each difference, as they are found.
    fn objects(&self, a: &Path, b: &Path, limits: Limits, out: &mut dyn Write) -> Result<bool> {
        let mut shown = [Shown::new(self.limit.unwrap_or(0)), Shown::new(self.limit.unwrap_or(0))];
        let summary = compare(a, b, limits, &mut |part, difference| {
            let [metadata, records] = &mut shown;
            if if part == Part::Record { records } else { metadata }.take() {
                write(out, &object(part, &difference))?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let left_out: u64 = shown.iter().map(|shown| shown.left_out).sum();
        if left_out > 0 {
            let mut json = Json::compact();
            json.object("");
            json.number("left_out", left_out);
            json.close();
            json.out.push('\n');
            write(out, &json.out)?;
        }
        Ok(summary.differs)
    }

    /// What was found in events and features is known behind the records, and is shown before them.
    fn text(&self, a: &Path, b: &Path, limits: Limits, out: &mut dyn Write) -> Result<bool> {
        let mut parts =
            [Part::Feature, Part::Event, Part::Record].map(|part| (part, Lines::new(self.limit.unwrap_or(SHOWN))));
        let summary = compare(a, b, limits, &mut |part, difference| {
            if let Some((_, lines)) = parts.iter_mut().find(|(of, _)| *of == part) {
                lines.push(&difference).map_err(Error::io("temporary file"))?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if !summary.differs {
            return Ok(false);
        }
        write(out, &summary.heads())?;
        for (part, mut lines) in parts {
            if part == Part::Record {
                write(out, &format!("\n{}", summary.table(false)))?;
            }
            lines.write(part, out)?;
        }
        Ok(true)
    }
}

/// How many of some differences are shown.
#[derive(Debug, Clone, Copy)]
struct Shown {
    /// The most; 0 for all.
    limit: u64,
    shown: u64,
    left_out: u64,
}

impl Shown {
    fn new(limit: u64) -> Self {
        Shown { limit, shown: 0, left_out: 0 }
    }

    /// Whether one more is shown.
    fn take(&mut self) -> bool {
        let is_shown = self.limit == 0 || self.shown < self.limit;
        let count = if is_shown { &mut self.shown } else { &mut self.left_out };
        *count = count.saturating_add(1);
        is_shown
    }
}

/// The lines of a part of the report.
struct Lines {
    shown: Shown,
    text: SpooledTempFile,
}

impl Lines {
    fn new(limit: u64) -> Self {
        Lines { shown: Shown::new(limit), text: SpooledTempFile::new(HELD) }
    }

    fn push(&mut self, difference: &Difference) -> io::Result<()> {
        if !self.shown.take() {
            return Ok(());
        }
        if self.shown.limit == 0 {
            return writeln!(self.text, "{difference}");
        }
        writeln!(self.text, "{}", shortened(difference))
    }

    /// Writes the lines, and how many are left out.
    fn write(&mut self, part: Part, out: &mut dyn Write) -> Result<()> {
        if self.shown.shown == 0 {
            return Ok(());
        }
        write(out, "\n")?;
        self.text.rewind().map_err(Error::io("temporary file"))?;
        io::copy(&mut self.text, out).map_err(Error::io("standard output"))?;
        if self.shown.left_out > 0 {
            let more = self.shown.left_out;
            let s = if more == 1 { "" } else { "s" };
            write(out, &format!("{more} more difference{s} of {}s not shown: --limit 0 shows all\n", part.name()))?;
        }
        Ok(())
    }
}

/// The difference with as much of long values as shows where they differ.
fn shortened(difference: &Difference) -> Difference {
    let Difference { what, field, a, b } = difference;
    let same = match (a, b) {
        (Some(a), Some(b)) => a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count(),
        _ => 0,
    };
    let short = |value: &Option<String>| {
        let value = value.as_ref()?;
        let len = value.chars().count();
        if len <= WIDTH {
            return Some(value.clone());
        }
        // Some of what is the same stands before the first place where they differ.
        let start = if same < WIDTH / 2 { 0 } else { (same - WIDTH / 4).min(len - WIDTH / 2) };
        let mut text = String::from(if start > 0 { "…" } else { "" });
        text.extend(value.chars().skip(start).take(WIDTH));
        if start + WIDTH < len {
            text.push('…');
        }
        text.push_str(&format!(" ({len} characters)"));
        Some(text)
    };
    Difference { what: what.clone(), field: field.clone(), a: short(a), b: short(b) }
}

fn object(part: Part, difference: &Difference) -> String {
    let Difference { what, field, a, b } = difference;
    let mut json = Json::compact();
    json.object("");
    json.text("part", part.name().as_bytes());
    json.text("what", what.as_bytes());
    if !field.is_empty() {
        json.text("field", field.as_bytes());
    }
    for (name, side) in [("a", a), ("b", b)] {
        if let Some(side) = side {
            json.text(name, side.as_bytes());
        }
    }
    json.close();
    json.out.push('\n');
    json.out
}

fn write(out: &mut dyn Write, text: &str) -> Result<()> {
    out.write_all(text.as_bytes()).map_err(Error::io("standard output"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(a: &str, b: &str) -> Difference {
        Difference { what: "feature X".into(), field: String::new(), a: Some(a.into()), b: Some(b.into()) }
    }

    #[test]
    fn long_values_show_where_they_differ() {
        let short = difference("é", "b");
        assert_eq!(shortened(&short), short);
        let same = "é".repeat(1000);
        let (a, b) = (format!("{same}A{same}"), format!("{same}B"));
        let shown = shortened(&difference(&a, &b)).to_string();
        assert!(shown.contains("éAé") && shown.contains("éB ("), "{shown}");
        assert!(shown.chars().count() < 3 * WIDTH, "{shown}");
        let shown = shortened(&difference(&same, "b")).to_string();
        assert!(shown.starts_with("feature X: éé") && shown.ends_with("é… (1000 characters) | b"), "{shown}");
    }
}
