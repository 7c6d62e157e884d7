//! Places for the new addresses.

use std::collections::BTreeMap;

use super::key::{Domain, Key};

/// Islands of this size cannot be moved elsewhere as a whole: they are rotated.
const HUGE: u64 = 1 << 62;

/// Distance between islands, so that they do not touch, and alignment of their places in bytes.
const GAP: u64 = 1 << 16;
pub(super) const PAGE: u64 = 1 << 12;

/// An address range that moves as a whole: its first address, its last one, and what is added to
/// each (modulo 2^64).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Island {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) delta: u64,
}

/// What is mapped: a keyed hash of its name, and the file offset in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Identity {
    pub(super) name: u64,
    pub(super) offset: u64,
}

/// A mapped range: its first and its last address, and what is mapped at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MappedRange {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) what: Identity,
}

impl MappedRange {
    /// Returns the number of bytes that the range occupies at most, with gaps.
    fn size(&self) -> u64 {
        (self.last - self.first).saturating_add(2 * GAP)
    }
}

/// Puts `ranges` one after the other from `place` on.
pub(super) fn in_a_row(ranges: &[MappedRange], mut place: u64, key: &Key) -> Vec<Island> {
    let next = |range: &MappedRange| {
        let island = range.moved_to(place, key);
        place = place.saturating_add(range.size()) / PAGE * PAGE;
        island
    };
    ranges.iter().map(next).collect()
}

impl MappedRange {
    /// Returns the range at a new place, a multiple of [`PAGE`]. The offset in the page stays.
    fn moved_to(self, place: u64, key: &Key) -> Island {
        let MappedRange { first, last, .. } = self;
        let delta = if self.size() >= HUGE {
            // It cannot be anywhere else: rotate it by an unknown number of pages.
            let by = key.number(Domain::Order, !first) % (1 << 40) * PAGE;
            by.max(PAGE)
        } else {
            place.saturating_add(first % PAGE).wrapping_sub(first)
        };
        Island { first, last, delta }
    }
}

/// An area for the new addresses.
pub(super) struct Area {
    base: u64,
    size: u64,
    /// Occupied ranges, first address and the one after the last.
    used: BTreeMap<u64, u64>,
    /// The first address after the area that is free.
    behind: u64,
}

impl Area {
    /// Returns an area at `base`; at a higher place, in steps of its size, if new addresses would
    /// be among those of the original, `old`.
    pub(super) fn new(base: u64, size: u64, old: &[MappedRange]) -> Self {
        const TRIES: u64 = 16;
        let is_free = |base: &u64| {
            let end = base.saturating_add(size);
            old.iter()
                .all(|range| end <= range.first || range.last < *base)
        };
        let bases = (0..TRIES).map(|at| base.saturating_add(at.saturating_mul(size)));
        let base = bases.into_iter().find(is_free).unwrap_or(base);
        Area {
            base,
            size,
            used: BTreeMap::new(),
            behind: base.saturating_add(size),
        }
    }

    /// Puts `first` at the start of the area, and `ranges` at places that depend on what they are.
    pub(super) fn islands(
        mut self,
        first: Option<MappedRange>,
        ranges: &[MappedRange],
        key: &Key,
    ) -> Vec<Island> {
        let mut islands = Vec::with_capacity(ranges.len().saturating_add(1));
        if let Some(range) = first {
            self.used
                .insert(self.base, self.base.saturating_add(range.size()));
            islands.push(range.moved_to(self.base, key));
        }
        for range in ranges {
            let place = match range.size() < HUGE {
                true => self.place(range, key),
                false => self.base,
            };
            islands.push(range.moved_to(place, key));
        }
        islands
    }

    /// Returns a free place for `range`.
    fn place(&mut self, range: &MappedRange, key: &Key) -> u64 {
        const TRIES: u64 = 8;
        /// File offsets up to this one, in bytes, are part of the place.
        const LARGEST: u64 = 1 << 32;
        let size = range.size();
        // The start of the file has the place, so that a recording with more of the file agrees.
        let offset = match range.what.offset {
            offset if offset < LARGEST && offset.is_multiple_of(PAGE) => offset,
            _ => 0,
        };
        // Independent of the size of the range, too.
        let (pages, most) = (self.size / 2 / PAGE, self.base.saturating_add(self.size));
        let found = (0..TRIES).find_map(|attempt| {
            let number = key.number(Domain::Place, range.what.name.wrapping_add(attempt));
            let start = self.base.saturating_add(number.checked_rem(pages)? * PAGE);
            let place = start.saturating_add(offset);
            let end = place.saturating_add(size);
            let before = self.used.range(..end).next_back();
            let is_free = end <= most && before.is_none_or(|(_, used)| *used <= place);
            is_free.then_some(place)
        });
        let place = found.unwrap_or_else(|| {
            let place = self.behind;
            self.behind = place.saturating_add(size) / PAGE * PAGE;
            place
        });
        self.used.insert(place, place.saturating_add(size));
        place
    }
}
