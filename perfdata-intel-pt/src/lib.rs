//! Packets of Intel Processor Trace, read and written; the code that they are about, followed;
//! instructions of x86.
//!
//! The processor writes the control flow of a program as a stream of packets: TNT packets have a
//! bit for each conditional branch, TIP packets the targets of indirect ones, and others say in
//! which mode, at what time and at which address. The packets are described in the Intel 64 and
//! IA-32 Architectures Software Developer's Manual, volume 3, chapter "Intel Processor Trace".
//!
//! ```
//! use perfdata_intel_pt::{CompressedIp, ModeExec, Packet, Packets};
//!
//! let mut trace = Vec::new();
//! Packet::Psb.write(&mut trace);
//! Packet::ModeExec(ModeExec { is_long: true, ..ModeExec::default() }).write(&mut trace);
//! Packet::PsbEnd.write(&mut trace);
//! Packet::TipPge(CompressedIp::SignExtended(0x40_10d0)).write(&mut trace);
//! assert_eq!(trace[16..20], [0x99, 0x01, 0x02, 0x23]);
//!
//! let texts: Vec<String> = Packets::new(&trace, 0)
//!     .map(|found| found.packet.map(|packet| packet.to_string()))
//!     .collect::<Result<_, _>>()?;
//! assert_eq!(texts, ["PSB", "MODE.Exec IF:0 64", "PSBEND", "TIP.PGE 0x4010d0"]);
//! # Ok::<(), perfdata_intel_pt::BadPacket>(())
//! ```
//!
//! # Packets
//!
//! Each packet is declared once: its header, and the bits of its fields. Reading, writing, names
//! and fields follow from it. Reserved bits are fields, too, so that a packet is written as it was
//! read. [`Packet`] prints as `perf script -D` does (tools/perf/util/intel-pt-decoder/, Linux 7.1).
//!
//! [`Packets`] returns the packets of a buffer, or of parts of it, one after the other. The bytes
//! in a stream need not be packets: data get lost, and a buffer may start inside of a packet.
//! [`Packets::resynchronize`] continues at the next PSB packet, where a decoder can start.
//!
//! # Instructions
//!
//! [`Instruction`] has what a decoder needs of the traced code: sizes, and where execution
//! continues.
//!
//! # Decoding
//!
//! [`Decoder`] follows the code from packet to packet. It gets the parts of a trace from a [`TraceSource`],
//! and code from a [`CodeSource`], and reports each [`TraceEvent`]: branches, instructions at periods, and what
//! other packets say, with their times. CodeSource is decoded once, to [`BasicBlocks`].
//!
//! # Guarantees
//!
//! Traces are not trusted: nothing panics, and each byte is in exactly one packet or error.

#![forbid(unsafe_code)]

mod address;
mod bits;
mod blocks;
mod branches;
mod config;
mod cycles;
mod declare;
mod decoder;
mod error;
mod event;
mod instruction;
mod packet;
mod source;
mod stream;

pub use address::CompressedIp;
pub use blocks::BasicBlocks;
pub use branches::Tnt;
pub use config::{Config, Detail, Period};
pub use cycles::Cyc;
pub use decoder::Decoder;
pub use error::BadPacket;
pub use event::{BlockItems, DecodeError, EventKinds, TraceEvent};
pub use instruction::{Instruction, InstructionKind, MAX_INSTRUCTION};
pub use packet::{
    Bbp, Bep, Bip4, Bip8, BlockItemSize, Cbr, Cfe, Evd, Exstop, Mnt, ModeExec, ModeTsx, Mtc, Mwait,
    Packet, Pip, Ptwrite4, Ptwrite8, Pwre, Pwrx, Tma, Tsc, Vmcs,
};
pub use source::{Buffer, CodeSource, TraceSource};
pub use stream::{PacketAt, Packets, find_psb};
