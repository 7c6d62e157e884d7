//! The locations of a profile: addresses, and what is there.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::RandomState;

use crate::blocks::Blocks;
use crate::hash_index::{HashIndex, Slot};
use crate::tables::FunctionId;

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

/// A location whose number is searched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Searched {
    location: Location,
    hash: u64,
    first: Slot,
}

/// Locations without duplicates. They are numbered from 1.
#[derive(Debug, Default)]
pub(crate) struct Locations {
    list: Blocks<Location>,
    known: HashIndex,
    hasher: RandomState,
    /// The lines of locations with known lines or inlined functions, which come first.
    lines: HashMap<u32, Box<[Line]>, RandomState>,
}

impl Locations {
    /// Begins to search a location: the searches for several ones overlap.
    #[inline]
    pub fn search(&self, location: Location) -> Searched {
        let hash = self.hasher.hash_one(location);
        Searched {
            location,
            hash,
            first: self.known.first(hash),
        }
    }

    /// Returns the number of a location. It is added with its `lines` if it is new.
    pub fn number(&mut self, searched: &Searched, lines: impl Iterator<Item = Line>) -> u32 {
        let Locations { list, known, .. } = self;
        let Searched {
            location,
            hash,
            first,
        } = *searched;
        let of = |number: u32| list.get(usize::try_from(number).ok()?);
        let found = known.find_from(first, hash, |number| of(number) == Some(&location));
        if let Some(number) = found {
            return number.saturating_add(1);
        }
        let at = u32::try_from(list.len()).unwrap_or(u32::MAX);
        known.add(hash, at);
        list.push(location);
        let number = at.saturating_add(1);
        let lines: Box<[Line]> = lines.collect();
        let own = location.function.map(|function| (function, 0));
        if *lines != *own.as_slice() {
            self.lines.insert(number, lines);
        }
        number
    }

    /// Returns the locations in the order of their numbers, with their lines.
    pub fn iter(&self) -> impl Iterator<Item = (&Location, impl Iterator<Item = Line>)> {
        (1..).zip(self.list.iter()).map(|(number, location)| {
            let lines = self.lines.get(&number);
            let own = location.function.filter(|_| lines.is_none());
            let lines = lines.into_iter().flat_map(|lines| lines.iter().copied());
            (location, lines.chain(own.map(|function| (function, 0))))
        })
    }
}
