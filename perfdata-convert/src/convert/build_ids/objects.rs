//! The things that code runs from: kernels, their modules, programs and libraries.

use std::collections::HashMap;
use std::fmt;

use perfdata_core::record::{CpuMode, Inode};

/// A build id: 1 to 20 bytes, what a recording has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id {
    bytes: [u8; Id::MAX],
    len: u8,
}

impl Id {
    /// Bytes that a recording keeps of a build id (tools/perf/util/build-id.h, BUILD_ID_SIZE).
    pub const MAX: usize = 20;

    /// The build id in `bytes`, of which those beyond the 20th are lost; `None` for none, or zeros only.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let kept = bytes.get(..Self::MAX).unwrap_or(bytes);
        let mut id = Id { bytes: [0; Self::MAX], len: u8::try_from(kept.len()).ok()? };
        id.bytes.get_mut(..kept.len())?.copy_from_slice(kept);
        kept.iter().any(|&byte| byte != 0).then_some(id)
    }

    /// The build id that hexadecimal digits tell.
    pub fn from_hex(digits: &str) -> Option<Self> {
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let is_hex = digits.len().is_multiple_of(2) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let bytes: Vec<u8> = digits.as_bytes().chunks(2).map(byte).collect::<Option<_>>().filter(|_| is_hex)?;
        Self::new(&bytes)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }

    /// The bytes with zeros up to the 20th, and how many of them count.
    pub fn padded(&self) -> ([u8; Id::MAX], u8) {
        (self.bytes, self.len)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A machine of the recording, by the number that build ids have for it: -1 the host, 0 the default guest, else the
/// guest's process id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Machine(pub i32);

impl Machine {
    /// The machine that recorded.
    pub const HOST: Machine = Machine(-1);
    /// The guest of which no process id is known.
    pub const DEFAULT_GUEST: Machine = Machine(0);

    /// Whether it is a guest.
    pub fn is_guest(self) -> bool {
        self != Self::HOST
    }
}

/// What an object is, which decides where its build id can be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The kernel.
    Kernel,
    /// A module of it.
    Module,
    /// What the kernel maps into every process of 64 bits.
    Vdso,
    /// What it maps into those of 32 bits.
    Vdso32,
    /// A file.
    File,
}

/// One object: what the table of build ids names.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Where it ran.
    pub machine: Machine,
    /// What it is.
    pub kind: Kind,
    /// Its name in the recording.
    pub name: Vec<u8>,
    /// The build id that its mapping carries.
    pub id: Option<Id>,
    /// The file as the recording machine knew it.
    pub inode: Option<Inode>,
    /// Whether it was asked for: hit by a sample, or mapped at all.
    pub wanted: bool,
}

impl Object {
    /// The CPU mode that its entry in the table has.
    pub fn cpu_mode(&self) -> CpuMode {
        match (self.kind, self.machine.is_guest()) {
            (Kind::Kernel | Kind::Module, false) => CpuMode::KERNEL,
            (Kind::Kernel | Kind::Module, true) => CpuMode::GUEST_KERNEL,
            (Kind::Vdso | Kind::Vdso32 | Kind::File, false) => CpuMode::USER,
            (Kind::Vdso | Kind::Vdso32 | Kind::File, true) => CpuMode::GUEST_USER,
        }
    }

    /// The name for messages.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }
}

/// Number of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectId(usize);

/// What makes two mappings mappings of one object.
type Key = (Machine, Kind, Vec<u8>, Option<Id>);

/// All objects of a recording, in the order in which they appear.
#[derive(Debug, Default)]
pub struct Objects {
    list: Vec<Object>,
    known: HashMap<Key, ObjectId>,
    names: usize,
}

impl Objects {
    /// The number of `object`, which is entered if it is new.
    pub fn intern(&mut self, object: Object) -> ObjectId {
        let key = (object.machine, object.kind, object.name.clone(), object.id);
        let next = ObjectId(self.list.len());
        let id = *self.known.entry(key).or_insert(next);
        if id == next {
            self.names += object.name.len();
            self.list.push(object);
        }
        id
    }

    /// Bytes of them, about.
    pub fn held(&self) -> usize {
        self.list.len().saturating_mul(size_of::<Object>() + size_of::<Key>()) + self.names.saturating_mul(2)
    }

    /// Notes that the object was asked for.
    pub fn want(&mut self, id: ObjectId) {
        if let Some(object) = self.list.get_mut(id.0) {
            object.wanted = true;
        }
    }

    /// All of them, of which `more` were asked for, too.
    pub fn into_vec(mut self, more: &Wanted) -> Vec<Object> {
        self.list.iter_mut().zip(&more.0).for_each(|(object, &wanted)| object.wanted |= wanted);
        self.list
    }
}

/// Which objects were asked for.
#[derive(Debug, Default)]
pub struct Wanted(Vec<bool>);

impl Wanted {
    /// Notes an object.
    pub fn add(&mut self, id: ObjectId) {
        if self.0.len() <= id.0 {
            self.0.resize(id.0 + 1, false);
        }
        if let Some(wanted) = self.0.get_mut(id.0) {
            *wanted = true;
        }
    }

    /// Whether the object was noted.
    pub fn has(&self, id: ObjectId) -> bool {
        self.0.get(id.0).is_some_and(|&wanted| wanted)
    }
}

/// What a mapping of the kernel, or of a guest's, is called up to here in a record; a symbol's name follows.
const KERNELS: [&[u8]; 2] = [b"[kernel.kallsyms", b"[guest.kernel.kallsyms"];

/// Mappings in processes that are no files (tools/perf/util/map.c, is_anon_memory and is_no_dso_memory).
const NO_FILES: [&[u8]; 6] = [b"//", b"/dev/zero", b"/anon_hugepage", b"/SYSV", b"/memfd:", b"["];

/// What the name of a mapping in `mode` that ends at `end` says that it maps, and the object's name; `None` for memory
/// that is no object.
pub fn classify(name: &[u8], mode: CpuMode, end: u64) -> Option<(Kind, &[u8])> {
    if matches!(mode, CpuMode::KERNEL | CpuMode::GUEST_KERNEL) {
        let is_kernel = KERNELS.iter().any(|kernel| name.starts_with(kernel));
        return Some(match name.iter().position(|&byte| byte == b']').filter(|_| is_kernel) {
            Some(end) => (Kind::Kernel, name.get(..=end).unwrap_or(name)),
            None => (Kind::Module, name),
        });
    }
    if name.starts_with(b"[vdso") {
        // The kernel puts it at the end of a process's addresses.
        let kind = if end > 1 << 32 { Kind::Vdso } else { Kind::Vdso32 };
        return Some((kind, name));
    }
    (!name.is_empty() && !NO_FILES.iter().any(|start| name.starts_with(start))).then_some((Kind::File, name))
}
