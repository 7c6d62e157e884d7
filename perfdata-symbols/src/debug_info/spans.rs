//! Ranges of addresses.

/// Maximum number of overlapping ranges that are searched.
const MOST_OVERLAPPING: usize = 8;

/// A range of addresses, and the number of its unit or the offset of its function in the unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub begin: u64,
    pub end: u64,
    pub what: usize,
}

/// Sorts ranges for [`spans_at`].
pub(super) fn sort(spans: &mut Vec<Span>) {
    spans.sort_by_key(|span| span.begin);
    spans.shrink_to_fit();
}

/// Returns what is at an address, the innermost range first.
pub(super) fn spans_at(spans: &[Span], address: u64) -> impl Iterator<Item = usize> + '_ {
    let after = spans.partition_point(|span| span.begin <= address);
    let before = spans.get(..after).unwrap_or_default();
    let near = before.iter().rev().take(MOST_OVERLAPPING);
    near.filter(move |span| address < span.end)
        .map(|span| span.what)
}
