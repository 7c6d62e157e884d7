//! The memory of a task, as far as it is known: its copied stack, and constants of mapped files.

use crate::expression::Surroundings;
use crate::frame::FrameRegisters;
use crate::objects::Objects;
use crate::unwinder::{At, MappedObject, Maps, Task};

/// The memory of a task, as far as it is known.
pub(crate) struct Memory<'a, M> {
    pub task: &'a Task<'a>,
    pub start: u64,
    pub maps: &'a M,
    pub objects: &'a Objects,
    pub is_big_endian: bool,
}

/// Why memory cannot be read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unknown {
    /// It may be on the stack, after the end of the copy.
    Stack,
    Other,
}

/// Distance in bytes from the end of the copied stack in which an address is considered to be on
/// the stack: the usual maximum size of a stack.
pub(crate) const STACK: u64 = 8 << 20;

impl<M: Maps> Memory<'_, M> {
    /// Returns the word at an address.
    #[inline]
    pub fn word(&self, address: u64) -> Result<u64, Unknown> {
        let size = self.task.machine.word();
        if size == 8
            && let Some(offset) = address.checked_sub(self.start)
            && let Ok(at) = usize::try_from(offset)
            && let Some(rest) = self.task.stack.get(at..)
            && let Some(word) = rest.first_chunk()
        {
            return Ok(match self.is_big_endian {
                true => u64::from_be_bytes(*word),
                false => u64::from_le_bytes(*word),
            });
        }
        self.read(address, size)
    }

    /// Returns `size` bytes at an address, as a number.
    pub fn read(&self, address: u64, size: u8) -> Result<u64, Unknown> {
        let offset = address.checked_sub(self.start);
        let range = offset.and_then(|offset| {
            let at = usize::try_from(offset).ok()?;
            Some(at..at.checked_add(size.into())?)
        });
        if let Some(bytes) = range.and_then(|range| self.task.stack.get(range)) {
            return Ok(self.number(bytes));
        }
        if let At::Object(MappedObject {
            object,
            start,
            pgoff,
        }) = self.maps.at(address)
            && let Ok(object) = self.objects.get(object)
            && let Some(bytes) =
                object.constant(address.wrapping_sub(start).wrapping_add(pgoff), size)
        {
            return Ok(self.number(&bytes));
        }
        let end = self.task.stack.len() as u64;
        Err(match offset {
            Some(offset) if offset < end.saturating_add(STACK) => Unknown::Stack,
            _ => Unknown::Other,
        })
    }

    fn number(&self, bytes: &[u8]) -> u64 {
        if let Ok(word) = bytes.try_into() {
            return match self.is_big_endian {
                true => u64::from_be_bytes(word),
                false => u64::from_le_bytes(word),
            };
        }
        let digit = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        match self.is_big_endian {
            true => bytes.iter().fold(0, digit),
            false => bytes.iter().rev().fold(0, digit),
        }
    }
}

impl<M: Maps> Surroundings for (&FrameRegisters, &Memory<'_, M>) {
    fn register(&self, number: u16) -> Option<u64> {
        self.0.get(u8::try_from(number).ok()?)
    }

    fn memory(&self, address: u64, size: u8) -> Option<u64> {
        let (_, memory) = self;
        let address = memory.task.machine.truncated(address);
        memory.read(address, size.min(8)).ok()
    }
}
