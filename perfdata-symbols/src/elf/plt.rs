//! Symbols for the procedure linkage table, which ELF files do not contain
//! (tools/perf/util/symbol-elf.c, `dso__synthesize_plt_symbols`, Linux 7.2).

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use foldhash::fast::RandomState;
use object::Endian as _;
use object::elf::{EM_386, EM_AARCH64, EM_ARM, EM_RISCV, EM_S390, EM_X86_64};

use super::symbols::Raw;
use super::{Elf, MOST_SYMBOLS, Section};
use crate::demangle::demangled;
use crate::table::{Builder, Properties};

/// The properties of all symbols of the table.
const GLOBAL: Properties = Properties {
    is_untyped: false,
    is_weak: false,
    is_global: true,
};

/// A relocation of an address by a symbol.
#[derive(Debug, Clone, Copy)]
struct Relocation {
    /// The place of the address.
    offset: u64,
    /// The number of the symbol.
    symbol: u64,
    /// The address itself, if there is no symbol.
    addend: Option<u64>,
}

/// Maximum number of entries of all tables.
const MOST_ENTRIES: usize = 1 << 20;

/// Bytes that are read for a name at first, and for those behind it.
const NAME: u64 = 1 << 14;

/// The names to which relocations refer. The symbols that a library uses are usually the first ones
/// of its table, before the often far more numerous ones that it provides.
struct RelocationNames {
    symbols: Vec<Raw>,
    /// By their offsets.
    names: HashMap<u32, Box<[u8]>, RandomState>,
}

impl RelocationNames {
    /// Returns the name of a symbol, unless it is empty.
    fn get(&self, symbol: u64) -> Option<&[u8]> {
        let raw = self.symbols.get(usize::try_from(symbol).ok()?)?;
        let name = &**self.names.get(&raw.name)?;
        (!name.is_empty()).then_some(name)
    }
}

impl Elf {
    /// Adds a symbol for each entry of the procedure linkage table: the name of the called function
    /// and `@plt`; and `.plt` for the code before them.
    pub(super) fn add_plt(&self, builder: &mut Builder) {
        let _ = self.try_add_plt(builder);
    }

    /// Returns the addresses of the entries of all procedure linkage tables, and of the code before
    /// them, in their order.
    pub fn plt_entries(&self) -> Vec<Range<u64>> {
        let names: [&[u8]; 3] = [b".plt", b".plt.got", b".plt.sec"];
        let mut entries = Vec::new();
        for (name, has_header) in names.into_iter().zip([true, false, false]) {
            let Some(table) = self.section(name) else {
                continue;
            };
            let Some((header, entry)) = self.plt_sizes(table) else {
                continue;
            };
            let end = table.address.saturating_add(table.size);
            let mut start = table.address;
            let mut size = if has_header { header } else { entry };
            while start < end && entries.len() < MOST_ENTRIES {
                let next = start.saturating_add(size).min(end);
                entries.push(start..next);
                (start, size) = (next, entry);
            }
        }
        entries.sort_unstable_by_key(|range| range.start);
        entries
    }

    fn is_x86(&self) -> bool {
        [EM_X86_64.0, EM_386.0].contains(&self.machine)
    }

    /// Returns the sizes of the code before the entries of a table, and of an entry.
    fn plt_sizes(&self, table: &Section) -> Option<(u64, u64)> {
        Some(match self.machine {
            machine if machine == EM_AARCH64.0 => (32, 16),
            machine if machine == EM_ARM.0 => (20, 12),
            machine if machine == EM_RISCV.0 => (32, 16),
            machine if machine == EM_S390.0 => (32, 32),
            _ if self.is_x86() => {
                let is_known = [8, 16].contains(&table.entry_size);
                let entry = match table.alignment {
                    _ if is_known => table.entry_size,
                    8 => 8,
                    _ => 16,
                };
                (entry, entry)
            }
            _ => return None,
        })
    }

    fn try_add_plt(&self, builder: &mut Builder) -> Option<()> {
        let plt = self.section(b".plt")?;
        let (header, entry) = self.plt_sizes(plt)?;
        if self.is_x86() {
            let _ = self.add_plt_got(builder);
        }
        // With control-flow protection, calls go through a second table without a header.
        let second = self.section(b".plt.sec").filter(|_| self.is_x86());
        let table = self
            .section(b".rela.plt")
            .or_else(|| self.section(b".rel.plt"));
        let mut relocations = table
            .and_then(|table| self.relocations(table))
            .unwrap_or_default();
        let entries = (relocations.len() as u64).saturating_mul(entry);
        let (start, entry, head) = match second {
            Some(second) => {
                let (_, entry) = self.plt_sizes(second)?;
                (second.offset, entry, plt.size)
            }
            // A table in which all addresses are known from the start has no header.
            None if entries == plt.size && entries > 0 => (plt.offset, entry, 0),
            None => (plt.offset.saturating_add(header), entry, header),
        };
        if head > 0 {
            let name = builder.add_name(b".plt")?;
            builder.add(plt.offset, head, name, GLOBAL);
        }
        let names = self.names_of(table?, &relocations)?;
        // The linker may list indirect functions last; the entries have the order of the addresses
        // that the relocations change.
        relocations.sort_by_key(|relocation| relocation.offset);
        let of_functions = relocations.iter().filter_map(|relocation| {
            let at = relocation.addend?;
            let has_name = names.get(relocation.symbol).is_some();
            (!has_name).then(|| self.offset_of(at).unwrap_or(at))
        });
        let of_functions: HashSet<u64, RandomState> = of_functions.collect();
        let starts = match of_functions.is_empty() {
            true => HashMap::default(),
            false => builder.starts(&of_functions, demangled),
        };
        for (number, relocation) in (0_u64..).zip(relocations) {
            // The relocation of an indirect function contains its address instead of a name.
            let called = match (names.get(relocation.symbol), relocation.addend) {
                (Some(called), _) => called.to_vec(),
                (None, Some(at)) => {
                    let start = self.offset_of(at).unwrap_or(at);
                    match starts.get(&start) {
                        Some(&name) => builder.name(name).to_vec(),
                        None => format!("*ABS*+{at:#x}").into_bytes(),
                    }
                }
                (None, None) => continue,
            };
            let name = builder.add_name(&[&called, &b"@plt"[..]].concat())?;
            let skipped = number.saturating_mul(entry);
            builder.add(start.saturating_add(skipped), entry, name, GLOBAL);
        }
        Some(())
    }

    /// Adds symbols for the entries whose addresses are in the global offset table, because the
    /// program also uses them itself, or because all addresses are set when it starts.
    fn add_plt_got(&self, builder: &mut Builder) -> Option<()> {
        let table = self.section(b".plt.got")?;
        let size = Some(table.entry_size).filter(|&size| size > 0)?;
        let code = self.content(table, MOST_SYMBOLS).ok()?;
        let dynamic = self.section(b".rela.dyn")?;
        let chunk = usize::try_from(size).ok()?;
        let entries = (0_u64..).zip(code.chunks(chunk)).map(|(number, entry)| {
            let within = number.saturating_mul(size);
            let at = table.offset.saturating_add(within);
            // perf takes offsets in the file for addresses.
            let place = self
                .jump(entry)
                .and_then(|distance| at.checked_add(distance));
            (at, place)
        });
        let entries: Vec<(u64, Option<u64>)> = entries.collect();
        let places: HashSet<u64, RandomState> =
            entries.iter().filter_map(|(_, place)| *place).collect();
        // Libraries have hundreds of thousands of others.
        let mut relocations = self.relocations(dynamic)?;
        relocations.retain(|relocation| places.contains(&relocation.offset));
        relocations.sort_by_key(|relocation| relocation.offset);
        let names = self.names_of(dynamic, &relocations)?;
        for (at, place) in entries {
            let called = place.and_then(|place| {
                let found =
                    relocations.binary_search_by_key(&place, |relocation| relocation.offset);
                names.get(relocations.get(found.ok()?)?.symbol)
            });
            let called = match called {
                Some(name) => name.to_vec(),
                None => format!("offset_{at:#x}").into_bytes(),
            };
            let name = builder.add_name(&[&called, &b"@plt"[..]].concat())?;
            builder.add(at, size, name, GLOBAL);
        }
        Some(())
    }

    /// Returns the distance from an entry to the address to which it jumps: `jmp *DISTANCE(%rip)`,
    /// after `endbr64` and with the prefix `bnd` where there are these.
    fn jump(&self, entry: &[u8]) -> Option<u64> {
        if self.machine != EM_X86_64.0 {
            return None;
        }
        let rest = entry.strip_prefix(b"\xf3\x0f\x1e\xfa").unwrap_or(entry);
        let rest = rest.strip_prefix(b"\xf2").unwrap_or(rest);
        let rest = rest.strip_prefix(b"\xff\x25")?;
        let (distance, rest) = rest.split_first_chunk()?;
        let length = entry.len().checked_sub(rest.len())?;
        Some(u64::from(u32::from_le_bytes(*distance)).saturating_add(length as u64))
    }

    /// Returns the relocations in a section.
    fn relocations(&self, table: &Section) -> Option<Vec<Relocation>> {
        let content = self.content(table, MOST_SYMBOLS).ok()?;
        let is_rela = table.name.starts_with(b".rela");
        let (word, words) = (if self.is_64 { 8 } else { 4 }, if is_rela { 3 } else { 2 });
        let number = |bytes: &[u8]| match self.is_64 {
            true => Some(self.endian.read_u64(*bytes.first_chunk()?)),
            false => Some(self.endian.read_u32(*bytes.first_chunk()?).into()),
        };
        let size = usize::checked_mul(word, words)?;
        let list = content.chunks_exact(size).map(|bytes| {
            let mut numbers = bytes.chunks_exact(word).map(number);
            let (offset, info) = (numbers.next()??, numbers.next()??);
            Some(Relocation {
                offset,
                symbol: if self.is_64 { info >> 32 } else { info >> 8 },
                addend: numbers.next().flatten(),
            })
        });
        list.collect()
    }

    /// Returns the names to which the relocations in a section refer.
    fn names_of(&self, table: &Section, relocations: &[Relocation]) -> Option<RelocationNames> {
        let symbols = self.sections.get(table.link)?;
        let strings = self.sections.get(symbols.link)?;
        let numbers = || relocations.iter().map(|relocation| relocation.symbol);
        let count = numbers().max().map_or(0, |last| last.saturating_add(1));
        let size = count.saturating_mul(self.form().size() as u64);
        let content = self.part(symbols, MOST_SYMBOLS, 0..size).ok()?;
        let symbols: Vec<Raw> = self.form().symbols(&content).collect();
        let name = |number: u64| Some(symbols.get(usize::try_from(number).ok()?)?.name);
        let mut offsets: Vec<u32> = numbers().filter_map(name).collect();
        offsets.sort_unstable();
        offsets.dedup();
        let mut names = HashMap::default();
        let (mut start, mut read) = (0, Vec::new());
        for offset in offsets {
            let at = u64::from(offset);
            let end = at.saturating_add(NAME);
            let rest = |start: u64, read: &[u8]| {
                let skipped = usize::try_from(at.checked_sub(start)?).ok()?;
                let rest = read.get(skipped..)?;
                let end = memchr::memchr(0, rest)?;
                rest.get(..end).map(Box::from)
            };
            // Several names are often close to each other; one without an end is the last one, or
            // longer than what was read.
            let name = match rest(start, &read) {
                Some(name) => name,
                None => {
                    (start, read) = (at, self.part(strings, MOST_SYMBOLS, at..end).ok()?);
                    if memchr::memchr(0, &read).is_none() && end < strings.size {
                        read = self.part(strings, MOST_SYMBOLS, at..strings.size).ok()?;
                    }
                    rest(start, &read).unwrap_or_else(|| read.as_slice().into())
                }
            };
            names.insert(offset, name);
        }
        Some(RelocationNames { symbols, names })
    }
}
