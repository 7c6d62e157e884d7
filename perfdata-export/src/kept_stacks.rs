//! Stacks that repeat: their frames are resolved once, and sinks know them by a number.

use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Range;

use foldhash::fast::RandomState;
use perfdata_session::{DsoKind, FramesKey, FramesState};

use crate::places::ByNumber;
use crate::resolve::ResolvedFrame;
use crate::tables::Tables;

/// Maximum size of what is kept in bytes.
const MOST_MEMORY: usize = 2 << 20;

/// Number of the hashes by which stacks are found, a power of two.
const SLOTS: usize = 1 << 13;

/// Number of stacks after which is decided whether stacks are searched.
const DECIDED: u32 = 1 << 12;

/// How often stacks are not searched for as long as that, if few of them repeat.
const PAUSED: u32 = 8;

/// The number of a stack that is kept. Samples with the same number have equal frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptId {
    /// Changes when all stacks are forgotten.
    generation: u32,
    number: u32,
}

/// What a sink knows about stacks.
#[derive(Debug)]
pub(crate) struct ByKept<T>(ByNumber<T>);

impl<T> Default for ByKept<T> {
    fn default() -> Self {
        ByKept(ByNumber::default())
    }
}

impl<T: Clone> ByKept<T> {
    /// Returns what is known about a stack.
    #[inline]
    pub fn get(&self, stack: Option<KeptId>) -> Option<&T> {
        let KeptId { generation, number } = stack?;
        self.0.get(generation, usize::try_from(number).ok()?)
    }

    /// Sets what is known about a stack.
    pub fn set(&mut self, stack: Option<KeptId>, known: T) {
        if let Some(KeptId { generation, number }) = stack
            && let Ok(number) = usize::try_from(number)
        {
            self.0.set(generation, number, known);
        }
    }
}

/// A stack.
#[derive(Debug)]
struct Stack {
    hash: u64,
    state: FramesState,
    words: Range<usize>,
    frames: Range<usize>,
    /// Number of frames without a function.
    unnamed: u64,
    /// The process, if generated code is among the frames.
    pid: Option<u32>,
}

/// Stacks that were seen several times, in a bounded memory: all are forgotten when it is full.
#[derive(Debug)]
pub(crate) struct KeptStacks {
    hasher: RandomState,
    /// The high half of the last hash with each of the low halves: most stacks never repeat, and
    /// are not kept.
    seen: Box<[u32]>,
    /// The number of the last kept stack with each of the low halves of hashes, from 1.
    slots: Box<[u32]>,
    list: Vec<Stack>,
    words: Vec<u8>,
    frames: Vec<ResolvedFrame>,
    generation: u32,
    /// What the frames depend on: [`Tables::epoch`], and
    /// [`Needs::before_exec`](crate::Needs::before_exec).
    settings: (u32, bool),
    searched: Searched,
    most_memory: usize,
}

/// What the search for stacks is worth: it costs as much as resolving a few frames, and most stacks
/// of some recordings never repeat.
#[derive(Debug, Default)]
struct Searched {
    /// Number of stacks that were searched.
    stacks: u32,
    /// Size of their callchains, and of those that were found, in bytes.
    all: usize,
    found: usize,
    /// Number of stacks that are not searched.
    paused: u32,
}

impl Searched {
    /// Returns whether the next stack is searched.
    fn is_next(&mut self) -> bool {
        match self.paused.checked_sub(1) {
            Some(paused) => {
                self.paused = paused;
                false
            }
            None => true,
        }
    }

    /// Counts a stack that was searched, whose callchain has this size.
    fn count(&mut self, size: usize, is_found: bool) {
        self.stacks = self.stacks.saturating_add(1);
        self.all = self.all.saturating_add(size);
        if is_found {
            self.found = self.found.saturating_add(size);
        }
        if self.stacks >= DECIDED {
            let is_worth_it = self.found >= self.all / 2;
            *self = Searched {
                paused: if is_worth_it { 0 } else { DECIDED * PAUSED },
                ..Searched::default()
            };
        }
    }
}

impl Default for KeptStacks {
    fn default() -> Self {
        KeptStacks {
            hasher: RandomState::default(),
            seen: vec![0; SLOTS].into(),
            slots: vec![0; SLOTS].into(),
            list: Vec::new(),
            words: Vec::new(),
            frames: Vec::new(),
            generation: 0,
            settings: (0, false),
            searched: Searched::default(),
            most_memory: MOST_MEMORY,
        }
    }
}

/// Returns the two halves of a hash: the index among the [`SLOTS`], and the rest.
fn halves(hash: u64) -> (usize, u32) {
    let low = usize::try_from(hash & u64::from(u32::MAX)).unwrap_or_default();
    let high = u32::try_from(hash >> 32).unwrap_or_default();
    (low & (SLOTS - 1), high)
}

impl KeptStacks {
    /// Returns the hash of what the frames of a sample depend on.
    pub fn hash(&self, key: &FramesKey<'_>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key.words);
        key.state.hash(&mut hasher);
        hasher.finish()
    }

    /// Forgets all stacks if they were resolved otherwise.
    pub fn set(&mut self, tables: &Tables, before_exec: bool) {
        let settings = (tables.epoch, before_exec);
        if self.settings != settings {
            self.settings = settings;
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.slots.fill(0);
        self.list.clear();
        self.words.clear();
        self.frames.clear();
        self.generation = self.generation.wrapping_add(1);
    }

    /// Returns whether the next stack is searched.
    pub fn is_searched(&mut self) -> bool {
        self.searched.is_next()
    }

    /// Returns the stack of a sample in the process `pid`, if it is kept. `hash` is that of `key`.
    pub fn find(&mut self, hash: u64, key: &FramesKey<'_>, pid: Option<u32>) -> Option<KeptId> {
        let found = self.known(hash, key, pid);
        self.searched.count(key.words.len(), found.is_some());
        found
    }

    fn known(&self, hash: u64, key: &FramesKey<'_>, pid: Option<u32>) -> Option<KeptId> {
        let number = self.slots.get(halves(hash).0)?.checked_sub(1)?;
        let stack = self.list.get(usize::try_from(number).ok()?)?;
        let is_it = stack.hash == hash
            && stack.state == key.state
            && (stack.pid.is_none() || stack.pid == pid)
            && self.words.get(stack.words.clone()) == Some(key.words);
        is_it.then_some(KeptId {
            generation: self.generation,
            number,
        })
    }

    /// Returns the frames of a stack, and the number of those without a function.
    pub fn get(&self, id: KeptId) -> Option<(&[ResolvedFrame], u64)> {
        let stack = self.list.get(usize::try_from(id.number).ok()?)?;
        let frames = self.frames.get(stack.frames.clone())?;
        Some((frames, stack.unnamed))
    }

    /// Keeps the frames of a stack that was not found, if one with its hash was seen before.
    pub fn add(
        &mut self,
        hash: u64,
        key: &FramesKey<'_>,
        pid: Option<u32>,
        (frames, unnamed): (&[ResolvedFrame], u64),
        tables: &Tables,
    ) -> Option<KeptId> {
        let (slot, rest) = halves(hash);
        let seen = self.seen.get_mut(slot)?;
        if std::mem::replace(seen, rest) != rest {
            return None;
        }
        let size = [key.words.len(), size_of_val(frames), size_of::<Stack>()];
        let size = size.into_iter().fold(self.held(), usize::saturating_add);
        if size > self.most_memory {
            self.clear();
        }
        let is_generated = |frame: &ResolvedFrame| {
            let module = frame.module.and_then(|id| tables.module(id));
            module.is_some_and(|module| module.kind == DsoKind::Anonymous)
        };
        let (words, first) = (self.words.len(), self.frames.len());
        self.words.extend_from_slice(key.words);
        self.frames.extend_from_slice(frames);
        self.list.push(Stack {
            hash,
            state: key.state,
            words: words..self.words.len(),
            frames: first..self.frames.len(),
            unnamed,
            pid: pid.filter(|_| frames.iter().any(is_generated)),
        });
        let number = u32::try_from(self.list.len()).ok()?;
        *self.slots.get_mut(slot)? = number;
        Some(KeptId {
            generation: self.generation,
            number: number.checked_sub(1)?,
        })
    }

    fn held(&self) -> usize {
        let list = self.list.len().saturating_mul(size_of::<Stack>());
        list.saturating_add(self.words.len())
            .saturating_add(size_of_val(self.frames.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use perfdata_core::record::CpuMode;

    use super::*;

    /// The words and states of all different callchains of a recording.
    fn keys() -> Vec<(Vec<u8>, FramesState)> {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../fixtures/6.1-x86_64-file-g.data"
        );
        let mut samples = perfdata_session::open(path).unwrap();
        let mut keys = Vec::new();
        while let Some(sample) = samples.next().unwrap() {
            let key = sample.frames_key().unwrap();
            let key = (key.words.to_vec(), key.state);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        assert!(keys.len() > 10);
        keys
    }

    fn key((words, state): &(Vec<u8>, FramesState)) -> FramesKey<'_> {
        FramesKey {
            words,
            state: *state,
        }
    }

    fn frame(address: u64) -> ResolvedFrame {
        ResolvedFrame::unmapped(address, CpuMode::USER)
    }

    #[test]
    fn a_stack_is_kept_when_it_is_seen_again() {
        let (keys, tables) = (keys(), Tables::default());
        let (mut stacks, first) = (KeptStacks::default(), key(&keys[0]));
        let hash = stacks.hash(&first);
        let frames = [frame(1), frame(2)];
        let mut add = || stacks.add(hash, &first, None, (&frames, 2), &tables);
        assert_eq!(add(), None);
        let added = add();
        assert!(added.is_some());
        assert_eq!(stacks.find(hash, &first, None), added);
        assert_eq!(stacks.get(added.unwrap()), Some((&frames[..], 2)));
        assert_eq!(
            stacks.find(stacks.hash(&key(&keys[1])), &key(&keys[1]), None),
            None
        );
        stacks.set(&tables, true);
        assert_eq!(stacks.find(hash, &first, None), None, "other frames");
    }

    #[test]
    fn stacks_with_the_same_hash_are_told_apart() {
        let (keys, tables) = (keys(), Tables::default());
        let mut stacks = KeptStacks::default();
        let mut known = ByKept::default();
        let mut found = Vec::new();
        for round in 0..3 {
            for (number, of) in keys.iter().enumerate() {
                let (of, frames) = (key(of), [frame(number as u64)]);
                let id = stacks.find(7, &of, None);
                let id = id.or_else(|| stacks.add(7, &of, None, (&frames, 1), &tables));
                if let Some(id) = id {
                    assert_eq!(stacks.get(id), Some((&frames[..], 1)), "{number}");
                    assert!(known.get(Some(id)).is_none_or(|known| *known == number));
                    known.set(Some(id), number);
                    found.push((round, number));
                }
            }
        }
        assert!(found.len() >= 2 * keys.len());
    }

    #[test]
    fn stacks_are_not_searched_if_few_repeat() {
        let repeating = |is_found: bool| {
            let mut searched = Searched::default();
            let mut count = 0;
            for _ in 0..10 * DECIDED {
                if searched.is_next() {
                    searched.count(64, is_found);
                    count += 1;
                }
            }
            count
        };
        assert_eq!(repeating(true), 10 * DECIDED);
        assert_eq!(repeating(false), 2 * DECIDED);
    }

    #[test]
    fn all_stacks_are_forgotten_when_the_memory_is_full() {
        let (keys, tables) = (keys(), Tables::default());
        let mut stacks = KeptStacks {
            most_memory: 2048,
            ..KeptStacks::default()
        };
        let mut known = ByKept::default();
        let mut ids = Vec::new();
        for (number, of) in keys.iter().enumerate() {
            let (of, frames) = (key(of), [frame(number as u64); 3]);
            let hash = stacks.hash(&of);
            let mut add = || stacks.add(hash, &of, None, (&frames, 3), &tables);
            let id = [add(), add()][1];
            assert!(id.is_some() && stacks.held() <= 2048 + 512);
            assert_eq!(known.get(id), None, "a number of another stack");
            known.set(id, number);
            ids.push(id);
        }
        assert_ne!(stacks.generation, 0);
        assert_eq!(known.get(ids[0]), None);
        assert_eq!(known.get(ids[ids.len() - 1]), Some(&(ids.len() - 1)));
    }
}
