//! Results for the addresses that were looked up last: a recording has few different ones.

use perfdata_core::record::CallchainContext;

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

/// Number of regions that are remembered: many more than a recording has, so that few of them share
/// a slot.
const REGIONS: usize = 1 << REGION_BITS;
const REGION_BITS: u32 = 13;

/// The range in which the last address of a region was found: its first address, its number of
/// addresses, and what is added to each of them.
#[derive(Debug, Clone, Copy, Default)]
struct FoundRange {
    first: u64,
    len: u64,
    delta: u64,
}

/// The ranges of an address space in which the last addresses of each region were found.
#[derive(Debug)]
pub(super) struct Ranges {
    slots: Vec<FoundRange>,
}

impl Default for Ranges {
    fn default() -> Self {
        Ranges {
            slots: vec![FoundRange::default(); REGIONS],
        }
    }
}

impl Ranges {
    #[inline]
    fn slot(address: u64) -> usize {
        let hash = (address >> REGION).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // At most 13 bits.
        (hash >> (u64::BITS - REGION_BITS)) as usize
    }

    /// Returns what is added to `address`, if it is in one of the last ranges.
    #[inline]
    pub(super) fn get(&self, address: u64) -> Option<u64> {
        let found = self.slots.get(Self::slot(address))?;
        (address.wrapping_sub(found.first) < found.len).then_some(found.delta)
    }

    /// Remembers the range with `address`: its first and its last address, and what is added to
    /// each. Markers of callchains are in no range.
    pub(super) fn put(&mut self, address: u64, (first, last, delta): (u64, u64, u64)) {
        let last = last.min(CallchainContext::FIRST - 1);
        if let Some(slot) = self.slots.get_mut(Self::slot(address)) {
            *slot = FoundRange {
                first,
                len: last.saturating_sub(first).saturating_add(1),
                delta,
            };
        }
    }

    /// Moves the addresses at the start of `words`, up to the first one that is not in the last
    /// ranges. Returns their number.
    #[inline]
    pub(super) fn move_all<const LITTLE: bool>(&self, words: &mut [[u8; 8]]) -> usize {
        let Some(slots) = self.slots.first_chunk::<REGIONS>() else {
            return 0;
        };
        let mut moved = 0;
        for word in words {
            let address = number::<LITTLE>(*word);
            let Some(found) = slots.get(Self::slot(address)) else {
                break;
            };
            if address.wrapping_sub(found.first) >= found.len {
                break;
            }
            *word = bytes::<LITTLE>(address.wrapping_add(found.delta));
            moved += 1;
        }
        moved
    }

    /// Returns the number of words at the start of `words` that are in the last ranges, or markers.
    #[inline]
    pub(super) fn count<const LITTLE: bool>(&self, words: &[[u8; 8]]) -> usize {
        let Some(slots) = self.slots.first_chunk::<REGIONS>() else {
            return 0;
        };
        let is_in = |word: &[u8; 8]| {
            let address = number::<LITTLE>(*word);
            let found = slots.get(Self::slot(address));
            found.is_some_and(|found| {
                (address.wrapping_sub(found.first) < found.len)
                    | (address >= CallchainContext::FIRST)
            })
        };
        words
            .iter()
            .position(|word| !is_in(word))
            .unwrap_or(words.len())
    }
}

/// Returns the number in a word of a record.
#[inline]
pub(super) fn number<const LITTLE: bool>(word: [u8; 8]) -> u64 {
    match LITTLE {
        true => u64::from_le_bytes(word),
        false => u64::from_be_bytes(word),
    }
}

/// Returns the word of a record with a number.
#[inline]
pub(super) fn bytes<const LITTLE: bool>(number: u64) -> [u8; 8] {
    match LITTLE {
        true => number.to_le_bytes(),
        false => number.to_be_bytes(),
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
            assert_eq!(ranges.get(address), None);
        }
        ranges.put(0x5000, (0x4000, 0x5fff, 7));
        assert_eq!(ranges.get(0x4000), Some(7));
        assert_eq!(ranges.get(0x5fff), Some(7));
        assert_eq!(ranges.get(0x6000), None);
        assert_eq!(ranges.get(0x3fff), None);
        ranges.put(0x9000, (0x9000, 0x9fff, 8));
        assert_eq!(ranges.get(0x5000), None);
        assert_eq!(ranges.get(0x9001), Some(8));
    }

    /// Words are moved and counted one after the other as `get` says.
    #[test]
    fn words_are_moved_up_to_the_first_unknown_one() {
        let mut ranges = Ranges::default();
        ranges.put(0x5000, (0x5000, 0x5fff, 0x10_0000));
        ranges.put(u64::MAX - (1 << 20), (u64::MAX << 21, u64::MAX, 0x30));
        let known = [0x5000, 0x5fff, u64::MAX - (1 << 20)];
        let marker = CallchainContext::USER.0;
        for others in [&[0x6000, 0x5000][..], &[0, 0x5000], &[marker, 0x6000], &[]] {
            let all: Vec<u64> = known.iter().chain(others).copied().collect();
            check::<true>(&ranges, &all, marker);
            check::<false>(&ranges, &all, marker);
        }
    }

    fn check<const LITTLE: bool>(ranges: &Ranges, all: &[u64], marker: u64) {
        let mut words: Vec<[u8; 8]> = all.iter().map(|&word| bytes::<LITTLE>(word)).collect();
        let is_known = |word: &&u64| ranges.get(**word).is_some();
        let markers = all
            .iter()
            .take_while(|word| is_known(word) || **word == marker);
        assert_eq!(ranges.count::<LITTLE>(&words), markers.count());
        let moved = ranges.move_all::<LITTLE>(&mut words);
        assert_eq!(moved, all.iter().take_while(is_known).count());
        for (at, (old, new)) in all.iter().zip(&words).enumerate() {
            let delta = ranges.get(*old).filter(|_| at < moved).unwrap_or(0);
            assert_eq!(number::<LITTLE>(*new), old.wrapping_add(delta));
        }
    }
}
