//! A Linux `perf.data` recording and the objects that name its functions, in one file.
//!
//! A bundle is a tar archive with members of these names, in this order:
//!
//! | member | content |
//! |---|---|
//! | `perf.bundle/index.json` | what the bundle contains, and what was not found; for people and tools |
//! | `perf.bundle/build-ids` | lines `BUILD-ID PATH`, as `perf buildid-list` prints them |
//! | `perf.bundle/recording.zst` | the recording |
//! | `perf.bundle/debug/.build-id/XX/YYYY/NAME.zst` | a file of the object with the build ID `XXYYYY`, in the form of perf's build ID cache: NAME is one of [`CACHE_NAMES`] |
//! | `perf.bundle/root/PATH.zst` | a file of the recorded machine whose build ID the recording does not contain |
//!
//! Those that end in `.zst` are compressed with zstd, each for itself. The name of the first member
//! identifies the format ([`is_bundle`]). [`BundleWriter`] writes it, and [`Bundle`] reads it.
//!
//! [`unpack_archive`] and [`write_archive`] are for the archives of `perf archive`, which have objects only.
//!
//! # Guarantees
//!
//! Bundles are not trusted: nothing panics, members with other names or types are refused, names do
//! not lead out of the folder into which the members are extracted, and the sizes of members are
//! limited before and after decompression.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::arithmetic_side_effects, reason = "an overflow fails the test")
)]

mod archive;
mod error;
mod gather;
mod member;
mod read;
mod write;

pub use archive::{unpack_archive, write_archive};
pub use error::{Error, Result};
pub use gather::{Absent, Carried, Gathered, Gatherer};
pub use member::{CACHE_NAMES, Member, is_bundle};
pub use read::{Bundle, BundleMember};
pub use write::BundleWriter;
