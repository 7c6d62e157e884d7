//! Complete files, assembled from values, their records, and the remaining sections.

use perfdata_tests::synth::attr::sample_type::*;
use perfdata_tests::synth::feature_events::{self, Event};
use perfdata_tests::synth::feature_topology::{self, CpuTopology};
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::{Attr, Buf, feature_pmu};

use super::{BIG, LITTLE, fixture, same};

/// A complete file with two events: everything except the records and most sections is written from
/// values.
#[test]
fn little_endian_file() {
    let usual = IP | TID | TIME | ID | CPU | PERIOD;
    let clock = Attr {
        kind: 1,
        sample_period: 99,
        read_format: 0x14,
        ..Attr::new(usual, "disabled freq sample_id_all")
    };
    let dummy = Attr {
        config: 9,
        flags: "exclude_kernel exclude_hv mmap comm freq task sample_id_all exclude_guest mmap2 comm_exec ksymbol \
                bpf_event build_id"
            .into(),
        ..clock.clone()
    };
    let events = vec![
        Event {
            name: "cpu-clock".into(),
            attr: clock,
            ids: vec![1330, 1331],
        },
        Event {
            name: "dummy:u".into(),
            attr: dummy,
            ids: vec![1332, 1333],
        },
    ];
    let topology = CpuTopology {
        siblings: [&["0-1"], &["0", "1"]],
        cores: &[[0, 0], [1, 0]],
        dies: Some((&["0-1"], &[0, 0])),
    };
    let caches = [
        ([1, 64, 512, 2], ["Data", "64K", "0"]),
        ([1, 64, 512, 2], ["Instruction", "64K", "0"]),
        ([1, 64, 512, 2], ["Data", "64K", "1"]),
        ([1, 64, 512, 2], ["Instruction", "64K", "1"]),
        ([2, 64, 512, 16], ["Unified", "512K", "0"]),
        ([2, 64, 512, 16], ["Unified", "512K", "1"]),
        ([3, 64, 16384, 16], ["Unified", "16384K", "0-1"]),
    ];
    let b = || Buf::new(LITTLE);
    let sections = [
        (3, b().str("recorder")),
        (7, b().u32(2).u32(2)),
        (10, b().u64(2_566_612)),
        (11, b().u32(1).str("/usr/bin/perf")),
        (12, feature_events::event_desc(b(), &events)),
        (13, topology.put(b())),
        (
            14,
            feature_topology::numa_topology(b(), &[(0, 2_566_612, 2_418_076, "0-1")]),
        ),
        (20, feature_topology::cache(b(), &caches)),
        (
            22,
            feature_topology::mem_topology(b(), 0x800_0000, &[(0, 21, &[0x1f_ffff])]),
        ),
        (
            32,
            feature_topology::cpu_domains(
                b(),
                17,
                1,
                &[(0, &[(0, "MC", "3", "0-1")]), (1, &[(0, "MC", "3", "0-1")])],
            ),
        ),
        (33, b().u32(62).u32(0)),
        (34, b().u32(64)),
    ];
    rebuild(
        "7.2-x86_64-file-bpfmeta",
        File::new(LITTLE, events),
        &sections,
        456,
        32464,
    );
}

/// The same for a complete file of a big-endian machine.
#[test]
fn big_endian_file() {
    let attr = Attr {
        kind: 1,
        sample_period: 499,
        read_format: 0x14,
        ..Attr::new(
            IP | TID | TIME | PERIOD,
            "disabled inherit mmap comm freq enable_on_exec task sample_id_all mmap2 comm_exec ksymbol bpf_event build_id",
        )
    };
    let events = vec![Event {
        name: "cpu-clock".into(),
        attr,
        ids: vec![144, 145],
    }];
    let topology = CpuTopology {
        siblings: [&["0", "1"], &["0", "1"]],
        cores: &[[0, 0], [1, 1]],
        dies: None,
    };
    let pmus = [
        (4, "cpu"),
        (8, "kprobe"),
        (1, "software"),
        (u32::MAX - 1, "tool"),
        (2, "tracepoint"),
        (9, "uprobe"),
    ];
    let b = || Buf::new(BIG);
    let sections = [
        (3, b().str("s390guest")),
        (7, b().u32(2).u32(2)),
        (12, feature_events::event_desc(b(), &events)),
        (13, topology.put(b())),
        (16, feature_pmu::pmu_mappings(b(), &pmus)),
        (20, feature_topology::cache(b(), &[])),
        (
            32,
            feature_topology::cpu_domains(
                b(),
                16,
                1,
                &[(0, &[(0, "", "3", "0-1")]), (1, &[(0, "", "3", "0-1")])],
            ),
        ),
        (33, b().u32(22).u32(0)),
        (34, b().u32(u32::MAX)),
    ];
    rebuild(
        "7.2-s390x-file-default",
        File::new(BIG, events),
        &sections,
        280,
        12056,
    );
}

/// Assembles a file from its events, the sections that were written again, and the rest of the
/// original: the records and the other sections. The result must be equal to the original.
fn rebuild(
    name: &str,
    mut file: File,
    written: &[(u32, Buf)],
    data_offset: usize,
    data_size: usize,
) {
    let original = fixture(name);
    let table = data_offset + data_size;
    file.data = original[data_offset..table].to_vec();
    let word = |at: usize| {
        let bytes = original[at..at + 8].try_into().expect("8 bytes");
        if file.big {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        }
    };
    let number = |at| word(at) as usize;
    let bits = (0..64).filter(|bit| word(72) >> bit & 1 == 1);
    for (i, bit) in bits.enumerate() {
        let (offset, size) = (number(table + 16 * i), number(table + 16 * i + 8));
        let mut section = original[offset..offset + size].to_vec();
        if let Some((_, again)) = written.iter().find(|(written, _)| *written == bit) {
            same(&format!("feature {bit} of {name}"), &section, &again.bytes);
            section.clone_from(&again.bytes);
        }
        file.features.push((bit, section));
    }
    let features = &file.features;
    assert!(
        written
            .iter()
            .all(|(bit, _)| features.iter().any(|feature| feature.0 == *bit))
    );
    // Features that perf dropped leave unused space after the table.
    let end = table + 16 * file.features.len();
    file.gap = original[end..number(table)].to_vec();
    same(name, &original, &file.bytes());
}
