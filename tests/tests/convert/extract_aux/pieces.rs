//! Pieces of AUX data: their order, gaps, overlaps and snapshots.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use perfdata_tests::synth::auxtrace::Origin;
use perfdata_tests::synth::buf::island;
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::record::{Scribe, stream};
use perfdata_tests::synth::{auxtrace, kernel, kind};
use serde_json::Value;

use super::{Extracted, USUAL, events, file, piece};

/// Extracts blocks of one CPU in a recording without snapshots.
fn one_cpu(snapshot: u64, pieces: &[(u64, &[u8])]) -> Extracted {
    let [little, big] = [false, true].map(|big| {
        Extracted::of(&file(big, USUAL, snapshot, |s| {
            pieces
                .iter()
                .for_each(|(offset, bytes)| piece(s, 0, *offset, bytes));
        }))
    });
    assert_eq!(
        little.only(),
        big.only(),
        "the order of bytes has no part in it"
    );
    assert_eq!(little.queues(), big.queues());
    assert_eq!(little.queues()[0]["file"], "intel-pt-cpu0.aux");
    assert_eq!(little.queues()[0]["size"], little.only().len());
    little
}

#[test]
fn each_cpu_has_its_file() {
    for big in [false, true] {
        let data = island(64);
        let bytes = file(big, USUAL, 0, |s| {
            piece(s, 0, 0, &data[..16]);
            piece(s, 1, 0x10, &data[16..24]);
            let id = s.stamp.id;
            s.stamp.id = 1002;
            s.kernel("AUX", kind::AUX, 0, |b| kernel::aux(b, 0x18, 8, 1 | 8));
            s.stamp.id = id;
            piece(s, 0, 16, &data[24..48]);
            piece(s, 1, 0x18, &data[48..]);
            auxtrace::piece(
                s,
                "of a thread",
                Origin {
                    offset: 0,
                    reference: 0,
                    idx: 0,
                    tid: 77,
                    cpu: u32::MAX,
                },
                &data[..8],
            );
        });
        let extracted = Extracted::of(&bytes);
        assert_eq!(
            extracted.file("intel-pt-cpu0.aux"),
            [&data[..16], &data[24..48]].concat()
        );
        assert_eq!(
            extracted.file("intel-pt-cpu1.aux"),
            [&data[16..24], &data[48..]].concat()
        );
        assert_eq!(extracted.file("intel-pt-tid77.aux"), data[..8]);
        assert_eq!(
            extracted.index["byte_order"],
            if big { "big-endian" } else { "little-endian" }
        );
        assert_eq!(
            extracted.index["aux_records"][0]["fields"]["flags"],
            serde_json::json!(["TRUNCATED", "COLLISION"])
        );
        assert_eq!(extracted.index["aux_records"][0]["queue"], 1);
        assert!(
            extracted
                .said
                .contains("data was lost (TRUNCATED): 1 AUX record"),
            "{}",
            extracted.said
        );
        assert!(
            extracted.said.ends_with("3 files, 72 bytes of AUX data\n"),
            "{}",
            extracted.said
        );
        let mode = |path: &Path| {
            fs::metadata(path)
                .expect("it is there")
                .permissions()
                .mode()
                & 0o777
        };
        assert_eq!(mode(&extracted.folder.path().join("aux")), 0o700);
        assert_eq!(
            mode(&extracted.folder.path().join("aux/intel-pt-cpu0.aux")),
            0o600
        );
    }
}

#[test]
fn gaps_are_told() {
    let data = island(32);
    let extracted = one_cpu(0, &[(8, &data[..16]), (0x100, &data[16..])]);
    assert_eq!(extracted.only(), data);
    assert_eq!(
        extracted.pieces(&["at", "size", "offset", "gap"]),
        [
            serde_json::json!([0, 16, "0x8", null]),
            serde_json::json!([16, 16, "0x100", 0x100 - 24])
        ]
    );
    assert!(
        extracted.said.contains("232 bytes missing in 1 gap "),
        "{}",
        extracted.said
    );
}

#[test]
fn pieces_come_in_the_order_of_their_offsets() {
    let data = island(64);
    let extracted = one_cpu(
        0,
        &[(32, &data[32..48]), (0, &data[..32]), (48, &data[48..])],
    );
    assert_eq!(extracted.only(), data);
    assert_eq!(
        extracted.pieces(&["at", "size", "offset", "gap", "restart"]),
        [[0, 32], [32, 16], [48, 16]]
            .map(|[at, size]| { serde_json::json!([at, size, format!("{at:#x}"), null, null]) })
    );
}

#[test]
fn what_is_there_twice_comes_once() {
    let data = island(64);
    let extracted = one_cpu(
        0,
        &[
            (0, &data[..32]),
            (16, &data[16..48]),
            (24, &data[24..40]),
            (40, &data[40..]),
        ],
    );
    assert_eq!(extracted.only(), data);
    assert_eq!(
        extracted.pieces(&["at", "size", "overlap"]),
        [[0, 32, 0], [32, 16, 16], [48, 0, 16], [48, 16, 8]].map(
            |[at, size, overlap]| match overlap {
                0 => serde_json::json!([at, size, null]),
                _ => serde_json::json!([at, size, overlap]),
            }
        )
    );
}

/// perf pads the data to a multiple of 8. The offset of the next block shows the actual size.
#[test]
fn padding_is_left_out() {
    let data = island(13);
    let padded = [&data[..5], &[0; 3]].concat();
    let extracted = one_cpu(0, &[(0, &padded), (5, &data[5..])]);
    assert_eq!(extracted.only(), data);
    assert_eq!(
        extracted.pieces(&["at", "size", "padding"]),
        [
            serde_json::json!([0, 5, 3]),
            serde_json::json!([5, 8, null])
        ]
    );
}

#[test]
fn contradictions_are_kept() {
    let data = island(48);
    let extracted = one_cpu(0, &[(0, &data[..32]), (8, &data[32..])]);
    assert_eq!(extracted.only(), data);
    assert_eq!(
        extracted.pieces(&["restart"]),
        [serde_json::json!([null]), serde_json::json!([true])]
    );
    assert!(
        extracted.said.contains("1 piece does not continue"),
        "{}",
        extracted.said
    );
}

/// The offsets of Intel PT snapshots are positions in a circular buffer.
#[test]
fn snapshots_stay_as_they_came() {
    let data = island(80);
    let pieces: [(u64, &[u8]); 4] = [
        (0x40, &data[..32]),
        (0x60, &data[32..48]),
        (0x10, &data[48..]),
        (0x10, &data[48..]),
    ];
    let extracted = one_cpu(1, &pieces);
    assert_eq!(extracted.only(), [&data[..], &data[48..]].concat());
    assert_eq!(
        extracted.pieces(&["restart", "overlap", "gap"]),
        [Value::Null, Value::Null, true.into(), true.into()]
            .map(|restart| serde_json::json!([restart, null, null]))
    );
}

/// perf before 5.14 recorded the whole buffer for every CoreSight snapshot, so each repeats the
/// previous one.
#[test]
fn snapshots_of_coresight_overlap() {
    let data = island(96);
    for big in [false, true] {
        let mut s = Scribe::new(
            big,
            events(USUAL).remove(0).attr,
            Scribe::standard(big).stamp,
        );
        auxtrace::info(&mut s, "CS_ETM", 3, |b| b.u64s(&[0, 11 << 32, 1]));
        for (offset, bytes) in [(0, &data[..64]), (32, &data[32..])] {
            piece(&mut s, 0, offset, bytes);
        }
        // A lower offset and different data: the buffer was allocated again.
        piece(&mut s, 0, 0, &data[8..24]);
        let mut file = File::new(big, events(USUAL));
        file.data = stream(&s.cases);
        let extracted = Extracted::of(&file.bytes());
        assert_eq!(
            extracted.file("cs-etm-cpu0.aux"),
            [&data[..], &data[8..24]].concat()
        );
        assert_eq!(
            extracted.pieces(&["at", "overlap", "restart"]),
            [
                serde_json::json!([0, null, null]),
                serde_json::json!([64, 32, null]),
                serde_json::json!([96, null, true])
            ]
        );
    }
}
