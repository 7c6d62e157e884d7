//! Sorted runs of entries: what does not fit into memory is sorted in parts, which are merged.

use std::fs::File;
use std::io;

use super::file::{Entry, Reader, Writer};
use super::heads::Heads;

/// Number of runs that are merged to one, so that the number of open files stays small.
const MERGED: usize = 64;

/// Number of runs from which on those of others are merged: their levels follow no order.
const MOST_APPENDED: usize = 2 * MERGED;

/// Sorted runs, each in a temporary file. Entries with equal keys keep the order of their runs.
#[derive(Debug)]
pub struct Runs<E: Entry> {
    runs: Vec<Run<E>>,
    heads: Heads<E::Key>,
    /// The entry that was removed last.
    current: E,
}

/// A run whose first entry was read.
#[derive(Debug)]
struct Run<E> {
    reader: Reader<File, E>,
    is_finished: bool,
    /// How often its entries were merged.
    level: u32,
}

impl<E: Entry> Default for Runs<E> {
    fn default() -> Self {
        Runs::of(Vec::new())
    }
}

impl<E: Entry> Runs<E> {
    fn of(runs: Vec<Run<E>>) -> Self {
        Runs {
            heads: heads(&runs),
            runs,
            current: E::default(),
        }
    }

    /// Adds a run. If there are too many, merges some to a new file that `create` returns.
    ///
    /// # Errors
    /// A file cannot be created, written or read.
    pub fn add(&mut self, run: Writer, create: impl Fn() -> io::Result<File>) -> io::Result<()> {
        self.runs.retain(|run| !run.is_finished);
        self.runs.push(Run::new(run, 0)?);
        while let Some(level) = self.runs.last().map(|run| run.level) {
            let equal = self.runs.iter().rev().take_while(|run| run.level == level);
            if equal.count() < MERGED {
                break;
            }
            self.merge_last(&create)?;
        }
        self.heads = heads(&self.runs);
        Ok(())
    }

    /// Adds the runs of others after the own ones. If there are too many, merges some to new files
    /// that `create` returns.
    ///
    /// # Errors
    /// A file cannot be created, written or read.
    pub fn append(
        &mut self,
        others: Self,
        create: impl Fn() -> io::Result<File>,
    ) -> io::Result<()> {
        self.runs.retain(|run| !run.is_finished);
        self.runs.extend(others.runs);
        while self.runs.len() >= MOST_APPENDED {
            self.merge_last(&create)?;
        }
        self.heads = heads(&self.runs);
        Ok(())
    }

    /// Merges the last runs to a new file.
    fn merge_last(&mut self, create: &impl Fn() -> io::Result<File>) -> io::Result<()> {
        let last = self.runs.len().saturating_sub(MERGED);
        let merged = self.runs.split_off(last);
        let level = merged.iter().map(|run| run.level).max();
        let mut merged = Runs::of(merged);
        let mut new = Writer::new(create()?);
        while let Some(entry) = merged.pop()? {
            entry.write(&mut new)?;
        }
        let level = level.unwrap_or_default().saturating_add(1);
        self.runs.push(Run::new(new, level)?);
        Ok(())
    }

    /// Returns whether there is no run.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the first key.
    #[inline]
    pub fn first(&self) -> Option<&E::Key> {
        self.heads.first().map(|(key, _)| key)
    }

    /// Removes and returns the first entry, joined with those that are the same.
    ///
    /// # Errors
    /// A file cannot be read.
    #[inline]
    pub fn pop(&mut self) -> io::Result<Option<&E>> {
        let Some(run) = self.first_run().and_then(|at| self.runs.get_mut(at)) else {
            return Ok(None);
        };
        std::mem::swap(&mut self.current, &mut run.reader.entry);
        self.advance()?;
        while let Some(run) = self.first_run().and_then(|at| self.runs.get(at))
            && self.current.join(&run.reader.entry)
        {
            self.advance()?;
        }
        Ok(Some(&self.current))
    }

    /// Returns the entry that was removed last.
    pub fn current(&self) -> &E {
        &self.current
    }

    /// Returns the run with the first entry.
    #[inline]
    fn first_run(&self) -> Option<usize> {
        self.heads.first().map(|(_, at)| at)
    }

    /// Reads the next entry of this run.
    fn advance(&mut self) -> io::Result<()> {
        if let Some(run) = self.first_run().and_then(|at| self.runs.get_mut(at)) {
            let next = run.reader.next_entry()?.map(|entry| entry.key());
            run.is_finished = next.is_none();
            self.heads.replace_first(next);
        }
        Ok(())
    }
}

impl<E: Entry> Run<E> {
    fn new(run: Writer, level: u32) -> io::Result<Self> {
        let mut reader = run.finish()?;
        let is_finished = reader.next_entry()?.is_none();
        Ok(Run {
            reader,
            is_finished,
            level,
        })
    }
}

/// Returns the keys of the first entries of runs.
fn heads<E: Entry>(runs: &[Run<E>]) -> Heads<E::Key> {
    let runs = runs.iter().enumerate();
    runs.filter(|(_, run)| !run.is_finished)
        .map(|(at, run)| (run.reader.entry.key(), at))
        .collect()
}
