//! Records of the kernel about sampling, its own code and AUX traces.

use perfdata_core::DecodeContext;
use perfdata_core::attr::SampleType as T;
use perfdata_core::record::*;
use perfdata_core::wire::{Rest, Text};

use super::{Case, array, bytes, cases, sample_id};

cases! {
    /// x86_64-7.2/file_bpf_a.data.
    fn ksymbol() {
        Record {
            kind: RecordType::KSYMBOL,
            misc: 0,
            body: Body::Ksymbol(Ksymbol {
                addr: 0xffff_ffff_c00e_5648,
                len: 25,
                ksym_type: KsymbolType::BPF,
                flags: KsymbolFlags(0),
                name: Text(b"bpf_prog_59f4a931744dcdc6_holder_early\0\0".to_vec()),
            }),
            tail: vec![],
            sample_id: Some(SampleId {
                tid: Some(Tid { pid: 0, tid: 0 }),
                time: Some(0),
                id: Some(0),
                cpu: Some(Cpu { cpu: 0, reserved: 0 }),
                ..sample_id()
            }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::ID | T::CPU | T::PERIOD).with_sample_id_all(true),
        "11000000 0000 6000 48560ec0ffffffff 19000000 0100 0000 6270665f70726f675f35396634613933
         3137343464636463365f686f6c646572 5f6561726c790000 00000000 00000000 0000000000000000 0000000000000000
         00000000 00000000",
        "00000011 0000 0060 ffffffffc00e5648 00000019 0001 0000 6270665f70726f675f35396634613933
         3137343464636463365f686f6c646572 5f6561726c790000 00000000 00000000 0000000000000000 0000000000000000
         00000000 00000000",
    }

    /// s390x-6.1/file_bpf_a.data.
    fn bpf_event() {
        Record {
            kind: RecordType::BPF_EVENT,
            misc: 0,
            body: Body::BpfEvent(BpfEvent {
                kind: BpfEventType::PROG_LOAD,
                flags: 0,
                id: 1,
                tag: array("a04f5eef06a7f555"),
            }),
            tail: vec![],
            sample_id: Some(SampleId {
                tid: Some(Tid { pid: 0, tid: 0 }),
                time: Some(0),
                id: Some(0),
                cpu: Some(Cpu { cpu: 0, reserved: 0 }),
                ..sample_id()
            }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::ID | T::CPU | T::PERIOD).with_sample_id_all(true),
        "12000000 0000 3800 0100 0000 01000000 a04f5eef06a7f555 00000000 00000000 0000000000000000
         0000000000000000 00000000 00000000",
        "00000012 0000 0038 0001 0000 00000001 a04f5eef06a7f555 00000000 00000000 0000000000000000
         0000000000000000 00000000 00000000",
    }

    /// x86_64-7.2/file_kcore.data/data.
    fn text_poke() {
        Record {
            kind: RecordType::TEXT_POKE,
            misc: 1,
            body: Body::TextPoke(TextPoke {
                addr: 0xffff_ffff_9821_06eb,
                old_len: 5,
                new_len: 5,
                old: Rest(bytes("0f1f440000")),
                new: Rest(bytes("e9fc000000")),
                padding: Rest(bytes("0000")),
            }),
            tail: vec![],
            sample_id: Some(SampleId {
                tid: Some(Tid { pid: 1573, tid: 1573 }),
                time: Some(435_803_949_968),
                id: Some(1365),
                cpu: Some(Cpu { cpu: 0, reserved: 0 }),
                ..sample_id()
            }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::ID | T::CPU | T::PERIOD).with_sample_id_all(true),
        "14000000 0100 4000 eb062198ffffffff 0500 0500 0f1f440000 e9fc000000 0000 25060000 25060000
         908bf07765000000 5505000000000000 00000000 00000000",
        "00000014 0001 0040 ffffffff982106eb 0005 0005 0f1f440000 e9fc000000 0000 00000625 00000625
         0000006577f08b90 0000000000000555 00000000 00000000",
    }

    /// aarch64-6.12/hw_throttle.data.
    fn throttle() {
        Record {
            kind: RecordType::THROTTLE,
            misc: 0,
            body: Body::Throttle(Throttle { time: 317_910_727_584, id: 4263, stream_id: 4263 }),
            tail: vec![],
            sample_id: Some(SampleId {
                tid: Some(Tid { pid: 1828, tid: 1828 }),
                time: Some(317_910_727_904),
                ..sample_id()
            }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME).with_sample_id_all(true),
        "05000000 0000 3000 a0bbf4044a000000 a710000000000000 a710000000000000 24070000 24070000
         e0bcf4044a000000",
        "00000005 0000 0030 0000004a04f4bba0 00000000000010a7 00000000000010a7 00000724 00000724
         0000004a04f4bce0",
    }

    /// aarch64-6.12/hw_throttle.data.
    fn unthrottle() {
        Record {
            kind: RecordType::UNTHROTTLE,
            misc: 0,
            body: Body::Unthrottle(Throttle { time: 317_912_743_232, id: 4263, stream_id: 4263 }),
            tail: vec![],
            sample_id: Some(SampleId {
                tid: Some(Tid { pid: 1828, tid: 1828 }),
                time: Some(317_912_743_552),
                ..sample_id()
            }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME).with_sample_id_all(true),
        "06000000 0000 3000 407d13054a000000 a710000000000000 a710000000000000 24070000 24070000
         807e13054a000000",
        "00000006 0000 0030 0000004a05137d40 00000000000010a7 00000000000010a7 00000724 00000724
         0000004a05137e80",
    }

    /// x86_64-7.2/file_lost.data.
    fn lost() {
        Record {
            kind: RecordType::LOST,
            misc: 0,
            body: Body::Lost(Lost { id: 1166, lost: 72 }),
            tail: vec![],
            sample_id: Some(SampleId {
                tid: Some(Tid { pid: 1293, tid: 1293 }),
                time: Some(342_190_723_065),
                cpu: Some(Cpu { cpu: 0, reserved: 0 }),
                identifier: Some(1166),
                ..sample_id()
            }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::CALLCHAIN | T::CPU | T::PERIOD | T::IDENTIFIER).with_sample_id_all(true),
        "02000000 0000 3800 8e04000000000000 4800000000000000 0d050000 0d050000 f90f28ac4f000000 00000000
         00000000 8e04000000000000",
        "00000002 0000 0038 000000000000048e 0000000000000048 0000050d 0000050d 0000004fac280ff9 00000000
         00000000 000000000000048e",
    }

    /// x86_64-7.2/file_lost.data.
    fn lost_samples() {
        Record {
            kind: RecordType::LOST_SAMPLES,
            misc: 0,
            body: Body::LostSamples(LostSamples { lost: 174 }),
            tail: vec![],
            sample_id: Some(SampleId {
                tid: Some(Tid { pid: 0, tid: 0 }),
                time: Some(0),
                cpu: Some(Cpu { cpu: 0, reserved: 0 }),
                identifier: Some(1166),
                ..sample_id()
            }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::CALLCHAIN | T::CPU | T::PERIOD | T::IDENTIFIER).with_sample_id_all(true),
        "0d000000 0000 3000 ae00000000000000 00000000 00000000 0000000000000000 00000000 00000000
         8e04000000000000",
        "0000000d 0000 0030 00000000000000ae 00000000 00000000 0000000000000000 00000000 00000000
         000000000000048e",
    }

    /// Kernel layout.
    fn aux() {
        Record {
            kind: RecordType::AUX,
            misc: 0,
            body: Body::Aux(Aux { aux_offset: 0x1000, aux_size: 0x200, flags: AuxFlags(0x105) }),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 7, tid: 8 }), time: Some(4_294_967_298), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME).with_sample_id_all(true),
        "0b000000 0000 3000 0010000000000000 0002000000000000 0501000000000000 07000000 08000000
         0200000001000000",
        "0000000b 0000 0030 0000000000001000 0000000000000200 0000000000000105 00000007 00000008
         0000000100000002",
    }

    /// Kernel layout.
    fn itrace_start() {
        Record {
            kind: RecordType::ITRACE_START,
            misc: 0,
            body: Body::ItraceStart(ItraceStart { pid: 7, tid: 8 }),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 7, tid: 8 }), time: Some(4_294_967_298), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME).with_sample_id_all(true),
        "0c000000 0000 2000 07000000 08000000 07000000 08000000 0200000001000000",
        "0000000c 0000 0020 00000007 00000008 00000007 00000008 0000000100000002",
    }

    /// Kernel layout.
    fn aux_output_hw_id() {
        Record {
            kind: RecordType::AUX_OUTPUT_HW_ID,
            misc: 0,
            body: Body::AuxOutputHwId(AuxOutputHwId { hw_id: 0x102_0304_0506_0708 }),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 7, tid: 8 }), time: Some(4_294_967_298), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME).with_sample_id_all(true),
        "15000000 0000 2000 0807060504030201 07000000 08000000 0200000001000000",
        "00000015 0000 0020 0102030405060708 00000007 00000008 0000000100000002",
    }

    /// s390x-6.1/file_switch_ns_cg.data.
    fn switch() {
        Record {
            kind: RecordType::SWITCH,
            misc: 0x2000,
            body: Body::Switch(NoBody {}),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 323, tid: 323 }), time: Some(43_395_456_617), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::PERIOD | T::CGROUP).with_sample_id_all(true),
        "0e000000 0020 1800 43010000 43010000 691e921a0a000000",
        "0000000e 2000 0018 00000143 00000143 0000000a1a921e69",
    }

    /// s390x-6.12/file_cgroup_a.data.
    fn switch_cpu_wide() {
        Record {
            kind: RecordType::SWITCH_CPU_WIDE,
            misc: 0x6000,
            body: Body::SwitchCpuWide(SwitchCpuWide { next_prev_pid: 17, next_prev_tid: 17 }),
            tail: vec![],
            sample_id: Some(SampleId {
                tid: Some(Tid { pid: 0, tid: 0 }),
                time: Some(91_412_514_201),
                id: Some(437),
                cpu: Some(Cpu { cpu: 0, reserved: 0 }),
                ..sample_id()
            }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::ID | T::CPU | T::PERIOD | T::CGROUP).with_sample_id_all(true),
        "0f000000 0060 3000 11000000 11000000 00000000 00000000 99459c4815000000 b501000000000000 00000000
         00000000",
        "0000000f 6000 0030 00000011 00000011 00000000 00000000 00000015489c4599 00000000000001b5 00000000
         00000000",
    }

    /// An unknown future type.
    fn unknown_with_trailer() {
        Record {
            kind: RecordType(40),
            misc: 0,
            body: Body::Unknown(bytes("0001020304050607")),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 7, tid: 8 }), time: Some(4_294_967_298), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME).with_sample_id_all(true),
        "28000000 0000 2000 0001020304050607 07000000 08000000 0200000001000000",
        "00000028 0000 0020 0001020304050607 00000007 00000008 0000000100000002",
    }
}
