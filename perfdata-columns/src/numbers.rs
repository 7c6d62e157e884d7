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
        if self.is_wanted {
            self.values.push(value.unwrap_or_default());
            self.nulls.append(value.is_some());
        }
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
        let mut has_null = false;
        self.values.extend(values.clone().map(|value| {
            has_null |= value.is_none();
            value.unwrap_or_default()
        }));
        match has_null {
            true => values.for_each(|value| self.nulls.append(value.is_some())),
            false => self.nulls.append_n_non_nulls(values.len()),
        }
    }

    /// Returns the column, and starts the next batch.
    pub fn finish(&mut self) -> Result<PrimitiveArray<T>> {
        // The next batch has about as many numbers.
        let capacity = self.values.len();
        let values = std::mem::replace(&mut self.values, Vec::with_capacity(capacity));
        let nulls = self.nulls.finish();
        Ok(PrimitiveArray::try_new(ScalarBuffer::from(values), nulls)?)
    }

    /// Returns the column as an array, and starts the next batch.
    pub fn finish_array(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(self.finish()?))
    }
}
