//! What two recordings say differently: what `perfconv diff` reports.
//!
//! Compared is what a recording says, not how: containers, byte orders, offsets, compression and padding may differ.
//! Metadata are compared as parts of the model, wherever they stand. Records are compared in order, those inside
//! compressed records in the place of the compressed ones. Both recordings are read in step, so that memory does not
//! grow with them.

mod model;
mod stream;

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;

use perfdata_core::read::Limits;

use crate::error::{Error, Result};
use crate::io::Input;
use crate::show::json::Json;
use crate::show::text::escaped;

use model::Side;
use stream::{Entry, Window};

/// A place where two recordings differ. One that has something that the other has not is the only side there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What it is: an event, a feature, a record.
    pub what: String,
    /// The field that differs; empty where all of it does.
    pub field: String,
    /// What the first recording says.
    pub a: Option<String>,
    /// What the second recording says.
    pub b: Option<String>,
}

impl Difference {
    /// One line for people.
    fn text(&self) -> String {
        let Difference { what, field, a, b } = self;
        let field = if field.is_empty() { String::new() } else { format!(" {field}") };
        match (a, b) {
            (Some(a), Some(b)) => format!("{what}:{field} {a} | {b}\n"),
            (Some(a), None) => format!("{what}:{field} only in A: {a}\n"),
            (None, Some(b)) => format!("{what}:{field} only in B: {b}\n"),
            (None, None) => format!("{what}:{field}\n"),
        }
    }

    fn json(&self) -> String {
        let mut json = Json::compact();
        json.object("");
        json.text("what", self.what.as_bytes());
        if !self.field.is_empty() {
            json.text("field", self.field.as_bytes());
        }
        for (name, side) in [("a", &self.a), ("b", &self.b)] {
            if let Some(side) = side {
                json.text(name, side.as_bytes());
            }
        }
        json.close();
        json.out.push('\n');
        json.out
    }
}

/// Entries that a side may be ahead of the other.
const AHEAD: usize = 256;

/// Compares the recordings at `a` and `b`, writes what differs to `out`, and returns whether anything does.
///
/// # Errors
/// One of them cannot be read, or the output not be written.
pub fn run(a: &Path, b: &Path, json: bool, limits: Limits, out: &mut dyn Write) -> Result<bool> {
    let blame = |path: &Path| {
        let path = path.to_owned();
        move |source: Error| match source {
            // That names its file already.
            Error::Io { .. } => source,
            source => Error::Compared { path, source: Box::new(source) },
        }
    };
    let open = |path: &Path| Input::open(path).and_then(|input| Ok(input.limited_by(limits).reader()?.0));
    let (reader_a, reader_b) = (open(a).map_err(blame(a))?, open(b).map_err(blame(b))?);
    let mut differs = false;
    let mut report = |difference: Difference| {
        differs = true;
        let line = if json { difference.json() } else { difference.text() };
        out.write_all(line.as_bytes()).map_err(Error::io("standard output"))
    };
    let across = stream::is_pipe(&reader_a) != stream::is_pipe(&reader_b);
    let (side_a, side_b) = thread::scope(|scope| -> Result<(Side, Side)> {
        let (send_a, receive_a) = sync_channel::<Entry>(AHEAD);
        let (send_b, receive_b) = sync_channel::<Entry>(AHEAD);
        let reader = |reader, send| move || stream::read(reader, across, send);
        let thread_a = scope.spawn(reader(reader_a, send_a));
        let thread_b = scope.spawn(reader(reader_b, send_b));
        let compared = Window::new(receive_a, receive_b).compare(&mut report);
        let join = |thread: thread::ScopedJoinHandle<'_, Result<Side>>, path: &Path| match thread.join() {
            Ok(result) => result.map_err(blame(path)),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let sides = (join(thread_a, a), join(thread_b, b));
        compared?;
        Ok((sides.0?, sides.1?))
    })?;
    model::compare(&side_a, &side_b, across, &mut report)?;
    Ok(differs)
}

/// Reports each field in which two lists of fields differ.
fn compare_fields(
    what: &str,
    a: &[(String, String)],
    b: &[(String, String)],
    report: &mut dyn FnMut(Difference) -> Result<()>,
) -> Result<()> {
    // Where in `b` each path comes last.
    let last: HashMap<&str, usize> = b.iter().enumerate().map(|(at, field)| (&*field.0, at)).collect();
    let tell = |field: &str, a: Option<&String>, b: Option<&String>| Difference {
        what: escaped(what.as_bytes()),
        field: field.to_owned(),
        a: a.cloned(),
        b: b.cloned(),
    };
    // Both are in the order of the declaration: what one lacks is skipped in the other.
    let (mut at_a, mut at_b) = (0, 0);
    while let (Some((path_a, value_a)), Some((path_b, value_b))) = (a.get(at_a), b.get(at_b)) {
        if path_a == path_b {
            if value_a != value_b {
                report(tell(path_a, Some(value_a), Some(value_b)))?;
            }
            (at_a, at_b) = (at_a + 1, at_b + 1);
        } else if last.get(&**path_a).is_none_or(|&last| last < at_b) {
            report(tell(path_a, Some(value_a), None))?;
            at_a += 1;
        } else {
            report(tell(path_b, None, Some(value_b)))?;
            at_b += 1;
        }
    }
    for (path, value) in a.get(at_a..).unwrap_or_default() {
        report(tell(path, Some(value), None))?;
    }
    for (path, value) in b.get(at_b..).unwrap_or_default() {
        report(tell(path, None, Some(value)))?;
    }
    Ok(())
}
