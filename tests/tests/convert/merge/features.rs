//! Features of several recordings as one: BPF programs, formats of tracepoints, build IDs.

use perfdata_convert::io::Input;
use perfdata_core::feature::{Feature, FeatureId};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::Body;
use perfdata_edit::merge::{Align, Merge};
use perfdata_tests::convert::Whole;
use perfdata_tests::synth::attr::Stamp;
use perfdata_tests::synth::buf::Buf;
use perfdata_tests::synth::feature_bpf::{self, BPF_BTF, BPF_PROG_INFO};
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::kernel::Object;
use perfdata_tests::synth::record::{Scribe, misc, stream};
use perfdata_tests::synth::tracing::{Tracepoint, Version, data_of};
use perfdata_tests::synth::{kernel, kind};

use super::{BASE, Small, event, merge, merge_noting, merge_with, records};

const TRACING_DATA: u32 = 1;

/// Bit 14 of `misc`: the record contains a build ID.
const MMAP_BUILD_ID: u16 = 1 << 14;

/// Returns two recordings, each changed by `change`.
fn two(change: impl Fn(&mut File, usize)) -> [Vec<u8>; 2] {
    let inputs = [(7, "one", [100]), (8, "two", [200])];
    let mut at = 0;
    inputs.map(|(id, name, times)| {
        let mut file = Small::new(event(BASE, 4000, &[id]), name, &times).file();
        change(&mut file, at);
        at += 1;
        file.bytes()
    })
}

fn feature(bytes: &[u8], id: FeatureId) -> Feature {
    let whole = Whole::read(bytes.to_vec()).expect("a recording").recording;
    let section = whole.feature(id).expect("the feature is there");
    section.expect("it can be read").value
}

#[test]
fn bpf_programs_and_types_are_united() {
    let programs: [&[(u32, u32)]; 2] = [&[(12, 9), (14, 0)], &[(11, 3), (12, 9)]];
    let types: [&[(u32, &[u8])]; 2] = [&[(20, b"types"), (22, b"")], &[(20, b"types"), (21, b"x")]];
    let [one, other] = two(|file, at| {
        let section = feature_bpf::prog_info(Buf::new(false), programs[at]);
        file.set_feature(BPF_PROG_INFO, section.bytes);
        let section = feature_bpf::btf(Buf::new(false), types[at]);
        file.set_feature(BPF_BTF, section.bytes);
    });
    // The sections that the independent writer makes of all.
    let all = two(|file, _| {
        let section = feature_bpf::prog_info(Buf::new(false), &[(11, 3), (12, 9), (14, 0)]);
        file.set_feature(BPF_PROG_INFO, section.bytes);
        let section = feature_bpf::btf(Buf::new(false), &[(20, b"types"), (21, b"x"), (22, b"")]);
        file.set_feature(BPF_BTF, section.bytes);
    });
    for inputs in [[&one, &other], [&other, &one]] {
        let both = merge(&[inputs[0], inputs[1]]);
        for id in [FeatureId::BPF_PROG_INFO, FeatureId::BPF_BTF] {
            assert_eq!(feature(&both, id), feature(&all[0], id));
        }
    }
    let different = two(|file, at| {
        let section = feature_bpf::prog_info(Buf::new(false), &[(12, 9 - at as u32)]);
        file.set_feature(BPF_PROG_INFO, section.bytes);
    });
    let error = merge_with(
        Merge::default(),
        &different.each_ref().map(|bytes| &**bytes),
    );
    let expected = "the BPF program with the ID 12 differs between a and b";
    assert_eq!(error.expect_err("a contradiction"), expected);
    let different = two(|file, at| {
        let content: &[u8] = [b"one", b"two"][at];
        let section = feature_bpf::btf(Buf::new(false), &[(20, content)]);
        file.set_feature(BPF_BTF, section.bytes);
    });
    let error = merge_with(
        Merge::default(),
        &different.each_ref().map(|bytes| &**bytes),
    );
    let expected = "the BPF type information with the ID 20 differs between a and b";
    assert_eq!(error.expect_err("a contradiction"), expected);
}

/// Programs of different machines have IDs of their own, and so do the records about them.
#[test]
fn bpf_programs_of_machines_stay_apart() {
    let inputs = two(|file, at| {
        let section = feature_bpf::prog_info(Buf::new(false), &[(12, 9 - at as u32)]);
        file.set_feature(BPF_PROG_INFO, section.bytes);
        file.set_feature(7, Buf::new(false).u32(4).u32(4).bytes);
        let stamp = Stamp {
            pid: 1000,
            tid: 1000,
            time: 300,
            ..Stamp::ZERO
        };
        let mut s = Scribe::new(false, file.events[0].attr.clone(), stamp);
        s.tick = 0;
        s.kernel("BPF_EVENT", kind::BPF_EVENT, 0, |b| {
            kernel::bpf_event(b, 1, 0, 12, &[7; 8])
        });
        file.data.extend(stream(&s.cases));
    });
    let machines = Merge {
        machines: true,
        align: Align::After,
        ..Merge::default()
    };
    let both = merge_with(machines, &inputs.each_ref().map(|bytes| &**bytes));
    let both = both.expect("two machines");
    let ids: Vec<u32> = records(&both)
        .into_iter()
        .filter_map(|(_, _, record)| match record.body {
            Body::BpfEvent(event) => Some(event.id),
            _ => None,
        })
        .collect();
    assert_eq!(ids, [12, (1 << 24) + 12]);
    let Feature::BpfProgInfo(programs) = feature(&both, FeatureId::BPF_PROG_INFO) else {
        panic!("BPF_PROG_INFO");
    };
    let of_programs: Vec<u32> = programs
        .iter()
        .filter_map(|program| match &program.info {
            perfdata_core::feature::BpfInfo::Known(info) => Some(info.id),
            _ => None,
        })
        .collect();
    assert_eq!(of_programs, ids);
}

const EXEC: Tracepoint = Tracepoint {
    system: "sched",
    name: "sched_process_exec",
    id: 310,
    value: "int",
};
const SWITCH: Tracepoint = Tracepoint {
    system: "sched-too",
    name: "sched_switch",
    id: 311,
    value: "int",
};

/// Returns two recordings with these tracepoints in the tracing data, of which the events use the
/// first one.
fn traced(tracepoints: [&[Tracepoint]; 2]) -> [Vec<u8>; 2] {
    two(|file, at| {
        file.set_feature(TRACING_DATA, data_of(Version::V0_6, false, tracepoints[at]));
        let attr = &mut file.events[0].attr;
        (attr.kind, attr.config) = (2, u64::from(tracepoints[at][0].id));
    })
}

#[test]
fn formats_of_tracepoints_are_united() {
    let expected = data_of(Version::V0_6, false, &[EXEC, SWITCH]);
    for inputs in [
        traced([&[EXEC], &[SWITCH]]),
        traced([&[EXEC, SWITCH], &[SWITCH]]),
        traced([&[EXEC], &[SWITCH, EXEC]]),
    ] {
        let both = merge(&inputs.each_ref().map(|bytes| &**bytes));
        let whole = Whole::read(both).expect("a recording").recording;
        assert_eq!(whole.events.len(), 2);
        assert!(whole.features[&FeatureId::TRACING_DATA].starts_with(&expected));
    }
}

#[test]
fn formats_of_tracepoints_that_contradict_are_refused() {
    let refuse = |a: &[Tracepoint], b: &[Tracepoint]| {
        let inputs = traced([a, b]);
        let inputs = inputs.each_ref().map(|bytes| &**bytes);
        merge_with(Merge::default(), &inputs).expect_err("a contradiction")
    };
    let other_field = Tracepoint {
        value: "u32",
        ..EXEC
    };
    let error = refuse(&[EXEC], &[other_field]);
    assert!(
        error.starts_with(
            "the format of the tracepoint sched:sched_process_exec differs: `field:int value;"
        ) && error.contains("in a, `field:u32 value;")
            && error.ends_with("in b"),
        "{error}"
    );
    let other_number = Tracepoint { id: 312, ..EXEC };
    let error = refuse(&[EXEC], &[other_number]);
    assert!(error.contains("`ID: 310` in a, `ID: 312` in b"), "{error}");
    let same_number = Tracepoint { id: 310, ..SWITCH };
    let error = refuse(&[EXEC], &[same_number]);
    assert_eq!(
        error,
        "the tracepoint 310 is sched:sched_process_exec in a, and sched-too:sched_switch in b"
    );
    // A format that no event uses may differ.
    let unused = Tracepoint {
        value: "u32",
        ..SWITCH
    };
    let inputs = traced([&[EXEC, SWITCH], &[EXEC, unused]]);
    let inputs = inputs.each_ref().map(|bytes| &**bytes);
    merge_with(Merge::default(), &inputs).expect("no event uses it");
}

/// The table of build IDs knows files by name: one that has two build IDs is left out. MMAP2
/// records keep the build ID of each.
#[test]
fn build_ids_of_one_name_stay_in_records() {
    let table = |names: &[(&str, u8)]| {
        names.iter().fold(Buf::new(false), |b, (name, id)| {
            let mut name = name.as_bytes().to_vec();
            name.resize(name.len() / 64 * 64 + 64, 0);
            b.u32(0)
                .u16(2 | 1 << 15)
                .u16(8 + 28 + name.len() as u16)
                .u32(u32::MAX)
                .bytes(&[*id; 20])
                .bytes(&[20, 0, 0, 0])
                .bytes(&name)
        })
    };
    let inputs = two(|file, at| {
        let id = at as u8 + 1;
        let section = table(&[("/bin/same", 9), ("/bin/changed", id)]);
        file.set_feature(2, section.bytes);
        let stamp = Stamp {
            pid: 1000,
            tid: 1000,
            time: 300 + at as u64,
            ..Stamp::ZERO
        };
        let mut s = Scribe::new(false, file.events[0].attr.clone(), stamp);
        s.tick = 0;
        s.kernel("MMAP2", kind::MMAP2, misc::USER | MMAP_BUILD_ID, |b| {
            let object = Object::BuildId(&[id; 20]);
            let place = [0x50_0000, 0x1000, 0];
            kernel::mmap2(b, (1000, 1000), place, object, [5, 2], "/bin/changed")
        });
        file.data.extend(stream(&s.cases));
    });
    let inputs = inputs.map(Input::from_source).into();
    let (both, notes) = merge_noting(Merge::default(), inputs, Some(ContainerKind::File))
        .expect("they can be merged");
    let Feature::BuildIds(kept) = feature(&both, FeatureId::BUILD_ID) else {
        panic!("BUILD_ID");
    };
    let names: Vec<String> = kept
        .0
        .iter()
        .map(|entry| entry.build_id.filename.to_string())
        .collect();
    assert_eq!(names, ["/bin/same"]);
    assert!(
        notes.iter().any(|note| note.contains("/bin/changed")),
        "{notes:?}"
    );
    let of_records: Vec<u8> = records(&both)
        .into_iter()
        .filter_map(|(_, _, record)| match record.body {
            Body::Mmap2(map) => Some(map.build_id?.build_id[0]),
            _ => None,
        })
        .collect();
    assert_eq!(of_records, [1, 2]);
}
