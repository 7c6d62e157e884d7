//! How often each branch was taken, with where the code after it was left.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::objects::Place;
use crate::counts::{Counts, Sums, line, numbers};
use crate::error::Result;

/// Maximum number of entries whose counts are in the table that is searched.
const MOST: usize = 1 << 17;

/// Number of entries that are counted without a search. They take 256 KiB: what the caches close to
/// most processors hold.
const RECENT: usize = 1 << 13;

/// A branch, and the next one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Entry {
    /// The branch instruction, or [`Place::SAMPLED`].
    pub from: Place,
    /// Its target.
    pub to: Place,
    /// The branch instruction that was executed next; outside if it is not known.
    pub end: Place,
}

impl Entry {
    /// Returns a number below [`RECENT`].
    #[inline]
    fn hash(&self) -> usize {
        const SHIFT: u32 = u64::BITS - RECENT.ilog2();
        let words = [self.from, self.to, self.end];
        let mixed = words.into_iter().fold(0, |mixed: u64, Place(word)| {
            (mixed.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        usize::try_from(mixed >> SHIFT).unwrap_or_default()
    }
}

/// An entry that was counted lately, with what is not yet in the table.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(32))]
struct Recent {
    entry: Entry,
    /// 0 if there is no entry.
    samples: u32,
    mispredicted: u32,
}

/// The counts. Their sums have the number of branches, and how many were mispredicted.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Each entry has one place here. Most branches of a program are among few: they need neither a
    /// search in a large table nor the numbers of their objects.
    recent: Vec<Recent>,
    near: HashMap<Entry, Sums, RandomState>,
    far: Counts,
    has_far: bool,
    branches: ObjectTally,
    /// Sampled addresses.
    samples: ObjectTally,
}

impl Entries {
    /// Returns the counts of one of several threads.
    pub fn of_part(parts: usize) -> Self {
        Entries {
            far: Counts::of_part(parts),
            ..Entries::default()
        }
    }

    /// Adds the counts of a thread.
    pub fn join(&mut self, mut part: Entries) -> Result<()> {
        part.settle()?;
        self.branches.join(&part.branches);
        self.samples.join(&part.samples);
        for (entry, sums) in part.near {
            self.add_sums(entry, sums)?;
        }
        if part.has_far {
            self.has_far = true;
            self.far.join(part.far, |half| half, line)?;
        }
        Ok(())
    }

    /// Counts an entry.
    #[inline]
    pub fn add(&mut self, entry: Entry, is_mispredicted: bool) -> Result<()> {
        if let Some(recent) = self.recent.get_mut(entry.hash())
            && recent.entry == entry
            && let Some(samples) = recent.samples.checked_add(1)
        {
            recent.samples = samples;
            // No more than samples.
            recent.mispredicted = recent.mispredicted.wrapping_add(is_mispredicted.into());
            return Ok(());
        }
        self.replace(Recent {
            entry,
            samples: 1,
            mispredicted: is_mispredicted.into(),
        })
    }

    /// Puts an entry where another one may be.
    #[inline(never)]
    fn replace(&mut self, new: Recent) -> Result<()> {
        if self.recent.is_empty() {
            self.recent.resize(RECENT, Recent::default());
        }
        let old = self.recent.get_mut(new.entry.hash());
        match old.map(|old| std::mem::replace(old, new)) {
            Some(old) => self.count(old),
            None => Ok(()),
        }
    }

    /// Counts what was counted lately.
    fn count(&mut self, recent: Recent) -> Result<()> {
        let (entry, samples) = (recent.entry, u64::from(recent.samples));
        if samples == 0 {
            return Ok(());
        }
        let (from, to) = (entry.from.object(), entry.to.object());
        if entry.from == Place::SAMPLED {
            self.samples.count(to, to, samples);
        } else {
            self.branches.count(from, to, samples);
        }
        let weight = recent.mispredicted.into();
        self.add_sums(entry, Sums { samples, weight })
    }

    /// Counts all that was counted lately, which [`tally`](Self::tally) needs.
    pub fn settle(&mut self) -> Result<()> {
        let mut recent = std::mem::take(&mut self.recent).into_iter();
        recent.try_for_each(|recent| self.count(recent))
    }

    fn add_sums(&mut self, entry: Entry, more: Sums) -> Result<()> {
        if let Some(sums) = self.near.get_mut(&entry) {
            sums.add(more);
            return Ok(());
        }
        self.near.insert(entry, more);
        if self.near.len() >= MOST {
            self.move_far()?;
        }
        Ok(())
    }

    /// Returns the number of branches of each object; without branches, of sampled addresses.
    pub fn tally(&self) -> &ObjectTally {
        match self.branches.total {
            0 => &self.samples,
            _ => &self.branches,
        }
    }

    fn move_far(&mut self) -> Result<()> {
        self.has_far = true;
        for (entry, sums) in self.near.drain() {
            let words = [entry.from, entry.to, entry.end].map(|place| halves(place.0));
            self.far.add_sums(words.as_flattened(), sums, line)?;
        }
        Ok(())
    }

    /// Passes all entries with their sums to `see`, in any order.
    pub fn finish(mut self, see: &mut dyn FnMut(Entry, Sums) -> Result<()>) -> Result<()> {
        self.settle()?;
        if !self.has_far {
            return self
                .near
                .into_iter()
                .try_for_each(|(entry, sums)| see(entry, sums));
        }
        self.move_far()?;
        self.far.finish(line, &mut |line, sums| {
            let mut words = numbers(line);
            let mut place = || {
                let mut half = || words.next().map_or(0, u64::from);
                Place(half() << 32 | half())
            };
            let (from, to, end) = (place(), place(), place());
            see(Entry { from, to, end }, sums)
        })
    }
}

/// How many branches or samples there are, altogether and of each object.
#[derive(Debug, Default)]
pub(super) struct ObjectTally {
    total: u64,
    /// By the number of the object.
    by_object: Vec<u64>,
}

impl ObjectTally {
    /// Counts branches from an object to an object, which may be the same.
    fn count(&mut self, from: u16, to: u16, number: u64) {
        self.total = self.total.saturating_add(number);
        self.count_of(to, number);
        if from != to {
            self.count_of(from, number);
        }
    }

    fn count_of(&mut self, object: u16, number: u64) {
        let at = usize::from(object);
        if self.by_object.len() <= at {
            self.by_object.resize(at.saturating_add(1), 0);
        }
        if let Some(sum) = self.by_object.get_mut(at) {
            *sum = sum.saturating_add(number);
        }
    }

    /// Adds the numbers of a thread.
    fn join(&mut self, part: &ObjectTally) {
        self.total = self.total.saturating_add(part.total);
        let len = self.by_object.len().max(part.by_object.len());
        self.by_object.resize(len, 0);
        for (sum, more) in self.by_object.iter_mut().zip(&part.by_object) {
            *sum = sum.saturating_add(*more);
        }
    }

    /// Returns the number of all.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns how many each object has, and its number, in the order of the numbers.
    pub fn by_object(&self) -> impl Iterator<Item = (u64, u16)> {
        let sums = self.by_object.iter().zip(0..).skip(1);
        let sums = sums.filter(|&(&sum, _)| sum > 0);
        sums.map(|(&sum, number)| (sum, number))
    }
}

/// Returns the high and the low half of a word.
pub(super) fn halves(word: u64) -> [u32; 2] {
    let half = |word: u64| u32::try_from(word & u64::from(u32::MAX)).unwrap_or_default();
    [half(word >> 32), half(word)]
}
