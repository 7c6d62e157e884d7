//! Profiles for the Firefox Profiler: its processed format, version 60
//! (`docs-developer/processed-profile-format.md` and `src/profile-logic/processed-profile-versioning.ts`
//! of firefox-devtools/profiler).

mod memory;
mod numbered;
mod profile;
mod threads;

use std::collections::HashMap;
use std::io::{BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use foldhash::fast::RandomState;
use perfdata_core::read::RecordRef;
use perfdata_core::record::{
    Body, MISC_COMM_EXEC, MISC_SWITCH_OUT, MISC_SWITCH_OUT_PREEMPT, Record, RecordType,
};
use perfdata_session::CommId;
use perfdata_tracepoint::Like;

use crate::error::Result;
use crate::events::Events;
use crate::json;
use crate::machine::Machine;
use crate::parts::numbers::of_part;
use crate::parts::{Made, MadeOf, SinkPart};
use crate::resolve::{Needs, ResolvedSample, Sink};
use crate::shown::{Interned, Shown};
use crate::tables::Tables;
use crate::tree::{ROOT, Tree};
use memory::Memory;
pub(crate) use numbered::FirefoxSamples;
use numbered::{FirefoxNumbering, FirefoxPart, FirefoxSample, ProfileRows, Seen, number_in};
use threads::{Marker, Point, Threads};

/// A frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FrameRow {
    /// The number of its function.
    function: u32,
    /// The line in the source file, 0 if it is not known.
    line: u32,
    /// Number of functions around an inlined one up to that of the address.
    depth: u32,
}

/// Writes a compressed profile for the [Firefox Profiler](https://profiler.firefox.com).
///
/// Each thread has its samples in the order of time, with their periods as weights. If there are
/// several events, each has threads of its own. Markers show new names of threads, the threads they
/// start, their ends, when they did not run (`perf record --switch-events`, and samples of
/// `offcpu-time` with the reason), lost records, and tracepoints. A counter of each process shows its
/// resident memory if the recording contains the tracepoint `kmem:rss_stat`. If the recording
/// contains the time of day (`perf record -k`), the profile starts at it.
///
/// Control characters and bytes that are not UTF-8 become U+FFFD and two hexadecimal digits.
///
/// Samples and markers need up to 32 MiB of memory; further ones are stored in a temporary file.
/// The stacks and names are in memory.
#[derive(Debug)]
pub struct Firefox<W: Write> {
    out: BufWriter<GzEncoder<W>>,
    name: Box<[u8]>,
    machine: Option<Machine>,
    events: Events,
    functions: Interned<Shown>,
    frames: Interned<FrameRow>,
    tree: Tree,
    /// The names of threads, by their numbers in sessions.
    comms: HashMap<CommId, Box<[u8]>, RandomState>,
    /// The numbers that stacks have, if all samples come here, and what is known about those of each part.
    numbering: FirefoxNumbering,
    parts: Vec<ProfileRows>,
    /// The functions and modules of all parts; `None` if there are none.
    tables: Option<Tables>,
    strings: Interned<Box<[u8]>>,
    threads: Threads,
    memory: Memory,
    first_time: Option<u64>,
}

/// The categories of stacks and markers, and their colours. A frame's category is the number of its
/// code.
const CATEGORIES: [(&str, &str); 5] = [
    ("User", "yellow"),
    ("Kernel", "orange"),
    ("JIT", "green"),
    ("Other", "grey"),
    ("Off-CPU", "blue"),
];
/// The numbers of the last two categories.
const OTHER: u8 = 3;
const OFF_CPU: u8 = 4;

impl<W: Write> Firefox<W> {
    /// Returns a sink that writes to `out` at the end. `name` is shown as the name of the recording.
    pub fn new(out: W, name: &[u8]) -> Self {
        Firefox {
            out: BufWriter::new(GzEncoder::new(out, Compression::default())),
            name: name.into(),
            machine: None,
            events: Events::default(),
            functions: Interned::default(),
            frames: Interned::default(),
            tree: Tree::new(),
            comms: HashMap::default(),
            numbering: FirefoxNumbering::default(),
            parts: Vec::new(),
            tables: None,
            strings: Interned::default(),
            threads: Threads::default(),
            memory: Memory::default(),
            first_time: None,
        }
    }

    /// Sees a time. The profile begins at the smallest one.
    fn begin(&mut self, time: u64) {
        let first = self.first_time.get_or_insert(time);
        *first = time.min(*first);
    }

    /// Adds a marker to a thread.
    fn mark(
        &mut self,
        thread: usize,
        name: &[u8],
        (start, end): (u64, Option<u64>),
        category: u8,
        data: String,
    ) -> Result<()> {
        let name = self.strings.number(name.into());
        let marker = Marker {
            name,
            start,
            end,
            category,
            data: data.into_bytes(),
        };
        self.threads.marker(thread, &marker)
    }

    /// Adds the interval in which a thread did not run.
    fn mark_off(&mut self, thread: usize, time: u64) -> Result<()> {
        let off = self
            .threads
            .get_mut(thread)
            .and_then(|thread| thread.off.take());
        let Some((start, is_preempted)) = off else {
            return Ok(());
        };
        let data = format!("{{\"type\":\"off-cpu\",\"preempted\":{is_preempted}}}");
        self.mark(thread, b"off-CPU", (start, Some(time)), OFF_CPU, data)
    }

    /// Adds samples and records of a part.
    fn add(&mut self, part: usize, new: FirefoxSamples) -> Result<()> {
        let Some(rows) = of_part(&mut self.parts, part) else {
            return Ok(());
        };
        if let Some(tables) = &mut self.tables {
            tables.join(&new.entries, &mut rows.tables);
        }
        if self.machine.is_none() {
            self.machine = new.machine;
        }
        let functions = new.functions.into_iter();
        let functions = functions.map(|function| self.functions.number(function));
        rows.functions.extend(functions);
        for frame in new.frames {
            let function = number_in(&rows.functions, frame.function);
            rows.frames
                .push(self.frames.number(FrameRow { function, ..frame }));
        }
        for node in new.nodes {
            let (parent, frame) = (rows.node(node.parent), number_in(&rows.frames, node.frame));
            rows.nodes.push(self.tree.child(parent, frame));
        }
        self.comms.extend(new.comms);
        let events = self.events.join(new.events);
        for seen in new.seen {
            match seen {
                Seen::Sample(sample) => self.numbered(part, &sample, &events)?,
                Seen::Record(record) => self.record(*record)?,
            }
        }
        Ok(())
    }

    /// Adds the samples and records that came here, not to parts.
    fn take_numbered(&mut self) -> Result<()> {
        let samples = self.numbering.take();
        self.add(0, samples)
    }

    /// Adds a sample of a part, whose events have these numbers.
    fn numbered(&mut self, part: usize, sample: &FirefoxSample, events: &[u32]) -> Result<()> {
        let time = sample.time;
        self.begin(time);
        let thread = self.threads.find(sample.pid, sample.tid, sample.cpu);
        if let Some(thread) = self.threads.get_mut(thread)
            && let Some(comm) = self.comms.get(&sample.comm)
            && thread.comm != *comm
        {
            thread.comm.clone_from(comm);
        }
        let rows = self.parts.get(part);
        let stack = rows.map_or(ROOT, |rows| rows.node(sample.stack));
        for &(event, weight) in &sample.counted {
            let event = number_in(events, event);
            let point = Point {
                stack,
                time,
                weight,
            };
            self.threads.sample(thread, event, point)?;
            if self.events.get(event).is_some_and(|event| event.is_off_cpu) {
                let reason = json::string(sample.reason.as_deref().unwrap_or_default());
                let data = format!("{{\"type\":\"off-cpu\",\"reason\":{reason}}}");
                let start = time.saturating_sub(weight);
                self.begin(start);
                self.mark(thread, b"off-CPU", (start, Some(time)), OFF_CPU, data)?;
            }
        }
        if let Some(tracepoint) = &sample.tracepoint {
            if let Some((pid, time, change)) = tracepoint.memory {
                self.memory.change(pid, time, change)?;
            }
            let cpu = sample.cpu.map_or("null".into(), |cpu| cpu.to_string());
            let text = json::string(&tracepoint.text);
            let data = format!("{{\"type\":\"tracepoint\",\"text\":{text},\"cpu\":{cpu}}}");
            self.mark(thread, &tracepoint.name, (time, None), OTHER, data)?;
        }
        Ok(())
    }

    /// Adds a record that is not a sample.
    fn record(&mut self, decoded: Record) -> Result<()> {
        let id = decoded.sample_id;
        let time = id.as_ref().and_then(|id| id.time).unwrap_or(0);
        // Records about what existed before the recording have no time.
        let is_new = time != 0;
        if is_new {
            self.begin(time);
        }
        let cpu = id.as_ref().and_then(|id| id.cpu).map(|cpu| cpu.cpu);
        let tid = id.as_ref().and_then(|id| id.tid);
        let (own, misc) = (decoded.kind, decoded.misc);
        let mark_lost = |profile: &mut Self, name: &[u8], lost: u64| {
            let tid = tid.unwrap_or_default();
            let thread = profile.threads.find(tid.pid, tid.tid, cpu);
            let data = format!("{{\"type\":\"lost\",\"lost\":{lost}}}");
            profile.mark(thread, name, (time, None), OTHER, data)
        };
        match decoded.body {
            Body::Comm(comm) => {
                let thread = self.threads.find(comm.pid, comm.tid, cpu);
                let name = comm.comm.text();
                if let Some(thread) = self.threads.get_mut(thread) {
                    thread.comm = name.into();
                }
                if is_new {
                    let is_exec = misc & MISC_COMM_EXEC != 0;
                    let name = json::string(name);
                    let data = format!("{{\"type\":\"comm\",\"comm\":{name},\"exec\":{is_exec}}}");
                    self.mark(thread, b"COMM", (time, None), OTHER, data)?;
                }
            }
            Body::Fork(task) => {
                let parent = self.threads.find(task.ppid, task.ptid, cpu);
                let comm = self
                    .threads
                    .get_mut(parent)
                    .map(|thread| thread.comm.clone());
                let child = self
                    .threads
                    .add(task.pid, task.tid, cpu, &comm.unwrap_or_default());
                if !is_new {
                    return Ok(());
                }
                if let Some(thread) = self.threads.get_mut(child) {
                    thread.start = Some(time);
                }
                let (pid, tid) = (task.pid.cast_signed(), task.tid.cast_signed());
                let data = format!("{{\"type\":\"fork\",\"pid\":{pid},\"tid\":{tid}}}");
                self.mark(parent, b"FORK", (time, None), OTHER, data)?;
            }
            Body::Exit(task) if is_new => {
                let thread = self.threads.find(task.pid, task.tid, cpu);
                if task.pid == task.tid {
                    self.memory.exit(task.pid);
                }
                self.mark_off(thread, time)?;
                if let Some(thread) = self.threads.get_mut(thread) {
                    thread.end = Some(time);
                }
                self.mark(
                    thread,
                    b"EXIT",
                    (time, None),
                    OTHER,
                    "{\"type\":\"exit\"}".into(),
                )?;
            }
            Body::Lost(lost) if is_new => mark_lost(self, b"LOST", lost.lost)?,
            Body::LostSamples(lost) if is_new => mark_lost(self, b"LOST_SAMPLES", lost.lost)?,
            _ if is_new && [RecordType::SWITCH, RecordType::SWITCH_CPU_WIDE].contains(&own) => {
                let Some(tid) = tid else { return Ok(()) };
                let thread = self.threads.find(tid.pid, tid.tid, cpu);
                if misc & MISC_SWITCH_OUT == 0 {
                    return self.mark_off(thread, time);
                }
                if let Some(thread) = self.threads.get_mut(thread) {
                    thread.off = Some((time, misc & MISC_SWITCH_OUT_PREEMPT != 0));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl<W: Write> Sink for Firefox<W> {
    fn needs(&self) -> Needs {
        Needs {
            tracepoints: Some(Like::default()),
            ..Needs::default()
        }
    }

    fn sample(&mut self, resolved: &ResolvedSample<'_>) -> Result<()> {
        self.numbering.sample(resolved);
        match self.numbering.is_full() {
            true => self.take_numbered(),
            false => Ok(()),
        }
    }

    fn record(&mut self, record: &RecordRef<'_>) -> Result<()> {
        self.numbering.record(record)?;
        match self.numbering.is_full() {
            true => self.take_numbered(),
            false => Ok(()),
        }
    }

    fn part(&self, _: usize) -> Option<Box<dyn SinkPart>> {
        Some(Box::new(FirefoxPart::new(self.needs())))
    }

    fn join(&mut self, made: Made) -> Result<()> {
        match made.of {
            MadeOf::Firefox(samples) => {
                self.tables.get_or_insert_default();
                self.add(made.part, *samples)
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self, tables: &Tables) -> Result<()> {
        match self.tables.take() {
            Some(of_parts) => self.write(&of_parts),
            None => {
                self.take_numbered()?;
                self.write(tables)
            }
        }
    }
}
