//! What the bytes of a Linux `perf.data` mean: every header, attribute, feature section and record as a declared
//! structure for reading and writing, and readers of recordings.
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
//! With `perf record --threads` it is a directory: a file, and beside it files of bare records.
//!
//! Whatever holds it, a [`Recording`] is the model: byte order, [`Events`] (attributes with their ids) and feature
//! sections. [`RecordingReader`](read::RecordingReader) gives it at once, and the records one by one. What neither says but
//! an exact copy needs, it keeps as a [`ContainerLayout`](container_layout::ContainerLayout).
//!
//! # Reading
//!
//! [`open`] opens a file, a pipe stream in a file, or a directory. [`by_time`](read::RecordingReader::by_time) gives all
//! records in the order of time, those that `perf record -z` compressed among them:
//!
//! ```
//! use perfdata_core::record::Body;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/6.1-x86_64-file-z.data");
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
//! Without `by_time` the records come as they stand in the recording, compressed ones inside COMPRESSED records, which
//! a [`Decompressor`](read::Decompressor) opens:
//!
//! ```
//! use perfdata_core::feature::{Feature, FeatureId};
//! use perfdata_core::read::StreamItem;
//! use perfdata_core::record::{Body, RecordType};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/6.1-s390x-file-default.data");
//! let mut reader = perfdata_core::open(path)?;
//! if let Some(section) = reader.recording().feature(FeatureId::ARCH)
//!     && let Feature::Arch(arch) = section?.value
//! {
//!     println!("recorded on {arch}");
//! }
//!
//! let mut samples = 0;
//! while let Some(item) = reader.next()? {
//!     // AUX data and tracing data are no records.
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
//! - [`RawRecord`](record::RawRecord): its bytes, borrowed. Copying one costs what copying bytes costs.
//! - A few words at known places: [`Events::of_record`], [`Events::sample_time`].
//! - [`Record`](record::Record): all fields. Encoding it gives the same bytes, for every record that decodes.
//!
//! [`Describe`](describe::Describe) walks the fields of any value, with names and sizes, so that a printer or a comparison
//! knows no structure.
//!
//! # What holds everywhere
//!
//! - The byte order is a value, [`Endian`], not a type: one program reads recordings of both.
//! - What is not known is kept: unknown types, longer structures, reserved fields, padding.
//! - Input is not trusted: lengths are compared with what is there before anything is allocated. Nothing panics.
//! - An [`Error`] says where (absolute offset, structure, field), what was found and what was expected.
//! - Numbers in brackets, like (5.7), are the Linux release that a thing came with.
//!
//! # Features and versions
//!
//! There are no cargo features. Of other crates' types only [`Endian`] and the traits `BinRead` and `BinWrite` of binrw are
//! part of the interface: the structures implement them, so that they can be parts of structures that are declared with
//! binrw elsewhere. A new incompatible binrw is a breaking change here. Enums that grow with perf are
//! `#[non_exhaustive]`; a structure that gains a field is a breaking change, unless `..Default::default()` fills it.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

pub mod attr;
mod codes;
pub mod container_layout;
pub mod describe;
pub mod error;
pub mod feature;
pub mod header;
pub mod layout;
pub mod read;
pub mod record;
pub mod recording;
pub mod version;
pub mod wire;

pub use binrw::Endian;
pub use error::{Error, Result};
pub use layout::Layout;
pub use recording::{Event, Events, Recording};
pub use version::Version;

/// Opens the recording at `path`: a file in file mode or pipe mode, a directory of `perf record --threads`, or a stream.
///
/// [`RecordingReader::open_path`](read::RecordingReader::open_path) does it with options.
///
/// # Errors
/// There is nothing, or it is not a recording, or its header or attributes are damaged.
pub fn open(path: impl AsRef<std::path::Path>) -> Result<read::RecordingReader> {
    read::RecordingReader::open_path(path, read::Options::default())
}
