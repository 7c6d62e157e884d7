//! Writes Linux `perf.data` recordings as seekable files or as pipe streams.
//!
//! ```text
//!     Recording ─────────┐
//!     records   ──────►  FileWriter   header, ids, attributes │ records │ feature table, feature sections
//!                │   or  PipeWriter   header, HEADER_ATTR, HEADER_FEATURE … │ records
//!     plan ──────┘
//! ```
//!
//! A writer takes the model ([`Recording`](perfdata_core::Recording)) and then a stream of records
//! ([`RecordSink`]). A plan ([`FilePlan`], [`PipePlan`]) determines the order and the offsets of
//! the parts. It follows either `perf record` or an existing recording; in the second case, the
//! output is byte-identical if nothing was changed. Everything that depends on offsets, from the
//! header to the AUXTRACE index, is written last.
//!
//! ```
//! use perfdata_core::attr::{Attr, EventType, SampleType, SoftwareEvent};
//! use perfdata_core::read::RecordingReader;
//! use perfdata_core::record::{Body, CpuMode, Record, Sample};
//! use perfdata_core::{Endian, Event, Recording};
//! use perfdata_write::FileWriter;
//! use std::io::Cursor;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A recording in the byte order of s390x, which any machine can write.
//! let mut recording = Recording::new(Endian::Big);
//! let attr = Attr {
//!     kind: EventType::SOFTWARE,
//!     config: SoftwareEvent::CPU_CLOCK.0,
//!     size: Attr::MIN_SIZE,
//!     sample_type: SampleType::IP | SampleType::TIME,
//!     ..Attr::default()
//! };
//! recording.events.push(Event { attr, ids: vec![1] });
//!
//! let mut writer = FileWriter::create(Cursor::new(Vec::new()), &recording)?;
//! let sample = Sample { ip: Some(0x1000), time: Some(5), ..Sample::default() };
//! writer.write(&Record::new(Body::Sample(sample)).with_misc(CpuMode::USER.0))?;
//! // A sample that does not match its event is an error: `sample_type` has TIME.
//! let untimed = Sample { ip: Some(0x1000), ..Sample::default() };
//! assert!(writer.write(&Record::new(Body::Sample(untimed))).is_err());
//! let file = writer.finish(&recording)?.into_inner();
//!
//! assert!(file.starts_with(b"2ELIFREP"));
//! let mut reader = RecordingReader::open(&file)?;
//! assert_eq!(reader.recording().events.len(), 1);
//! assert!(reader.next()?.is_some());
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::arithmetic_side_effects, reason = "an overflow fails the test")
)]

mod buffered;
mod compress;
mod encoder;
mod error;
mod file;
mod incoming;
mod parallel;
mod pipe;
mod plan;

pub use compress::Compressor;
pub use error::{Error, Result};
pub use file::FileWriter;
pub use parallel::ParallelCompressor;
pub use pipe::PipeWriter;
pub use plan::{FilePlan, PipePlan};

use perfdata_core::read::{RecordBatch, StreamItem};
use perfdata_core::record::RawRecord;

/// Receives the record stream of a recording, in order.
pub trait RecordSink {
    /// Processes one record.
    ///
    /// # Errors
    /// The output cannot be written.
    fn record(&mut self, record: &RawRecord<'_>) -> Result<()>;

    /// Processes several records.
    ///
    /// # Errors
    /// The output cannot be written.
    fn records(&mut self, batch: &RecordBatch<'_>) -> Result<()> {
        batch.iter().try_for_each(|record| self.record(&record))
    }

    /// Processes a part of the last record's payload: the bytes after the record that its size does
    /// not include.
    ///
    /// # Errors
    /// The output cannot be written.
    fn payload(&mut self, bytes: &[u8]) -> Result<()>;

    /// Processes bytes of the record stream that are not records and must be preserved.
    ///
    /// # Errors
    /// The output cannot be written.
    fn unreadable(&mut self, bytes: &[u8]) -> Result<()>;

    /// Processes an item of any kind.
    ///
    /// # Errors
    /// As for the other methods.
    fn item(&mut self, item: &StreamItem<'_>) -> Result<()> {
        match item {
            StreamItem::Record(record) => self.record(record),
            StreamItem::Payload(bytes) => self.payload(bytes),
            StreamItem::Unreadable(bytes) => self.unreadable(bytes),
        }
    }
}
