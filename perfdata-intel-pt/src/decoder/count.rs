//! Instructions, and periods of them.

use super::clock::TraceClock;
use crate::config::{Config, Period};

/// Counts instructions.
#[derive(Debug, Clone)]
pub(super) struct Counter {
    period: Period,
    /// All instructions.
    pub(super) all: u64,
    /// Instructions in the current period.
    in_period: u64,
    /// The ticks of a period, a power of 2.
    ticks: u64,
    /// The start of the current period in ticks.
    period_start: u64,
    /// Whether `period_start` was set since tracing began.
    is_continuous: bool,
    /// Whether there was an instruction since the last MTC packet.
    pub(super) has_instruction: bool,
    /// Time, instructions since that, and cycles of the last event.
    pub(super) sampled_time: u64,
    sampled_instructions: u64,
    pub(super) sampled_cycles: u64,
    pub(super) settled_cycles: u64,
}

impl Counter {
    pub(super) fn new(config: &Config) -> Self {
        let ticks = match config.period {
            Period::Ticks(ticks) => ticks.checked_ilog2().map_or(1, |bits| 1 << bits),
            _ => 1,
        };
        Counter {
            period: config.period,
            all: 0,
            in_period: 0,
            ticks,
            period_start: 0,
            is_continuous: false,
            has_instruction: false,
            sampled_time: 0,
            sampled_instructions: 0,
            sampled_cycles: 0,
            settled_cycles: 0,
        }
    }

    /// Returns whether instructions are reported at MTC packets.
    pub(super) fn is_by_mtc(&self) -> bool {
        self.period == Period::Mtc
    }

    /// The next period begins anew: tracing ends.
    pub(super) fn interrupt(&mut self) {
        self.is_continuous = false;
    }

    /// Counts instructions.
    #[inline]
    pub(super) fn add(&mut self, count: u64, clock: &mut TraceClock) {
        self.all = self.all.wrapping_add(count);
        clock.instructions = clock.instructions.wrapping_add(count);
        self.sampled_instructions = self.sampled_instructions.wrapping_add(count);
        self.in_period = self.in_period.wrapping_add(count);
    }

    /// Returns the number of instructions up to the end of the period; 0 if it does not end.
    #[inline]
    pub(super) fn left(&mut self, clock: &TraceClock) -> u64 {
        match self.period {
            Period::Instructions(period) => period.wrapping_sub(self.in_period),
            Period::Ticks(_) => self.ticks_left(clock),
            Period::None | Period::Mtc => 0,
        }
    }

    /// Returns whether [`left`](Self::left) can be called twice. After tracing began, the first call
    /// in the next period sets where that starts.
    #[inline]
    pub(super) fn is_steady(&self, clock: &TraceClock) -> bool {
        self.is_continuous
            || !matches!(self.period, Period::Ticks(_))
            || self.first_start(clock) <= self.period_start
    }

    /// Returns the start of the period of the next instruction.
    #[inline]
    fn first_start(&self, clock: &TraceClock) -> u64 {
        let now = clock.time.wrapping_add(clock.instructions);
        now.wrapping_add(1) & !self.ticks.wrapping_sub(1)
    }

    /// An instruction is regarded as one tick.
    fn ticks_left(&mut self, clock: &TraceClock) -> u64 {
        let mask = !self.ticks.wrapping_sub(1);
        let mut now = clock.time.wrapping_add(clock.instructions);
        if self.is_continuous {
            if now & mask > self.period_start {
                return 1;
            }
        } else {
            now = now.wrapping_add(1);
            let start = self.first_start(clock);
            if start > self.period_start {
                self.period_start = start;
                self.is_continuous = true;
            }
        }
        match now & mask < self.period_start {
            true => self.ticks,
            false => self.ticks.wrapping_sub(now.wrapping_sub(now & mask)),
        }
    }

    /// A period ends.
    pub(super) fn end_period(&mut self, clock: &TraceClock) {
        match self.period {
            Period::Instructions(_) => self.in_period = 0,
            Period::Ticks(_) => {
                let now = clock.time.wrapping_add(clock.instructions);
                let start = now & !self.ticks.wrapping_sub(1);
                self.period_start = match start > self.period_start {
                    true => start,
                    false => self.period_start.wrapping_add(self.ticks),
                };
            }
            Period::None | Period::Mtc => {}
        }
    }

    /// The next event has the time of now.
    #[inline]
    pub(super) fn settle(&mut self, clock: &TraceClock) {
        self.sampled_time = clock.time;
        self.sampled_instructions = clock.instructions;
        self.settled_cycles = clock.all_cycles;
    }

    /// Returns the time of the last event with the instructions since the last packet with a time:
    /// two ticks for each, at the core bus ratio.
    #[inline]
    pub(super) fn estimate(&self, ratio: u32, max_non_turbo_ratio: u32) -> u64 {
        let mut ticks = self.sampled_instructions << 1;
        if ratio != 0 && max_non_turbo_ratio != 0 {
            ticks = ticks
                .wrapping_mul(max_non_turbo_ratio.into())
                .checked_div(ratio.into())
                .unwrap_or(0);
        }
        self.sampled_time.wrapping_add(ticks)
    }
}
