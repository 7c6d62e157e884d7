//! What the records of a Linux `perf.data` say together: who ran, what was mapped, and what a sample hit, in perf's words
//! (machine, thread, map, DSO).
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/6.1-x86_64-file-z.data");
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
//! # What is in it
//!
//! - [`open`] and [`Samples`]: the samples of a recording in the order of time, whatever holds it.
//! - [`Session`]: the state at one moment, for programs that read records themselves.
//! - [`AddressSpaces`], fed by [`Change`], and [`Threads`]: the parts of a session that say what is mapped where, and who
//!   runs, for programs that want to know only that. [`EventNames`] does the same for the names of events.
//! - [`Sample`]: event with its name, time, CPU, thread, name, weight, [`frames`](Sample::frames) and
//!   [`branches`](Sample::branches) of a sample. It borrows; asking allocates nothing, but to remember a
//!   mapping that is hit for the first time.
//! - [`ThreadId`], [`CommId`], [`MappingId`], [`DsoId`]: small numbers, so that a program can keep columns of numbers, and
//!   the tables of the session beside them. [`Stacks`] does the same for callchains.
//!
//! # What it follows
//!
//! - Threads by COMM, FORK and EXIT: a thread has its parent's name until it gets another. Thread IDs are used again.
//! - Mappings by MMAP and MMAP2: a newer mapping takes its addresses from older ones. A forked process has its parent's; a
//!   new program (COMM with the flag EXEC, 3.16) begins without any. perf only lays the new ones over the old:
//!   [`Frame::before_exec`] says where that finds something.
//! - The kernel: its image with the relocation symbol, modules, BPF programs and other code that comes and goes
//!   (KSYMBOL), guests. BPF_EVENT tells the numbers of programs, TEXT_POKE is counted.
//! - Build IDs of MMAP2 records, else of the recording's table, the order that perf has.
//! - Namespaces and cgroups; which thread runs on a CPU (SWITCH), for samples that do not say it.
//! - User callchains that come later (CALLCHAIN_DEFERRED), joined to their samples.
//!
//! # Times and sizes
//!
//! Times are nanoseconds on the recording's clock, addresses and sizes bytes. Whatever is mapped outside of the recording's
//! time is what perf wrote of it before the first sample.
//!
//! # What holds everywhere
//!
//! Input is not trusted: nothing panics, the work for a record does not grow with those before it but by a logarithm, and
//! memory is bounded by the recording's [`Limits`](perfdata_core::read::Limits).

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

mod dso;
mod ids;
mod mapped;
pub mod names;
mod sample;
mod samples;
mod session;
mod space;
mod spaces;
mod stacks;
mod thread;
mod waiting;

pub use dso::{BuildId, Dso, DsoKind, Dsos, FileId, Machine};
pub use ids::{CommId, DsoId, MappingId, StackId, ThreadId};
pub use mapped::Mapped;
pub use names::EventNames;
pub use sample::{Branch, Frame, Frames, Sample, mode_of};
pub use samples::Samples;
pub use session::{Counts, Mapping, Session};
pub use space::Space;
pub use spaces::{AddressSpaces, Change, Owner};
pub use stacks::{Stack, Stacks};
pub use thread::{Comms, Thread, Threads};

/// The samples of the recording at `path`: a file in file mode or pipe mode, a directory, or a stream.
///
/// # Errors
/// There is nothing, or it is not a recording, or its header or attributes are damaged.
pub fn open(path: impl AsRef<std::path::Path>) -> perfdata_core::Result<Samples> {
    Samples::open(path)
}
