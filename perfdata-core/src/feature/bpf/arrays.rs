//! The arrays that follow the description of a BPF program: code, functions, source lines.

use std::io::{Read, Seek, Write};

use binrw::{BinRead, BinResult, BinWrite, Endian};

use crate::codes::flags;
use crate::content::{Content, Rewrite, Rewriter};
use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::values::{FromValues, Values};
use crate::wire::{Element, elements, read_list, wire};

flags! {
    /// Arrays that follow a program's description, `enum bpf_prog_info_array` of
    /// tools/perf/util/bpf-utils.h.
    pub struct BpfArraySet: u64 {
        since "5.1" {
        0 JITED_INSNS "JITED_INSNS", 1 XLATED_INSNS "XLATED_INSNS", 2 MAP_IDS "MAP_IDS", 3 JITED_KSYMS "JITED_KSYMS",
        4 JITED_FUNC_LENS "JITED_FUNC_LENS", 5 FUNC_INFO "FUNC_INFO", 6 LINE_INFO "LINE_INFO",
        7 JITED_LINE_INFO "JITED_LINE_INFO", 8 PROG_TAGS "PROG_TAGS",
        }
    }
}

/// An array and the padding up to the next one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Padded<T> {
    /// The elements.
    pub items: Vec<T>,
    /// Padding, less than 8 bytes.
    pub padding: Vec<u8>,
}

impl<T: Element> BinRead for Padded<T> {
    type Args<'a> = (BpfSpan,);
    fn read_options<R: Read + Seek>(
        reader: &mut R,
        endian: Endian,
        (span,): (BpfSpan,),
    ) -> BinResult<Self> {
        let items = read_list(reader, endian, span.count)?;
        let padding = read_list(reader, endian, span.filling)?;
        Ok(Padded { items, padding })
    }
}

impl<T: Element> BinWrite for Padded<T> {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(
        &self,
        writer: &mut W,
        endian: Endian,
        (): (),
    ) -> BinResult<()> {
        T::write_many(&self.items, writer, endian)?;
        Ok(writer.write_all(&self.padding)?)
    }
}

impl<T: Element> FromValues for Padded<T> {
    fn from_values(
        values: &mut dyn Values,
        name: &'static str,
        style: Style,
        (span,): (BpfSpan,),
    ) -> Self {
        let items = T::many_from_values(values, name, style, Some(span.count));
        // Less than 8.
        Padded {
            items,
            padding: vec![0; usize::try_from(span.filling).unwrap_or(0)],
        }
    }
}

impl<T: Element> Describe for Padded<T> {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        T::describe_many(&self.items, name, style, v);
        if !self.padding.is_empty() {
            v.leaf("padding", self.padding.len(), Leaf::Pad(&self.padding));
        }
    }
}

impl<T: Element> Rewrite for Padded<T> {
    const NEEDS_CONTENT: bool = T::NEEDS_CONTENT;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        T::rewrite_many(&mut self.items, name, content, rewriter);
        if !self.padding.is_empty() {
            rewriter.bytes("padding", &mut self.padding, Content::Padding);
        }
    }
}

wire! {
    /// Start of a function, `struct bpf_func_info`.
    pub struct BpfFuncInfo => Bpf {
        /// Index of its first instruction.
        pub insn_off: u32,
        /// Type ID.
        pub type_id: u32,
    }
}

wire! {
    /// Start of a source line, `struct bpf_line_info`.
    pub struct BpfLineInfo => Bpf {
        /// Index of its first instruction.
        pub insn_off: u32,
        /// File name: offset in the string section of the types.
        pub file_name_off: u32,
        /// Text of the line: offset in the string section of the types.
        pub line_off: u32,
        /// Line in the upper 22 bits, column in the lower 10 bits.
        pub line_col: u32 as Hex,
    }
}

elements!(BpfFuncInfo, BpfLineInfo, [u8; 8]);

/// Length of an array.
#[derive(Debug, Clone, Copy, Default)]
pub struct BpfSpan {
    /// Number of elements.
    pub(super) count: u64,
    /// Number of padding bytes between this array and the next.
    pub(super) filling: u64,
}

/// Length of each array, indexed by the bit of [`BpfArraySet`]; `None` for absent arrays.
#[derive(Debug, Clone, Copy, Default)]
pub struct BpfSpans(pub(super) [Option<BpfSpan>; 9]);

impl BpfSpans {
    fn get(&self, array: BpfArraySet) -> Option<BpfSpan> {
        self.0
            .get(usize::try_from(array.0.trailing_zeros()).ok()?)
            .copied()
            .flatten()
    }

    fn has(&self, array: BpfArraySet) -> bool {
        self.get(array).is_some()
    }

    fn of(&self, array: BpfArraySet) -> BpfSpan {
        self.get(array).unwrap_or_default()
    }
}

wire! {
    /// The arrays of one program.
    pub struct BpfArrays(spans: BpfSpans) => Bpf {
        /// Machine code.
        #[br(if(spans.has(BpfArraySet::JITED_INSNS)), args(spans.of(BpfArraySet::JITED_INSNS)))]
        pub jited_insns: Option<Padded<u8>>,
        /// BPF code: `struct bpf_insn`, whose numbers and bit-fields keep the byte order of the
        /// recording machine.
        #[br(if(spans.has(BpfArraySet::XLATED_INSNS)), args(spans.of(BpfArraySet::XLATED_INSNS)))]
        pub xlated_insns: Option<Padded<u8>>,
        /// IDs of the maps used by the program.
        #[br(if(spans.has(BpfArraySet::MAP_IDS)), args(spans.of(BpfArraySet::MAP_IDS)))]
        pub map_ids: Option<Padded<u32>>,
        /// Address of the machine code of each function.
        #[br(if(spans.has(BpfArraySet::JITED_KSYMS)), args(spans.of(BpfArraySet::JITED_KSYMS)))]
        pub jited_ksyms: Option<Padded<u64>> as Hex,
        /// Size of the machine code of each function in bytes.
        #[br(if(spans.has(BpfArraySet::JITED_FUNC_LENS)), args(spans.of(BpfArraySet::JITED_FUNC_LENS)))]
        pub jited_func_lens: Option<Padded<u32>>,
        /// Functions.
        #[br(if(spans.has(BpfArraySet::FUNC_INFO)), args(spans.of(BpfArraySet::FUNC_INFO)))]
        pub func_info: Option<Padded<BpfFuncInfo>>,
        /// Source lines.
        #[br(if(spans.has(BpfArraySet::LINE_INFO)), args(spans.of(BpfArraySet::LINE_INFO)))]
        pub line_info: Option<Padded<BpfLineInfo>>,
        /// Address of the machine code of each source line.
        #[br(if(spans.has(BpfArraySet::JITED_LINE_INFO)), args(spans.of(BpfArraySet::JITED_LINE_INFO)))]
        pub jited_line_info: Option<Padded<u64>> as Hex,
        /// Hash of the instructions of each function.
        #[br(if(spans.has(BpfArraySet::PROG_TAGS)), args(spans.of(BpfArraySet::PROG_TAGS)))]
        pub prog_tags: Option<Padded<[u8; 8]>>,
    }
}

/// The data after a program's description.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BpfData {
    /// The arrays.
    Arrays(Box<BpfArrays>),
    /// Bytes that the description does not explain.
    Opaque(Vec<u8>),
}

impl Default for BpfData {
    fn default() -> Self {
        BpfData::Arrays(Box::default())
    }
}

impl BinRead for BpfData {
    /// Size in bytes, and the length of each array if known.
    type Args<'a> = (u32, Option<BpfSpans>);
    fn read_options<R: Read + Seek>(
        reader: &mut R,
        endian: Endian,
        (len, spans): Self::Args<'_>,
    ) -> BinResult<Self> {
        match spans {
            Some(spans) => BpfArrays::read_options(reader, endian, spans)
                .map(|arrays| BpfData::Arrays(Box::new(arrays))),
            None => read_list(reader, endian, u64::from(len)).map(BpfData::Opaque),
        }
    }
}

impl FromValues for BpfData {
    fn from_values(
        values: &mut dyn Values,
        name: &'static str,
        style: Style,
        (len, spans): Self::Args<'_>,
    ) -> Self {
        match spans {
            Some(spans) => {
                BpfData::Arrays(Box::new(BpfArrays::from_values(values, name, style, spans)))
            }
            None => BpfData::Opaque(u8::many_from_values(
                values,
                name,
                style,
                Some(u64::from(len)),
            )),
        }
    }
}

or_opaque!(BpfData::Arrays);
