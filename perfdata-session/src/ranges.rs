//! Address ranges that do not overlap, in address order. Copies share what is the same.
//!
//! The ranges are in the leaves of a tree. A change copies the leaf that it concerns, and the nodes
//! above it, if other copies share them. So any number of forked processes need little memory. The
//! tree of most processes is a single leaf.

use std::slice::Iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of ranges in a leaf, and of nodes below a node.
const MOST: usize = 32;
/// The number of items by which a node grows.
const GROWTH: usize = 8;

/// The addresses from `start` up to, but not including, `end`, and what is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<T> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) what: T,
}

/// Pieces in address order.
#[derive(Debug, Clone)]
pub(crate) struct Ranges<T> {
    root: Option<Arc<Node<T>>>,
    len: usize,
}

/// A node, which is not empty.
#[derive(Debug, Clone)]
struct Node<T> {
    items: Items<T>,
    held: Held,
}

#[derive(Debug, Clone)]
enum Items<T> {
    Pieces(Vec<Piece<T>>),
    Nodes(Vec<Child<T>>),
}

#[derive(Debug, Clone)]
struct Child<T> {
    /// First address of the first piece.
    start: u64,
    node: Arc<Node<T>>,
}

/// The memory use in bytes of all ranges that were created with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory(Arc<AtomicUsize>);

impl Memory {
    /// Returns the memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The part of the memory use of one allocation.
#[derive(Debug)]
struct Held {
    memory: Memory,
    bytes: usize,
}

impl Held {
    /// Bytes of an allocation besides its items: counters, the vector, and what the allocator adds.
    const OVERHEAD: usize = 96;

    fn new(memory: &Memory) -> Self {
        Held {
            memory: memory.clone(),
            bytes: 0,
        }
    }

    /// Notes that there is room for `count` items of type `I`.
    fn set<I>(&mut self, count: usize) {
        let bytes = count
            .saturating_mul(size_of::<I>())
            .saturating_add(Self::OVERHEAD);
        if bytes != self.bytes {
            let all = &self.memory.0;
            all.fetch_add(bytes.wrapping_sub(self.bytes), Ordering::Relaxed);
            self.bytes = bytes;
        }
    }
}

impl Clone for Held {
    fn clone(&self) -> Self {
        self.memory.0.fetch_add(self.bytes, Ordering::Relaxed);
        Held {
            memory: self.memory.clone(),
            bytes: self.bytes,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Ranges { root: None, len: 0 }
    }
}

impl<T> Ranges<T> {
    /// Returns the number of pieces.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns all pieces in address order.
    pub(crate) fn iter(&self) -> RangesIter<'_, T> {
        let mut pieces = RangesIter {
            here: [].iter(),
            above: Vec::new(),
        };
        if let Some(root) = &self.root {
            pieces.enter(root);
        }
        pieces
    }

    /// Returns the last piece that starts at or before `address`, and the first address of the next
    /// one.
    pub(crate) fn around(&self, address: u64) -> (Option<&Piece<T>>, Option<u64>) {
        let mut next = None;
        let mut node = self.root.as_ref();
        while let Some(Node { items, .. }) = node.map(Arc::as_ref) {
            match items {
                Items::Pieces(pieces) => {
                    let after = pieces.partition_point(|piece| piece.start <= address);
                    let last = after.checked_sub(1).and_then(|at| pieces.get(at));
                    return (last, pieces.get(after).map(|piece| piece.start).or(next));
                }
                Items::Nodes(nodes) => {
                    let after = nodes.partition_point(|child| child.start <= address);
                    next = nodes.get(after).map(|child| child.start).or(next);
                    let last = after.checked_sub(1).and_then(|at| nodes.get(at));
                    node = last.map(|child| &child.node);
                }
            }
        }
        (None, next)
    }

    /// Returns the last piece that starts at or before `address`.
    fn last_at(&self, address: u64) -> Option<&Piece<T>> {
        self.around(address).0
    }

    /// Returns the piece around `address`.
    pub(crate) fn find(&self, address: u64) -> Option<&Piece<T>> {
        self.last_at(address).filter(|piece| address < piece.end)
    }
}

impl<T: Copy> Ranges<T> {
    /// Removes and returns a piece that overlaps the addresses from `start` up to, but not
    /// including, `end`.
    pub(crate) fn take_overlapping(&mut self, start: u64, end: u64) -> Option<Piece<T>> {
        let piece = *self
            .last_at(end.checked_sub(1)?)
            .filter(|piece| piece.end > start)?;
        self.remove(piece.start);
        Some(piece)
    }

    /// Removes and returns the piece that starts at `start`.
    pub(crate) fn take_at(&mut self, start: u64) -> Option<Piece<T>> {
        let piece = *self.last_at(start).filter(|piece| piece.start == start)?;
        self.remove(piece.start);
        Some(piece)
    }

    /// Removes the piece that starts at `start`, which exists.
    fn remove(&mut self, start: u64) {
        self.len = self.len.saturating_sub(1);
        if let Some(root) = &mut self.root
            && Arc::make_mut(root).remove(start).is_none()
        {
            self.root = None;
        }
    }

    /// Adds a piece, which must not overlap others.
    pub(crate) fn insert(&mut self, piece: Piece<T>, memory: &Memory) {
        self.len = self.len.saturating_add(1);
        let Some(root) = &mut self.root else {
            let leaf = Node::new(Items::Pieces(vec![piece]), memory);
            self.root = Some(Arc::new(leaf));
            return;
        };
        if let Some(next) = Arc::make_mut(root).insert(piece, memory) {
            let first = Child {
                start: root.start(),
                node: Arc::clone(root),
            };
            *root = Arc::new(Node::new(Items::Nodes(vec![first, next]), memory));
        }
    }
}

impl<T> Node<T> {
    fn new(items: Items<T>, memory: &Memory) -> Self {
        let mut node = Node {
            items,
            held: Held::new(memory),
        };
        node.note();
        node
    }

    /// Returns the first address of the first piece.
    fn start(&self) -> u64 {
        let start = match &self.items {
            Items::Pieces(pieces) => pieces.first().map(|piece| piece.start),
            Items::Nodes(nodes) => nodes.first().map(|child| child.start),
        };
        start.unwrap_or(0)
    }

    /// Notes the memory use.
    fn note(&mut self) {
        match &self.items {
            Items::Pieces(pieces) => self.held.set::<Piece<T>>(pieces.capacity()),
            Items::Nodes(nodes) => self.held.set::<Child<T>>(nodes.capacity()),
        }
    }
}

impl<T: Copy> Node<T> {
    /// Adds a piece. If there is no room, returns the node that follows.
    fn insert(&mut self, piece: Piece<T>, memory: &Memory) -> Option<Child<T>> {
        let next = match &mut self.items {
            Items::Pieces(pieces) => {
                let at = pieces.partition_point(|other| other.start < piece.start);
                insert(pieces, at, piece).map(Items::Pieces)
            }
            Items::Nodes(nodes) => {
                let at = nodes
                    .partition_point(|child| child.start <= piece.start)
                    .saturating_sub(1);
                let child = nodes.get_mut(at)?;
                child.start = child.start.min(piece.start);
                let next = Arc::make_mut(&mut child.node).insert(piece, memory)?;
                insert(nodes, at.saturating_add(1), next).map(Items::Nodes)
            }
        };
        self.note();
        next.map(|items| {
            let node = Node::new(items, memory);
            Child {
                start: node.start(),
                node: Arc::new(node),
            }
        })
    }

    /// Removes the piece that starts at `start`. Returns the new first address; `None` if the node
    /// is empty now.
    fn remove(&mut self, start: u64) -> Option<u64> {
        match &mut self.items {
            Items::Pieces(pieces) => {
                let at = pieces.partition_point(|piece| piece.start < start);
                if pieces.get(at).is_some_and(|piece| piece.start == start) {
                    pieces.remove(at);
                }
                pieces.first().map(|piece| piece.start)
            }
            Items::Nodes(nodes) => {
                let at = nodes
                    .partition_point(|child| child.start <= start)
                    .saturating_sub(1);
                if let Some(child) = nodes.get_mut(at) {
                    match Arc::make_mut(&mut child.node).remove(start) {
                        Some(start) => child.start = start,
                        None => {
                            nodes.remove(at);
                        }
                    }
                }
                nodes.first().map(|child| child.start)
            }
        }
    }
}

/// Inserts an item at `at`. If there is no room, returns the items of the node that follows.
fn insert<I>(items: &mut Vec<I>, at: usize, item: I) -> Option<Vec<I>> {
    if items.len() < MOST {
        if items.len() == items.capacity() {
            items.reserve_exact(GROWTH);
        }
        items.insert(at, item);
        return None;
    }
    // If the addresses increase, all nodes are full.
    let half = if at == MOST { MOST } else { MOST / 2 };
    let mut next = items.split_off(half);
    match at.checked_sub(half) {
        Some(at) => next.insert(at, item),
        None => items.insert(at, item),
    }
    Some(next)
}

/// The pieces of [`Ranges`] in address order.
#[derive(Debug)]
pub(crate) struct RangesIter<'a, T> {
    here: Iter<'a, Piece<T>>,
    /// The next nodes on each level above.
    above: Vec<Iter<'a, Child<T>>>,
}

impl<'a, T> RangesIter<'a, T> {
    /// Continues with the first piece of a node.
    fn enter(&mut self, mut node: &'a Arc<Node<T>>) {
        loop {
            match &node.items {
                Items::Pieces(pieces) => {
                    self.here = pieces.iter();
                    return;
                }
                Items::Nodes(nodes) => {
                    let mut nodes = nodes.iter();
                    let Some(first) = nodes.next() else { return };
                    self.above.push(nodes);
                    node = &first.node;
                }
            }
        }
    }
}

impl<'a, T> Iterator for RangesIter<'a, T> {
    type Item = &'a Piece<T>;

    fn next(&mut self) -> Option<&'a Piece<T>> {
        loop {
            if let Some(piece) = self.here.next() {
                return Some(piece);
            }
            match self.above.last_mut()?.next() {
                Some(child) => self.enter(&child.node),
                None => {
                    self.above.pop();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn pieces(ranges: &Ranges<u32>) -> Vec<(u64, u64, u32)> {
        ranges
            .iter()
            .map(|piece| (piece.start, piece.end, piece.what))
            .collect()
    }

    /// The same pieces as in a sorted map, for any order of changes, and in each copy.
    #[test]
    fn changes_are_those_of_a_map() {
        for seed in 1..50 {
            check(seed);
        }
    }

    fn check(seed: u64) {
        let mut state = seed;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let memory = Memory::default();
        let mut known: BTreeMap<u64, u32> = BTreeMap::new();
        let (mut ranges, mut copies) = (Ranges::default(), Vec::new());
        let places = 1 + random(3000);
        for what in 0..5000 {
            let start = random(places) * 10;
            match random(16) {
                0 => {
                    let taken = ranges.take_at(start).map(|piece| piece.what);
                    assert_eq!(taken, known.remove(&start));
                }
                1 => {
                    let taken = ranges.take_overlapping(start + 9, start + 25);
                    let expected = [start + 20, start + 10]
                        .into_iter()
                        .find_map(|start| known.remove(&start));
                    assert_eq!(taken.map(|piece| piece.what), expected);
                }
                2 if copies.len() < 8 => copies.push((ranges.clone(), known.clone())),
                _ if known.contains_key(&start) => {}
                _ => {
                    known.insert(start, what);
                    let end = start + 9;
                    ranges.insert(Piece { start, end, what }, &memory);
                }
            }
        }
        copies.push((ranges, known));
        for (ranges, known) in &copies {
            let expected: Vec<_> = known
                .iter()
                .map(|(&start, &what)| (start, start + 9, what))
                .collect();
            assert_eq!(pieces(ranges), expected, "with {seed}");
            assert_eq!(ranges.len(), known.len());
            assert_eq!(ranges.is_empty(), known.is_empty());
            for address in 0..30_010 {
                let found = ranges.find(address).map(|piece| piece.what);
                let expected = known.get(&(address / 10 * 10)).filter(|_| address % 10 < 9);
                assert_eq!(found.as_ref(), expected, "at {address} with {seed}");
                let next = known.range(address + 1..).next();
                assert_eq!(ranges.around(address).1, next.map(|(&start, _)| start));
            }
        }
        drop(copies);
        assert_eq!(memory.bytes(), 0);
    }

    #[test]
    fn the_last_address_is_never_mapped() {
        let memory = Memory::default();
        let mut ranges = Ranges::default();
        let piece = Piece {
            start: 5,
            end: u64::MAX,
            what: 1_u32,
        };
        ranges.insert(piece, &memory);
        assert!(ranges.find(u64::MAX - 1).is_some());
        assert!(ranges.find(u64::MAX).is_none() && ranges.find(4).is_none());
        assert!(ranges.take_overlapping(0, 5).is_none());
        assert!(ranges.take_overlapping(0, 6).is_some() && ranges.is_empty());
    }
}
