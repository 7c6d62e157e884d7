//! Symbols by equal parts of the addresses, without an order in each part: an object can have
//! hundreds of thousands of symbols, of which few are looked up.

/// log2 of the mean number of symbols in a bucket.
const SYMBOLS: u32 = 2;

/// Marks an empty bucket, in addition to the number after that of the next filled one below it, 0 if
/// there is none.
const EMPTY: u32 = 1 << 31;

/// The numbers of symbols by the addresses at which they start. Each bucket is a part of the
/// addresses; the first and the last one also contain everything before and behind.
#[derive(Debug)]
pub(super) struct Buckets {
    first: u64,
    /// log2 of the size of a bucket.
    shift: u32,
    /// The number after that of the last symbol in each bucket, or [`EMPTY`].
    heads: Vec<u32>,
    /// For each symbol, the number after that of the one before it in the same bucket; 0 if it is
    /// the first.
    links: Vec<u32>,
    /// Number of symbols.
    len: usize,
}

impl Buckets {
    /// Returns empty buckets for less than 2^31 symbols, most of which are in `bounds`.
    pub fn new((first, last): (u64, u64), symbols: u32) -> Self {
        let span = last.saturating_sub(first);
        let count = u32::BITS.saturating_sub(symbols.leading_zeros());
        let bits = u64::BITS.saturating_sub(span.leading_zeros());
        let shift = bits.saturating_sub(count.saturating_sub(SYMBOLS));
        // Few symbols can be in all addresses.
        let shift = shift.min(u64::BITS - 1);
        let heads = usize::try_from(span >> shift).unwrap_or_default();
        let links = usize::try_from(symbols).unwrap_or_default();
        Buckets {
            first,
            shift,
            heads: vec![0; heads.saturating_add(1)],
            links: vec![0; links],
            len: 0,
        }
    }

    /// Returns the bucket of an address.
    fn of(&self, address: u64) -> usize {
        let bucket = address.saturating_sub(self.first) >> self.shift;
        let last = self.heads.len().saturating_sub(1);
        usize::try_from(bucket).map_or(last, |bucket| bucket.min(last))
    }

    /// Adds a symbol. Its number must be larger than those before.
    #[inline]
    pub fn add(&mut self, number: u32, start: u64) {
        let bucket = self.of(start);
        let link = usize::try_from(number).ok();
        if let Some(head) = self.heads.get_mut(bucket)
            && let Some(link) = link.and_then(|at| self.links.get_mut(at))
        {
            *link = std::mem::replace(head, number.saturating_add(1));
            self.len = self.len.saturating_add(1);
        }
    }

    /// Makes the empty buckets known, after all symbols were added.
    pub fn finish(&mut self) {
        let mut below = 0;
        for (after, head) in (1..).zip(&mut self.heads) {
            match head {
                0 => *head = EMPTY | below,
                _ => below = after,
            }
        }
    }

    /// Returns the number of buckets.
    pub fn count(&self) -> usize {
        self.heads.len()
    }

    /// Returns the number of symbols.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the numbers of the symbols in a bucket, in the order in which they were added.
    pub fn symbols(&self, bucket: usize) -> Vec<u32> {
        let mut numbers = Vec::new();
        let head = self.heads.get(bucket).copied().unwrap_or_default();
        let mut next = if head & EMPTY == 0 { head } else { 0 };
        while let Some(number) = next.checked_sub(1) {
            numbers.push(number);
            let link = usize::try_from(number).ok();
            let link = link.and_then(|at| self.links.get(at)).copied();
            next = link.unwrap_or_default();
        }
        numbers.reverse();
        numbers
    }

    /// Returns the last filled bucket up to `bucket`.
    fn filled(&self, bucket: usize) -> Option<usize> {
        let head = *self.heads.get(bucket)?;
        if head & EMPTY == 0 {
            return Some(bucket);
        }
        usize::try_from(head & !EMPTY).ok()?.checked_sub(1)
    }

    /// Returns the last filled bucket with addresses up to this one.
    pub fn up_to(&self, address: u64) -> Option<usize> {
        self.filled(self.of(address))
    }

    /// Returns the last filled bucket before another one.
    pub fn before(&self, bucket: usize) -> Option<usize> {
        self.filled(bucket.checked_sub(1)?)
    }

    /// Returns the next filled bucket after another one.
    pub fn after(&self, bucket: usize) -> Option<usize> {
        let (mut low, mut high) = (bucket.saturating_add(1), self.heads.len());
        let is_filled = |up_to: usize| self.filled(up_to).is_some_and(|last| last > bucket);
        while low < high {
            let middle = low.midpoint(high);
            match is_filled(middle) {
                true => high = middle,
                false => low = middle.saturating_add(1),
            }
        }
        (low < self.heads.len()).then_some(low)
    }

    /// Returns the approximate size in memory in bytes.
    pub fn held(&self) -> usize {
        let words = self.heads.len().saturating_add(self.links.len());
        words.saturating_mul(size_of::<u32>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_in_their_buckets() {
        // In no order, with gaps, several at an address, and outside of the bounds.
        let starts: Vec<u64> = (0..1000_u64).map(|at| at * 7919 % 1009 / 3 * 64).collect();
        for bounds in [(0, 337 * 64), (5000, 9000), (0, u64::MAX), (7, 7)] {
            let mut buckets = Buckets::new(bounds, 2000);
            for (number, start) in (0..).zip(&starts).filter(|(number, _)| number % 5 != 0) {
                buckets.add(2 * number, *start);
            }
            buckets.finish();
            assert_eq!(buckets.len(), 800);
            let mut all = Vec::new();
            let mut bucket = buckets.up_to(0).or_else(|| buckets.after(0));
            let (mut before, mut last) = (None, 0);
            while let Some(at) = bucket {
                assert_eq!(buckets.before(at), before);
                let symbols = buckets.symbols(at);
                assert!(symbols.is_sorted() && !symbols.is_empty());
                let start = |number: &u32| starts[*number as usize / 2];
                for number in &symbols {
                    assert_eq!(buckets.up_to(start(number)), Some(at));
                }
                assert!(symbols.iter().all(|number| start(number) >= last));
                last = symbols.iter().map(start).max().unwrap();
                all.extend(symbols);
                (before, bucket) = (bucket, buckets.after(at));
            }
            assert_eq!(buckets.up_to(u64::MAX), before);
            all.sort_unstable();
            let added = (0..2000).step_by(2).filter(|number| number % 10 != 0);
            assert!(added.eq(all), "{bounds:?}");
        }
    }

    #[test]
    fn there_may_be_no_symbols() {
        let mut buckets = Buckets::new((0, 0), 0);
        buckets.finish();
        assert_eq!(
            (buckets.up_to(5), buckets.after(0), buckets.len()),
            (None, None, 0)
        );
    }
}
