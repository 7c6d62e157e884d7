//! Exports in several threads: each resolves and formats a part of the samples.
//!
//! One thread reads the records and puts them into the order of time, in blocks. All others receive all
//! blocks: they follow the threads and mappings in them, which is a small part of the work, and resolve the
//! samples of the blocks that they take first. What they make of a block comes to the sink in the order of
//! the blocks.

mod feed;
mod joined;
pub(crate) mod numbers;
mod worker;

use std::collections::BTreeMap;
use std::sync::mpsc::{channel, sync_channel};
use std::{io, panic, thread};

use perfdata_core::read::{RecordRef, RecordSource};
use perfdata_session::{Delivery, Sample, Samples};
use perfdata_symbols::Symbolizer;

use crate::branch_profile::BranchCounts;
use crate::error::{Error, Result};
use crate::firefox::FirefoxSamples;
use crate::flame_graph::NumberedSamples;
use crate::folded::Folded;
use crate::profile_parts::ProfileSamples;
use crate::resolve::{Pass, Report, Sink, export_with, report};
use crate::shared_symbols::SharedSymbols;
use crate::speedscope::SpeedscopeSamples;
use crate::tables::Tables;
use feed::Feed;
use joined::Joined;
use worker::Worker;

/// Default size of the records of a block in bytes.
const BLOCK: usize = 256 << 10;

/// Number of blocks that wait for each thread.
const WAITING: usize = 4;

/// Maximum number of threads: each follows all records.
const MOST_THREADS: usize = 16;

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
    /// Counted branches.
    Branches(Box<BranchCounts>),
    /// Sums of stacks.
    Folded(Box<Folded<io::Sink>>),
    /// Samples of a flame graph that precede later ones.
    FlameGraph(Vec<NumberedSamples>),
    /// Samples and records for the Firefox Profiler that precede later ones.
    Firefox(Box<FirefoxSamples>),
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
/// Each thread keeps what it knows about places of code and what its part of the sink needs: 5 to 30 MB for
/// recordings of up to a million samples.
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
