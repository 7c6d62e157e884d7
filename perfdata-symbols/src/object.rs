//! The symbols of one object: searched in all sources, and verified by build ID.

pub(crate) mod carried;
mod debug_file;
mod file;
mod kallsyms;
mod kernel;
mod module;
#[cfg(test)]
mod tests;
mod vdso;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use perfdata_session::{BuildId, Dso, DsoKind};

use crate::elf::{Addresses, Elf};
use crate::evidence::{Evidence, Running, Times};
use crate::kallsyms::Kallsyms;
use crate::kernel_list::KernelList;
use crate::namespace;
use crate::perf_map;
use crate::reason::Reason;
use crate::sources::Sources;
use crate::table::{Builder, Found, Table};
pub(crate) use debug_file::{Addressing, debug_file};
pub(crate) use file::{fetch_ahead, files, is_file};
pub(crate) use kallsyms::Listed;

/// How an address is looked up in the table of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// By [`Frame::offset`](perfdata_session::Frame::offset).
    Offset,
    /// By the address itself.
    Address,
    /// By the offset from the relocation symbol, which has this address in the table.
    Relocated(u64),
}

/// Where the symbols of an object are found.
#[derive(Debug, Clone)]
pub(crate) enum SymbolTable {
    Table(Arc<Table>),
    KernelList(Arc<KernelList>),
}

impl SymbolTable {
    /// Returns the symbol that contains `address`.
    pub fn find(&self, address: u64) -> Option<Found> {
        match self {
            SymbolTable::Table(table) => table.find(address),
            SymbolTable::KernelList(list) => list.find(address),
        }
    }

    /// Returns the name of a symbol, as it is in the object.
    pub fn name(&self, index: u32) -> Cow<'_, [u8]> {
        match self {
            SymbolTable::Table(table) => table.name(index),
            SymbolTable::KernelList(list) => list.name(index),
        }
    }

    /// Returns the approximate size in memory in bytes, as if all addresses were looked up.
    pub fn held(&self) -> usize {
        match self {
            SymbolTable::Table(table) => table.held(),
            SymbolTable::KernelList(list) => list.held(),
        }
    }
}

impl From<Table> for SymbolTable {
    fn from(table: Table) -> Self {
        SymbolTable::Table(Arc::new(table))
    }
}

/// The symbols of an object.
#[derive(Debug, Clone)]
pub(crate) struct Symbols {
    pub table: SymbolTable,
    pub lookup: Lookup,
    pub is_mangled: bool,
    /// Whether they are those of `.symtab`.
    pub has_symtab: bool,
    pub evidence: Evidence,
}

/// What is known about the recorded machine.
#[derive(Debug, Default)]
pub(crate) struct Host {
    /// The release of its kernel.
    pub release: Option<String>,
    /// The build ID of its kernel.
    pub kernel: Option<BuildId>,
    /// The address of the kernel's relocation symbol, and its name.
    pub relocation: Option<(u64, Box<[u8]>)>,
    /// The end of the mapping of the kernel's image.
    pub kernel_end: u64,
    /// Whether it is this machine, by its host name and release.
    pub is_this: bool,
    /// The times in the recording.
    pub times: Times,
    /// The running kernel.
    pub running: Running,
    /// The symbols of the recorded kernel and of its modules, read at the first use.
    pub kallsyms: Option<Listed>,
    /// The symbols of the running kernel, read at the first use.
    pub own_kallsyms: OnceLock<Result<Arc<Kallsyms>, Reason>>,
}

/// An object whose symbols are searched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub dso: &'a Dso,
    pub build_id: Option<BuildId>,
    /// The process that maps it, for memory with generated code.
    pub pid: u32,
    /// The first address of its mapping, for modules.
    pub start: Option<u64>,
    /// When it was hit or mapped, in the time of the recording.
    pub time: Option<u64>,
}

/// Returns whether build IDs are equal. Old versions of perf pad them with zeros.
pub(crate) fn is_same(a: &BuildId, b: &BuildId) -> bool {
    a.padded().0 == b.padded().0
}

/// Returns the symbols of an object.
pub(crate) fn load(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &mut Host,
) -> Result<Symbols, Reason> {
    if wanted.dso.machine.is_guest() {
        return Err(Reason::Guest);
    }
    match wanted.dso.kind {
        DsoKind::Kernel => kernel::symbols(wanted, sources, host),
        DsoKind::Module => module::symbols(wanted, sources, host),
        DsoKind::Vdso | DsoKind::Vdso32 => vdso::symbols(wanted, sources, host),
        DsoKind::Anonymous => jitted(wanted.pid, sources, host),
        _ => file::symbols(wanted, sources, host),
    }
}

fn of_elf(
    elf: &Elf,
    runtime: &Elf,
    addresses: Addresses,
    sources: &Sources,
) -> Result<Table, Reason> {
    let mut builder = Builder::default();
    elf.add_symbols(runtime, addresses, &mut builder)
        .map_err(Reason::Unreadable)?;
    let table = builder.build(sources.spelling.demangle());
    if table.is_empty() {
        return Err(Reason::Stripped);
    }
    Ok(table)
}

/// Opens the first of `paths` that is an ELF file with the build ID and fulfils `is_fit`.
pub(crate) fn first_with(
    paths: impl IntoIterator<Item = PathBuf>,
    id: Option<&BuildId>,
    is_fit: impl Fn(&Elf) -> bool,
) -> Option<Elf> {
    paths.into_iter().find_map(|path| {
        let elf = Elf::open(&path).ok()?;
        let has_id = elf
            .build_id()
            .is_some_and(|own| id.is_some_and(|id| is_same(&own, id)));
        (has_id && is_fit(&elf)).then_some(elf)
    })
}

/// Returns the symbols of generated code: those that the process listed itself.
fn jitted(pid: u32, sources: &Sources, host: &Host) -> Result<Symbols, Reason> {
    let copy = perf_map::path(pid);
    if let Some(copy) = sources.bundled(copy.as_os_str().as_encoded_bytes()) {
        return Ok(Symbols {
            table: perf_map::parse(&perf_map::read(&copy, false)?).into(),
            lookup: Lookup::Address,
            is_mangled: true,
            has_symtab: false,
            evidence: Evidence::Bundled,
        });
    }
    // On another machine, the number belongs to another process.
    let is_own = host.is_this && sources.is_own();
    if !is_own && !sources.unverified {
        return Err(Reason::NoPerfMap);
    }
    let path = match is_own.then(|| namespace::perf_map_of(pid)).flatten() {
        Some(map) => map,
        None => sources.locate(&perf_map::path(pid)),
    };
    let text = perf_map::read(&path, true)?;
    Ok(Symbols {
        table: perf_map::parse(&text).into(),
        lookup: Lookup::Address,
        is_mangled: true,
        has_symtab: false,
        evidence: match is_own {
            true => Evidence::Machine,
            false => Evidence::Unverified,
        },
    })
}
