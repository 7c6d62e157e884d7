//! Masks of bits and of processors.

use perfdata_core::Endian;

use crate::printf;

/// Returns the bytes of a mask, those of the lowest bits first. Masks consist of numbers of the
/// size of a `long`, so that the order of all bytes depends on the byte order.
fn from_lowest(mask: &[u8], endian: Endian) -> Box<dyn DoubleEndedIterator<Item = u8> + '_> {
    let bytes = mask.iter().copied();
    match endian {
        Endian::Little => Box::new(bytes),
        Endian::Big => Box::new(bytes.rev()),
    }
}

/// Appends the digits of a mask, with commas between 32 bits (`print_bitmask_to_seq`).
pub fn bits(mask: &[u8], endian: Endian, out: &mut Vec<u8>) {
    let mut left = mask.len();
    for byte in from_lowest(mask, endian).rev() {
        printf::hex_byte(byte, out);
        left = left.saturating_sub(1);
        if left > 0 && left.is_multiple_of(4) {
            out.push(b',');
        }
    }
}

/// Appends the numbers of the bits that are set: `0-3,8` (`print_cpumask_to_seq`).
pub fn list(mask: &[u8], endian: Endian, out: &mut Vec<u8>) {
    let mut range: Option<(i64, i64)> = None;
    let mut is_first = true;
    let mut finish = |range: &mut Option<(i64, i64)>, out: &mut Vec<u8>| {
        let Some((first, last)) = range.take() else {
            return;
        };
        if !is_first {
            out.push(b',');
        }
        is_first = false;
        printf::decimal(first, out);
        if last > first {
            out.push(b'-');
            printf::decimal(last, out);
        }
    };
    let bits = from_lowest(mask, endian).flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
    for (at, bit) in (0_i64..).zip(bits) {
        match &mut range {
            _ if bit == 0 => finish(&mut range, out),
            Some((_, last)) => *last = at,
            None => range = Some((at, at)),
        }
    }
    finish(&mut range, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(mask: &[u8], endian: Endian) -> (String, String) {
        let (mut digits, mut numbers) = (Vec::new(), Vec::new());
        bits(mask, endian, &mut digits);
        list(mask, endian, &mut numbers);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(digits), text(numbers))
    }

    #[test]
    fn masks_are_printed_from_the_highest_bit_and_lists_from_the_lowest() {
        let cases: [(&[u8], &str, &str); 5] = [
            (&[], "", ""),
            (&[0x0d], "0d", "0,2-3"),
            (&[0xff, 0x01, 0, 0, 0x80], "80,000001ff", "0-8,39"),
            (&[0, 0, 0, 0], "00000000", ""),
            (&[0xff; 8], "ffffffff,ffffffff", "0-63"),
        ];
        for (mask, digits, numbers) in cases {
            let expected = (digits.to_owned(), numbers.to_owned());
            assert_eq!(shown(mask, Endian::Little), expected);
            let reversed: Vec<u8> = mask.iter().rev().copied().collect();
            assert_eq!(shown(&reversed, Endian::Big), expected);
        }
    }
}
