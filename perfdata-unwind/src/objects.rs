//! All objects of a recording, each read at its first use.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use perfdata_session::{BuildId, Dso, DsoKind};
use perfdata_symbols::{ObjectFinder, Reason};

use crate::object::{DEBUG_FRAME, Object};

/// Default maximum of the memory for call frame information in bytes.
const MOST_MEMORY: usize = 1 << 30;

/// Returns whether a DSO is a file with code, which can have call frame information.
pub fn is_object(dso: &Dso) -> bool {
    matches!(dso.kind, DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32)
}

/// Identifies an object of [`Objects`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(u32);

impl ObjectId {
    /// Returns the index, which counts the objects in the order in which they were added.
    pub fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

#[derive(Debug)]
struct ObjectEntry {
    /// Its description, unless its file need not be searched.
    dso: Option<Dso>,
    build_id: Option<BuildId>,
    /// When it was mapped, in the time of the recording.
    time: Option<u64>,
    /// Whether it was written for the recording on this machine.
    is_written: bool,
    state: OnceLock<Result<Object, Reason>>,
}

/// The objects that processes map. Several threads may use them at the same time. A clone shares
/// what was read, also by later calls.
#[derive(Debug, Clone)]
pub struct Objects {
    finder: Option<Arc<ObjectFinder>>,
    list: Vec<Arc<ObjectEntry>>,
    held: Arc<AtomicUsize>,
    most_memory: usize,
}

impl Objects {
    /// Returns an empty list, whose objects `finder` finds, with 1 GiB of memory at most.
    pub fn new(finder: ObjectFinder) -> Self {
        Objects {
            finder: Some(Arc::new(finder)),
            list: Vec::new(),
            held: Arc::default(),
            most_memory: MOST_MEMORY,
        }
    }

    /// Returns the list with a maximum of the memory for call frame information in bytes. Objects
    /// that would exceed it are not used.
    #[must_use]
    pub fn with_memory(self, most_memory: usize) -> Self {
        Objects {
            most_memory,
            ..self
        }
    }

    /// Adds an object with its build ID, and when it was mapped in the time of the recording, as far as
    /// that is known. Its file is searched when it is needed.
    pub fn add(
        &mut self,
        dso: Dso,
        build_id: Option<BuildId>,
        time: Option<u64>,
    ) -> Option<ObjectId> {
        self.push(dso, build_id, time, false)
    }

    /// Adds an object that was written for the recording on this machine, such as an image of
    /// generated code: see [`ObjectFinder::find_written`].
    pub fn add_written(&mut self, dso: Dso) -> Option<ObjectId> {
        let build_id = dso.mapped_build_id;
        self.push(dso, build_id, None, true)
    }

    fn push(
        &mut self,
        dso: Dso,
        build_id: Option<BuildId>,
        time: Option<u64>,
        is_written: bool,
    ) -> Option<ObjectId> {
        let id = ObjectId(u32::try_from(self.list.len()).ok()?);
        self.list.push(Arc::new(ObjectEntry {
            dso: Some(dso),
            build_id,
            time,
            is_written,
            state: OnceLock::new(),
        }));
        Some(id)
    }

    /// Adds the objects by which another list is longer. They are shared with it.
    pub(crate) fn follow(&mut self, other: &Objects) {
        let new = other.list.get(self.list.len()..).unwrap_or_default();
        self.list.extend_from_slice(new);
    }

    /// Returns an object, which is read at the first call.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn get(&self, id: ObjectId) -> Result<&Object, &Reason> {
        const UNKNOWN: &Reason = &Reason::NotFound;
        let Some(entry) = self.list.get(id.index()) else {
            return Err(UNKNOWN);
        };
        entry.state.get_or_init(|| self.read(entry)).as_ref()
    }

    #[cold]
    fn read(&self, entry: &ObjectEntry) -> Result<Object, Reason> {
        let (Some(finder), Some(dso)) = (&self.finder, &entry.dso) else {
            return Err(Reason::NotFound);
        };
        let files = match entry.is_written {
            true => finder.find_written(dso),
            false => finder.find(dso, entry.build_id, entry.time, DEBUG_FRAME),
        }?;
        let object = Object::new(files).map_err(Reason::Unreadable)?;
        let size = object.held();
        let before = self.held.fetch_add(size, Ordering::Relaxed);
        if before.saturating_add(size) > self.most_memory {
            self.held.fetch_sub(size, Ordering::Relaxed);
            return Err(Reason::Unreadable(
                "its call frame information exceeds the memory limit".into(),
            ));
        }
        Ok(object)
    }

    /// Returns the description of an object, and its build ID.
    pub fn dso(&self, id: ObjectId) -> Option<(&Dso, Option<BuildId>)> {
        let entry = self.list.get(id.index())?;
        Some((entry.dso.as_ref()?, entry.build_id))
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns a list of objects that need not be searched, in this order.
    pub fn known(objects: Vec<Object>) -> Self {
        let entry = |object| {
            Arc::new(ObjectEntry {
                dso: None,
                build_id: None,
                time: None,
                is_written: false,
                state: OnceLock::from(Ok(object)),
            })
        };
        Objects {
            finder: None,
            list: objects.into_iter().map(entry).collect(),
            held: Arc::default(),
            most_memory: MOST_MEMORY,
        }
    }

    /// Returns the ID of the object with an index.
    pub fn id(&self, index: usize) -> Option<ObjectId> {
        let id = u32::try_from(index).ok()?;
        (index < self.list.len()).then_some(ObjectId(id))
    }
}
