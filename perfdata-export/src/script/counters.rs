//! The counts of `perf stat record` (tools/perf/builtin-script.c, `__process_stat`;
//! tools/perf/util/stat.c, `process_counter_values`, 7.2).

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::Recording;
use perfdata_core::record::{Body, Stat, StatConfigTag, StatRound};
use perfdata_tracepoint::Like;

use super::events::Events;
use super::numbers::{push_bytes, push_number, push_signed};

/// Counts of an event, and the times that it was enabled and that it ran.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    value: u64,
    enabled: u64,
    running: u64,
}

impl Count {
    fn since(self, before: Count) -> Count {
        Count {
            value: self.value.wrapping_sub(before.value),
            enabled: self.enabled.wrapping_sub(before.enabled),
            running: self.running.wrapping_sub(before.running),
        }
    }

    /// Returns the count for the whole time that the event was enabled.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "perf computes with these types, and the result is a count"
    )]
    fn scaled(self) -> Count {
        let value = match (self.running, self.enabled) {
            (0, _) => 0,
            (running, enabled) if running < enabled => {
                (self.value as f64 * enabled as f64 / running as f64) as u64
            }
            _ => self.value,
        };
        Count { value, ..self }
    }
}

/// The counters of a recording.
#[derive(Debug, Default)]
pub(super) struct ShownCounters {
    cpus: Option<Vec<i64>>,
    threads: Option<Vec<i64>>,
    is_unscaled: bool,
    /// The counts by event, CPU and thread, and those of the last round.
    counts: HashMap<(usize, i64, u64), (Count, Count), RandomState>,
    has_header: bool,
}

impl ShownCounters {
    /// Follows a record of `perf stat`, and appends the counts at the end of a round.
    pub fn see(
        &mut self,
        body: &Body,
        recording: &Recording,
        events: &Events,
        like: Like,
        out: &mut Vec<u8>,
    ) {
        match body {
            Body::StatConfig(config) => {
                let scale = config
                    .settings
                    .iter()
                    .find(|setting| setting.tag == StatConfigTag::SCALE);
                self.is_unscaled = scale.is_some_and(|scale| scale.val == 0);
            }
            Body::CpuMap(map) if self.cpus.is_none() => self.cpus = Some(map.cpus()),
            Body::ThreadMap(map) if self.threads.is_none() => {
                let ids = map.threads.iter().map(|thread| thread.pid.cast_signed());
                // perf stores thread IDs in 32 bits.
                let ids = ids.map(|id| i64::from(id as i32));
                self.threads = Some(ids.collect());
            }
            Body::Stat(stat) => self.count(stat, recording),
            Body::StatRound(round) => self.push_round(round, events, like, out),
            _ => {}
        }
    }

    fn count(&mut self, stat: &Stat, recording: &Recording) {
        let Some(event) = recording.events.of_id_strict(stat.id) else {
            return;
        };
        let count = Count {
            value: stat.val,
            enabled: stat.ena,
            running: stat.run,
        };
        let cpu = i64::from(stat.cpu.cast_signed());
        let key = (event, cpu, u64::from(stat.thread));
        self.counts.entry(key).or_default().0 = count;
    }

    /// Appends all counts.
    fn push_round(&mut self, round: &StatRound, events: &Events, like: Like, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.has_header, true) {
            let columns = [
                ("CPU", 3),
                ("THREAD", 8),
                ("VAL", 15),
                ("ENA", 15),
                ("RUN", 15),
                ("TIME", 15),
            ];
            for (name, width) in columns {
                push_bytes(out, name.as_bytes(), width);
                out.push(b' ');
            }
            out.extend_from_slice(b"EVENT\n");
        }
        let (Some(cpus), Some(threads)) = (&self.cpus, &self.threads) else {
            return;
        };
        for (number, event) in events.iter().enumerate() {
            for (index, &thread) in threads.iter().enumerate() {
                for &cpu in cpus {
                    let key = (number, cpu, index as u64);
                    let count = match self.counts.get_mut(&key) {
                        Some((count, last)) => {
                            // perf 6.1 shows the sums since the start.
                            if like > Like::Perf6_1 {
                                let whole = *count;
                                *count = whole.since(*last);
                                *last = whole;
                            }
                            if !self.is_unscaled {
                                *count = count.scaled();
                            }
                            *count
                        }
                        None => Count::default(),
                    };
                    push_signed(out, cpu, 3);
                    out.push(b' ');
                    push_signed(out, thread, 8);
                    for number in [count.value, count.enabled, count.running, round.time] {
                        out.push(b' ');
                        push_number(out, number, 15);
                    }
                    out.push(b' ');
                    out.extend_from_slice(&event.name);
                    out.push(b'\n');
                }
            }
        }
    }
}
