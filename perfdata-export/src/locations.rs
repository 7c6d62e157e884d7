//! The locations of a profile: addresses, and what is there.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::RandomState;

use crate::blocks::Blocks;
use crate::hash_index::HashIndex;
use crate::tables::{Function, FunctionId, Tables, UNKNOWN};

/// A function and the line in it, 0 if it is not known.
pub(crate) type Line = (FunctionId, u32);

/// An address, and what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    pub address: u64,
    /// The number of the mapping, from 1; 0 if there is none.
    pub mapping: u32,
    pub function: Option<FunctionId>,
    /// Whether the kernel runs here.
    pub is_kernel: bool,
}

impl Hash for Location {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Two numbers are hashed faster than each part.
        let function = self.function.map_or(0, |id| u64::from(id.0) << 1 | 1);
        state.write_u64(self.address);
        state.write_u64(function << 28 ^ u64::from(self.mapping) << 1 ^ u64::from(self.is_kernel));
    }
}

/// Locations without duplicates. They are numbered from 1.
#[derive(Debug, Default)]
pub(crate) struct Locations {
    list: Blocks<Location>,
    known: HashIndex,
    hasher: RandomState,
    /// The lines of locations with known lines or inlined functions, which come first.
    lines: HashMap<u32, Box<[Line]>, RandomState>,
    /// The number of the location of all addresses that are [not mapped](Self::unmapped).
    unmapped: Option<u32>,
}

impl Locations {
    /// Returns the number of a location. It is added with its `lines` if it is new.
    pub fn number(&mut self, location: Location, lines: impl Iterator<Item = Line>) -> u32 {
        let Locations { list, known, .. } = self;
        let hash = self.hasher.hash_one(location);
        let of = |number: u32| list.get(usize::try_from(number).ok()?);
        let found = known.find(hash, |number| of(number) == Some(&location));
        if let Some(number) = found {
            return number.saturating_add(1);
        }
        let at = u32::try_from(list.len()).unwrap_or(u32::MAX);
        known.add(hash, at);
        let number = Self::push(list, location);
        let lines: Box<[Line]> = lines.collect();
        let own = location.function.map(|function| (function, 0));
        if *lines != *own.as_slice() {
            self.lines.insert(number, lines);
        }
        number
    }

    /// Adds a location, and returns its number.
    fn push(list: &mut Blocks<Location>, location: Location) -> u32 {
        list.push(location);
        u32::try_from(list.len()).unwrap_or(u32::MAX)
    }

    /// Returns the number of the location of all addresses outside of the mappings of their
    /// processes. It has no address: a profile would contain more of these than of code, and no
    /// program can name them.
    pub fn unmapped(&mut self) -> u32 {
        let location = Location {
            address: 0,
            mapping: 0,
            function: None,
            is_kernel: false,
        };
        *self
            .unmapped
            .get_or_insert_with(|| Self::push(&mut self.list, location))
    }

    /// Returns the number of locations.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the locations after the first `count` ones with their lines; `None` for that of all
    /// addresses that are [not mapped](Self::unmapped).
    pub fn after(&self, count: usize) -> impl Iterator<Item = Option<(Location, Box<[Line]>)>> {
        (count..self.list.len()).map(|at| {
            let number = u32::try_from(at).unwrap_or(u32::MAX).saturating_add(1);
            let location = *self
                .list
                .get(at)
                .filter(|_| self.unmapped != Some(number))?;
            let own = location.function.map(|function| (function, 0));
            let lines = match self.lines.get(&number) {
                Some(lines) => lines.clone(),
                None => own.into_iter().collect(),
            };
            Some((location, lines))
        })
    }

    /// Returns the functions of the locations: those of the tables, and another one if there are
    /// addresses that are [not mapped](Self::unmapped).
    pub fn functions<'a>(&self, tables: &'a Tables) -> impl Iterator<Item = Cow<'a, Function>> {
        let unmapped = self.unmapped.map(|_| Function {
            name: UNKNOWN.as_bytes().into(),
            system_name: UNKNOWN.as_bytes().into(),
            file: None,
            start_line: 0,
            is_in_symtab: false,
        });
        let functions = tables.functions().iter().map(Cow::Borrowed);
        functions.chain(unmapped.map(Cow::Owned))
    }

    /// Returns the locations in the order of their numbers, with their lines. Their functions are
    /// indices of [`functions`](Self::functions).
    pub fn iter(
        &self,
        tables: &Tables,
    ) -> impl Iterator<Item = (&Location, impl Iterator<Item = Line>)> {
        let after = FunctionId(u32::try_from(tables.functions().len()).unwrap_or(u32::MAX));
        (1..).zip(self.list.iter()).map(move |(number, location)| {
            let lines = self.lines.get(&number);
            let unmapped = self.unmapped.filter(|unmapped| *unmapped == number);
            let own = location.function.filter(|_| lines.is_none());
            let own = own.or(unmapped.map(|_| after));
            let lines = lines.into_iter().flat_map(|lines| lines.iter().copied());
            (location, lines.chain(own.map(|function| (function, 0))))
        })
    }
}
