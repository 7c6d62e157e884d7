//! The files of objects, for programs that read other parts of them than symbols.

use std::path::{Path, PathBuf};

use perfdata_core::Recording;
use perfdata_core::file_name::to_path;
use perfdata_session::{BuildId, Dso, Mapped, Session};

use crate::bytes::Bytes;
use crate::debug_info::DEBUG_INFO;
use crate::elf::Elf;
use crate::fetch::FetchedFile;
use crate::object::{Addressing, Host, Wanted, debug_file, files, first_with, is_file, is_same};
use crate::reason::Reason;
use crate::sources::Sources;

/// Finds the files of objects that processes map, at the same places and with the same verification
/// as a [`Symbolizer`](crate::Symbolizer).
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-z.data");
/// use perfdata_symbols::{ObjectFinder, Sources};
///
/// let mut samples = perfdata_session::open(path)?;
/// while samples.next()?.is_some() {}
/// let finder = ObjectFinder::new(Sources::default(), samples.recording());
/// for dso in samples.session().dsos() {
///     match finder.find(dso, dso.mapped_build_id, None, b".debug_frame") {
///         Ok(files) => println!("{} segments", files.object.segments().len()),
///         Err(reason) => println!("{}: {reason}", String::from_utf8_lossy(&dso.name)),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ObjectFinder {
    sources: Sources,
    host: Host,
}

/// The mapping of the image of the recorded kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelMapping {
    /// The name of the relocation symbol; empty if there is none.
    pub(crate) symbol: Box<[u8]>,
    /// The address of the relocation symbol.
    pub(crate) address: u64,
    /// The address after the last one.
    pub(crate) end: u64,
}

impl KernelMapping {
    /// Returns the mapping in a record.
    pub fn of(mapped: &Mapped<'_>) -> Self {
        KernelMapping {
            symbol: mapped.dso.symbol.into(),
            address: mapped.pgoff,
            end: mapped.end,
        }
    }

    /// Returns the mapping in a session, and the kernel's build ID, if they are known.
    pub fn of_session(session: &Session) -> Option<(Self, Option<BuildId>)> {
        let mapping = session.kernel_mapping()?;
        let symbol = session.relocation_symbol(mapping.dso);
        let kernel = KernelMapping {
            symbol: symbol.unwrap_or_default().into(),
            address: mapping.pgoff,
            end: mapping.end,
        };
        Some((kernel, session.build_id(mapping.dso)))
    }
}

/// The files of an object.
#[derive(Debug)]
#[non_exhaustive]
pub struct ObjectFiles {
    /// The object itself.
    pub object: Elf,
    /// Its debug file, if it contains a section that the object does not contain.
    pub debug: Option<Elf>,
}

impl ObjectFiles {
    /// Returns files that need not be searched.
    pub fn new(object: Elf, debug: Option<Elf>) -> Self {
        ObjectFiles { object, debug }
    }
}

/// Where the rest of split units of an object is.
#[derive(Debug)]
pub(crate) struct SplitFiles {
    sources: Sources,
    /// The object, and its debug file.
    objects: Vec<PathBuf>,
}

impl SplitFiles {
    /// Returns the files of the object at these paths: its own, and that of its debug file.
    pub fn new(sources: Sources, objects: Vec<PathBuf>) -> Self {
        SplitFiles { sources, objects }
    }

    /// Returns the files that may contain a unit. The compiler ran in `folder` and called it `name`.
    pub fn units(&self, folder: &[u8], name: &[u8]) -> impl Iterator<Item = Elf> + use<'_> {
        let name = to_path(name).unwrap_or(Path::new("")).to_owned();
        let path = to_path(folder).unwrap_or(Path::new("")).join(&name);
        let folders = self.objects.iter().filter_map(|object| object.parent());
        let mut paths = vec![self.sources.locate(&path)];
        for folder in folders {
            if name.is_relative() {
                paths.push(folder.join(&name));
            }
            paths.extend(name.file_name().map(|name| folder.join(name)));
        }
        paths.extend(self.sources.in_debug_folders(&path));
        paths.into_iter().filter_map(|path| Elf::open(&path).ok())
    }

    /// Returns the package with the units of the object.
    pub fn package(&self) -> Option<Elf> {
        let paths = self.objects.iter().map(|object| {
            let mut path = object.clone().into_os_string();
            path.push(".dwp");
            PathBuf::from(path)
        });
        let paths: Vec<PathBuf> = paths.collect();
        let elsewhere = paths
            .iter()
            .flat_map(|path| self.sources.in_debug_folders(path));
        let mut all = paths.iter().cloned().chain(elsewhere);
        all.find_map(|path| Elf::open(&path).ok())
    }
}

impl ObjectFinder {
    /// Returns a finder for the objects of `recording`.
    pub fn new(sources: Sources, recording: &Recording) -> Self {
        let host = Host::of(recording);
        ObjectFinder { sources, host }
    }

    /// Returns the finder with the kernel of the recorded machine and its build ID, if that is known: the
    /// vDSO of the running kernel is the recorded one if the kernel is.
    #[must_use]
    pub fn with_kernel(mut self, mapping: KernelMapping, build_id: Option<BuildId>) -> Self {
        self.host.set_kernel(mapping, build_id);
        self
    }

    /// Returns the files of `dso` with this build ID, which was mapped at `time` in the recording: the object, and a debug file if the object
    /// does not contain the section `section` but the debug file does. The object of a
    /// [`File`](perfdata_session::DsoKind::File) is searched at its path and in the build ID
    /// caches, a vDSO in the caches and in the memory of this process.
    ///
    /// # Errors
    /// The reason why no file can be used.
    pub fn find(
        &self,
        dso: &Dso,
        build_id: Option<BuildId>,
        time: Option<u64>,
        section: &[u8],
    ) -> Result<ObjectFiles, Reason> {
        let wanted = Wanted {
            dso,
            build_id,
            pid: 0,
            start: None,
            time,
        };
        let (object, debug) = files(&wanted, &self.sources, &self.host, section)?;
        Ok(ObjectFiles { object, debug })
    }

    /// Returns a file with the debug information of an object, and how addresses are looked up in it.
    pub(crate) fn debug_file(&self, wanted: &Wanted<'_>) -> Result<(Elf, Addressing), Reason> {
        debug_file(wanted, &self.sources, &self.host, DEBUG_INFO)
    }

    /// Returns the supplementary file of a file with debug information (`dwz`), or its path if it is not
    /// found; `None` if it needs none.
    pub(crate) fn supplementary(&self, file: &Elf) -> Option<Result<Elf, Box<[u8]>>> {
        let (path, id) = file.supplementary()?;
        let paths = self.sources.supplementary(&path, &id, file.path());
        let files = &[FetchedFile::Debuginfo];
        let fetched = self.sources.fetched(&path, Some(&id), files);
        let found = first_with(paths.into_iter().chain(fetched), Some(&id), |_| true);
        Some(found.ok_or_else(|| path.into()))
    }

    /// Returns the files with the rest of split units of an object, whose debug information is in
    /// `file`.
    pub(crate) fn split_files(&self, dso: &Dso, file: &Elf) -> SplitFiles {
        let recorded = to_path(dso.path()).map(|path| self.sources.locate(path));
        let mut objects: Vec<PathBuf> = file.path().map(Path::to_owned).into_iter().collect();
        objects.extend(recorded.filter(|path| file.path() != Some(&**path)));
        SplitFiles::new(self.sources.clone(), objects)
    }

    /// Returns the sources, and what is known about the recorded machine.
    pub(crate) fn parts(&mut self) -> (&Sources, &mut Host) {
        (&self.sources, &mut self.host)
    }

    /// Takes what the session says about the kernel of the recorded machine.
    pub(crate) fn learn_kernel(&mut self, session: &Session) {
        if self.host.kernel.is_none() {
            self.host.learn_kernel(session);
        }
    }

    /// Returns the file of `dso` that was written for the recording on this machine, such as an
    /// image of generated code: at its path, and never in another root directory. It is verified
    /// by the build ID or the inode in its mapping.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn find_written(&self, dso: &Dso) -> Result<ObjectFiles, Reason> {
        let path = to_path(dso.path()).ok_or(Reason::NotFound)?;
        let bytes = Bytes::open(path).map_err(|_| Reason::NotFound)?;
        let object = Elf::parse(bytes).map_err(Reason::Unreadable)?;
        match (dso.mapped_build_id, object.build_id(), dso.file) {
            (Some(id), Some(own), _) if !is_same(&id, &own) => {
                return Err(Reason::OtherBuildId(own));
            }
            (Some(_), None, _) => return Err(Reason::NotFound),
            (None, _, Some(file)) if !is_file(path, &file) => return Err(Reason::NotFound),
            _ => {}
        }
        Ok(ObjectFiles {
            object,
            debug: None,
        })
    }
}
