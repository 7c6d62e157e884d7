//! Decimal and hexadecimal digits, eight at a time.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "digits, in lanes that have room for the products"
)]

/// Bytes that a number may change: the 20 digits of the largest one, and some after them.
pub const ROOM: usize = 24;

/// Eight digits make a word, and this is the first number that has more.
const EIGHT_DIGITS: u64 = 100_000_000;

/// The digit 0 in each byte.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Writes the decimal digits of `number` to the start of `out` and returns how many there are. The
/// bytes after them may change.
#[inline]
pub fn decimal(out: &mut [u8; ROOM], number: u64) -> usize {
    if number < EIGHT_DIGITS {
        return without_zeros(out, number);
    }
    let (high, low) = (number / EIGHT_DIGITS, number % EIGHT_DIGITS);
    let len = if high < EIGHT_DIGITS {
        without_zeros(out, high)
    } else {
        let len = without_zeros(out, high / EIGHT_DIGITS);
        put(out, len, ZEROS + eight_digits(high % EIGHT_DIGITS));
        len + 8
    };
    put(out, len, ZEROS + eight_digits(low));
    len + 8
}

/// Writes the hexadecimal digits of `number` to the start of `out` and returns how many there are.
/// The bytes after them may change.
#[inline]
pub fn hexadecimal(out: &mut [u8; ROOM], number: u64) -> usize {
    let zeros = (number.leading_zeros() / 4).min(15);
    padded_hexadecimal(out, number << (4 * zeros)) - zeros as usize
}

/// Writes the 16 hexadecimal digits of `number` to the start of `out` and returns their number. The
/// bytes after them do not change.
#[inline]
pub fn padded_hexadecimal(out: &mut [u8; ROOM], number: u64) -> usize {
    put(out, 0, hexadecimal_digits((number >> 32) as u32));
    put(out, 8, hexadecimal_digits(number as u32));
    16
}

/// Appends a number.
pub fn push(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; ROOM];
    let len = decimal(&mut digits, number);
    out.extend_from_slice(digits.get(..len).unwrap_or_default());
}

/// Appends a signed number.
pub fn push_signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    push(out, number.unsigned_abs());
}

/// Appends a number in hexadecimal, without leading zeros.
pub fn push_hexadecimal(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; ROOM];
    let len = hexadecimal(&mut digits, number);
    out.extend_from_slice(digits.get(..len).unwrap_or_default());
}

/// Writes eight characters, of which the first is in the lowest byte of the word.
#[inline]
fn put(out: &mut [u8; ROOM], at: usize, characters: u64) {
    if let Some(place) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = characters.to_le_bytes();
    }
}

/// Writes a number of at most eight digits without leading zeros, and returns how many are left.
#[inline]
fn without_zeros(out: &mut [u8; ROOM], number: u64) -> usize {
    let digits = eight_digits(number);
    let zeros = (digits.trailing_zeros() / 8).min(7);
    put(out, 0, (ZEROS + digits) >> (8 * zeros));
    8 - zeros as usize
}

/// Returns the values of the eight digits of a number below [`EIGHT_DIGITS`], the first in the
/// lowest byte. The quotients by 100 and 10 are products with a reciprocal, for all digits at once.
#[inline]
fn eight_digits(number: u64) -> u64 {
    let halves = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | (halves - 100 * hundreds) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (pairs - 10 * tens) << 8
}

/// Returns the eight hexadecimal digits of a number, the first in the lowest byte.
#[inline]
fn hexadecimal_digits(number: u32) -> u64 {
    let bytes = u64::from(number.swap_bytes());
    let bytes = (bytes | bytes << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (bytes | bytes << 8) & 0x00ff_00ff_00ff_00ff;
    let digits = (bytes >> 4 | bytes << 8) & 0x0f0f_0f0f_0f0f_0f0f;
    // A letter is further away from the digits.
    let letters = (digits + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    ZEROS + digits + letters * u64::from(b'a' - b'9' - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        let numbers = powers.flat_map(|power| [power - 1, power, power + 1, power.wrapping_mul(7)]);
        let random = (0..10_000).map(|at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (at % 64));
        let shifted = (0..64).flat_map(|bits| [1_u64 << bits, u64::MAX >> bits]);
        for number in numbers.chain(random).chain(shifted) {
            let mut text = Vec::new();
            push(&mut text, number);
            assert_eq!(text, number.to_string().as_bytes());
            let (mut signed, number) = (Vec::new(), number.cast_signed());
            push_signed(&mut signed, number);
            assert_eq!(signed, number.to_string().as_bytes());
            let mut text = Vec::new();
            push_hexadecimal(&mut text, number.cast_unsigned());
            assert_eq!(text, format!("{number:x}").as_bytes());
        }
    }

    #[test]
    fn all_pairs_and_quadruples_of_digits() {
        for number in 0..10_000 {
            for number in [number, number * 10_000, number * 10_001] {
                let mut out = [0; ROOM];
                put(&mut out, 0, ZEROS + eight_digits(number));
                assert_eq!(out[..8], *format!("{number:08}").as_bytes());
            }
        }
    }
}
