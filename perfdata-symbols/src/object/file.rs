//! Files that processes map: programs and libraries.

use std::fs;
use std::iter;
use std::path::{Path, PathBuf};

use perfdata_core::file_name::to_path;
use perfdata_session::{BuildId, DsoKind, FileId};

use super::vdso::vdso_file;
use super::{Host, Lookup, Symbols, Wanted, first_with, is_same};
use crate::bytes::Bytes;
use crate::debug_info::DEBUG_INFO;
use crate::elf::{Addresses, Elf};
use crate::evidence::{Evidence, check_file};
use crate::fetch::{FetchAhead, FetchedFile};
use crate::namespace;
use crate::os;
use crate::reason::Reason;
use crate::sources::Sources;
use crate::table::Builder;

/// Call frame information, for unwinding user stacks.
pub(super) const FRAMES: &[u8] = b".debug_frame";

/// The file of an object that processes map, as far as it was found.
pub(super) struct OwnFile {
    /// The file at the recorded path, if it is the recorded one.
    pub(super) elf: Option<Elf>,
    pub(super) id: Option<BuildId>,
    /// Why there is no such file.
    pub(super) reason: Reason,
    pub(super) evidence: Evidence,
}

/// Returns the file of an object, verified by its build ID.
pub(super) fn own_file(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &Host,
) -> Result<OwnFile, Reason> {
    let recorded = wanted.dso.path();
    // A name that this system cannot have leads to the root, which is not a file.
    let path = sources.locate(to_path(recorded).unwrap_or(Path::new("")));
    let mut reason = Reason::NotFound;
    let mut evidence = wanted.build_id.map(Evidence::BuildId);
    if wanted.build_id.is_none()
        && let Some(copy) = sources.bundled(recorded)
        && let Ok(elf) = Elf::open(&copy)
    {
        return Ok(OwnFile {
            id: elf.build_id(),
            elf: Some(elf),
            reason,
            evidence: Evidence::Bundled,
        });
    }
    let mut own = None;
    let elsewhere = iter::once_with(|| in_namespace(wanted, sources, host)).flatten();
    for path in iter::once(path).chain(elsewhere) {
        match recorded_file(wanted, sources, host, &path) {
            Ok((elf, other)) => {
                evidence = other.or(evidence);
                own = Some(elf);
                break;
            }
            Err(Reason::NotFound) => {}
            Err(other) => reason = other,
        }
    }
    let id = wanted
        .build_id
        .or_else(|| own.as_ref().and_then(Elf::build_id));
    if id.is_none() && own.is_none() {
        return Err(match reason {
            Reason::NotFound => Reason::NeitherIdNorFile,
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

/// Returns where the file of a process in another mount namespace is, which still runs on this machine.
fn in_namespace(wanted: &Wanted<'_>, sources: &Sources, host: &Host) -> Option<PathBuf> {
    if !host.is_this || !sources.is_own() {
        return None;
    }
    namespace::place_of(wanted.dso.process?, to_path(wanted.dso.path())?)
}

/// Returns the file at `path` if it is the recorded one, and why, if not by its build ID.
fn recorded_file(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &Host,
    path: &Path,
) -> Result<(Elf, Option<Evidence>), Reason> {
    let bytes = Bytes::open(path).map_err(|_| Reason::NotFound)?;
    let elf = Elf::parse(bytes).map_err(Reason::Unreadable)?.at(path);
    match (wanted.build_id, elf.build_id()) {
        (Some(id), Some(own)) if is_same(&own, &id) => Ok((elf, None)),
        (Some(_), Some(own)) => Err(Reason::OtherBuildId(own)),
        (Some(_), None) => Err(Reason::NotFound),
        (None, _) => {
            let evidence = unidentified(wanted, sources, host, path)?;
            Ok((elf, Some(evidence)))
        }
    }
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
    pub(super) fn debug_paths(&self, recorded: &[u8], sources: &Sources) -> Vec<PathBuf> {
        let mut debug: Vec<PathBuf> = Vec::new();
        if let Some(link) = self.elf.as_ref().and_then(Elf::debug_link) {
            debug.extend(sources.of_link(recorded, &link.name));
        }
        if let Some(id) = &self.id {
            debug.extend(sources.in_caches(id, &["elf", "debug"]));
        }
        debug.extend(sources.debug_files(recorded, self.id.as_ref()));
        debug
    }

    /// Returns the object itself: the file at its path, a copy in a cache, or the fetched one.
    pub(super) fn runtime(self, recorded: &[u8], sources: &Sources) -> Option<Elf> {
        self.elf.or_else(|| {
            let id = self.id.as_ref();
            let cached = sources.in_caches(id?, &["elf"]).into_iter();
            let fetched = sources.fetched(recorded, id, &[FetchedFile::Executable]);
            first_with(cached.chain(fetched), id, Elf::has_content)
        })
    }
}

/// The files with the symbols of an object, as far as they were found.
struct SymbolFiles {
    /// A debug file with the symbols that the object lacks.
    full: Option<Elf>,
    /// The object itself.
    runtime: Option<Elf>,
    /// Why there is none.
    reason: Reason,
    evidence: Evidence,
}

/// Finds the files with the symbols of an object that processes map.
fn symbol_files(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &Host,
) -> Result<SymbolFiles, Reason> {
    let own = own_file(wanted, sources, host)?;
    let recorded = wanted.dso.path();
    let mut full = match own.elf.as_ref().is_some_and(Elf::has_symtab) {
        // The link of a file with symbols leads to the same symbols.
        true => None,
        false => first_with(
            own.debug_paths(recorded, sources),
            own.id.as_ref(),
            Elf::has_symtab,
        ),
    };
    let (id, reason, evidence) = (own.id, own.reason.clone(), own.evidence.clone());
    let runtime = own.runtime(recorded, sources);
    if full.is_none() && !runtime.as_ref().is_some_and(Elf::has_symtab) {
        let fetched = sources.fetched(recorded, id.as_ref(), &[FetchedFile::Debuginfo]);
        full = first_with(fetched, id.as_ref(), Elf::has_symtab);
    }
    Ok(SymbolFiles {
        full,
        runtime,
        reason,
        evidence,
    })
}

/// Fetches the files with the symbols of an object, or only its code, unless they are here.
pub(crate) fn fetch_ahead(wanted: &Wanted<'_>, sources: &Sources, host: &Host, ahead: FetchAhead) {
    // Whether something is missing, and why, is reported when it is needed.
    let _ = match ahead {
        FetchAhead::Code => files(wanted, sources, host, FRAMES).is_ok(),
        FetchAhead::Names => symbol_files(wanted, sources, host).is_ok(),
        FetchAhead::Lines => {
            symbol_files(wanted, sources, host).is_ok()
                && files(wanted, sources, host, DEBUG_INFO).is_ok()
        }
    };
}

/// Returns the symbols of a file that processes map.
pub(super) fn symbols(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &Host,
) -> Result<Symbols, Reason> {
    let SymbolFiles {
        full,
        runtime,
        reason,
        evidence,
    } = symbol_files(wanted, sources, host)?;
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
    let recorded = wanted.dso.path();
    let mut debug = match own.elf.as_ref().is_some_and(has_section) {
        true => None,
        false => first_with(
            own.debug_paths(recorded, sources),
            own.id.as_ref(),
            has_section,
        ),
    };
    let (id, reason) = (own.id, own.reason.clone());
    let runtime = own.runtime(recorded, sources).ok_or(reason)?;
    // Objects with `.eh_frame` rarely have other call frame information, for which a large file would be
    // fetched in vain.
    let is_needed = section != FRAMES || !runtime.has_content_of(b".eh_frame");
    if debug.is_none() && is_needed && !has_section(&runtime) {
        let fetched = sources.fetched(recorded, id.as_ref(), &[FetchedFile::Debuginfo]);
        debug = first_with(fetched, id.as_ref(), has_section);
    }
    Ok((runtime, debug))
}

/// Returns whether the file at `path` is the recorded one.
pub(crate) fn is_file(path: &Path, file: &FileId) -> bool {
    fs::metadata(path).is_ok_and(|meta| os::inode(&meta) == Some(file.inode))
}
