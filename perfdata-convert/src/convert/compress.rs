//! Plain records become compressed ones, as `perf record -z` writes them.

use perfdata_core::Recording;
use perfdata_core::arrangement::Arrangement;
use perfdata_core::feature::{Compression, CompressionType, Feature, FeatureId};
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_write::Compressor;

use super::decompress::check_finished;
use super::{Link, Stage};
use crate::error::Result;

/// Compresses what `perf record -z` compresses: records of the kernel's ring buffers, in blocks of up to a buffer's
/// size. What perf makes up itself stays plain: the records before FINISHED_INIT, or the first sample in recordings
/// of perf before 6.0, and all records of the tool. Compressed records must have been opened before.
#[derive(Debug)]
pub struct Compress {
    kind: RecordType,
    level: i32,
    zstd: Option<Compressor>,
    /// Whether the records of the ring buffers have begun.
    begun: bool,
    /// Plain records that will be compressed together.
    block: Vec<u8>,
}

/// Bytes of plain records in a block at most, and what the COMPRESSED feature tells a reader of them: the size of
/// perf's usual ring buffer of 512 KiB with its header page.
const MMAP_LEN: u32 = 516 << 10;

impl Compress {
    /// The levels of zstd.
    pub const LEVELS: std::ops::RangeInclusive<i64> = 1..=22;

    /// A stage that writes records of `kind` (COMPRESSED2, or COMPRESSED, which perf before 6.15 takes) at zstd's
    /// `level`.
    pub fn new(kind: RecordType, level: i32) -> Self {
        Compress { kind, level, zstd: None, begun: false, block: Vec::new() }
    }

    /// Writes the block.
    fn flush(&mut self, next: &mut Link<'_>) -> Result<()> {
        if let Some(zstd) = self.zstd.as_mut().filter(|_| !self.block.is_empty()) {
            zstd.push(&self.block, |record| next.record(record))?;
            self.block.clear();
        }
        Ok(())
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
    fn is_behind_container(&self) -> bool {
        true
    }

    /// For the ratio in the feature.
    fn needs_all_records(&self) -> bool {
        true
    }

    /// In a pipe the ratio stays 0, as perf leaves it: the feature is sent before the first record.
    fn begin(&mut self, recording: &mut Recording, arrangement: &mut Arrangement) -> Result<()> {
        check_finished(arrangement)?;
        self.zstd = Some(Compressor::new(self.kind, recording.endian, self.level)?);
        self.set_feature(recording, 0)
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if !self.is_compressible(record.kind) {
            self.flush(next)?;
            return next.record(record);
        }
        if self.block.len() + record.bytes.len() > MMAP_LEN as usize {
            self.flush(next)?;
        }
        self.block.extend_from_slice(record.bytes);
        Ok(())
    }

    fn unreadable(&mut self, bytes: &[u8], next: &mut Link<'_>) -> Result<()> {
        self.flush(next)?;
        next.unreadable(bytes)
    }

    fn finish(&mut self, recording: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        self.flush(next)?;
        let ratio = self.zstd.as_ref().map_or(0, Compressor::ratio);
        self.set_feature(recording, ratio)
    }
}
