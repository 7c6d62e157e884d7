//! Decimal numbers, two digits at a time from a table.

/// The numbers from 0 to 99, two digits each.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < pairs.len() {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Appends a number.
pub fn push(out: &mut Vec<u8>, number: u64) {
    // Most numbers are small: PIDs, CPUs and sizes.
    if number < 10 {
        return out.push(b'0' + number as u8);
    }
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = number;
    while rest >= 10 {
        let pair = PAIRS
            .get((rest % 100) as usize)
            .copied()
            .unwrap_or_default();
        start = start.saturating_sub(2);
        if let Some(place) = digits.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
            *place = pair;
        }
        rest /= 100;
    }
    if rest > 0 {
        start = start.saturating_sub(1);
        if let Some(place) = digits.get_mut(start) {
            *place = b'0' + rest as u8;
        }
    }
    out.extend_from_slice(digits.get(start..).unwrap_or_default());
}

/// Appends a signed number.
pub fn push_signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    push(out, number.unsigned_abs());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        let numbers = powers.flat_map(|power| [power - 1, power, power + 1, power.wrapping_mul(7)]);
        let random = (0..1000).map(|at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (at % 64));
        for number in numbers.chain(random).chain([u64::MAX, 1 << 63]) {
            let mut text = Vec::new();
            push(&mut text, number);
            assert_eq!(text, number.to_string().as_bytes());
            let (mut signed, number) = (Vec::new(), number.cast_signed());
            push_signed(&mut signed, number);
            assert_eq!(signed, number.to_string().as_bytes());
        }
    }
}
