//! BPF programs loaded during the recording, and their types (tools/perf/util/bpf-event.c,
//! `perf_event__synthesize_one_bpf_prog`; util/bpf-utils.c, `get_bpf_prog_info_linear`).

use std::io::{Read, Seek, Write};

use binrw::{BinRead, BinResult, BinWrite, Endian};

use crate::codes::{bitfield, flags};
use crate::content::{Content, Rewrite, Rewriter};
use crate::decode_context::DecodeContext;
use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::values::{FromValues, Values};
use crate::wire::{Bounded, Chars, Counted, Element, Extent, Rest, elements, read_list, wire};

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

bitfield! {
    /// The bit-field of `struct bpf_prog_info`.
    pub struct BpfProgFlags: mirrored u32 {
        /// The program's licence is compatible with the GPL.
        gpl_compatible with_gpl_compatible 0 1 since "4.18",
    }
}

wire! {
    /// `struct bpf_prog_info` of include/uapi/linux/bpf.h: initially 208 bytes, 216 since 5.12, 224
    /// since 5.16, 232 since 6.0. Instead of pointers to arrays it contains their offsets in the
    /// data that follows.
    pub struct BpfProgInfo(layout) => Bpf {
        /// Program type, `enum bpf_prog_type`.
        pub kind: u32,
        /// Program ID.
        pub id: u32,
        /// Hash of the instructions.
        pub tag: [u8; 8] => BuildId,
        /// Size of the machine code in bytes.
        pub jited_prog_len: u32,
        /// Size of the BPF code in bytes.
        pub xlated_prog_len: u32,
        /// Offset of the machine code.
        pub jited_prog_insns: u64 as Hex,
        /// Offset of the BPF code.
        pub xlated_prog_insns: u64 as Hex,
        /// Load time in nanoseconds since boot.
        pub load_time: u64 as Time,
        /// User who loaded the program.
        pub created_by_uid: u32 => User,
        /// Number of map IDs.
        pub nr_map_ids: u32,
        /// Offset of the map IDs.
        pub map_ids: u64 as Hex,
        /// Name.
        pub name: Chars<16> => Symbol,
        /// Network device to which the program is offloaded, or 0.
        pub ifindex: u32,
        /// Flags.
        pub flags: BpfProgFlags,
        /// Network namespace of the device: device number of its link in /proc.
        pub netns_dev: u64 as Hex,
        /// Network namespace of the device: inode number of its link in /proc.
        pub netns_ino: u64 => Namespace,
        /// Number of function addresses.
        pub nr_jited_ksyms: u32,
        /// Number of function lengths.
        pub nr_jited_func_lens: u32,
        /// Offset of the function addresses.
        pub jited_ksyms: u64 as Hex,
        /// Offset of the function lengths.
        pub jited_func_lens: u64 as Hex,
        /// ID of the program's types in the BPF_BTF section, or 0.
        pub btf_id: u32,
        /// Size of each function's record in bytes: 8.
        pub func_info_rec_size: u32,
        /// Offset of the functions.
        pub func_info: u64 as Hex,
        /// Number of functions.
        pub nr_func_info: u32,
        /// Number of source lines.
        pub nr_line_info: u32,
        /// Offset of the source lines.
        pub line_info: u64 as Hex,
        /// Offset of the addresses of source lines.
        pub jited_line_info: u64 as Hex,
        /// Number of addresses of source lines.
        pub nr_jited_line_info: u32,
        /// Size of each source line's record in bytes: 16.
        pub line_info_rec_size: u32,
        /// Size of each address of a source line in bytes: 8.
        pub jited_line_info_rec_size: u32,
        /// Number of tags.
        pub nr_prog_tags: u32,
        /// Offset of the tags.
        pub prog_tags: u64 as Hex,
        /// Total run time in nanoseconds.
        pub run_time_ns: u64,
        /// Number of runs.
        pub run_cnt: u64,
        /// Number of runs that were skipped because the program was already running (5.12).
        #[br(if(layout.len >= 216))]
        pub recursion_misses: Option<u64>,
        /// Number of instructions processed by the verifier (5.16).
        #[br(if(layout.len >= 224))]
        pub verified_insns: Option<u32>,
        /// ID of the BTF object of the attach target (6.0; padding before).
        #[br(if(layout.len >= 224))]
        pub attach_btf_obj_id: Option<u32>,
        /// ID of the attach target's type in that BTF object (6.0).
        #[br(if(layout.len >= 232))]
        pub attach_btf_id: Option<u32>,
        /// Padding.
        #[br(if(layout.len >= 232))]
        pub padding: Option<u32> as Pad,
        /// Fields that this version of the library does not know.
        #[br(args_raw = Extent::ToEnd)]
        pub tail: Rest as Opaque,
    }
}

impl BpfProgInfo {
    /// Size in bytes of the oldest known form.
    const MIN_SIZE: u32 = 208;

    /// Returns the number of elements of each array in `arrays` and the number of padding bytes
    /// after it. Returns `None` unless the arrays fill `data_len` bytes in the only unambiguous
    /// way: in order, each at the offset in the description, with elements of known size. perf 6
    /// pads each array to a multiple of 8 bytes, earlier versions pad only the last one. (perf
    /// queries the kernel twice, for the sizes and for the arrays; a program may change in
    /// between.)
    fn spans(&self, arrays: BpfArraySet, data_len: u32) -> Option<BpfSpans> {
        let slots = [
            (self.jited_prog_insns, self.jited_prog_len, 1, 1),
            (self.xlated_prog_insns, self.xlated_prog_len, 1, 1),
            (self.map_ids, self.nr_map_ids, 4, 4),
            (self.jited_ksyms, self.nr_jited_ksyms, 8, 8),
            (self.jited_func_lens, self.nr_jited_func_lens, 4, 4),
            (
                self.func_info,
                self.nr_func_info,
                self.func_info_rec_size,
                8,
            ),
            (
                self.line_info,
                self.nr_line_info,
                self.line_info_rec_size,
                16,
            ),
            (
                self.jited_line_info,
                self.nr_jited_line_info,
                self.jited_line_info_rec_size,
                8,
            ),
            (self.prog_tags, self.nr_prog_tags, 8, 8),
        ];
        let mut spans = BpfSpans::default();
        let mut end = 0_u64;
        let mut last: Option<&mut BpfSpan> = None;
        // Padding from the end of one array to the next, or to the end of the data.
        let fill = |last: Option<&mut BpfSpan>, end: u64, next: u64| {
            let filling = next.checked_sub(end).filter(|&filling| filling < 8)?;
            match last {
                Some(last) => last.filling = filling,
                None if filling > 0 => return None,
                None => {}
            }
            Some(())
        };
        for ((bit, (offset, count, size, known_size)), span) in (0..).zip(slots).zip(&mut spans.0) {
            if !arrays.has(BpfArraySet(1 << bit)) {
                continue;
            }
            let span = span.insert(BpfSpan {
                count: u64::from(count),
                filling: 0,
            });
            if count > 0 {
                if size != known_size {
                    return None;
                }
                fill(last.replace(span), end, offset)?;
                end = offset.saturating_add(u64::from(count).saturating_mul(u64::from(known_size)));
            }
        }
        fill(last, end, u64::from(data_len))?;
        (arrays.unknown() == 0).then_some(spans)
    }
}

/// The description of a program.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BpfInfo {
    /// A description with all known fields.
    Known(Box<BpfProgInfo>),
    /// A description of unknown size.
    Opaque(Vec<u8>),
}

impl BinRead for BpfInfo {
    /// Size of the description in bytes.
    type Args<'a> = (u32,);
    fn read_options<R: Read + Seek>(
        reader: &mut R,
        endian: Endian,
        (len,): (u32,),
    ) -> BinResult<Self> {
        if len < BpfProgInfo::MIN_SIZE {
            return read_list(reader, endian, u64::from(len)).map(BpfInfo::Opaque);
        }
        Bounded::read_options(reader, endian, (u64::from(len), DecodeContext::default()))
            .map(|Bounded(info)| BpfInfo::Known(Box::new(info)))
    }
}

impl BinWrite for BpfInfo {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(
        &self,
        writer: &mut W,
        endian: Endian,
        (): (),
    ) -> BinResult<()> {
        match self {
            BpfInfo::Known(info) => info.write_options(writer, endian, ()),
            BpfInfo::Opaque(bytes) => Ok(writer.write_all(bytes)?),
        }
    }
}

impl FromValues for BpfInfo {
    fn from_values(
        values: &mut dyn Values,
        name: &'static str,
        style: Style,
        (len,): (u32,),
    ) -> Self {
        if len < BpfProgInfo::MIN_SIZE {
            return BpfInfo::Opaque(u8::many_from_values(
                values,
                name,
                style,
                Some(u64::from(len)),
            ));
        }
        let Bounded(info) = FromValues::from_values(
            values,
            name,
            style,
            (u64::from(len), DecodeContext::default()),
        );
        BpfInfo::Known(Box::new(info))
    }
}

impl Describe for BpfInfo {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        match self {
            BpfInfo::Known(info) => info.describe(name, style, v),
            BpfInfo::Opaque(bytes) => v.leaf(name, bytes.len(), Leaf::Opaque(bytes)),
        }
    }
}

impl Rewrite for BpfInfo {
    const NEEDS_CONTENT: bool = false;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        match self {
            BpfInfo::Known(info) => info.rewrite(name, content, rewriter),
            BpfInfo::Opaque(bytes) => rewriter.bytes(name, bytes, Content::Bpf),
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
    count: u64,
    /// Number of padding bytes between this array and the next.
    filling: u64,
}

/// Length of each array, indexed by the bit of [`BpfArraySet`]; `None` for absent arrays.
#[derive(Debug, Clone, Copy, Default)]
pub struct BpfSpans([Option<BpfSpan>; 9]);

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

impl BinWrite for BpfData {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(
        &self,
        writer: &mut W,
        endian: Endian,
        (): (),
    ) -> BinResult<()> {
        match self {
            BpfData::Arrays(arrays) => arrays.write_options(writer, endian, ()),
            BpfData::Opaque(bytes) => Ok(writer.write_all(bytes)?),
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

impl Describe for BpfData {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        match self {
            BpfData::Arrays(arrays) => arrays.describe(name, style, v),
            BpfData::Opaque(bytes) => v.leaf(name, bytes.len(), Leaf::Opaque(bytes)),
        }
    }
}

impl Rewrite for BpfData {
    const NEEDS_CONTENT: bool = false;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        match self {
            BpfData::Arrays(arrays) => arrays.rewrite(name, content, rewriter),
            BpfData::Opaque(bytes) => rewriter.bytes(name, bytes, Content::Bpf),
        }
    }
}

wire! {
    /// A BPF program, `struct perf_bpil` of tools/perf/util/bpf-utils.h.
    pub struct BpfProgram => Bpf {
        /// Size of the description in bytes.
        pub info_len: u32,
        /// Size of the arrays in bytes.
        pub data_len: u32,
        /// Arrays that are present.
        pub arrays: BpfArraySet,
        /// The description.
        #[br(args(info_len))]
        pub info: BpfInfo,
        /// The arrays.
        #[br(args(data_len, info.spans(arrays, data_len)))]
        pub data: BpfData,
    }
}

impl BpfInfo {
    fn spans(&self, arrays: BpfArraySet, data_len: u32) -> Option<BpfSpans> {
        match self {
            BpfInfo::Known(info) => info.spans(arrays, data_len),
            BpfInfo::Opaque(_) => None,
        }
    }
}

wire! {
    /// Types of a BPF program, of the kernel or of a module. They contain their own byte order in
    /// the first two bytes, the number 0xeb9f.
    pub struct Btf => Bpf {
        /// BTF ID.
        pub id: u32,
        /// BTF data.
        pub data: Counted<u32, u8>,
    }
}

elements!(BpfProgram, Btf);
