//! Replacing numbers in a record by their meaning, in place.

use binrw::Endian;

use super::{CallchainContext, RawRecord, Record, RecordHeader};
use crate::decode_context::DecodeContext;
use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::error::Result;

impl RawRecord<'_> {
    /// Passes each number of the record, with its style and its size in bytes, to `change`, and
    /// puts the result into `bytes`, a copy of this record. The declarations of the records
    /// determine the places of the numbers. Context markers of a callchain, and the cookie of a
    /// deferred one, are not addresses and are not passed; counts are not passed, either.
    ///
    /// # Errors
    /// The record cannot be decoded with `layout`.
    pub fn replace_numbers(
        &self,
        layout: &DecodeContext,
        bytes: &mut [u8],
        change: &mut dyn FnMut(u64, Style, usize) -> u64,
    ) -> Result<()> {
        let record = Record::decode(self, layout)?;
        let mut replacing = Replacing {
            bytes,
            endian: self.endian,
            at: RecordHeader::SIZE,
            change,
        };
        record.describe("", Style::Plain, &mut replacing);
        Ok(())
    }
}

/// Replaces numbers at the offset of each.
struct Replacing<'a> {
    bytes: &'a mut [u8],
    endian: Endian,
    /// Offset of the next field.
    at: usize,
    change: &'a mut dyn FnMut(u64, Style, usize) -> u64,
}

impl Replacing<'_> {
    fn replace(&mut self, size: usize, number: u64, style: Style) {
        let new = (self.change)(number, style, size);
        let place = self.bytes.get_mut(self.at..).unwrap_or_default();
        let Some(place) = place.get_mut(..size).filter(|_| new != number) else {
            return;
        };
        // At most as many bytes as the field has.
        let little = new.to_le_bytes();
        let little = little.get(..size).unwrap_or_default();
        match self.endian {
            Endian::Little => place.copy_from_slice(little),
            Endian::Big => {
                for (to, from) in place.iter_mut().rev().zip(little) {
                    *to = *from;
                }
            }
        }
    }
}

impl Visitor for Replacing<'_> {
    fn begin(&mut self, _: &'static str) {}
    fn begin_list(&mut self, _: &'static str, _: usize) {}
    fn end(&mut self) {}

    fn leaf(&mut self, _: &'static str, size: usize, value: Leaf<'_>) {
        if let Leaf::Uint(number, style) = value
            && size <= size_of::<u64>()
        {
            self.replace(size, number, style);
        }
        self.at = self.at.saturating_add(size);
    }

    fn words(&mut self, name: &'static str, words: &[u64], style: Style) {
        let mut before = 0;
        for &word in words {
            let is_cookie = before == CallchainContext::USER_DEFERRED.0;
            if style == Style::Callchain && (is_cookie || CallchainContext::of(word).is_some()) {
                self.at = self.at.saturating_add(size_of::<u64>());
            } else {
                self.leaf(name, size_of::<u64>(), Leaf::Uint(word, style));
            }
            before = word;
        }
    }
}
