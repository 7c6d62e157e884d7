//! Merges sched_stat_* with sched_switch events (`perf inject --sched-stat`): where tasks slept,
//! and how long.
//!
//! A sample of `sched:sched_switch` contains the stack with which a task went to sleep. A later
//! sample of `sched:sched_stat_sleep` and similar events contains the duration as its period, but
//! was recorded in the context of the task that woke it up.

use std::collections::HashMap;

use perfdata_core::Recording;
use perfdata_core::attr::{EventType, SampleType};
use perfdata_core::names::EventNames;
use perfdata_core::record::{Body, RawRecord, Record, RecordType, Sample};
use perfdata_tracepoint::{Field, Formats, Like};

use perfdata_convert::count::number_of;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::pipeline::{Link, Requirements, Stage};

/// The names of the events, as perf compares them (tools/perf/builtin-inject.c, 7.2).
const SWITCH: &[u8] = b"sched:sched_switch";
const EXIT: &[u8] = b"sched:sched_process_exit";
const STAT: &[u8] = b"sched:sched_stat_";

/// Approximate memory for a stored sample in bytes, in addition to its own size.
const STORED: usize = 96;

/// Replaces samples of `sched:sched_stat_*` by the last sample of `sched:sched_switch` of the same
/// task, with the period and the time of the former; drops those of `sched:sched_switch` and
/// `sched:sched_process_exit` themselves. Other records pass.
///
/// The records must be in the order of time: see `perfdata_edit::sort::Sort`.
#[derive(Debug, Default)]
pub struct SchedStat {
    names: EventNames,
    /// What each event is, since the last change of the events or their names.
    roles: Option<Vec<Role>>,
    /// The last sample of `sched:sched_switch` of each thread.
    switches: HashMap<u32, Stored>,
    /// Memory for them in bytes.
    held: usize,
    merged: u64,
    /// Number of samples of `sched:sched_stat_*` without a stored sample.
    alone: u64,
}

/// What an event is.
#[derive(Debug, Clone)]
enum Role {
    Switch,
    Exit,
    /// The field with the number of the task, or why it cannot be used.
    Stat(std::result::Result<Field, String>),
    Other,
}

/// A sample of `sched:sched_switch`.
#[derive(Debug)]
struct Stored {
    event: usize,
    misc: u16,
    sample: Box<Sample>,
    size: usize,
}

impl SchedStat {
    /// Returns a stage without stored samples.
    pub fn new() -> Self {
        SchedStat::default()
    }

    /// Returns the roles of all events.
    fn roles(&mut self, recording: &Recording) -> Result<&[Role]> {
        let known = self.roles.take();
        let roles = match known.filter(|roles| roles.len() == recording.events.len()) {
            Some(roles) => roles,
            None => {
                self.names.update(recording);
                let formats = Formats::of(recording, Like::default());
                let count = recording.events.len();
                let role = |at| role(recording, &self.names, formats.as_ref(), at);
                (0..count).map(role).collect::<Result<_>>()?
            }
        };
        Ok(self.roles.insert(roles))
    }

    /// Removes the stored sample of a thread.
    fn forget(&mut self, tid: u32) {
        if let Some(old) = self.switches.remove(&tid) {
            self.held = self.held.saturating_sub(old.size);
        }
    }

    fn store(&mut self, event: usize, raw: &RawRecord<'_>, next: &Link<'_>) -> Result<()> {
        let sample = sample_of(raw, next.recording())?;
        let Some(task) = sample.tid else {
            return Ok(());
        };
        self.forget(task.tid);
        let size = raw.bytes.len().saturating_mul(2).saturating_add(STORED);
        self.held = self.held.saturating_add(size);
        next.limits()
            .check_metadata("samples of sched:sched_switch", self.held as u64)?;
        let stored = Stored {
            event,
            misc: raw.misc,
            sample: Box::new(sample),
            size,
        };
        self.switches.insert(task.tid, stored);
        Ok(())
    }

    /// Processes a sample of a `sched:sched_stat_*` event.
    fn merge(
        &mut self,
        (event, field): (usize, &Field),
        raw: &RawRecord<'_>,
        next: &mut Link<'_>,
    ) -> Result<()> {
        let recording = next.recording();
        let stat = sample_of(raw, recording)?;
        let tid = stat.raw.as_ref().and_then(|raw| field.number(raw));
        let Some(stored) = tid.and_then(|tid| self.switches.get_mut(&(tid as u32))) else {
            self.alone = self.alone.saturating_add(1);
            return Ok(());
        };
        let attr = |at: usize| recording.events.get(at).map(|event| &event.attr);
        let is_same = attr(event)
            .zip(attr(stored.event))
            .is_some_and(|(a, b)| (a.sample_type, a.read_format) == (b.sample_type, b.read_format));
        if !is_same {
            return Err(Error::Refused(
                "sched:sched_switch and the sched:sched_stat_* event have different sample types or read formats: record them in one perf record"
                    .into(),
            ));
        }
        stored.sample.period = stat.period;
        stored.sample.time = stat.time;
        self.merged = self.merged.saturating_add(1);
        let record = Record::new(Body::Sample((*stored.sample).clone())).with_misc(stored.misc);
        next.write(&record)
    }
}

fn sample_of(raw: &RawRecord<'_>, recording: &Recording) -> Result<Sample> {
    match Record::decode(raw, &recording.events.layout_of(raw))?.body {
        Body::Sample(sample) => Ok(sample),
        _ => Err(Error::Refused(format!(
            "the sample at offset {:#x} cannot be decoded",
            raw.offset
        ))),
    }
}

/// Returns what the event at `at` in the list is.
///
/// # Errors
/// Its samples lack something that the merged ones need.
fn role(
    recording: &Recording,
    names: &EventNames,
    formats: Option<&Formats>,
    at: usize,
) -> Result<Role> {
    let Some(event) = recording.events.get(at) else {
        return Ok(Role::Other);
    };
    if event.attr.kind != EventType::TRACEPOINT {
        return Ok(Role::Other);
    }
    let name = Formats::event_name(formats, recording, names, at);
    let name = name.as_ref();
    let (role, needed) = if name == SWITCH {
        (
            Role::Switch,
            SampleType::TID.0 | SampleType::TIME.0 | SampleType::PERIOD.0,
        )
    } else if name == EXIT {
        (Role::Exit, SampleType::TID.0)
    } else if name.starts_with(STAT) {
        let format = formats.and_then(|formats| formats.of_event(&event.attr));
        let field = format.and_then(|format| format.field(b"pid"));
        let field = field.cloned().ok_or_else(|| {
            "TRACING_DATA contains no format of the event with a field pid".to_owned()
        });
        let needed = SampleType::TIME.0 | SampleType::PERIOD.0 | SampleType::RAW.0;
        (Role::Stat(field), needed)
    } else {
        return Ok(Role::Other);
    };
    if event.attr.sample_type.0 & needed == needed {
        return Ok(role);
    }
    let shown = String::from_utf8_lossy(name);
    let lacks = SampleType(needed & !event.attr.sample_type.0);
    let lacks: Vec<&str> = lacks.names().collect();
    let lacks = lacks.join(", ");
    Err(Error::Refused(format!(
        "samples of {shown} lack {lacks}, so that sched_stat events cannot be merged"
    )))
}

impl Stage for SchedStat {
    fn requirements(&self) -> Requirements {
        Requirements {
            events_first: true,
            all_records: true,
            may_refuse: true,
            keeps_samples: false,
            ..Requirements::none()
        }
    }

    fn wants(&self, kind: RecordType) -> bool {
        kind == RecordType::SAMPLE || kind == RecordType::EVENT_UPDATE || kind.is_metadata()
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if raw.kind != RecordType::SAMPLE {
            self.names.see(raw);
            self.roles = None;
            return next.record(raw);
        }
        let recording = next.recording();
        let Some(event) = recording.events.of_record(raw) else {
            return next.record(raw);
        };
        let role = self.roles(recording)?.get(event).cloned();
        match role.unwrap_or(Role::Other) {
            Role::Other => next.record(raw),
            Role::Switch => self.store(event, raw, next),
            Role::Exit => {
                let task = sample_of(raw, recording)?.tid;
                task.into_iter().for_each(|task| self.forget(task.tid));
                Ok(())
            }
            Role::Stat(Ok(field)) => self.merge((event, &field), raw, next),
            Role::Stat(Err(why)) => Err(Error::Refused(why)),
        }
    }

    fn notes(&self) -> Vec<String> {
        vec![format!(
            "{} with the stack of sched:sched_switch; {} without one dropped",
            number_of(self.merged, "sched_stat sample"),
            number_of(self.alone, "sample")
        )]
    }
}
