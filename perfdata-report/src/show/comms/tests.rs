use super::*;
use perfdata_core::attr::{Attr, AttrFlags, SampleType};
use perfdata_core::record::{Body, Comm, Record, SampleId};
use perfdata_core::wire::Text;
use perfdata_core::{DecodeContext, Endian, Event};

fn at(comms: &mut Comms, time: u64, tid: u32) {
    comms.wait(time, tid);
}

fn changes(comms: &mut Comms, time: u64, change: CommChange) {
    comms.youngest = comms.youngest.max(time);
    comms.changes.push((time, change));
}

fn named(comms: &mut Comms, time: u64, tid: u32, name: &str) {
    let name = comms.threads.comms_mut().intern(name.as_bytes());
    changes(
        comms,
        time,
        CommChange::Comm {
            tid: Tid { pid: tid, tid },
            name,
        },
    );
}

fn fork(tid: u32, parent: u32) -> CommChange {
    CommChange::Fork(Task {
        pid: tid,
        ppid: parent,
        tid,
        ptid: parent,
        time: 0,
    })
}

/// What is read at known places is what the declarations have there.
#[test]
fn records_say_what_decoding_says() {
    let flags = AttrFlags::default().with_sample_id_all(true);
    let attr = Attr {
        sample_type: SampleType::TIME,
        flags,
        ..Attr::default()
    };
    let layout = DecodeContext::of_attr(&attr);
    let events: Events = [Event { attr, ids: vec![] }].into_iter().collect();
    let task = Task {
        pid: 1,
        ppid: 2,
        tid: 3,
        ptid: 4,
        time: 0,
    };
    let comm = Comm {
        pid: 5,
        tid: 6,
        comm: Text::padded(b"name", 8),
    };
    let bodies = [
        (RecordType::COMM, Body::Comm(comm)),
        (RecordType::FORK, Body::Fork(task.clone())),
        (RecordType::EXIT, Body::Exit(task)),
    ];
    for (kind, body) in bodies {
        let time = Some(9);
        let sample_id = SampleId {
            tid: None,
            time,
            id: None,
            stream_id: None,
            cpu: None,
            identifier: None,
        };
        let record = Record {
            kind,
            misc: 0,
            body,
            tail: vec![],
            sample_id: Some(sample_id),
        };
        for endian in [Endian::Little, Endian::Big] {
            let bytes = record.encode(endian).expect("a short record");
            let raw = RawRecord::first(&bytes, endian, 0).expect("a record");
            let mut comms = Comms::default();
            comms.see(&raw, &events);
            let decoded = match Record::decode(&raw, &layout).expect("it was encoded").body {
                Body::Comm(comm) => {
                    let name = comms.threads.comms_mut().intern(comm.comm.text());
                    CommChange::Comm {
                        tid: Tid {
                            pid: comm.pid,
                            tid: comm.tid,
                        },
                        name,
                    }
                }
                Body::Fork(task) => CommChange::Fork(task),
                Body::Exit(task) => CommChange::Exit(Tid {
                    pid: task.pid,
                    tid: task.tid,
                }),
                other => panic!("another body: {other:?}"),
            };
            assert_eq!(
                format!("{:?}", comms.changes),
                format!("{:?}", [(9, decoded)])
            );
        }
    }
}

fn sums(comms: Comms) -> Vec<(String, u64)> {
    let (names, others) = comms.finish();
    assert_eq!(others, 0);
    names
        .into_iter()
        .map(|(name, samples)| (String::from_utf8_lossy(&name).into_owned(), samples))
        .collect()
}

#[test]
fn a_sample_has_the_name_of_its_moment() {
    let mut comms = Comms::default();
    // Samples of another CPU, whose share of the round comes first.
    let _ = [5, 12, 20, 31].map(|time| at(&mut comms, time, 7));
    named(&mut comms, 10, 7, "before");
    named(&mut comms, 30, 7, "behind");
    comms.end_round();
    at(&mut comms, 33, 7);
    // The latest possible change.
    named(&mut comms, 32, 7, "late");
    comms.end_round();
    let expected = [("before", 2), (":7", 1), ("behind", 1), ("late", 1)];
    assert_eq!(
        sums(comms),
        expected.map(|(name, samples)| (name.to_owned(), samples))
    );
}

#[test]
fn a_child_is_called_as_its_parent_was() {
    let mut comms = Comms::default();
    named(&mut comms, 10, 7, "shell");
    changes(&mut comms, 20, fork(8, 7));
    named(&mut comms, 30, 7, "other");
    named(&mut comms, 40, 8, "make");
    let _ = [25, 35, 45].map(|time| at(&mut comms, time, 8));
    changes(&mut comms, 50, CommChange::Exit(Tid { pid: 8, tid: 8 }));
    changes(&mut comms, 60, fork(8, 9));
    let _ = [55, 65].map(|time| at(&mut comms, time, 8));
    at(&mut comms, 70, 0);
    let expected = [("make", 2), ("shell", 2), (":8", 1), ("swapper", 1)];
    assert_eq!(
        sums(comms),
        expected.map(|(name, samples)| (name.to_owned(), samples))
    );
}

#[test]
fn memory_is_bounded() {
    let mut comms = Comms::default();
    for tid in 0..3 * THREADS as u32 {
        comms.apply(&fork(tid, 0));
        comms.count(tid, 1);
        comms.apply(&CommChange::Exit(Tid { pid: tid, tid }));
        let name = comms
            .threads
            .comms_mut()
            .intern(format!("{tid}").repeat(8).as_bytes());
        comms.apply(&CommChange::Comm {
            tid: Tid { pid: 1, tid: 1 },
            name,
        });
        comms.count(tid ^ 1 << 31, 1);
    }
    assert!(comms.threads.list().len() <= THREADS && comms.threads.comms().held() <= 2 * NAMES);
    let (names, others) = comms.finish();
    assert_eq!(
        names.iter().map(|name| name.1).sum::<u64>() + others,
        6 * THREADS as u64
    );
    assert!(others > 0);
    let mut comms = Comms::default();
    for time in 0..4 * WAITING as u64 {
        at(&mut comms, time, 1);
        assert!(comms.due.len() + comms.younger.len() < WAITING);
    }
    assert_eq!(sums(comms), [(":1".to_owned(), 4 * WAITING as u64)]);
}
