//! The formats of the tracepoints in Linux `perf.data` recordings, and the text that perf shows for
//! their raw data.
//!
//! A recording with tracepoints contains the kernel's description of each in the feature section
//! TRACING_DATA: the fields of the raw data of samples, and a format string with arguments, which
//! are expressions in C. [`Formats`] parses them once. [`Formats::print`] prints raw data as
//! `perf script` does, and [`Field`] returns single values:
//!
//! ```no_run
//! use perfdata_core::{Endian, feature::tracing::TracingData};
//! use perfdata_tracepoint::{Formats, NoFunctions};
//!
//! fn show(data: &TracingData, raw: &[u8]) {
//!     let formats = Formats::new(data);
//!     let mut text = Vec::new();
//!     formats.print(raw, &mut NoFunctions, &mut text);
//!     println!("{}", String::from_utf8_lossy(&text));
//!     let switch = formats.by_name(b"sched", b"sched_switch");
//!     let next = switch.and_then(|format| format.field(b"next_pid"));
//!     println!("{:?}", next.and_then(|field| field.signed(raw)));
//! }
//! ```
//!
//! # The text
//!
//! perf prints with libtraceevent, which ignores some of C's rules. The text here is the same, also
//! where C's would be another: parentheses do not always count, all numbers are without sign until
//! they are printed, and formats with unknown functions become a list of fields after
//! `[FAILED TO PARSE]`. Versions of perf differ in it; [`Like`] chooses one.
//!
//! These differ:
//!
//! - perf prints an address of its own memory for the address of a dynamic array; here its offset
//!   in the raw data is printed.
//! - Where libtraceevent reads beyond the raw data, they end here.
//! - Numbers in arrays, addresses of strings and families of socket addresses are in the byte order
//!   of the recording. perf takes that of its own machine.
//! - Where the text depends on the machine that prints (a `char` without a sign, `%zu` in perf
//!   6.1), it is that of x86_64. Conversions have at most 4096 bytes of padding.
//! - Plugins of libtraceevent, which print some events in another way, are not imitated, except that
//!   for the scheduler ([`Format::print_as_plugin`]). perf loads them if they are installed
//!   (`/usr/lib/*/traceevent/plugins`).
//!
//! perf finds the names of functions in its symbol tables, not in the recording's copy of
//! `/proc/kallsyms`: [`Resolver`] provides them. The names of tasks in TRACING_DATA do not occur in
//! the text.
//!
//! # Guarantees
//!
//! Formats and raw data are not trusted: nothing panics, the depth of expressions and the length of
//! format files are limited, and so is the length of a text: 64 KiB and 32 bytes for each byte of
//! raw data, before the last conversion.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::arithmetic_side_effects, reason = "an overflow fails the test")
)]

mod bprint;
mod conversion;
mod evaluate;
mod expression;
mod field;
mod format;
mod formats;
mod functions;
mod ip;
mod like;
mod list;
mod machine;
mod masks;
mod number;
mod parse;
mod pointer;
mod print;
mod printf;
mod problem;
mod read;
mod resolver;
mod scheduler;
#[cfg(test)]
mod tests;
mod token;

/// Parses data before its first NUL as a `format` file, and prints the rest as raw data, like every
/// perf and in both byte orders. Returns the length of the longest text. For tests with arbitrary
/// data.
#[doc(hidden)]
pub fn print_everything(data: &[u8]) -> usize {
    use std::sync::Arc;

    let mut parts = data.splitn(2, |byte| *byte == 0);
    let file = parts.next().unwrap_or_default();
    let raw = parts.next().unwrap_or_default();
    let mut longest = 0;
    for like in [Like::Perf6_1, Like::Perf6_12, Like::Perf7_2] {
        for (endian, long_size) in [
            (perfdata_core::Endian::Little, 8),
            (perfdata_core::Endian::Big, 4),
        ] {
            let machine = Arc::new(machine::Machine {
                endian,
                long_size,
                like,
                strings: Vec::new(),
            });
            for system in [&b"sched"[..], b"ftrace"] {
                let Ok(format) = Format::parse(file, system, &machine) else {
                    continue;
                };
                let mut out = Vec::new();
                format.print(raw, &mut NoFunctions, &mut out);
                longest = longest.max(out.len());
                for field in format.all_fields() {
                    let _ = field.value(raw);
                }
            }
        }
    }
    longest
}

pub use field::{Field, Value};
pub use format::Format;
pub use formats::{Formats, Unparsed};
pub use like::Like;
pub use problem::Problem;
pub use resolver::{Function, NoFunctions, Resolver};
