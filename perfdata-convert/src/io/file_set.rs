//! Sets of files that several processes add to one directory.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::new_file::{PREFIX, SUFFIX, folder_of, sync_folder};
use crate::error::{Error, Result};
use crate::interrupt::{self, TemporaryFolder, undisturbed};
use crate::support::os::{self, create_folders, only_for_owner, private};

/// The character that replaces `/` in temporary names. It does not occur in the names of files.
const SEPARATOR: &str = "+";

/// Files that belong together, and receive their names in a directory when all of them are
/// complete.
///
/// A last file, the marker, shows that the others are complete. Several processes may add files to
/// the directory at the same time, also the same files: one of them wins. Temporary files are in a
/// folder of the directory whose name begins with a dot.
pub struct FileSet<'a> {
    root: PathBuf,
    new: TemporaryFolder,
    syncs: bool,
    is_elsewhere: Option<&'a dyn Fn() -> io::Result<bool>>,
}

/// Whether the files received their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// They did.
    Now,
    /// The marker existed: another process was faster.
    Before,
}

impl fmt::Debug for FileSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSet").finish_non_exhaustive()
    }
}

impl<'a> FileSet<'a> {
    /// Prepares a set of files in the directory `root`, which is created if necessary. Only its
    /// owner can access what is created.
    ///
    /// # Errors
    /// The directory cannot be created or written.
    pub fn create(root: &Path) -> Result<Self> {
        create_folders(root).map_err(Error::io(root))?;
        let make = || {
            let mut builder = tempfile::Builder::new();
            builder.prefix(PREFIX).suffix(SUFFIX);
            only_for_owner(&mut builder);
            builder.tempdir_in(root)
        };
        let new = TemporaryFolder::make(make)
            // The error does not contain the temporary name.
            .map_err(|error| Error::io(root)(error.kind().into()))?;
        Ok(FileSet {
            root: root.to_owned(),
            new,
            syncs: true,
            is_elsewhere: None,
        })
    }

    /// Returns the same set with `syncs`, which determines whether the files survive a crash of the
    /// machine. The default is true.
    #[must_use]
    pub fn synced(self, syncs: bool) -> Self {
        FileSet { syncs, ..self }
    }

    /// Returns the same set with `is_elsewhere`, which [`publish`](Self::publish) calls while no other
    /// process publishes. If it returns true, the contents are there without the marker, and nothing
    /// happens.
    #[must_use]
    pub fn unless(self, is_elsewhere: &'a dyn Fn() -> io::Result<bool>) -> Self {
        FileSet {
            is_elsewhere: Some(is_elsewhere),
            ..self
        }
    }

    /// Creates a file, which [`publish`](Self::publish) knows by this name.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub fn file(&self, name: &str) -> io::Result<File> {
        let mut options = File::options();
        private(options.write(true).create_new(true));
        let path = self.new.path().join(name.replace('/', SEPARATOR));
        interrupt::open(&options, &path)
    }

    /// Gives the files their names: `path_of` returns the path of each in the directory. That of
    /// `marker`, which is one of them, comes last. Files that have these names are replaced.
    ///
    /// If the marker exists, nothing happens unless `replaces` is set. `stale` returns other files
    /// that an interrupted process may have left; they are removed.
    ///
    /// # Errors
    /// The operating system reports an error. Then the marker does not exist.
    pub fn publish(
        self,
        marker: &str,
        replaces: bool,
        path_of: impl Fn(&str) -> PathBuf,
        stale: impl Fn(&Path) -> io::Result<Vec<PathBuf>>,
    ) -> Result<Published> {
        let root = self.root.clone();
        let failed = |path: &Path| Error::io(path.to_owned());
        let mut files = Vec::new();
        for entry in fs::read_dir(self.new.path()).map_err(failed(&root))? {
            let entry = entry.map_err(failed(&root))?;
            let name = entry.file_name().to_string_lossy().replace(SEPARATOR, "/");
            let target = root.join(path_of(&name));
            if self.syncs {
                os::sync(&entry.path()).map_err(failed(&target))?;
            }
            files.push((name == marker, entry.path(), target));
        }
        // The marker is the last one.
        files.sort();
        let marker = root.join(path_of(marker));
        let intent = intent_of(&marker);
        let published = undisturbed(|| {
            // The lock ends with the file. Without it, as in some network file systems, each file
            // still appears complete.
            let lock = os::open(&root).map_err(failed(&root))?;
            let _ = lock.lock();
            if let Some(is_elsewhere) = self.is_elsewhere
                && is_elsewhere().map_err(failed(&root))?
            {
                return Ok(Published::Before);
            }
            let exists = marker.exists();
            if exists && !replaces {
                return Ok(Published::Before);
            }
            if exists || intent.exists() {
                if exists {
                    fs::remove_file(&marker).map_err(failed(&marker))?;
                }
                for path in stale(&root).map_err(failed(&root))? {
                    match fs::remove_file(&path) {
                        Err(error) if error.kind() != ErrorKind::NotFound => {
                            return Err(failed(&path)(error));
                        }
                        _ => {}
                    }
                }
            }
            for (_, _, target) in &files {
                let folder = folder_of(target);
                create_folders(folder).map_err(failed(folder))?;
            }
            File::create(&intent).map_err(failed(&intent))?;
            for (_, new, target) in &files {
                fs::rename(new, target).map_err(failed(target))?;
            }
            fs::remove_file(&intent).map_err(failed(&intent))?;
            Ok(Published::Now)
        })?;
        if self.syncs && published == Published::Now {
            let mut folders: Vec<&Path> = files.iter().map(|(.., path)| folder_of(path)).collect();
            folders.dedup();
            for folder in folders {
                sync_folder(folder)?;
            }
        }
        Ok(published)
    }
}

/// Returns the file that exists while files receive their names.
fn intent_of(marker: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(marker.file_name().unwrap_or_default());
    name.push(".unfinished");
    folder_of(marker).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn publish(root: &Path, text: &str, place: &str, replaces: bool) -> Published {
        let set = FileSet::create(root).expect("a folder").synced(false);
        for name in ["marks", "tables/one", "tables/two"] {
            let mut file = set.file(name).expect("a file");
            file.write_all(text.as_bytes()).expect("a file");
        }
        let path_of = |name: &str| match name {
            "marks" => PathBuf::from("marks/id"),
            name => PathBuf::from(name).join(place).join("id"),
        };
        let stale = |root: &Path| {
            let places = fs::read_dir(root.join("tables/one"))?;
            let paths = places.map(|place| Ok(place?.path().join("id")));
            paths.collect()
        };
        set.publish("marks", replaces, path_of, stale)
            .expect("a folder that can be written")
    }

    fn read(root: &Path, path: &str) -> Option<String> {
        fs::read_to_string(root.join(path)).ok()
    }

    #[test]
    fn files_appear_together_and_once() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path().join("new/set");
        assert_eq!(publish(&root, "first", "a", false), Published::Now);
        assert_eq!(publish(&root, "second", "b", false), Published::Before);
        assert_eq!(read(&root, "marks/id").as_deref(), Some("first"));
        assert_eq!(read(&root, "tables/two/a/id").as_deref(), Some("first"));
        assert_eq!(publish(&root, "third", "b", true), Published::Now);
        assert_eq!(read(&root, "marks/id").as_deref(), Some("third"));
        assert_eq!(read(&root, "tables/one/b/id").as_deref(), Some("third"));
        assert_eq!(read(&root, "tables/one/a/id"), None);
        let names = fs::read_dir(&root).expect("a folder");
        let mut names: Vec<_> = names
            .map(|name| name.expect("a name").file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["marks", "tables"]);
    }

    /// A process was killed before the marker had its name.
    #[test]
    fn what_was_left_is_removed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path();
        assert_eq!(publish(root, "first", "a", false), Published::Now);
        fs::remove_file(root.join("marks/id")).expect("a file");
        File::create(root.join("marks/.id.unfinished")).expect("a file");
        assert_eq!(publish(root, "again", "b", false), Published::Now);
        assert_eq!(read(root, "tables/one/a/id"), None);
        assert_eq!(read(root, "tables/one/b/id").as_deref(), Some("again"));
        assert!(!root.join("marks/.id.unfinished").exists());
    }

    #[test]
    fn several_processes_can_add_the_same_files() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path();
        let published = std::thread::scope(|scope| {
            let add =
                |number: usize| scope.spawn(move || publish(root, &number.to_string(), "a", false));
            let all: Vec<_> = (0..8).map(add).collect();
            let joined = all.into_iter().map(|one| one.join().expect("no panic"));
            joined.filter(|one| *one == Published::Now).count()
        });
        assert_eq!(published, 1);
        let winner = read(root, "marks/id");
        assert_eq!(read(root, "tables/one/a/id"), winner);
        assert_eq!(read(root, "tables/two/a/id"), winner);
    }
}
