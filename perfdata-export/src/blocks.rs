//! Long lists in blocks. They grow without being moved: moved lists leave gaps in the memory, of
//! their own size altogether.

use std::ops::Range;

/// log2 of the number of items in a block.
const BITS: u32 = 14;

/// Number of items in a block.
const SIZE: usize = 1 << BITS;

/// A list.
#[derive(Debug)]
pub(crate) struct Blocks<T> {
    /// All except the last one have [`SIZE`] items.
    blocks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Blocks {
            blocks: Vec::new(),
            len: 0,
        }
    }
}

impl<T> Blocks<T> {
    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns a block with room for another item.
    fn last(&mut self) -> Option<&mut Vec<T>> {
        let is_full = |block: &Vec<T>| block.len() >= SIZE;
        if self.blocks.last().is_none_or(is_full) {
            // Short lists have a short block.
            let size = if self.blocks.is_empty() { 0 } else { SIZE };
            self.blocks.push(Vec::with_capacity(size));
        }
        self.blocks.last_mut()
    }

    /// Adds an item.
    pub fn push(&mut self, item: T) {
        if let Some(block) = self.last() {
            block.push(item);
            self.len = self.len.saturating_add(1);
        }
    }

    /// Returns an item.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        self.blocks.get(at >> BITS)?.get(at & (SIZE - 1))
    }

    /// Returns an item, to change it.
    #[inline]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.blocks.get_mut(at >> BITS)?.get_mut(at & (SIZE - 1))
    }

    /// Returns all items.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().flatten()
    }

    /// Returns the items in a range of indices, one slice after the other.
    fn slices(&self, range: Range<usize>) -> impl Iterator<Item = &[T]> {
        let mut at = range.start;
        std::iter::from_fn(move || {
            let left = range.end.checked_sub(at).filter(|left| *left > 0)?;
            let block = self.blocks.get(at >> BITS)?;
            let rest = block.get(at & (SIZE - 1)..)?;
            let slice = rest
                .get(..left.min(rest.len()))
                .filter(|slice| !slice.is_empty())?;
            at = at.saturating_add(slice.len());
            Some(slice)
        })
    }
}

impl<T: Copy + PartialEq> Blocks<T> {
    /// Adds items, and returns the index of the first one.
    pub fn extend(&mut self, mut items: &[T]) -> usize {
        let start = self.len;
        while !items.is_empty()
            && let Some(block) = self.last()
        {
            let room = SIZE.saturating_sub(block.len()).min(items.len());
            let (fitting, rest) = items.split_at_checked(room).unwrap_or_default();
            block.extend_from_slice(fitting);
            items = rest;
            self.len = self.len.saturating_add(room);
        }
        start
    }

    /// Returns whether `items` begin at an index.
    #[inline]
    pub fn is_at(&self, start: usize, mut items: &[T]) -> bool {
        for slice in self.slices(start..start.saturating_add(items.len())) {
            match items.strip_prefix(slice) {
                Some(rest) => items = rest,
                None => return false,
            }
        }
        items.is_empty()
    }

    /// Appends the items in a range of indices to `list`.
    pub fn copy_to(&self, range: Range<usize>, list: &mut Vec<T>) {
        self.slices(range)
            .for_each(|slice| list.extend_from_slice(slice));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_in_blocks_is_a_list() {
        let (mut list, mut blocks) = (Vec::new(), Blocks::default());
        let mut starts = Vec::new();
        for number in 0..3000_usize {
            let items: Vec<usize> = (0..number % 50).map(|at| number * at).collect();
            starts.push((blocks.extend(&items), items.clone()));
            list.extend(items);
            if number % 7 == 0 {
                blocks.push(number);
                list.push(number);
            }
        }
        assert!(list.len() > 4 * SIZE && blocks.iter().eq(&list));
        for (start, items) in starts {
            assert!(blocks.is_at(start, &items));
            let mut copy = vec![7];
            blocks.copy_to(start..start + items.len(), &mut copy);
            assert_eq!(copy.split_first(), Some((&7, &*items)));
            let mut other = items;
            if let Some(last) = other.last_mut() {
                *last += 1;
                assert!(!blocks.is_at(start, &other));
            }
        }
        for at in [0, 1, SIZE - 1, SIZE, list.len() - 1, list.len(), usize::MAX] {
            assert_eq!(blocks.get(at), list.get(at));
            assert_eq!(blocks.get_mut(at), list.get_mut(at));
        }
        assert!(!blocks.is_at(list.len() - 1, &[list[list.len() - 1], 0]));
        assert!(!blocks.is_at(usize::MAX, &[1]));
    }
}
