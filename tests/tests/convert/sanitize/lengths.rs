//! New texts stay within their fields, whatever the length of the old ones.

use std::collections::BTreeSet;
use std::fs;

use perfdata_convert::io::Input;
use perfdata_convert::verify::Report;
use perfdata_core::describe::{Describe, Leaf, Style, Visitor};
use perfdata_core::feature::{FeatureId, Section};
use perfdata_core::record::{EventTypeName, RawRecord, Record, RecordType};
use perfdata_core::{DecodeContext, Events};
use perfdata_sanitize::Policy;
use perfdata_tests::convert::Whole;
use perfdata_tests::perf;
use perfdata_tests::recordings::Endian;
use perfdata_tests::skipped;
use perfdata_tests::synth::attr::{Attr, Stamp, sample_type};
use perfdata_tests::synth::buf::Buf;
use perfdata_tests::synth::feature_events::Event;
use perfdata_tests::synth::file::Magic;
use perfdata_tests::synth::kernel;
use perfdata_tests::synth::pipe::Pipe;
use perfdata_tests::synth::record::{Scribe, misc};
use perfdata_tests::synth::{kind, sink};

use super::{AUDIENCES, sanitized};

/// How much of its field a text fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Empty,
    /// All but the NUL.
    FullWithNul,
    /// The NUL is missing.
    Full,
}

const LENGTHS: [Length; 3] = [Length::Empty, Length::FullWithNul, Length::Full];

/// Finds the fields of texts: offset and size of each.
#[derive(Default)]
struct Texts {
    at: usize,
    fields: Vec<(usize, usize)>,
}

impl Texts {
    /// Returns the texts of a value that starts at `at`.
    fn of(value: &impl Describe, at: usize) -> Vec<(usize, usize)> {
        let mut texts = Texts {
            at,
            ..Texts::default()
        };
        value.describe("", Style::Plain, &mut texts);
        texts.fields
    }
}

impl Visitor for Texts {
    fn begin(&mut self, _: &'static str) {}
    fn begin_list(&mut self, _: &'static str, _: usize) {}
    fn end(&mut self) {}
    fn leaf(&mut self, _: &'static str, size: usize, value: Leaf<'_>) {
        if let Leaf::Text(_) = value {
            self.fields.push((self.at, size));
        }
        self.at += size;
    }
}

/// Fills the texts of a record or section with letters. Returns how many there were.
fn fill(bytes: &mut [u8], texts: &[(usize, usize)], length: Length) -> usize {
    for &(at, size) in texts {
        let len = match length {
            Length::Empty => 0,
            Length::FullWithNul => size.saturating_sub(1),
            Length::Full => size,
        };
        bytes[at..at + size].fill(0);
        bytes[at..at + len].fill(b'x');
    }
    texts.len()
}

/// Fills the texts of a section, except tracing data, whose texts end with their NUL.
fn fill_section(id: FeatureId, bytes: &mut [u8], big: bool, length: Length) -> usize {
    let endian = endian(big);
    let layout = DecodeContext::default().with_nr_cpus_available(sink_cpus());
    match Section::decode(id, bytes, endian, &layout) {
        Ok(section) if id != FeatureId::TRACING_DATA => {
            let texts = Texts::of(&section.value, 0);
            fill(bytes, &texts, length)
        }
        _ => 0,
    }
}

/// Fills the texts of all records of a stream.
fn fill_stream(stream: &mut [u8], events: &Events, big: bool, length: Length) -> usize {
    let (mut at, mut count) = (0, 0);
    while at < stream.len() {
        let raw = RawRecord::first(&stream[at..], endian(big), 0).expect("a record");
        let (len, payload) = (raw.bytes.len(), raw.payload_len().expect("a size"));
        let feature = raw.feature();
        let record = Record::decode(&raw, &events.layout_of(&raw)).expect("a known type");
        let texts = Texts::of(&record, 8);
        let bytes = &mut stream[at..at + len];
        count += match feature {
            Some(id) => fill_section(id, &mut bytes[16..], big, length),
            None => fill(bytes, &texts, length),
        };
        at += len + usize::try_from(payload).expect("small");
    }
    count
}

fn endian(big: bool) -> perfdata_core::Endian {
    match big {
        true => perfdata_core::Endian::Big,
        false => perfdata_core::Endian::Little,
    }
}

fn sink_cpus() -> u32 {
    perfdata_tests::synth::feature::CPUS.0
}

/// Returns the types of the records whose size is no multiple of 8.
fn uneven(whole: &Whole) -> BTreeSet<RecordType> {
    let mut kinds = BTreeSet::new();
    for &(at, kind) in &whole.records {
        let raw = RawRecord::first(&whole.stream[at..], whole.recording.endian, 0);
        if !raw.expect("a record").bytes.len().is_multiple_of(8) {
            kinds.insert(kind);
        }
    }
    kinds
}

/// Every record type and feature at once.
#[test]
fn texts_of_any_length_are_replaced_within_their_fields() {
    for big in [false, true] {
        for length in LENGTHS {
            let original = sink::file(big);
            let events = Whole::read(original.bytes()).expect("it is read");
            let events = events.recording.events;
            let mut file = original.clone();
            let mut count = fill_stream(&mut file.data, &events, big, length);
            for (id, section) in &mut file.features {
                count += fill_section(FeatureId(*id), section, big, length);
            }
            assert!(count > 80, "{count}");
            let mut pipe = sink::pipe(big).bytes;
            let count = fill_stream(&mut pipe[16..], &events, big, length);
            assert!(count > 80, "{count}");
            for input in [file.bytes(), pipe] {
                let before = uneven(&Whole::read(input.clone()).expect("it is read"));
                for audience in AUDIENCES {
                    let what = format!("{length:?}, big {big}, {audience:?}");
                    let made = sanitized(input.clone(), Policy::new(audience));
                    let report = Report::of(Input::from_source(made.clone())).expect("it is read");
                    let whole = Whole::read(made).expect("it is read");
                    assert!(
                        uneven(&whole).is_subset(&before),
                        "{what}: {:?}",
                        uneven(&whole)
                    );
                    assert!(report.is_clean(), "{what}: {}", report.text());
                }
            }
        }
    }
}

/// Returns a stream of perf 3.8: an attribute, names of event types, and samples.
fn event_types(names: &[String]) -> Vec<u8> {
    let attr = Attr {
        kind: 1,
        size: 80,
        sample_period: 1,
        ..Attr::new(
            sample_type::IP | sample_type::TID | sample_type::TIME,
            "sample_id_all mmap comm",
        )
    };
    let event = Event {
        name: String::new(),
        attr: attr.clone(),
        ids: vec![7],
    };
    let mut pipe = Pipe::new(false, Magic::V2).event(&event);
    for name in names {
        // Up to the next multiple of 8, without a NUL if the name fills it.
        let b = Buf::new(false).u64(0).bytes(name.as_bytes()).pad(8);
        pipe = pipe.record(kind::HEADER_EVENT_TYPE, 0, b);
    }
    let mut scribe = Scribe::new(false, attr, Stamp::SOME);
    scribe.kernel("COMM", kind::COMM, 0, |b| {
        kernel::comm(b, (7, 7), "secretive")
    });
    scribe.sample_in("SAMPLE", misc::USER, |sample| sample.ip = 0x1000);
    pipe.records(&scribe.cases).bytes
}

/// Names of event types of all lengths, known and unknown ones; perf reads the result.
#[test]
fn names_of_event_types_stay_in_their_records() {
    let mut names: Vec<String> = (1..=64)
        .map(|len| "secret_".repeat(10)[..len].to_owned())
        .collect();
    names.extend(["cache-references", "branches", "cycles", ""].map(str::to_owned));
    let input = event_types(&names);
    let folder = tempfile::tempdir().expect("a folder");
    for audience in AUDIENCES {
        let made = sanitized(input.clone(), Policy::new(audience));
        let whole = Whole::read(made.clone()).expect("it is read");
        assert_eq!(whole.recording.event_types.len(), names.len());
        for EventTypeName { name, .. } in &whole.recording.event_types {
            assert!(name.0.len().is_multiple_of(8) && name.0.len() <= EventTypeName::NAME);
        }
        let texts: Vec<_> = whole.recording.event_types.iter().rev().take(4).collect();
        let kept: Vec<_> = texts
            .iter()
            .rev()
            .map(|name| name.name.to_string())
            .collect();
        assert_eq!(kept, ["cache-references", "branches", "cycles", ""]);

        let path = folder.path().join("sanitized.data");
        fs::write(&path, made).expect("a file");
        for perf in perf::all()
            .iter()
            .filter(|perf| perf.endian == Endian::Little)
        {
            let mut command = perf.command();
            command.args(["script", "-F", "comm,ip", "-i"]).arg(&path);
            let said = perf::run(command).expect("perf runs");
            assert_eq!(said.stdout.lines().count(), 1, "{perf}: {}", said.stderr);
        }
    }
    if perf::all().is_empty() {
        skipped::note("perf");
    }
}
