//! The trace of the Arm Statistical Profiling Extension (SPE): the AUX data of an event of the PMU
//! `arm_spe_N` (tools/perf/util/arm-spe-decoder/, Linux 7.1; Arm Architecture Reference Manual,
//! chapter "Statistical Profiling Extension Sample Record Specification").
//!
//! The hardware samples operations. It writes a [record](SpeRecord) of each, which consists of
//! [packets](Packet) and ends with a timestamp or an END packet. All numbers are little-endian,
//! whatever the byte order of the recording. [`Records`] decodes the records of a buffer:
//!
//! ```
//! use perfdata_core::arm_spe::{Operation, Records, SpeEvents};
//!
//! let trace = [
//!     0xb0, 0x10, 0x00, 0x40, 0, 0, 0, 0, 0, // address of the instruction
//!     0x49, 0x00, // a load
//!     0x42, 0x06, // retired, accessed the L1 data cache
//!     0x71, 0x64, 0, 0, 0, 0, 0, 0, 0, // timestamp 100
//! ];
//! let mut records = Records::new(&trace, 0);
//! let record = records.next().expect("a record")?;
//! assert_eq!((record.pc, record.timestamp), (0x40_0010, Some(100)));
//! assert!(record.operation.has(Operation::LOAD));
//! assert!(record.events.has(SpeEvents::L1D_ACCESS));
//! assert!(records.next().is_none());
//! # Ok::<(), perfdata_core::arm_spe::Damage>(())
//! ```

mod packet;
mod record;
mod text;

pub use packet::{Packet, Unreadable};
pub use record::{Damage, Operation, RecordBuilder, Records, SpeEvents, SpeRecord};
