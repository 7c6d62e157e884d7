//! An address space: the mappings of a process or kernel by address.

use std::cell::Cell;
use std::ops::Range;

use crate::ids::MappingId;
use crate::ranges::{Memory, Piece, Ranges};

/// An address space. `T` represents a mapping. A clone shares unchanged data with the original, so
/// that any number of forked processes need little memory.
#[derive(Debug, Clone)]
pub struct Space<T> {
    /// The mappings, or the remaining parts of them after newer mappings.
    pieces: Ranges<T>,
    version: u64,
}

/// Creates versions of spaces, and counts their memory.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    changes: u64,
    memory: Memory,
}

impl Pieces {
    /// Returns the memory use of the mappings in bytes.
    pub(crate) fn held(&self) -> usize {
        self.memory.bytes()
    }

    /// Maps `what` at `range` of `space`, and replaces older mappings there.
    pub(crate) fn map<T: Copy>(&mut self, space: &mut Space<T>, range: Range<u64>, what: T) {
        let Range { start, end } = range;
        if start >= end {
            return;
        }
        self.changed(space);
        while let Some(old) = space.pieces.take_overlapping(start, end) {
            let parts = [(old.start, start), (end, old.end)];
            for (start, end) in parts.into_iter().filter(|(start, end)| start < end) {
                let part = Piece { start, end, ..old };
                space.pieces.insert(part, &self.memory);
            }
        }
        let piece = Piece { start, end, what };
        space.pieces.insert(piece, &self.memory);
    }

    /// Removes the mapping that starts at `start` of `space`.
    pub(crate) fn unmap<T: Copy>(&mut self, space: &mut Space<T>, start: u64) {
        if space.pieces.take_at(start).is_some() {
            self.changed(space);
        }
    }

    fn changed<T>(&mut self, space: &mut Space<T>) {
        self.changes = self.changes.saturating_add(1);
        space.version = self.changes;
    }
}

impl<T> Default for Space<T> {
    fn default() -> Self {
        Space {
            pieces: Ranges::default(),
            version: 0,
        }
    }
}

impl<T: Copy> Space<T> {
    /// Returns the mapping at `address`, and its address range.
    pub fn find(&self, address: u64) -> Option<(Range<u64>, T)> {
        let piece = self.pieces.find(address)?;
        Some((piece.start..piece.end, piece.what))
    }

    /// Returns the addresses around one at which nothing is mapped.
    fn gap(&self, address: u64) -> Range<u64> {
        let (before, after) = self.pieces.around(address);
        before.map_or(0, |piece| piece.end)..after.unwrap_or(u64::MAX)
    }

    /// Returns all mappings with their address ranges, in address order.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, T)> {
        self.pieces
            .iter()
            .map(|piece| (piece.start..piece.end, piece.what))
    }
}

impl<T> Space<T> {
    /// Returns a number that identifies this state among all states of all address spaces; 0 if
    /// nothing was ever mapped.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the number of mappings. A mapping that was split by others counts several times.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// A cache of [`Space::find`]: most addresses of callchains are close to recently looked-up
/// addresses.
#[derive(Debug)]
pub(crate) struct Lookups {
    answers: Box<[Cell<Answer>]>,
    /// The gaps around addresses. Many callchains contain words that are no addresses.
    gaps: Box<[Cell<Answer>]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Answer {
    version: u64,
    start: u64,
    end: u64,
    mapping: Option<MappingId>,
}

impl Answer {
    /// Returns the result for an address, if this is the one.
    #[inline]
    fn of<T>(&self, space: &Space<T>, address: u64) -> Option<Option<MappingId>> {
        let is_known = self.version == space.version && self.start <= address && address < self.end;
        is_known.then_some(self.mapping)
    }
}

impl Default for Lookups {
    fn default() -> Self {
        let answers = |size: usize| (0..size).map(|_| Cell::default()).collect();
        Lookups {
            answers: answers(Self::SIZE),
            gaps: answers(Self::GAPS),
        }
    }
}

impl Lookups {
    /// Number of cached results, a power of two.
    const SIZE: usize = 4096;
    /// Number of cached gaps, a power of two.
    const GAPS: usize = 1024;
    /// log2 of the size of the address blocks that share a cache slot: 1 MiB, so that a large mapping
    /// needs few slots.
    const REGION: u32 = 20;

    #[inline]
    fn place<'a, T>(
        answers: &'a [Cell<Answer>],
        space: &Space<T>,
        part: u64,
    ) -> Option<&'a Cell<Answer>> {
        // Multiplication by the golden ratio distributes neighbouring blocks and versions.
        let hash = (part ^ space.version.rotate_left(20)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let last = answers.len().saturating_sub(1);
        answers.get(usize::try_from(hash).unwrap_or(0) & last)
    }

    /// Returns the ID, created by `id`, of the result of [`Space::find`] for `address`.
    #[inline]
    pub(crate) fn find<T: Copy>(
        &self,
        space: &Space<T>,
        address: u64,
        id: impl FnOnce(T) -> MappingId,
    ) -> Option<MappingId> {
        let region = Self::place(&self.answers, space, address >> Self::REGION);
        if let Some(known) = region.and_then(|place| place.get().of(space, address)) {
            return known;
        }
        let gap = Self::place(&self.gaps, space, address >> Self::REGION);
        if let Some(known) = gap.and_then(|place| place.get().of(space, address)) {
            return known;
        }
        let (range, mapping) = match space.find(address) {
            Some((range, what)) => (range, Some(id(what))),
            None => (space.gap(address), None),
        };
        let answer = Answer {
            version: space.version,
            start: range.start,
            end: range.end,
            mapping,
        };
        // A gap must not evict the mapping of the region.
        let of_region = if mapping.is_some() { region } else { gap };
        if let Some(region) = of_region {
            region.set(answer);
        }
        mapping
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(space: &Space<usize>, address: u64) -> Option<usize> {
        let found = space.find(address).map(|(_, what)| what);
        if found.is_none() {
            let gap = space.gap(address);
            assert!(gap.contains(&address) || address == u64::MAX, "{gap:?}");
            let is_mapped = |address: u64| space.find(address).is_some();
            assert!(gap.start == 0 || is_mapped(gap.start - 1));
            assert!(gap.end == u64::MAX || is_mapped(gap.end));
        }
        let lookups = Lookups::default();
        for _ in 0..2 {
            assert_eq!(
                lookups
                    .find(space, address, MappingId::of)
                    .map(MappingId::index),
                found
            );
        }
        found
    }

    #[test]
    fn a_new_mapping_takes_its_range_from_older_ones() {
        let (mut pieces, mut space) = (Pieces::default(), Space::default());
        pieces.map(&mut space, 0x1000..0x9000, 1);
        pieces.map(&mut space, 0x3000..0x4000, 2);
        pieces.map(&mut space, 0x8000..0xa000, 3);
        pieces.map(&mut space, 0x8000..0x8000, 4);
        let found = [
            0xfff, 0x1000, 0x2fff, 0x3000, 0x3fff, 0x4000, 0x7fff, 0x8000, 0xa000,
        ];
        let expected = [
            None,
            Some(1),
            Some(1),
            Some(2),
            Some(2),
            Some(1),
            Some(1),
            Some(3),
            None,
        ];
        assert_eq!(found.map(|address| at(&space, address)), expected);
        pieces.unmap(&mut space, 0x8001);
        assert_eq!(at(&space, 0x8000), Some(3));
        pieces.unmap(&mut space, 0x8000);
        assert_eq!(at(&space, 0x8000), None);
    }

    #[test]
    fn copies_share_what_is_the_same() {
        let (mut pieces, mut parent) = (Pieces::default(), Space::default());
        for number in 0..1000 {
            pieces.map(&mut parent, number << 12..(number + 1) << 12, 0);
        }
        let alone = pieces.held();
        let children: Vec<Space<usize>> = (0..10)
            .map(|number| {
                let mut child = parent.clone();
                pieces.map(&mut child, 2000 << 12..2001 << 12, number + 1);
                child
            })
            .collect();
        assert!(
            pieces.held() - alone < alone,
            "ten children need less than the parent"
        );
        assert!(
            children
                .iter()
                .enumerate()
                .all(|(number, child)| at(child, 2000 << 12) == Some(number + 1))
        );
        assert_eq!(at(&parent, 2000 << 12), None);
        drop((children, parent));
        assert_eq!(pieces.held(), 0);
    }

    /// A cached result for one state of a space is not used for another state.
    #[test]
    fn answers_belong_to_one_state() {
        let (mut pieces, mut space, lookups) =
            (Pieces::default(), Space::default(), Lookups::default());
        let find = |space: &Space<usize>| {
            lookups
                .find(space, 0x1000, MappingId::of)
                .map(MappingId::index)
        };
        assert_eq!(find(&space), None);
        pieces.map(&mut space, 0x1000..0x2000, 1);
        assert_eq!(find(&space), Some(1));
        let copy = space.clone();
        pieces.map(&mut space, 0x1000..0x2000, 2);
        assert_eq!((find(&space), find(&copy)), (Some(2), Some(1)));
    }
}
