//! Parts of a record that `sample_type` of its event decides.

use crate::attr::SampleType;

/// Bytes of a word.
pub(super) const WORD: usize = 8;

/// Declares what `sample_type` says the parts of: parts of one word each first, which are a number (`word`) or two of 4
/// bytes (`pair`), then those that tell their own length by counts, then all others. `BIT name: Type` has the part where
/// the bit is set, `BIT[unless OTHER]` where another is not; `BIT(arguments)` gives its decoder what it depends on.
/// The places of words, the masks and `keep_parts` come from here.
macro_rules! parts {
    ($(#[$meta:meta])* pub struct $name:ident ($layout:ident) {
        words { $($(#[doc = $wdoc:literal])* $wbit:ident $form:ident $word:ident: $wtype:ty $(as $wstyle:ident)?),* $(,)? }
        counted { $($(#[doc = $cdoc:literal])* $cbit:ident $(($cargs:expr))? $counted:ident: $ctype:ty $(as $cstyle:ident)?),* $(,)? }
        others { $($(#[doc = $odoc:literal])* $obit:ident $([unless $before:ident])? $(($oargs:expr))? $other:ident: $otype:ty $(as $ostyle:ident)?),* $(,)? }
    }) => {
        $crate::wire::wire! {
            $(#[$meta])*
            pub struct $name($layout) {
                $($(#[doc = $wdoc])* #[br(if($layout.sample_type.has($crate::attr::SampleType::$wbit)))] pub $word: Option<$wtype> $(as $wstyle)?,)*
                $($(#[doc = $cdoc])* #[br(if($layout.sample_type.has($crate::attr::SampleType::$cbit)) $(, args_raw = $cargs)?)] pub $counted: Option<$ctype> $(as $cstyle)?,)*
                $($(#[doc = $odoc])* #[br(if($layout.sample_type.has($crate::attr::SampleType::$obit) $(&& !$layout.sample_type.has($crate::attr::SampleType::$before))?) $(, args_raw = $oargs)?)] pub $other: Option<$otype> $(as $ostyle)?,)*
            }
        }

        impl $name {
            /// The parts of one word each, in file order. They come first.
            pub(super) const WORDS: [$crate::attr::SampleType; [$(stringify!($word)),*].len()] = [$($crate::attr::SampleType::$wbit),*];

            /// Those of them that are two numbers of 4 bytes.
            #[allow(dead_code, reason = "a trailer is always decoded")]
            pub(super) const PAIRS: $crate::attr::SampleType = $crate::attr::SampleType(0 $(| $crate::record::parts::parts!(@pair $form $crate::attr::SampleType::$wbit.0))*);

            /// The parts behind the words, in file order, that tell their length by counts alone.
            #[allow(dead_code, reason = "a trailer has none")]
            pub(super) const COUNTED: [$crate::attr::SampleType; { const NAMES: &[&str] = &[$(stringify!($counted)),*]; NAMES.len() }] =
                [$($crate::attr::SampleType::$cbit),*];

            /// All parts.
            pub(super) const PARTS: $crate::attr::SampleType =
                $crate::attr::SampleType(0 $(| $crate::attr::SampleType::$wbit.0)* $(| $crate::attr::SampleType::$cbit.0)* $(| $crate::attr::SampleType::$obit.0)*);

            /// Takes out the parts that are not among `parts`.
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

/// Takes out a part that is not among `parts`.
pub(super) fn keep<T>(parts: SampleType, part: SampleType, value: &mut Option<T>) {
    if !parts.has(part) {
        *value = None;
    }
}

/// All of `parts`.
pub(super) const fn all(mut parts: &[SampleType]) -> SampleType {
    let mut all = 0;
    while let [part, rest @ ..] = parts {
        all |= part.0;
        parts = rest;
    }
    SampleType(all)
}

/// Bytes that the parts `between` take, if there is such a `part`.
pub(super) fn place<'a>(
    sample_type: SampleType,
    part: SampleType,
    between: impl Iterator<Item = &'a SampleType>,
) -> Option<usize> {
    let words = between.filter(|&&word| sample_type.has(word)).count();
    sample_type.has(part).then_some(words.saturating_mul(WORD))
}
