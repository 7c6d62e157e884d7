//! Differential tests: perf reads what is made from a mutated recording like the recording itself.
//!
//! The recordings differ from real ones within the format (`perfdata_tests::mutate`), by
//! reproducible random numbers. A recording that perf cannot read, or of which it prints something
//! else the second time, is left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use perfdata_convert::io::{Input, Output};
use perfdata_convert::pipeline::Stage;
use perfdata_convert::recover::Recover;
use perfdata_convert::stages::compat::Compat;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::RecordType;
use perfdata_edit::merge::Merge;
use perfdata_edit::slice::{Select, Slice};
use perfdata_edit::sort::Sort;
use perfdata_edit::thin::Thin;
use perfdata_tests::allowed::{COMPRESSED, PIPE_TO_FILE};
use perfdata_tests::convert::{convert, into_memory};
use perfdata_tests::generate::random::Random;
use perfdata_tests::golden::{self, Allowed};
use perfdata_tests::judge::{self, READER, Texts};
use perfdata_tests::mutate::Original;
use perfdata_tests::perf::{self, Perf, Question};
use perfdata_tests::recordings::{self, Container, Endian, Recording};
use perfdata_tests::{is_thorough, skipped};

use crate::{file2pipe_perf, swap_perf};

/// How a result is compared with the mutated recording.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// The bytes are the same.
    Bytes,
    /// perf prints the same.
    Perf,
    /// perf prints the same records, unless it reports that they are out of order.
    Records,
    /// A perf of the other byte order prints the same.
    OtherOrder,
}

/// Conversions whose results perf must read like the recording.
struct Way {
    name: &'static str,
    rule: Rule,
    allowed: fn(Container) -> &'static [Allowed],
    run: fn(&Path, Container, &Perf) -> Result<Vec<u8>, String>,
}

fn one(path: &Path, stage: impl Stage + 'static) -> Result<Vec<u8>, String> {
    in_pass(path, None, vec![Box::new(stage)])
}

fn in_pass(
    path: &Path,
    to: Option<ContainerKind>,
    stages: Vec<Box<dyn Stage>>,
) -> Result<Vec<u8>, String> {
    let made = convert(path, to, stages).map_err(|error| error.to_string())?;
    Ok(made.bytes())
}

/// Converts the result of one conversion again.
fn and_then(bytes: Vec<u8>, stage: impl Stage + 'static) -> Result<Vec<u8>, String> {
    into_memory(Input::from_source(bytes), None, vec![Box::new(stage)])
        .map_err(|error| error.to_string())
}

fn other(container: Container) -> ContainerKind {
    match container {
        Container::Pipe => ContainerKind::File,
        _ => ContainerKind::Pipe,
    }
}

fn swap() -> Swap {
    Swap::new(Target::Other, Unknown::Keep)
}

const NOTHING: fn(Container) -> &'static [Allowed] = |_| &[];

const WAYS: &[Way] = &[
    Way {
        name: "copy",
        rule: Rule::Bytes,
        allowed: NOTHING,
        run: |path, _, _| in_pass(path, None, Vec::new()),
    },
    Way {
        name: "swap twice",
        rule: Rule::Bytes,
        allowed: NOTHING,
        run: |path, _, _| and_then(one(path, swap())?, swap()),
    },
    Way {
        name: "other container",
        rule: Rule::Perf,
        allowed: |container| match container {
            Container::Pipe => PIPE_TO_FILE,
            _ => file2pipe_perf::ALLOWED,
        },
        run: |path, container, _| in_pass(path, Some(other(container)), Vec::new()),
    },
    Way {
        name: "compress",
        rule: Rule::Perf,
        allowed: |_| COMPRESSED,
        run: |path, _, perf| {
            // perf knows the records that are padded since 6.16.
            let kind = match (perf.version.major, perf.version.minor) {
                (6, ..16) => RecordType::COMPRESSED,
                _ => RecordType::COMPRESSED2,
            };
            one(path, Compress::new(kind, 1))
        },
    },
    Way {
        name: "compress, decompress",
        rule: Rule::Bytes,
        allowed: |_| COMPRESSED,
        run: |path, _, _| {
            let packed = one(path, Compress::new(RecordType::COMPRESSED2, 1))?;
            and_then(packed, Decompress::default())
        },
    },
    Way {
        name: "compat",
        // Features that this perf would not write are left out.
        rule: Rule::Records,
        allowed: NOTHING,
        run: |path, _, perf| {
            let version = perf.version.to_string();
            one(path, Compat::new(version.parse().expect("a release")))
        },
    },
    Way {
        name: "recover",
        rule: Rule::Bytes,
        allowed: NOTHING,
        run: |path, _, _| {
            let folder = tempfile::tempdir().expect("a folder");
            let to = folder.path().join("recovered.data");
            Output::create(&to, path, false)
                .and_then(|output| Recover::default().run(Input::open(path)?, output.synced(false)))
                .map_err(|error| error.to_string())?;
            Ok(fs::read(to).expect("the output is there"))
        },
    },
    Way {
        name: "merge of one",
        rule: Rule::Bytes,
        allowed: NOTHING,
        run: |path, _, _| {
            let input = Input::open(path).map_err(|error| error.to_string())?;
            Merge::default()
                .open(vec![("one".into(), input)])
                .and_then(|merged| into_memory(merged.input, None, Vec::new()))
                .map_err(|error| error.to_string())
        },
    },
    Way {
        name: "sort",
        rule: Rule::Records,
        allowed: NOTHING,
        run: |path, _, _| one(path, Sort::new()),
    },
    Way {
        name: "slice of everything",
        rule: Rule::Bytes,
        allowed: NOTHING,
        run: |path, _, _| {
            let mut select = Select::default();
            select.first = Some(u64::MAX);
            select.allow_empty = true;
            one(path, Slice::new(select))
        },
    },
    Way {
        name: "max-stack of everything",
        rule: Rule::Bytes,
        allowed: NOTHING,
        run: |path, _, _| one(path, Thin::new().max_stack(u32::MAX)),
    },
    Way {
        name: "swap",
        rule: Rule::OtherOrder,
        allowed: |_| swap_perf::ALLOWED,
        run: |path, _, _| one(path, swap()),
    },
];

/// What became of the comparisons of one conversion.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    same_bytes: usize,
    same_text: usize,
    refused: usize,
    left_out: usize,
}

/// A mutated recording in a folder.
struct Mutated {
    recording: Recording,
    bytes: Vec<u8>,
    form: recordings::Form,
}

/// Compares what perf prints for a mutated recording and for the result of a conversion. Returns
/// `None` if the recording is left out.
fn compare(
    mutated: &Mutated,
    result: &Path,
    way: &Way,
    perf: &'static Perf,
    old: &Texts,
    questions: &[Question],
) -> Result<Option<()>, String> {
    let reader = match way.rule {
        Rule::OtherOrder => {
            let is_other =
                |other: &&Perf| other.version == perf.version && other.endian != perf.endian;
            match perf::all().iter().find(is_other) {
                Some(other) => other,
                None => return Ok(None),
            }
        }
        _ => perf,
    };
    let new = Texts::new(result, reader);
    let script = old.answer(Question::Script)?;
    let is_unordered = |text: &str| text.to_lowercase().contains("out of order");
    if way.rule == Rule::Records && is_unordered(&script.stderr) {
        return Ok(None);
    }
    let allowed = [(way.allowed)(mutated.form.container), READER].concat();
    let mut faults = Vec::new();
    for &question in questions {
        if way.rule == Rule::Records && question != Question::Script {
            continue;
        }
        let is_of_files = matches!(question, Question::Evlist | Question::BuildIds);
        if is_of_files && (way.name == "other container" || way.rule == Rule::OtherOrder) {
            continue;
        }
        let (before, after) = (old.answer(question)?, new.answer(question)?);
        if !before.success() {
            return Ok(None);
        }
        if !after.success() {
            faults.push(format!("{question:?}: perf fails: {}", after.stderr));
        } else if let Err(fault) = golden::compare(
            &mutated.recording,
            question,
            &before.stdout,
            &after.stdout,
            &allowed,
        ) {
            faults.push(fault);
        }
    }
    if faults.is_empty() {
        return Ok(Some(()));
    }
    // Once more: perf may print something else each time.
    for (texts, path) in [(old, &*mutated.recording.path), (&new, result)] {
        let perf = if std::ptr::eq(texts, old) {
            perf
        } else {
            reader
        };
        let again = Texts::new(path, perf);
        for &question in questions {
            let (first, second) = (texts.answer(question)?, again.answer(question)?);
            if (&first.stdout, first.success()) != (&second.stdout, second.success()) {
                return Ok(None);
            }
        }
    }
    Err(format!("{perf}: {}", faults.join("\n")))
}

/// Mutates a recording, converts it in all ways, and compares.
fn check(
    seed: &Recording,
    original: &Original,
    number: u64,
    tally: &Mutex<BTreeMap<&'static str, Counts>>,
) -> Result<(), String> {
    let form = seed.form.ok_or("no recording")?;
    let mut random = Random(number << 32 | u64::from(crc32fast::hash(seed.name.as_bytes())));
    let (bytes, changes) = original.mutated(&mut random);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mutated.data");
    fs::write(&path, &bytes).expect("a file");
    let mutated = Mutated {
        recording: Recording {
            path: path.clone(),
            ..seed.clone()
        },
        bytes,
        form,
    };
    let judges: Vec<_> = perf::all()
        .iter()
        .filter(|perf| perf.endian == form.endian)
        .collect();
    let Some(&perf) = judges.get(number as usize % judges.len().max(1)) else {
        return Ok(());
    };
    let is_emulated = (perf.endian == Endian::Big) != cfg!(target_endian = "big");
    // An emulated perf takes seconds.
    let questions: &[Question] = match is_thorough() || !is_emulated {
        true => &Question::ALL,
        false => &[Question::Script],
    };
    let old = Texts::new(&path, perf);
    let is_read = judge::can_judge(perf, &mutated.recording)?;
    let mut faults = Vec::new();
    for (at, way) in WAYS.iter().enumerate() {
        let mut counts = Counts::default();
        let converted = (way.run)(&path, form.container, perf);
        match converted {
            Ok(result) if result == mutated.bytes => counts.same_bytes = 1,
            // A slice of counter values needs the order of time.
            Err(why) if why.contains("are not in the order of time") => counts.refused = 1,
            Err(why) if way.rule == Rule::Bytes => faults.push(format!("{}: {why}", way.name)),
            Err(_) => counts.refused = 1,
            Ok(_) if !is_read => counts.left_out = 1,
            // The other byte order is slow to read here: some of the recordings.
            Ok(_)
                if way.rule == Rule::OtherOrder && !is_thorough() && !number.is_multiple_of(4) =>
            {
                counts.left_out = 1;
            }
            Ok(result) => {
                let result_path = folder.path().join(format!("{at}.data"));
                fs::write(&result_path, &result).expect("a file");
                match compare(&mutated, &result_path, way, perf, &old, questions) {
                    Ok(Some(())) => counts.same_text = 1,
                    Ok(None) => counts.left_out = 1,
                    Err(why) => faults.push(format!("{}: {why}", way.name)),
                }
            }
        }
        let mut tally = tally
            .lock()
            .expect("nothing panics while it holds the lock");
        let sum = tally.entry(way.name).or_default();
        sum.same_bytes += counts.same_bytes;
        sum.same_text += counts.same_text;
        sum.refused += counts.refused;
        sum.left_out += counts.left_out;
    }
    if faults.is_empty() {
        return Ok(());
    }
    let kept = std::env::temp_dir().join(format!("perfconv-mutated-{}-{number}", seed.name));
    fs::write(&kept, &mutated.bytes).expect("a file");
    Err(format!(
        "number {number}, now {}:\n  {}\n{}",
        kept.display(),
        changes.join("\n  "),
        faults.join("\n")
    ))
}

#[test]
fn mutated_recordings_read_as_what_is_made_of_them() {
    if perf::all().is_empty() {
        skipped::note("perf");
        return;
    }
    let (rounds, most) = if is_thorough() {
        (40, 80 << 10)
    } else {
        (1, 20 << 10)
    };
    if !is_thorough() {
        skipped::note(skipped::TEST_ALL);
    }
    let is_small = |recording: &Recording| {
        recording.path.is_file()
            && recording.form.is_some()
            && !recording.crashes_perf_6_1()
            && fs::metadata(&recording.path).is_ok_and(|file| file.len() < most)
    };
    let seeds: Vec<_> = recordings::fixtures()
        .into_iter()
        .filter(is_small)
        .collect();
    let start = Instant::now();
    let tally = Mutex::new(BTreeMap::new());
    let count = Mutex::new(0);
    let first =
        std::env::var("PERFCONV_TEST_SEED").map_or(0, |seed| seed.parse().expect("a number"));
    recordings::check_all(&seeds, |seed| {
        let bytes = fs::read(&seed.path).map_err(|error| error.to_string())?;
        let Some(original) = Original::new(bytes) else {
            return Ok(());
        };
        let numbers = first..first + rounds;
        let faults: Vec<_> = numbers
            // Another perf for each recording.
            .map(|number| number + u64::from(crc32fast::hash(seed.name.as_bytes()) % 12))
            .filter_map(|number| {
                *count.lock().expect("as above") += 1;
                check(seed, &original, number, &tally).err()
            })
            .collect();
        match faults.is_empty() {
            true => Ok(()),
            false => Err(faults.join("\n")),
        }
    });
    let count = count.into_inner().expect("as above");
    eprintln!("{count} mutated recordings in {:.0?}", start.elapsed());
    let tally = tally.into_inner().expect("as above");
    for (name, counts) in &tally {
        eprintln!("{name:>24}: {counts:?}");
    }
    assert!(count > 40 && tally.len() == WAYS.len());
    for way in WAYS {
        let counts = tally[way.name];
        assert!(
            counts.same_bytes + counts.same_text > 0,
            "{}: {counts:?}",
            way.name
        );
    }
}
