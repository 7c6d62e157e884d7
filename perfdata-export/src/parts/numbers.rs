//! The numbers that things of a part have among those of all parts.

/// Returns the new number of something, by its old one.
pub(crate) fn renumbered(list: &[u32], old: u32) -> Option<u32> {
    list.get(usize::try_from(old).ok()?).copied()
}

/// Returns what is known about a part, which is added if it is new.
pub(crate) fn of_part<T: Default>(parts: &mut Vec<T>, part: usize) -> Option<&mut T> {
    if parts.len() <= part {
        parts.resize_with(part.saturating_add(1), T::default);
    }
    parts.get_mut(part)
}
