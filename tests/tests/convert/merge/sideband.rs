//! What existed before each recording, and what several recordings say of the same.

use perfdata_core::record::{Body, RecordType};
use perfdata_tests::convert::Whole;
use perfdata_tests::synth::buf::Buf;
use perfdata_tests::synth::record::{Scribe, stream};
use perfdata_tests::synth::{kind, user};

use super::{BASE, Small, event, merge, records};

/// The program of a process changes between two recordings of it: the samples of the first keep
/// their names, whichever recording is named first.
#[test]
fn what_existed_before_a_recording_is_told_at_its_start() {
    let one = Small::new(event(BASE, 4000, &[7]), "perl", &[100, 200]).bytes();
    let two = Small::new(event(BASE, 4000, &[8]), "python", &[1000, 1100]).bytes();
    for inputs in [[&one, &two], [&two, &one]] {
        let both = merge(&[inputs[0], inputs[1]]);
        let mut seen = Vec::new();
        for (_, time, record) in records(&both) {
            match record.body {
                Body::Comm(comm) => seen.push((time, comm.comm.to_string())),
                Body::Exit(task) => {
                    assert_eq!((task.pid, task.tid, task.time), (1000, 1000, 999));
                    seen.push((time, "exit".to_owned()));
                }
                Body::Sample(_) => seen.push((time, String::new())),
                _ => {}
            }
        }
        let expected = [
            (0, "perl"),
            (100, ""),
            (200, ""),
            (999, "exit"),
            (999, "python"),
            (1000, ""),
            (1100, ""),
        ];
        let expected = expected.map(|(time, what)| (Some(time), what.to_owned()));
        assert_eq!(seen, expected);
    }
}

/// Recordings of one process at the same time say the same of it: it is said once. A process that
/// only one knows is kept.
#[test]
fn what_two_recordings_say_is_said_once() {
    let one = Small::new(event(BASE, 4000, &[7]), "same", &[100, 500]).bytes();
    let two = Small::new(event(BASE, 5000, &[8]), "same", &[200, 400]).bytes();
    let three = Small {
        pid: 3000,
        ..Small::new(event(BASE, 6000, &[9]), "same", &[300, 350])
    };
    let both = records(&merge(&[&one, &two, &three.bytes()]));
    let count = |kind| {
        both.iter()
            .filter(|(_, _, record)| record.kind == kind)
            .count()
    };
    assert_eq!(count(RecordType::COMM), 2);
    // One of the kernel, one of each process.
    assert_eq!(count(RecordType::MMAP), 3);
    assert_eq!(count(RecordType::SAMPLE), 6);
}

/// Records that readers accept once, and those that name dynamic event types.
#[test]
fn maps_are_kept_once_and_event_types_are_compared_by_name() {
    let with = |name: &str, other: &str, time: u64, id: u64| {
        let mut event = event(BASE, 4000, &[id]);
        event.attr.kind = 8;
        let small = Small::new(event, "one", &[time]);
        let mut file = small.file();
        let pmus = Buf::new(false).u32(2).u32(8).str(name).u32(9).str(other);
        file.set_feature(16, pmus.bytes);
        let mut s = Scribe::standard(false);
        s.user("THREAD_MAP", kind::THREAD_MAP, 0, |b| {
            user::thread_map(b, &[(1000, "one")])
        });
        file.data.extend(stream(&s.cases));
        file.bytes()
    };
    let both = merge(&[
        &with("kprobe", "uprobe", 100, 7),
        &with("uprobe", "kprobe", 200, 8),
    ]);
    let kinds: Vec<u32> = Whole::read(both.clone())
        .expect("a recording")
        .recording
        .events
        .iter()
        .map(|event| event.attr.kind.0)
        .collect();
    assert_eq!(kinds, [8, 9]);
    let maps = records(&both);
    let maps = maps
        .iter()
        .filter(|(_, _, record)| record.kind == RecordType::THREAD_MAP);
    assert_eq!(maps.count(), 1);
}
