//! What the formats of a recording have in common.

use perfdata_core::Endian;
use perfdata_core::feature::tracing::{ByteOrder, TracingData};

use crate::like::Like;
use crate::number;

/// The recorded machine, and what perf is imitated.
#[derive(Debug)]
pub struct Machine {
    /// Byte order of the raw data.
    pub endian: Endian,
    /// Size of a `long` in bytes.
    pub long_size: usize,
    /// Whose text is printed.
    pub like: Like,
    /// `printk_formats`: strings in the kernel, sorted by their addresses.
    pub strings: Vec<(u64, Box<[u8]>)>,
}

impl Machine {
    /// Reads it from tracing data.
    pub fn new(data: &TracingData, like: Like) -> Self {
        let mut strings: Vec<_> = printk_formats(&data.body.printk_formats.0).collect();
        strings.sort_by_key(|(address, _)| *address);
        Machine {
            endian: match data.header.byte_order {
                ByteOrder::BIG => Endian::Big,
                _ => Endian::Little,
            },
            long_size: data.header.long_size.into(),
            like,
            strings,
        }
    }

    /// Returns the string at an address of the kernel.
    pub fn string_at(&self, address: u64) -> Option<&[u8]> {
        let at = self.strings.binary_search_by_key(&address, |(at, _)| *at);
        let (_, string) = self.strings.get(at.ok()?)?;
        Some(string)
    }
}

/// Parses lines of `0xffffffff82345678 : "string\n"` (tools/perf/util/trace-event-parse.c,
/// `parse_ftrace_printk`).
fn printk_formats(text: &[u8]) -> impl Iterator<Item = (u64, Box<[u8]>)> + '_ {
    let lines = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (address, string) = line.split_at_checked(colon)?;
        // The colon and a blank.
        let string = string.get(2..).unwrap_or_default();
        let string = string.strip_prefix(b"\"").unwrap_or(string);
        let string = match string.strip_suffix(b"\"") {
            Some(string) => string.strip_suffix(b"\\n").unwrap_or(string),
            None => string,
        };
        Some((number::hexadecimal(address), string.into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_lose_their_quotes_and_the_end_of_the_line() {
        let text = b"0xffffffff81 : \"a: b\\n\"\n0x12 : \"\"\nnone\n";
        let found: Vec<_> = printk_formats(text).collect();
        let expected: [(u64, Box<[u8]>); 2] =
            [(0xff_ffff_ff81, b"a: b"[..].into()), (0x12, b""[..].into())];
        assert_eq!(found, expected);
    }
}
