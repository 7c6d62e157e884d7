//! Flame graphs: a web page to explore, or a picture.

mod page;
mod picture;
mod rows;

use std::collections::HashMap;
use std::io::Write;

use foldhash::fast::RandomState;
use perfdata_session::{CommId, ThreadId};

use crate::error::Result;
use crate::events::Events;
use crate::resolve::{ResolvedSample, Sink};
use crate::shown::{Interned, ShownFrames};
use crate::tables::{Tables, UNKNOWN};
use crate::tree::{ROOT, Tree};
use rows::{Key, NONE, Rows};

/// Maximum number of different stacks, counting those of all callers.
const MOST_NODES: usize = 1 << 20;

/// Maximum number of threads that are told apart.
const MOST_THREADS: usize = 1 << 14;

/// The form of a flame graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FlameGraphForm {
    /// A web page (HTML) that shows any part of the graph.
    #[default]
    Page,
    /// A picture (SVG).
    Picture,
}

/// A thread under a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct NamedThread {
    comm: Box<[u8]>,
    /// `None` if there are too many threads to tell them apart.
    ids: Option<(u32, u32)>,
}

/// A recording in the graph.
#[derive(Debug)]
struct Side {
    name: Box<[u8]>,
    /// The time of its first sample.
    first: Option<u64>,
    /// The difference between its first and its last sample.
    length: u64,
    samples: u64,
}

/// What a graph had to give up, because the recording has too many different stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct GivenUp {
    /// Stacks with fewer samples are shown as their callers.
    least: u64,
    threads: bool,
}

/// Draws a flame graph.
///
/// The width of a function is the share of the samples in which it was running or had called the
/// function that was running; functions are below their callers, or above with the root at the
/// bottom. The picture shows the first event of the command line of `perf record` that has samples, the
/// page begins with it. The page also selects events, parts of the time, threads and CPUs, searches, and shows
/// the callers of functions. It is one file that loads nothing.
///
/// With [`with_other`](Self::with_other), the graph shows the differences between two recordings.
///
/// If threads with different names were sampled, their names are the first level. Several frames in a
/// row without a mapping are one frame, which says how many they are at most.
///
/// Control characters and bytes that are not UTF-8 become U+FFFD and two hexadecimal digits.
///
/// # Memory
///
/// The graph keeps up to 262,144 sums of samples, by stack, thread, CPU and part of the time, and
/// up to 1,048,576 stacks. If there are more, it gives up details: the time becomes coarser, then
/// CPUs are not told apart, then the time, and at last rare stacks are shown as their callers. The
/// page says what is missing.
#[derive(Debug)]
pub struct FlameGraph<W> {
    out: W,
    form: FlameGraphForm,
    sides: Vec<Side>,
    /// The name of the recording that follows.
    other: Option<Box<[u8]>>,
    events: Events,
    threads: Interned<NamedThread>,
    thread_ids: HashMap<(ThreadId, CommId), u32, RandomState>,
    frames: ShownFrames,
    tree: Tree,
    /// For nodes in place of several frames in a row without a mapping, their maximum number.
    unmapped: HashMap<u32, u32, RandomState>,
    rows: Rows,
    given_up: GivenUp,
}

impl<W: Write> FlameGraph<W> {
    /// Returns a sink that writes to `out` at the end. `name` is shown as the name of the recording.
    pub fn new(out: W, form: FlameGraphForm, name: &[u8]) -> Self {
        FlameGraph {
            out,
            form,
            sides: vec![Side::new(name.into())],
            other: None,
            events: Events::default(),
            threads: Interned::default(),
            thread_ids: HashMap::default(),
            frames: ShownFrames::default(),
            tree: Tree::new(),
            unmapped: HashMap::default(),
            rows: Rows::default(),
            given_up: GivenUp::default(),
        }
    }

    /// Returns the sink with a second recording to compare with. Nothing is written after the first
    /// recording is finished: its samples follow in a second [`export`](crate::export) to the same
    /// sink.
    #[must_use]
    pub fn with_other(self, name: &[u8]) -> Self {
        FlameGraph {
            other: Some(name.into()),
            ..self
        }
    }

    /// Returns the names of the events that have samples, and their numbers of samples, in the order
    /// of the command line of `perf record`.
    pub fn events(&self) -> Vec<(&[u8], u64)> {
        self.events.with_samples()
    }

    /// Returns the number of a sample's thread.
    fn thread(&mut self, sample: &ResolvedSample<'_>) -> u32 {
        let sample = &sample.sample;
        let key = (sample.thread_id(), sample.comm_id());
        if let Some(&known) = self.thread_ids.get(&key) {
            return known;
        }
        let comm = sample.comm().into();
        let ids = sample.tid().map(|tid| (tid.pid, tid.tid));
        if self.threads.list.len() >= MOST_THREADS && !self.given_up.threads {
            self.forget_threads();
        }
        let ids = ids.filter(|_| !self.given_up.threads);
        let number = self.threads.number(NamedThread { comm, ids });
        self.thread_ids.insert(key, number);
        number
    }

    /// Tells threads apart only by their names.
    #[cold]
    fn forget_threads(&mut self) {
        self.given_up.threads = true;
        self.thread_ids.clear();
        let old = std::mem::take(&mut self.threads).list;
        let numbers: Vec<u32> = old
            .into_iter()
            .map(|NamedThread { comm, .. }| self.threads.number(NamedThread { comm, ids: None }))
            .collect();
        self.rows
            .change(|key| key.thread = number(&numbers, key.thread));
    }

    /// Sees a number of frames in a row without a mapping, which a node stands for.
    fn see_unmapped(&mut self, node: u32, len: u32) {
        let most = self.unmapped.entry(node).or_default();
        *most = len.max(*most);
    }

    /// Gives the nodes without a mapping their new numbers.
    fn renumber_unmapped(&mut self, numbers: &[u32]) {
        for (node, len) in std::mem::take(&mut self.unmapped) {
            let node = number(numbers, node);
            if self.is_unknown(node) {
                self.see_unmapped(node, len);
            }
        }
    }

    /// Returns whether nothing is known about the frame of a node.
    fn is_unknown(&self, node: u32) -> bool {
        let node = usize::try_from(node).ok();
        let node = node.and_then(|at| self.tree.nodes().get(at));
        let frame = node.and_then(|node| usize::try_from(node.frame).ok());
        let frame = frame.and_then(|at| self.frames.list().get_index(at));
        frame.is_some_and(|frame| *frame.name == *UNKNOWN.as_bytes())
    }

    /// Returns the node of a stack.
    fn node(&mut self, resolved: &ResolvedSample<'_>) -> u32 {
        let mut node = ROOT;
        // The frame without a mapping before this one, and how many there are.
        let (mut unmapped, mut len) = (None, 0_u32);
        for frame in resolved.frames.iter().rev() {
            let is_unmapped = frame.module.is_none() && frame.function.is_none();
            let number = self.frames.number(frame, resolved.tables);
            if is_unmapped && unmapped == Some(number) {
                len = len.saturating_add(1);
                self.see_unmapped(node, len);
                continue;
            }
            (unmapped, len) = (is_unmapped.then_some(number), 1);
            node = self.tree.child(node, number);
        }
        node
    }

    /// Shows rare stacks as their callers.
    #[cold]
    fn prune(&mut self) {
        let few = MOST_NODES / 2;
        while self.tree.nodes().len() > few || self.rows.are_many() {
            let own = self.rows.iter().map(|(key, sums)| (key.node, sums.samples));
            let sums = self.tree.sums(own);
            self.given_up.least = self.given_up.least.max(1).saturating_mul(2);
            let numbers = self.tree.prune(&sums, self.given_up.least);
            self.rows
                .change(|key| key.node = number(&numbers, key.node));
            self.renumber_unmapped(&numbers);
            if self.tree.nodes().len() == 1 {
                return;
            }
        }
    }
}

fn number(numbers: &[u32], old: u32) -> u32 {
    let new = usize::try_from(old).ok().and_then(|at| numbers.get(at));
    new.copied().unwrap_or(NONE)
}

impl Side {
    fn new(name: Box<[u8]>) -> Self {
        Side {
            name,
            first: None,
            length: 0,
            samples: 0,
        }
    }
}

impl<W: Write> Sink for FlameGraph<W> {
    fn sample(&mut self, resolved: &ResolvedSample<'_>) -> Result<()> {
        let sample = &resolved.sample;
        let counted = self.events.counted(resolved);
        if counted.is_empty() {
            return Ok(());
        }
        let thread = self.thread(resolved);
        let node = self.node(resolved);
        let number = self.sides.len().saturating_sub(1);
        let mut since = None;
        if let Some(side) = self.sides.last_mut() {
            side.samples = side.samples.saturating_add(counted.len() as u64);
            since = sample.time().map(|time| {
                let first = *side.first.get_or_insert(time);
                time.saturating_sub(first)
            });
            side.length = side.length.max(since.unwrap_or(0));
        }
        for (event, weight) in counted {
            let key = Key {
                side: u8::try_from(number).unwrap_or(u8::MAX),
                event,
                thread,
                cpu: sample.cpu().unwrap_or(NONE),
                part: NONE,
                node,
            };
            self.rows.add(key, since, weight);
        }
        let is_full = self.rows.are_many() && !self.rows.coarsen();
        if is_full || self.tree.nodes().len() > MOST_NODES {
            self.prune();
        }
        Ok(())
    }

    fn finish(&mut self, _: &Tables) -> Result<()> {
        if let Some(name) = self.other.take() {
            self.events.begin_next();
            self.sides.push(Side::new(name));
            self.thread_ids.clear();
            self.frames.forget_ids();
            return Ok(());
        }
        let numbers = self.events.sort();
        self.rows
            .change(|key| key.event = number(&numbers, key.event));
        match self.form {
            FlameGraphForm::Page => self.write_page(),
            FlameGraphForm::Picture => self.write_picture(),
        }
    }
}
