//! The packets of hardware traces, as shown by `perfconv dump --aux`.

mod packet;

use std::io::Write;
use std::ops::ControlFlow;

use perfdata_core::Recording;
use perfdata_core::attr::SampleType;
use perfdata_core::record::{AuxtraceType, Body, RawRecord, Record, RecordType, Sample};
use perfdata_session::EventNames;

use super::record::Shown;
use super::seconds;
use packet::Decoder;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::Input;
use perfdata_convert::json::Json;
use perfdata_convert::leftover::Leftover;
use perfdata_convert::walk::{Item, walk};

/// The format of the packets.
///
/// The data after each AUXTRACE record, and the AUX data in each sample, are decoded from their
/// start, as `perf script -D` does: the parts of a buffer that a snapshot repeats are shown again.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct AuxPackets {
    /// Writes JSON instead of text.
    pub json: bool,
    /// Maximum number of packets to show.
    pub limit: Option<u64>,
}

/// The result of [`AuxPackets::run`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct AuxPacketsShown {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes that are no packet.
    pub bad: u64,
    /// Damage that makes parts of the recording unreadable.
    pub damage: Vec<String>,
}

/// Bytes of output that are collected before they are written.
const BLOCK: usize = 64 << 10;

impl AuxPackets {
    /// Sets [`json`](Self::json).
    #[must_use]
    pub fn with_json(self, json: bool) -> Self {
        AuxPackets { json, ..self }
    }

    /// Sets [`limit`](Self::limit).
    #[must_use]
    pub fn with_limit(self, limit: Option<u64>) -> Self {
        AuxPackets { limit, ..self }
    }

    /// Writes the packets of `input` to `out`.
    ///
    /// # Errors
    /// The input cannot be read, the trace is of a kind whose packets are not known, or the output
    /// cannot be written.
    pub fn run(&self, input: Input, out: &mut dyn Write) -> Result<AuxPacketsShown> {
        let (mut reader, _) = input.reader()?;
        let mut printer = PacketPrinter {
            form: *self,
            out,
            text: Vec::new(),
            names: EventNames::default(),
            kind: None,
            open: None,
            left: self.limit.unwrap_or(u64::MAX),
            shown: AuxPacketsShown::default(),
        };
        let mut unreadable = 0_u64;
        walk(&mut reader, |item, recording| {
            match item {
                Item::Records(batch, inner) => {
                    for raw in batch.iter() {
                        printer.record(&raw, inner, recording)?;
                    }
                }
                Item::Payload(bytes) => printer.payload(bytes)?,
                Item::Unreadable(bytes) => unreadable += bytes.len() as u64,
                Item::Undecodable(error) => printer.shown.damage.push(error.to_string()),
                Item::Pause { .. } => {}
            }
            Ok(match printer.left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        })?;
        printer.end_trace()?;
        printer.flush(0)?;
        let mut shown = printer.shown;
        let leftover = Leftover::of(&reader, unreadable);
        shown
            .damage
            .extend(leftover.map(|leftover| leftover.to_string()));
        Ok(shown)
    }
}

/// The state of the output.
struct PacketPrinter<'a> {
    form: AuxPackets,
    out: &'a mut dyn Write,
    text: Vec<u8>,
    names: EventNames,
    /// The kind of the trace, after AUXTRACE_INFO.
    kind: Option<AuxtraceType>,
    /// The data after the last AUXTRACE record.
    open: Option<Trace>,
    /// Number of packets that may still be shown.
    left: u64,
    shown: AuxPacketsShown,
}

/// A part of a trace that is being decoded.
struct Trace {
    /// Offset of the record in the input.
    record: u64,
    decoder: Decoder,
    /// Number of bytes that were decoded.
    at: u64,
    /// Bytes that follow them.
    held: Vec<u8>,
}

impl PacketPrinter<'_> {
    fn record(
        &mut self,
        raw: &RawRecord<'_>,
        inner: Option<usize>,
        recording: &Recording,
    ) -> Result<()> {
        self.end_trace()?;
        self.names.see(raw);
        if self.left == 0 {
            return Ok(());
        }
        let layout = recording.events.layout_of(raw);
        match raw.kind {
            RecordType::AUXTRACE_INFO => {
                if let Body::AuxtraceInfo(info) = Record::decode(raw, &layout)?.body {
                    self.kind = Some(info.kind);
                }
            }
            RecordType::AUXTRACE => {
                if let Body::Auxtrace(trace) = Record::decode(raw, &layout)?.body {
                    self.names.update(recording);
                    let shown = Shown::new(raw, inner, recording, &self.names);
                    if self.form.json {
                        let mut json = Json::compact_in(std::mem::take(&mut self.text));
                        shown.json(&mut json, false);
                        json.end_line();
                        self.text = json.out;
                    } else {
                        let mut line = String::new();
                        shown.text(&mut line);
                        self.text.extend_from_slice(line.as_bytes());
                    }
                    self.begin(raw, trace.offset, trace.size)?;
                }
            }
            RecordType::SAMPLE if layout.sample_type.has(SampleType::AUX) => {
                if let Body::Sample(sample) = Record::decode(raw, &layout)?.body
                    && let Some(data) = sample.aux.as_ref().filter(|data| !data.is_empty())
                {
                    self.sample(raw, inner, &sample);
                    self.begin(raw, 0, data.len() as u64)?;
                    self.payload(data)?;
                    self.end_trace()?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn json(&mut self, write: impl FnOnce(&mut Json)) {
        let mut json = Json::compact_in(std::mem::take(&mut self.text));
        write(&mut json);
        json.end_line();
        self.text = json.out;
    }

    /// Writes the sample that contains the data, without the data.
    fn sample(&mut self, raw: &RawRecord<'_>, inner: Option<usize>, sample: &Sample) {
        let (tid, time, cpu) = (sample.tid, sample.time, sample.cpu);
        if !self.form.json {
            let _ = write!(self.text, "{:#x} {}", raw.offset, raw.kind);
            if let Some(tid) = tid {
                let (pid, tid) = (tid.pid.cast_signed(), tid.tid.cast_signed());
                let _ = write!(self.text, " pid={pid} tid={tid}");
            }
            if let Some(time) = time {
                let _ = write!(self.text, " time={}", seconds(time));
            }
            if let Some(cpu) = cpu {
                let _ = write!(self.text, " cpu={}", cpu.cpu);
            }
            self.text.push(b'\n');
            return;
        }
        self.json(|json| {
            json.object("");
            json.number("offset", raw.offset);
            if let Some(inner) = inner {
                json.number("inner", inner as u64);
            }
            json.text("type", raw.kind.to_string().as_bytes());
            json.number("size", raw.bytes.len() as u64);
            if let Some(tid) = tid {
                json.number_or_none("pid", tid.pid);
                json.number_or_none("tid", tid.tid);
            }
            if let Some(time) = time {
                json.number("time", time);
            }
            if let Some(cpu) = cpu {
                json.number("cpu", cpu.cpu.into());
            }
            json.close();
        });
    }

    /// Begins a trace of `size` bytes, which are at `offset` in the AUX buffer.
    fn begin(&mut self, raw: &RawRecord<'_>, offset: u64, size: u64) -> Result<()> {
        let decoder = Decoder::of(self.kind, offset)?;
        if !self.form.json {
            let _ = writeln!(self.text, ". ... {} bytes", decoder.title(size));
        }
        self.open = Some(Trace {
            record: raw.offset,
            decoder,
            at: 0,
            held: Vec::new(),
        });
        Ok(())
    }

    /// Decodes a part of the data of the open trace.
    fn payload(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(mut trace) = self.open.take() else {
            return Ok(());
        };
        trace.held.extend_from_slice(bytes);
        self.lines(&mut trace, Decoder::MAX_LINE)?;
        self.open = Some(trace);
        Ok(())
    }

    /// Decodes the rest of the open trace.
    fn end_trace(&mut self) -> Result<()> {
        match self.open.take() {
            Some(mut trace) => self.lines(&mut trace, 1),
            None => Ok(()),
        }
    }

    /// Writes lines while `least` bytes are left.
    fn lines(&mut self, trace: &mut Trace, least: usize) -> Result<()> {
        let mut used = 0;
        while let Some(rest) = trace.held.get(used..).filter(|rest| rest.len() >= least)
            && self.left > 0
        {
            let line = trace.decoder.next(rest);
            let bytes = rest.get(..line.size.max(1)).unwrap_or(rest);
            match line.packet {
                Some(_) => self.shown.packets += 1,
                None => self.shown.bad += bytes.len() as u64,
            }
            if self.form.json {
                let (record, at) = (trace.record, trace.at);
                self.json(|json| line.json(json, record, at, bytes));
            } else {
                line.text(&mut self.text, trace.at, bytes, &trace.decoder);
            }
            used += bytes.len();
            trace.at += bytes.len() as u64;
            self.left -= 1;
            self.flush(BLOCK)?;
        }
        trace.held.drain(..used);
        Ok(())
    }

    fn flush(&mut self, least: usize) -> Result<()> {
        if self.text.len() > least {
            let written = self.out.write_all(&self.text);
            written.map_err(Error::io("standard output"))?;
            self.text.clear();
        }
        Ok(())
    }
}
