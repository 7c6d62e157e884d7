//! Samples with the numbers of their frames: what a thread makes of its part of the samples.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use perfdata_session::ThreadId;

use super::FrameKey;
use crate::error::Result;
use crate::events::Events;
use crate::parts::{Made, MadeOf, SinkPart};
use crate::places::Places;
use crate::resolve::{ResolvedFrame, ResolvedSample, Sink};
use crate::shown::Interned;
use crate::stack_list::StackList;
use crate::table_entries::{TableEntries, TakenEntries};
use crate::tables::Tables;

/// Number of samples that are taken at once.
const MOST_WAITING: usize = 1 << 12;

/// An event of a sample that counts, by its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberedSample {
    pub stack: u32,
    pub event: u32,
    pub thread: ThreadId,
    pub weight: u64,
}

/// Samples, and what is new in them.
#[derive(Debug, Default)]
pub(crate) struct SpeedscopeSamples {
    /// Further functions and modules, if these are samples of a part.
    pub(super) entries: TableEntries,
    /// Further frames.
    pub(super) frames: Vec<FrameKey>,
    /// All events, with the numbers of these samples.
    pub(super) events: Events,
    /// The names of further threads by events.
    pub(super) threads: Vec<(u32, ThreadId, Vec<u8>)>,
    pub(super) stacks: StackList,
    pub(super) samples: Vec<NumberedSample>,
}

/// Numbers the frames of samples.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    frames: Interned<FrameKey>,
    /// How many of the frames were taken.
    taken: usize,
    /// The numbers of the frames at places.
    places: Places,
    events: Events,
    threads: HashSet<(u32, ThreadId), RandomState>,
    waiting: SpeedscopeSamples,
    stack: Vec<u32>,
}

impl Numbering {
    /// Adds a sample.
    pub fn add(&mut self, resolved: &ResolvedSample<'_>) {
        let sample = &resolved.sample;
        let counted = self.events.counted(resolved);
        if counted.is_empty() {
            return;
        }
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        let frames = resolved.frames.iter().rev();
        stack.extend(frames.map(|frame| self.frame(frame, resolved.tables)));
        let number = self.waiting.stacks.push(stack.iter().copied());
        self.stack = stack;
        let thread = sample.thread_id();
        for (event, weight) in counted {
            if self.threads.insert((event, thread)) {
                let ids = sample.tid().map_or(String::new(), |tid| {
                    let (pid, tid) = (tid.pid.cast_signed(), tid.tid.cast_signed());
                    format!(" {pid}/{tid}")
                });
                let name = self.events.name(event);
                let name = [name, b": ", sample.comm(), ids.as_bytes()].concat();
                self.waiting.threads.push((event, thread, name));
            }
            self.waiting.samples.push(NumberedSample {
                stack: number,
                event,
                thread,
                weight,
            });
        }
    }

    fn frame(&mut self, frame: &ResolvedFrame, tables: &Tables) -> u32 {
        // The line is also that of the place, except for inlined functions, which have none.
        if let Some(number) = self.places.get(tables, frame.place) {
            return number;
        }
        let number = self
            .frames
            .number((frame.function, frame.module, frame.line));
        self.places.set(tables, frame.place, number);
        number
    }

    /// Returns whether so many samples wait that they should be taken.
    pub fn is_full(&self) -> bool {
        self.waiting.samples.len() >= MOST_WAITING
    }

    /// Returns all samples since the last call.
    pub fn take(&mut self) -> SpeedscopeSamples {
        let new = self.frames.list.iter().skip(self.taken);
        self.waiting.frames.extend(new);
        self.taken = self.frames.list.len();
        self.waiting.events = self.events.take_samples();
        std::mem::take(&mut self.waiting)
    }
}

/// Numbers the frames of a part of the samples.
#[derive(Debug, Default)]
pub(super) struct SpeedscopePart {
    numbering: Numbering,
    entries: TakenEntries,
}

impl Sink for SpeedscopePart {
    fn sample(&mut self, resolved: &ResolvedSample<'_>) -> Result<()> {
        self.numbering.add(resolved);
        Ok(())
    }
}

impl SinkPart for SpeedscopePart {
    fn take(&mut self, tables: &Tables) -> Option<Made> {
        let samples = SpeedscopeSamples {
            entries: self.entries.take(tables),
            ..self.numbering.take()
        };
        Some(Made::new(MadeOf::Speedscope(Box::new(samples))))
    }
}
