//! Making a value from the values of its fields: the inverse of the walk in [`describe`](crate::describe).
//!
//! The same declaration that decodes a structure asks a source of [`Values`] for each field, in file order and by the
//! name that a visitor sees. Counts, fillings and the parts that are not there are not asked for: they follow from the
//! other fields.

use binrw::BinRead;

use crate::describe::{Leaf, Style};

/// Gives the values of fields in file order. An element of a list has no name.
///
/// A source that lacks a value, or has one of another kind, keeps that to itself and gives zeros: whoever made it asks
/// it at the end.
pub trait Values {
    /// A structure begins; its fields are asked for up to [`end`](Self::end).
    fn begin(&mut self, name: &'static str);
    /// A list begins, and has so many elements; all of them are asked for up to [`end`](Self::end).
    fn begin_list(&mut self, name: &'static str) -> usize;
    /// The structure or list that was begun last is complete.
    fn end(&mut self);
    /// Whether there is a value of this name.
    fn has(&mut self, name: &'static str) -> bool;
    /// A number of `size` bytes that means the same as `like`, whose own number counts for nothing. Signed numbers come
    /// in two's complement, others as their bits.
    fn number(&mut self, name: &'static str, size: usize, like: Leaf<'static>) -> u64;
    /// Text without NUL, at most `most` bytes.
    fn text(&mut self, name: &'static str, most: usize) -> Vec<u8>;
    /// Raw bytes: `len` of them, if that is known.
    fn bytes(&mut self, name: &'static str, len: Option<usize>) -> Vec<u8>;
    /// The values cannot be together in one structure.
    fn refuse(&mut self, why: String);
}

/// What can be made from the values of its fields. `wire!` generates it.
pub trait FromValues: BinRead {
    /// The value that `values` has under the name that its container gives it, where decoding would be told `args`.
    fn from_values(values: &mut dyn Values, name: &'static str, style: Style, args: Self::Args<'_>) -> Self;
}

macro_rules! numbers_from_values {
    ($($number:ty),*) => { $(
        impl FromValues for $number {
            fn from_values(values: &mut dyn Values, name: &'static str, style: Style, (): ()) -> Self {
                if style == Style::Pad {
                    return 0;
                }
                // Not more than it has bytes.
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
        bytes.iter_mut().zip(given).for_each(|(byte, given)| *byte = given);
        bytes
    }
}

/// Whether the part is there, its container decides.
impl<T: FromValues> FromValues for Option<T> {
    fn from_values(values: &mut dyn Values, name: &'static str, style: Style, args: Self::Args<'_>) -> Self {
        Some(T::from_values(values, name, style, args))
    }
}

/// The elements of a list, of which there should be `count` if that is known.
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

/// Says so if there are not as many elements as something else says.
pub(crate) fn check_count(values: &mut dyn Values, len: usize, count: Option<u64>) {
    match count.map(|count| (len as u64).cmp(&count)) {
        Some(std::cmp::Ordering::Less) => values.refuse("there are too few elements in a list".into()),
        Some(std::cmp::Ordering::Greater) => values.refuse("there are too many elements in a list".into()),
        _ => {}
    }
}
