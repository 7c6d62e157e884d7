//! Callchains as IDs: each callchain is a frame and the callchain of its caller.

use foldhash::fast::RandomState;
use indexmap::IndexSet;
use perfdata_core::Result;
use perfdata_core::read::Limits;
use perfdata_core::record::CpuMode;

use crate::ids::{MappingId, StackId};
use crate::sample::Frame;

/// An entry of a table of callchains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Stack {
    /// The callchain of the caller; `None` for the outermost frame.
    pub parent: Option<StackId>,
    /// Address of the frame, as in [`Frame::address`].
    pub address: u64,
    /// The CPU mode.
    pub mode: CpuMode,
    /// The mapping at the address.
    pub mapping: Option<MappingId>,
    /// Whether the address is a return address.
    pub is_return: bool,
}

/// A table of callchains without duplicates. Callers precede their callees.
#[derive(Debug)]
pub struct Stacks {
    known: IndexSet<Stack, RandomState>,
    limits: Limits,
    /// Buffer for the frames of a callchain.
    frames: Vec<Stack>,
}

impl Stacks {
    /// Returns an empty table that can grow up to `limits`.
    pub fn new(limits: Limits) -> Self {
        Stacks {
            known: IndexSet::default(),
            limits,
            frames: Vec::new(),
        }
    }

    /// Returns the ID of the callchain with `frames`, innermost first; `None` without frames.
    ///
    /// # Errors
    /// The table exceeds the limits.
    pub fn intern<'a>(
        &mut self,
        frames: impl Iterator<Item = Frame<'a>>,
    ) -> Result<Option<StackId>> {
        let Stacks {
            known,
            frames: scratch,
            ..
        } = self;
        scratch.clear();
        scratch.extend(frames.map(|frame| {
            let Frame {
                address,
                mode,
                is_return,
                mapping,
                ..
            } = frame;
            Stack {
                parent: None,
                address,
                mode,
                mapping,
                is_return,
            }
        }));
        let mut id = None;
        for frame in scratch.iter().rev() {
            let stack = Stack {
                parent: id,
                ..*frame
            };
            // `insert_full` would reserve memory in the table even for known callchains.
            let at = known.get_index_of(&stack);
            id = Some(StackId::of(
                at.unwrap_or_else(|| known.insert_full(stack).0),
            ));
        }
        self.limits
            .check_metadata("callchains", self.held() as u64)?;
        Ok(id)
    }

    /// Returns the entry of `id`.
    pub fn get(&self, id: StackId) -> Option<&Stack> {
        self.known.get_index(id.index())
    }

    /// Returns all entries, in the order of their IDs.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Stack> {
        self.known.iter()
    }

    /// Returns the frames of a callchain, innermost first.
    pub fn frames(&self, id: StackId) -> impl Iterator<Item = &Stack> {
        std::iter::successors(self.get(id), |stack| self.get(stack.parent?))
    }

    /// Returns the approximate size of the table in bytes.
    pub fn held(&self) -> usize {
        self.known
            .len()
            .saturating_mul(size_of::<Stack>().saturating_mul(2).saturating_add(16))
    }
}
