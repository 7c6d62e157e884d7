//! The description of a BPF program, `struct bpf_prog_info`.

use std::io::{Read, Seek, Write};

use binrw::{BinRead, BinResult, BinWrite, Endian};

use super::arrays::{BpfArraySet, BpfSpan, BpfSpans};
use crate::codes::bitfield;
use crate::content::{Content, Rewrite, Rewriter};
use crate::decode_context::DecodeContext;
use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::values::{FromValues, Values};
use crate::wire::{Bounded, Chars, Element, Extent, Rest, read_list, wire};

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

impl Default for BpfInfo {
    fn default() -> Self {
        BpfInfo::Known(Box::default())
    }
}

impl BpfInfo {
    /// Returns the lengths of the arrays after the description, if it explains all of their
    /// `data_len` bytes.
    pub(super) fn spans(&self, arrays: BpfArraySet, data_len: u32) -> Option<BpfSpans> {
        match self {
            BpfInfo::Known(info) => info.spans(arrays, data_len),
            BpfInfo::Opaque(_) => None,
        }
    }
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

or_opaque!(BpfInfo::Known);
