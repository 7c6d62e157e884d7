//! The things that the table of build IDs names: DSOs of a recording that are kernels, modules or files.

use std::collections::HashMap;

use perfdata_core::record::CpuMode;
use perfdata_session::{BuildId, Dso, DsoId, DsoKind, Dsos, Machine, Mapped};

/// Number of an object.
pub type ObjectId = DsoId;

/// Whether the table of build IDs has entries for what `mapped` maps: not for memory, nor for code that a kernel made.
pub fn is_object(mapped: &Mapped<'_>) -> bool {
    !mapped.name.is_empty() && !matches!(mapped.kind, DsoKind::Anonymous | DsoKind::KernelSymbol)
}

/// The CPU mode that the entry of `dso` in the table has.
pub fn cpu_mode(dso: &Dso) -> CpuMode {
    match (is_kernel(dso.kind), dso.machine.is_guest()) {
        (true, false) => CpuMode::KERNEL,
        (true, true) => CpuMode::GUEST_KERNEL,
        (false, false) => CpuMode::USER,
        (false, true) => CpuMode::GUEST_USER,
    }
}

/// Whether it runs in a kernel.
pub fn is_kernel(kind: DsoKind) -> bool {
    matches!(kind, DsoKind::Kernel | DsoKind::Module | DsoKind::KernelSymbol)
}

/// The name of `dso` for messages.
pub fn shown(dso: &Dso) -> String {
    String::from_utf8_lossy(&dso.name).into_owned()
}

/// Which objects were asked for: hit by a sample, or mapped at all.
#[derive(Debug, Default)]
pub struct Wanted(Vec<bool>);

impl Wanted {
    /// Notes an object.
    pub fn add(&mut self, id: ObjectId) {
        if self.0.len() <= id.index() {
            self.0.resize(id.index() + 1, false);
        }
        if let Some(wanted) = self.0.get_mut(id.index()) {
            *wanted = true;
        }
    }

    /// Whether the object was noted.
    pub fn has(&self, id: ObjectId) -> bool {
        self.has_place(id.index())
    }

    /// Whether the object at this place among all was noted.
    pub fn has_place(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(|&wanted| wanted)
    }
}

/// Those of `dsos` that one of the two says were asked for, in the order in which they were first seen. The table knows
/// no inodes: of files of one name that have none or the same build ID, it has one entry.
pub fn wanted_of(dsos: Dsos, wanted: &Wanted, more: &Wanted) -> Vec<Dso> {
    let mut found: Vec<(Dso, bool)> = Vec::new();
    type Key = (Machine, DsoKind, Box<[u8]>, Option<BuildId>);
    let mut known: HashMap<Key, usize> = HashMap::new();
    for (at, dso) in dsos.into_list().into_iter().enumerate() {
        let is_wanted = wanted.has_place(at) || more.has_place(at);
        let next = found.len();
        let place = *known.entry((dso.machine, dso.kind, dso.name.clone(), dso.mapped_build_id)).or_insert(next);
        match found.get_mut(place) {
            Some((_, wanted)) => *wanted |= is_wanted,
            None => found.push((dso, is_wanted)),
        }
    }
    found.into_iter().filter(|(_, wanted)| *wanted).map(|(dso, _)| dso).collect()
}
