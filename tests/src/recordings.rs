//! The real recordings for tests: their paths, recorders and containers.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    str::FromStr,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use flate2::read::GzDecoder;
use perfdata_tracepoint::Like;

use crate::skipped;

/// A real recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The file, or the directory.
    pub path: PathBuf,
    /// `6.1-i386-file-g` for recordings made for this project, in `fixtures/` or elsewhere;
    /// otherwise `folder/name`.
    pub name: String,
    /// The perf version and machine that made it, as far as the name or folder shows them.
    pub recorder: Option<Recorder>,
    /// The container and byte order according to the first bytes; `None` if these are not
    /// recognized.
    pub form: Option<Form>,
}

/// The recorder of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorder {
    /// The version of the perf that recorded.
    pub perf: PerfVersion,
    /// The machine according to the name of the folder: `x86_64`, `s390x`, `armhf`, …
    pub arch: String,
}

/// A perf release by its first two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PerfVersion {
    /// The 6 of 6.12.
    pub major: u16,
    /// The 12 of 6.12.
    pub minor: u16,
}

impl PerfVersion {
    /// Returns the version whose text is that of this one.
    pub fn like(self) -> Like {
        match (self.major, self.minor) {
            (..6, _) | (6, ..3) => Like::Perf6_1,
            (6, ..=12) => Like::Perf6_12,
            _ => Like::Perf7_2,
        }
    }
}

/// The container of a recording and the byte order inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The container.
    pub container: Container,
    /// The byte order of the machine that recorded.
    pub endian: Endian,
}

/// The container of a recording on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Seekable, with attributes, data and feature sections at offsets.
    File,
    /// A stream of records after a 16-byte header.
    Pipe,
    /// A directory whose `data` is in file mode.
    Directory,
}

/// A byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endian {
    /// x86-64 and most others.
    Little,
    /// s390x.
    Big,
}

impl Recording {
    /// Returns the output of `perf report --header-only -I` when the recording was made; empty if
    /// perf failed.
    pub fn header_text(&self) -> Option<Vec<u8>> {
        fs::read(self.beside("header.txt")).ok()
    }

    /// Returns the output of `perf script` when the recording was made; empty if perf failed.
    pub fn script_text(&self) -> Option<Vec<u8>> {
        let packed = File::open(self.beside("events.txt.gz")).ok()?;
        let mut text = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut text).ok()?;
        Some(text)
    }

    /// Returns whether perf 6.1 frees memory twice when it reads the names of mapped files in the
    /// recording.
    pub fn crashes_perf_6_1(&self) -> bool {
        self.name == "6.12-aarch64-odd-names"
    }

    /// Whether it is one of the project's.
    pub fn is_fixture(&self) -> bool {
        self.path.starts_with(fixtures_dir())
    }

    /// Returns whether the publishers damaged its records to test their reader.
    pub fn is_damaged(&self) -> bool {
        self.name.starts_with("crashers/") || self.name.starts_with("quipper/piped.corrupted.")
    }

    /// Returns the file that perf opens first: the recording itself, or `data` in the directory.
    pub fn main_file(&self) -> PathBuf {
        main_file(&self.path)
    }

    fn beside(&self, extension: &str) -> PathBuf {
        self.path.with_extension(extension)
    }

    /// Returns a recording that a test made.
    pub fn at(path: &Path) -> Self {
        Self::new(path.to_owned(), path.display().to_string(), None)
    }

    fn new(path: PathBuf, name: String, recorder: Option<Recorder>) -> Self {
        let form = Form::of(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self {
            path,
            name,
            recorder,
            form,
        }
    }
}

impl Recorder {
    /// Returns the byte order of `arch`.
    pub fn endian(&self) -> Endian {
        match self.arch.as_str() {
            "s390x" => Endian::Big,
            _ => Endian::Little,
        }
    }
}

impl Form {
    /// Determines the form from the magic and the header size. Returns `None` if the input is too
    /// short or has another magic, or if the magic does not show the byte order.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        let mut start = Vec::new();
        File::open(main_file(path))?
            .take(16)
            .read_to_end(&mut start)?;
        let Some((magic, size)) = start.split_first_chunk::<8>() else {
            return Ok(None);
        };
        let Ok(size) = <[u8; 8]>::try_from(size) else {
            return Ok(None);
        };
        let (endian, size) = match magic {
            b"PERFILE2" => (Endian::Little, u64::from_le_bytes(size)),
            b"2ELIFREP" => (Endian::Big, u64::from_be_bytes(size)),
            _ => return Ok(None),
        };
        let container = match size {
            72 | 104 if path.is_dir() => Container::Directory,
            72 | 104 => Container::File,
            16 => Container::Pipe,
            _ => return Ok(None),
        };
        Ok(Some(Self { container, endian }))
    }
}

impl FromStr for PerfVersion {
    type Err = ();

    /// Parses `6.12` with any suffix: `6.12.107`, `7.0-rc1`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, rest) = text.split_once('.').ok_or(())?;
        let minor = rest.split(|c: char| !c.is_ascii_digit()).next().ok_or(())?;
        Ok(Self {
            major: major.parse().map_err(drop)?,
            minor: minor.parse().map_err(drop)?,
        })
    }
}

impl fmt::Display for PerfVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Returns the root of the repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Returns the folder of the project's recordings.
pub fn fixtures_dir() -> PathBuf {
    root().join("fixtures")
}

/// Returns the recording `fixtures/<name>.data`.
pub fn fixture(name: &str) -> Recording {
    let mut parts = name.splitn(3, '-');
    let recorder = parts.next().zip(parts.next()).and_then(|(perf, arch)| {
        Some(Recorder {
            perf: perf.parse().ok()?,
            arch: arch.to_owned(),
        })
    });
    Recording::new(
        fixtures_dir().join(format!("{name}.data")),
        name.to_owned(),
        recorder,
    )
}

/// Returns all recordings in `fixtures/`.
pub fn fixtures() -> Vec<Recording> {
    let paths = list(&fixtures_dir()).expect("fixtures/ is part of the repository");
    paths
        .iter()
        .filter_map(|path| recording_name(path))
        .map(fixture)
        .collect()
}

/// Returns the further recordings of `recordings/` that are not in `fixtures/`.
pub fn shared() -> Vec<Recording> {
    let fixtures = fixtures();
    outside("recordings", |folder, name| {
        let (arch, perf) = folder.rsplit_once('-')?;
        let recorder = Recorder {
            perf: perf.parse().ok()?,
            arch: arch.to_owned(),
        };
        let name = format!("{perf}-{arch}-{}", name.replace('_', "-"));
        let is_fixture = fixtures.iter().any(|fixture| fixture.name == name);
        (!is_fixture).then_some((name, Some(recorder)))
    })
}

/// Returns the further recordings of `corpus/`, which were published elsewhere, including damaged
/// ones.
pub fn corpus() -> Vec<Recording> {
    outside("corpus", |folder, name| {
        Some((format!("{folder}/{name}"), None))
    })
}

/// Returns each recording of `fixtures/` and of the further `recordings/` and `corpus/` once.
pub fn all() -> Vec<Recording> {
    let mut all = fixtures();
    all.extend(shared());
    all.extend(corpus());
    all
}

/// Runs `check` on one fixture and panics with its message. Tests of `per_fixture!` call this.
pub fn check_fixture(name: &str, check: fn(&Recording) -> Result<(), String>) {
    if let Err(message) = check(&fixture(name)) {
        panic!("{name}: {message}");
    }
}

/// Runs `check` on all `recordings`, on all processors, and panics with the list of failures.
pub fn check_all<F>(recordings: &[Recording], check: F)
where
    F: Fn(&Recording) -> Result<(), String> + Sync,
{
    let failures = Mutex::new(Vec::new());
    in_parallel(recordings, |recording| {
        if let Err(message) = check(recording) {
            let mut failures = failures
                .lock()
                .expect("no check panics while it holds the lock");
            failures.push(format!("{}: {message}", recording.name));
        }
    });
    let mut failures = failures.into_inner().expect("as above");
    failures.sort();
    assert!(
        failures.is_empty(),
        "{} of {} recordings:\n{}",
        failures.len(),
        recordings.len(),
        failures.join("\n")
    );
}

/// Calls `work` with every item, on as many threads as there are processors.
pub fn in_parallel<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            // With the name of the test, for the notes of what it lacks.
            let mut worker = thread::Builder::new();
            if let Some(name) = thread::current().name() {
                worker = worker.name(name.to_owned());
            }
            let started = worker.spawn_scoped(scope, || {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
            started.expect("a thread can be started");
        }
    });
}

/// Returns a file or folder of the further recordings, if it is there. They are in the folder that
/// the environment variable `PERFCONV_RECORDINGS` names; without it, the tests are noted as skipped.
pub fn further(path: impl AsRef<Path>) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("PERFCONV_RECORDINGS") else {
        skipped::note("further recordings (PERFCONV_RECORDINGS)");
        return None;
    };
    let path = Path::new(&root).join(path);
    path.exists().then_some(path)
}

/// Returns the recordings in the folders of a part of the further recordings. `identify` receives
/// the names of the folder and the file, and returns the recording's name and recorder, or `None`
/// to skip it.
fn outside(
    part: &str,
    identify: impl Fn(&str, &str) -> Option<(String, Option<Recorder>)>,
) -> Vec<Recording> {
    let folders = further(part).and_then(|folder| list(&folder).ok());
    let folders = folders.unwrap_or_default();
    let mut found = Vec::new();
    for folder in folders.iter().filter(|path| path.is_dir()) {
        let Some(folder_name) = folder.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        for path in list(folder).unwrap_or_default() {
            let Some(name) = recording_name(&path) else {
                continue;
            };
            if let Some((name, recorder)) = identify(folder_name, name) {
                found.push(Recording::new(path, name, recorder));
            }
        }
    }
    found
}

/// Returns the name of a recording without its extension; `None` for any other file.
fn recording_name(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".data")
        .or_else(|| name.strip_suffix(".bin"))
}

fn main_file(path: &Path) -> PathBuf {
    if path.is_dir() {
        path.join("data")
    } else {
        path.to_owned()
    }
}

/// Returns the entries of a folder, sorted.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_ordered() {
        let version = |text: &str| text.parse::<PerfVersion>();
        assert_eq!(version("6.12.107"), version("6.12"));
        assert_eq!(version("7.0-rc1"), Ok(PerfVersion { major: 7, minor: 0 }));
        assert!(version("6.1") < version("6.12"));
        assert_eq!(version("file"), Err(()));
    }

    #[test]
    fn a_fixture_tells_its_recorder() {
        let recording = fixture("6.1-s390x-file-threads");
        let recorder = recording
            .recorder
            .as_ref()
            .expect("named after its recorder");
        assert_eq!(
            (recorder.perf.to_string().as_str(), recorder.arch.as_str()),
            ("6.1", "s390x")
        );
        let form = Form {
            container: Container::Directory,
            endian: Endian::Big,
        };
        assert_eq!(recording.form, Some(form));
        assert!(
            recording
                .script_text()
                .is_some_and(|text| text.starts_with(b"  "))
        );
    }

    #[test]
    fn no_recording_is_listed_twice() {
        let mut names: Vec<_> = all().into_iter().map(|recording| recording.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
