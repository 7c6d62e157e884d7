//! The records of a file that a conversion drops without looking at them, and a reader that skips
//! them.

use std::iter::Peekable;
use std::vec::IntoIter;

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::SampleTime;
use perfdata_core::header::FileSection;
use perfdata_core::read::{Chunk, Limits, RecordSource, RecordStream, SourceReader, Tail};
use perfdata_core::{Error, Recording, Result};

use super::input::{BoxedSource, Bytes};
use super::reader::{InputReader, Meter, Stream};

/// Consecutive records of a file. They have no payload, and no reader needs their content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Offset of the first one and size of all of them, in bytes.
    pub place: FileSection,
    /// Their number.
    pub records: u64,
}

/// Gaps in the order of the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gaps {
    list: Vec<Gap>,
    times: Option<SampleTime>,
}

impl Gaps {
    /// Returns a list without gaps in a file with these times of the first and the last sample;
    /// `None` if no sample has a time.
    pub fn new(times: Option<SampleTime>) -> Self {
        Gaps {
            list: Vec::new(),
            times,
        }
    }

    /// Returns the times of the first and the last sample of the file, in gaps or not.
    pub fn times(&self) -> Option<&SampleTime> {
        self.times.as_ref()
    }

    /// Adds a gap behind all others.
    pub fn push(&mut self, gap: Gap) {
        match self.list.last_mut() {
            Some(last) if last.place.end() == Some(gap.place.offset) => {
                last.place.size = last.place.size.saturating_add(gap.place.size);
                last.records = last.records.saturating_add(gap.records);
            }
            _ => self.list.push(gap),
        }
    }

    /// Returns whether there is no gap.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the gaps.
    pub fn as_slice(&self) -> &[Gap] {
        &self.list
    }

    /// Returns the number of records in all gaps.
    pub fn records(&self) -> u64 {
        let records = self.list.iter().map(|gap| gap.records);
        records.fold(0, u64::saturating_add)
    }

    /// Returns the parts of `place` between the gaps. The last one, which may be empty, ends where
    /// `place` does.
    fn between(&self, place: FileSection) -> Vec<FileSection> {
        let mut parts = Vec::with_capacity(self.list.len().saturating_add(1));
        let mut offset = place.offset;
        let end = place.end().unwrap_or(u64::MAX);
        let part = |offset: u64, end: u64| FileSection {
            offset,
            size: end.saturating_sub(offset),
        };
        for Gap { place, .. } in &self.list {
            if place.offset > offset {
                parts.push(part(offset, place.offset));
            }
            offset = place.end().unwrap_or(u64::MAX);
        }
        parts.push(part(offset, end));
        parts
    }
}

/// A reader of the records of a file that are not in gaps.
pub(super) struct Sparse {
    /// The reader of the whole file, whose records are not read.
    whole: BoxedSource,
    file: Bytes,
    meter: Meter,
    /// The parts that were not opened yet.
    parts: Peekable<IntoIter<FileSection>>,
    records: RecordStream<InputReader>,
    /// End of the current part.
    end: u64,
}

impl Sparse {
    /// Returns a reader of `file`, whose records are at `place`. `whole` reads all of it.
    pub(super) fn new(
        whole: BoxedSource,
        file: Bytes,
        place: FileSection,
        meter: Meter,
        gaps: &Gaps,
    ) -> Self {
        let nothing = FileSection {
            offset: place.offset,
            size: 0,
        };
        let endian = whole.recording().endian;
        let stream = Stream::File(SourceReader::new(file.clone(), nothing));
        Sparse {
            records: RecordStream::new(meter.clone().of(stream), endian, place.offset),
            end: place.offset,
            parts: gaps.between(place).into_iter().peekable(),
            whole,
            file,
            meter,
        }
    }

    /// Opens the next part; returns false if there is none.
    fn open_next(&mut self) -> bool {
        let Some(part) = self.parts.next() else {
            return false;
        };
        if let Some(watch) = &self.meter.watch {
            watch.advance(part.offset.saturating_sub(self.end));
        }
        self.end = part.end().unwrap_or(u64::MAX);
        let stream = Stream::File(SourceReader::new(self.file.clone(), part));
        let input = self.meter.clone().of(stream);
        self.records = RecordStream::new(input, self.whole.recording().endian, part.offset);
        true
    }
}

impl RecordSource for Sparse {
    fn recording(&self) -> &Recording {
        self.whole.recording()
    }

    fn limits(&self) -> Limits {
        self.whole.limits()
    }

    fn container_layout(&self) -> &ContainerLayout {
        self.whole.container_layout()
    }

    fn next_chunk(&mut self) -> Result<Option<(Chunk<'_>, &Recording)>> {
        // A part ends with a complete record.
        while self.records.offset() >= self.end
            && self.records.damage().is_none()
            && self.open_next()
        {}
        let chunk = self.records.next_chunk()?;
        Ok(chunk.map(|chunk| (chunk, self.whole.recording())))
    }

    fn damage(&self) -> Option<&Error> {
        self.records.damage()
    }

    fn take_damage(&mut self) -> Option<Error> {
        self.records.take_damage()
    }

    fn tail(&self) -> Option<Tail> {
        self.records
            .tail(self.whole.recording(), self.whole.limits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(offset: u64, size: u64) -> FileSection {
        FileSection { offset, size }
    }

    fn gap(offset: u64, size: u64) -> Gap {
        Gap {
            place: place(offset, size),
            records: size / 8,
        }
    }

    #[test]
    fn parts_are_between_the_gaps() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.between(place(100, 50)), [place(100, 50)]);
        gaps.push(gap(104, 16));
        gaps.push(gap(136, 8));
        // It follows directly.
        gaps.push(gap(144, 6));
        assert_eq!((gaps.as_slice().len(), gaps.records()), (2, 3));
        let parts = [place(100, 4), place(120, 16), place(150, 0)];
        assert_eq!(gaps.between(place(100, 50)), parts);
        let parts = [place(100, 4), place(120, 16), place(150, 8)];
        assert_eq!(gaps.between(place(100, 58)), parts);
        assert_eq!(
            gaps.between(place(104, 46)),
            parts[1..2]
                .iter()
                .copied()
                .chain([place(150, 0)])
                .collect::<Vec<_>>()
        );
    }
}
