//! Entries in temporary files, in order of arrival or sorted, and the merge of sorted sequences.
//!
//! Not part of the interface: may change in any release. The files come from the caller, so that
//! this crate creates none.

mod file;
mod heads;
mod record;
mod runs;

pub use file::{Entry, Reader, Writer};
pub use heads::Heads;
pub use record::StoredRecord;
pub use runs::Runs;
