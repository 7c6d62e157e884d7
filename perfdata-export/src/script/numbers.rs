//! Numbers as C's `printf` writes them.

/// Maximum number of decimal digits of 64 bits, with a sign.
const MOST_DIGITS: usize = 21;

/// The digits of all numbers below 100.
#[allow(
    clippy::indexing_slicing,
    reason = "the compiler would panic, not the program"
)]
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0_u8;
    while number < 100 {
        pairs[number as usize] = [b'0' + number / 10, b'0' + number % 10];
        number += 1;
    }
    pairs
};

/// Returns the last two digits of a number.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the remainder is below 100; each number of the text passes here"
)]
fn pair(number: u64) -> [u8; 2] {
    PAIRS
        .get((number % 100) as usize)
        .copied()
        .unwrap_or_default()
}

/// The digits of a number at the end of an array, with padding before them.
struct Digits {
    bytes: [u8; MOST_DIGITS],
    start: usize,
}

#[allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "single digits; each number of the text passes here"
)]
impl Digits {
    fn decimal(mut number: u64, pad: u8) -> Self {
        let mut digits = Digits {
            bytes: [pad; MOST_DIGITS],
            start: MOST_DIGITS,
        };
        while number >= 10 {
            let [ten, one] = pair(number);
            digits.push(one);
            digits.push(ten);
            number /= 100;
            if number == 0 {
                return digits;
            }
        }
        digits.push(b'0' | number as u8);
        digits
    }

    fn push(&mut self, digit: u8) {
        self.start = self.start.saturating_sub(1);
        if let Some(place) = self.bytes.get_mut(self.start) {
            *place = digit;
        }
    }

    fn signed(number: i64) -> Self {
        let mut digits = Digits::decimal(number.unsigned_abs(), b' ');
        if number < 0 {
            digits.push(b'-');
        }
        digits
    }

    /// Returns the digits, after as much padding as at least `width` characters need: up to
    /// [`MOST_DIGITS`].
    fn padded(&self, width: usize) -> &[u8] {
        let start = self.start.min(MOST_DIGITS.saturating_sub(width));
        self.bytes.get(start..).unwrap_or_default()
    }
}

/// Returns the 8 hexadecimal digits of a number: each step moves the digits into twice as many
/// bits.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "each byte holds a digit, and becomes a character; each address passes here"
)]
const fn hex_digits(number: u32) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut digits = number as u64;
    digits = (digits | digits << 16) & 0x0000_ffff_0000_ffff;
    digits = (digits | digits << 8) & 0x00ff_00ff_00ff_00ff;
    digits = (digits | digits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let are_letters = (digits + 6 * ONES) >> 4 & ONES;
    let letters = are_letters * (b'a' - b'0' - 10) as u64;
    (digits + b'0' as u64 * ONES + letters).to_be_bytes()
}

/// Appends a number as `%WIDTHu`.
pub(crate) fn push_number(out: &mut Vec<u8>, number: u64, width: usize) {
    out.extend_from_slice(Digits::decimal(number, b' ').padded(width));
}

/// Appends a number as `%0WIDTHu`.
pub(super) fn push_zeros(out: &mut Vec<u8>, number: u64, width: usize) {
    out.extend_from_slice(Digits::decimal(number, b'0').padded(width));
}

/// Appends a number as `%WIDTHd`.
pub(super) fn push_signed(out: &mut Vec<u8>, number: i64, width: usize) {
    out.extend_from_slice(Digits::signed(number).padded(width));
}

/// Appends a number as `%0WIDTHd`.
pub(super) fn push_signed_zeros(out: &mut Vec<u8>, number: i64, width: usize) {
    if number < 0 {
        out.push(b'-');
    }
    let width = width.saturating_sub(usize::from(number < 0));
    push_zeros(out, number.unsigned_abs(), width);
}

/// Appends a number as `%-WIDTHd`.
pub(super) fn push_left(out: &mut Vec<u8>, number: i64, width: usize) {
    let start = out.len();
    out.extend_from_slice(Digits::signed(number).padded(0));
    pad_to(out, start, width);
}

/// Returns a number as `%16lx`, and the number of blanks before its digits.
#[inline]
fn padded_hex(number: u64) -> ([u8; 16], usize) {
    let mut digits = [0; 16];
    let (high, low) = digits.split_at_mut(8);
    high.copy_from_slice(&hex_digits((number >> 32) as u32));
    low.copy_from_slice(&hex_digits(number as u32));
    // At least one digit is written.
    let zeros = (number | 1).leading_zeros() / 4;
    let shown = u128::MAX
        .checked_shr(zeros.saturating_mul(8))
        .unwrap_or_default();
    let blanks = u128::from_be_bytes([b' '; 16]) & !shown;
    let digits = (u128::from_be_bytes(digits) & shown | blanks).to_be_bytes();
    (digits, usize::try_from(zeros).unwrap_or_default())
}

/// Returns a number as `%16lx`.
#[inline]
pub(super) fn wide_hex(number: u64) -> [u8; 16] {
    padded_hex(number).0
}

/// Appends a number as `%WIDTHlx`, for widths up to 16.
#[inline]
pub(super) fn push_hex(out: &mut Vec<u8>, number: u64, width: usize) {
    let (digits, zeros) = padded_hex(number);
    match width {
        16 => out.extend_from_slice(&digits),
        _ => {
            let start = zeros.min(digits.len().saturating_sub(width));
            out.extend_from_slice(digits.get(start..).unwrap_or_default());
        }
    }
}

/// Returns a number as `%lx`: the digits at the start of the array, and how many there are.
#[inline]
pub(super) fn short_hex(number: u64) -> ([u8; 16], usize) {
    let (digits, zeros) = padded_hex(number);
    let bits = u32::try_from(zeros.saturating_mul(8)).unwrap_or_default();
    let digits = u128::from_be_bytes(digits).checked_shl(bits);
    let digits = digits.unwrap_or_default().to_be_bytes();
    (digits, digits.len().saturating_sub(zeros))
}

/// Returns a number below 10,000 as `%u`: the digits at the start of the array, and how many there are.
#[inline]
pub(super) fn short_number(number: u64) -> ([u8; 4], usize) {
    let ([a, b], [c, d]) = (pair(number / 100), pair(number));
    let digits = u32::from_be_bytes([a, b, c, d]);
    // At least one digit is written.
    let zeros = ((digits & 0x0f0f_0f0f) | 1).leading_zeros() / 8;
    let digits = digits.checked_shl(zeros.saturating_mul(8));
    let digits = digits.unwrap_or_default().to_be_bytes();
    let zeros = usize::try_from(zeros).unwrap_or_default();
    (digits, digits.len().saturating_sub(zeros))
}

/// Appends bytes as `%WIDTHs`.
pub(super) fn push_bytes(out: &mut Vec<u8>, bytes: &[u8], width: usize) {
    let padding = width.saturating_sub(bytes.len());
    if padding > 0 {
        out.resize(out.len().saturating_add(padding), b' ');
    }
    out.extend_from_slice(bytes);
}

/// Appends blanks until what starts at `start` has `width` characters.
pub(super) fn pad_to(out: &mut Vec<u8>, start: usize, width: usize) {
    let end = start.saturating_add(width);
    if out.len() < end {
        out.resize(end, b' ');
    }
}

/// Appends the time of a sample: seconds, and microseconds or nanoseconds.
pub(super) fn push_time(out: &mut Vec<u8>, time: u64, nanoseconds: bool) {
    const SECOND: u64 = 1_000_000_000;
    let (seconds, rest) = (
        time.checked_div(SECOND).unwrap_or_default(),
        time.checked_rem(SECOND).unwrap_or_default(),
    );
    push_number(out, seconds, 5);
    if nanoseconds {
        out.push(b'.');
        return push_zeros(out, rest, 9);
    }
    let micros = rest.checked_div(1000).unwrap_or_default();
    let [[a, b], [c, d], [e, f]] = [micros / 10_000, micros / 100, micros].map(pair);
    // The whole text has a fixed length.
    out.extend_from_slice(&[b'.', a, b, c, d, e, f]);
}

/// Appends a size as perf shows page sizes: `4K`, `2M` (tools/perf/util/units.c,
/// `unit_number__scnprintf`).
pub(super) fn push_page_size(out: &mut Vec<u8>, mut size: u64) {
    if size == 0 {
        return out.extend_from_slice(b"N/A");
    }
    let mut unit = b'B';
    for larger in *b"KMG" {
        if size >> 10 <= 1 {
            break;
        }
        (size, unit) = (size >> 10, larger);
    }
    push_number(out, size, 0);
    out.push(unit);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_as_printf_writes_them() {
        assert_eq!(text(|out| push_number(out, 42, 5)), "   42");
        assert_eq!(
            text(|out| push_number(out, u64::MAX, 0)),
            format!("{}", u64::MAX)
        );
        assert_eq!(
            text(|out| push_signed(out, i64::MIN, 3)),
            format!("{}", i64::MIN)
        );
        assert_eq!(text(|out| push_signed(out, -1, 7)), "     -1");
        assert_eq!(text(|out| push_signed_zeros(out, -1, 3)), "-01");
        assert_eq!(text(|out| push_signed_zeros(out, 7, 3)), "007");
        assert_eq!(text(|out| push_left(out, -1, 5)), "-1   ");
        assert_eq!(text(|out| push_hex(out, 0xfeed, 8)), "    feed");
        for number in [0, 9, 10, 0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210] {
            for width in [0, 5, 16] {
                let expected = format!("{number:width$x}");
                assert_eq!(text(|out| push_hex(out, number, width)), expected);
            }
        }
        assert_eq!(text(|out| push_bytes(out, b"long name", 4)), "long name");
    }

    #[test]
    fn short_numbers_have_no_padding() {
        for number in 0..10_000 {
            let (digits, len) = short_number(number);
            assert_eq!(digits[..len], *number.to_string().as_bytes());
        }
        for bits in 0..64 {
            for number in [
                u64::MAX >> bits,
                1 << bits,
                0x0123_4567_89ab_cdef >> bits,
                0,
            ] {
                let (digits, len) = short_hex(number);
                assert_eq!(digits[..len], *format!("{number:x}").as_bytes());
            }
        }
    }

    #[test]
    fn times_have_six_or_nine_digits() {
        assert_eq!(
            text(|out| push_time(out, 1_000_002_003, false)),
            "    1.000002"
        );
        assert_eq!(
            text(|out| push_time(out, 1_000_002_003, true)),
            "    1.000002003"
        );
    }

    #[test]
    fn page_sizes_have_units() {
        let sizes = [
            (0, "N/A"),
            (1, "1B"),
            (1024, "1024B"),
            (4096, "4K"),
            (2 << 20, "2M"),
            (1 << 30, "1024M"),
            (1 << 40, "1024G"),
        ];
        for (size, expected) in sizes {
            assert_eq!(text(|out| push_page_size(out, size)), expected);
        }
    }
}
