//! A table of symbols, in which they are found by address as perf finds them
//! (tools/perf/util/symbol.c, Linux 7.2).

mod buckets;
mod choice;
mod list;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::sync::{Arc, PoisonError, RwLock};

use foldhash::fast::RandomState;

use self::buckets::Buckets;
use self::choice::{Best, best_named, best_of};
use self::list::List;
use crate::elf::FileSymbols;
use crate::names::Names;

pub(crate) use self::choice::{Demangle, Properties};
pub(crate) use self::list::New;

/// The size of a page, up to which the last symbol of a table without sizes extends.
pub(crate) const PAGE: u64 = 4096;

/// The number of symbols before an address that may contain it. Symbols are rarely nested.
const MOST_NESTED: usize = 8;

/// Builds a [`Table`].
#[derive(Debug, Default)]
pub(crate) struct Builder {
    list: List,
    names: Names,
}

impl Builder {
    /// Adds names that each end with NUL. Returns the offset of the first one; `None` if the names
    /// have 4 GiB.
    pub fn add_names(&mut self, names: &[u8]) -> Option<u32> {
        self.names.add(names)
    }

    /// Adds one name without its NUL. Returns its offset; `None` if the names have 4 GiB.
    pub fn add_name(&mut self, name: &[u8]) -> Option<u32> {
        self.names.add_one(name)
    }

    /// Adds names in a file, which are read when they are needed. Returns the offset of the first
    /// one; `None` if the names have 4 GiB.
    pub fn add_names_of(&mut self, file: Arc<File>, offset: u64, size: u64) -> Option<u32> {
        self.names.add_file(file, offset, size)
    }

    /// Adds a text whose names each end with NUL, a tab or the line. Returns the offset of its
    /// beginning; `None` if the names have 4 GiB.
    pub fn add_text(&mut self, text: Arc<Vec<u8>>) -> Option<u32> {
        self.names.add_text(text)
    }

    /// Returns the name at an offset.
    pub fn name(&self, at: u32) -> Cow<'_, [u8]> {
        self.names.get(at)
    }

    /// Returns the name of the symbol at each of `wanted` addresses, of those that were added so far.
    pub fn starts(
        &self,
        wanted: &HashSet<u64, RandomState>,
        demangled: Demangle,
    ) -> HashMap<u64, u32, RandomState> {
        // Symbols at other addresses only determine ends, on which no name depends.
        let mut list = Vec::new();
        self.list.for_each(|number, new| {
            if wanted.contains(&new.start) {
                list.push((number, *new));
            }
        });
        sort(&mut list, None);
        let name = |same: &[Numbered]| {
            let (_, best) = match best_of(same, |(_, new)| new, &self.names, demangled)? {
                Best::One(one) => one,
                Best::Tie(tied) => {
                    best_named(tied.into_iter(), |one| one.1.name, &self.names, demangled)?
                }
            };
            Some((best.start, best.name))
        };
        list.chunk_by(is_at_same).filter_map(name).collect()
    }

    /// Adds a symbol. A symbol of unknown size has size 0.
    pub fn add(&mut self, start: u64, size: u64, name: u32, properties: Properties) {
        self.add_symbol(New {
            start,
            end: start.saturating_add(size),
            name,
            properties,
        });
    }

    /// Adds a symbol.
    pub fn add_symbol(&mut self, new: New) {
        self.list.push(new);
    }

    /// Adds symbols in a file, which are read when they are needed.
    pub fn add_symbols_of(&mut self, symbols: FileSymbols) {
        self.list.add_file(symbols);
    }

    /// Returns the table. `demangled` returns the shown form of a name, on which the choice between
    /// symbols at the same address depends.
    pub fn build(self, demangled: Demangle) -> Table {
        let Builder { list, mut names } = self;
        names.shrink();
        let mut buckets = Buckets::new(list.bounds(), list.len());
        list.for_each(|number, new| buckets.add(number, new.start));
        buckets.finish();
        Table {
            list,
            names,
            buckets,
            demangled,
            resolved: RwLock::default(),
        }
    }
}

/// A symbol and its number.
type Numbered = (u32, New);

fn is_at_same((_, one): &Numbered, (_, other): &Numbered) -> bool {
    one.start == other.start
}

/// Sorts symbols in the order of their numbers by their addresses, and gives each an end. `next` is
/// the address at which the symbol behind all of them starts.
fn sort(list: &mut [Numbered], mut next: Option<u64>) {
    // The order of insertion decides between symbols that are equal otherwise.
    list.sort_by_key(|(_, new)| new.start);
    // perf sets the ends first: of several symbols without a size at an address, the last one
    // receives one, and is preferred for it.
    for (_, new) in list.iter_mut().rev() {
        if new.end == new.start {
            new.end = next.unwrap_or_else(|| {
                let page = new.start.checked_next_multiple_of(PAGE);
                page.unwrap_or(u64::MAX).saturating_add(PAGE)
            });
        }
        next = Some(new.start);
    }
}

/// The best symbol at an address.
#[derive(Debug, Clone, Copy)]
struct BestSymbol {
    start: u64,
    /// The address after the last one.
    end: u64,
    /// Its number; that of the first one, if names decide.
    number: u32,
}

/// Symbols with the same address, end and properties, between which only their demangled names
/// decide. Linkers that fold identical functions make hundreds of thousands of them.
#[derive(Debug)]
struct Tie {
    /// Offsets of the names, in the order of insertion.
    names: Vec<u32>,
    /// The offset of the chosen name, since its first use.
    chosen: Option<u32>,
}

/// The parts of a table that were looked up.
#[derive(Debug, Default)]
struct Resolved {
    /// For each bucket, where its best symbols are; [`UNKNOWN`] if it was not looked up.
    ranges: Vec<(u32, u32)>,
    /// The best symbols of buckets, by address in each of them.
    entries: Vec<BestSymbol>,
    /// By the number of the entry.
    ties: HashMap<u32, Tie, RandomState>,
}

/// The symbols of an object, by address. Symbols are sorted, and the best of those at an address is
/// chosen, only around the addresses that are looked up.
#[derive(Debug)]
pub(crate) struct Table {
    list: List,
    names: Names,
    buckets: Buckets,
    demangled: Demangle,
    resolved: RwLock<Resolved>,
}

impl Default for Table {
    fn default() -> Self {
        Builder::default().build(|name| Cow::Borrowed(name))
    }
}

/// A symbol that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its number in the table.
    pub index: u32,
    /// Its first address.
    pub start: u64,
}

/// The range of the entries of a bucket that was not looked up yet.
const UNKNOWN: (u32, u32) = (1, 0);

impl Resolved {
    /// Returns the best symbols in a bucket, if it was looked up.
    fn entries(&self, bucket: usize) -> Option<&[BestSymbol]> {
        let &(start, end) = self.ranges.get(bucket)?;
        let at = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        self.entries.get(at(start)..at(end))
    }

    /// Looks up a bucket of a table, unless another thread did.
    fn look_up(&mut self, table: &Table, bucket: usize) {
        if self.entries(bucket).is_some() {
            return;
        }
        // There are fewer entries than symbols.
        let len = |list: &Vec<BestSymbol>| u32::try_from(list.len()).unwrap_or(u32::MAX);
        let start = len(&self.entries);
        table.add_entries(bucket, self);
        if self.ranges.is_empty() {
            self.ranges = vec![UNKNOWN; table.buckets.count()];
        }
        let range = (start, len(&self.entries));
        if let Some(place) = self.ranges.get_mut(bucket) {
            *place = range;
        }
    }

    /// Returns the symbol that contains an address, or the bucket of the table that must be looked up
    /// first.
    fn find(&self, table: &Table, address: u64) -> Result<Option<Found>, usize> {
        let mut bucket = table.buckets.up_to(address);
        let mut left = MOST_NESTED;
        while let Some(at) = bucket.filter(|_| left > 0) {
            let entries = self.entries(at).ok_or(at)?;
            let after = entries.partition_point(|entry| entry.start <= address);
            let nested = entries.get(..after).unwrap_or_default();
            let found = nested
                .iter()
                .rev()
                .take(left)
                .find(|entry| address < entry.end);
            if let Some(entry) = found {
                return Ok(Some(Found {
                    index: entry.number,
                    start: entry.start,
                }));
            }
            left = left.saturating_sub(after);
            bucket = table.buckets.before(at);
        }
        Ok(None)
    }
}

impl Table {
    /// Calls `act` with what was looked up so far.
    fn with_resolved<T>(&self, act: impl FnOnce(&mut Resolved) -> T) -> T {
        // What another thread left is still valid.
        let resolved = self.resolved.write();
        act(&mut resolved.unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the symbol that contains `address`.
    pub fn find(&self, address: u64) -> Option<Found> {
        loop {
            let resolved = self.resolved.read();
            let resolved = resolved.unwrap_or_else(PoisonError::into_inner);
            let bucket = match resolved.find(self, address) {
                Ok(found) => return found,
                Err(bucket) => bucket,
            };
            drop(resolved);
            let is_known = self.with_resolved(|resolved| {
                resolved.look_up(self, bucket);
                resolved.entries(bucket).is_some()
            });
            if !is_known {
                return None;
            }
        }
    }

    /// Adds the best symbols in a bucket, by address, and those between which names decide.
    fn add_entries(&self, bucket: usize, resolved: &mut Resolved) {
        let Resolved { entries, ties, .. } = resolved;
        let mut list = self.symbols(bucket);
        let is_open = list.iter().any(|(_, new)| new.end == new.start);
        let behind = is_open.then(|| self.buckets.after(bucket)).flatten();
        let next = behind.and_then(|behind| {
            let starts = self.symbols(behind).into_iter().map(|(_, new)| new.start);
            starts.min()
        });
        sort(&mut list, next);
        let best = |same: &[Numbered]| {
            let best = best_of(same, |(_, new)| new, &self.names, self.demangled)?;
            let (number, new) = match best {
                Best::One(one) => one,
                Best::Tie(tied) => {
                    let &(number, new) = tied.first()?;
                    let names = tied.iter().map(|(_, new)| new.name).collect();
                    let chosen = None;
                    ties.insert(number, Tie { names, chosen });
                    (number, new)
                }
            };
            Some(BestSymbol {
                start: new.start,
                end: new.end,
                number,
            })
        };
        entries.extend(list.chunk_by(is_at_same).filter_map(best));
    }

    /// Returns the symbols in a bucket in the order of their numbers.
    fn symbols(&self, bucket: usize) -> Vec<Numbered> {
        let numbers = self.buckets.symbols(bucket).into_iter();
        let symbols = numbers.filter_map(|number| Some((number, self.list.get(number)?)));
        symbols.collect()
    }

    /// Returns the name of a symbol, as it is in the object.
    pub fn name(&self, index: u32) -> Cow<'_, [u8]> {
        let chosen = match self.known_choice(index) {
            Some(None) => self.with_resolved(|resolved| {
                let Tie { names, chosen } = resolved.ties.get_mut(&index)?;
                if chosen.is_none() {
                    let offsets = names.iter().copied();
                    *chosen = best_named(offsets, |name| *name, &self.names, self.demangled);
                }
                *chosen
            }),
            known => known.flatten(),
        };
        match chosen.or_else(|| Some(self.list.get(index)?.name)) {
            Some(name) => self.names.get(name),
            None => Cow::Borrowed(&[]),
        }
    }

    /// Returns the name that was chosen for a symbol, as far as it is known; the outer `None` if there is
    /// no choice.
    fn known_choice(&self, index: u32) -> Option<Option<u32>> {
        let resolved = self.resolved.read();
        let resolved = resolved.unwrap_or_else(PoisonError::into_inner);
        resolved.ties.get(&index).map(|tie| tie.chosen)
    }

    /// Returns the first address of a symbol called `name`, whether or not it is the best one there.
    pub fn address_of(&self, name: &[u8]) -> Option<u64> {
        let mut first = None;
        self.list.for_each(|_, new| {
            if self.names.is(new.name, name) {
                first = Some(first.map_or(new.start, |first: u64| first.min(new.start)));
            }
        });
        first
    }

    /// Returns whether there are no symbols.
    pub fn is_empty(&self) -> bool {
        self.buckets.len() == 0
    }

    /// Returns the approximate size of the table in bytes, as if all addresses were looked up.
    pub fn held(&self) -> usize {
        let entry = size_of::<BestSymbol>().saturating_add(size_of::<u32>());
        let resolved = self.buckets.len().saturating_mul(entry);
        let sizes = [self.list.held(), self.names.held(), self.buckets.held()];
        sizes.into_iter().fold(resolved, usize::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPED: Properties = Properties {
        is_untyped: false,
        is_weak: false,
        is_global: false,
    };
    const GLOBAL: Properties = Properties {
        is_global: true,
        ..TYPED
    };
    const WEAK: Properties = Properties {
        is_weak: true,
        ..TYPED
    };
    const LABEL: Properties = Properties {
        is_untyped: true,
        ..TYPED
    };

    fn table(symbols: &[(u64, u64, &str, Properties)]) -> Table {
        let mut builder = Builder::default();
        for &(start, size, name, properties) in symbols {
            let at = builder.add_names(format!("{name}\0").as_bytes()).unwrap();
            builder.add(start, size, at, properties);
        }
        builder.build(|name| Cow::Borrowed(name))
    }

    fn at(table: &Table, address: u64) -> Option<&str> {
        let found = table.find(address)?;
        match table.name(found.index) {
            Cow::Borrowed(name) => Some(std::str::from_utf8(name).unwrap()),
            Cow::Owned(_) => panic!("the names are in memory"),
        }
    }

    #[test]
    fn the_best_of_several_symbols_at_an_address_remains() {
        let winner = |a: (u64, &'static str, Properties), b: (u64, &'static str, Properties)| {
            let of = |one: (u64, &'static str, Properties),
                      other: (u64, &'static str, Properties)| {
                let table = table(&[(16, one.0, one.1, one.2), (16, other.0, other.1, other.2)]);
                at(&table, 16).unwrap().to_owned()
            };
            // The order must not matter, except between equals.
            assert_eq!(of(a, b), of(b, a));
            of(a, b)
        };
        assert_eq!(winner((4, "label", LABEL), (4, "a", WEAK)), "a");
        assert_eq!(winner((4, "weakest", WEAK), (4, "a", TYPED)), "a");
        assert_eq!(winner((4, "longer", TYPED), (4, "a", GLOBAL)), "a");
        assert_eq!(winner((4, "__longer", GLOBAL), (4, "a", GLOBAL)), "a");
        assert_eq!(winner((4, "ab", GLOBAL), (4, "a", GLOBAL)), "ab");
        assert_eq!(
            winner((4, "SyS_abc", GLOBAL), (4, "sys_abc", GLOBAL)),
            "sys_abc"
        );
    }

    #[test]
    fn symbols_can_have_any_address() {
        let last = u64::MAX - 4;
        let ends = table(&[(last, 2, "last", GLOBAL), (0, 4, "first", GLOBAL)]);
        assert_eq!(at(&ends, 3), Some("first"));
        assert_eq!(at(&ends, 4), None);
        assert_eq!(at(&ends, last + 1), Some("last"));
        assert_eq!(at(&ends, u64::MAX), None);
        let one = table(&[(last, 2, "last", GLOBAL)]);
        assert_eq!(at(&one, last), Some("last"));
        assert_eq!(at(&one, 0), None);
        assert_eq!(at(&table(&[]), 0), None);
    }

    #[test]
    fn many_symbols_are_sorted_and_found() {
        // Addresses in an order without a pattern, some of them twice, with a gap before the last.
        let mut starts: Vec<u64> = (0..5000_u64).map(|at| at * 7919 % 4999 * 64).collect();
        starts.push(1 << 40);
        let mut builder = Builder::default();
        for start in &starts {
            let at = builder.add_name(format!("f{start}").as_bytes()).unwrap();
            builder.add(*start, 32, at, GLOBAL);
        }
        let table = builder.build(|name| Cow::Borrowed(name));
        for start in starts {
            for address in [start, start + 31] {
                let name = format!("f{start}");
                assert_eq!(at(&table, address), Some(&*name), "{address:#x}");
            }
            assert_eq!(at(&table, start + 32), None);
        }
        assert_eq!(at(&table, u64::MAX), None);
    }

    #[test]
    fn all_names_of_an_address_are_known() {
        let table = table(&[
            (16, 4, "_text", GLOBAL),
            (16, 4, "_stext", GLOBAL),
            (16, 4, "label", LABEL),
            (32, 4, "other", GLOBAL),
        ]);
        assert_eq!(at(&table, 17), Some("_stext"));
        assert_eq!(at(&table, 17), Some("_stext"), "the second time");
        assert_eq!(at(&table, 32), Some("other"));
        for name in ["_text", "_stext", "label"] {
            assert_eq!(table.address_of(name.as_bytes()), Some(16));
        }
        assert_eq!(table.address_of(b"nothing"), None);
    }

    #[test]
    fn ends_of_symbols_at_an_address_may_differ() {
        let table = table(&[(16, 4, "short", GLOBAL), (16, 8, "longer", GLOBAL)]);
        assert_eq!(at(&table, 20), Some("longer"));
    }

    #[test]
    fn the_last_symbol_without_size_remains() {
        let table = table(&[
            (16, 0, "longer", GLOBAL),
            (16, 0, "b", WEAK),
            (32, 4, "sized", TYPED),
            (32, 0, "unsized", LABEL),
            (64, 0, "end", TYPED),
        ]);
        assert_eq!(at(&table, 16), Some("b"));
        assert_eq!(at(&table, 31), Some("b"));
        assert_eq!(at(&table, 32), Some("sized"));
        assert_eq!(at(&table, 40), None);
    }

    #[test]
    fn the_first_of_equal_symbols_remains() {
        let table = table(&[(16, 4, "bb", GLOBAL), (16, 4, "aa", GLOBAL)]);
        assert_eq!(at(&table, 16), Some("bb"));
    }

    #[test]
    fn the_shown_name_decides() {
        let mut builder = Builder::default();
        for name in ["_Zlong\0", "ab\0"] {
            let at = builder.add_names(name.as_bytes()).unwrap();
            builder.add(0, 1, at, GLOBAL);
        }
        fn shown(name: &[u8]) -> Cow<'_, [u8]> {
            match name {
                b"_Zlong" => Cow::Borrowed(b"demangled"),
                name => Cow::Borrowed(name),
            }
        }
        assert_eq!(at(&builder.build(shown), 0), Some("_Zlong"));
    }

    #[test]
    fn symbols_without_size_end_at_the_next_one() {
        let table = table(&[
            (0x1000, 0, "first", TYPED),
            (0x1010, 8, "second", TYPED),
            (0x1100, 0, "last", TYPED),
        ]);
        assert_eq!(at(&table, 0xfff), None);
        assert_eq!(at(&table, 0x100f), Some("first"));
        assert_eq!(at(&table, 0x1017), Some("second"));
        assert_eq!(at(&table, 0x1018), None);
        assert_eq!(at(&table, 0x2fff), Some("last"));
        assert_eq!(at(&table, 0x3000), None);
    }

    #[test]
    fn a_symbol_may_contain_others() {
        let table = table(&[(0, 100, "outer", TYPED), (10, 10, "inner", TYPED)]);
        assert_eq!(at(&table, 15), Some("inner"));
        assert_eq!(at(&table, 50), Some("outer"));
        assert_eq!(at(&table, 100), None);
    }

    #[test]
    fn the_last_addresses_are_usable() {
        let table = table(&[(u64::MAX - 1, 0, "end", TYPED)]);
        assert_eq!(at(&table, u64::MAX - 1), Some("end"));
        assert_eq!(table.find(0), None);
    }

    /// Returns for each of `addresses` the name that a search in all sorted symbols finds.
    fn simply_found(
        symbols: &[(u64, u64, &'static str, Properties)],
        addresses: impl Iterator<Item = u64>,
    ) -> Vec<Option<&'static str>> {
        let mut sorted = symbols.to_vec();
        sorted.sort_by_key(|symbol| symbol.0);
        let mut next = None;
        for (start, size, ..) in sorted.iter_mut().rev() {
            if *size == 0 {
                *size = next.unwrap_or(start.next_multiple_of(PAGE) + PAGE) - *start;
            }
            next = Some(*start);
        }
        let better = |one: &&(u64, u64, &str, Properties)| {
            let (_, size, name, of) = one;
            (
                *size > 0,
                !of.is_untyped,
                !of.is_weak,
                of.is_global,
                name.len(),
            )
        };
        let best = sorted.chunk_by(|one, other| one.0 == other.0).map(|same| {
            // The last of the largest is the first of the reversed ones.
            same.iter().rev().max_by_key(better).unwrap()
        });
        let best: Vec<_> = best.collect();
        let found = addresses.map(|address| {
            let before = best.iter().rev().filter(|symbol| symbol.0 <= address);
            let mut nested = before.take(MOST_NESTED);
            let found = nested.find(|(start, size, ..)| address - start < *size);
            found.map(|symbol| symbol.2)
        });
        found.collect()
    }

    #[test]
    fn a_table_finds_what_a_search_in_all_symbols_finds() {
        // The names have different lengths, on which the choice depends.
        const NAMES: [&str; 6] = ["a", "bb", "ccc", "dddd", "eeeee", "ffffff"];
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % below
        };
        for (count, span) in [(1, 1), (40, 3), (60, 300), (300, 5000), (2000, 60_000)] {
            let symbols: Vec<_> = (0..count)
                .map(|number| {
                    let start = 100 + random(span) * random(2).max(1) / (1 + random(4));
                    let size = [0, 1, 5, 40, 700][random(5) as usize];
                    let properties = [TYPED, GLOBAL, WEAK, LABEL][random(4) as usize];
                    (start, size, NAMES[number % NAMES.len()], properties)
                })
                .collect();
            let table = table(&symbols);
            let addresses = || (0..span + 1000).chain([5000, 9000, u64::MAX]);
            let simply = simply_found(&symbols, addresses());
            for (address, simply) in addresses().zip(simply) {
                assert_eq!(at(&table, address), simply, "{address} of {count}");
            }
        }
    }
}
