//! perf as the judge of a conversion: selects the perfs for a recording, and compares their output
//! for two recordings.
//!
//! These facts about the recordings here were found by reading all of them with all six perfs:
//!
//! - The perf that made a recording prints the same text on every machine of its byte order, except
//!   for [`READER`]. The x86-64 perf of the same version is the judge for aarch64, armhf and i386.
//! - A perf of the other byte order cannot be a judge. It does not swap `prot` of MMAP2 records; in
//!   a pipe it does not swap pid and tid, the raw data of tracepoints and compressed records, and
//!   before 7.2 it stops at the first feature; it omits BPF programs, and prints `clockid` and
//!   `sample_regs_intr` incorrectly.
//! - In file mode, perf rejects attributes larger than its own; in a pipe it accepts them.
//!   Therefore a pipe recorded by a newer perf cannot be compared with the file made from it.
//! - A newer perf reads most recordings of an older one: 7.2 rejects stat recordings (COMPRESSED
//!   with `mmap_len` 0) and files injected by 6.1 (unaligned BUILD_ID records), and interprets the
//!   terminator of a pipe recorded by an older perf as an empty CPU_DOMAIN_INFO. Then its output is
//!   the same for both recordings, or empty.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
};

use crate::{
    golden::{self, Allowed, Difference, Tally, Uses},
    is_thorough,
    perf::{self, Output, Perf, Question},
    recordings::{Container, Endian, Form, Recording},
};

/// Differences between perf's output on the recording machine and on this one.
pub const READER: &[Allowed] = &[
    Allowed {
        name: "unwound frames",
        reason: "perf unwinds user stacks with the program that ran, which only the recording machine has",
        question: Question::Script,
        // s390x without frame pointers: 7.2 unwinds the user stack for `-g` too.
        recordings: |recording| {
            recording.name.contains("-s390x-file-dwarf")
                || matches!(
                    recording.name.as_str(),
                    "7.2-s390x-file-g" | "7.2-s390x-pipe-g"
                )
        },
        applies: |difference| match difference {
            Difference::Lost(line) => is_frame(line),
            _ => false,
        },
    },
    Allowed {
        name: "reader's kernel",
        reason: "perf names addresses in tracepoints by the symbols of the kernel that runs",
        question: Question::Script,
        recordings: |recording| recording.name.ends_with("-tool-kmem"),
        applies: |difference| difference.all_lines(|line| line.contains(" call_site=")),
    },
    Allowed {
        name: "reader's machine",
        reason: "without a CPUID or PMU_MAPPINGS section perf shows those of the machine it runs on",
        question: Question::Header,
        recordings: |recording| recording.name.ends_with("-file-crashed"),
        applies: |difference| {
            ["# cpuid : ", "# pmu mappings: "]
                .iter()
                .any(|start| difference.changed_after(start).is_some())
        },
    },
    Allowed {
        name: "reader's PMUs",
        reason: "perf 6.12 shows the PMU of the machine it runs on that has the number of the recorded one",
        question: Question::Header,
        recordings: |recording| recording.name == "6.12-aarch64-hw-pmuname",
        applies: |difference| {
            difference.all_lines(|line| line.starts_with("# event : name = armv8_pmuv3/"))
        },
    },
];

/// Recordings whose text differs between releases of perf for reasons unrelated to the conversion,
/// and these reasons.
const OTHER_TEXT: &[(&str, &str)] = &[
    (
        "-file-defer",
        "the deferred callchains are left out, and with them what they add to other lines",
    ),
    (
        "-pipe-tp-mixed",
        "perf 6.1 cannot print a dynamic array of bytes that perf 7.2 can",
    ),
    (
        "-tool-kmem",
        "perf 6.1 prints addresses in tracepoints as numbers, later ones as symbols of the reader",
    ),
    (
        "-pipe-stat-I",
        "perf 6.1 and 6.12 print an aggregation that they cannot read in different words",
    ),
    (
        "-s390x-file-group-S",
        "perf 6.1 does not tell apart the threads that inherited a group when it counts periods",
    ),
    (
        "-odd-64events",
        "perf 6.12 forgets the name of a thread that ended, which stands in the text of its tracepoints",
    ),
];

/// The output of one perf for one recording. perf runs at most once for each question, on demand.
#[derive(Debug)]
pub struct Texts {
    path: PathBuf,
    perf: &'static Perf,
    answers: [OnceLock<Result<Output, String>>; Question::ALL.len()],
}

impl Texts {
    /// Returns texts without the cache of [`texts`], for a recording that may be deleted or
    /// overwritten later.
    pub fn new(path: &Path, perf: &'static Perf) -> Self {
        Self {
            path: path.to_owned(),
            perf,
            answers: Default::default(),
        }
    }

    /// Returns the output for one question, or the reason why perf could not run.
    pub fn answer(&self, question: Question) -> Result<&Output, String> {
        let Self {
            path,
            perf,
            answers,
        } = self;
        answers[question as usize]
            .get_or_init(|| {
                perf.ask(question, path)
                    .map_err(|error| format!("{}: {error}", path.display()))
            })
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Returns whether perf can read the recording to the end, and finds a header and records.
    pub fn is_readable(&self) -> Result<bool, String> {
        let script = self.answer(Question::Script)?;
        Ok(script.success()
            && !script.stdout.is_empty()
            && !self.answer(Question::Header)?.stdout.is_empty())
    }
}

/// Returns the perf that made the recording, or the same version for another machine of the same
/// byte order.
pub fn native(recording: &Recording) -> Option<&'static Perf> {
    let recorder = recording.recorder.as_ref()?;
    perf::all()
        .iter()
        .find(|perf| (perf.version, perf.endian) == (recorder.perf, recorder.endian()))
}

/// Returns all perfs that can judge a conversion of the recording, the one that made it first.
pub fn judges(recording: &Recording) -> Result<Vec<&'static Perf>, String> {
    let mut judges = Vec::new();
    for perf in perf::all() {
        if can_judge(perf, recording)? {
            judges.push(perf);
        }
    }
    let native = native(recording).map(|perf| perf.name);
    judges.sort_by_key(|perf| Some(perf.name) != native);
    Ok(judges)
}

/// Returns the [`judges`] that a suite uses: all if everything is tested; otherwise, for the
/// project's recordings, the one that made it and the newest, and for other recordings the first.
pub fn panel(recording: &Recording) -> Result<Vec<&'static Perf>, String> {
    let mut judges = judges(recording)?;
    if !is_thorough() {
        let newest = judges
            .iter()
            .copied()
            .skip(1)
            .max_by_key(|perf| perf.version)
            .filter(|_| recording.is_fixture());
        judges.truncate(1);
        judges.extend(newest);
    }
    Ok(judges)
}

/// Returns whether `perf` has the recording's byte order, accepts its attributes in a file too, and
/// can read it.
pub fn can_judge(perf: &'static Perf, recording: &Recording) -> Result<bool, String> {
    let Some(form) = recording.form else {
        return Ok(false);
    };
    let attr_size = attr_size(&recording.main_file(), form).map_err(|error| error.to_string())?;
    Ok(perf.endian == form.endian
        && attr_size.is_none_or(|size| size <= perf.attr_size())
        && texts(recording, perf).is_readable()?)
}

/// Returns the output of `perf` for an original, which does not change during the tests.
pub fn texts(recording: &Recording, perf: &'static Perf) -> Arc<Texts> {
    type Cache = Mutex<HashMap<(PathBuf, &'static str), Arc<Texts>>>;
    static CACHE: OnceLock<Cache> = OnceLock::new();
    let mut cache = CACHE
        .get_or_init(Cache::default)
        .lock()
        .expect("nothing panics while it holds the lock");
    let key = (recording.path.clone(), perf.name);
    Arc::clone(
        cache
            .entry(key)
            .or_insert_with(|| Arc::new(Texts::new(&recording.path, perf))),
    )
}

/// Compares the output of `perf` for a recording and its conversion, except for the `allowed`
/// differences. Returns the number of occurrences of each of these, or all other differences as an
/// error.
pub fn compare(
    original: &Recording,
    converted: &Path,
    perf: &'static Perf,
    allowed: &[Allowed],
) -> Result<Uses, String> {
    compare_answers(&Question::ALL, original, converted, perf, allowed)
}

/// Does the same as [`compare`] for some questions only.
pub fn compare_answers(
    questions: &[Question],
    original: &Recording,
    converted: &Path,
    perf: &'static Perf,
    allowed: &[Allowed],
) -> Result<Uses, String> {
    let old = texts(original, perf);
    let new = Texts::new(converted, perf);
    let mut uses = Uses::new();
    let mut faults = Vec::new();
    for &question in questions {
        let (old, new) = (old.answer(question)?, new.answer(question)?);
        if old.success() && !new.success() {
            faults.push(format!("{question:?}: perf fails\n{}", new.stderr));
            continue;
        }
        match golden::compare(original, question, &old.stdout, &new.stdout, allowed) {
            Ok(used) => uses.extend(used),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() {
        Ok(uses)
    } else {
        Err(format!("{perf}: {}", faults.join("\n")))
    }
}

/// Does the same as [`compare`] for several perfs. Adds the accepted differences to `tally`, and
/// returns what all perfs find.
pub fn compare_by(
    perfs: impl IntoIterator<Item = &'static Perf>,
    original: &Recording,
    converted: &Path,
    allowed: &[Allowed],
    tally: &Tally,
) -> Result<(), String> {
    all_of(perfs.into_iter().map(|perf| {
        let uses = compare(original, converted, perf, allowed)?;
        tally.add(&uses);
        Ok(())
    }))
}

/// Returns all errors of `results` as one.
pub fn all_of(results: impl IntoIterator<Item = Result<(), String>>) -> Result<(), String> {
    let faults: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults.join("\n"))
    }
}

/// Compares perf's output in `texts` with the files beside the original `recording`, except for
/// `allowed`.
pub fn compare_with_golden(
    recording: &Recording,
    texts: &Texts,
    allowed: &[Allowed],
) -> Result<Uses, String> {
    let goldens = [
        (Question::Script, recording.script_text()),
        (Question::Header, recording.header_text()),
    ];
    let mut uses = Uses::new();
    for (question, golden) in goldens {
        let golden = golden.ok_or_else(|| format!("{question:?}: no text beside it"))?;
        let new = texts.answer(question)?;
        let used = golden::compare(
            recording,
            question,
            &perf::text(&golden),
            &new.stdout,
            allowed,
        )
        .map_err(|fault| format!("{}: {fault}", texts.perf))?;
        uses.extend(used);
    }
    Ok(uses)
}

/// Compares the events in the output in `texts`, by a perf of another release than the recorder,
/// with the events in the files beside the original `recording`.
pub fn compare_events(recording: &Recording, texts: &Texts) -> Result<(), String> {
    let golden = perf::text(&recording.script_text().ok_or("no text beside it")?);
    if events(&golden).is_empty() || recording.crashes_perf_6_1() {
        return Ok(());
    }
    if !texts.is_readable()? {
        return Err(format!(
            "{} does not read it: {}",
            texts.perf,
            texts.answer(Question::Script)?.stderr
        ));
    }
    let (old, new) = (
        events(&golden),
        events(&texts.answer(Question::Script)?.stdout),
    );
    if old == new
        || OTHER_TEXT
            .iter()
            .any(|(name, _)| recording.name.contains(name))
    {
        return Ok(());
    }
    let first = old.iter().zip(&new).find(|(old, new)| old != new);
    Err(format!(
        "{} events before, {} after; the first to differ: {first:?}",
        old.len(),
        new.len()
    ))
}

/// Returns each line from the time on, in order. The names of threads before it, callchains and the
/// width of columns depend on the release of perf.
fn events(text: &str) -> Vec<String> {
    let is_time = |word: &&str| {
        word.ends_with(':') && word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit())
    };
    let event = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(is_time)?;
        Some(words.get(at..)?.join(" "))
    };
    let mut events: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with('\t'))
        .filter_map(event)
        .collect();
    events.sort();
    events
}

/// Returns whether the line is a callchain entry that consists only of an address.
pub fn is_frame(line: &str) -> bool {
    let address = line.trim_start();
    line.starts_with('\t') && !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns `attr.size` of the first attribute, where 0 means 64 as in the file; `None` if there is
/// no attribute.
fn attr_size(path: &Path, form: Form) -> io::Result<Option<u32>> {
    /// The record that contains an attribute in a pipe.
    const HEADER_ATTR: u32 = 64;
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    let u32_at = |at: usize| {
        let word = *bytes.get(at..)?.first_chunk()?;
        Some(match form.endian {
            Endian::Little => u32::from_le_bytes(word),
            Endian::Big => u32::from_be_bytes(word),
        })
    };
    let u16_at = |at: usize| {
        let word = *bytes.get(at..)?.first_chunk()?;
        Some(usize::from(match form.endian {
            Endian::Little => u16::from_le_bytes(word),
            Endian::Big => u16::from_be_bytes(word),
        }))
    };
    match form.container {
        Container::File | Container::Directory => {
            // The low half of the u64 attr_size, which also includes the 16 bytes of the IDs
            // section.
            let low = match form.endian {
                Endian::Little => 16,
                Endian::Big => 20,
            };
            Ok(u32_at(low).map(|size| size.saturating_sub(16)))
        }
        Container::Pipe => {
            let mut at = 16;
            while let (Some(kind), Some(size)) = (u32_at(at), u16_at(at + 6)) {
                if kind == HEADER_ATTR {
                    return Ok(u32_at(at + 12));
                }
                if size < 8 {
                    break;
                }
                at += size;
            }
            Ok(None)
        }
    }
}
