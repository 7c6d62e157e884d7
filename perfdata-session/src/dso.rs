//! DSOs: the things that code runs from, in perf's word for all of them (tools/perf/util/dso.h).

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use perfdata_core::record::{self, CpuMode, Inode};

use crate::ids::DsoId;
use crate::mapped::Mapped;

/// A machine of the recording, by the number that build IDs have for it: -1 the host, 0 the default guest, else a
/// guest's process ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Machine(pub i32);

impl Machine {
    /// The machine that recorded.
    pub const HOST: Machine = Machine(-1);
    /// The guest of which no process ID is known.
    pub const DEFAULT_GUEST: Machine = Machine(0);

    /// The machine whose records have `mode`: the host, or the default guest.
    #[inline]
    pub(crate) fn of(mode: CpuMode) -> Machine {
        match mode {
            CpuMode::GUEST_KERNEL | CpuMode::GUEST_USER => Machine::DEFAULT_GUEST,
            _ => Machine::HOST,
        }
    }

    /// The guest that process `pid` of the host runs.
    #[inline]
    pub(crate) fn guest(pid: u32) -> Machine {
        Machine(pid.cast_signed().max(0))
    }

    /// The machine that an entry of the table of build IDs is for. Before 2.6.35 entries did not say it, but the mode
    /// does.
    pub fn of_build_id(entry: &record::BuildId, misc: u16) -> Machine {
        entry.pid.map_or(Machine::of(CpuMode::of(misc)), Machine)
    }

    /// Whether it is a guest.
    pub fn is_guest(self) -> bool {
        self != Self::HOST
    }
}

/// A build ID: 1 to 20 bytes, what a recording has room for (tools/perf/util/build-id.h, `BUILD_ID_SIZE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId {
    bytes: [u8; BuildId::MAX],
    len: u8,
}

impl BuildId {
    /// The most bytes of a build ID that a recording keeps.
    pub const MAX: usize = 20;

    /// The build ID in `bytes`, of which those beyond the 20th are lost; `None` for no bytes, or zeros only.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let kept = bytes.get(..Self::MAX).unwrap_or(bytes);
        let mut id = BuildId { bytes: [0; Self::MAX], len: u8::try_from(kept.len()).ok()? };
        id.bytes.get_mut(..kept.len())?.copy_from_slice(kept);
        kept.iter().any(|&byte| byte != 0).then_some(id)
    }

    /// The build ID that hexadecimal digits tell.
    pub fn from_hex(digits: &str) -> Option<Self> {
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let is_hex = digits.len().is_multiple_of(2) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let bytes: Vec<u8> = digits.as_bytes().chunks(2).map(byte).collect::<Option<_>>().filter(|_| is_hex)?;
        Self::new(&bytes)
    }

    /// The bytes with zeros up to the 20th, and how many of them count.
    pub fn padded(&self) -> ([u8; BuildId::MAX], u8) {
        (self.bytes, self.len)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What a DSO is, which decides what an offset in it counts from ([`Frame::offset`](crate::Frame::offset)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DsoKind {
    /// The image of a kernel.
    Kernel,
    /// A module of a kernel.
    Module,
    /// A BPF program or trampoline, or other code that the kernel made (KSYMBOL).
    KernelSymbol,
    /// What the kernel maps into processes of 64 bits: `[vdso]`.
    Vdso,
    /// What it maps into processes of 32 bits, whatever the name: `[vdso]`, `[vdso32]`, `[vdsox32]`.
    Vdso32,
    /// A file that a process mapped.
    File,
    /// Memory that is no file: `//anon`, `[heap]`, `[stack]`, `/memfd:…`, `/SYSV…`, huge pages. Code in it was made by a
    /// JIT compiler.
    Anonymous,
}

/// The file behind a mapping as the kernel knew it when it was mapped (MMAP2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FileId {
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// Inode number.
    pub inode: u64,
    /// Generation of the inode.
    pub generation: u64,
}

impl FileId {
    /// What a record says; `None` where it says nothing.
    pub(crate) fn of(inode: &Inode) -> Option<Self> {
        let Inode { maj, min, ino, ino_generation } = *inode;
        (ino != 0).then_some(FileId { device: (maj, min), inode: ino, generation: ino_generation })
    }
}

/// One DSO. Files of one name that are different files are different DSOs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Dso {
    /// Where it runs.
    pub machine: Machine,
    /// What it is.
    pub kind: DsoKind,
    /// Its name in the recording: a path, a name in brackets, or the name of a kernel symbol.
    pub name: Box<[u8]>,
    /// The file, where a mapping says it and has no build ID.
    pub file: Option<FileId>,
    /// The build ID that its mappings carry. [`Session::build_id`](crate::Session::build_id) knows the recording's table
    /// of build IDs, too.
    pub mapped_build_id: Option<BuildId>,
}

/// What the kernel appends to the name of a file that is deleted (fs/d_path.c).
const DELETED: &[u8] = b" (deleted)";

impl Dso {
    /// The name without the kernel's mark of a deleted file.
    pub fn path(&self) -> &[u8] {
        match self.kind {
            DsoKind::File => self.name.strip_suffix(DELETED).unwrap_or(&self.name),
            _ => &self.name,
        }
    }

    /// Whether the file was deleted when it was mapped, or before the recording began.
    pub fn is_deleted(&self) -> bool {
        self.kind == DsoKind::File && self.name.ends_with(DELETED)
    }
}

/// All DSOs, in the order in which they appear.
#[derive(Debug, Default)]
pub struct Dsos {
    list: Vec<Dso>,
    /// By the hash of what makes a DSO, the last one that has it, and for each DSO the one before that has the same.
    by_hash: HashMap<u64, DsoId, RandomState>,
    before: Vec<Option<DsoId>>,
    hasher: RandomState,
    names: usize,
}

impl Dsos {
    /// The ID of what `mapped` maps, which is entered if it is new.
    pub fn intern(&mut self, mapped: &Mapped<'_>) -> DsoId {
        let Mapped { machine, kind, name, file, build_id, .. } = *mapped;
        let hash = self.hasher.hash_one((machine, kind, name, file, build_id));
        let mut at = self.by_hash.get(&hash).copied();
        while let Some(id) = at {
            let Some(dso) = self.list.get(id.index()) else { break };
            if dso.name.as_ref() == name
                && (dso.machine, dso.kind, dso.file, dso.mapped_build_id) == (machine, kind, file, build_id)
            {
                return id;
            }
            at = self.before.get(id.index()).copied().flatten();
        }
        let id = DsoId::of(self.list.len());
        self.names = self.names.saturating_add(name.len());
        self.list.push(mapped.dso());
        self.before.push(self.by_hash.insert(hash, id));
        id
    }

    /// All of them, by their IDs.
    pub fn list(&self) -> &[Dso] {
        &self.list
    }

    /// All of them, by their IDs.
    pub fn into_list(self) -> Vec<Dso> {
        self.list
    }

    /// Bytes of them, about.
    pub fn held(&self) -> usize {
        let each = size_of::<Dso>().saturating_add(48);
        self.list.len().saturating_mul(each).saturating_add(self.names)
    }
}

/// What a mapping of a kernel is called up to here in a record; the name of its relocation symbol follows the bracket.
const KERNELS: [&[u8]; 2] = [b"[kernel.kallsyms", b"[guest.kernel.kallsyms"];

/// Mappings in processes that are no files (tools/perf/util/map.c, `is_anon_memory` and `is_no_dso_memory`).
const ANONYMOUS: [&[u8]; 6] = [b"//", b"/dev/zero", b"/anon_hugepage", b"/SYSV", b"/memfd:", b"["];

/// `MAP_HUGETLB` of most architectures: mappings with it are anonymous to perf.
const MAP_HUGETLB: u32 = 0x40000;

/// What a mapping in `mode` called `name` maps: the kind and name of the DSO, and the relocation symbol of a kernel.
pub(crate) fn classify(name: &[u8], mode: CpuMode, flags: Option<u32>) -> (DsoKind, &[u8], &[u8]) {
    if matches!(mode, CpuMode::KERNEL | CpuMode::GUEST_KERNEL) {
        let is_kernel = KERNELS.iter().any(|kernel| name.starts_with(kernel));
        return match name.iter().position(|&byte| byte == b']').filter(|_| is_kernel) {
            Some(end) => {
                let (image, symbol) = name.split_at_checked(end.saturating_add(1)).unwrap_or((name, &[]));
                (DsoKind::Kernel, image, symbol)
            }
            None => (DsoKind::Module, name, &[]),
        };
    }
    let kind = if name.starts_with(b"[vdso") {
        DsoKind::Vdso
    } else if name.is_empty()
        || ANONYMOUS.iter().any(|start| name.starts_with(start))
        || flags.is_some_and(|flags| flags & MAP_HUGETLB != 0)
    {
        DsoKind::Anonymous
    } else {
        DsoKind::File
    };
    (kind, name, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_mapped() {
        let of = |name: &'static str, mode| {
            let (kind, name, symbol) = classify(name.as_bytes(), mode, None);
            (kind, String::from_utf8_lossy(name).into_owned(), String::from_utf8_lossy(symbol).into_owned())
        };
        let named = |kind, name: &str, symbol: &str| (kind, name.to_owned(), symbol.to_owned());
        let kernel = of("[kernel.kallsyms]_text", CpuMode::KERNEL);
        assert_eq!(kernel, named(DsoKind::Kernel, "[kernel.kallsyms]", "_text"));
        let guest = of("[guest.kernel.kallsyms.42]_stext", CpuMode::GUEST_KERNEL);
        assert_eq!(guest, named(DsoKind::Kernel, "[guest.kernel.kallsyms.42]", "_stext"));
        assert_eq!(of("[ext4]", CpuMode::KERNEL).0, DsoKind::Module);
        assert_eq!(of("/lib/modules/6.1/ext4.ko", CpuMode::KERNEL).0, DsoKind::Module);
        for name in ["//anon", "[heap]", "[stack]", "/memfd:jit (deleted)", "/SYSV0000", "/anon_hugepage", ""] {
            assert_eq!(of(name, CpuMode::USER).0, DsoKind::Anonymous, "{name}");
        }
        assert_eq!(of("[vdso]", CpuMode::USER).0, DsoKind::Vdso);
        assert_eq!(of("/bin/true", CpuMode::USER).0, DsoKind::File);
        assert_eq!(classify(b"/hugetlbfs/text", CpuMode::USER, Some(MAP_HUGETLB)).0, DsoKind::Anonymous);
    }

    #[test]
    fn deleted_files_have_a_path() {
        let dso = Dso {
            machine: Machine::HOST,
            kind: DsoKind::File,
            name: b"/tmp/a (deleted)".as_slice().into(),
            file: None,
            mapped_build_id: None,
        };
        assert!(dso.is_deleted());
        assert_eq!(dso.path(), b"/tmp/a");
    }
}
