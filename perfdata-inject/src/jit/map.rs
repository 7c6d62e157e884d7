//! The mapping records of a recording, as far as they matter for generated code.

use perfdata_core::record::{Body, CpuMode, Record};
use perfdata_session::{DsoKind, Mapped, MappedDso};

use super::find::Marker;

/// A mapping record.
pub struct Map<'a> {
    /// The process.
    pub pid: u32,
    /// First address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// Whether there is no regular file.
    pub is_memory: bool,
    /// Whether it is a mapping of the host's processes.
    pub is_host: bool,
    /// The recorded name.
    pub name: &'a [u8],
    /// Device and inode of the file, if the record contains them.
    inode: Option<(u32, u32, u64)>,
}

impl<'a> Map<'a> {
    /// Returns the content of a record; `None` if it is of another type.
    pub fn of(record: &'a Record) -> Option<Self> {
        let (mapped, pid, addr, len, name, inode) = match &record.body {
            Body::Mmap(map) => {
                let mapped = Mapped::of_mmap(map, record.misc);
                (mapped, map.pid, map.addr, map.len, &map.filename, None)
            }
            Body::Mmap2(map) => {
                let mapped = Mapped::of_mmap2(map, record.misc);
                let inode = map.inode.as_ref();
                let inode = inode.map(|inode| (inode.maj, inode.min, inode.ino));
                (mapped, map.pid, map.addr, map.len, &map.filename, inode)
            }
            _ => return None,
        };
        Some(Map {
            pid,
            start: addr,
            end: addr.saturating_add(len),
            is_memory: is_memory(&mapped.dso),
            is_host: CpuMode::of(record.misc) == CpuMode::USER,
            name: name.text(),
            inode,
        })
    }

    /// Returns the mapping as that of a dump.
    pub fn marker(&self) -> Marker {
        Marker {
            pid: self.pid,
            name: self.name.to_vec(),
            inode: self.inode,
        }
    }
}

/// Returns whether a mapping is memory without a regular file, in which generated code can be.
pub fn is_memory(dso: &MappedDso<'_>) -> bool {
    dso.kind == DsoKind::Anonymous || dso.name.starts_with(b"/dev/shm/")
}
