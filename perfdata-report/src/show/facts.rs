//! The main facts about a recording: the command, time and duration, the distribution of the
//! samples, and losses.

use std::time::{SystemTime, UNIX_EPOCH};

use perfdata_core::feature::{ClockData, Feature, FeatureId, SampleTime};
use perfdata_core::record::{
    Aux, AuxFlags, Lost, LostSamples, MISC_LOST_SAMPLES_BPF, RawRecord, RecordType,
};
use perfdata_core::{DecodeContext, Recording};
use perfdata_symbols::machine::is_of_this_host;

use super::comms::Comms;
use super::date::Date;
use super::seconds;
use perfdata_convert::io::Written;
use perfdata_convert::json::Json;
use perfdata_convert::support::shell;
use perfdata_convert::support::text::escaped;

/// Maximum number of CPUs that are counted separately.
const CPUS: usize = 1 << 12;
/// Maximum number of rows of a table in text, and in JSON.
const TOP: usize = 5;
const ROWS: usize = 100;
/// Maximum number of characters of a command line.
const COMMAND: usize = 400;

/// Sums of samples and losses.
#[derive(Debug, Default)]
pub struct Facts {
    samples: u64,
    /// Samples by the index of the event, and by CPU.
    events: Vec<u64>,
    cpus: Vec<u64>,
    /// Samples of CPUs with higher numbers.
    other_cpus: u64,
    comms: Comms,
    /// The final result of `comms`, and the number of samples without a name.
    by_comm: (Vec<(Vec<u8>, u64)>, u64),
    times: Option<SampleTime>,
    /// Kernel records, lost records, lost samples, and samples that a filter dropped.
    kernel_records: u64,
    lost_records: u64,
    lost_samples: u64,
    filtered_samples: u64,
    throttled: u64,
    /// AUX records, and those flagged as truncated.
    aux: u64,
    truncated_aux: u64,
    /// When the file was written.
    written: Option<Written>,
}

impl Facts {
    /// Returns empty sums for a file that was written at this time.
    pub(super) fn new(written: Option<Written>) -> Self {
        Facts {
            written,
            ..Facts::default()
        }
    }

    /// Adds the number of samples that [`sample`](Self::sample) was called for.
    pub(super) fn count(&mut self, samples: u64) {
        self.samples = self.samples.saturating_add(samples);
    }

    /// Adds a sample, without counting it.
    #[inline]
    pub(super) fn sample(&mut self, record: &RawRecord<'_>, recording: &Recording) {
        let Some((event, sample)) = recording.events.look(record) else {
            return;
        };
        match self.events.get_mut(event) {
            Some(sum) => *sum = sum.saturating_add(1),
            None => {
                self.events.resize(event.saturating_add(1), 0);
                self.events.last_mut().into_iter().for_each(|sum| *sum = 1);
            }
        }
        if let Some(cpu) = sample.cpu() {
            match self.cpus.get_mut(cpu as usize) {
                Some(sum) => *sum = sum.saturating_add(1),
                None => self.add_cpu(cpu),
            }
        }
        if let Some(time) = sample.time() {
            let known = self.times.get_or_insert(SampleTime {
                first: time,
                last: time,
            });
            (known.first, known.last) = (known.first.min(time), known.last.max(time));
        }
        self.comms.sample(&sample);
    }

    /// Adds the first sample of a CPU.
    #[cold]
    fn add_cpu(&mut self, cpu: u32) {
        let cpu = usize::try_from(cpu).unwrap_or(CPUS);
        if cpu < CPUS {
            self.cpus.resize(cpu.saturating_add(1), 0);
        }
        let sum = self.cpus.get_mut(cpu).unwrap_or(&mut self.other_cpus);
        *sum = sum.saturating_add(1);
    }

    /// Adds a record of another type.
    pub(super) fn other(&mut self, record: &RawRecord<'_>, recording: &Recording) {
        self.kernel_records = self
            .kernel_records
            .saturating_add(u64::from(record.kind.is_kernel()));
        let layout = DecodeContext::default();
        match record.kind {
            RecordType::LOST => {
                let lost = record
                    .decode_body::<Lost>(layout)
                    .map_or(0, |body| body.lost);
                self.lost_records = self.lost_records.saturating_add(lost);
            }
            RecordType::LOST_SAMPLES => {
                let is_filtered = record.misc & MISC_LOST_SAMPLES_BPF != 0;
                let sum = if is_filtered {
                    &mut self.filtered_samples
                } else {
                    &mut self.lost_samples
                };
                let lost = record
                    .decode_body::<LostSamples>(layout)
                    .map_or(0, |body| body.lost);
                *sum = sum.saturating_add(lost);
            }
            RecordType::THROTTLE => self.throttled = self.throttled.saturating_add(1),
            RecordType::AUX => {
                self.aux = self.aux.saturating_add(1);
                let flags = record
                    .decode_body::<Aux>(layout)
                    .map_or(AuxFlags(0), |body| body.flags);
                self.truncated_aux += u64::from(flags.has(AuxFlags::TRUNCATED));
            }
            _ => self.comms.see(record, &recording.events),
        }
    }

    /// Ends the pass.
    pub(super) fn finish(&mut self) {
        self.by_comm = std::mem::take(&mut self.comms).finish();
    }

    /// Returns the times of the first and the last sample.
    pub fn times(&self) -> Option<&SampleTime> {
        self.times.as_ref()
    }

    /// Returns the report for people as labels and texts. `names` are the names of the events.
    pub(crate) fn lines(
        &self,
        recording: &Recording,
        names: &[String],
    ) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        if let Some(words) = command_line(recording) {
            let words: Vec<String> = words.iter().map(|word| shell::quoted_bytes(word)).collect();
            let mut text = words.join(" ");
            if let Some((cut, _)) = text.char_indices().nth(COMMAND) {
                text.truncate(cut);
                text.push('…');
            }
            lines.push(("command line", text));
        }
        // A new file of another machine was downloaded or unpacked: its time says nothing.
        let is_told = |written: &Written| !written.is_new || is_of_this_host(recording);
        if let Some(date) = self.recorded(recording) {
            lines.push(("recorded", date.text()));
        } else if let Some(written) = self.written.filter(is_told) {
            let date = date_of(written.modified).text();
            lines.push(("recorded", format!("{date}, when the file was written")));
        }
        let mut samples = self.samples.to_string();
        if let Some(SampleTime { first, last }) = &self.times {
            let duration = seconds(last.saturating_sub(*first));
            samples += &format!(
                " in {duration} s, from {} to {}",
                seconds(*first),
                seconds(*last)
            );
        }
        lines.push(("samples", samples));
        let event = |at: usize| names.get(at).cloned().unwrap_or_default();
        let cpu = |cpu: usize| format!("CPU {cpu}");
        let comm = |at: usize| match self.by_comm.0.get(at) {
            Some((name, _)) if !name.is_empty() => escaped(name),
            _ => "\"\"".into(),
        };
        let named: Vec<u64> = self.events.iter().take(names.len()).copied().collect();
        let comms: Vec<u64> = self.by_comm.0.iter().map(|row| row.1).collect();
        let tables = [
            ("by event", self.top(&named, &event, 2)),
            ("by CPU", self.top(&self.cpus, &cpu, 1)),
            ("by comm", self.top(&comms, &comm, 1)),
        ];
        for (what, text) in tables {
            lines.extend(text.map(|text| (what, text)));
        }
        if self.lost_samples > 0 {
            let share = percent(
                self.lost_samples,
                self.samples.saturating_add(self.lost_samples),
            );
            lines.push((
                "LOST samples",
                format!("{}, {share} of all samples", self.lost_samples),
            ));
        }
        if self.lost_records > 0 {
            let all = self
                .kernel_records
                .saturating_add(self.samples)
                .saturating_add(self.lost_records);
            let share = percent(self.lost_records, all);
            lines.push((
                "LOST records",
                format!("{}, {share} of the kernel's records", self.lost_records),
            ));
        }
        if self.truncated_aux > 0 {
            lines.push((
                "LOST AUX data",
                format!("in {} of {} AUX records", self.truncated_aux, self.aux),
            ));
        }
        if self.throttled > 0 {
            lines.push((
                "throttled",
                format!(
                    "{} times: there were more samples than the kernel allows",
                    self.throttled
                ),
            ));
        }
        if self.filtered_samples > 0 {
            lines.push((
                "filtered",
                format!("{} samples were dropped by a filter", self.filtered_samples),
            ));
        }
        lines
    }

    /// Returns the first rows of a table of `sums` on one line, with the `name` of each; `None` if
    /// the table has fewer than `least` rows.
    fn top(&self, sums: &[u64], name: &dyn Fn(usize) -> String, least: usize) -> Option<String> {
        let mut rows: Vec<_> = sums
            .iter()
            .enumerate()
            .filter(|(_, sum)| **sum > 0)
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.1));
        if rows.is_empty() || sums.len() < least {
            return None;
        }
        let shown: Vec<String> = rows
            .iter()
            .take(TOP)
            .map(|&(at, &sum)| format!("{} {sum} ({})", name(at), percent(sum, self.samples)))
            .collect();
        let more = rows.len().saturating_sub(TOP);
        let more = if more > 0 {
            format!(", and {more} more")
        } else {
            String::new()
        };
        Some(format!("{}{more}", shown.join(", ")))
    }

    /// Returns the date of the first sample, if the recording contains it (CLOCK_DATA).
    fn recorded(&self, recording: &Recording) -> Option<Date> {
        let Feature::ClockData(ClockData {
            wall_clock,
            clock_time,
            ..
        }) = recording.feature(FeatureId::CLOCK_DATA)?.ok()?.value
        else {
            return None;
        };
        // perf stat record writes zeros.
        if (wall_clock, clock_time) == (0, 0) {
            return None;
        }
        let since = self
            .times
            .as_ref()
            .map_or(0, |times| i128::from(times.first) - i128::from(clock_time));
        let nanoseconds = i128::from(wall_clock).checked_add(since)?;
        Some(Date::from_unix(
            i64::try_from(nanoseconds.div_euclid(1_000_000_000)).ok()?,
        ))
    }

    /// Writes the report for programs as the object `summary`. `names` are the names of the events.
    pub(super) fn json(&self, json: &mut Json, recording: &Recording, names: &[Vec<u8>]) {
        json.object("summary");
        if let Some(words) = command_line(recording) {
            json.texts("command_line", &words);
        }
        if let Some(date) = self.recorded(recording) {
            json.text("recorded", date.iso().as_bytes());
        }
        if let Some(written) = self.written {
            let date = date_of(written.modified);
            json.text("file_time", date.iso().as_bytes());
        }
        if let Some(SampleTime { first, last }) = &self.times {
            json.number("duration", last.saturating_sub(*first));
        }
        json.number("samples", self.samples);
        let row = |json: &mut Json, key: &dyn Fn(&mut Json), samples: u64| {
            json.object("");
            key(json);
            json.number("samples", samples);
            json.close();
        };
        json.list("by_event");
        for (event, (name, &sum)) in names
            .iter()
            .zip(&self.events)
            .enumerate()
            .filter(|(_, (_, sum))| **sum > 0)
        {
            row(
                json,
                &|json| {
                    json.number("event", event as u64);
                    json.text("name", name);
                },
                sum,
            );
        }
        json.close();
        json.list("by_cpu");
        for (cpu, &sum) in self.cpus.iter().enumerate().filter(|(_, sum)| **sum > 0) {
            row(json, &|json| json.number("cpu", cpu as u64), sum);
        }
        json.close();
        json.list("by_comm");
        let (shown, rest) = self
            .by_comm
            .0
            .split_at_checked(ROWS)
            .unwrap_or((&self.by_comm.0, &[]));
        for (name, sum) in shown {
            row(json, &|json| json.text("comm", name), *sum);
        }
        json.close();
        let others = rest
            .iter()
            .fold(self.by_comm.1, |sum, row| sum.saturating_add(row.1));
        if others > 0 {
            json.number("other_comms", others);
        }
        for (name, number) in [
            ("lost_records", self.lost_records),
            ("lost_samples", self.lost_samples),
            ("filtered_samples", self.filtered_samples),
            ("truncated_aux", self.truncated_aux),
            ("throttled", self.throttled),
        ] {
            json.number(name, number);
        }
        json.close();
    }
}

/// Returns the command line of perf record.
fn command_line(recording: &Recording) -> Option<Vec<Vec<u8>>> {
    let Feature::CmdLine(words) = recording.feature(FeatureId::CMDLINE)?.ok()?.value else {
        return None;
    };
    let words: Vec<_> = words.iter().map(|word| word.text().to_vec()).collect();
    (!words.is_empty()).then_some(words)
}

fn date_of(time: SystemTime) -> Date {
    let since = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    Date::from_unix(i64::try_from(since).unwrap_or(0))
}

/// Formats a share in percent, rounded to the nearest; a small nonzero share is not shown as 0.
fn percent(part: u64, whole: u64) -> String {
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    if part > 0 && percent < 0.05 {
        "less than 0.1 %".into()
    } else {
        format!("{percent:.1} %")
    }
}
