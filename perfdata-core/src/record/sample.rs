//! SAMPLE and the `sample_id` trailer: the attribute's `sample_type` determines which parts are
//! present (include/uapi/linux/perf_event.h, enum perf_event_type; kernel/events/core.c,
//! perf_output_sample).

use binrw::Endian;

use crate::attr::{ReadFormat, SampleType};
use crate::codes::{bitfield, codes};
use crate::decode_context::DecodeContext;
use crate::record::RecordHeader;
use crate::record::parts::{InWord, WORD, all, parts, place};
use crate::record::words::{halves, word_of};
use crate::wire::{ContextList, Counted, Extent, List, Rest, decode_words, elements, wire};

wire! {
    /// Process and thread.
    #[derive(Copy, Eq, Default)]
    pub struct Tid {
        /// Process ID in the recorder's namespace; `u32::MAX` if the task is outside of the
        /// namespace or has exited.
        pub pid: u32 as Pid,
        /// Thread ID.
        pub tid: u32 as Pid,
    }
}

wire! {
    /// The CPU that the event happened on.
    #[derive(Copy, Eq, Default)]
    pub struct Cpu {
        /// CPU number.
            pub cpu: u32 as Cpu,
        /// Reserved, 0.
        pub reserved: u32 as Pad,
    }
}

impl InWord for Tid {
    #[inline]
    fn of_word(word: u64, endian: Endian) -> Self {
        let (pid, tid) = halves(word, endian);
        Tid { pid, tid }
    }

    #[inline]
    fn into_word(self, endian: Endian) -> u64 {
        word_of((self.pid, self.tid), endian)
    }
}

impl InWord for Cpu {
    #[inline]
    fn of_word(word: u64, endian: Endian) -> Self {
        let (cpu, reserved) = halves(word, endian);
        Cpu { cpu, reserved }
    }

    #[inline]
    fn into_word(self, endian: Endian) -> u64 {
        word_of((self.cpu, self.reserved), endian)
    }
}

parts! {
    /// The trailer of kernel records other than SAMPLE, with the flag `sample_id_all` (2.6.38). Its
    /// parts are read from the end of the record. A new trailer must have exactly the parts in the
    /// event's `sample_type`.
    #[derive(Default)]
    pub struct SampleId(layout) {
        words {
            /// Process and thread.
            TID pair tid: Tid,
            /// Nanoseconds on the recording's clock.
            TIME word time: u64 as Time,
            /// Event ID.
            ID word id: u64 as Id,
            /// ID of the event's instance (one per CPU and task).
            STREAM_ID word stream_id: u64 as StreamId,
            /// CPU.
            CPU pair cpu: Cpu,
            /// Event ID at a fixed position: the last word (3.12).
            IDENTIFIER word identifier: u64 as Id,
        }
        counted {}
        others {}
    }
}

impl SampleId {
    /// Returns the size of a trailer in bytes.
    pub fn len(sample_type: SampleType) -> usize {
        ((sample_type.0 & Self::PARTS.0).count_ones() as usize).saturating_mul(WORD)
    }

    /// Returns those parts of `sample_type` that a trailer has.
    pub fn parts_of(sample_type: SampleType) -> SampleType {
        SampleType(sample_type.0 & Self::PARTS.0)
    }

    /// Returns the offset of `part` in a trailer, in bytes from its end.
    #[inline]
    pub(crate) fn from_end(sample_type: SampleType, part: SampleType) -> Option<usize> {
        let behind = Self::WORDS.iter().rev().take_while(|&&word| word != part);
        place(sample_type, part, behind).map(|behind| behind.saturating_add(WORD))
    }
}

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

impl DecodeContext {
    /// Returns the parts of a SAMPLE whose position is certain. New parts are inserted before AUX,
    /// and new words of a read value before all parts that follow it; the data after the certain
    /// parts remains bytes.
    pub(crate) fn placed_parts(&self) -> SampleType {
        let mut parts = self.sample_type;
        if parts.unknown() != 0 {
            parts.0 &= SampleType::KNOWN.0 & !SampleType::AUX.0;
        }
        if parts.has(SampleType::READ) && self.read_format.unknown() != 0 {
            parts.0 &= all(&Sample::WORDS).0;
        }
        parts
    }
}

parts! {
    /// One occurrence of an event (2.6.31). Parts are in file order. The event's `sample_type`
    /// determines which parts are present; a new sample must have exactly these parts.
    #[derive(Default)]
    pub struct Sample(layout) {
        words {
            /// Event ID at a fixed position (3.12).
            IDENTIFIER word identifier: u64 as Id,
            /// Instruction pointer.
            IP word ip: u64 as Address,
            /// Process and thread.
            TID pair tid: Tid,
            /// Nanoseconds on the recording's clock.
            TIME word time: u64 as Time,
            /// Data address.
            ADDR word addr: u64 as Address,
            /// Event ID.
            ID word id: u64 as Id,
            /// ID of the event's instance.
            STREAM_ID word stream_id: u64 as StreamId,
            /// CPU.
            CPU pair cpu: Cpu,
            /// Events since the last sample.
            PERIOD word period: u64 => Number,
        }
        counted {
            /// Counter values.
            READ(layout) read: ReadValue,
            /// Return addresses, innermost first, with [`CallchainContext`] markers between them.
            CALLCHAIN callchain: Counted<u64, u64> as Callchain,
            /// Raw data of a tracepoint or PMU, in the recording machine's layout, with padding.
            RAW raw: Counted<u32, u8> => Raw,
        }
        others {
            /// The last branches.
            BRANCH_STACK(layout) branch_stack: BranchStack,
            /// User registers (3.7).
            REGS_USER(layout.with_regs(layout.sample_regs_user)) regs_user: Regs => Registers,
            /// User stack (3.7).
            STACK_USER stack_user: StackUser => Memory,
            /// Cost, in the unit of the event (3.10).
            WEIGHT weight: u64 => Number,
            /// Several costs (5.12), if [`weight`](Self::weight) is not requested.
            WEIGHT_STRUCT[unless WEIGHT] weight_struct: Weights,
            /// Source of the data, `union perf_mem_data_src` (3.10).
            DATA_SRC data_src: DataSource,
            /// Transaction flags in bits 0–7, abort code in bits 32–63 (3.13).
            TRANSACTION transaction: u64 as Hex => Number,
            /// Registers at the interrupt (3.19).
            REGS_INTR(layout.with_regs(layout.sample_regs_intr)) regs_intr: Regs => Registers,
            /// Physical data address (4.14).
            PHYS_ADDR phys_addr: u64 as Hex => PhysicalAddress,
            /// ID of the cgroup (5.7).
            CGROUP cgroup: u64 as CgroupId,
            /// Page size at the data address in bytes (5.11).
            DATA_PAGE_SIZE data_page_size: u64 => Number,
            /// Page size at the instruction in bytes (5.11).
            CODE_PAGE_SIZE code_page_size: u64 => Number,
            /// Piece of an AUX trace (5.5).
            AUX aux: Counted<u64, u8> => Trace,
        }
    }
}

const _: () = assert!(
    Sample::PARTS.0 == SampleType::KNOWN.0,
    "every bit of sample_type has its part"
);

impl Sample {
    /// The parts that [`of_words`](Self::of_words) reads: words, CALLCHAIN and RAW.
    const USUAL: SampleType =
        SampleType(all(&Self::WORDS).0 | all(&Self::COUNTED).0 & !SampleType::READ.0);

    /// Returns the offset of `part`, which is a word, in a SAMPLE, in bytes from the start of the
    /// record.
    pub(crate) fn from_start(sample_type: SampleType, part: SampleType) -> Option<usize> {
        let before = Self::WORDS.iter().take_while(|&&word| word != part);
        place(sample_type, part, before).map(|before| before.saturating_add(RecordHeader::SIZE))
    }

    /// Decodes a sample with `parts` in a fraction of the time if it contains only the most common
    /// parts and they use all of `bytes`; returns `None` for all other samples, corrupt or not.
    pub(super) fn of_words(bytes: &[u8], endian: Endian, parts: SampleType) -> Option<Self> {
        if parts.0 & !Self::USUAL.0 != 0 {
            return None;
        }
        let mut rest = bytes;
        let mut word = || -> Option<u64> {
            let (word, behind) = rest.split_first_chunk()?;
            rest = behind;
            Some(if endian == Endian::Little {
                u64::from_le_bytes(*word)
            } else {
                u64::from_be_bytes(*word)
            })
        };
        let mut part = |part| {
            if parts.has(part) {
                word().map(Some)
            } else {
                Some(None)
            }
        };
        let mut sample = Sample {
            identifier: part(SampleType::IDENTIFIER)?,
            ip: part(SampleType::IP)?,
            tid: part(SampleType::TID)?.map(|word| Tid::of_word(word, endian)),
            time: part(SampleType::TIME)?,
            addr: part(SampleType::ADDR)?,
            id: part(SampleType::ID)?,
            stream_id: part(SampleType::STREAM_ID)?,
            cpu: part(SampleType::CPU)?.map(|word| Cpu::of_word(word, endian)),
            period: part(SampleType::PERIOD)?,
            ..Sample::default()
        };
        if let Some(nr) = part(SampleType::CALLCHAIN)? {
            let (chain, behind) =
                rest.split_at_checked(usize::try_from(nr).ok()?.checked_mul(8)?)?;
            sample.callchain = Some(decode_words(chain, endian).into());
            rest = behind;
        }
        if parts.has(SampleType::RAW) {
            let (size, raw) = rest.split_first_chunk()?;
            let size = if endian == Endian::Little {
                u32::from_le_bytes(*size)
            } else {
                u32::from_be_bytes(*size)
            };
            let (raw, behind) = raw.split_at_checked(usize::try_from(size).ok()?)?;
            sample.raw = Some(raw.to_vec().into());
            rest = behind;
        }
        rest.is_empty().then_some(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{Content, Rewrite, Rewriter};
    use crate::record::parts::{bytes_of, number};
    use crate::wire::Wire;

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

    /// Replaces every value by a number that depends on its name, its size and its content.
    struct Other;

    impl Rewriter for Other {
        fn number(&mut self, name: &'static str, value: u64, size: usize, content: Content) -> u64 {
            let other = (value ^ (name.len() as u64) << 9).wrapping_mul(3) ^ content as u64;
            other & u64::MAX >> (64 - 8 * size)
        }

        fn text(&mut self, _: &'static str, _: &[u8], _: usize, _: Content) -> Option<Vec<u8>> {
            None
        }

        fn bytes(&mut self, _: &'static str, _: &mut [u8], _: Content) {}
    }

    /// Collects all numbers.
    #[derive(Default)]
    struct Seen(Vec<u64>);

    impl Rewriter for Seen {
        fn number(&mut self, _: &'static str, value: u64, _: usize, _: Content) -> u64 {
            self.0.push(value);
            !value
        }

        fn text(&mut self, _: &'static str, _: &[u8], _: usize, _: Content) -> Option<Vec<u8>> {
            None
        }

        fn bytes(&mut self, _: &'static str, _: &mut [u8], _: Content) {}
    }

    /// Every combination of the most common parts, in both byte orders: samples are changed in place
    /// as by decoding and encoding them, or not at all.
    #[test]
    fn words_are_changed_in_place() {
        let parts: Vec<u64> = (0..64)
            .map(|bit| 1 << bit)
            .filter(|bit| Sample::USUAL.0 & bit != 0)
            .collect();
        let (mut changed, mut others) = (0, 0);
        for choice in 0..1_u64 << parts.len() {
            let bits = parts
                .iter()
                .enumerate()
                .filter(|(at, _)| choice >> at & 1 == 1);
            let sample_type = SampleType(bits.fold(0, |all, (_, bit)| all | bit));
            for endian in [Endian::Little, Endian::Big] {
                let body = sample(sample_type, endian);
                let layout = DecodeContext {
                    sample_type,
                    len: body.len() as u64,
                    ..DecodeContext::default()
                };
                let offsets = crate::record::SampleOffsets::of(&layout);
                let mut expected = Sample::decode(&body, endian, layout).unwrap().0;
                expected.rewrite("", Content::Fields, &mut Other);
                for extra in [0, 8] {
                    let header = RecordHeader {
                        kind: crate::record::RecordType::SAMPLE,
                        misc: 2,
                        size: u16::try_from(body.len() + RecordHeader::SIZE + extra).unwrap(),
                    };
                    let mut bytes = Vec::new();
                    header.encode_into(&mut bytes, endian).unwrap();
                    bytes.extend_from_slice(&body);
                    bytes.resize(bytes.len() + extra, 7);
                    let before = bytes.clone();
                    let mut seen = Seen::default();
                    let is_inspected = offsets.inspect(&bytes, endian, &mut seen, |seen, words| {
                        seen.0
                            .extend(words.iter().map(|word| number(*word, endian)));
                    });
                    let is_done =
                        offsets.rewrite(&mut bytes, endian, &mut Other, |other, words| {
                            for word in words {
                                let mut new = [number(*word, endian)];
                                other.words("callchain", &mut new, Content::Callchain);
                                *word = bytes_of(new[0], endian);
                            }
                        });
                    assert_eq!(is_inspected, is_done, "{sample_type:?}");
                    let is_possible = extra == 0 && !sample_type.has(SampleType::RAW);
                    assert_eq!(is_done, is_possible, "{sample_type:?}");
                    if !is_done {
                        assert_eq!(bytes, before, "{sample_type:?}");
                        others += 1;
                        continue;
                    }
                    let (made, _) =
                        Sample::decode(&bytes[RecordHeader::SIZE..], endian, layout).unwrap();
                    assert_eq!(made, expected, "{sample_type:?}");
                    let mut decoded = Seen::default();
                    let mut sample = Sample::decode(&body, endian, layout).unwrap().0;
                    sample.rewrite("", Content::Fields, &mut decoded);
                    assert_eq!(seen.0, decoded.0, "{sample_type:?}");
                    changed += 1;
                }
            }
        }
        assert!(changed > 1000 && others > changed, "{changed} {others}");
    }

    /// Every combination of the most common parts, in both byte orders: whole, truncated anywhere,
    /// with extra bytes.
    #[test]
    fn words_are_what_the_declaration_says() {
        let parts: Vec<u64> = (0..64)
            .map(|bit| 1 << bit)
            .filter(|bit| Sample::USUAL.0 & bit != 0)
            .collect();
        let mut compared = 0;
        for choice in 0..1_u64 << parts.len() {
            let bits = parts
                .iter()
                .enumerate()
                .filter(|(at, _)| choice >> at & 1 == 1);
            let sample_type = SampleType(bits.fold(0, |all, (_, bit)| all | bit));
            for endian in [Endian::Little, Endian::Big] {
                let bytes = sample(sample_type, endian);
                for len in 0..bytes.len() + 8 {
                    let mut bytes = bytes.clone();
                    bytes.resize(len, 7);
                    let layout = DecodeContext {
                        sample_type,
                        len: len as u64,
                        ..DecodeContext::default()
                    };
                    let declared = Sample::decode(&bytes, endian, layout);
                    let declared = declared
                        .ok()
                        .filter(|(_, used)| *used == len)
                        .map(|(sample, _)| sample);
                    assert_eq!(
                        Sample::of_words(&bytes, endian, sample_type),
                        declared,
                        "{sample_type:?}, {len} bytes"
                    );
                    compared += usize::from(declared.is_some());
                }
            }
        }
        assert!(compared >= 2 << parts.len());
        assert_eq!(
            Sample::of_words(&[0; 8], Endian::Little, SampleType::WEIGHT),
            None
        );
    }

    /// Different words, then a callchain of three and RAW data of five bytes.
    fn sample(parts: SampleType, endian: Endian) -> Vec<u8> {
        let counted = SampleType::CALLCHAIN.0 | SampleType::RAW.0;
        let mut words: Vec<u64> = (0..u64::from((parts.0 & !counted).count_ones()))
            .map(|at| 0x0102_0304_0506_0708 * (at + 1))
            .collect();
        if parts.has(SampleType::CALLCHAIN) {
            words.extend([3, 0xffff_ffff_ffff_fe00, 0x10, 0x20]);
        }
        let mut bytes = crate::wire::encode_words(&words, endian);
        if parts.has(SampleType::RAW) {
            bytes.extend(if endian == Endian::Little {
                5_u32.to_le_bytes()
            } else {
                5_u32.to_be_bytes()
            });
            bytes.extend(*b"bytes");
        }
        bytes
    }
}
