//! Numbers in texts and in raw data.

use perfdata_core::Endian;

/// Splits a number in C's notation into its sign, its base and its digits.
fn parts(text: &[u8]) -> (bool, u64, &[u8]) {
    let mut rest = text.trim_ascii_start();
    let mut is_negative = false;
    if let [sign @ (b'-' | b'+'), digits @ ..] = rest {
        is_negative = *sign == b'-';
        rest = digits;
    }
    match rest {
        [b'0', b'x' | b'X', digits @ ..] if digits.first().is_some_and(u8::is_ascii_hexdigit) => {
            (is_negative, 16, digits)
        }
        [b'0', ..] => (is_negative, 8, rest),
        _ => (is_negative, 10, rest),
    }
}

/// Returns the digits before the first other character as a number; `None` if it has more than 64
/// bits.
fn magnitude(base: u64, digits: &[u8]) -> Option<u64> {
    let mut sum = 0_u64;
    for digit in digits {
        let value = char::from(*digit).to_digit(16).map(u64::from);
        let Some(value) = value.filter(|value| *value < base) else {
            break;
        };
        sum = sum.checked_mul(base)?.checked_add(value)?;
    }
    Some(sum)
}

/// Returns the number at the start of a text, like `strtoull(text, NULL, 0)`.
pub fn unsigned(text: &[u8]) -> u64 {
    let (is_negative, base, digits) = parts(text);
    match magnitude(base, digits) {
        Some(number) if is_negative => number.wrapping_neg(),
        Some(number) => number,
        None => u64::MAX,
    }
}

/// Returns the number at the start of a text, like `strtoll(text, NULL, 0)`.
pub fn signed(text: &[u8]) -> i64 {
    let (is_negative, base, digits) = parts(text);
    let number = magnitude(base, digits).unwrap_or(u64::MAX);
    if is_negative {
        0_i64.checked_sub_unsigned(number).unwrap_or(i64::MIN)
    } else {
        i64::try_from(number).unwrap_or(i64::MAX)
    }
}

/// Returns the hexadecimal number at the start of a text, like `strtoull(text, NULL, 16)`.
pub fn hexadecimal(text: &[u8]) -> u64 {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    magnitude(16, digits).unwrap_or(u64::MAX)
}

/// Returns the number of `size` bytes at an offset of raw data; 0 if the size is none of a number,
/// or if the number is not completely in the data (`tep_read_number`).
pub fn read(raw: &[u8], offset: usize, size: usize, endian: Endian) -> u64 {
    let bytes = offset
        .checked_add(size)
        .and_then(|end| raw.get(offset..end));
    match bytes {
        Some(&[a]) => a.into(),
        Some(&[a, b]) => match endian {
            Endian::Little => u16::from_le_bytes([a, b]).into(),
            Endian::Big => u16::from_be_bytes([a, b]).into(),
        },
        Some(&[a, b, c, d]) => match endian {
            Endian::Little => u32::from_le_bytes([a, b, c, d]).into(),
            Endian::Big => u32::from_be_bytes([a, b, c, d]).into(),
        },
        Some(&[a, b, c, d, e, f, g, h]) => match endian {
            Endian::Little => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            Endian::Big => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        },
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_like_c() {
        let cases: [(&str, u64, i64); 9] = [
            ("12UL", 12, 12),
            (" 0x1F", 31, 31),
            ("010", 8, 8),
            ("08", 0, 0),
            ("0xg", 0, 0),
            ("-2", u64::MAX - 1, -2),
            ("18446744073709551615", u64::MAX, i64::MAX),
            ("99999999999999999999", u64::MAX, i64::MAX),
            ("NAME", 0, 0),
        ];
        for (text, as_unsigned, as_signed) in cases {
            let found = (unsigned(text.as_bytes()), signed(text.as_bytes()));
            assert_eq!(found, (as_unsigned, as_signed), "{text}");
        }
        assert_eq!(signed(b"-99999999999999999999"), i64::MIN);
        assert_eq!(hexadecimal(b" 0xffffffff81 : x"), 0xff_ffff_ff81);
    }

    #[test]
    fn numbers_in_data_have_sizes_and_orders() {
        let raw = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let both = |size| {
            let at = |endian| read(&raw, 1, size, endian);
            (at(Endian::Little), at(Endian::Big))
        };
        assert_eq!(both(1), (2, 2));
        assert_eq!(both(2), (0x302, 0x203));
        assert_eq!(both(4), (0x0504_0302, 0x0203_0405));
        assert_eq!(both(8), (0x0908_0706_0504_0302, 0x0203_0405_0607_0809));
        assert_eq!(both(3), (0, 0));
        assert_eq!(read(&raw, 2, 8, Endian::Little), 0);
        assert_eq!(read(&raw, usize::MAX, 8, Endian::Little), 0);
    }
}
