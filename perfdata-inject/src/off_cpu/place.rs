//! Where a thread stopped, and the event whose samples say it.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_core::Events;
use perfdata_core::attr::{Attr, EventType, SampleType, SoftwareEvent};
use perfdata_core::record::{
    Body, Cpu, CpuMode, RawRecord, Record, Regs, RegsAbi, Sample, SampleView, StackUser, Tid,
};
use perfdata_core::wire::{List, Rest};

use super::chain;
use super::threads::Held;
use crate::new_events;
use perfdata_convert::error::{Error, Result};

/// The parts that the new event takes over from that of its source.
const KEPT: u64 = SampleType::IDENTIFIER.0
    | SampleType::IP.0
    | SampleType::TID.0
    | SampleType::TIME.0
    | SampleType::ID.0
    | SampleType::STREAM_ID.0
    | SampleType::CPU.0
    | SampleType::CGROUP.0;

/// The parts of user stacks, from which callchains are unwound later.
const STACK: u64 = SampleType::REGS_USER.0 | SampleType::STACK_USER.0;

/// Returns the attribute of the new event for a source with the attribute `of`. `with_stack` says
/// whether its samples are those of the source, with their user stacks.
pub(super) fn attr(of: &Attr, with_stack: bool) -> Attr {
    let stack = if with_stack { STACK } else { 0 };
    let parts = of.sample_type.0 & (KEPT | stack)
        | SampleType::PERIOD.0
        | SampleType::CALLCHAIN.0
        | SampleType::TID.0
        | SampleType::TIME.0;
    let has_stack = parts & STACK != 0;
    let plain = new_events::plain(of);
    Attr {
        kind: EventType::SOFTWARE,
        config: SoftwareEvent::BPF_OUTPUT.0,
        sample_period: 1,
        sample_type: SampleType(parts),
        flags: plain
            .flags
            .with_defer_callchain(with_stack && of.flags.defer_callchain() != 0),
        sample_regs_user: of
            .sample_regs_user
            .map(|regs| if has_stack { regs } else { 0 }),
        sample_stack_user: of
            .sample_stack_user
            .map(|size| if has_stack { size } else { 0 }),
        ..plain
    }
}

/// Where a thread stopped.
#[derive(Debug)]
pub(super) struct Place {
    /// Its parts are those of the new event, without the ones that depend on the end of the time.
    sample: Sample,
    /// The callchain, with a marker first.
    pub(super) chain: Vec<u64>,
    /// Whether the callchain is that of an earlier sample.
    pub(super) is_earlier: bool,
}

/// Approximate size of a place without its stack in bytes.
const PLACE: usize = size_of::<Place>();

impl Place {
    /// Returns the place of a sample with which the thread `tid` stopped, for the new event `attr`.
    pub(super) fn of_sample(attr: &Attr, raw: &RawRecord<'_>, sample: Sample, tid: u32) -> Self {
        let has = |part| attr.sample_type.has(part);
        let words = sample.callchain.iter().flat_map(|chain| chain.iter());
        let chain = chain::marked(words.copied(), CpuMode::of(raw.misc));
        Place {
            sample: Sample {
                // The kernel has no number for threads that exit.
                tid: sample.tid.map(|task| match task.tid {
                    u32::MAX => Tid { tid, ..task },
                    _ => task,
                }),
                cpu: sample.cpu,
                cgroup: sample.cgroup.filter(|_| has(SampleType::CGROUP)),
                regs_user: sample.regs_user.filter(|_| has(SampleType::REGS_USER)),
                stack_user: sample.stack_user.filter(|_| has(SampleType::STACK_USER)),
                ..Sample::default()
            },
            chain,
            is_earlier: false,
        }
    }

    /// Returns the place of a thread that did not stop anywhere.
    pub(super) fn of_task(attr: &Attr, task: Tid) -> Self {
        let has = |part| attr.sample_type.has(part);
        let regs = Regs {
            abi: RegsAbi::NONE,
            regs: List(Vec::new()),
        };
        let stack = StackUser {
            size: 0,
            data: Rest(Vec::new()),
            dyn_size: None,
        };
        Place {
            sample: Sample {
                tid: Some(task),
                cgroup: has(SampleType::CGROUP).then_some(0),
                regs_user: has(SampleType::REGS_USER).then_some(regs),
                stack_user: has(SampleType::STACK_USER).then_some(stack),
                ..Sample::default()
            },
            chain: Vec::new(),
            is_earlier: false,
        }
    }

    /// Sets the CPU.
    pub(super) fn set_cpu(&mut self, cpu: Option<u32>) {
        self.sample.cpu = cpu.map(|cpu| Cpu { cpu, reserved: 0 });
    }

    /// Returns the process and the thread.
    pub(super) fn task(&self) -> Option<Tid> {
        self.sample.tid
    }

    /// Returns the sample of the event `attr` with this ID, time, period in nanoseconds, and
    /// callchain.
    pub(super) fn sample(
        &self,
        id: u64,
        attr: &Attr,
        (time, period): (u64, u64),
        chain: Vec<u64>,
    ) -> Record {
        let has = |part| attr.sample_type.has(part);
        let (ip, mode) = chain::leaf(&chain);
        let sample = Sample {
            identifier: has(SampleType::IDENTIFIER).then_some(id),
            ip: has(SampleType::IP).then_some(ip),
            tid: Some(self.sample.tid.unwrap_or(Tid { pid: 0, tid: 0 })),
            time: Some(time),
            id: has(SampleType::ID).then_some(id),
            stream_id: has(SampleType::STREAM_ID).then_some(id),
            cpu: has(SampleType::CPU).then(|| self.sample.cpu.unwrap_or_default()),
            period: Some(period),
            callchain: Some(chain.into()),
            ..self.sample.clone()
        };
        Record::new(Body::Sample(sample)).with_misc(mode.0)
    }
}

impl Held for Arc<Place> {
    fn held(&self) -> usize {
        let stack = self.sample.stack_user.as_ref();
        let stack = stack.map_or(0, |stack| stack.data.0.len());
        let words = self.chain.len().saturating_mul(8);
        PLACE.saturating_add(words).saturating_add(stack)
    }
}

/// The last callchain of each thread.
#[derive(Debug, Default)]
pub(super) struct LastChains {
    list: HashMap<u32, Last, RandomState>,
    /// Number of all words.
    words: usize,
}

#[derive(Debug)]
struct Last {
    task: Tid,
    cpu: Option<u32>,
    chain: Vec<u64>,
}

impl LastChains {
    /// Keeps the callchain of a sample.
    pub(super) fn keep(&mut self, view: &SampleView<'_>, misc: u16) {
        let Some(task) = view.tid() else {
            return;
        };
        let last = self.list.entry(task.tid).or_insert(Last {
            task,
            cpu: None,
            chain: Vec::new(),
        });
        self.words = self.words.saturating_sub(last.chain.len());
        last.chain = chain::marked(view.callchain(), CpuMode::of(misc));
        (last.task, last.cpu) = (task, view.cpu());
        self.words = self.words.saturating_add(last.chain.len());
    }

    /// Removes the callchain of a thread.
    pub(super) fn forget(&mut self, tid: u32) {
        if let Some(old) = self.list.remove(&tid) {
            self.words = self.words.saturating_sub(old.chain.len());
        }
    }

    /// Returns the place of a thread that stops now, with its last callchain.
    pub(super) fn place(&self, attr: &Attr, task: Tid) -> Place {
        let mut place = Place::of_task(attr, task);
        if let Some(last) = self.list.get(&task.tid) {
            if task.pid == u32::MAX {
                place.sample.tid = Some(last.task);
            }
            place.set_cpu(last.cpu);
            place.chain.clone_from(&last.chain);
            place.is_earlier = !last.chain.is_empty();
        }
        place
    }

    /// Returns the approximate size in bytes.
    pub(super) fn held(&self) -> usize {
        let entries = self.list.len().saturating_mul(size_of::<Last>() + 16);
        entries.saturating_add(self.words.saturating_mul(8))
    }
}

/// Decodes a sample.
pub(super) fn decode(raw: &RawRecord<'_>, events: &Events) -> Result<Sample> {
    match Record::decode(raw, &events.layout_of(raw))?.body {
        Body::Sample(sample) => Ok(sample),
        _ => Err(Error::Refused(format!(
            "the sample at offset {:#x} cannot be decoded",
            raw.offset
        ))),
    }
}
