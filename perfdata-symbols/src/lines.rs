//! Source lines and inlined functions of frames, from the debug information of their objects.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_session::{DsoId, DsoKind, Frame, Sample};

use crate::debug_info::DebugInfo;
use crate::files::ObjectFinder;
use crate::object::{Addressing, Wanted};
use crate::reason::Reason;
use crate::sources::Sources;

/// Maximum memory for the debug information of all objects in bytes, and of one object.
const MOST_MEMORY: usize = 1 << 30;

/// A function at an address in source code: the one of the address itself, or one that is inlined
/// there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SourceFrame {
    /// The name as it is in the debug information, mangled or not; `None` if only the line is known.
    pub function: Option<Arc<[u8]>>,
    /// The line of the function's declaration, from 1; 0 if it is not known.
    pub start_line: u32,
    /// The path of the source file when it was compiled: any bytes except NUL.
    pub file: Option<Arc<[u8]>>,
    /// The line in the file, from 1; 0 if it is not known. For a function with inlined ones, it is
    /// that of the inlined call.
    pub line: u32,
}

/// Why inlined functions and lines of an object are not known, or only in part.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoDebugInfo {
    /// There is no file of the object, or none with debug information for kernels and modules.
    Object(Reason),
    /// The files of the object do not contain debug information that can be used.
    NoSection,
    /// The rest of split units was not found: their number, and the file of the first one.
    SplitUnits(u64, Box<[u8]>),
    /// The supplementary file with this path was not found.
    Supplementary(Box<[u8]>),
}

impl fmt::Display for NoDebugInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoDebugInfo::Object(Reason::NotFound) => f.write_str(
                "no file with .debug_info and its build ID was found (/boot, /lib/modules, debug directories with .build-id, build ID caches)",
            ),
            NoDebugInfo::Object(reason) => write!(f, "{reason}"),
            NoDebugInfo::NoSection => f.write_str(
                "no .debug_info (searched: the object, its debug link, debug directories with .build-id, build ID caches)",
            ),
            NoDebugInfo::SplitUnits(count, first) => {
                let first = String::from_utf8_lossy(first);
                let units = if *count == 1 { "unit" } else { "units" };
                write!(
                    f,
                    "{count} {units} in split DWARF not found, {first} first (searched: the build directory, beside the object, the object with .dwp)",
                )
            }
            NoDebugInfo::Supplementary(path) => {
                let path = String::from_utf8_lossy(path);
                write!(
                    f,
                    "the supplementary file {path} was not found (searched: from the debug file, debug directories, .dwz in them)",
                )
            }
        }
    }
}

/// An object whose inlined functions and lines are not known, or only in part.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WithoutDebugInfo {
    /// The name of the object in the recording.
    pub name: Box<[u8]>,
    /// The reason.
    pub reason: NoDebugInfo,
}

/// An object with debug information.
#[derive(Debug)]
struct LineObject {
    name: Box<[u8]>,
    addressing: Addressing,
    info: Result<DebugInfo, NoDebugInfo>,
    /// The path of a supplementary file that was not found.
    missing: Option<Box<[u8]>>,
    /// The time of the last use.
    used: u64,
}

impl LineObject {
    /// Returns the address in the debug information of the instruction at a frame.
    fn address(&self, frame: &Frame<'_>) -> Option<u64> {
        // A return address can be that of the next line, or of the next function.
        let before = u64::from(frame.is_return);
        match &self.addressing {
            Addressing::Address => frame.address.checked_sub(before),
            Addressing::Offset(base) => {
                Some(frame.offset()?.wrapping_sub(before).wrapping_add(*base))
            }
            Addressing::Segments(segments) => {
                let offset = frame.offset()?.checked_sub(before)?;
                segments.iter().find_map(|segment| {
                    let at = offset.checked_sub(segment.offset)?;
                    (at < segment.file_size).then(|| segment.address.wrapping_add(at))
                })
            }
        }
    }

    fn held(&self) -> usize {
        self.info.as_ref().map_or(0, DebugInfo::held)
    }

    /// Returns why not all inlined functions and lines are known.
    fn reason(&self) -> Option<NoDebugInfo> {
        let info = match &self.info {
            Ok(info) => info,
            Err(reason) => return Some(reason.clone()),
        };
        let units = info.missing_units();
        let units = units.map(|(count, first)| NoDebugInfo::SplitUnits(count, first.into()));
        let supplementary = || self.missing.clone().map(NoDebugInfo::Supplementary);
        units.or_else(supplementary)
    }
}

/// Finds source lines and inlined functions.
#[derive(Debug)]
pub(crate) struct Lines {
    sources: Sources,
    finder: Option<ObjectFinder>,
    objects: HashMap<DsoId, LineObject, RandomState>,
    now: u64,
}

impl Lines {
    pub fn new(sources: Sources) -> Self {
        Lines {
            sources,
            finder: None,
            objects: HashMap::default(),
            now: 0,
        }
    }

    /// Returns the functions at the address of a frame, the innermost inlined one first.
    pub fn find(&mut self, sample: &Sample<'_>, frame: &Frame<'_>) -> Vec<SourceFrame> {
        self.try_find(sample, frame).unwrap_or_default()
    }

    fn try_find(&mut self, sample: &Sample<'_>, frame: &Frame<'_>) -> Option<Vec<SourceFrame>> {
        let (id, dso) = frame.dso_id().zip(frame.dso())?;
        if !matches!(
            dso.kind,
            DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 | DsoKind::Kernel | DsoKind::Module
        ) {
            return None;
        }
        self.now = self.now.saturating_add(1);
        if !self.objects.contains_key(&id) {
            let object = self.read(sample, frame)?;
            self.objects.insert(id, object);
        }
        let object = self.objects.get_mut(&id)?;
        object.used = self.now;
        let address = object.address(frame)?;
        let frames = object.info.as_mut().ok()?.find(address);
        self.drop_oldest(id);
        Some(frames)
    }

    /// Reads the debug information of the object of a frame.
    #[cold]
    fn read(&mut self, sample: &Sample<'_>, frame: &Frame<'_>) -> Option<LineObject> {
        let dso = frame.dso()?;
        let session = sample.session();
        let finder = self
            .finder
            .get_or_insert_with(|| ObjectFinder::new(self.sources.clone(), sample.recording()));
        finder.learn_kernel(session);
        let mapping = frame.mapping.and_then(|id| session.mapping(id));
        let wanted = Wanted {
            dso,
            build_id: frame.build_id(),
            pid: 0,
            start: mapping.map(|mapping| mapping.start),
            time: sample.session().mapped_at(frame.dso_id()?),
        };
        let mut object = LineObject {
            name: dso.name.clone(),
            addressing: Addressing::Address,
            info: Err(NoDebugInfo::NoSection),
            missing: None,
            used: 0,
        };
        let file = match finder.debug_file(&wanted) {
            Ok((file, addressing)) => {
                object.addressing = addressing;
                file
            }
            Err(reason) => {
                object.info = Err(NoDebugInfo::Object(reason));
                return Some(object);
            }
        };
        let Some(info) = DebugInfo::parse(&file, MOST_MEMORY) else {
            return Some(object);
        };
        let info = info.with_split_files(finder.split_files(dso, &file));
        object.info = Ok(match finder.supplementary(&file) {
            Some(Ok(supplementary)) => info.with_supplementary(Some(&supplementary), MOST_MEMORY),
            Some(Err(path)) => {
                object.missing = Some(path);
                info
            }
            None => info,
        });
        Some(object)
    }

    /// Returns the objects whose inlined functions and lines are not known, or only in part, by their
    /// names.
    pub fn without_debug_info(&self) -> Vec<WithoutDebugInfo> {
        let objects = self.objects.values().filter_map(|object| {
            Some(WithoutDebugInfo {
                name: object.name.clone(),
                reason: object.reason()?,
            })
        });
        let mut list: Vec<WithoutDebugInfo> = objects.collect();
        list.sort_by(|a, b| a.name.cmp(&b.name));
        list
    }

    /// Drops the information that was not used for the longest time until the rest fits. That of
    /// `kept` is never dropped.
    fn drop_oldest(&mut self, kept: DsoId) {
        let held = |lines: &Self| {
            let sizes = lines.objects.values().map(LineObject::held);
            sizes.fold(0, usize::saturating_add)
        };
        while held(self) > MOST_MEMORY {
            let others = self
                .objects
                .iter()
                .filter(|(id, object)| **id != kept && object.held() > 0);
            let Some((&oldest, _)) = others.min_by_key(|(_, object)| object.used) else {
                return;
            };
            self.objects.remove(&oldest);
        }
    }
}
