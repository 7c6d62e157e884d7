//! The parts of a SAMPLE that are structures or have bits and codes of their own
//! (include/uapi/linux/perf_event.h).

use crate::attr::ReadFormat;
use crate::codes::{bitfield, codes};
use crate::wire::{ContextList, Extent, List, Rest, elements, wire};

wire! {
    /// One counter's value in a group.
    pub struct GroupValue(layout) {
        /// The count.
        pub value: u64 => Number,
        /// Event ID.
        #[br(if(layout.read_format.has(ReadFormat::ID)))]
        pub id: Option<u64> as Id,
        /// Samples lost (6.0).
        #[br(if(layout.read_format.has(ReadFormat::LOST)))]
        pub lost: Option<u64> => Number,
    }
}

wire! {
    /// The result of read(2) on the event: one counter or, with GROUP, all counters of its group.
    pub struct ReadValue(layout) {
        /// The count, without GROUP.
        #[br(if(!layout.read_format.has(ReadFormat::GROUP)))]
        pub value: Option<u64> => Number,
        /// Number of counters, with GROUP.
        #[br(if(layout.read_format.has(ReadFormat::GROUP)))]
        pub nr: Option<u64> => Number,
        /// Nanoseconds that the event was enabled.
        #[br(if(layout.read_format.has(ReadFormat::TOTAL_TIME_ENABLED)))]
        pub time_enabled: Option<u64> => Number,
        /// Nanoseconds that the event was on the PMU.
        #[br(if(layout.read_format.has(ReadFormat::TOTAL_TIME_RUNNING)))]
        pub time_running: Option<u64> => Number,
        /// Event ID, without GROUP.
        #[br(if(layout.read_format.has(ReadFormat::ID) && !layout.read_format.has(ReadFormat::GROUP)))]
        pub id: Option<u64> as Id,
        /// Samples lost, without GROUP (6.0).
        #[br(if(layout.read_format.has(ReadFormat::LOST) && !layout.read_format.has(ReadFormat::GROUP)))]
        pub lost: Option<u64> => Number,
        /// The counters of the group, leader first.
        #[br(args(nr.unwrap_or(0), layout))]
        pub values: ContextList<GroupValue>,
    }
}

codes! {
    /// Context markers inside a callchain, `enum perf_callchain_context`: the addresses after a
    /// marker belong to its context.
    pub struct CallchainContext: u64 {
        0xffff_ffff_ffff_ffe0 HV "PERF_CONTEXT_HV",
        0xffff_ffff_ffff_ff80 KERNEL "PERF_CONTEXT_KERNEL",
        0xffff_ffff_ffff_fe00 USER "PERF_CONTEXT_USER",
        0xffff_ffff_ffff_fd80 USER_DEFERRED "PERF_CONTEXT_USER_DEFERRED",
        0xffff_ffff_ffff_f800 GUEST "PERF_CONTEXT_GUEST",
        0xffff_ffff_ffff_f780 GUEST_KERNEL "PERF_CONTEXT_GUEST_KERNEL",
        0xffff_ffff_ffff_f600 GUEST_USER "PERF_CONTEXT_GUEST_USER",
    }
}

impl CallchainContext {
    /// Words from here on are markers, not addresses (`PERF_CONTEXT_MAX`).
    pub const FIRST: u64 = 0xffff_ffff_ffff_f001;

    /// Returns the marker in `word` of a callchain, if it is one.
    #[inline]
    pub fn of(word: u64) -> Option<Self> {
        (word >= Self::FIRST).then_some(Self(word))
    }
}

/// The cookie at the end of a callchain whose user part comes later: the last words are
/// [`USER_DEFERRED`](CallchainContext::USER_DEFERRED) and the cookie of a CALLCHAIN_DEFERRED record
/// (6.19).
#[inline]
pub fn deferred_cookie(mut callchain: impl DoubleEndedIterator<Item = u64>) -> Option<u64> {
    let cookie = callchain.next_back()?;
    (callchain.next_back()? == CallchainContext::USER_DEFERRED.0).then_some(cookie)
}

bitfield! {
    /// Properties of one branch, `struct perf_branch_entry`.
    pub struct BranchFlags: mirrored u64 {
        /// The target was mispredicted.
        mispred with_mispred 0 1 since "3.4",
        /// The target was predicted.
        predicted with_predicted 1 1 since "3.4",
        /// In a transaction.
        in_tx with_in_tx 2 1 since "3.11",
        /// Aborted a transaction.
        abort with_abort 3 1 since "3.11",
        /// Cycles since the last branch.
        cycles with_cycles 4 16 since "4.3",
        /// Type of branch, `PERF_BR_*`.
        kind with_kind 20 4 since "4.14",
        /// Speculation, `PERF_BR_SPEC_*`.
        spec with_spec 24 2 since "6.1",
        /// Further types of branch, `PERF_BR_NEW_*`.
        new_kind with_new_kind 26 4 since "6.1",
        /// Privilege, `PERF_BR_PRIV_*`.
        privilege with_privilege 30 3 since "6.1",
        /// Conditional, and not taken (tools/perf/util/branch.h, 6.15; the kernel does not set it).
        not_taken with_not_taken 33 1 since "6.15",
    }
}

wire! {
    /// One taken branch.
    pub struct BranchEntry {
        /// Address of the branch.
        pub from: u64 as Address,
        /// Its target.
        pub to: u64 as Address,
        /// Properties.
        pub flags: BranchFlags,
    }
}
elements!(BranchEntry);

wire! {
    /// The last branches, newest first (3.4).
    pub struct BranchStack(layout) {
        /// Number of branches.
        pub nr: u64 => Number,
        /// Index of the first branch in the hardware's buffer (5.7).
        #[br(if(layout.branch_form.hw_idx))]
        pub hw_idx: Option<u64> => Number,
        /// The branches.
        #[br(args(nr))]
        pub entries: List<BranchEntry>,
        /// Event counts between branches, one word each (6.8).
        #[br(args(if layout.branch_form.counters { nr } else { 0 }))]
        pub counters: List<u64> as Hex => Number,
    }
}

codes! {
    /// The register set of a sample, `enum perf_sample_regs_abi`.
    pub struct RegsAbi: u64 {
        0 NONE "none",
        1 BITS_32 "32-bit",
        2 BITS_64 "64-bit",
    }
}

wire! {
    /// Registers, one u64 each for the bits of the attribute's mask, ascending.
    pub struct Regs(layout) {
        /// Word size of the task, or none.
        pub abi: RegsAbi,
        /// Values.
        #[br(args(if abi == RegsAbi::NONE { 0 } else { u64::from(layout.regs.count_ones()) }))]
        pub regs: List<u64> as Hex => Registers,
    }
}

wire! {
    /// A copy of the top of the user stack (3.7).
    pub struct StackUser {
        /// Size of the copy in bytes.
        pub size: u64 => Number,
        /// The reserved space. Only the first `dyn_size` bytes are the stack; the others are old
        /// content of the ring buffer.
        #[br(args_raw = Extent::Bytes(size))]
        pub data: Rest => Memory,
        /// Number of copied bytes; absent if `size` is 0.
        #[br(if(size != 0))]
        pub dyn_size: Option<u64> => Number,
    }
}

bitfield! {
    /// Costs of a sample, `union perf_sample_weight` (include/uapi/linux/perf_event.h, 5.12). The
    /// meaning of each field depends on the processor; the first is the value of WEIGHT alone.
    pub struct Weights: numeric u64 {
        /// On x86 the latency of the whole access in cycles.
        var1_dw with_var1_dw 0 32 since "5.12",
        /// On x86 the latency of the instruction in cycles.
        var2_w with_var2_w 32 16 since "5.12",
        /// On x86 cycles from one retired instruction to the next.
        var3_w with_var3_w 48 16 since "5.12",
    }
}

bitfield! {
    /// Source of sampled data, `union perf_mem_data_src`. The values of each field are flags or
    /// codes named `PERF_MEM_*` there.
    pub struct DataSource: numeric u64 {
        /// Load, store, prefetch or execution.
        op with_op 0 5 since "3.10",
        /// Level of the memory hierarchy, hit or miss.
        level with_level 5 14 since "3.10",
        /// Result of snooping.
        snoop with_snoop 19 5 since "3.10",
        /// Locked access.
        lock with_lock 24 2 since "3.10",
        /// Result of the TLB lookup.
        tlb with_tlb 26 7 since "3.10",
        /// Level as a number.
        level_number with_level_number 33 4 since "4.14",
        /// Remote.
        remote with_remote 37 1 since "4.14",
        /// More results of snooping.
        snoop_more with_snoop_more 38 2 since "4.14",
        /// Cause that blocked the access.
        blocked with_blocked 40 3 since "5.12",
        /// Hops to the datum.
        hops with_hops 43 3 since "5.16",
        /// Memory region.
        region with_region 46 5 since "7.0",
    }
}

#[cfg(test)]
mod tests {
    use binrw::Endian;

    use super::*;

    /// A flag of perf itself (`perf inject --itrace` of Arm SPE), mirrored like the kernel's flags.
    #[test]
    fn branches_that_were_not_taken() {
        let flags = BranchFlags::default().with_not_taken(true);
        assert_eq!(
            (flags.0, flags.not_taken(), flags.unknown()),
            (1 << 33, 1, 0)
        );
        assert_eq!(
            (flags.to_wire(Endian::Little), flags.to_wire(Endian::Big)),
            (1 << 33, 1 << 30)
        );
    }
}
