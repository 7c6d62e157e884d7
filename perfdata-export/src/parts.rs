//! Exports in several threads: each resolves and formats a part of the samples.
//!
//! One thread reads the records and puts them into the order of time, in blocks. All others receive all
//! blocks: they follow the threads and mappings in them, which is a small part of the work, and resolve the
//! samples of the blocks that they take first. What they make of a block comes to the sink in the order of
//! the blocks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::{io, panic, thread};

use perfdata_core::Recording;
use perfdata_core::read::{Limits, RecordRef, RecordSource};
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_session::{Delivery, Sample, Samples};
use perfdata_symbols::Symbolizer;

use crate::error::{Error, Result};
use crate::flame_graph::NumberedSamples;
use crate::folded::Folded;
use crate::profile_parts::ProfileSamples;
use crate::resolve::{Pass, Report, Sink, export_with, report};
use crate::shared_symbols::SharedSymbols;
use crate::speedscope::SpeedscopeSamples;
use crate::tables::Tables;

/// Default size of the records of a block in bytes.
const BLOCK: usize = 256 << 10;

/// Number of blocks that wait for each thread.
const WAITING: usize = 4;

/// Maximum number of threads: each follows all records.
const MOST_THREADS: usize = 16;

/// Number of blocks after which it is known how many threads are of use.
const TRIED: u64 = 8;

/// Maximum size in bytes of all copies of the metadata of a stream, which a block has if they changed.
const MOST_COPIED: u64 = 4 << 30;

/// A sink for a part of the samples, in a thread of its own.
pub trait SinkPart: Sink + Send {
    /// Receives a sample of another part, in the order of time with those of this part.
    ///
    /// # Errors
    /// The record is corrupt.
    fn pass(&mut self, _sample: &Sample<'_>) -> Result<()> {
        Ok(())
    }

    /// Receives a record of another part that is not a sample.
    ///
    /// # Errors
    /// The record is corrupt.
    fn pass_record(&mut self, _record: &RecordRef<'_>) -> Result<()> {
        Ok(())
    }

    /// Returns what was made of the samples since the last call, if it precedes what other parts make of
    /// later samples. `tables` has the functions and modules of the samples of this part.
    fn take(&mut self, _tables: &Tables) -> Option<Made> {
        None
    }

    /// Returns what was made of all samples whose order does not matter.
    fn end(self: Box<Self>) -> Option<Made> {
        None
    }
}

/// What a part made of its samples.
#[derive(Debug)]
pub struct Made {
    pub(crate) of: MadeOf,
    /// The number of the part, from 0.
    pub(crate) part: usize,
    samples: u64,
    rounds: u64,
}

/// What the sinks of this crate make of parts of the samples.
#[derive(Debug)]
pub(crate) enum MadeOf {
    /// Nothing but the numbers of samples and rounds.
    Nothing,
    /// Text that precedes that of later samples.
    Text(Vec<u8>),
    /// Sums of stacks.
    Folded(Box<Folded<io::Sink>>),
    /// Samples of a flame graph that precede later ones.
    FlameGraph(Vec<NumberedSamples>),
    /// Samples for speedscope that precede later ones.
    Speedscope(Box<SpeedscopeSamples>),
    /// Samples of a profile that precede later ones.
    Profile(Vec<ProfileSamples>),
}

impl Made {
    pub(crate) fn new(of: MadeOf) -> Self {
        let (part, samples, rounds) = (0, 0, 0);
        Made {
            of,
            part,
            samples,
            rounds,
        }
    }

    /// Returns text that precedes that of later samples.
    pub fn text(text: Vec<u8>) -> Self {
        Made::new(MadeOf::Text(text))
    }

    /// Returns the [text](Self::text); empty if this is something else.
    pub fn into_text(self) -> Vec<u8> {
        match self.of {
            MadeOf::Text(text) => text,
            _ => Vec::new(),
        }
    }

    /// Returns the number of samples.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the number of rounds of `perf stat record`.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }
}

/// Records in the order of time.
#[derive(Debug)]
struct RecordBlock {
    number: u64,
    bytes: Vec<u8>,
    /// Of each record its offset in the input, and where it ends in `bytes`.
    places: Vec<(u64, usize)>,
    recording: Arc<Recording>,
    /// Whether there are no records after them.
    is_last: bool,
    /// Whether a thread resolves its samples.
    is_taken: AtomicBool,
}

impl RecordBlock {
    fn records(&self) -> impl Iterator<Item = RecordRef<'_>> {
        let mut start = 0;
        self.places.iter().map_while(move |&(offset, end)| {
            let bytes = self.bytes.get(start..end)?;
            start = end;
            let record = RawRecord::first(bytes, self.recording.endian, offset).ok()?;
            Some(RecordRef::new(record, &self.recording))
        })
    }
}

/// What resolves a part of the samples.
struct Worker {
    number: usize,
    delivery: Delivery,
    part: Box<dyn SinkPart>,
    pass: Pass,
    limits: Limits,
    /// What was seen of the current block.
    samples: u64,
    rounds: u64,
}

impl Worker {
    /// Processes the blocks until there are no more, or one of them has an error.
    fn run(&mut self, blocks: &Receiver<Arc<RecordBlock>>, done: &Sender<(u64, Result<Made>)>) {
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

/// Passes what is made of the blocks to the sink, in their order.
struct Joined<'a> {
    sink: &'a mut dyn Sink,
    results: Receiver<(u64, Result<Made>)>,
    early: BTreeMap<u64, Result<Made>>,
    next: u64,
}

impl Joined<'_> {
    /// Passes on what is known of the next blocks.
    fn take(&mut self) -> Result<()> {
        loop {
            match self.results.try_recv() {
                Ok((number, made)) => self.add(number, made)?,
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Passes on all that the threads still make.
    fn finish(&mut self) -> Result<()> {
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

/// Sends the records of a recording to all threads.
struct Feed {
    /// Size of the records at which they are sent.
    block: usize,
    threads: Vec<SyncSender<Arc<RecordBlock>>>,
    number: u64,
    bytes: Vec<u8>,
    places: Vec<(u64, usize)>,
    /// The metadata for the records that wait.
    recording: Arc<Recording>,
    is_recording_old: bool,
    /// Whether one of the records that wait needs its metadata.
    has_events: bool,
    copied: u64,
    /// Number of samples, and of other records.
    samples: usize,
    others: usize,
}

impl Feed {
    fn new(
        recording: &Recording,
        threads: Vec<SyncSender<Arc<RecordBlock>>>,
        block: usize,
    ) -> Self {
        Feed {
            block,
            threads,
            number: 0,
            bytes: Vec::new(),
            places: Vec::new(),
            recording: Arc::new(recording.clone()),
            is_recording_old: false,
            has_events: false,
            copied: 0,
            samples: 0,
            others: 0,
        }
    }

    /// Adds a record. Returns whether all threads are still there.
    fn add(&mut self, record: &RecordRef<'_>) -> Result<bool> {
        let recording = record.recording();
        let is_metadata = record.kind.is_metadata() || record.kind == RecordType::HEADER_BUILD_ID;
        self.is_recording_old |=
            is_metadata || recording.events.len() != self.recording.events.len();
        let mut is_complete = true;
        if self.is_recording_old && (!is_metadata || self.has_events) {
            if self.has_events {
                is_complete = self.send(false);
            }
            if !is_metadata {
                self.renew(recording)?;
            }
        }
        self.has_events |= !is_metadata;
        let count = match record.kind {
            RecordType::SAMPLE => &mut self.samples,
            _ => &mut self.others,
        };
        *count = count.saturating_add(1);
        self.bytes.extend_from_slice(record.bytes);
        self.places.push((record.offset, self.bytes.len()));
        if self.bytes.len() >= self.block {
            is_complete &= self.send(false);
        }
        Ok(is_complete)
    }

    /// Takes over the metadata.
    #[cold]
    fn renew(&mut self, recording: &Recording) -> Result<()> {
        let features = recording.features.values().map(Vec::len);
        let events = recording.events.len().saturating_mul(512);
        let size = features.fold(events, usize::saturating_add);
        self.copied = self.copied.saturating_add(size as u64);
        if self.copied > MOST_COPIED {
            return Err(Error::ChangesTooOften);
        }
        self.recording = Arc::new(recording.clone());
        self.is_recording_old = false;
        Ok(())
    }

    /// Sends the records that wait. Returns whether all threads received them.
    fn send(&mut self, is_last: bool) -> bool {
        let block = Arc::new(RecordBlock {
            number: self.number,
            bytes: std::mem::replace(&mut self.bytes, Vec::with_capacity(self.block)),
            places: std::mem::take(&mut self.places),
            recording: Arc::clone(&self.recording),
            is_last,
            is_taken: AtomicBool::new(false),
        });
        self.number = self.number.saturating_add(1);
        self.has_events = false;
        if self.number == TRIED {
            // Every thread has to process all records that are not samples.
            let useful = self.samples.checked_div(self.others);
            self.threads
                .truncate(useful.map_or(MOST_THREADS, |useful| useful.saturating_add(1)));
        }
        self.threads
            .iter()
            .all(|thread| thread.send(Arc::clone(&block)).is_ok())
    }
}

/// How an export is divided into parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportThreads {
    threads: usize,
    block: usize,
}

impl ExportThreads {
    /// Returns one part for each of several threads, of which 16 are used at most.
    pub fn new(threads: usize) -> Self {
        ExportThreads {
            threads: threads.min(MOST_THREADS),
            block: BLOCK,
        }
    }

    /// Returns the same with the size of the records in bytes that a thread takes at once. The default is
    /// 256 KiB.
    #[must_use]
    pub fn with_block(self, block: usize) -> Self {
        ExportThreads { block, ..self }
    }
}

/// Passes all samples to `sink` as [`export`](crate::export), but resolves and formats parts of them in
/// several threads, if the sink has [parts](Sink::part). The result is the same.
///
/// # Errors
/// As [`export`](crate::export), or the metadata of a stream changes too often.
pub fn export_in_parts<S: RecordSource>(
    samples: &mut Samples<S>,
    symbols: Option<Symbolizer>,
    sink: &mut dyn Sink,
    how: ExportThreads,
) -> Result<Report> {
    let parts = parts_of(samples, sink, how.threads)?;
    let symbols = symbols.map(SharedSymbols::new);
    if parts.is_empty() {
        return export_with(samples, symbols, sink);
    }
    let limits = samples.session().limits();
    let container = samples.source().container_layout().container();
    let needs = sink.needs();
    let symbols = symbols.map(|symbols| symbols.with_needs(needs));
    let workers = (0..).zip(parts).map(|(number, (delivery, mut part))| {
        part.begin(container);
        Worker {
            number,
            delivery,
            part,
            pass: Pass::new(symbols.clone()).of_part(needs),
            limits,
            samples: 0,
            rounds: 0,
        }
    });
    let workers = run(samples, sink, workers, how.block)?;
    if workers.is_empty() {
        return export_with(samples, symbols, sink);
    }
    let mut passes = Vec::new();
    let mut session = None;
    for Worker {
        number,
        delivery,
        part,
        pass,
        ..
    } in workers
    {
        if let Some(made) = part.end() {
            sink.join(Made {
                part: number,
                ..made
            })?;
        }
        session.get_or_insert(delivery);
        passes.push(pass);
    }
    sink.finish(&Tables::default())?;
    let session = session
        .as_ref()
        .map_or(samples.session(), Delivery::session);
    Ok(report(&passes, session, samples.recording()))
}

/// Returns what makes samples of all records and the sink, for each of several threads; none if the samples
/// can only be processed in one.
fn parts_of<S: RecordSource>(
    samples: &Samples<S>,
    sink: &dyn Sink,
    threads: usize,
) -> Result<Vec<(Delivery, Box<dyn SinkPart>)>> {
    let mut parts = Vec::new();
    while threads > 1 && parts.len() < threads {
        let Some(part) = sink.part(threads) else {
            return Ok(Vec::new());
        };
        let Some(delivery) = samples.another_delivery()? else {
            return Ok(Vec::new());
        };
        parts.push((delivery, part));
    }
    Ok(parts)
}

/// Passes all records to the workers, each in a thread, and what they make to the sink. Returns the workers;
/// none, and nothing was done, if no thread can be started.
fn run<S: RecordSource>(
    samples: &mut Samples<S>,
    sink: &mut dyn Sink,
    workers: impl Iterator<Item = Worker>,
    block: usize,
) -> Result<Vec<Worker>> {
    thread::scope(|scope| {
        let (done, results) = channel();
        let (mut inputs, mut threads) = (Vec::new(), Vec::new());
        for mut worker in workers {
            let (give, blocks) = sync_channel(WAITING);
            let done = done.clone();
            let work = move || {
                worker.run(&blocks, &done);
                worker
            };
            match thread::Builder::new().spawn_scoped(scope, work) {
                Ok(thread) => {
                    inputs.push(give);
                    threads.push(thread);
                }
                // Fewer threads do the same.
                Err(_) => break,
            }
        }
        drop(done);
        if threads.is_empty() {
            return Ok(Vec::new());
        }
        sink.begin(samples.source().container_layout().container());
        let feed = Feed::new(samples.recording(), inputs, block);
        let joined = Joined {
            sink,
            results,
            early: BTreeMap::new(),
            next: 0,
        };
        let result = read(samples, feed, joined);
        let workers = threads.into_iter().map(|thread| {
            let worker = thread.join();
            worker.unwrap_or_else(|panic| panic::resume_unwind(panic))
        });
        let workers = workers.collect();
        result.map(|()| workers)
    })
}

/// Reads all records. An error of a record precedes one of the input, which comes after it.
fn read<S: RecordSource>(
    samples: &mut Samples<S>,
    mut feed: Feed,
    mut joined: Joined<'_>,
) -> Result<()> {
    let end = loop {
        let before = feed.number;
        match samples.next_record() {
            Ok(Some(record)) => match feed.add(&record) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            },
            Ok(None) => {
                feed.send(true);
                break Ok(());
            }
            Err(error) => {
                feed.send(false);
                break Err(Error::Recording(error));
            }
        }
        if feed.number > before {
            joined.take()?;
        }
    };
    drop(feed);
    joined.finish()?;
    end
}

#[cfg(test)]
mod tests {
    use perfdata_core::Endian;
    use perfdata_core::feature::FeatureId;

    use super::*;

    /// Returns a record that consists of its header.
    fn header(kind: RecordType) -> Vec<u8> {
        let kind = kind.0.to_le_bytes();
        [&kind[..], &[0, 0, 8, 0]].concat()
    }

    /// Adds a record of a type to the feed.
    fn add(feed: &mut Feed, kind: RecordType) -> Result<bool> {
        let bytes = header(kind);
        let recording = Recording::new(Endian::Little);
        let raw = RawRecord::first(&bytes, Endian::Little, 0).unwrap();
        feed.add(&RecordRef::new(raw, &recording))
    }

    fn feed(threads: usize, block: usize) -> (Feed, Vec<Receiver<Arc<RecordBlock>>>) {
        let (inputs, outputs) = (0..threads).map(|_| sync_channel(100)).unzip();
        let recording = Recording::new(Endian::Little);
        (Feed::new(&recording, inputs, block), outputs)
    }

    #[test]
    fn a_block_has_the_metadata_of_its_records() {
        let (mut feed, outputs) = feed(1, 1000);
        let kinds = [
            RecordType::HEADER_ATTR,
            RecordType::HEADER_ATTR,
            RecordType::SAMPLE,
            RecordType::SAMPLE,
            RecordType::HEADER_ATTR,
            RecordType::COMM,
        ];
        for kind in kinds {
            assert!(add(&mut feed, kind).unwrap());
        }
        assert!(feed.send(true));
        drop(feed);
        let blocks = outputs[0].iter();
        let blocks = blocks.map(|block| (block.records().count(), block.is_last));
        assert_eq!(blocks.collect::<Vec<_>>(), [(4, false), (2, true)]);
    }

    #[test]
    fn metadata_that_change_always_are_an_error() {
        let (mut feed, _outputs) = feed(1, 1000);
        feed.copied = MOST_COPIED;
        assert!(add(&mut feed, RecordType::HEADER_ATTR).unwrap());
        let mut recording = Recording::new(Endian::Little);
        recording.features.insert(FeatureId::HOSTNAME, vec![0]);
        let error = feed.renew(&recording).unwrap_err();
        assert!(matches!(error, Error::ChangesTooOften));
    }

    #[test]
    fn threads_that_would_only_follow_are_not_used() {
        for (others, threads) in [(1, 4), (2, 2), (9, 1)] {
            let (mut feed, _outputs) = feed(4, 8);
            for number in 0..TRIED * 2 {
                let is_sample = others == 1 && number % 4 > 0 || others == 2 && number % 2 > 0;
                let kind = match is_sample {
                    true => RecordType::SAMPLE,
                    false => RecordType::COMM,
                };
                assert!(add(&mut feed, kind).unwrap());
            }
            assert_eq!(feed.threads.len(), threads, "{others}");
        }
    }
}
