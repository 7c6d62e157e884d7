//! The report of `perfconv diff`. For people, it contains the differences in features and events,
//! then numbers, then the differences in records. For programs, it contains one difference after
//! the other.

use std::io::{self, Seek, Write};
use std::ops::ControlFlow;
use std::path::Path;

use perfdata_core::read::Limits;
use tempfile::SpooledTempFile;

use super::{Difference, Part, compare};
use perfdata_convert::error::{Error, Result};
use perfdata_convert::json::Json;

/// Options of the report.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Diff {
    /// Writes JSON instead of text.
    pub json: bool,
    /// Writes no report, and stops at the first difference.
    pub brief: bool,
    /// Writes only the numbers.
    pub stat: bool,
    /// Maximum number of differences in records, and in features and events, to show; 0 for all.
    /// The default is 100 for text, and all for JSON.
    pub limit: Option<u64>,
    /// What the reader of a text can do to see the differences beyond the maximum; the text states
    /// it beside their number.
    pub hint: Option<&'static str>,
}

/// Default maximum number of differences in records, and in features and events, in text.
pub const SHOWN: u64 = 100;

/// Maximum size of differences in memory in bytes. Larger reports use a temporary file.
const HELD: usize = 1 << 20;

/// Maximum number of characters of a value, if there is a limit.
const WIDTH: usize = 320;

impl Diff {
    /// Sets [`json`](Self::json).
    #[must_use]
    pub fn with_json(self, json: bool) -> Self {
        Diff { json, ..self }
    }

    /// Sets [`brief`](Self::brief).
    #[must_use]
    pub fn with_brief(self, brief: bool) -> Self {
        Diff { brief, ..self }
    }

    /// Sets [`stat`](Self::stat).
    #[must_use]
    pub fn with_stat(self, stat: bool) -> Self {
        Diff { stat, ..self }
    }

    /// Sets [`limit`](Self::limit).
    #[must_use]
    pub fn with_limit(self, limit: Option<u64>) -> Self {
        Diff { limit, ..self }
    }

    /// Sets [`hint`](Self::hint).
    #[must_use]
    pub fn with_hint(self, hint: Option<&'static str>) -> Self {
        Diff { hint, ..self }
    }

    /// Compares the recordings at `a` and `b`, and writes the report to `out`. Returns whether they
    /// differ.
    ///
    /// # Errors
    /// One of the recordings cannot be read, or the output cannot be written.
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
                parts
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .collect::<Vec<_>>()
                    .join("\n")
            };
            write(out, &text)?;
            return Ok(summary.differs);
        }
        if self.json {
            self.objects(a, b, limits, out)
        } else {
            self.text(a, b, limits, out)
        }
    }

    /// Writes one object for each difference, as soon as it is found.
    fn objects(&self, a: &Path, b: &Path, limits: Limits, out: &mut dyn Write) -> Result<bool> {
        let mut shown = [
            Shown::new(self.limit.unwrap_or(0)),
            Shown::new(self.limit.unwrap_or(0)),
        ];
        let summary = compare(a, b, limits, &mut |part, difference| {
            let [metadata, records] = &mut shown;
            if if part == Part::Record {
                records
            } else {
                metadata
            }
            .take()
            {
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
            json.end_line();
            write(out, &json.into_text())?;
        }
        Ok(summary.differs)
    }

    /// Writes text. Differences in events and features are known after those in records, but are
    /// shown before them.
    fn text(&self, a: &Path, b: &Path, limits: Limits, out: &mut dyn Write) -> Result<bool> {
        let mut parts = [Part::Feature, Part::Event, Part::Record]
            .map(|part| (part, Lines::new(self.limit.unwrap_or(SHOWN))));
        let summary = compare(a, b, limits, &mut |part, difference| {
            if let Some((_, lines)) = parts.iter_mut().find(|(of, _)| *of == part) {
                lines
                    .push(&difference)
                    .map_err(Error::io("temporary file"))?;
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
            lines.write(part, self.hint, out)?;
        }
        Ok(true)
    }
}

/// The number of shown and omitted differences.
#[derive(Debug, Clone, Copy)]
struct Shown {
    /// Maximum number to show; 0 for all.
    limit: u64,
    shown: u64,
    left_out: u64,
}

impl Shown {
    fn new(limit: u64) -> Self {
        Shown {
            limit,
            shown: 0,
            left_out: 0,
        }
    }

    /// Counts one more difference, and returns whether to show it.
    fn take(&mut self) -> bool {
        let is_shown = self.limit == 0 || self.shown < self.limit;
        let count = if is_shown {
            &mut self.shown
        } else {
            &mut self.left_out
        };
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
        Lines {
            shown: Shown::new(limit),
            text: SpooledTempFile::new(HELD),
        }
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

    /// Writes the lines, and the number of omitted differences with the `hint` how to see them.
    fn write(&mut self, part: Part, hint: Option<&str>, out: &mut dyn Write) -> Result<()> {
        if self.shown.shown == 0 {
            return Ok(());
        }
        write(out, "\n")?;
        self.text.rewind().map_err(Error::io("temporary file"))?;
        io::copy(&mut self.text, out).map_err(Error::io("standard output"))?;
        if self.shown.left_out > 0 {
            let more = self.shown.left_out;
            let s = if more == 1 { "" } else { "s" };
            let hint = hint.map(|hint| format!(": {hint}")).unwrap_or_default();
            let of = part.name();
            write(
                out,
                &format!("{more} more difference{s} of {of}s not shown{hint}\n"),
            )?;
        }
        Ok(())
    }
}

/// Shortens long values of the difference to the characters around their first difference.
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
        // Some equal characters are shown before the first difference.
        let start = if same < WIDTH / 2 {
            0
        } else {
            (same - WIDTH / 4).min(len - WIDTH / 2)
        };
        let mut text = String::from(if start > 0 { "…" } else { "" });
        text.extend(value.chars().skip(start).take(WIDTH));
        if start + WIDTH < len {
            text.push('…');
        }
        text.push_str(&format!(" ({len} characters)"));
        Some(text)
    };
    Difference {
        what: what.clone(),
        field: field.clone(),
        a: short(a),
        b: short(b),
    }
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
    json.end_line();
    json.into_text()
}

fn write(out: &mut dyn Write, text: &str) -> Result<()> {
    out.write_all(text.as_bytes())
        .map_err(Error::io("standard output"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(a: &str, b: &str) -> Difference {
        Difference {
            what: "feature X".into(),
            field: String::new(),
            a: Some(a.into()),
            b: Some(b.into()),
        }
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
        assert!(
            shown.starts_with("feature X: éé") && shown.ends_with("é… (1000 characters) | b"),
            "{shown}"
        );
    }
}
