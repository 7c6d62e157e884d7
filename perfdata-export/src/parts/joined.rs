//! What all threads make, in the order of the samples.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, TryRecvError};

use super::Made;
use crate::error::Result;
use crate::resolve::Sink;

/// Passes what is made of the blocks to the sink, in their order.
pub(super) struct Joined<'a> {
    pub sink: &'a mut dyn Sink,
    pub results: Receiver<(u64, Result<Made>)>,
    pub early: BTreeMap<u64, Result<Made>>,
    pub next: u64,
}

impl Joined<'_> {
    /// Passes on what is known of the next blocks.
    pub fn take(&mut self) -> Result<()> {
        loop {
            match self.results.try_recv() {
                Ok((number, made)) => self.add(number, made)?,
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Passes on all that the threads still make.
    pub fn finish(&mut self) -> Result<()> {
        while let Ok((number, made)) = self.results.recv() {
            self.add(number, made)?;
        }
        Ok(())
    }

    fn add(&mut self, number: u64, made: Result<Made>) -> Result<()> {
        if number < self.next {
            // Another thread than that whose block it was.
            return made.map(drop);
        }
        if made.is_err() || !self.early.contains_key(&number) {
            self.early.insert(number, made);
        }
        while let Some(made) = self.early.remove(&self.next) {
            self.next = self.next.saturating_add(1);
            self.sink.join(made?)?;
        }
        Ok(())
    }
}
