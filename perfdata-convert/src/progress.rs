//! The bar that shows how far a long command is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use crate::io::Watch;

/// Work that takes less time is not worth a bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the bar moves while no input comes.
const TICK: Duration = Duration::from_millis(250);

const WITH_TOTAL: &str = "{wide_bar} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left";
const WITHOUT_TOTAL: &str = "{spinner} {bytes}  {bytes_per_sec}  {elapsed}";

/// Shows on standard error, if that is a terminal, how far an input has been read. It disappears with the last reader
/// of the input.
pub struct Progress {
    bar: ProgressBar,
    start: Instant,
    shown: AtomicBool,
}

impl Progress {
    /// A bar that shows itself when the work takes long.
    pub fn new() -> Arc<Self> {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let bar = bar.with_finish(ProgressFinish::AndClear);
        Arc::new(Progress { bar, start: Instant::now(), shown: AtomicBool::new(false) })
    }
}

impl Watch for Progress {
    fn begin(&self, total: Option<u64>) {
        match total {
            Some(total) => self.bar.set_length(total),
            None => self.bar.unset_length(),
        }
        // The templates are constants, which a test draws.
        if let Ok(style) = ProgressStyle::with_template(if total.is_some() { WITH_TOTAL } else { WITHOUT_TOTAL }) {
            self.bar.set_style(style);
        }
        self.bar.set_position(0);
        self.bar.reset_eta();
    }

    fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
        if self.start.elapsed() >= PATIENCE && !self.shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            if !self.bar.is_hidden() {
                self.bar.tick();
                self.bar.enable_steady_tick(TICK);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_right() {
        for template in [WITH_TOTAL, WITHOUT_TOTAL] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
