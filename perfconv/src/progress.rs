//! The progress bar of long commands.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use perfdata_convert::io::Watch;

/// The bar appears only after this time.
const PATIENCE: Duration = Duration::from_secs(1);
/// The interval at which the bar moves while no input arrives.
const TICK: Duration = Duration::from_millis(250);

const WITH_TOTAL: &str =
    "{spinner} {wide_bar} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left{msg}";
const WITHOUT_TOTAL: &str = "{spinner} {bytes}  {bytes_per_sec}  {elapsed}{msg}";

/// The visible bar, if any. Other messages on the terminal, and the end of the process, must hide
/// it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// What else is done, for the end of the bar.
static OTHER_WORK: Mutex<String> = Mutex::new(String::new());

/// Shows other work than reading at the end of the bar, if there is one. An empty text removes it.
#[cfg(feature = "debuginfod")]
pub fn show_other_work(work: String) {
    *OTHER_WORK.lock().unwrap_or_else(PoisonError::into_inner) = work;
}

/// Calls `write`, which writes to standard error, while the bar is hidden.
pub fn without_bar<T>(write: impl FnOnce() -> T) -> T {
    match &*SHOWN.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Removes the bar permanently.
pub fn clear() {
    if let Some(bar) = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).take() {
        bar.finish_and_clear();
    }
}

/// Shows how much of an input was read on standard error, if that is a terminal. The bar disappears
/// with the last reader of the input.
pub struct Progress {
    bar: ProgressBar,
    /// The bar moves until this is dropped.
    alive: Option<SyncSender<()>>,
}

impl Progress {
    /// Returns a bar that appears if the work takes long, even while no input arrives.
    pub fn new() -> Arc<Self> {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let (alive, ended) = sync_channel(0);
        let shown = bar.clone();
        let move_bar = move || {
            let mut wait = PATIENCE;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                tick(&shown);
                wait = TICK;
            }
        };
        // If no thread can be started, there is no bar.
        drop(thread::Builder::new().spawn(move_bar));
        Arc::new(Progress {
            bar,
            alive: Some(alive),
        })
    }
}

/// Moves the bar. The first call shows it if there is a terminal.
fn tick(bar: &ProgressBar) {
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if !bar.is_finished() && shown.is_none() {
        bar.set_draw_target(ProgressDrawTarget::stderr());
        *shown = Some(bar.clone()).filter(|bar| !bar.is_hidden());
    }
    if !bar.is_hidden() {
        let work = OTHER_WORK.lock().unwrap_or_else(PoisonError::into_inner);
        bar.set_message(work.clone());
        bar.tick();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.alive = None;
        // This bar must not appear again, and the bar of another input must remain.
        let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let is_shown = !self.bar.is_hidden();
        self.bar.finish_and_clear();
        if is_shown {
            *shown = None;
        }
    }
}

impl Watch for Progress {
    fn begin(&self, total: Option<u64>) {
        match total {
            Some(total) => self.bar.set_length(total),
            None => self.bar.unset_length(),
        }
        // The templates are constants. A test checks them.
        if let Ok(style) = ProgressStyle::with_template(if total.is_some() {
            WITH_TOTAL
        } else {
            WITHOUT_TOTAL
        }) {
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
