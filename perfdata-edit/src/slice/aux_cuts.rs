//! The parts of AUX data of Intel PT that a range of time needs.
//!
//! A decoder of Intel PT can start at any PSB packet. Data before the last PSB packet at or before
//! the start of the range are not needed, and neither are data after the first PSB packet behind
//! its end. All other records must be kept up to the end of the range: decoders need the sideband
//! of the whole past.

mod packets;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::attr::SampleType;
use perfdata_core::read::{Chunk, Limits, RecordBatch};
use perfdata_core::record::{
    Auxtrace, AuxtraceInfo, AuxtracePrivate, Body, IntelPt, RawRecord, Record, RecordType,
};
use perfdata_core::{DecodeContext, Recording};

use super::time_ranges::TimeRange;
use packets::{Search, SyncPoint};
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::InputSource;
use perfdata_convert::support::cycles::CycleClock;

/// The part of the payload of an AUXTRACE record that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Number of bytes before it.
    pub(super) skip: u64,
    /// Number of bytes that are kept. If there are none, the record is not needed.
    pub(super) len: u64,
}

impl Cut {
    /// The whole payload, of any size.
    pub(super) const WHOLE: Cut = Cut {
        skip: 0,
        len: u64::MAX,
    };

    /// Returns the kept bytes of a part of the payload, which starts at offset `at` in the payload.
    pub(super) fn of<'a>(&self, at: u64, bytes: &'a [u8]) -> &'a [u8] {
        let place = |offset: u64| {
            let offset = offset.saturating_sub(at).min(bytes.len() as u64);
            usize::try_from(offset).unwrap_or(bytes.len())
        };
        let (from, to) = (place(self.skip), place(self.skip.saturating_add(self.len)));
        bytes.get(from..to).unwrap_or_default()
    }
}

/// Returns the AUXTRACE record for the part of its payload that `cut` keeps.
pub(super) fn apply(record: &Auxtrace, cut: Cut) -> Auxtrace {
    let rest = record.size.saturating_sub(cut.skip);
    Auxtrace {
        size: rest.min(cut.len),
        offset: record.offset.wrapping_add(cut.skip),
        ..record.clone()
    }
}

/// The parts of all AUXTRACE records that ranges of time need.
///
/// Only data of Intel PT that were recorded continuously and with times are cut. Those of other
/// hardware, and snapshots, whose pieces may overlap, are kept whole.
#[derive(Debug, Default)]
pub(super) struct AuxCuts {
    /// In the order of the input; empty if everything is kept.
    pieces: Vec<AuxPayload>,
    queues: Vec<Queue>,
}

/// The payload of an AUXTRACE record.
#[derive(Debug, Clone, Copy)]
struct AuxPayload {
    /// Index of its queue.
    queue: usize,
    /// Offset in the data of its queue.
    start: u64,
    len: u64,
}

/// The data of a buffer, in the order of the input (tools/perf/util/auxtrace.c,
/// `auxtrace_queues__add_event`).
#[derive(Debug, Default)]
struct Queue {
    search: Search,
    /// What each range needs.
    needed: Vec<Needed>,
}

/// What a range needs of the data of a buffer.
#[derive(Debug, Clone, Copy, Default)]
struct Needed {
    /// Offset of the last PSB packet at or before the start of the range; 0 if there is none.
    start: u64,
    /// Offset of the end of the first PSB packet, with its state, behind the end of the range.
    end: Option<u64>,
    /// Whether a PSB packet behind the start of the range was found.
    is_inside: bool,
}

/// Cuts are at multiples of this number of bytes in a piece, so that the records after it stay
/// aligned. A decoder skips the bytes before the first PSB packet.
const ALIGNMENT: u64 = 8;

impl AuxCuts {
    /// Reads `source` to its end, and determines what the ranges need of AUXTRACE records. Without
    /// AUX data that can be cut, all data are kept. `recording` is the model before the first
    /// record.
    ///
    /// Uses 24 bytes of memory for each AUXTRACE record.
    ///
    /// # Errors
    /// The input cannot be read, or only once; or there are more AUXTRACE records than the limit
    /// for metadata permits.
    pub(super) fn of(
        source: &InputSource,
        recording: &Recording,
        ranges: Vec<TimeRange>,
    ) -> Result<AuxCuts> {
        let Some(mut reader) = source.reopen()? else {
            let what = "the AUX data of a stream cannot be cut, because it can be read only once: write it to a file first";
            return Err(Error::Refused(what.into()));
        };
        let mut pass = Pass::new(ranges, source.limits());
        while let Some((chunk, now)) = reader.next_chunk()? {
            match chunk {
                Chunk::Records(batch) => pass.records(&batch)?,
                Chunk::Payload(bytes) => pass.payload(bytes),
                Chunk::Unreadable(_) => {}
            }
            // The data of these are in the samples, too.
            let samples = now.events.iter().chain(recording.events.iter());
            let mut types = samples.map(|event| event.attr.sample_type);
            if pass.is_whole || types.any(|parts| parts.has(SampleType::AUX)) {
                return Ok(AuxCuts::default());
            }
        }
        Ok(pass.cuts)
    }

    /// Returns whether the range at index `range` needs everything.
    pub(super) fn are_none(&self, range: usize) -> bool {
        (0..self.pieces.len() as u64).all(|number| self.get(range, number) == Cut::WHOLE)
    }

    /// Returns the part of an AUXTRACE record that the range at index `range` needs, by the number
    /// of the record among the AUXTRACE records of the input, from 0.
    pub(super) fn get(&self, range: usize, number: u64) -> Cut {
        let piece = usize::try_from(number)
            .ok()
            .and_then(|number| self.pieces.get(number));
        let needed = piece.and_then(|piece| self.queues.get(piece.queue)?.needed.get(range));
        let (Some(piece), Some(needed)) = (piece, needed) else {
            return Cut::WHOLE;
        };
        let in_piece = |offset: u64| offset.saturating_sub(piece.start).min(piece.len);
        let start = in_piece(needed.start);
        let end = in_piece(needed.end.unwrap_or(u64::MAX));
        let end = end
            .checked_next_multiple_of(ALIGNMENT)
            .unwrap_or(piece.len)
            .min(piece.len);
        let skip = if start == piece.len {
            start
        } else {
            start.saturating_sub(start % ALIGNMENT)
        };
        match end.saturating_sub(skip) {
            len if len == piece.len => Cut::WHOLE,
            len => Cut { skip, len },
        }
    }
}

/// Reading the AUX data.
struct Pass {
    ranges: Vec<TimeRange>,
    limits: Limits,
    cuts: AuxCuts,
    /// Indexes of the queues by the number of their buffer.
    by_idx: HashMap<u32, usize, RandomState>,
    clock: Option<Clock>,
    /// Whether everything is kept.
    is_whole: bool,
    /// Index of the queue to which the next payload belongs, and the clock of its times.
    queue: Option<(usize, u64)>,
}

impl Pass {
    fn new(ranges: Vec<TimeRange>, limits: Limits) -> Self {
        Pass {
            ranges,
            limits,
            cuts: AuxCuts::default(),
            by_idx: HashMap::default(),
            clock: None,
            is_whole: false,
            queue: None,
        }
    }

    fn records(&mut self, batch: &RecordBatch<'_>) -> Result<()> {
        for raw in batch.iter() {
            self.queue = None;
            match raw.kind {
                RecordType::AUXTRACE_INFO => self.info(&raw)?,
                RecordType::AUXTRACE => self.piece(&raw)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn info(&mut self, raw: &RawRecord<'_>) -> Result<()> {
        let record = Record::decode(raw, &DecodeContext::default())?;
        let clock = match record.body {
            Body::AuxtraceInfo(AuxtraceInfo {
                private: AuxtracePrivate::IntelPt(info),
                ..
            }) => Clock::of(&info),
            _ => None,
        };
        // Data of several kinds would need a decision for each queue.
        self.is_whole = clock.is_none() || self.clock.is_some_and(|other| Some(other) != clock);
        self.clock = clock;
        Ok(())
    }

    fn piece(&mut self, raw: &RawRecord<'_>) -> Result<()> {
        // perf does not read data before the description of the hardware.
        if self.clock.is_none() {
            self.is_whole = true;
            return Ok(());
        }
        let record = Record::decode(raw, &DecodeContext::default())?;
        let Body::Auxtrace(record) = record.body else {
            return Ok(());
        };
        let AuxCuts { pieces, queues } = &mut self.cuts;
        let count = self.ranges.len();
        let queue = *self.by_idx.entry(record.idx).or_insert_with(|| {
            queues.push(Queue {
                needed: vec![Needed::default(); count],
                ..Queue::default()
            });
            queues.len().saturating_sub(1)
        });
        let start = queues.get(queue).map_or(0, |queue| queue.search.at());
        let len = record.size;
        pieces.push(AuxPayload { queue, start, len });
        let held = pieces
            .len()
            .saturating_mul(size_of::<AuxPayload>())
            .saturating_add(
                queues.len().saturating_mul(
                    count
                        .saturating_mul(size_of::<Needed>())
                        .saturating_add(size_of::<Queue>()),
                ),
            );
        self.limits.check_metadata("AUX data", held as u64)?;
        self.queue = Some((queue, record.reference));
        Ok(())
    }

    fn payload(&mut self, bytes: &[u8]) {
        let Some((queue, clock, reference)) = self.queue.and_then(|(at, reference)| {
            Some((self.cuts.queues.get_mut(at)?, self.clock?, reference))
        }) else {
            return;
        };
        let ranges = &self.ranges;
        let Queue { search, needed } = queue;
        search.push(bytes, |point: SyncPoint| {
            let time = clock.time(point.tsc, reference);
            for (needed, range) in needed.iter_mut().zip(ranges) {
                needed.see(&point, time, range);
            }
        });
    }
}

impl Needed {
    fn see(&mut self, point: &SyncPoint, time: u64, range: &TimeRange) {
        // Times that go back are a reason to keep more.
        let is_before = time <= range.start;
        self.is_inside |= !is_before;
        if is_before && !self.is_inside {
            self.start = point.start;
        }
        match range.end {
            Some(last) if time > last => self.end = self.end.or(Some(point.end)),
            _ => self.end = None,
        }
    }
}

/// The conversion from TSC to time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Clock(CycleClock);

impl Clock {
    /// Returns the clock of data that can be cut; `None` for others.
    fn of(info: &IntelPt) -> Option<Self> {
        let is_continuous = info.snapshot_mode == 0;
        let has_times = info.cap_user_time_zero != 0 && info.time_shift < u64::from(u64::BITS);
        (is_continuous && has_times).then_some(Clock(CycleClock {
            shift: info.time_shift,
            mult: info.time_mult,
            zero: info.time_zero,
        }))
    }

    /// Returns the time in nanoseconds for the low 56 bits of a TSC. The high bits are those of the
    /// closest number to `reference`, the TSC at which the data were read
    /// (tools/perf/util/intel-pt-decoder/intel-pt-decoder.c, `intel_pt_8b_tsc`).
    fn time(&self, low: u64, reference: u64) -> u64 {
        const HALF: u64 = 1 << 55;
        const WHOLE: u64 = 1 << 56;
        let tsc = low | reference & !(WHOLE.wrapping_sub(1));
        let tsc = if tsc < reference && reference.wrapping_sub(tsc) > HALF {
            tsc.wrapping_add(WHOLE)
        } else if tsc > reference && tsc.wrapping_sub(reference) > HALF {
            tsc.wrapping_sub(WHOLE)
        } else {
            tsc
        };
        self.0.time(tsc)
    }
}
