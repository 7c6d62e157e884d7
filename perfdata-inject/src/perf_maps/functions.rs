//! The functions in a perf map, each address in at most one of them.

use perfdata_core::read::Limits;
use perfdata_symbols::perf_map::Function;

use crate::jit::image::Symbol;
use crate::jit::ranges::Ranges;
use perfdata_convert::error::Result;

/// Maximum size of a name in bytes: that of a path. It bounds the images of a function that extends
/// over many mappings.
const MOST_NAME: usize = 4096;

/// Approximate memory for a range of addresses in bytes.
const RANGE: usize = 64;

/// Addresses of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FunctionRange<'a> {
    start: u64,
    end: u64,
    name: &'a [u8],
}

/// The functions in a perf map.
#[derive(Debug, Default)]
pub struct Functions<'a> {
    /// Sorted, without overlaps.
    pieces: Vec<FunctionRange<'a>>,
    /// Number of lines that contain no function.
    pub skipped: u64,
}

impl<'a> Functions<'a> {
    /// Returns the functions in `text`. Of several lines about an address, the last one counts: the
    /// runtime has replaced the code since.
    ///
    /// # Errors
    /// They exceed the limit for metadata.
    pub fn of(text: &'a [u8], limits: Limits) -> Result<Self> {
        let mut functions = Functions::default();
        let mut known = Ranges::default();
        let is_filled = |line: &&[u8]| !line.is_empty();
        for line in text.rsplit(|&byte| byte == b'\n').filter(is_filled) {
            let Some(Function {
                start, end, name, ..
            }) = Function::of_line(line)
            else {
                functions.skipped = functions.skipped.saturating_add(1);
                continue;
            };
            let name = name.get(..MOST_NAME).unwrap_or(name);
            let new = known.add(start, end).into_iter();
            functions
                .pieces
                .extend(new.map(|(start, end)| FunctionRange { start, end, name }));
            let pieces = functions
                .pieces
                .len()
                .saturating_mul(size_of::<FunctionRange<'_>>());
            let held = pieces.saturating_add(known.len().saturating_mul(RANGE));
            limits.check_metadata("functions of a perf map", held as u64)?;
        }
        functions.pieces.sort_unstable_by_key(|piece| piece.start);
        Ok(functions)
    }

    /// Returns the functions from `start` up to `end`, with their offsets from `start`.
    pub fn inside(&self, start: u64, end: u64) -> Vec<Symbol<'a>> {
        let first = self.pieces.partition_point(|piece| piece.end <= start);
        let after = self.pieces.iter().skip(first);
        let inside = after.take_while(|piece| piece.start < end);
        let symbol = |piece: &FunctionRange<'a>| {
            let from = piece.start.max(start);
            Symbol {
                offset: from - start,
                size: piece.end.min(end) - from,
                name: piece.name,
            }
        };
        inside.map(symbol).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &[u8], start: u64, end: u64) -> Vec<String> {
        let functions = Functions::of(text, Limits::default()).unwrap();
        let show = |symbol: Symbol<'_>| {
            let name = String::from_utf8_lossy(symbol.name).into_owned();
            format!("{:x}+{:x} {name}", symbol.offset, symbol.size)
        };
        functions.inside(start, end).into_iter().map(show).collect()
    }

    #[test]
    fn the_last_line_about_an_address_counts() {
        let text = b"1000 100 outer\n1010 10 inner\n1018 10 newer\n2000 10 a\n2000 10 b\n";
        let expected = [
            "0+10 outer",
            "10+8 inner",
            "18+10 newer",
            "28+d8 outer",
            "1000+10 b",
        ];
        assert_eq!(shown(text, 0x1000, 0x3000), expected);
        // A line that comes after those inside of it.
        assert_eq!(shown(b"10 4 a\n0 20 b\n", 0, 0x100), ["0+20 b"]);
    }

    #[test]
    fn functions_end_where_the_memory_does() {
        let text = b"ff0 20 first\n1ff0 20 last\n3000 1 outside\n0 0 zero\n";
        let expected = ["0+10 first", "ff0+10 last"];
        assert_eq!(shown(text, 0x1000, 0x2000), expected);
        assert_eq!(shown(text, 0, 1), ["0+1 zero"]);
        assert_eq!(shown(b"fffffffffffffff0 20 x", 0, u64::MAX).len(), 1);
    }

    #[test]
    fn lines_and_memory_are_counted() {
        let functions = Functions::of(b"\n1 1 a\nrubbish\n2 2\n", Limits::default()).unwrap();
        assert_eq!((functions.pieces.len(), functions.skipped), (1, 2));
        let many: Vec<u8> = (0..1000_u64)
            .flat_map(|at| format!("{:x} 1 a\n", at * 2).into_bytes())
            .collect();
        let limits = Limits::default().with_max_metadata(1 << 12);
        let error = Functions::of(&many, limits).unwrap_err().to_string();
        assert!(error.contains("functions of a perf map"), "{error}");
    }

    /// Large functions that alternate with small ones need time for each line, not for each pair.
    #[test]
    fn hostile_maps_take_little_time() {
        let mut text = Vec::new();
        for at in 0..100_000_u64 {
            text.extend(format!("0 fffff outer{at}\n").into_bytes());
        }
        for at in 0..100_000_u64 {
            text.extend(format!("{:x} 1 inner\n", at * 4).into_bytes());
        }
        let functions = Functions::of(&text, Limits::default()).unwrap();
        assert_eq!(functions.pieces.len(), 200_000);
        assert_eq!(functions.inside(0, 0x1000).len(), 0x800);
    }
}
