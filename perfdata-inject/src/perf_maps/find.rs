//! The perf map of a process: where to look for it.

use std::fs;
use std::path::{Path, PathBuf};

use perfdata_symbols::Reason;
use perfdata_symbols::perf_map::{self, FOLDER, file_name};

use crate::build_ids::Sysroot;

/// The folders that may contain perf maps.
#[derive(Debug, Clone, Default)]
pub struct PerfMapFolders {
    /// A folder with the files of the recorded machine.
    pub sysroot: Sysroot,
    /// A folder that contains perf maps.
    pub maps: Option<PathBuf>,
}

impl PerfMapFolders {
    /// Returns whether the folder of this machine may contain the maps: none is named.
    pub fn is_own(&self) -> bool {
        self.maps.is_none() && self.sysroot.is_own()
    }

    /// Returns the path and the content of the perf map of process `pid`.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn find(&self, pid: u32) -> Result<(PathBuf, Vec<u8>), Reason> {
        let name = file_name(pid);
        let mut paths = Vec::new();
        if let Some(folder) = &self.maps {
            paths.push(folder.join(&name));
        }
        let usual = perf_map::path(pid);
        if !self.sysroot.is_own() {
            paths.push(self.sysroot.locate(&usual));
        } else if self.maps.is_none() {
            paths.extend(of_container(pid));
            paths.push(usual);
        }
        let mut why = Reason::NoPerfMap;
        for path in paths {
            // A folder that the user names may contain the files of other users.
            match perf_map::read(&path, self.is_own()) {
                Ok(text) => return Ok((path, text)),
                // Of several reasons, that about an existing file is the most useful.
                Err(reason) if why == Reason::NoPerfMap => why = reason,
                Err(_) => {}
            }
        }
        Err(why)
    }
}

/// Returns the path of the map of a process that still runs in a container: it is in the file
/// system of the container, and has the process ID there (tools/perf/util/symbol.c, `dso__load`).
fn of_container(pid: u32) -> Option<PathBuf> {
    let process = Path::new("/proc").join(pid.to_string());
    let status = fs::read_to_string(process.join("status")).ok()?;
    let inner = inner_pid(&status)?;
    let root = process.join("root").join(FOLDER.trim_start_matches('/'));
    Some(root.join(file_name(inner)))
}

/// Returns the process ID in the innermost PID namespace.
fn inner_pid(status: &str) -> Option<u32> {
    let ids = status
        .lines()
        .find_map(|line| line.strip_prefix("NStgid:"))?;
    ids.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_process_id_is_the_last_one() {
        assert_eq!(inner_pid("Name:\ta\nNStgid:\t5793\t12\t1\n"), Some(1));
        assert_eq!(inner_pid("NStgid:\t5793\n"), Some(5793));
        assert_eq!(inner_pid("Tgid:\t5793\n"), None);
    }

    #[cfg(unix)]
    #[test]
    fn named_folders_replace_that_of_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let own = format!("/tmp/perf-{}.map", std::process::id());
        fs::write(&own, "1 1 own\n").unwrap();
        let found = |places: &PerfMapFolders| places.find(std::process::id());
        let default = PerfMapFolders::default();
        assert_eq!(found(&default).unwrap().1, b"1 1 own\n");
        let maps = PerfMapFolders {
            maps: Some(folder.path().to_owned()),
            ..PerfMapFolders::default()
        };
        assert_eq!(found(&maps), Err(Reason::NoPerfMap));
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("tmp")).unwrap();
        let name = file_name(std::process::id());
        fs::write(root.join("tmp").join(&name), "1 1 root\n").unwrap();
        let both = PerfMapFolders {
            sysroot: Sysroot::new(Some(root)),
            ..maps
        };
        assert_eq!(found(&both).unwrap().1, b"1 1 root\n");
        fs::write(folder.path().join(&name), "1 1 named\n").unwrap();
        assert_eq!(found(&both).unwrap().1, b"1 1 named\n");
        fs::remove_file(own).unwrap();
    }
}
