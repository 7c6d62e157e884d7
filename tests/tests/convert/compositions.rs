//! The algebra of conversions: random series of them in one pass and step by step, in both byte
//! orders, with edits of features before and after, and each one twice; and the algebra of merging.

use std::path::Path;

use perfdata_convert::io::Input;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::compat::Compat;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::edit::{Change, Edit};
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_convert::verify::Report;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::RecordingReader;
use perfdata_core::record::RecordType;
use perfdata_edit::merge::Merge;
use perfdata_edit::slice::{Select, Slice};
use perfdata_edit::sort::Sort;
use perfdata_edit::thin::{StackSize, Thin, part};
use perfdata_inject::callchains::Callchains;
use perfdata_inject::expand_off_cpu::ExpandOffCpu;
use perfdata_inject::merge_deferred::MergeDeferred;
use perfdata_inject::sched_stat::SchedStat;
use perfdata_sanitize::{Audience, Key, Policy, Sanitize};
use perfdata_session::Samples;
use perfdata_tests::convert::{Converted, Whole, convert, differences, into_memory};
use perfdata_tests::generate::random::Random;
use perfdata_tests::is_thorough;
use perfdata_tests::recordings::{self, Recording};

/// A conversion.
struct Operation {
    name: &'static str,
    stage: fn() -> Box<dyn Stage>,
    /// Whether applying it twice gives the same as applying it once.
    is_idempotent: bool,
}

impl Operation {
    const fn new(name: &'static str, stage: fn() -> Box<dyn Stage>) -> Self {
        Operation {
            name,
            stage,
            is_idempotent: true,
        }
    }
}

fn edit(name: &str, change: Change) -> Box<dyn Stage> {
    Box::new(Edit::new([(name.to_owned(), change)]).expect("a known feature"))
}

const SWAP: Operation = Operation {
    is_idempotent: false,
    ..Operation::new("swap", || Box::new(Swap::new(Target::Other, Unknown::Keep)))
};

const COMPRESS: &str = "compress";
const MAX_STACK: &str = "max-stack 2";
const MERGE_DEFERRED: &str = "merge-deferred";
const SANITIZE: &str = "sanitize";

/// A feature that no other conversion here reads.
const EDIT: Operation = Operation::new("set CPUID", || {
    edit("CPUID", Change::Set("this one".into()))
});

const SLICE: Operation = Operation::new("cpu 0", || {
    let mut select = Select::default();
    select.cpus = "0".parse().ok();
    select.allow_empty = true;
    Box::new(Slice::new(select))
});

const OPERATIONS: &[Operation] = &[
    SWAP,
    Operation::new("decompress", || Box::new(Decompress::default())),
    Operation::new(COMPRESS, || {
        Box::new(Compress::new(RecordType::COMPRESSED2, 1))
    }),
    Operation::new("sort", || Box::new(Sort::new())),
    Operation::new(MAX_STACK, || Box::new(Thin::new().max_stack(2))),
    Operation {
        // The second time, there is nothing to omit, which is refused.
        is_idempotent: false,
        ..Operation::new("omit period", || {
            Box::new(Thin::new().omit(part("period").expect("a part")))
        })
    },
    Operation::new("stack-size", || {
        Box::new(Thin::new().stack_size(StackSize::Dumped))
    }),
    Operation {
        // The second time, there are no stacks, which is refused.
        is_idempotent: false,
        ..Operation::new("drop-stacks", || Box::new(Callchains::without_stacks()))
    },
    Operation {
        // The second time, the new names get other names.
        is_idempotent: false,
        ..Operation::new(SANITIZE, || {
            let key = Key::of_secret(b"the secret of this test").expect("long enough");
            Box::new(Sanitize::new(Policy::new(Audience::Public), key))
        })
    },
    Operation::new(MERGE_DEFERRED, || Box::new(MergeDeferred::new())),
    Operation::new("expand-off-cpu", || Box::new(ExpandOffCpu::new())),
    Operation::new("sched-stat", || Box::new(SchedStat::new())),
    Operation::new("compat 6.12", || {
        Box::new(Compat::new("6.12".parse().expect("a release")))
    }),
    Operation::new("drop CMDLINE", || edit("CMDLINE", Change::Drop)),
    Operation::new("set CPUDESC", || {
        edit("CPUDESC", Change::Set("none".into()))
    }),
];

/// Returns the recording after all operations in one pass.
fn in_one_pass(
    input: &Path,
    operations: &[&Operation],
    to: Option<ContainerKind>,
) -> Result<Converted, String> {
    let stages = operations.iter().map(|operation| (operation.stage)());
    convert(input, to, stages.collect()).map_err(|error| error.to_string())
}

/// Returns the recording after the operations, one by one.
fn in_steps(
    input: &Path,
    operations: &[&Operation],
    to: Option<ContainerKind>,
) -> Result<Converted, String> {
    let mut made = in_one_pass(input, &[], None)?;
    for operation in operations {
        made = in_one_pass(&made.path(), &[operation], None)?;
    }
    match to {
        Some(_) => in_one_pass(&made.path(), &[], to),
        None => Ok(made),
    }
}

/// Differences that no order of conversions avoids: the head of a pipe precedes the records that
/// determine these values.
fn is_of_pipe_head(difference: &str) -> bool {
    difference.starts_with("feature SAMPLE_TIME: ")
        || difference.starts_with("feature COMPRESSED: ratio ")
}

/// Returns what contradicts a law about two results. Only `exact` ones have equal bytes: the data
/// in compressed records, and the head of a pipe, can differ.
fn contradiction(
    law: &str,
    exact: bool,
    a: &Result<Converted, String>,
    b: &Result<Converted, String>,
) -> Option<String> {
    match (a, b) {
        (Ok(a), Ok(b)) if a.bytes() == b.bytes() => None,
        (Ok(a), Ok(b)) => {
            let mut differences = match differences(&a.path(), &b.path()) {
                Ok(differences) => differences,
                Err(why) => vec![why],
            };
            differences.retain(|difference| !is_of_pipe_head(difference));
            let is_contradiction = exact || !differences.is_empty();
            is_contradiction.then(|| format!("{law}: {differences:.400?}"))
        }
        (Err(_), Err(_)) => None,
        (Ok(_), Err(why)) | (Err(why), Ok(_)) => {
            let only = if a.is_ok() { "second" } else { "first" };
            Some(format!("{law}: only the {only} is refused: {why}"))
        }
    }
}

fn is_compressed(path: &Path) -> bool {
    Whole::read_file(path).is_ok_and(|whole| {
        let mut kinds = whole.records.iter().map(|(_, kind)| kind);
        kinds.any(|kind| kind.is_compressed())
    })
}

/// Returns whether `verify` finds errors: parts of the recording stay as they are, or conversions
/// that change them are refused.
fn is_damaged(path: &Path) -> bool {
    let report = Input::open(path).and_then(Report::of);
    !report.is_ok_and(|report| report.is_clean())
}

/// Returns a series of up to six operations, of which a slice can only be the first.
fn series(random: &mut Random) -> Vec<&'static Operation> {
    let len = 2 + random.below(5);
    let mut operations: Vec<_> = (0..len)
        .map(|_| &OPERATIONS[random.below(OPERATIONS.len() as u64) as usize])
        .collect();
    if random.below(3) == 0 {
        operations[0] = &SLICE;
    }
    // Compression comes last, and deferred callchains are those of the input, where no stage has
    // cut them.
    let last = operations.pop();
    operations.retain(|operation| operation.name != COMPRESS);
    operations.extend(last);
    // With one key, names can be sanitized once: the new ones are not to be told from others.
    let mut is_sanitized = false;
    operations.retain(|operation| {
        operation.name != SANITIZE || !std::mem::replace(&mut is_sanitized, true)
    });
    let mut is_cut = false;
    operations.retain(|operation| {
        is_cut |= operation.name == MAX_STACK;
        !is_cut || operation.name != MERGE_DEFERRED
    });
    operations
}

/// Checks a random series of operations on a recording.
fn check(recording: &Recording, seed: u64) -> Vec<String> {
    let mut random = Random(seed);
    let operations = series(&mut random);
    let to = [None, Some(ContainerKind::File), Some(ContainerKind::Pipe)][random.below(3) as usize];
    let input = &recording.path;
    let steps = in_steps(input, &operations, to);
    let mut found = Vec::new();

    let one = in_one_pass(input, &operations, to);
    let exact = to == Some(ContainerKind::File)
        && one.as_ref().is_ok_and(|made| !is_compressed(&made.path()));
    found.extend(contradiction("one pass, steps", exact, &one, &steps));

    let swap_first: Vec<_> = [&[&SWAP], &operations[..]].concat();
    let swap_last: Vec<_> = [&operations[..], &[&SWAP]].concat();
    let (first, last) = (
        in_steps(input, &swap_first, to),
        in_steps(input, &swap_last, to),
    );
    found.extend(contradiction("swapped first, last", false, &first, &last));

    let swapped_back: Vec<_> = [&swap_last[..], &[&SWAP]].concat();
    let back = in_steps(input, &swapped_back, to);
    if last.is_ok() {
        found.extend(contradiction(
            "as it was, swapped twice",
            false,
            &steps,
            &back,
        ));
    }

    // A feature that is set before sanitizing is replaced by it.
    if operations
        .iter()
        .all(|operation| operation.name != SANITIZE)
    {
        let first: Vec<_> = [&[&EDIT], &operations[..]].concat();
        let last: Vec<_> = [&operations[..], &[&EDIT]].concat();
        let (first, last) = (in_steps(input, &first, to), in_steps(input, &last, to));
        found.extend(contradiction("edited first, last", false, &first, &last));
    }

    if let Some(operation) = operations.last().filter(|last| last.is_idempotent) {
        let twice: Vec<_> = [&operations[..], &[operation]].concat();
        let twice = in_steps(input, &twice, to);
        found.extend(contradiction("once, twice", false, &steps, &twice));
    }
    let names: Vec<_> = operations.iter().map(|operation| operation.name).collect();
    let of = |what: String| format!("{names:?} to {to:?}: {what}");
    found.into_iter().map(of).collect()
}

#[test]
fn conversions_follow_their_algebra() {
    let (step, rounds) = if is_thorough() { (1, 10) } else { (5, 1) };
    let chosen: Vec<_> = recordings::fixtures().into_iter().step_by(step).collect();
    recordings::check_all(&chosen, |recording| {
        if is_damaged(&recording.path) {
            return Ok(());
        }
        let seed = u64::from(crc32fast::hash(recording.name.as_bytes()));
        let found = (0..rounds).flat_map(|round| check(recording, seed + round));
        let found: Vec<_> = found.collect();
        match found.is_empty() {
            true => Ok(()),
            false => Err(found.join("\n")),
        }
    });
}

/// What a sample is: time, process, thread, comm, and addresses.
type Seen = (Option<u64>, u32, u32, Vec<u8>, Vec<u64>);

/// Returns the samples of a recording, sorted.
fn samples(bytes: Vec<u8>) -> Result<Vec<Seen>, String> {
    let reader = RecordingReader::open(std::sync::Arc::new(bytes));
    let reader = reader.map_err(|error| error.to_string())?;
    let mut samples = Samples::new(reader).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    while let Some(sample) = samples.next().map_err(|error| error.to_string())? {
        let (pid, tid) = sample
            .thread()
            .map_or((0, 0), |thread| (thread.pid, thread.tid));
        let addresses = sample.frames().map(|frame| frame.address).collect();
        all.push((sample.time(), pid, tid, sample.comm().to_vec(), addresses));
    }
    all.sort();
    Ok(all)
}

/// Merges recordings in memory.
fn merged(inputs: &[&[u8]]) -> Result<Vec<u8>, String> {
    let input =
        |(number, bytes): (usize, &&[u8])| (number.to_string(), Input::from_source(bytes.to_vec()));
    let inputs = inputs.iter().enumerate().map(input).collect();
    let merged = Merge::default().open(inputs);
    merged
        .and_then(|merged| into_memory(merged.input, Some(ContainerKind::File), Vec::new()))
        .map_err(|error| error.to_string())
}

/// Checks the laws of merging on three slices of a recording. Returns false if it is refused.
fn check_merging(recording: &Recording) -> Result<bool, String> {
    let slice = |words: &str| {
        let mut select = Select::default();
        select.times = words.parse().ok();
        select.allow_empty = true;
        in_one_pass_of(&recording.path, vec![Box::new(Slice::new(select))])
    };
    let parts = ["0%-30%", "30%-70%", "70%-100%"].map(slice);
    let [Ok(a), Ok(b), Ok(c)] = &parts else {
        return Ok(false);
    };
    let Ok(all) = merged(&[a, b, c]) else {
        return Ok(false);
    };
    let expected = samples(all.clone())?;
    let same = |law: &str, bytes: Vec<u8>| match samples(bytes)? == expected {
        true => Ok(()),
        false => Err(format!("{law}: other samples")),
    };
    if merged(&[a])? != *a {
        return Err("a single one stays as it is".into());
    }
    same("in another order", merged(&[c, a, b])?)?;
    same("two of them first", merged(&[&merged(&[a, b])?, c])?)?;
    let swap = |bytes: &[u8]| {
        let stages: Vec<Box<dyn Stage>> = vec![(SWAP.stage)()];
        into_memory(Input::from_source(bytes.to_vec()), None, stages)
            .map_err(|error| error.to_string())
    };
    same("in both byte orders", merged(&[&swap(a)?, b, &swap(c)?])?)?;
    // Everything is as if the result had been swapped.
    let swapped = merged(&[&swap(a)?, &swap(b)?, &swap(c)?])?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a temporary file");
        path
    };
    let found = differences(&put("one", &swapped), &put("other", &swap(&all)?))?;
    match found.is_empty() {
        true => Ok(true),
        false => Err(format!("swapped first, last: {found:.400?}")),
    }
}

fn in_one_pass_of(path: &Path, stages: Vec<Box<dyn Stage>>) -> Result<Vec<u8>, String> {
    let made = convert(path, Some(ContainerKind::File), stages);
    made.map(|made| made.bytes())
        .map_err(|error| error.to_string())
}

#[test]
fn merging_follows_its_algebra() {
    let step = if is_thorough() { 1 } else { 3 };
    let chosen: Vec<_> = recordings::fixtures().into_iter().step_by(step).collect();
    let done = std::sync::atomic::AtomicUsize::new(0);
    recordings::check_all(&chosen, |recording| {
        if !is_damaged(&recording.path) && check_merging(recording)? {
            done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    });
    let done = done.into_inner();
    eprintln!("{done} of {} recordings, in three parts", chosen.len());
    assert!(done > 10);
}
