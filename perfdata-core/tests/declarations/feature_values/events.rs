//! Events, files hit by samples, and tracepoint formats.

use perfdata_core::attr::{Attr, AttrFlags, EventType, ReadFormat, SampleType};
use perfdata_core::feature::tracing::{
    ByteOrder, EventSystem, File, TracingBody, TracingHeader, Word,
};
use perfdata_core::feature::*;
use perfdata_core::record::{BuildId, MISC_BUILD_ID_SIZE};
use perfdata_core::wire::{CStr, HeaderString, Rest, Text};

use super::{Case, case};

/// The event of `perf record --per-thread` by perf 6.12 on s390x, with flags that distinguish the
/// byte orders.
pub fn cpu_clock() -> Attr {
    Attr {
        kind: EventType::SOFTWARE,
        size: 136,
        config: 0,
        sample_period: 4000,
        sample_type: SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::PERIOD,
        read_format: ReadFormat::ID | ReadFormat::LOST,
        flags: AttrFlags::default()
            .with_disabled(true)
            .with_precise_ip(1)
            .with_exclude_guest(true),
        wakeup: 0,
        bp_type: 0,
        config1: 0,
        config2: Some(0),
        branch_sample_type: Some(Default::default()),
        sample_regs_user: Some(0),
        sample_stack_user: Some(0),
        clockid: Some(-1),
        sample_regs_intr: Some(0),
        aux_watermark: Some(0),
        sample_max_stack: Some(127),
        reserved_2: Some(0),
        aux_sample_size: Some(0),
        aux_action: Some(Default::default()),
        sig_data: Some(0),
        config3: Some(0),
        config4: None,
        tail: Rest(vec![]),
    }
}

pub fn events() -> Vec<Case> {
    let descs = EventDescs::new(vec![(
        cpu_clock(),
        HeaderString::new(b"cpu-clock"),
        vec![0x27c],
    )])
    .expect("one event");
    vec![
        case(
            FeatureId::EVENT_DESC,
            Feature::EventDescs(descs),
            "01000000 88000000
             01000000 88000000 00*8 a00f 00*6 0701 00*6 14 00*7 0180100000000000 00*44 ffffffff 00*12 7f00 00*26
             01000000 40000000 'cpu-clock' 00*55 7c02 00*6",
            "00000001 00000088
             00000001 00000088 00*8 00*6 0fa0 00*6 0107 00*7 14 8000880000000000 00*44 ffffffff 00*12 007f 00*26
             00000001 00000040 'cpu-clock' 00*55 00*6 027c",
        ),
        case(
            FeatureId::GROUP_DESC,
            Feature::GroupDescs(
                vec![GroupDesc { name: HeaderString::new(b"{anon_group}"), leader_idx: 1, nr_members: 2 }].into(),
            ),
            "01000000 40000000 '{anon_group}' 00*52 01000000 02000000",
            "00000001 00000040 '{anon_group}' 00*52 00000001 00000002",
        ),
        case(
            FeatureId::AUXTRACE,
            Feature::AuxtraceIndex(vec![AuxtraceIndexEntry { file_offset: 0x29c0, size: 48 }].into()),
            "01 00*7 c029 00*6 30 00*7",
            "00*7 01 00*6 29c0 00*7 30",
        ),
    ]
}

pub fn build_ids() -> Vec<Case> {
    let id = [
        2, 0x73, 0xa1, 0x19, 0x50, 0xbd, 0x86, 0x80, 0xc9, 0xa6, 0x34, 0x5e, 0xfe, 0xfe, 0xb4,
        0x90, 1, 2, 3, 4,
    ];
    let build_id = |pid, size, filename: &[u8]| BuildId {
        pid,
        build_id: id,
        size,
        reserved_1: 0,
        reserved_2: 0,
        filename: Text(filename.to_vec()),
    };
    let raw = "0273a11950bd8680c9a6345efefeb49001020304";
    let entry = BuildIdEntry::new(
        MISC_BUILD_ID_SIZE | 2,
        build_id(Some(-1), 20, b"/lab/work-s390x"),
    );
    // Before 2.6.35: no process ID. Not from a recording.
    let mut old =
        BuildIdEntry::new(1, build_id(None, 0, b"[kernel.kallsyms]")).expect("a short name");
    old.header.size = 32 + 24;
    vec![
        case(
            FeatureId::BUILD_ID,
            Feature::BuildIds(BuildIds(vec![entry.expect("a short name")])),
            &format!("00000000 0280 3400 ffffffff {raw} 14000000 '/lab/work-s390x' 00"),
            &format!("00000000 8002 0034 ffffffff {raw} 14000000 '/lab/work-s390x' 00"),
        ),
        case(
            FeatureId::BUILD_ID,
            Feature::BuildIds(BuildIds(vec![old])),
            &format!("00000000 0100 3800 {raw} 00000000 '[kernel.kallsyms]' 00*7"),
            &format!("00000000 0001 0038 {raw} 00000000 '[kernel.kallsyms]' 00*7"),
        ),
    ]
}

/// Tracing data keeps its own byte order, regardless of that of the recording.
pub fn tracing_data() -> Vec<Case> {
    let data = |byte_order, version: &str, saved_cmdlines: Option<&[u8]>| {
        Feature::TracingData(TracingData {
            header: TracingHeader {
                magic: Word(*b"\x17\x08Dtracing"),
                version: CStr::new(version.as_bytes()),
                byte_order,
                long_size: 8,
            },
            body: TracingBody {
                page_size: 4096,
                header_page_name: Word(*b"header_page\0"),
                header_page: File(b"\tfield: u64 timestamp;\n".to_vec().into()),
                header_event_name: Word(*b"header_event\0"),
                header_event: File(b"# compressed entry header\n".to_vec().into()),
                ftrace_formats: vec![].into(),
                systems: vec![EventSystem {
                    name: CStr::new(b"lock"),
                    formats: vec![
                        File(b"name: contention_end\n".to_vec().into()),
                        File(b"name: contention_begin\n".to_vec().into()),
                    ]
                    .into(),
                }]
                .into(),
                kallsyms: File(vec![].into()),
                printk_formats: File(b"0x3ffff718082 : \"thaw_processes\"\n".to_vec().into()),
                saved_cmdlines: saved_cmdlines.map(|names| File(names.to_vec().into())),
            },
        })
    };
    let little = "170844 'tracing0.6' 00 00 08 00100000
        'header_page' 00 17 00*7 09 'field: u64 timestamp;' 0a 'header_event' 00 1a 00*7 '# compressed entry header' 0a
        00000000 01000000 'lock' 00 02000000 15 00*7 'name: contention_end' 0a 17 00*7 'name: contention_begin' 0a
        00000000 21000000 '0x3ffff718082 : \"thaw_processes\"' 0a 07 00*7 '1 init' 0a";
    let big = "170844 'tracing0.5' 00 01 08 00001000
        'header_page' 00 00*7 17 09 'field: u64 timestamp;' 0a 'header_event' 00 00*7 1a '# compressed entry header' 0a
        00000000 00000001 'lock' 00 00000002 00*7 15 'name: contention_end' 0a 00*7 17 'name: contention_begin' 0a
        00000000 00000021 '0x3ffff718082 : \"thaw_processes\"' 0a";
    vec![
        case(
            FeatureId::TRACING_DATA,
            data(ByteOrder::LITTLE, "0.6", Some(b"1 init\n")),
            little,
            little,
        ),
        case(
            FeatureId::TRACING_DATA,
            data(ByteOrder::BIG, "0.5", None),
            big,
            big,
        ),
    ]
}
