//! The results for the inputs of a family.

use std::fmt;

/// Sums and extremes, with the input of each extreme.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Number of inputs, each of which was copied, and of those that were passed to commands.
    pub inputs: u64,
    pub chosen: u64,
    /// Number of commands that were run on them, and of those that ended with an error.
    pub runs: u64,
    pub refused: u64,
    /// Time of the longest run in nanoseconds, and its input.
    pub time: u64,
    pub slowest: String,
    /// Memory of the largest run in bytes, and its input.
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

    /// Returns the figures as one line, for the parent process.
    pub fn to_line(&self) -> String {
        let Figures {
            inputs,
            chosen,
            runs,
            refused,
            time,
            slowest,
            memory,
            largest,
        } = self;
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
        Some(Figures {
            inputs,
            chosen,
            runs,
            refused,
            time,
            slowest,
            memory,
            largest,
        })
    }

    pub const HEAD: &str = "  inputs    chosen      runs   refused    slowest   most memory";
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures {
            inputs,
            chosen,
            runs,
            refused,
            time,
            memory,
            ..
        } = self;
        let (ms, kib) = (time / 1_000_000, memory >> 10);
        write!(
            f,
            "{inputs:8}  {chosen:8}  {runs:8}  {refused:8}  {ms:6} ms  {kib:8} KiB"
        )
    }
}
