//! A table of symbols, and perf's choice between symbols at the same address
//! (tools/perf/util/symbol.c, Linux 7.2).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::sync::OnceLock;

use foldhash::fast::RandomState;

use crate::names::Names;

/// The size of a page, up to which the last symbol of a table without sizes extends.
const PAGE: u64 = 4096;

/// The number of symbols before an address that may contain it. Symbols are rarely nested.
const MOST_NESTED: usize = 8;

/// The properties of a symbol on which the choice between symbols at the same address depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Properties {
    /// Whether the symbol has no type: `STT_NOTYPE`.
    pub is_untyped: bool,
    /// Whether its binding is `STB_WEAK`.
    pub is_weak: bool,
    /// Whether its binding is `STB_GLOBAL`.
    pub is_global: bool,
}

/// A symbol while a table is built.
#[derive(Debug, Clone, Copy)]
struct New {
    start: u64,
    end: u64,
    name: u32,
    properties: Properties,
}

/// A symbol of a table.
#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u64,
    /// The address after the last one.
    end: u64,
    /// Offset in the names.
    name: u32,
}

/// Returns the shown form of a name.
pub(crate) type Demangle = for<'a> fn(&'a [u8]) -> Cow<'a, [u8]>;

/// Symbols with the same address, end and properties, between which only their demangled names
/// decide. Linkers that fold identical functions make hundreds of thousands of them.
#[derive(Debug)]
struct Tie {
    /// The number of the entry.
    entry: u32,
    /// Offsets of the names, in the order of insertion.
    names: Vec<u32>,
    /// The offset of the chosen name, since its first use.
    chosen: OnceLock<u32>,
}

/// Builds a [`Table`].
#[derive(Debug, Default)]
pub(crate) struct Builder {
    list: Vec<New>,
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
    pub fn add_names_of(&mut self, file: File, offset: u64, size: u64) -> Option<u32> {
        self.names.add_file(file, offset, size)
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
        let wanted = self.list.iter().filter(|new| wanted.contains(&new.start));
        let list = with_ends(wanted.copied().collect());
        let same = list.chunk_by(|one, other| one.start == other.start);
        let name = |same: &[New]| match best_of(same, &self.names, demangled)? {
            Best::One(new) => Some((new.start, new.name)),
            Best::Tie(tied) => {
                let start = tied.first()?.start;
                let best = best_named(tied.iter(), |new| new.name, &self.names, demangled)?;
                Some((start, best.name))
            }
        };
        same.filter_map(name).collect()
    }

    /// Reserves memory for more symbols.
    pub fn reserve(&mut self, symbols: usize) {
        self.list.reserve(symbols);
    }

    /// Adds a symbol. A symbol of unknown size has size 0.
    pub fn add(&mut self, start: u64, size: u64, name: u32, properties: Properties) {
        self.list.push(New {
            start,
            end: start.saturating_add(size),
            name,
            properties,
        });
    }

    /// Returns the number of symbols.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the table: one symbol for each address, each with an end. `demangled` returns the
    /// shown form of a name, on which the choice depends.
    pub fn build(self, demangled: Demangle) -> Table {
        let Builder { list, mut names } = self;
        let list = with_ends(list);
        let mut kept: Vec<Entry> = Vec::with_capacity(list.len());
        let mut ties: Vec<Tie> = Vec::new();
        for same in list.chunk_by(|one, other| one.start == other.start) {
            let Some(best) = best_of(same, &names, demangled) else {
                continue;
            };
            if let Best::Tie(tied) = &best {
                ties.push(Tie {
                    entry: u32::try_from(kept.len()).unwrap_or(u32::MAX),
                    names: tied.iter().map(|new| new.name).collect(),
                    chosen: OnceLock::new(),
                });
            }
            let new = match &best {
                Best::One(new) => Some(*new),
                Best::Tie(tied) => tied.first().copied(),
            };
            kept.extend(new.map(|new| Entry {
                start: new.start,
                end: new.end,
                name: new.name,
            }));
        }
        kept.shrink_to_fit();
        names.shrink();
        Table {
            index: Index::of(&kept),
            list: kept,
            names,
            ties,
            demangled,
        }
    }
}

/// The best of several symbols at an address.
enum Best {
    One(New),
    /// The names decide.
    Tie(Vec<New>),
}

/// Returns the best of symbols at the same address.
fn best_of(same: &[New], names: &Names, demangled: Demangle) -> Option<Best> {
    if let [one] = same {
        return Some(Best::One(*one));
    }
    let best = same.iter().map(rank).max()?;
    let mut tied = same.iter().copied().filter(|new| rank(new) == best);
    let first = tied.next()?;
    let Some(second) = tied.next() else {
        return Some(Best::One(first));
    };
    let tied: Vec<New> = [first, second].into_iter().chain(tied).collect();
    if tied.iter().all(|new| new.end == first.end) {
        return Some(Best::Tie(tied));
    }
    best_named(tied.into_iter(), |new| new.name, names, demangled).map(Best::One)
}

/// Returns what perf compares before the names: the larger one is preferred
/// (`choose_best_symbol`).
fn rank(new: &New) -> (bool, bool, bool, bool) {
    let Properties {
        is_untyped,
        is_weak,
        is_global,
    } = new.properties;
    (new.end > new.start, !is_untyped, !is_weak, is_global)
}

/// Returns the symbols in the order of their addresses, each with an end.
fn with_ends(mut list: Vec<New>) -> Vec<New> {
    // The order of insertion decides between symbols that are equal otherwise.
    sort_by_start(&mut list);
    // perf sets the ends first: of several symbols without a size at an address, the last one
    // receives one, and is preferred for it.
    let mut next = None;
    for new in list.iter_mut().rev() {
        if new.end == new.start {
            new.end = next.unwrap_or_else(|| {
                let page = new.start.checked_next_multiple_of(PAGE);
                page.unwrap_or(u64::MAX).saturating_add(PAGE)
            });
        }
        next = Some(new.start);
    }
    list
}

/// log2 of the number of buckets in [`sort_by_start`].
const DIGIT: u32 = 11;

/// Number of symbols from which buckets are faster than comparisons.
const MANY: usize = 1 << 10;

/// Sorts symbols by their addresses. Those with the same address keep their order.
///
/// Large objects have hundreds of thousands of symbols, of which few are looked up: each pass over
/// them distributes them by a part of the address.
fn sort_by_start(list: &mut Vec<New>) {
    if list.is_sorted_by_key(|new| new.start) {
        return;
    }
    let starts = || list.iter().map(|new| new.start);
    let (first, last) = (
        starts().min().unwrap_or_default(),
        starts().max().unwrap_or_default(),
    );
    let bits = u64::BITS.saturating_sub(last.wrapping_sub(first).leading_zeros());
    // More passes would take as long as comparisons.
    if list.len() < MANY || bits > 4 * DIGIT {
        return list.sort_by_key(|new| new.start);
    }
    let mut other = list.clone();
    for shift in (0..bits).step_by(DIGIT as usize) {
        let digit = |new: &New| (new.start.wrapping_sub(first) >> shift) as usize % (1 << DIGIT);
        let mut places = [0_usize; 1 << DIGIT];
        for new in list.iter() {
            if let Some(count) = places.get_mut(digit(new)) {
                *count = count.saturating_add(1);
            }
        }
        let mut next = 0_usize;
        for place in &mut places {
            next = next.saturating_add(std::mem::replace(place, next));
        }
        for new in list.iter() {
            if let Some(place) = places.get_mut(digit(new))
                && let Some(moved) = other.get_mut(*place)
            {
                *moved = *new;
                *place = place.saturating_add(1);
            }
        }
        std::mem::swap(list, &mut other);
    }
}

/// What the choice between symbols with the same properties depends on in their demangled names.
#[derive(Debug, Clone, Copy)]
struct Shape {
    underscores: usize,
    len: usize,
    /// Whether this is an alias of a system call in old kernels.
    is_alias: bool,
}

impl Shape {
    fn of(name: &[u8]) -> Self {
        Shape {
            underscores: name.iter().take_while(|&&byte| byte == b'_').count(),
            len: name.len(),
            is_alias: name.starts_with(b"SyS") || name.starts_with(b"compat_SyS"),
        }
    }

    /// Returns whether perf prefers this symbol to the one before it (`choose_best_symbol`).
    fn is_better_than(self, before: Shape) -> bool {
        if self.underscores != before.underscores {
            return self.underscores < before.underscores;
        }
        if self.len != before.len {
            return self.len > before.len;
        }
        before.is_alias
    }
}

/// Returns the symbol whose name perf prefers. `name` returns the offset of a symbol's name.
fn best_named<T>(
    symbols: impl Iterator<Item = T>,
    name: impl Fn(&T) -> u32,
    names: &Names,
    demangled: Demangle,
) -> Option<T> {
    let shaped = symbols.map(|symbol| {
        let shape = Shape::of(&demangled(&names.get(name(&symbol))));
        (symbol, shape)
    });
    let best = shaped.reduce(|best, new| match new.1.is_better_than(best.1) {
        true => new,
        false => best,
    });
    best.map(|(symbol, _)| symbol)
}

/// The entries of a table by equal parts of their addresses, so that a search begins close to its
/// result.
#[derive(Debug)]
struct Index {
    first: u64,
    /// log2 of the size of a part.
    shift: u32,
    /// The number of entries before each part, and of all entries.
    before: Vec<u32>,
}

impl Index {
    /// log2 of the mean number of entries in a part.
    const ENTRIES: u32 = 2;

    fn of(list: &[Entry]) -> Self {
        let starts = list.first().zip(list.last());
        let (first, last) = starts.map_or((0, 0), |(first, last)| (first.start, last.start));
        let bits = |number: u64| u64::BITS.saturating_sub(number.leading_zeros());
        let parts = bits(list.len() as u64).saturating_sub(Self::ENTRIES);
        let shift = bits(last.saturating_sub(first)).saturating_sub(parts);
        let mut index = Index {
            first,
            // Few symbols can be in all addresses.
            shift: shift.min(u64::BITS - 1),
            before: Vec::new(),
        };
        for (number, entry) in (0..).zip(list) {
            let part = index.part(entry.start).unwrap_or_default();
            if index.before.len() <= part {
                index.before.resize(part.saturating_add(1), number);
            }
        }
        index
            .before
            .push(u32::try_from(list.len()).unwrap_or(u32::MAX));
        index
    }

    /// Returns the part of an address; `None` if it is before all entries.
    fn part(&self, address: u64) -> Option<usize> {
        usize::try_from(address.checked_sub(self.first)? >> self.shift).ok()
    }

    /// Returns the number of entries that start at or before an address.
    fn after(&self, list: &[Entry], address: u64) -> usize {
        let Some(part) = self.part(address) else {
            return 0;
        };
        let number = |part: usize| {
            let number = self.before.get(part)?;
            usize::try_from(*number).ok()
        };
        let Some((start, end)) = number(part).zip(number(part.saturating_add(1))) else {
            return list.len();
        };
        let entries = list.get(start..end).unwrap_or_default();
        start.saturating_add(entries.partition_point(|entry| entry.start <= address))
    }
}

/// The symbols of an object, by address.
#[derive(Debug)]
pub(crate) struct Table {
    list: Vec<Entry>,
    index: Index,
    names: Names,
    /// In the order of the entries.
    ties: Vec<Tie>,
    demangled: Demangle,
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

impl Table {
    /// Returns the symbol that contains `address`.
    pub fn find(&self, address: u64) -> Option<Found> {
        let after = self.index.after(&self.list, address);
        let before = self.list.get(..after)?;
        let nested = before.iter().enumerate().rev().take(MOST_NESTED);
        for (index, entry) in nested {
            if address < entry.end {
                return Some(Found {
                    index: u32::try_from(index).ok()?,
                    start: entry.start,
                });
            }
        }
        None
    }

    /// Returns the name of a symbol, as it is in the object.
    pub fn name(&self, index: u32) -> Cow<'_, [u8]> {
        let entry = usize::try_from(index)
            .ok()
            .and_then(|index| self.list.get(index));
        let Some(entry) = entry else {
            return Cow::Borrowed(&[]);
        };
        let tie = self.ties.binary_search_by_key(&index, |tie| tie.entry);
        let tie = tie.ok().and_then(|at| self.ties.get(at));
        let name = tie.map_or(entry.name, |tie| {
            *tie.chosen.get_or_init(|| {
                let offsets = tie.names.iter().copied();
                let best = best_named(offsets, |name| *name, &self.names, self.demangled);
                best.unwrap_or(entry.name)
            })
        });
        self.names.get(name)
    }

    /// Returns the address of the symbol called `name`.
    pub fn address_of(&self, name: &[u8]) -> Option<u64> {
        let is_called = |at: u32| *self.names.get(at) == *name;
        let one = self.list.iter().find(|entry| is_called(entry.name));
        let tied = || {
            let has_name = |tie: &&Tie| tie.names.iter().any(|&at| is_called(at));
            let entry = self.ties.iter().find(has_name)?.entry;
            self.list.get(usize::try_from(entry).ok()?)
        };
        one.or_else(tied).map(|entry| entry.start)
    }

    /// Returns whether there are no symbols.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the approximate size of the table in bytes.
    pub fn held(&self) -> usize {
        let ties = self.ties.iter().map(|tie| {
            let names = tie.names.capacity().saturating_mul(size_of::<u32>());
            names.saturating_add(size_of::<Tie>())
        });
        let index = self.index.before.len().saturating_mul(size_of::<u32>());
        ties.fold(index, usize::saturating_add)
            .saturating_add(self.list.len().saturating_mul(size_of::<Entry>()))
            .saturating_add(self.names.held())
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
        assert_eq!(table.list.len(), 5000);
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
        for name in ["_text", "_stext"] {
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
}
