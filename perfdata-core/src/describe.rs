//! Visits the fields of a value: the common basis of text, JSON, hex views and comparisons.
//!
//! Every wire type passes its fields to a [`Visitor`] in file order, each with its name, its
//! meaning and its size in bytes on the wire. The declaration generates this code (see the `wire!`
//! macro), so there is no second list of fields.

use crate::version::Version;

/// Presentation of a number, declared after the field's type: `addr: u64 as Hex`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Style {
    /// A decimal number.
    #[default]
    Plain,
    /// An address, mask or opaque word: hexadecimal.
    Hex,
    /// An address in a callchain, or a [`CallchainContext`](crate::record::CallchainContext) marker
    /// among them.
    Callchain,
    /// Nanoseconds on the recording's clock.
    Time,
    /// An event ID, which readers resolve to the event's name.
    Id,
    /// The ID of an event's instance: an ID of the event, or that of an inherited instance, which
    /// no table contains.
    StreamId,
    /// A process or thread: all ones means "none" and is shown as -1.
    Pid,
    /// A CPU number: all ones means "none" and is shown as -1.
    Cpu,
    /// Another number of which all ones mean "none", shown as -1.
    Optional,
    /// An address of code or data in a process or the kernel: hexadecimal.
    Address,
    /// The ID of a cgroup.
    CgroupId,
    /// The ID of a BPF program.
    BpfId,
    /// Text bytes up to the first NUL.
    Text,
    /// Padding bytes.
    Pad,
    /// Bytes or words of unknown meaning, whose form in the other byte order is therefore unknown
    /// as well.
    Opaque,
}

impl Style {
    /// Returns whether a number of this style is shown as hexadecimal.
    pub const fn is_hex(self) -> bool {
        matches!(self, Style::Hex | Style::Address)
    }

    /// Returns whether all ones mean "none" and are shown as -1.
    pub const fn has_none(self) -> bool {
        matches!(self, Style::Pid | Style::Cpu | Style::Optional)
    }
}

/// One indivisible value of the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Leaf<'a> {
    /// An unsigned number.
    Uint(u64, Style),
    /// A signed number.
    Int(i64),
    /// A floating point number.
    Float(f64),
    /// The number of elements or bytes that follow: can be derived, so relevant only next to the
    /// bytes.
    Count(u64),
    /// A value from a list of names (the last field); the name is `None` if the value is not in the
    /// list.
    Code(u64, Option<&'static str>, &'static [(u64, &'static str)]),
    /// A word of named bits and small fields; [`set_fields`] lists those that are not 0.
    Flags {
        /// The word, in little-endian bit numbering.
        word: u64,
        /// The named fields.
        fields: &'static [Field],
        /// Whether the fields are at other bits in the other byte order.
        mirrored: bool,
    },
    /// Text up to the first NUL; the padding after it is on the wire, too, but is not shown.
    Text(&'a [u8]),
    /// Bytes that are the same in both byte orders: build IDs, code, stacks, payloads with their
    /// own byte order.
    Bytes(&'a [u8]),
    /// Padding, preserved but without meaning.
    Pad(&'a [u8]),
    /// Bytes of unknown meaning.
    Opaque(&'a [u8]),
}

impl<'a> Leaf<'a> {
    /// Returns a leaf of raw bytes in the given style.
    pub fn raw(bytes: &'a [u8], style: Style) -> Self {
        match style {
            Style::Text => Leaf::Text(bytes),
            Style::Pad => Leaf::Pad(bytes),
            Style::Opaque => Leaf::Opaque(bytes),
            _ => Leaf::Bytes(bytes),
        }
    }

    /// Returns whether the value cannot be converted to the other byte order with certainty. Zeros
    /// always can.
    pub fn is_opaque(&self) -> bool {
        match self {
            Leaf::Opaque(bytes) => bytes.iter().any(|&b| b != 0),
            Leaf::Uint(value, Style::Opaque) => *value != 0,
            // The new position of a bit is known only if the width of its field is known.
            Leaf::Flags {
                word,
                fields,
                mirrored: true,
            } => unknown_bits(*word, fields) != 0,
            _ => false,
        }
    }
}

/// A named field in a word of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Lowest bit.
    pub bit: u32,
    /// Number of bits.
    pub width: u32,
    /// Name.
    pub name: &'static str,
    /// The first release of the kernel or perf that sets it.
    pub since: &'static str,
}

impl Field {
    /// Returns the bits of those `fields` that `version` knows.
    pub fn known_in(fields: &[Field], version: Version) -> u64 {
        let known = fields.iter().filter(|field| version.has(field.since));
        known.fold(0, |all, field| all | field.mask() << field.bit)
    }

    /// Returns the field's mask, shifted to bit 0.
    fn mask(&self) -> u64 {
        u64::MAX
            .checked_shr(u64::BITS.saturating_sub(self.width))
            .unwrap_or(0)
    }

    /// Returns the field's value in `word`.
    pub fn of(&self, word: u64) -> u64 {
        word >> self.bit & self.mask()
    }
}

/// Returns name and value of every nonzero field of `word`; bits without a name come last, in their
/// position, as `unknown`.
pub fn set_fields(
    word: u64,
    fields: &'static [Field],
) -> impl Iterator<Item = (&'static str, u64)> {
    let named = fields.iter().map(move |f| (f.name, f.of(word)));
    named
        .chain([("unknown", unknown_bits(word, fields))])
        .filter(|&(_, value)| value != 0)
}

fn unknown_bits(word: u64, fields: &[Field]) -> u64 {
    fields
        .iter()
        .fold(word, |rest, f| rest & !(f.mask() << f.bit))
}

/// Returns the kernel's name of a field: a field `type` is called `kind` here, because `type` is a
/// Rust keyword.
pub const fn field_name(name: &str) -> &str {
    match name.as_bytes() {
        b"kind" => "type",
        _ => name,
    }
}

/// Receives the fields of a value in file order.
pub trait Visitor {
    /// Starts a structure; its fields follow up to [`end`](Self::end). Elements of lists have an
    /// empty name.
    fn begin(&mut self, name: &'static str);
    /// Starts a list of `len` elements, which follow up to [`end`](Self::end).
    fn begin_list(&mut self, name: &'static str, len: usize);
    /// Ends the structure or list that was started last.
    fn end(&mut self);
    /// Visits one value that takes `size` bytes on the wire.
    fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>);
    /// Visits a list of 8-byte numbers. Equivalent to the list and its elements one by one, for
    /// visitors that can process them together.
    fn words(&mut self, name: &'static str, words: &[u64], style: Style) {
        self.begin_list(name, words.len());
        words
            .iter()
            .for_each(|&word| self.leaf("", size_of::<u64>(), Leaf::Uint(word, style)));
        self.end();
    }
}

/// A value whose fields can be visited.
pub trait Describe {
    /// Passes this value to `visitor` under the name that its container gives it.
    fn describe(&self, name: &'static str, style: Style, visitor: &mut dyn Visitor);
}

/// Adds up the wire sizes of the leaves, which gives the encoded length of a value without encoding
/// it.
#[derive(Debug, Default)]
pub struct WireSize(pub usize);

impl Visitor for WireSize {
    fn begin(&mut self, _: &'static str) {}
    fn begin_list(&mut self, _: &'static str, _: usize) {}
    fn end(&mut self) {}
    fn leaf(&mut self, _: &'static str, size: usize, _: Leaf<'_>) {
        self.0 = self.0.saturating_add(size);
    }
    fn words(&mut self, _: &'static str, words: &[u64], _: Style) {
        self.0 = self.0.saturating_add(size_of_val(words));
    }
}

/// A part of a value whose form in the other byte order is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque {
    /// Name of the field, preceded by the names of the enclosing structures, outermost first:
    /// `attr.tail`.
    pub field: String,
    /// Offset in bytes from the start of the value.
    pub offset: usize,
}

/// Returns the first part of `value` that might be wrong after decoding in one byte order and
/// encoding in the other.
pub fn opaque<T: Describe + ?Sized>(value: &T) -> Option<Opaque> {
    let mut finder = OpaqueFinder::default();
    value.describe("", Style::Plain, &mut finder);
    finder.found
}

#[derive(Default)]
struct OpaqueFinder {
    path: Vec<&'static str>,
    offset: usize,
    found: Option<Opaque>,
}

impl Visitor for OpaqueFinder {
    fn begin(&mut self, name: &'static str) {
        self.path.push(name);
    }
    fn begin_list(&mut self, name: &'static str, _: usize) {
        self.path.push(name);
    }
    fn end(&mut self) {
        self.path.pop();
    }
    fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>) {
        if self.found.is_none() && value.is_opaque() {
            let names: Vec<_> = self
                .path
                .iter()
                .copied()
                .chain([name])
                .filter(|name| !name.is_empty())
                .collect();
            self.found = Some(Opaque {
                field: names.join("."),
                offset: self.offset,
            });
        }
        self.offset = self.offset.saturating_add(size);
    }
    fn words(&mut self, name: &'static str, words: &[u64], style: Style) {
        if style != Style::Opaque {
            self.offset = self.offset.saturating_add(size_of_val(words));
            return;
        }
        self.begin_list(name, words.len());
        words
            .iter()
            .for_each(|&word| self.leaf("", size_of::<u64>(), Leaf::Uint(word, style)));
        self.end();
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
        v.leaf(name, N, Leaf::raw(self, style));
    }
}

/// An absent part has no bytes and is not shown.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::AttrFlags;
    use crate::wire::{Rest, wire};

    wire! {
        pub struct Inner {
            pub known: u16 => Number,
            pub flags: AttrFlags,
            pub tail: Rest as Opaque,
        }
    }

    wire! {
        pub struct Outer {
            pub word: u32 as Opaque,
            pub inner: Inner,
        }
    }

    fn value(word: u32, flags: u64, tail: &[u8]) -> Outer {
        Outer {
            word,
            inner: Inner {
                known: 7,
                flags: AttrFlags(flags),
                tail: Rest(tail.to_vec()),
            },
        }
    }

    #[test]
    fn only_unknown_and_set_bits_are_opaque() {
        let found = |value: Outer| opaque(&value).map(|o| (o.field, o.offset));
        assert_eq!(found(value(0, u64::MAX >> 24, &[0, 0])), None);
        assert_eq!(found(value(1, 1 << 40, &[1])), Some(("word".into(), 0)));
        assert_eq!(
            found(value(0, 1 << 40, &[1])),
            Some(("inner.flags".into(), 6))
        );
        assert_eq!(found(value(0, 0, &[0, 1])), Some(("inner.tail".into(), 14)));
    }

    #[test]
    fn set_fields_are_listed_with_the_rest() {
        let word = 0b11 << 15 | 1 << 41 | 1;
        let set: Vec<_> = set_fields(word, AttrFlags::FIELDS).collect();
        assert_eq!(
            set,
            [("disabled", 1), ("precise_ip", 3), ("unknown", 1 << 41)]
        );
    }
}
