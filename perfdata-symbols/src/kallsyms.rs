//! Lists of a kernel's symbols in the format of `/proc/kallsyms`
//! (tools/perf/util/symbol.c, `dso__load_all_kallsyms`; tools/lib/symbol/kallsyms.c).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::table::{Builder, Properties, Table};

/// The symbols of a kernel and of its modules.
#[derive(Debug, Default)]
pub(crate) struct Kallsyms {
    /// The symbols of the image, by address.
    pub image: Arc<Table>,
    /// The symbols of each module by its name without brackets.
    pub modules: HashMap<Box<[u8]>, Arc<Table>, RandomState>,
    /// Whether all addresses are 0: the kernel hides them from unprivileged users
    /// (`kernel.kptr_restrict`).
    pub are_hidden: bool,
}

impl Kallsyms {
    /// Parses lines `ADDRESS TYPE NAME[\t[MODULE]]`. Other lines are skipped.
    pub fn parse(text: Vec<u8>) -> Self {
        let text = Arc::new(text);
        let new = || {
            let mut builder = Builder::default();
            let base = builder.add_text(Arc::clone(&text));
            (builder, base)
        };
        let mut image = new();
        let mut modules: HashMap<&[u8], (Builder, Option<u32>), RandomState> = HashMap::default();
        let mut are_hidden = true;
        let mut rest = text.as_slice();
        while !rest.is_empty() {
            let start = text.len().saturating_sub(rest.len());
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let (line, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
            rest = after.get(1..).unwrap_or_default();
            let Some(line) = Line::of(line).filter(Line::is_kept) else {
                continue;
            };
            let Line {
                address,
                kind,
                name_at,
                module,
                ..
            } = line;
            are_hidden &= address == 0;
            let (builder, base) = match module {
                Some(module) => modules.entry(module).or_insert_with(new),
                None => &mut image,
            };
            let name_at = u32::try_from(start.saturating_add(name_at)).ok();
            let name = base
                .zip(name_at)
                .and_then(|(base, at)| base.checked_add(at));
            let Some(name) = name else {
                break;
            };
            let properties = Properties {
                is_untyped: false,
                is_weak: kind == b'W',
                is_global: kind != b'W' && kind.is_ascii_uppercase(),
            };
            builder.add(address, 0, name, properties);
        }
        // perf does not demangle kernel symbols.
        let table =
            |(builder, _): (Builder, _)| Arc::new(builder.build(|name| Cow::Borrowed(name)));
        let image = table(image);
        Kallsyms {
            are_hidden: are_hidden && !image.is_empty(),
            modules: modules
                .into_iter()
                .map(|(name, module)| (name.into(), table(module)))
                .collect(),
            image,
        }
    }
}

/// What a line contains.
pub(crate) struct Line<'a> {
    pub address: u64,
    kind: u8,
    /// Where the name is in the line.
    name_at: usize,
    pub name: &'a [u8],
    pub module: Option<&'a [u8]>,
}

impl<'a> Line<'a> {
    /// Returns whether perf keeps the symbol.
    pub fn is_kept(&self) -> bool {
        // Names with a dollar sign tell code from data in Arm modules.
        matches!(self.kind.to_ascii_uppercase(), b'T' | b'W' | b'D' | b'B')
            && !self.name.starts_with(b"$")
    }

    /// Returns what a line without its end contains; `None` if it is another text.
    #[inline]
    pub fn of(line: &'a [u8]) -> Option<Self> {
        let (address, &[b' ', kind, b' ', ref rest @ ..]) = leading_number(line)? else {
            return None;
        };
        let parts = memchr::memchr(b'\t', rest).and_then(|at| rest.split_at_checked(at));
        let (name, module) = parts.unwrap_or((rest, &[]));
        let module = module.trim_ascii();
        let module = module
            .strip_prefix(b"[")
            .and_then(|module| module.strip_suffix(b"]"));
        (!name.is_empty()).then_some(Line {
            address,
            kind,
            name_at: line.len().saturating_sub(rest.len()),
            name,
            module,
        })
    }
}

/// Returns the value of the hexadecimal digits at the beginning, and what follows them; `None` if
/// there are none, or the value has more than 64 bits.
fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    if let Some(found) = sixteen_digits(text) {
        return Some(found);
    }
    let text = text.strip_prefix(b"0x").unwrap_or(text);
    let mut number = 0_u64;
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        let digit = match byte {
            b'0'..=b'9' => byte & 0xf,
            b'a'..=b'f' | b'A'..=b'F' => (byte & 0xf).saturating_add(9),
            _ => break,
        };
        if number >> 60 != 0 {
            return None;
        }
        number = number << 4 | u64::from(digit);
        rest = after;
    }
    (rest.len() < text.len()).then_some((number, rest))
}

/// Returns the value of sixteen hexadecimal digits, as the kernel writes addresses, and what follows
/// them; `None` if it is another text.
fn sixteen_digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let (high, rest) = text.split_first_chunk()?;
    let (low, rest) = rest.split_first_chunk()?;
    if rest.first().is_some_and(u8::is_ascii_hexdigit) {
        return None;
    }
    Some((eight_digits(*high)? << 32 | eight_digits(*low)?, rest))
}

/// Returns the value of eight hexadecimal digits with small letters; `None` for other bytes.
fn eight_digits(digits: [u8; 8]) -> Option<u64> {
    /// This number in each byte.
    const fn all(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    let text = u64::from_be_bytes(digits);
    // Letters have the bit of 64, digits do not.
    let letters = text >> 6 & all(1);
    let values = (text & all(0xf)).wrapping_add(letters.wrapping_mul(9));
    let after_nine = u64::from(b'a' - b'9' - 1);
    let spelled = values
        .wrapping_add(all(b'0'))
        .wrapping_add(letters.wrapping_mul(after_nine));
    let above_nine = values.wrapping_add(all(6)) >> 4 & all(1);
    if spelled != text || values & all(0xf0) != 0 || above_nine != letters {
        return None;
    }
    let pairs = (values >> 4 | values) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs >> 8 | pairs) & 0x0000_ffff_0000_ffff;
    Some((fours >> 16 | fours) & 0xffff_ffff)
}

/// Returns the value of hexadecimal digits.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    match leading_number(digits)? {
        (number, []) => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(table: &Table, address: u64) -> Option<&str> {
        let found = table.find(address)?;
        match table.name(found.index) {
            Cow::Borrowed(name) => std::str::from_utf8(name).ok(),
            Cow::Owned(_) => None,
        }
    }

    #[test]
    fn lines_become_symbols() {
        let text = b"ffffffff81000000 T _text\nffffffff81000000 T startup_64\n\
            ffffffff81000040 t local\nffffffff81000100 W weak\nffffffff81000100 T strong\n\
            ffffffff81000200 A absolute\nffffffff81000300 r read_only\n\
            ffffffffc0000000 t init\t[ext4]\nffffffffc0000010 t next\t[ext4]\n\
            ffffffffc0000000 t $x\t[ext4]\nnonsense\n\nffffffff T\n";
        let symbols = Kallsyms::parse(text.to_vec());
        assert!(!symbols.are_hidden);
        assert_eq!(
            at(&symbols.image, 0xffff_ffff_8100_0000),
            Some("startup_64")
        );
        assert_eq!(at(&symbols.image, 0xffff_ffff_8100_00ff), Some("local"));
        assert_eq!(at(&symbols.image, 0xffff_ffff_8100_0300), Some("strong"));
        let module = &symbols.modules[&b"ext4"[..]];
        assert_eq!(at(module, 0xffff_ffff_c000_000f), Some("init"));
        assert_eq!(at(module, 0xffff_ffff_c000_0010), Some("next"));
        assert_eq!(at(module, 0xffff_ffff_bfff_ffff), None);
    }

    #[test]
    fn hidden_addresses_are_noticed() {
        let of = |text: &str| Kallsyms::parse(text.into());
        assert!(of("0000000000000000 T _text\n0000000000000000 t a\n").are_hidden);
        assert!(!of("").are_hidden);
    }

    #[test]
    fn digits_are_read_as_by_the_standard_library() {
        let simply = |text: &str| u64::from_str_radix(text, 16).ok();
        // Each byte at each place, and digits at the ends of their ranges.
        for at in 0..8 {
            for byte in 0..=u8::MAX {
                let mut digits = *b"9af0c1d8";
                digits[at] = byte;
                let text = std::str::from_utf8(&digits).unwrap_or("-");
                let expected = simply(text).filter(|_| !byte.is_ascii_uppercase() && byte != b'+');
                assert_eq!(eight_digits(digits), expected, "{text}");
            }
        }
        for text in [
            "ffffffff81000000",
            "0",
            "00000000000000001",
            "fFfffffff81000000",
            "0123456789abcdeg",
            "FFFFFFFF81000000",
        ] {
            assert_eq!(number(text.as_bytes()), simply(text), "{text}");
        }
        assert_eq!(number(b"0x12"), Some(0x12));
    }
}
