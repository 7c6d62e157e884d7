//! Named numbers: codes (one of several), flags (any combination) and C bit-fields (several small
//! numbers in a word).
//!
//! Each is a newtype over the word and preserves every value of a file; known values print their
//! name.

/// Codes without a name below this number may be those of a newer kernel or of a PMU; larger numbers
/// are other data.
pub(crate) const UNNAMED_CODES: u64 = 1 << 12;

/// Declares a number that is one of several codes:
/// `pub struct EventType: u32 { 0 HARDWARE "hardware", … }`.
macro_rules! codes {
    ($(#[$meta:meta])* pub struct $name:ident: $word:ty { $($(#[$cmeta:meta])* $value:literal $constant:ident $text:expr),* $(,)? }) => {
        $(#[$meta])*
        #[binrw::binrw]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $word);

        impl $name {
            $($(#[$cmeta])* #[doc = concat!("Code ", stringify!($value), ".")] pub const $constant: Self = Self($value);)*

            /// All codes that have a name, with the name.
            pub const NAMES: &'static [(u64, &'static str)] = &[$(($value, $text)),*];

            /// Returns the name of the code, if it has one.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }

        impl $crate::describe::Describe for $name {
            fn describe(&self, name: &'static str, _: $crate::describe::Style, v: &mut dyn $crate::describe::Visitor) {
                v.leaf(name, size_of::<$word>(), $crate::describe::Leaf::Code(u64::from(self.0), self.name(), Self::NAMES));
            }
        }

        impl $crate::values::FromValues for $name {
            fn from_values(values: &mut dyn $crate::values::Values, name: &'static str, _: $crate::describe::Style, (): ()) -> Self {
                let like = $crate::describe::Leaf::Code(0, None, Self::NAMES);
                // Not more than it has bytes.
                Self(values.number(name, size_of::<$word>(), like) as $word)
            }
        }

        impl $crate::content::Rewrite for $name {
            const NEEDS_CONTENT: bool = false;
            fn rewrite(&mut self, name: &'static str, _: $crate::content::Content, rewriter: &mut dyn $crate::content::Rewriter) {
                let code = u64::from(self.0);
                if code >= $crate::codes::UNNAMED_CODES && self.name().is_none() {
                    let content = $crate::content::Content::Unknown;
                    // A rewriter returns numbers of the same size.
                    self.0 = rewriter.number(name, code, size_of::<$word>(), content) as $word;
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}", self.0),
                }
            }
        }
    };
}
pub(crate) use codes;

/// Declares a word of flags whose *number* is the same in both byte orders, grouped by the release
/// that introduced them:
/// `pub struct SampleType: u64 { since "2.6.31" { 0 IP "IP", … } since "3.4" { … } }`.
macro_rules! flags {
    ($(#[$meta:meta])* pub struct $name:ident: $word:ty {
        $(since $since:literal { $($(#[$cmeta:meta])* $bit:literal $constant:ident $text:literal),* $(,)? })*
    }) => {
        $(#[$meta])*
        #[binrw::binrw]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $word);

        impl $name {
            $($($(#[$cmeta])* #[doc = concat!("Bit ", stringify!($bit), ", `", $text, "`, since ", $since, ".")]
                pub const $constant: Self = Self(1 << $bit);)*)*
            /// All bits that have a name.
            pub const KNOWN: Self = Self(0 $($(| 1 << $bit)*)*);
            /// All flags, ascending.
            pub const FIELDS: &'static [$crate::describe::Field] =
                &[$($($crate::describe::Field { bit: $bit, width: 1, name: $text, since: $since }),*),*];

            /// Returns this word without the flags that `version` does not know; no version knows
            /// flags without a name.
            pub fn known_in(self, version: $crate::version::Version) -> Self {
                // A field of this word fits into the word.
                Self(self.0 & $crate::describe::Field::known_in(Self::FIELDS, version) as $word)
            }

            /// Returns whether all bits of `flags` are set.
            #[inline]
            pub const fn has(self, flags: Self) -> bool {
                self.0 & flags.0 == flags.0
            }

            /// Returns the set bits that have no name.
            pub const fn unknown(self) -> $word {
                self.0 & !Self::KNOWN.0
            }

            /// Returns the names of the set bits, ascending.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                Self::FIELDS.iter().filter(move |f| self.0 >> f.bit & 1 == 1).map(|f| f.name)
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl $crate::describe::Describe for $name {
            fn describe(&self, name: &'static str, _: $crate::describe::Style, v: &mut dyn $crate::describe::Visitor) {
                v.leaf(name, size_of::<$word>(), $crate::describe::Leaf::Flags { word: u64::from(self.0), fields: Self::FIELDS, mirrored: false });
            }
        }

        $crate::content::rewrite_known_bits!($name: $word);

        impl $crate::values::FromValues for $name {
            fn from_values(values: &mut dyn $crate::values::Values, name: &'static str, _: $crate::describe::Style, (): ()) -> Self {
                let like = $crate::describe::Leaf::Flags { word: 0, fields: Self::FIELDS, mirrored: false };
                // Not more than it has bytes.
                Self(values.number(name, size_of::<$word>(), like) as $word)
            }
        }
    };
}
pub(crate) use flags;

/// Declares a word of small fields:
/// `pub struct AttrFlags: mirrored u64 { disabled with_disabled 0 1 since "2.6.31", precise_ip with_precise_ip 15 2 since "2.6.35", … }`
/// with the names of the functions that read and set it, the first bit (in little-endian
/// numbering), the width and the release of each.
///
/// A C compiler fills a word of bit-fields from the least significant bit on little-endian machines
/// and from the most significant bit on big-endian machines. The value stored here is always in
/// little-endian numbering. Reading and writing move each field *as a whole*, so the bits of a
/// two-bit field are not reversed. Undeclared bits are treated as fields of one bit each. The
/// kernel's header declares a few words twice, once for each byte order, so that the number is the
/// same: `numeric` instead of `mirrored`.
macro_rules! bitfield {
    (@mirrored mirrored) => { true };
    (@mirrored numeric) => { false };
    (@value 1 $word:ty) => { bool };
    (@value $width:tt $word:ty) => { $word };
    ($(#[$meta:meta])* pub struct $name:ident: $order:ident $word:ty { $($(#[$fmeta:meta])* $field:ident $setter:ident $bit:literal $width:tt since $since:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $word);

        impl $name {
            /// All fields, ascending.
            pub const FIELDS: &'static [$crate::describe::Field] =
                &[$($crate::describe::Field { bit: $bit, width: $width, name: stringify!($field), since: $since }),*];

            /// Whether the position of a field on the wire depends on the byte order.
            pub const MIRRORED: bool = $crate::codes::bitfield!(@mirrored $order);

            $(
                $(#[$fmeta])*
                #[doc = concat!("Bit ", stringify!($bit), ", width ", stringify!($width), ", since ", $since, ".")]
                #[inline]
                pub const fn $field(self) -> $word {
                    self.0 >> $bit & (<$word>::MAX >> (<$word>::BITS - $width))
                }

                #[doc = concat!("Returns this word with [`", stringify!($field), "`](Self::", stringify!($field), ") set to `value`. Higher bits of `value` are discarded.")]
                #[inline]
                #[must_use]
                pub const fn $setter(self, value: $crate::codes::bitfield!(@value $width $word)) -> Self {
                    const { assert!($crate::codes::is_setter_of(stringify!($setter), stringify!($field))) };
                    let mask = <$word>::MAX >> (<$word>::BITS - $width);
                    Self(self.0 & !(mask << $bit) | (value as $word & mask) << $bit)
                }
            )*

            /// Returns this word with the field called `name` set to `value`; `None` if there is no
            /// such field or `value` does not fit into it.
            #[allow(clippy::arithmetic_side_effects, reason = "places and widths are inside the word")]
            pub fn with(self, name: &str, value: $word) -> Option<Self> {
                let &$crate::describe::Field { bit, width, .. } = Self::FIELDS.iter().find(|f| f.name == name)?;
                let mask = <$word>::MAX >> (<$word>::BITS - width);
                (value <= mask).then_some(Self(self.0 & !(mask << bit) | value << bit))
            }

            /// Returns this word without the fields that `version` does not know; no version knows
            /// bits outside all fields.
            pub fn known_in(self, version: $crate::version::Version) -> Self {
                // A field of this word fits into the word.
                Self(self.0 & $crate::describe::Field::known_in(Self::FIELDS, version) as $word)
            }

            /// Returns the set bits that belong to no field.
            #[allow(clippy::arithmetic_side_effects, reason = "places and widths are inside the word")]
            pub fn unknown(self) -> $word {
                let known = Self::FIELDS.iter().fold(0, |all, f| all | (<$word>::MAX >> (<$word>::BITS - f.width)) << f.bit);
                self.0 & !known
            }

            /// Returns the number on the wire, as read by a machine of byte order `endian`. The
            /// function is its own inverse.
            #[inline]
            #[allow(clippy::arithmetic_side_effects, reason = "places and widths are inside the word")]
            pub fn to_wire(self, endian: binrw::Endian) -> $word {
                if !Self::MIRRORED || endian == binrw::Endian::Little {
                    return self.0;
                }
                let mirrored = self.0.reverse_bits();
                let mut word = mirrored;
                for &$crate::describe::Field { bit, width, .. } in Self::FIELDS {
                    if width > 1 {
                        let mask = <$word>::MAX >> (<$word>::BITS - width);
                        let at = <$word>::BITS - bit - width;
                        word = word & !(mask << at) | (self.0 >> bit & mask) << at;
                    }
                }
                word
            }

            /// Returns the fields of a word written by a machine of byte order `endian`.
            #[inline]
            #[allow(clippy::arithmetic_side_effects, reason = "places and widths are inside the word")]
            pub fn from_wire(word: $word, endian: binrw::Endian) -> Self {
                if !Self::MIRRORED || endian == binrw::Endian::Little {
                    return Self(word);
                }
                let mut out = word.reverse_bits();
                for &$crate::describe::Field { bit, width, .. } in Self::FIELDS {
                    if width > 1 {
                        let mask = <$word>::MAX >> (<$word>::BITS - width);
                        let at = <$word>::BITS - bit - width;
                        out = out & !(mask << bit) | (word >> at & mask) << bit;
                    }
                }
                Self(out)
            }
        }

        impl binrw::BinRead for $name {
            type Args<'a> = ();
            fn read_options<R: std::io::Read + std::io::Seek>(reader: &mut R, endian: binrw::Endian, (): ()) -> binrw::BinResult<Self> {
                <$word>::read_options(reader, endian, ()).map(|word| Self::from_wire(word, endian))
            }
        }

        impl binrw::BinWrite for $name {
            type Args<'a> = ();
            fn write_options<W: std::io::Write + std::io::Seek>(&self, writer: &mut W, endian: binrw::Endian, (): ()) -> binrw::BinResult<()> {
                self.to_wire(endian).write_options(writer, endian, ())
            }
        }

        impl $crate::describe::Describe for $name {
            fn describe(&self, name: &'static str, _: $crate::describe::Style, v: &mut dyn $crate::describe::Visitor) {
                v.leaf(name, size_of::<$word>(), $crate::describe::Leaf::Flags { word: u64::from(self.0), fields: Self::FIELDS, mirrored: Self::MIRRORED });
            }
        }

        $crate::content::rewrite_known_bits!($name: $word);

        impl $crate::values::FromValues for $name {
            fn from_values(values: &mut dyn $crate::values::Values, name: &'static str, _: $crate::describe::Style, (): ()) -> Self {
                let like = $crate::describe::Leaf::Flags { word: 0, fields: Self::FIELDS, mirrored: Self::MIRRORED };
                // Not more than it has bytes.
                Self(values.number(name, size_of::<$word>(), like) as $word)
            }
        }
    };
}
pub(crate) use bitfield;

/// Returns whether `setter` is `with_` and the name of the field.
pub(crate) const fn is_setter_of(setter: &str, field: &str) -> bool {
    let Some((b"with_", mut setter)) = setter.as_bytes().split_at_checked(5) else {
        return false;
    };
    let mut field = field.as_bytes();
    while let ([a, rest_of_setter @ ..], [b, rest_of_field @ ..]) = (setter, field) {
        if *a != *b {
            return false;
        }
        (setter, field) = (rest_of_setter, rest_of_field);
    }
    setter.is_empty() && field.is_empty()
}

#[cfg(test)]
mod tests {
    use binrw::Endian;

    bitfield! {
        /// A single bit, a field that crosses a byte boundary, a wide field.
        pub struct Sample: mirrored u32 { single with_single 0 1 since "3.4", pair with_pair 7 2 since "4.1", wide with_wide 16 16 since "6.0" }
    }

    #[test]
    fn fields_keep_their_inner_order() {
        let word = Sample(0).with_single(true).with_pair(1).with_wide(0x1234);
        assert_eq!(word.to_wire(Endian::Little), 0x1234_0081);
        // From the top: bit 31 is `single`, bits 24-23 are `pair`, bits 15-0 are `wide`.
        assert_eq!(word.to_wire(Endian::Big), 0x8080_1234);
        assert_eq!(Sample::from_wire(0x8080_1234, Endian::Big), word);
        assert_eq!((word.single(), word.pair(), word.wide()), (1, 1, 0x1234));
    }

    #[test]
    fn every_bit_survives_the_conversion() {
        for bit in 0..32 {
            let word = Sample(1 << bit);
            let wire = word.to_wire(Endian::Big);
            assert_eq!(wire.count_ones(), 1);
            assert_eq!(Sample::from_wire(wire, Endian::Big), word);
        }
        assert_eq!(Sample(1 << 3).unknown(), 1 << 3);
        assert_eq!(Sample(0).with("pair", 4), None);
        assert_eq!(Sample(0).with("pair", 3), Some(Sample(0).with_pair(3)));
        assert_eq!(
            Sample(u32::MAX).with_pair(4).with_single(false),
            Sample(!0x181)
        );
        let known = |version: &str| Sample(u32::MAX).known_in(version.parse().unwrap());
        assert_eq!(
            (
                known("3.3").0,
                known("4.0").0,
                known("5.9").0,
                known("6.0").0
            ),
            (0, 1, 0x181, 0xffff_0181)
        );
    }
}
