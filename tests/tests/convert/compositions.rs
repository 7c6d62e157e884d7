//! The algebra of conversions: random series of them in one pass and step by step, in both byte
//! orders, and each one twice.

use std::path::Path;

use perfdata_convert::inspect::verify::Report;
use perfdata_convert::io::Input;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::compat::Compat;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::edit::{Change, Edit};
use perfdata_convert::stages::expand_off_cpu::ExpandOffCpu;
use perfdata_convert::stages::merge_deferred::MergeDeferred;
use perfdata_convert::stages::sched_stat::SchedStat;
use perfdata_convert::stages::slice::{Select, Slice};
use perfdata_convert::stages::sort::Sort;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_convert::stages::thin::{Thin, part};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::RecordType;
use perfdata_tests::convert::{Converted, Whole, convert, differences};
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
    Operation::new(MERGE_DEFERRED, || Box::new(MergeDeferred::new())),
    Operation::new("expand-off-cpu", || Box::new(ExpandOffCpu::new())),
    Operation::new("sched-stat", || Box::new(SchedStat::new())),
    Operation::new("compat 6.12", || {
        Box::new(Compat::new("6.12".parse().expect("a release")))
    }),
    Operation::new("drop HOSTNAME", || edit("HOSTNAME", Change::Drop)),
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

/// Returns what contradicts a law about two results. Only `exact` ones have equal bytes: the data in
/// compressed records, and the head of a pipe, can differ.
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
    // Compression comes last, and deferred callchains are those of the input, where no stage has cut
    // them.
    let last = operations.pop();
    operations.retain(|operation| operation.name != COMPRESS);
    operations.extend(last);
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
