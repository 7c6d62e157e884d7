//! jitdump: the code that a just-in-time compiler generated, in a file beside the recording
//! (tools/perf/util/jitdump.h and tools/perf/Documentation/jitdump-specification.txt, 4.6).
//!
//! A runtime writes a record for each function to `jit-PID.dump`, and maps the file so that the
//! recording contains its name. [`JitdumpReader`] reads such a file of either byte order:
//!
//! ```
//! use perfdata_core::jitdump::{JitBody, JitdumpReader};
//! use perfdata_core::read::Limits;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut bytes = Vec::new();
//! # for word in [0x4A69_5444_u32, 1, 40, 62, 0, 7, 0, 0, 0, 0] {
//! #     bytes.extend(word.to_le_bytes());
//! # }
//! # for word in [0_u32, 16 + 40 + 2 + 1, 5, 0, 7, 7] {
//! #     bytes.extend(word.to_le_bytes());
//! # }
//! # for word in [0x1000_u64, 0x1000, 1, 0] {
//! #     bytes.extend(word.to_le_bytes());
//! # }
//! # bytes.extend(b"f\0\xc3");
//! let mut dump = JitdumpReader::new(&bytes[..], Limits::default())?;
//! println!("process {}", dump.header().pid);
//! # let mut names = Vec::new();
//! while let Some(record) = dump.next()? {
//!     if let JitBody::CodeLoad(load) = record.body {
//!         println!("{:#x} {}", load.code_addr, String::from_utf8_lossy(load.name()));
//! #       names.push(load.name().to_vec());
//!     }
//! }
//! # assert_eq!(names, [b"f"]);
//! # Ok(())
//! # }
//! ```
//!
//! DEBUG_INFO and UNWINDING_INFO describe the function of the next CODE_LOAD.

mod reader;

pub use reader::JitdumpReader;

use binrw::Endian;

use crate::codes::{codes, flags};
use crate::error::{Error, Result};
use crate::feature::ElfMachine;
use crate::record::choice::choice;
use crate::wire::{CStr, Extent, List, Rest, elements, until_nul, wire};

/// The magic number of a jitdump: "JiTD" as a number.
pub const MAGIC: u32 = 0x4A69_5444;

/// Returns the byte order of the jitdump that begins with `bytes`; `None` if they are not the start
/// of a jitdump.
pub fn recognise(bytes: &[u8]) -> Option<Endian> {
    let magic = *bytes.first_chunk()?;
    match MAGIC {
        _ if u32::from_le_bytes(magic) == MAGIC => Some(Endian::Little),
        _ if u32::from_be_bytes(magic) == MAGIC => Some(Endian::Big),
        _ => None,
    }
}

flags! {
    /// Flags of a jitdump (`enum jitdump_flags_bits`).
    pub struct JitFlags: u64 {
        since "4.6" {
            0 ARCH_TIMESTAMP "ARCH_TIMESTAMP",
        }
    }
}

wire! {
    /// The start of a jitdump (`struct jitheader`).
    pub struct JitHeader => Code {
        /// [`MAGIC`].
        pub magic: u32 as Hex,
        /// Version of the format: 1.
        pub version: u32,
        /// Size of the header in bytes: 40, or more in a newer form. The first record follows.
        pub total_size: u32,
        /// ELF machine of the code; 0 in dumps of CPython 3.13.0.
        pub elf_mach: ElfMachine,
        /// Reserved; V8 writes 0xDEADBEEF.
        pub pad1: u32 as Hex,
        /// Process ID, as the process itself sees it: in its innermost PID namespace.
        pub pid: u32 as Pid,
        /// Time of creation, in nanoseconds on the clock of the records. V8 and CPython write
        /// microseconds of the time of day instead.
        pub timestamp: u64,
        /// Flags.
        pub flags: JitFlags,
    }
}

impl JitHeader {
    /// Size in bytes of the header of version 1.
    pub const SIZE: u32 = 40;

    /// Returns whether timestamps are values of the CPU's cycle counter instead of nanoseconds of
    /// `CLOCK_MONOTONIC`.
    pub fn has_arch_timestamps(&self) -> bool {
        self.flags.has(JitFlags::ARCH_TIMESTAMP)
    }
}

codes! {
    /// Type of a record of a jitdump (`enum jit_record_type`).
    pub struct JitRecordType: u32 {
        /// A function was generated.
        0 CODE_LOAD "CODE_LOAD",
        /// A function was moved.
        1 CODE_MOVE "CODE_MOVE",
        /// Source lines of the next function.
        2 CODE_DEBUG_INFO "CODE_DEBUG_INFO",
        /// The runtime ends.
        3 CODE_CLOSE "CODE_CLOSE",
        /// Unwinding information of the next function.
        4 CODE_UNWINDING_INFO "CODE_UNWINDING_INFO",
    }
}

wire! {
    /// A record of a jitdump.
    pub struct JitRecord(layout) => Code {
        /// Type (`id` in the kernel's header).
        pub kind: JitRecordType,
        /// Size of the record in bytes, including these 16. Records are not aligned.
        pub total_size: u32,
        /// Nanoseconds of `CLOCK_MONOTONIC`, or a value of the cycle counter with
        /// [`JitFlags::ARCH_TIMESTAMP`].
        pub timestamp: u64,
        /// The rest of the record.
        #[br(args_raw = (kind, layout))]
        pub body: JitBody,
    }
}

impl JitRecord {
    /// Size in bytes of the fields before the body.
    pub const HEAD: usize = 16;

    /// Checks what the declaration of the fields does not.
    fn check(&self) -> Result<()> {
        match &self.body {
            JitBody::CodeLoad(load) if !load.name.0.contains(&0) => Err(Error::invalid(
                "",
                "name",
                "no NUL before the code",
                "a NUL-terminated name",
            )),
            JitBody::UnwindingInfo(info) if info.eh_frame_hdr_size > info.unwinding_size => {
                Err(Error::invalid(
                    "",
                    "eh_frame_hdr_size",
                    info.eh_frame_hdr_size.to_string(),
                    format!("at most unwinding_size, {}", info.unwinding_size),
                ))
            }
            _ => Ok(()),
        }
    }
}

choice! {
    /// The body of a record of a jitdump, by its type.
    pub enum JitBody(kind: JitRecordType, layout) {
        /// A function was generated.
        JitRecordType::CODE_LOAD => CodeLoad(CodeLoad) with layout,
        /// A function was moved.
        JitRecordType::CODE_MOVE => CodeMove(CodeMove),
        /// Source lines of the next function.
        JitRecordType::CODE_DEBUG_INFO => DebugInfo(JitDebugInfo),
        /// The runtime ends.
        JitRecordType::CODE_CLOSE => Close(Rest as Pad),
        /// Unwinding information of the next function.
        JitRecordType::CODE_UNWINDING_INFO => UnwindingInfo(UnwindingInfo),
        /// A record that this version of the library does not know.
        _ => Unknown(Rest as Opaque),
    }
}

wire! {
    /// A generated function (`struct jr_code_load`).
    pub struct CodeLoad(layout) => Code {
        /// Process ID, as the process itself sees it.
        pub pid: u32 as Pid,
        /// Thread ID, as the process itself sees it.
        pub tid: u32 as Pid,
        /// Address of the code; equal to `code_addr` in all known dumps.
        pub vma: u64 as Address,
        /// Address of the code.
        pub code_addr: u64 as Address,
        /// Size of the code in bytes; may be 0.
        pub code_size: u64,
        /// Number of the function, unique in the dump.
        pub code_index: u64,
        /// Name with its NUL, and any bytes between it and the code.
        #[br(args_raw = Extent::UpTo(layout.len.saturating_sub(code_size)))]
        pub name: Rest as Text,
        /// The code: the last bytes of the record.
        #[br(args_raw = Extent::Bytes(code_size))]
        pub code: Rest,
    }
}

impl CodeLoad {
    /// Returns the name of the function: the bytes before the first NUL.
    pub fn name(&self) -> &[u8] {
        until_nul(&self.name.0)
    }
}

wire! {
    /// A function at a new address (`struct jr_code_move`).
    pub struct CodeMove => Code {
        /// Process ID, as the process itself sees it.
        pub pid: u32 as Pid,
        /// Thread ID, as the process itself sees it.
        pub tid: u32 as Pid,
        /// New address of the code.
        pub vma: u64 as Address,
        /// Previous address of the code.
        pub old_code_addr: u64 as Address,
        /// New address of the code.
        pub new_code_addr: u64 as Address,
        /// Size of the code in bytes.
        pub code_size: u64,
        /// Number of the function in its CODE_LOAD.
        pub code_index: u64,
        /// Bytes after the last known field.
        pub tail: Rest as Opaque,
    }
}

wire! {
    /// The source line of an address (`struct debug_entry`).
    pub struct JitDebugEntry => Code {
        /// Address of the first instruction of the line.
        pub addr: u64 as Address,
        /// Line, from 1.
        pub lineno: i32,
        /// Column, or discriminator.
        pub discrim: i32,
        /// Name of the source file; `ff 00` for that of the previous entry.
        pub name: CStr,
    }
}
elements!(JitDebugEntry);

impl JitDebugEntry {
    /// Returns the name of the source file; `None` if it is that of the previous entry.
    pub fn file(&self) -> Option<&[u8]> {
        Some(self.name.text()).filter(|name| *name != b"\xff")
    }
}

wire! {
    /// Source lines of the next function (`struct jr_code_debug_info`).
    pub struct JitDebugInfo => Code {
        /// Address of the function.
        pub code_addr: u64 as Address,
        /// Number of entries.
        pub nr_entry: u64,
        /// The entries.
        #[br(args(nr_entry))]
        pub entries: List<JitDebugEntry>,
        /// Padding.
        pub padding: Rest as Pad,
    }
}

wire! {
    /// Unwinding information of the next function (`struct jr_code_unwinding_info`).
    pub struct UnwindingInfo => Code {
        /// Size of both sections in bytes; may be 0.
        pub unwinding_size: u64,
        /// Size of `.eh_frame_hdr` in bytes; may be 0.
        pub eh_frame_hdr_size: u64,
        /// Number of these bytes that are also in the memory of the process, directly after the
        /// code; 0 if they are only in the dump.
        pub mapped_size: u64,
        /// The section `.eh_frame`.
        #[br(args_raw = Extent::Bytes(unwinding_size.saturating_sub(eh_frame_hdr_size)))]
        pub eh_frame: Rest,
        /// The section `.eh_frame_hdr`.
        #[br(args_raw = Extent::Bytes(eh_frame_hdr_size))]
        pub eh_frame_hdr: Rest,
        /// Padding.
        pub padding: Rest as Pad,
    }
}
