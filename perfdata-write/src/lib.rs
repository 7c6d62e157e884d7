//! Putting a Linux `perf.data` recording down: as a seekable file or as a pipe stream.
//!
//! A writer takes the model ([`Recording`](perfdata_core::Recording)) and then the records as a stream. In which
//! order and where things stand is a plan: the one of `perf record`, or that of an existing recording, which makes
//! the output byte-identical as long as nothing was changed.

#![forbid(unsafe_code)]

mod compress;
mod error;
mod file;
mod pipe;
mod plan;

pub use compress::Compressor;
pub use error::{Error, Result};
pub use file::FileWriter;
pub use pipe::PipeWriter;
pub use plan::{FilePlan, PipePlan};

use perfdata_core::read::Piece;
use perfdata_core::record::RawRecord;

/// Receives the record stream of a recording, in order.
pub trait RecordSink {
    /// Takes one record.
    ///
    /// # Errors
    /// The output cannot be written.
    fn record(&mut self, record: &RawRecord<'_>) -> Result<()>;

    /// Takes a part of what follows the last record outside its own size.
    ///
    /// # Errors
    /// The output cannot be written.
    fn payload(&mut self, bytes: &[u8]) -> Result<()>;

    /// Takes bytes of the record stream that are no records, to be kept as they are.
    ///
    /// # Errors
    /// The output cannot be written.
    fn unreadable(&mut self, bytes: &[u8]) -> Result<()>;

    /// Takes a piece, whatever it is.
    ///
    /// # Errors
    /// As the other methods.
    fn piece(&mut self, piece: &Piece<'_>) -> Result<()> {
        match piece {
            Piece::Record(record) => self.record(record),
            Piece::Payload(bytes) => self.payload(bytes),
            Piece::Unreadable(bytes) => self.unreadable(bytes),
        }
    }
}
