//! BPF programs and their types.

use perfdata_core::feature::*;
use perfdata_core::wire::{Chars, Rest};

use super::{Case, bytes, case};

/// `labprog0` of a recording by perf 7.2 on s390x, without arrays and in its oldest form.
fn labprog0() -> BpfProgInfo {
    BpfProgInfo {
        kind: 1,
        id: 1,
        tag: [0xa0, 0x4f, 0x5e, 0xef, 6, 0xa7, 0xf5, 0x55],
        jited_prog_len: 0,
        xlated_prog_len: 16,
        jited_prog_insns: 0,
        xlated_prog_insns: 0,
        load_time: 0x6b_f837_bcd7,
        created_by_uid: 0,
        nr_map_ids: 0,
        map_ids: 0,
        name: Chars(*b"labprog0\0\0\0\0\0\0\0\0"),
        ifindex: 0,
        flags: BpfProgFlags(0).with_gpl_compatible(true),
        netns_dev: 0,
        netns_ino: 0,
        nr_jited_ksyms: 1,
        nr_jited_func_lens: 1,
        jited_ksyms: 0,
        jited_func_lens: 8,
        btf_id: 0,
        func_info_rec_size: 8,
        func_info: 0,
        nr_func_info: 0,
        nr_line_info: 0,
        line_info: 0,
        jited_line_info: 0,
        nr_jited_line_info: 0,
        line_info_rec_size: 16,
        jited_line_info_rec_size: 8,
        nr_prog_tags: 1,
        prog_tags: 0,
        run_time_ns: 0,
        run_cnt: 0,
        recursion_misses: None,
        verified_insns: None,
        attach_btf_obj_id: None,
        attach_btf_id: None,
        padding: None,
        tail: Rest(vec![]),
    }
}

pub fn bpf() -> Vec<Case> {
    fn whole<T>(items: Vec<T>) -> Option<Padded<T>> {
        Some(Padded {
            items,
            padding: vec![],
        })
    }
    let program = |info: BpfProgInfo, arrays, data_len, info_len, data| BpfProgram {
        info_len,
        data_len,
        arrays: BpfArraySet(arrays),
        info: BpfInfo::Known(Box::new(info)),
        data,
    };
    let newest = |info: BpfProgInfo, verified_insns| BpfProgInfo {
        recursion_misses: Some(0),
        verified_insns: Some(verified_insns),
        attach_btf_obj_id: Some(0),
        attach_btf_id: Some(0),
        padding: Some(0),
        ..info
    };

    let labprog0_arrays = BpfArrays {
        jited_insns: whole(vec![]),
        xlated_insns: None,
        map_ids: whole(vec![]),
        jited_ksyms: whole(vec![0x3ff_fead_2918]),
        jited_func_lens: Some(Padded {
            items: vec![0],
            padding: vec![0; 4],
        }),
        func_info: whole(vec![]),
        line_info: whole(vec![]),
        jited_line_info: whole(vec![]),
        prog_tags: whole(vec![[0xa0, 0x4f, 0x5e, 0xef, 6, 0xa7, 0xf5, 0x55]]),
    };
    // The same in the layout of perf 5: no padding between the arrays.
    let packed_arrays = BpfArrays {
        jited_func_lens: whole(vec![0]),
        prog_tags: Some(Padded {
            padding: vec![0; 4],
            ..labprog0_arrays.prog_tags.clone().expect("it is there")
        }),
        ..labprog0_arrays.clone()
    };
    let packed = BpfProgInfo {
        func_info: 12,
        line_info: 12,
        jited_line_info: 12,
        prog_tags: 12,
        ..labprog0()
    };
    let labprog0 = BpfProgInfo {
        func_info: 16,
        line_info: 16,
        jited_line_info: 16,
        prog_tags: 16,
        ..labprog0()
    };

    // The program of a recording by perf 6.12 on x86-64, including the kernel's padding of its
    // arrays.
    let demo_meta = BpfProgInfo {
        id: 17,
        tag: [0x43, 3, 0x44, 0x0f, 0x6a, 0xbb, 0xb0, 0x0f],
        jited_prog_len: 36,
        xlated_prog_len: 32,
        load_time: 0x62_ff0c_4155,
        nr_map_ids: 1,
        name: Chars(*b"demo_meta\0\0\0\0\0\0\0"),
        jited_ksyms: 40,
        jited_func_lens: 48,
        btf_id: 20,
        func_info: 56,
        nr_func_info: 1,
        nr_line_info: 2,
        line_info: 64,
        jited_line_info: 96,
        nr_jited_line_info: 2,
        prog_tags: 112,
        ..newest(labprog0.clone(), 3)
    };
    let code = "f30f1efa0f1f4400000f1f00554889e5f30f1efa48bf1ce04600fcba6aff8b4700c9c3cc";
    let filling = || bytes("df550000");
    let line = |insn_off, line_col| BpfLineInfo {
        insn_off,
        file_name_off: 0x1a,
        line_off: 0,
        line_col,
    };
    let demo_meta_arrays = BpfArrays {
        jited_insns: Some(Padded {
            items: bytes(code),
            padding: filling(),
        }),
        xlated_insns: None,
        map_ids: None,
        jited_ksyms: whole(vec![0xffff_ffff_c035_e650]),
        jited_func_lens: Some(Padded {
            items: vec![36],
            padding: filling(),
        }),
        func_info: whole(vec![BpfFuncInfo {
            insn_off: 0,
            type_id: 4,
        }]),
        line_info: whole(vec![line(0, 0x1c2e), line(2, 0x1c27)]),
        jited_line_info: whole(vec![0xffff_ffff_c035_e650, 0xffff_ffff_c035_e66e]),
        prog_tags: whole(vec![[0x43, 3, 0x44, 0x0f, 0x6a, 0xbb, 0xb0, 0x0f]]),
    };
    let arrays = |arrays| BpfData::Arrays(Box::new(arrays));

    // Not from a recording: data that its description does not explain, and a description of
    // unknown size.
    let unexplained = BpfProgram {
        data: BpfData::Opaque(vec![1, 2, 3, 4, 5, 6, 7, 8]),
        ..program(self::labprog0(), 1, 8, 208, arrays(labprog0_arrays.clone()))
    };
    let unknown = BpfProgram {
        info_len: 4,
        data_len: 0,
        arrays: BpfArraySet(0),
        info: BpfInfo::Opaque(vec![1, 2, 3, 4]),
        data: BpfData::Opaque(vec![]),
    };
    vec![
        case(
            FeatureId::BPF_PROG_INFO,
            Feature::BpfProgInfo(vec![program(newest(labprog0, 2), 0x1fd, 24, 232, arrays(labprog0_arrays))].into()),
            "01000000 e8000000 18000000 fd01 00*6
             01000000 01000000 a04f5eef06a7f555 00000000 10000000 00*16 d7bc37f86b000000 00*16
             'labprog0' 00*12 01000000 00*16 01000000 01000000 00*8 08 00*11 08000000 10 00*15 10 00*7
             10 00*11 10000000 08000000 01000000 10 00*31 02000000 00*12
             1829adfeff030000 00*8 a04f5eef06a7f555",
            "00000001 000000e8 00000018 00*6 01fd
             00000001 00000001 a04f5eef06a7f555 00000000 00000010 00*16 0000006bf837bcd7 00*16
             'labprog0' 00*12 80000000 00*16 00000001 00000001 00*15 08 00*4 00000008 00*7 10 00*15 10
             00*7 10 00*4 00000010 00000008 00000001 00*7 10 00*24 00000002 00*12
             000003fffead2918 00*8 a04f5eef06a7f555",
        ),
        case(
            FeatureId::BPF_PROG_INFO,
            Feature::BpfProgInfo(vec![program(packed, 0x1fd, 24, 208, arrays(packed_arrays))].into()),
            "01000000 d0000000 18000000 fd01 00*6
             01000000 01000000 a04f5eef06a7f555 00000000 10000000 00*16 d7bc37f86b000000 00*16
             'labprog0' 00*12 01000000 00*16 01000000 01000000 00*8 08 00*11 08000000 0c 00*15 0c 00*7
             0c 00*11 10000000 08000000 01000000 0c 00*23
             1829adfeff030000 00*4 a04f5eef06a7f555 00*4",
            "00000001 000000d0 00000018 00*6 01fd
             00000001 00000001 a04f5eef06a7f555 00000000 00000010 00*16 0000006bf837bcd7 00*16
             'labprog0' 00*12 80000000 00*16 00000001 00000001 00*15 08 00*4 00000008 00*7 0c 00*15 0c
             00*7 0c 00*4 00000010 00000008 00000001 00*7 0c 00*16
             000003fffead2918 00*4 a04f5eef06a7f555 00*4",
        ),
        case(
            FeatureId::BPF_PROG_INFO,
            Feature::BpfProgInfo(vec![program(demo_meta, 0x1f9, 120, 232, arrays(demo_meta_arrays))].into()),
            &format!(
                "01000000 e8000000 78000000 f901 00*6
                 01000000 11000000 4303440f6abbb00f 24000000 20000000 00*16 55410cff62000000 00*4 01000000 00*8
                 'demo_meta' 00*7 00*4 01000000 00*16 01000000 01000000 28 00*7 30 00*7 14000000 08000000
                 38 00*7 01000000 02000000 40 00*7 60 00*7 02000000 10000000 08000000 01000000 70 00*7 00*24
                 03000000 00*12
                 {code} df550000 50e635c0ffffffff 24000000 df550000 00000000 04000000
                 00000000 1a000000 00000000 2e1c0000 02000000 1a000000 00000000 271c0000
                 50e635c0ffffffff 6ee635c0ffffffff 4303440f6abbb00f"
            ),
            &format!(
                "00000001 000000e8 00000078 00*6 01f9
                 00000001 00000011 4303440f6abbb00f 00000024 00000020 00*16 00000062ff0c4155 00*4 00000001 00*8
                 'demo_meta' 00*7 00*4 80000000 00*16 00000001 00000001 00*7 28 00*7 30 00000014 00000008
                 00*7 38 00000001 00000002 00*7 40 00*7 60 00000002 00000010 00000008 00000001 00*7 70 00*24
                 00000003 00*12
                 {code} df550000 ffffffffc035e650 00000024 df550000 00000000 00000004
                 00000000 0000001a 00000000 00001c2e 00000002 0000001a 00000000 00001c27
                 ffffffffc035e650 ffffffffc035e66e 4303440f6abbb00f"
            ),
        ),
        case(
            FeatureId::BPF_PROG_INFO,
            Feature::BpfProgInfo(vec![unexplained, unknown].into()),
            "02000000 d0000000 08000000 01 00*7
             01000000 01000000 a04f5eef06a7f555 00000000 10000000 00*16 d7bc37f86b000000 00*16
             'labprog0' 00*12 01000000 00*16 01000000 01000000 00*8 08 00*11 08000000 00*36
             10000000 08000000 01000000 00*24 0102030405060708
             04000000 00000000 00*8 01020304",
            "00000002 000000d0 00000008 00*7 01
             00000001 00000001 a04f5eef06a7f555 00000000 00000010 00*16 0000006bf837bcd7 00*16
             'labprog0' 00*12 80000000 00*16 00000001 00000001 00*15 08 00*4 00000008 00*36
             00000010 00000008 00000001 00*24 0102030405060708
             00000004 00000000 00*8 01020304",
        ),
        case(
            FeatureId::BPF_BTF,
            Feature::BpfBtf(vec![Btf { id: 20, data: bytes("9feb0100 18000000").into() }].into()),
            "01000000 14000000 08000000 9feb010018000000",
            "00000001 00000014 00000008 9feb010018000000",
        ),
    ]
}
