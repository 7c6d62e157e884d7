//! Columns of numbers that may be null.

use std::sync::Arc;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_buffer::{NullBufferBuilder, ScalarBuffer};

use crate::error::Result;

/// A column of numbers. Nothing is kept if nobody wants it.
#[derive(Debug)]
pub(crate) struct Numbers<T: ArrowPrimitiveType> {
    is_wanted: bool,
    values: Vec<T::Native>,
    /// Which numbers are null, up to the last null.
    nulls: NullBufferBuilder,
}

impl<T: ArrowPrimitiveType> Numbers<T> {
    /// Returns an empty column.
    pub fn new(is_wanted: bool) -> Self {
        Numbers {
            is_wanted,
            values: Vec::new(),
            nulls: NullBufferBuilder::new(0),
        }
    }

    /// Returns whether somebody wants the column.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Appends a number, or null.
    #[inline]
    pub fn push(&mut self, value: Option<T::Native>) {
        if !self.is_wanted {
            return;
        }
        if value.is_none() {
            self.add_known(self.values.len());
            self.nulls.append_null();
        }
        self.values.push(value.unwrap_or_default());
    }

    /// Appends numbers that may be null.
    #[inline]
    pub fn extend<V>(&mut self, values: V)
    where
        V: ExactSizeIterator<Item = Option<T::Native>> + Clone,
    {
        if !self.is_wanted {
            return;
        }
        let before = self.values.len();
        let mut has_null = false;
        self.values.extend(values.clone().map(|value| {
            has_null |= value.is_none();
            value.unwrap_or_default()
        }));
        if has_null {
            self.add_known(before);
            values.for_each(|value| self.nulls.append(value.is_some()));
        }
    }

    /// Notes that the numbers up to `end` are not null after the last null.
    fn add_known(&mut self, end: usize) {
        let known = end.saturating_sub(self.nulls.len());
        self.nulls.append_n_non_nulls(known);
    }

    /// Returns the column, and starts the next batch.
    pub fn finish(&mut self) -> Result<PrimitiveArray<T>> {
        // The next batch has about as many numbers.
        let capacity = self.values.len();
        let values = std::mem::replace(&mut self.values, Vec::with_capacity(capacity));
        if !self.nulls.is_empty() {
            self.add_known(capacity);
        }
        let nulls = self.nulls.finish();
        Ok(PrimitiveArray::try_new(ScalarBuffer::from(values), nulls)?)
    }

    /// Returns the column as an array, and starts the next batch.
    pub fn finish_array(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(self.finish()?))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::types::Int64Type;

    use super::*;

    #[test]
    fn nulls_are_where_they_were_appended() {
        let mut column = Numbers::<Int64Type>::new(true);
        let parts: [&[Option<i64>]; 4] = [
            &[Some(1), Some(2)],
            &[None, Some(3)],
            &[Some(4)],
            &[None, None],
        ];
        let all = parts.concat();
        for _ in 0..2 {
            for part in parts {
                column.extend(part.iter().copied());
            }
            let array = column.finish().expect("a column");
            assert_eq!(array.iter().collect::<Vec<_>>(), all);
            all.iter().for_each(|&value| column.push(value));
            let array = column.finish().expect("a column");
            assert_eq!(array.iter().collect::<Vec<_>>(), all);
        }
        column.push(Some(5));
        assert!(column.finish().expect("a column").nulls().is_none());
    }
}
