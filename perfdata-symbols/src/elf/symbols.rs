//! The entries of tables of symbols: which of them perf keeps, and where they start
//! (tools/perf/util/symbol-elf.c, Linux 7.2).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use object::elf::{
    EM_ARM, SHN_ABS, SHN_UNDEF, STB_GLOBAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE,
    STT_OBJECT, STV_HIDDEN, STV_INTERNAL,
};
use object::{Endian as _, Endianness};

use super::{Addresses, Elf, MOST_SYMBOLS, Segment};
use crate::bytes::read_up_to;
use crate::table::{New, Properties};

/// Sizes of an entry in bytes.
const RAW_32: usize = 16;
const RAW_64: usize = 24;

/// Bytes that are read at once to pass over all symbols.
const READ: usize = 1 << 16;

/// Number of entries that are read together for one of them. Neighbours in a table are often
/// neighbours in memory.
const BLOCK: usize = 1 << 8;

/// The form of the entries of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryForm {
    pub endian: Endianness,
    pub is_64: bool,
}

/// A symbol as it is in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw {
    pub name: u32,
    info: u8,
    other: u8,
    pub section: u16,
    pub value: u64,
    size: u64,
}

impl EntryForm {
    /// Returns the size of an entry in bytes.
    pub fn size(self) -> usize {
        if self.is_64 { RAW_64 } else { RAW_32 }
    }

    /// Returns the symbols in the content of a table.
    pub fn symbols(self, content: &[u8]) -> impl Iterator<Item = Raw> + use<'_> {
        let entries = content.chunks_exact(self.size());
        entries.filter_map(move |bytes| self.symbol(bytes))
    }

    #[inline]
    fn symbol(self, bytes: &[u8]) -> Option<Raw> {
        let endian = self.endian;
        let (name, rest) = bytes.split_first_chunk()?;
        let name = endian.read_u32(*name);
        Some(if self.is_64 {
            let (&[info, other], rest) = rest.split_first_chunk()?;
            let (section, rest) = rest.split_first_chunk()?;
            let (value, rest) = rest.split_first_chunk()?;
            Raw {
                name,
                info,
                other,
                section: endian.read_u16(*section),
                value: endian.read_u64(*value),
                size: endian.read_u64(*rest.first_chunk()?),
            }
        } else {
            let (value, rest) = rest.split_first_chunk()?;
            let (size, rest) = rest.split_first_chunk()?;
            let (&[info, other], rest) = rest.split_first_chunk()?;
            Raw {
                name,
                info,
                other,
                section: endian.read_u16(*rest.first_chunk()?),
                value: endian.read_u32(*value).into(),
                size: endian.read_u32(*size).into(),
            }
        })
    }
}

/// Where the symbols of a section are.
#[derive(Debug, Clone, Copy)]
struct SymbolSection {
    /// Whether perf takes symbols without a type from it.
    has_labels: bool,
    is_text: bool,
    address: u64,
    offset: u64,
}

/// Which symbols of a table perf keeps, and where they start.
#[derive(Debug)]
pub(super) struct Rules {
    is_arm: bool,
    addresses: Addresses,
    loads: Vec<Segment>,
    /// By the numbers of the sections; `None` for those that are not loaded.
    places: Vec<Option<SymbolSection>>,
    /// Offset of the first name, and their size.
    names: (u32, u64),
}

impl Elf {
    /// Returns the form of the entries.
    pub(super) fn form(&self) -> EntryForm {
        EntryForm {
            endian: self.endian,
            is_64: self.is_64,
        }
    }

    /// Returns the code of the functions of `.symtab`, in its order. A function extends up to the next
    /// one, or to the end of its section, whatever its size: code after it without a symbol is its own
    /// for BOLT and llvm-profgen.
    ///
    /// # Errors
    /// The table cannot be read, or is too large.
    pub fn functions(&self) -> io::Result<Vec<Range<u64>>> {
        let mut functions = Vec::new();
        self.each_symbol(|raw, _| {
            let kind = raw.info & 0xf;
            let is_function = kind == STT_FUNC.0 || kind == STT_GNU_IFUNC.0;
            let section = self.sections.get(usize::from(raw.section));
            let Some(section) = section.filter(|_| is_function && raw.section != SHN_UNDEF.0)
            else {
                return;
            };
            let start = match self.machine == EM_ARM.0 {
                true => raw.value & !1,
                false => raw.value,
            };
            functions.push((start, section.address.saturating_add(section.size)));
        })?;
        functions.sort_unstable();
        functions.dedup_by_key(|(start, _)| *start);
        let nexts = functions.iter().skip(1).map(|(start, _)| *start);
        let nexts: Vec<u64> = nexts.chain([u64::MAX]).collect();
        let ranges = functions.iter().zip(nexts);
        let ranges = ranges.map(|((start, end), next)| *start..next.min(*end));
        Ok(ranges.filter(|range| !range.is_empty()).collect())
    }

    /// Returns the address of the symbol `name` of `.symtab`, if there is one.
    ///
    /// # Errors
    /// The table cannot be read, or is too large.
    pub fn symbol_address(&self, name: &[u8]) -> io::Result<Option<u64>> {
        let mut found = None;
        self.each_symbol(|raw, names| {
            let at = usize::try_from(raw.name).unwrap_or(usize::MAX);
            let rest = names.get(at..).unwrap_or_default();
            if found.is_none()
                && rest
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.first() == Some(&0))
            {
                found = Some(raw.value);
            }
        })?;
        Ok(found)
    }

    /// Passes the symbols of `.symtab` to `see`, with all names.
    fn each_symbol(&self, mut see: impl FnMut(&Raw, &[u8])) -> io::Result<()> {
        let mut tables = self.sections.iter().filter(|section| section.is_symtab);
        let Some(table) = tables.find(|table| !table.is_nobits) else {
            return Ok(());
        };
        let names = match self.sections.get(table.link) {
            Some(strings) => self.content(strings, MOST_SYMBOLS)?,
            None => Vec::new(),
        };
        let symbols = self.content(table, MOST_SYMBOLS)?;
        self.form()
            .symbols(&symbols)
            .for_each(|raw| see(&raw, &names));
        Ok(())
    }

    /// Returns the rules for the symbols of this file, whose names begin at an offset and have a
    /// size. `runtime` is the file that processes map.
    pub(super) fn rules(&self, runtime: &Elf, addresses: Addresses, names: (u32, u64)) -> Rules {
        let place = |number: usize| {
            let section = self.sections.get(number)?;
            if !section.is_allocated {
                return None;
            }
            // The offsets of sections without content are not those in the mapped file.
            let section = match section.is_nobits {
                true => runtime.sections.get(number)?,
                false => section,
            };
            Some(SymbolSection {
                has_labels: section.has_labels,
                is_text: *section.name == *b".text",
                address: section.address,
                offset: section.offset,
            })
        };
        Rules {
            is_arm: self.machine == EM_ARM.0,
            addresses,
            loads: runtime.loads.clone(),
            places: (0..self.sections.len()).map(place).collect(),
            names,
        }
    }
}

impl Rules {
    /// Returns a symbol if perf keeps it.
    #[inline]
    pub fn kept(&self, raw: &Raw) -> Option<New> {
        let kind = raw.info & 0xf;
        let binding = raw.info >> 4;
        let visibility = raw.other & 0x3;
        let is_named = raw.name != 0 && raw.section != SHN_UNDEF.0 && raw.section != SHN_ABS.0;
        let is_label =
            kind == STT_NOTYPE.0 && visibility != STV_HIDDEN.0 && visibility != STV_INTERNAL.0;
        let is_code_or_data = [STT_FUNC.0, STT_GNU_IFUNC.0, STT_OBJECT.0].contains(&kind);
        let (names, names_size) = self.names;
        let is_kept = is_named && (is_label || is_code_or_data);
        if !is_kept || u64::from(raw.name) >= names_size {
            return None;
        }
        let place = self.places.get(usize::from(raw.section))?.as_ref()?;
        if is_label && !place.has_labels {
            return None;
        }
        // The lowest bit of a Thumb function's address is a flag.
        let is_thumb = self.is_arm && kind == STT_FUNC.0;
        let value = if is_thumb { raw.value & !1 } else { raw.value };
        let start = match self.addresses {
            Addresses::Virtual => value,
            Addresses::Text if place.is_text => value.wrapping_sub(place.address),
            Addresses::Text => return None,
            Addresses::Offsets => offset_in(&self.loads, value)
                .unwrap_or_else(|| value.wrapping_sub(place.address).wrapping_add(place.offset)),
        };
        Some(New {
            start,
            end: start.saturating_add(raw.size),
            name: names.saturating_add(raw.name),
            properties: Properties {
                is_untyped: kind == STT_NOTYPE.0,
                is_weak: binding == STB_WEAK.0,
                is_global: binding == STB_GLOBAL.0,
            },
        })
    }
}

/// Returns the offset in the file of a virtual address.
#[inline]
pub(super) fn offset_in(loads: &[Segment], address: u64) -> Option<u64> {
    let contains = |load: &&Segment| {
        address
            .checked_sub(load.address)
            .is_some_and(|at| at < load.size)
    };
    let load = loads.iter().find(contains)?;
    Some(address.wrapping_sub(load.address).wrapping_add(load.offset))
}

/// A table of symbols that stays in its file. The addresses are offsets in the file.
#[derive(Debug)]
pub(crate) struct FileSymbols {
    file: Arc<File>,
    offset: u64,
    /// Number of entries.
    len: u32,
    form: EntryForm,
    rules: Rules,
    /// The entries that were read, in blocks.
    blocks: Box<[OnceLock<Box<[u8]>>]>,
}

impl FileSymbols {
    /// Returns the symbols in `size` bytes at an offset of a file; `None` if there are too many.
    pub(super) fn new(
        file: Arc<File>,
        offset: u64,
        size: u64,
        form: EntryForm,
        rules: Rules,
    ) -> Option<Self> {
        let len = u32::try_from(size.checked_div(form.size() as u64)?).ok()?;
        let blocks = usize::try_from(len).ok()?.div_ceil(BLOCK);
        Some(FileSymbols {
            file,
            offset,
            len,
            form,
            rules,
            blocks: (0..blocks).map(|_| OnceLock::new()).collect(),
        })
    }

    /// Returns the number of entries. Not all of them are symbols.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Reads entries from a number on into `bytes`. Returns how many bytes could be read.
    fn read(&self, number: u32, bytes: &mut [u8]) -> usize {
        let skipped = u64::from(number).saturating_mul(self.form.size() as u64);
        let offset = self.offset.saturating_add(skipped);
        read_up_to(&self.file, bytes, offset).unwrap_or_default()
    }

    /// Returns the symbol of an entry, if it is one that perf keeps. One that cannot be read any
    /// more is not.
    pub fn get(&self, number: u32) -> Option<New> {
        let at = usize::try_from(number).ok().filter(|_| number < self.len)?;
        let (block, within) = (at.checked_div(BLOCK)?, at.checked_rem(BLOCK)?);
        let bytes = self.blocks.get(block)?.get_or_init(|| {
            let first = number.saturating_sub(u32::try_from(within).unwrap_or_default());
            let left = self.len.saturating_sub(first);
            let count = usize::try_from(left).map_or(BLOCK, |left| left.min(BLOCK));
            let mut bytes = vec![0; count.saturating_mul(self.form.size())];
            let read = self.read(first, &mut bytes);
            bytes.truncate(read);
            bytes.into()
        });
        let start = within.checked_mul(self.form.size())?;
        let entry = bytes.get(start..)?.get(..self.form.size())?;
        self.rules.kept(&self.form.symbol(entry)?)
    }

    /// Passes all symbols that perf keeps to `see`, with their numbers, as far as they can be read.
    pub fn for_each(&self, mut see: impl FnMut(u32, &New)) {
        let size = self.form.size();
        let mut buffer = vec![0; READ.saturating_sub(READ.checked_rem(size).unwrap_or_default())];
        let mut number = 0_u32;
        while number < self.len {
            let left = self.len.saturating_sub(number);
            let left = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .saturating_mul(size);
            let len = buffer.len().min(left);
            let Some(bytes) = buffer.get_mut(..len) else {
                return;
            };
            let read = self.read(number, bytes);
            let bytes = bytes.get(..read).unwrap_or_default();
            for entry in bytes.chunks_exact(size) {
                if let Some(new) = self
                    .form
                    .symbol(entry)
                    .and_then(|raw| self.rules.kept(&raw))
                {
                    see(number, &new);
                }
                number = number.saturating_add(1);
            }
            if read < size {
                return;
            }
        }
    }

    /// Returns the size in memory in bytes, as if all entries were read.
    pub fn held(&self) -> usize {
        let entries = usize::try_from(self.len).unwrap_or(usize::MAX);
        let content = entries.saturating_mul(self.form.size());
        content.saturating_add(size_of_val(&*self.blocks))
    }

    /// Returns the first and the last offset of what processes map.
    pub fn bounds(&self) -> Option<(u64, u64)> {
        let loads = &self.rules.loads;
        let first = loads.iter().map(|load| load.offset).min()?;
        let ends = loads
            .iter()
            .map(|load| load.offset.saturating_add(load.file_size));
        Some((first, ends.max()?))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::bytes::Bytes;
    use crate::demangle::demangled;
    use crate::table::{Builder, Table};

    fn table(elf: &Elf) -> Table {
        let mut builder = Builder::default();
        elf.add_symbols(elf, Addresses::Offsets, &mut builder)
            .unwrap();
        builder.build(demangled)
    }

    /// Returns the path of this program, also if it was started by `ld.so`.
    fn own_program() -> PathBuf {
        std::env::args_os().next().unwrap().into()
    }

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "programs are not ELF files")]
    fn symbols_in_a_file_are_those_in_memory() {
        let path = own_program();
        let in_file = Elf::parse(Bytes::open(&path).unwrap()).unwrap();
        let in_memory = Elf::from_bytes(fs::read(&path).unwrap()).unwrap();
        let (in_file, in_memory) = (table(&in_file), table(&in_memory));
        let size = fs::metadata(&path).unwrap().len();
        assert!(size > 1 << 20, "a large program");
        let mut found = 0;
        for address in (0..size).step_by(997) {
            let [one, other] = [&in_file, &in_memory].map(|table| {
                let found = table.find(address)?;
                Some((found.start, table.name(found.index)))
            });
            assert_eq!(one, other, "{address:#x}");
            found += usize::from(one.is_some());
        }
        assert!(found > 100);
    }

    #[test]
    fn entries_of_both_classes_are_read() {
        let raw = |is_64, endian, bytes: &[u8]| {
            let raw = EntryForm { endian, is_64 }.symbol(bytes)?;
            let Raw {
                name,
                info,
                other,
                section,
                value,
                size,
            } = raw;
            Some((name, info, other, section, value, size))
        };
        let wide: Vec<u8> = (1..=24).collect();
        let expected = (
            0x0403_0201,
            5,
            6,
            0x0807,
            0x100f_0e0d_0c0b_0a09,
            0x1817_1615_1413_1211,
        );
        assert_eq!(raw(true, Endianness::Little, &wide), Some(expected));
        let narrow: Vec<u8> = (1..=16).collect();
        let expected = (0x0102_0304, 13, 14, 0x0f10, 0x0506_0708, 0x090a_0b0c);
        assert_eq!(raw(false, Endianness::Big, &narrow), Some(expected));
        assert_eq!(raw(true, Endianness::Little, &narrow), None);
    }

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "programs are not ELF files")]
    fn symbols_of_a_file_that_became_shorter_are_missing() {
        let path = own_program();
        let elf = Elf::parse(Bytes::open(&path).unwrap()).unwrap();
        let rules = || elf.rules(&elf, Addresses::Offsets, (0, u64::MAX));
        let file = Arc::new(tempfile::tempfile().unwrap());
        file.set_len(100).unwrap();
        let size = 1000 * elf.form().size() as u64;
        let symbols = FileSymbols::new(file, 0, size, elf.form(), rules()).unwrap();
        assert_eq!(symbols.len(), 1000);
        assert!(symbols.get(0).is_none() && symbols.get(500).is_none());
        symbols.for_each(|number, _| panic!("{number} is not there"));
    }
}
