//! Counter values of samples (`perf record -e '{…}:S'`).

use perfdata_core::record::Body;
use perfdata_tests::synth::attr::sample_type::{IDENTIFIER, READ};
use perfdata_tests::synth::attr::{Attr, Stamp};
use perfdata_tests::synth::buf::Buf;
use perfdata_tests::synth::feature_events::{self, Event};
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::kind;
use perfdata_tests::synth::record::{Scribe, misc, stream};
use perfdata_tests::synth::sample::{Read, ReadValue, Sample, read_format};

use super::{BASE, FLAGS, merge, records};

/// A recording of a group of two events: at each time, their counts.
fn group(big: bool, flags: &str, counts: &[(u64, u32, [u64; 2])]) -> Vec<u8> {
    let event = |id: u64| Event {
        name: format!("event-{id}"),
        attr: Attr {
            kind: 1,
            size: 128,
            config: id,
            sample_period: 1000,
            read_format: read_format::GROUP | read_format::ID,
            ..Attr::new(BASE | READ | IDENTIFIER, &format!("{FLAGS}{flags}"))
        },
        ids: vec![id],
    };
    let events = vec![event(7), event(8)];
    let mut s = Scribe::new(big, events[0].attr.clone(), Stamp::ZERO);
    s.tick = 0;
    for &(time, tid, counts) in counts {
        s.stamp = Stamp {
            pid: tid,
            tid,
            time,
            id: 7,
            ..Stamp::ZERO
        };
        let (attr, stamp) = (s.attr.clone(), s.stamp);
        s.user("SAMPLE", kind::SAMPLE, misc::USER, |b| {
            let values = [7, 8].into_iter().zip(counts);
            let values = values.map(|(id, value)| ReadValue { value, id, lost: 0 });
            let sample = Sample {
                period: 1000,
                read: Read {
                    values: values.collect(),
                    ..Read::default()
                },
                ..Sample::rich(&stamp, &attr)
            };
            sample.put(b, &attr)
        });
    }
    let mut file = File::new(big, events.clone());
    file.data = stream(&s.cases);
    file.set_feature(
        feature_events::EVENT_DESC,
        feature_events::event_desc(Buf::new(big), &events).bytes,
    );
    file.bytes()
}

/// The counts of all samples of a recording.
fn counts(bytes: &[u8]) -> Vec<Vec<u64>> {
    let samples = records(bytes).into_iter();
    let samples = samples.filter_map(|(.., record)| match record.body {
        Body::Sample(sample) => sample.read,
        _ => None,
    });
    samples
        .map(|read| read.values.iter().map(|counter| counter.value).collect())
        .collect()
}

#[test]
fn parts_of_a_recording_continue_each_other() {
    for big in [false, true] {
        let a = group(big, "", &[(10, 1, [1000, 3]), (20, 1, [2010, 5])]);
        let b = group(big, "", &[(15, 2, [1005, 0]), (30, 2, [2006, 9])]);
        let c = group(big, "", &[(40, 1, [1001, 1]), (50, 1, [2004, 1])]);
        let expected = [
            [1000, 3],
            [2005, 3],
            [3015, 5],
            [4016, 14],
            [5017, 15],
            [6020, 15],
        ];
        assert_eq!(counts(&merge(&[&a, &b, &c])), expected);
        assert_eq!(counts(&merge(&[&c, &a, &b])), expected);
        let merged = merge(&[&a, &b]);
        assert_eq!(counts(&merge(&[&merged, &c])), expected);
    }
}

#[test]
fn threads_of_inherited_events_count_separately() {
    let a = group(false, " inherit", &[(10, 1, [1000, 3]), (20, 2, [1010, 5])]);
    let b = group(false, " inherit", &[(30, 2, [1001, 1]), (40, 1, [1002, 2])]);
    let expected = [[1000, 3], [1010, 5], [2011, 6], [2002, 5]];
    assert_eq!(counts(&merge(&[&a, &b])), expected);
}

/// The kernel goes on counting when perf starts another file (`--switch-output`).
#[test]
fn files_of_one_run_of_perf_stay() {
    let a = group(false, "", &[(10, 1, [1000, 3]), (20, 1, [2010, 5])]);
    let b = group(false, "", &[(30, 1, [3015, 5]), (40, 1, [4020, 8])]);
    let expected = [[1000, 3], [2010, 5], [3015, 5], [4020, 8]];
    assert_eq!(counts(&merge(&[&a, &b])), expected);
}
