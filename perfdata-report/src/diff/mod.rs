//! Differences between two recordings, as reported by `perfconv diff`.
//!
//! The comparison covers the content of recordings, not its representation: containers, byte
//! orders, offsets, compression and padding may differ. Metadata are compared as fields of the
//! model, regardless of their position. Records are compared in order; those inside a compressed
//! record take its position. Both recordings are read in step, so memory does not grow with their
//! size.

mod model;
mod report;
mod stream;
mod summary;

use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use perfdata_core::read::Limits;
use perfdata_core::record::RecordType;

use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::{BoxedSource, Input};
use perfdata_convert::support::text::escaped;

use model::Side;
use stream::{Entry, Window};

pub use report::Diff;
pub use summary::{Recording, Summary};

/// The part of a recording that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// A feature section.
    Feature,
    /// An event: its name, attribute and IDs.
    Event,
    /// A record, or the end of the records.
    Record,
}

impl Part {
    /// Returns the word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Part::Feature => "feature",
            Part::Event => "event",
            Part::Record => "record",
        }
    }
}

/// A difference between two recordings. If only one of them has the item, only its side is set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The item: an event, a feature, a record.
    pub what: String,
    /// The field that differs; empty if the whole item differs.
    pub field: String,
    /// The content of the first recording.
    pub a: Option<String>,
    /// The content of the second recording.
    pub b: Option<String>,
}

/// Formats the difference on one line for people.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { what, field, a, b } = self;
        write!(f, "{what}:")?;
        if !field.is_empty() {
            write!(f, " {field}")?;
        }
        match (a, b) {
            (Some(a), Some(b)) => write!(f, " {a} | {b}"),
            (Some(a), None) => write!(f, " only in A: {a}"),
            (None, Some(b)) => write!(f, " only in B: {b}"),
            (None, None) => Ok(()),
        }
    }
}

/// A function that is called with each difference, and returns whether to continue.
pub type See<'a> = &'a mut dyn FnMut(Part, Difference) -> Result<ControlFlow<()>>;

/// Maximum number of entries that one side may be ahead of the other.
const AHEAD: usize = 256;

/// A recording that is being read.
enum Reading<'a> {
    /// On a background thread.
    Away(ScopedJoinHandle<'a, Result<Side>>),
    /// The system could not start a thread: the recording was already read, and the entries to
    /// compare are in memory.
    Here(Box<Result<Side>>),
}

impl<'a> Reading<'a> {
    fn start(
        scope: &'a Scope<'a, '_>,
        reader: BoxedSource,
        across: bool,
    ) -> (Self, Receiver<Entry>) {
        // If the thread cannot be started, its closure and everything in it is dropped. So the
        // thread receives the reader later.
        let (give, take) = channel();
        let (send, entries) = sync_channel(AHEAD);
        let read = move || match take.recv() {
            Ok(reader) => stream::read(reader, across, |entry| send.send(entry).is_ok()),
            Err(_) => Ok(Side::default()),
        };
        match thread::Builder::new().spawn_scoped(scope, read) {
            Ok(thread) => {
                let _ = give.send(reader);
                (Reading::Away(thread), entries)
            }
            Err(_) => {
                let (send, entries) = channel();
                let read = stream::read(reader, across, |entry| send.send(entry).is_ok());
                (Reading::Here(Box::new(read)), entries)
            }
        }
    }

    fn finish(self) -> Result<Side> {
        match self {
            Reading::Away(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Reading::Here(side) => *side,
        }
    }
}

/// Compares the recordings at `a` and `b`, and reports the differences to `see`: first records,
/// then events and feature sections.
///
/// # Errors
/// One of the recordings cannot be read, or `see` returns an error.
pub fn compare(a: &Path, b: &Path, limits: Limits, see: See<'_>) -> Result<Summary> {
    let blame = |path: &Path| {
        let path = path.to_owned();
        move |source: Error| match source {
            // This error already contains the name of its file.
            Error::Io { .. } => source,
            source => Error::Compared {
                path,
                source: Box::new(source),
            },
        }
    };
    let open =
        |path: &Path| Input::open(path).and_then(|input| Ok(input.limited_by(limits).reader()?.0));
    let (reader_a, reader_b) = (open(a).map_err(blame(a))?, open(b).map_err(blame(b))?);
    let across = stream::is_pipe(&reader_a) != stream::is_pipe(&reader_b);
    let mut found = Found::new(see);
    let (side_a, side_b) = thread::scope(|scope| -> Result<(Side, Side)> {
        let (reads_a, entries_a) = Reading::start(scope, reader_a, across);
        let (reads_b, entries_b) = Reading::start(scope, reader_b, across);
        let compared = Window::new(entries_a, entries_b).compare(&mut found);
        let sides = (
            reads_a.finish().map_err(blame(a)),
            reads_b.finish().map_err(blame(b)),
        );
        compared?;
        Ok((sides.0?, sides.1?))
    })?;
    if !found.is_enough {
        model::compare(&side_a, &side_b, across, &mut found)?;
    }
    Ok(Summary::new([(a, side_a), (b, side_b)], found))
}

/// The differences so far.
struct Found<'a> {
    see: See<'a>,
    part: Part,
    /// Number of differences.
    told: u64,
    /// Whether `see` needs no more differences.
    is_enough: bool,
    records: summary::RecordDifferences,
    metadata: summary::Metadata,
}

impl<'a> Found<'a> {
    fn new(see: See<'a>) -> Self {
        Found {
            see,
            part: Part::Record,
            told: 0,
            is_enough: false,
            records: summary::RecordDifferences::default(),
            metadata: summary::Metadata::default(),
        }
    }

    /// Reports a difference.
    fn tell(&mut self, difference: Difference) -> Result<()> {
        self.told = self.told.saturating_add(1);
        if self.part != Part::Record {
            self.metadata.add(self.part, &difference.what);
        }
        if !self.is_enough {
            self.is_enough = (self.see)(self.part, difference)?.is_break();
        }
        Ok(())
    }

    /// Reports a record that only one of the recordings has.
    fn only(&mut self, kind: Option<RecordType>, in_a: bool, difference: Difference) -> Result<()> {
        if let Some(kind) = kind {
            self.records.only(kind, in_a);
        }
        self.tell(difference)
    }
}

/// Reports each field in which two lists of fields differ.
fn compare_fields(
    what: &str,
    a: &[(String, String)],
    b: &[(String, String)],
    found: &mut Found<'_>,
) -> Result<()> {
    // The last index of each path in `b`.
    let last: HashMap<&str, usize> = b
        .iter()
        .enumerate()
        .map(|(at, field)| (&*field.0, at))
        .collect();
    let tell = |field: &str, a: Option<&String>, b: Option<&String>| Difference {
        what: escaped(what.as_bytes()),
        field: field.to_owned(),
        a: a.cloned(),
        b: b.cloned(),
    };
    // Both lists are in the order of the declaration. A field that only one of them has is skipped
    // in the other.
    let (mut at_a, mut at_b) = (0, 0);
    while let (Some((path_a, value_a)), Some((path_b, value_b))) = (a.get(at_a), b.get(at_b)) {
        if path_a == path_b {
            if value_a != value_b {
                found.tell(tell(path_a, Some(value_a), Some(value_b)))?;
            }
            (at_a, at_b) = (at_a + 1, at_b + 1);
        } else if last.get(&**path_a).is_none_or(|&last| last < at_b) {
            found.tell(tell(path_a, Some(value_a), None))?;
            at_a += 1;
        } else {
            found.tell(tell(path_b, None, Some(value_b)))?;
            at_b += 1;
        }
    }
    for (path, value) in a.get(at_a..).unwrap_or_default() {
        found.tell(tell(path, Some(value), None))?;
    }
    for (path, value) in b.get(at_b..).unwrap_or_default() {
        found.tell(tell(path, None, Some(value)))?;
    }
    Ok(())
}
