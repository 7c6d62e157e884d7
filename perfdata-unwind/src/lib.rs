//! Unwinds the user stacks in Linux `perf.data` recordings (`perf record --call-graph dwarf`).
//!
//! A sample contains the user registers and a copy of the top of the user stack. [`Unwinder`]
//! returns the callchain: the addresses that `perf script --no-inline` shows.
//!
//! - [`Task`] is what a sample contains, and [`Machine`] says what its registers mean.
//! - [`Maps`] are the mappings of the process at the time of the sample, for instance a
//!   [`Space`](perfdata_session::Space) of a
//!   [`AddressSpaceHistory`](perfdata_session::AddressSpaceHistory).
//! - [`Objects`] are the files with call frame information. An
//!   [`ObjectFinder`](perfdata_symbols::ObjectFinder) finds them, and verifies them by their build
//!   IDs: a file with another build ID than the recorded one would yield wrong callchains.
//! - [`End`] says why a callchain ends.
//! - [`UserStacks`] does all this for the [samples](perfdata_session::Samples) of a recording in the
//!   order of time, and [`UserStack`] is what one of them contains.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-z.data");
//! use perfdata_symbols::{ObjectFinder, Sources};
//! use perfdata_unwind::{At, Machine, Maps, Objects, Task, Unwinder};
//!
//! /// A process in which nothing is known to be mapped.
//! struct Nothing;
//!
//! impl Maps for Nothing {
//!     fn at(&self, _address: u64) -> At {
//!         At::Nothing
//!     }
//! }
//!
//! let recording = perfdata_core::open(path)?.recording().clone();
//! let objects = Objects::new(ObjectFinder::new(Sources::default(), &recording));
//! // The stack pointer and the instruction pointer.
//! let task = Task { machine: Machine::X86_64, mask: 1 << 7 | 1 << 8, registers: &[0x7000, 0x4000], stack: &[] };
//! let mut frames = Vec::new();
//! Unwinder::new().unwind(&task, &Nothing, &objects, 127, &mut frames);
//! assert_eq!(frames, [0x4000]);
//! # Ok(())
//! # }
//! ```
//!
//! # Call frame information
//!
//! It is read from `.eh_frame`, by the table in `.eh_frame_hdr` if there is one, from
//! `.debug_frame` of the object or its debug file, and from that in `.gnu_debugdata`; for 32-bit
//! Arm also from `.ARM.exidx`. All registers and rules of DWARF are supported, including
//! expressions. Memory is read from the copied stack, and from segments of mapped files that
//! processes cannot change.
//!
//! # Guarantees
//!
//! Recordings and objects are not trusted: nothing panics, sizes are compared with the file before
//! memory is allocated, and the memory for objects is limited. Expressions, entries and callchains
//! have a maximum length.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::arithmetic_side_effects, reason = "an overflow fails the test")
)]

mod augmentation;
mod everything;
mod exidx;
mod expression;
mod frame;
mod machine;
mod memory;
mod object;
mod objects;
mod row;
mod section;
mod step;
#[cfg(test)]
mod tests;
mod unwinder;
mod user_stack;
mod user_stacks;

#[doc(hidden)]
pub use everything::unwind_everything;
pub use machine::Machine;
pub use object::Object;
pub use objects::{ObjectId, Objects, is_object};
pub use unwinder::{At, End, MappedObject, Maps, Task, Unwinder};
pub use user_stack::{Outcome, Outcomes, UserStack, has_user_stacks};
pub use user_stacks::{UnwoundStacks, UserStacks};
