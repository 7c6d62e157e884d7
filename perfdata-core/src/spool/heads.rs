//! Which of several sorted sequences has the next item.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// The keys of the next items of sorted sequences, for a merge of them. Of equal keys, that of the
/// sequence with the lowest number comes first.
#[derive(Debug, Clone)]
pub struct Heads<K>(BinaryHeap<Reverse<(K, usize)>>);

impl<K: Ord> Default for Heads<K> {
    fn default() -> Self {
        Heads(BinaryHeap::new())
    }
}

impl<K: Ord> Heads<K> {
    /// Adds the key of the next item of a sequence.
    pub fn push(&mut self, key: K, sequence: usize) {
        self.0.push(Reverse((key, sequence)));
    }

    /// Returns the first key, and its sequence.
    #[inline]
    pub fn first(&self) -> Option<(&K, usize)> {
        self.0
            .peek()
            .map(|Reverse((key, sequence))| (key, *sequence))
    }

    /// Removes and returns the first key and its sequence.
    #[inline]
    pub fn pop(&mut self) -> Option<(K, usize)> {
        self.0.pop().map(|Reverse(first)| first)
    }

    /// Replaces the first key by the next one of its sequence, if there is one.
    #[inline]
    pub fn replace_first(&mut self, next: Option<K>) {
        let Some(mut first) = self.0.peek_mut() else {
            return;
        };
        match next {
            Some(key) => first.0.0 = key,
            None => {
                PeekMut::pop(first);
            }
        }
    }
}

impl<K: Ord> FromIterator<(K, usize)> for Heads<K> {
    fn from_iter<I: IntoIterator<Item = (K, usize)>>(heads: I) -> Self {
        Heads(heads.into_iter().map(Reverse).collect())
    }
}
