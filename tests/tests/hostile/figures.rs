//! What the inputs of a family came to.

use std::fmt;

/// Sums and extremes, with the input that each extreme belongs to.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Inputs, each of which was copied, and of those the ones that went through commands.
    pub inputs: u64,
    pub chosen: u64,
    /// Commands run on them, and of those the ones that ended with an error.
    pub runs: u64,
    pub refused: u64,
    /// Nanoseconds of the longest run.
    pub time: u64,
    pub slowest: String,
    /// Bytes of the one that took most memory.
    pub memory: u64,
    pub largest: String,
}

impl Figures {
    pub fn add(&mut self, other: Figures) {
        self.inputs += other.inputs;
        self.chosen += other.chosen;
        self.runs += other.runs;
        self.refused += other.refused;
        if other.time >= self.time {
            (self.time, self.slowest) = (other.time, other.slowest);
        }
        if other.memory >= self.memory {
            (self.memory, self.largest) = (other.memory, other.largest);
        }
    }

    /// As one line, for the process that waits for it.
    pub fn to_line(&self) -> String {
        let Figures { inputs, chosen, runs, refused, time, slowest, memory, largest } = self;
        format!("{inputs}\t{chosen}\t{runs}\t{refused}\t{time}\t{slowest}\t{memory}\t{largest}")
    }

    pub fn of_line(line: &str) -> Option<Self> {
        let mut words = line.split('\t');
        let mut number = || words.next()?.parse().ok();
        let (inputs, chosen, runs, refused) = (number()?, number()?, number()?, number()?);
        let time = number()?;
        let slowest = words.next()?.to_owned();
        let memory = words.next()?.parse().ok()?;
        let largest = words.next()?.to_owned();
        Some(Figures { inputs, chosen, runs, refused, time, slowest, memory, largest })
    }

    pub const HEAD: &str = "  inputs    chosen      runs   refused    slowest   most memory";
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { inputs, chosen, runs, refused, time, memory, .. } = self;
        let (ms, kib) = (time / 1_000_000, memory >> 10);
        write!(f, "{inputs:8}  {chosen:8}  {runs:8}  {refused:8}  {ms:6} ms  {kib:8} KiB")
    }
}
