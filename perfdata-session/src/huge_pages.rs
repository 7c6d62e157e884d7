//! Code that a program has copied from a file to memory with huge pages, which it put in the place
//! of the file's mapping.
//!
//! The record of such a mapping says that it is no file. The file is known in two cases: the process
//! has mapped it at all of these addresses before; or perf has read the mappings of a running
//! process, and the file continues after the memory where it ended before it.

use std::ops::Range;

use crate::space::Space;

/// The size of the smallest huge page in bytes, that of s390x. Those of other machines are multiples
/// of it.
pub const HUGE_PAGE: u64 = 1 << 20;

/// Returns whether memory can consist of huge pages.
pub fn is_in_huge_pages(memory: &Range<u64>) -> bool {
    memory.start < memory.end
        && memory.start.is_multiple_of(HUGE_PAGE)
        && memory.end.is_multiple_of(HUGE_PAGE)
}

/// Returns the file that is mapped at all addresses of the memory. `file_of` returns the file of a
/// mapping, and what is added to an address for its offset in the file.
pub fn file_under<T: Copy, F: PartialEq>(
    space: &Space<T>,
    memory: &Range<u64>,
    file_of: impl Fn(T) -> Option<(F, u64)>,
) -> Option<(F, u64)> {
    let (mut piece, what) = space.find(memory.start)?;
    let first = file_of(what)?;
    while piece.end < memory.end {
        let (next, what) = space.find(piece.end)?;
        if file_of(what).as_ref() != Some(&first) {
            return None;
        }
        piece = next;
    }
    Some(first)
}

/// Returns whether the memory from `start` is in the place of the file whose mapping follows it: the
/// same file precedes it with the same bias, or the memory begins with the first byte of the file.
/// `file_of` as in [`file_under`].
pub fn is_in_place_of<T: Copy, F: PartialEq>(
    space: &Space<T>,
    start: u64,
    following: &(F, u64),
    file_of: impl Fn(T) -> Option<(F, u64)>,
) -> bool {
    let before = start.checked_sub(1).and_then(|before| space.find(before));
    let before = before.and_then(|(_, what)| file_of(what));
    before.as_ref() == Some(following) || start.wrapping_add(following.1) == 0
}
