//! Parts of a record whose presence depends on `sample_type` of its event.

use binrw::Endian;

use crate::attr::SampleType;

/// Bytes of a word.
pub(super) const WORD: usize = 8;

/// Declares a structure whose parts depend on `sample_type`: first the parts of one word each,
/// which are a number (`word`) or two numbers of 4 bytes (`pair`), then the parts whose length
/// follows from their counts, then all others. `BIT name: Type` is present if the bit is set,
/// `BIT[unless OTHER]` only if another bit is not set; `BIT(arguments)` passes arguments to the
/// decoder. Also generates the offsets of words, the masks and `keep_parts`.
macro_rules! parts {
    ($(#[$meta:meta])* pub struct $name:ident ($layout:ident) {
        words { $($(#[doc = $wdoc:literal])* $wbit:ident $form:ident $word:ident: $wtype:ty $(as $wstyle:ident)? $(=> $wcontent:ident)?),* $(,)? }
        counted { $($(#[doc = $cdoc:literal])* $cbit:ident $(($cargs:expr))? $counted:ident: $ctype:ty $(as $cstyle:ident)? $(=> $ccontent:ident)?),* $(,)? }
        others { $($(#[doc = $odoc:literal])* $obit:ident $([unless $before:ident])? $(($oargs:expr))? $other:ident: $otype:ty $(as $ostyle:ident)? $(=> $ocontent:ident)?),* $(,)? }
    }) => {
        $crate::wire::wire! {
            $(#[$meta])*
            pub struct $name($layout) {
                $($(#[doc = $wdoc])* #[br(if($layout.sample_type.has($crate::attr::SampleType::$wbit)))] pub $word: Option<$wtype> $(as $wstyle)? $(=> $wcontent)?,)*
                $($(#[doc = $cdoc])* #[br(if($layout.sample_type.has($crate::attr::SampleType::$cbit)) $(, args_raw = $cargs)?)] pub $counted: Option<$ctype> $(as $cstyle)? $(=> $ccontent)?,)*
                $($(#[doc = $odoc])* #[br(if($layout.sample_type.has($crate::attr::SampleType::$obit) $(&& !$layout.sample_type.has($crate::attr::SampleType::$before))?) $(, args_raw = $oargs)?)] pub $other: Option<$otype> $(as $ostyle)? $(=> $ocontent)?,)*
            }
        }

        impl $name {
            /// The parts of one word each, in file order. They come first.
            pub(super) const WORDS: [$crate::attr::SampleType; [$(stringify!($word)),*].len()] = [$($crate::attr::SampleType::$wbit),*];

            /// Those of them that consist of two numbers of 4 bytes.
            #[allow(dead_code, reason = "a trailer is always decoded")]
            pub(super) const PAIRS: $crate::attr::SampleType = $crate::attr::SampleType(0 $(| $crate::record::parts::parts!(@pair $form $crate::attr::SampleType::$wbit.0))*);

            /// The parts after the words, in file order, whose length follows from their counts
            /// alone.
            #[allow(dead_code, reason = "a trailer has none")]
            pub(super) const COUNTED: [$crate::attr::SampleType; { const NAMES: &[&str] = &[$(stringify!($counted)),*]; NAMES.len() }] =
                [$($crate::attr::SampleType::$cbit),*];

            /// All parts.
            pub(super) const PARTS: $crate::attr::SampleType =
                $crate::attr::SampleType(0 $(| $crate::attr::SampleType::$wbit.0)* $(| $crate::attr::SampleType::$cbit.0)* $(| $crate::attr::SampleType::$obit.0)*);

            /// The content of each part.
            pub const CONTENTS: &'static [($crate::attr::SampleType, $crate::content::Content)] = &[
                $(($crate::attr::SampleType::$wbit, $crate::wire::or_fields($crate::wire::wire!(@content ($($wcontent)?) ($($wstyle)?) []))),)*
                $(($crate::attr::SampleType::$cbit, $crate::wire::or_fields($crate::wire::wire!(@content ($($ccontent)?) ($($cstyle)?) []))),)*
                $(($crate::attr::SampleType::$obit, $crate::wire::or_fields($crate::wire::wire!(@content ($($ocontent)?) ($($ostyle)?) []))),)*
            ];

            /// Passes a part of one word to `rewriter`. Returns the new word.
            #[allow(dead_code, reason = "a trailer is always decoded")]
            #[inline]
            pub(super) fn rewrite_word(
                part: $crate::attr::SampleType,
                word: u64,
                endian: binrw::Endian,
                rewriter: &mut dyn $crate::content::Rewriter,
            ) -> u64 {
                $(if part == $crate::attr::SampleType::$wbit {
                    let mut value = <$wtype as $crate::record::parts::InWord>::of_word(word, endian);
                    let content = const { $crate::wire::or_fields($crate::wire::wire!(@content ($($wcontent)?) ($($wstyle)?) [])) };
                    $crate::content::Rewrite::rewrite(&mut value, stringify!($word), content, rewriter);
                    return value.into_word(endian);
                })*
                word
            }

            /// Removes the parts that are not in `parts`.
            pub fn keep_parts(&mut self, parts: $crate::attr::SampleType) {
                $($crate::record::parts::keep(parts, $crate::attr::SampleType::$wbit, &mut self.$word);)*
                $($crate::record::parts::keep(parts, $crate::attr::SampleType::$cbit, &mut self.$counted);)*
                $($crate::record::parts::keep(parts, $crate::attr::SampleType::$obit, &mut self.$other);)*
            }
        }
    };
    (@pair pair $bit:expr) => { $bit };
    (@pair word $bit:expr) => { 0 };
}
pub(super) use parts;

/// A part of one word: a number, or two numbers of 4 bytes.
pub(super) trait InWord {
    /// Returns the part in `word`, a number in a record with this byte order.
    fn of_word(word: u64, endian: Endian) -> Self;

    /// Returns the word with the part.
    fn into_word(self, endian: Endian) -> u64;
}

impl InWord for u64 {
    #[inline]
    fn of_word(word: u64, _: Endian) -> Self {
        word
    }

    #[inline]
    fn into_word(self, _: Endian) -> u64 {
        self
    }
}

/// Removes a part that is not in `parts`.
pub(super) fn keep<T>(parts: SampleType, part: SampleType, value: &mut Option<T>) {
    if !parts.has(part) {
        *value = None;
    }
}

/// Returns all of `parts`.
pub(super) const fn all(mut parts: &[SampleType]) -> SampleType {
    let mut all = 0;
    while let [part, rest @ ..] = parts {
        all |= part.0;
        parts = rest;
    }
    SampleType(all)
}

/// Returns the size of the parts `between` in bytes; `None` if there is no such `part`.
pub(super) fn place<'a>(
    sample_type: SampleType,
    part: SampleType,
    between: impl Iterator<Item = &'a SampleType>,
) -> Option<usize> {
    let words = between.filter(|&&word| sample_type.has(word)).count();
    sample_type.has(part).then_some(words.saturating_mul(WORD))
}
