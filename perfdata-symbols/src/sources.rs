//! Where objects and their debug information are found (tools/perf/util/dso.c,
//! `dso__read_binary_type_filename`, Linux 7.2).

use std::env;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use perfdata_core::file_name::to_path;
use perfdata_session::BuildId;

use crate::demangle::Spelling;
use crate::fetch::{FetchedFile, ObjectFetcher};
use crate::machine::{DEBUG_DIRECTORY, KERNEL_IMAGES};

/// The symbols of the kernel and its modules.
pub(crate) const KALLSYMS: &[u8] = b"/proc/kallsyms";

/// Returns the file that contains what a recording calls `path`.
pub type Locate = Arc<dyn Fn(&Path) -> PathBuf + Send + Sync>;

/// A folder with what a bundle contains: `debug`, a build ID cache, and `root`, copies of files of the
/// recorded machine by their paths. A temporary one is removed with its last user.
pub type BundleFolder = Arc<dyn AsRef<Path> + Send + Sync>;

/// Where to search for objects and their debug information.
#[derive(Clone)]
#[non_exhaustive]
pub struct Sources {
    /// Finds the files of another machine, for instance in a folder with a copy of its root. `None`
    /// for the files of this machine.
    pub root: Option<Locate>,
    /// Folders in the form of `/usr/lib/debug`, which are searched before it.
    pub debug_dirs: Vec<PathBuf>,
    /// Build ID caches: folders in the form of `~/.debug`, as perf and `perf archive` write them.
    pub caches: Vec<PathBuf>,
    /// What came with the recording. It is searched first; a file in `root` is used only for an object
    /// whose build ID the recording does not contain.
    pub bundle: Option<BundleFolder>,
    /// Folders among [`caches`](Self::caches) that are temporary: each is removed with its last user.
    pub temporary: Vec<BundleFolder>,
    /// What fetches files of objects that are not found elsewhere. `None`: nothing is fetched.
    pub fetcher: Option<Arc<dyn ObjectFetcher>>,
    /// The image of the recorded kernel.
    pub vmlinux: Option<PathBuf>,
    /// The symbols of the recorded kernel and its modules at the time of the recording: a copy of
    /// its `/proc/kallsyms`. It contains no build ID that could be verified.
    pub kallsyms: Option<PathBuf>,
    /// Whether to use the files of this machine, or of [`root`](Self::root), for objects whose
    /// build IDs the recording does not contain, although they may differ from the recorded ones.
    pub unverified: bool,
    /// When the recording was complete, at the latest: the time of its file, for instance. A file whose
    /// build ID the recording does not contain is used only if it was not modified since then, or, if the
    /// clock of the recording tells more, since the object was recorded.
    pub recorded_until: Option<SystemTime>,
    /// The version of perf whose choice is followed between symbols with the same address: it
    /// depends on the lengths of their names, as that version spells them.
    pub spelling: Spelling,
}

impl Default for Sources {
    /// Returns the places that perf searches on this machine.
    fn default() -> Self {
        let home = env::var_os("HOME").map(PathBuf::from);
        Sources {
            root: None,
            debug_dirs: Vec::new(),
            caches: home.map(|home| home.join(".debug")).into_iter().collect(),
            bundle: None,
            temporary: Vec::new(),
            fetcher: None,
            vmlinux: None,
            kallsyms: None,
            unverified: false,
            recorded_until: None,
            spelling: Spelling::default(),
        }
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources")
            .field("has_root", &self.root.is_some())
            .field("debug_dirs", &self.debug_dirs)
            .field("caches", &self.caches)
            .field("has_bundle", &self.bundle.is_some())
            .field("temporary", &self.temporary.len())
            .field("fetcher", &self.fetcher)
            .field("vmlinux", &self.vmlinux)
            .field("kallsyms", &self.kallsyms)
            .field("unverified", &self.unverified)
            .field("recorded_until", &self.recorded_until)
            .field("spelling", &self.spelling)
            .finish()
    }
}

impl Sources {
    /// Returns the same sources with [`root`](Self::root).
    #[must_use]
    pub fn with_root(self, root: Option<Locate>) -> Self {
        Sources { root, ..self }
    }

    /// Returns the same sources with [`debug_dirs`](Self::debug_dirs).
    #[must_use]
    pub fn with_debug_dirs(self, debug_dirs: Vec<PathBuf>) -> Self {
        Sources { debug_dirs, ..self }
    }

    /// Returns the same sources with [`caches`](Self::caches).
    #[must_use]
    pub fn with_caches(self, caches: Vec<PathBuf>) -> Self {
        Sources { caches, ..self }
    }

    /// Returns the same sources with [`bundle`](Self::bundle).
    #[must_use]
    pub fn with_bundle(self, bundle: Option<BundleFolder>) -> Self {
        Sources { bundle, ..self }
    }

    /// Returns the same sources with [`temporary`](Self::temporary).
    #[must_use]
    pub fn with_temporary(self, temporary: Vec<BundleFolder>) -> Self {
        Sources { temporary, ..self }
    }

    /// Returns the same sources with [`fetcher`](Self::fetcher).
    #[must_use]
    pub fn with_fetcher(self, fetcher: Option<Arc<dyn ObjectFetcher>>) -> Self {
        Sources { fetcher, ..self }
    }

    /// Returns the same sources with [`vmlinux`](Self::vmlinux).
    #[must_use]
    pub fn with_vmlinux(self, vmlinux: Option<PathBuf>) -> Self {
        Sources { vmlinux, ..self }
    }

    /// Returns the same sources with [`kallsyms`](Self::kallsyms).
    #[must_use]
    pub fn with_kallsyms(self, kallsyms: Option<PathBuf>) -> Self {
        Sources { kallsyms, ..self }
    }

    /// Returns the same sources with [`unverified`](Self::unverified).
    #[must_use]
    pub fn with_unverified(self, unverified: bool) -> Self {
        Sources { unverified, ..self }
    }

    /// Returns the same sources with [`recorded_until`](Self::recorded_until).
    #[must_use]
    pub fn with_recorded_until(self, recorded_until: Option<SystemTime>) -> Self {
        Sources {
            recorded_until,
            ..self
        }
    }

    /// Returns the same sources with [`spelling`](Self::spelling).
    #[must_use]
    pub fn with_spelling(self, spelling: Spelling) -> Self {
        Sources { spelling, ..self }
    }

    /// Returns whether the files are those of this machine.
    pub(crate) fn is_own(&self) -> bool {
        self.root.is_none()
    }

    /// Returns the copy in the bundle of the file that the recording calls `path`, if there is one.
    pub(crate) fn bundled(&self, path: &[u8]) -> Option<PathBuf> {
        let folder = self.bundle.as_ref()?;
        let path = to_path(path.strip_prefix(b"/").unwrap_or(path))?;
        // A name in a recording may not lead out of the folder.
        let mut parts = path.components();
        let is_inside = parts.all(|part| matches!(part, Component::Normal(_)));
        let copy = (**folder).as_ref().join("root").join(path);
        (is_inside && copy.is_file()).then_some(copy)
    }

    /// Returns the build ID cache in the bundle.
    fn bundled_cache(&self) -> Option<PathBuf> {
        let folder = self.bundle.as_ref()?;
        Some((**folder).as_ref().join("debug"))
    }

    /// Returns the copy in the bundle of the symbols of the kernel with this build ID, or of the recorded
    /// kernel if its build ID is not known.
    pub(crate) fn bundled_kallsyms(&self, id: Option<&BuildId>) -> Option<PathBuf> {
        let Some(id) = id else {
            return self.bundled(KALLSYMS);
        };
        let digits = id.to_string();
        let (first, rest) = digits.split_at_checked(2)?;
        let entry = self
            .bundled_cache()?
            .join(".build-id")
            .join(first)
            .join(rest);
        Some(entry.join("kallsyms")).filter(|list| list.is_file())
    }

    /// Returns the file that the recording calls `path`.
    pub(crate) fn locate(&self, path: &Path) -> PathBuf {
        match &self.root {
            Some(locate) => locate(path),
            None => path.to_owned(),
        }
    }

    /// Returns the folders with debug files: those of the user, and the one of the recorded
    /// machine.
    fn debug_folders(&self) -> impl Iterator<Item = PathBuf> {
        let own = self.locate(Path::new(DEBUG_DIRECTORY));
        self.debug_dirs.iter().cloned().chain([own])
    }

    /// Returns the files that the debug link of the object at `path` may name.
    pub(crate) fn of_link(&self, path: &[u8], link: &[u8]) -> Vec<PathBuf> {
        let (Some(link), Some(path)) = (to_path(link), to_path(path)) else {
            return Vec::new();
        };
        let folder = path.parent().unwrap_or(Path::new("/"));
        let mut found = vec![
            self.locate(&folder.join(link)),
            self.locate(&folder.join(".debug").join(link)),
        ];
        let below = folder.strip_prefix("/").unwrap_or(folder);
        found.extend(
            self.debug_folders()
                .map(|debug| debug.join(below).join(link)),
        );
        found
    }

    /// Returns the files of an object in the build ID caches, and in debuginfod's cache.
    pub(crate) fn in_caches(&self, id: &BuildId, names: &[&str]) -> Vec<PathBuf> {
        let digits = id.to_string();
        let (first, rest) = digits.split_at_checked(2).unwrap_or((&digits, ""));
        let mut found = Vec::new();
        let bundled = self.bundled_cache();
        for cache in bundled.iter().chain(&self.caches) {
            let entry = cache.join(".build-id").join(first).join(rest);
            found.extend(names.iter().map(|name| entry.join(name)));
            // Before 4.12, the entry was the file itself.
            found.push(entry);
        }
        if let Some(cache) = debuginfod_cache() {
            let folder = cache.join(&digits);
            found.extend([folder.join("debuginfo"), folder.join("executable")]);
        }
        found
    }

    /// Returns files of the object that the recording calls `name`. Each is fetched when the iterator
    /// reaches it, so they follow all other places.
    pub(crate) fn fetched<'a>(
        &'a self,
        name: &'a [u8],
        id: Option<&'a BuildId>,
        files: &'a [FetchedFile],
    ) -> impl Iterator<Item = PathBuf> + 'a {
        let fetcher = self.fetcher.as_ref().zip(id).into_iter();
        fetcher.flat_map(move |(fetcher, id)| {
            let files = files.iter();
            files.filter_map(move |&file| fetcher.fetch(name, id, file))
        })
    }

    /// Returns the debug files of an object at `path`.
    pub(crate) fn debug_files(&self, path: &[u8], id: Option<&BuildId>) -> Vec<PathBuf> {
        let below = to_path(path).map(|path| path.strip_prefix("/").unwrap_or(path));
        let mut found = Vec::new();
        for folder in self.debug_folders() {
            if let Some(place) = below.map(|below| folder.join(below)) {
                let mut with_ending = place.clone().into_os_string();
                with_ending.push(".debug");
                found.extend([with_ending.into(), place]);
            }
            if let Some(digits) = id.map(BuildId::to_string)
                && let Some((first, rest)) = digits.split_at_checked(2)
            {
                let name = format!("{rest}.debug");
                found.push(folder.join(".build-id").join(first).join(name));
            }
        }
        found
    }

    /// Returns the places of a file in the folders with debug files.
    pub(crate) fn in_debug_folders(&self, path: &Path) -> impl Iterator<Item = PathBuf> {
        let below = path.strip_prefix("/").unwrap_or(path).to_owned();
        self.debug_folders().map(move |folder| folder.join(&below))
    }

    /// Returns the places of the supplementary file that the debug file at `from` calls `path`.
    pub(crate) fn supplementary(
        &self,
        path: &[u8],
        id: &BuildId,
        from: Option<&Path>,
    ) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let place = to_path(path);
        found.extend(
            place
                .filter(|path| path.has_root())
                .map(|path| self.locate(path)),
        );
        let relative = place.filter(|path| path.is_relative());
        if let Some(path) = relative {
            found.extend(from.and_then(Path::parent).map(|folder| folder.join(path)));
            found.extend(self.in_debug_folders(path));
        }
        // The path of distributions leads to this folder.
        let names = place.and_then(Path::file_name).into_iter();
        found.extend(names.flat_map(|name| {
            let folders = self.debug_folders();
            folders.map(move |folder| folder.join(".dwz").join(name))
        }));
        found.extend(self.debug_files(path, Some(id)));
        found.extend(self.in_caches(id, &["debug"]));
        found
    }

    /// Returns the places of the image of a kernel.
    pub(crate) fn kernel_images(&self, release: Option<&str>) -> Vec<PathBuf> {
        let release = release.filter(|release| is_name(release));
        let named = KERNEL_IMAGES
            .iter()
            .filter_map(|path| Some(path.replace('*', release?)));
        ["/boot/vmlinux".to_owned()]
            .into_iter()
            .chain(named)
            .map(|path| self.locate(Path::new(&path)))
            .collect()
    }

    /// Returns the folder with the modules of a kernel.
    pub(crate) fn modules(&self, release: &str) -> Option<PathBuf> {
        is_name(release).then(|| Path::new("/lib/modules").join(release))
    }
}

/// Returns whether the release of a kernel can be a name in a path.
fn is_name(release: &str) -> bool {
    !release.contains('/') && to_path(release.as_bytes()).is_some()
}

/// Returns the folder in which debuginfod's client stores what it downloaded; `None` if this user has no
/// such folder (elfutils, debuginfod/debuginfod-client.c).
pub fn debuginfod_cache() -> Option<PathBuf> {
    let folder = |variable: &str| {
        let value = env::var_os(variable).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    if let Some(path) = folder("DEBUGINFOD_CACHE_PATH") {
        return Some(path);
    }
    let home = folder("HOME");
    // The place of old releases is used while it exists.
    let old = home
        .as_ref()
        .map(|home| home.join(".debuginfod_client_cache"));
    if let Some(old) = old.filter(|old| old.is_dir()) {
        return Some(old);
    }
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(home?.join(".cache")))?;
    Some(cache.join("debuginfod_client"))
}
