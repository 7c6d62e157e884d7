//! What the views of values have in common.

use perfdata_core::describe::{Leaf, Style};

/// Returns `word` as a signed number if all its bits are set and its style is one of those of which
/// -1 means "none".
pub fn signed(word: u64, size: usize, style: Style) -> Option<i64> {
    let ones = u64::MAX
        .checked_shr(64_u32.saturating_sub(8 * u32::try_from(size).unwrap_or(8)))
        .unwrap_or(u64::MAX);
    (style.has_none() && word == ones).then_some(-1)
}

/// Returns whether a value is only of interest together with its bytes.
pub fn is_filling(leaf: &Leaf<'_>) -> bool {
    matches!(
        leaf,
        Leaf::Count(_) | Leaf::Pad(_) | Leaf::Uint(_, Style::Pad)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_minus_one_in_its_own_width() {
        assert_eq!(signed(0xffff_ffff, 4, Style::Pid), Some(-1));
        assert_eq!(signed(0xffff_ffff, 8, Style::Pid), None);
        assert_eq!(signed(u64::MAX, 8, Style::Pid), Some(-1));
        assert_eq!(signed(0xffff_ffff, 4, Style::Plain), None);
    }
}
