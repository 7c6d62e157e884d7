//! Plain records become compressed ones, as `perf record -z` writes them.

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{Compression, CompressionType, Feature, FeatureId};
use perfdata_core::record::{RawRecord, RecordType, TABLE};
use perfdata_core::{Recording, Version};
use perfdata_write::ParallelCompressor;

use super::decompress::check_finished;
use super::{CompressedRecords, Link, Requirements, Stage};
use crate::error::Result;

/// Compresses what `perf record -z` compresses: records of the kernel's ring buffers, in blocks of up to a buffer's
/// size. What perf makes up itself stays plain: the records before FINISHED_INIT, or the first sample in recordings
/// of perf before 6.0, and all records of the tool. Compressed records must have been opened before.
#[derive(Debug)]
pub struct Compress {
    kind: RecordType,
    level: i32,
    zstd: Option<ParallelCompressor>,
    /// Whether the records of the ring buffers have begun.
    begun: bool,
}

/// Bytes of plain records in a block at most, and what the COMPRESSED feature tells a reader of them: the size of
/// perf's usual ring buffer of 512 KiB with its header page.
const MMAP_LEN: u32 = 516 << 10;

impl Compress {
    /// The levels of zstd.
    pub const LEVELS: std::ops::RangeInclusive<i64> = 1..=22;

    /// The newest kind of compressed record that perf `version` reads; 5.2 is the first that reads one.
    pub fn kind_for(version: Version) -> Option<RecordType> {
        TABLE.iter().rev().find(|info| info.kind.is_compressed() && version.has(info.since)).map(|info| info.kind)
    }

    /// A stage that writes records of `kind` (COMPRESSED2, or COMPRESSED, which perf before 6.15 takes) at zstd's
    /// `level`.
    pub fn new(kind: RecordType, level: i32) -> Self {
        Compress { kind, level, zstd: None, begun: false }
    }

    /// Hands on all that is still being compressed.
    fn flush(&mut self, next: &mut Link<'_>) -> Result<()> {
        match &mut self.zstd {
            Some(zstd) => zstd.flush(|record| next.record(record)),
            None => Ok(()),
        }
    }

    fn set_feature(&self, recording: &mut Recording, ratio: u32) -> Result<()> {
        let level = u32::try_from(self.level).unwrap_or(0);
        let params = Compression { version: 0, kind: CompressionType::ZSTD, level, ratio, mmap_len: MMAP_LEN };
        Ok(recording.set_feature(FeatureId::COMPRESSED, Feature::Compressed(params))?)
    }

    fn is_compressible(&mut self, kind: RecordType) -> bool {
        self.begun |= matches!(kind, RecordType::FINISHED_INIT | RecordType::SAMPLE);
        self.begun && kind.is_kernel()
    }
}

impl Stage for Compress {
    /// Compressed records come here from nobody: they would be compressed twice.
    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::Plain
    }

    /// All records, for the ratio in the feature.
    fn requirements(&self) -> Requirements {
        Requirements { after_container: true, all_records: true, ..Requirements::none() }
    }

    /// In a pipe the ratio stays 0, as perf leaves it: the feature is sent before the first record.
    fn begin(&mut self, recording: &mut Recording, container_layout: &mut ContainerLayout) -> Result<()> {
        check_finished(container_layout)?;
        self.zstd = Some(ParallelCompressor::new(self.kind, recording.endian, self.level, MMAP_LEN as usize)?);
        self.set_feature(recording, 0)
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let compress = self.is_compressible(record.kind);
        match &mut self.zstd {
            Some(zstd) => zstd.record(record, compress, |record| next.record(record)),
            None => next.record(record),
        }
    }

    /// What follows a record stays with it.
    fn payload(&mut self, bytes: &[u8], next: &mut Link<'_>) -> Result<()> {
        self.flush(next)?;
        next.payload(bytes)
    }

    fn unreadable(&mut self, bytes: &[u8], next: &mut Link<'_>) -> Result<()> {
        self.flush(next)?;
        next.unreadable(bytes)
    }

    fn finish(&mut self, recording: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        self.flush(next)?;
        let ratio = self.zstd.as_ref().map_or(0, ParallelCompressor::ratio);
        self.set_feature(recording, ratio)
    }
}
