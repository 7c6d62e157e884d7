//! BPF programs loaded during the recording, and their types (tools/perf/util/bpf-event.c,
//! `perf_event__synthesize_one_bpf_prog`; util/bpf-utils.c, `get_bpf_prog_info_linear`).

/// Implements writing, describing and rewriting for an enum whose variant `$known` holds a
/// structure, and whose variant `Opaque` holds bytes that were not understood.
macro_rules! or_opaque {
    ($name:ident :: $known:ident) => {
        impl BinWrite for $name {
            type Args<'a> = ();
            fn write_options<W: Write + Seek>(
                &self,
                writer: &mut W,
                endian: Endian,
                (): (),
            ) -> BinResult<()> {
                match self {
                    $name::$known(known) => known.write_options(writer, endian, ()),
                    $name::Opaque(bytes) => Ok(writer.write_all(bytes)?),
                }
            }
        }

        impl Describe for $name {
            fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
                match self {
                    $name::$known(known) => known.describe(name, style, v),
                    $name::Opaque(bytes) => v.leaf(name, bytes.len(), Leaf::Opaque(bytes)),
                }
            }
        }

        impl Rewrite for $name {
            const NEEDS_CONTENT: bool = false;
            fn rewrite(
                &mut self,
                name: &'static str,
                content: Content,
                rewriter: &mut dyn Rewriter,
            ) {
                match self {
                    $name::$known(known) => known.rewrite(name, content, rewriter),
                    $name::Opaque(bytes) => rewriter.bytes(name, bytes, Content::Bpf),
                }
            }
        }
    };
}

mod arrays;
mod info;

pub use arrays::*;
pub use info::*;

use crate::wire::{Counted, elements, wire};

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
