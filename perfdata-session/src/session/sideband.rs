//! The records other than samples: they change the threads, the address spaces and what is known
//! about them.

use std::ops::Range;

use perfdata_core::Result;
use perfdata_core::read::RecordRef;
use perfdata_core::record::{
    Body, BpfEventType, CpuMode, MISC_SWITCH_OUT, Mmap, Mmap2, Namespace, Record, RecordType, Task,
    Tid, is_known_time, is_moment,
};

use super::{ENTRY, Session};
use crate::change::{Change, Owner};
use crate::dso::{DsoKind, Dsos, Machine};
use crate::huge_pages::{HUGE_PAGE, file_under, is_in_huge_pages, is_in_place_of};
use crate::ids::{DsoId, ThreadId};
use crate::mapping::{Mapped, Mapping};
use crate::spaces::{AddressSpaces, ProcessId};
use crate::thread::Thread;

impl Session {
    /// Processes a record, which must not be older than the records before it. Samples have no
    /// effect.
    ///
    /// # Errors
    /// The record is corrupt, or the state exceeds the limits.
    pub fn see(&mut self, record: &RecordRef<'_>) -> Result<()> {
        self.has_news |= self.names.see(record);
        if !is_sideband(record.kind) {
            return Ok(());
        }
        let decoded = record.decode()?;
        let time = record.time().filter(|&time| is_known_time(time));
        let moment = time.filter(|&time| is_moment(time));
        self.began = self.began.or(moment);
        if let Some(change) = Change::of(&decoded) {
            self.change(change);
            self.mapped.resize(self.dsos.list().len(), moment);
        }
        self.apply(decoded, time);
        self.check().map_err(|error| error.at(record.offset))
    }

    /// Checks the memory use against the limits.
    pub(super) fn check(&self) -> Result<()> {
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
                if let Some(known) = self.threads.get(thread) {
                    self.removed.add(thread, known);
                }
            }
            Body::Fork(task) => {
                let id = self.threads.fork(machine, &task, time);
                let known = |id| Some((id, self.threads.get(id)?));
                let thread = known(id);
                let parent = thread.and_then(|(_, thread)| known(thread.parent?));
                if let (Some(thread), Some(parent)) = (thread, parent) {
                    self.removed.fork(thread, parent);
                }
                self.enter_processes();
            }
            Body::Exit(Task { pid, tid, .. }) => {
                let thread = self.thread_of(machine, &Tid { pid, tid });
                if let Some(known) = self.threads.get(thread) {
                    self.removed.remove(thread, known);
                }
                if self.threads.end(thread, time)
                    && let Some(&process) = self.processes.get(thread.index())
                {
                    self.spaces.end_thread(process);
                }
            }
            Body::Mmap(Mmap { pid, tid, .. }) | Body::Mmap2(Mmap2 { pid, tid, .. }) => {
                let id = self.threads.find(machine, &Tid { pid, tid });
                let thread = id.and_then(|id| Some((id, self.threads.get(id)?)));
                self.removed.map(thread, machine, pid);
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
            Body::HeaderBuildId(id) => self.build_ids.add(misc, &id),
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
            on_huge_pages,
            ..
        } = self;
        let change = change.with(|mapped| {
            let dso = dsos.intern(&mapped.dso);
            let symbol = mapped.dso.symbol;
            if !symbol.is_empty() && !symbols.contains_key(&dso) {
                symbols.insert(dso, symbol.into());
            }
            mapped.with_dso(dso)
        });
        if let Change::Map { owner, range, what } = &change
            && let Some(dso) = replaced_file(spaces, dsos, *owner, range.0..range.1, what)
        {
            on_huge_pages.insert(dso);
        }
        spaces.apply(change);
    }

    /// Returns the thread with the thread ID `tid` in `machine`. Adds it if it is new.
    #[inline]
    pub(super) fn thread_of(&mut self, machine: Machine, tid: &Tid) -> ThreadId {
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
    pub(super) fn enter_processes(&mut self) {
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
}

/// Returns whether records of this type change the state of a session.
#[inline]
fn is_sideband(kind: RecordType) -> bool {
    Change::affects_processes(kind)
        || matches!(
            kind,
            RecordType::SWITCH
                | RecordType::SWITCH_CPU_WIDE
                | RecordType::NAMESPACES
                | RecordType::CGROUP
                | RecordType::KSYMBOL
                | RecordType::BPF_EVENT
                | RecordType::TEXT_POKE
                | RecordType::HEADER_BUILD_ID
        )
}

/// Returns the file in whose place a new mapping is, or that of the mapping whose place memory before
/// it has.
fn replaced_file(
    spaces: &AddressSpaces<Mapping>,
    dsos: &Dsos,
    owner: Owner,
    range: Range<u64>,
    new: &Mapping,
) -> Option<DsoId> {
    let kind_of = |mapping: &Mapping| dsos.list().get(mapping.dso.index()).map(|dso| dso.kind);
    let file_of = |mapping: Mapping| {
        let bias = mapping.pgoff.wrapping_sub(mapping.start);
        (kind_of(&mapping) == Some(DsoKind::File)).then_some((mapping.dso, bias))
    };
    let is_memory = |range: &Range<u64>, mapping: &Mapping| {
        mapping.is_executable
            && is_in_huge_pages(range)
            && kind_of(mapping) == Some(DsoKind::Anonymous)
    };
    if is_memory(&range, new) {
        return Some(file_under(spaces.space(owner)?, &range, file_of)?.0);
    }
    // Most mappings are not aligned to huge pages.
    if !range.start.is_multiple_of(HUGE_PAGE) {
        return None;
    }
    let following = file_of(*new)?;
    let space = spaces.space(owner)?;
    let mut start = range.start;
    while let Some((memory, mapping)) = space.find(start.checked_sub(1)?)
        && is_memory(&memory, &mapping)
    {
        start = memory.start;
    }
    let is_replaced = start < range.start && is_in_place_of(space, start, &following, file_of);
    is_replaced.then_some(following.0)
}
