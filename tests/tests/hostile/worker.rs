//! Runs a share of the inputs in this process.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    panic,
    path::Path,
    sync::{Mutex, PoisonError},
};

use crate::{
    commands::{self, End, Room, Run},
    families::FAMILIES,
    figures::Figures,
    is_thorough, memory,
};

/// Maximum size of a command's allocations in bytes, in addition to memory that grows with the
/// largest record or section, which is part of the input.
const MEMORY: usize = 64 << 20;

/// If a family has more inputs, each is passed to one command in turn instead of all of them.
const MANY: usize = 10_000;

static PANIC: Mutex<String> = Mutex::new(String::new());

/// Returns the message and the position of the last panic.
pub fn last_panic() -> String {
    PANIC.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Runs the inputs in the share K of `K/N`. Writes the results to standard output, and the current
/// input to `progress`.
pub fn run(share: &str, progress: &Path, names: &[String]) {
    let (share, shares) = share.split_once('/').expect("K/N");
    let (share, shares): (usize, usize) = (
        share.parse().expect("a number"),
        shares.parse().expect("a number"),
    );
    panic::set_hook(Box::new(|info| {
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = info.to_string().replace('\n', " ");
    }));
    let progress = Progress(File::create(progress).expect("a temporary file"));
    let room = Room::new().expect("a temporary folder");
    let commands = commands::all();
    for family in FAMILIES
        .iter()
        .filter(|family| is_asked_for(family.name, names))
    {
        let seeds = (family.seeds)();
        let made: Vec<_> = seeds.iter().map(|seed| (family.inputs)(seed)).collect();
        let total: usize = made.iter().map(|inputs| inputs.len()).sum();
        let is_all = is_thorough() || total <= family.sample;
        let step = if is_all {
            1
        } else {
            total.div_ceil(family.sample)
        };
        let in_turn = if is_thorough() && total > MANY {
            commands.len()
        } else {
            1
        };
        let mut figures = Figures::default();
        let mut first = 0;
        for (seed, inputs) in seeds.iter().zip(&made) {
            let mut has_original = false;
            for number in (0..inputs.len()).filter(|at| (first + at) % shares == share) {
                let (what, bytes) = inputs.make(seed, number);
                let what = format!("{}, {what}", seed.name);
                progress.is_at(&what);
                figures.inputs += 1;
                enter(
                    &mut figures,
                    format!("{what}: copied"),
                    Run::copy(&bytes),
                    bytes.len(),
                );
                // Every share has the same number of selected inputs, for any step.
                if !((first + number) / shares).is_multiple_of(step) {
                    continue;
                }
                if !has_original {
                    fs::write(room.original(), &seed.bytes).expect("a temporary file");
                    has_original = true;
                }
                fs::write(room.input(), &bytes).expect("a temporary file");
                figures.chosen += 1;
                let commands = commands.iter().skip(number % in_turn).step_by(in_turn);
                for words in commands {
                    let what = format!("{what}: {}", words.join(" "));
                    progress.is_at(&what);
                    figures.runs += 1;
                    enter(&mut figures, what, room.run(words), bytes.len());
                }
            }
            first += inputs.len();
        }
        println!("figures\t{}\t{}", family.name, figures.to_line());
    }
    println!("process\t{}", memory::peak_of_process());
}

/// Stores the current input of the process, for the case that it ends without a message.
struct Progress(File);

impl Progress {
    fn is_at(&self, what: &str) {
        // All entries have the same length, so each overwrites the previous one.
        self.0
            .write_all_at(format!("{what:500.500}").as_bytes(), 0)
            .expect("a temporary file");
    }
}

pub fn is_asked_for(family: &str, names: &[String]) -> bool {
    names.is_empty() || names.iter().any(|name| family.contains(name.as_str()))
}

fn enter(figures: &mut Figures, what: String, run: Run, len: usize) {
    let Run { end, time, memory } = run;
    match end {
        End::Done => {}
        End::Refused => figures.refused += 1,
        End::Fault(fault) => println!("fault\t{what}: {fault}"),
    }
    if memory > MEMORY + 8 * len {
        println!("fault\t{what}: {} MiB of memory", memory >> 20);
    }
    let memory = memory as u64;
    let more = Figures {
        time,
        slowest: what.clone(),
        memory,
        largest: what,
        ..Figures::default()
    };
    figures.add(more);
}
