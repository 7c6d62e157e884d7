//! Which events of a recording say when threads stop and run.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_core::Recording;
use perfdata_core::attr::{Attr, EventType, SampleType};
use perfdata_core::names::EventNames;
use perfdata_tracepoint::{Field, Format, Formats, Like, NoFunctions};

use super::reason::Reason;
use perfdata_convert::error::{Error, Result};

/// What an event is.
#[derive(Debug, Clone)]
pub(super) enum Role {
    /// `sched:sched_switch`.
    Switch(Switch),
    /// `sched:sched_waking`, `sched:sched_wakeup` and `sched:sched_wakeup_new`, with the thread.
    Wake { pid: Field },
    /// `sched:sched_stat_*`, with the thread and the delay in nanoseconds.
    Stat {
        pid: Field,
        delay: Field,
        stat: Stat,
    },
    /// Samples of `perf record --off-cpu`.
    OffCpu,
    /// Another one.
    Other,
}

/// The fields of `sched:sched_switch`.
#[derive(Debug, Clone)]
pub(super) struct Switch {
    /// The number of the format.
    id: u64,
    prev_pid: Field,
    prev_state: Field,
    next_pid: Field,
}

/// What an event `sched:sched_stat_*` measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stat {
    Sleep,
    /// The part of `Blocked` in which the thread waited for input or output.
    Iowait,
    Blocked,
    Wait,
}

/// What says when threads stop and run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Samples of `sched:sched_switch`, and SWITCH records where they add something.
    Switches,
    /// SWITCH or SWITCH_CPU_WIDE records.
    Records,
    /// Samples of `perf record --off-cpu`.
    OffCpu,
    /// Samples of `sched:sched_stat_*`.
    Stats,
}

impl Source {
    /// Returns the description.
    pub(super) fn name(self) -> &'static str {
        match self {
            Source::Switches => "sched:sched_switch",
            Source::Records => "SWITCH records",
            Source::OffCpu => "offcpu-time",
            Source::Stats => "sched:sched_stat events",
        }
    }
}

/// The roles of all events.
#[derive(Debug, Default)]
pub(super) struct Roles {
    list: Vec<Arc<Role>>,
    formats: Option<Formats>,
    /// The reasons of the values of `prev_state`.
    reasons: HashMap<u64, Option<Reason>, RandomState>,
}

/// A sample of `sched:sched_switch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Switched {
    pub(super) prev: u32,
    /// Why it stopped; `None` if it is dead.
    pub(super) reason: Option<Reason>,
    pub(super) next: u32,
}

/// The parts that samples of events with a role need.
const NEEDED: u64 = SampleType::TIME.0 | SampleType::TID.0 | SampleType::RAW.0;

impl Roles {
    /// Returns the roles of the events of `recording`.
    ///
    /// # Errors
    /// The samples of an event lack something.
    pub(super) fn of(recording: &Recording, names: &EventNames) -> Result<Self> {
        let formats = Formats::of(recording, Like::default());
        let count = recording.events.len();
        let role = |at| role(recording, names, formats.as_ref(), at).map(Arc::new);
        Ok(Roles {
            list: (0..count).map(role).collect::<Result<_>>()?,
            formats,
            reasons: HashMap::default(),
        })
    }

    /// Returns the role of an event.
    pub(super) fn get(&self, event: usize) -> Option<Arc<Role>> {
        self.list.get(event).cloned()
    }

    /// Returns the position of the first event with such a role.
    pub(super) fn position(&self, is: impl Fn(&Role) -> bool) -> Option<usize> {
        self.list.iter().position(|role| is(role))
    }

    /// Returns the best source.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn source(&self, recording: &Recording) -> Result<Source> {
        let has = |is: fn(&Role) -> bool| self.list.iter().any(|role| is(role));
        let mut attrs = recording.events.iter().map(|event| &event.attr);
        if has(|role| matches!(role, Role::Switch(_))) {
            Ok(Source::Switches)
        } else if has(|role| matches!(role, Role::OffCpu)) {
            Ok(Source::OffCpu)
        } else if attrs.any(|attr| attr.flags.context_switch() != 0) {
            Ok(Source::Records)
        } else if has(|role| matches!(role, Role::Stat { .. })) {
            Ok(Source::Stats)
        } else {
            Err(Error::Refused(format!(
                "the recording does not contain when threads stopped and ran again: record it with {}",
                super::RECORD
            )))
        }
    }

    /// Returns the content of a sample of `sched:sched_switch`.
    pub(super) fn switched(&mut self, switch: &Switch, raw: &[u8]) -> Option<Switched> {
        let state = switch.prev_state.number(raw)?;
        let reason = match self.reasons.get(&state) {
            Some(&known) => known,
            None => {
                let format = self.formats.as_ref()?.by_id(switch.id)?;
                let reason = reason(format, state, raw);
                // A recording has a handful of states.
                if self.reasons.len() < 1024 {
                    self.reasons.insert(state, reason);
                }
                reason
            }
        };
        Some(Switched {
            prev: switch.prev_pid.number(raw)? as u32,
            reason,
            next: switch.next_pid.number(raw)? as u32,
        })
    }
}

/// Returns the reason of a state by the letter that the kernel's format prints for it: the numbers
/// have changed several times.
fn reason(format: &Format, state: u64, raw: &[u8]) -> Option<Reason> {
    const STATE: &[u8] = b"prev_state=";
    let mut text = Vec::new();
    format.print(raw, &mut NoFunctions, &mut text);
    let letters = text
        .windows(STATE.len())
        .rposition(|window| window == STATE)
        .and_then(|at| text.get(at.saturating_add(STATE.len())..));
    match letters {
        Some([letter, ..]) if letter.is_ascii_alphabetic() => {
            Reason::of_letters(letters.unwrap_or_default())
        }
        // These have not changed.
        _ => Some(match state {
            0 => Reason::Preempted,
            1 => Reason::Sleep,
            2 => Reason::Disk,
            _ => Reason::Blocked,
        }),
    }
}

/// Returns what the event at `at` in the list is.
fn role(
    recording: &Recording,
    names: &EventNames,
    formats: Option<&Formats>,
    at: usize,
) -> Result<Role> {
    let Some(event) = recording.events.get(at) else {
        return Ok(Role::Other);
    };
    let named = names.get(recording, at).unwrap_or_default();
    if crate::expand_off_cpu::is_off_cpu(&event.attr, &named) {
        return Ok(Role::OffCpu);
    }
    if event.attr.kind != EventType::TRACEPOINT {
        return Ok(Role::Other);
    }
    let Some(format) = formats.and_then(|formats| formats.of_event(&event.attr)) else {
        return match named.starts_with(b"sched:sched_switch") {
            true => Err(Error::Refused(
                "TRACING_DATA contains no format of sched:sched_switch".into(),
            )),
            false => Ok(Role::Other),
        };
    };
    if format.system() != b"sched" {
        return Ok(Role::Other);
    }
    let field = |name: &str| {
        let field = format.field(name.as_bytes()).cloned();
        field.ok_or_else(|| {
            let event = String::from_utf8_lossy(format.name());
            Error::Refused(format!("the format of sched:{event} has no field {name}"))
        })
    };
    let stat = match format.name() {
        b"sched_switch" => {
            check(&event.attr, format.name())?;
            if !has_all(&event.attr) {
                return Err(Error::Refused(
                    "sched:sched_switch has samples of some switches only: record it without -F and -c, which cpu-clock/freq=99/ replaces for another event"
                        .into(),
                ));
            }
            return Ok(Role::Switch(Switch {
                id: format.id(),
                prev_pid: field("prev_pid")?,
                prev_state: field("prev_state")?,
                next_pid: field("next_pid")?,
            }));
        }
        b"sched_waking" | b"sched_wakeup" | b"sched_wakeup_new" if has_all(&event.attr) => {
            check(&event.attr, format.name())?;
            let pid = field("pid")?;
            return Ok(Role::Wake { pid });
        }
        b"sched_stat_sleep" => Stat::Sleep,
        b"sched_stat_iowait" => Stat::Iowait,
        b"sched_stat_blocked" => Stat::Blocked,
        b"sched_stat_wait" => Stat::Wait,
        _ => return Ok(Role::Other),
    };
    check(&event.attr, format.name())?;
    let (pid, delay) = (field("pid")?, field("delay")?);
    Ok(Role::Stat { pid, delay, stat })
}

/// Returns whether there is a sample each time.
fn has_all(attr: &Attr) -> bool {
    attr.flags.freq() == 0 && attr.sample_period == 1
}

/// Refuses samples without the parts that are needed.
fn check(attr: &Attr, name: &[u8]) -> Result<()> {
    let missing = SampleType(NEEDED & !attr.sample_type.0);
    if missing.0 == 0 {
        return Ok(());
    }
    let missing: Vec<&str> = missing.names().collect();
    let name: Cow<'_, str> = String::from_utf8_lossy(name);
    Err(Error::Refused(format!(
        "samples of sched:{name} lack {}",
        missing.join(", ")
    )))
}
