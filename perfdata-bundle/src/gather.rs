//! Which objects a recording needs, and where they are.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Cursor, Read};

use perfdata_core::Recording;
use perfdata_session::{BuildId, DsoId, DsoKind, Frame, Sample, Session};
use perfdata_symbols::{
    BundleFolder, CarriedContent, CarriedFile, FrameObject, Frames, ObjectFinder, Reason, Sources,
};

use crate::member::Member;

/// Finds the files that belong into the bundle of a recording: those that a
/// [`Symbolizer`](perfdata_symbols::Symbolizer) reads for the objects at the frames of its samples.
#[derive(Debug)]
pub struct Gatherer {
    finder: ObjectFinder,
    known: HashSet<(DsoId, Option<BuildId>, Option<u32>)>,
    members: HashSet<Member>,
    gathered: Gathered,
}

/// A file for the bundle.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Carried {
    /// The member that it becomes.
    pub member: Member,
    /// The name of its object in the recording.
    pub name: Vec<u8>,
    /// The file.
    pub file: CarriedFile,
}

/// An object whose files are not in the bundle.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Absent {
    /// Its name in the recording.
    pub name: Vec<u8>,
    /// Its build ID, if the recording contains it.
    pub build_id: Option<BuildId>,
    /// Why.
    pub reason: String,
}

/// What was found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Gathered {
    /// The files for the bundle.
    pub files: Vec<Carried>,
    /// Objects without files.
    pub absent: Vec<Absent>,
    /// Temporary folders with some of the files.
    #[expect(dead_code, reason = "they exist as long as this value")]
    kept: TemporaryFolders,
}

/// What must exist until the files were read.
#[derive(Clone, Default)]
struct TemporaryFolders(Vec<BundleFolder>);

impl fmt::Debug for TemporaryFolders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folders = self.0.iter().map(|folder| (**folder).as_ref());
        f.debug_list().entries(folders).finish()
    }
}

impl Gatherer {
    /// Returns a gatherer for the objects of `recording`, which are searched in `sources`.
    pub fn new(sources: Sources, recording: &Recording) -> Self {
        let gathered = Gathered {
            kept: TemporaryFolders(sources.temporary.clone()),
            ..Gathered::default()
        };
        Gatherer {
            finder: ObjectFinder::new(sources, recording),
            known: HashSet::new(),
            members: HashSet::new(),
            gathered,
        }
    }

    /// Finds the objects at all frames of a sample, its branches and its data address.
    pub fn sample(&mut self, sample: &Sample<'_>) {
        for frame in sample.frames().with_before_exec(true) {
            self.frame(sample, frame);
        }
        let data = sample.data_address();
        for frame in sample.leaf().into_iter().chain(data) {
            self.frame(sample, frame);
        }
        for branch in sample.branches() {
            self.frame(sample, branch.from);
            self.frame(sample, branch.to);
        }
    }

    fn frame(&mut self, sample: &Sample<'_>, mut frame: Frame<'_>) {
        if let Some(behind) = sample.behind_kernel(&frame) {
            self.mapped_frame(sample, &behind);
        }
        frame.mapping = frame.mapping.or(frame.before_exec);
        self.mapped_frame(sample, &frame);
    }

    fn mapped_frame(&mut self, sample: &Sample<'_>, frame: &Frame<'_>) {
        let Some(id) = frame.dso_id() else { return };
        if let Some(object) = Frames::object(sample, frame) {
            self.object(sample.session(), id, &object);
        }
    }

    /// Finds all objects that are mapped in the session at its end, whether samples hit them or not.
    pub fn all(&mut self, session: &Session) {
        let mappings: Vec<_> = session.mappings().collect();
        for mapping in mappings {
            let Some(dso) = session.dso(mapping.dso) else {
                continue;
            };
            if dso.kind != DsoKind::Anonymous {
                let build_id = session.build_id(mapping.dso);
                self.object(session, mapping.dso, &Frames::mapped(dso, build_id));
            }
        }
    }

    /// Finds the programs, libraries and vDSOs that any process had mapped. A decoder of a hardware
    /// trace reads the code of those that were run, which is not known before.
    pub fn programs(&mut self, session: &Session) {
        for id in session.dso_ids() {
            let Some(dso) = session.dso(id) else { continue };
            let is_program = matches!(dso.kind, DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32);
            if is_program && !dso.machine.is_guest() {
                let object = Frames::mapped(dso, session.build_id(id));
                self.object(session, id, &object);
            }
        }
    }

    fn object(&mut self, session: &Session, id: DsoId, object: &FrameObject<'_>) {
        let is_generated = object.dso.kind == DsoKind::Anonymous;
        let key = (id, object.build_id, is_generated.then_some(object.pid));
        if !self.known.insert(key) {
            return;
        }
        let files = match self.finder.carried(session, object) {
            Ok(files) => files,
            // Memory without a file has names only if the process listed them.
            Err(Reason::NoPerfMap) => return,
            Err(reason) => {
                self.absent(object, reason.to_string());
                return;
            }
        };
        for file in files {
            let member = match &file.cached {
                Some((id, name)) => Member::cached(&id.to_string(), name),
                None => Member::copied(&file.path),
            };
            let Some(member) = member else {
                self.absent(object, "its path does not fit into a bundle".into());
                continue;
            };
            if self.members.insert(member.clone()) {
                self.gathered.files.push(Carried {
                    member,
                    name: object.dso.name.to_vec(),
                    file,
                });
            }
        }
    }

    fn absent(&mut self, object: &FrameObject<'_>, reason: String) {
        self.gathered.absent.push(Absent {
            name: object.dso.name.to_vec(),
            build_id: object.build_id,
            reason,
        });
    }

    /// Returns what was found.
    pub fn finish(self) -> Gathered {
        self.gathered
    }
}

impl Carried {
    /// Opens the file.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub fn open(&self) -> io::Result<Box<dyn Read>> {
        Ok(match &self.file.content {
            CarriedContent::Bytes(bytes) => Box::new(Cursor::new(bytes.clone())),
            CarriedContent::File(path) => Box::new(File::open(path)?),
            _ => return Err(io::ErrorKind::Unsupported.into()),
        })
    }

    /// Returns the size of the file in bytes, if it is known.
    pub fn size(&self) -> Option<u64> {
        match &self.file.content {
            CarriedContent::Bytes(bytes) => Some(bytes.len() as u64),
            // The files of the kernel have no size.
            CarriedContent::File(path) => fs::metadata(path)
                .ok()
                .map(|meta| meta.len())
                .filter(|&size| size > 0),
            _ => None,
        }
    }
}

impl Gathered {
    /// Returns the build IDs of objects by their names, as lines of `perf buildid-list`.
    pub fn build_ids(&self) -> Vec<u8> {
        let mut ids: BTreeMap<&[u8], String> = BTreeMap::new();
        for carried in &self.files {
            let is_object = match &carried.member {
                Member::Cached { name, .. } => {
                    matches!(*name, "elf" | "vdso" | "kallsyms" | "vmlinux")
                }
                _ => true,
            };
            let is_line = !carried.name.contains(&b'\n');
            let is_own = match carried.file.cached {
                Some((_, "kallsyms")) => carried.name.starts_with(b"[kernel"),
                _ => true,
            };
            if let Some(id) = carried
                .file
                .build_id
                .filter(|_| is_object && is_line && is_own)
            {
                ids.entry(&carried.name).or_insert_with(|| id.to_string());
            }
        }
        let lines = ids
            .into_iter()
            .flat_map(|(name, id)| [id.as_bytes(), b" ", name, b"\n"].concat());
        lines.collect()
    }
}
