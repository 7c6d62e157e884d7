//! Stacks that repeat: exports contain the frames that each sample has at its time.

use std::collections::HashMap;

use perfdata_core::read::Limits;
use perfdata_core::record::CpuMode;
use perfdata_export::{Folded, Needs, ResolvedSample, Result, Sink, export};
use perfdata_session::Samples;
use perfdata_tests::recordings::{self, Recording};

use crate::session::{Stream, USER, USUAL};

/// Compares the frames of each sample with those that the sample finds in its mappings now, and
/// counts the samples whose callchain was there before.
#[derive(Default)]
struct Compared {
    before_exec: bool,
    seen: HashMap<(u32, Vec<u64>), u64>,
    repeated: u64,
    different: Vec<String>,
}

impl Sink for Compared {
    fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        needs.before_exec = self.before_exec;
        needs
    }

    fn sample(&mut self, sample: &ResolvedSample<'_>) -> Result<()> {
        let expected = sample.sample.frames().map(|frame| {
            let before = frame.before_exec.filter(|_| self.before_exec);
            let mapping = frame.mapping.or(before);
            (frame.address, frame.mode, frame.is_return, mapping)
        });
        let expected: Vec<_> = expected.collect();
        let found = sample.frames.iter();
        let found = found.map(|frame| (frame.address, frame.mode, frame.is_return, frame.mapping));
        let found: Vec<_> = found.collect();
        if found != expected {
            self.different.push(format!("{found:?}, not {expected:?}"));
        }
        // A frame of generated code belongs to the process.
        let names = sample.frames.iter().filter_map(|frame| {
            let module = sample.tables.module(frame.module?)?;
            module
                .name
                .strip_prefix(b"/tmp/perf-")
                .map(|rest| rest.to_vec())
        });
        let pid = sample.sample.thread().map_or(0, |thread| thread.pid);
        let own = format!("{pid}.map").into_bytes();
        self.different.extend(
            names
                .filter(|name| *name != own)
                .map(|name| format!("{name:?}")),
        );
        let chain = sample.sample.sample_view().callchain().collect();
        let count = self.seen.entry((pid, chain)).or_default();
        *count += 1;
        self.repeated += u64::from(*count > 2);
        Ok(())
    }
}

#[test]
fn repeated_stacks_have_the_frames_of_their_time() {
    let mut repeated = 0;
    let mut check = |recording: &Recording| {
        for before_exec in [false, true] {
            let Ok(mut samples) = Samples::open(&recording.path) else {
                return Ok(());
            };
            let mut sink = Compared {
                before_exec,
                ..Compared::default()
            };
            // A damaged recording has samples before the damage.
            let _ = export(&mut samples, None, &mut sink);
            if let Some(first) = sink.different.first() {
                return Err(format!(
                    "{} samples, the first: {first}",
                    sink.different.len()
                ));
            }
            repeated += sink.repeated;
        }
        Ok(())
    };
    for recording in recordings::fixtures() {
        check(&recording).unwrap_or_else(|error| panic!("{}: {error}", recording.name));
    }
    assert!(
        repeated > 1000,
        "{repeated} samples with repeated callchains"
    );
}

/// Returns the folded stacks of a stream.
fn folded(stream: Stream) -> String {
    let mut out = Vec::new();
    let mut samples = stream.samples(Limits::default());
    export(&mut samples, None, &mut Folded::new(&mut out)).expect("it is sound");
    String::from_utf8(out).expect("names of modules")
}

#[test]
fn mappings_change_between_equal_callchains() {
    let mut s = Stream::new(USUAL);
    let sample = |s: &mut Stream, pid, address| {
        (0..4).for_each(|_| s.sample(CpuMode::USER, (pid, pid), &[USER, address, address + 1]));
    };
    let map = |s: &mut Stream, pid, address, name| {
        s.map(CpuMode::USER, pid, address, 0x1000, 0, name);
    };
    s.comm(5, 5, "p", false);
    sample(&mut s, 5, 0x1010);
    map(&mut s, 5, 0x1000, "/bin/a");
    sample(&mut s, 5, 0x1010);
    map(&mut s, 5, 0x1000, "/bin/b");
    sample(&mut s, 5, 0x1010);
    // A new program still has the frames of the one before, as in perf.
    s.comm(5, 5, "q", true);
    sample(&mut s, 5, 0x1010);
    map(&mut s, 5, 0x1000, "/bin/c");
    sample(&mut s, 5, 0x1010);
    // The child has the mappings of its parent, until they change.
    s.fork(6, 6, 5, 5);
    s.comm(6, 6, "r", false);
    sample(&mut s, 6, 0x1010);
    map(&mut s, 6, 0x1000, "/bin/d");
    sample(&mut s, 6, 0x1010);
    sample(&mut s, 5, 0x1010);
    let expected = [
        "p;[a];[a] 12",
        "p;[b];[b] 12",
        "p;[unknown];[unknown] 12",
        "q;[b];[b] 12",
        "q;[c];[c] 24",
        "r;[c];[c] 12",
        "r;[d];[d] 12",
    ];
    assert_eq!(folded(s).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn generated_code_belongs_to_a_process() {
    let mut s = Stream::new(USUAL);
    s.comm(5, 5, "p", false);
    s.map(CpuMode::USER, 5, 0x1000, 0x1000, 0, "//anon");
    s.fork(6, 6, 5, 5);
    for pid in [5, 5, 5, 5, 6, 6, 6, 6, 5] {
        s.sample(CpuMode::USER, (pid, pid), &[USER, 0x1010, 0x1020]);
    }
    let expected = [
        "p;[perf-5.map];[perf-5.map] 15",
        "p;[perf-6.map];[perf-6.map] 12",
    ];
    assert_eq!(folded(s).lines().collect::<Vec<_>>(), expected);
}
