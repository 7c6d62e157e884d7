//! Numbers as C's `printf` writes them.

/// Appends `digits` in at least `width` characters, right-aligned with `pad`.
fn push_right(out: &mut Vec<u8>, digits: &[u8], width: usize, pad: u8) {
    out.resize(
        out.len().saturating_add(width.saturating_sub(digits.len())),
        pad,
    );
    out.extend_from_slice(digits);
}

/// Maximum number of decimal digits of 64 bits, with a sign.
const MOST_DIGITS: usize = 21;

/// The digits of a number at the end of an array.
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
    const fn empty() -> Self {
        Digits {
            bytes: [b'0'; MOST_DIGITS],
            start: MOST_DIGITS,
        }
    }

    fn decimal(mut number: u64) -> Self {
        let mut digits = Digits::empty();
        loop {
            digits.push(b'0' | (number % 10) as u8);
            number /= 10;
            if number == 0 {
                return digits;
            }
        }
    }

    fn hexadecimal(mut number: u64) -> Self {
        let mut digits = Digits::empty();
        loop {
            let digit = (number & 0xf) as u8;
            digits.push(if digit < 10 {
                b'0' | digit
            } else {
                b'a' - 10 + digit
            });
            number >>= 4;
            if number == 0 {
                return digits;
            }
        }
    }

    fn push(&mut self, digit: u8) {
        self.start = self.start.saturating_sub(1);
        if let Some(place) = self.bytes.get_mut(self.start) {
            *place = digit;
        }
    }

    fn signed(number: i64) -> Self {
        let mut digits = Digits::decimal(number.unsigned_abs());
        if number < 0 {
            digits.push(b'-');
        }
        digits
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

/// Appends a number as `%WIDTHu`.
pub(super) fn push_number(out: &mut Vec<u8>, number: u64, width: usize) {
    push_right(out, Digits::decimal(number).bytes(), width, b' ');
}

/// Appends a number as `%0WIDTHu`.
pub(super) fn push_zeros(out: &mut Vec<u8>, number: u64, width: usize) {
    push_right(out, Digits::decimal(number).bytes(), width, b'0');
}

/// Appends a number as `%WIDTHd`.
pub(super) fn push_signed(out: &mut Vec<u8>, number: i64, width: usize) {
    push_right(out, Digits::signed(number).bytes(), width, b' ');
}

/// Appends a number as `%0WIDTHd`.
pub(super) fn push_signed_zeros(out: &mut Vec<u8>, number: i64, width: usize) {
    let digits = Digits::decimal(number.unsigned_abs());
    if number < 0 {
        out.push(b'-');
    }
    let width = width.saturating_sub(usize::from(number < 0));
    push_right(out, digits.bytes(), width, b'0');
}

/// Appends a number as `%-WIDTHd`.
pub(super) fn push_left(out: &mut Vec<u8>, number: i64, width: usize) {
    let start = out.len();
    out.extend_from_slice(Digits::signed(number).bytes());
    pad_to(out, start, width);
}

/// Appends a number as `%WIDTHlx`.
pub(super) fn push_hex(out: &mut Vec<u8>, number: u64, width: usize) {
    push_right(out, Digits::hexadecimal(number).bytes(), width, b' ');
}

/// Appends bytes as `%WIDTHs`.
pub(super) fn push_bytes(out: &mut Vec<u8>, bytes: &[u8], width: usize) {
    push_right(out, bytes, width, b' ');
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
    out.push(b'.');
    match nanoseconds {
        true => push_zeros(out, rest, 9),
        false => push_zeros(out, rest.checked_div(1000).unwrap_or_default(), 6),
    }
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
        assert_eq!(text(|out| push_bytes(out, b"long name", 4)), "long name");
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
