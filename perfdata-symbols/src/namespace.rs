//! Files as the processes of other mount namespaces see them, such as those in containers
//! (tools/perf/util/namespaces.c). They are found as long as the process runs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::perf_map;

/// Returns where the file that a process calls `path` is; `None` if the process has the root and the mount
/// namespace of this one, has ended, or may not be looked at.
pub fn place_of(process: u32, path: &Path) -> Option<PathBuf> {
    let folder = PathBuf::from(format!("/proc/{process}"));
    let differs = |name: &str| {
        let own = fs::read_link(Path::new("/proc/self").join(name)).ok()?;
        Some(fs::read_link(folder.join(name)).ok()? != own)
    };
    if !differs("ns/mnt")? && !differs("root")? {
        return None;
    }
    let below = path.strip_prefix("/").unwrap_or(path);
    Some(folder.join("root").join(below))
}

/// Returns the perf map of a process in another mount namespace, which has the number of the process in
/// its own PID namespace; `None` if there is none.
pub(crate) fn perf_map_of(process: u32) -> Option<PathBuf> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    let own = numbers.split_whitespace().next_back()?.parse().ok()?;
    place_of(process, &perf_map::path(own)).filter(|map| map.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_this_namespace_have_no_other_places() {
        let own = std::process::id();
        assert_eq!(place_of(own, Path::new("/bin/sh")), None);
        assert_eq!(perf_map_of(own), None);
        // No process has this number.
        assert_eq!(place_of(u32::MAX, Path::new("/bin/sh")), None);
    }
}
