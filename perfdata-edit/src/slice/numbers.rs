//! Compact sets and lists of record numbers.

/// A set of record numbers, one bit each.
#[derive(Debug, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    count: u64,
}

impl Bits {
    /// Adds a number.
    #[inline]
    pub(super) fn insert(&mut self, number: u64) {
        let Ok(word) = usize::try_from(number / 64) else {
            return;
        };
        if self.words.len() <= word {
            self.words.resize(word.saturating_add(1), 0);
        }
        if let Some(bits) = self.words.get_mut(word) {
            let bit = 1 << (number % 64);
            self.count = self.count.saturating_add(u64::from(*bits & bit == 0));
            *bits |= bit;
        }
    }

    /// Returns whether the set contains a number.
    #[inline]
    pub(super) fn contains(&self, number: u64) -> bool {
        usize::try_from(number / 64)
            .ok()
            .and_then(|word| self.words.get(word))
            .is_some_and(|bits| bits & (1 << (number % 64)) != 0)
    }

    /// Returns whether the set contains all of `count` numbers from `first` on.
    pub(super) fn contains_all(&self, first: u64, count: u64) -> bool {
        let end = first.saturating_add(count);
        let mut number = first;
        while number < end {
            let bit = number % 64;
            let len = (64u64.saturating_sub(bit)).min(end.saturating_sub(number));
            let mask = u64::MAX.unbounded_shr(64u32.saturating_sub(len as u32)) << bit;
            let word = usize::try_from(number / 64).unwrap_or(usize::MAX);
            if self.words.get(word).is_none_or(|bits| bits & mask != mask) {
                return false;
            }
            number = number.saturating_add(len);
        }
        true
    }

    /// Adds all elements of another set.
    pub(super) fn extend(&mut self, other: &Bits) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.count = 0;
        for (at, word) in self.words.iter_mut().enumerate() {
            *word |= other.words.get(at).copied().unwrap_or(0);
            self.count = self.count.saturating_add(u64::from(word.count_ones()));
        }
    }

    /// Returns the number of elements.
    pub(super) fn len(&self) -> u64 {
        self.count
    }

    /// Returns the memory use in bytes.
    pub(super) fn held(&self) -> usize {
        self.words.capacity().saturating_mul(8)
    }
}

/// A set of record numbers in ascending order, each with its ordinal in the set.
#[derive(Debug, Default)]
pub(super) struct Ordinals {
    bits: Bits,
    /// Number of elements before each word.
    before: Vec<u64>,
}

impl Ordinals {
    /// Adds a number, which must be higher than all others.
    pub(super) fn push(&mut self, number: u64) {
        let count = self.bits.len();
        self.bits.insert(number);
        self.before.resize(self.bits.words.len(), count);
    }

    /// Returns the number of elements below `number`, which is its ordinal if it is in the set.
    pub(super) fn of(&self, number: u64) -> u64 {
        let word = usize::try_from(number / 64).unwrap_or(usize::MAX);
        let (Some(before), Some(bits)) = (self.before.get(word), self.bits.words.get(word)) else {
            return self.bits.len();
        };
        let lower = bits & (1u64 << (number % 64)).wrapping_sub(1);
        before.saturating_add(u64::from(lower.count_ones()))
    }

    /// Returns the memory use in bytes.
    pub(super) fn held(&self) -> usize {
        self.bits.words.len().saturating_mul(16)
    }
}

/// A list of record numbers, each with a name if it has one. A process's records are near each
/// other, so a number takes 1 to 3 bytes.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    bytes: Vec<u8>,
    last: u64,
    len: usize,
}

impl Numbers {
    /// Adds a number and the index of its name.
    pub(super) fn push(&mut self, number: u64, name: Option<usize>) {
        let difference = number.wrapping_sub(self.last).cast_signed();
        let zigzag = (difference << 1) ^ (difference >> 63);
        self.varint(zigzag.cast_unsigned() << 1 | u64::from(name.is_some()));
        if let Some(name) = name {
            self.varint(name as u64);
        }
        self.last = number;
        self.len = self.len.saturating_add(1);
    }

    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the memory use in bytes.
    pub(super) fn held(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns the elements in the order in which they were added.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Option<usize>)> {
        let mut rest = &*self.bytes;
        let mut last = 0u64;
        std::iter::from_fn(move || {
            let word = take_varint(&mut rest)?;
            let zigzag = word >> 1;
            let difference = (zigzag >> 1) ^ (zigzag & 1).wrapping_neg();
            last = last.wrapping_add(difference);
            let name = match word & 1 {
                0 => None,
                _ => usize::try_from(take_varint(&mut rest)?).ok(),
            };
            Some((last, name))
        })
    }

    fn varint(&mut self, mut word: u64) {
        while word >= 0x80 {
            self.bytes.push(word.to_le_bytes()[0] | 0x80);
            word >>= 7;
        }
        self.bytes.push(word.to_le_bytes()[0]);
    }
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut word = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        word |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(word);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_stored() {
        let list = [
            (0, None),
            (5, Some(0)),
            (3, Some(1 << 20)),
            (1 << 40, None),
            (7, Some(9)),
        ];
        let mut numbers = Numbers::default();
        for (number, name) in list {
            numbers.push(number, name);
        }
        assert_eq!(numbers.iter().collect::<Vec<_>>(), list);
        assert_eq!(numbers.len(), list.len());
    }

    #[test]
    fn ordinals_count_the_elements_before() {
        let mut ordinals = Ordinals::default();
        let numbers = [0, 3, 63, 64, 200, 1000];
        for number in numbers {
            ordinals.push(number);
        }
        for (ordinal, number) in numbers.into_iter().enumerate() {
            assert_eq!(ordinals.of(number), ordinal as u64);
        }
        assert_eq!((ordinals.of(100), ordinals.of(5000)), (4, 6));
    }

    #[test]
    fn ranges_of_bits_are_in_a_set_or_not() {
        let mut bits = Bits::default();
        (10..200).for_each(|number| bits.insert(number));
        for first in 0..220 {
            for count in 0..220 {
                let expected = (first..first + count).all(|number| bits.contains(number));
                assert_eq!(
                    bits.contains_all(first, count),
                    expected,
                    "{first}, {count}"
                );
            }
        }
    }

    #[test]
    fn bits_are_a_set() {
        let mut bits = Bits::default();
        for number in [0, 63, 64, 1000, 64] {
            bits.insert(number);
        }
        assert_eq!(bits.len(), 4);
        assert!(bits.contains(63) && bits.contains(1000));
        assert!(!bits.contains(1) && !bits.contains(1 << 50));
    }
}
