//! The dump of a process: where to look for it, and whether it is the right one.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use perfdata_core::file_name::to_path;
use perfdata_core::jitdump::JitdumpReader;
use perfdata_core::read::{Limits, Source};

use crate::build_ids::Sysroot;
use crate::device::device;
use perfdata_convert::io::open_regular;
use perfdata_convert::support::os;

/// A dump that is being read.
pub type Reader = JitdumpReader<BufReader<File>>;

/// A mapping of a dump, which announces it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Marker {
    /// The process that maps it, as perf sees it.
    pub pid: u32,
    /// Its name in the recording.
    pub name: Vec<u8>,
    /// Device and inode of the file, if the recording contains them.
    pub inode: Option<(u32, u32, u64)>,
}

impl Marker {
    /// Returns whether a file of this name is that of a dump: `jit-*.dump`.
    pub fn is_dump(name: &[u8]) -> bool {
        let base = base(name);
        base.starts_with(b"jit-") && base.ends_with(b".dump")
    }

    /// Returns the name of the file without its folder.
    pub fn base(&self) -> &[u8] {
        base(&self.name)
    }

    /// Returns the name for messages.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    /// Returns the process ID in the name.
    fn named_pid(&self) -> Option<u32> {
        let name = self.base().strip_prefix(b"jit-")?.strip_suffix(b".dump")?;
        std::str::from_utf8(name).ok()?.parse().ok()
    }

    /// Returns whether `file` is certainly the mapped one.
    fn is_file(&self, file: &fs::Metadata) -> bool {
        os::identity(file).is_some_and(|(dev, ino)| {
            let (maj, min) = device(dev);
            self.inode == Some((maj, min, ino))
        })
    }
}

/// Returns the part of a path after the last slash, without the kernel's mark of a removed file.
fn base(name: &[u8]) -> &[u8] {
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    name.rsplit(|&byte| byte == b'/').next().unwrap_or(name)
}

/// A dump that was found.
#[derive(Debug)]
pub struct Found {
    /// Its path on this machine.
    pub path: PathBuf,
    /// Whether a process ID in its name or header is that of the process.
    pub names_process: bool,
    /// Whether it has the device and inode in the recording.
    pub is_same_file: bool,
    /// The reader, after the header.
    pub reader: Reader,
}

/// The reason why there is no dump to read.
#[derive(Debug)]
pub enum Missing {
    /// There is none, or it is not readable, or not a dump: its path, and the reason.
    Bad(String, String),
    /// Its header is not written yet.
    Empty,
}

/// The folders that may contain dumps.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    /// A folder with the files of the recorded machine.
    pub sysroot: Sysroot,
    /// A folder that contains dumps.
    pub dumps: Option<PathBuf>,
}

impl Folders {
    /// Returns a marker of the dump of a process in the folder of dumps, which the recording need
    /// not name: some runtimes do not map their dump.
    pub fn dump_of(&self, pid: u32) -> Option<Marker> {
        let path = self.dumps.as_ref()?.join(format!("jit-{pid}.dump"));
        path.is_file().then(|| Marker {
            pid,
            name: path.into_os_string().into_encoded_bytes(),
            inode: None,
        })
    }

    /// Returns whether the folder of dumps contains a file with the name of `marker`.
    pub fn contains(&self, marker: &Marker) -> bool {
        let folder = self.dumps.as_ref().zip(to_path(marker.base()));
        folder.is_some_and(|(folder, base)| folder.join(base).is_file())
    }

    /// Opens the dump of `marker`: in the sysroot, in the folder of dumps, under its own path, or
    /// under this path as the process sees it if it still runs.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn find(&self, marker: &Marker, limits: Limits) -> Result<Found, Missing> {
        let is_none = || Missing::Bad(marker.shown(), "not found".into());
        let name = to_path(&marker.name).ok_or_else(is_none)?;
        let mut paths = Vec::new();
        if !self.sysroot.is_own() {
            paths.push(self.sysroot.locate(name));
        }
        if let Some(folder) = &self.dumps {
            paths.extend(to_path(marker.base()).map(|base| folder.join(base)));
        }
        paths.push(name.to_owned());
        let inside = name.strip_prefix("/").unwrap_or(name);
        let of_process = Path::new("/proc")
            .join(marker.pid.to_string())
            .join("root")
            .join(inside);
        // Without the inode, it might be that of another process with the same number.
        if fs::metadata(&of_process).is_ok_and(|meta| marker.is_file(&meta)) {
            paths.insert(0, of_process);
        }
        let mut why = None;
        for path in paths {
            match open(&path, marker, limits) {
                Ok(found) => return Ok(found),
                Err(Missing::Empty) => return Err(Missing::Empty),
                // Of several reasons, that about an existing file is the most useful.
                Err(Missing::Bad(path, reason)) => {
                    why.get_or_insert((path, reason));
                }
            }
        }
        let (path, reason) = why.unwrap_or_default();
        Err(Missing::Bad(path, reason))
    }
}

/// Opens the file at `path`.
fn open(path: &Path, marker: &Marker, limits: Limits) -> Result<Found, Missing> {
    let bad = |why: String| Missing::Bad(path.display().to_string(), why);
    let file = open_regular(path).map_err(|error| bad(error.to_string()))?;
    let meta = file.metadata().map_err(|error| bad(error.to_string()))?;
    if meta.len() < u64::from(perfdata_core::jitdump::JitHeader::SIZE) && is_start(&file) {
        return Err(Missing::Empty);
    }
    let reader = JitdumpReader::new(BufReader::with_capacity(1 << 16, file), limits)
        .map_err(|error| bad(error.to_string()))?;
    let names_process = marker.named_pid() == Some(marker.pid) || reader.header().pid == marker.pid;
    Ok(Found {
        path: path.to_owned(),
        names_process,
        is_same_file: marker.is_file(&meta),
        reader,
    })
}

/// Returns whether a short file may become a dump: it is empty, or begins like one.
fn is_start(file: &File) -> bool {
    let mut start = [0; 4];
    let got = file.read_at(&mut start, 0).unwrap_or(0);
    let start = start.get(..got).unwrap_or_default();
    start.len() < 4 || perfdata_core::jitdump::recognise(start).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_are_known_by_their_names() {
        let is_dump = |name: &str| Marker::is_dump(name.as_bytes());
        assert!(is_dump("/tmp/jit-12.dump") && is_dump("jit-x.dump"));
        assert!(is_dump("/tmp/jit-12.dump (deleted)"));
        assert!(!is_dump("/tmp/jit-12.dump/x") && !is_dump("/tmp/xjit-12.dump") && !is_dump(""));
        let marker = |name: &str| Marker {
            pid: 12,
            name: name.into(),
            inode: None,
        };
        assert_eq!(marker("/a/jit-77.dump").named_pid(), Some(77));
        assert_eq!(marker("/a/jit-main.dump").named_pid(), None);
    }
}
