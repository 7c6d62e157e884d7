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
//! an exact copy needs, it keeps as an [`Arrangement`](arrangement::Arrangement).
//!
//! # Reading
//!
//! The records of `perf record -z` come as they stand, in COMPRESSED records. [`ByTime`](read::ByTime) hands out those in
//! them, too, in the order of time; a [`Decompressor`](read::Decompressor) opens one record after the other.
//!
//! ```
//! use perfdata_core::feature::{Feature, FeatureId};
//! use perfdata_core::read::{Piece, RecordingReader};
//! use perfdata_core::record::{Body, Record, RecordType};
//! use std::{fs::File, sync::Arc};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/6.1-s390x-file-default.data");
//! let mut reader = RecordingReader::open(Arc::new(File::open(path)?))?;
//! if let Some(section) = reader.recording().feature(FeatureId::ARCH)
//!     && let Feature::Arch(arch) = section?.value
//! {
//!     println!("recorded on {arch}");
//! }
//!
//! let mut samples = 0;
//! while let Some((piece, recording)) = reader.next_with_model()? {
//!     // Most records need no more than a look at their header …
//!     let Piece::Record(raw) = piece else { continue };
//!     if raw.kind != RecordType::SAMPLE {
//!         continue;
//!     }
//!     // … and the others are decoded by the layout of the event that they belong to.
//!     let record = Record::decode(&raw, &recording.events.layout_of(&raw))?;
//!     if let Body::Sample(sample) = record.body {
//!         assert!(sample.time.is_some());
//!         samples += 1;
//!     }
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

pub mod arrangement;
pub mod attr;
mod codes;
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
