//! Names without duplicates, and columns of them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use foldhash::fast::RandomState;
use perfdata_export::push_text;

use crate::error::Result;

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
pub(crate) struct Names {
    list: Vec<Arc<str>>,
    known: HashMap<Arc<str>, NameId, RandomState>,
    text: String,
}

impl Names {
    /// Returns the number of a name, which is added if it is new.
    pub fn intern(&mut self, name: &[u8]) -> NameId {
        self.text.clear();
        push_text(&mut self.text, name);
        if let Some(&known) = self.known.get(self.text.as_str()) {
            return known;
        }
        let id = NameId(u32::try_from(self.list.len()).unwrap_or(u32::MAX));
        let text: Arc<str> = self.text.as_str().into();
        self.list.push(Arc::clone(&text));
        self.known.insert(text, id);
        id
    }

    /// Returns a name.
    pub fn get(&self, id: NameId) -> &str {
        self.list.get(id.index()).map_or("", |name| name)
    }
}

/// The names of things that have small numbers.
#[derive(Debug, Default)]
pub(crate) struct NamesByIndex(Vec<Option<NameId>>);

impl NamesByIndex {
    /// Returns the name of number `index`, which `intern` adds if it is new.
    #[inline]
    pub fn get(&mut self, index: usize, intern: impl FnOnce() -> NameId) -> NameId {
        if let Some(&Some(known)) = self.0.get(index) {
            return known;
        }
        let id = intern();
        if self.0.len() <= index {
            self.0.resize(index.saturating_add(1), None);
        }
        if let Some(entry) = self.0.get_mut(index) {
            *entry = Some(id);
        }
        id
    }
}

/// A column of names. Each batch has a dictionary of the names that occur in it.
#[derive(Debug, Default)]
pub(crate) struct NameColumn {
    keys: PrimitiveBuilder<Int32Type>,
    /// The names in this batch, by their keys.
    chosen: Vec<NameId>,
    /// The key of each name, and the number of the batch that it belongs to.
    key_of: Vec<(u32, i32)>,
    batch: u32,
}

impl NameColumn {
    /// Appends a name, or null.
    #[inline]
    pub fn push(&mut self, name: Option<NameId>) {
        match name {
            Some(name) => {
                let key = self.key(name);
                self.keys.append_value(key);
            }
            None => self.keys.append_null(),
        }
    }

    #[inline]
    fn key(&mut self, name: NameId) -> i32 {
        let index = name.index();
        if let Some(&(batch, key)) = self.key_of.get(index)
            && batch == self.batch.wrapping_add(1)
        {
            return key;
        }
        self.add(name)
    }

    fn add(&mut self, name: NameId) -> i32 {
        let key = i32::try_from(self.chosen.len()).unwrap_or(i32::MAX);
        self.chosen.push(name);
        let index = name.index();
        if self.key_of.len() <= index {
            self.key_of.resize(index.saturating_add(1), (0, 0));
        }
        if let Some(entry) = self.key_of.get_mut(index) {
            *entry = (self.batch.wrapping_add(1), key);
        }
        key
    }

    /// Discards all names, and starts the next batch.
    pub fn clear(&mut self) {
        self.keys.finish();
        self.chosen.clear();
        self.batch = self.batch.wrapping_add(1);
    }

    /// Returns the column and starts the next batch.
    pub fn finish(&mut self, names: &Names) -> Result<ArrayRef> {
        let keys = self.keys.finish();
        let chosen = std::mem::take(&mut self.chosen);
        let values = StringArray::from_iter_values(chosen.iter().map(|&id| names.get(id)));
        self.batch = self.batch.wrapping_add(1);
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
        let mut names = Names::default();
        let (a, b) = (names.intern(b"a"), names.intern(b"\xff"));
        assert_eq!(names.intern(b"a"), a);
        let mut column = NameColumn::default();
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
