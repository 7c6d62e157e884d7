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
    pub fn parse(text: &[u8]) -> Self {
        let mut image = Builder::default();
        let mut modules: HashMap<&[u8], Builder, RandomState> = HashMap::default();
        let mut are_hidden = true;
        let mut rest = text;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let (line, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
            rest = after.get(1..).unwrap_or_default();
            let Some((address, kind, name, module)) = fields(line) else {
                continue;
            };
            if !matches!(kind.to_ascii_uppercase(), b'T' | b'W' | b'D' | b'B') {
                continue;
            }
            // Symbols that tell code from data in Arm modules.
            if name.starts_with(b"$") {
                continue;
            }
            are_hidden &= address == 0;
            let builder = match module {
                Some(module) => modules.entry(module).or_default(),
                None => &mut image,
            };
            let Some(at) = builder.add_name(name) else {
                break;
            };
            let properties = Properties {
                is_untyped: false,
                is_weak: kind == b'W',
                is_global: kind != b'W' && kind.is_ascii_uppercase(),
            };
            builder.add(address, 0, at, properties);
        }
        // perf does not demangle kernel symbols.
        let modules = modules.into_iter().map(|(name, builder)| {
            (
                name.into(),
                Arc::new(builder.build(|name| Cow::Borrowed(name))),
            )
        });
        Kallsyms {
            modules: modules.collect(),
            are_hidden: are_hidden && image.len() > 0,
            image: Arc::new(image.build(|name| Cow::Borrowed(name))),
        }
    }
}

/// Address, type, name and module in a line.
type Fields<'a> = (u64, u8, &'a [u8], Option<&'a [u8]>);

fn fields(line: &[u8]) -> Option<Fields<'_>> {
    let (address, &[b' ', kind, b' ', ref rest @ ..]) = leading_number(line)? else {
        return None;
    };
    let parts = memchr::memchr(b'\t', rest).and_then(|at| rest.split_at_checked(at));
    let (name, module) = parts.unwrap_or((rest, &[]));
    let module = module.trim_ascii();
    let module = module
        .strip_prefix(b"[")
        .and_then(|module| module.strip_suffix(b"]"));
    (!name.is_empty()).then_some((address, kind, name, module))
}

/// Returns the value of the hexadecimal digits at the beginning, and what follows them; `None` if
/// there are none, or the value has more than 64 bits.
fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.strip_prefix(b"0x").unwrap_or(text);
    let mut number = 0_u64;
    let mut rest = text;
    while let [byte, after @ ..] = rest
        && let Some(digit) = char::from(*byte).to_digit(16)
    {
        if number >> 60 != 0 {
            return None;
        }
        number = number << 4 | u64::from(digit);
        rest = after;
    }
    (rest.len() < text.len()).then_some((number, rest))
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
        let symbols = Kallsyms::parse(text);
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
        assert!(Kallsyms::parse(b"0000000000000000 T _text\n0000000000000000 t a\n").are_hidden);
        assert!(!Kallsyms::parse(b"").are_hidden);
    }
}
