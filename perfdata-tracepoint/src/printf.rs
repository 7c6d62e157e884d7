//! Conversions of `printf`.

/// The size of a number that is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bits {
    /// 8 bits (`hh`).
    Char,
    /// 16 bits (`h`).
    Short,
    /// 32 bits.
    Int,
    /// 64 bits (`l`, `ll`, `z`).
    Long,
    /// 32 bits that are taken for 64: what Linux 6.1 does with `z`.
    HalfLong,
}

impl Bits {
    /// Returns the size for how many `l` more than `h` there are; `None` if there are too many.
    pub fn new(longs: i32) -> Option<Self> {
        Some(match longs {
            -2 => Bits::Char,
            -1 => Bits::Short,
            0 => Bits::Int,
            1 | 2 => Bits::Long,
            _ => return None,
        })
    }

    fn signed(self, number: u64) -> i64 {
        match self {
            Bits::Char => i64::from(number as i8),
            Bits::Short => i64::from(number as i16),
            Bits::Int => i64::from(number as i32),
            Bits::Long => number.cast_signed(),
            Bits::HalfLong => i64::from(number as u32),
        }
    }

    fn unsigned(self, number: u64) -> u64 {
        match self {
            Bits::Char => number & 0xff,
            Bits::Short => number & 0xffff,
            Bits::Int | Bits::HalfLong => number & 0xffff_ffff,
            Bits::Long => number,
        }
    }
}

/// The most bytes that a width or a precision may require. perf has no limit.
const MAX_WIDTH: usize = 4096;

/// A width or a precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Amount {
    None,
    Fixed(usize),
    /// An argument.
    Arg,
}

impl Amount {
    fn read(text: &mut &[u8]) -> Self {
        if let Some(rest) = text.strip_prefix(b"*") {
            *text = rest;
            return Amount::Arg;
        }
        let mut amount = Amount::None;
        while let [digit @ b'0'..=b'9', rest @ ..] = text {
            let so_far = match amount {
                Amount::Fixed(so_far) => so_far,
                _ => 0,
            };
            let digit = usize::from(digit.wrapping_sub(b'0'));
            let sum = so_far.saturating_mul(10).saturating_add(digit);
            amount = Amount::Fixed(sum.min(MAX_WIDTH));
            *text = rest;
        }
        amount
    }
}

/// A conversion of `printf`: `%-16s`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    is_left: bool,
    has_sign: bool,
    is_alternate: bool,
    is_zero: bool,
    width: Amount,
    precision: Amount,
    /// The last letter: `x`.
    letter: u8,
    /// What is printed instead, because the parts are in another order.
    invalid: Option<Box<[u8]>>,
}

impl Spec {
    /// Parses a conversion from `%` to its letter.
    pub fn new(text: &[u8]) -> Self {
        let mut spec = Spec {
            is_left: false,
            has_sign: false,
            is_alternate: false,
            is_zero: false,
            width: Amount::None,
            precision: Amount::None,
            letter: text.last().copied().unwrap_or_default(),
            invalid: None,
        };
        let mut rest = text.strip_prefix(b"%").unwrap_or(text);
        while let [flag, after @ ..] = rest {
            match flag {
                b'-' => spec.is_left = true,
                b'+' => spec.has_sign = true,
                b'#' => spec.is_alternate = true,
                b'0' => spec.is_zero = true,
                _ => break,
            }
            rest = after;
        }
        spec.width = Amount::read(&mut rest);
        if let Some(after) = rest.strip_prefix(b".") {
            rest = after;
            spec.precision = match Amount::read(&mut rest) {
                Amount::None => Amount::Fixed(0),
                amount => amount,
            };
        }
        while let [b'h' | b'l' | b'L' | b'z' | b'Z', after @ ..] = rest {
            rest = after;
        }
        if rest.len() > 1 {
            spec.invalid = Some(text.into());
        }
        spec
    }

    /// Returns the width, and whether a negative one requires the left side.
    fn width(&self, len: Option<i32>) -> (usize, bool) {
        let (width, is_left) = match (self.width, len) {
            (Amount::Fixed(width), _) => (width, false),
            (Amount::Arg, Some(len)) => (len.unsigned_abs() as usize, len < 0),
            _ => (0, false),
        };
        (width.min(MAX_WIDTH), self.is_left || is_left)
    }

    fn precision(&self, len: Option<i32>) -> Option<usize> {
        match self.precision {
            Amount::Fixed(precision) => Some(precision),
            Amount::Arg => usize::try_from(len?).ok(),
            Amount::None => None,
        }
    }

    /// Appends a text. `len` is the argument that is the width or the precision.
    pub fn string(&self, text: &[u8], len: Option<i32>, out: &mut Vec<u8>) {
        if let Some(invalid) = &self.invalid {
            return out.extend_from_slice(invalid);
        }
        let text = match self.precision(len) {
            Some(precision) => text.get(..precision).unwrap_or(text),
            None => text,
        };
        let (width, is_left) = self.width(len);
        let padding = width.saturating_sub(text.len());
        if !is_left {
            pad(b' ', padding, out);
        }
        out.extend_from_slice(text);
        if is_left {
            pad(b' ', padding, out);
        }
    }

    /// Appends a number or a character.
    pub fn number(&self, number: u64, bits: Bits, len: Option<i32>, out: &mut Vec<u8>) {
        if let Some(invalid) = &self.invalid {
            return out.extend_from_slice(invalid);
        }
        let mut buffer = [0; 24];
        let (sign, digits): (&[u8], &[u8]) = match self.letter {
            b'c' => {
                let character = [number as u8];
                let spec = Spec {
                    precision: Amount::None,
                    ..self.clone()
                };
                return spec.string(&character, len, out);
            }
            b'd' | b'i' => {
                let number = bits.signed(number);
                let sign: &[u8] = match number {
                    ..0 => b"-",
                    _ if self.has_sign => b"+",
                    _ => b"",
                };
                (sign, digits(number.unsigned_abs(), 10, false, &mut buffer))
            }
            b'u' => (b"", digits(bits.unsigned(number), 10, false, &mut buffer)),
            b'o' => (b"", digits(bits.unsigned(number), 8, false, &mut buffer)),
            letter => {
                let number = bits.unsigned(number);
                let is_upper = letter == b'X';
                let prefix: &[u8] = match (self.is_alternate && number != 0, is_upper) {
                    (false, _) => b"",
                    (true, false) => b"0x",
                    (true, true) => b"0X",
                };
                (prefix, digits(number, 16, is_upper, &mut buffer))
            }
        };
        self.digits(sign, digits, len, out);
    }

    fn digits(&self, sign: &[u8], digits: &[u8], len: Option<i32>, out: &mut Vec<u8>) {
        let precision = self.precision(len);
        let digits = match (precision, digits) {
            (Some(0), b"0") => b"",
            _ => digits,
        };
        let mut zeros = precision.unwrap_or(1).saturating_sub(digits.len());
        let is_octal = self.letter == b'o' && self.is_alternate;
        if is_octal && zeros == 0 && !digits.starts_with(b"0") {
            zeros = 1;
        }
        let (width, is_left) = self.width(len);
        let used = sign
            .len()
            .saturating_add(zeros)
            .saturating_add(digits.len());
        let mut padding = width.saturating_sub(used);
        if self.is_zero && !is_left && precision.is_none() {
            zeros = zeros.saturating_add(padding);
            padding = 0;
        }
        if !is_left {
            pad(b' ', padding, out);
        }
        out.extend_from_slice(sign);
        pad(b'0', zeros.min(MAX_WIDTH), out);
        out.extend_from_slice(digits);
        if is_left {
            pad(b' ', padding, out);
        }
    }
}

fn pad(byte: u8, count: usize, out: &mut Vec<u8>) {
    out.extend(std::iter::repeat_n(byte, count));
}

/// Returns the digits of a number.
pub fn digits(mut number: u64, base: u64, is_upper: bool, buffer: &mut [u8; 24]) -> &[u8] {
    let letters: &[u8; 16] = if is_upper {
        b"0123456789ABCDEF"
    } else {
        b"0123456789abcdef"
    };
    let mut start = buffer.len();
    for place in buffer.iter_mut().rev() {
        let digit = number.checked_rem(base).unwrap_or_default();
        *place = letters.get(digit as usize).copied().unwrap_or_default();
        start = start.saturating_sub(1);
        number = number.checked_div(base).unwrap_or_default();
        if number == 0 {
            break;
        }
    }
    buffer.get(start..).unwrap_or_default()
}

/// Appends a number in hexadecimal digits.
pub fn hex(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(digits(number, 16, false, &mut [0; 24]));
}

/// Appends a number in decimal digits.
pub fn decimal(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(digits(number.unsigned_abs(), 10, false, &mut [0; 24]));
}

/// Appends a byte as two hexadecimal digits.
pub fn hex_byte(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for half in [byte >> 4, byte & 15] {
        out.push(DIGITS.get(usize::from(half)).copied().unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(spec: &str, number: i64, longs: i32, len: Option<i32>) -> String {
        let mut out = Vec::new();
        let bits = Bits::new(longs).unwrap();
        Spec::new(spec.as_bytes()).number(number.cast_unsigned(), bits, len, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_printed_as_by_printf() {
        let cases = [
            ("%d", -5, 0, "-5"),
            ("%5d", -5, 0, "   -5"),
            ("%-5d", -5, 0, "-5   "),
            ("%05d", -5, 0, "-0005"),
            ("%+d", 5, 0, "+5"),
            ("%.3d", -5, 0, "-005"),
            ("%05.2d", 5, 0, "   05"),
            ("%.0d", 0, 0, ""),
            ("%u", -1, 0, "4294967295"),
            ("%hhu", -1, -2, "255"),
            ("%hd", 0x1_8000, -1, "-32768"),
            ("%lu", -1, 1, "18446744073709551615"),
            ("%lld", i64::MIN, 2, "-9223372036854775808"),
            ("%#x", 255, 0, "0xff"),
            ("%#x", 0, 0, "0"),
            ("%#08X", 255, 0, "0X0000FF"),
            ("%#o", 8, 0, "010"),
            ("%lo", -1, 1, "1777777777777777777777"),
            ("%3c", 65, 0, "  A"),
            ("%5-d", 65, 0, "%5-d"),
        ];
        for (spec, value, longs, expected) in cases {
            assert_eq!(number(spec, value, longs, None), expected, "{spec}");
        }
        assert_eq!(number("%*d", 5, 0, Some(3)), "  5");
        assert_eq!(number("%*d", 5, 0, Some(-3)), "5  ");
        assert_eq!(number("%.*x", 5, 0, Some(3)), "005");
        assert_eq!(number("%999999999999d", 5, 0, None).len(), MAX_WIDTH);
    }

    #[test]
    fn texts_are_printed_as_by_printf() {
        let string = |spec: &str, len| {
            let mut out = Vec::new();
            Spec::new(spec.as_bytes()).string(b"abc", len, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(string("%s", None), "abc");
        assert_eq!(string("%5s", None), "  abc");
        assert_eq!(string("%-5s|", None), "%-5s|");
        assert_eq!(string("%-5s", None), "abc  ");
        assert_eq!(string("%.2s", None), "ab");
        assert_eq!(string("%.*s", Some(1)), "a");
        assert_eq!(string("%.*s", Some(-1)), "abc");
        assert_eq!(string("%4.1s", None), "   a");
    }
}
