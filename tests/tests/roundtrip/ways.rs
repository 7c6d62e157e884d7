//! The ways (series of conversions) through which a recording is sent, and the expected results.

use std::path::{Path, PathBuf};

use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::compat::Compat;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::edit::{Change, Edit};
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::{
    feature::FeatureId,
    header::ContainerKind,
    record::{Body, RawRecord, Record, RecordType},
};
use perfdata_inject::build_ids::{BuildIds, KnownBuildIds, Resolver, Select, Storage, Sysroot};
use perfdata_tests::{
    allowed::{COMPRESSED, PIPE_TO_FILE},
    convert::{Converted, Whole, convert},
    golden::Allowed,
    recordings::{Container, Form, Recording},
};

use crate::checks::{self, Judge};
use crate::table::{Row, Verdict};

/// The release for `--compat`: the oldest one among the judges.
const OLD: &str = "6.1";

/// A conversion, or several that lead back.
pub struct Way {
    pub name: &'static str,
    /// Runs the conversions; returns the reason if there is nothing to convert.
    go: fn(&Recording, &Path) -> Result<Trip, Stop>,
    /// Accepted differences in perf's output at the end, if the bytes differ.
    allowed: &'static [Allowed],
    /// Whether a perf of another release reads the result, so that only its events are compared.
    is_for_other_perf: bool,
}

/// The results of the conversions.
pub struct Trip {
    /// Recordings in the order of the conversions; the last one is checked.
    made: Vec<Converted>,
    /// The expected last recording.
    expected: Expected,
}

enum Expected {
    /// The recording that was sent.
    Sent,
    /// The recording before the last one.
    Before,
    /// This recording.
    Other(Converted),
}

/// The reason why a way did not complete.
pub enum Stop {
    /// The way does not exist for this recording.
    Skip(&'static str),
    /// A conversion was refused.
    Refused(String),
}

pub const WAYS: &[Way] = &[
    Way {
        name: "copy",
        go: copy,
        allowed: &[],
        is_for_other_perf: false,
    },
    Way {
        name: "pipe2file",
        go: pipe2file,
        allowed: PIPE_TO_FILE,
        is_for_other_perf: false,
    },
    Way {
        name: "file2pipe and back",
        go: file2pipe,
        allowed: checks::PIPE_AND_BACK,
        is_for_other_perf: false,
    },
    Way {
        name: "swap twice",
        go: swap_twice,
        allowed: checks::SWAPPED_TWICE,
        is_for_other_perf: false,
    },
    Way {
        name: "compress and back",
        go: compress,
        allowed: COMPRESSED,
        is_for_other_perf: false,
    },
    Way {
        name: "inject and drop",
        go: inject,
        allowed: checks::WITHOUT_BUILD_IDS,
        is_for_other_perf: false,
    },
    Way {
        name: "compat 6.1",
        go: compat,
        allowed: &[],
        is_for_other_perf: true,
    },
];

impl Way {
    /// Sends `recording` this way. A directory is sent as the file that is made from it.
    pub fn check(&self, recording: &Recording, judge: Result<Judge, &'static str>) -> Row {
        let is_directory = matches!(
            recording.form,
            Some(Form {
                container: Container::Directory,
                ..
            })
        );
        let single = is_directory.then(|| convert(&recording.path, None, Vec::new()));
        let sent = match &single {
            None => recording.clone(),
            Some(Ok(file)) => Recording {
                path: file.path(),
                form: Recording::at(&file.path()).form,
                ..recording.clone()
            },
            Some(Err(error)) => return Row::stopped(Verdict::Failed(error.to_string())),
        };
        let trip = match (self.go)(&sent, &sent.path) {
            Ok(trip) => trip,
            Err(Stop::Skip(why)) => return Row::stopped(Verdict::Skipped(why.to_owned())),
            Err(Stop::Refused(error)) => return Row::stopped(checks::refusal(&sent, &error)),
        };
        let made: Vec<PathBuf> = trip.made.iter().map(Converted::path).collect();
        let Some((end, before)) = made.split_last() else {
            return Row::stopped(Verdict::Failed("nothing was made".to_owned()));
        };
        let expected = match &trip.expected {
            Expected::Sent => &sent.path,
            Expected::Before => before.last().unwrap_or(&sent.path),
            Expected::Other(other) => &other.path(),
        };
        let identity = checks::identity(&sent, self.name, expected, end);
        let verify = checks::verify(&sent, self.name, &made);
        let perf = match judge {
            _ if checks::are_same(&sent.path, end) => Verdict::Same,
            Err(why) => Verdict::Skipped(why.to_owned()),
            Ok(_) if self.is_for_other_perf => checks::events(recording, end, OLD),
            Ok(judge) => judge.texts(&sent, end, self.allowed),
        };
        Row {
            identity,
            verify,
            perf,
        }
    }
}

impl Trip {
    /// Returns a trip whose expected result is the recording that was sent.
    fn back(made: Vec<Converted>) -> Self {
        Trip {
            made,
            expected: Expected::Sent,
        }
    }
}

fn step(
    path: &Path,
    to: Option<ContainerKind>,
    stages: Vec<Box<dyn Stage>>,
) -> Result<Converted, Stop> {
    convert(path, to, stages).map_err(|error| Stop::Refused(error.to_string()))
}

fn is_pipe(recording: &Recording) -> bool {
    matches!(
        recording.form,
        Some(Form {
            container: Container::Pipe,
            ..
        })
    )
}

fn copy(_: &Recording, path: &Path) -> Result<Trip, Stop> {
    Ok(Trip::back(vec![step(path, None, Vec::new())?]))
}

fn pipe2file(recording: &Recording, path: &Path) -> Result<Trip, Stop> {
    if !is_pipe(recording) {
        return Err(Stop::Skip("no pipe"));
    }
    Ok(Trip::back(vec![step(
        path,
        Some(ContainerKind::File),
        Vec::new(),
    )?]))
}

fn file2pipe(recording: &Recording, path: &Path) -> Result<Trip, Stop> {
    if is_pipe(recording) {
        return Err(Stop::Skip("no file"));
    }
    let pipe = step(path, Some(ContainerKind::Pipe), Vec::new())?;
    let file = step(&pipe.path(), Some(ContainerKind::File), Vec::new())?;
    Ok(Trip::back(vec![pipe, file]))
}

fn swap_twice(_: &Recording, path: &Path) -> Result<Trip, Stop> {
    let swap =
        || -> Vec<Box<dyn Stage>> { vec![Box::new(Swap::new(Target::Other, Unknown::Error))] };
    let once = match step(path, None, swap()) {
        Err(Stop::Refused(why)) if why.contains("cannot be read") => {
            return Err(Stop::Skip("perf inject wrote attributes over a section"));
        }
        other => other?,
    };
    let twice = step(&once.path(), None, swap())?;
    Ok(Trip::back(vec![once, twice]))
}

fn decompress() -> Vec<Box<dyn Stage>> {
    vec![Box::new(Decompress::default())]
}

/// The expected result is the recording without compression.
fn compress(_: &Recording, path: &Path) -> Result<Trip, Stop> {
    let mut stages = decompress();
    stages.push(Box::new(Compress::new(RecordType::COMPRESSED2, 1)));
    let packed = step(path, None, stages)?;
    let plain = step(&packed.path(), None, decompress())?;
    Ok(Trip {
        made: vec![packed, plain],
        expected: Expected::Other(step(path, None, decompress())?),
    })
}

/// Adds a synthetic build ID to every mapped DSO. The expected result is the recording with its
/// original section; for a pipe, where build IDs are records, without any.
fn inject(recording: &Recording, path: &Path) -> Result<Trip, Stop> {
    let model = Whole::read_file(path).map_err(Stop::Refused)?.recording;
    let section = model
        .features
        .get(&FeatureId::BUILD_ID)
        .filter(|_| !is_pipe(recording));
    let back = || -> Result<Vec<Box<dyn Stage>>, Stop> {
        let change = section.map_or(Change::Drop, |section| Change::Raw(section.clone()));
        let edit = Edit::new([(FeatureId::BUILD_ID.to_string(), change)]);
        Ok(vec![Box::new(
            edit.map_err(|error| Stop::Refused(error.to_string()))?,
        )])
    };
    let known = KnownBuildIds::parse(&made_up_ids(path)?)
        .map_err(|error| Stop::Refused(error.to_string()))?;
    let nowhere = Sysroot::new(Some(PathBuf::from("/nowhere")));
    let add = BuildIds::new(
        Select::All,
        Storage::Table,
        Resolver::new(known, nowhere, None),
    );
    let with = step(path, None, vec![Box::new(add)])?;
    let without = step(&with.path(), None, back()?)?;
    Ok(Trip {
        made: vec![with, without],
        expected: Expected::Other(step(path, None, back()?)?),
    })
}

/// Returns a build ID for each name in the record of a mapping.
fn made_up_ids(path: &Path) -> Result<String, Stop> {
    let whole = Whole::read_file(path).map_err(Stop::Refused)?;
    let mut list = String::new();
    for (number, (at, kind)) in (1..).zip(&whole.records) {
        if ![RecordType::MMAP, RecordType::MMAP2].contains(kind) {
            continue;
        }
        let bytes = whole.stream.get(*at..).unwrap_or_default();
        let Ok(raw) = RawRecord::first(bytes, whole.recording.endian, 0) else {
            continue;
        };
        let name = match Record::decode(&raw, &whole.recording.events.layout_of(&raw))
            .map(|record| record.body)
        {
            Ok(Body::Mmap(map)) => map.filename.text().to_vec(),
            Ok(Body::Mmap2(map)) => map.filename.text().to_vec(),
            _ => continue,
        };
        if let Ok(name) = String::from_utf8(name)
            && !name.contains([',', '\n'])
            && !name.trim().is_empty()
        {
            list.push_str(&format!("{number:040x} {name},"));
        }
    }
    Ok(list)
}

/// The second conversion changes nothing.
fn compat(_: &Recording, path: &Path) -> Result<Trip, Stop> {
    let old = || -> Result<Vec<Box<dyn Stage>>, Stop> {
        let version = OLD.parse().map_err(|_| Stop::Skip("no release"))?;
        Ok(vec![Box::new(Compat::new(version))])
    };
    let once = match step(path, None, old()?) {
        Err(Stop::Refused(why)) if why.contains("knows none of the recording's data records") => {
            return Err(Stop::Skip("nothing in it is known to perf 6.1"));
        }
        Err(Stop::Refused(why)) if why.contains("CALLCHAIN_DEFERRED") => {
            return Err(Stop::Skip("perf 6.1 knows no deferred callchains"));
        }
        other => other?,
    };
    let twice = step(&once.path(), None, old()?)?;
    Ok(Trip {
        made: vec![once, twice],
        expected: Expected::Before,
    })
}
