//! Callchains as numbers: each is a frame and the callchain of its caller.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::Result;
use perfdata_core::read::Limits;
use perfdata_core::record::CpuMode;

use crate::ids::{MappingId, StackId};
use crate::sample::Frame;

/// One entry of a table of callchains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Stack {
    /// The callchain of the caller; `None` for an outermost frame.
    pub parent: Option<StackId>,
    /// Address of the frame, as [`Frame::address`].
    pub address: u64,
    /// Where the CPU was.
    pub mode: CpuMode,
    /// What is mapped at the address.
    pub mapping: Option<MappingId>,
    /// Whether the address is a return address.
    pub is_return: bool,
}

/// A table of callchains, each of which is there once: callers before what they call.
#[derive(Debug)]
pub struct Stacks {
    list: Vec<Stack>,
    known: HashMap<Stack, StackId, RandomState>,
    limits: Limits,
    /// The frames of a callchain, for their memory.
    frames: Vec<Stack>,
}

impl Stacks {
    /// An empty table, that grows as far as `limits` go.
    pub fn new(limits: Limits) -> Self {
        Stacks { list: Vec::new(), known: HashMap::default(), limits, frames: Vec::new() }
    }

    /// The ID of the callchain with `frames`, the innermost first; `None` for no frames.
    ///
    /// # Errors
    /// The table takes more than the limits grant.
    pub fn intern<'a>(&mut self, frames: impl Iterator<Item = Frame<'a>>) -> Result<Option<StackId>> {
        let Stacks { list, known, frames: scratch, .. } = self;
        scratch.clear();
        scratch.extend(frames.map(|frame| {
            let Frame { address, mode, is_return, mapping, .. } = frame;
            Stack { parent: None, address, mode, mapping, is_return }
        }));
        let mut id = None;
        for frame in scratch.iter().rev() {
            let stack = Stack { parent: id, ..*frame };
            // An entry would make room in the table even for what is there.
            id = known.get(&stack).copied().or_else(|| {
                let new = StackId::of(list.len());
                known.insert(stack, new);
                list.push(stack);
                Some(new)
            });
        }
        self.limits.check_metadata("callchains", self.held() as u64)?;
        Ok(id)
    }

    /// The entry of `id`.
    pub fn get(&self, id: StackId) -> Option<&Stack> {
        self.list.get(id.index())
    }

    /// All entries.
    pub fn list(&self) -> &[Stack] {
        &self.list
    }

    /// The frames of a callchain, the innermost first.
    pub fn frames(&self, id: StackId) -> impl Iterator<Item = &Stack> {
        std::iter::successors(self.get(id), |stack| self.get(stack.parent?))
    }

    /// Bytes that the table takes, about.
    pub fn held(&self) -> usize {
        self.list.len().saturating_mul(size_of::<Stack>().saturating_mul(2).saturating_add(16))
    }
}
