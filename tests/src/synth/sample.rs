//! The layout of SAMPLE records: the fields in file order.

use super::attr::{Attr, Stamp, sample_type};
use super::bits::Bits;
use super::buf::{Buf, count, island};
use super::kernel_cases::read;

/// Bits of `read_format`, `PERF_FORMAT_*` in include/uapi/linux/perf_event.h.
#[allow(missing_docs, reason = "the kernel's names")]
pub mod read_format {
    pub const TOTAL_TIME_ENABLED: u64 = 1;
    pub const TOTAL_TIME_RUNNING: u64 = 2;
    pub const ID: u64 = 4;
    pub const GROUP: u64 = 8;
    pub const LOST: u64 = 16;
}

/// Bits of `branch_sample_type`, `PERF_SAMPLE_BRANCH_*`.
#[allow(missing_docs, reason = "the kernel's names")]
pub mod branch_sample_type {
    pub const USER: u64 = 1 << 0;
    pub const ANY: u64 = 1 << 3;
    pub const HW_INDEX: u64 = 1 << 17;
    pub const COUNTERS: u64 = 1 << 19;
}

/// Callchain entries that show the context of the following entries, `PERF_CONTEXT_*`.
#[allow(missing_docs, reason = "the kernel's names")]
pub mod context {
    pub const HV: u64 = -32i64 as u64;
    pub const KERNEL: u64 = -128i64 as u64;
    pub const USER: u64 = -512i64 as u64;
    pub const USER_DEFERRED: u64 = -640i64 as u64;
    pub const GUEST: u64 = -2048i64 as u64;
    pub const GUEST_KERNEL: u64 = -2176i64 as u64;
    pub const GUEST_USER: u64 = -2560i64 as u64;
}

/// Counter values as `read(2)` of a counter returns them.
#[derive(Clone, Debug, Default)]
pub struct Read {
    /// Nanoseconds during which the counter was enabled.
    pub enabled: u64,
    /// Nanoseconds during which it counted.
    pub running: u64,
    /// One value, or one for each member with GROUP.
    pub values: Vec<ReadValue>,
}

/// One counter of a [`Read`].
#[derive(Clone, Debug, Default)]
pub struct ReadValue {
    /// The count.
    pub value: u64,
    /// ID of the counter.
    pub id: u64,
    /// Samples lost.
    pub lost: u64,
}

impl Read {
    /// Appends the values in the layout for `read_format`; without GROUP, only the first one.
    pub fn put(&self, buf: Buf, read_format: u64) -> Buf {
        use read_format::*;
        let word = |buf: Buf, bit, value| {
            if read_format & bit != 0 {
                buf.u64(value)
            } else {
                buf
            }
        };
        let times = |buf| {
            let buf = word(buf, TOTAL_TIME_ENABLED, self.enabled);
            word(buf, TOTAL_TIME_RUNNING, self.running)
        };
        let rest = |buf, one: &ReadValue| word(word(buf, ID, one.id), LOST, one.lost);
        if read_format & GROUP != 0 {
            times(buf.u64(count(&self.values)))
                .each(&self.values, |buf, one| rest(buf.u64(one.value), one))
        } else {
            rest(times(buf.u64(self.values[0].value)), &self.values[0])
        }
    }
}

/// A branch stack.
#[derive(Clone, Debug, Default)]
pub struct BranchStack {
    /// Present with HW_INDEX, unless the kernel provided no stack.
    pub hw_idx: Option<u64>,
    /// From, to and flags, newest first.
    pub entries: Vec<(u64, u64, &'static str)>,
    /// One for each entry with COUNTERS, otherwise empty.
    pub counters: Vec<u64>,
}

/// User or kernel registers.
#[derive(Clone, Debug, Default)]
pub struct Regs {
    /// 0 none, 1 32-bit, 2 64-bit.
    pub abi: u64,
    /// One for each bit of the attribute's mask; empty if `abi` is 0.
    pub values: Vec<u64>,
}

/// A copy of the user stack.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// The reserved space, whether used or not.
    pub data: Vec<u8>,
    /// Size of the valid data; not written if no space is reserved.
    pub dyn_size: u64,
}

/// All fields of a sample. The attribute determines which ones are written.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the kernel's names")]
pub struct Sample {
    pub ip: u64,
    pub pid: u32,
    pub tid: u32,
    pub time: u64,
    pub addr: u64,
    pub id: u64,
    pub stream_id: u64,
    pub cpu: u32,
    pub period: u64,
    pub read: Read,
    pub callchain: Vec<u64>,
    pub raw: Vec<u8>,
    pub branch_stack: BranchStack,
    pub regs_user: Regs,
    pub stack_user: Stack,
    pub weight: u64,
    pub data_src: u64,
    pub transaction: u64,
    pub regs_intr: Regs,
    pub phys_addr: u64,
    pub cgroup: u64,
    pub data_page_size: u64,
    pub code_page_size: u64,
    pub aux: Vec<u8>,
}

impl Sample {
    /// Returns a sample at `stamp` with content in every field, and the registers for `attr`.
    pub fn rich(stamp: &Stamp, attr: &Attr) -> Self {
        let regs = |mask: u64, base| Regs {
            abi: 2,
            values: (0..mask.count_ones())
                .map(|n| base + u64::from(n))
                .collect(),
        };
        let branch = |n: u64, flags| (0x40_1000 + n, 0x40_2000 + n, flags);
        let hw_index = attr.branch_sample_type & branch_sample_type::HW_INDEX != 0;
        let counters = attr.branch_sample_type & branch_sample_type::COUNTERS != 0;
        Sample {
            ip: 0xffff_ffff_8112_3456,
            pid: stamp.pid,
            tid: stamp.tid,
            time: stamp.time,
            addr: 0x7fff_0000_1234,
            id: stamp.id,
            stream_id: stamp.stream_id,
            cpu: stamp.cpu,
            period: 250_000,
            read: read(stamp.id),
            callchain: vec![
                context::KERNEL,
                0xffff_ffff_8112_3456,
                context::USER,
                0x40_1234,
            ],
            raw: island(12),
            branch_stack: BranchStack {
                hw_idx: hw_index.then_some(7),
                entries: vec![
                    branch(0, "predicted cycles=513 type=3"),
                    branch(
                        1,
                        "mispred in_tx abort cycles=1 type=8 spec=2 new_type=9 priv=5",
                    ),
                    branch(2, ""),
                ],
                counters: if counters {
                    vec![0x11, 0x2200, 0x33_0000]
                } else {
                    Vec::new()
                },
            },
            regs_user: regs(attr.sample_regs_user, 0x1_0000_0100),
            stack_user: Stack {
                data: island(24),
                dyn_size: 17,
            },
            // The struct has a separate definition for each byte order, so that the number is the
            // same on both.
            weight: 0x0003_0002_0000_0001,
            data_src: 0x1234_5668_1002_0842,
            transaction: 0x0000_00ab_0000_0016,
            regs_intr: regs(attr.sample_regs_intr, 0x2_0000_0200),
            phys_addr: 0x1_2345_6000,
            cgroup: 0x1_0000_002a,
            data_page_size: 4096,
            code_page_size: 0x20_0000,
            aux: island(16),
        }
    }

    /// Appends the sample's body for `attr`.
    pub fn put(&self, mut b: Buf, attr: &Attr) -> Buf {
        use sample_type::*;
        let has = |bits| attr.sample_type & bits != 0;
        if has(IDENTIFIER) {
            b = b.u64(self.id);
        }
        if has(IP) {
            b = b.u64(self.ip);
        }
        if has(TID) {
            b = b.u32(self.pid).u32(self.tid);
        }
        if has(TIME) {
            b = b.u64(self.time);
        }
        if has(ADDR) {
            b = b.u64(self.addr);
        }
        if has(ID) {
            b = b.u64(self.id);
        }
        if has(STREAM_ID) {
            b = b.u64(self.stream_id);
        }
        if has(CPU) {
            b = b.u32(self.cpu).u32(0);
        }
        if has(PERIOD) {
            b = b.u64(self.period);
        }
        if has(READ) {
            b = self.read.put(b, attr.read_format);
        }
        if has(CALLCHAIN) {
            b = b.u64(count(&self.callchain)).u64s(&self.callchain);
        }
        if has(RAW) {
            assert_eq!(
                (4 + self.raw.len()) % 8,
                0,
                "the size and the data fill whole words"
            );
            b = b.u32(self.raw.len() as u32).bytes(&self.raw);
        }
        if has(BRANCH_STACK) {
            let stack = &self.branch_stack;
            b = b
                .u64(count(&stack.entries))
                .u64s(stack.hw_idx.as_slice())
                .each(&stack.entries, |b, (from, to, flags)| {
                    b.u64(*from).u64(*to).bits(&Bits::branch_flags(flags))
                })
                .u64s(&stack.counters);
        }
        if has(REGS_USER) {
            b = b.u64(self.regs_user.abi).u64s(&self.regs_user.values);
        }
        if has(STACK_USER) {
            let Stack { data, dyn_size } = &self.stack_user;
            b = b.u64(count(data)).bytes(data);
            if !data.is_empty() {
                b = b.u64(*dyn_size);
            }
        }
        if has(WEIGHT | WEIGHT_STRUCT) {
            b = b.u64(self.weight);
        }
        if has(DATA_SRC) {
            b = b.u64(self.data_src);
        }
        if has(TRANSACTION) {
            b = b.u64(self.transaction);
        }
        if has(REGS_INTR) {
            b = b.u64(self.regs_intr.abi).u64s(&self.regs_intr.values);
        }
        if has(PHYS_ADDR) {
            b = b.u64(self.phys_addr);
        }
        if has(CGROUP) {
            b = b.u64(self.cgroup);
        }
        if has(DATA_PAGE_SIZE) {
            b = b.u64(self.data_page_size);
        }
        if has(CODE_PAGE_SIZE) {
            b = b.u64(self.code_page_size);
        }
        if has(AUX) {
            b = b.u64(count(&self.aux)).bytes(&self.aux);
        }
        b
    }
}
