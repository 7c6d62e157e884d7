//! What is known of tasks and the kernel at a moment of the merged stream, so that records that say
//! it again can be left out, and records that would destroy it.

use std::collections::{HashMap, HashSet};

use perfdata_core::read::Limits;
use perfdata_core::record::{Body, Cpu, RawRecord, Record, RecordType, SampleId, Task, Tid};
use perfdata_core::{Endian, Events, Result};

/// The "process" of the kernel's mappings.
const KERNEL: u32 = u32::MAX;

/// Returns whether this is the thread of the kernel's mappings.
pub(super) fn is_kernel(thread: &Tid) -> bool {
    thread.pid == KERNEL
}

/// Returns the thread that a record about threads or mappings is about.
pub(super) fn thread_of(raw: &RawRecord<'_>, events: &Events) -> Result<Option<Tid>> {
    if !raw.kind.is_of_thread() {
        return Ok(None);
    }
    Ok(Record::decode(raw, &events.layout_of(raw))?.body.tid())
}

/// The records of an input about what existed before it, as they are in the result.
#[derive(Debug, Default)]
pub(super) struct Opening {
    records: Vec<Vec<u8>>,
    /// The thread of each.
    threads: Vec<Option<Tid>>,
    /// What they say of each process, without trailers and FORK records: those of threads that
    /// other inputs know are left out.
    processes: HashMap<u32, Vec<u8>>,
}

impl Opening {
    /// Adds a record of the result, whose events are `events`.
    pub(super) fn push(&mut self, record: Vec<u8>, endian: Endian, events: &Events) -> Result<()> {
        let raw = RawRecord::first(&record, endian, 0)?;
        let thread = thread_of(&raw, events)?;
        if let Some(thread) = thread.filter(|thread| !is_kernel(thread))
            && raw.kind != RecordType::FORK
        {
            self.processes
                .entry(thread.pid)
                .or_default()
                .extend(content(&raw, events));
        }
        self.threads.push(thread);
        self.records.push(record);
        Ok(())
    }
}

/// Returns what a record says: its type, flags and fields without the trailer.
fn content(raw: &RawRecord<'_>, events: &Events) -> Vec<u8> {
    let layout = events.layout_of(raw);
    let trailer = if layout.sample_id_all {
        layout.trailer_len()
    } else {
        0
    };
    let body = raw.body();
    let fields = body.get(..body.len().saturating_sub(trailer));
    let mut content = Vec::with_capacity(body.len());
    content.extend_from_slice(&raw.kind.0.to_le_bytes());
    content.extend_from_slice(&raw.misc.to_le_bytes());
    content.extend_from_slice(fields.unwrap_or_default());
    content
}

/// What the records so far say.
#[derive(Debug, Default)]
pub(super) struct Sideband {
    endian: Option<Endian>,
    /// The openings of the inputs.
    openings: Vec<Opening>,
    /// The input whose opening describes a process, as long as no later record is about it.
    described: HashMap<u32, usize>,
    /// The records about the kernel, its modules, BPF programs and cgroups from openings, as long
    /// as no later record is of the same type: by type, what they say.
    kernel: HashMap<RecordType, HashSet<Vec<u8>>>,
    /// The process of each thread that lives.
    alive: HashMap<u32, u32>,
    limits: Limits,
    /// Number of bytes of the openings that were added.
    held: u64,
}

/// Bytes of memory for a thread.
const THREAD: u64 = 16;

impl Sideband {
    /// Starts with the openings of all inputs.
    pub(super) fn new(openings: Vec<Opening>, endian: Endian, limits: Limits) -> Self {
        Sideband {
            endian: Some(endian),
            limits,
            openings,
            ..Sideband::default()
        }
    }

    /// Returns the limits of the memory for threads.
    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// Sees a record other than a sample; `has_time` says whether it is about a moment of the
    /// recording.
    ///
    /// # Errors
    /// The record is corrupt.
    pub(super) fn see(
        &mut self,
        raw: &RawRecord<'_>,
        events: &Events,
        has_time: bool,
    ) -> Result<()> {
        let Some(thread) = thread_of(raw, events)? else {
            if has_time
                && matches!(
                    raw.kind,
                    RecordType::KSYMBOL | RecordType::BPF_EVENT | RecordType::CGROUP
                )
            {
                self.kernel.remove(&raw.kind);
            }
            return Ok(());
        };
        if is_kernel(&thread) {
            if has_time {
                self.kernel.remove(&RecordType::MMAP);
                self.kernel.remove(&RecordType::MMAP2);
            }
            return Ok(());
        }
        if has_time {
            self.described.remove(&thread.pid);
        }
        if raw.kind == RecordType::EXIT {
            self.alive.remove(&thread.tid);
        } else if thread.tid != KERNEL {
            self.alive.insert(thread.tid, thread.pid);
            let held = (self.alive.len() as u64).saturating_mul(THREAD);
            self.limits.check_metadata("threads", held)?;
        }
        Ok(())
    }

    /// Adds an opening that an earlier merge put between records, and returns its index.
    ///
    /// # Errors
    /// The openings exceed the limit for metadata.
    pub(super) fn add(&mut self, opening: Opening) -> Result<usize> {
        let len: usize = opening.records.iter().map(Vec::len).sum();
        self.held = self.held.saturating_add(len as u64);
        let what = "records about what existed before the recordings";
        self.limits.check_metadata(what, self.held)?;
        self.openings.push(opening);
        Ok(self.openings.len().saturating_sub(1))
    }

    /// Begins an input: returns the records of its opening that say something new. A FORK that perf
    /// synthesizes for a living thread is left out: readers would forget what they know of it.
    pub(super) fn begin(&mut self, input: usize, events: &Events) -> Vec<Vec<u8>> {
        let endian = self.endian.unwrap_or(Endian::NATIVE);
        let Some(opening) = self.openings.get_mut(input) else {
            return Vec::new();
        };
        let records = std::mem::take(&mut opening.records);
        let threads = std::mem::take(&mut opening.threads);
        let Some(opening) = self.openings.get(input) else {
            return Vec::new();
        };
        let is_known = |pid: u32| {
            let other = self.openings.get(*self.described.get(&pid)?)?;
            (other.processes.get(&pid)? == opening.processes.get(&pid)?).then_some(())
        };
        let mut kept = Vec::new();
        for (record, thread) in records.into_iter().zip(threads) {
            let Ok(raw) = RawRecord::first(&record, endian, 0) else {
                continue;
            };
            let is_new = match thread.filter(|thread| !is_kernel(thread)) {
                Some(thread) => {
                    let lives = self.alive.contains_key(&thread.tid);
                    is_known(thread.pid).is_none() && !(raw.kind == RecordType::FORK && lives)
                }
                None => {
                    let known = self.kernel.entry(raw.kind).or_default();
                    known.insert(content(&raw, events))
                }
            };
            if is_new {
                kept.push(record);
            }
        }
        self.described
            .extend(opening.processes.keys().map(|&pid| (pid, input)));
        kept
    }

    /// Returns an EXIT record for each living thread, at `time`, and forgets all processes. If no
    /// thread lives, returns one for the thread -1, so that a later merge finds the gap.
    ///
    /// # Errors
    /// A record cannot be encoded.
    pub(super) fn end_all(&mut self, time: u64, events: &Events) -> Result<Vec<Vec<u8>>> {
        let endian = self.endian.unwrap_or(Endian::NATIVE);
        self.described.clear();
        let mut all: Vec<(u32, u32)> = self.alive.drain().filter(|&(tid, _)| tid != 0).collect();
        if all.is_empty() {
            all.push((u32::MAX, u32::MAX));
        }
        // Readers find the mappings of a thread by the first thread of its process.
        all.sort_by_key(|&(tid, pid)| (tid == pid, pid, tid));
        let parts = events
            .first()
            .map(|event| event.attr.sample_type)
            .unwrap_or_default();
        all.into_iter()
            .map(|(tid, pid)| {
                let mut trailer = SampleId {
                    tid: Some(Tid { pid, tid }),
                    time: Some(time),
                    id: Some(0),
                    stream_id: Some(0),
                    cpu: Some(Cpu::default()),
                    identifier: Some(0),
                };
                trailer.keep_parts(SampleId::parts_of(parts));
                Record::new(Body::Exit(Task {
                    pid,
                    ppid: u32::MAX,
                    tid,
                    ptid: u32::MAX,
                    time,
                }))
                .with_sample_id(trailer)
                .encode(endian)
            })
            .collect()
    }
}
