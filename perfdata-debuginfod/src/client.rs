//! Which file is fetched from which server, and what became of it.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use perfdata_session::BuildId;
use perfdata_symbols::{Elf, FetchedFile, ObjectFetcher};
use tempfile::NamedTempFile;
use ureq::Agent;

use crate::cache::{CacheEntry, CachedFile, name_of};
use crate::failure::FetchFailure;
use crate::settings::ClientSettings;
use crate::transfer::{Encoding, Transfer, agent, unpack};

/// Number of transfers in a row that may end for lack of progress at a server that has answered before.
const MOST_TIMEOUTS: u32 = 3;

/// A temporary file, and what exists as long as it does.
pub type TemporaryFile = (NamedTempFile, Box<dyn Any + Send>);

/// Sees what a client does.
pub trait FetchObserver: fmt::Debug + Send + Sync {
    /// Receives the name of an object, in the recording, of which a file is now fetched.
    fn started(&self, _name: &[u8]) {}

    /// Receives the number of bytes that arrived.
    fn arrived(&self, _bytes: u64) {}

    /// The file of an object was fetched, or will not be.
    fn finished(&self, _name: &[u8]) {}

    /// Creates a temporary file with `make`: a program that catches signals removes it when it is ended
    /// by one.
    ///
    /// # Errors
    /// The file cannot be created.
    fn create(
        &self,
        make: &mut dyn FnMut() -> io::Result<NamedTempFile>,
    ) -> io::Result<TemporaryFile> {
        Ok((make()?, Box::new(())))
    }
}

/// Sees nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl FetchObserver for NoObserver {}

/// A file that was not fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotFetched {
    /// The name of the object in the recording.
    pub name: Box<[u8]>,
    /// Its build ID.
    pub id: BuildId,
    /// The file.
    pub file: FetchedFile,
    /// The reason.
    pub failure: FetchFailure,
}

/// What a client did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchReport {
    /// Number of files that were fetched.
    pub fetched: u64,
    /// The bytes that were transferred for them.
    pub bytes: u64,
    /// The files that were not fetched, in the order in which they were needed.
    pub not_fetched: Vec<NotFetched>,
    /// The servers that are no longer asked, and why.
    pub unreachable: Vec<(String, FetchFailure)>,
}

/// A server.
#[derive(Debug)]
struct Server {
    url: String,
    state: Mutex<ServerState>,
}

#[derive(Debug, Default)]
struct ServerState {
    /// Whether it has answered a request.
    answered: bool,
    /// Number of transfers in a row that ended for lack of progress.
    timeouts: u32,
    /// Why it is no longer asked.
    given_up: Option<FetchFailure>,
}

/// A file of an object, which is fetched once.
type FetchSlot = Arc<OnceLock<Option<PathBuf>>>;

/// Fetches files from debuginfod servers into the cache of elfutils' client.
#[derive(Debug)]
pub struct DebuginfodClient {
    settings: ClientSettings,
    cache: PathBuf,
    servers: Vec<Server>,
    agent: OnceLock<Agent>,
    observer: Box<dyn FetchObserver>,
    files: Mutex<HashMap<(BuildId, FetchedFile), FetchSlot>>,
    report: Mutex<FetchReport>,
}

/// Locks a value that is valid even if a thread ended while it had locked it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a build ID as linkers make them: old versions of perf pad them with zeros to 20 bytes.
fn unpadded(id: &BuildId) -> BuildId {
    // Of MD5 and UUIDs, and of the fast hash of lld.
    for (size, padding) in [(8, 12), (16, 4)] {
        if let Some((kept, rest)) = id.bytes().split_at_checked(size)
            && rest.len() == padding
            && rest.iter().all(|&byte| byte == 0)
        {
            return BuildId::new(kept).unwrap_or(*id);
        }
    }
    *id
}

/// Checks that a file is an ELF file with this build ID.
fn verify(path: &Path, id: &BuildId) -> Result<(), FetchFailure> {
    let elf = Elf::open(path).map_err(FetchFailure::Unreadable)?;
    match elf.build_id() {
        Some(own) if unpadded(&own) == *id => Ok(()),
        other => Err(FetchFailure::OtherBuildId(other)),
    }
}

impl Server {
    fn is_given_up(&self) -> bool {
        locked(&self.state).given_up.is_some()
    }

    /// Notes how a request ended. Returns why the server is not asked again, if that is decided now.
    fn ended(&self, failure: Option<&FetchFailure>) -> Option<FetchFailure> {
        let mut state = locked(&self.state);
        let Some(failure) = failure.filter(|failure| failure.is_of_connection()) else {
            (state.answered, state.timeouts) = (true, 0);
            return None;
        };
        state.timeouts = state.timeouts.saturating_add(1);
        let is_slow =
            *failure == FetchFailure::Timeout && state.answered && state.timeouts < MOST_TIMEOUTS;
        if is_slow || state.given_up.is_some() {
            return None;
        }
        state.given_up = Some(failure.clone());
        Some(failure.clone())
    }
}

impl DebuginfodClient {
    /// Returns a client with these settings.
    ///
    /// # Errors
    /// There is no folder for the cache.
    pub fn new(settings: ClientSettings, observer: Box<dyn FetchObserver>) -> io::Result<Self> {
        let Some(cache) = settings.cache.clone() else {
            let what = "there is no folder for the cache of debuginfod: HOME is not set";
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        };
        let servers = settings.servers.iter().map(|url| Server {
            url: url.clone(),
            state: Mutex::default(),
        });
        Ok(DebuginfodClient {
            servers: servers.collect(),
            cache,
            settings,
            agent: OnceLock::new(),
            observer,
            files: Mutex::default(),
            report: Mutex::default(),
        })
    }

    /// Returns what was done so far.
    pub fn report(&self) -> FetchReport {
        locked(&self.report).clone()
    }

    /// Returns the file in the cache, or fetches it.
    fn find(&self, name: &[u8], id: &BuildId, file: FetchedFile) -> Option<PathBuf> {
        let entry = CacheEntry::new(&self.cache, id, file);
        let failure = match entry.state() {
            // A file that something damaged is fetched again.
            CachedFile::Present if verify(&entry.path, id).is_ok() => return Some(entry.path),
            CachedFile::Missing => FetchFailure::NotFound,
            CachedFile::Present | CachedFile::Unknown => {
                self.observer.started(name);
                let fetched = self.fetch_from_any(&entry, id, file);
                self.observer.finished(name);
                match fetched {
                    Ok(bytes) => {
                        let mut report = locked(&self.report);
                        report.fetched = report.fetched.saturating_add(1);
                        report.bytes = report.bytes.saturating_add(bytes);
                        return Some(entry.path);
                    }
                    Err(failure) => failure,
                }
            }
        };
        locked(&self.report).not_fetched.push(NotFetched {
            name: name.into(),
            id: *id,
            file,
            failure,
        });
        None
    }

    /// Fetches a file from the first server that has it. Returns the number of bytes that were
    /// transferred.
    fn fetch_from_any(
        &self,
        entry: &CacheEntry<'_>,
        id: &BuildId,
        file: FetchedFile,
    ) -> Result<u64, FetchFailure> {
        let mut failure = None;
        let mut has_asked_all = true;
        for server in &self.servers {
            if server.is_given_up() {
                has_asked_all = false;
                continue;
            }
            let fetched = self.fetch_from(server, entry, id, file);
            if let Some(given_up) = server.ended(fetched.as_ref().err()) {
                let url = server.url.trim_end_matches("/buildid").to_owned();
                locked(&self.report).unreachable.push((url, given_up));
            }
            match (fetched, &failure) {
                (Ok(bytes), _) => return Ok(bytes),
                // That another server does not have the file explains less.
                (Err(FetchFailure::NotFound), Some(_)) => {}
                (Err(other), None | Some(FetchFailure::NotFound)) => failure = Some(other),
                (Err(_), Some(_)) => {}
            }
        }
        entry.remove_empty();
        Err(match failure {
            Some(FetchFailure::NotFound) if has_asked_all => {
                entry.set_missing();
                FetchFailure::NotFound
            }
            None | Some(FetchFailure::Unreachable(_)) => FetchFailure::NoServer,
            Some(failure) => failure,
        })
    }

    /// Fetches a file from a server. Returns the number of bytes that were transferred.
    fn fetch_from(
        &self,
        server: &Server,
        entry: &CacheEntry<'_>,
        id: &BuildId,
        file: FetchedFile,
    ) -> Result<u64, FetchFailure> {
        let agent = self.agent.get_or_init(|| agent(&self.settings));
        let create = || {
            let created = self.observer.create(&mut || entry.temporary());
            created.map_err(FetchFailure::unwritable)
        };
        let url = format!("{}/{id}/{}", server.url, name_of(file));
        let (mut received, mut guard) = create()?;
        let mut transfer = Transfer::new(agent, &self.settings, &url, &*self.observer);
        let (encoding, unpacked) = transfer.run(received.as_file_mut())?;
        let meta = received.as_file().metadata();
        let bytes = meta.map_err(FetchFailure::unwritable)?.len();
        let mut size = bytes;
        if encoding == Encoding::Gzip {
            let (mut whole, its_guard) = create()?;
            let (packed, most) = (received.as_file_mut(), self.settings.max_size);
            size = unpack(packed, whole.as_file_mut(), most)?;
            (received, guard) = (whole, its_guard);
        }
        if unpacked.is_some_and(|unpacked| unpacked != size) {
            return Err(FetchFailure::Incomplete);
        }
        verify(received.path(), id)?;
        entry.store(received).map_err(FetchFailure::unwritable)?;
        drop(guard);
        Ok(bytes)
    }
}

impl ObjectFetcher for DebuginfodClient {
    fn fetch(&self, name: &[u8], id: &BuildId, file: FetchedFile) -> Option<PathBuf> {
        let id = unpadded(id);
        let slot = locked(&self.files).entry((id, file)).or_default().clone();
        // Other threads wait for the one that fetches it.
        slot.get_or_init(|| self.find(name, &id, file)).clone()
    }
}
