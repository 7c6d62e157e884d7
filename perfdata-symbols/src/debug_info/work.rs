//! How much of the debug information of an object is read and kept.

/// Maximum number of entries, attributes, ranges and rows that are read of an object.
const MOST_WORK: u64 = 1 << 31;

/// What may still be read and kept of an object.
#[derive(Debug)]
pub(crate) struct Work {
    left: u64,
    memory: usize,
    held: usize,
}

impl Work {
    /// Returns the limits for an object with `memory` bytes.
    pub fn new(memory: usize) -> Self {
        Work {
            left: MOST_WORK,
            memory,
            held: 0,
        }
    }

    /// Returns the number of bytes that may still be kept.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Returns the number of bytes that are kept.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Counts what is read; `None` if the limit is exceeded.
    pub fn spend(&mut self, count: usize) -> Option<()> {
        self.left = self.left.checked_sub(count as u64)?;
        Some(())
    }

    /// Counts bytes that are kept; `None` if the limit is exceeded.
    pub fn hold(&mut self, bytes: usize) -> Option<()> {
        self.memory = self.memory.checked_sub(bytes)?;
        self.held = self.held.saturating_add(bytes);
        Some(())
    }
}
