//! Numbers that are equal to an address, but not by chance.

/// Returns whether a number that is equal to an address is not so by chance: enough of its bytes
/// are neither those of small numbers nor those of -1.
pub(super) fn is_distinct(address: u64) -> bool {
    distinct_bytes(address) >= 4 && !is_text(address)
}

/// Returns whether the bytes of an address do not occur by chance where other numbers touch. Two
/// small numbers have 4 bytes that are neither 0 nor 0xff.
pub(super) fn is_distinct_in_bytes(address: u64) -> bool {
    let is_kernel = address >> 32 == u64::from(u32::MAX);
    is_distinct(address) && (is_kernel || is_distinct_in_reversed_bytes(address))
}

/// Returns whether the bytes of an address do not occur by chance in the other byte order. Those of
/// a kernel address do: the first ones are those of a callchain's markers, and only 4 follow.
pub(super) fn is_distinct_in_reversed_bytes(address: u64) -> bool {
    distinct_bytes(address) >= 5 && !is_text(address)
}

/// Returns whether the bytes of an address may be a part of a name. No address that a processor
/// uses has more than 6 such bytes.
fn is_text(address: u64) -> bool {
    let bytes = address.to_le_bytes();
    bytes
        .iter()
        .filter(|byte| matches!(byte, b' '..=b'~'))
        .count()
        > 6
}

fn distinct_bytes(address: u64) -> usize {
    let bytes = address.to_le_bytes();
    let distinct = bytes.iter().filter(|byte| !matches!(byte, 0 | 0xff));
    distinct.count()
}
