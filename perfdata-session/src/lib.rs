//! Resolves the samples of Linux `perf.data` recordings: follows threads, mappings and DSOs over
//! time, as perf's `struct machine`, `thread`, `maps` and `dso` do.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-z.data");
//! # let mut count = 0;
//! let mut samples = perfdata_session::open(path)?;
//! while let Some(sample) = samples.next()? {
//!     println!("{} {}", String::from_utf8_lossy(sample.comm()), sample.weight());
//!     for frame in sample.frames() {
//!         match (frame.dso(), frame.offset()) {
//!             (Some(dso), Some(offset)) => println!("    {}+{offset:#x}", String::from_utf8_lossy(&dso.name)),
//!             _ => println!("    {:#x}", frame.address),
//!         }
//!     }
//! #   count += 1;
//! }
//! # assert!(count > 100);
//! # Ok(())
//! # }
//! ```
//!
//! # Contents
//!
//! - [`open`] and [`Samples`]: the samples of a recording in time order, from every container.
//!   [`Delivery`] does the same in several threads.
//! - [`Session`]: the state at one moment, for programs that read records themselves.
//! - [`AddressSpaces`], updated by [`Change`], and [`Threads`]: the mappings and the threads of a
//!   session, for programs that need only these. [`AddressSpaceHistory`] contains the mappings of
//!   all times. [`EventNames`] contains the names of events.
//! - [`Sample`]: the event and its name, time, CPU, thread and its name, weight,
//!   [`frames`](Sample::frames) and [`branches`](Sample::branches) of a sample. It borrows from the
//!   session. Resolving allocates memory only for a mapping that is hit for the first time.
//! - [`ThreadId`], [`CommId`], [`MappingId`], [`DsoId`]: small numbers, so that programs can store
//!   columns of integers together with the tables of the session. [`Stacks`] does the same for
//!   callchains.
//!
//! # Supported records
//!
//! - Threads: COMM, FORK and EXIT. A thread inherits the name of its parent. Thread IDs may be
//!   reused.
//! - Mappings: MMAP and MMAP2. perf also writes them for mappings that existed before the recording
//!   started. A new mapping replaces older ones at its addresses. A forked process inherits the
//!   mappings of its parent. A new program (COMM with the flag EXEC, 3.16) starts without mappings;
//!   perf keeps the old ones: [`Frame::before_exec`] contains the mapping that perf finds.
//! - The kernel: its image with the relocation symbol, modules, guests, and BPF programs and other
//!   code that is added and removed (KSYMBOL). BPF_EVENT contains the IDs of programs. TEXT_POKE
//!   records are counted.
//! - Build IDs: from MMAP2 records, otherwise from the BUILD_ID section, in the precedence of perf.
//! - Namespaces and cgroups; SWITCH records, for samples without thread ID.
//! - Deferred user callchains (CALLCHAIN_DEFERRED), joined to their samples. Copies of user stacks
//!   (`perf record --call-graph dwarf`) are unwound by [`UserCallchains`], which another crate
//!   implements.
//!
//! # Units
//!
//! Times are nanoseconds on the clock of the recording. Offsets and sizes are bytes.
//!
//! # Guarantees
//!
//! The input is not trusted: it cannot cause a panic, the work for a record grows at most
//! logarithmically with the number of records before it, and the recording's
//! [`Limits`](perfdata_core::read::Limits) bound the memory.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::arithmetic_side_effects, reason = "an overflow fails the test")
)]

mod build_ids;
mod change;
mod delivery;
mod dso;
mod history;
pub mod huge_pages;
mod ids;
mod mapping;
mod ranges;
mod removed;
mod sample;
mod samples;
mod session;
mod space;
mod spaces;
mod stacks;
mod thread;
mod waiting;

use perfdata_core::read::{BytesReader, RecordingReader, StreamReader};

pub use build_ids::BuildIdTable;
pub use change::{Change, Owner};
pub use delivery::Delivery;
pub use dso::{BuildId, Dso, DsoKind, Dsos, FileId, Machine, module_name};
pub use history::AddressSpaceHistory;
pub use ids::{CommId, DsoId, MappingId, StackId, ThreadId};
pub use mapping::{Mapped, MappedDso, Mapping};
pub use perfdata_core::names::{self, EventNames};
pub use sample::{Branch, Frame, Frames, Sample, mode_of};
pub use samples::{Samples, UserCallchains};
pub use session::{Counts, Session};
pub use space::Space;
pub use spaces::AddressSpaces;
pub use stacks::{Stack, Stacks};
pub use thread::{Comms, Thread, Threads};

/// Opens the recording at `path` and returns its samples. `path` is a file in file mode or pipe
/// mode, a directory, or a stream.
///
/// # Errors
/// The file does not exist, is not a recording, or its header or attributes are corrupt.
pub fn open(path: impl AsRef<std::path::Path>) -> perfdata_core::Result<Samples> {
    Samples::open(path)
}

/// Opens a recording in memory, in file mode or pipe mode, and returns its samples. The bytes are not
/// copied.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-g.data");
/// let mut samples = perfdata_session::from_bytes(std::fs::read(path)?)?;
/// let first = samples.next()?.expect("a sample");
/// assert!(!first.comm().is_empty());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// It is not a recording, or its header or attributes are corrupt.
pub fn from_bytes<B: AsRef<[u8]>>(
    bytes: B,
) -> perfdata_core::Result<Samples<RecordingReader<BytesReader<B>>>> {
    Samples::new(perfdata_core::from_bytes(bytes)?)
}

/// Opens a recording that is read from start to end, and returns its samples. One in pipe mode is read
/// while samples are requested; one in file mode is read into memory first.
///
/// # Errors
/// It is not a recording, its header or attributes are corrupt, or the reader fails.
pub fn from_reader<R: std::io::Read>(
    reader: R,
) -> perfdata_core::Result<Samples<RecordingReader<StreamReader<R>>>> {
    Samples::new(perfdata_core::from_reader(reader)?)
}
