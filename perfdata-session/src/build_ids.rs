//! The build IDs of a recording.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::record::CpuMode;
use perfdata_core::{Recording, Result, record};

use crate::dso::{BuildId, Dso, DsoKind, Machine};

/// Approximate size of an entry in bytes.
const ENTRY: usize = 72;

/// The build IDs in the BUILD_ID section of a recording, or in the HEADER_BUILD_ID records of a
/// pipe, by machine and name.
#[derive(Debug, Default)]
pub struct BuildIdTable {
    by_machine: HashMap<Machine, HashMap<Box<[u8]>, ObjectBuildId, RandomState>, RandomState>,
    /// The name of the host's kernel, if an entry contains it.
    kernel: Option<Box<[u8]>>,
    held: usize,
}

/// The build ID of an object.
#[derive(Debug, Clone, Copy)]
struct ObjectBuildId {
    id: BuildId,
    /// Whether the object belongs to the kernel.
    is_kernel: bool,
}

/// Returns whether perf takes the name of an object of the kernel for that of a module
/// (tools/perf/util/dso.c, `__kmod_path__parse`).
fn is_module(path: &[u8]) -> bool {
    const OTHERS: [&[u8]; 4] = [
        b"[kernel.kallsyms]",
        b"[guest.kernel.kallsyms",
        b"[vdso]",
        b"[vsyscall]",
    ];
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    match name.starts_with(b"[") {
        true => !OTHERS.iter().any(|other| name.starts_with(other)),
        false => name.windows(3).any(|part| part == b".ko"),
    }
}

impl BuildIdTable {
    /// Returns the build IDs in the section of a recording.
    ///
    /// # Errors
    /// The section is corrupt.
    pub fn of(recording: &Recording) -> Result<Self> {
        let mut table = BuildIdTable::default();
        if let Some(section) = recording.feature(FeatureId::BUILD_ID)
            && let Section {
                value: Feature::BuildIds(ids),
                ..
            } = section?
        {
            for entry in &ids.0 {
                table.add(entry.header.misc, &entry.build_id);
            }
        }
        Ok(table)
    }

    /// Adds an entry with `misc`. It replaces an older one of the same object.
    pub fn add(&mut self, misc: u16, entry: &record::BuildId) {
        let machine = Machine::of_build_id(entry, misc);
        let Some(id) = BuildId::new(entry.id(misc)) else {
            return;
        };
        let name: Box<[u8]> = entry.filename.text().into();
        let len = name.len().saturating_add(ENTRY);
        let mode = CpuMode::of(misc);
        let entry = ObjectBuildId {
            id,
            is_kernel: matches!(mode, CpuMode::KERNEL | CpuMode::GUEST_KERNEL),
        };
        let ids = self.by_machine.entry(machine).or_default();
        if entry.is_kernel && machine == Machine::HOST && self.kernel.is_none() && !is_module(&name)
        {
            self.kernel = Some(name.clone());
        }
        if ids.insert(name, entry).is_none() {
            self.held = self.held.saturating_add(len);
        }
    }

    /// Returns the build ID of a DSO: the one in its mappings, otherwise the one in this table. This
    /// is perf's precedence.
    pub fn find(&self, dso: &Dso) -> Option<BuildId> {
        dso.mapped_build_id
            .or_else(|| self.entry(dso).map(|entry| entry.id))
    }

    fn entry(&self, dso: &Dso) -> Option<&ObjectBuildId> {
        self.by_machine.get(&dso.machine)?.get(&dso.name)
    }

    /// Returns whether the table contains a DSO of the kernel, and says so: perf up to 4.x wrote
    /// modules like files of processes.
    pub fn contains_of_kernel(&self, dso: &Dso) -> bool {
        self.entry(dso).is_some_and(|entry| entry.is_kernel)
    }

    /// Returns the name of the host's kernel, if the table contains it: `[kernel.kallsyms]`, or the
    /// path of an image. It is perf's name for the kernel (tools/perf/util/machine.c,
    /// `machine__process_kernel_mmap_event`).
    pub fn kernel(&self) -> Option<&[u8]> {
        self.kernel.as_deref()
    }

    /// Returns the files of processes of the host in the table, with their build IDs, by name.
    pub fn files(&self) -> Vec<(Dso, BuildId)> {
        let host = self.by_machine.get(&Machine::HOST).into_iter().flatten();
        let is_file = |name: &[u8]| name.starts_with(b"/") && !name.starts_with(b"//");
        let files = host.filter(|(name, entry)| !entry.is_kernel && is_file(name));
        let mut files: Vec<(Dso, BuildId)> = files
            .map(|(name, entry)| {
                let dso = Dso {
                    machine: Machine::HOST,
                    kind: DsoKind::File,
                    name: name.clone(),
                    file: None,
                    mapped_build_id: None,
                    process: None,
                };
                (dso, entry.id)
            })
            .collect();
        files.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        files
    }

    /// Returns the approximate memory use in bytes.
    pub fn held(&self) -> usize {
        self.held
    }
}
