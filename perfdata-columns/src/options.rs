//! What record batches contain.

use std::fmt;
use std::sync::Arc;

use crate::date::RecordedAt;
use crate::schema::SampleColumn;
use crate::tables::SharedColumns;

/// Maximum number of rows in a batch by default.
const BATCH_ROWS: usize = 1 << 15;

/// What the record batches of samples contain.
///
/// ```
/// use perfdata_columns::{Options, SampleColumn};
///
/// let columns = [SampleColumn::Time, SampleColumn::Event, SampleColumn::Period];
/// let options = Options::default().with_columns(columns).with_batch_rows(1000);
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) columns: Option<Vec<SampleColumn>>,
    pub(crate) batch_rows: usize,
    pub(crate) recording: Option<Arc<str>>,
    pub(crate) file: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) recorded: Option<RecordedAt>,
    pub(crate) offsets: bool,
    pub(crate) inlines: bool,
    pub(crate) lines: bool,
    pub(crate) events: Option<EventFilter>,
    pub(crate) shared: Option<Arc<dyn SharedColumns>>,
}

type NameFilter = dyn Fn(&[u8]) -> bool + Send + Sync;

/// Decides by its name whether an event is selected.
#[derive(Clone)]
pub(crate) struct EventFilter(Arc<NameFilter>);

impl EventFilter {
    /// Returns whether the event with this name is selected.
    pub fn selects(&self, name: &[u8]) -> bool {
        (self.0)(name)
    }
}

impl fmt::Debug for EventFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventFilter").finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            columns: None,
            batch_rows: BATCH_ROWS,
            recording: None,
            file: None,
            path: None,
            labels: Vec::new(),
            recorded: None,
            offsets: false,
            inlines: false,
            lines: false,
            events: None,
            shared: None,
        }
    }
}

impl Options {
    /// Returns the options with these columns, in their order. By default, all columns are there,
    /// but `offsets` is null if names are searched ([`with_offsets`](Self::with_offsets)).
    #[must_use]
    pub fn with_columns(self, columns: impl IntoIterator<Item = SampleColumn>) -> Self {
        let mut chosen: Vec<SampleColumn> = Vec::new();
        for column in columns {
            if !chosen.contains(&column) {
                chosen.push(column);
            }
        }
        Options {
            offsets: chosen.contains(&SampleColumn::Offsets),
            columns: Some(chosen),
            ..self
        }
    }

    /// Returns the options with `offsets`, which determines whether the column `offsets` is filled
    /// even if names are searched. The default is true if [`with_columns`](Self::with_columns)
    /// chose the column, otherwise false.
    #[must_use]
    pub fn with_offsets(self, offsets: bool) -> Self {
        Options { offsets, ..self }
    }

    /// Returns the options with the maximum number of rows in a batch, at least 1. It has fewer
    /// rows if it reaches 32,768 frames, and more only to hold all rows of one sample. The default is
    /// 32,768.
    #[must_use]
    pub fn with_batch_rows(self, batch_rows: usize) -> Self {
        Options {
            batch_rows: batch_rows.max(1),
            ..self
        }
    }

    /// Returns the options with a decision about each event by its name. Of a sample with the counters
    /// of a group, the other events are left out. Samples of one event are not checked: the source of
    /// the samples selects them.
    #[must_use]
    pub fn with_events(self, selects: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        Options {
            events: Some(EventFilter(Arc::new(selects))),
            ..self
        }
    }

    /// Returns the options with the ID of the recording, as [`recording_id`](crate::recording_id)
    /// computes it. By default, the column `recording` is null.
    #[must_use]
    pub fn with_recording(self, id: Option<&str>) -> Self {
        Options {
            recording: id.map(Into::into),
            ..self
        }
    }

    /// Returns the options with the name of the recording's file, for the table `recordings`.
    #[must_use]
    pub fn with_file(self, name: &[u8]) -> Self {
        Options {
            file: Some(crate::machine::text(name)),
            ..self
        }
    }

    /// Returns the options with the absolute path of the recording, for the table `recordings`.
    #[must_use]
    pub fn with_path(self, path: &[u8]) -> Self {
        Options {
            path: Some(crate::machine::text(path)),
            ..self
        }
    }

    /// Returns the options with labels: columns of text for the table `recordings`, with their names
    /// and the value for this recording. The names are different, and not those of other columns.
    #[must_use]
    pub fn with_labels<'a>(self, labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let labels = labels.into_iter();
        let labels = labels.map(|(key, value)| {
            let value = crate::machine::text(value.as_bytes());
            (key.to_owned(), value)
        });
        Options {
            labels: labels.collect(),
            ..self
        }
    }

    /// Returns the options with the time at which the recording was made, for the table
    /// `recordings`. It counts if the recording itself does not contain its time (CLOCK_DATA).
    #[must_use]
    pub fn with_recorded_at(self, recorded: Option<RecordedAt>) -> Self {
        Options { recorded, ..self }
    }

    /// Returns the options with the columns that the tables of tracepoints, and `recordings`, have in
    /// other recordings: each file has all of them. By default, a table has a column for each field,
    /// in the order of its format, and for each label.
    #[must_use]
    pub fn with_shared_columns(self, shared: Arc<dyn SharedColumns>) -> Self {
        Options {
            shared: Some(shared),
            ..self
        }
    }

    /// Returns the options with `inlines`, which says whether the symbolizer finds inlined
    /// functions, and `lines`, which says whether it finds source lines. The columns about them are
    /// null otherwise, as by default. The symbolizer itself must have the same settings
    /// ([`with_inlines`](perfdata_export::Symbolizer::with_inlines) and
    /// [`with_lines`](perfdata_export::Symbolizer::with_lines)).
    #[must_use]
    pub fn with_debug_info(self, inlines: bool, lines: bool) -> Self {
        Options {
            inlines,
            lines,
            ..self
        }
    }

    /// Returns the columns.
    pub(crate) fn columns(&self) -> &[SampleColumn] {
        self.columns.as_deref().unwrap_or(SampleColumn::ALL)
    }
}
