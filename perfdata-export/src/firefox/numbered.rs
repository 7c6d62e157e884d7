//! Samples and records as the profile needs them: what a thread makes of its part of the samples.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use perfdata_core::attr::EventType;
use perfdata_core::read::RecordRef;
use perfdata_core::record::{Record, RecordType};
use perfdata_session::CommId;

use super::FrameRow;
use super::memory::{MemoryChange, MemoryChanges};
use crate::error::Result;
use crate::events::Events;
use crate::machine::Machine;
use crate::parts::numbers::renumbered;
use crate::parts::{Made, MadeOf, SinkPart};
use crate::places::Places;
use crate::resolve::{Needs, ResolvedFrame, ResolvedSample, Sink};
use crate::shown::{Interned, Shown, ShownFrames};
use crate::table_entries::{TableEntries, TableNumbers, TakenEntries};
use crate::tables::Tables;
use crate::tree::{Node, ROOT, Tree};

/// Number of samples and records that are taken at once.
const MOST_WAITING: usize = 1 << 12;

/// A sample.
#[derive(Debug)]
pub(super) struct FirefoxSample {
    pub time: u64,
    pub pid: u32,
    pub tid: u32,
    pub cpu: Option<u32>,
    pub comm: CommId,
    /// The number of its stack.
    pub stack: u32,
    /// The events that it counts, by their numbers, and how much of each.
    pub counted: Vec<(u32, u64)>,
    /// Why the thread was off the CPU, if one of the events counts that.
    pub reason: Option<Box<[u8]>>,
    pub tracepoint: Option<Box<TracepointSample>>,
}

/// What only samples of tracepoints have.
#[derive(Debug)]
pub(super) struct TracepointSample {
    pub name: Box<[u8]>,
    pub text: Box<[u8]>,
    /// The process and the time of a change of memory.
    pub memory: Option<(u32, u64, MemoryChange)>,
}

/// A sample, or a record of another type.
#[derive(Debug)]
pub(super) enum Seen {
    Sample(FirefoxSample),
    Record(Box<Record>),
}

/// Samples and records in the order of time, and what is new in them.
#[derive(Debug, Default)]
pub(crate) struct FirefoxSamples {
    /// Further functions and modules, if these are samples of a part.
    pub(super) entries: TableEntries,
    pub(super) machine: Option<Machine>,
    /// Further functions, frames and stacks.
    pub(super) functions: Vec<Shown>,
    pub(super) frames: Vec<FrameRow>,
    pub(super) nodes: Vec<Node>,
    /// Further names of threads.
    pub(super) comms: Vec<(CommId, Box<[u8]>)>,
    /// All events, with the numbers of these samples.
    pub(super) events: Events,
    pub(super) seen: Vec<Seen>,
}

/// Gives stacks numbers.
#[derive(Debug)]
pub(super) struct FirefoxNumbering {
    machine: Option<Machine>,
    events: Events,
    functions: ShownFrames,
    frames: Interned<FrameRow>,
    tree: Tree,
    /// The numbers of the frames at places.
    places: Places,
    comms: HashSet<CommId, RandomState>,
    memory: MemoryChanges,
    /// How many functions, frames and nodes were taken.
    taken: (usize, usize, usize),
    waiting: FirefoxSamples,
}

impl Default for FirefoxNumbering {
    fn default() -> Self {
        FirefoxNumbering {
            machine: None,
            events: Events::default(),
            functions: ShownFrames::with_sources(),
            frames: Interned::default(),
            tree: Tree::new(),
            places: Places::default(),
            comms: HashSet::default(),
            memory: MemoryChanges::default(),
            // The root is known.
            taken: (0, 0, 1),
            waiting: FirefoxSamples::default(),
        }
    }
}

impl FirefoxNumbering {
    /// Adds a sample.
    pub fn sample(&mut self, resolved: &ResolvedSample<'_>) {
        let sample = &resolved.sample;
        let recording = sample.recording();
        self.machine.get_or_insert_with(|| Machine::of(recording));
        let counted = self.events.counted(resolved);
        if counted.is_empty() {
            return;
        }
        let counted: Vec<(u32, u64)> = counted.collect();
        let is_off_cpu = counted.iter().any(|&(event, _)| {
            let event = self.events.get(event);
            event.is_some_and(|event| event.is_off_cpu)
        });
        let reason = is_off_cpu.then(|| reason(resolved).unwrap_or_default().into());
        let is_tracepoint = sample
            .attr()
            .is_some_and(|attr| attr.kind == EventType::TRACEPOINT);
        let tracepoint = is_tracepoint.then(|| {
            Box::new(TracepointSample {
                name: sample.event_name().into(),
                text: resolved.tracepoint.unwrap_or_default().into(),
                memory: self.memory.of(sample),
            })
        });
        let comm = sample.comm_id();
        if self.comms.insert(comm) {
            self.waiting.comms.push((comm, sample.comm().into()));
        }
        let tid = sample.tid();
        let (pid, tid) = tid.map_or((u32::MAX, u32::MAX), |tid| (tid.pid, tid.tid));
        let stack = self.stack(resolved);
        self.waiting.seen.push(Seen::Sample(FirefoxSample {
            time: sample.time().unwrap_or(0),
            pid,
            tid,
            cpu: sample.cpu(),
            comm,
            stack,
            counted,
            reason,
            tracepoint,
        }));
    }

    /// Adds a record that is not a sample.
    pub fn record(&mut self, record: &RecordRef<'_>) -> Result<()> {
        let is_needed = matches!(
            record.kind,
            RecordType::COMM
                | RecordType::FORK
                | RecordType::EXIT
                | RecordType::SWITCH
                | RecordType::SWITCH_CPU_WIDE
                | RecordType::LOST
                | RecordType::LOST_SAMPLES
        );
        if is_needed {
            let decoded = Box::new(record.decode()?);
            self.waiting.seen.push(Seen::Record(decoded));
        }
        Ok(())
    }

    /// Returns the number of the stack of a sample.
    fn stack(&mut self, resolved: &ResolvedSample<'_>) -> u32 {
        let (mut stack, mut depth) = (ROOT, 0_u32);
        for frame in resolved.frames.iter().rev() {
            depth = match frame.is_inlined {
                true => depth.saturating_add(1),
                false => 0,
            };
            let number = match self.places.get(resolved.tables, frame.place) {
                Some(number) => number,
                None => self.frame(frame, depth, resolved.tables),
            };
            stack = self.tree.child(stack, number);
        }
        stack
    }

    /// Returns the number of a frame. One that has a place is no inlined function.
    fn frame(&mut self, frame: &ResolvedFrame, depth: u32, tables: &Tables) -> u32 {
        let number = self.frames.number(FrameRow {
            function: self.functions.number(frame, tables),
            line: frame.line,
            depth,
        });
        self.places.set(tables, frame.place, number);
        number
    }

    /// Returns whether so much waits that it should be taken.
    pub fn is_full(&self) -> bool {
        self.waiting.seen.len() >= MOST_WAITING
    }

    /// Returns all since the last call.
    pub fn take(&mut self) -> FirefoxSamples {
        let (functions, frames) = (self.functions.list(), &self.frames.list);
        let nodes = self.tree.nodes();
        let new = FirefoxSamples {
            machine: self.machine.clone(),
            functions: functions.iter().skip(self.taken.0).cloned().collect(),
            frames: frames.iter().skip(self.taken.1).copied().collect(),
            nodes: nodes.iter().skip(self.taken.2).copied().collect(),
            events: self.events.take_samples(),
            ..std::mem::take(&mut self.waiting)
        };
        self.taken = (functions.len(), frames.len(), nodes.len());
        new
    }
}

/// Returns the frame that says why a thread was off the CPU: the first one in brackets.
fn reason<'a>(resolved: &ResolvedSample<'a>) -> Option<&'a [u8]> {
    let tables = resolved.tables;
    let mut names = resolved
        .frames
        .iter()
        .filter_map(|frame| tables.function(frame.function?))
        .map(|function| &*function.name);
    names.find(|name| name.starts_with(b"[") && name.ends_with(b"]"))
}

/// Numbers a part of the samples.
#[derive(Debug)]
pub(super) struct FirefoxPart {
    numbering: FirefoxNumbering,
    entries: TakenEntries,
    needs: Needs,
}

impl FirefoxPart {
    /// Returns a part of a sink with these needs.
    pub fn new(needs: Needs) -> Self {
        FirefoxPart {
            numbering: FirefoxNumbering::default(),
            entries: TakenEntries::default(),
            needs,
        }
    }
}

impl Sink for FirefoxPart {
    fn needs(&self) -> Needs {
        self.needs
    }

    fn sample(&mut self, resolved: &ResolvedSample<'_>) -> Result<()> {
        self.numbering.sample(resolved);
        Ok(())
    }

    fn record(&mut self, record: &RecordRef<'_>) -> Result<()> {
        self.numbering.record(record)
    }
}

impl SinkPart for FirefoxPart {
    fn take(&mut self, tables: &Tables) -> Option<Made> {
        let samples = FirefoxSamples {
            entries: self.entries.take(tables),
            ..self.numbering.take()
        };
        Some(Made::new(MadeOf::Firefox(Box::new(samples))))
    }
}

/// The numbers of a profile by those of a part.
#[derive(Debug, Default)]
pub(super) struct ProfileRows {
    pub tables: TableNumbers,
    pub functions: Vec<u32>,
    pub frames: Vec<u32>,
    /// Without that of the root.
    pub nodes: Vec<u32>,
}

/// Returns the new number of something; 0 if it has none.
pub(super) fn number_in(list: &[u32], old: u32) -> u32 {
    renumbered(list, old).unwrap_or(0)
}

impl ProfileRows {
    /// Returns the number of a stack.
    pub fn node(&self, of_part: u32) -> u32 {
        match of_part.checked_sub(1) {
            Some(number) => number_in(&self.nodes, number),
            None => ROOT,
        }
    }
}
