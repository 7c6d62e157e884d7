//! Compression in several threads.
//!
//! The stream is divided into batches of at most 1 MiB. Each batch becomes a separate zstd frame,
//! so that batches can be compressed in parallel. A decoder that decodes successive frames, as zstd
//! does, sees one stream.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use perfdata_core::Endian;
use perfdata_core::record::{RawRecord, RecordType};

use crate::compress::Compressor;
use crate::error::{Error, Result};

/// Returns the maximum size of a batch in bytes. The output does not depend on the number of
/// processors: only this size and the records determine where frames start.
fn batch_of(level: i32) -> usize {
    // zstd's tables grow with the frame, and are largest at these levels. The allocator may keep
    // memory that a thread frees while they grow.
    if level > 12 { 1 << 19 } else { 1 << 20 }
}

/// Maximum memory of all threads together, in bytes.
const MEMORY: usize = 40 << 20;

/// Number of batches that wait for a thread or to be written, so that no thread is idle.
const WAITING: usize = 6;

/// Packs records into compressed records, in order, with uncompressed records between them.
#[derive(Debug)]
pub struct ParallelCompressor {
    kind: RecordType,
    endian: Endian,
    level: i32,
    /// Maximum size of the plain records in one compressed record, in bytes.
    mmap_len: usize,
    batch: Batch,
    /// Maximum size of a batch in bytes.
    most: usize,
    /// Compresses batches on the calling thread.
    own: Option<Compressor>,
    threads: Vec<JoinHandle<()>>,
    most_threads: usize,
    jobs: Option<Jobs>,
    /// Batches that are being compressed, in stream order.
    pending: VecDeque<Receiver<Result<Batch>>>,
    /// Batches whose memory can be reused.
    spare: Vec<Batch>,
    plain: u64,
    compressed: u64,
}

/// A batch, and the channel for its result.
type Job = (Batch, Sender<Result<Batch>>);

/// The queue from which threads take batches.
#[derive(Debug)]
struct Jobs {
    sender: Sender<Job>,
    queue: Arc<Mutex<Receiver<Job>>>,
}

/// Records that one thread compresses.
#[derive(Debug, Default)]
struct Batch {
    records: Vec<u8>,
    /// Which bytes are compressed together, and which remain plain.
    parts: Vec<WrittenPart>,
    /// The resulting records.
    output: Vec<u8>,
    plain: u64,
    compressed: u64,
}

#[derive(Debug, Clone, Copy)]
struct WrittenPart {
    len: usize,
    compress: bool,
}

impl Batch {
    fn push(&mut self, record: &[u8], compress: bool, most: usize) {
        match self.parts.last_mut() {
            Some(part)
                if part.compress == compress
                    && (!compress || part.len.saturating_add(record.len()) <= most) =>
            {
                part.len = part.len.saturating_add(record.len());
            }
            _ => self.parts.push(WrittenPart {
                len: record.len(),
                compress,
            }),
        }
        self.records.extend_from_slice(record);
    }

    fn clear(&mut self) {
        self.records.clear();
        self.parts.clear();
        self.output.clear();
    }

    /// Compresses the selected parts into one frame.
    fn run(&mut self, zstd: &mut Compressor) -> Result<()> {
        let Batch {
            records,
            parts,
            output,
            ..
        } = self;
        let before = zstd.sizes();
        let total = parts
            .iter()
            .filter(|part| part.compress)
            .map(|part| part.len as u64)
            .sum();
        let last = parts.iter().rposition(|part| part.compress);
        zstd.begin_frame(total)?;
        let mut rest = records.as_slice();
        for (at, part) in parts.iter().enumerate() {
            let (bytes, behind) = rest.split_at_checked(part.len).unwrap_or((rest, &[]));
            rest = behind;
            let sink = |record: &RawRecord<'_>| {
                output.extend_from_slice(record.bytes);
                Ok::<_, Error>(())
            };
            match part.compress {
                true if Some(at) == last => zstd.push_last(bytes, sink)?,
                true => zstd.push(bytes, sink)?,
                false => output.extend_from_slice(bytes),
            }
        }
        let after = zstd.sizes();
        (self.plain, self.compressed) = (
            after.0.saturating_sub(before.0),
            after.1.saturating_sub(before.1),
        );
        Ok(())
    }
}

impl ParallelCompressor {
    /// Returns a compressor that writes a stream of `kind` records (COMPRESSED or COMPRESSED2) in
    /// byte order `endian`, at zstd's `level`. `mmap_len` is the size of the reader's buffer for
    /// the content of one record, in bytes.
    ///
    /// # Errors
    /// zstd rejects the level, or the crate was built without the feature `zstd`.
    pub fn new(kind: RecordType, endian: Endian, level: i32, mmap_len: usize) -> Result<Self> {
        let own = Compressor::of_frames(kind, endian, level)?;
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Ok(ParallelCompressor {
            kind,
            endian,
            level,
            mmap_len,
            batch: Batch::default(),
            most: batch_of(level),
            own: Some(own),
            threads: Vec::new(),
            most_threads: processors
                .min(MEMORY.checked_div(memory_of(level)).unwrap_or(1))
                .max(1),
            jobs: None,
            pending: VecDeque::new(),
            spare: Vec::new(),
            plain: 0,
            compressed: 0,
        })
    }

    /// Limits the number of threads to `most`. With 0, the calling thread does all the work. The
    /// output does not depend on it.
    #[must_use]
    pub fn with_threads(mut self, most: usize) -> Self {
        self.most_threads = most;
        self
    }

    /// Limits the number of threads to `most`, if it is smaller. The output does not depend on it.
    #[must_use]
    pub fn with_at_most(self, most: usize) -> Self {
        let threads = self.most_threads.min(most);
        self.with_threads(threads)
    }

    /// Adds a record, which is compressed or remains plain, and passes completed records to `sink`.
    ///
    /// # Errors
    /// The errors of `sink` and of zstd.
    pub fn record<E: From<Error>>(
        &mut self,
        record: &RawRecord<'_>,
        compress: bool,
        mut sink: impl FnMut(&RawRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !compress && self.batch.records.is_empty() && self.pending.is_empty() {
            return sink(record);
        }
        if self.batch.records.len().saturating_add(record.bytes.len()) > self.most {
            self.submit()?;
            while self.pending.len() > self.most_threads.saturating_add(WAITING) {
                self.take_first(&mut sink)?;
            }
        }
        self.batch.push(record.bytes, compress, self.mmap_len);
        Ok(())
    }

    /// Passes all remaining records to `sink`. The next record starts a new batch.
    ///
    /// # Errors
    /// As for [`record`](Self::record).
    pub fn flush<E: From<Error>>(
        &mut self,
        mut sink: impl FnMut(&RawRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.batch.records.is_empty() && !self.pending.is_empty() {
            self.submit()?;
        }
        while !self.pending.is_empty() {
            self.take_first(&mut sink)?;
        }
        if !self.batch.records.is_empty() {
            let mut batch = std::mem::take(&mut self.batch);
            batch.run(self.own()?)?;
            self.give(batch, &mut sink)?;
        }
        Ok(())
    }

    /// Returns the compression ratio as in the COMPRESSED feature: plain bytes for each byte of the
    /// compressed records including headers, rounded; 0 before the first record.
    pub fn ratio(&self) -> u32 {
        crate::compress::ratio(self.plain, self.compressed)
    }

    /// Passes the batch to a thread. If the system starts no thread, compresses it on the calling
    /// thread.
    fn submit(&mut self) -> Result<()> {
        if self.threads.len() < self.most_threads {
            self.start()?;
        }
        let next = self.spare.pop().unwrap_or_default();
        let mut batch = std::mem::replace(&mut self.batch, next);
        let (done, result) = channel();
        match self.jobs.as_ref().filter(|_| !self.threads.is_empty()) {
            Some(jobs) => {
                // The threads use the memory from now on.
                self.own = None;
                jobs.sender.send((batch, done)).map_err(|_| gone())?;
            }
            None => {
                batch.run(self.own()?)?;
                done.send(Ok(batch)).map_err(|_| gone())?;
            }
        }
        self.pending.push_back(result);
        Ok(())
    }

    /// Starts one more thread, if the system permits it.
    fn start(&mut self) -> Result<()> {
        let mut zstd = Compressor::of_frames(self.kind, self.endian, self.level)?;
        let jobs = self.jobs.get_or_insert_with(|| {
            let (sender, queue) = channel();
            Jobs {
                sender,
                queue: Arc::new(Mutex::new(queue)),
            }
        });
        let queue = Arc::clone(&jobs.queue);
        match thread::Builder::new().spawn(move || work(&queue, &mut zstd)) {
            Ok(thread) => self.threads.push(thread),
            // Continue with the existing threads.
            Err(_) => self.most_threads = self.threads.len(),
        }
        Ok(())
    }

    /// Returns the compressor of the calling thread.
    fn own(&mut self) -> Result<&mut Compressor> {
        Ok(match &mut self.own {
            Some(own) => own,
            none => none.insert(Compressor::of_frames(self.kind, self.endian, self.level)?),
        })
    }

    /// Waits for the first batch.
    fn take_first<E: From<Error>>(
        &mut self,
        sink: &mut impl FnMut(&RawRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(result) = self.pending.pop_front() else {
            return Ok(());
        };
        let batch = result.recv().map_err(|_| gone())??;
        self.give(batch, sink)
    }

    fn give<E: From<Error>>(
        &mut self,
        mut batch: Batch,
        sink: &mut impl FnMut(&RawRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.plain = self.plain.saturating_add(batch.plain);
        self.compressed = self.compressed.saturating_add(batch.compressed);
        let mut rest = batch.output.as_slice();
        while !rest.is_empty() {
            let record = RawRecord::first(rest, self.endian, 0).map_err(Error::from)?;
            sink(&record)?;
            rest = rest.get(record.bytes.len()..).unwrap_or_default();
        }
        batch.clear();
        self.spare.push(batch);
        Ok(())
    }
}

impl Drop for ParallelCompressor {
    fn drop(&mut self) {
        // The threads end when the queue is closed.
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A failed thread was already detected by its missing result.
            let _ = thread.join();
        }
    }
}

/// The main loop of a thread.
fn work(queue: &Mutex<Receiver<Job>>, zstd: &mut Compressor) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((mut batch, done)) = job else { return };
        let result = batch.run(zstd).map(|()| batch);
        // Nobody waits for the result if the conversion failed elsewhere.
        let _ = done.send(result);
    }
}

fn gone() -> Error {
    Error::io("zstd encoder")(std::io::Error::other(
        "internal error: a background thread ended",
    ))
}

/// Returns the memory of a thread in bytes: zstd's tables for a frame of a batch, and the batch
/// with its output.
fn memory_of(level: i32) -> usize {
    let tables = match level {
        ..=4 => 3 << 20,
        5..=12 => 14 << 20,
        _ => 17 << 20,
    };
    batch_of(level).saturating_mul(2).saturating_add(tables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfdata_core::read::{Decompressor, Limits};

    /// Returns records of several megabytes that do not compress too well; every 1,000th is one of
    /// perf's own records.
    fn records() -> Vec<(Vec<u8>, bool)> {
        let mut seed = 1_u64;
        let mut record = |number: u32| {
            let is_plain = number % 1_000 == 999;
            let (kind, len) = if is_plain {
                (RecordType::FINISHED_ROUND.0, 8_u16)
            } else {
                (9, 40 + 8 * (number % 60) as u16)
            };
            let mut bytes = kind.to_le_bytes().to_vec();
            bytes.extend([0, 0]);
            bytes.extend(len.to_le_bytes());
            while bytes.len() < usize::from(len) {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                bytes.extend((seed >> 40).to_le_bytes());
            }
            (bytes, !is_plain)
        };
        (0..15_000).map(&mut record).collect()
    }

    const MMAP_LEN: usize = 128 << 10;

    fn compressed(kind: RecordType, threads: usize) -> Vec<Vec<u8>> {
        let mut zstd = ParallelCompressor::new(kind, Endian::Little, 1, MMAP_LEN)
            .expect("zstd")
            .with_threads(threads);
        let mut out = Vec::new();
        for (bytes, compress) in records() {
            let raw = RawRecord::first(&bytes, Endian::Little, 0).expect("a record");
            let mut sink = |record: &RawRecord<'_>| {
                out.push(record.bytes.to_vec());
                Ok::<_, Error>(())
            };
            zstd.record(&raw, compress, &mut sink).expect("zstd");
        }
        zstd.flush(|record| {
            out.push(record.bytes.to_vec());
            Ok::<_, Error>(())
        })
        .expect("zstd");
        assert_eq!(zstd.ratio(), 2);
        out
    }

    #[test]
    fn what_comes_out_does_not_depend_on_the_threads() {
        for kind in [RecordType::COMPRESSED, RecordType::COMPRESSED2] {
            let one = compressed(kind, 1);
            assert!(
                [0, 2, 5]
                    .iter()
                    .all(|&threads| one == compressed(kind, threads)),
                "{kind}"
            );
        }
    }

    /// Every frame starts and ends at a record boundary, and no record exceeds the reader's buffer.
    #[test]
    fn what_went_in_comes_out() {
        let mut expected = records().into_iter().map(|(bytes, _)| bytes);
        let mut zstd = Decompressor::new(Endian::Little, Limits::default()).expect("zstd");
        let mut frames = 0;
        for bytes in compressed(RecordType::COMPRESSED2, 2) {
            let record = RawRecord::first(&bytes, Endian::Little, 0).expect("a record");
            if !record.kind.is_compressed() {
                assert_eq!(Some(bytes), expected.next());
                continue;
            }
            let magic = 0xfd2f_b528_u32.to_le_bytes();
            frames += usize::from(record.bytes[16..].starts_with(&magic));
            zstd.push(&record).expect("zstd");
            while let Some(inner) = zstd.next().expect("zstd") {
                assert_eq!(Some(inner.bytes.to_vec()), expected.next());
            }
        }
        assert_eq!((expected.next(), zstd.pending()), (None, 0));
        assert!(frames > 2, "{frames} frames");
    }
}
