//! A buffer of the recording, and what its decoder found.

use perfdata_core::record::Tid;
use perfdata_intel_pt::{BasicBlocks, Buffer, DecodeError, Decoder, TraceEvent, TraceSource};

use super::flow::StackPlace;
use super::setup::Setup;
use crate::itrace::code::TracedCode;
use crate::itrace::tasks::NONE;
use crate::itrace::trace::{TraceReader, Traces};
use perfdata_convert::error::{Error, Result};

/// A buffer.
#[derive(Debug)]
pub(super) struct TraceQueue {
    decoder: Decoder,
    reader: TraceReader,
    pub(super) is_of_cpu: bool,
    pub(super) has_cpu: bool,
    pub(super) cpu: u32,
    pub(super) task: Tid,
    /// Whether the samples of the last event are still to be written.
    pub(super) has_event: bool,
    /// The time of the last event in ticks.
    pub(super) time: u64,
    pub(super) error_ip: u64,
    /// Numbers at the last samples.
    pub(super) ratio_seen: u32,
    pub(super) last_instructions: u64,
    pub(super) last_cycles: u64,
    pub(super) stack: Option<StackPlace>,
}

/// The trace data of a queue.
struct Data<'a> {
    traces: &'a Traces,
    reader: &'a mut TraceReader,
}

impl TraceSource for Data<'_> {
    type Error = Error;

    fn next_buffer(&mut self) -> Result<Option<Buffer>> {
        let Some(part) = self.reader.next(self.traces)? else {
            return Ok(None);
        };
        Ok(Some(Buffer {
            bytes: part.bytes,
            // Only the first part of a buffer is on its own.
            is_consecutive: !part.is_first,
            reference_time: part.reference,
            number: part.number,
        }))
    }
}

impl TraceQueue {
    pub(super) fn new(at: usize, cpu: u32, tid: u32, setup: &Setup) -> Self {
        TraceQueue {
            decoder: Decoder::new(setup.config.clone()),
            reader: TraceReader::new(at),
            is_of_cpu: tid == NONE,
            has_cpu: cpu != NONE,
            cpu,
            task: Tid { pid: NONE, tid },
            has_event: false,
            time: 0,
            error_ip: 0,
            ratio_seen: u32::MAX,
            last_instructions: 0,
            last_cycles: 0,
            stack: None,
        }
    }

    /// Decodes up to the first event with a time. `None`: there is none.
    pub(super) fn begin(
        &mut self,
        traces: &Traces,
        code: &mut TracedCode,
        blocks: &mut BasicBlocks,
    ) -> Result<Option<u64>> {
        // Nothing is known of the code yet, so not a step more than that.
        self.decoder.report_all_from(0);
        loop {
            match self.step(traces, code, blocks)? {
                None => return Ok(None),
                Some(Some(_)) => {}
                Some(None) if self.event().time != 0 => return Ok(Some(self.time)),
                Some(None) => {}
            }
        }
    }

    /// Sets the time up to which the mappings are known.
    pub(super) fn set_until(&mut self, time: u64) {
        self.decoder.report_all_from(time);
    }

    /// Decodes the next event. `None` at the end; an error, if it is one.
    pub(super) fn step(
        &mut self,
        traces: &Traces,
        code: &mut TracedCode,
        blocks: &mut BasicBlocks,
    ) -> Result<Option<Option<DecodeError>>> {
        let mut data = Data {
            traces,
            reader: &mut self.reader,
        };
        let mut code = code.of(self.task.pid);
        let Some(event) = self.decoder.next(&mut data, &mut code, blocks)? else {
            return Ok(None);
        };
        self.time = event.latest_time;
        if let Some(error) = event.error {
            self.error_ip = event.from;
            return Ok(Some(Some(error)));
        }
        self.has_event = true;
        Ok(Some(None))
    }

    /// Returns the last event.
    #[inline]
    pub(super) fn event(&self) -> &TraceEvent {
        self.decoder.event()
    }

    /// Returns the cycles since the last sample of them, if they are known now.
    pub(super) fn cycles(&self, approximates: bool) -> u64 {
        let all = match approximates {
            true => self.event().approximate_cycles,
            false if self.event().has_ipc => self.event().cycles,
            false => return 0,
        };
        all.wrapping_sub(self.last_cycles)
    }
}
