//! `perfconv extract-aux`: the raw AUX data of a recording, and the index file.

mod folder;
mod index;
mod pieces;
mod recordings;
mod samples;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

use perfdata_tests::convert::perfconv;
use perfdata_tests::synth::auxtrace::Origin;
use perfdata_tests::synth::feature_events::Event;
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::record::{Scribe, stream};
use perfdata_tests::synth::{auxtrace, kind, sample_cases, user};
use serde_json::Value;
use tempfile::TempDir;

/// Runs `perfconv extract-aux`.
fn run(input: &Path, output: &Path, options: &[&str]) -> Output {
    let mut command = perfconv();
    command
        .arg("extract-aux")
        .arg(input)
        .arg("-o")
        .arg(output)
        .args(options);
    command.output().expect("perfconv runs")
}

/// The result of a successful run: a folder, its index, and the messages.
struct Extracted {
    folder: TempDir,
    index: Value,
    said: String,
}

impl Extracted {
    fn of_file(input: &Path, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = run(input, &folder.path().join("aux"), options);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {said}", input.display());
        let index = fs::read(folder.path().join("aux/index.json")).expect("the index");
        let index = serde_json::from_slice(&index).expect("the index is JSON");
        Extracted {
            folder,
            index,
            said,
        }
    }

    fn of(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("input");
        fs::write(&path, bytes).expect("a temporary file");
        Self::of_file(&path, &[])
    }

    fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join("aux").join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn queues(&self) -> &[Value] {
        self.index["queues"].as_array().expect("a list")
    }

    /// Returns the bytes of the only queue.
    fn only(&self) -> Vec<u8> {
        assert_eq!(self.queues().len(), 1);
        self.file(self.queues()[0]["file"].as_str().expect("a name"))
    }

    /// Returns `fields` of the blocks of the only queue.
    fn pieces(&self, fields: &[&str]) -> Vec<Value> {
        let pieces = self.queues()[0]["pieces"].as_array().expect("a list");
        pieces
            .iter()
            .map(|piece| fields.iter().map(|field| piece[field].clone()).collect())
            .collect()
    }

    fn by_cpu(&self) -> BTreeMap<i64, Vec<u8>> {
        let file = |queue: &Value| self.file(queue["file"].as_str().expect("a name"));
        self.queues()
            .iter()
            .map(|queue| (queue["cpu"].as_i64().expect("a number"), file(queue)))
            .collect()
    }
}

/// Returns the events of a recording of Intel PT on two CPUs.
fn events(bits: u64) -> Vec<Event> {
    vec![Event {
        name: "intel_pt//".into(),
        attr: sample_cases::attr(bits),
        ids: vec![1001, 1002],
    }]
}

const USUAL: u64 = (1 << 16) | 0b111 | (1 << 7);

/// Writes the records of a recording: the Intel PT information, the IDs, then those of `more`.
fn records(big: bool, bits: u64, snapshot: u64, more: impl FnOnce(&mut Scribe)) -> Scribe {
    let mut s = Scribe::new(
        big,
        events(bits).remove(0).attr,
        Scribe::standard(big).stamp,
    );
    let mut words = auxtrace::INTEL_PT;
    words[8] = snapshot;
    auxtrace::info(&mut s, "INTEL_PT", 1, |b| b.u64s(&words));
    let ids = [[1001, 0, 0, u64::MAX], [1002, 1, 1, u64::MAX]];
    s.user("ID_INDEX", kind::ID_INDEX, 0, |b| {
        user::id_index(b, &ids, &[])
    });
    more(&mut s);
    s
}

fn file(big: bool, bits: u64, snapshot: u64, more: impl FnOnce(&mut Scribe)) -> Vec<u8> {
    let mut file = File::new(big, events(bits));
    file.data = stream(&records(big, bits, snapshot, more).cases);
    file.bytes()
}

fn piece(s: &mut Scribe, cpu: u32, offset: u64, bytes: &[u8]) {
    let origin = Origin {
        offset,
        reference: s.cases.len() as u64,
        idx: cpu,
        tid: u32::MAX,
        cpu,
    };
    auxtrace::piece(s, "AUXTRACE", origin, bytes);
}
