//! The locations of a profile: addresses, and what is there.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::RandomState;

use crate::blocks::Blocks;
use crate::hash_index::HashIndex;
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
    /// Returns the number of a location. It is added with its `lines` if it is new.
    pub fn number(&mut self, location: Location, lines: impl Iterator<Item = Line>) -> u32 {
        let Locations {
            list,
            known,
            hasher,
            ..
        } = self;
        let of = |number: u32| list.get(usize::try_from(number).ok()?);
        let hash = hasher.hash_one(location);
        let found = known.find(hash, |number| of(number) == Some(&location));
        if let Some(number) = found {
            return number.saturating_add(1);
        }
        let number = known.add(hash).saturating_add(1);
        list.push(location);
        let lines: Box<[Line]> = lines.collect();
        let own = location.function.map(|function| (function, 0));
        if *lines != *own.as_slice() {
            self.lines.insert(number, lines);
        }
        number
    }

    /// Returns a location.
    pub fn get(&self, number: u32) -> Option<&Location> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        self.list.get(at)
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
