//! The copy of a kernel's list of symbols in a file. Only the parts around the addresses that are
//! looked up are read.

use std::borrow::Cow;
use std::fs::{self, File};
use std::path::Path;
use std::sync::OnceLock;

use crate::bytes::read_up_to;
use crate::kallsyms::Line;
use crate::table::{Found, PAGE};

/// Maximum size of a list in bytes.
const MOST: u64 = 1 << 28;

/// The size of a part in bytes.
const PART: u64 = 1 << 12;

/// Bytes that are read for a line. The kernel limits names to 511 bytes.
const LINE: usize = 1 << 10;

/// Number of parts that are compared when a list is opened.
const COMPARED: usize = 16;

/// The symbols of the kernel's image in a list in the format of `/proc/kallsyms`.
///
/// The kernel lists the symbols of its image first, and by address: it searches its own addresses in
/// the same way. An address belongs to the last symbol up to it, as in a
/// [`Table`](crate::table::Table) of symbols without sizes.
#[derive(Debug)]
pub(crate) struct KernelList {
    file: File,
    /// The parts that begin with a symbol of the image.
    parts: Box<[OnceLock<ListPart>]>,
}

/// What is known about a part of the list: of the lines that begin in it.
#[derive(Debug, Default)]
struct ListPart {
    /// The address in the first line.
    first: u64,
    /// The addresses of the image's symbols, and the offsets of their lines in the list.
    symbols: Box<[(u64, u32)]>,
    /// Whether the first line belongs to a module, or there is none.
    is_behind: bool,
}

impl KernelList {
    /// Opens the list at `path`; `None` if it is not one, if the kernel has hidden its addresses, or if
    /// they are not in order.
    pub fn open(path: &Path) -> Option<Self> {
        let size = fs::metadata(path).ok().filter(|meta| meta.is_file())?.len();
        if size > MOST {
            return None;
        }
        let count = usize::try_from(size.div_ceil(PART)).ok()?;
        let mut list = KernelList {
            file: File::open(path).ok()?,
            parts: (0..count).map(|_| OnceLock::new()).collect(),
        };
        let end = list.first(|part| part.is_behind);
        let mut parts = std::mem::take(&mut list.parts).into_vec();
        parts.truncate(end);
        list.parts = parts.into();
        let step = end.div_ceil(COMPARED).max(1);
        let firsts = (0..end).step_by(step);
        let firsts = firsts.filter_map(|at| Some(list.part(at)?.first));
        let has_addresses = list.part(end.checked_sub(1)?)?.first != 0;
        (has_addresses && firsts.is_sorted()).then_some(list)
    }

    /// Returns a part, which is read at its first use.
    fn part(&self, at: usize) -> Option<&ListPart> {
        let part = self.parts.get(at)?;
        Some(part.get_or_init(|| self.read(at).unwrap_or_default()))
    }

    /// Returns the number of the first part for which `is_it` is true: it is true for all parts after
    /// it.
    fn first(&self, is_it: impl Fn(&ListPart) -> bool) -> usize {
        let (mut low, mut high) = (0, self.parts.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.part(middle).is_none_or(&is_it) {
                true => high = middle,
                false => low = middle.saturating_add(1),
            }
        }
        low
    }

    /// Passes the lines that begin in a part with their offsets to `see`, until it returns false.
    fn lines(&self, at: usize, mut see: impl FnMut(u32, Line<'_>) -> bool) -> Option<()> {
        let start = PART.saturating_mul(at as u64);
        // A line begins behind the end of another one.
        let before = start.saturating_sub(1);
        let end = start.saturating_add(PART);
        let size = usize::try_from(end.saturating_sub(before)).ok()?;
        let bytes = self.bytes(before, size.saturating_add(LINE))?;
        let mut rest = bytes.as_slice();
        if start > 0 {
            let end = memchr::memchr(b'\n', rest)?;
            rest = rest.get(end.saturating_add(1)..)?;
        }
        while !rest.is_empty() {
            let skipped = bytes.len().saturating_sub(rest.len());
            let offset = before.saturating_add(skipped as u64);
            if offset >= end {
                break;
            }
            let line = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let (line, after) = rest.split_at_checked(line).unwrap_or((rest, &[]));
            rest = after.get(1..).unwrap_or_default();
            if let Some(line) = Line::of(line)
                && !see(u32::try_from(offset).ok()?, line)
            {
                break;
            }
        }
        Some(())
    }

    fn bytes(&self, offset: u64, size: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; size];
        let read = read_up_to(&self.file, &mut bytes, offset).ok()?;
        bytes.truncate(read);
        Some(bytes)
    }

    fn read(&self, at: usize) -> Option<ListPart> {
        let (mut first, mut symbols) = (None, Vec::new());
        let mut is_behind = true;
        self.lines(at, |offset, line| {
            if first.is_none() {
                first = Some(line.address);
                is_behind = line.module.is_some();
            }
            if line.module.is_none() && line.is_kept() {
                symbols.push((line.address, offset));
            }
            line.module.is_none()
        })?;
        Some(ListPart {
            first: first.unwrap_or_default(),
            symbols: symbols.into(),
            is_behind,
        })
    }

    /// Returns the symbol that contains `address`. Its number is the offset of its line.
    pub fn find(&self, address: u64) -> Option<Found> {
        let mut at = self.first(|part| part.first > address);
        let (start, index, next) = loop {
            at = at.checked_sub(1)?;
            let symbols = &*self.part(at)?.symbols;
            let after = symbols.partition_point(|(start, _)| *start <= address);
            if let Some((start, index)) = after.checked_sub(1).and_then(|last| symbols.get(last)) {
                break (*start, *index, symbols.get(after));
            }
        };
        let behind = || {
            (at.saturating_add(1)..self.parts.len()).find_map(|at| self.part(at)?.symbols.first())
        };
        let end = match next.or_else(behind) {
            Some((next, _)) => *next,
            None => {
                let page = start.checked_next_multiple_of(PAGE);
                page.unwrap_or(u64::MAX).saturating_add(PAGE)
            }
        };
        (address < end).then_some(Found { index, start })
    }

    /// Returns the name of a symbol; an empty one if it cannot be read any more.
    pub fn name(&self, index: u32) -> Cow<'_, [u8]> {
        let bytes = self.bytes(index.into(), LINE).unwrap_or_default();
        let line = bytes.split(|byte| *byte == b'\n').next();
        let name = line.and_then(Line::of).map(|line| line.name.to_vec());
        Cow::Owned(name.unwrap_or_default())
    }

    /// Returns the address of the first symbol called `name`.
    pub fn address_of(&self, name: &[u8]) -> Option<u64> {
        (0..self.parts.len()).find_map(|at| {
            let mut found = None;
            self.lines(at, |_, line| {
                if line.module.is_none() && line.is_kept() && *line.name == *name {
                    found = Some(line.address);
                }
                found.is_none()
            })?;
            found
        })
    }

    /// Returns the approximate size in memory in bytes, as if all parts were read.
    pub fn held(&self) -> usize {
        let size = usize::try_from(PART).unwrap_or_default();
        self.parts.len().saturating_mul(size)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::kallsyms::Kallsyms;

    /// Writes a list to a file, and returns it with the name of the file.
    fn opened(text: &str) -> (Option<KernelList>, Kallsyms) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        let list = KernelList::open(file.path());
        (list, Kallsyms::parse(text.into()))
    }

    #[test]
    fn a_list_in_a_file_is_that_in_memory() {
        // Without symbols, several at an address, and long names.
        let mut text = String::new();
        for number in 0..3000_u64 {
            let start = 0xffff_ffff_8100_0000 + number / 3 * 48;
            let kind = ["T", "t", "r", "W", "A", "D", "B"][usize::try_from(number % 7).unwrap()];
            let kind = if (1000..2000).contains(&number) {
                "r"
            } else {
                kind
            };
            let name = "n".repeat(usize::try_from(number % 300).unwrap());
            writeln!(text, "{start:016x} {kind} f{number}{name}").unwrap();
        }
        let image = text.clone();
        for number in 0..500 {
            writeln!(
                text,
                "{:016x} t m{number}\t[ext4]",
                0xffff_ffff_c000_0000_u64 - number
            )
            .unwrap();
        }
        for text in [&text, &image, &image[..image.len() - 1]] {
            let (list, expected) = opened(text);
            let (list, table) = (list.unwrap(), expected.image);
            assert!(list.parts.len() > 20);
            let mut found = 0;
            for address in (0xffff_ffff_80ff_fff0..0xffff_ffff_8100_f000_u64).chain([0, u64::MAX]) {
                let [one, other] = [list.find(address), table.find(address)];
                assert_eq!(one.map(|found| found.start), other.map(|found| found.start));
                if let Some((one, other)) = one.zip(other) {
                    assert_eq!(list.name(one.index), table.name(other.index));
                    found += 1;
                }
            }
            assert!(found > 10_000);
            for name in ["f0", "f7n", "f2996", "f1500", "m3", "f"] {
                let names = text.lines().filter_map(|line| line.split(' ').nth(2));
                let whole = names
                    .clone()
                    .find(|whole| whole.trim_end_matches('n') == name);
                let name = whole.unwrap_or(name).as_bytes();
                assert_eq!(list.address_of(name), table.address_of(name));
            }
        }
    }

    #[test]
    fn other_lists_are_refused() {
        assert!(opened("").0.is_none());
        assert!(
            opened("0000000000000000 T _text\n0000000000000000 t a\n")
                .0
                .is_none()
        );
        assert!(opened("ffffffffc0000000 t init\t[ext4]\n").0.is_none());
        let text: String = (0..1000_u64)
            .rev()
            .map(|at| format!("{:016x} T f{at}\n", 1 << 40 | at))
            .collect();
        assert!(opened(&text).0.is_none(), "not in order");
        assert!(KernelList::open(Path::new("/dev/zero")).is_none());
    }
}
