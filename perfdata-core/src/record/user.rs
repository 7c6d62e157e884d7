//! Records of the perf tool that contain metadata in a stream (tools/lib/perf/include/perf/event.h,
//! enum perf_user_event_type).

use super::MISC_BUILD_ID_SIZE;
use crate::attr::Attr;
use crate::wire::{Chars, Counted, Extent, Rest, Text, ToEnd, elements, wire};

wire! {
    /// An attribute and its IDs in a pipe (2.6.35).
    pub struct HeaderAttr(layout) {
        /// The attribute, whose length is its own `size`.
        #[br(args_raw = layout)]
        pub attr: Attr,
        /// Event IDs.
        #[br(args(8))]
        pub ids: ToEnd<u64> as Id,
    }
}

wire! {
    /// An event name (2.6.35, not written since 3.12). Also the entry of a file's event_types
    /// section, where the name occupies 64 bytes.
    pub struct EventTypeName {
        /// The event's `config`.
        pub event_id: u64 as Hex => Config,
        /// Name.
        pub name: Text => EventName,
    }
}

impl EventTypeName {
    /// Size in bytes of an entry in a file.
    pub const FILE_ENTRY: usize = 72;
    /// Size in bytes of the name's field in a file. A pipe contains as much of it as is needed.
    pub const NAME: usize = 64;
}

wire! {
    /// Announces tracing data in a pipe (2.6.35). The data follows the record; the record of
    /// simpleperf contains it.
    pub struct HeaderTracingData(layout) {
        /// Number of bytes of tracing data. After the record, this includes zeros up to a multiple
        /// of 8.
        pub size: u32 => Number,
        /// Padding (6.0).
        #[br(if(layout.len >= 8 && !Self::holds(size, layout.len)))]
        pub pad: Option<u32> as Pad,
        /// The tracing data, and zeros after it, if the record contains them.
        #[br(if(Self::holds(size, layout.len)))]
        pub data: Option<Rest> as Opaque,
    }
}

impl HeaderTracingData {
    /// Returns the size of the body in bytes.
    pub(crate) fn len(&self) -> usize {
        let pad = self.pad.as_ref().map_or(0, size_of_val);
        let data = self.data.as_ref().map_or(0, |data| data.0.len());
        size_of_val(&self.size)
            .saturating_add(pad)
            .saturating_add(data)
    }

    /// Returns whether a body of `len` bytes contains the tracing data: they are longer than the
    /// padding that else follows `size`.
    fn holds(size: u32, len: u64) -> bool {
        size > 4 && len >= u64::from(size).saturating_add(4)
    }

    /// Returns the tracing data in the record, if they are there.
    pub fn data(&self) -> Option<&[u8]> {
        let data = self.data.as_ref()?;
        data.0.get(..usize::try_from(self.size).ok()?)
    }
}

wire! {
    /// A file and its build ID (2.6.35). Also the entry of the BUILD_ID feature, where the header
    /// has type 0.
    pub struct BuildId(layout) {
        /// -1 for the host's kernel and processes, otherwise a guest's process ID; absent only in
        /// files before 2.6.35.
        #[br(if(!layout.build_id_without_pid))]
        pub pid: Option<i32> => Pid,
        /// Build ID, left-justified and padded with zeros.
        pub build_id: [u8; 20] => BuildId,
        /// Size of the build ID in bytes if `misc` bit 15 is set (5.11); otherwise the build ID has
        /// 20 bytes.
        pub size: u8 => BuildIdSize,
        /// Reserved.
        pub reserved_1: u8 as Pad,
        /// Reserved.
        pub reserved_2: u16 as Pad,
        /// File name.
        pub filename: Text => Path,
    }
}

impl BuildId {
    /// Returns the bytes of the build ID.
    pub fn id(&self, misc: u16) -> &[u8] {
        let size = if misc & MISC_BUILD_ID_SIZE != 0 {
            usize::from(self.size)
        } else {
            20
        };
        self.build_id.get(..size).unwrap_or(&self.build_id)
    }

    /// Returns the size in bytes of a record (without header) whose name is padded to make the
    /// total a multiple of 8, as perf writes it since 6.12. A trailer may follow.
    pub(crate) fn aligned_len(body: &[u8]) -> Option<usize> {
        const NAME_AT: usize = 28;
        let name = body.get(NAME_AT..)?;
        let text = name.iter().position(|&b| b == 0)?;
        Some(text.saturating_add(NAME_AT + 1).next_multiple_of(8))
    }
}

wire! {
    /// A feature section in a pipe (4.14).
    pub struct HeaderFeature {
        /// Feature number; in the empty last record, the first number that the recorder does not
        /// know.
        pub feat_id: u64 => Number,
        /// The section, decoded according to the table of features.
        pub section: Rest as Opaque,
    }
}

wire! {
    /// Compressed records (5.2): the next piece of the recording's only zstd stream.
    pub struct Compressed {
        /// Compressed data: records in the recording's byte order.
        pub data: Rest as Opaque,
    }
}

wire! {
    /// Compressed records in a record of aligned size (6.15).
    pub struct Compressed2 {
        /// Size of the compressed data in bytes, without padding.
        pub data_size: u64 => Number,
        /// Compressed data: records in the recording's byte order.
        #[br(args_raw = Extent::Bytes(data_size))]
        pub data: Rest as Opaque,
        /// Padding to a multiple of 8.
        pub padding: Rest as Pad,
    }
}

wire! {
    /// Relation of the hardware's cycle counter to the recording's clock (4.6), as in
    /// `struct perf_event_mmap_page`.
    pub struct TimeConv(layout) {
        /// Shift.
        pub time_shift: u64 => Number,
        /// Multiplier.
        pub time_mult: u64 => Number,
        /// Time of cycle 0 in nanoseconds.
        pub time_zero: u64 as Hex => Clock,
        /// Fields for counters with fewer than 64 bits (5.11).
        #[br(if(layout.len >= 48))]
        pub short: Option<TimeConvShort>,
    }
}

wire! {
    /// Fields for a cycle counter with fewer than 64 bits.
    pub struct TimeConvShort {
        /// Cycles to add.
        pub time_cycles: u64 as Hex => Clock,
        /// Mask of the counter's bits.
        pub time_mask: u64 as Hex => Number,
        /// Whether `time_zero` is valid.
        pub cap_user_time_zero: u8 => Number,
        /// Whether `time_cycles` and `time_mask` are valid.
        pub cap_user_time_short: u8 => Number,
        /// Reserved.
        pub reserved: [u8; 6] as Pad,
    }
}

wire! {
    /// A variable of a BPF program.
    pub struct BpfMetadataEntry => Bpf {
        /// Name.
        pub key: Chars<64> => Bpf,
        /// Value.
        pub value: Chars<256> => Bpf,
    }
}
elements!(BpfMetadataEntry);

wire! {
    /// Metadata of a BPF program, from its variables named `bpf_metadata_*` (6.17).
    pub struct BpfMetadata => Bpf {
        /// Name of the program.
        pub prog_name: Chars<512> => Symbol,
        /// The variables.
        pub entries: Counted<u64, BpfMetadataEntry>,
    }
}
