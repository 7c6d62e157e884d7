//! The state that results from all records up to the last one.

mod resolve;
mod sideband;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;
use perfdata_core::names::EventNames;
use perfdata_core::read::Limits;
use perfdata_core::record::{Namespace, Tid};
use perfdata_core::{Recording, Result};

use crate::build_ids::BuildIdTable;
use crate::dso::{BuildId, Dso, DsoKind, Dsos, Machine};
use crate::ids::{CommId, DsoId, MappingId, ThreadId};
use crate::mapping::Mapping;
use crate::removed::RemovedThreads;
use crate::space::Lookups;
use crate::spaces::{AddressSpaces, ProcessId};
use crate::thread::{Thread, Threads};
pub(crate) use resolve::Taken;
use resolve::{EventName, Mappings};

/// Counters of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Samples.
    pub samples: u64,
    /// Samples whose event is unknown. They cannot be parsed.
    pub unknown_event: u64,
    /// Samples that received their user callchain from a CALLCHAIN_DEFERRED record.
    pub deferred: u64,
    /// Samples whose user callchain is missing.
    pub never_deferred: u64,
    /// CALLCHAIN_DEFERRED records without a waiting sample.
    pub unclaimed: u64,
    /// Changes of the kernel's code (TEXT_POKE).
    pub text_pokes: u64,
    /// BPF programs that were loaded (BPF_EVENT).
    pub bpf_programs: u64,
    /// Looked-up addresses that only an earlier program of the process had mapped:
    /// [`Frame::before_exec`](crate::Frame::before_exec).
    pub before_exec: u64,
}

/// A session, in perf's sense (tools/perf/util/session.h): all machines, threads, mappings and DSOs
/// in the records so far.
///
/// Records must be passed in time order, as [`ByTime`](perfdata_core::read::ByTime) returns them.
/// [`see`](Self::see) processes records other than samples, and [`sample`](Self::sample) resolves a
/// sample at its time. [`Samples`](crate::Samples) does both for a whole recording.
///
/// IDs are valid for the lifetime of the session. Its memory grows with the number of all threads,
/// names and DSOs so far, the mappings that were hit, and the mappings that exist at one time.
/// [`max_metadata`](Limits::max_metadata) limits the total.
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    threads: Threads,
    /// The process of each thread.
    processes: Vec<ProcessId>,
    removed: RemovedThreads,
    dsos: Dsos,
    /// When each DSO was mapped first, if the record has a time.
    mapped: Vec<Option<u64>>,
    /// The first moment of a record.
    began: Option<u64>,
    spaces: AddressSpaces<Mapping>,
    /// The mappings that were hit.
    mappings: RefCell<Mappings>,
    lookups: Lookups,
    before_exec: Cell<u64>,
    names: EventNames,
    event_names: Vec<EventName>,
    /// A counter that is incremented when names may have changed. `known_events` is the number of
    /// events at that time.
    news: u64,
    has_news: bool,
    known_events: usize,
    /// Relocation symbols by kernel.
    symbols: HashMap<DsoId, Box<[u8]>, RandomState>,
    /// The recording's BUILD_ID section.
    build_ids: BuildIdTable,
    /// BPF programs by tag.
    programs: HashMap<[u8; 8], u32, RandomState>,
    namespaces: HashMap<ThreadId, Box<[Namespace]>, RandomState>,
    cgroups: HashMap<u64, Box<[u8]>, RandomState>,
    /// Size of `programs`, `namespaces` and `cgroups` in bytes.
    told: usize,
    on_cpu: HashMap<u32, ThreadId, RandomState>,
    /// Files in whose place there is memory with huge pages.
    on_huge_pages: BTreeSet<DsoId>,
    pub(crate) counts: Counts,
}

/// The prefix of BPF programs' names. The tag follows in 16 digits (kernel/bpf/core.c,
/// `bpf_get_prog_name`).
const BPF_PROGRAM: &[u8] = b"bpf_prog_";

/// Approximate size of a table entry in bytes.
const ENTRY: usize = 64;

impl Session {
    /// Returns the session of `recording` before its first record. The total of its memory stays
    /// within [`max_metadata`](Limits::max_metadata).
    ///
    /// # Errors
    /// The BUILD_ID section is corrupt.
    pub fn new(recording: &Recording, limits: Limits) -> Result<Self> {
        let mut session = Session {
            limits,
            threads: Threads::default(),
            processes: Vec::new(),
            removed: RemovedThreads::default(),
            dsos: Dsos::default(),
            mapped: Vec::new(),
            began: None,
            spaces: AddressSpaces::keeping_overlaid(),
            mappings: RefCell::default(),
            lookups: Lookups::default(),
            before_exec: Cell::new(0),
            names: EventNames::default(),
            event_names: Vec::new(),
            news: 0,
            has_news: true,
            known_events: 0,
            symbols: HashMap::default(),
            build_ids: BuildIdTable::of(recording)?,
            programs: HashMap::default(),
            namespaces: HashMap::default(),
            cgroups: HashMap::default(),
            told: 0,
            on_cpu: HashMap::default(),
            on_huge_pages: BTreeSet::new(),
            counts: Counts::default(),
        };
        session.enter_processes();
        Ok(session)
    }

    /// Returns the limits of the session.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns all threads so far. Entry 0 is the idle thread of the host.
    pub fn threads(&self) -> &[Thread] {
        self.threads.list()
    }

    /// Returns a thread.
    pub fn thread(&self, id: ThreadId) -> Option<&Thread> {
        self.threads.get(id)
    }

    /// Returns whether perf has forgotten the mappings of a thread's process (since 6.8): its leader
    /// has ended before the thread was seen, or the thread itself, and no later record adds a
    /// mapping.
    pub fn has_lost_mappings(&self, id: ThreadId) -> bool {
        self.removed.are_lost(id)
    }

    /// Returns the thread of the host that currently has the thread ID `tid`.
    pub fn thread_by_tid(&mut self, tid: u32) -> Option<ThreadId> {
        self.threads
            .find(Machine::HOST, &Tid { pid: u32::MAX, tid })
    }

    /// Returns the thread that currently runs on `cpu`, if SWITCH or SWITCH_CPU_WIDE records show
    /// it.
    pub fn thread_on_cpu(&self, cpu: u32) -> Option<ThreadId> {
        self.on_cpu.get(&cpu).copied()
    }

    /// Returns all names of threads so far, in the order of their IDs.
    pub fn comms(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.threads.comms().iter()
    }

    /// Returns a name of threads: any bytes except NUL, without a defined encoding.
    pub fn comm(&self, id: CommId) -> &[u8] {
        self.threads.comms().get(id)
    }

    /// Returns all mappings in which addresses were found, indexed by their IDs, without
    /// duplicates.
    pub fn mappings(&self) -> impl Iterator<Item = Mapping> {
        self.mappings_since(0)
    }

    /// Returns the same without the first `count` ones. Later samples add mappings at the end.
    pub fn mappings_since(&self, count: usize) -> impl Iterator<Item = Mapping> {
        let list = &self.mappings;
        (count..list.borrow().0.len()).map_while(|at| list.borrow().0.get_index(at).copied())
    }

    /// Returns a mapping.
    #[inline]
    pub fn mapping(&self, id: MappingId) -> Option<Mapping> {
        self.mappings.borrow().0.get_index(id.index()).copied()
    }

    /// Returns the mapping of the image of the host's kernel at this time, whether an address was found
    /// in it or not.
    pub fn kernel_mapping(&self) -> Option<Mapping> {
        let is_kernel = |mapping: &Mapping| {
            let dso = self.dso(mapping.dso);
            dso.is_some_and(|dso| dso.kind == DsoKind::Kernel && dso.machine == Machine::HOST)
        };
        let mut pieces = self.spaces.kernel().iter();
        let (_, mapping) = pieces.find(|(_, mapping)| is_kernel(mapping))?;
        Some(mapping)
    }

    /// Returns all DSOs that were mapped so far.
    pub fn dsos(&self) -> &[Dso] {
        self.dsos.list()
    }

    /// Returns the IDs of all DSOs that were mapped so far.
    pub fn dso_ids(&self) -> impl Iterator<Item = DsoId> + use<> {
        (0..self.dsos.list().len()).map(DsoId::of)
    }

    /// Returns a DSO.
    pub fn dso(&self, id: DsoId) -> Option<&Dso> {
        self.dsos.list().get(id.index())
    }

    /// Returns when a DSO was mapped first, in nanoseconds on the recording's clock; the time of the first
    /// record if it was mapped before. `None` if no record so far has a time.
    pub fn mapped_at(&self, id: DsoId) -> Option<u64> {
        let known = self.mapped.get(id.index()).copied().flatten();
        known.or(self.began)
    }

    /// Returns the build ID of a DSO: the one in its mappings, otherwise the one in the BUILD_ID
    /// section, as far as it was read. This is perf's precedence.
    pub fn build_id(&self, id: DsoId) -> Option<BuildId> {
        self.build_ids.find(self.dso(id)?)
    }

    /// Returns the build IDs in the BUILD_ID section.
    pub fn build_id_table(&self) -> &BuildIdTable {
        &self.build_ids
    }

    /// Returns the relocation symbol of a kernel, `_text` or `_stext`. [`Mapping::pgoff`] is its
    /// address in the recording.
    pub fn relocation_symbol(&self, id: DsoId) -> Option<&[u8]> {
        self.symbols.get(&id).map(|name| &**name)
    }

    /// Returns the namespaces of a thread, in the order of
    /// [`Namespaces`](perfdata_core::record::Namespaces), if a NAMESPACES record contains them.
    pub fn namespaces(&self, id: ThreadId) -> Option<&[Namespace]> {
        self.namespaces.get(&id).map(|list| &**list)
    }

    /// Returns the path of a cgroup in its file system, if a CGROUP record contains it.
    pub fn cgroup(&self, id: u64) -> Option<&[u8]> {
        self.cgroups.get(&id).map(|path| &**path)
    }

    /// Returns the ID of the BPF program in a DSO of the kind
    /// [`KernelSymbol`](DsoKind::KernelSymbol), found by the tag in its name, if a BPF_EVENT record
    /// contains it. If several programs have this tag, they have the same code, and the last one is
    /// returned.
    pub fn bpf_program(&self, id: DsoId) -> Option<u32> {
        let dso = self
            .dso(id)
            .filter(|dso| dso.kind == DsoKind::KernelSymbol)?;
        let digits = dso.name.strip_prefix(BPF_PROGRAM)?.get(..16)?;
        let tag = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        self.programs.get(&tag.to_be_bytes()).copied()
    }

    /// Returns the name of an event: the name in the recording, otherwise the name that perf would
    /// use. Empty if no sample of this event was seen yet.
    pub fn event_name(&self, event: usize) -> &[u8] {
        self.event_names
            .get(event)
            .map(|known| &*known.name)
            .unwrap_or_default()
    }

    /// Returns the name of an event of `recording`, as [`event_name`](Self::event_name), also if no
    /// sample of this event was seen. Empty if there is no such event.
    pub fn name_of_event<'a>(&'a self, recording: &Recording, event: usize) -> Cow<'a, [u8]> {
        self.names.get(recording, event).unwrap_or_default()
    }

    /// Returns the files whose code was probably copied to huge pages: executable memory that is no
    /// file is in the place of their mappings ([`huge_pages`](crate::huge_pages)).
    pub fn on_huge_pages(&self) -> impl Iterator<Item = &Dso> {
        self.on_huge_pages.iter().filter_map(|&id| self.dso(id))
    }

    /// Returns the counters.
    pub fn counts(&self) -> Counts {
        Counts {
            before_exec: self.before_exec.get(),
            ..self.counts
        }
    }

    /// Returns the approximate memory use in bytes.
    pub fn held(&self) -> usize {
        let mapping = size_of::<Mapping>().saturating_mul(2).saturating_add(16);
        let process = size_of::<ProcessId>();
        [
            self.threads.held(),
            self.processes.len().saturating_mul(process),
            self.removed.held(),
            self.dsos.held(),
            size_of_val(self.mapped.as_slice()),
            self.mappings.borrow().0.len().saturating_mul(mapping),
            self.spaces.held(),
            self.told,
            self.build_ids.held(),
            self.on_cpu.len().saturating_mul(ENTRY),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }
}
