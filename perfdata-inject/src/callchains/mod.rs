//! Replaces copies of user stacks by callchains.
//!
//! `perf record --call-graph dwarf` copies the user registers and the top of the user stack into
//! each sample. Every reader must unwind them, and needs all objects for this. This stage unwinds
//! them once, so that the samples have ordinary callchains, and are much smaller.
//!
//! A sample needs the mappings at its time, but the records of a recording are not in the order of
//! time. So the stage reads the mappings of the whole recording ahead. The order of the records
//! does not change.

mod ahead;
mod batch;
mod report;
mod sample;
mod worker;

use std::sync::Arc;
use std::thread;

use perfdata_core::attr::{Attr, SampleType};
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::read::Chunk;
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::{Events, Recording};
use perfdata_symbols::{Reason, Sources};
use perfdata_unwind::has_user_stacks;

use ahead::Ahead;
use batch::{Batch, Job};
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::InputSource;
use perfdata_convert::pipeline::{
    CompressedRecords, Link, ReadsAhead, Requirements, Stage, each_part,
};
use perfdata_convert::support::attributes::{
    change_head, changed_events, changed_record, has_late_events,
};
use report::CallchainCounts;
pub use report::{unwinding_notes, unwound_in_total};
use sample::Limit;
use worker::{Shared, Unwound, Workers};

/// What happens to user stacks.
#[derive(Debug)]
enum Mode {
    /// They are replaced by callchains.
    Unwind(Box<Unwind>),
    /// They are removed.
    Drop,
}

/// How user stacks are unwound.
#[derive(Debug)]
struct Unwind {
    sources: Sources,
    limit: Limit,
    follows_frame_pointers: bool,
    has_generated_code: bool,
    /// What the whole recording contains; `None` if there are no user stacks.
    ahead: Option<Ahead>,
    workers: Workers,
    batch: Batch,
    /// A converted sample.
    out: Vec<u8>,
    /// What the threads use; `None` if it must be renewed.
    shared: Option<Arc<Shared>>,
}

/// Replaces copies of user stacks by callchains, or drops them. Applies to events whose samples
/// have callchains, user registers and user stacks; others do not change.
///
/// ```no_run
/// use perfdata_convert::io::Output;
/// use perfdata_convert::pipeline::Conversion;
/// use perfdata_inject::callchains::Callchains;
/// use perfdata_symbols::Sources;
///
/// fn main() -> perfdata_convert::Result<()> {
///     let (input, output) = ("perf.data".as_ref(), "unwound.data".as_ref());
///     let stage = Callchains::unwound(Sources::default());
///     let conversion = Conversion::new(vec![Box::new(stage)]);
///     let summary = conversion.run(input, Output::create(output, input, false)?)?;
///     summary.notes.iter().for_each(|note| println!("{note}"));
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Callchains {
    mode: Mode,
    /// For each event, whether its samples change; and all events before and after the stage.
    changes: Vec<bool>,
    from: Events,
    to: Events,
    /// Whether the events were read ahead, so that attributes in the stream only repeat them.
    has_late_events: bool,
    report: CallchainCounts,
}

impl Callchains {
    /// Returns a stage that unwinds user stacks. Objects are searched in `sources`.
    pub fn unwound(sources: Sources) -> Self {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        Callchains::new(Mode::Unwind(Box::new(Unwind {
            sources,
            limit: Limit::Words(sample::MOST_WORDS),
            follows_frame_pointers: false,
            has_generated_code: false,
            ahead: None,
            workers: Workers::new(workers),
            batch: Batch::default(),
            out: Vec::new(),
            shared: None,
        })))
    }

    /// Returns a stage that drops user registers and user stacks. Callchains remain as they are.
    pub fn without_stacks() -> Self {
        Callchains::new(Mode::Drop)
    }

    fn new(mode: Mode) -> Self {
        Callchains {
            mode,
            changes: Vec::new(),
            from: Events::default(),
            to: Events::default(),
            has_late_events: false,
            report: CallchainCounts::default(),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Unwind)) -> Self {
        if let Mode::Unwind(unwind) = &mut self.mode {
            change(unwind);
        }
        self
    }

    /// Returns the stage, which unwinds at most `frames` user frames of each sample. Without this,
    /// a callchain has at most 126 words in total, including the frames of the kernel and the
    /// context markers, as those that perf inject writes.
    #[must_use]
    pub fn with_max_frames(self, frames: u32) -> Self {
        self.with(|unwind| unwind.limit = Limit::Frames(frames))
    }

    /// Returns the stage with this number of threads, at least one. The output does not depend on
    /// it. The default is the number of CPUs.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        let threads = threads.max(1);
        self.with(|unwind| unwind.workers = Workers::new(threads))
    }

    /// Returns the stage, which follows the chain of frame pointers in code without call frame
    /// information, if `follows` is set. The frames after such code can be wrong.
    #[must_use]
    pub fn with_frame_pointers(self, follows: bool) -> Self {
        self.with(|unwind| unwind.follows_frame_pointers = follows)
    }

    /// Returns the stage for a position after [`Jit`](super::jit::Jit), whose mappings are not in
    /// the input. Mappings of memory, some of which that stage drops, then apply to samples that
    /// come later in the stream.
    #[must_use]
    pub fn with_generated_code(self, has: bool) -> Self {
        self.with(|unwind| unwind.has_generated_code = has)
    }

    /// Returns the stage, which adds the text that `help` returns to a note about an object that
    /// cannot be used, for instance the options that could help.
    #[must_use]
    pub fn with_help(mut self, help: fn(&Reason) -> &'static str) -> Self {
        self.report.help = Some(help);
        self
    }

    /// Returns an attribute after the stage.
    fn attr(&self, attr: &Attr) -> Attr {
        if !has_user_stacks(attr) {
            return attr.clone();
        }
        let mut attr = attr.without(SampleType::REGS_USER | SampleType::STACK_USER);
        if matches!(self.mode, Mode::Unwind(_)) {
            attr.flags = attr.flags.with_exclude_callchain_user(false);
        }
        attr
    }

    fn set_events(&mut self, events: &Events) -> Result<()> {
        self.changes = events
            .iter()
            .map(|event| has_user_stacks(&event.attr))
            .collect();
        let unknown = |attr: &Attr| has_user_stacks(attr) && attr.sample_type.unknown() != 0;
        if let Some(event) = events.iter().find(|event| unknown(&event.attr)) {
            let bits = event.attr.sample_type.unknown();
            let what = format!(
                "sample_type has the unknown bits {bits:#x}, so it is not known which bytes of a sample are its user stack"
            );
            return Err(Error::Refused(what));
        }
        if let Mode::Unwind(unwind) = &mut self.mode {
            unwind.shared = None;
        }
        self.from = events.clone();
        self.to = changed_events(events, &|attr| self.attr(attr));
        Ok(())
    }

    /// Returns whether samples may change.
    fn changes_any(&self) -> bool {
        self.changes.contains(&true)
    }

    /// Forwards all records that wait, with unwound samples.
    fn flush(&mut self, next: &mut Link<'_>) -> Result<()> {
        self.send();
        self.forward(true, next)
    }

    /// Passes the batch to the threads.
    fn send(&mut self) {
        let Mode::Unwind(unwind) = &mut self.mode else {
            return;
        };
        if unwind.batch.is_empty() {
            return;
        }
        if let Some(shared) = unwind.shared(&self.from, &self.to) {
            unwind.workers.take(&mut unwind.batch, &shared);
        }
    }

    /// Forwards the records of the batches that are done; at the end, waits for all.
    fn forward(&mut self, is_end: bool, next: &mut Link<'_>) -> Result<()> {
        let Mode::Unwind(unwind) = &mut self.mode else {
            return Ok(());
        };
        while let Some(unwound) = unwind.workers.next(is_end) {
            let mut unwound = unwound?;
            forward(&mut unwound, &mut self.report, next)?;
            unwind.workers.reuse(unwound);
        }
        Ok(())
    }

    /// Adds a record to the batch, or forwards it if nothing waits.
    fn queue(&mut self, raw: &RawRecord<'_>, job: Option<Job>, next: &mut Link<'_>) -> Result<()> {
        let Mode::Unwind(unwind) = &mut self.mode else {
            return next.record(raw);
        };
        if job.is_none() && !unwind.has_waiting() {
            return next.record(raw);
        }
        unwind.batch.push(raw, job);
        if !unwind.batch.is_full() {
            return Ok(());
        }
        self.send();
        self.forward(false, next)
    }

    fn sample(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let event = match self.from.of_record(raw) {
            Some(event) => event,
            None if self.from.have_one_layout() => 0,
            None => {
                let expected = "the ID of an event, because the events have different layouts";
                let error =
                    perfdata_core::Error::invalid("SAMPLE record", "id", "an unknown ID", expected);
                return Err(Error::from(error.at(raw.offset)));
            }
        };
        if !self.changes.get(event).copied().unwrap_or(false) {
            return self.queue(raw, None, next);
        }
        let Mode::Unwind(unwind) = &mut self.mode else {
            let mut out = Vec::new();
            sample::without_stack(raw, &self.from, &self.to, &mut out)?;
            self.report.dropped(raw.bytes.len(), out.len());
            return next.record(&RawRecord {
                bytes: &out,
                ..*raw
            });
        };
        let job = unwind.ahead.as_mut().map(|ahead| {
            let view = self.from.sample_view(raw);
            let pid = view.as_ref().and_then(|view| view.tid()).map(|tid| tid.pid);
            let time = view.and_then(|view| view.time());
            Job {
                space: pid.and_then(|pid| ahead.space(raw.misc, pid, time)),
            }
        });
        if let Some(job) = &job
            && unwind.workers.is_alone()
            && let Some(shared) = unwind.shared(&self.from, &self.to)
        {
            let outcome = unwind.workers.unwind(raw, job, &shared, &mut unwind.out)?;
            let bytes = unwind.out.as_slice();
            self.report.sample(raw.bytes.len(), bytes.len(), outcome);
            return next.record(&RawRecord { bytes, ..*raw });
        }
        self.queue(raw, job, next)
    }
}

impl Unwind {
    /// Returns what all threads use; `None` without user stacks. `from` and `to` are the events
    /// before and after the stage.
    fn shared(&mut self, from: &Events, to: &Events) -> Option<Arc<Shared>> {
        let ahead = self.ahead.as_ref()?;
        let shared = self.shared.get_or_insert_with(|| {
            Arc::new(Shared {
                from: from.clone(),
                to: to.clone(),
                registers: ahead.registers,
                objects: ahead.objects.clone(),
                ids: ahead.ids.clone(),
                limit: self.limit,
                follows_frame_pointers: self.follows_frame_pointers,
            })
        });
        Some(shared.clone())
    }

    /// Returns whether records wait.
    fn has_waiting(&self) -> bool {
        !self.batch.is_empty() || self.workers.are_busy()
    }
}

/// Forwards the records of a batch, and counts what was done for its samples.
fn forward(unwound: &mut Unwound, report: &mut CallchainCounts, next: &mut Link<'_>) -> Result<()> {
    let (batch, out, done) = unwound.parts();
    for (raw, is_job) in batch.records() {
        let raw = raw?;
        next.at(raw.offset);
        let done = if is_job { done.pop_front() } else { None };
        let Some(done) = done else {
            next.record(&raw)?;
            continue;
        };
        let (place, outcome) = done?;
        let bytes = out.get(place).unwrap_or_default();
        report.sample(raw.bytes.len(), bytes.len(), outcome);
        next.record(&RawRecord { bytes, ..raw })?;
    }
    Ok(())
}

impl Stage for Callchains {
    fn requirements(&self) -> Requirements {
        let (unwinds, ahead) = match &self.mode {
            Mode::Unwind(unwind) => (true, unwind.ahead.as_ref()),
            Mode::Drop => (false, None),
        };
        Requirements {
            events_first: true,
            all_records: unwinds,
            may_refuse: true,
            reads_ahead: match unwinds {
                true => ReadsAhead::Always,
                false => ReadsAhead::Never,
            },
            compresses_again: ahead.and_then(|ahead| ahead.compressed),
            ..Requirements::none()
        }
    }

    fn compressed(&self, kind: RecordType) -> CompressedRecords {
        match &self.mode {
            Mode::Unwind(unwind) if unwind.ahead.is_some() => CompressedRecords::Plain,
            Mode::Drop if self.changes_any() => CompressedRecords::Opened(kind),
            _ => CompressedRecords::AsTheyAre,
        }
    }

    fn look_ahead(&mut self, source: &InputSource, recording: &Recording) -> Result<()> {
        let Mode::Unwind(unwind) = &mut self.mode else {
            return Ok(());
        };
        if !recording
            .events
            .iter()
            .any(|event| has_user_stacks(&event.attr))
        {
            return Ok(());
        }
        let ahead = Ahead::read(
            source,
            recording,
            unwind.sources.clone(),
            unwind.has_generated_code,
        )?;
        unwind.ahead = Some(ahead);
        Ok(())
    }

    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        self.has_late_events = has_late_events(recording, container_layout);
        self.set_events(&recording.events)?;
        recording.events = self.to.clone();
        change_head(recording, container_layout, &|attr| self.attr(attr))
    }

    fn wants(&self, kind: RecordType) -> bool {
        if let Mode::Unwind(unwind) = &self.mode {
            let Some(ahead) = &unwind.ahead else {
                return matches!(kind, RecordType::HEADER_ATTR | RecordType::HEADER_FEATURE);
            };
            if unwind.has_waiting() || ahead.wants(kind) {
                return true;
            }
        }
        match kind {
            RecordType::SAMPLE => self.changes_any(),
            kind => matches!(kind, RecordType::HEADER_ATTR | RecordType::HEADER_FEATURE),
        }
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if raw.kind == RecordType::SAMPLE && self.changes_any() {
            return self.sample(raw, next);
        }
        if raw.kind.is_metadata() || raw.kind.has_payload() {
            self.flush(next)?;
        }
        match raw.kind {
            RecordType::HEADER_ATTR | RecordType::HEADER_FEATURE => {
                let events = &next.recording().events;
                if !self.has_late_events && events.len() != self.from.len() {
                    self.set_events(events)?;
                }
                match changed_record(raw, &|attr| self.attr(attr))? {
                    Some(bytes) => next.record(&RawRecord {
                        bytes: &bytes,
                        ..*raw
                    }),
                    None => next.record(raw),
                }
            }
            kind if kind.has_payload() => next.record(raw),
            _ => {
                if let Mode::Unwind(unwind) = &mut self.mode
                    && let Some(ahead) = &mut unwind.ahead
                    && ahead.wants(raw.kind)
                {
                    let known = ahead.ids.len();
                    ahead.see(raw, &self.from, next.limits())?;
                    if ahead.ids.len() != known {
                        unwind.shared = None;
                    }
                }
                self.queue(raw, None, next)
            }
        }
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, next: &mut Link<'_>) -> Result<()> {
        match chunk {
            Chunk::Records(batch) => return each_part(self, batch, next),
            Chunk::Payload(_) => {}
            Chunk::Unreadable(_) => self.flush(next)?,
        }
        next.chunk(chunk)
    }

    fn finish(&mut self, _: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        self.flush(next)
    }

    fn notes(&self) -> Vec<String> {
        let objects = match &self.mode {
            Mode::Unwind(unwind) => unwind.ahead.as_ref().map(|ahead| &ahead.objects),
            Mode::Drop => None,
        };
        self.report.notes(objects)
    }
}
