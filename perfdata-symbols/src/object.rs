//! The symbols of one object: searched in all sources, and verified by build ID.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use perfdata_core::file_name::to_path;
use perfdata_session::{BuildId, Dso, DsoKind, FileId};

use crate::bytes::{Bytes, read_text};
use crate::elf::{Addresses, Elf, Segment};
use crate::evidence::{Evidence, Running, Times, check_file};
use crate::kallsyms::Kallsyms;
use crate::kernel_list::KernelList;
use crate::machine::{own_vdso, running_kernel};
use crate::os;
use crate::perf_map;
use crate::reason::Reason;
use crate::sources::Sources;
use crate::table::{Builder, Found, Table};

/// Maximum size of a list of symbols of a kernel in bytes.
const MOST_KALLSYMS: u64 = 1 << 28;

/// Maximum size of a list of modules in bytes.
const MOST_MODULES: u64 = 1 << 26;

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

/// The symbols of the recorded kernel and of its modules.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    symbols: Arc<Kallsyms>,
    evidence: Evidence,
    /// Whether the list is that of the running kernel.
    is_running: bool,
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
        DsoKind::Kernel => kernel(wanted, sources, host),
        DsoKind::Module => module(wanted, sources, host),
        DsoKind::Vdso | DsoKind::Vdso32 => vdso(wanted, sources, host),
        DsoKind::Anonymous => jitted(wanted.pid, sources, host),
        _ => file(wanted, sources, host),
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

/// The file of an object that processes map, as far as it was found.
struct OwnFile {
    /// The file at the recorded path, if it is the recorded one.
    elf: Option<Elf>,
    id: Option<BuildId>,
    /// Why there is no such file.
    reason: Reason,
    evidence: Evidence,
}

/// Returns the file of an object, verified by its build ID.
fn own_file(wanted: &Wanted<'_>, sources: &Sources, host: &Host) -> Result<OwnFile, Reason> {
    let recorded = wanted.dso.path();
    // A name that this system cannot have leads to the root, which is not a file.
    let path = sources.locate(to_path(recorded).unwrap_or(Path::new("")));
    let mut reason = Reason::NotFound;
    let mut evidence = wanted.build_id.map(Evidence::BuildId);
    let own = match Bytes::open(&path) {
        Err(_) => None,
        Ok(bytes) => match (Elf::parse(bytes).map(|elf| elf.at(&path)), wanted.build_id) {
            (Err(error), _) => {
                reason = Reason::Unreadable(error);
                None
            }
            (Ok(elf), Some(id)) => match elf.build_id() {
                Some(own) if is_same(&own, &id) => Some(elf),
                Some(own) => {
                    reason = Reason::OtherBuildId(own);
                    None
                }
                None => None,
            },
            (Ok(elf), None) => match unidentified(wanted, sources, host, &path) {
                Ok(other) => {
                    evidence = Some(other);
                    Some(elf)
                }
                Err(other) => {
                    reason = other;
                    None
                }
            },
        },
    };
    let id = wanted
        .build_id
        .or_else(|| own.as_ref().and_then(Elf::build_id));
    if id.is_none() && own.is_none() {
        return Err(match reason {
            Reason::NotFound => Reason::NoBuildId,
            reason => reason,
        });
    }
    Ok(OwnFile {
        elf: own,
        id,
        reason,
        evidence: evidence.unwrap_or(Evidence::Unverified),
    })
}

/// Returns why the file at `path` is the recorded one, although the recording does not contain its build
/// ID.
fn unidentified(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &Host,
    path: &Path,
) -> Result<Evidence, Reason> {
    let checked = match host.is_this && sources.is_own() && !wanted.dso.is_deleted() {
        true => {
            let file = wanted.dso.file.as_ref();
            check_file(path, file, &host.times, wanted.time, sources.recorded_until)
        }
        false => Err(Reason::NoBuildId),
    };
    match checked {
        Ok(()) => Ok(Evidence::File),
        Err(_) if sources.unverified => Ok(Evidence::Unverified),
        Err(reason) => Err(reason),
    }
}

impl OwnFile {
    /// Returns where debug files of the object may be.
    fn debug_paths(&self, recorded: &[u8], sources: &Sources) -> Vec<PathBuf> {
        let mut debug: Vec<PathBuf> = Vec::new();
        if let Some(link) = self.elf.as_ref().and_then(Elf::debug_link) {
            debug.extend(sources.of_link(recorded, &link));
        }
        if let Some(id) = &self.id {
            debug.extend(sources.in_caches(id, &["elf", "debug"]));
        }
        debug.extend(sources.debug_files(recorded, self.id.as_ref()));
        debug
    }

    /// Returns the object itself: the file at its path, or a copy in a cache.
    fn runtime(self, sources: &Sources) -> Option<Elf> {
        self.elf.or_else(|| {
            let cached = sources.in_caches(self.id.as_ref()?, &["elf"]);
            first_with(cached, self.id.as_ref(), Elf::has_content)
        })
    }
}

/// Returns the symbols of a file that processes map.
fn file(wanted: &Wanted<'_>, sources: &Sources, host: &Host) -> Result<Symbols, Reason> {
    let own = own_file(wanted, sources, host)?;
    let debug = own.debug_paths(wanted.dso.path(), sources);
    let full = match own.elf.as_ref().is_some_and(Elf::has_symtab) {
        // The link of a file with symbols leads to the same symbols.
        true => None,
        false => first_with(debug, own.id.as_ref(), Elf::has_symtab),
    };
    let (reason, evidence) = (own.reason.clone(), own.evidence.clone());
    let runtime = own.runtime(sources);
    let mini = match (&full, &runtime) {
        (None, Some(runtime)) if !runtime.has_symtab() => runtime.mini_debug_info(),
        _ => None,
    };
    let runtime_or_full = runtime.as_ref().or(full.as_ref()).ok_or(reason)?;
    let has_symtab = full.is_some() || runtime_or_full.has_symtab();
    let mut builder = Builder::default();
    let mut add = |elf: &Elf| {
        elf.add_symbols(runtime_or_full, Addresses::Offsets, &mut builder)
            .map_err(Reason::Unreadable)
    };
    match (&full, &mini) {
        (Some(full), _) => add(full)?,
        (None, Some(mini)) => {
            add(mini)?;
            add(runtime_or_full)?;
        }
        (None, None) => add(runtime_or_full)?,
    }
    let table = builder.build(sources.spelling.demangle());
    if table.is_empty() {
        return Err(Reason::Stripped);
    }
    Ok(Symbols {
        table: table.into(),
        lookup: Lookup::Offset,
        is_mangled: true,
        has_symtab,
        evidence,
    })
}

/// Returns the file of an object that a process maps, and a debug file with the section `section`
/// if the object does not contain it.
pub(crate) fn files(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &Host,
    section: &[u8],
) -> Result<(Elf, Option<Elf>), Reason> {
    if wanted.dso.machine.is_guest() {
        return Err(Reason::Guest);
    }
    match wanted.dso.kind {
        DsoKind::Vdso | DsoKind::Vdso32 => return Ok((vdso_file(wanted, sources, host)?.0, None)),
        DsoKind::File => {}
        _ => return Err(Reason::NotFound),
    }
    let own = own_file(wanted, sources, host)?;
    let has_section = |elf: &Elf| elf.has_content_of(section);
    let debug = match own.elf.as_ref().is_some_and(has_section) {
        true => None,
        false => first_with(
            own.debug_paths(wanted.dso.path(), sources),
            own.id.as_ref(),
            has_section,
        ),
    };
    let reason = own.reason.clone();
    Ok((own.runtime(sources).ok_or(reason)?, debug))
}

/// How an address is looked up in debug information.
#[derive(Debug)]
pub(crate) enum Addressing {
    /// By the segment that contains its offset in the file.
    Segments(Vec<Segment>),
    /// By its offset in the object, added to this address.
    Offset(u64),
    /// By itself.
    Address,
}

/// Returns a file of an object with the section `section`, its debug information, and how addresses are
/// looked up in it. A file of a process may lack the section.
pub(crate) fn debug_file(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &Host,
    section: &[u8],
) -> Result<(Elf, Addressing), Reason> {
    if wanted.dso.machine.is_guest() {
        return Err(Reason::Guest);
    }
    let has_section = |elf: &Elf| elf.has_content_of(section);
    match wanted.dso.kind {
        DsoKind::Kernel => {
            let image = match &sources.vmlinux {
                Some(_) => named_image(wanted, sources)?.0,
                None => {
                    let id = match wanted.build_id {
                        Some(id) => id,
                        None => own_kernel(wanted, sources, host)?,
                    };
                    found_image(&id, sources, host, has_section).ok_or(Reason::NotFound)?
                }
            };
            let table = of_elf(&image, &image, Addresses::Virtual, sources)?;
            let addressing = match relocated(&table, host) {
                Lookup::Relocated(at) => Addressing::Offset(at),
                _ => Addressing::Address,
            };
            Ok((image, addressing))
        }
        DsoKind::Module => {
            let id = match wanted.build_id {
                Some(id) => id,
                None => own_module(wanted, sources, host)?,
            };
            let file = found_module(wanted, &id, sources, host, has_section);
            let file = file.ok_or(Reason::NotFound)?;
            let text = file.placed(b".text").ok_or(Reason::Stripped)?;
            Ok((file, Addressing::Offset(text)))
        }
        _ => {
            let (object, debug) = files(wanted, sources, host, section)?;
            let segments = object.segments().to_vec();
            Ok((debug.unwrap_or(object), Addressing::Segments(segments)))
        }
    }
}

/// Returns the build ID of the running kernel, if it is the recorded one.
fn own_kernel(wanted: &Wanted<'_>, sources: &Sources, host: &Host) -> Result<BuildId, Reason> {
    match running(sources, host, wanted.time)? {
        Evidence::Unverified => Err(Reason::NoBuildId),
        _ => running_kernel().ok_or(Reason::NoBuildId),
    }
}

/// Returns the build ID of a module of the running kernel, if both are the recorded ones.
fn own_module(wanted: &Wanted<'_>, sources: &Sources, host: &Host) -> Result<BuildId, Reason> {
    own_kernel(wanted, sources, host)?;
    let name = module_name(wanted.dso.path());
    let is_it = |start| host.running.has_module_at(&name, start) == Some(true);
    match wanted.start.is_some_and(is_it) {
        true => host.running.module_id(&name).ok_or(Reason::NoBuildId),
        false => Err(Reason::OtherModule),
    }
}

/// Returns whether the file at `path` is the recorded one.
pub(crate) fn is_file(path: &Path, file: &FileId) -> bool {
    fs::metadata(path).is_ok_and(|meta| os::inode(&meta) == Some(file.inode))
}

/// Returns why the running kernel is the recorded one.
fn running(sources: &Sources, host: &Host, time: Option<u64>) -> Result<Evidence, Reason> {
    if !sources.is_own() {
        return Err(match host.kernel {
            Some(_) => Reason::OtherKernel,
            None => Reason::NoBuildId,
        });
    }
    if let (Some(recorded), Some(own)) = (&host.kernel, running_kernel()) {
        return match is_same(recorded, &own) {
            true => Ok(Evidence::BuildId(own)),
            false => Err(Reason::OtherKernel),
        };
    }
    if !host.is_this {
        return Err(Reason::NoBuildId);
    }
    match is_this_boot(sources, host, time) {
        Ok(true) => Ok(Evidence::RunningKernel),
        Err(reason @ Reason::HiddenAddresses(_)) => Err(reason),
        _ if sources.unverified => Ok(Evidence::Unverified),
        Ok(false) => Err(Reason::OtherBoot),
        Err(reason) => Err(reason),
    }
}

/// Returns whether the image of the running kernel is where that of the recorded one was. The kernel
/// chooses another address in each boot.
fn is_this_boot(sources: &Sources, host: &Host, time: Option<u64>) -> Result<bool, Reason> {
    let own = own_kallsyms(host)?;
    let Some((at, name)) = &host.relocation else {
        return Err(Reason::NoBuildId);
    };
    let address_of = |name: &[u8]| own.image.address_of(name);
    let is_there = address_of(name) == Some(*at) && *at != 0;
    // perf records the end of the code or of the data; old versions, an address behind the image.
    let ends = [address_of(b"_etext"), address_of(b"_edata")];
    let last = ends.into_iter().chain([address_of(b"_end")]);
    let is_behind = last
        .flatten()
        .max()
        .is_none_or(|last| host.kernel_end > last);
    let is_as_long = is_behind || ends.contains(&Some(host.kernel_end));
    let is_of_another = host.times.is_of_another_boot(time, sources.recorded_until);
    Ok(is_there && is_as_long && !is_of_another)
}

/// Returns the symbols of the running kernel.
fn own_kallsyms(host: &Host) -> Result<Arc<Kallsyms>, Reason> {
    let running = &host.running;
    let read = || read_kallsyms(&running.kallsyms, running).map(Arc::new);
    host.own_kallsyms.get_or_init(read).clone()
}

fn read_kallsyms(path: &Path, running: &Running) -> Result<Kallsyms, Reason> {
    let text = read_text(path, MOST_KALLSYMS)
        .map_err(|error| Reason::Unreadable(format!("{}: {error}", path.display())))?;
    let symbols = Kallsyms::parse(text);
    if symbols.are_hidden {
        return Err(Reason::HiddenAddresses(running.hiding_setting()));
    }
    if symbols.image.is_empty() && symbols.modules.is_empty() {
        return Err(Reason::Unreadable(format!(
            "{}: no symbols",
            path.display()
        )));
    }
    Ok(symbols)
}

/// Returns the symbols of the kernel and its modules at the time of the recording.
fn kallsyms(wanted: &Wanted<'_>, sources: &Sources, host: &mut Host) -> Result<Listed, Reason> {
    if let Some(known) = &host.kallsyms {
        return Ok(known.clone());
    }
    if let Some(path) = &sources.kallsyms {
        let named = Listed {
            symbols: Arc::new(read_kallsyms(path, &host.running)?),
            evidence: Evidence::Named,
            is_running: false,
        };
        return Ok(host.kallsyms.insert(named).clone());
    }
    let own = match running(sources, host, wanted.time) {
        Ok(evidence) => own_kallsyms(host).map(|symbols| Listed {
            symbols,
            evidence,
            is_running: true,
        }),
        Err(reason) => Err(reason),
    };
    let reason = match own {
        Ok(own) => return Ok(host.kallsyms.insert(own).clone()),
        Err(reason) => reason,
    };
    if let Some(id) = &host.kernel {
        for path in sources.in_caches(id, &["kallsyms"]) {
            if let Ok(symbols) = read_kallsyms(&path, &host.running) {
                let cached = Listed {
                    symbols: Arc::new(symbols),
                    evidence: Evidence::BuildId(*id),
                    is_running: false,
                };
                return Ok(host.kallsyms.insert(cached).clone());
            }
        }
    }
    Err(match (reason, host.kernel) {
        (reason @ Reason::HiddenAddresses(_), _) | (reason, None) => reason,
        (_, Some(_)) => Reason::OtherKernel,
    })
}

/// Returns the symbols of the kernel's image in a copy of its list, and how they are looked up; `None`
/// if there is no copy, if it would not have been read, or if a list was read before.
///
/// The kernel takes longer to print its list than all of the rest takes. Its image is the same in
/// each boot, except for the address of all of it. Its modules are not.
fn copied_image(sources: &Sources, host: &Host) -> Option<(SymbolTable, Lookup)> {
    if sources.kallsyms.is_some() || host.kallsyms.is_some() {
        return None;
    }
    let copies = sources.in_caches(host.kernel.as_ref()?, &["kallsyms"]);
    let is_list = |path: &PathBuf| path.ends_with("kallsyms");
    copies.into_iter().filter(is_list).find_map(|path| {
        // Without a relocation symbol, the addresses must be those of this boot.
        let (_, name) = host.relocation.as_ref().filter(|(at, _)| *at != 0)?;
        if let Some(list) = KernelList::open(&path) {
            let at = list.address_of(name)?;
            let table = SymbolTable::KernelList(Arc::new(list));
            return Some((table, Lookup::Relocated(at)));
        }
        let image = read_kallsyms(&path, &host.running).ok()?.image;
        let at = image.address_of(name)?;
        Some((SymbolTable::Table(image), Lookup::Relocated(at)))
    })
}

/// Returns how kernel addresses are looked up in a table.
fn relocated(table: &Table, host: &Host) -> Lookup {
    let symbol = host.relocation.as_ref().filter(|(at, _)| *at != 0);
    match symbol.and_then(|(_, name)| table.address_of(name)) {
        Some(at) => Lookup::Relocated(at),
        None => Lookup::Address,
    }
}

/// Returns the symbols of the kernel's image.
fn kernel(wanted: &Wanted<'_>, sources: &Sources, host: &mut Host) -> Result<Symbols, Reason> {
    let of_table = |table: Arc<Table>, host: &Host, evidence| Symbols {
        lookup: relocated(&table, host),
        table: SymbolTable::Table(table),
        is_mangled: false,
        has_symtab: false,
        evidence,
    };
    let of_image = |elf: &Elf| of_elf(elf, elf, Addresses::Virtual, sources);
    if sources.vmlinux.is_some() && sources.kallsyms.is_none() {
        let (elf, evidence) = named_image(wanted, sources)?;
        return of_image(&elf).map(|table| of_table(Arc::new(table), host, evidence));
    }
    if let Some(id) = host.kernel
        && let Some((table, lookup)) = copied_image(sources, host)
    {
        return Ok(Symbols {
            table,
            lookup,
            is_mangled: false,
            has_symtab: false,
            evidence: Evidence::BuildId(id),
        });
    }
    let reason = match kallsyms(wanted, sources, host) {
        Ok(list) => return Ok(of_table(list.symbols.image.clone(), host, list.evidence)),
        Err(reason) => reason,
    };
    if sources.kallsyms.is_some() {
        return Err(reason);
    }
    let Some(id) = wanted.build_id else {
        return Err(reason);
    };
    let image = found_image(&id, sources, host, Elf::has_symtab).ok_or(reason)?;
    of_image(&image).map(|table| of_table(Arc::new(table), host, Evidence::BuildId(id)))
}

/// Returns the image of the kernel that the caller named.
fn named_image(wanted: &Wanted<'_>, sources: &Sources) -> Result<(Elf, Evidence), Reason> {
    let path = sources.vmlinux.as_ref().ok_or(Reason::NotFound)?;
    let elf = Bytes::open(path)
        .map_err(|error| error.to_string())
        .and_then(Elf::parse)
        .map_err(|error| Reason::Unreadable(format!("{}: {error}", path.display())))?
        .at(path);
    match (wanted.build_id, elf.build_id()) {
        (Some(id), Some(own)) if !is_same(&id, &own) => Err(Reason::OtherBuildId(own)),
        (Some(id), Some(_)) => Ok((elf, Evidence::BuildId(id))),
        _ => Ok((elf, Evidence::Named)),
    }
}

/// Returns an image of the kernel with this build ID that fulfils `is_fit`.
fn found_image(
    id: &BuildId,
    sources: &Sources,
    host: &Host,
    is_fit: impl Fn(&Elf) -> bool,
) -> Option<Elf> {
    let mut images = sources.in_caches(id, &["vmlinux", "elf"]);
    images.extend(sources.kernel_images(host.release.as_deref()));
    images.extend(sources.debug_files(b"vmlinux", Some(id)));
    first_with(images, Some(id), is_fit)
}

/// Returns the symbols of a kernel module.
fn module(wanted: &Wanted<'_>, sources: &Sources, host: &mut Host) -> Result<Symbols, Reason> {
    let name = module_name(wanted.dso.path());
    // The addresses in the list of the running kernel are those of this boot.
    let reason = match kallsyms(wanted, sources, host) {
        Ok(list) => {
            let symbols = list.symbols;
            let is_this_boot = host.relocation.as_ref().is_none_or(|(at, symbol)| {
                symbols
                    .image
                    .address_of(symbol)
                    .is_none_or(|own| own == *at)
            });
            let is_loaded = match wanted.start.filter(|_| list.is_running) {
                Some(start) => host.running.has_module_at(&name, start),
                None => None,
            };
            let evidence = match (list.evidence, is_loaded) {
                (Evidence::Unverified, _) => Some(Evidence::Unverified),
                (_, Some(true)) => Some(Evidence::LoadedModule),
                (_, Some(false)) | (Evidence::RunningKernel, None) => None,
                (evidence, None) => Some(evidence),
            };
            let table = symbols.modules.get(&*name).filter(|_| is_this_boot);
            if let Some((table, evidence)) = table.zip(evidence) {
                return Ok(Symbols {
                    table: SymbolTable::Table(table.clone()),
                    lookup: Lookup::Address,
                    is_mangled: false,
                    has_symtab: false,
                    evidence,
                });
            }
            Reason::OtherModule
        }
        Err(reason) => reason,
    };
    let Some(id) = wanted.build_id else {
        return Err(reason);
    };
    let elf = found_module(wanted, &id, sources, host, Elf::has_symtab);
    let elf = elf.ok_or(match reason {
        Reason::HiddenAddresses(_) => reason,
        _ => Reason::NotFound,
    })?;
    let table = of_elf(&elf, &elf, Addresses::Text, sources)?;
    Ok(Symbols {
        table: table.into(),
        lookup: Lookup::Offset,
        is_mangled: false,
        has_symtab: false,
        evidence: Evidence::BuildId(id),
    })
}

/// Returns a file of a module with this build ID that fulfils `is_fit`.
fn found_module(
    wanted: &Wanted<'_>,
    id: &BuildId,
    sources: &Sources,
    host: &Host,
    is_fit: impl Fn(&Elf) -> bool,
) -> Option<Elf> {
    let name = module_name(wanted.dso.path());
    let mut paths = sources.in_caches(id, &["elf", "debug"]);
    let installed = || installed_module(sources, host.release.as_deref()?, &name);
    let path = match wanted.dso.path().starts_with(b"/") {
        true => Some(wanted.dso.path().to_vec()),
        false => installed(),
    };
    let path = path.unwrap_or_default();
    paths.extend(to_path(&path).map(|path| sources.locate(path)));
    let endings: [&[u8]; 3] = [b".xz", b".zst", b".gz"];
    let unpacked = endings.iter().find_map(|ending| path.strip_suffix(*ending));
    paths.extend(sources.debug_files(unpacked.unwrap_or(&path), Some(id)));
    first_with(paths, Some(id), is_fit)
}

/// Returns the name of a module as the kernel lists it: `/lib/…/snd-hda.ko.xz` is `snd_hda`.
fn module_name(path: &[u8]) -> Vec<u8> {
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

/// Returns the path of a module of an installed kernel.
fn installed_module(sources: &Sources, release: &str, name: &[u8]) -> Option<Vec<u8>> {
    let folder = sources.modules(release)?;
    let list = sources.locate(&folder.join("modules.dep"));
    let list = read_text(&list, MOST_MODULES).ok()?;
    let mut paths = list
        .split(|&byte| byte == b'\n')
        .filter_map(|line| line.split(|&byte| byte == b':').next());
    let path = paths.find(|path| module_name(path) == name)?;
    let path = folder.join(to_path(path)?);
    Some(path.into_os_string().into_encoded_bytes())
}

/// Returns a vDSO: from the build ID cache, or from the memory of this process; and why it is the
/// recorded one.
fn vdso_file(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &Host,
) -> Result<(Elf, Evidence), Reason> {
    let own = || Elf::parse(Bytes::Memory(own_vdso().ok()?)).ok();
    let Some(id) = wanted.build_id else {
        let evidence = match running(sources, host, wanted.time)? {
            Evidence::Unverified => Evidence::Unverified,
            _ => Evidence::RunningVdso,
        };
        // This process maps only one of the kernel's images.
        let is_64 = wanted.dso.kind == DsoKind::Vdso;
        let own = own().filter(|own| own.is_64() == is_64);
        return own.map(|own| (own, evidence)).ok_or(Reason::NoBuildId);
    };
    let own = || own().filter(|own| own.build_id().is_some_and(|own| is_same(&own, &id)));
    let cached = sources.in_caches(&id, &["vdso", "elf", "debug"]);
    let found = first_with(cached, Some(&id), |_| true).or_else(own);
    found
        .map(|elf| (elf, Evidence::BuildId(id)))
        .ok_or(Reason::NotFound)
}

/// Returns the symbols of a vDSO.
fn vdso(wanted: &Wanted<'_>, sources: &Sources, host: &Host) -> Result<Symbols, Reason> {
    let (elf, evidence) = vdso_file(wanted, sources, host)?;
    let table = of_elf(&elf, &elf, Addresses::Offsets, sources)?;
    Ok(Symbols {
        table: table.into(),
        lookup: Lookup::Offset,
        is_mangled: false,
        has_symtab: false,
        evidence,
    })
}

/// Returns the symbols of generated code: those that the process listed itself.
fn jitted(pid: u32, sources: &Sources, host: &Host) -> Result<Symbols, Reason> {
    // On another machine, the number belongs to another process.
    let is_own = host.is_this && sources.is_own();
    if !is_own && !sources.unverified {
        return Err(Reason::NoPerfMap);
    }
    let path = sources.locate(&perf_map::path(pid));
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
