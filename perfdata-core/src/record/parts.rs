//! Parts of a record whose presence depends on `sample_type` of its event.

use binrw::Endian;

use crate::attr::SampleType;
use crate::content::{Content, Rewrite, Rewriter};

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

            /// Passes the parts of one word to `rewriter`, and writes the new ones in place. They
            /// are at the offsets `places` of `record`, in the order of `WORDS`; absent parts have
            /// the offset 0.
            #[allow(dead_code, reason = "a trailer is always decoded")]
            #[inline]
            pub(super) fn rewrite_words<R: $crate::content::Rewriter>(
                record: &mut [u8],
                places: &[u8],
                endian: binrw::Endian,
                rewriter: &mut R,
            ) {
                let mut places = places.iter().map(|&at| usize::from(at));
                $(
                    let at = places.next().filter(|&at| at > 0);
                    if let Some(bytes) = at.and_then(|at| record.get_mut(at..)?.first_chunk_mut()) {
                        let part = <$wtype as $crate::record::parts::InWord>::of_word($crate::record::parts::number(*bytes, endian), endian);
                        let content = const { $crate::wire::or_fields($crate::wire::wire!(@content ($($wcontent)?) ($($wstyle)?) [])) };
                        let new = $crate::record::parts::InWord::rewritten(part, stringify!($word), content, rewriter);
                        *bytes = $crate::record::parts::bytes_of($crate::record::parts::InWord::into_word(new, endian), endian);
                    }
                )*
            }

            /// Passes the parts of one word to `rewriter` as [`rewrite_words`](Self::rewrite_words)
            /// does, and ignores the new ones.
            #[allow(dead_code, reason = "a trailer is always decoded")]
            #[inline]
            pub(super) fn inspect_words<R: $crate::content::Rewriter>(
                record: &[u8],
                places: &[u8],
                endian: binrw::Endian,
                rewriter: &mut R,
            ) {
                let mut places = places.iter().map(|&at| usize::from(at));
                $(
                    let at = places.next().filter(|&at| at > 0);
                    if let Some(bytes) = at.and_then(|at| record.get(at..)?.first_chunk()) {
                        let part = <$wtype as $crate::record::parts::InWord>::of_word($crate::record::parts::number(*bytes, endian), endian);
                        let content = const { $crate::wire::or_fields($crate::wire::wire!(@content ($($wcontent)?) ($($wstyle)?) [])) };
                        $crate::record::parts::InWord::rewritten(part, stringify!($word), content, rewriter);
                    }
                )*
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

    /// Returns the part that `rewriter` makes of this one.
    #[inline]
    fn rewritten<R: Rewriter>(
        mut self,
        name: &'static str,
        content: Content,
        rewriter: &mut R,
    ) -> Self
    where
        Self: Rewrite + Sized,
    {
        self.rewrite(name, content, rewriter);
        self
    }
}

/// Returns the number in `word`.
#[inline]
pub(super) fn number(word: [u8; WORD], endian: Endian) -> u64 {
    match endian {
        Endian::Little => u64::from_le_bytes(word),
        Endian::Big => u64::from_be_bytes(word),
    }
}

/// Returns the word with `number`.
#[inline]
pub(super) fn bytes_of(number: u64, endian: Endian) -> [u8; WORD] {
    match endian {
        Endian::Little => number.to_le_bytes(),
        Endian::Big => number.to_be_bytes(),
    }
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

    #[inline]
    fn rewritten<R: Rewriter>(
        self,
        name: &'static str,
        content: Content,
        rewriter: &mut R,
    ) -> Self {
        rewriter.number(name, self, WORD, content)
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
