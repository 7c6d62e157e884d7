//! Merging recordings: events, IDs, times and what existed before each.

mod aux_data;
mod clocks;
mod containers;
mod counters;
mod events;
mod features;
mod order;
mod sideband;

use perfdata_convert::io::Input;
use perfdata_convert::verify::{Report, Severity};
use perfdata_core::attr::SampleType;
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, RawRecord, Record, RecordType};
use perfdata_edit::merge::{Merge, Merged};
use perfdata_tests::convert::{Whole, into_memory};
use perfdata_tests::synth::attr::sample_type::*;
use perfdata_tests::synth::attr::{Attr, Stamp};
use perfdata_tests::synth::buf::Buf;
use perfdata_tests::synth::feature_events::{self, Event};
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::record::{Scribe, misc, stream};
use perfdata_tests::synth::sample::Sample;
use perfdata_tests::synth::{kernel, kind};

/// Merges into memory; also returns the notes.
fn merge_noting(
    merge: Merge,
    inputs: Vec<Input>,
    to: Option<ContainerKind>,
) -> Result<(Vec<u8>, Vec<String>), perfdata_convert::Error> {
    let names = ('a'..).map(String::from);
    let Merged { input, notes, .. } = merge.open(names.zip(inputs).collect())?;
    Ok((into_memory(input, to, Vec::new())?, notes))
}

fn merge_with(merge: Merge, inputs: &[&[u8]]) -> Result<Vec<u8>, String> {
    let inputs = inputs
        .iter()
        .map(|bytes| Input::from_source(bytes.to_vec()))
        .collect();
    match merge_noting(merge, inputs, Some(ContainerKind::File)) {
        Ok((bytes, _)) => {
            assert_eq!(errors(&bytes), Vec::<String>::new());
            Ok(bytes)
        }
        Err(error) => {
            assert!(error.is_refusal(), "{error}");
            Err(error.to_string())
        }
    }
}

fn merge(inputs: &[&[u8]]) -> Vec<u8> {
    merge_with(Merge::default(), inputs).expect("they can be merged")
}

/// Returns a recording with its records decompressed.
fn plain(bytes: Vec<u8>) -> Vec<u8> {
    let decompress = perfdata_convert::stages::decompress::Decompress::default();
    let input = Input::from_source(bytes);
    into_memory(input, None, vec![Box::new(decompress)]).expect("it can be decompressed")
}

/// Returns what `verify` finds wrong.
fn errors(bytes: &[u8]) -> Vec<String> {
    let report = Report::of(Input::from_source(bytes.to_vec())).expect("a recording");
    let errors = report
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    errors
        .map(|finding| format!("{:#x}: {}", finding.offset, finding.meaning))
        .collect()
}

/// The records of a recording that are about its content, each with its event's place and its time.
fn records(bytes: &[u8]) -> Vec<(Option<usize>, Option<u64>, Record)> {
    let whole = Whole::read(bytes.to_vec()).expect("a recording");
    let events = &whole.recording.events;
    let kept = |kind: &RecordType| *kind != RecordType::FINISHED_ROUND && !kind.is_metadata();
    whole
        .records
        .iter()
        .filter(|(_, kind)| kept(kind))
        .map(|&(at, _)| {
            let raw =
                RawRecord::first(&whole.stream[at..], whole.recording.endian, 0).expect("a record");
            let record = Record::decode(&raw, &events.layout_of(&raw)).expect("it can be read");
            let event = (raw.kind == RecordType::SAMPLE)
                .then(|| events.of_record(&raw).expect("its event is known"));
            (event, events.time(&raw), record)
        })
        .collect()
}

/// The samples of a recording with the attribute of each, without their event IDs: instruction
/// pointer, process, time, and the attribute without the flag for the ID.
fn samples(bytes: &[u8]) -> Vec<(u64, u64, u32, String)> {
    let whole = Whole::read(bytes.to_vec()).expect("a recording");
    let mut samples: Vec<_> = records(bytes)
        .into_iter()
        .filter_map(|(event, _, record)| {
            let Body::Sample(sample) = record.body else {
                return None;
            };
            let mut attr = whole.recording.events[event?].attr.clone();
            attr.sample_type.0 &= !SampleType::IDENTIFIER.0;
            Some((
                sample.time.unwrap_or(0),
                sample.ip.unwrap_or(0),
                sample.tid.map_or(0, |tid| tid.pid),
                format!("{attr:?}"),
            ))
        })
        .collect();
    samples.sort();
    samples
}

const FLAGS: &str = "mmap comm task sample_id_all";
const BASE: u64 = IP | TID | TIME | PERIOD;

fn event(parts: u64, period: u64, ids: &[u64]) -> Event {
    Event {
        name: format!("every-{period}"),
        attr: Attr {
            kind: 1,
            size: 128,
            sample_period: period,
            ..Attr::new(parts, FLAGS)
        },
        ids: ids.to_vec(),
    }
}

/// A small recording: what existed before it, and one sample each at `times`.
struct Small {
    big: bool,
    events: Vec<Event>,
    pid: u32,
    comm: &'static str,
    times: Vec<u64>,
    /// Address of the kernel's mapping.
    kernel: u64,
}

impl Small {
    fn new(event: Event, comm: &'static str, times: &[u64]) -> Self {
        Small {
            big: false,
            events: vec![event],
            pid: 1000,
            comm,
            times: times.to_vec(),
            kernel: 0xffff_ffff_8100_0000,
        }
    }

    fn file(&self) -> File {
        let task = (self.pid, self.pid);
        let mut cases = Vec::new();
        for (at, event) in self.events.iter().enumerate() {
            let mut s = Scribe::new(self.big, event.attr.clone(), Stamp::ZERO);
            s.tick = 0;
            if at == 0 {
                let name = "[kernel.kallsyms]_text";
                let place = [self.kernel, 0x100_0000, self.kernel];
                s.kernel("MMAP", kind::MMAP, misc::KERNEL, |b| {
                    kernel::mmap(b, (u32::MAX, 0), place, name)
                });
                s.kernel("COMM", kind::COMM, 0, |b| kernel::comm(b, task, self.comm));
                s.kernel("MMAP", kind::MMAP, misc::USER, |b| {
                    kernel::mmap(b, task, [0x40_0000, 0x1000, 0], self.comm)
                });
            }
            s.stamp = Stamp {
                pid: self.pid,
                tid: self.pid,
                ..Stamp::ZERO
            };
            for &time in self.times.iter().skip(at).step_by(self.events.len()) {
                s.stamp.time = time;
                s.stamp.id = event.ids.first().copied().unwrap_or(0);
                let (attr, stamp) = (s.attr.clone(), s.stamp);
                s.user("SAMPLE", kind::SAMPLE, misc::USER, |b| {
                    let sample = Sample {
                        ip: 0x40_0000 + time,
                        ..Sample::rich(&stamp, &attr)
                    };
                    sample.put(b, &attr)
                });
            }
            cases.extend(s.cases);
        }
        let mut file = File::new(self.big, self.events.clone());
        file.data = stream(&cases);
        file.set_feature(
            feature_events::EVENT_DESC,
            feature_events::event_desc(Buf::new(self.big), &self.events).bytes,
        );
        file
    }

    fn bytes(&self) -> Vec<u8> {
        self.file().bytes()
    }
}

/// Adds the build ID of the kernel to a recording.
fn with_kernel(mut file: File, id: u8) -> Vec<u8> {
    let name = b"[kernel.kallsyms]\0\0\0\0\0\0\0";
    let entry = Buf::new(false)
        .u32(0)
        .u16(1 | 1 << 15)
        .u16(8 + 28 + name.len() as u16)
        .u32(u32::MAX)
        .bytes(&[id; 20])
        .bytes(&[20, 0, 0, 0])
        .bytes(name);
    file.set_feature(2, entry.bytes);
    file.bytes()
}
