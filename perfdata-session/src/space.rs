//! Address spaces: what is mapped at which addresses of a process or kernel.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;

use crate::ids::MappingId;

/// One address space. A copy shares what is the same with the original, so that processes that are forked without end
/// take little.
#[derive(Debug, Clone, Default)]
pub(crate) struct Space {
    /// By first address.
    pieces: RedBlackTreeMapSync<u64, Piece>,
    version: u64,
}

/// A mapping, or what newer mappings have left of it.
#[derive(Debug, Clone)]
struct Piece {
    /// The address behind the last one.
    end: u64,
    mapping: MappingId,
    /// Is there as often as there are pieces.
    _counted: Arc<()>,
}

/// What makes versions of spaces, and counts their pieces.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    changes: u64,
    counted: Arc<()>,
}

/// Bytes that a piece takes: two pieces of memory of 64 bytes for what shares nothing.
const PIECE: usize = 128;

impl Spaces {
    /// Bytes of all pieces, about.
    pub(crate) fn held(&self) -> usize {
        Arc::strong_count(&self.counted).saturating_mul(PIECE)
    }

    /// Maps `mapping` at `range` of `space`, in place of what was there.
    pub(crate) fn map(&mut self, space: &mut Space, range: Range<u64>, mapping: MappingId) {
        if range.is_empty() {
            return;
        }
        self.clear(space, &range);
        space.pieces.insert_mut(range.start, self.piece(range.end, mapping));
    }

    /// Takes away `mapping`, if it begins `space` at `start`.
    pub(crate) fn unmap(&mut self, space: &mut Space, start: u64, mapping: impl Fn(MappingId) -> bool) {
        if space.pieces.get(&start).is_some_and(|piece| mapping(piece.mapping)) {
            space.pieces.remove_mut(&start);
            self.changed(space);
        }
    }

    fn clear(&mut self, space: &mut Space, range: &Range<u64>) {
        self.changed(space);
        let overlapping = space.pieces.range(..range.end).rev().take_while(|(_, old)| old.end > range.start);
        let overlapping: Vec<_> = overlapping.map(|(&start, old)| (start, old.end, old.mapping)).collect();
        for (start, end, mapping) in overlapping {
            space.pieces.remove_mut(&start);
            if start < range.start {
                space.pieces.insert_mut(start, self.piece(range.start, mapping));
            }
            if end > range.end {
                space.pieces.insert_mut(range.end, self.piece(end, mapping));
            }
        }
    }

    fn piece(&self, end: u64, mapping: MappingId) -> Piece {
        Piece { end, mapping, _counted: Arc::clone(&self.counted) }
    }

    fn changed(&mut self, space: &mut Space) {
        self.changes = self.changes.saturating_add(1);
        space.version = self.changes;
    }
}

impl Space {
    /// The mapping at `address` and the addresses where it is.
    pub(crate) fn find(&self, address: u64) -> Option<(Range<u64>, MappingId)> {
        let (&start, piece) = self.pieces.range(..=address).next_back()?;
        (address < piece.end).then_some((start..piece.end, piece.mapping))
    }

    /// Whether nothing is mapped.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// The last answers of [`Space::find`]: most addresses of callchains are near ones that were asked for before.
#[derive(Debug)]
pub(crate) struct Lookups {
    answers: Box<[Cell<Answer>]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Answer {
    version: u64,
    start: u64,
    end: u64,
    mapping: Option<MappingId>,
}

impl Default for Lookups {
    fn default() -> Self {
        Lookups { answers: (0..Self::SIZE).map(|_| Cell::default()).collect() }
    }
}

impl Lookups {
    /// Answers that are kept, a power of two.
    const SIZE: usize = 4096;
    /// Addresses whose answers share a place: a page's.
    const PAGE: u32 = 12;

    /// What [`Space::find`] says of `address`.
    #[inline]
    pub(crate) fn find(&self, space: &Space, address: u64) -> Option<MappingId> {
        let page = address >> Self::PAGE;
        // Multiplied by the golden ratio, so that neighbours and versions spread.
        let hash = (page ^ space.version.rotate_left(20)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let place = usize::try_from(hash).unwrap_or(0) & (Self::SIZE - 1);
        let answer = self.answers.get(place)?;
        let known = answer.get();
        if known.version == space.version && known.start <= address && address < known.end {
            return known.mapping;
        }
        let (range, mapping) = match space.find(address) {
            Some((range, mapping)) => (range, Some(mapping)),
            // Of a gap only the address itself is known.
            None => (address..address.saturating_add(1), None),
        };
        answer.set(Answer { version: space.version, start: range.start, end: range.end, mapping });
        mapping
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> MappingId {
        MappingId::of(number)
    }

    fn at(space: &Space, address: u64) -> Option<usize> {
        let found = space.find(address).map(|(_, mapping)| mapping.index());
        let lookups = Lookups::default();
        for _ in 0..2 {
            assert_eq!(lookups.find(space, address).map(MappingId::index), found);
        }
        found
    }

    #[test]
    fn a_new_mapping_takes_its_range_from_older_ones() {
        let (mut spaces, mut space) = (Spaces::default(), Space::default());
        spaces.map(&mut space, 0x1000..0x9000, id(1));
        spaces.map(&mut space, 0x3000..0x4000, id(2));
        spaces.map(&mut space, 0x8000..0xa000, id(3));
        spaces.map(&mut space, 0x8000..0x8000, id(4));
        let found = [0xfff, 0x1000, 0x2fff, 0x3000, 0x3fff, 0x4000, 0x7fff, 0x8000, 0xa000];
        let expected = [None, Some(1), Some(1), Some(2), Some(2), Some(1), Some(1), Some(3), None];
        assert_eq!(found.map(|address| at(&space, address)), expected);
        spaces.unmap(&mut space, 0x8000, |mapping| mapping == id(1));
        assert_eq!(at(&space, 0x8000), Some(3));
        spaces.unmap(&mut space, 0x8000, |mapping| mapping == id(3));
        assert_eq!(at(&space, 0x8000), None);
    }

    #[test]
    fn copies_share_what_is_the_same() {
        let (mut spaces, mut parent) = (Spaces::default(), Space::default());
        for number in 0..1000 {
            spaces.map(&mut parent, number << 12..(number + 1) << 12, id(0));
        }
        let alone = spaces.held();
        let children: Vec<Space> = (0..10)
            .map(|number| {
                let mut child = parent.clone();
                spaces.map(&mut child, 2000 << 12..2001 << 12, id(number + 1));
                child
            })
            .collect();
        assert!(spaces.held() - alone < 10 * 40 * PIECE, "{}", spaces.held() - alone);
        assert!(children.iter().enumerate().all(|(number, child)| at(child, 2000 << 12) == Some(number + 1)));
        assert_eq!(at(&parent, 2000 << 12), None);
        drop((children, parent));
        assert_eq!(spaces.held(), PIECE);
    }

    /// An answer for one state of a space is none for another.
    #[test]
    fn answers_belong_to_one_state() {
        let (mut spaces, mut space, lookups) = (Spaces::default(), Space::default(), Lookups::default());
        assert_eq!(lookups.find(&space, 0x1000), None);
        spaces.map(&mut space, 0x1000..0x2000, id(1));
        assert_eq!(lookups.find(&space, 0x1000), Some(id(1)));
        let copy = space.clone();
        spaces.map(&mut space, 0x1000..0x2000, id(2));
        assert_eq!((lookups.find(&space, 0x1000), lookups.find(&copy, 0x1000)), (Some(id(2)), Some(id(1))));
    }
}
