//! Compressed records that are decompressed before a stage, and compressed again after it.

use perfdata_core::feature::{Compression, Feature, FeatureId, Section};
use perfdata_core::read::{Chunk, Decompressor, Limits};
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::{Endian, Recording};
use perfdata_write::Compressor;

use super::{Chain, Sink};
use crate::error::Result;

/// The compression parameters of a recording.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameters {
    pub(super) limits: Limits,
    pub(super) endian: Endian,
    pub(super) level: i32,
    /// Maximum decompressed size of one compressed record for readers.
    pub(super) mmap_len: Option<usize>,
}

/// A compressed stream that is being decompressed.
pub(super) struct Opened {
    pub(super) decompressor: Decompressor,
    /// Offset of the last compressed record.
    pub(super) last: u64,
    pub(super) again: Again,
}

/// The new compressed stream, and the next uncompressed data for it.
#[derive(Default)]
pub(super) struct Again {
    pub(super) compressor: Option<Compressor>,
    pub(super) plain: Vec<u8>,
}

impl Parameters {
    pub(super) fn of(recording: &Recording, limits: Limits) -> Self {
        let found = compression(recording);
        let level = found
            .as_ref()
            .and_then(|found| i32::try_from(found.level).ok())
            .unwrap_or(1);
        let mmap_len = found
            .and_then(|found| usize::try_from(found.mmap_len).ok())
            .filter(|&len| len > 0);
        Parameters {
            limits: Decompressor::limits_of(recording, limits),
            endian: recording.endian,
            level,
            mmap_len,
        }
    }

    pub(super) fn open(&self) -> Result<Box<Opened>> {
        let decompressor = Decompressor::new(self.endian, self.limits)?;
        Ok(Box::new(Opened {
            decompressor,
            last: 0,
            again: Again::default(),
        }))
    }
}

/// Returns the content of the COMPRESSED feature.
pub(crate) fn compression(recording: &Recording) -> Option<Compression> {
    match recording.feature(FeatureId::COMPRESSED) {
        Some(Ok(Section {
            value: Feature::Compressed(params),
            ..
        })) => Some(params),
        _ => None,
    }
}

/// Collects the remaining records of a compressed record, and compresses them again.
pub(super) struct Recompress<'a> {
    pub(super) again: &'a mut Again,
    /// The parameters of the compression, and the type of the compressed records.
    pub(super) compression: Parameters,
    pub(super) kind: RecordType,
    pub(super) next: Chain<'a>,
}

impl Recompress<'_> {
    fn compressor(&mut self) -> Result<Compressor> {
        match self.again.compressor.take() {
            Some(compressor) => Ok(compressor),
            None => {
                let Parameters { endian, level, .. } = self.compression;
                Ok(Compressor::new(self.kind, endian, level)?)
            }
        }
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        if self.again.plain.is_empty() {
            return Ok(());
        }
        let mut compressor = self.compressor()?;
        let plain = std::mem::take(&mut self.again.plain);
        for block in plain.chunks(self.compression.mmap_len.unwrap_or(usize::MAX)) {
            compressor.push(block, |record| self.next.record(record))?;
        }
        self.again.compressor = Some(compressor);
        self.again.plain = plain;
        self.again.plain.clear();
        Ok(())
    }
}

impl Sink for Recompress<'_> {
    fn record(&mut self, record: &RawRecord<'_>) -> Result<()> {
        // Readers do not expect these in compressed data.
        if record.kind.is_compressed() || record.kind.has_payload() {
            self.flush()?;
            return self.next.record(record);
        }
        self.again.plain.extend_from_slice(record.bytes);
        Ok(())
    }

    fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        match chunk {
            Chunk::Records(batch) => batch.iter().try_for_each(|record| self.record(&record)),
            Chunk::Payload(_) => self.next.chunk(chunk),
            Chunk::Unreadable(bytes) => {
                self.again.plain.extend_from_slice(bytes);
                Ok(())
            }
        }
    }
}
