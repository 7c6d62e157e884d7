//! The independent test writer: writes perf.data recordings byte by byte.
//!
//! Nothing here uses `perfdata-core`. The layouts are written a second time, from the kernel's
//! headers, as plain sequences of numbers and bytes. If a reader and a writer share a wrong
//! definition of a structure, their results differ from those of this writer.
//!
//! Everything is written through [`Buf`], which has a byte order. The same call therefore produces
//! a little-endian and a big-endian twin that differ exactly where recordings of the two byte
//! orders differ: numbers are swapped, bit-fields are moved by name ([`bits`]), and islands
//! (strings, raw sample data, AUX data, build IDs, BPF code, tracing data) remain unchanged.
//!
//! * [`record::cases`]: every record type in every variant, one record each.
//! * [`feature::cases`]: every feature section in every revision.
//! * [`mod@file`], [`pipe`], [`dir`]: builders of whole recordings, and [`sink`]: one valid
//!   recording with every record type and feature.

pub mod arm_spe;
pub mod attr;
pub mod auxtrace;
pub mod bits;
pub mod branch_trace;
pub mod buf;
pub mod build_id;
pub mod dir;
pub mod feature;
pub mod feature_bpf;
pub mod feature_events;
pub mod feature_pmu;
pub mod feature_system;
pub mod feature_topology;
pub mod file;
pub mod forms;
pub mod hardware_trace;
pub mod jitdump;
pub mod kernel;
pub mod kernel_cases;
pub mod kind;
pub mod object;
pub mod pipe;
pub mod record;
pub mod sample;
pub mod sample_cases;
pub mod sink;
pub mod stat;
pub mod tracing;
pub mod user;
pub mod user_cases;
pub mod zstd;

pub use attr::{Attr, Stamp};
pub use buf::Buf;
pub use feature::FeatureCase;
pub use record::Case;
