//! Samples with resolved addresses, as shown by `perfconv dump --resolved`.

use std::io::Write;

use perfdata_core::error::Problem;
use perfdata_core::record::CpuMode;
use perfdata_session::{Branch, DsoId, Frame, Sample, Samples, UserCallchains};

use super::seconds;
use perfdata_convert::count::number_of;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::Input;
use perfdata_convert::json::Json;
use perfdata_convert::support::digits;
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
        let mut lines = ResolvedLines::default();
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
                lines.text = json(lines.text, &sample);
            } else {
                lines.push(&sample);
            }
            left -= 1;
            if lines.text.len() >= BLOCK {
                write(&mut lines.text, out)?;
            }
        }
        write(&mut lines.text, out)?;
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

/// The text of samples, and what was formatted for the samples before.
#[derive(Debug, Default)]
struct ResolvedLines {
    text: Vec<u8>,
    /// By the index of the DSO: a space, its escaped name and `+0x`.
    dsos: Vec<Box<[u8]>>,
}

impl ResolvedLines {
    /// Appends a line for the sample, and one for each frame and branch.
    fn push(&mut self, sample: &Sample<'_>) {
        let out = &mut self.text;
        push_address(out, sample.record().offset);
        let _ = write!(out, " comm={}", quoted(sample.comm()));
        if let Some(tid) = sample.tid() {
            out.extend_from_slice(b" pid=");
            digits::push_signed(out, tid.pid.cast_signed().into());
            out.extend_from_slice(b" tid=");
            digits::push_signed(out, tid.tid.cast_signed().into());
        }
        if let Some(cpu) = sample.cpu() {
            out.extend_from_slice(b" cpu=");
            digits::push(out, cpu.into());
        }
        if let Some(time) = sample.time() {
            out.extend_from_slice(b" time=");
            out.extend_from_slice(seconds(time).as_bytes());
        }
        let _ = write!(out, " event={}", quoted(sample.event_name()));
        out.extend_from_slice(b" weight=");
        digits::push(out, sample.weight());
        if sample.is_incomplete() {
            out.extend_from_slice(b" incomplete");
        }
        out.push(b'\n');
        for frame in sample.frames() {
            self.text.extend_from_slice(b"    ");
            self.push_frame(&frame);
            self.text.push(b'\n');
        }
        for Branch { from, to, .. } in sample.branches() {
            self.text.extend_from_slice(b"    branch ");
            self.push_frame(&from);
            self.text.extend_from_slice(b" -> ");
            self.push_frame(&to);
            self.text.push(b'\n');
        }
    }

    fn push_frame(&mut self, frame: &Frame<'_>) {
        push_address(&mut self.text, frame.address);
        if let Some((id, offset)) = frame.dso_id().zip(frame.offset()) {
            self.push_dso(id, frame);
            digits::push_hexadecimal(&mut self.text, offset);
        } else if let Some(dso) = frame.dso_before_exec() {
            let _ = write!(self.text, " (before exec: {})", escaped(&dso.name));
        }
        if !matches!(frame.mode, CpuMode::KERNEL | CpuMode::USER) {
            let _ = write!(self.text, " ({})", frame.mode);
        }
    }

    fn push_dso(&mut self, id: DsoId, frame: &Frame<'_>) {
        if self.dsos.len() <= id.index() {
            self.dsos
                .resize_with(id.index().saturating_add(1), Box::default);
        }
        let Some(known) = self.dsos.get_mut(id.index()) else {
            return;
        };
        if known.is_empty() {
            let name = frame.dso().map(|dso| escaped(&dso.name));
            *known = format!(" {}+0x", name.unwrap_or_default())
                .into_bytes()
                .into();
        }
        self.text.extend_from_slice(known);
    }
}

fn push_address(out: &mut Vec<u8>, address: u64) {
    out.extend_from_slice(b"0x");
    digits::push_hexadecimal(out, address);
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

fn push_json(json: &mut Json, name: &'static str, frame: &Frame<'_>) {
    json.object(name);
    json.hexadecimal("address", frame.address);
    match frame.mode.name() {
        Some(mode) => json.text("mode", mode.as_bytes()),
        None => json.text("mode", frame.mode.to_string().as_bytes()),
    }
    if let Some((dso, offset)) = frame.dso().zip(frame.offset()) {
        json.text("dso", &dso.name);
        json.hexadecimal("offset", offset);
    } else if let Some(dso) = frame.dso_before_exec() {
        json.text("before_exec", &dso.name);
    }
    if let Some(id) = frame.build_id() {
        json.text("build_id", id.to_string().as_bytes());
    }
    json.close();
}
