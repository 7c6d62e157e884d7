//! The order in which recordings are merged does not matter.

use std::fs;
use std::sync::Mutex;

use perfdata_convert::io::Input;
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, Record, RecordType, is_known_time};
use perfdata_edit::merge::Merge;
use perfdata_edit::slice::{Select, Slice};
use perfdata_tests::convert::{Whole, into_memory};
use perfdata_tests::fuzz::Numbers;
use perfdata_tests::recordings::{Recording, fixtures, in_parallel};
use perfdata_tests::synth::attr::Stamp;
use perfdata_tests::synth::attr::sample_type::*;
use perfdata_tests::synth::feature_events::Event;
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::record::{Case, Scribe, misc, stream};
use perfdata_tests::synth::sample::Sample;
use perfdata_tests::synth::{kernel, kind};

use super::{BASE, Small, event, merge, merge_with, plain, records, samples};

/// Records that readers accept once or that say the same wherever they are: those of the first
/// recording are kept, or those of all, without an order.
fn is_about_all(kind: RecordType) -> bool {
    !kind.is_kernel() || kind == RecordType::LOST_SAMPLES
}

/// The events of a recording, and its records: those with a time in the order of time, records of
/// the same time in the order of their bytes.
fn content(bytes: &[u8]) -> (Vec<perfdata_core::Event>, Vec<(u64, String)>) {
    let whole = Whole::read(bytes.to_vec()).expect("a recording");
    let events = whole.recording.events;
    let mut last = 0;
    let (records, mut others): (Vec<_>, Vec<_>) = records(bytes)
        .into_iter()
        .map(|(_, time, mut record)| {
            last = time.filter(|&time| is_known_time(time)).unwrap_or(last);
            // A synthesized record is of no event: its ID only says which form its trailer has.
            if let Some(id) = &mut record.sample_id
                && id.tid.is_some_and(|tid| (tid.pid, tid.tid) == (0, 0))
            {
                (id.id, id.identifier) = (None, None);
            }
            // Of the IDs of an event, a record that had none may have any.
            let first_of = |id: &mut Option<u64>| {
                let event = id.and_then(|id| events.of_id_strict(id));
                if let Some(event) = event {
                    *id = events[event].ids.iter().min().copied();
                }
            };
            if let Some(id) = &mut record.sample_id {
                first_of(&mut id.id);
                first_of(&mut id.identifier);
            }
            if let Body::Sample(sample) = &mut record.body {
                first_of(&mut sample.id);
                first_of(&mut sample.identifier);
            }
            (last, record)
        })
        .partition(|(_, record)| !is_about_all(record.kind));
    assert!(records.is_sorted_by_key(|record| record.0));
    others.iter_mut().for_each(|other| other.0 = 0);
    let shown = |records: Vec<(u64, Record)>| -> Vec<(u64, String)> {
        let shown = records.into_iter();
        let shown = shown.map(|(time, record)| (time, format!("{record:?}")));
        shown.collect()
    };
    let (mut records, mut others) = (shown(records), shown(others));
    let untimed = records.partition_point(|record| record.0 == 0);
    records[untimed..].sort();
    others.sort();
    records.extend(others);
    (events.to_vec(), records)
}

/// Checks that two recordings have the same events and records.
fn same(found: &[u8], expected: &[u8], name: &str) {
    let ((events, found), (expected_events, expected)) = (content(found), content(expected));
    assert_eq!(events, expected_events, "{name}");
    compare(&found, &expected, name);
}

fn compare(found: &[(u64, String)], expected: &[(u64, String)], name: &str) {
    let pairs = found.iter().zip(expected);
    let at = pairs
        .take_while(|(found, expected)| found == expected)
        .count();
    assert_eq!(found.get(at), expected.get(at), "{name}: record {at}");
}

/// Checks the same for recordings that were merged in another order: the events are in another
/// order, and there may be other THREAD_MAP, CPU_MAP and TIME_CONV records.
fn same_content(found: &[u8], expected: &[u8], name: &str) {
    let sorted = |bytes| {
        let (events, mut records) = content(bytes);
        let mut events: Vec<String> = events
            .into_iter()
            .map(|mut event| {
                event.ids.sort_unstable();
                format!("{event:?}")
            })
            .collect();
        events.sort();
        let one_of = ["ThreadMap", "CpuMap", "TimeConv"];
        for (_, text) in &mut records {
            // The trailer of a record that merging adds is that of the first event.
            if text.contains("identifier: Some(0)") || !text.contains("Sample(") {
                text.truncate(text.find(", tail").unwrap_or(text.len()));
            }
        }
        records.retain(|(_, text)| !one_of.iter().any(|kind| text.contains(kind)));
        records.sort();
        (events, records)
    };
    let ((events, found), (expected_events, expected)) = (sorted(found), sorted(expected));
    assert_eq!(events, expected_events, "{name}");
    compare(&found, &expected, name);
}

/// Merges three recordings in all ways. Returns false if they cannot be merged, in whichever way.
fn check([a, b, c]: [&[u8]; 3], name: &str) -> bool {
    let merged = |inputs: &[&[u8]]| merge_with(Merge::default(), inputs);
    let Ok(all) = merged(&[a, b, c]) else {
        for (first, second, last) in [(a, b, c), (b, c, a)] {
            let both = merged(&[first, second]).and_then(|both| merged(&[&both, last]));
            both.expect_err(name);
        }
        return false;
    };
    let pair = |one: &[u8], other: &[u8]| merged(&[one, other]).expect(name);
    same(&pair(&pair(a, b), c), &all, &format!("{name}: (ab)c"));
    same(&pair(a, &pair(b, c)), &all, &format!("{name}: a(bc)"));
    for other in [
        pair(&pair(a, c), b),
        pair(&pair(c, a), b),
        pair(b, &pair(a, c)),
        pair(c, &pair(b, a)),
        merged(&[c, b, a]).expect(name),
        merged(&[b, c, a]).expect(name),
    ] {
        same_content(&other, &all, name);
    }
    true
}

#[test]
fn merging_commutes_and_associates() {
    let one = Small::new(event(BASE, 4000, &[7]), "one", &[100, 400, 700]).bytes();
    let two = Small {
        pid: 2000,
        ..Small::new(event(BASE | ID, 5000, &[8]), "two", &[200, 500, 800])
    }
    .bytes();
    let three = Small {
        pid: 3000,
        ..Small::new(event(BASE, 4000, &[9]), "three", &[300, 600, 900])
    }
    .bytes();
    let plain = |bytes: &[u8]| -> Vec<(Option<u64>, Record)> {
        let records = records(bytes).into_iter();
        records.map(|(_, time, record)| (time, record)).collect()
    };
    let all = merge(&[&one, &two, &three]);
    assert_eq!(merge(&[&merge(&[&one, &two]), &three]), all);
    assert_eq!(merge(&[&one, &merge(&[&two, &three])]), all);
    assert_eq!(plain(&merge(&[&three, &one, &two])), plain(&all));
    assert_eq!(plain(&merge(&[&two, &three, &one])), plain(&all));
}

/// A process of a machine, from its start to its end.
struct Process {
    pid: u32,
    from: u64,
    to: u64,
    /// When it becomes another program.
    exec: u64,
}

/// The records of a machine that a recording contains: those of some processes, or of all, in a
/// range of times.
struct Watched {
    range: (u64, u64),
    pids: Option<Vec<u32>>,
    event: Event,
}

impl Watched {
    fn random(numbers: &mut Numbers, machine: &[Process], id: u64) -> Self {
        // No two recordings start at the same time: the first of two has no times in its opening.
        let from = 1_000 + 10 * numbers.below(300) as u64 + id;
        let len = 200 + 10 * numbers.below(150) as u64;
        let some = machine.iter().filter(|_| numbers.below(2) == 0);
        let some: Vec<u32> = some.map(|process| process.pid).collect();
        Watched {
            range: (from, from + len),
            pids: (numbers.below(3) > 0).then_some(some),
            event: event(BASE | ID, 4000 + numbers.below(2) as u64, &[id]),
        }
    }

    fn bytes(&self, machine: &[Process]) -> Vec<u8> {
        let (from, to) = self.range;
        let name = |process: &Process, time: u64| {
            if time < process.exec {
                "before"
            } else {
                "after"
            }
        };
        let is_watched = |process: &&Process| {
            let pids = self.pids.as_ref();
            pids.is_none_or(|pids| pids.contains(&process.pid))
        };
        let mut s = Scribe::new(false, self.event.attr.clone(), Stamp::ZERO);
        s.tick = 0;
        let place = [0xffff_ffff_8100_0000, 0x100_0000, 0xffff_ffff_8100_0000];
        s.kernel("MMAP", kind::MMAP, misc::KERNEL, |b| {
            kernel::mmap(b, (u32::MAX, 0), place, "[kernel.kallsyms]_text")
        });
        let describe = |s: &mut Scribe, process: &Process, time: u64| {
            let task = (process.pid, process.pid);
            let name = name(process, time);
            s.kernel("COMM", kind::COMM, 0, |b| kernel::comm(b, task, name));
            s.kernel("MMAP", kind::MMAP, misc::USER, |b| {
                kernel::mmap(b, task, [0x40_0000, 0x1000, 0], name)
            });
        };
        let mut first = Scribe::new(false, self.event.attr.clone(), Stamp::ZERO);
        (first.stamp.time, first.stamp.id) = (from, self.event.ids[0]);
        let (attr, stamp) = (first.attr.clone(), first.stamp);
        first.user("SAMPLE", kind::SAMPLE, misc::KERNEL, |b| {
            Sample::rich(&stamp, &attr).put(b, &attr)
        });
        let mut timed: Vec<(u64, u32, Vec<Case>)> = vec![(from, 0, first.cases)];
        for process in machine.iter().filter(is_watched) {
            let task = (process.pid, process.pid);
            if process.from < from && process.to >= from {
                s.kernel("FORK", kind::FORK, 0, |b| kernel::fork(b, task, (1, 1), 0));
                describe(&mut s, process, from);
            }
            let mut add = |time: u64, write: &dyn Fn(&mut Scribe)| {
                if (from..=to).contains(&time) {
                    let stamp = Stamp {
                        pid: process.pid,
                        tid: process.pid,
                        time,
                        id: self.event.ids[0],
                        ..Stamp::ZERO
                    };
                    let mut s = Scribe::new(false, self.event.attr.clone(), stamp);
                    s.tick = 0;
                    write(&mut s);
                    timed.push((time, process.pid, s.cases));
                }
            };
            // Records of one event are the same in all recordings: without IDs.
            let unnamed = |s: &mut Scribe| s.stamp.id = 0;
            add(process.from, &|s| {
                unnamed(s);
                let time = process.from;
                s.kernel("FORK", kind::FORK, 0, |b| {
                    kernel::fork(b, task, (1, 1), time)
                });
                describe(s, process, time);
            });
            add(process.exec, &|s| {
                unnamed(s);
                describe(s, process, process.exec);
            });
            add(process.to, &|s| {
                unnamed(s);
                let time = process.to;
                s.kernel("EXIT", kind::EXIT, 0, |b| {
                    kernel::fork(b, task, (1, 1), time)
                });
            });
            let step = 7 * u64::from(process.pid % 5 + 3);
            for time in (process.from + 1..process.to).step_by(step as usize) {
                add(time, &|s| {
                    let (attr, stamp) = (s.attr.clone(), s.stamp);
                    s.user("SAMPLE", kind::SAMPLE, misc::USER, |b| {
                        Sample::rich(&stamp, &attr).put(b, &attr)
                    });
                });
            }
        }
        timed.sort_by_key(|(time, pid, _)| (*time, *pid));
        s.cases
            .extend(timed.into_iter().flat_map(|(.., cases)| cases));
        let mut file = File::new(false, vec![self.event.clone()]);
        file.data = stream(&s.cases);
        file.bytes()
    }
}

/// Recordings of one machine, with gaps between them or at the same time, of all or some processes,
/// which begin, become other programs and end.
#[test]
fn recordings_of_one_machine_are_merged_in_any_order() {
    let seeds: Vec<u64> = (0..400).collect();
    let merged = Mutex::new(0);
    in_parallel(&seeds, |&seed| {
        let mut numbers = Numbers(seed);
        let machine: Vec<Process> = (0..6)
            .map(|at| {
                let from = 10 * numbers.below(400) as u64;
                let to = from + 20 + 10 * numbers.below(300) as u64;
                Process {
                    pid: 100 + at,
                    from: from + u64::from(at),
                    to: to + u64::from(at),
                    exec: from + 5 + numbers.below(400) as u64,
                }
            })
            .map(|process| Process {
                exec: process.exec.clamp(process.from + 1, process.to - 1),
                ..process
            })
            .collect();
        let inputs =
            [7, 8, 9].map(|id| Watched::random(&mut numbers, &machine, id).bytes(&machine));
        let inputs = inputs.each_ref().map(|input| &**input);
        if check(inputs, &format!("seed {seed}")) {
            *merged.lock().expect("no thread failed") += 1;
        }
    });
    assert_eq!(merged.into_inner().expect("no thread failed"), 400);
}

/// A thread that one recording contains does not end because another one has a gap.
#[test]
fn a_gap_in_one_recording_ends_no_thread_of_another() {
    let during = Small::new(event(BASE, 4000, &[7]), "same", &[100, 500, 900]).bytes();
    let one = Small::new(event(BASE, 4000, &[8]), "same", &[200, 300]).bytes();
    let two = Small {
        pid: 2000,
        ..Small::new(event(BASE, 4000, &[9]), "two", &[600, 700])
    }
    .bytes();
    let exits = |bytes: &[u8]| {
        let all = records(bytes).into_iter();
        all.filter(|(_, _, record)| record.kind == RecordType::EXIT)
            .count()
    };
    let with_gap = merge(&[&one, &two]);
    assert_eq!(exits(&with_gap), 1);
    assert_eq!(exits(&merge(&[&during, &with_gap])), 0);
    assert!(check([&during, &one, &two], "a gap"));
    // All threads of the first two ended by themselves: the gap is found nevertheless.
    let mut ended = Small::new(event(BASE, 4000, &[8]), "one", &[200, 300]).file();
    let stamp = Stamp {
        pid: 1000,
        tid: 1000,
        time: 301,
        id: 8,
        ..Stamp::ZERO
    };
    let mut s = Scribe::new(false, ended.events[0].attr.clone(), stamp);
    s.tick = 0;
    s.kernel("EXIT", kind::EXIT, 0, |b| {
        kernel::fork(b, (1000, 1000), (1, 1), 301)
    });
    ended.data.extend(stream(&s.cases));
    let ended = ended.bytes();
    let alive = Small {
        pid: 3000,
        ..Small::new(event(BASE, 4000, &[7]), "alive", &[100, 250])
    }
    .bytes();
    assert!(check([&alive, &ended, &two], "a gap without threads"));
}

/// A record that three recordings contain is kept once.
#[test]
fn records_of_three_recordings_are_kept_once() {
    let with = |id: u64| {
        let mut file = Small::new(event(BASE, 4000, &[id]), "same", &[100, 500]).file();
        let stamp = Stamp {
            pid: 1000,
            tid: 1000,
            time: 300,
            ..Stamp::ZERO
        };
        let mut s = Scribe::new(false, file.events[0].attr.clone(), stamp);
        s.tick = 0;
        for comm in ["new", "new", "newer"] {
            s.kernel("COMM", kind::COMM, 0, |b| {
                kernel::comm(b, (1000, 1000), comm)
            });
        }
        file.data.extend(stream(&s.cases));
        file.bytes()
    };
    let [a, b, c] = [with(7), with(8), with(9)];
    let comms: Vec<String> = records(&merge(&[&a, &b, &c]))
        .into_iter()
        .filter_map(|(_, time, record)| match record.body {
            Body::Comm(comm) if time == Some(300) => Some(comm.comm.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(comms, ["new", "new", "newer"]);
    assert!(check([&a, &b, &c], "three"));
}

/// Three slices of a recording by time, which share sideband.
#[test]
fn slices_of_a_recording_are_merged_in_any_order() {
    let merged = Mutex::new(0);
    in_parallel(&fixtures(), |recording| {
        let Some(slices) = slices(recording) else {
            return;
        };
        if check(slices.each_ref().map(|slice| &**slice), &recording.name) {
            *merged.lock().expect("no thread failed") += 1;
        }
    });
    let merged = merged.into_inner().expect("no thread failed");
    assert!(merged > 50, "{merged} merged");
}

fn slices(recording: &Recording) -> Option<[Vec<u8>; 3]> {
    if !recording.path.is_file() || recording.is_damaged() {
        return None;
    }
    let plain = plain(fs::read(&recording.path).ok()?);
    let mut times: Vec<u64> = samples(&plain).into_iter().map(|sample| sample.0).collect();
    times.retain(|&time| perfdata_core::record::is_moment(time));
    let (first, second) = (
        *times.get(times.len() / 3)?,
        *times.get(times.len() * 2 / 3)?,
    );
    let seconds = |time: u64| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
    let slice = |range: String| {
        let mut select = Select::default();
        select.times = range.parse().ok();
        let input = Input::from_source(plain.clone());
        let file = Some(ContainerKind::File);
        into_memory(input, file, vec![Box::new(Slice::new(select))]).ok()
    };
    Some([
        slice(format!(",{}", seconds(first)))?,
        slice(format!("{},{}", seconds(first + 1), seconds(second)))?,
        slice(format!("{},", seconds(second + 1)))?,
    ])
}

/// Triples of fixtures of one kind of machine.
#[test]
fn fixtures_are_merged_in_any_order() {
    let machines = ["6.1-x86_64", "7.2-x86_64", "6.12-x86_64", "6.12-s390x"];
    let mut triples = Vec::new();
    for machine in machines {
        let all: Vec<_> = fixtures()
            .into_iter()
            .filter(|recording| {
                recording.name.starts_with(machine)
                    && recording.path.is_file()
                    && !recording.is_damaged()
            })
            .collect();
        let mut numbers = Numbers(3);
        for _ in 0..all.len() {
            let triple = [(); 3].map(|()| numbers.below(all.len()));
            if triple[0] != triple[1] && triple[1] != triple[2] && triple[0] != triple[2] {
                triples.push(triple.map(|at| all[at].clone()));
            }
        }
    }
    let merged = Mutex::new(0);
    in_parallel(&triples, |triple| {
        let inputs = triple
            .each_ref()
            .map(|recording| plain(fs::read(&recording.path).expect("a fixture")));
        let names = triple.each_ref().map(|recording| &*recording.name);
        if check(inputs.each_ref().map(|input| &**input), &names.join(" ")) {
            *merged.lock().expect("no thread failed") += 1;
        }
    });
    let merged = merged.into_inner().expect("no thread failed");
    eprintln!("{merged} of {}", triples.len());
    assert!(merged > 10, "{merged} of {}", triples.len());
}
