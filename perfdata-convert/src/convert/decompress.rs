//! Compressed records become the records in them.

use perfdata_core::arrangement::{Arrangement, Part, Slot, SlotContent};
use perfdata_core::feature::FeatureId;
use perfdata_core::read::{Decompressor, is_compressed};
use perfdata_core::record::{RawRecord, RecordHeader, RecordType};
use perfdata_core::{Endian, Recording};

use super::{Link, Stage};
use crate::error::{Error, Result, Step};

/// Puts the records of the zstd stream where its pieces stood, and drops the COMPRESSED feature.
#[derive(Debug, Default)]
pub struct Decompress {
    stream: Option<Decompressor>,
}

impl Stage for Decompress {
    fn begin(&mut self, recording: &mut Recording, arrangement: &mut Arrangement) -> Result<()> {
        check_sized(arrangement, SIZE_UNKNOWN)?;
        self.stream = Some(Decompressor::of(recording)?);
        recording.features.remove(&FeatureId::COMPRESSED.0);
        if let Arrangement::Pipe(head) = arrangement {
            let endian = recording.endian;
            head.slots.retain(|slot| !is_section_slot(slot, endian));
        }
        Ok(())
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if is_section(record) {
            return Ok(());
        }
        let Some(stream) = self.stream.as_mut().filter(|_| is_compressed(record.kind)) else {
            return next.record(record);
        };
        stream.push(record)?;
        while let Some(inner) = stream.next()? {
            next.record(&inner)?;
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        match self.stream.as_ref().map_or(0, Decompressor::pending) {
            0 => Vec::new(),
            rest => vec![format!("the compressed data ends inside a record: its first {rest} bytes are left out")],
        }
    }
}

/// The size that a header gives the records of a recording that was never finished: readers take what there is.
const SIZE_UNKNOWN: u64 = 0;

/// Refuses a file whose header has neither the size of its records nor `other`: it could not say it of others.
fn check_sized(arrangement: &Arrangement, other: u64) -> Result<()> {
    let Arrangement::File(file) = arrangement else { return Ok(()) };
    let said = file.header.data.size;
    if said == other || file.place(Part::Data).is_none_or(|data| data.size == said) {
        return Ok(());
    }
    let what = "the recording was never finished, or is cut, so nothing in it can be compressed or decompressed";
    Err(Error::Refused(what.into()).with_step(Step::Recover))
}

/// Refuses a file whose header does not say how large its records are: it has no place for features.
pub(super) fn check_finished(arrangement: &Arrangement) -> Result<()> {
    check_sized(arrangement, u64::MAX)
}

/// Whether the record carries the COMPRESSED feature.
fn is_section(record: &RawRecord<'_>) -> bool {
    record.kind == RecordType::HEADER_FEATURE
        && record.word(RecordHeader::SIZE) == Some(u64::from(FeatureId::COMPRESSED.0))
}

/// Whether `slot` holds the COMPRESSED feature, be it one that a later one made void.
fn is_section_slot(slot: &Slot, endian: Endian) -> bool {
    match &slot.content {
        SlotContent::Feature(id) => *id == FeatureId::COMPRESSED.0,
        SlotContent::Verbatim(bytes) => RawRecord::first(bytes, endian, 0).is_ok_and(|record| is_section(&record)),
        _ => false,
    }
}
