//! Replaces compressed records by the records in them.

use perfdata_core::container_layout::{ContainerLayout, Part, Slot, SlotContent};
use perfdata_core::feature::FeatureId;
use perfdata_core::read::{Decompressor, Tail};
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::{Endian, Recording};

use crate::count::number_of;
use crate::error::{Error, Result, Step};
use crate::leftover::damaged;
use crate::pipeline::{CompressedRecords, Link, Requirements, Stage};

/// Replaces each part of the zstd stream by its records, and drops the COMPRESSED feature.
#[derive(Debug, Default)]
pub struct Decompress {
    stream: Option<Decompressor>,
    /// Whether the loss at the end of the stream is already known.
    is_judged: bool,
    /// Offset of the last compressed record.
    last: u64,
}

impl Decompress {
    /// Returns a stage for a stream whose end was already checked. An incomplete record at the end
    /// is dropped.
    pub(crate) fn judged() -> Self {
        Decompress {
            is_judged: true,
            ..Decompress::default()
        }
    }
}

impl Stage for Decompress {
    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::AsTheyAre
    }

    fn requirements(&self) -> Requirements {
        Requirements::none()
    }

    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        forget_compression(recording, container_layout)
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if is_section(record) {
            return Ok(());
        }
        if !record.kind.is_compressed() {
            return next.record(record);
        }
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(Decompressor::of(next.recording(), next.limits())?),
        };
        self.last = record.offset;
        stream.push(record)?;
        while let Some(inner) = stream.next()? {
            next.record(&inner)?;
        }
        Ok(())
    }

    fn finish(&mut self, recording: &mut Recording, _: &mut Link<'_>) -> Result<()> {
        match self.stream.as_ref().filter(|_| !self.is_judged) {
            Some(stream) => check_end(stream, self.last, recording),
            None => Ok(()),
        }
    }

    fn notes(&self) -> Vec<String> {
        match self.stream.as_ref().map_or(0, Decompressor::pending) {
            0 => Vec::new(),
            rest => vec![format!(
                "the compressed data ends inside a record: dropped its first {}",
                number_of(rest as u64, "byte")
            )],
        }
    }
}

/// Removes the compression from the model: the records will not be compressed.
///
/// # Errors
/// The header of the file could not contain the size of the new records.
pub(crate) fn forget_compression(
    recording: &mut Recording,
    container_layout: &mut ContainerLayout,
) -> Result<()> {
    check_sized(container_layout, SIZE_UNKNOWN)?;
    recording.features.remove(&FeatureId::COMPRESSED);
    if let ContainerLayout::Pipe(head) = container_layout {
        let endian = recording.endian;
        head.slots.retain(|slot| !is_section_slot(slot, endian));
    }
    Ok(())
}

/// Refuses compressed data if records would be lost at its end; `last` is the offset of the last
/// compressed record.
pub(crate) fn check_end(stream: &Decompressor, last: u64, recording: &Recording) -> Result<()> {
    match stream.tail(recording) {
        None | Some(Tail::Cut | Tail::Text | Tail::Zeros) => Ok(()),
        Some(_) => {
            let rest = stream.pending();
            Err(damaged(
                last,
                format_args!("the last {rest} bytes of the compressed data are not records"),
            ))
        }
    }
}

/// The size of the data section in the header of an unfinished recording: readers then read up to
/// the end of the file.
const SIZE_UNKNOWN: u64 = 0;

/// Refuses a file whose header contains neither the size of its records nor `other`: it could not
/// contain the new size.
fn check_sized(container_layout: &ContainerLayout, other: u64) -> Result<()> {
    let ContainerLayout::File(file) = container_layout else {
        return Ok(());
    };
    let said = file.header.data.size;
    if said == other || file.place(Part::Data).is_none_or(|data| data.size == said) {
        return Ok(());
    }
    let what =
        "the recording is unfinished or truncated: recover it before compressing or decompressing";
    Err(Error::Refused(what.into()).with_step(Step::Recover))
}

/// Refuses a file whose header does not contain the size of its records: its features would have no
/// known position.
pub(crate) fn check_finished(container_layout: &ContainerLayout) -> Result<()> {
    check_sized(container_layout, u64::MAX)
}

/// Returns whether the record contains the COMPRESSED feature.
pub(crate) fn is_section(record: &RawRecord<'_>) -> bool {
    record.feature() == Some(FeatureId::COMPRESSED)
}

/// Returns whether `slot` contains the COMPRESSED feature, even if a later one overwrites it.
fn is_section_slot(slot: &Slot, endian: Endian) -> bool {
    match &slot.content {
        SlotContent::Feature(id) => *id == FeatureId::COMPRESSED,
        SlotContent::Verbatim(bytes) => {
            RawRecord::first(bytes, endian, 0).is_ok_and(|record| is_section(&record))
        }
        _ => false,
    }
}
