//! The text of one sample.

use std::io::Write;

use perfdata_core::intel_pt_samples::SynthesisedData;
use perfdata_core::record::{Body, CpuMode, RegsAbi, Sample as SampleBody, SampleView};
use perfdata_session::Sample;

use super::bpf_output::push_bpf_output;
use super::events::Event;
use super::fields::Set;
use super::lines::Lines;
use super::memory::push_data_source;
use super::numbers::{
    pad_to, push_bytes, push_hex, push_left, push_number, push_page_size, push_signed,
    push_signed_zeros, push_time,
};
use super::{PerfScript, Style};
use crate::error::Result;
use crate::resolve::ResolvedSample;
use perfdata_tracepoint::Like;

/// Fields whose values are behind parts of variable length, so that the sample must be decoded.
const DECODED: Set = Set::IREGS
    .with(Set::UREGS)
    .with(Set::DATA_SRC)
    .with(Set::WEIGHT)
    .with(Set::INS_LAT)
    .with(Set::RETIRE_LAT)
    .with(Set::CGROUP)
    .with(Set::PHYS_ADDR)
    .with(Set::DATA_PAGE_SIZE)
    .with(Set::CODE_PAGE_SIZE);

/// Width of what a sample of a trace says.
const SYNTHESISED: usize = 34;

/// An ID as perf shows it: with a sign.
fn signed(id: u32) -> i64 {
    i64::from(id.cast_signed())
}

/// Returns all fields of a sample.
fn decode(sample: &Sample<'_>) -> Result<Option<SampleBody>> {
    Ok(match sample.record().decode()?.body {
        Body::Sample(decoded) => Some(decoded),
        _ => None,
    })
}

impl<W: Write> PerfScript<W> {
    /// Appends the text of a sample: of its event, or of each counter that it contains.
    pub(super) fn sample_lines(&mut self, sample: &ResolvedSample<'_>) -> Result<()> {
        let number = sample.sample.event();
        let Some(event) = self.events.get(number) else {
            return Ok(());
        };
        let decoded = match event.read.is_some() || self.shown.of(event.kind).has_any(DECODED) {
            true => decode(&sample.sample)?,
            false => None,
        };
        let decoded = decoded.as_ref();
        let period = sample.sample.sample_view().period();
        let period = period.unwrap_or(event.period);
        match self.increases(&sample.sample, decoded) {
            Some(increases) => {
                for (event, increase) in increases {
                    self.line(sample, event, increase, decoded);
                }
            }
            None => self.line(sample, number, period, decoded),
        }
        Ok(())
    }

    /// Follows a sample whose text is not wanted: the text of later ones depends on its counters, and on
    /// widths.
    pub(super) fn pass_lines(&mut self, sample: &Sample<'_>) -> Result<()> {
        let number = sample.event();
        let Some(event) = self.events.get(number) else {
            return Ok(());
        };
        let shows_source = self.shown.of(event.kind).has(Set::DATA_SRC);
        let is_decoded = event.read.is_some() || shows_source;
        if !is_decoded && self.events.name_width.is_some() {
            return Ok(());
        }
        let decoded = if is_decoded { decode(sample)? } else { None };
        let lines = match self.increases(sample, decoded.as_ref()) {
            Some(increases) => increases,
            None => vec![(number, 0)],
        };
        for (number, _) in lines {
            self.events.name_width();
            let event = self.events.get(number);
            let shows =
                |event: &Event| !event.is_branch && self.shown.of(event.kind).has(Set::DATA_SRC);
            if let Some(source) = decoded.as_ref().and_then(|decoded| decoded.data_src)
                && event.is_some_and(shows)
            {
                let len = self.text.len();
                let width = &mut self.source_width;
                push_data_source(&mut self.text, source, self.style.like, width);
                self.text.truncate(len);
            }
        }
        Ok(())
    }

    /// Returns the events whose counters a sample contains, each with its increase; `None` if samples of
    /// its event contain none.
    fn increases(
        &mut self,
        sample: &Sample<'_>,
        decoded: Option<&SampleBody>,
    ) -> Option<Vec<(usize, u64)>> {
        let number = sample.event();
        let is_read = self.events.get(number)?.read.is_some();
        let read = decoded.filter(|_| is_read)?.read.as_ref()?;
        let tid = sample.tid().map(|tid| tid.tid);
        let recording = sample.recording();
        Some(self.events.increases(recording, number, read, tid))
    }

    /// Appends the text of a sample of one event.
    fn line(
        &mut self,
        sample: &ResolvedSample<'_>,
        number: usize,
        period: u64,
        decoded: Option<&SampleBody>,
    ) {
        let name_width = self.events.name_width();
        let registers = self.events.registers;
        let Some(event) = self.events.get(number) else {
            return;
        };
        let fields = self.shown.of(event.kind);
        if fields.is_empty() {
            return;
        }
        let shows_callchain = self.events.shows_callchain(event);
        let out = &mut self.text;
        let view = sample.sample.sample_view();
        let writer = LineWriter {
            fields,
            style: self.style,
            sample,
            event,
            is_unmapped: self.style.forgets() && {
                let sample = &sample.sample;
                sample.session().has_lost_mappings(sample.thread_id())
            },
            names: &self.names,
        };
        let lines = &mut self.lines;
        writer.start(out, shows_callchain);
        if fields.has(Set::PERIOD) {
            push_number(out, period, 10);
            out.push(b' ');
        }
        if fields.has(Set::EVENT) {
            push_bytes(out, &event.name, name_width);
            out.extend_from_slice(b": ");
        }
        if event.is_branch {
            writer.branch_sample(out, lines, shows_callchain);
            return;
        }
        if fields.has(Set::TRACE) {
            out.extend_from_slice(sample.tracepoint.unwrap_or_default());
        }
        if let Some(config) = event.synthesised
            && fields.has(Set::SYNTH)
            && let Some(data) = SynthesisedData::of(config, view.raw().unwrap_or_default())
        {
            let start = out.len();
            out.extend_from_slice(data.to_string().as_bytes());
            pad_to(out, start, SYNTHESISED);
        }
        if fields.has(Set::ADDR) {
            writer.data_address(out, view);
        }
        if let Some(source) = decoded.and_then(|decoded| decoded.data_src)
            && fields.has(Set::DATA_SRC)
        {
            push_data_source(out, source, self.style.like, &mut self.source_width);
        }
        if let Some(decoded) = decoded {
            writer.costs(out, decoded);
        }
        if fields.has(Set::IP) {
            writer.frames(out, lines, shows_callchain);
        }
        if let Some(decoded) = decoded {
            let [intr, user] = event.registers;
            let shown = [
                (Set::IREGS, &decoded.regs_intr, intr),
                (Set::UREGS, &decoded.regs_user, user),
            ];
            for (field, regs, mask) in shown {
                let Some(regs) = regs
                    .as_ref()
                    .filter(|regs| fields.has(field) && regs.abi != RegsAbi::NONE)
                else {
                    continue;
                };
                out.extend_from_slice(b" ABI:");
                push_number(out, regs.abi.0, 0);
                out.push(b' ');
                let names = registers
                    .into_iter()
                    .flat_map(|all| all.names(mask, regs.abi));
                for (name, value) in names.zip(regs.regs.iter()) {
                    push_bytes(out, name.unwrap_or("unknown").as_bytes(), 5);
                    out.extend_from_slice(b":0x");
                    push_hex(out, *value, 0);
                    out.push(b' ');
                }
            }
        }
        writer.branches(out);
        if event.is_bpf_output
            && fields.has(Set::BPF_OUTPUT)
            && let Some(raw) = view.raw()
        {
            push_bpf_output(out, raw);
        }
        if let Some(decoded) = decoded {
            if fields.has(Set::PHYS_ADDR) {
                push_hex(out, decoded.phys_addr.unwrap_or_default(), 16);
            }
            for (field, size) in [
                (Set::DATA_PAGE_SIZE, decoded.data_page_size),
                (Set::CODE_PAGE_SIZE, decoded.code_page_size),
            ] {
                if fields.has(field) {
                    out.push(b' ');
                    push_page_size(out, size.unwrap_or_default());
                }
            }
        }
        out.push(b'\n');
    }
}

/// Writes the parts of a sample.
pub(super) struct LineWriter<'a> {
    pub fields: Set,
    pub style: Style,
    pub sample: &'a ResolvedSample<'a>,
    pub event: &'a Event,
    /// Whether perf has forgotten the mappings of the process.
    pub is_unmapped: bool,
    pub names: &'a [Box<[u8]>],
}

impl LineWriter<'_> {
    /// Appends what is before the period (`perf_sample__fprintf_start`).
    fn start(&self, out: &mut Vec<u8>, shows_callchain: bool) {
        let (fields, sample) = (self.fields, &self.sample.sample);
        if fields.has(Set::COMM) {
            let width = if fields.has(Set::IP) && shows_callchain {
                0
            } else {
                16
            };
            // perf shows the present name also for a sample that waited for its callchain.
            match sample.thread() {
                Some(thread) if self.style.forgets() && thread.has_lost_name => {
                    let name = format!(":{}", signed(thread.tid));
                    push_bytes(out, name.as_bytes(), width);
                }
                thread => {
                    let comm = thread.map_or(sample.comm_id(), |thread| thread.comm);
                    push_bytes(out, sample.session().comm(comm), width);
                }
            }
            out.push(b' ');
        }
        let id_width = if self.style.like == Like::Perf6_1 {
            5
        } else {
            7
        };
        let (pid, tid) = sample
            .tid()
            .map_or((-1, -1), |tid| (signed(tid.pid), signed(tid.tid)));
        let (shows_pid, shows_tid) = (fields.has(Set::PID), fields.has(Set::TID));
        if shows_pid || shows_tid {
            push_signed(out, if shows_pid { pid } else { tid }, id_width);
            if shows_pid && shows_tid {
                out.push(b'/');
                push_left(out, tid, id_width);
            }
            out.push(b' ');
        }
        if fields.has(Set::CPU) {
            out.push(b'[');
            push_signed_zeros(out, sample.cpu().map_or(-1, signed), 3);
            out.extend_from_slice(b"] ");
        }
        if fields.has(Set::MISC) {
            self.misc(out);
        }
        if fields.has(Set::TIME) {
            let time = sample.time().unwrap_or(u64::MAX);
            push_time(out, time, self.style.nanoseconds);
            out.extend_from_slice(b": ");
        }
    }

    fn misc(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let mode = self.sample.sample.record().misc & CpuMode::MASK;
        // perf tests each mode as if it were a flag.
        let modes = [
            (CpuMode::KERNEL, b'K'),
            (CpuMode::USER, b'U'),
            (CpuMode::HYPERVISOR, b'H'),
            (CpuMode::GUEST_KERNEL, b'G'),
            (CpuMode::GUEST_USER, b'g'),
        ];
        let has = |wanted: &CpuMode| mode & wanted.0 == wanted.0;
        out.extend(
            modes
                .iter()
                .filter(|(wanted, _)| has(wanted))
                .map(|(_, letter)| *letter),
        );
        out.push(b' ');
        pad_to(out, start, 6);
    }

    /// Appends what the sample cost, and its cgroup.
    fn costs(&self, out: &mut Vec<u8>, decoded: &SampleBody) {
        let fields = self.fields;
        let weights = decoded.weight_struct.unwrap_or_default();
        if fields.has(Set::WEIGHT) {
            let weight = decoded.weight.unwrap_or_else(|| weights.var1_dw());
            push_number(out, weight, 16);
        }
        if fields.has(Set::INS_LAT) {
            push_number(out, weights.var2_w(), 16);
        }
        if fields.has(Set::RETIRE_LAT) {
            push_number(out, weights.var3_w(), 16);
        }
        if fields.has(Set::CGROUP) {
            let id = decoded.cgroup.unwrap_or_default();
            out.push(b' ');
            let path = self.sample.sample.session().cgroup(id);
            out.extend_from_slice(path.unwrap_or(b"unknown"));
        }
    }

    /// Appends the text of a sample that is a branch (`perf_sample__fprintf_bts`).
    fn branch_sample(&self, out: &mut Vec<u8>, lines: &mut Lines, shows_callchain: bool) {
        if self.fields.has(Set::IP) {
            self.frames(out, lines, shows_callchain);
        }
        if self.fields.has(Set::ADDR) || self.event.has_data_address {
            out.extend_from_slice(b" => ");
            self.data_address(out, self.sample.sample.sample_view());
        }
        if self.fields.has(Set::IP)
            && !self.has_chain(shows_callchain)
            && let Some(innermost) = self.sample.frames.first()
        {
            self.source_line(out, self.own_frame().unwrap_or(innermost), innermost, false);
        }
        out.push(b'\n');
    }

    fn data_address(&self, out: &mut Vec<u8>, view: SampleView<'_>) {
        push_hex(out, view.addr().unwrap_or_default(), 16);
        if !self.event.has_data_symbol {
            return;
        }
        if let Some(frame) = &self.sample.data_address {
            if self.fields.has(Set::SYM) {
                out.push(b' ');
                self.symbol(out, frame, self.fields.has(Set::SYMOFF));
            }
            self.dso(out, frame);
        }
    }
}
