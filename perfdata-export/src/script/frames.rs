//! The frames of a sample (tools/perf/util/evsel_fprintf.c, `sample__fprintf_sym`, 7.2).

use perfdata_core::record::{CallchainContext, CpuMode, SampleView, deferred_cookie};
use perfdata_session::DsoKind;
use perfdata_tracepoint::Like;

use super::fields::Set;
use super::line::Writer;
use super::lines::Lines;
use super::numbers::{push_hex, wide_hex};
use crate::resolve::ResolvedFrame;
use crate::tables::{Tables, UNKNOWN};

/// Appends the line of a frame with another address, which follows a tab.
#[inline]
fn push_line(out: &mut Vec<u8>, line: &[u8], address: u64) {
    let start = out.len();
    out.extend_from_slice(line);
    let digits = out.get_mut(start..).and_then(|line| line.get_mut(1..17));
    if let Some(digits) = digits {
        digits.copy_from_slice(&wide_hex(address));
    }
}

impl Writer<'_> {
    /// Appends the callchain, or the instruction pointer in the same line.
    pub(super) fn frames(&self, out: &mut Vec<u8>, lines: &mut Lines, shows_callchain: bool) {
        let view = self.sample.sample.sample_view();
        if !shows_callchain || view.callchain_part().is_none() {
            out.push(b' ');
            let none = ResolvedFrame::unmapped(view.ip().unwrap_or_default(), CpuMode::USER);
            let frame = self.sample.frames.first().unwrap_or(&none);
            self.frame(out, frame, frame.address);
            return;
        }
        out.push(b'\n');
        lines.set_form(self.fields, self.event.is_unwound);
        let stack = self.sample.stack.filter(|_| !self.is_unmapped);
        if let Some(known) = lines.stack(stack) {
            out.extend_from_slice(known);
            return;
        }
        let start = out.len();
        let is_final = self.frame_lines(out, lines, view);
        if is_final && let Some(text) = out.get(start..) {
            lines.set_stack(stack, text);
        }
    }

    /// Appends a line for each frame of the callchain. Returns whether a stack with the same frames
    /// always has the same lines.
    fn frame_lines(&self, out: &mut Vec<u8>, lines: &mut Lines, view: SampleView<'_>) -> bool {
        let frames = match self.has_frames(view) {
            true => self.sample.frames,
            false => &[],
        };
        let tables = self.tables();
        let mut all_final = true;
        for frame in frames.iter().take(self.style.max_stack) {
            if frame.mapping.is_none() && frame.function.is_none() {
                push_line(out, lines.unknown(), frame.address);
                continue;
            }
            let place = frame.place.filter(|_| !self.is_forgotten(frame));
            if let Some(line) = lines.get(tables, place) {
                match self.is_offset_kept() {
                    true => out.extend_from_slice(line),
                    false => push_line(out, line, frame.address),
                }
                continue;
            }
            let start = out.len();
            out.push(b'\t');
            push_hex(out, self.shown_address(frame), 16);
            self.symbol_and_dso(out, frame);
            out.push(b'\n');
            // The recording can list the build ID of a kernel module later.
            let module = frame.module.and_then(|id| tables.module(id));
            let is_final = module.is_some_and(|module| module.kind != DsoKind::Module);
            all_final &= is_final;
            if is_final && let Some(line) = out.get(start..) {
                lines.set(tables, place, line);
            }
        }
        if !frames.is_empty() && frames.len() < self.style.max_stack {
            self.cookie(out, view);
        }
        all_final
    }

    /// Returns whether kept lines have the right address: an offset is the same one in all mappings of a
    /// file.
    fn is_offset_kept(&self) -> bool {
        self.style.like == Like::Perf6_1
    }

    /// Appends what perf 7.2 shows in place of a deferred user callchain that never came.
    fn cookie(&self, out: &mut Vec<u8>, view: SampleView<'_>) {
        let is_shown = self.style.like >= Like::Perf7_2 && self.sample.sample.is_incomplete();
        let Some(cookie) = deferred_cookie(view.callchain()).filter(|_| is_shown) else {
            return;
        };
        out.push(b'\t');
        push_hex(out, cookie, 16);
        if self.fields.has(Set::SYM) {
            out.extend_from_slice(b" (cookie)");
        }
        if self.fields.has(Set::DSO) {
            out.extend([" (", UNKNOWN, ")"].concat().bytes());
        }
        out.push(b'\n');
    }

    /// Returns whether perf shows frames: a callchain without addresses has none, unless the user
    /// stack follows, which starts with the instruction pointer; and a callchain with an unknown
    /// marker is discarded (tools/perf/util/machine.c, `add_callchain_ip`).
    pub(super) fn has_frames(&self, view: SampleView<'_>) -> bool {
        let mut has_addresses = false;
        for word in view.callchain() {
            match CallchainContext::of(word) {
                None => has_addresses = true,
                Some(CallchainContext::HV | CallchainContext::KERNEL | CallchainContext::USER) => {}
                Some(CallchainContext::USER_DEFERRED) if self.style.like >= Like::Perf7_2 => {}
                Some(_) => return false,
            }
        }
        has_addresses || self.event.is_unwound
    }

    /// Returns the address of a frame as this version of perf shows it: perf 6.1 shows offsets in
    /// the mapped files.
    pub(super) fn shown_address(&self, frame: &ResolvedFrame) -> u64 {
        match self.style.like {
            Like::Perf6_1 => self.offset(frame).unwrap_or(frame.address),
            _ => frame.address,
        }
    }

    /// Returns the offset in the mapped object as perf computes it; `None` for addresses of kernels
    /// and of generated code.
    pub(super) fn offset(&self, frame: &ResolvedFrame) -> Option<u64> {
        let session = self.sample.sample.session();
        let mapping = session.mapping(frame.mapping?)?;
        let dso = session.dso(mapping.dso)?;
        match dso.kind {
            DsoKind::Kernel | DsoKind::Module | DsoKind::KernelSymbol | DsoKind::Anonymous => None,
            _ => Some(
                frame
                    .address
                    .wrapping_sub(mapping.start)
                    .wrapping_add(mapping.pgoff),
            ),
        }
    }

    /// Returns the offset in the mapped object; for kernels and generated code, in the mapping.
    pub(super) fn any_offset(&self, frame: &ResolvedFrame) -> Option<u64> {
        let session = self.sample.sample.session();
        let in_mapping = || {
            let mapping = session.mapping(frame.mapping?)?;
            Some(frame.address.wrapping_sub(mapping.start))
        };
        self.offset(frame).or_else(in_mapping)
    }

    /// Appends an address with its function and object.
    pub(super) fn frame(&self, out: &mut Vec<u8>, frame: &ResolvedFrame, address: u64) {
        push_hex(out, address, 16);
        self.symbol_and_dso(out, frame);
    }

    /// Appends the function and the object of a frame, if they are shown.
    fn symbol_and_dso(&self, out: &mut Vec<u8>, frame: &ResolvedFrame) {
        if self.fields.has(Set::SYM) {
            out.push(b' ');
            self.symbol(out, frame, self.fields.has(Set::SYMOFF));
        }
        self.dso(out, frame);
    }

    /// Returns whether perf has forgotten the mapping of a frame.
    fn is_forgotten(&self, frame: &ResolvedFrame) -> bool {
        self.is_unmapped && matches!(frame.mode, CpuMode::USER | CpuMode::GUEST_USER)
    }

    pub(super) fn symbol(&self, out: &mut Vec<u8>, frame: &ResolvedFrame, with_offset: bool) {
        let number = frame.function.and_then(|id| usize::try_from(id.0).ok());
        let name = number.and_then(|number| self.names.get(number));
        let Some(name) = name.filter(|_| !self.is_forgotten(frame)) else {
            return out.extend_from_slice(UNKNOWN.as_bytes());
        };
        out.extend_from_slice(name);
        if with_offset {
            out.extend_from_slice(b"+0x");
            push_hex(out, frame.function_offset, 0);
        }
    }

    pub(super) fn tables(&self) -> &Tables {
        self.sample.tables
    }

    /// Returns whether perf shows the path of a kernel module: if the recording lists its build ID.
    pub(super) fn has_path(&self, frame: &ResolvedFrame) -> bool {
        let session = self.sample.sample.session();
        let mapping = frame.mapping.and_then(|id| session.mapping(id));
        let dso = mapping.and_then(|mapping| session.dso(mapping.dso));
        dso.is_some_and(|dso| session.build_id_table().contains(dso))
    }

    /// Appends the object of a frame, if it is shown.
    pub(super) fn dso(&self, out: &mut Vec<u8>, frame: &ResolvedFrame) {
        if !self.fields.has(Set::DSO) {
            return;
        }
        out.extend_from_slice(b" (");
        self.dso_name(out, frame);
        out.push(b')');
    }

    /// Appends the name of a frame's object, and its offset in it if that is shown.
    pub(super) fn dso_name(&self, out: &mut Vec<u8>, frame: &ResolvedFrame) {
        let module = frame.module.filter(|_| !self.is_forgotten(frame));
        let module = module.and_then(|id| self.tables().module(id));
        match module {
            Some(module) if module.kind == DsoKind::Module && !self.has_path(frame) => {
                out.extend_from_slice(&module.short_name());
            }
            Some(module) => out.extend_from_slice(&module.name),
            None => out.extend_from_slice(UNKNOWN.as_bytes()),
        }
        let is_kernel = matches!(frame.mode, CpuMode::KERNEL | CpuMode::GUEST_KERNEL);
        let is_omitted = is_kernel && self.style.like >= Like::Perf7_2;
        if self.fields.has(Set::DSOFF) && module.is_some() && !is_omitted {
            out.extend_from_slice(b"+0x");
            push_hex(out, self.offset(frame).unwrap_or(frame.address), 0);
        }
    }
}
