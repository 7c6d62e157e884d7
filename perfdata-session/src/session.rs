//! The state that records tell of, at the time of the last one.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::read::{Limits, RecordRef};
use perfdata_core::record::{Body, BpfEventType, CpuMode, MISC_SWITCH_OUT, Namespace, Record, RecordType, Task, Tid};
use perfdata_core::{Recording, Result};

use crate::dso::{BuildId, Dso, DsoKind, Dsos, Machine};
use crate::ids::{CommId, DsoId, MappingId, ThreadId};
use crate::mapped::Mapped;
use crate::names::EventNames;
use crate::sample::Sample;
use crate::space::{Lookups, Space};
use crate::spaces::{AddressSpaces, Change, Owner, ProcessId};
use crate::thread::{Thread, Threads};

/// A mapping of a part of a DSO. Newer mappings may have taken a part of its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Mapping {
    /// What is mapped.
    pub dso: DsoId,
    /// First address.
    pub start: u64,
    /// The address behind the last one.
    pub end: u64,
    /// Offset of the first byte in the file; of a kernel's image the address of its relocation symbol.
    pub pgoff: u64,
    /// `PROT_*` of the recording machine, where an MMAP2 record says it.
    pub prot: Option<u32>,
    /// `MAP_*` of the recording machine, likewise.
    pub flags: Option<u32>,
    /// Whether it was mapped to be executed.
    pub is_executable: bool,
}

/// What a session has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Samples.
    pub samples: u64,
    /// Samples whose event is unknown, which nobody can take apart.
    pub unknown_event: u64,
    /// Samples that got their user callchain from a CALLCHAIN_DEFERRED record.
    pub deferred: u64,
    /// Samples whose user callchain never came.
    pub never_deferred: u64,
    /// CALLCHAIN_DEFERRED records that no sample waited for.
    pub unclaimed: u64,
    /// Changes of the kernel's own code (TEXT_POKE).
    pub text_pokes: u64,
    /// BPF programs that came (BPF_EVENT).
    pub bpf_programs: u64,
    /// Addresses that were looked up where only a program before the last one of the process had mapped anything:
    /// [`Frame::before_exec`](crate::Frame::before_exec).
    pub before_exec: u64,
}

/// A session: all machines, threads, mappings and DSOs that the records seen so far tell of, in perf's word
/// (tools/perf/util/session.h).
///
/// Records must come in the order of time, as [`ByTime`](perfdata_core::read::ByTime) gives them; [`see`](Self::see) takes
/// those that are not samples, and [`sample`](Self::sample) says what a sample means at its time.
/// [`Samples`](crate::Samples) does both for a whole recording.
///
/// IDs stay valid as long as the session. What it holds grows with the threads, names and DSOs that there ever were, with
/// the mappings that were hit, and with what is mapped at a time; the recording's [`max_metadata`](Limits::max_metadata)
/// bounds all of it together.
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    threads: Threads,
    /// The processes of the threads.
    processes: Vec<ProcessId>,
    dsos: Dsos,
    spaces: AddressSpaces<Mapping>,
    /// Those that were hit.
    mappings: RefCell<Mappings>,
    lookups: Lookups,
    before_exec: Cell<u64>,
    names: EventNames,
    event_names: Vec<EventName>,
    /// Counts up when names may have changed, and how many events there were then.
    news: u64,
    has_news: bool,
    known_events: usize,
    /// Relocation symbols by the kernel that has them.
    symbols: HashMap<DsoId, Box<[u8]>, RandomState>,
    /// The recording's table of build IDs.
    build_ids: HashMap<Machine, HashMap<Box<[u8]>, BuildId, RandomState>, RandomState>,
    /// BPF programs by their tags.
    programs: HashMap<[u8; 8], u32, RandomState>,
    namespaces: HashMap<ThreadId, Box<[Namespace]>, RandomState>,
    cgroups: HashMap<u64, Box<[u8]>, RandomState>,
    /// Bytes of the tables before.
    told: usize,
    on_cpu: HashMap<u32, ThreadId, RandomState>,
    pub(crate) counts: Counts,
}

/// The mappings that were hit, each once.
#[derive(Debug, Default)]
struct Mappings {
    list: Vec<Mapping>,
    known: HashMap<Mapping, MappingId, RandomState>,
}

impl Mappings {
    fn intern(&mut self, mapping: Mapping) -> MappingId {
        // An entry would make room in the table even for what is there.
        if let Some(&id) = self.known.get(&mapping) {
            return id;
        }
        let id = MappingId::of(self.list.len());
        self.known.insert(mapping, id);
        self.list.push(mapping);
        id
    }
}

/// The name of an event, and of which news it is.
#[derive(Debug, Default)]
struct EventName {
    name: Box<[u8]>,
    of: u64,
}

/// How names of BPF programs begin; the tag follows in 16 digits (kernel/bpf/core.c, `bpf_get_prog_name`).
const BPF_PROGRAM: &[u8] = b"bpf_prog_";

/// Bytes of an entry of a table of what is told.
const ENTRY: usize = 64;

impl Session {
    /// The session of `recording` before its first record.
    ///
    /// # Errors
    /// The BUILD_ID section is damaged.
    pub fn new(recording: &Recording) -> Result<Self> {
        let mut session = Session {
            limits: recording.limits,
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
            && let Section { value: Feature::BuildIds(ids), .. } = section?
        {
            for entry in &ids.0 {
                session.build_id_of(entry.header.misc, &entry.build_id);
            }
        }
        Ok(session)
    }

    /// All threads that there ever were: entry 0 is the idle thread of the host.
    pub fn threads(&self) -> &[Thread] {
        self.threads.list()
    }

    /// A thread.
    pub fn thread(&self, id: ThreadId) -> Option<&Thread> {
        self.threads.get(id)
    }

    /// The thread of the host that has the number `tid` now.
    pub fn thread_by_tid(&mut self, tid: u32) -> Option<ThreadId> {
        self.threads.find(Machine::HOST, &Tid { pid: u32::MAX, tid })
    }

    /// The thread that runs on `cpu` now, where SWITCH or SWITCH_CPU_WIDE records say it.
    pub fn thread_on_cpu(&self, cpu: u32) -> Option<ThreadId> {
        self.on_cpu.get(&cpu).copied()
    }

    /// All names that threads ever had.
    pub fn comms(&self) -> &[Box<[u8]>] {
        self.threads.comms().list()
    }

    /// A name of threads: any bytes but NUL, without an encoding.
    pub fn comm(&self, id: CommId) -> &[u8] {
        self.threads.comms().get(id)
    }

    /// All mappings that addresses were looked up in, by their IDs; those that are the same once.
    pub fn mappings(&self) -> Vec<Mapping> {
        self.mappings.borrow().list.clone()
    }

    /// A mapping.
    #[inline]
    pub fn mapping(&self, id: MappingId) -> Option<Mapping> {
        self.mappings.borrow().list.get(id.index()).copied()
    }

    /// All DSOs that were ever mapped.
    pub fn dsos(&self) -> &[Dso] {
        self.dsos.list()
    }

    /// A DSO.
    pub fn dso(&self, id: DsoId) -> Option<&Dso> {
        self.dsos.list().get(id.index())
    }

    /// The build ID of a DSO: the one that its mappings carry, else the one in the recording's table, as far as it was
    /// read; that is the order of perf.
    pub fn build_id(&self, id: DsoId) -> Option<BuildId> {
        let dso = self.dso(id)?;
        dso.mapped_build_id.or_else(|| self.build_ids.get(&dso.machine)?.get(&dso.name).copied())
    }

    /// The relocation symbol of a kernel, `_text` or `_stext`: [`Mapping::pgoff`] is its address in the recording.
    pub fn relocation_symbol(&self, id: DsoId) -> Option<&[u8]> {
        self.symbols.get(&id).map(|name| &**name)
    }

    /// The namespaces of a thread, in the order of [`Namespaces`](perfdata_core::record::Namespaces), where a NAMESPACES
    /// record says them.
    pub fn namespaces(&self, id: ThreadId) -> Option<&[Namespace]> {
        self.namespaces.get(&id).map(|list| &**list)
    }

    /// The path of a cgroup in its file system, where a CGROUP record says it.
    pub fn cgroup(&self, id: u64) -> Option<&[u8]> {
        self.cgroups.get(&id).map(|path| &**path)
    }

    /// The ID of the BPF program that a DSO of the kind [`KernelSymbol`](DsoKind::KernelSymbol) is, by the tag in its name,
    /// where a BPF_EVENT record says it. Of programs with one tag, which are the same code, it is the last one.
    pub fn bpf_program(&self, id: DsoId) -> Option<u32> {
        let dso = self.dso(id).filter(|dso| dso.kind == DsoKind::KernelSymbol)?;
        let digits = dso.name.strip_prefix(BPF_PROGRAM)?.get(..16)?;
        let tag = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        self.programs.get(&tag.to_be_bytes()).copied()
    }

    /// The name of an event: what the recording calls it, else what perf would. Nothing for events that no sample of has
    /// come yet.
    pub fn event_name(&self, event: usize) -> &[u8] {
        self.event_names.get(event).map(|known| &*known.name).unwrap_or_default()
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        Counts { before_exec: self.before_exec.get(), ..self.counts }
    }

    /// Bytes that all of this takes, about.
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

    /// Takes a record, which must not be older than those before it. Samples change nothing here.
    ///
    /// # Errors
    /// A record that is damaged, or more is mapped than the limits grant.
    pub fn see(&mut self, record: &RecordRef<'_>) -> Result<()> {
        if matches!(record.kind, RecordType::HEADER_FEATURE | RecordType::EVENT_UPDATE | RecordType::HEADER_EVENT_TYPE)
        {
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
        self.apply(decoded, record.time().filter(|&time| time != 0 && time != u64::MAX));
        self.check().map_err(|error| error.at(record.offset))
    }

    /// Checks that no more is held than the limits grant.
    fn check(&self) -> Result<()> {
        self.limits.check_metadata("threads and mappings", self.held() as u64)
    }

    fn apply(&mut self, record: Record, time: Option<u64>) {
        let Record { misc, body, sample_id, .. } = record;
        let machine = Machine::of(CpuMode::of(misc));
        let cpu = sample_id.as_ref().and_then(|id| id.cpu.as_ref()).map(|cpu| cpu.cpu);
        let tid = sample_id.and_then(|id| id.tid);
        match body {
            Body::Comm(comm) => {
                let name = self.threads.comms_mut().intern(comm.comm.text());
                let thread = self.thread_of(machine, &Tid { pid: comm.pid, tid: comm.tid });
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
                // The trailer has the thread whose switch it is, the body the other one.
                let next = match misc & MISC_SWITCH_OUT == 0 {
                    true => tid,
                    false => Some(Tid { pid: other.next_prev_pid, tid: other.next_prev_tid }),
                };
                if let (Some(cpu), Some(next)) = (cpu, next) {
                    self.switch(cpu, &next);
                }
            }
            Body::Namespaces(of) => {
                let thread = self.thread_of(machine, &Tid { pid: of.pid, tid: of.tid });
                let list: Box<[Namespace]> = of.namespaces.into_inner().into();
                self.told = self.told.saturating_add(size_of_val(&*list).saturating_add(ENTRY));
                if let Some(old) = self.namespaces.insert(thread, list) {
                    self.told = self.told.saturating_sub(size_of_val(&*old).saturating_add(ENTRY));
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

    /// What changes in the address spaces. Processes end with their last thread.
    fn change(&mut self, change: Change<Mapped<'_>>) {
        if matches!(change, Change::Exit(_)) {
            return;
        }
        let Session { dsos, symbols, spaces, .. } = self;
        let change = change.with(|mapped| {
            let dso = dsos.intern(&mapped);
            if !mapped.symbol.is_empty() && !symbols.contains_key(&dso) {
                symbols.insert(dso, mapped.symbol.into());
            }
            let Mapped { start, end, pgoff, prot, flags, is_executable, .. } = mapped;
            Mapping { dso, start, end, pgoff, prot, flags, is_executable }
        });
        spaces.apply(change);
    }

    /// The thread with the number `tid` in `machine`, which is entered if it is new.
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

    /// Enters the processes of new threads.
    fn enter_processes(&mut self) {
        let Session { threads, processes, spaces, .. } = self;
        for &Thread { machine, pid, .. } in threads.list().get(processes.len()..).unwrap_or_default() {
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

    /// Enters a build ID of the recording's table.
    fn build_id_of(&mut self, misc: u16, entry: &perfdata_core::record::BuildId) {
        let machine = Machine::of_build_id(entry, misc);
        let Some(id) = BuildId::new(entry.id(misc)) else { return };
        let name: Box<[u8]> = entry.filename.text().into();
        let len = name.len().saturating_add(ENTRY);
        if self.build_ids.entry(machine).or_default().insert(name, id).is_none() {
            self.told = self.told.saturating_add(len);
        }
    }

    /// What `record`, a SAMPLE, says at its time; `None` for other records, and where the sample's event is unknown. Where
    /// the user callchain is to come later, the sample has none: [`Samples`](crate::Samples) waits for it.
    ///
    /// # Errors
    /// A sample that ends before its callchain does, or more threads than the limits grant.
    pub fn sample<'a>(&'a mut self, record: RecordRef<'a>) -> Result<Option<Sample<'a>>> {
        let Some(taken) = self.take(&record)? else { return Ok(None) };
        Ok(Sample::new(self, record, taken))
    }

    /// Learns of the thread that `record`, a SAMPLE, is of.
    #[inline]
    pub(crate) fn take(&mut self, record: &RecordRef<'_>) -> Result<Option<Taken>> {
        if record.kind != RecordType::SAMPLE {
            return Ok(None);
        }
        let events = &record.recording().events;
        let known = events.of_record(record).and_then(|event| Some((event, record.sample_view()?)));
        let Some((event, sample_view)) = known else {
            self.counts.unknown_event = self.counts.unknown_event.saturating_add(1);
            return Ok(None);
        };
        self.counts.samples = self.counts.samples.saturating_add(1);
        if self.has_news || events.len() != self.known_events {
            self.names.update(record.recording());
            (self.has_news, self.known_events, self.news) = (false, events.len(), self.news.saturating_add(1));
        }
        if self.event_names.get(event).is_none_or(|known| known.of != self.news) {
            self.learn_name(record.recording(), event);
        }
        let threads = self.threads.list().len();
        let thread = match sample_view.tid() {
            Some(tid) => self.thread_of(Machine::HOST, &tid),
            None => match sample_view.cpu().and_then(|cpu| self.thread_on_cpu(cpu)) {
                Some(thread) => thread,
                None => self.thread_of(Machine::HOST, &Tid { pid: u32::MAX, tid: u32::MAX }),
            },
        };
        if self.threads.list().len() > threads {
            self.check().map_err(|error| error.at(record.offset))?;
        }
        let comm = self.threads.get(thread).map_or(CommId::of(0), |thread| thread.comm);
        Ok(Some(Taken { event, thread, comm }))
    }

    /// Brings the name of an event up to date.
    #[cold]
    fn learn_name(&mut self, recording: &Recording, event: usize) {
        if self.event_names.len() <= event {
            self.event_names.resize_with(event.saturating_add(1), EventName::default);
        }
        let name = self.names.get(recording, event).unwrap_or_default().into_owned().into_boxed_slice();
        if let Some(known) = self.event_names.get_mut(event) {
            *known = EventName { name, of: self.news };
        }
    }

    /// What the host's kernel has mapped.
    pub(crate) fn kernel(&self) -> &Space<Mapping> {
        self.spaces.kernel()
    }

    /// What `thread` has mapped for code that runs in `mode`, and what perf takes for mapped where that differs.
    #[inline]
    pub(crate) fn space(&self, thread: ThreadId, mode: CpuMode) -> (Option<&Space<Mapping>>, Option<&Space<Mapping>>) {
        if mode == CpuMode::USER
            && let Some(&process) = self.processes.get(thread.index())
            && let (Some(space), overlaid) = self.spaces.of_process(process)
        {
            return (Some(space), overlaid);
        }
        let pid = self.threads.get(thread).map_or(0, |thread| thread.pid);
        (Owner::of(mode, pid).and_then(|owner| self.spaces.space(owner)), None)
    }

    /// The mapping at `address` of `space`.
    #[inline]
    pub(crate) fn find(&self, space: &Space<Mapping>, address: u64) -> Option<MappingId> {
        self.lookups.find(space, address, |mapping| self.mappings.borrow_mut().intern(mapping))
    }

    /// The same in what perf takes for mapped, where nothing is.
    pub(crate) fn find_before_exec(&self, space: &Space<Mapping>, address: u64) -> Option<MappingId> {
        let found = self.find(space, address);
        if found.is_some() {
            self.before_exec.set(self.before_exec.get().saturating_add(1));
        }
        found
    }
}

/// What is known of a sample when it comes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) event: usize,
    pub(crate) thread: ThreadId,
    pub(crate) comm: CommId,
}

/// Whether records of this type change what a session knows.
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
