//! Names without duplicates, and columns of them.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use foldhash::fast::RandomState;
use indexmap::IndexSet;
use perfdata_export::push_text;
use twox_hash::XxHash3_64;

use crate::error::Result;
use crate::numbers::Numbers;

/// The number of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct NameId(u32);

impl NameId {
    /// Returns the number as an index.
    pub fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// The names in all columns of a table. Names are bytes in recordings and text in columns:
/// different names remain different ([`push_text`]).
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    list: IndexSet<Box<str>, RandomState>,
    text: String,
}

impl NameTable {
    /// Returns the number of a name, which is added if it is new.
    pub fn intern(&mut self, name: &[u8]) -> NameId {
        self.text.clear();
        push_text(&mut self.text, name);
        let text = self.text.as_str();
        let known = self.list.get_index_of(text);
        let number = known.unwrap_or_else(|| self.list.insert_full(text.into()).0);
        NameId(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Returns a name, which is added if it is new, with its hash.
    pub fn know(&mut self, name: &[u8]) -> Known {
        let name = self.intern(name);
        Known {
            name,
            hash: XxHash3_64::oneshot(self.get(name).as_bytes()),
            key: 0,
            batch: 0,
        }
    }

    /// Returns a name.
    pub fn get(&self, id: NameId) -> &str {
        self.list.get_index(id.index()).map_or("", |name| name)
    }
}

/// A name, its hash, and its key in a batch of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    name: NameId,
    /// XXH3-64 of the text.
    hash: u64,
    key: i32,
    batch: u32,
}

/// The names in one column of things that have small numbers.
#[derive(Debug, Default)]
pub(crate) struct NamesByIndex(Vec<Option<Known>>);

impl NamesByIndex {
    /// Appends the name of number `index` to `column`, and returns its hash. `make` returns the
    /// name if it is not known.
    #[inline]
    pub fn push(
        &mut self,
        column: &mut NameColumn,
        index: usize,
        make: impl FnOnce() -> Known,
    ) -> u64 {
        if let Some(Some(known)) = self.0.get_mut(index) {
            return column.push_known(known);
        }
        let mut known = make();
        let hash = column.push_known(&mut known);
        if self.0.len() <= index {
            self.0.resize(index.saturating_add(1), None);
        }
        if let Some(entry) = self.0.get_mut(index) {
            *entry = Some(known);
        }
        hash
    }
}

/// A column of names. Each batch has a dictionary of the names that occur in it.
#[derive(Debug)]
pub(crate) struct NameColumn {
    keys: Numbers<Int32Type>,
    /// The names in this batch, by their keys.
    chosen: Vec<NameId>,
    /// The key of each name, and the number of the batch that it belongs to.
    key_of: Vec<(u32, i32)>,
    /// The number of the batch, from 1.
    batch: u32,
}

impl NameColumn {
    /// Returns an empty column. Nothing is kept if nobody wants it.
    pub fn new(is_wanted: bool) -> Self {
        NameColumn {
            keys: Numbers::new(is_wanted),
            chosen: Vec::new(),
            key_of: Vec::new(),
            batch: 1,
        }
    }

    /// Returns whether somebody wants the column.
    pub fn is_wanted(&self) -> bool {
        self.keys.is_wanted()
    }

    /// Appends a name, or null.
    #[inline]
    pub fn push(&mut self, name: Option<NameId>) {
        let is_wanted = self.is_wanted();
        let key = name.filter(|_| is_wanted).map(|name| self.key(name));
        self.keys.push(key);
    }

    /// Appends a name, and returns its hash.
    #[inline]
    pub fn push_known(&mut self, known: &mut Known) -> u64 {
        if self.is_wanted() {
            if known.batch != self.batch {
                (known.key, known.batch) = (self.key(known.name), self.batch);
            }
            self.keys.push(Some(known.key));
        }
        known.hash
    }

    #[inline]
    fn key(&mut self, name: NameId) -> i32 {
        match self.key_of.get(name.index()) {
            Some(&(batch, key)) if batch == self.batch => key,
            _ => self.add(name),
        }
    }

    fn add(&mut self, name: NameId) -> i32 {
        let key = i32::try_from(self.chosen.len()).unwrap_or(i32::MAX);
        self.chosen.push(name);
        let index = name.index();
        if self.key_of.len() <= index {
            self.key_of.resize(index.saturating_add(1), (0, 0));
        }
        if let Some(entry) = self.key_of.get_mut(index) {
            *entry = (self.batch, key);
        }
        key
    }

    /// Returns the column and starts the next batch.
    pub fn finish(&mut self, names: &NameTable) -> Result<ArrayRef> {
        let keys = self.keys.finish()?;
        let chosen = std::mem::take(&mut self.chosen);
        let values = StringArray::from_iter_values(chosen.iter().map(|&id| names.get(id)));
        self.batch = self.batch.wrapping_add(1).max(1);
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(
            keys,
            Arc::new(values),
        )?))
    }
}

/// Returns a column with the same name in all rows, or with nulls.
pub(crate) fn constant(name: Option<&str>, rows: usize) -> Result<ArrayRef> {
    let keys = match name {
        Some(_) => Int32Array::from_value(0, rows),
        None => Int32Array::new_null(rows),
    };
    let values = StringArray::from_iter_values(name);
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(
        keys,
        Arc::new(values),
    )?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;

    #[test]
    fn each_batch_has_its_names() {
        let mut names = NameTable::default();
        let (a, b) = (names.intern(b"a"), names.intern(b"\xff"));
        assert_eq!(names.intern(b"a"), a);
        let mut column = NameColumn::new(true);
        let shown = |array: &ArrayRef| {
            let dictionary = array.as_dictionary::<Int32Type>();
            let values = dictionary.values().as_string::<i32>();
            let keys = dictionary.keys();
            let cells = keys
                .iter()
                .map(|key| key.map(|key| values.value(key as usize).to_owned()));
            (cells.collect::<Vec<_>>(), values.len())
        };
        for name in [Some(a), None, Some(b), Some(a)] {
            column.push(name);
        }
        let (a_text, b_text) = (Some("a".to_owned()), Some("\u{fffd}ff".to_owned()));
        let first = column.finish(&names).expect("a column");
        assert_eq!(
            shown(&first),
            (vec![a_text.clone(), None, b_text.clone(), a_text], 2)
        );
        column.push(Some(b));
        let second = column.finish(&names).expect("a column");
        assert_eq!(shown(&second), (vec![b_text], 1));
        let constant = constant(None, 2).expect("a column");
        assert_eq!(shown(&constant), (vec![None, None], 0));
    }
}
