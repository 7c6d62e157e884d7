//! Samples with resolved addresses, as shown by `perfconv dump --resolved`.

use std::fmt::Write as _;
use std::io::Write;

use perfdata_core::error::Problem;
use perfdata_core::record::CpuMode;
use perfdata_session::{Branch, Frame, Sample, Samples, UserCallchains};

use super::seconds;
use perfdata_convert::count::number_of;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::Input;
use perfdata_convert::json::Json;
use perfdata_convert::support::text::{escaped, quoted};

/// The format of the samples.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Resolved {
    /// Writes JSON instead of text.
    pub json: bool,
    /// Maximum number of samples to show.
    pub limit: Option<u64>,
    /// Number of samples that are not shown, from the first one on.
    pub skip: u64,
}

/// Bytes of output that are collected before they are written.
const BLOCK: usize = 64 << 10;

/// Maximum number of errors of single records that are reported.
const MOST_DAMAGE: usize = 8;

impl Resolved {
    /// Sets [`json`](Self::json).
    #[must_use]
    pub fn with_json(self, json: bool) -> Self {
        Resolved { json, ..self }
    }

    /// Sets [`skip`](Self::skip).
    #[must_use]
    pub fn with_skip(self, skip: u64) -> Self {
        Resolved { skip, ..self }
    }

    /// Sets [`limit`](Self::limit).
    #[must_use]
    pub fn with_limit(self, limit: Option<u64>) -> Self {
        Resolved { limit, ..self }
    }

    /// Writes the samples of `input` to `out`, with the user callchains that `unwinder` makes of
    /// user stacks. Returns the damage that makes parts of it unreadable.
    ///
    /// # Errors
    /// The input cannot be read, or the output cannot be written.
    pub fn run(
        &self,
        input: Input,
        out: &mut dyn Write,
        unwinder: Option<Box<dyn UserCallchains>>,
    ) -> Result<Vec<String>> {
        let (reader, _) = input.reader()?;
        let mut samples = Samples::new(reader)?;
        if let Some(unwinder) = unwinder {
            samples = samples.with_user_callchains(unwinder);
        }
        let (mut text, mut line) = (Vec::new(), String::new());
        let (mut damage, mut errors) = (Vec::new(), 0);
        let (mut skipped, mut left) = (0, self.limit.unwrap_or(u64::MAX));
        while left > 0 {
            let sample = match samples.next() {
                Ok(Some(sample)) => sample,
                Ok(None) => break,
                Err(error) if error.is_io() || matches!(error.problem(), Problem::Limit { .. }) => {
                    return Err(error.into());
                }
                Err(error) => {
                    if damage.len() < MOST_DAMAGE {
                        damage.push(error.to_string());
                    }
                    errors += 1;
                    continue;
                }
            };
            if skipped < self.skip {
                skipped += 1;
                continue;
            }
            if self.json {
                text = json(text, &sample);
            } else {
                line.clear();
                push_text(&mut line, &sample);
                text.extend_from_slice(line.as_bytes());
            }
            left -= 1;
            if text.len() >= BLOCK {
                write(&mut text, out)?;
            }
        }
        write(&mut text, out)?;
        if errors > damage.len() {
            damage.push(format!(
                "{} cannot be read",
                number_of((errors - damage.len()) as u64, "more record")
            ));
        }
        match samples.session().counts().unknown_event {
            0 => {}
            1 => damage.push("1 sample with an unknown event ID is not shown".into()),
            count => damage.push(format!(
                "{count} samples with an unknown event ID are not shown"
            )),
        }
        Ok(damage)
    }
}

fn write(text: &mut Vec<u8>, out: &mut dyn Write) -> Result<()> {
    out.write_all(text).map_err(Error::io("standard output"))?;
    text.clear();
    Ok(())
}

/// Appends a line for the sample, and one for each frame and branch.
fn push_text(out: &mut String, sample: &Sample<'_>) {
    let _ = write!(
        out,
        "{:#x} comm={}",
        sample.record().offset,
        quoted(sample.comm())
    );
    if let Some(tid) = sample.tid() {
        let _ = write!(
            out,
            " pid={} tid={}",
            tid.pid.cast_signed(),
            tid.tid.cast_signed()
        );
    }
    if let Some(cpu) = sample.cpu() {
        let _ = write!(out, " cpu={cpu}");
    }
    if let Some(time) = sample.time() {
        let _ = write!(out, " time={}", seconds(time));
    }
    let _ = write!(
        out,
        " event={} weight={}",
        quoted(sample.event_name()),
        sample.weight()
    );
    if sample.is_incomplete() {
        out.push_str(" incomplete");
    }
    out.push('\n');
    for frame in sample.frames() {
        out.push_str("    ");
        push_frame(out, &frame);
        out.push('\n');
    }
    for Branch { from, to, .. } in sample.branches() {
        out.push_str("    branch ");
        push_frame(out, &from);
        out.push_str(" -> ");
        push_frame(out, &to);
        out.push('\n');
    }
}

fn push_frame(out: &mut String, frame: &Frame<'_>) {
    let _ = write!(out, "{:#x}", frame.address);
    if let Some((dso, offset)) = frame.dso().zip(frame.offset()) {
        let _ = write!(out, " {}+{offset:#x}", escaped(&dso.name));
    } else if let Some(dso) = frame.dso_before_exec() {
        let _ = write!(out, " (before exec: {})", escaped(&dso.name));
    }
    if !matches!(frame.mode, CpuMode::KERNEL | CpuMode::USER) {
        let _ = write!(out, " ({})", frame.mode);
    }
}

/// Appends one object on a line to `text`.
fn json(text: Vec<u8>, sample: &Sample<'_>) -> Vec<u8> {
    let mut json = Json::compact_in(text);
    json.object("");
    json.number("offset", sample.record().offset);
    json.text("event", sample.event_name());
    if let Some(time) = sample.time() {
        json.number("time", time);
    }
    if let Some(cpu) = sample.cpu() {
        json.number("cpu", cpu.into());
    }
    if let Some(tid) = sample.tid() {
        json.value("pid", &tid.pid.cast_signed());
        json.value("tid", &tid.tid.cast_signed());
    }
    json.text("comm", sample.comm());
    json.number("weight", sample.weight());
    if sample.is_incomplete() {
        json.boolean("incomplete", true);
    }
    json.list("frames");
    for frame in sample.frames() {
        push_json(&mut json, "", &frame);
    }
    json.close();
    if sample.branches().len() > 0 {
        json.list("branches");
        for Branch {
            from, to, flags, ..
        } in sample.branches()
        {
            json.object("");
            push_json(&mut json, "from", &from);
            push_json(&mut json, "to", &to);
            json.value("flags", &flags);
            json.close();
        }
        json.close();
    }
    json.close();
    json.end_line();
    json.out
}

fn push_json(json: &mut Json, name: &str, frame: &Frame<'_>) {
    json.object(name);
    json.text("address", format!("{:#x}", frame.address).as_bytes());
    json.text("mode", frame.mode.to_string().as_bytes());
    if let Some((dso, offset)) = frame.dso().zip(frame.offset()) {
        json.text("dso", &dso.name);
        json.text("offset", format!("{offset:#x}").as_bytes());
    } else if let Some(dso) = frame.dso_before_exec() {
        json.text("before_exec", &dso.name);
    }
    if let Some(id) = frame.build_id() {
        json.text("build_id", id.to_string().as_bytes());
    }
    json.close();
}
