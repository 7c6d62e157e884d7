//! AUX data in samples.

use std::fs;
use std::path::Path;

use perfdata_core::feature::FeatureId;
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, RawRecord, Record, RecordType};
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::synth::buf::island;
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::record::{Scribe, stream};
use perfdata_tests::synth::{Buf, feature_system, kind, sink};

use super::{Extracted, USUAL, events, records};

const AUX: u64 = 1 << 20;

/// `perf record --aux-sample`, also with `-z`.
#[test]
fn samples_hold_aux_data() {
    let data = island(48);
    for big in [false, true] {
        let mut s = records(big, USUAL | AUX, 0, |s| {
            for (id, range) in [(1001, 0..16), (1002, 16..24), (1001, 24..48)] {
                s.stamp.id = id;
                s.sample("AUX", |sample| sample.aux = data[range].to_vec());
            }
            s.sample("without", |sample| sample.aux.clear());
        });
        let plain = stream(&s.cases);
        s.cases = sink::compress(big, &s.cases, kind::COMPRESSED2, 100);
        let compressed = stream(&s.cases);
        for (data_section, is_compressed) in [(plain, false), (compressed, true)] {
            let mut file = File::new(big, events(USUAL | AUX));
            file.data = data_section;
            if is_compressed {
                file.set_feature(27, feature_system::compressed(Buf::new(big)).bytes);
            }
            let folder = tempfile::tempdir().expect("a temporary folder");
            let (input, side) = (folder.path().join("input"), folder.path().join("side"));
            fs::write(&input, file.bytes()).expect("a temporary file");
            let extracted =
                Extracted::of_file(&input, &["--sideband", side.to_str().expect("UTF-8")]);
            assert_eq!(
                extracted.file("intel-pt-cpu0.aux"),
                [&data[..16], &data[24..]].concat()
            );
            assert_eq!(extracted.file("intel-pt-cpu1.aux"), data[16..24]);
            assert_eq!(
                extracted.pieces(&["at", "size", "id", "time", "offset"]),
                [
                    serde_json::json!([0, 16, 1001, 1_000_000_007, null]),
                    serde_json::json!([16, 24, 1001, 1_000_002_007, null])
                ]
            );
            check_emptied(&side);
            // The same in a stream.
            let pipe = convert(&input, Some(ContainerKind::Pipe), Vec::new())
                .expect("it fits into a pipe")
                .bytes();
            fs::write(&input, pipe).expect("a temporary file");
            let side = folder.path().join("side of a stream");
            Extracted::of_file(&input, &["--sideband", side.to_str().expect("UTF-8")]);
            check_emptied(&side);
        }
    }
}

/// Checks that the samples are the same with empty AUX fields, and that nothing is compressed.
fn check_emptied(side: &Path) {
    let whole = Whole::read_file(side).expect("a recording");
    let samples = whole
        .records
        .iter()
        .filter(|(_, kind)| *kind == RecordType::SAMPLE);
    assert_eq!(samples.count(), 4);
    assert!(
        !whole
            .recording
            .features
            .contains_key(&FeatureId::COMPRESSED)
    );
    let events = &whole.recording.events;
    for (at, _) in whole
        .records
        .iter()
        .filter(|(_, kind)| *kind == RecordType::SAMPLE)
    {
        let raw =
            RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0).expect("a record");
        let Body::Sample(sample) = Record::decode(&raw, &events.layout_of(&raw))
            .expect("sound")
            .body
        else {
            panic!("no sample");
        };
        assert!(sample.aux.expect("the part").is_empty());
    }
}

/// Without the table of IDs, the queue is determined by the sample's CPU. Fields that a sample does
/// not contain are omitted.
#[test]
fn samples_without_a_table_of_ids_go_by_cpu() {
    let mut file = File::new(false, events(USUAL | AUX));
    let mut s = Scribe::new(
        false,
        file.events[0].attr.clone(),
        Scribe::standard(false).stamp,
    );
    s.sample("AUX", |sample| sample.aux = island(8));
    file.data = stream(&s.cases);
    let extracted = Extracted::of(&file.bytes());
    assert_eq!(extracted.file("unknown-cpu3.aux"), island(8));
    assert_eq!(extracted.queues()[0]["idx"], -1);
}
