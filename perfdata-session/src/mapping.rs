//! Mappings of DSOs, and their descriptions in records.

use perfdata_core::record::{CpuMode, Ksymbol, MISC_MMAP_DATA, MappingView, Mmap, Mmap2};

use crate::dso::{BuildId, Dso, DsoKind, FileId, MEMFD, Machine, classify};
use crate::ids::DsoId;

/// A mapping of a part of a DSO. Newer mappings may replace a part of its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Mapping<D = DsoId> {
    /// The mapped DSO: its ID, or in a [`Mapped`] its description.
    pub dso: D,
    /// First address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// Offset of the first byte in the file, in bytes; for a kernel's image, the address of its
    /// relocation symbol.
    pub pgoff: u64,
    /// `PROT_*` of the recorded machine, if an MMAP2 record contains it.
    pub prot: Option<u32>,
    /// `MAP_*` of the recorded machine, if an MMAP2 record contains it.
    pub flags: Option<u32>,
    /// Whether the mapping is executable.
    pub is_executable: bool,
}

impl<D> Mapping<D> {
    /// Returns the same mapping with another value for its DSO.
    pub fn with_dso<E>(self, dso: E) -> Mapping<E> {
        let Mapping {
            start,
            end,
            pgoff,
            prot,
            flags,
            is_executable,
            ..
        } = self;
        Mapping {
            dso,
            start,
            end,
            pgoff,
            prot,
            flags,
            is_executable,
        }
    }
}

/// A DSO as described by an MMAP, MMAP2 or KSYMBOL record. Names are those in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedDso<'a> {
    /// The machine of the mapping.
    pub machine: Machine,
    /// The kind of the mapped DSO.
    pub kind: DsoKind,
    /// The name of the DSO: a path, a name in brackets, or the name of a kernel symbol.
    pub name: &'a [u8],
    /// The relocation symbol of a kernel's image; empty for other mappings.
    pub symbol: &'a [u8],
    /// The file, if the record identifies it and has no build ID.
    pub file: Option<FileId>,
    /// The build ID in the record.
    pub build_id: Option<BuildId>,
    /// The process ID of the process, if it is one of the host.
    pub process: Option<u32>,
}

/// A mapping as described by an MMAP, MMAP2 or KSYMBOL record.
pub type Mapped<'a> = Mapping<MappedDso<'a>>;

impl Mapping {
    /// Returns the offset of an address in the mapped DSO, which has this kind, in bytes:
    /// [`Frame::offset`](crate::Frame::offset).
    pub fn offset(&self, kind: DsoKind, address: u64) -> u64 {
        match kind {
            DsoKind::Kernel => address.wrapping_sub(self.pgoff),
            DsoKind::Module | DsoKind::KernelSymbol => address.wrapping_sub(self.start),
            _ => address.wrapping_sub(self.start).wrapping_add(self.pgoff),
        }
    }
}

impl<'a> Mapped<'a> {
    /// Returns the mapping in `map`, a record with `misc`.
    pub fn of_mmap(map: &'a Mmap, misc: u16) -> Self {
        Self::of_view(&MappingView::of_mmap(map), misc)
    }

    /// Returns the mapping in `map`, an MMAP2 record with `misc`.
    pub fn of_mmap2(map: &'a Mmap2, misc: u16) -> Self {
        Self::of_view(&MappingView::of_mmap2(map), misc)
    }

    /// Returns the mapping in `view`, an MMAP or MMAP2 record with `misc`.
    pub fn of_view(view: &MappingView<'a>, misc: u16) -> Self {
        let (prot, flags) = view.prot_flags.unzip();
        let new = Self::new(view.filename, flags, misc, view.pid);
        let new = new.at(view.addr, view.len, view.pgoff);
        let build_id = view.build_id.and_then(BuildId::new);
        let kind = match new.dso.kind {
            // The kernel finds build IDs only in ELF files: this is a program, and not generated code.
            DsoKind::Anonymous if build_id.is_some() && view.filename.starts_with(MEMFD) => {
                DsoKind::File
            }
            kind => kind,
        };
        let inode = view.inode.as_ref();
        let file = inode
            .and_then(FileId::of)
            .filter(|_| kind == DsoKind::File && build_id.is_none());
        Mapping {
            dso: MappedDso {
                kind,
                file,
                build_id,
                ..new.dso
            },
            prot,
            ..new
        }
    }

    pub(crate) fn of_symbol(symbol: &'a Ksymbol) -> Self {
        let end = symbol.addr.saturating_add(u64::from(symbol.len));
        Mapping {
            dso: MappedDso {
                machine: Machine::HOST,
                kind: DsoKind::KernelSymbol,
                name: symbol.name.text(),
                symbol: &[],
                file: None,
                build_id: None,
                process: None,
            },
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
        Mapping {
            dso: MappedDso {
                machine,
                kind,
                name,
                symbol,
                file: None,
                build_id: None,
                process: (mode == CpuMode::USER && pid != u32::MAX).then_some(pid),
            },
            start,
            end,
            pgoff,
            prot: None,
            flags,
            is_executable,
        }
    }

    fn at(self, start: u64, len: u64, pgoff: u64) -> Self {
        // A kernel mapping without an end (length 0) extends to the highest address, as in perf.
        let end = if len == 0 && self.dso.kind == DsoKind::Kernel {
            u64::MAX
        } else {
            start.saturating_add(len)
        };
        // The kernel maps the vDSO at the end of the address space, which is below 4 GiB only in
        // 32-bit processes.
        let kind = if self.dso.kind == DsoKind::Vdso && end <= 1 << 32 {
            DsoKind::Vdso32
        } else {
            self.dso.kind
        };
        // The vDSO is mapped from its first byte, even if old kernels report another offset.
        let pgoff = if matches!(kind, DsoKind::Vdso | DsoKind::Vdso32) {
            0
        } else {
            pgoff
        };
        Mapping {
            dso: MappedDso { kind, ..self.dso },
            start,
            end,
            pgoff,
            ..self
        }
    }
}

impl MappedDso<'_> {
    /// Returns the DSO for a table of DSOs.
    pub fn dso(&self) -> Dso {
        let MappedDso {
            machine,
            kind,
            name,
            file,
            build_id,
            process,
            ..
        } = *self;
        Dso {
            machine,
            kind,
            name: name.into(),
            file,
            mapped_build_id: build_id,
            process,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_in_memory_have_a_build_id() {
        let of = |filename: &str, build_id| {
            let map = Mmap::default();
            let mut view = MappingView::of_mmap(&map);
            (view.build_id, view.filename) = (build_id, filename.as_bytes());
            Mapped::of_view(&view, CpuMode::USER.0).dso.kind
        };
        let id = Some(&[1; 20][..]);
        assert_eq!(of("/memfd:program (deleted)", id), DsoKind::File);
        assert_eq!(of("/memfd:program (deleted)", None), DsoKind::Anonymous);
        assert_eq!(
            of("/memfd:program (deleted)", Some(&[0; 20])),
            DsoKind::Anonymous
        );
        assert_eq!(of("//anon", id), DsoKind::Anonymous);
    }
}
