//! DSOs: perf's term for everything that code runs from (tools/perf/util/dso.h).

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::RandomState;
use perfdata_core::record::{self, CpuMode, Inode};

use crate::ids::DsoId;
use crate::mapping::MappedDso;

/// A machine of the recording, identified as in build ID records: -1 is the host, 0 the default
/// guest, any other number is a guest's process ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Machine(pub i32);

impl Machine {
    /// The machine that made the recording.
    pub const HOST: Machine = Machine(-1);
    /// The guest whose process ID is not known.
    pub const DEFAULT_GUEST: Machine = Machine(0);

    /// Returns the machine for records with `mode`: the host, or the default guest.
    #[inline]
    pub fn of(mode: CpuMode) -> Machine {
        match mode {
            CpuMode::GUEST_KERNEL | CpuMode::GUEST_USER => Machine::DEFAULT_GUEST,
            _ => Machine::HOST,
        }
    }

    /// Returns the guest that process `pid` of the host runs.
    #[inline]
    pub(crate) fn guest(pid: u32) -> Machine {
        Machine(pid.cast_signed().max(0))
    }

    /// Returns the machine of a build ID record. Before 2.6.35, the record had no process ID; the
    /// mode shows the machine.
    pub fn of_build_id(entry: &record::BuildId, misc: u16) -> Machine {
        entry.pid.map_or(Machine::of(CpuMode::of(misc)), Machine)
    }

    /// Returns whether the machine is a guest.
    pub fn is_guest(self) -> bool {
        self != Self::HOST
    }
}

/// A build ID of 1 to 20 bytes, the sizes that a recording can contain (tools/perf/util/build-id.h,
/// `BUILD_ID_SIZE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId {
    bytes: [u8; BuildId::MAX],
    len: u8,
}

impl BuildId {
    /// The maximum size of a build ID in a recording, in bytes.
    pub const MAX: usize = 20;

    /// Returns the build ID in `bytes`, truncated after 20 bytes; `None` if `bytes` is empty or
    /// contains only zeros.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let kept = bytes.get(..Self::MAX).unwrap_or(bytes);
        let mut id = BuildId {
            bytes: [0; Self::MAX],
            len: u8::try_from(kept.len()).ok()?,
        };
        id.bytes.get_mut(..kept.len())?.copy_from_slice(kept);
        kept.iter().any(|&byte| byte != 0).then_some(id)
    }

    /// Parses a build ID from hexadecimal digits.
    pub fn from_hex(digits: &str) -> Option<Self> {
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let is_hex =
            digits.len().is_multiple_of(2) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let bytes: Vec<u8> = digits
            .as_bytes()
            .chunks(2)
            .map(byte)
            .collect::<Option<_>>()
            .filter(|_| is_hex)?;
        Self::new(&bytes)
    }

    /// Returns the bytes, padded with zeros to 20, and the size of the build ID.
    pub fn padded(&self) -> ([u8; BuildId::MAX], u8) {
        (self.bytes, self.len)
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.len))
            .unwrap_or(&self.bytes)
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The kind of a DSO. It determines the base of offsets in the DSO
/// ([`Frame::offset`](crate::Frame::offset)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DsoKind {
    /// The image of a kernel.
    Kernel,
    /// A module of a kernel.
    Module,
    /// A BPF program or trampoline, or other code that the kernel generated (KSYMBOL).
    KernelSymbol,
    /// The vDSO of a 64-bit process: `[vdso]`.
    Vdso,
    /// The vDSO of a 32-bit process, with any name: `[vdso]`, `[vdso32]`, `[vdsox32]`.
    Vdso32,
    /// A file that a process mapped, or a program in memory, `/memfd:…`, with a recorded build ID.
    File,
    /// Memory that is not a file: `//anon`, `[heap]`, `[stack]`, `/SYSV…`, huge pages, `/memfd:…` without
    /// a recorded build ID. A JIT compiler generated the code in it.
    Anonymous,
}

/// The identity of a mapped file, as the kernel recorded it when the file was mapped (MMAP2).
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
    /// Returns the file in a record; `None` if the record does not identify it.
    pub(crate) fn of(inode: &Inode) -> Option<Self> {
        let Inode {
            maj,
            min,
            ino,
            ino_generation,
        } = *inode;
        (ino != 0).then_some(FileId {
            device: (maj, min),
            inode: ino,
            generation: ino_generation,
        })
    }
}

/// A DSO. Different files with the same name are different DSOs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Dso {
    /// The machine that it belongs to.
    pub machine: Machine,
    /// Its kind.
    pub kind: DsoKind,
    /// Its name in the recording: a path, a name in brackets, or the name of a kernel symbol.
    pub name: Box<[u8]>,
    /// The file, if a mapping identifies it and has no build ID.
    pub file: Option<FileId>,
    /// The build ID in its mappings. [`Session::build_id`](crate::Session::build_id) also considers
    /// the recording's BUILD_ID section.
    pub mapped_build_id: Option<BuildId>,
    /// The process ID of the process that mapped it last, for files in other mount namespaces; `None` if
    /// no process did. It does not belong to what distinguishes DSOs.
    pub process: Option<u32>,
}

impl PartialEq for Dso {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Dso {}

impl Hash for Dso {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// The suffix that the kernel appends to the name of a deleted file (fs/d_path.c).
const DELETED: &[u8] = b" (deleted)";

impl Dso {
    /// Returns what distinguishes it from other DSOs.
    fn identity(&self) -> impl Hash + Eq + '_ {
        (
            self.machine,
            self.kind,
            &*self.name,
            self.file,
            self.mapped_build_id,
        )
    }

    /// Returns the name without the kernel's suffix for a deleted file.
    pub fn path(&self) -> &[u8] {
        match self.kind {
            DsoKind::File => self.name.strip_suffix(DELETED).unwrap_or(&self.name),
            _ => &self.name,
        }
    }

    /// Returns whether the file was deleted when it was mapped, or before the recording started.
    pub fn is_deleted(&self) -> bool {
        self.kind == DsoKind::File && self.name.ends_with(DELETED)
    }
}

/// All DSOs, in order of appearance.
#[derive(Debug, Default)]
pub struct Dsos {
    list: Vec<Dso>,
    /// For each hash of a DSO's fields, the last DSO with this hash. `before` links each DSO to the
    /// previous one with its hash.
    by_hash: HashMap<u64, DsoId, RandomState>,
    before: Vec<Option<DsoId>>,
    hasher: RandomState,
    names: usize,
}

impl Dsos {
    /// Returns the ID of the DSO that `mapped` describes. Adds the DSO if it is new.
    pub fn intern(&mut self, mapped: &MappedDso<'_>) -> DsoId {
        let MappedDso {
            machine,
            kind,
            name,
            file,
            build_id,
            ..
        } = *mapped;
        let hash = self.hasher.hash_one((machine, kind, name, file, build_id));
        let mut at = self.by_hash.get(&hash).copied();
        while let Some(id) = at {
            let Some(dso) = self.list.get_mut(id.index()) else {
                break;
            };
            if dso.name.as_ref() == name
                && (dso.machine, dso.kind, dso.file, dso.mapped_build_id)
                    == (machine, kind, file, build_id)
            {
                dso.process = mapped.process.or(dso.process);
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

    /// Returns all DSOs, indexed by their IDs.
    pub fn list(&self) -> &[Dso] {
        &self.list
    }

    /// Returns all DSOs, indexed by their IDs.
    pub fn into_list(self) -> Vec<Dso> {
        self.list
    }

    /// Returns the approximate size of the table in bytes.
    pub fn held(&self) -> usize {
        let each = size_of::<Dso>().saturating_add(48);
        self.list
            .len()
            .saturating_mul(each)
            .saturating_add(self.names)
    }
}

/// The beginning of a kernel mapping's name in a record. The name of the relocation symbol follows
/// the bracket.
const KERNELS: [&[u8]; 2] = [b"[kernel.kallsyms", b"[guest.kernel.kallsyms"];

/// The beginning of the names of files in memory that memfd_create(2) makes.
pub(crate) const MEMFD: &[u8] = b"/memfd:";

/// Names of mappings in processes that are not files (tools/perf/util/map.c, `is_anon_memory` and
/// `is_no_dso_memory`).
const ANONYMOUS: [&[u8]; 6] = [
    b"//",
    b"/dev/zero",
    b"/anon_hugepage",
    b"/SYSV",
    MEMFD,
    b"[",
];

/// `MAP_HUGETLB` on most architectures. perf treats mappings with this flag as anonymous.
const MAP_HUGETLB: u32 = 0x40000;

/// Returns the kind and name of the DSO of a mapping called `name` in `mode`, and the relocation
/// symbol if it is a kernel.
pub(crate) fn classify(name: &[u8], mode: CpuMode, flags: Option<u32>) -> (DsoKind, &[u8], &[u8]) {
    if matches!(mode, CpuMode::KERNEL | CpuMode::GUEST_KERNEL) {
        let is_kernel = KERNELS.iter().any(|kernel| name.starts_with(kernel));
        return match name
            .iter()
            .position(|&byte| byte == b']')
            .filter(|_| is_kernel)
        {
            Some(end) => {
                let (image, symbol) = name
                    .split_at_checked(end.saturating_add(1))
                    .unwrap_or((name, &[]));
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

/// Returns the name of a kernel module as the kernel lists it: `snd_hda_intel` for
/// `/lib/modules/6.1.0/kernel/sound/pci/hda/snd-hda-intel.ko.xz` and `[snd_hda_intel]`
/// (`kmod_path__parse` in tools/perf/util/dso.c, Linux 7.2).
pub fn module_name(path: &[u8]) -> Vec<u8> {
    let inner = path
        .strip_prefix(b"[")
        .and_then(|name| name.strip_suffix(b"]"));
    let name =
        inner.unwrap_or_else(|| path.rsplit(|&byte| byte == b'/').next().unwrap_or_default());
    let end = name.windows(3).position(|window| window == b".ko");
    let name = name.get(..end.unwrap_or(name.len())).unwrap_or(name);
    let name = name
        .iter()
        .map(|&byte| if byte == b'-' { b'_' } else { byte });
    name.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_mapped() {
        let of = |name: &'static str, mode| {
            let (kind, name, symbol) = classify(name.as_bytes(), mode, None);
            (
                kind,
                String::from_utf8_lossy(name).into_owned(),
                String::from_utf8_lossy(symbol).into_owned(),
            )
        };
        let named = |kind, name: &str, symbol: &str| (kind, name.to_owned(), symbol.to_owned());
        let kernel = of("[kernel.kallsyms]_text", CpuMode::KERNEL);
        assert_eq!(kernel, named(DsoKind::Kernel, "[kernel.kallsyms]", "_text"));
        let guest = of("[guest.kernel.kallsyms.42]_stext", CpuMode::GUEST_KERNEL);
        assert_eq!(
            guest,
            named(DsoKind::Kernel, "[guest.kernel.kallsyms.42]", "_stext")
        );
        assert_eq!(of("[ext4]", CpuMode::KERNEL).0, DsoKind::Module);
        assert_eq!(
            of("/lib/modules/6.1/ext4.ko", CpuMode::KERNEL).0,
            DsoKind::Module
        );
        for name in [
            "//anon",
            "[heap]",
            "[stack]",
            "/memfd:jit (deleted)",
            "/SYSV0000",
            "/anon_hugepage",
            "",
        ] {
            assert_eq!(of(name, CpuMode::USER).0, DsoKind::Anonymous, "{name}");
        }
        assert_eq!(of("[vdso]", CpuMode::USER).0, DsoKind::Vdso);
        assert_eq!(of("/bin/true", CpuMode::USER).0, DsoKind::File);
        assert_eq!(
            classify(b"/hugetlbfs/text", CpuMode::USER, Some(MAP_HUGETLB)).0,
            DsoKind::Anonymous
        );
    }

    #[test]
    fn deleted_files_have_a_path() {
        let dso = Dso {
            machine: Machine::HOST,
            kind: DsoKind::File,
            name: b"/tmp/a (deleted)".as_slice().into(),
            file: None,
            mapped_build_id: None,
            process: None,
        };
        assert!(dso.is_deleted());
        assert_eq!(dso.path(), b"/tmp/a");
    }
}
