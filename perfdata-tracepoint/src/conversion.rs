//! Format strings: texts, and conversions of arguments (`parse_args`).

use crate::expression::Arg;
use crate::printf::{Bits, Spec};

/// A part of a format string.
#[derive(Debug)]
pub enum Item {
    /// A text.
    Text(Box<[u8]>),
    /// The conversion of an argument.
    Conversion {
        /// What it becomes.
        to: To,
        /// The argument, by its place in the list.
        arg: usize,
        /// The argument that is the width or the precision.
        len: Option<usize>,
    },
}

/// What an argument becomes.
#[derive(Debug)]
pub enum To {
    /// A number or a character.
    Number(Spec, Bits),
    /// A text.
    String(Spec),
    /// What a pointer points to, in the notation of the kernel: the letters after `%p`.
    Pointer(Box<[u8]>),
}

/// The longest conversion in bytes.
const MAX_CONVERSION: usize = 30;

/// Splits a format string.
struct Splitter<'a> {
    format: &'a [u8],
    at: usize,
    /// How many arguments there are, and how many are used.
    args: usize,
    used: usize,
    is_library: bool,
    items: Vec<Item>,
}

/// Splits a format string for a number of arguments. Returns also whether all conversions have an
/// argument and are known; otherwise libtraceevent does not print the event with it.
pub fn split(format: &[u8], args: &[Arg], is_library: bool) -> (Vec<Item>, bool) {
    let mut splitter = Splitter {
        format: crate::field::until_nul(format),
        at: 0,
        args: args.len(),
        used: 0,
        is_library,
        items: Vec::new(),
    };
    let mut is_right = true;
    while let Some(byte) = splitter.byte(0) {
        if byte == b'%' && splitter.byte(1) != Some(b'%') {
            is_right &= splitter.conversion().is_some();
        } else {
            splitter.text();
        }
    }
    (splitter.items, is_right)
}

impl Splitter<'_> {
    fn byte(&self, distance: usize) -> Option<u8> {
        self.format.get(self.at.checked_add(distance)?).copied()
    }

    fn advance(&mut self, by: usize) {
        self.at = self.at.saturating_add(by);
    }

    /// Reads a text up to the next conversion (`parse_arg_string`).
    fn text(&mut self) {
        let mut text = Vec::new();
        while let Some(byte) = self.byte(0) {
            match byte {
                b'\\' => {
                    self.advance(1);
                    match self.byte(0) {
                        Some(b'n') => text.push(b'\n'),
                        Some(b't') => text.push(b'\t'),
                        Some(b'r') => text.push(b'\r'),
                        Some(other) => text.push(other),
                        None => {}
                    }
                }
                b'%' if self.byte(1) == Some(b'%') => {
                    text.push(b'%');
                    self.advance(1);
                }
                b'%' => break,
                other => text.push(other),
            }
            self.advance(1);
        }
        self.items.push(Item::Text(text.into()));
    }

    /// Takes the next argument.
    fn arg(&mut self) -> Option<usize> {
        let next = self.used;
        self.used = next.checked_add(1)?;
        (next < self.args).then_some(next)
    }

    /// Reads a conversion (`parse_arg_format`).
    fn conversion(&mut self) -> Option<()> {
        let start = self.at;
        let mut longs = 0_i32;
        let mut len = None;
        let mut is_half = false;
        self.advance(1);
        while let Some(byte) = self.byte(0) {
            if matches!(
                byte,
                b'*' | b'p' | b'd' | b'u' | b'i' | b'x' | b'X' | b'o' | b'c' | b's'
            ) && self.used >= self.args
                && (byte != b'c' || self.is_library)
            {
                // What follows is a text.
                return None;
            }
            self.advance(1);
            match byte {
                b'h' => longs = longs.saturating_sub(1),
                b'l' => longs = longs.saturating_add(1),
                b'L' => longs = 2,
                b'z' | b'Z' if self.is_library => longs = 1,
                b'z' | b'Z' => is_half = true,
                b'#' | b'.' | b'0'..=b'9' | b'-' => {}
                b'+' if self.is_library => {}
                b'*' if len.is_none() => len = Some(self.arg()?),
                b'*' => return None,
                b'p' => {
                    let arg = self.arg()?;
                    let letters = self.format.get(self.at..).unwrap_or_default();
                    let letters = letters.get(..pointer(letters)).unwrap_or_default();
                    self.advance(letters.len());
                    self.short_since(start)?;
                    let to = To::Pointer(letters.into());
                    self.items.push(Item::Conversion { to, arg, len });
                    return Some(());
                }
                b'd' | b'u' | b'i' | b'x' | b'X' | b'o' | b'c' | b's'
                    if byte != b'c' || self.is_library =>
                {
                    let arg = self.arg()?;
                    let spec = Spec::new(self.short_since(start)?);
                    let to = if byte == b's' {
                        To::String(spec)
                    } else {
                        match Bits::new(longs)? {
                            Bits::Int if is_half => To::Number(spec, Bits::HalfLong),
                            bits => To::Number(spec, bits),
                        }
                    };
                    self.items.push(Item::Conversion { to, arg, len });
                    return Some(());
                }
                other => {
                    let text = [b'>', other, b'<'];
                    self.items.push(Item::Text(text.into()));
                    return Some(());
                }
            }
        }
        Some(())
    }

    /// Returns the conversion, if it is not too long.
    fn short_since(&self, start: usize) -> Option<&[u8]> {
        let text = self.format.get(start..self.at)?;
        (text.len() <= MAX_CONVERSION).then_some(text)
    }
}

/// Returns how many letters after `%p` belong to it (`parse_arg_format_pointer`).
fn pointer(letters: &[u8]) -> usize {
    let at = |index: usize| letters.get(index).copied().unwrap_or_default();
    let is_one_of = |index: usize, set: &[u8]| set.contains(&at(index));
    match at(0) {
        b'F' | b'S' | b'f' | b's' => 1,
        b'M' | b'm' if is_one_of(1, b"RF") => 2,
        b'U' if is_one_of(1, b"LlBb") => 2,
        b'h' if is_one_of(1, b"CDN") => 2,
        b'M' | b'm' | b'U' | b'h' => 1,
        b'I' | b'i' => match at(1) {
            b'4' if is_one_of(2, b"hnlb") => 3,
            b'4' => 2,
            b'6' if at(2) == b'c' => 3,
            b'6' => 2,
            b'S' => {
                let rest = letters.get(2..).unwrap_or_default();
                let flags = rest.iter().take_while(|letter| b"pfs".contains(letter));
                let mut len = flags.count().saturating_add(2);
                if is_one_of(len, b"hnlb") {
                    len = len.saturating_add(1);
                }
                if at(len) == b'c' {
                    len = len.saturating_add(1);
                }
                len
            }
            _ => 1,
        },
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(format: &str, args: usize, is_library: bool) -> Option<Vec<String>> {
        let args: Vec<Arg> = (0..args).map(|_| Arg::Null).collect();
        let (items, is_right) = split(format.as_bytes(), &args, is_library);
        if !is_right {
            return None;
        }
        let show = |item: &Item| match item {
            Item::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Item::Conversion { to, arg, len } => match to {
                To::Number(_, bits) => format!("{bits:?} {arg} {len:?}"),
                To::String(_) => format!("string {arg} {len:?}"),
                To::Pointer(letters) => {
                    format!("pointer {} {arg} {len:?}", letters.escape_ascii())
                }
            },
        };
        Some(items.iter().map(show).collect())
    }

    #[test]
    fn a_format_is_split_as_in_libtraceevent() {
        let found = shown("a%%b\\n%-5ld%.*s%pISpcx%c% d", 5, true).unwrap();
        let expected = [
            "a%b\n",
            "Long 0 None",
            "string 2 Some(1)",
            "pointer ISpc 3 None",
            "x",
            "Int 4 None",
            "> <",
            "d",
        ];
        assert_eq!(found, expected);
        assert_eq!(shown("%c%+d", 1, false).unwrap(), [">c<", ">+<", "d"]);
        assert_eq!(shown("%d", 0, true), None);
        assert_eq!(shown("%lllx", 1, true), None);
        assert_eq!(shown("%*.*s", 3, true), None);
        assert_eq!(shown("%000000000000000000000000000000d", 1, true), None);
        assert_eq!(
            shown("%px %pKx %5", 2, true).unwrap()[..2],
            ["pointer  0 None", "x "]
        );
    }

    #[test]
    fn the_letters_of_pointers_are_those_of_libtraceevent() {
        let cases = [
            ("Sx", 1),
            ("sR", 1),
            ("MF", 2),
            ("mRx", 2),
            ("I4hx", 3),
            ("i4", 2),
            ("I6c", 3),
            ("i6x", 2),
            ("ISpc", 4),
            ("ISpfsc", 6),
            ("ISnc", 4),
            ("Ix", 1),
            ("Ub", 2),
            ("U", 1),
            ("hN", 2),
            ("x", 0),
            ("", 0),
        ];
        for (letters, len) in cases {
            assert_eq!(pointer(letters.as_bytes()), len, "{letters}");
        }
    }
}
