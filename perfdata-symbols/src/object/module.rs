//! Kernel modules: in the list of the kernel, or in their files.

use perfdata_core::file_name::to_path;
use perfdata_session::{BuildId, module_name};

use super::kernel::own_kernel;
use super::{Host, Lookup, SymbolTable, Symbols, Wanted, first_with, kallsyms, of_elf};
use crate::bytes::read_text;
use crate::elf::{Addresses, Elf};
use crate::evidence::Evidence;
use crate::fetch::FetchedFile;
use crate::reason::Reason;
use crate::sources::Sources;

/// Maximum size of a list of modules in bytes.
const MOST_MODULES: u64 = 1 << 26;

/// Returns the build ID of a module of the running kernel, if both are the recorded ones.
pub(super) fn own_module(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &Host,
) -> Result<BuildId, Reason> {
    own_kernel(wanted, sources, host)?;
    let name = module_name(wanted.dso.path());
    let is_it = |start| host.running.has_module_at(&name, start) == Some(true);
    match wanted.start.is_some_and(is_it) {
        true => host.running.module_id(&name).ok_or(Reason::NoBuildId),
        false => Err(Reason::OtherModule),
    }
}

/// Returns the symbols of a kernel module.
pub(super) fn symbols(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &mut Host,
) -> Result<Symbols, Reason> {
    let name = module_name(wanted.dso.path());
    // The addresses in the list of the running kernel are those of this boot.
    let reason = match kallsyms::recorded(wanted, sources, host) {
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
        has_symtab: true,
        evidence: Evidence::BuildId(id),
    })
}

/// Returns a file of a module with this build ID that fulfils `is_fit`.
pub(super) fn found_module(
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
    let files = [FetchedFile::Debuginfo, FetchedFile::Executable];
    let fetched = sources.fetched(wanted.dso.path(), Some(id), &files);
    first_with(paths.into_iter().chain(fetched), Some(id), is_fit)
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
