//! The folder with fetched files, in the layout of elfutils' client (debuginfod/debuginfod-client.c).

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use perfdata_session::BuildId;
use perfdata_symbols::FetchedFile;
use tempfile::NamedTempFile;

/// Time for which a file that no server has is not asked for again.
const MISS: Duration = Duration::from_secs(600);

/// Returns the name of a file in the cache, which is also that at servers.
pub(crate) fn name_of(file: FetchedFile) -> &'static str {
    match file {
        FetchedFile::Debuginfo => "debuginfo",
        FetchedFile::Executable => "executable",
    }
}

/// What the cache contains.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CachedFile {
    /// The file is there.
    Present,
    /// Recently, no server had it.
    Missing,
    /// Nothing is known.
    Unknown,
}

/// The folder of a file in the cache, and the file.
#[derive(Debug)]
pub(crate) struct CacheEntry<'a> {
    cache: &'a Path,
    folder: PathBuf,
    /// The path of the file.
    pub path: PathBuf,
}

impl<'a> CacheEntry<'a> {
    /// Returns the place of a file in `cache`.
    pub fn new(cache: &'a Path, id: &BuildId, file: FetchedFile) -> Self {
        let folder = cache.join(id.to_string());
        let path = folder.join(name_of(file));
        CacheEntry {
            cache,
            folder,
            path,
        }
    }

    /// Returns what the cache contains.
    pub fn state(&self) -> CachedFile {
        let Ok(meta) = fs::metadata(&self.path) else {
            return CachedFile::Unknown;
        };
        if !meta.is_file() {
            return CachedFile::Unknown;
        }
        if meta.len() > 0 {
            return CachedFile::Present;
        }
        // A file from the future is an old one: the clock was changed.
        let age = meta.modified().ok().and_then(|modified| {
            let age = SystemTime::now().duration_since(modified);
            age.ok()
        });
        match age.is_some_and(|age| age <= self.miss()) {
            true => CachedFile::Missing,
            false => CachedFile::Unknown,
        }
    }

    /// Returns the time for which a file is not asked for again: that in the cache, if it is there.
    fn miss(&self) -> Duration {
        let text = fs::read_to_string(self.cache.join("cache_miss_s"));
        let seconds = text.ok().and_then(|text| text.trim().parse().ok());
        seconds.map_or(MISS, Duration::from_secs)
    }

    /// Stores that no server has the file.
    pub fn set_missing(&self) {
        // If this fails, servers are asked again the next time.
        let _ = fs::remove_file(&self.path);
        let _ = self.make_folder().and_then(|()| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).open(&self.path)
        });
    }

    /// Returns a new file beside that of the entry.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn temporary(&self) -> io::Result<NamedTempFile> {
        self.make_folder()?;
        // As elfutils' client names them.
        let mut prefix = self.path.file_name().unwrap_or_default().to_owned();
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix("").rand_bytes(6);
        builder.tempfile_in(&self.folder)
    }

    /// Gives a complete file the name of the entry.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn store(&self, file: NamedTempFile) -> io::Result<()> {
        let mut permissions = file.as_file().metadata()?.permissions();
        // The folder permits others nothing; programs should not change the file by mistake.
        permissions.set_readonly(true);
        restrict(&mut permissions);
        file.as_file().set_permissions(permissions)?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Removes the folder of the entry, if it is empty.
    pub fn remove_empty(&self) {
        let _ = fs::remove_dir(&self.folder);
    }

    fn make_folder(&self) -> io::Result<()> {
        fs::create_dir_all(self.cache)?;
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(unix)]
fn restrict(permissions: &mut fs::Permissions) {
    std::os::unix::fs::PermissionsExt::set_mode(permissions, 0o400);
}

#[cfg(not(unix))]
fn restrict(_: &mut fs::Permissions) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_of_elfutils() {
        let cache = tempfile::tempdir().expect("a folder");
        let id = BuildId::from_hex("00ab").expect("a build ID");
        let entry = CacheEntry::new(cache.path(), &id, FetchedFile::Executable);
        assert_eq!(entry.path, cache.path().join("00ab/executable"));
        assert_eq!(entry.state(), CachedFile::Unknown);
        entry.set_missing();
        assert_eq!(entry.state(), CachedFile::Missing);
        fs::write(cache.path().join("cache_miss_s"), "0\n").expect("a file");
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(entry.state(), CachedFile::Unknown);
        let file = entry.temporary().expect("a file");
        fs::write(file.path(), "x").expect("written");
        entry.store(file).expect("renamed");
        assert_eq!(entry.state(), CachedFile::Present);
        let names = fs::read_dir(cache.path().join("00ab")).expect("a folder");
        assert_eq!(names.count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode();
            assert_eq!(mode(&entry.path) & 0o777, 0o400);
            assert_eq!(mode(&cache.path().join("00ab")) & 0o777, 0o700);
        }
    }
}
