//! Runs a share of the inputs in this process.

use std::{
    fs, panic,
    path::Path,
    sync::{Mutex, PoisonError},
};

use crate::{
    commands::{self, End, Room, Run},
    families::FAMILIES,
    figures::Figures,
    is_thorough, memory,
};

/// Bytes that a command may allocate beside what grows with the largest record or section, which is part of the input.
const MEMORY: usize = 64 << 20;

/// Commands that see each input where there are very many inputs: every n-th, another one each time.
const IN_TURN: usize = 4;

static PANIC: Mutex<String> = Mutex::new(String::new());

/// What the last panic said, and where.
pub fn last_panic() -> String {
    PANIC.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Runs the inputs that are the share K of `K/N`, says what came of it on standard output, and in `progress` where it
/// is.
pub fn run(share: &str, progress: &Path, names: &[String]) {
    let (share, shares) = share.split_once('/').expect("K/N");
    let (share, shares): (usize, usize) = (share.parse().expect("a number"), shares.parse().expect("a number"));
    panic::set_hook(Box::new(|info| {
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = info.to_string().replace('\n', " ");
    }));
    let room = Room::new().expect("a temporary folder");
    let commands = commands::all();
    for family in FAMILIES.iter().filter(|family| is_asked_for(family.name, names)) {
        let seeds = (family.seeds)();
        let made: Vec<_> = seeds.iter().map(|seed| (family.inputs)(seed)).collect();
        let total: usize = made.iter().map(|inputs| inputs.len()).sum();
        let is_all = is_thorough() || total <= family.sample;
        let step = if is_all { 1 } else { total.div_ceil(family.sample) };
        let in_turn = if is_thorough() && total > 10_000 { IN_TURN } else { 1 };
        let mut figures = Figures::default();
        let mut first = 0;
        for (seed, inputs) in seeds.iter().zip(&made) {
            let chosen = (0..inputs.len()).filter(|at| (first + at).is_multiple_of(step));
            let mut has_original = false;
            for number in chosen.filter(|at| ((first + at) / step) % shares == share) {
                if !has_original {
                    fs::write(room.original(), &seed.bytes).expect("a temporary file");
                    has_original = true;
                }
                let (what, bytes) = inputs.make(seed, number);
                let what = format!("{}, {what}", seed.name);
                fs::write(room.input(), &bytes).expect("a temporary file");
                figures.inputs += 1;
                let commands = commands.iter().skip(number % in_turn).step_by(in_turn);
                for words in commands {
                    let what = format!("{what}: {}", words.join(" "));
                    fs::write(progress, &what).expect("a temporary file");
                    enter(&mut figures, what, room.run(words), bytes.len());
                }
            }
            first += inputs.len();
        }
        println!("figures\t{}\t{}", family.name, figures.to_line());
    }
    println!("process\t{}", memory::peak_of_process());
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
    let more = Figures { inputs: 0, runs: 1, refused: 0, time, slowest: what.clone(), memory, largest: what };
    figures.add(more);
}
