//! The files with the names of an object, for a copy of them that travels with the recording.

use std::path::PathBuf;

use perfdata_session::{BuildId, Dso, DsoKind, Frame, Sample, Session};

use super::file::{FRAMES, own_file};
use super::kernel::{found_image, named_image};
use super::module::found_module;
use super::vdso::vdso_file;
use super::{Host, Wanted, first_with, kallsyms};
use crate::debug_info::DEBUG_INFO;
use crate::elf::Elf;
use crate::evidence::Evidence;
use crate::fetch::FetchedFile;
use crate::files::ObjectFinder;
use crate::machine::own_vdso;
use crate::namespace;
use crate::perf_map;
use crate::reason::Reason;
use crate::sources::{KALLSYMS, Sources};

/// Where the content of a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CarriedContent {
    /// In this file.
    File(PathBuf),
    /// In memory.
    Bytes(Vec<u8>),
}

/// A file with names of an object, verified like those of a [`Symbolizer`](crate::Symbolizer).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CarriedFile {
    /// The content.
    pub content: CarriedContent,
    /// The build ID by which a [`Symbolizer`](crate::Symbolizer) finds the copy in a cache, and the name
    /// there: `elf`, `debug`, `vdso`, `kallsyms`, `vmlinux` …; `None` if it finds it only by its path.
    pub cached: Option<(BuildId, &'static str)>,
    /// The path on the recorded machine.
    pub path: Vec<u8>,
    /// The build ID of the object itself, if it has one.
    pub build_id: Option<BuildId>,
    /// Why it is the recorded one.
    pub evidence: Evidence,
}

/// An object that a sample hit.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct FrameObject<'a> {
    /// The object.
    pub dso: &'a Dso,
    /// The build ID at the time of the sample.
    pub build_id: Option<BuildId>,
    /// The process.
    pub pid: u32,
    /// The first address of the mapping.
    pub start: Option<u64>,
    /// When it was mapped.
    pub time: Option<u64>,
}

/// The objects at frames.
#[derive(Debug)]
pub struct Frames;

impl Frames {
    /// Returns the object at a frame of a sample.
    pub fn object<'a>(sample: &Sample<'a>, frame: &Frame<'a>) -> Option<FrameObject<'a>> {
        let mapping = frame.mapping.and_then(|id| sample.session().mapping(id));
        Some(FrameObject {
            dso: frame.dso()?,
            build_id: frame.build_id(),
            pid: sample.thread().map_or(u32::MAX, |thread| thread.pid),
            start: mapping.map(|mapping| mapping.start),
            time: sample.session().mapped_at(frame.dso_id()?),
        })
    }

    /// Returns an object that was mapped, but perhaps not hit.
    pub fn mapped(dso: &Dso, build_id: Option<BuildId>) -> FrameObject<'_> {
        FrameObject {
            dso,
            build_id,
            pid: u32::MAX,
            start: None,
            time: None,
        }
    }
}

impl ObjectFinder {
    /// Returns the files that a [`Symbolizer`](crate::Symbolizer) reads for an object, with its debug
    /// files, those for unwinding, and the supplementary files of these.
    ///
    /// # Errors
    /// The reason why there are no names of the object.
    pub fn carried(
        &mut self,
        session: &Session,
        object: &FrameObject<'_>,
    ) -> Result<Vec<CarriedFile>, Reason> {
        self.learn_kernel(session);
        let wanted = Wanted {
            dso: object.dso,
            build_id: object.build_id,
            pid: object.pid,
            start: object.start,
            time: object.time,
        };
        let (sources, host) = self.parts();
        let mut files = files_of(&wanted, sources, host)?;
        let with_info: Vec<CarriedFile> = files.clone();
        for file in with_info {
            let CarriedContent::File(path) = &file.content else {
                continue;
            };
            if !matches!(file.cached, Some((_, "elf" | "debug")) | None) {
                continue;
            }
            let Ok(elf) = Elf::open(path) else { continue };
            if let Some(Ok(other)) = self.supplementary(&elf)
                && let Some((id, path)) = other.build_id().zip(other.path())
            {
                files.push(CarriedFile {
                    content: CarriedContent::File(path.to_owned()),
                    cached: Some((id, "debug")),
                    path: path.as_os_str().as_encoded_bytes().to_vec(),
                    build_id: Some(id),
                    evidence: Evidence::BuildId(id),
                });
            }
            let mut package = path.clone().into_os_string();
            package.push(".dwp");
            let package = PathBuf::from(package);
            if let Some((id, name)) = file.cached
                && package.is_file()
            {
                files.push(CarriedFile {
                    path: package.as_os_str().as_encoded_bytes().to_vec(),
                    content: CarriedContent::File(package),
                    cached: Some((
                        id,
                        if name == "elf" {
                            "elf.dwp"
                        } else {
                            "debug.dwp"
                        },
                    )),
                    build_id: None,
                    evidence: file.evidence.clone(),
                });
            }
        }
        Ok(files)
    }
}

/// Returns the files of an object.
fn files_of(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &mut Host,
) -> Result<Vec<CarriedFile>, Reason> {
    if wanted.dso.machine.is_guest() {
        return Err(Reason::Guest);
    }
    match wanted.dso.kind {
        DsoKind::KernelSymbol => Ok(Vec::new()),
        DsoKind::Kernel => kernel(wanted, sources, host),
        DsoKind::Module => module(wanted, sources, host),
        DsoKind::Vdso | DsoKind::Vdso32 => vdso(wanted, sources, host),
        DsoKind::Anonymous => generated(wanted.pid, sources, host),
        _ => file(wanted, sources, host),
    }
}

/// Returns a file with the content of `elf`, which was read from a file.
fn of_elf(
    elf: &Elf,
    cached: Option<(BuildId, &'static str)>,
    path: &[u8],
    evidence: Evidence,
) -> Option<CarriedFile> {
    Some(CarriedFile {
        content: CarriedContent::File(elf.path()?.to_owned()),
        cached,
        path: path.to_vec(),
        build_id: elf.build_id(),
        evidence,
    })
}

/// Returns the files of a program or library: the object, and a debug file for what it lacks.
fn file(wanted: &Wanted<'_>, sources: &Sources, host: &Host) -> Result<Vec<CarriedFile>, Reason> {
    let own = own_file(wanted, sources, host)?;
    let recorded = wanted.dso.path();
    let (reason, evidence, id) = (own.reason.clone(), own.evidence.clone(), own.id);
    let lacks = |is_fit: &dyn Fn(&Elf) -> bool| !own.elf.as_ref().is_some_and(is_fit);
    let fits: [&dyn Fn(&Elf) -> bool; 3] = [
        &Elf::has_symtab,
        &|elf| elf.has_content_of(DEBUG_INFO),
        &|elf| elf.has_content_of(FRAMES),
    ];
    let debug = own.debug_paths(recorded, sources);
    let mut found = fits
        .into_iter()
        .filter(|is_fit| lacks(is_fit))
        .find_map(|is_fit| first_with(debug.iter().cloned(), id.as_ref(), is_fit));
    let runtime = own.runtime(recorded, sources);
    let is_complete = |elf: &Elf| elf.has_symtab() && elf.has_content_of(DEBUG_INFO);
    if !found.iter().chain(&runtime).any(is_complete) {
        let fetched = sources.fetched(recorded, id.as_ref(), &[FetchedFile::Debuginfo]);
        found = first_with(fetched, id.as_ref(), is_complete).or(found);
    }
    let mut files = Vec::new();
    if let Some(found) = found
        && let Some(id) = id
    {
        let path = found.path().map(|path| path.as_os_str().as_encoded_bytes());
        let path = path.unwrap_or_default().to_vec();
        files.extend(of_elf(
            &found,
            Some((id, "debug")),
            &path,
            Evidence::BuildId(id),
        ));
    }
    if let Some(runtime) = runtime {
        let cached = wanted.build_id.map(|id| (id, "elf"));
        let file = of_elf(&runtime, cached, recorded, evidence);
        files.extend(file);
    }
    match files.is_empty() {
        true => Err(reason),
        false => Ok(files),
    }
}

/// Returns the list of symbols of the kernel, or its image.
fn kernel(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &mut Host,
) -> Result<Vec<CarriedFile>, Reason> {
    let image = |elf: &Elf, id, evidence| {
        let path = elf.path().map(|path| path.as_os_str().as_encoded_bytes());
        let file = of_elf(
            elf,
            Some((id, "vmlinux")),
            path.unwrap_or_default(),
            evidence,
        );
        file.map(|file| vec![file]).ok_or(Reason::NotFound)
    };
    if sources.vmlinux.is_some() && sources.kallsyms.is_none() {
        let (elf, evidence) = named_image(wanted, sources)?;
        let id = host.kernel.or(elf.build_id()).ok_or(Reason::NoBuildId)?;
        return image(&elf, id, evidence);
    }
    match list(wanted, sources, host) {
        Ok(list) => Ok(vec![list]),
        Err(reason) => {
            let id = wanted.build_id.ok_or(reason.clone())?;
            let elf = found_image(&id, sources, host, Elf::has_symtab).ok_or(reason)?;
            image(&elf, id, Evidence::BuildId(id))
        }
    }
}

/// Returns the list of the symbols of the kernel and its modules.
fn list(wanted: &Wanted<'_>, sources: &Sources, host: &mut Host) -> Result<CarriedFile, Reason> {
    let list = kallsyms::recorded(wanted, sources, host)?;
    Ok(CarriedFile {
        content: CarriedContent::File(list.path),
        cached: host.kernel.map(|id| (id, "kallsyms")),
        path: KALLSYMS.to_vec(),
        build_id: host.kernel,
        evidence: list.evidence,
    })
}

/// Returns the list of symbols with those of a module, and the file of the module.
fn module(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &mut Host,
) -> Result<Vec<CarriedFile>, Reason> {
    let list = list(wanted, sources, host);
    let elf = wanted.build_id.and_then(|id| {
        Some((
            id,
            found_module(wanted, &id, sources, host, Elf::has_symtab)?,
        ))
    });
    let file = elf.and_then(|(id, elf)| {
        let evidence = Evidence::BuildId(id);
        of_elf(&elf, Some((id, "elf")), wanted.dso.path(), evidence)
    });
    match (list, file) {
        (Err(reason), None) => Err(reason),
        (list, file) => Ok(list.into_iter().chain(file).collect()),
    }
}

/// Returns a vDSO.
fn vdso(wanted: &Wanted<'_>, sources: &Sources, host: &Host) -> Result<Vec<CarriedFile>, Reason> {
    let (elf, evidence) = vdso_file(wanted, sources, host)?;
    let content = match elf.path() {
        Some(path) => CarriedContent::File(path.to_owned()),
        None => CarriedContent::Bytes(
            own_vdso().map_err(|error| Reason::Unreadable(error.to_string()))?,
        ),
    };
    Ok(vec![CarriedFile {
        content,
        cached: wanted.build_id.map(|id| (id, "vdso")),
        path: wanted.dso.path().to_vec(),
        build_id: elf.build_id(),
        evidence,
    }])
}

/// Returns the perf map of a process.
fn generated(pid: u32, sources: &Sources, host: &Host) -> Result<Vec<CarriedFile>, Reason> {
    let recorded = perf_map::path(pid);
    let name = recorded.as_os_str().as_encoded_bytes();
    let is_own = host.is_this && sources.is_own();
    let (path, evidence) = match sources.bundled(name) {
        Some(copy) => (copy, Evidence::Bundled),
        None if is_own => {
            let map = namespace::perf_map_of(pid);
            (map.unwrap_or_else(|| recorded.clone()), Evidence::Machine)
        }
        None if sources.unverified => (sources.locate(&recorded), Evidence::Unverified),
        None => return Err(Reason::NoPerfMap),
    };
    // It must be readable, and belong to the user.
    perf_map::read(&path, is_own && evidence == Evidence::Machine)?;
    Ok(vec![CarriedFile {
        content: CarriedContent::File(path),
        cached: None,
        path: name.to_vec(),
        build_id: None,
        evidence,
    }])
}
