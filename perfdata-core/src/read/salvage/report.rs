//! Findings in a truncated, unfinished or corrupt recording.

use crate::error::Error;
use crate::feature::{FeatureId, SampleTime};
use crate::header::FileSection;
use crate::recording::Recording;

/// Bytes that are not records, or records that cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub struct Skipped {
    /// Their location.
    pub place: FileSection,
    /// The problem of the first of them.
    pub why: Error,
}

/// Losses of a file outside its records.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Losses {
    /// Features announced by the header whose sections are missing, truncated or unreadable.
    pub features: Vec<FeatureId>,
    /// Number of attributes that are incomplete or missing.
    pub attrs: u64,
    /// Events, by index in the list, whose IDs are not in the file.
    pub ids: Vec<usize>,
    /// Whether the event names (before 3.12) are lost.
    pub event_types: bool,
    /// Whether feature sections share bytes although each of them can be read.
    pub shared: bool,
    /// Whether the header contained no end of the records, or a wrong one.
    pub end_of_records: bool,
}

/// Findings in the records.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Salvaging {
    /// Skipped ranges, ascending; only the first ones if there are many.
    pub skipped: Vec<Skipped>,
    /// Number of skipped ranges that are not in the list.
    pub more: u64,
    /// Total size of the skipped ranges in bytes.
    pub bytes: u64,
    /// Number of skipped ranges that are followed by records.
    pub inside: u64,
    /// Losses outside the records.
    pub losses: Losses,
    /// Findings about the remaining records.
    pub left: Left,
    /// Whether records may still follow the last range.
    pub(super) open: bool,
}

/// Findings about the remaining records.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Left {
    /// Number of records.
    pub records: u64,
    /// The AUXTRACE records in a file, ascending: their locations, without the data that follows
    /// them.
    pub auxtrace: Vec<FileSection>,
}

/// Maximum number of skipped ranges that are stored with location and reason.
const MOST: usize = 1000;

impl Salvaging {
    pub(super) fn skip(&mut self, place: FileSection, why: Error) {
        self.bytes = self.bytes.saturating_add(place.size);
        if self.open
            && self.more == 0
            && let Some(last) = self
                .skipped
                .last_mut()
                .filter(|last| last.place.end() == Some(place.offset))
        {
            last.place.size = last.place.size.saturating_add(place.size);
            return;
        }
        self.open = true;
        if self.skipped.len() < MOST {
            self.skipped.push(Skipped { place, why });
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// Returns whether no records follow the last skipped range.
    pub fn ends_in_gap(&self) -> bool {
        self.open
    }

    /// Notes that records were accepted.
    pub(super) fn believe(&mut self) {
        self.inside = self
            .inside
            .saturating_add(u64::from(std::mem::take(&mut self.open)));
    }
}

/// The data in the plausible compressed records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressedData {
    /// There are no such records.
    None,
    /// It ends with a whole record.
    Whole,
    /// It ends within a record that starts in the compressed record at this offset.
    Cut(u64),
}

/// Results of an earlier pass over the same recording that a reader must know from the first record
/// on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Foreknown {
    /// End of the records of a file, if its header does not contain it.
    pub end: Option<u64>,
    /// Reliability of the events' IDs.
    pub ids: Ids,
    /// Whether there are kernel records without an attribute that describes their content.
    pub without_events: bool,
}

/// Reliability of the events' IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Ids {
    /// Not yet known: records with other IDs are accepted until there is one with the ID of an
    /// event.
    #[default]
    Unclear,
    /// Records use them: a record with another ID is corrupt.
    Trusted,
    /// No record uses them: they are removed.
    Lost,
}

/// Content of a truncated, unfinished or corrupt recording.
#[derive(Debug)]
#[non_exhaustive]
pub struct Survey {
    /// The model; for a file, without the lost parts.
    pub recording: Recording,
    /// Findings in the records.
    pub salvaging: Salvaging,
    /// Findings in the compressed records.
    pub compressed: CompressedData,
    /// The earliest and the latest time of SAMPLE records.
    pub samples: Option<SampleTime>,
    /// Whether there are MMAP2 records with an inode that announce a build ID
    /// ([`Events::has_false_build_id`](crate::Events::has_false_build_id)).
    pub has_false_build_ids: bool,
    /// Facts that a reader must know to return exactly the remaining data.
    pub foreknown: Foreknown,
}
