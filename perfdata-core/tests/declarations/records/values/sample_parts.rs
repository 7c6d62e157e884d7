//! Parts of SAMPLE that no recording contains.

use perfdata_core::attr::SampleType as T;
use perfdata_core::decode_context::{BranchForm, DecodeContext};
use perfdata_core::record::*;
use perfdata_core::wire::{List, Rest};

use super::{Case, bytes, cases, sample};

cases! {
    /// Kernel layout: only entries.
    fn sample_branches() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 0,
            body: Body::Sample(Sample {
                branch_stack: Some(BranchStack {
                    nr: 2,
                    hw_idx: None,
                    entries: List(vec![
                        BranchEntry {
                            from: 0xffff_ffff_8100_0123,
                            to: 0xffff_ffff_8100_0456,
                            flags: BranchFlags(0x1_4031_2341),
                        },
                        BranchEntry {
                            from: 0x40_1000,
                            to: 0x40_2000,
                            flags: BranchFlags(0x2500_0002),
                        },
                    ]),
                    counters: List(vec![]),
                }),
                weight: Some(7),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::BRANCH_STACK | T::WEIGHT),
        "09000000 0000 4800 0200000000000000 23010081ffffffff 56040081ffffffff 4123314001000000
         0010400000000000 0020400000000000 0200002500000000 0700000000000000",
        "00000009 0000 0048 0000000000000002 ffffffff81000123 ffffffff81000456 8123430280000000
         0000000000401000 0000000000402000 4000006400000000 0000000000000007",
    }

    /// Kernel layout: with the index of the first entry.
    fn sample_branches_index() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 0,
            body: Body::Sample(Sample {
                branch_stack: Some(BranchStack {
                    nr: 2,
                    hw_idx: Some(0xabc),
                    entries: List(vec![
                        BranchEntry {
                            from: 0xffff_ffff_8100_0123,
                            to: 0xffff_ffff_8100_0456,
                            flags: BranchFlags(0x1_4031_2341),
                        },
                        BranchEntry {
                            from: 0x40_1000,
                            to: 0x40_2000,
                            flags: BranchFlags(0x2500_0002),
                        },
                    ]),
                    counters: List(vec![]),
                }),
                weight: Some(7),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::BRANCH_STACK | T::WEIGHT).with_branch_form(BranchForm { hw_idx: true, counters: false }),
        "09000000 0000 5000 0200000000000000 bc0a000000000000 23010081ffffffff 56040081ffffffff
         4123314001000000 0010400000000000 0020400000000000 0200002500000000 0700000000000000",
        "00000009 0000 0050 0000000000000002 0000000000000abc ffffffff81000123 ffffffff81000456
         8123430280000000 0000000000401000 0000000000402000 4000006400000000 0000000000000007",
    }

    /// Kernel layout: with counters.
    fn sample_branches_counters() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 0,
            body: Body::Sample(Sample {
                branch_stack: Some(BranchStack {
                    nr: 2,
                    hw_idx: Some(0xabc),
                    entries: List(vec![
                        BranchEntry {
                            from: 0xffff_ffff_8100_0123,
                            to: 0xffff_ffff_8100_0456,
                            flags: BranchFlags(0x1_4031_2341),
                        },
                        BranchEntry {
                            from: 0x40_1000,
                            to: 0x40_2000,
                            flags: BranchFlags(0x2500_0002),
                        },
                    ]),
                    counters: List(vec![0x1122, 0x3344]),
                }),
                weight: Some(7),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::BRANCH_STACK | T::WEIGHT).with_branch_form(BranchForm { hw_idx: true, counters: true }),
        "09000000 0000 6000 0200000000000000 bc0a000000000000 23010081ffffffff 56040081ffffffff
         4123314001000000 0010400000000000 0020400000000000 0200002500000000 2211000000000000 4433000000000000
         0700000000000000",
        "00000009 0000 0060 0000000000000002 0000000000000abc ffffffff81000123 ffffffff81000456
         8123430280000000 0000000000401000 0000000000402000 4000006400000000 0000000000001122 0000000000003344
         0000000000000007",
    }

    /// Kernel layout: counters requested by another event of the group.
    fn sample_branches_counters_of_the_group() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 0,
            body: Body::Sample(Sample {
                branch_stack: Some(BranchStack {
                    nr: 2,
                    hw_idx: Some(0xabc),
                    entries: List(vec![
                        BranchEntry {
                            from: 0xffff_ffff_8100_0123,
                            to: 0xffff_ffff_8100_0456,
                            flags: BranchFlags(0x1_4031_2341),
                        },
                        BranchEntry {
                            from: 0x40_1000,
                            to: 0x40_2000,
                            flags: BranchFlags(0x2500_0002),
                        },
                    ]),
                    counters: List(vec![0x1122, 0x3344]),
                }),
                weight: Some(7),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::BRANCH_STACK | T::WEIGHT).with_branch_form(BranchForm { hw_idx: true, counters: false }),
        "09000000 0000 6000 0200000000000000 bc0a000000000000 23010081ffffffff 56040081ffffffff
         4123314001000000 0010400000000000 0020400000000000 0200002500000000 2211000000000000 4433000000000000
         0700000000000000",
        "00000009 0000 0060 0000000000000002 0000000000000abc ffffffff81000123 ffffffff81000456
         8123430280000000 0000000000401000 0000000000402000 4000006400000000 0000000000001122 0000000000003344
         0000000000000007",
    }

    /// Kernel layout: one branch without an index, and a counter requested by another event of the
    /// group.
    fn sample_branch_counter_of_the_group() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 0,
            body: Body::Sample(Sample {
                branch_stack: Some(BranchStack {
                    nr: 1,
                    hw_idx: None,
                    entries: List(vec![BranchEntry {
                        from: 0x40_1000,
                        to: 0x40_2000,
                        flags: BranchFlags(0x2500_0002),
                    }]),
                    counters: List(vec![0x1122]),
                }),
                weight: Some(7),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::BRANCH_STACK | T::WEIGHT),
        "09000000 0000 3800 0100000000000000 0010400000000000 0020400000000000 0200002500000000
         2211000000000000 0700000000000000",
        "00000009 0000 0038 0000000000000001 0000000000401000 0000000000402000 4000006400000000
         0000000000001122 0000000000000007",
    }

    /// Kernel layout: no stack, and therefore no index.
    fn sample_branches_none() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 0,
            body: Body::Sample(Sample {
                branch_stack: Some(BranchStack { nr: 0, hw_idx: None, entries: List(vec![]), counters: List(vec![]) }),
                weight: Some(7),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::BRANCH_STACK | T::WEIGHT).with_branch_form(BranchForm { hw_idx: true, counters: false }),
        "09000000 0000 1800 0000000000000000 0700000000000000",
        "00000009 0000 0018 0000000000000000 0000000000000007",
    }

    /// Kernel layout: 16 bytes of stack, 8 of them copied.
    fn sample_stack() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 0,
            body: Body::Sample(Sample {
                regs_user: Some(Regs { abi: RegsAbi::BITS_64, regs: List(vec![0x1234, 0xab_cdef]) }),
                stack_user: Some(StackUser {
                    size: 16,
                    data: Rest(bytes("101112131415161718191a1b1c1d1e1f")),
                    dyn_size: Some(8),
                }),
                cgroup: Some(9),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::REGS_USER | T::STACK_USER | T::CGROUP).with_sample_regs_user(0x101),
        "09000000 0000 4800 0200000000000000 3412000000000000 efcdab0000000000 1000000000000000
         101112131415161718191a1b1c1d1e1f 0800000000000000 0900000000000000",
        "00000009 0000 0048 0000000000000002 0000000000001234 0000000000abcdef 0000000000000010
         101112131415161718191a1b1c1d1e1f 0000000000000008 0000000000000009",
    }

    /// Kernel layout: neither registers nor stack.
    fn sample_no_stack() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 0,
            body: Body::Sample(Sample {
                regs_user: Some(Regs { abi: RegsAbi::NONE, regs: List(vec![]) }),
                stack_user: Some(StackUser { size: 0, data: Rest(vec![]), dyn_size: None }),
                cgroup: Some(9),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::REGS_USER | T::STACK_USER | T::CGROUP).with_sample_regs_user(0x101),
        "09000000 0000 2000 0000000000000000 0000000000000000 0900000000000000",
        "00000009 0000 0020 0000000000000000 0000000000000000 0000000000000009",
    }

    /// Kernel layout: weights are one number in both byte orders.
    fn sample_memory() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 0,
            body: Body::Sample(Sample {
                weight_struct: Some(Weights(0x3_0002_0000_0001)),
                data_src: Some(DataSource(0x2_0a35_0208_0842)),
                transaction: Some(0xff_0000_0021),
                phys_addr: Some(0x1_2345_6789),
                code_page_size: Some(4096),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::DATA_SRC | T::TRANSACTION | T::PHYS_ADDR | T::CODE_PAGE_SIZE | T::WEIGHT_STRUCT),
        "09000000 0000 3000 0100000002000300 42080802350a0200 21000000ff000000 8967452301000000
         0010000000000000",
        "00000009 0000 0030 0003000200000001 00020a3502080842 000000ff00000021 0000000123456789
         0000000000001000",
    }

    /// Kernel layout: a piece of an AUX trace.
    fn sample_aux() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 0,
            body: Body::Sample(Sample {
                ip: Some(0x40_1000),
                aux: Some(bytes("a0a1a2a3a4a5a6a7a8a9aaabacadaeaf").into()),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::IP | T::AUX),
        "09000000 0000 2800 0010400000000000 1000000000000000 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
        "00000009 0000 0028 0000000000401000 0000000000000010 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
    }

    /// An unknown part precedes AUX, and both remain bytes.
    fn sample_of_the_future() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 0,
            body: Body::Sample(Sample { ip: Some(0x40_1000), ..sample() }),
            tail: bytes("c0c1c2c3c4c5c6c7c8c9cacbcccdcecf"),
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::IP | T::AUX | T(1 << 40)),
        "09000000 0000 2000 0010400000000000 c0c1c2c3c4c5c6c7c8c9cacbcccdcecf",
        "00000009 0000 0020 0000000000401000 c0c1c2c3c4c5c6c7c8c9cacbcccdcecf",
    }
}
