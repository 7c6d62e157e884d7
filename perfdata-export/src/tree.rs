//! The different stacks of a recording as a tree.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// The number of the root, which is the caller of all outermost functions.
pub(crate) const ROOT: u32 = 0;

/// A stack: a function and the stack of its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node {
    pub parent: u32,
    pub frame: u32,
}

/// All stacks. A node's parent has a smaller number.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    known: HashMap<(u32, u32), u32, RandomState>,
}

impl Tree {
    /// Returns a tree that consists of the root.
    pub fn new() -> Self {
        Tree {
            nodes: vec![Node {
                parent: ROOT,
                frame: u32::MAX,
            }],
            known: HashMap::default(),
        }
    }

    /// Returns the number of the stack in which `frame` is called by the stack `parent`.
    pub fn child(&mut self, parent: u32, frame: u32) -> u32 {
        let nodes = &mut self.nodes;
        *self.known.entry((parent, frame)).or_insert_with(|| {
            nodes.push(Node { parent, frame });
            u32::try_from(nodes.len().saturating_sub(1)).unwrap_or(u32::MAX)
        })
    }

    /// Returns all nodes. The first one is the root.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the numbers and frames of a node and its callers, without the root.
    pub fn path(&self, node: u32) -> impl Iterator<Item = (u32, u32)> {
        let mut next = node;
        std::iter::from_fn(move || {
            let number = next;
            let node = self.nodes.get(usize::try_from(number).ok()?)?;
            next = node.parent;
            (number != ROOT).then_some((number, node.frame))
        })
    }

    /// Returns the sums of all nodes: what `own` has for a node, and the sums of its children.
    pub fn sums(&self, own: impl IntoIterator<Item = (u32, u64)>) -> Vec<u64> {
        let mut sums = vec![0_u64; self.nodes.len()];
        for (node, value) in own {
            if let Some(sum) = index(&mut sums, node) {
                *sum = sum.saturating_add(value);
            }
        }
        for (at, node) in self.nodes.iter().enumerate().skip(1).rev() {
            let value = sums.get(at).copied().unwrap_or_default();
            if let Some(sum) = index(&mut sums, node.parent) {
                *sum = sum.saturating_add(value);
            }
        }
        sums
    }

    /// Keeps the root and the nodes with a sum of at least `least`. Returns for each old number the
    /// new one of the node, or of its next caller that is kept.
    pub fn prune(&mut self, sums: &[u64], least: u64) -> Vec<u32> {
        let old = std::mem::replace(self, Tree::new());
        let mut numbers = vec![ROOT];
        for (node, &sum) in old.nodes.iter().zip(sums).skip(1) {
            let parent = usize::try_from(node.parent)
                .ok()
                .and_then(|at| numbers.get(at).copied())
                .unwrap_or(ROOT);
            numbers.push(match sum >= least {
                true => self.child(parent, node.frame),
                false => parent,
            });
        }
        numbers
    }
}

fn index(list: &mut [u64], at: u32) -> Option<&mut u64> {
    list.get_mut(usize::try_from(at).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_stacks_become_their_callers() {
        let mut tree = Tree::new();
        let main = tree.child(ROOT, 7);
        let (small, large) = (tree.child(main, 8), tree.child(main, 9));
        let below = tree.child(small, 9);
        assert_eq!(tree.child(main, 8), small);
        let sums = tree.sums([(main, 1), (large, 100), (below, 2)]);
        assert_eq!(sums, [103, 103, 2, 100, 2]);
        let numbers = tree.prune(&sums, 3);
        assert_eq!(numbers, [0, 1, 1, 2, 1]);
        assert_eq!(tree.nodes().len(), 3);
        assert_eq!(tree.child(1, 9), 2);
    }
}
