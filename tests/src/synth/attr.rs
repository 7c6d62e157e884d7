//! `perf_event_attr` and the sample_id trailer that it prescribes.

use super::bits::Bits;
use super::buf::Buf;

/// Bits of `sample_type`, `PERF_SAMPLE_*` in include/uapi/linux/perf_event.h.
#[allow(missing_docs, reason = "the kernel's names")]
pub mod sample_type {
    pub const IP: u64 = 1 << 0;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const WEIGHT: u64 = 1 << 14;
    pub const DATA_SRC: u64 = 1 << 15;
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const TRANSACTION: u64 = 1 << 17;
    pub const REGS_INTR: u64 = 1 << 18;
    pub const PHYS_ADDR: u64 = 1 << 19;
    pub const AUX: u64 = 1 << 20;
    pub const CGROUP: u64 = 1 << 21;
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    pub const CODE_PAGE_SIZE: u64 = 1 << 23;
    pub const WEIGHT_STRUCT: u64 = 1 << 24;

    /// The fields that a sample_id trailer repeats.
    pub const TRAILER: u64 = TID | TIME | ID | STREAM_ID | CPU | IDENTIFIER;
}

/// The size of `perf_event_attr` in each of its versions, oldest first (`PERF_ATTR_SIZE_VER*`).
pub const SIZES: [u32; 10] = [64, 72, 80, 96, 104, 112, 120, 128, 136, 144];

/// An event attribute. Only the first [`size`](Attr::size) bytes are written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the kernel's names")]
pub struct Attr {
    pub kind: u32,
    /// 0 means 64: the first kernels wrote 0.
    pub size: u32,
    pub config: u64,
    pub sample_period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    /// Names of [`ATTR_FLAGS`](super::bits::ATTR_FLAGS), separated by spaces.
    pub flags: String,
    pub wakeup_events: u32,
    pub bp_type: u32,
    pub config1: u64,
    pub config2: u64,
    pub branch_sample_type: u64,
    pub sample_regs_user: u64,
    pub sample_stack_user: u32,
    pub clockid: i32,
    pub sample_regs_intr: u64,
    pub aux_watermark: u32,
    pub sample_max_stack: u16,
    pub reserved_2: u16,
    pub aux_sample_size: u32,
    /// Names of [`AUX_ACTION`](super::bits::AUX_ACTION), separated by spaces.
    pub aux_action: String,
    pub sig_data: u64,
    pub config3: u64,
    pub config4: u64,
    /// Bytes of future fields after the 144 known bytes.
    pub tail: Vec<u8>,
}

impl Attr {
    /// Returns a sampling attribute of the newest size with the given `sample_type` and flags; all
    /// other fields are zero.
    pub fn new(sample_type: u64, flags: &str) -> Self {
        Attr {
            kind: 0,
            size: 144,
            config: 0,
            sample_period: 4000,
            sample_type,
            read_format: 0,
            flags: flags.to_owned(),
            wakeup_events: 0,
            bp_type: 0,
            config1: 0,
            config2: 0,
            branch_sample_type: 0,
            sample_regs_user: 0,
            sample_stack_user: 0,
            clockid: 0,
            sample_regs_intr: 0,
            aux_watermark: 0,
            sample_max_stack: 0,
            reserved_2: 0,
            aux_sample_size: 0,
            aux_action: String::new(),
            sig_data: 0,
            config3: 0,
            config4: 0,
            tail: Vec::new(),
        }
    }

    /// Returns an attribute of `size` bytes with a different value in every field. The flags
    /// include both ends of the word and the two-bit field in its middle.
    pub fn rich(size: u32) -> Self {
        Attr {
            kind: 4,
            size,
            config: 0x0102_0304_0506_0708,
            sample_period: 1_000_003,
            sample_type: sample_type::IP | sample_type::TID | sample_type::TIME | sample_type::CPU,
            read_format: 0x14,
            flags: "disabled inherit exclude_hv mmap comm freq task precise_ip=1 sample_id_all \
                    mmap2 ksymbol cgroup defer_output"
                .to_owned(),
            wakeup_events: 0x1112_1314,
            bp_type: 3,
            config1: 0x2122_2324_2526_2728,
            config2: 0x3132_3334_3536_3738,
            branch_sample_type: 0x2_0009,
            sample_regs_user: 0xff_0fff,
            sample_stack_user: 8192,
            clockid: -5,
            sample_regs_intr: 0x1_0187,
            aux_watermark: 0x4142_4344,
            sample_max_stack: 127,
            reserved_2: 0,
            aux_sample_size: 0x5152_5354,
            aux_action: "aux_pause".to_owned(),
            sig_data: 0x6162_6364_6566_6768,
            config3: 0x7172_7374_7576_7778,
            config4: 0x8182_8384_8586_8788,
            tail: (144..size).map(|at| at as u8).collect(),
        }
    }

    /// Returns whether the flag is set.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.split_whitespace().any(|name| name == flag)
    }

    /// Returns the size of the attribute in bytes.
    pub fn room(&self) -> usize {
        if self.size == 0 {
            64
        } else {
            self.size as usize
        }
    }

    /// Returns the attribute's bytes in one byte order, truncated to its size.
    pub fn bytes(&self, big: bool) -> Vec<u8> {
        let mut bytes = Buf::new(big)
            .u32(self.kind)
            .u32(self.size)
            .u64(self.config)
            .u64(self.sample_period)
            .u64(self.sample_type)
            .u64(self.read_format)
            .bits(&Bits::attr_flags(&self.flags))
            .u32(self.wakeup_events)
            .u32(self.bp_type)
            .u64(self.config1)
            .u64(self.config2)
            .u64(self.branch_sample_type)
            .u64(self.sample_regs_user)
            .u32(self.sample_stack_user)
            .i32(self.clockid)
            .u64(self.sample_regs_intr)
            .u32(self.aux_watermark)
            .u16(self.sample_max_stack)
            .u16(self.reserved_2)
            .u32(self.aux_sample_size)
            .bits(&Bits::aux_action(&self.aux_action))
            .u64(self.sig_data)
            .u64(self.config3)
            .u64(self.config4)
            .bytes(&self.tail)
            .bytes;
        assert!(
            self.room() <= bytes.len(),
            "an attribute of {} bytes has no content",
            self.size
        );
        bytes.truncate(self.room());
        bytes
    }

    /// Returns the sample_id trailer of a record of this attribute; empty without `sample_id_all`.
    pub fn trailer(&self, big: bool, stamp: &Stamp) -> Vec<u8> {
        use sample_type::*;
        let has = |bit| self.has("sample_id_all") && self.sample_type & bit != 0;
        let mut buf = Buf::new(big);
        if has(TID) {
            buf = buf.u32(stamp.pid).u32(stamp.tid);
        }
        if has(TIME) {
            buf = buf.u64(stamp.time);
        }
        if has(ID) {
            buf = buf.u64(stamp.id);
        }
        if has(STREAM_ID) {
            buf = buf.u64(stamp.stream_id);
        }
        if has(CPU) {
            buf = buf.u32(stamp.cpu).u32(0);
        }
        if has(IDENTIFIER) {
            buf = buf.u64(stamp.id);
        }
        buf.bytes
    }
}

/// The fields of a sample_id trailer, and the same fields of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Process ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
    /// Nanoseconds on the recording's clock.
    pub time: u64,
    /// ID of the event.
    pub id: u64,
    /// ID of the event's instance.
    pub stream_id: u64,
    /// CPU number.
    pub cpu: u32,
}

impl Stamp {
    /// The trailer of records that perf synthesizes.
    pub const ZERO: Stamp = Stamp {
        pid: 0,
        tid: 0,
        time: 0,
        id: 0,
        stream_id: 0,
        cpu: 0,
    };

    /// Returns process and thread ID.
    pub fn task(&self) -> (u32, u32) {
        (self.pid, self.tid)
    }

    /// A trailer in which all fields have different values.
    pub const SOME: Stamp = Stamp {
        pid: 4201,
        tid: 4202,
        time: 1_000_000_007,
        id: 1001,
        stream_id: 2001,
        cpu: 3,
    };
}
