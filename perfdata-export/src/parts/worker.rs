//! A thread's part of an export.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};

use perfdata_core::Recording;
use perfdata_core::read::{Limits, RecordRef};
use perfdata_core::record::RecordType;
use perfdata_session::{Delivery, Sample};

use super::feed::RecordBlock;
use super::{Made, MadeOf, SinkPart};
use crate::error::Result;
use crate::resolve::Pass;

/// What resolves a part of the samples.
pub(super) struct Worker {
    pub number: usize,
    pub delivery: Delivery,
    pub part: Box<dyn SinkPart>,
    pub pass: Pass,
    pub limits: Limits,
    /// What was seen of the current block.
    pub samples: u64,
    pub rounds: u64,
}

impl Worker {
    /// Processes the blocks until there are no more, or one of them has an error.
    pub fn run(&mut self, blocks: &Receiver<Arc<RecordBlock>>, done: &Sender<(u64, Result<Made>)>) {
        while let Ok(block) = blocks.recv() {
            let is_own = !block.is_taken.swap(true, Ordering::Relaxed);
            let result = self.see(&block, is_own);
            let is_over = result.is_err();
            let is_told = is_own || is_over;
            if is_told && done.send((block.number, result)).is_err() {
                return;
            }
            if is_over {
                return;
            }
        }
    }

    /// Processes a block. Returns what was made of it, if it is an own one.
    fn see(&mut self, block: &RecordBlock, is_own: bool) -> Result<Made> {
        (self.samples, self.rounds) = (0, 0);
        self.delivery.set_own(is_own);
        for record in block.records() {
            self.waited(&block.recording, is_own)?;
            self.record(record, is_own)?;
        }
        if block.is_last {
            self.waited(&block.recording, is_own)?;
            if self.delivery.end() {
                self.waited(&block.recording, is_own)?;
            }
        }
        let made = match is_own {
            true => self.part.take(&self.pass.resolver.tables),
            false => None,
        };
        let made = made.unwrap_or_else(|| Made::new(MadeOf::Nothing));
        Ok(Made {
            part: self.number,
            samples: self.samples,
            rounds: self.rounds,
            ..made
        })
    }

    fn record(&mut self, record: RecordRef<'_>, is_own: bool) -> Result<()> {
        let part = self.part.as_mut();
        if let Some(sample) = self.delivery.deliver(record)? {
            self.samples = self.samples.saturating_add(1);
            return sample_of(part, &mut self.pass, &self.limits, sample, is_own);
        }
        if record.kind == RecordType::SAMPLE {
            return Ok(());
        }
        let is_round = record.kind == RecordType::STAT_ROUND;
        self.rounds = self.rounds.saturating_add(u64::from(is_round));
        match is_own {
            true => part.record(&record),
            false => part.pass_record(&record),
        }
    }

    /// Processes the samples that no longer wait for their user callchains.
    fn waited(&mut self, recording: &Recording, is_own: bool) -> Result<()> {
        while self.delivery.has_waited() {
            if let Some(sample) = self.delivery.waited(recording)? {
                self.samples = self.samples.saturating_add(1);
                let part = self.part.as_mut();
                sample_of(part, &mut self.pass, &self.limits, sample, is_own)?;
            }
        }
        Ok(())
    }
}

/// Passes a sample to a part.
#[inline]
fn sample_of(
    part: &mut dyn SinkPart,
    pass: &mut Pass,
    limits: &Limits,
    sample: Sample<'_>,
    is_own: bool,
) -> Result<()> {
    if !is_own {
        pass.follow(&sample);
        return part.pass(&sample);
    }
    pass.resolve(&sample, part.needs(), limits)?;
    part.sample(&pass.resolved(sample))
}
