//! Makes a recording smaller: shorter callchains, smaller user stacks, samples without some of
//! their parts.
//!
//! Every record stays. A part is omitted from the samples of all events, by clearing its bit in the
//! attributes; a sample then has the form that `perf record` gives it if the part is not requested.
//!
//! ```no_run
//! use perfdata_convert::io::Output;
//! use perfdata_convert::pipeline::Conversion;
//! use perfdata_edit::thin::{StackSize, Thin, part};
//!
//! fn main() -> perfdata_convert::Result<()> {
//!     let thin = Thin::new()
//!         .max_stack(16)
//!         .stack_size(StackSize::AtMost(4096))
//!         .omit(part("raw")?);
//!     let (input, output) = ("perf.data".as_ref(), "thin.data".as_ref());
//!     let conversion = Conversion::new(vec![Box::new(thin)]);
//!     let summary = conversion.run(input, Output::create(output, input, false)?)?;
//!     summary.notes.iter().for_each(|note| println!("{note}"));
//!     Ok(())
//! }
//! ```

mod deferred;
mod events;
mod parts;
mod report;
mod sample;

use perfdata_core::attr::{Attr, SampleType};
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::FeatureId;
use perfdata_core::record::{Body, RawRecord, Record, RecordType, Sample};
use perfdata_core::{Error as ReadError, Recording};

use deferred::{Deferred, joined};
use events::{Changes, read_value};
pub use parts::{part, words};
use perfdata_convert::error::{Error, Result, Step};
use perfdata_convert::io::InputSource;
use perfdata_convert::pipeline::{CompressedRecords, Link, ReadsAhead, Requirements, Stage};
use perfdata_convert::support::attributes::{change_head, changed_record, has_late_events};
use perfdata_convert::support::deferred_chains::defers;
use perfdata_convert::support::user_stack::{DUMPED, cut_stack};
use report::ThinningReport;
use sample::{Kept, kept};

/// How much of a user stack remains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StackSize {
    /// What the kernel copied (`dyn_size`), without the old bytes of the ring buffer after it. No
    /// reader can see the difference.
    Dumped,
    /// At most this many bytes, rounded up to a multiple of 8, and at most what the kernel copied.
    /// 0 omits the part.
    AtMost(u32),
}

impl StackSize {
    /// Largest size in bytes of a user stack (tools/perf/util/callchain.c, get_stack_size).
    pub const MAX: u32 = 65_528;

    fn bytes(self) -> u64 {
        match self {
            StackSize::Dumped => DUMPED,
            StackSize::AtMost(bytes) => bytes.into(),
        }
    }
}

/// Makes samples smaller. Without further calls, it changes nothing.
#[derive(Debug, Default)]
pub struct Thin {
    max_stack: Option<u32>,
    stack_size: Option<StackSize>,
    omitted: SampleType,
    changes: Changes,
    deferred: Option<Deferred>,
    /// Whether the events were read ahead, so that attributes in the stream only repeat them.
    has_late_events: bool,
    buffer: Vec<u8>,
    report: ThinningReport,
}

impl Thin {
    /// Returns a stage that changes nothing.
    pub fn new() -> Self {
        Thin::default()
    }

    /// Keeps the first `frames` frames of each callchain, the innermost ones. Context markers do
    /// not count. The frames of a deferred callchain count after those of its sample.
    #[must_use]
    pub fn max_stack(self, frames: u32) -> Self {
        Thin {
            max_stack: Some(frames),
            ..self
        }
    }

    /// Cuts user stacks (`perf record --call-graph dwarf`).
    #[must_use]
    pub fn stack_size(self, size: StackSize) -> Self {
        let size = match size {
            StackSize::AtMost(bytes) => StackSize::AtMost(bytes.saturating_add(7) & !7),
            StackSize::Dumped => size,
        };
        Thin {
            stack_size: Some(size),
            ..self
        }
    }

    /// Omits `parts` from all samples, and from the trailers of other records. An event need not
    /// have each of them, but a part that no event has is refused.
    #[must_use]
    pub fn omit(self, parts: SampleType) -> Self {
        Thin {
            omitted: parts::whole(self.omitted | parts),
            ..self
        }
    }

    /// Returns the parts that are absent from the output.
    fn dropped(&self) -> SampleType {
        match self.stack_size {
            Some(StackSize::AtMost(0)) => self.omitted | SampleType::STACK_USER,
            _ => self.omitted,
        }
    }

    /// Returns whether records other than metadata may change.
    fn changes_records(&self) -> bool {
        self.changes
            .changes_samples(self.max_stack, self.stack_size)
            || self.changes.changes_trailers()
            || self.changes.ungroup()
            || self.deferred.is_some()
            || self.dropped().has(SampleType::CALLCHAIN)
    }

    /// Returns the attribute after the stage.
    fn attr(&self, attr: &Attr) -> Attr {
        let mut attr = attr.without(self.dropped());
        if let Some(StackSize::AtMost(bytes)) = self.stack_size {
            attr.sample_stack_user = attr.sample_stack_user.map(|size| size.min(bytes));
        }
        attr
    }

    /// Learns the events of `recording`, and whether they can be changed.
    fn set_events(&mut self, recording: &Recording) -> Result<()> {
        self.changes = Changes::new(&recording.events, |attr| self.attr(attr));
        let cuts_stacks = self.stack_size.is_some();
        self.changes
            .check(recording, self.omitted, self.dropped(), cuts_stacks)
    }

    /// Returns whether the stage removes a section: it says that samples have a part.
    fn removes(&self, id: FeatureId) -> bool {
        id == FeatureId::BRANCH_STACK && self.dropped().has(SampleType::BRANCH_STACK)
    }

    /// Shortens a sample; returns whether it changed.
    fn shorten(&mut self, event: usize, sample: &mut Sample) -> bool {
        let mut is_changed = false;
        if let (Some(frames), Some(chain)) = (self.max_stack, &mut sample.callchain) {
            let own = match kept(chain.iter().copied(), u64::from(frames)) {
                Kept::All => None,
                Kept::Words(end) => chain.get(..end).map(<[u64]>::to_vec),
                Kept::Deferred(cookie, left) => {
                    let tid = sample.tid.as_ref().map(|task| task.tid);
                    let deferred = self.deferred.as_ref();
                    let part = deferred.and_then(|deferred| deferred.own_part(tid, cookie, left));
                    part.map(|part| joined(chain, part))
                }
            };
            if let Some(own) = own {
                self.report.callchain(chain.len(), own.len());
                *chain = own.into();
                is_changed = true;
            }
        }
        if let (Some(size), Some(stack)) = (self.stack_size, &mut sample.stack_user)
            && self.changes.keeps_stack(event)
        {
            let before = stack.data.0.len();
            if cut_stack(stack, size.bytes()) {
                self.report.stack(before, stack);
                is_changed = true;
            }
        }
        is_changed
    }

    fn sample(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let from = self.changes.from();
        let event = match from.of_record(raw) {
            Some(event) => event,
            None if from.have_one_layout() => 0,
            None => {
                let expected = "the ID of an event, because the events have different layouts";
                let error = ReadError::invalid("SAMPLE record", "id", "an unknown ID", expected);
                return Err(Error::from(error.at(raw.offset)));
            }
        };
        let is_other = self.changes.changes_layout(event);
        if !is_other && !self.may_shorten(event, raw) {
            return next.record(raw);
        }
        if let Some((before, after)) = self.cut_in_place(event, raw) {
            let len = self.buffer.len();
            if let Some(after) = after {
                self.report.callchain(before, after);
            }
            if is_other {
                let cut = after.map_or(0, |after| before.saturating_sub(after).saturating_mul(8));
                self.report.sample(raw.bytes.len(), len, cut as u64);
            }
            return next.record(&RawRecord {
                bytes: &self.buffer,
                ..*raw
            });
        }
        let from = self.changes.from();
        let mut record = Record::decode(raw, &from.layout_of(raw))?;
        let Body::Sample(sample) = &mut record.body else {
            return next.record(raw);
        };
        let parts = self.changes.parts(event);
        let before = self.report.cut();
        sample.keep_parts(parts);
        if !self.shorten(event, sample) && !is_other {
            return next.record(raw);
        }
        let cut = self.report.cut().saturating_sub(before);
        let len = self.write(&record, next)?;
        if is_other {
            self.report.sample(raw.bytes.len(), len, cut);
        }
        Ok(())
    }

    /// Puts the shortened sample into the buffer without decoding it. Returns the number of words
    /// of its callchain before, and after if it is cut; `None` if the sample must be decoded.
    fn cut_in_place(
        &mut self,
        event: usize,
        raw: &RawRecord<'_>,
    ) -> Option<(usize, Option<usize>)> {
        let from = self.changes.from();
        let parts = self.changes.parts(event);
        let chain = from.sample_view(raw)?.callchain();
        let before = chain.len();
        let after = match self.max_stack.filter(|_| parts.has(SampleType::CALLCHAIN)) {
            Some(frames) => match kept(chain, u64::from(frames)) {
                Kept::All => None,
                Kept::Words(after) => Some(after),
                Kept::Deferred(..) => return None,
            },
            None => None,
        };
        self.buffer.clear();
        let words = after.unwrap_or(before);
        from.keep_sample(raw, parts, words, &mut self.buffer)
            .then_some((before, after))
    }

    /// Returns whether a sample whose parts stay may become shorter, without decoding it.
    fn may_shorten(&self, event: usize, raw: &RawRecord<'_>) -> bool {
        if self.stack_size.is_some() && self.changes.keeps_stack(event) {
            return true;
        }
        let chain = self.changes.from().sample_view(raw);
        let chain = chain.and_then(|sample| sample.callchain_part());
        match (self.max_stack, chain) {
            (Some(frames), Some(chain)) => match kept(chain, u64::from(frames)) {
                Kept::All => false,
                Kept::Words(_) => true,
                Kept::Deferred(..) => self.deferred.is_some(),
            },
            // The record ends in it, which decoding it reports.
            (Some(_), None) => self.changes.parts(event).has(SampleType::CALLCHAIN),
            (None, _) => false,
        }
    }

    /// Converts a record other than SAMPLE: its trailer, and what it has of samples.
    fn other(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let from = self.changes.from();
        let event = from.of_record(raw).unwrap_or(0);
        let mut record = Record::decode(raw, &from.layout_of(raw))?;
        let mut is_changed = false;
        let (mut thread, mut id) = (None, None);
        if let Some(trailer) = &mut record.sample_id {
            thread = trailer.tid.as_ref().map(|task| task.tid);
            id = trailer.identifier.or(trailer.id);
            trailer.keep_parts(self.changes.parts(event));
            is_changed = self.changes.changes_trailer(event);
        }
        match &mut record.body {
            Body::CallchainDeferred(body) => {
                let cut = self
                    .deferred
                    .as_ref()
                    .map_or(0, |deferred| deferred.cut(thread, body));
                if cut > 0 {
                    self.report.deferred(cut);
                    is_changed = true;
                }
            }
            Body::Read(body) if self.changes.ungroups(event) => {
                read_value(&mut body.values, id);
                is_changed = true;
            }
            _ => {}
        }
        if !is_changed {
            return next.record(raw);
        }
        let len = self.write(&record, next)?;
        self.report.other(raw.bytes.len(), len);
        Ok(())
    }

    /// Forwards a changed record; returns its size in bytes.
    fn write(&self, record: &Record, next: &mut Link<'_>) -> Result<usize> {
        next.write_for(record, self.changes.to())
    }
}

impl Stage for Thin {
    fn requirements(&self) -> Requirements {
        Requirements {
            events_first: true,
            may_refuse: true,
            reads_ahead: match self.max_stack {
                Some(_) => ReadsAhead::IfSeekable,
                None => ReadsAhead::Never,
            },
            ..Requirements::none()
        }
    }

    fn compressed(&self, kind: RecordType) -> CompressedRecords {
        if self.changes_records() {
            CompressedRecords::Opened(kind)
        } else {
            CompressedRecords::AsTheyAre
        }
    }

    fn look_ahead(&mut self, source: &InputSource, recording: &Recording) -> Result<()> {
        let has_deferred = recording.events.iter().any(|event| defers(&event.attr));
        if let Some(frames) = self.max_stack.filter(|_| has_deferred) {
            self.deferred = Deferred::read(source, recording, u64::from(frames))?;
        }
        Ok(())
    }

    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        self.has_late_events = has_late_events(recording, container_layout);
        let has_deferred = recording.events.iter().any(|event| defers(&event.attr));
        if !has_deferred || self.dropped().has(SampleType::CALLCHAIN) {
            // A stage before this one may have merged them.
            self.deferred = None;
        } else if self.max_stack.is_some() && self.deferred.is_none() {
            let what = "the frames of deferred callchains (CALLCHAIN_DEFERRED) cannot be counted in this stream: \
                        write it to a file first";
            return Err(Error::Refused(what.into()).with_step(Step::MergeDeferred));
        }
        self.set_events(recording)?;
        self.report.set_events(&recording.events, self.dropped());
        recording.events = self.changes.to().clone();
        if self.removes(FeatureId::BRANCH_STACK) {
            recording.features.remove(&FeatureId::BRANCH_STACK);
        }
        change_head(recording, container_layout, &|attr| self.attr(attr))?;
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        match kind {
            RecordType::SAMPLE => self
                .changes
                .changes_samples(self.max_stack, self.stack_size),
            RecordType::HEADER_ATTR | RecordType::HEADER_FEATURE => true,
            RecordType::CALLCHAIN_DEFERRED
                if self.deferred.is_some() || self.dropped().has(SampleType::CALLCHAIN) =>
            {
                true
            }
            RecordType::READ if self.changes.ungroup() => true,
            RecordType::HEADER_BUILD_ID => self.changes.changes_trailers(),
            kind => kind.is_kernel() && self.changes.changes_trailers(),
        }
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        match raw.kind {
            RecordType::SAMPLE => self.sample(raw, next),
            RecordType::CALLCHAIN_DEFERRED if self.dropped().has(SampleType::CALLCHAIN) => {
                self.report.other(raw.bytes.len(), 0);
                Ok(())
            }
            RecordType::HEADER_FEATURE if raw.feature().is_some_and(|id| self.removes(id)) => {
                Ok(())
            }
            RecordType::HEADER_ATTR | RecordType::HEADER_FEATURE => {
                let events = &next.recording().events;
                if !self.has_late_events && events.len() != self.changes.from().len() {
                    self.set_events(next.recording())?;
                }
                match changed_record(raw, &|attr| self.attr(attr))? {
                    Some(bytes) => next.record(&RawRecord {
                        bytes: &bytes,
                        ..*raw
                    }),
                    None => next.record(raw),
                }
            }
            _ => self.other(raw, next),
        }
    }

    fn notes(&self) -> Vec<String> {
        self.report.notes(self.max_stack, self.stack_size)
    }
}
