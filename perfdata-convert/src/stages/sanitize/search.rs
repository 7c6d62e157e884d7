//! The search for many byte strings at once.

/// Byte strings to search for, each of at least [`Needles::LEAST`] bytes.
#[derive(Debug)]
pub(super) struct Needles<'a> {
    /// The strings, sorted by their first bytes.
    by_start: Vec<(u64, &'a [u8])>,
    /// A bit for each hash of the first bytes of a string. Most positions of the searched bytes are
    /// decided by it.
    bits: Vec<u64>,
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
            longest: 0,
        };
        for needle in needles {
            let Some(start) = start(needle) else {
                continue;
            };
            let (word, bit) = slot(start);
            if let Some(word) = all.bits.get_mut(word) {
                *word |= bit;
            }
            all.longest = all.longest.max(needle.len());
            all.by_start.push((start, needle));
        }
        all.by_start.sort_unstable();
        all.by_start.dedup();
        all
    }

    /// Size in bytes of the longest string.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Calls `found` for every string in `bytes`.
    pub(super) fn each_in(&self, bytes: &[u8], mut found: impl FnMut(&'a [u8])) {
        let _ = self.find(bytes, |_, needle| {
            found(needle);
            None::<()>
        });
    }

    /// Returns the first string in `bytes` with its offset.
    pub(super) fn first_in(&self, bytes: &[u8]) -> Option<(usize, &'a [u8])> {
        self.find(bytes, |at, needle| Some((at, needle)))
    }

    fn find<T>(
        &self,
        bytes: &[u8],
        mut found: impl FnMut(usize, &'a [u8]) -> Option<T>,
    ) -> Option<T> {
        if self.by_start.is_empty() {
            return None;
        }
        for (at, window) in bytes.windows(Self::LEAST).enumerate() {
            let Some(start) = start(window) else { continue };
            let (word, bit) = slot(start);
            if self.bits.get(word).is_none_or(|word| word & bit == 0) {
                continue;
            }
            let rest = bytes.get(at..).unwrap_or_default();
            let first = self.by_start.partition_point(|(key, _)| *key < start);
            let same = self.by_start.get(first..).unwrap_or_default().iter();
            for (_, needle) in same.take_while(|(key, _)| *key == start) {
                if rest.starts_with(needle)
                    && let Some(result) = found(at, needle)
                {
                    return Some(result);
                }
            }
        }
        None
    }
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
            assert_eq!(needles.first_in(&bytes), Some((at, &b"secret"[..])));
        }
        assert_eq!(needles.first_in(b"a short secre"), None);
        assert_eq!(needles.first_in(b""), None);
        assert_eq!(Needles::new([]).first_in(b"secret"), None);
    }
}
