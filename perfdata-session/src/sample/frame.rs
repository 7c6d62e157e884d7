//! A frame of a callchain, and branches.

use perfdata_core::record::{BranchFlags, CpuMode};

use crate::dso::{BuildId, Dso};
use crate::ids::{DsoId, MappingId};
use crate::mapping::Mapping;
use crate::session::Session;

/// A frame of a callchain: an address and its mapping.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    pub(super) session: &'a Session,
    /// The address. For a caller, this is the return address: the call is before it.
    pub address: u64,
    /// The CPU mode: kernel, user (process), or hypervisor.
    pub mode: CpuMode,
    /// Whether the address is a return address. That of the first frame in each mode is not: there,
    /// the instruction at the address was running, or is the next one.
    pub is_return: bool,
    /// The mapping; `None` if the recording contains no mapping at this address.
    pub mapping: Option<MappingId>,
    /// The mapping that perf finds if `mapping` is `None`: a mapping of an earlier program of the
    /// process. perf keeps the mappings of a process across exec.
    pub before_exec: Option<MappingId>,
}

impl<'a> Frame<'a> {
    /// Returns the mapping.
    pub fn mapping(&self) -> Option<Mapping> {
        self.session.mapping(self.mapping?)
    }

    /// Returns the ID of the mapped DSO.
    pub fn dso_id(&self) -> Option<DsoId> {
        self.mapping().map(|mapping| mapping.dso)
    }

    /// Returns the mapped DSO.
    pub fn dso(&self) -> Option<&'a Dso> {
        self.session.dso(self.dso_id()?)
    }

    /// Returns the build ID of the mapped DSO, if the recording contains it.
    pub fn build_id(&self) -> Option<BuildId> {
        self.session.build_id(self.dso_id()?)
    }

    /// Returns the DSO that perf finds: see [`before_exec`](Self::before_exec).
    pub fn dso_before_exec(&self) -> Option<&'a Dso> {
        self.session
            .dso(self.session.mapping(self.before_exec?)?.dso)
    }

    /// Returns the offset in the mapped DSO, in bytes. Its base depends on the kind of the DSO:
    ///
    /// - files, vDSO and memory: from the beginning of the file. The program headers of an ELF file
    ///   convert it to an address in the symbol table; for a file of type `ET_EXEC` this is
    ///   [`address`](Self::address) itself;
    /// - kernels: from the relocation symbol ([`Session::relocation_symbol`]). Add the address of
    ///   this symbol in `vmlinux`; `address` is the address in `/proc/kallsyms` of that boot. If
    ///   the recording does not contain the symbol's address, the offset is `address`;
    /// - modules and kernel symbols: from the first mapped address; for modules, this is the start
    ///   of their text section.
    pub fn offset(&self) -> Option<u64> {
        let (mapping, dso) = (self.mapping()?, self.dso()?);
        Some(mapping.offset(dso.kind, self.address))
    }
}

/// A branch that the CPU took.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Branch<'a> {
    /// The branch instruction.
    pub from: Frame<'a>,
    /// The target.
    pub to: Frame<'a>,
    /// Further flags of the branch.
    pub flags: BranchFlags,
}
