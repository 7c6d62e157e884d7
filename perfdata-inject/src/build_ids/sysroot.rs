//! The file system with the recording's files.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Maximum number of symbolic links in the resolution of a path, as in Linux.
const MOST_LINKS: usize = 40;

/// A root directory: that of this machine, or a folder with the files of another machine.
#[derive(Debug, Clone, Default)]
pub struct Sysroot(Option<PathBuf>);

impl Sysroot {
    /// Returns the folder `root`, or this machine's own root.
    pub fn new(root: Option<PathBuf>) -> Self {
        Sysroot(root)
    }

    /// Returns whether the files are those of this machine.
    pub fn is_own(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the path of a file of the recording. In a folder, symbolic links are resolved
    /// relative to it, and never lead out of it.
    pub fn locate(&self, path: &Path) -> PathBuf {
        let Some(root) = &self.0 else {
            return path.to_owned();
        };
        let mut here = PathBuf::new();
        let mut rest: VecDeque<OsString> = names(path).collect();
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                here.pop();
                continue;
            }
            here.push(&name);
            match fs::read_link(root.join(&here)) {
                Ok(target) if links < MOST_LINKS => {
                    links += 1;
                    here.pop();
                    if target.has_root() {
                        here = PathBuf::new();
                    }
                    names(&target).rev().for_each(|name| rest.push_front(name));
                }
                _ => {}
            }
        }
        root.join(here)
    }
}

/// Returns the names in a path, including `..`.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(_) | Component::ParentDir => Some(component.as_os_str().to_owned()),
        _ => None,
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_stay_inside_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("usr/lib")).unwrap();
        symlink("usr/lib", root.join("lib")).unwrap();
        symlink("/lib/real.so", root.join("usr/lib/absolute.so")).unwrap();
        symlink("../../../../etc/passwd", root.join("usr/lib/outside")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        let sysroot = Sysroot::new(Some(root.to_owned()));
        let at = |path: &str| {
            sysroot
                .locate(Path::new(path))
                .strip_prefix(root)
                .unwrap()
                .to_owned()
        };
        assert_eq!(at("/lib/real.so"), Path::new("usr/lib/real.so"));
        assert_eq!(at("/lib/absolute.so"), Path::new("usr/lib/real.so"));
        assert_eq!(at("/usr/lib/outside"), Path::new("etc/passwd"));
        assert_eq!(at("/../../x"), Path::new("x"));
        assert_eq!(at("/circle"), Path::new("circle"));
    }
}
