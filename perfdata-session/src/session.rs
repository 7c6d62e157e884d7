//! The state that records tell of, at the time of the last one.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::read::{Limits, RecordRef};
use perfdata_core::record::{
    Body, CpuMode, KsymbolFlags, KsymbolType, MISC_COMM_EXEC, MISC_FORK_EXEC, MISC_MMAP_DATA, MISC_SWITCH_OUT, Mmap,
    Mmap2, Namespace, Record, RecordType, Task, Tid,
};
use perfdata_core::{Recording, Result};

use crate::dso::{BuildId, Dso, DsoKind, Dsos, FileId, Machine, classify};
use crate::ids::{CommId, DsoId, MappingId, ThreadId};
use crate::sample::Sample;
use crate::space::{Lookups, Space, Spaces};
use crate::thread::{Comms, Thread, Threads};

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
}

/// A session: all machines, threads, mappings and DSOs that the records seen so far tell of, in perf's word
/// (tools/perf/util/session.h).
///
/// Records must come in the order of time, as [`ByTime`](perfdata_core::read::ByTime) gives them; [`see`](Self::see) takes
/// those that are not samples, and [`sample`](Self::sample) says what a sample means at its time.
/// [`Samples`](crate::Samples) does both for a whole recording.
///
/// IDs stay valid as long as the session. What it holds grows with the threads, names and different mappings that there
/// ever were, and with what is mapped at a time; the recording's [`max_metadata`](Limits::max_metadata) bounds each.
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    pub(crate) threads: Threads,
    comms: Comms,
    dsos: Dsos,
    mappings: Vec<Mapping>,
    by_mapping: HashMap<Mapping, MappingId, RandomState>,
    spaces: Spaces,
    /// What the host's kernel has mapped, and what those of guests have.
    host: Space,
    guests: HashMap<Machine, Space, RandomState>,
    lookups: Lookups,
    /// Relocation symbols by the kernel that has them.
    symbols: HashMap<DsoId, Box<[u8]>, RandomState>,
    /// The recording's table of build IDs.
    build_ids: HashMap<(Machine, Box<[u8]>), BuildId, RandomState>,
    namespaces: HashMap<ThreadId, Box<[Namespace]>, RandomState>,
    cgroups: HashMap<u64, Box<[u8]>, RandomState>,
    /// Bytes of the three tables before.
    told: usize,
    on_cpu: HashMap<u32, ThreadId, RandomState>,
    pub(crate) counts: Counts,
}

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
            comms: Comms::default(),
            dsos: Dsos::default(),
            mappings: Vec::new(),
            by_mapping: HashMap::default(),
            spaces: Spaces::default(),
            host: Space::default(),
            guests: HashMap::default(),
            lookups: Lookups::default(),
            symbols: HashMap::default(),
            build_ids: HashMap::default(),
            namespaces: HashMap::default(),
            cgroups: HashMap::default(),
            told: 0,
            on_cpu: HashMap::default(),
            counts: Counts::default(),
        };
        // The idle threads are never announced.
        let swapper = session.comms.intern(b"swapper");
        let idle = session.threads.add(Machine::HOST, &Tid { pid: 0, tid: 0 }, swapper);
        if let Some(thread) = session.threads.get_mut(idle) {
            thread.is_named = true;
        }
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
        self.comms.list()
    }

    /// A name of threads: any bytes but NUL, without an encoding.
    pub fn comm(&self, id: CommId) -> &[u8] {
        self.comms.list().get(id.index()).map(|name| &**name).unwrap_or_default()
    }

    /// All mappings that there ever were, those that are the same once.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// A mapping.
    pub fn mapping(&self, id: MappingId) -> Option<&Mapping> {
        self.mappings.get(id.index())
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
        // The key owns its name; asking without one would need another map.
        dso.mapped_build_id.or_else(|| self.build_ids.get(&(dso.machine, dso.name.clone())).copied())
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

    /// What was counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Bytes that all of this takes, about.
    pub fn held(&self) -> usize {
        let mapping = size_of::<Mapping>().saturating_mul(2).saturating_add(16);
        [
            self.threads.held(),
            self.comms.held(),
            self.dsos.held(),
            self.mappings.len().saturating_mul(mapping),
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
        if !is_sideband(record.kind) {
            return Ok(());
        }
        let decoded = record.decode()?;
        self.apply(decoded, record.time().filter(|&time| time != 0 && time != u64::MAX));
        self.check().map_err(|error| error.at(record.offset))
    }

    /// Checks that no more is held than the limits grant.
    fn check(&self) -> Result<()> {
        self.limits.check_metadata("threads and mappings", self.held() as u64)
    }

    fn apply(&mut self, record: Record, time: Option<u64>) {
        let Record { misc, body, sample_id, .. } = record;
        let mode = CpuMode::of(misc);
        let machine = match mode {
            CpuMode::GUEST_KERNEL | CpuMode::GUEST_USER => Machine::DEFAULT_GUEST,
            _ => Machine::HOST,
        };
        let cpu = sample_id.as_ref().and_then(|id| id.cpu.as_ref()).map(|cpu| cpu.cpu);
        let tid = sample_id.and_then(|id| id.tid);
        match body {
            Body::Mmap(map) => self.map(machine, mode, misc, map.into()),
            Body::Mmap2(map) => self.map(machine, mode, misc, map.into()),
            Body::Comm(comm) => {
                let name = self.comms.intern(comm.comm.text());
                let thread = self.thread_of(machine, &Tid { pid: comm.pid, tid: comm.tid });
                if let Some(thread) = self.threads.get_mut(thread) {
                    (thread.comm, thread.is_named) = (name, true);
                }
                if misc & MISC_COMM_EXEC != 0 {
                    self.exec(thread);
                }
            }
            Body::Fork(task) => self.fork(machine, misc, &task, time),
            Body::Exit(Task { pid, tid, .. }) => {
                let thread = self.thread_of(machine, &Tid { pid, tid });
                self.threads.end(thread, time);
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
            Body::Ksymbol(symbol) => {
                let (start, end) = (symbol.addr, symbol.addr.saturating_add(u64::from(symbol.len)));
                if symbol.flags.has(KsymbolFlags::UNREGISTER) {
                    let (mappings, dsos) = (&self.mappings, self.dsos.list());
                    let is_symbol = |id: MappingId| {
                        let dso = mappings.get(id.index()).and_then(|mapping| dsos.get(mapping.dso.index()));
                        dso.is_some_and(|dso| dso.kind == DsoKind::KernelSymbol)
                    };
                    self.spaces.unmap(&mut self.host, start, is_symbol);
                } else if matches!(symbol.ksym_type, KsymbolType::BPF | KsymbolType::OUT_OF_LINE) {
                    let dso = self.dsos.intern(Dso {
                        machine: Machine::HOST,
                        kind: DsoKind::KernelSymbol,
                        name: symbol.name.text().into(),
                        file: None,
                        mapped_build_id: None,
                    });
                    let mapping = Mapping { dso, start, end, pgoff: 0, prot: None, flags: None, is_executable: true };
                    let mapping = self.intern(mapping);
                    self.spaces.map(&mut self.host, start..end, mapping);
                }
            }
            Body::TextPoke(_) => self.counts.text_pokes = self.counts.text_pokes.saturating_add(1),
            Body::HeaderBuildId(id) => self.build_id_of(misc, &id),
            _ => {}
        }
    }

    /// The thread with the number `tid` in `machine`, which is entered if it is new.
    #[inline]
    fn thread_of(&mut self, machine: Machine, tid: &Tid) -> ThreadId {
        if let Some(id) = self.threads.find(machine, tid) {
            return id;
        }
        let comm = self.comms.intern(format!(":{}", tid.tid.cast_signed()).as_bytes());
        self.threads.add(machine, tid, comm)
    }

    fn switch(&mut self, cpu: u32, tid: &Tid) {
        let thread = self.thread_of(Machine::HOST, tid);
        self.on_cpu.insert(cpu, thread);
    }

    /// A new thread has its parent's name, and a new process what its parent has mapped. perf marks FORK records that it
    /// made itself, of processes that have mappings of their own.
    fn fork(&mut self, machine: Machine, misc: u16, task: &Task, time: Option<u64>) {
        let parent = self.thread_of(machine, &Tid { pid: task.ppid, tid: task.ptid });
        let Some(Thread { comm, is_named, .. }) = self.threads.get(parent).cloned() else { return };
        if task.pid != task.ppid {
            let process = self.threads.process(machine, task.ppid);
            self.threads.begin(machine, task.pid, (misc & MISC_FORK_EXEC == 0).then_some(process));
        }
        let name = match is_named {
            true => comm,
            false => self.comms.intern(format!(":{}", task.tid.cast_signed()).as_bytes()),
        };
        let thread = self.threads.add(machine, &Tid { pid: task.pid, tid: task.tid }, name);
        if let Some(thread) = self.threads.get_mut(thread) {
            thread.parent = Some(parent);
            thread.start = time;
            thread.is_named = is_named;
        }
    }

    /// A new program begins without mappings. perf only lays the new mappings over the old ones.
    fn exec(&mut self, thread: ThreadId) {
        let Some(thread) = self.threads.get(thread) else { return };
        let number = thread.process;
        let Some(process) = self.threads.processes.get_mut(number) else { return };
        let before = std::mem::take(&mut process.space);
        if process.overlaid.is_none() && !before.is_empty() {
            process.overlaid = Some(Box::new(before));
        }
    }

    fn map(&mut self, machine: Machine, mode: CpuMode, misc: u16, map: Map) {
        let Map { pid, addr, len, pgoff, prot, flags, name, file, build_id } = map;
        let is_kernel = matches!(mode, CpuMode::KERNEL | CpuMode::GUEST_KERNEL);
        let machine = match mode {
            CpuMode::GUEST_KERNEL => Machine(pid.cast_signed().max(0)),
            _ => machine,
        };
        let (kind, name, symbol) = classify(&name, mode, flags);
        let file = file.filter(|_| kind == DsoKind::File && build_id.is_none());
        let dso = Dso { machine, kind, name: name.into(), file, mapped_build_id: build_id };
        let dso = self.dsos.intern(dso);
        if !symbol.is_empty() {
            self.symbols.insert(dso, symbol.into());
        }
        // perf takes no end for one behind all addresses.
        let end = if len == 0 && kind == DsoKind::Kernel { u64::MAX } else { addr.saturating_add(len) };
        // The image of the vDSO is mapped from its start on, whatever old kernels say.
        let pgoff = if kind == DsoKind::Vdso { 0 } else { pgoff };
        let is_executable = misc & MISC_MMAP_DATA == 0;
        let mapping = self.intern(Mapping { dso, start: addr, end, pgoff, prot, flags, is_executable });
        if is_kernel {
            let space = if machine.is_guest() { self.guests.entry(machine).or_default() } else { &mut self.host };
            return self.spaces.map(space, addr..end, mapping);
        }
        let process = self.threads.process(machine, pid);
        let Some(process) = self.threads.processes.get_mut(process) else { return };
        self.spaces.map(&mut process.space, addr..end, mapping);
        if let Some(overlaid) = &mut process.overlaid {
            self.spaces.map(overlaid, addr..end, mapping);
        }
    }

    fn intern(&mut self, mapping: Mapping) -> MappingId {
        let next = MappingId::of(self.mappings.len());
        let id = *self.by_mapping.entry(mapping).or_insert(next);
        if id == next {
            self.mappings.push(mapping);
        }
        id
    }

    /// Enters a build ID of the recording's table. Before 2.6.35 entries did not say of which machine, but the mode does.
    fn build_id_of(&mut self, misc: u16, entry: &perfdata_core::record::BuildId) {
        let is_guest = matches!(CpuMode::of(misc), CpuMode::GUEST_KERNEL | CpuMode::GUEST_USER);
        let machine = match entry.pid {
            Some(pid) => Machine(pid),
            None if is_guest => Machine::DEFAULT_GUEST,
            None => Machine::HOST,
        };
        let Some(id) = BuildId::new(entry.id(misc)) else { return };
        let name: Box<[u8]> = entry.filename.text().into();
        let len = name.len().saturating_add(ENTRY);
        if self.build_ids.insert((machine, name), id).is_none() {
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
        let known = events.of_record(record).and_then(|event| Some((event, record.glimpse()?)));
        let Some((event, glimpse)) = known else {
            self.counts.unknown_event = self.counts.unknown_event.saturating_add(1);
            return Ok(None);
        };
        self.counts.samples = self.counts.samples.saturating_add(1);
        let threads = self.threads.list().len();
        let thread = match glimpse.tid() {
            Some(tid) => self.thread_of(Machine::HOST, &tid),
            None => match glimpse.cpu().and_then(|cpu| self.thread_on_cpu(cpu)) {
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

    /// What the host's kernel has mapped.
    pub(crate) fn kernel(&self) -> &Space {
        &self.host
    }

    /// What `thread` has mapped for code that runs in `mode`, and what perf takes for mapped where that differs.
    #[inline]
    pub(crate) fn space(&self, thread: ThreadId, mode: CpuMode) -> (Option<&Space>, Option<&Space>) {
        let pid = || self.threads.get(thread).map_or(0, |thread| thread.pid);
        match mode {
            CpuMode::KERNEL => (Some(&self.host), None),
            CpuMode::USER => {
                let process = self.threads.get(thread).and_then(|thread| self.threads.processes.get(thread.process));
                let overlaid = process.and_then(|process| process.overlaid.as_deref());
                (process.map(|process| &process.space), overlaid)
            }
            // A guest that nothing is known of is taken for the default one.
            CpuMode::GUEST_KERNEL => {
                let guest = self.guests.get(&Machine(pid().cast_signed().max(0)));
                (guest.or_else(|| self.guests.get(&Machine::DEFAULT_GUEST)), None)
            }
            CpuMode::GUEST_USER => {
                let process = self.threads.known_process(Machine::DEFAULT_GUEST, pid());
                (process.map(|process| &process.space), None)
            }
            _ => (None, None),
        }
    }

    /// The mapping at `address` of `space`.
    #[inline]
    pub(crate) fn find(&self, space: &Space, address: u64) -> Option<MappingId> {
        self.lookups.find(space, address)
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
            | RecordType::TEXT_POKE
            | RecordType::HEADER_BUILD_ID
    )
}

/// What the two records of a mapping say.
struct Map {
    pid: u32,
    addr: u64,
    len: u64,
    pgoff: u64,
    prot: Option<u32>,
    flags: Option<u32>,
    name: Vec<u8>,
    file: Option<FileId>,
    build_id: Option<BuildId>,
}

impl From<Mmap> for Map {
    fn from(map: Mmap) -> Self {
        let Mmap { pid, addr, len, pgoff, filename, .. } = map;
        let name = filename.text().to_vec();
        Map { pid, addr, len, pgoff, prot: None, flags: None, name, file: None, build_id: None }
    }
}

impl From<Mmap2> for Map {
    fn from(map: Mmap2) -> Self {
        let Mmap2 { pid, addr, len, pgoff, inode, build_id, prot, flags, filename, .. } = map;
        let build_id = build_id.and_then(|id| BuildId::new(id.build_id.get(..usize::from(id.build_id_size))?));
        let file = inode.as_ref().and_then(FileId::of);
        let name = filename.text().to_vec();
        Map { pid, addr, len, pgoff, prot: Some(prot), flags: Some(flags), name, file, build_id }
    }
}
