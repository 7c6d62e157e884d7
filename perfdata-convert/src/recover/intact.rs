//! Undamaged recordings, which need no survey: no check of `perfconv verify` finds anything.

use std::fs::File;
use std::io::Seek;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::unsalvaged;
use crate::error::{Error, Result};
use crate::io::{Input, Watch};
use crate::pipeline::{Conversion, Summary};
use crate::verify::Report;

/// Returns whether `input` is a file in which no check finds anything. Files of a directory are
/// always surveyed: the output is another recording.
///
/// An error of the check is none of the recovery: a survey reports its own.
pub(super) fn is_intact(input: Input) -> bool {
    input.directory().is_none() && Report::finds_nothing(input).unwrap_or(false)
}

/// Copies `input` to `file`, if it is intact. Returns `None` otherwise, and `file` is empty.
///
/// With two threads, it is checked while it is copied. The check of the input is that of the
/// output, which has the same bytes.
///
/// # Errors
/// The operating system reports an error.
pub(super) fn copy(input: &Input, file: &mut File) -> Result<Option<Summary>> {
    let again = || input.again().ok_or_else(unsalvaged);
    let copy = |input, file: &mut File| Conversion::new(Vec::new()).run_into(input, file);
    if input.directory().is_some() {
        return Ok(None);
    }
    if input.limits().threads() <= 1 {
        return match is_intact(again()?) {
            true => copy(again()?, file).map(Some),
            false => Ok(None),
        };
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let until_over = |watch| {
        Arc::new(Until {
            watch,
            is_over: is_over.clone(),
        })
    };
    // The progress is that of the copy.
    let checked = again()?.watched_by(until_over(None));
    let copied = again()?.watched_by(until_over(input.watch()));
    let (is_intact, summary) = thread::scope(|scope| {
        let check = || {
            let is_intact = is_intact(checked);
            if !is_intact {
                is_over.store(true, Ordering::Relaxed);
            }
            is_intact
        };
        let Ok(check) = thread::Builder::new().spawn_scoped(scope, check) else {
            return (false, None);
        };
        let summary = copy(copied, file);
        if summary.is_err() {
            is_over.store(true, Ordering::Relaxed);
        }
        let is_intact = check.join().unwrap_or_else(|panic| resume_unwind(panic));
        (is_intact, Some(summary))
    });
    match summary {
        Some(Ok(summary)) if is_intact => Ok(Some(summary)),
        _ => {
            file.set_len(0)
                .and_then(|()| file.rewind())
                .map_err(Error::io("output"))?;
            Ok(None)
        }
    }
}

/// A watch that cancels reading when the other of two readers has decided.
struct Until {
    watch: Option<Arc<dyn Watch>>,
    is_over: Arc<AtomicBool>,
}

impl Watch for Until {
    fn begin(&self, total: Option<u64>) {
        self.watch.iter().for_each(|watch| watch.begin(total));
    }

    fn advance(&self, bytes: u64) {
        self.watch.iter().for_each(|watch| watch.advance(bytes));
    }

    fn is_cancelled(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.watch.iter().any(|watch| watch.is_cancelled())
    }
}
