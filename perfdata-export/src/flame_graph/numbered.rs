//! Samples as numbers of stacks, threads and events: what a thread makes of its part of the samples, and
//! what the graph needs of them.

use std::collections::HashSet;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use perfdata_session::{CommId, ThreadId};

use super::NamedThread;
use super::rows::NONE;
use crate::events::Events;
use crate::hash_index::HashIndex;
use crate::parts::numbers::renumbered;
use crate::places::Places;
use crate::resolve::ResolvedSample;
use crate::shown::{Shown, ShownFrames};
use crate::stack_list::StackList;

/// Maximum of all numbers of frames in stacks, after which stacks are numbered from 0 again.
const MOST_NUMBERS: usize = 1 << 22;

/// Number of samples that are taken at once.
const MOST_WAITING: usize = 1 << 12;

/// A thread under a name, as sessions number it.
pub(super) type ThreadKey = (ThreadId, CommId);

/// An event of a sample that counts, by its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberedSample {
    pub stack: u32,
    pub event: u32,
    pub thread: ThreadKey,
    pub cpu: u32,
    pub time: Option<u64>,
    pub weight: u64,
    /// Whether the sample counts no more events.
    pub is_last: bool,
}

/// Samples, and what is new in them.
#[derive(Debug, Default)]
pub(crate) struct NumberedSamples {
    /// Whether stacks are numbered from 0 again.
    pub(super) is_restarted: bool,
    /// Further frames, whose numbers follow those that are known.
    pub(super) frames: Vec<Shown>,
    /// Further stacks, from the outermost caller on.
    pub(super) stacks: StackList,
    /// Further threads.
    pub(super) threads: Vec<(ThreadKey, NamedThread)>,
    /// All events, with the numbers of these samples.
    pub(super) events: Events,
    pub(super) samples: Vec<NumberedSample>,
}

/// Gives stacks numbers.
#[derive(Debug)]
pub(super) struct Numbering {
    frames: ShownFrames,
    /// How many of the frames were taken.
    taken: usize,
    /// The numbers of the frames at places.
    places: Places,
    stacks: StackList,
    known: HashIndex,
    hasher: RandomState,
    threads: HashSet<ThreadKey, RandomState>,
    events: Events,
    /// What was not taken yet, and what precedes it if stacks were numbered again since.
    waiting: NumberedSamples,
    before: Vec<NumberedSamples>,
    stack: Vec<u32>,
}

impl Numbering {
    /// Returns what numbers the samples of the recording with this number.
    pub fn of_recording(recording: u32) -> Self {
        Numbering {
            frames: ShownFrames::default(),
            taken: 0,
            places: Places::default(),
            stacks: StackList::default(),
            known: HashIndex::default(),
            hasher: RandomState::default(),
            threads: HashSet::default(),
            events: Events::of_recording(recording),
            waiting: NumberedSamples::default(),
            before: Vec::new(),
            stack: Vec::new(),
        }
    }

    /// Adds a sample.
    pub fn add(&mut self, resolved: &ResolvedSample<'_>) {
        let counted = self.events.counted(resolved);
        if counted.is_empty() {
            return;
        }
        let stack = self.stack(resolved);
        let sample = &resolved.sample;
        let thread = (sample.thread_id(), sample.comm_id());
        let is_new = self.threads.insert(thread);
        let waiting = &mut self.waiting;
        if is_new {
            let named = NamedThread {
                comm: sample.comm().into(),
                ids: sample.tid().map(|tid| (tid.pid, tid.tid)),
            };
            waiting.threads.push((thread, named));
        }
        let mut left = counted.len();
        for (event, weight) in counted {
            left = left.saturating_sub(1);
            waiting.samples.push(NumberedSample {
                stack,
                event,
                thread,
                cpu: sample.cpu().unwrap_or(NONE),
                time: sample.time(),
                weight,
                is_last: left == 0,
            });
        }
    }

    /// Returns the number of the stack of a sample.
    fn stack(&mut self, resolved: &ResolvedSample<'_>) -> u32 {
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        for frame in resolved.frames.iter().rev() {
            let number = match self.places.get(resolved.tables, frame.place) {
                Some(number) => number,
                None => {
                    let number = self.frames.number(frame, resolved.tables);
                    self.places.set(resolved.tables, frame.place, number);
                    number
                }
            };
            stack.push(number);
        }
        let hash = self.hasher.hash_one(stack.as_slice());
        let stacks = &self.stacks;
        let known = self
            .known
            .find(hash, |number| stacks.get(number) == stack.as_slice());
        let number = known.unwrap_or_else(|| self.new_stack(hash, &stack));
        self.stack = stack;
        number
    }

    fn new_stack(&mut self, hash: u64, stack: &[u32]) -> u32 {
        if self.stacks.size() > MOST_NUMBERS {
            self.stacks.clear();
            self.known.clear();
            let before = self.take_waiting();
            self.before.push(before);
            self.waiting.is_restarted = true;
        }
        self.waiting.stacks.push(stack.iter().copied());
        let number = self.stacks.push(stack.iter().copied());
        self.known.add(hash, number);
        number
    }

    /// Returns the samples that wait, with new frames and the events.
    fn take_waiting(&mut self) -> NumberedSamples {
        let new = self.frames.list().iter().skip(self.taken);
        self.waiting.frames.extend(new.cloned());
        self.taken = self.frames.list().len();
        self.waiting.events = self.events.take_samples();
        std::mem::take(&mut self.waiting)
    }

    /// Returns whether so many samples wait that they should be taken.
    pub fn is_full(&self) -> bool {
        self.waiting.samples.len() >= MOST_WAITING
    }

    /// Returns all samples since the last call.
    pub fn take(&mut self) -> Vec<NumberedSamples> {
        let waiting = self.take_waiting();
        self.before.push(waiting);
        std::mem::take(&mut self.before)
    }
}

/// What the graph knows about the numbers of a [`Numbering`].
#[derive(Debug, Default)]
pub(super) struct StackNodes {
    /// The own number of each frame.
    pub frames: Vec<u32>,
    /// Stacks of own numbers.
    pub stacks: StackList,
    /// The node of each stack, as far as it is known.
    pub nodes: Vec<Option<u32>>,
}

impl StackNodes {
    /// Takes over new stacks.
    pub fn add_stacks(&mut self, new: &NumberedSamples) {
        if new.is_restarted {
            self.stacks.clear();
            self.nodes.clear();
        }
        let frames = &self.frames;
        for stack in new.stacks.iter() {
            let numbers = stack.iter();
            let numbers = numbers.map(|&number| renumbered(frames, number).unwrap_or(NONE));
            self.stacks.push(numbers);
        }
        self.nodes.resize(self.stacks.len(), None);
    }

    /// Returns the node of a stack, if it is known.
    pub fn node(&self, stack: u32) -> Option<u32> {
        *self.nodes.get(usize::try_from(stack).ok()?)?
    }

    /// Sets the node of a stack.
    pub fn set_node(&mut self, stack: u32, node: u32) {
        let at = usize::try_from(stack).ok();
        if let Some(known) = at.and_then(|at| self.nodes.get_mut(at)) {
            *known = Some(node);
        }
    }

    /// Forgets all nodes.
    pub fn forget_nodes(&mut self) {
        self.nodes.fill(None);
    }
}
