//! What was found in a recording that is cut, was never finished, or is damaged.

use crate::error::Error;
use crate::feature::{FeatureId, SampleTime};
use crate::header::FileSection;
use crate::recording::Recording;

/// Bytes that are no records, or records that cannot be used.
#[derive(Debug)]
pub struct Skipped {
    /// Where they are.
    pub place: FileSection,
    /// What is wrong with the first of them.
    pub why: Error,
}

/// What a file lost outside of its records.
#[derive(Debug, Default)]
pub struct Losses {
    /// Features that the header announces, and whose sections are not there, are cut, or cannot be read.
    pub features: Vec<FeatureId>,
    /// Attributes of which only a part is there, or nothing.
    pub attrs: u64,
    /// Events, by place in the list, whose ids are not in the file.
    pub ids: Vec<usize>,
    /// Whether the names of events (before 3.12) are lost.
    pub event_types: bool,
    /// Whether feature sections share bytes, each of which can be read.
    pub shared: bool,
    /// Whether the header did not say, or not rightly, where the records end.
    pub end_of_records: bool,
}

/// What was found in the records.
#[derive(Debug, Default)]
pub struct Salvaging {
    /// What was skipped, ascending; the first of them, if there are many.
    pub skipped: Vec<Skipped>,
    /// Number of skipped ranges that are not in the list.
    pub more: u64,
    /// Bytes skipped.
    pub bytes: u64,
    /// Number of skipped ranges with records behind them.
    pub inside: u64,
    /// What is lost outside of the records.
    pub losses: Losses,
    /// What was found of the records that are left.
    pub left: Left,
    /// Whether the last range may turn out to have records behind it.
    pub(super) open: bool,
}

/// What was found of the records that are left.
#[derive(Debug, Default)]
pub struct Left {
    /// Number of records.
    pub records: u64,
    /// The AUXTRACE records in a file, ascending: where they are, without the data behind them.
    pub auxtrace: Vec<FileSection>,
}

/// Skipped ranges that are remembered with place and reason.
const MOST: usize = 1000;

impl Salvaging {
    pub(super) fn skip(&mut self, place: FileSection, why: Error) {
        self.bytes = self.bytes.saturating_add(place.size);
        if self.open
            && self.more == 0
            && let Some(last) = self.skipped.last_mut().filter(|last| last.place.end() == Some(place.offset))
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

    /// Whether no records follow the last range that was skipped.
    pub fn ends_in_gap(&self) -> bool {
        self.open
    }

    /// Takes note of records that are believed.
    pub(super) fn believe(&mut self) {
        self.inside = self.inside.saturating_add(u64::from(std::mem::take(&mut self.open)));
    }
}

/// The data in the compressed records that can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressedData {
    /// There are no such records.
    None,
    /// It ends with a whole record.
    Whole,
    /// It ends within a record, which begins in the compressed record at this offset.
    Cut(u64),
}

/// What an earlier reading of the same recording has shown, and a reader must know from the first record on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Foreknown {
    /// Where the records of a file end, if its header does not say so.
    pub end: Option<u64>,
    /// What the ids of the events are worth.
    pub ids: Ids,
    /// Whether there are records of the kernel, and no attribute that says what is in them.
    pub without_events: bool,
}

/// What the ids of the events are worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ids {
    /// Nobody knows yet: records with other ids are believed until there is one with the id of an event.
    #[default]
    Unclear,
    /// Records bear them: one with another id is damaged.
    Trusted,
    /// No record bears them: they are left out.
    Lost,
}

/// What there is of a recording that is cut, was never finished, or is damaged.
#[derive(Debug)]
pub struct Survey {
    /// The model, of a file without what is lost.
    pub recording: Recording,
    /// What was found.
    pub salvaging: Salvaging,
    /// What is known of the compressed records.
    pub compressed: CompressedData,
    /// The first and the last time of SAMPLE records.
    pub samples: Option<SampleTime>,
    /// What a reader must know so that it gives all that is left, and nothing else.
    pub foreknown: Foreknown,
}
