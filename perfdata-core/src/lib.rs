//! Declares every header, attribute, feature section and record of Linux `perf.data` for reading
//! and writing, and reads recordings.
//!
//! # A recording
//!
//! ```text
//!       file                          pipe (perf record -o -)
//!     0 ┌───────────────────┐       0 ┌───────────────────┐
//!       │ header            │         │ header            │   header      magic, byte order, FileHeader, PipeHeader
//!       ├───────────────────┤      16 ├───────────────────┤
//!       │ ids               │         │ HEADER_ATTR …     │   attr        what an event is
//!       │ attributes        │         │ HEADER_FEATURE …  │   feature     what is known of machine and events
//!       ├───────────────────┤         │ HEADER_TRACING…   │
//!       │ records           │         │ records           │   record      what happened
//!       │ …                 │         │ …                 │
//!       ├───────────────────┤         └───────────────────┘
//!       │ feature table     │
//!       │ feature sections  │
//!       └───────────────────┘
//! ```
//!
//! `perf record --threads` writes a directory: a file, and further files that contain only records.
//!
//! In all containers, [`Recording`] is the model: byte order, [`Events`] (attributes with their
//! IDs) and feature sections. [`RecordingReader`](read::RecordingReader) returns the model at once
//! and the records one by one. It keeps everything else that an exact copy needs, such as offsets
//! and padding, as a [`ContainerLayout`](container_layout::ContainerLayout).
//!
//! # Reading
//!
//! [`open`] opens a file, a pipe stream in a file, or a directory; [`from_bytes`] a recording in
//! memory, and [`from_reader`] anything that can be read.
//! [`by_time`](read::RecordingReader::by_time) returns all records in time order, including records
//! compressed by `perf record -z`:
//!
//! ```
//! use perfdata_core::record::Body;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-z.data");
//! let mut records = perfdata_core::open(path)?.by_time();
//! # let mut names = Vec::new();
//! while let Some(record) = records.next()? {
//!     if let Body::Comm(comm) = record.decode()?.body {
//!         println!("thread {} is now called {}", comm.tid, comm.comm);
//! #       names.push(comm.tid);
//!     }
//! }
//! # assert!(!names.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! Without `by_time`, records are returned in file order. Compressed records are inside COMPRESSED
//! records, which a [`Decompressor`](read::Decompressor) decompresses:
//!
//! ```
//! use perfdata_core::feature::{Feature, FeatureId};
//! use perfdata_core::read::StreamItem;
//! use perfdata_core::record::{Body, RecordType};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-s390x-file-default.data");
//! let mut reader = perfdata_core::open(path)?;
//! if let Some(section) = reader.recording().feature(FeatureId::ARCH)
//!     && let Feature::Arch(arch) = section?.value
//! {
//!     println!("recorded on {arch}");
//! }
//!
//! let mut samples = 0;
//! while let Some(item) = reader.next()? {
//!     // AUX data and tracing data are not records.
//!     let StreamItem::Record(record) = item else { continue };
//!     if record.kind == RecordType::SAMPLE
//!         && let Body::Sample(sample) = record.decode()?.body
//!     {
//!         assert!(sample.time.is_some());
//!         samples += 1;
//!     }
//! }
//! // The stream ends at the first bytes that are not a record.
//! if let Some(damage) = reader.damage() {
//!     return Err(damage.to_string().into());
//! }
//! # assert_eq!(samples, 289);
//! # Ok(())
//! # }
//! ```
//!
//! # Three ways to look at a record
//!
//! - [`RawRecord`](record::RawRecord): its bytes, borrowed. Copying it costs as much as copying
//!   bytes.
//! - Single words at known offsets: [`Events::of_record`], [`Events::sample_time`];
//!   [`SampleView`](record::SampleView) for the parts of a sample.
//! - [`Record`](record::Record): all fields. Encoding it gives the same bytes, for every record
//!   that can be decoded.
//!
//! [`Describe`](describe::Describe) visits the fields of any value, with names and sizes. Printers
//! and comparisons use it and know no particular structure.
//!
//! # Guarantees
//!
//! - The byte order is a value, [`Endian`], not a type: one program reads recordings of both byte
//!   orders.
//! - Unknown content is preserved: unknown types, longer structures, reserved fields, padding.
//! - Input is not trusted: lengths are compared with the available bytes before memory is
//!   allocated. Nothing panics.
//! - An [`Error`] contains the absolute offset, structure and field, what was found and what was
//!   expected.
//! - Numbers in parentheses, such as (5.7), are the Linux release that introduced something.
//!
//! # Features and versions
//!
//! The cargo feature `zstd`, on by default, decompresses the records of `perf record -z`. Without
//! it a compressed record is an error, and nothing of this crate is written in C. Nothing needs
//! Unix. Of other crates, the interface contains only [`Endian`] and the traits `BinRead` and
//! `BinWrite` (binrw): the structures implement them and can therefore be fields of other binrw
//! structures. An incompatible release of binrw is a breaking change of this crate. Enums that grow
//! with perf are `#[non_exhaustive]`, and so are options and the model. A new field in a structure
//! of the format is a breaking change, unless `..Default::default()` initialises it.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::arithmetic_side_effects, reason = "an overflow fails the test")
)]

pub mod arm_spe;
pub mod attr;
mod codes;
pub mod container_layout;
pub mod content;
pub mod decode_context;
pub mod describe;
pub mod error;
pub mod feature;
pub mod file_name;
pub mod header;
pub mod intel_bts;
pub mod intel_pt_samples;
pub mod jitdump;
pub mod names;
pub mod read;
pub mod record;
pub mod recording;
mod setters;
#[doc(hidden)]
pub mod spool;
pub mod values;
pub mod version;
pub mod wire;

pub use binrw::Endian;
pub use decode_context::DecodeContext;
pub use error::{Error, Result};
pub use recording::{Event, Events, Recording};
pub use version::Version;

/// Opens the recording at `path`: a file in file or pipe mode, a directory of
/// `perf record --threads`, or a stream.
///
/// [`RecordingReader::open_path`](read::RecordingReader::open_path) does it with options.
///
/// # Errors
/// Fails if the file does not exist, is not a recording, or its header or attributes are corrupt.
pub fn open(path: impl AsRef<std::path::Path>) -> Result<read::RecordingReader> {
    read::RecordingReader::open_path(path, read::Options::default())
}

/// Opens a recording in memory, in file mode or pipe mode, without copying it. `bytes` is a `Vec<u8>`, a
/// slice, a mapped file, or anything else that contains bytes.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-z.data");
/// let bytes = std::fs::read(path)?;
/// let mut records = perfdata_core::from_bytes(bytes)?.by_time();
/// assert!(records.next()?.is_some());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Fails if it is not a recording, or its header or attributes are corrupt.
pub fn from_bytes<B: AsRef<[u8]>>(bytes: B) -> Result<read::RecordingReader<read::BytesReader<B>>> {
    read::RecordingReader::from_bytes(bytes, read::Options::default())
}

/// Opens a recording that is read from start to end, such as that of a network connection or a
/// decompressor. One in pipe mode is read while its records are requested; one in file mode is read into
/// memory first.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-z.data");
/// # let connection = std::fs::File::open(path)?;
/// let mut records = perfdata_core::from_reader(connection)?.by_time();
/// assert!(records.next()?.is_some());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Fails if it is not a recording, its header or attributes are corrupt, or the reader fails.
pub fn from_reader<R: std::io::Read>(
    reader: R,
) -> Result<read::RecordingReader<read::StreamReader<R>>> {
    read::RecordingReader::from_reader(reader, read::Options::default())
}
