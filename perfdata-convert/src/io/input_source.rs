//! An opened input, for data that the model does not contain.

use std::io::{self, Read};

use perfdata_core::Recording;
use perfdata_core::container_layout::{ContainerLayout, Part};
use perfdata_core::header::FileSection;
use perfdata_core::read::{
    Chunk, Decompressor, Limits, RecordSource, Source, SourceReader, is_zero,
};
use perfdata_core::record::{RawRecord, RecordType};

use super::directory::Directory;
use super::filtered::{Filtered, RecordFilter};
use super::gaps::{Gaps, Sparse};
use super::input::{BoxedSource, Input, OpenInput};
use super::reader::{Meter, Watch};
use super::skim::{Extent, Skim};
use crate::error::{Error, Result};

/// How reading all records of an input ended.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ReadToEnd {
    /// Type of the first compressed record.
    pub compressed: Option<RecordType>,
    /// Number of bytes that are not records.
    pub unreadable: u64,
    /// Number of decompressed bytes that are not a complete record.
    pub pending: u64,
}

/// Passes records on, and those inside of compressed ones.
struct Opening {
    limits: Limits,
    decompressor: Option<Decompressor>,
    compressed: Option<RecordType>,
}

impl Opening {
    fn new(limits: Limits) -> Self {
        Opening {
            limits,
            decompressor: None,
            compressed: None,
        }
    }

    /// Calls `see` with a record, or with the records inside of it.
    fn pass(
        &mut self,
        raw: &RawRecord<'_>,
        now: &Recording,
        mut see: impl FnMut(&RawRecord<'_>, &Recording) -> Result<()>,
    ) -> Result<()> {
        if !raw.kind.is_compressed() {
            return see(raw, now);
        }
        self.compressed.get_or_insert(raw.kind);
        let inner = match &mut self.decompressor {
            Some(inner) => inner,
            none => none.insert(Decompressor::of(now, self.limits)?),
        };
        inner.push(raw)?;
        while let Some(raw) = inner.next()? {
            see(&raw, now)?;
        }
        Ok(())
    }

    /// Returns how reading ended, after `unreadable` bytes that are not records.
    fn ending(self, unreadable: u64) -> ReadToEnd {
        ReadToEnd {
            compressed: self.compressed,
            unreadable,
            pending: self.decompressor.map_or(0, |inner| inner.pending() as u64),
        }
    }
}

/// Calls `see` with every record that `reader` has not yet returned, also those inside compressed
/// records, and with the recording at that place.
///
/// # Errors
/// Those of `see`; or the input cannot be read or decompressed. A corrupt end is no error.
pub fn each_record(
    reader: &mut dyn RecordSource,
    mut see: impl FnMut(&RawRecord<'_>, &Recording) -> Result<()>,
) -> Result<ReadToEnd> {
    let mut opening = Opening::new(reader.limits());
    let mut unreadable = 0_u64;
    while let Some((chunk, now)) = reader.next_chunk()? {
        match chunk {
            Chunk::Records(batch) => {
                for raw in batch.iter() {
                    opening.pass(&raw, now, &mut see)?;
                }
            }
            Chunk::Payload(_) => {}
            Chunk::Unreadable(bytes) => {
                unreadable = unreadable.saturating_add(bytes.len() as u64);
            }
        }
    }
    Ok(opening.ending(unreadable))
}

/// Returns the recording as it is `now`, or `later` if its events are not known yet.
fn with_events<'a>(now: &'a Recording, later: &'a Recording) -> &'a Recording {
    if now.events.is_empty() { later } else { now }
}

/// The same input again, for data that the model does not contain.
pub struct InputSource {
    /// `None` for a stream.
    kind: Option<OpenInput>,
    limits: Limits,
    meter: Meter,
    /// Readers return only the records that all of these accept, one after the other.
    filters: Vec<RecordFilter>,
}

impl InputSource {
    pub(super) fn new(kind: Option<OpenInput>, limits: Limits, meter: Meter) -> Self {
        InputSource {
            kind,
            limits,
            meter,
            filters: Vec::new(),
        }
    }

    /// Returns the same input, whose readers return only the records that `filter` accepts. They
    /// decompress it.
    pub(crate) fn filtered(&self, filter: RecordFilter) -> InputSource {
        InputSource {
            kind: self.kind.as_ref().and_then(OpenInput::again),
            limits: self.limits,
            meter: self.meter.clone(),
            filters: self.filters.iter().cloned().chain([filter]).collect(),
        }
    }

    /// Opens the input again, in the same way; `None` for a stream.
    ///
    /// # Errors
    /// As [`Input::reader`].
    pub fn reopen(&self) -> Result<Option<BoxedSource>> {
        let Some(kind) = self.kind.as_ref().and_then(OpenInput::again) else {
            return Ok(None);
        };
        let input = Input::metered(kind, self.meter.clone(), self.limits);
        let (reader, _) = input.reader()?;
        let filtered = |reader, filter| Box::new(Filtered::new(reader, filter)) as BoxedSource;
        Ok(Some(self.filters.iter().fold(reader, filtered)))
    }

    /// Returns the limits on what the input may request from its readers: also from a stage that
    /// decompresses its records or holds data of them in memory.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Calls `see` with every record of the input, also those inside compressed records, and with
    /// the recording at that place. `recording` contains the events if they are not at the start of
    /// the stream. Returns false if the input cannot be read twice.
    ///
    /// # Errors
    /// Those of `see`; or the input cannot be read or decompressed. A corrupt end is no error.
    pub fn each_record(
        &self,
        recording: &Recording,
        mut see: impl FnMut(&RawRecord<'_>, &Recording) -> Result<()>,
    ) -> Result<bool> {
        let Some(mut reader) = self.reopen()? else {
            return Ok(false);
        };
        each_record(&mut *reader, |raw, now| {
            see(raw, with_events(now, recording))
        })?;
        Ok(true)
    }

    /// Calls `see` like [`each_record`](Self::each_record), with the records for whose types
    /// `wanted` is true. The contents of others are not read if the input is a file.
    ///
    /// # Errors
    /// Those of `see`; or the input cannot be read or decompressed. A corrupt end is no error.
    pub fn each_record_of(
        &self,
        recording: &Recording,
        wanted: impl Fn(RecordType) -> bool,
        see: impl FnMut(&RawRecord<'_>, &Recording) -> Result<()>,
    ) -> Result<bool> {
        self.each_extent_of(recording, |kind| Extent::whole_if(wanted(kind)), see)
    }

    /// Calls `see` like [`each_record_of`](Self::each_record_of), with records of which as much is
    /// in memory as `wanted` says.
    ///
    /// # Errors
    /// Those of `see`; or the input cannot be read or decompressed. A corrupt end is no error.
    pub fn each_extent_of(
        &self,
        recording: &Recording,
        wanted: impl Fn(RecordType) -> Extent,
        mut see: impl FnMut(&RawRecord<'_>, &Recording) -> Result<()>,
    ) -> Result<bool> {
        let Some(mut reader) = self.reopen()? else {
            return Ok(false);
        };
        self.read_extents_of(&mut *reader, wanted, |raw, now| {
            see(raw, with_events(now, recording))
        })?;
        Ok(true)
    }

    /// Calls `see` with the records of some types, like [`each_record_of`](Self::each_record_of).
    /// `reader` is one of this input that has returned none, and is not used any more if the
    /// contents of records can be skipped.
    ///
    /// # Errors
    /// Those of `see`; or the input cannot be read or decompressed. A corrupt end is no error.
    pub fn read_records_of(
        &self,
        reader: &mut dyn RecordSource,
        wanted: impl Fn(RecordType) -> bool,
        see: impl FnMut(&RawRecord<'_>, &Recording) -> Result<()>,
    ) -> Result<ReadToEnd> {
        self.read_extents_of(reader, |kind| Extent::whole_if(wanted(kind)), see)
    }

    fn read_extents_of(
        &self,
        reader: &mut dyn RecordSource,
        wanted: impl Fn(RecordType) -> Extent,
        mut see: impl FnMut(&RawRecord<'_>, &Recording) -> Result<()>,
    ) -> Result<ReadToEnd> {
        let mut see = |raw: &RawRecord<'_>, now: &Recording| match wanted(raw.kind) {
            Extent::Nothing => Ok(()),
            _ => see(raw, now),
        };
        let Some(mut skim) = self.skim(reader.container_layout(), reader.recording()) else {
            return each_record(reader, see);
        };
        let mut opening = Opening::new(reader.limits());
        let extent = |kind: RecordType| match kind.is_compressed() {
            true => Extent::Whole,
            false => wanted(kind),
        };
        while let Some(raw) = skim.next(extent)? {
            opening.pass(&raw, reader.recording(), &mut see)?;
        }
        Ok(opening.ending(skim.left()))
    }

    /// Returns a pass over the records that reads only some of them, if the input is one file in
    /// file mode, whose metadata is not between the records.
    fn skim(&self, layout: &ContainerLayout, recording: &Recording) -> Option<Skim<'_>> {
        let is_whole_file = match self.kind.as_ref()? {
            OpenInput::File(_) => true,
            OpenInput::Directory(directory) => !directory.is_split(),
            _ => false,
        };
        let ContainerLayout::File(layout) = layout else {
            return None;
        };
        if !is_whole_file || !self.filters.is_empty() {
            return None;
        }
        let place = layout.place(Part::Data)?;
        let watch = self.meter.watch.as_deref().map(|watch| watch as &dyn Watch);
        Some(Skim::new(self.file()?, place, recording.endian, watch))
    }

    /// Returns the place of the records of a single file in file mode, of which parts can be
    /// skipped. `layout` is the file's.
    pub fn place_of_records(&self, layout: &ContainerLayout) -> Option<FileSection> {
        match (&self.kind, layout) {
            (Some(OpenInput::File(_)), ContainerLayout::File(layout))
                if self.filters.is_empty() =>
            {
                layout.place(Part::Data)
            }
            _ => None,
        }
    }

    /// Returns a reader of the records outside of `gaps`, which must be in a
    /// [place of records](Self::place_of_records). `whole` is a reader of all records that has not
    /// returned any.
    pub(crate) fn without(&self, whole: BoxedSource, gaps: &Gaps) -> BoxedSource {
        let place = self.place_of_records(whole.container_layout());
        match (&self.kind, place) {
            (Some(OpenInput::File(file)), Some(place)) => {
                let meter = self.meter.clone();
                Box::new(Sparse::new(whole, file.clone(), place, meter, gaps))
            }
            _ => whole,
        }
    }

    /// Returns whether the input consists of several recordings, which are merged.
    pub(crate) fn is_merged(&self) -> bool {
        matches!(self.kind, Some(OpenInput::Combined(_)))
    }

    /// Returns whether the input is the readable part of a damaged recording.
    pub(crate) fn is_damaged(&self) -> bool {
        matches!(
            self.kind,
            Some(OpenInput::Damaged(..) | OpenInput::DamagedDirectory(..))
        )
    }

    /// Returns the directory, if the input is one.
    pub fn directory(&self) -> Option<&Directory> {
        match &self.kind {
            Some(OpenInput::Directory(directory) | OpenInput::DamagedDirectory(directory, _)) => {
                Some(directory)
            }
            _ => None,
        }
    }

    /// Returns the file with the bytes that are not records; `None` for a stream and for several
    /// recordings.
    fn file(&self) -> Option<&dyn Source> {
        match self.kind.as_ref()? {
            OpenInput::File(file) | OpenInput::Damaged(file, _) | OpenInput::Beside(file, _) => {
                Some(&**file)
            }
            OpenInput::Directory(directory) | OpenInput::DamagedDirectory(directory, _) => {
                Some(&**directory.data())
            }
            OpenInput::Stream(_) | OpenInput::Combined(_) | OpenInput::Records(_) => None,
        }
    }

    /// Returns the bytes at `place`, as far as they exist.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn bytes(&self, place: FileSection) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut reader = SourceReader::new(self as &dyn Source, place);
        reader.read_to_end(&mut bytes).map_err(Error::io("input"))?;
        Ok(bytes)
    }
}

/// Number of bytes of a gap that are checked at once.
const BLOCK: usize = 1 << 20;

impl InputSource {
    /// Returns whether all bytes at `place` are zeros, regardless of their number.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn is_zero(&self, place: FileSection) -> Result<bool> {
        let mut reader = SourceReader::new(self as &dyn Source, place);
        let mut block = vec![0; usize::try_from(place.size).unwrap_or(BLOCK).min(BLOCK)];
        loop {
            match reader.read(&mut block).map_err(Error::io("input"))? {
                0 => return Ok(true),
                got if !block.get(..got).is_some_and(is_zero) => return Ok(false),
                _ => {}
            }
        }
    }
}

impl Source for InputSource {
    fn len(&self) -> io::Result<u64> {
        self.file().map_or(Ok(0), |file| file.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file().map_or(Ok(0), |file| file.read_at(buf, offset))
    }
}
