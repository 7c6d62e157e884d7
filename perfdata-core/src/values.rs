//! Makes a value from the values of its fields: the inverse of the walk in
//! [`describe`](crate::describe).
//!
//! The declaration that decodes a structure also requests each field from a source of [`Values`],
//! in file order and by the name that a visitor receives. It does not request counts, padding and
//! absent parts: they follow from the other fields.

use binrw::BinRead;

use crate::describe::{Leaf, Style};

/// A source of the values of fields, in file order. An element of a list has no name.
///
/// If a value is missing or has another kind, the source returns zeros and records the error. The
/// caller that created the source queries the error at the end.
pub trait Values {
    /// Begins a structure. Its fields are requested until [`end`](Self::end).
    fn begin(&mut self, name: &'static str);
    /// Begins a list, and returns the number of its elements. All elements are requested until
    /// [`end`](Self::end).
    fn begin_list(&mut self, name: &'static str) -> usize;
    /// Ends the structure or list that was begun last.
    fn end(&mut self);
    /// Returns whether there is a value of this name.
    fn has(&mut self, name: &'static str) -> bool;
    /// Returns a number of `size` bytes with the same meaning as `like`, whose own number is
    /// ignored. Signed numbers are in two's complement, others are returned as their bits.
    fn number(&mut self, name: &'static str, size: usize, like: Leaf<'static>) -> u64;
    /// Returns text without NUL, at most `most` bytes.
    fn text(&mut self, name: &'static str, most: usize) -> Vec<u8>;
    /// Returns raw bytes: `len` bytes, if the length is known.
    fn bytes(&mut self, name: &'static str, len: Option<usize>) -> Vec<u8>;
    /// Reports that the values contradict each other in one structure.
    fn refuse(&mut self, why: String);
}

/// A type that can be made from the values of its fields. `wire!` generates the implementation.
pub trait FromValues: BinRead {
    /// Makes the value that `values` has under `name`, which is the name in its container. `args`
    /// are the arguments of the decoder.
    fn from_values(
        values: &mut dyn Values,
        name: &'static str,
        style: Style,
        args: Self::Args<'_>,
    ) -> Self;
}

macro_rules! numbers_from_values {
    ($($number:ty),*) => { $(
        impl FromValues for $number {
            fn from_values(values: &mut dyn Values, name: &'static str, style: Style, (): ()) -> Self {
                if style == Style::Pad {
                    return 0;
                }
                // At most as many bytes as the field has.
                values.number(name, size_of::<$number>(), Leaf::Uint(0, style)) as $number
            }
        }
    )* };
}
numbers_from_values!(u8, u16, u32, u64);

impl FromValues for i32 {
    fn from_values(values: &mut dyn Values, name: &'static str, _: Style, (): ()) -> Self {
        values.number(name, size_of::<i32>(), Leaf::Int(0)) as i32
    }
}

impl FromValues for f64 {
    fn from_values(values: &mut dyn Values, name: &'static str, _: Style, (): ()) -> Self {
        f64::from_bits(values.number(name, size_of::<f64>(), Leaf::Float(0.0)))
    }
}

impl<const N: usize> FromValues for [u8; N] {
    fn from_values(values: &mut dyn Values, name: &'static str, style: Style, (): ()) -> Self {
        let given = match style {
            Style::Pad => Vec::new(),
            Style::Text => values.text(name, N),
            _ => values.bytes(name, Some(N)),
        };
        let mut bytes = [0; N];
        bytes
            .iter_mut()
            .zip(given)
            .for_each(|(byte, given)| *byte = given);
        bytes
    }
}

/// The container decides whether the part is present.
impl<T: FromValues> FromValues for Option<T> {
    fn from_values(
        values: &mut dyn Values,
        name: &'static str,
        style: Style,
        args: Self::Args<'_>,
    ) -> Self {
        Some(T::from_values(values, name, style, args))
    }
}

/// Makes the elements of a list, which should have `count` elements if the count is known.
pub(crate) fn list_of<T>(
    values: &mut dyn Values,
    name: &'static str,
    count: Option<u64>,
    mut element: impl FnMut(&mut dyn Values) -> T,
) -> Vec<T> {
    let len = values.begin_list(name);
    let list = (0..len).map(|_| element(values)).collect();
    values.end();
    check_count(values, len, count);
    list
}

/// Reports an error if the number of elements differs from the count elsewhere.
pub(crate) fn check_count(values: &mut dyn Values, len: usize, count: Option<u64>) {
    match count.map(|count| (len as u64).cmp(&count)) {
        Some(std::cmp::Ordering::Less) => values.refuse("a list has too few elements".into()),
        Some(std::cmp::Ordering::Greater) => values.refuse("a list has too many elements".into()),
        _ => {}
    }
}
