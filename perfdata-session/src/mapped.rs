//! What records say of mappings.

use perfdata_core::record::{CpuMode, Ksymbol, MISC_MMAP_DATA, Mmap, Mmap2};

use crate::dso::{BuildId, Dso, DsoKind, FileId, Machine, classify};

/// What a record says of a mapping: MMAP, MMAP2, or KSYMBOL. Names are those in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mapped<'a> {
    /// On which machine.
    pub machine: Machine,
    /// What is mapped.
    pub kind: DsoKind,
    /// Its name: a path, a name in brackets, or the name of a kernel symbol.
    pub name: &'a [u8],
    /// Of a kernel's image its relocation symbol, else nothing.
    pub symbol: &'a [u8],
    /// The file, where the record says it and no build ID.
    pub file: Option<FileId>,
    /// The build ID that the record carries.
    pub build_id: Option<BuildId>,
    /// First address.
    pub start: u64,
    /// The address behind the last one.
    pub end: u64,
    /// Offset of the first byte in the file; of a kernel's image the address of its relocation symbol.
    pub pgoff: u64,
    /// `PROT_*` of the recording machine, where an MMAP2 record says it.
    pub prot: Option<u32>,
    /// `MAP_*` of the recording machine, likewise.
    pub flags: Option<u32>,
    /// Whether it was mapped to be executed.
    pub is_executable: bool,
}

impl<'a> Mapped<'a> {
    /// What `map` says, in a record with `misc`.
    pub fn of_mmap(map: &'a Mmap, misc: u16) -> Self {
        let Mmap { pid, addr, len, pgoff, filename, .. } = map;
        Self::new(filename.text(), None, misc, *pid).at(*addr, *len, *pgoff)
    }

    /// The same of an MMAP2 record.
    pub fn of_mmap2(map: &'a Mmap2, misc: u16) -> Self {
        let Mmap2 { pid, addr, len, pgoff, inode, build_id, prot, flags, filename, .. } = map;
        let build_id = build_id.as_ref();
        let build_id = build_id.and_then(|id| BuildId::new(id.build_id.get(..usize::from(id.build_id_size))?));
        let new = Self::new(filename.text(), Some(*flags), misc, *pid).at(*addr, *len, *pgoff);
        let file = inode.as_ref().and_then(FileId::of).filter(|_| new.kind == DsoKind::File && build_id.is_none());
        Mapped { file, build_id, prot: Some(*prot), ..new }
    }

    pub(crate) fn of_symbol(symbol: &'a Ksymbol) -> Self {
        let end = symbol.addr.saturating_add(u64::from(symbol.len));
        Mapped {
            machine: Machine::HOST,
            kind: DsoKind::KernelSymbol,
            name: symbol.name.text(),
            symbol: &[],
            file: None,
            build_id: None,
            start: symbol.addr,
            end,
            pgoff: 0,
            prot: None,
            flags: None,
            is_executable: true,
        }
    }

    fn new(name: &'a [u8], flags: Option<u32>, misc: u16, pid: u32) -> Self {
        let mode = CpuMode::of(misc);
        let (kind, name, symbol) = classify(name, mode, flags);
        let machine = match mode {
            CpuMode::GUEST_KERNEL => Machine::guest(pid),
            mode => Machine::of(mode),
        };
        let (start, end, pgoff, is_executable) = (0, 0, 0, misc & MISC_MMAP_DATA == 0);
        Mapped {
            machine,
            kind,
            name,
            symbol,
            file: None,
            build_id: None,
            start,
            end,
            pgoff,
            prot: None,
            flags,
            is_executable,
        }
    }

    fn at(self, start: u64, len: u64, pgoff: u64) -> Self {
        // perf takes no end for one behind all addresses.
        let end = if len == 0 && self.kind == DsoKind::Kernel { u64::MAX } else { start.saturating_add(len) };
        // The kernel puts the vDSO at the end of a process's addresses.
        let kind = if self.kind == DsoKind::Vdso && end <= 1 << 32 { DsoKind::Vdso32 } else { self.kind };
        // Its image is mapped from its start on, whatever old kernels say.
        let pgoff = if matches!(kind, DsoKind::Vdso | DsoKind::Vdso32) { 0 } else { pgoff };
        Mapped { kind, start, end, pgoff, ..self }
    }

    /// The DSO that is mapped.
    pub fn dso(&self) -> Dso {
        let Mapped { machine, kind, name, file, build_id, .. } = *self;
        Dso { machine, kind, name: name.into(), file, mapped_build_id: build_id }
    }
}
