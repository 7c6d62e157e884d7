//! How long a run takes.

use std::time::{Duration, Instant};

use perfdata_core::spool::HAS_OS;

/// A clock that was started. Without an operating system it stands still.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Option<Instant>);

impl Stopwatch {
    /// Starts a clock.
    pub fn start() -> Self {
        Stopwatch(HAS_OS.then(Instant::now))
    }

    /// Returns the time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.map_or(Duration::ZERO, |start| start.elapsed())
    }
}
