//! The first bytes of a recording (tools/perf/util/header.h, struct perf_file_header and
//! perf_pipe_file_header).

use std::fmt;
use std::io::{Read, Seek, Write};

use binrw::{BinRead, BinResult, BinWrite, Endian};

use crate::content::{Content, Rewrite, Rewriter};
use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::feature::FeatureId;
use crate::values::{FromValues, Values, list_of};
use crate::wire::{elements, wire};

/// The magic number, which identifies the version of the format and, from version 2 on, the byte
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Magic {
    /// `PERFFILE` (before Linux 3.4): a string, the same in both byte orders.
    V1,
    /// `PERFILE2`, a number: `2ELIFREP` on big-endian machines.
    #[default]
    V2,
}

impl Magic {
    /// Returns the magic at the start of `bytes`, with the byte order if the magic identifies it.
    pub fn recognise(bytes: &[u8]) -> Option<(Magic, Option<Endian>)> {
        match bytes.first_chunk()? {
            b"PERFFILE" => Some((Magic::V1, None)),
            b"PERFILE2" => Some((Magic::V2, Some(Endian::Little))),
            b"2ELIFREP" => Some((Magic::V2, Some(Endian::Big))),
            _ => None,
        }
    }

    /// Returns the 8 bytes in a file of byte order `endian`.
    pub fn bytes(self, endian: Endian) -> &'static [u8; 8] {
        match (self, endian) {
            (Magic::V1, _) => b"PERFFILE",
            (Magic::V2, Endian::Little) => b"PERFILE2",
            (Magic::V2, Endian::Big) => b"2ELIFREP",
        }
    }
}

impl BinRead for Magic {
    type Args<'a> = ();
    fn read_options<R: Read + Seek>(reader: &mut R, endian: Endian, (): ()) -> BinResult<Self> {
        let pos = reader.stream_position()?;
        let bytes = <[u8; 8]>::read_options(reader, endian, ())?;
        match Magic::recognise(&bytes) {
            Some((magic, _)) => Ok(magic),
            None => Err(binrw::Error::BadMagic {
                pos,
                found: Box::new(bytes),
            }),
        }
    }
}

impl BinWrite for Magic {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(
        &self,
        writer: &mut W,
        endian: Endian,
        (): (),
    ) -> BinResult<()> {
        Ok(writer.write_all(self.bytes(endian))?)
    }
}

impl FromValues for Magic {
    fn from_values(values: &mut dyn Values, name: &'static str, _: Style, (): ()) -> Self {
        let text = values.text(name, 8);
        let found = Magic::recognise(&text);
        if found.is_none() {
            values.refuse(format!("{name} is not the magic of a recording"));
        }
        found.map_or(Magic::V2, |(magic, _)| magic)
    }
}

/// A constant has no content.
impl Rewrite for Magic {
    const NEEDS_CONTENT: bool = false;
    fn rewrite(&mut self, _: &'static str, _: Content, _: &mut dyn Rewriter) {}
}

impl Describe for Magic {
    fn describe(&self, name: &'static str, _: Style, v: &mut dyn Visitor) {
        v.leaf(name, 8, Leaf::Text(self.bytes(Endian::Little)));
    }
}

wire! {
    /// Location of a section in the file.
    #[derive(Copy, Eq)]
    pub struct FileSection {
        /// Absolute offset in bytes.
        pub offset: u64 as Hex => Number,
        /// Length in bytes.
        pub size: u64 => Number,
    }
}
elements!(FileSection);

impl FileSection {
    /// Size of a section's description in bytes.
    pub const SIZE: u64 = 16;

    /// Returns whether the two sections share a byte.
    pub fn overlaps(&self, other: &FileSection) -> bool {
        let holds = |a: &FileSection, b: &FileSection| {
            b.offset.checked_sub(a.offset).is_some_and(|at| at < a.size)
        };
        self.size > 0 && other.size > 0 && (holds(self, other) || holds(other, self))
    }

    /// Returns the offset of the end of the section; `None` if it overflows.
    pub fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.size)
    }
}

wire! {
    /// 256 bits, one for each feature section, stored as the recorder's `unsigned long`s. On
    /// big-endian machines the position of a bit depends on the size of `unsigned long`, which the
    /// file does not contain.
    #[derive(Copy, Eq)]
    pub struct FeatureBitmap {
        /// The 64-bit words in the recording's byte order.
        pub words: [Hex64; 4],
    }
}

wire! {
    /// A word displayed in hexadecimal.
    #[derive(Copy, Eq)]
    pub struct Hex64 {
        /// The word.
        pub value: u64 as Hex => Number,
    }
}

/// Size of the recorder's `unsigned long`, the word of the bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WordSize {
    /// 32-bit big-endian machines; on other machines the size makes no difference.
    Bits32,
    /// All others.
    #[default]
    Bits64,
}

impl FeatureBitmap {
    /// Number of bits.
    pub const BITS: u32 = 256;

    /// Returns the bitmap of the given features.
    pub fn of(features: impl IntoIterator<Item = FeatureId>, words: WordSize) -> Self {
        let mut map = FeatureBitmap::default();
        for FeatureId(feature) in features {
            if let Some(word) = map.words.get_mut(feature as usize / 64) {
                word.value |= 1 << (feature % 64);
            }
        }
        map.exchange(words)
    }

    /// Returns the set bits, ascending.
    pub fn features(&self, words: WordSize) -> impl Iterator<Item = FeatureId> {
        let map = self.exchange(words);
        (0..Self::BITS)
            .filter(move |bit| {
                map.words
                    .get(*bit as usize / 64)
                    .is_some_and(|w| w.value >> (bit % 64) & 1 == 1)
            })
            .map(FeatureId)
    }

    /// Exchanges the halves of each word: two 32-bit words that are read as one big-endian 64-bit
    /// word are in the wrong order.
    fn exchange(self, words: WordSize) -> Self {
        match words {
            WordSize::Bits64 => self,
            WordSize::Bits32 => FeatureBitmap {
                words: self.words.map(|w| Hex64 {
                    value: w.value.rotate_left(32),
                }),
            },
        }
    }
}

impl FromValues for [Hex64; 4] {
    fn from_values(values: &mut dyn Values, name: &'static str, style: Style, (): ()) -> Self {
        let words = list_of(values, name, Some(4), |values| {
            Hex64::from_values(values, "", style, ())
        });
        words.try_into().unwrap_or([Hex64 { value: 0 }; 4])
    }
}

impl Rewrite for [Hex64; 4] {
    const NEEDS_CONTENT: bool = false;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        self.as_mut_slice().rewrite(name, content, rewriter);
    }
}

impl Describe for [Hex64; 4] {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        self.as_slice().describe(name, style, v);
    }
}

wire! {
    /// Header of a file.
    pub struct FileHeader {
        /// Version of the format.
        pub magic: Magic,
        /// Size of this header in bytes: 104; 72 before 2.6.32, without `features`.
        pub size: u64 => Number,
        /// Size of an entry of `attrs` in bytes: an attribute, and the location of its event IDs
        /// (16 bytes).
        pub attr_size: u64 => Number,
        /// The attributes.
        pub attrs: FileSection,
        /// The records; the table of the feature sections follows them.
        pub data: FileSection,
        /// Event names (before 3.12).
        pub event_types: FileSection,
        /// Feature sections that are present. Absent before 2.6.32.
        #[br(if(size >= FileHeader::SIZE))]
        pub features: Option<FeatureBitmap>,
    }
}

impl FileHeader {
    /// Size in bytes of a header with a feature bitmap.
    pub const SIZE: u64 = 104;
    /// Size in bytes of a header without a feature bitmap (before Linux 2.6.32).
    pub const OLD_SIZE: u64 = 72;
}

wire! {
    /// Header of a pipe stream.
    pub struct PipeHeader {
        /// Version of the format.
        pub magic: Magic,
        /// Size of this header in bytes.
        pub size: u64 => Number,
    }
}

impl PipeHeader {
    /// Size of the header in bytes.
    pub const SIZE: u64 = 16;
}

/// Container of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerKind {
    /// A header that contains the offsets of attributes, records and features.
    File,
    /// A stream of records that includes the metadata.
    Pipe,
}

impl fmt::Display for ContainerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ContainerKind::File => "file",
            ContainerKind::Pipe => "pipe",
        })
    }
}

impl ContainerKind {
    /// Number of bytes that [`recognise`](Self::recognise) needs.
    pub const SNIFF: usize = 24;

    /// Returns the container and byte order of a recording that starts with `bytes`; `None` if it
    /// is not a recording.
    ///
    /// The magic of version 1 does not identify the byte order. It is the one in which the header's
    /// size is valid.
    pub fn recognise(bytes: &[u8]) -> Option<(ContainerKind, Endian)> {
        let (_, told) = Magic::recognise(bytes)?;
        let size = *bytes.get(8..)?.first_chunk::<8>()?;
        let kind = |endian| {
            let size = if endian == Endian::Little {
                u64::from_le_bytes(size)
            } else {
                u64::from_be_bytes(size)
            };
            match size {
                PipeHeader::SIZE => Some(ContainerKind::Pipe),
                FileHeader::SIZE | FileHeader::OLD_SIZE => Some(ContainerKind::File),
                _ => None,
            }
        };
        match told {
            Some(endian) => Some((kind(endian)?, endian)),
            None => [Endian::Little, Endian::Big]
                .into_iter()
                .find_map(|endian| Some((kind(endian)?, endian))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_32_bit_big_endian_words() {
        // HOSTNAME (3) and NRCPUS (7) as a 32-bit big-endian machine writes them: byte 3 of the
        // map.
        let map = FeatureBitmap {
            words: [0x0000_0088_0000_0000, 0, 0, 0].map(|value| Hex64 { value }),
        };
        assert_eq!(
            map.features(WordSize::Bits32).collect::<Vec<_>>(),
            [FeatureId(3), FeatureId(7)]
        );
        assert_eq!(
            FeatureBitmap::of([FeatureId(3), FeatureId(7)], WordSize::Bits32),
            map
        );
        assert_eq!(
            map.features(WordSize::Bits64).collect::<Vec<_>>(),
            [FeatureId(35), FeatureId(39)]
        );
    }

    #[test]
    fn version_1_tells_its_order_by_its_size() {
        let mut bytes = *b"PERFFILE\0\0\0\0\0\0\0\x68";
        assert_eq!(
            ContainerKind::recognise(&bytes),
            Some((ContainerKind::File, Endian::Big))
        );
        bytes[8..].copy_from_slice(&16u64.to_le_bytes());
        assert_eq!(
            ContainerKind::recognise(&bytes),
            Some((ContainerKind::Pipe, Endian::Little))
        );
        bytes[8] = 17;
        assert_eq!(ContainerKind::recognise(&bytes), None);
    }
}
