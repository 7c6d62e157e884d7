//! Compressed records become the records in them.

use perfdata_core::container_layout::{ContainerLayout, Part, Slot, SlotContent};
use perfdata_core::feature::FeatureId;
use perfdata_core::read::{Decompressor, Tail, is_compressed};
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::{Endian, Recording};

use super::{CompressedRecords, Link, Requirements, Stage};
use crate::error::{Error, Result, Step};
use crate::leftover::damaged;

/// Puts the records of the zstd stream where its pieces stood, and drops the COMPRESSED feature.
#[derive(Debug, Default)]
pub struct Decompress {
    stream: Option<Decompressor>,
    /// Whether it is known what is lost at the end of the stream.
    is_judged: bool,
    /// Offset of the last compressed record.
    last: u64,
}

impl Decompress {
    /// A stage for a stream whose end has been looked at: what is no whole record there is left out.
    pub(super) fn judged() -> Self {
        Decompress { is_judged: true, ..Decompress::default() }
    }
}

impl Stage for Decompress {
    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::AsTheyAre
    }

    fn requirements(&self) -> Requirements {
        Requirements::none()
    }

    fn begin(&mut self, recording: &mut Recording, container_layout: &mut ContainerLayout) -> Result<()> {
        self.stream = Some(Decompressor::of(recording)?);
        forget_compression(recording, container_layout)
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if is_section(record) {
            return Ok(());
        }
        let Some(stream) = self.stream.as_mut().filter(|_| is_compressed(record.kind)) else {
            return next.record(record);
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
            rest => vec![format!("the compressed data ends inside a record: its first {rest} bytes are left out")],
        }
    }
}

/// Takes out of the model how the records are compressed: they will not be.
///
/// # Errors
/// A file whose header could not say how large other records are.
pub(super) fn forget_compression(recording: &mut Recording, container_layout: &mut ContainerLayout) -> Result<()> {
    check_sized(container_layout, SIZE_UNKNOWN)?;
    recording.features.remove(&FeatureId::COMPRESSED.0);
    if let ContainerLayout::Pipe(head) = container_layout {
        let endian = recording.endian;
        head.slots.retain(|slot| !is_section_slot(slot, endian));
    }
    Ok(())
}

/// Refuses compressed data at whose end records would be lost; `last` is the offset of the last compressed record.
pub(super) fn check_end(stream: &Decompressor, last: u64, recording: &Recording) -> Result<()> {
    match stream.tail(recording) {
        Some(Tail::Damage) => {
            let rest = stream.pending();
            Err(damaged(last, format_args!("{rest} bytes at the end of the compressed data are no records")))
        }
        _ => Ok(()),
    }
}

/// The size that a header gives the records of a recording that was never finished: readers take what there is.
const SIZE_UNKNOWN: u64 = 0;

/// Refuses a file whose header has neither the size of its records nor `other`: it could not say it of others.
fn check_sized(container_layout: &ContainerLayout, other: u64) -> Result<()> {
    let ContainerLayout::File(file) = container_layout else { return Ok(()) };
    let said = file.header.data.size;
    if said == other || file.place(Part::Data).is_none_or(|data| data.size == said) {
        return Ok(());
    }
    let what = "the recording was never finished, or is cut, so nothing in it can be compressed or decompressed";
    Err(Error::Refused(what.into()).with_step(Step::Recover))
}

/// Refuses a file whose header does not say how large its records are: it has no place for features.
pub(super) fn check_finished(container_layout: &ContainerLayout) -> Result<()> {
    check_sized(container_layout, u64::MAX)
}

/// Whether the record carries the COMPRESSED feature.
pub(super) fn is_section(record: &RawRecord<'_>) -> bool {
    record.feature() == Some(FeatureId::COMPRESSED)
}

/// Whether `slot` holds the COMPRESSED feature, be it one that a later one made void.
fn is_section_slot(slot: &Slot, endian: Endian) -> bool {
    match &slot.content {
        SlotContent::Feature(id) => *id == FeatureId::COMPRESSED.0,
        SlotContent::Verbatim(bytes) => RawRecord::first(bytes, endian, 0).is_ok_and(|record| is_section(&record)),
        _ => false,
    }
}
