//! Results for the addresses that were looked up last: a recording has few different ones.

use super::addresses::Space;

/// Number of slots of an address space: they fit into the cache of a processor.
const SLOTS: usize = 1 << BITS;
const BITS: u32 = 13;

/// A word that is never in the cache: it marks an empty slot.
const NONE: u64 = u64::MAX;

/// The results for addresses, one in each slot.
#[derive(Debug)]
pub(super) struct Cache {
    slots: Vec<(u64, u64)>,
}

impl Default for Cache {
    fn default() -> Self {
        Cache {
            slots: vec![(NONE, 0); 3 * SLOTS],
        }
    }
}

impl Cache {
    /// Returns the slot of an address.
    #[inline]
    fn slot(space: Space, address: u64) -> usize {
        let hash = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BITS);
        // At most 13 bits.
        space as usize * SLOTS + hash as usize
    }

    /// Returns the result for `address`, if it is one of the last ones.
    #[inline]
    pub(super) fn get(&self, space: Space, address: u64) -> Option<u64> {
        let (key, value) = *self.slots.get(Self::slot(space, address))?;
        (key == address && key != NONE).then_some(value)
    }

    /// Remembers the result for `address`.
    #[inline]
    pub(super) fn put(&mut self, space: Space, address: u64, value: u64) {
        if let Some(slot) = self.slots.get_mut(Self::slot(space, address)) {
            *slot = (address, value);
        }
    }
}

/// Size of the regions of [`Ranges`], as a power of 2.
const REGION: u32 = 20;

/// Number of regions of an address space that are remembered.
const REGIONS: usize = 1 << REGION_BITS;
const REGION_BITS: u32 = 10;

/// The ranges in which the last addresses of each region were found, with a value.
#[derive(Debug)]
pub(super) struct Ranges {
    /// First and last address.
    slots: Vec<(u64, u64, u64)>,
}

impl Default for Ranges {
    fn default() -> Self {
        // No address is in an empty range.
        Ranges {
            slots: vec![(1, 0, 0); 3 * REGIONS],
        }
    }
}

impl Ranges {
    #[inline]
    fn slot(space: Space, address: u64) -> usize {
        let hash = (address >> REGION).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // At most 10 bits.
        space as usize * REGIONS + (hash >> (u64::BITS - REGION_BITS)) as usize
    }

    /// Returns the value of the range with `address`, if it is one of the last ones.
    #[inline]
    pub(super) fn get(&self, space: Space, address: u64) -> Option<u64> {
        let (first, last, value) = *self.slots.get(Self::slot(space, address))?;
        (first..=last).contains(&address).then_some(value)
    }

    /// Remembers the range with `address`: its first and its last address, and a value.
    #[inline]
    pub(super) fn put(&mut self, space: Space, address: u64, range: (u64, u64, u64)) {
        if let Some(slot) = self.slots.get_mut(Self::slot(space, address)) {
            *slot = range;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_those_of_the_address() {
        let mut cache = Cache::default();
        let addresses: Vec<u64> = (0..100_000_u64)
            .map(|at| at.wrapping_mul(0x1234_5678_9abc_def1))
            .chain([0, u64::MAX])
            .collect();
        let mut hits = 0;
        for space in [Space::Kernel, Space::User, Space::Any] {
            for &address in &addresses {
                assert_eq!(cache.get(space, address), None);
                cache.put(space, address, address ^ space as u64);
            }
            for &address in &addresses {
                if let Some(value) = cache.get(space, address) {
                    assert_eq!(value, address ^ space as u64);
                    hits += 1;
                }
            }
        }
        assert!(hits > 3 * SLOTS / 2, "{hits}");
        assert_eq!(cache.get(Space::Any, u64::MAX), None);
    }

    #[test]
    fn only_addresses_in_a_range_have_its_value() {
        let mut ranges = Ranges::default();
        for address in [0, 1, 1 << 20, u64::MAX] {
            assert_eq!(ranges.get(Space::User, address), None);
        }
        ranges.put(Space::User, 0x5000, (0x4000, 0x5fff, 7));
        assert_eq!(ranges.get(Space::User, 0x4000), Some(7));
        assert_eq!(ranges.get(Space::User, 0x5fff), Some(7));
        assert_eq!(ranges.get(Space::User, 0x6000), None);
        assert_eq!(ranges.get(Space::Kernel, 0x5000), None);
        ranges.put(Space::User, 0x9000, (0x9000, 0x9fff, 8));
        assert_eq!(ranges.get(Space::User, 0x5000), None);
        assert_eq!(ranges.get(Space::User, 0x9001), Some(8));
    }
}
