//! Compresses records, like `perf record -z`.

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{Compression, CompressionType, Feature, FeatureId};
use perfdata_core::read::{Chunk, Limits};
use perfdata_core::record::{RawRecord, RecordType, TABLE};
use perfdata_core::{Recording, Version};
use perfdata_write::ParallelCompressor;

use super::decompress::check_finished;
use crate::error::Result;
use crate::pipeline::{CompressedRecords, Link, Requirements, Stage, compression, each_part};

/// Compresses the same records as `perf record -z`: those of the kernel's ring buffers, in blocks
/// of up to the size of a buffer. Synthesized records remain uncompressed: the records before
/// FINISHED_INIT (before the first sample, in recordings of perf before 6.0), and all records of
/// the tool. Compressed records must have been decompressed before this stage.
#[derive(Debug)]
pub struct Compress {
    kind: RecordType,
    /// `None` for the level of the input.
    level: Option<i32>,
    threads: usize,
    zstd: Option<ParallelCompressor>,
    /// Whether the records of the ring buffers have started.
    begun: bool,
}

/// Maximum size of the records in a block in bytes, also for readers in the COMPRESSED feature: the
/// size of perf's default ring buffer, 512 KiB, with its header page.
const MMAP_LEN: u32 = 516 << 10;

impl Compress {
    /// The compression levels of zstd.
    pub const LEVELS: std::ops::RangeInclusive<i64> = 1..=22;

    /// Returns the newest type of compressed record that perf `version` can read. Perf 5.2 is the
    /// first version that reads one.
    pub fn kind_for(version: Version) -> Option<RecordType> {
        TABLE
            .iter()
            .rev()
            .find(|info| info.kind.is_compressed() && version.has(info.since))
            .map(|info| info.kind)
    }

    /// Returns a stage that writes records of `kind` (COMPRESSED2, or COMPRESSED for perf before
    /// 6.15) at zstd's `level`.
    pub fn new(kind: RecordType, level: i32) -> Self {
        Compress {
            kind,
            level: Some(level),
            threads: Limits::default().threads(),
            zstd: None,
            begun: false,
        }
    }

    /// Returns a stage that compresses records at the level in the COMPRESSED feature. Without this
    /// feature, it changes nothing.
    pub(crate) fn again(kind: RecordType) -> Self {
        Compress {
            kind,
            level: None,
            threads: Limits::default().threads(),
            zstd: None,
            begun: false,
        }
    }

    /// Returns the stage with this number of threads. With 1, the calling thread compresses. The
    /// output does not depend on it. The default is the number of CPUs.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Compress { threads, ..self }
    }

    /// Forwards all records that are still being compressed.
    fn flush(&mut self, next: &mut Link<'_>) -> Result<()> {
        match &mut self.zstd {
            Some(zstd) => zstd.flush(|record| next.record(record)),
            None => Ok(()),
        }
    }

    fn set_feature(&self, recording: &mut Recording, ratio: u32) -> Result<()> {
        let level = self.level.unwrap_or_default();
        let level = u32::try_from(level).unwrap_or(0);
        let params = Compression {
            version: 0,
            kind: CompressionType::ZSTD,
            level,
            ratio,
            mmap_len: MMAP_LEN,
        };
        Ok(recording.set_feature(FeatureId::COMPRESSED, Feature::Compressed(params))?)
    }

    fn is_compressible(&mut self, kind: RecordType) -> bool {
        self.begun |= matches!(kind, RecordType::FINISHED_INIT | RecordType::SAMPLE);
        self.begun && kind.is_kernel()
    }
}

/// Returns the level in the COMPRESSED feature.
fn level_in(recording: &Recording) -> Option<i32> {
    let found = compression(recording)?;
    Some(i32::try_from(found.level).unwrap_or(1))
}

impl Stage for Compress {
    /// Compressed records must not arrive here: they would be compressed twice.
    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::Plain
    }

    /// Requires all records, for the ratio in the feature.
    fn requirements(&self) -> Requirements {
        Requirements {
            after_container: true,
            all_records: true,
            ..Requirements::none()
        }
    }

    /// In a pipe, the ratio remains 0, as in perf: the feature precedes the first record.
    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        let Some(level) = self.level.or_else(|| level_in(recording)) else {
            return Ok(());
        };
        self.level = Some(level);
        check_finished(container_layout)?;
        let zstd = ParallelCompressor::new(self.kind, recording.endian, level, MMAP_LEN as usize)?;
        self.zstd = Some(match self.threads {
            1 => zstd.with_threads(0),
            threads => zstd.with_at_most(threads),
        });
        self.set_feature(recording, 0)
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let compress = self.is_compressible(record.kind);
        match &mut self.zstd {
            Some(zstd) => zstd.record(record, compress, |record| next.record(record)),
            None => next.record(record),
        }
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, next: &mut Link<'_>) -> Result<()> {
        match chunk {
            Chunk::Records(batch) => each_part(self, batch, next),
            // The payload of a record must follow it directly.
            Chunk::Payload(_) | Chunk::Unreadable(_) => {
                self.flush(next)?;
                next.chunk(chunk)
            }
        }
    }

    fn finish(&mut self, recording: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        self.flush(next)?;
        // A later stage may have removed the feature, such as one that decompresses.
        let has_feature = recording.features.contains_key(&FeatureId::COMPRESSED);
        match &self.zstd {
            Some(zstd) if has_feature => self.set_feature(recording, zstd.ratio()),
            _ => Ok(()),
        }
    }
}
