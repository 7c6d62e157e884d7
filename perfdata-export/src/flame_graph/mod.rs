//! Flame graphs: a web page to explore, or a picture.

mod numbered;
mod page;
mod picture;
mod rows;

use std::collections::HashMap;
use std::io::Write;

use foldhash::fast::RandomState;

use crate::error::Result;
use crate::events::Events;
use crate::parts::numbers::{of_part, renumbered};
use crate::parts::{Made, MadeOf, SinkPart};
use crate::resolve::{ResolvedSample, Sink};
use crate::shown::{Interned, Shown};
use crate::tables::{Tables, UNKNOWN};
use crate::tree::{ROOT, Tree};
pub(crate) use numbered::NumberedSamples;
use numbered::{NumberedSample, Numbering, StackNodes, ThreadKey};
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
    /// The numbers of threads, and what they are: all of the recording's so far.
    thread_numbers: HashMap<ThreadKey, u32, RandomState>,
    named_threads: HashMap<ThreadKey, NamedThread, RandomState>,
    frames: Interned<Shown>,
    /// The numbers that the samples of the recording have, if all of them come here, and what is known
    /// about those of each part.
    numbering: Numbering,
    parts: Vec<StackNodes>,
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
            thread_numbers: HashMap::default(),
            named_threads: HashMap::default(),
            frames: Interned::default(),
            numbering: Numbering::of_recording(0),
            parts: Vec::new(),
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

    /// Returns the number of a thread.
    fn thread(&mut self, key: ThreadKey) -> u32 {
        if let Some(&known) = self.thread_numbers.get(&key) {
            return known;
        }
        if self.threads.list.len() >= MOST_THREADS && !self.given_up.threads {
            self.forget_threads();
        }
        let Some(NamedThread { comm, ids }) = self.named_threads.get(&key).cloned() else {
            return NONE;
        };
        let ids = ids.filter(|_| !self.given_up.threads);
        let number = self.threads.number(NamedThread { comm, ids });
        self.thread_numbers.insert(key, number);
        number
    }

    /// Tells threads apart only by their names.
    #[cold]
    fn forget_threads(&mut self) {
        self.given_up.threads = true;
        self.thread_numbers.clear();
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
        let frame = node.and_then(|node| self.frames.get(node.frame));
        frame.is_some_and(is_unmapped)
    }

    /// Returns the node of a stack.
    fn node(&mut self, part: usize, stack: u32) -> u32 {
        let Some(numbers) = self.parts.get_mut(part) else {
            return ROOT;
        };
        if let Some(known) = numbers.node(stack) {
            return known;
        }
        let mut node = ROOT;
        // The frame without a mapping before this one, and how many there are.
        let (mut unmapped, mut len) = (None, 0_u32);
        let mut several = Vec::new();
        for &number in numbers.stacks.get(stack) {
            if unmapped == Some(number) {
                len = len.saturating_add(1);
                several.push((node, len));
                continue;
            }
            let is_unmapped = self.frames.get(number).is_some_and(is_unmapped);
            (unmapped, len) = (is_unmapped.then_some(number), 1);
            node = self.tree.child(node, number);
        }
        numbers.set_node(stack, node);
        for (node, len) in several {
            self.see_unmapped(node, len);
        }
        node
    }

    /// Returns what numbers the samples of the current recording.
    fn next_numbering(&self) -> Numbering {
        let before = self.sides.len().saturating_sub(1);
        Numbering::of_recording(u32::try_from(before).unwrap_or(u32::MAX))
    }

    /// Adds the samples that came here, not to parts.
    fn take_numbered(&mut self) {
        for samples in self.numbering.take() {
            self.add_samples(0, samples);
        }
    }

    /// Adds samples of a part.
    fn add_samples(&mut self, part: usize, new: NumberedSamples) {
        if let Some(numbers) = of_part(&mut self.parts, part) {
            let frames = new.frames.iter();
            let frames = frames.map(|frame| self.frames.number(frame.clone()));
            numbers.frames.extend(frames);
            numbers.add_stacks(&new);
        }
        self.named_threads.extend(new.threads);
        let events = self.events.join(new.events);
        for sample in new.samples {
            self.add_sample(part, &sample, number(&events, sample.event));
        }
    }

    fn add_sample(&mut self, part: usize, sample: &NumberedSample, event: u32) {
        let thread = self.thread(sample.thread);
        let node = self.node(part, sample.stack);
        let number = self.sides.len().saturating_sub(1);
        let mut since = None;
        if let Some(side) = self.sides.last_mut() {
            side.samples = side.samples.saturating_add(1);
            since = sample.time.map(|time| {
                let first = *side.first.get_or_insert(time);
                time.saturating_sub(first)
            });
            side.length = side.length.max(since.unwrap_or(0));
        }
        let key = Key {
            side: u8::try_from(number).unwrap_or(u8::MAX),
            event,
            thread,
            cpu: sample.cpu,
            part: NONE,
            node,
        };
        self.rows.add(key, since, sample.weight);
        if !sample.is_last {
            return;
        }
        let is_full = self.rows.are_many() && !self.rows.coarsen();
        if is_full || self.tree.nodes().len() > MOST_NODES {
            self.prune();
        }
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
            self.parts.iter_mut().for_each(StackNodes::forget_nodes);
            if self.tree.nodes().len() == 1 {
                return;
            }
        }
    }
}

fn number(numbers: &[u32], old: u32) -> u32 {
    renumbered(numbers, old).unwrap_or(NONE)
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

/// Returns whether nothing is known about a frame.
fn is_unmapped(frame: &Shown) -> bool {
    *frame.name == *UNKNOWN.as_bytes() && frame.module.is_empty()
}

/// Gives the samples of a part of a recording numbers.
#[derive(Debug)]
struct FlameGraphPart(Numbering);

impl Sink for FlameGraphPart {
    fn sample(&mut self, resolved: &ResolvedSample<'_>) -> Result<()> {
        self.0.add(resolved);
        Ok(())
    }
}

impl SinkPart for FlameGraphPart {
    fn take(&mut self, _: &Tables) -> Option<Made> {
        Some(Made::new(MadeOf::FlameGraph(self.0.take())))
    }
}

impl<W: Write> Sink for FlameGraph<W> {
    fn sample(&mut self, resolved: &ResolvedSample<'_>) -> Result<()> {
        self.numbering.add(resolved);
        if self.numbering.is_full() {
            self.take_numbered();
        }
        Ok(())
    }

    fn part(&self, _: usize) -> Option<Box<dyn SinkPart>> {
        Some(Box::new(FlameGraphPart(self.next_numbering())))
    }

    fn join(&mut self, made: Made) -> Result<()> {
        let part = made.part;
        if let MadeOf::FlameGraph(samples) = made.of {
            for samples in samples {
                self.add_samples(part, samples);
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: &Tables) -> Result<()> {
        self.take_numbered();
        if let Some(name) = self.other.take() {
            self.sides.push(Side::new(name));
            self.thread_numbers.clear();
            self.named_threads.clear();
            self.parts.clear();
            self.numbering = self.next_numbering();
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
