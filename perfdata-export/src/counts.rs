//! Counts of stacks in a bounded memory: parts of them in temporary files. Sorted parts are merged at
//! the end.

use std::hash::BuildHasher;
use std::io::{self, Read};
use std::ops::Range;

use foldhash::fast::RandomState;
use perfdata_core::spool::{Entry, Runs, Writer, temporary_file};

use crate::blocks::Blocks;
use crate::error::{Error, Result};
use crate::hash_index::HashIndex;

/// Default size of the counts in memory in bytes.
const MOST_MEMORY: usize = 64 << 20;

/// The same if a stack may be counted in several parts: there is nothing to merge.
const MOST_MEMORY_IN_PARTS: usize = 8 << 20;

/// Approximate size of an entry in bytes, without the numbers of its stack.
const ENTRY: usize = 64;

/// The number of samples with a stack, and the sum of their weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Sums {
    pub samples: u64,
    pub weight: u64,
}

impl Sums {
    /// Adds other sums.
    pub fn add(&mut self, other: Sums) {
        self.samples = self.samples.saturating_add(other.samples);
        self.weight = self.weight.saturating_add(other.weight);
    }
}

/// Receives a line and its sums.
type Put<'a> = &'a mut dyn FnMut(&[u8], Sums) -> Result<()>;

/// The number of items for the sums of a stack, before its length.
const SUMS: usize = 4;

/// The number of items before the numbers of a stack.
const HEAD: usize = SUMS + 1;

/// Returns the halves of sums.
fn words(sums: Sums) -> [u32; SUMS] {
    let half = |number: u64| u32::try_from(number).unwrap_or_default();
    let halves = |number: u64| [half(number >> 32), half(number & u64::from(u32::MAX))];
    let ([one, two], [three, four]) = (halves(sums.samples), halves(sums.weight));
    [one, two, three, four]
}

/// The sums of each stack, which is a list of numbers.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Of each stack the [`words`] of its sums, its length and its numbers, in the order in which the
    /// stacks were added first: a search finds all of these in one place.
    numbers: Blocks<u32>,
    known: HashIndex,
    hasher: RandomState,
    /// The length and the numbers of the stack that is searched.
    searched: Vec<u32>,
    held: usize,
    most_memory: usize,
    /// Sorted lines that were in memory.
    runs: Runs<CountedLine>,
    /// Whether a stack may be counted in several parts. Then, these are one file, and their lines are
    /// those of [`line`].
    is_in_parts: bool,
    parts: Option<Writer>,
}

impl Default for Counts {
    fn default() -> Self {
        Counts {
            numbers: Blocks::default(),
            known: HashIndex::default(),
            hasher: RandomState::default(),
            searched: Vec::new(),
            held: 0,
            most_memory: MOST_MEMORY,
            runs: Runs::default(),
            is_in_parts: false,
            parts: None,
        }
    }
}

/// A line in a temporary file.
#[derive(Debug, Default)]
struct CountedLine {
    bytes: Vec<u8>,
    sums: Sums,
}

impl Entry for CountedLine {
    type Key = Vec<u8>;

    fn key(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    fn write(&self, to: &mut Writer) -> io::Result<()> {
        write_line(&self.bytes, self.sums, to)
    }

    fn read(&mut self, from: &mut impl Read) -> io::Result<()> {
        let mut number = || {
            let mut bytes = [0; 8];
            from.read_exact(&mut bytes)?;
            Ok::<u64, io::Error>(u64::from_le_bytes(bytes))
        };
        self.sums = Sums {
            samples: number()?,
            weight: number()?,
        };
        let len = number()?;
        self.bytes.clear();
        from.take(len).read_to_end(&mut self.bytes)?;
        Ok(())
    }

    fn join(&mut self, next: &CountedLine) -> bool {
        let is_same = self.bytes == next.bytes;
        if is_same {
            self.sums.add(next.sums);
        }
        is_same
    }
}

/// The lines of the stacks that were in memory.
#[derive(Debug, Default)]
struct Lines {
    bytes: Vec<u8>,
    /// Where each line is.
    list: Vec<(Range<usize>, Sums)>,
}

impl Lines {
    fn line(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.get(range.clone()).unwrap_or_default()
    }

    /// Sorts the lines by bytes, and adds the sums of equal lines: different stacks may have the
    /// same one.
    fn sort(&mut self) {
        let mut list = std::mem::take(&mut self.list);
        list.sort_unstable_by(|one, other| self.line(&one.0).cmp(self.line(&other.0)));
        list.dedup_by(|later, first| {
            let is_same = self.line(&later.0) == self.line(&first.0);
            if is_same {
                first.1.add(later.1);
            }
            is_same
        });
        self.list = list;
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], Sums)> {
        let lines = self.list.iter();
        lines.map(|(range, sums)| (self.line(range), *sums))
    }
}

impl Counts {
    /// Returns counts for [`finish_numbers`](Self::finish_numbers).
    pub fn in_parts() -> Self {
        Counts {
            most_memory: MOST_MEMORY_IN_PARTS,
            is_in_parts: true,
            ..Counts::default()
        }
    }

    /// Returns the length of the stack at an index of the numbers; 0 if there is none.
    fn len_at(&self, at: usize) -> usize {
        let len = self.numbers.get(at.saturating_add(SUMS)).copied();
        len.and_then(|len| usize::try_from(len).ok())
            .unwrap_or_default()
    }

    /// Returns the sums of the stack at an index of the numbers.
    #[inline]
    fn sums_at(&self, at: usize) -> Option<Sums> {
        let word = |number: usize| {
            let word = self.numbers.get(at.saturating_add(number));
            word.copied().map(u64::from)
        };
        Some(Sums {
            samples: word(0)? << 32 | word(1)?,
            weight: word(2)? << 32 | word(3)?,
        })
    }

    /// Adds sums to the stack at an index of the numbers.
    #[inline]
    fn count(&mut self, at: usize, more: Sums) -> Option<()> {
        let mut sums = self.sums_at(at)?;
        sums.add(more);
        for (number, word) in words(sums).into_iter().enumerate() {
            *self.numbers.get_mut(at.saturating_add(number))? = word;
        }
        Some(())
    }

    /// Adds a sample with a weight to its stack. `text` appends the line of a stack.
    pub fn add(
        &mut self,
        stack: &[u32],
        weight: u64,
        text: impl Fn(&[u32], &mut Vec<u8>),
    ) -> Result<()> {
        self.add_sums(stack, Sums { samples: 1, weight }, text)
    }

    /// Adds sums to those of a stack. `text` appends the line of a stack.
    pub fn add_sums(
        &mut self,
        stack: &[u32],
        sums: Sums,
        text: impl Fn(&[u32], &mut Vec<u8>),
    ) -> Result<()> {
        // The memory is full long before.
        let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let mut searched = std::mem::take(&mut self.searched);
        searched.clear();
        searched.push(short(stack.len()));
        searched.extend_from_slice(stack);
        let hash = self.hasher.hash_one(searched.as_slice());
        let numbers = &self.numbers;
        let at = |start: u32| usize::try_from(start).unwrap_or(usize::MAX);
        let is_it = |start: u32| numbers.is_at(at(start).saturating_add(SUMS), &searched);
        if let Some(start) = self.known.find(hash, is_it) {
            self.searched = searched;
            self.count(at(start), sums);
            return Ok(());
        }
        let start = short(self.numbers.len());
        self.known.add(hash, start);
        self.numbers.extend(&words(sums));
        self.numbers.extend(&searched);
        self.searched = searched;
        let size = size_of_val(stack).saturating_add(ENTRY);
        self.held = self.held.saturating_add(size);
        if self.held > self.most_memory {
            self.spill(&text)?;
        }
        Ok(())
    }

    /// Returns counts in memory for one of several parts of the samples.
    pub fn of_part(parts: usize) -> Self {
        Counts {
            most_memory: MOST_MEMORY.checked_div(parts).unwrap_or(MOST_MEMORY),
            ..Counts::default()
        }
    }

    /// Adds the sums of a part, whose stacks have other numbers: `number` returns the own one. `text`
    /// appends the line of a stack.
    pub fn join(
        &mut self,
        part: Counts,
        number: impl Fn(u32) -> u32,
        text: impl Fn(&[u32], &mut Vec<u8>),
    ) -> Result<()> {
        let mut own = Vec::new();
        part.for_each(|stack, sums| {
            own.clear();
            own.extend(stack.iter().map(|&of_part| number(of_part)));
            self.add_sums(&own, sums, &text)
        })?;
        let create = || temporary_file(tempfile::tempfile);
        self.runs
            .append(part.runs, create)
            .map_err(Error::Temporary)
    }

    /// Passes the stacks in memory with their sums to `see`.
    fn for_each(&self, mut see: impl FnMut(&[u32], Sums) -> Result<()>) -> Result<()> {
        let mut numbers = Vec::new();
        let mut at = 0;
        while let Some(sums) = self.sums_at(at) {
            numbers.clear();
            at = self.copy_to(at, &mut numbers);
            see(&numbers, sums)?;
        }
        Ok(())
    }

    /// Appends the numbers of the stack at an index of the numbers. Returns the index of the next one.
    fn copy_to(&self, at: usize, numbers: &mut Vec<u32>) -> usize {
        let start = at.saturating_add(HEAD);
        let end = start.saturating_add(self.len_at(at));
        self.numbers.copy_to(start..end, numbers);
        end
    }

    /// Returns the lines of all stacks in memory, sorted, and forgets the stacks.
    fn take_sorted(&mut self, text: &impl Fn(&[u32], &mut Vec<u8>)) -> Result<Lines> {
        let mut lines = Lines::default();
        self.for_each(|stack, sums| {
            let start = lines.bytes.len();
            text(stack, &mut lines.bytes);
            lines.list.push((start..lines.bytes.len(), sums));
            Ok(())
        })?;
        self.forget();
        lines.sort();
        Ok(lines)
    }

    /// Forgets the stacks in memory.
    fn forget(&mut self) {
        (self.held, self.numbers) = (0, Blocks::default());
        self.known.clear();
    }

    /// Moves the stacks in memory to the end of the file with their numbers.
    fn append(&mut self) -> Result<()> {
        let mut out = match self.parts.take() {
            Some(out) => out,
            None => new_file()?,
        };
        let mut bytes = Vec::new();
        self.for_each(|stack, sums| {
            bytes.clear();
            line(stack, &mut bytes);
            write_line(&bytes, sums, &mut out).map_err(Error::Temporary)
        })?;
        self.parts = Some(out);
        self.forget();
        Ok(())
    }

    /// Moves the stacks in memory to a temporary file.
    fn spill(&mut self, text: &impl Fn(&[u32], &mut Vec<u8>)) -> Result<()> {
        if self.is_in_parts {
            return self.append();
        }
        let (lines, mut run) = (self.take_sorted(text)?, new_file()?);
        let mut lines = lines.iter();
        lines
            .try_for_each(|(line, sums)| write_line(line, sums, &mut run))
            .and_then(|()| self.runs.add(run, || temporary_file(tempfile::tempfile)))
            .map_err(Error::Temporary)
    }

    /// Passes the lines of all stacks with their sums to `put`, sorted by bytes. `key` appends bytes
    /// that have the order of the lines, of which different stacks have different ones: not all lines
    /// are in memory.
    pub fn finish_by_keys(
        self,
        key: impl Fn(&[u32], &mut Vec<u8>),
        text: impl Fn(&[u32], &mut Vec<u8>),
        put: Put<'_>,
    ) -> Result<()> {
        if !self.runs.is_empty() {
            return self.finish(text, put);
        }
        let (mut numbers, mut keys, mut list) = (Vec::new(), Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(sums) = self.sums_at(at) {
            numbers.clear();
            let next = self.copy_to(at, &mut numbers);
            let start = keys.len();
            key(&numbers, &mut keys);
            list.push((start..keys.len(), at, sums));
            at = next;
        }
        let key = |range: &Range<usize>| keys.get(range.clone()).unwrap_or_default();
        list.sort_unstable_by(|one, other| key(&one.0).cmp(key(&other.0)));
        let mut line = Vec::new();
        list.into_iter().try_for_each(|(_, at, sums)| {
            numbers.clear();
            self.copy_to(at, &mut numbers);
            line.clear();
            text(&numbers, &mut line);
            put(&line, sums)
        })
    }

    /// Passes the lines of all stacks with their sums to `put`, sorted by bytes.
    pub fn finish(mut self, text: impl Fn(&[u32], &mut Vec<u8>), put: Put<'_>) -> Result<()> {
        if self.runs.is_empty() {
            let lines = self.take_sorted(&text)?;
            return lines.iter().try_for_each(|(line, sums)| put(line, sums));
        }
        self.spill(&text)?;
        while let Some(CountedLine { bytes, sums }) = self.runs.pop().map_err(Error::Temporary)? {
            put(bytes, *sums)?;
        }
        Ok(())
    }
}

impl Counts {
    /// Passes all stacks of counts [in parts](Self::in_parts) with their sums to `put`, in the order
    /// in which they were added: if they need more than the memory, each part has sums of its own.
    pub fn finish_numbers(mut self, put: &mut dyn FnMut(&[u32], Sums) -> Result<()>) -> Result<()> {
        if let Some(parts) = self.parts.take() {
            let mut parts = parts.finish::<CountedLine>().map_err(Error::Temporary)?;
            let mut stack = Vec::new();
            while let Some(line) = parts.next_entry().map_err(Error::Temporary)? {
                stack.clear();
                stack.extend(numbers(&line.bytes));
                put(&stack, line.sums)?;
            }
        }
        self.for_each(put)
    }
}

/// Appends a list of numbers as bytes.
pub(crate) fn line(numbers: &[u32], line: &mut Vec<u8>) {
    for number in numbers {
        line.extend_from_slice(&number.to_be_bytes());
    }
}

/// Returns the numbers of a [line].
pub(crate) fn numbers(line: &[u8]) -> impl Iterator<Item = u32> {
    let (numbers, _) = line.as_chunks();
    numbers.iter().map(|bytes| u32::from_be_bytes(*bytes))
}

fn new_file() -> Result<Writer> {
    let file = temporary_file(tempfile::tempfile).map_err(Error::Temporary)?;
    Ok(Writer::new(file))
}

/// Writes a line with its sums.
fn write_line(line: &[u8], sums: Sums, to: &mut Writer) -> io::Result<()> {
    let numbers = [sums.samples, sums.weight, line.len() as u64];
    to.push(&[numbers.map(u64::to_le_bytes).as_flattened(), line])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_do_not_depend_on_the_memory() {
        fn text(stack: &[u32], line: &mut Vec<u8>) {
            let words: Vec<String> = stack.iter().map(u32::to_string).collect();
            line.extend(words.join(";").into_bytes());
        }
        let filled = |most_memory| {
            let mut counts = Counts {
                most_memory,
                ..Counts::default()
            };
            for number in 0..20_000_u32 {
                counts.add(&[number % 7, number % 301], 2, text).unwrap();
            }
            counts
        };
        type Finish = fn(Counts, Put<'_>) -> Result<()>;
        let lines = |most_memory, finish: Finish| {
            let mut lines = Vec::new();
            let mut put = |line: &[u8], sum: Sums| {
                lines.push((line.to_vec(), sum));
                Ok(())
            };
            finish(filled(most_memory), &mut put).unwrap();
            lines
        };
        let with_memory = |most_memory| lines(most_memory, |counts, put| counts.finish(text, put));
        let by_keys = |most_memory| {
            lines(most_memory, |counts, put| {
                counts.finish_by_keys(text, text, put)
            })
        };
        let all = with_memory(usize::MAX);
        assert_eq!(by_keys(usize::MAX), all);
        assert_eq!(by_keys(1), all);
        assert_eq!(all.len(), 301);
        assert_eq!(all.iter().map(|line| line.1.weight).sum::<u64>(), 40_000);
        assert!(all.is_sorted());
        assert_eq!(with_memory(1), all);
        assert_eq!(with_memory(10_000), all);
    }

    /// Each part has files of its own.
    #[test]
    fn many_parts_are_added() {
        let mut all = Counts::default();
        for part in 0..500_u32 {
            let mut counts = Counts {
                most_memory: 1,
                ..Counts::default()
            };
            for number in 0..4 {
                counts.add(&[number, part % 50], 3, line).unwrap();
            }
            all.join(counts, |number| number, line).unwrap();
        }
        let mut lines = Vec::new();
        let mut put = |line: &[u8], sums: Sums| {
            let stack: Vec<u32> = numbers(line).collect();
            lines.push((stack, sums.samples, sums.weight));
            Ok(())
        };
        all.finish(line, &mut put).unwrap();
        let expected = (0..4).flat_map(|one| (0..50).map(move |other| (vec![one, other], 10, 30)));
        assert_eq!(lines, expected.collect::<Vec<_>>());
    }

    #[test]
    fn stacks_in_parts_keep_their_order() {
        let with_memory = |most_memory| {
            let mut counts = Counts {
                most_memory,
                ..Counts::in_parts()
            };
            for stack in [&[7, 300][..], &[1], &[7, 300], &[], &[7]] {
                counts.add(stack, 5 << 32, line).unwrap();
            }
            let mut stacks = Vec::new();
            let mut put = |stack: &[u32], sums: Sums| {
                stacks.push((stack.to_vec(), sums.samples, sums.weight));
                Ok(())
            };
            counts.finish_numbers(&mut put).unwrap();
            stacks
        };
        let all = [
            (vec![7, 300], 2, 10 << 32),
            (vec![1], 1, 5 << 32),
            (vec![], 1, 5 << 32),
            (vec![7], 1, 5 << 32),
        ];
        assert_eq!(with_memory(usize::MAX), all);
        let parts = [&[7, 300][..], &[1], &[7, 300], &[], &[7]];
        let parts = parts.map(|stack| (stack.to_vec(), 1, 5 << 32));
        assert_eq!(with_memory(1), parts);
        // Each part has two stacks.
        assert_eq!(with_memory(2 * ENTRY), parts);
    }
}
