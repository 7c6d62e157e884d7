//! Source lines and inlined functions of frames, from the debug information of their objects.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_core::record::is_moment;
use perfdata_session::{DsoId, DsoKind, Frame, Sample};

use crate::debug_info::{DEBUG_INFO, DebugInfo};
use crate::elf::Segment;
use crate::files::ObjectFinder;
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

/// An object with debug information.
#[derive(Debug)]
struct Object {
    segments: Vec<Segment>,
    /// `None` if there is none.
    info: Option<DebugInfo>,
    /// The time of the last use.
    used: u64,
}

impl Object {
    /// Returns the address of an offset in the file.
    fn address(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let at = offset.checked_sub(segment.offset)?;
            (at < segment.file_size).then(|| segment.address.wrapping_add(at))
        })
    }

    fn held(&self) -> usize {
        self.info.as_ref().map_or(0, DebugInfo::held)
    }
}

/// Finds source lines and inlined functions.
#[derive(Debug)]
pub(crate) struct Lines {
    sources: Sources,
    finder: Option<ObjectFinder>,
    objects: HashMap<DsoId, Object, RandomState>,
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
        if !matches!(dso.kind, DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32) {
            return None;
        }
        // A return address can be that of the next line, or of the next function.
        let offset = frame.offset()?.checked_sub(frame.is_return.into())?;
        self.now = self.now.saturating_add(1);
        if !self.objects.contains_key(&id) {
            let Lines {
                sources, finder, ..
            } = self;
            let finder = finder
                .get_or_insert_with(|| ObjectFinder::new(sources.clone(), sample.recording()));
            let files = finder
                .find(
                    dso,
                    frame.build_id(),
                    sample.time().filter(|&time| is_moment(time)),
                    DEBUG_INFO,
                )
                .ok();
            let info = files.as_ref().and_then(|files| {
                let file = files.debug.as_ref().unwrap_or(&files.object);
                let info = DebugInfo::parse(file, MOST_MEMORY)?;
                let supplementary = finder.supplementary(file);
                Some(info.with_supplementary(supplementary.as_ref(), MOST_MEMORY))
            });
            let segments = files.map_or(Vec::new(), |files| files.object.segments().to_vec());
            let object = Object {
                segments,
                info,
                used: self.now,
            };
            self.objects.insert(id, object);
        }
        let object = self.objects.get_mut(&id)?;
        object.used = self.now;
        let address = object.address(offset)?;
        let frames = object.info.as_mut()?.find(address);
        self.drop_oldest(id);
        Some(frames)
    }

    /// Drops the information that was not used for the longest time until the rest fits. That of
    /// `kept` is never dropped.
    fn drop_oldest(&mut self, kept: DsoId) {
        let held = |lines: &Self| {
            let sizes = lines.objects.values().map(Object::held);
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
