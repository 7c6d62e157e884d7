//! Looking at a value field by field: the one walk behind text, JSON, hex views and comparisons.
//!
//! Every wire type tells a [`Visitor`] its fields in file order, each with its name, its meaning and the
//! number of bytes that it takes on the wire. The walk is generated from the declaration itself (see the
//! `wire!` macro), so that there is no second list of fields.

/// How a number wants to be shown. Written behind the field's type in its declaration: `addr: u64 as Hex`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// A decimal number.
    #[default]
    Plain,
    /// An address, mask or opaque word: hexadecimal.
    Hex,
    /// Nanoseconds on the recording's clock.
    Time,
    /// An event id, which readers resolve to the event's name.
    Id,
    /// A process or thread id: `u32::MAX` means "none" and is shown as -1.
    Pid,
    /// Bytes that only fill room.
    Pad,
}

/// One indivisible value of the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Leaf<'a> {
    /// An unsigned number.
    Uint(u64, Style),
    /// A signed number.
    Int(i64),
    /// A floating point number.
    Float(f64),
    /// The number of elements that follow, or of bytes: derivable, so of interest only beside the bytes.
    Count(u64),
    /// A value from a list of names; the name is absent when the value is not in the list.
    Code(u64, Option<&'static str>),
    /// A word of named bits and small fields.
    Flags(u64, &'a [(&'static str, u64)]),
    /// Text up to the first NUL; what fills the room behind is on the wire, too, but not shown.
    Text(&'a [u8]),
    /// Opaque bytes.
    Bytes(&'a [u8]),
    /// Filling, preserved but without a meaning.
    Pad(&'a [u8]),
}

/// Receives the fields of a value in file order.
pub trait Visitor {
    /// A structure begins; its fields follow up to [`end`](Self::end). Elements of lists have an empty name.
    fn begin(&mut self, name: &'static str);
    /// A list of `len` elements begins; they follow up to [`end`](Self::end).
    fn begin_list(&mut self, name: &'static str, len: usize);
    /// The structure or list that was begun last is complete.
    fn end(&mut self);
    /// One value that takes `size` bytes on the wire.
    fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>);
}

/// A value that can be walked.
pub trait Describe {
    /// Tells `visitor` this value under the name that its container gives it.
    fn describe(&self, name: &'static str, style: Style, visitor: &mut dyn Visitor);
}

/// Adds up the wire sizes of the leaves: the encoded length of a value without encoding it.
#[derive(Debug, Default)]
pub struct WireSize(pub usize);

impl Visitor for WireSize {
    fn begin(&mut self, _: &'static str) {}
    fn begin_list(&mut self, _: &'static str, _: usize) {}
    fn end(&mut self) {}
    fn leaf(&mut self, _: &'static str, size: usize, _: Leaf<'_>) {
        self.0 = self.0.saturating_add(size);
    }
}

macro_rules! describe_numbers {
    ($($t:ty),*) => { $(
        impl Describe for $t {
            fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
                v.leaf(name, size_of::<$t>(), Leaf::Uint(u64::from(*self), style));
            }
        }
    )* };
}
describe_numbers!(u8, u16, u32, u64);

impl Describe for i32 {
    fn describe(&self, name: &'static str, _: Style, v: &mut dyn Visitor) {
        v.leaf(name, 4, Leaf::Int(i64::from(*self)));
    }
}

impl Describe for f64 {
    fn describe(&self, name: &'static str, _: Style, v: &mut dyn Visitor) {
        v.leaf(name, 8, Leaf::Float(*self));
    }
}

impl<const N: usize> Describe for [u8; N] {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        v.leaf(name, N, if style == Style::Pad { Leaf::Pad(self) } else { Leaf::Bytes(self) });
    }
}

/// An absent part takes no room and is not shown.
impl<T: Describe> Describe for Option<T> {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        if let Some(value) = self {
            value.describe(name, style, v);
        }
    }
}

impl<T: Describe> Describe for [T] {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        v.begin_list(name, self.len());
        for item in self {
            item.describe("", style, v);
        }
        v.end();
    }
}

impl<T: Describe> Describe for Vec<T> {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        self.as_slice().describe(name, style, v);
    }
}

impl<T: Describe + ?Sized> Describe for Box<T> {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        (**self).describe(name, style, v);
    }
}
