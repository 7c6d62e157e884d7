//! The search for many byte strings and addresses at once.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use perfdata_core::Endian;

use super::distinct::{is_distinct_in_bytes, is_distinct_in_reversed_bytes};

/// Byte strings to search for, each of at least [`Needles::LEAST`] bytes.
#[derive(Debug)]
pub(super) struct Needles<'a> {
    /// The strings, sorted by their first bytes.
    by_start: Vec<(u64, &'a [u8])>,
    /// A bit for each hash of the first bytes of a string. Most positions of the searched bytes are
    /// decided by it.
    bits: Vec<u64>,
    /// Numbers of 8 bytes to search for, and the byte order of most numbers.
    numbers: Option<(&'a HashSet<u64, RandomState>, Endian)>,
    longest: usize,
}

impl<'a> Needles<'a> {
    /// The fewest bytes of a string; shorter ones are ignored.
    pub(super) const LEAST: usize = 6;

    const BITS: u32 = 20;

    pub(super) fn new(needles: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut all = Needles {
            by_start: Vec::new(),
            bits: vec![0; 1 << (Self::BITS - 6)],
            numbers: None,
            longest: 0,
        };
        for needle in needles {
            let Some(start) = start(needle) else {
                continue;
            };
            all.mark(start);
            all.longest = all.longest.max(needle.len());
            all.by_start.push((start, needle));
        }
        all.by_start.sort_unstable();
        all.by_start.dedup();
        all
    }

    /// Searches for addresses, too: in this byte order, and in the other one if they do not occur
    /// in it by chance.
    pub(super) fn with_numbers(
        mut self,
        numbers: &'a HashSet<u64, RandomState>,
        endian: Endian,
    ) -> Self {
        if !numbers.is_empty() {
            self.longest = self.longest.max(size_of::<u64>());
        }
        for &number in numbers
            .iter()
            .filter(|number| is_distinct_in_bytes(**number))
        {
            let own = in_order(number, endian);
            self.mark(first_bytes(own));
            if is_distinct_in_reversed_bytes(number) {
                self.mark(first_bytes(own.swap_bytes()));
            }
        }
        self.numbers = Some((numbers, endian));
        self
    }

    /// Notes the first bytes of something to search for.
    fn mark(&mut self, start: u64) {
        let (word, bit) = slot(start);
        if let Some(word) = self.bits.get_mut(word) {
            *word |= bit;
        }
    }

    /// Size in bytes of the longest string.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Calls `found` for every string in `bytes`.
    pub(super) fn each_in(&self, bytes: &[u8], mut found: impl FnMut(&'a [u8])) {
        let _ = self.find(bytes, |_, rest, start| {
            self.strings(rest, start).for_each(&mut found);
            None::<()>
        });
    }

    /// Returns the offset and the size of the first string or number in `bytes` for which
    /// `is_meant` is true.
    pub(super) fn first_in(
        &self,
        bytes: &[u8],
        is_meant: impl Fn(usize, usize) -> bool,
    ) -> Option<(usize, usize)> {
        self.find(bytes, |at, rest, start| {
            let number = self.is_number(rest).then_some(size_of::<u64>());
            let strings = self.strings(rest, start).map(<[u8]>::len);
            let mut all = number.into_iter().chain(strings);
            Some((at, all.find(|&len| is_meant(at, len))?))
        })
    }

    /// Returns the strings at the start of `bytes`, whose first bytes are `start`.
    fn strings(&self, bytes: &[u8], start: u64) -> impl Iterator<Item = &'a [u8]> {
        let first = self.by_start.partition_point(|(key, _)| *key < start);
        let same = self.by_start.get(first..).unwrap_or_default().iter();
        same.take_while(move |(key, _)| *key == start)
            .map(|(_, needle)| *needle)
            .filter(|needle| bytes.starts_with(needle))
    }

    /// Returns whether one of the numbers is at the start of `bytes`.
    fn is_number(&self, bytes: &[u8]) -> bool {
        let Some((numbers, endian)) = self.numbers else {
            return false;
        };
        let Some(&word) = bytes.first_chunk() else {
            return false;
        };
        let own = in_order(u64::from_le_bytes(word), endian);
        let other = own.swap_bytes();
        (is_distinct_in_bytes(own) && numbers.contains(&own))
            || (is_distinct_in_reversed_bytes(other) && numbers.contains(&other))
    }

    /// Calls `found` for all places in `bytes` at which something may be, with the bytes from there
    /// on and the first of them as a number, until it returns something.
    fn find<T>(
        &self,
        bytes: &[u8],
        mut found: impl FnMut(usize, &[u8], u64) -> Option<T>,
    ) -> Option<T> {
        if self.longest == 0 {
            return None;
        }
        for (at, window) in bytes.windows(Self::LEAST).enumerate() {
            let Some(start) = start(window) else { continue };
            let (word, bit) = slot(start);
            if self.bits.get(word).is_none_or(|word| word & bit == 0) {
                continue;
            }
            if let Some(result) = found(at, bytes.get(at..).unwrap_or_default(), start) {
                return Some(result);
            }
        }
        None
    }
}

/// Returns the number that the bytes of `number` in this byte order are in little-endian order, and
/// the other way round.
fn in_order(number: u64, endian: Endian) -> u64 {
    match endian {
        Endian::Little => number,
        Endian::Big => number.swap_bytes(),
    }
}

/// Returns the first bytes of a number in little-endian order, as [`start`] does.
fn first_bytes(number: u64) -> u64 {
    number & (u64::MAX >> 16)
}

/// Returns the first bytes of a string as a number; nothing if it is too short.
#[inline]
fn start(bytes: &[u8]) -> Option<u64> {
    let &[a, b, c, d, e, f] = bytes.first_chunk()?;
    Some(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
}

/// Returns the word and the bit of a hash of the first bytes.
#[inline]
fn slot(start: u64) -> (usize, u64) {
    let hash = start.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - Needles::BITS);
    // At most 20 bits.
    (hash as usize >> 6, 1 << (hash & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_is_found_at_every_offset() {
        let names: [&[u8]; 4] = [b"secret", b"secretary", b"another", b"short"];
        let needles = Needles::new(names);
        assert_eq!(needles.longest(), 9);
        for at in 0..70 {
            let mut bytes = vec![b's'; at];
            bytes.extend_from_slice(b"secretary");
            bytes.resize(100, 0);
            let mut found = Vec::new();
            needles.each_in(&bytes, |needle| found.push(needle));
            assert_eq!(found, [&b"secret"[..], b"secretary"], "{at}");
            assert_eq!(needles.first_in(&bytes, |_, _| true), Some((at, 6)));
            let longer = needles.first_in(&bytes, |found, len| found + len > at + 6);
            assert_eq!(longer, Some((at, 9)));
        }
        assert_eq!(needles.first_in(b"a short secre", |_, _| true), None);
        assert_eq!(needles.first_in(b"", |_, _| true), None);
        assert_eq!(Needles::new([]).first_in(b"secret", |_, _| true), None);
    }

    /// In both byte orders and at every offset, unless they would occur by chance.
    #[test]
    fn numbers_are_found_at_every_offset() {
        // Of the last two, one is only searched for in its own byte order, one not at all.
        let all = [0x7f12_3456_789a, 0xffff_ffff_8123_4567, 0x025b_0000_025d];
        let numbers: HashSet<u64, RandomState> = all.into_iter().collect();
        for endian in [Endian::Little, Endian::Big] {
            let needles = Needles::new([]).with_numbers(&numbers, endian);
            assert_eq!(needles.longest(), 8);
            let other = match endian {
                Endian::Little => Endian::Big,
                Endian::Big => Endian::Little,
            };
            for at in 0..20 {
                let found = |number, endian| {
                    let word = in_order(number, endian).to_le_bytes();
                    let bytes = [&vec![1; at][..], &word, &[2; 5]].concat();
                    needles.first_in(&bytes, |_, _| true)
                };
                let here = Some((at, 8));
                assert_eq!(all.map(|number| found(number, endian)), [here, here, None]);
                assert_eq!(all.map(|number| found(number, other)), [here, None, None]);
                assert_eq!(found(all[0] + 1, endian), None);
            }
            let text = HashSet::from_iter([u64::from_le_bytes(*b"libc.so.")]);
            let needles = Needles::new([]).with_numbers(&text, endian);
            assert_eq!(needles.first_in(b"libc.so.6 .os.cbil", |_, _| true), None);
            let needles = Needles::new([]).with_numbers(&numbers, endian);
            let cut = in_order(all[0], endian).to_le_bytes();
            assert_eq!(needles.first_in(&cut[..7], |_, _| true), None);
        }
    }
}
