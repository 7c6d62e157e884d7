//! Writes recordings in file mode.

mod header;

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom, Write};

use perfdata_core::container_layout::{Part, Region};
use perfdata_core::feature::{AuxtraceIndexEntry, Feature, FeatureId};
use perfdata_core::header::FileSection;
use perfdata_core::read::{RecordBatch, Source, SourceReader, is_zero};
use perfdata_core::record::{EventTypeName, RawRecord, Record, RecordType};
use perfdata_core::wire::{Wire, encode_words};
use perfdata_core::{Endian, Recording};

use crate::RecordSink;
use crate::buffered::Buffered;
use crate::error::{Error, Result};
use crate::incoming::Incoming;
use crate::plan::FilePlan;

/// Number of bytes of a gap that are copied at once.
const BLOCK: usize = 256 << 10;

/// Writes a file. [`create`](FileWriter::create) or [`begin`](Self::begin) writes the parts before
/// the records, then come the records, and [`finish`](Self::finish) writes the rest.
pub struct FileWriter<'a, W: Write + Seek> {
    out: Buffered<W>,
    /// Offset of the next byte.
    here: u64,
    /// Whether `here` is after the position of the output. The bytes between them are a hole.
    is_ahead: bool,
    endian: Endian,
    incoming: Incoming,
    plan: FilePlan,
    /// Number of completed steps of the plan.
    done: usize,
    /// Offset and size of each part in the output.
    placed: HashMap<Part, FileSection>,
    gaps: &'a dyn Source,
    /// Offset and size of every AUXTRACE record, for the index.
    auxtrace: Vec<AuxtraceIndexEntry>,
    /// Whether one of them had a different offset in the input.
    auxtrace_moved: bool,
}

/// The gaps of a file that is not a copy.
static NO_GAPS: Vec<u8> = Vec::new();

impl<W: Write + Seek> FileWriter<'static, W> {
    /// Starts a new file, with the layout of [`FilePlan::standard`].
    ///
    /// # Errors
    /// As [`begin`](FileWriter::begin).
    pub fn create(out: W, recording: &Recording) -> Result<Self> {
        Self::begin(out, FilePlan::standard(), recording, &NO_GAPS)
    }
}

impl<'a, W: Write + Seek> FileWriter<'a, W> {
    /// Starts a file with the layout in `plan`. Bytes in gaps are copied from `gaps`, the file that
    /// the plan was made from.
    ///
    /// # Errors
    /// The output cannot be written, or an attribute cannot be encoded.
    pub fn begin(
        out: W,
        plan: FilePlan,
        recording: &Recording,
        gaps: &'a dyn Source,
    ) -> Result<Self> {
        let mut writer = FileWriter {
            out: Buffered::new(out),
            here: 0,
            is_ahead: false,
            endian: recording.endian,
            incoming: Incoming::new(recording),
            plan,
            done: 0,
            placed: HashMap::new(),
            gaps,
            auxtrace: Vec::new(),
            auxtrace_moved: false,
        };
        if !writer.plan.pinned {
            writer.plan.settle_events(recording);
        }
        while let Some(step) = writer
            .plan
            .steps
            .get(writer.done)
            .copied()
            .filter(|step| step.part != Part::Data)
        {
            writer.step(step, recording)?;
        }
        if let Some(data) = writer.plan.steps.get(writer.done).copied() {
            writer.go_to(data)?;
        }
        writer.placed.insert(
            Part::Data,
            FileSection {
                offset: writer.here,
                size: 0,
            },
        );
        Ok(writer)
    }

    /// Writes a record of one of the events that were passed to [`begin`](Self::begin).
    ///
    /// # Errors
    /// A reader would not return the same record: see [`Record::encode_for`]. The output cannot be
    /// written.
    pub fn write(&mut self, record: &Record) -> Result<()> {
        let bytes = self.incoming.encode(record)?;
        self.record(&RawRecord::first(&bytes, self.endian, 0)?)
    }

    /// Returns the offset of the next byte of the file: after [`begin`](FileWriter::begin), that of
    /// the first record. Bytes before it may still be in memory.
    pub fn offset(&self) -> u64 {
        self.here
    }

    /// Completes the file: writes the parts after the records, and the header. `recording` must
    /// have the events that were passed to [`begin`](Self::begin), unless the plan puts them last.
    /// Its features may have changed since.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(mut self, recording: &Recording) -> Result<W> {
        let mut recording = std::borrow::Cow::Borrowed(recording);
        // A copy of a truncated stream remains truncated.
        if self.plan.found.is_none() {
            self.incoming.end()?;
        }
        let data = self.placed.get(&Part::Data).copied().unwrap_or_default();
        let data = FileSection {
            size: self.here.saturating_sub(data.offset),
            ..data
        };
        self.placed.insert(Part::Data, data);
        if let Some(step) = self
            .plan
            .steps
            .iter()
            .copied()
            .find(|step| step.part == Part::Data)
        {
            self.check_pinned(step, data.size)?;
        }
        if self.auxtrace_index_is_stale(&recording, data) {
            let index = std::mem::take(&mut self.auxtrace).into();
            recording
                .to_mut()
                .set_feature(FeatureId::AUXTRACE, Feature::AuxtraceIndex(index))?;
        }
        self.check_room(&recording)?;
        if !self.plan.pinned {
            self.plan.settle_features(&recording);
            if self.plan.has_events_last() {
                self.plan.settle_events(&recording);
            }
        }
        let data_step = self
            .plan
            .steps
            .iter()
            .position(|step| step.part == Part::Data);
        self.done = data_step.map_or(self.done, |at| at.saturating_add(1));
        while let Some(step) = self.plan.steps.get(self.done).copied() {
            self.step(step, &recording)?;
        }
        self.rewrite_places(&recording)?;
        self.out.into_inner().map_err(Error::io("file"))
    }

    /// Returns whether the AUXTRACE index must be written again. It contains offsets in the file,
    /// which are wrong if the records moved or changed. A stream had no index.
    fn auxtrace_index_is_stale(&self, recording: &Recording, data: FileSection) -> bool {
        match &self.plan.found {
            None => !self.auxtrace.is_empty(),
            Some(found) => {
                let moved = found.place(Part::Data).is_some_and(|place| place != data);
                (moved || self.auxtrace_moved)
                    && recording.features.contains_key(&FeatureId::AUXTRACE)
            }
        }
    }

    fn step(&mut self, step: Region, recording: &Recording) -> Result<()> {
        self.done = self.done.saturating_add(1);
        self.go_to(step)?;
        let start = self.here;
        match step.part {
            Part::Gap => self.copy_gap(step.place)?,
            // The contents are known only at the end. This reserves the space.
            Part::Header => {
                let bytes = self.plan.header(recording).encode(self.endian)?;
                self.put("file header", &bytes)?;
            }
            Part::FeatureTable => {
                let entries = recording
                    .features
                    .len()
                    .saturating_add(self.plan.lost_entries(recording).count());
                self.put(
                    "feature table",
                    &vec![0; entries.saturating_mul(FileSection::SIZE as usize)],
                )?;
            }
            Part::Attrs => {
                let room = self.attr_room(recording)?.saturating_add(FileSection::SIZE);
                let room = usize::try_from(room)
                    .unwrap_or(usize::MAX)
                    .saturating_mul(recording.events.len());
                self.put("attributes", &vec![0; room])?;
            }
            Part::Ids(event) => {
                let ids = recording
                    .events
                    .get(event)
                    .map(|event| &event.ids[..])
                    .unwrap_or_default();
                self.put("event IDs", &encode_words(ids, self.endian))?;
            }
            Part::EventTypes => {
                let mut bytes = Vec::new();
                for name in &recording.event_types {
                    let end = bytes.len().saturating_add(EventTypeName::FILE_ENTRY);
                    name.encode_into(&mut bytes, self.endian)?;
                    bytes.resize(end, 0);
                }
                self.put("event types", &bytes)?;
            }
            Part::Feature(id) => {
                let bytes = recording
                    .features
                    .get(&id)
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                self.put("feature section", bytes)?;
            }
            Part::Data => {}
        }
        let size = self.here.saturating_sub(start);
        self.check_pinned(step, size)?;
        if step.part != Part::Gap {
            self.placed.insert(
                step.part,
                FileSection {
                    offset: start,
                    size,
                },
            );
        }
        Ok(())
    }

    /// Overwrites the parts that depend on the offsets of others: feature table, attributes,
    /// header.
    fn rewrite_places(&mut self, recording: &Recording) -> Result<()> {
        let table = self.table(recording);
        if let Some(place) = self.placed.get(&Part::FeatureTable).copied() {
            let mut bytes = Vec::new();
            table
                .iter()
                .try_for_each(|(_, section)| section.encode_into(&mut bytes, self.endian))?;
            self.rewrite("feature table", place, &bytes)?;
        }
        if let Some(place) = self.placed.get(&Part::Attrs).copied() {
            let bytes = self.attrs(recording)?;
            self.rewrite("attributes", place, &bytes)?;
        }
        let header = self.header(recording, &table)?.encode(self.endian)?;
        if let Some(place) = self.placed.get(&Part::Header).copied() {
            self.rewrite("file header", place, &header)?;
        }
        Ok(())
    }

    /// Returns an error if a part with a fixed offset changed its size.
    fn check_pinned(&self, step: Region, actual: u64) -> Result<()> {
        let Region {
            part,
            place: FileSection { size: planned, .. },
        } = step;
        if self.plan.pinned && part != Part::Gap && planned != actual {
            return Err(Error::Overlap {
                part,
                planned,
                actual,
            });
        }
        Ok(())
    }

    fn copy_gap(&mut self, place: FileSection) -> Result<()> {
        let mut reader = SourceReader::new(self.gaps, place);
        let mut block = vec![0; BLOCK.min(usize::try_from(place.size).unwrap_or(BLOCK))];
        let mut left = place.size;
        while left > 0 {
            let got = reader.read(&mut block).map_err(Error::io("gap"))?;
            let bytes = block.get(..got).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            left = left.saturating_sub(got as u64);
            // A hole in the input becomes a hole in the output, except at its end.
            if got == BLOCK && left >= BLOCK as u64 && is_zero(bytes) {
                self.here = self.here.saturating_add(got as u64);
                self.is_ahead = true;
            } else {
                self.put("gap", bytes)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn put(&mut self, what: &'static str, bytes: &[u8]) -> Result<()> {
        if std::mem::take(&mut self.is_ahead) {
            self.out
                .seek(SeekFrom::Start(self.here))
                .map_err(Error::io(what))?;
        }
        self.out.write_all(bytes).map_err(Error::io(what))?;
        self.here = self.here.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Seeks to the offset of the part if parts of the file overlap. Otherwise, each part follows
    /// the previous one.
    fn go_to(&mut self, step: Region) -> Result<()> {
        if self.plan.pinned {
            self.here = self
                .out
                .seek(SeekFrom::Start(step.place.offset))
                .map_err(Error::io("file"))?;
        }
        Ok(())
    }

    fn rewrite(&mut self, what: &'static str, place: FileSection, bytes: &[u8]) -> Result<()> {
        self.out
            .seek(SeekFrom::Start(place.offset))
            .map_err(Error::io(what))?;
        let room = usize::try_from(place.size)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        self.out
            .write_all(bytes.get(..room).unwrap_or(bytes))
            .map_err(Error::io(what))
    }
}

impl<W: Write + Seek> RecordSink for FileWriter<'_, W> {
    #[inline]
    fn record(&mut self, record: &RawRecord<'_>) -> Result<()> {
        self.incoming.record(record)?;
        if record.kind == RecordType::AUXTRACE {
            let size = record.bytes.len() as u64;
            // A new record has no offset in the input.
            self.auxtrace_moved |= record.offset != 0 && record.offset != self.here;
            self.auxtrace.push(AuxtraceIndexEntry {
                file_offset: self.here,
                size,
            });
        }
        self.put("record", record.bytes)
    }

    fn records(&mut self, batch: &RecordBatch<'_>) -> Result<()> {
        match batch.iter().next() {
            // A record with a payload is in a separate batch.
            Some(record) if batch.len() == 1 => self.record(&record),
            _ => {
                self.incoming.records(batch.endian())?;
                self.put("records", batch.bytes())
            }
        }
    }

    fn payload(&mut self, bytes: &[u8]) -> Result<()> {
        self.incoming.payload(bytes)?;
        self.put("payload", bytes)
    }

    fn unreadable(&mut self, bytes: &[u8]) -> Result<()> {
        self.incoming.cut();
        self.put("unreadable bytes", bytes)
    }
}
