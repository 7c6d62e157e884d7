//! What flame graphs make of the stacks of several threads.

use std::fs;
use std::path::Path;

use perfdata_tests::convert::in_shell;
use perfdata_tests::synth::attr::{Attr, Stamp, sample_type};
use perfdata_tests::synth::feature_events::Event;
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::record::{Scribe, misc, stream};
use perfdata_tests::synth::sample::context;
use perfdata_tests::synth::{kernel, kind};

/// Addresses outside of all mappings.
const NOWHERE: [u64; 3] = [0x1000, 0x2000, 0x3000];
/// An address in the program.
const CODE: u64 = 0x40_1234;

/// Returns a recording of threads with these names: a sample of each stack, from the sampled function
/// to its outermost caller.
fn recording(threads: &[(&str, &[&[u64]])]) -> Vec<u8> {
    use sample_type::*;
    let attr = Attr {
        kind: 1,
        ..Attr::new(IP | TID | TIME | CALLCHAIN, "sample_id_all mmap comm")
    };
    let mut scribe = Scribe::new(false, attr.clone(), Stamp::SOME);
    for (at, (comm, stacks)) in (0..).zip(threads) {
        (scribe.stamp.pid, scribe.stamp.tid) = (100 + at, 100 + at);
        let task = scribe.stamp.task();
        scribe.kernel("COMM", kind::COMM, 0, |b| kernel::comm(b, task, comm));
        scribe.kernel("MMAP", kind::MMAP, misc::USER, |b| {
            kernel::mmap(b, task, [0x40_0000, 0x2000, 0], "/usr/bin/program")
        });
        for stack in *stacks {
            let case = scribe.sample("SAMPLE", |sample| {
                sample.ip = stack[0];
                sample.callchain = [&[context::USER], *stack].concat();
            });
            assert!(!case.record.is_empty());
        }
    }
    let event = Event {
        name: "cpu-clock".into(),
        attr,
        ids: vec![],
    };
    let mut file = File::new(false, vec![event]);
    file.data = stream(&scribe.cases);
    file.bytes()
}

fn export(folder: &Path, output: &str) -> String {
    let command = format!("perfconv export --no-symbols in.data -o {output}");
    let done = in_shell(folder, &command);
    assert!(done.success(), "{}", done.stderr);
    fs::read_to_string(folder.join(output)).expect("an output")
}

/// Programs without frame pointers have callchains of words that are no addresses of code.
#[test]
fn frames_without_a_mapping_in_a_row_are_one() {
    let [one, two, three] = NOWHERE;
    let stacks: [&[u64]; 4] = [
        &[CODE, one, two, three],
        &[CODE, three, one],
        &[CODE, two, CODE, one, two],
        &[one, two],
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let many = stacks.repeat(20);
    fs::write(folder.join("in.data"), recording(&[("program", &many)])).expect("a file");
    let picture = export(folder, "a.svg");
    assert_eq!(
        picture.matches("[unknown] (up to 3 frames) (").count(),
        1,
        "{picture}"
    );
    let page = export(folder, "a.html");
    assert!(page.contains("\"unmapped\":["), "{page}");
}

/// As in other tools, the names of threads are the outermost frames if there are several.
#[test]
fn names_of_threads_come_first_if_there_are_several() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let stacks: &[&[u64]] = &[&[CODE], &[CODE, NOWHERE[0], NOWHERE[1]]];
    let write = |threads: &[(&str, &[&[u64]])]| {
        fs::write(folder.join("in.data"), recording(threads)).expect("a file");
    };
    write(&[("one", stacks), ("two", stacks), ("two", stacks)]);
    let picture = export(folder, "several.svg");
    for (name, share) in [("one", "33.33%"), ("two", "66.67%"), ("all", "100.00%")] {
        let frame = format!("<title>{name} (");
        let line = picture.lines().find(|line| line.contains(&frame));
        assert!(
            line.is_some_and(|line| line.contains(share)),
            "{name}: {picture}"
        );
    }
    assert_eq!(picture.matches("[unknown] (up to 2 frames) (").count(), 2);
    write(&[("one", stacks), ("one", stacks)]);
    let picture = export(folder, "single.svg");
    assert!(!picture.contains("<title>one ("), "{picture}");
}
