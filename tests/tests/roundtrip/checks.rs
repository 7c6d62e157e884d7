//! The three checks: the recording is the same, `verify` finds no new errors, perf prints the same.

use std::{
    fs,
    path::{Path, PathBuf},
};

use perfdata_convert::io::Input;
use perfdata_convert::verify::{Report, Severity};
use perfdata_tests::{
    convert::differences,
    golden::{ANY, Allowed, Difference},
    judge::{self, Texts},
    perf::{self, Perf, Question},
    recordings::{Endian, Form, Recording},
};

use crate::table::Verdict;

/// Accepted differences in perf's output for a file that was converted to a pipe and back.
pub const PIPE_AND_BACK: &[Allowed] = &[
    Allowed {
        name: "places",
        reason: "parts of the file may stand in another order",
        question: Question::Header,
        recordings: ANY,
        applies: |difference| {
            [
                "# data offset    : ",
                "# data size      : ",
                "# feat offset    : ",
            ]
            .iter()
            .any(|start| difference.changed_after(start).is_some())
        },
    },
    Allowed {
        name: "sample times",
        reason: "perf record -B leaves the times of the samples 0: the file gets them",
        question: Question::Header,
        recordings: ANY,
        applies: |difference| {
            [
                "# time of first sample : ",
                "# time of last sample : ",
                "# sample duration : ",
            ]
            .iter()
            .any(|start| {
                difference
                    .changed_after(start)
                    .is_some_and(|(old, _)| old.trim_start().starts_with("0.000"))
            })
        },
    },
    Allowed {
        name: "features in the data",
        reason: "perf inject left them there: they become sections",
        question: Question::Header,
        recordings: has_metadata_in_data,
        applies: |difference| !matches!(difference, Difference::Lost(_)),
    },
    Allowed {
        name: "build ids in the data",
        reason: "likewise",
        question: Question::BuildIds,
        recordings: has_metadata_in_data,
        applies: |difference| matches!(difference, Difference::New(_)),
    },
    Allowed {
        name: "features behind an empty one",
        reason: "perf stops at the empty CPUDESC, which the pipe does not hold, and then reads what is behind it",
        question: Question::Header,
        recordings: |recording| recording.name == "quipper/armv7.perf_3.14-3.8",
        applies: |_| true,
    },
];

/// Accepted differences in perf's output for a file that was swapped twice.
pub const SWAPPED_TWICE: &[Allowed] = &[Allowed {
    name: "no host",
    reason: "perf inject wrote a file of a pipe without HOSTNAME, which the other byte order needs",
    question: Question::Header,
    recordings: has_metadata_in_data,
    applies: |difference| {
        difference
            .all_lines(|line| line == "# hostname : " || line.starts_with("# missing features: "))
    },
}];

/// Returns whether perf inject made this file from a pipe.
fn has_metadata_in_data(recording: &Recording) -> bool {
    ["-injected", "-pipe-conv"]
        .iter()
        .any(|end| recording.name.ends_with(end))
}

/// Accepted differences in perf's output for a recording that lost build IDs in its records.
pub const WITHOUT_BUILD_IDS: &[Allowed] = &[
    Allowed {
        name: "build ids",
        reason: "they were records, and are dropped",
        question: Question::BuildIds,
        recordings: |recording| recording.name.contains("pipe") || has_metadata_in_data(recording),
        applies: |_| true,
    },
    Allowed {
        name: "places without build ids",
        reason: "there are fewer records in the file",
        question: Question::Header,
        recordings: has_metadata_in_data,
        applies: |difference| {
            [
                "# data size      : ",
                "# feat offset    : ",
                "# missing features: ",
            ]
            .iter()
            .any(|start| difference.changed_after(start).is_some())
        },
    },
];

/// An accepted finding of `diff` or `verify`.
struct Known {
    ways: &'static [&'static str],
    /// Part of the recording's name.
    name: &'static str,
    start: &'static str,
    #[expect(dead_code, reason = "for who reads this")]
    reason: &'static str,
}

const THROUGH_A_PIPE: &[&str] = &["pipe2file", "file2pipe and back"];

/// Data that is lost or added on purpose.
const KNOWN: &[Known] = &[
    Known {
        ways: THROUGH_A_PIPE,
        name: "",
        start: "end of the records: only in A: ",
        reason: "what is no record at the end of a damaged recording cannot be sent through a pipe, nor found behind it",
    },
    Known {
        ways: &["pipe2file", "file2pipe and back", "swap twice"],
        name: "",
        start: "feature HOSTNAME: only in B: \"\"",
        reason: "perfs of the other byte order need it in a file",
    },
    Known {
        ways: &["file2pipe and back"],
        name: "-file-crashed",
        start: "feature ",
        reason: "a stream has no features either, and a file of it gets what readers rely on",
    },
    Known {
        ways: &["file2pipe and back"],
        name: "-file-crashed-tp",
        start: "event 0: name ",
        reason: "the formats with the common fields have names",
    },
    Known {
        ways: &["file2pipe and back"],
        name: "-injected",
        start: "HEADER_BUILD_ID record: only in A: ",
        reason: "perf inject left build ids in the data: they enter the section",
    },
    Known {
        ways: &["file2pipe and back"],
        name: "-file-injected",
        start: "feature BUILD_ID: ",
        reason: "likewise",
    },
    Known {
        ways: &["file2pipe and back"],
        name: "-pipe-injected",
        start: "feature ",
        reason: "perf inject left the features in the data: they become sections",
    },
    Known {
        ways: &["file2pipe and back"],
        name: "-file-pipe-conv",
        start: "feature ",
        reason: "likewise",
    },
    Known {
        ways: &["file2pipe and back"],
        name: "6.1-x86_64-hw-stat",
        start: "feature STAT: only in A: ",
        reason: "the flag follows from the STAT records, of which there are none",
    },
    Known {
        ways: &["file2pipe and back"],
        name: "quipper/armv7.perf_3.14-3.8",
        start: "feature CPUDESC: only in A: ",
        reason: "an empty section ends the features of a pipe",
    },
    Known {
        ways: &["file2pipe and back"],
        name: "quipper/forkexit-3.8",
        start: "feature BUILD_ID: ",
        reason: "two entries for the same file become one",
    },
    Known {
        ways: &["file2pipe and back"],
        name: "quipper/weight_struct",
        start: "feature BUILD_ID: ",
        reason: "the type of an entry is 0, even if another tool wrote that of the record",
    },
    Known {
        ways: &["pipe2file", "file2pipe and back", "compat 6.1"],
        name: "",
        start: "the recording is unfinished: the size of the records in the header is 0",
        reason: "no record is left, or there was none",
    },
];

fn is_known(way: &str, recording: &Recording, line: &str) -> bool {
    let applies =
        |known: &Known| recording.name.contains(known.name) && line.starts_with(known.start);
    KNOWN
        .iter()
        .any(|known| known.ways.contains(&way) && applies(known))
}

/// Returns whether two recordings are byte-identical.
pub fn are_same(a: &Path, b: &Path) -> bool {
    matches!((fs::read(a), fs::read(b)), (Ok(a), Ok(b)) if a == b)
}

/// Checks that the bytes are the same, or that `diff` finds no differences.
pub fn identity(sent: &Recording, way: &str, expected: &Path, end: &Path) -> Verdict {
    if are_same(expected, end) {
        return Verdict::Same;
    }
    let found = match differences(expected, end) {
        Ok(lines) => lines,
        Err(error) => return Verdict::Failed(error),
    };
    let found: Vec<String> = found
        .into_iter()
        .filter(|line| !is_known(way, sent, line))
        .collect();
    if found.is_empty() {
        Verdict::Alike
    } else {
        Verdict::Failed(format!("diff says:\n{}", found.join("\n")))
    }
}

/// Checks that the results have no errors that the original does not have.
pub fn verify(sent: &Recording, way: &str, made: &[PathBuf]) -> Verdict {
    let errors = |path: &Path| {
        let report = Report::of(Input::open(path)?)?;
        let errors = report
            .findings
            .into_iter()
            .filter(|finding| finding.severity == Severity::Error);
        Ok(errors
            .map(|finding| finding.meaning)
            .collect::<Vec<String>>())
    };
    let all =
        |path: &Path| errors(path).map_err(|error: perfdata_convert::Error| error.to_string());
    let before = match all(&sent.path) {
        Ok(before) => before,
        Err(error) => vec![error],
    };
    for path in made {
        match all(path) {
            Err(error) => return Verdict::Failed(error),
            Ok(now) => {
                let is_new = |now: &&String| !before.iter().any(|before| is_alike(before, now));
                if let Some(new) = now
                    .iter()
                    .filter(is_new)
                    .find(|new| !is_known(way, sent, new))
                {
                    return Verdict::Failed(format!("verify says: {new}"));
                }
            }
        }
    }
    if before.is_empty() {
        Verdict::Same
    } else {
        Verdict::Alike
    }
}

/// Returns whether two findings are the same except for the numbers in them.
fn is_alike(a: &str, b: &str) -> bool {
    let words = |text: &str| {
        text.split(|c: char| c.is_ascii_digit())
            .filter(|w| !w.is_empty())
            .collect::<String>()
    };
    words(a) == words(b)
}

/// Returns the verdict for a refusal. It is accepted for a damaged recording.
pub fn refusal(sent: &Recording, error: &str) -> Verdict {
    if sent.is_damaged() {
        return Verdict::Skipped("refused: damaged on purpose".to_owned());
    }
    if error.contains("is unfinished or truncated") {
        return Verdict::Skipped("refused: never finished".to_owned());
    }
    Verdict::Failed(error.to_owned())
}

/// The perf that judges the conversions of a recording.
pub struct Judge(&'static Perf);

impl Judge {
    /// Returns the perf that recorded, or if that is unknown, the first one of the same byte order.
    pub fn of(recording: &Recording) -> Option<Self> {
        let Form { endian, .. } = recording.form?;
        match recording.recorder {
            Some(_) => judge::native(recording),
            None => perf::all().iter().find(|perf| perf.endian == endian),
        }
        .map(Judge)
    }

    /// Returns whether it is a program of another machine.
    pub fn is_emulated(&self) -> bool {
        (self.0.endian == Endian::Big) != cfg!(target_endian = "big")
    }

    /// Checks that its output is the same for both recordings, except for `allowed`.
    pub fn texts(&self, sent: &Recording, end: &Path, allowed: &[Allowed]) -> Verdict {
        match judge::can_judge(self.0, sent) {
            Ok(true) => {}
            Ok(false) => {
                return Verdict::Skipped("perf does not read the recording itself".to_owned());
            }
            Err(error) => return Verdict::Failed(error),
        }
        match judge::compare(sent, end, self.0, allowed) {
            Ok(_) => Verdict::Alike,
            Err(error) => Verdict::Failed(error),
        }
    }
}

/// Checks that the perf of `release` finds the events in the file beside the recording.
pub fn events(recording: &Recording, end: &Path, release: &str) -> Verdict {
    let Some(endian) = recording.form.map(|form| form.endian) else {
        return Verdict::Skipped("no perf that judges it".to_owned());
    };
    let Some(perf) = perf::all()
        .iter()
        .find(|p| p.endian == endian && p.version.to_string() == release)
    else {
        return Verdict::Skipped(format!("no perf {release} of its byte order"));
    };
    if recording.script_text().is_none() {
        return Verdict::Skipped("no text of its own perf beside it".to_owned());
    }
    match judge::compare_events(recording, &Texts::new(end, perf)) {
        Ok(()) => Verdict::Alike,
        Err(error) => Verdict::Failed(error),
    }
}
