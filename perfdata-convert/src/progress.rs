//! The bar that shows how far a long command is.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::io::Watch;

/// Work that takes less time is not worth a bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the bar moves while no input comes.
const TICK: Duration = Duration::from_millis(250);

const WITH_TOTAL: &str = "{spinner} {wide_bar} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left";
const WITHOUT_TOTAL: &str = "{spinner} {bytes}  {bytes_per_sec}  {elapsed}";

/// Shows on standard error, if that is a terminal, how far an input has been read. It disappears with the last reader
/// of the input.
pub struct Progress {
    bar: ProgressBar,
    /// Whether the work is done, so that the bar must not show itself any more.
    done: Arc<Mutex<bool>>,
}

impl Progress {
    /// A bar that shows itself when the work takes long, whether input comes or not.
    pub fn new() -> Arc<Self> {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let done = Arc::new(Mutex::new(false));
        let (late_bar, late_done) = (bar.clone(), Arc::clone(&done));
        let show_late = move || {
            thread::sleep(PATIENCE);
            let done = late_done.lock().unwrap_or_else(PoisonError::into_inner);
            if !*done {
                show(&late_bar);
            }
        };
        // Without a thread there is no bar, which is no harm.
        drop(thread::Builder::new().spawn(show_late));
        Arc::new(Progress { bar, done })
    }
}

/// Begins to draw the bar if there is a terminal.
fn show(bar: &ProgressBar) {
    bar.set_draw_target(ProgressDrawTarget::stderr());
    if !bar.is_hidden() {
        bar.tick();
        bar.enable_steady_tick(TICK);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bar.finish_and_clear();
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
