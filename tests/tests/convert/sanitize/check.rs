//! The check of a sanitized recording finds originals in every byte of the output.

use std::ops::Range;

use perfdata_convert::Result;
use perfdata_convert::io::{Input, InputSource};
use perfdata_convert::pipeline::{Link, OutputCheck, Requirements, SharedWatch, Stage};
use perfdata_core::Recording;
use perfdata_core::container_layout::{ContainerLayout, Part};
use perfdata_core::header::{ContainerKind, FileSection};
use perfdata_core::read::Chunk;
use perfdata_core::record::{Body, RawRecord, Record, RecordType};
use perfdata_sanitize::{Audience, Policy, Sanitize};
use perfdata_tests::convert::{Whole, into_memory};
use perfdata_tests::recordings;

use super::key;

/// Sanitizes, and puts bytes into the output behind the back of the stage.
#[derive(Debug)]
struct Tamper {
    inner: Sanitize,
    at: usize,
    planted: Vec<u8>,
    /// Whether the stage may check samples while they are written.
    watches: bool,
}

impl Stage for Tamper {
    fn requirements(&self) -> Requirements {
        self.inner.requirements()
    }

    fn look_ahead(&mut self, source: &InputSource, recording: &Recording) -> Result<()> {
        self.inner.look_ahead(source, recording)
    }

    fn begin(&mut self, recording: &mut Recording, layout: &mut ContainerLayout) -> Result<()> {
        self.inner.begin(recording, layout)
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, next: &mut Link<'_>) -> Result<()> {
        self.inner.chunk(chunk, next)
    }

    fn finish(&mut self, recording: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        self.inner.finish(recording, next)
    }

    fn output_check(&mut self) -> Option<&mut dyn OutputCheck> {
        Some(self)
    }
}

impl OutputCheck for Tamper {
    fn before_finish(&mut self, recording: &Recording) {
        self.inner.before_finish(recording);
    }

    fn watch(&mut self, recording: &Recording) -> Option<SharedWatch> {
        let watch = self.inner.watch(recording);
        match self.watches {
            true => watch,
            // The stage keeps one that sees nothing.
            false => None,
        }
    }

    fn check(&mut self, output: Input) -> Result<()> {
        let (_, source) = output.reader()?;
        let whole = FileSection {
            offset: 0,
            size: 1 << 30,
        };
        let mut bytes = source.bytes(whole)?;
        let end = self.at + self.planted.len();
        bytes.resize(bytes.len().max(end), 0);
        bytes[self.at..end].copy_from_slice(&self.planted);
        self.inner.check(Input::from_source(bytes))
    }
}

fn input() -> Vec<u8> {
    let fixture = recordings::fixture("6.1-x86_64-file-g");
    std::fs::read(fixture.path).expect("a fixture")
}

fn converted(to: ContainerKind, at: usize, planted: &[u8], watches: bool) -> Result<Vec<u8>> {
    let key = key();
    let tamper = Tamper {
        inner: Sanitize::new(Policy::new(Audience::Public), key),
        at,
        planted: planted.to_vec(),
        watches,
    };
    let input = Input::from_source(input());
    into_memory(input, Some(to), vec![Box::new(tamper)])
}

/// Returns the name of a thread and the address of a mapping.
fn originals() -> (Vec<u8>, u64) {
    let whole = Whole::read(input()).expect("a recording");
    let (mut comm, mut address) = (None, None);
    for (at, _) in &whole.records {
        let raw = RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0);
        let raw = raw.expect("a record");
        let layout = whole.recording.events.layout_of(&raw);
        match Record::decode(&raw, &layout).expect("a record").body {
            Body::Comm(body) if body.comm.text() == b"perf-workload" => {
                comm = Some(body.comm.text().to_vec());
            }
            Body::Mmap2(body) if body.addr > 1 << 40 && body.addr < 1 << 63 => {
                address = Some(body.addr);
            }
            _ => {}
        }
    }
    (comm.expect("a comm"), address.expect("a mapping"))
}

/// Returns the places of samples in an output.
fn samples(output: &[u8]) -> Vec<Range<usize>> {
    let whole = Whole::read(output.to_vec()).expect("a recording");
    let start = match &whole.container_layout {
        ContainerLayout::File(layout) => layout.place(Part::Data).expect("records").offset as usize,
        ContainerLayout::Pipe(_) => return Vec::new(),
    };
    let sample = |(at, kind): &(usize, RecordType)| {
        let raw = RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0);
        let end = at + raw.expect("a record").bytes.len();
        (*kind == RecordType::SAMPLE).then_some(start + at..start + end)
    };
    whole.records.iter().filter_map(sample).collect()
}

/// A name and an address, in both byte orders: in the header, in attributes, in all records that
/// are no samples, in the features, and behind them.
#[test]
fn an_original_is_found_wherever_it_is_in_a_file() {
    let clean = converted(ContainerKind::File, 0, b"", true).expect("it is clean");
    let (name, address) = originals();
    let planted = [&name[..], &address.to_le_bytes(), &address.to_be_bytes()];
    let samples = samples(&clean);
    let mut tried = 0;
    for (number, at) in (0..clean.len() + 40).step_by(37).enumerate() {
        let planted = planted[number % planted.len()];
        let end = at + planted.len();
        // Samples were checked when they were written.
        if samples
            .iter()
            .any(|sample| at < sample.end && sample.start < end)
        {
            continue;
        }
        for watches in [true, false] {
            let made = converted(ContainerKind::File, at, planted, watches);
            assert!(made.is_err(), "{planted:x?} at {at:#x} was not found");
            tried += 1;
        }
    }
    assert!(tried > 200, "{tried}");
}

/// A pipe has no place that says where its parts are.
#[test]
fn an_original_is_found_wherever_it_is_in_a_pipe() {
    let clean = converted(ContainerKind::Pipe, 0, b"", true).expect("it is clean");
    let (name, _) = originals();
    for at in [
        0,
        8,
        16,
        24,
        40,
        120,
        400,
        clean.len() - name.len(),
        clean.len(),
    ] {
        let made = converted(ContainerKind::Pipe, at, &name, true);
        assert!(made.is_err(), "{at:#x}");
    }
}
