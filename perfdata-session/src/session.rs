//! The state that results from all records up to the last one.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::names::EventNames;
use perfdata_core::read::{Limits, RecordRef};
use perfdata_core::record::{
    Body, BpfEventType, CpuMode, MISC_SWITCH_OUT, Namespace, Record, RecordType, Task, Tid,
    is_known_time,
};
use perfdata_core::{Recording, Result};

use crate::dso::{BuildId, Dso, DsoKind, Dsos, Machine};
use crate::ids::{CommId, DsoId, MappingId, ThreadId};
use crate::mapped::Mapped;
use crate::sample::Sample;
use crate::space::{Lookups, Space};
use crate::spaces::{AddressSpaces, Change, Owner, ProcessId};
use crate::thread::{Thread, Threads};

/// A mapping of a part of a DSO. Newer mappings may replace a part of its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Mapping {
    /// The mapped DSO.
    pub dso: DsoId,
    /// First address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// Offset of the first byte in the file, in bytes; for a kernel's image, the address of its
    /// relocation symbol.
    pub pgoff: u64,
    /// `PROT_*` of the recorded machine, if an MMAP2 record contains it.
    pub prot: Option<u32>,
    /// `MAP_*` of the recorded machine, if an MMAP2 record contains it.
    pub flags: Option<u32>,
    /// Whether the mapping is executable.
    pub is_executable: bool,
}

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
    dsos: Dsos,
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
    build_ids: HashMap<Machine, HashMap<Box<[u8]>, BuildId, RandomState>, RandomState>,
    /// BPF programs by tag.
    programs: HashMap<[u8; 8], u32, RandomState>,
    namespaces: HashMap<ThreadId, Box<[Namespace]>, RandomState>,
    cgroups: HashMap<u64, Box<[u8]>, RandomState>,
    /// Size of `build_ids`, `programs`, `namespaces` and `cgroups` in bytes.
    told: usize,
    on_cpu: HashMap<u32, ThreadId, RandomState>,
    pub(crate) counts: Counts,
}

/// The mappings that were hit, without duplicates.
#[derive(Debug, Default)]
struct Mappings {
    list: Vec<Mapping>,
    known: HashMap<Mapping, MappingId, RandomState>,
}

impl Mappings {
    fn intern(&mut self, mapping: Mapping) -> MappingId {
        // `entry` would reserve memory in the table even for known mappings.
        if let Some(&id) = self.known.get(&mapping) {
            return id;
        }
        let id = MappingId::of(self.list.len());
        self.known.insert(mapping, id);
        self.list.push(mapping);
        id
    }
}

/// The name of an event, and the value of `Session::news` when it was determined.
#[derive(Debug, Default)]
struct EventName {
    name: Box<[u8]>,
    of: u64,
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
            dsos: Dsos::default(),
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
            build_ids: HashMap::default(),
            programs: HashMap::default(),
            namespaces: HashMap::default(),
            cgroups: HashMap::default(),
            told: 0,
            on_cpu: HashMap::default(),
            counts: Counts::default(),
        };
        session.enter_processes();
        if let Some(section) = recording.feature(FeatureId::BUILD_ID)
            && let Section {
                value: Feature::BuildIds(ids),
                ..
            } = section?
        {
            for entry in &ids.0 {
                session.build_id_of(entry.header.misc, &entry.build_id);
            }
        }
        Ok(session)
    }

    /// Returns all threads so far. Entry 0 is the idle thread of the host.
    pub fn threads(&self) -> &[Thread] {
        self.threads.list()
    }

    /// Returns a thread.
    pub fn thread(&self, id: ThreadId) -> Option<&Thread> {
        self.threads.get(id)
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

    /// Returns all names of threads so far.
    pub fn comms(&self) -> &[Box<[u8]>] {
        self.threads.comms().list()
    }

    /// Returns a name of threads: any bytes except NUL, without a defined encoding.
    pub fn comm(&self, id: CommId) -> &[u8] {
        self.threads.comms().get(id)
    }

    /// Returns all mappings in which addresses were found, indexed by their IDs, without
    /// duplicates.
    pub fn mappings(&self) -> Vec<Mapping> {
        self.mappings.borrow().list.clone()
    }

    /// Returns a mapping.
    #[inline]
    pub fn mapping(&self, id: MappingId) -> Option<Mapping> {
        self.mappings.borrow().list.get(id.index()).copied()
    }

    /// Returns all DSOs that were mapped so far.
    pub fn dsos(&self) -> &[Dso] {
        self.dsos.list()
    }

    /// Returns a DSO.
    pub fn dso(&self, id: DsoId) -> Option<&Dso> {
        self.dsos.list().get(id.index())
    }

    /// Returns the build ID of a DSO: the one in its mappings, otherwise the one in the BUILD_ID
    /// section, as far as it was read. This is perf's precedence.
    pub fn build_id(&self, id: DsoId) -> Option<BuildId> {
        let dso = self.dso(id)?;
        dso.mapped_build_id
            .or_else(|| self.build_ids.get(&dso.machine)?.get(&dso.name).copied())
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
            self.dsos.held(),
            self.mappings.borrow().list.len().saturating_mul(mapping),
            self.spaces.held(),
            self.told,
            self.on_cpu.len().saturating_mul(ENTRY),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }

    /// Processes a record, which must not be older than the records before it. Samples have no
    /// effect.
    ///
    /// # Errors
    /// The record is corrupt, or the state exceeds the limits.
    pub fn see(&mut self, record: &RecordRef<'_>) -> Result<()> {
        if matches!(
            record.kind,
            RecordType::HEADER_FEATURE | RecordType::EVENT_UPDATE | RecordType::HEADER_EVENT_TYPE
        ) {
            self.names.see(record);
            self.has_news = true;
        }
        if !is_sideband(record.kind) {
            return Ok(());
        }
        let decoded = record.decode()?;
        if let Some(change) = Change::of(&decoded) {
            self.change(change);
        }
        self.apply(decoded, record.time().filter(|&time| is_known_time(time)));
        self.check().map_err(|error| error.at(record.offset))
    }

    /// Checks the memory use against the limits.
    fn check(&self) -> Result<()> {
        self.limits
            .check_metadata("threads and mappings", self.held() as u64)
    }

    fn apply(&mut self, record: Record, time: Option<u64>) {
        let Record {
            misc,
            body,
            sample_id,
            ..
        } = record;
        let machine = Machine::of(CpuMode::of(misc));
        let cpu = sample_id
            .as_ref()
            .and_then(|id| id.cpu.as_ref())
            .map(|cpu| cpu.cpu);
        let tid = sample_id.and_then(|id| id.tid);
        match body {
            Body::Comm(comm) => {
                let name = self.threads.comms_mut().intern(comm.comm.text());
                let thread = self.thread_of(
                    machine,
                    &Tid {
                        pid: comm.pid,
                        tid: comm.tid,
                    },
                );
                self.threads.name(thread, name);
            }
            Body::Fork(task) => {
                self.threads.fork(machine, &task, time);
                self.enter_processes();
            }
            Body::Exit(Task { pid, tid, .. }) => {
                let thread = self.thread_of(machine, &Tid { pid, tid });
                if self.threads.end(thread, time)
                    && let Some(&process) = self.processes.get(thread.index())
                {
                    self.spaces.end_thread(process);
                }
            }
            Body::Switch(_) => {
                if let (Some(cpu), Some(tid)) = (cpu, tid) {
                    if misc & MISC_SWITCH_OUT == 0 {
                        self.switch(cpu, &tid);
                    } else {
                        self.on_cpu.remove(&cpu);
                    }
                }
            }
            Body::SwitchCpuWide(other) => {
                // The trailer contains the thread whose switch this is, the body contains the other
                // thread.
                let next = match misc & MISC_SWITCH_OUT == 0 {
                    true => tid,
                    false => Some(Tid {
                        pid: other.next_prev_pid,
                        tid: other.next_prev_tid,
                    }),
                };
                if let (Some(cpu), Some(next)) = (cpu, next) {
                    self.switch(cpu, &next);
                }
            }
            Body::Namespaces(of) => {
                let thread = self.thread_of(
                    machine,
                    &Tid {
                        pid: of.pid,
                        tid: of.tid,
                    },
                );
                let list: Box<[Namespace]> = of.namespaces.into_inner().into();
                self.told = self
                    .told
                    .saturating_add(size_of_val(&*list).saturating_add(ENTRY));
                if let Some(old) = self.namespaces.insert(thread, list) {
                    self.told = self
                        .told
                        .saturating_sub(size_of_val(&*old).saturating_add(ENTRY));
                }
            }
            Body::Cgroup(cgroup) => {
                let path: Box<[u8]> = cgroup.path.text().into();
                self.told = self.told.saturating_add(path.len().saturating_add(ENTRY));
                if let Some(old) = self.cgroups.insert(cgroup.id, path) {
                    self.told = self.told.saturating_sub(old.len().saturating_add(ENTRY));
                }
            }
            Body::BpfEvent(event) if event.kind == BpfEventType::PROG_LOAD => {
                self.counts.bpf_programs = self.counts.bpf_programs.saturating_add(1);
                if self.programs.insert(event.tag, event.id).is_none() {
                    self.told = self.told.saturating_add(ENTRY);
                }
            }
            Body::TextPoke(_) => self.counts.text_pokes = self.counts.text_pokes.saturating_add(1),
            Body::HeaderBuildId(id) => self.build_id_of(misc, &id),
            _ => {}
        }
    }

    /// Applies a change to the address spaces. Exits are ignored here: a process ends with its last
    /// thread.
    fn change(&mut self, change: Change<Mapped<'_>>) {
        if matches!(change, Change::Exit(_)) {
            return;
        }
        let Session {
            dsos,
            symbols,
            spaces,
            ..
        } = self;
        let change = change.with(|mapped| {
            let dso = dsos.intern(&mapped);
            if !mapped.symbol.is_empty() && !symbols.contains_key(&dso) {
                symbols.insert(dso, mapped.symbol.into());
            }
            let Mapped {
                start,
                end,
                pgoff,
                prot,
                flags,
                is_executable,
                ..
            } = mapped;
            Mapping {
                dso,
                start,
                end,
                pgoff,
                prot,
                flags,
                is_executable,
            }
        });
        spaces.apply(change);
    }

    /// Returns the thread with the thread ID `tid` in `machine`. Adds it if it is new.
    #[inline]
    fn thread_of(&mut self, machine: Machine, tid: &Tid) -> ThreadId {
        let id = self.threads.find_or_add(machine, tid);
        match self.processes.get_mut(id.index()) {
            Some(process) if *process == ProcessId::UNKNOWN && tid.pid != u32::MAX => {
                *process = self.spaces.process(machine, tid.pid);
                self.spaces.begin_thread(*process);
            }
            Some(_) => {}
            None => self.enter_processes(),
        }
        id
    }

    /// Adds the processes of new threads.
    fn enter_processes(&mut self) {
        let Session {
            threads,
            processes,
            spaces,
            ..
        } = self;
        for &Thread { machine, pid, .. } in
            threads.list().get(processes.len()..).unwrap_or_default()
        {
            let process = match pid {
                u32::MAX => ProcessId::UNKNOWN,
                pid => spaces.process(machine, pid),
            };
            spaces.begin_thread(process);
            processes.push(process);
        }
    }

    fn switch(&mut self, cpu: u32, tid: &Tid) {
        let thread = self.thread_of(Machine::HOST, tid);
        self.on_cpu.insert(cpu, thread);
    }

    /// Adds a build ID of the recording.
    fn build_id_of(&mut self, misc: u16, entry: &perfdata_core::record::BuildId) {
        let machine = Machine::of_build_id(entry, misc);
        let Some(id) = BuildId::new(entry.id(misc)) else {
            return;
        };
        let name: Box<[u8]> = entry.filename.text().into();
        let len = name.len().saturating_add(ENTRY);
        if self
            .build_ids
            .entry(machine)
            .or_default()
            .insert(name, id)
            .is_none()
        {
            self.told = self.told.saturating_add(len);
        }
    }

    /// Resolves `record`, a SAMPLE, at its time. Returns `None` for other records, and if the
    /// sample's event is unknown. If the user callchain is deferred, the sample does not contain
    /// it; [`Samples`](crate::Samples) waits for it.
    ///
    /// # Errors
    /// The sample is truncated within its callchain, or there are more threads than the limits
    /// permit.
    pub fn sample<'a>(&'a mut self, record: RecordRef<'a>) -> Result<Option<Sample<'a>>> {
        let Some(taken) = self.take(&record)? else {
            return Ok(None);
        };
        Ok(Sample::new(self, record, taken))
    }

    /// Counts `record`, a SAMPLE, and determines its event and thread.
    #[inline]
    pub(crate) fn take(&mut self, record: &RecordRef<'_>) -> Result<Option<Taken>> {
        if record.kind != RecordType::SAMPLE {
            return Ok(None);
        }
        let events = &record.recording().events;
        let known = events
            .of_record(record)
            .and_then(|event| Some((event, record.sample_view()?)));
        let Some((event, sample_view)) = known else {
            self.counts.unknown_event = self.counts.unknown_event.saturating_add(1);
            return Ok(None);
        };
        self.counts.samples = self.counts.samples.saturating_add(1);
        if self.has_news || events.len() != self.known_events {
            self.names.update(record.recording());
            (self.has_news, self.known_events, self.news) =
                (false, events.len(), self.news.saturating_add(1));
        }
        if self
            .event_names
            .get(event)
            .is_none_or(|known| known.of != self.news)
        {
            self.learn_name(record.recording(), event);
        }
        let threads = self.threads.list().len();
        let thread = match sample_view.tid() {
            Some(tid) => self.thread_of(Machine::HOST, &tid),
            None => match sample_view.cpu().and_then(|cpu| self.thread_on_cpu(cpu)) {
                Some(thread) => thread,
                None => self.thread_of(
                    Machine::HOST,
                    &Tid {
                        pid: u32::MAX,
                        tid: u32::MAX,
                    },
                ),
            },
        };
        if self.threads.list().len() > threads {
            self.check().map_err(|error| error.at(record.offset))?;
        }
        let comm = self
            .threads
            .get(thread)
            .map_or(CommId::of(0), |thread| thread.comm);
        Ok(Some(Taken {
            event,
            thread,
            comm,
        }))
    }

    /// Updates the name of an event.
    #[cold]
    fn learn_name(&mut self, recording: &Recording, event: usize) {
        if self.event_names.len() <= event {
            self.event_names
                .resize_with(event.saturating_add(1), EventName::default);
        }
        let name = self
            .names
            .get(recording, event)
            .unwrap_or_default()
            .into_owned()
            .into_boxed_slice();
        if let Some(known) = self.event_names.get_mut(event) {
            *known = EventName {
                name,
                of: self.news,
            };
        }
    }

    /// Returns the mappings of the host's kernel.
    pub(crate) fn kernel(&self) -> &Space<Mapping> {
        self.spaces.kernel()
    }

    /// Returns the mappings of `thread` for code in `mode`, and perf's view of them if it differs.
    #[inline]
    pub(crate) fn space(
        &self,
        thread: ThreadId,
        mode: CpuMode,
    ) -> (Option<&Space<Mapping>>, Option<&Space<Mapping>>) {
        if mode == CpuMode::USER
            && let Some(&process) = self.processes.get(thread.index())
            && let (Some(space), overlaid) = self.spaces.of_process(process)
        {
            return (Some(space), overlaid);
        }
        let pid = self.threads.get(thread).map_or(0, |thread| thread.pid);
        (
            Owner::of(mode, pid).and_then(|owner| self.spaces.space(owner)),
            None,
        )
    }

    /// Returns the mapping at `address` in `space`.
    #[inline]
    pub(crate) fn find(&self, space: &Space<Mapping>, address: u64) -> Option<MappingId> {
        self.lookups.find(space, address, |mapping| {
            self.mappings.borrow_mut().intern(mapping)
        })
    }

    /// Returns the mapping that perf finds at an address without a mapping, and counts it.
    pub(crate) fn find_before_exec(
        &self,
        space: &Space<Mapping>,
        address: u64,
    ) -> Option<MappingId> {
        let found = self.find(space, address);
        if found.is_some() {
            self.before_exec
                .set(self.before_exec.get().saturating_add(1));
        }
        found
    }
}

/// The resolved fields of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) event: usize,
    pub(crate) thread: ThreadId,
    pub(crate) comm: CommId,
}

/// Returns whether records of this type change the state of a session.
#[inline]
fn is_sideband(kind: RecordType) -> bool {
    matches!(
        kind,
        RecordType::MMAP
            | RecordType::MMAP2
            | RecordType::COMM
            | RecordType::FORK
            | RecordType::EXIT
            | RecordType::SWITCH
            | RecordType::SWITCH_CPU_WIDE
            | RecordType::NAMESPACES
            | RecordType::CGROUP
            | RecordType::KSYMBOL
            | RecordType::BPF_EVENT
            | RecordType::TEXT_POKE
            | RecordType::HEADER_BUILD_ID
    )
}
