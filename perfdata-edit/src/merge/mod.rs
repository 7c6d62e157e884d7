//! Merging: several recordings as one.
//!
//! ```text
//!   input ──► survey ─┐                        ┌─► lane: changes, order of time ─┐
//!   input ──► survey ─┼─► plan (events, times, ┼─► lane                          ┼─► records by time
//!   input ──► survey ─┘    kernel, features)   └─► lane                          ┘
//! ```
//!
//! Each input is read twice: once to learn what it contains, once for its records. A stream, and a
//! recording in another byte order, is first converted to a temporary file. Memory is bounded: a
//! block and the rounds of each input, and the records that describe what existed before each.
//!
//! The rules follow from how perf reads a recording: it delivers records without a time as they
//! come, and sorts the others by FINISHED_ROUND (tools/perf/util/session.c, ordered-events.c).

mod ahead;
mod blocks;
mod bpf;
mod build_ids;
mod changes;
mod checks;
mod counters;
mod events;
mod features;
mod kernel;
mod lane;
mod plan;
mod pmus;
mod prepare;
mod sideband;
mod sorted;
mod source;
mod spans;
mod survey;
mod tracing;

use plan::Plan;

use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::Input;
use perfdata_convert::stages::swap::Unknown;

/// How the times of several recordings become times of one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Align {
    /// The times are of one clock already: recordings of one boot.
    #[default]
    Boot,
    /// By the time of day, which recordings of `perf record -k` contain (CLOCK_DATA).
    Wall,
    /// Each recording starts when the previous one ends.
    After,
}

/// How recordings are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Merge {
    /// How times become those of one clock.
    pub align: Align,
    /// Whether a kernel at another address than that of the first recording may be moved, with all
    /// addresses in it. It must be the same kernel.
    pub rebase_kernel: bool,
    /// Whether the recordings are of different machines: process IDs, CPUs, cgroup IDs and IDs of
    /// BPF programs of the later ones are changed, so that they stay apart.
    pub machines: bool,
    /// How to handle content with unknown meaning in a recording of another byte order than that of
    /// the first.
    pub unknown: Unknown,
}

/// Merged recordings, ready to be read.
#[non_exhaustive]
pub struct Merged {
    /// The recording.
    pub input: Input,
    /// Notes for the user about what could not be kept.
    pub notes: Vec<String>,
}

impl Merge {
    /// Merges recordings. Each has a name for messages, such as its path.
    ///
    /// The records are in the order of time. Events with equal attributes are one event. Where IDs
    /// collide, those of the later recording are renumbered. Records that repeat what the records
    /// so far say are left out. The feature sections are those of the first recording, except those
    /// that describe events, samples, objects and CPUs, which describe those of all.
    ///
    /// A single recording stays as it is.
    ///
    /// # Errors
    /// A recording cannot be read, is damaged, or contradicts another one. The error names both
    /// values.
    pub fn open(self, inputs: Vec<(String, Input)>) -> Result<Merged> {
        let mut inputs = inputs;
        match inputs.len() {
            0 => Err(Error::Usage("there is no recording to merge".into())),
            1 => Ok(Merged {
                input: inputs.remove(0).1,
                notes: Vec::new(),
            }),
            _ => {
                let (plan, notes) = Plan::of(self, inputs)?;
                Ok(Merged {
                    input: Input::combined(Box::new(plan)),
                    notes,
                })
            }
        }
    }
}
