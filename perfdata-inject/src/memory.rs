//! Executable memory of processes that is no file.

use perfdata_core::record::{Body, CpuMode, Record, RecordType};
use perfdata_session::{DsoKind, Mapped};

/// `PROT_EXEC`.
const PROT_EXEC: u32 = 4;

/// The size of the smallest page. Other addresses than those of pages are not mapped.
const PAGE: u64 = 0x1000;

/// Returns whether records of this type describe a mapping.
pub(crate) fn is_mapping(kind: RecordType) -> bool {
    [RecordType::MMAP, RecordType::MMAP2].contains(&kind)
}

/// Executable memory of a process that is no file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    pub pid: u32,
    pub start: u64,
    pub end: u64,
    /// Whether perf looks it up in the perf map, too (tools/perf/util/map.c, `map__new`, 7.2). It
    /// regards a file in memory as a file. .NET maps its code in this way; others run programs.
    pub is_anonymous: bool,
}

/// Names of executable memory that the kernel provides for every process.
const OF_KERNEL: [&[u8]; 4] = [b"[vsyscall]", b"[uprobes]", b"[vectors]", b"[sigpage]"];

impl Memory {
    /// Returns the memory in a mapping record.
    pub fn of(record: &Record) -> Option<Self> {
        let (pid, mapped) = match &record.body {
            Body::Mmap(map) => (map.pid, Mapped::of_mmap(map, record.misc)),
            Body::Mmap2(map) => (map.pid, Mapped::of_mmap2(map, record.misc)),
            _ => return None,
        };
        let is_executable =
            mapped.is_executable && mapped.prot.is_none_or(|prot| prot & PROT_EXEC != 0);
        let is_page = mapped.start.is_multiple_of(PAGE) && mapped.start < mapped.end;
        let is_code = CpuMode::of(record.misc) == CpuMode::USER
            && mapped.dso.kind == DsoKind::Anonymous
            && !OF_KERNEL.contains(&mapped.dso.name)
            && is_executable
            && is_page;
        is_code.then_some(Memory {
            pid,
            start: mapped.start,
            end: mapped.end,
            is_anonymous: !mapped.dso.name.starts_with(b"/memfd:"),
        })
    }
}
