//! Every perf reads the result of `file2pipe` like the file or directory.
//!
//! The judges are all perfs of the recording's byte order that can read the file. Recordings
//! outside of the project are also judged if `PERFCONV_TEST_ALL` is set.

use std::fs;

use perfdata_core::{
    attr::{Attr, EventType, SampleType},
    feature::FeatureId,
    header::ContainerKind,
    record::RecordType,
};
use perfdata_tests::{
    allowed::{FRAME, MISSING_FEATURES, PLACES},
    convert::{Whole, convert},
    golden::{Allowed, Difference, Tally},
    is_thorough, judge,
    perf::{self, Question},
    recordings::{self, Container, Endian, Form, Recording},
    synth::file,
};

/// `perf evlist` and `perf buildid-list` cannot read a pipe: they stop at the first feature.
const QUESTIONS: &[Question] = &[Question::Script, Question::Header];

/// Accepted differences: data that a pipe cannot contain, and data that perf does not find in a
/// pipe.
pub(crate) const ALLOWED: &[Allowed] = &[
    PLACES,
    FRAME,
    MISSING_FEATURES,
    Allowed {
        name: "directory",
        reason: "a pipe is no directory, and what a directory's files hold is decompressed when it becomes one stream",
        question: Question::Header,
        recordings: |recording| {
            recording
                .form
                .is_some_and(|form| form.container == Container::Directory)
        },
        applies: |difference| {
            let lines = ["# directory data version : ", "# compressed : "];
            matches!(difference, Difference::Lost(line) if lines.iter().any(|start| line.starts_with(start)))
        },
    },
    Allowed {
        name: "stat data",
        reason: "perf takes the flag STAT from a file only",
        question: Question::Header,
        recordings: is_stat,
        applies: |difference| matches!(difference, Difference::Lost("# contains stat data")),
    },
    Allowed {
        name: "columns of stat",
        reason: "stat events have no sample_type: perf 6 finds out in a file only that it has no columns to leave out",
        question: Question::Script,
        recordings: is_stat,
        applies: |difference| match difference {
            Difference::Changed(old, new) => {
                words(old).replacen(" 0 [000] 0.000000000:", "", 1) == words(new)
            }
            _ => false,
        },
    },
    Allowed {
        name: "columns of other types",
        reason: "in a pipe perf shows events of types that are no standard with a CPU, and without an address",
        question: Question::Script,
        recordings: |recording| any_attr(recording, |attr| attr.kind.0 >= OTHER_TYPES),
        applies: |difference| match difference {
            Difference::Changed(old, new) if new.contains(" [-01]") => {
                let (old, new) = (words(old), words(&new.replacen(" [-01]", "", 1)));
                old == new
                    || old
                        .rsplit_once(' ')
                        .is_some_and(|(without_address, _)| without_address == new)
            }
            _ => false,
        },
    },
    Allowed {
        name: "callchains of tracepoints",
        reason: "perf shows them in a pipe only",
        question: Question::Script,
        recordings: |recording| {
            let has_chain = |attr: &Attr| attr.sample_type.has(SampleType::CALLCHAIN);
            any_attr(recording, |attr| {
                attr.kind == EventType::TRACEPOINT && has_chain(attr)
            })
        },
        applies: |difference| match difference {
            Difference::Changed(old, new) => words(old) == words(new),
            Difference::New(line) => line.is_empty() || judge::is_frame(line),
            Difference::Lost(_) => false,
        },
    },
    Allowed {
        name: "the reader's symbols",
        reason: "perf 7.2 shows addresses in tracepoints by the symbols of the kernel that it runs on, in a file only",
        question: Question::Script,
        recordings: |recording| any_attr(recording, |attr| attr.kind == EventType::TRACEPOINT),
        applies: |difference| match difference {
            Difference::Changed(old, new) => {
                let (old, new): (Vec<_>, Vec<_>) = (
                    old.split_whitespace().collect(),
                    new.split_whitespace().collect(),
                );
                old.len() == new.len()
                    && old
                        .iter()
                        .zip(&new)
                        .all(|(old, new)| old == new || is_address(old, new))
            }
            _ => false,
        },
    },
    Allowed {
        name: "features in the records",
        reason: "perf inject leaves the features of a pipe where they are, and perf does not look for them in a file",
        question: Question::Header,
        recordings: |recording| {
            has(recording, |whole| {
                whole
                    .records
                    .iter()
                    .any(|(_, kind)| *kind == RecordType::HEADER_FEATURE)
            })
        },
        applies: |difference| matches!(difference, Difference::New(_)),
    },
];

/// The first type of events that sysfs names; those below are part of the kernel's interface.
const OTHER_TYPES: u32 = 6;

/// Returns whether this is the same field, once as a symbol and once as a number.
fn is_address(symbol: &str, number: &str) -> bool {
    match (symbol.split_once('='), number.split_once("=0xffff")) {
        (Some((field, _)), Some((same, digits))) => {
            field == same && digits.bytes().all(|b| b.is_ascii_hexdigit())
        }
        _ => false,
    }
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_stat(recording: &Recording) -> bool {
    has(recording, |whole| {
        whole.recording.features.contains_key(&FeatureId::STAT)
    })
}

fn any_attr(recording: &Recording, is: impl Fn(&Attr) -> bool) -> bool {
    has(recording, |whole| {
        whole.recording.events.iter().any(|event| is(&event.attr))
    })
}

fn has(recording: &Recording, what: impl Fn(&Whole) -> bool) -> bool {
    Whole::read_file(&recording.main_file()).is_ok_and(|whole| what(&whole))
}

#[test]
fn pipes_read_as_the_files() {
    let mut files = recordings::fixtures();
    if is_thorough() {
        files.extend(recordings::shared());
    }
    files.retain(|recording| {
        matches!(
            recording.form,
            Some(Form {
                container: Container::File | Container::Directory,
                ..
            })
        )
    });
    let tally = Tally::default();
    recordings::check_all(&files, |file| {
        let pipe = convert(&file.path, Some(ContainerKind::Pipe), Vec::new())
            .map_err(|error| error.to_string())?;
        let compare = |perf| {
            judge::compare_answers(QUESTIONS, file, &pipe.path(), perf, ALLOWED)
                .map(|uses| tally.add(&uses))
        };
        let mut judges = judge::judges(file)?;
        if !is_thorough() {
            judges.truncate(1);
        }
        judge::all_of(judges.into_iter().map(compare))
    });
    eprint!("{}", tally.describe(ALLOWED));
    if perf::all().len() == 6 && is_thorough() {
        assert_eq!(
            tally.unused(ALLOWED),
            [""; 0],
            "differences that do not occur any more"
        );
    }
}

#[test]
fn an_event_without_ids_keeps_its_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("without-ids.data");
    for perf in perf::all() {
        fs::write(&path, file::without_ids(perf.endian == Endian::Big).bytes())
            .expect("a temporary file");
        let pipe =
            convert(&path, Some(ContainerKind::Pipe), Vec::new()).expect("it can be converted");
        let output = perf
            .ask(Question::Script, &pipe.path())
            .expect("perf starts");
        assert!(
            output.success() && output.stdout.contains(" mine:"),
            "{perf}: {}{}",
            output.stdout,
            output.stderr
        );
    }
}
