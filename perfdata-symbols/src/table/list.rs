//! The symbols of an object by their numbers: in the order in which they were added.

use super::Properties;
use crate::elf::FileSymbols;

/// Maximum number of symbols of an object.
const MOST: u32 = u32::MAX >> 1;

/// A symbol as it was added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct New {
    pub start: u64,
    /// The address after the last one; `start` if the size is not known.
    pub end: u64,
    /// Offset in the names.
    pub name: u32,
    pub properties: Properties,
}

/// Symbols, which are numbered from 0. There may be numbers without a symbol.
#[derive(Debug, Default)]
pub(super) struct List {
    parts: Vec<ListBlock>,
    len: u32,
}

#[derive(Debug)]
struct ListBlock {
    /// The number of its first symbol.
    first: u32,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Memory(Vec<New>),
    File(FileSymbols),
}

impl List {
    /// Returns the number after the last one.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Adds a symbol, unless there are too many.
    pub fn push(&mut self, new: New) {
        if self.len >= MOST {
            return;
        }
        if !matches!(self.parts.last(), Some(part) if matches!(part.content, Content::Memory(_))) {
            self.add(Content::Memory(Vec::new()));
        }
        if let Some(ListBlock {
            content: Content::Memory(list),
            ..
        }) = self.parts.last_mut()
        {
            list.push(new);
            self.len = self.len.saturating_add(1);
        }
    }

    /// Adds the symbols in a file, unless there are too many.
    pub fn add_file(&mut self, symbols: FileSymbols) {
        let len = self.len.checked_add(symbols.len());
        if let Some(len) = len.filter(|len| *len <= MOST) {
            self.add(Content::File(symbols));
            self.len = len;
        }
    }

    fn add(&mut self, content: Content) {
        self.parts.push(ListBlock {
            first: self.len,
            content,
        });
    }

    /// Returns a symbol; `None` if there is none with this number.
    pub fn get(&self, number: u32) -> Option<New> {
        let after = self.parts.partition_point(|part| part.first <= number);
        let part = self.parts.get(after.checked_sub(1)?)?;
        let number = number.checked_sub(part.first)?;
        match &part.content {
            Content::Memory(list) => list.get(usize::try_from(number).ok()?).copied(),
            Content::File(symbols) => symbols.get(number),
        }
    }

    /// Passes all symbols with their numbers to `see`, in the order of the numbers.
    pub fn for_each(&self, mut see: impl FnMut(u32, &New)) {
        for part in &self.parts {
            let number = |number: u32| part.first.saturating_add(number);
            match &part.content {
                Content::Memory(list) => {
                    (0..).zip(list).for_each(|(at, new)| see(number(at), new));
                }
                Content::File(symbols) => symbols.for_each(|at, new| see(number(at), new)),
            }
        }
    }

    /// Returns the first and the last address at which most symbols start.
    pub fn bounds(&self) -> (u64, u64) {
        let bounds = self.parts.iter().filter_map(|part| match &part.content {
            Content::Memory(list) => {
                let starts = || list.iter().map(|new| new.start);
                starts().min().zip(starts().max())
            }
            Content::File(symbols) => symbols.bounds(),
        });
        let all = bounds.reduce(|all, part| (all.0.min(part.0), all.1.max(part.1)));
        all.unwrap_or_default()
    }

    /// Returns the approximate size in memory in bytes.
    pub fn held(&self) -> usize {
        let sizes = self.parts.iter().map(|part| match &part.content {
            Content::Memory(list) => list.capacity().saturating_mul(size_of::<New>()),
            Content::File(symbols) => symbols.held(),
        });
        sizes.fold(0, usize::saturating_add)
    }
}
