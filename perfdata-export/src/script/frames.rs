//! The frames of a sample (tools/perf/util/evsel_fprintf.c, `sample__fprintf_sym`, 7.2).

use perfdata_core::record::{CallchainContext, CpuMode, SampleView, deferred_cookie};
use perfdata_session::{DsoKind, MappingId};
use perfdata_tracepoint::Like;

use super::fields::Set;
use super::line::LineWriter;
use super::lines::Lines;
use super::numbers::{push_hex, wide_hex};
use crate::resolve::ResolvedFrame;
use crate::tables::{FunctionId, Tables, UNKNOWN};

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

/// Returns whether a name in debug information is that for the linker.
fn is_mangled(name: &[u8]) -> bool {
    name.starts_with(b"_Z") || name.starts_with(b"_R")
}

impl LineWriter<'_> {
    /// Appends the callchain, or the instruction pointer in the same line.
    pub(super) fn frames(&self, out: &mut Vec<u8>, lines: &mut Lines, shows_callchain: bool) {
        let view = self.sample.sample.sample_view();
        if !self.has_chain(shows_callchain) {
            out.push(b' ');
            let none = ResolvedFrame::unmapped(view.ip().unwrap_or_default(), CpuMode::USER);
            let frame = self.own_frame().unwrap_or(&none);
            self.frame(out, frame, frame.address);
            // The line of a branch follows its target.
            if !self.event.is_branch {
                let innermost = self.sample.frames.first().unwrap_or(&none);
                self.source_line(out, frame, innermost, false);
            }
            return;
        }
        out.push(b'\n');
        lines.set_form(self.fields);
        self.frame_lines(out, lines, view);
    }

    /// Returns whether the callchain is shown, not only the sampled address.
    pub(super) fn has_chain(&self, shows_callchain: bool) -> bool {
        let view = self.sample.sample.sample_view();
        shows_callchain && view.callchain_part().is_some()
    }

    /// Returns the frame of the sampled address, without functions that are inlined there.
    pub(super) fn own_frame(&self) -> Option<&ResolvedFrame> {
        self.sample.frames.iter().find(|frame| !frame.is_inlined)
    }

    /// Appends a line for each frame of the callchain.
    fn frame_lines(&self, out: &mut Vec<u8>, lines: &mut Lines, view: SampleView<'_>) {
        let frames = match self.has_frames(view) {
            true => self.sample.frames,
            false => &[],
        };
        let most = self.style.max_stack;
        // perf counts the frames of a user stack apart from the recorded ones.
        let unwound = frames.iter().position(|frame| frame.mode == CpuMode::USER);
        let unwound = unwound.filter(|_| self.event.is_unwound);
        let (recorded, unwound) = frames.split_at(unwound.unwrap_or(frames.len()));
        let mut count = 0_usize;
        // Before 7.0, perf searches inlined functions only while it unwinds.
        let inlines = self.style.inlines;
        let parts = [
            (recorded, inlines && self.style.like >= Like::Perf7_2),
            (unwound, inlines),
        ];
        for (frames, shows_inlines) in parts {
            // The functions at an address: inlined ones, and last the one of its symbol.
            let addresses = frames.chunk_by(|frame, _| frame.is_inlined);
            for functions in addresses.take(most) {
                count = count.saturating_add(1);
                self.address_lines(out, lines, functions, shows_inlines);
            }
        }
        if (1..most).contains(&count) {
            self.cookie(out, view);
        }
    }

    /// Appends the lines of the functions at an address, the innermost one first.
    #[inline]
    fn address_lines(
        &self,
        out: &mut Vec<u8>,
        lines: &mut Lines,
        functions: &[ResolvedFrame],
        shows_inlines: bool,
    ) {
        let Some((frame, inlined)) = functions.split_last() else {
            return;
        };
        if frame.mapping.is_none() && frame.function.is_none() {
            push_line(out, lines.unknown(), frame.address);
            return;
        }
        let innermost = inlined.first().unwrap_or(frame);
        if !shows_inlines || self.is_forgotten(frame) {
            return self.frame_line(out, lines, frame, (innermost, false));
        }
        // The last one is the function of the symbol itself, with its name in the debug information. perf
        // 7.2 has this one only if it is mangled.
        let is_symbol = |function: &ResolvedFrame| {
            let function = function.function.and_then(|id| self.tables().function(id));
            let is_mangled = function.is_some_and(|function| is_mangled(&function.system_name));
            self.style.like >= Like::Perf7_2 && !is_mangled
        };
        let (inlined, last) = match inlined.split_last() {
            Some((outermost, inlined)) if is_symbol(outermost) => (inlined, Some(frame)),
            None => (inlined, Some(frame)),
            _ => (inlined, None),
        };
        for function in inlined {
            // perf shows a function with the name of the symbol as the one that contains the copy.
            let is_inlined = self.name(function.function) != self.name(frame.function);
            let shown = ResolvedFrame {
                is_inlined,
                ..*function
            };
            self.frame_line(out, lines, &shown, (function, true));
        }
        if let Some(frame) = last {
            self.frame_line(out, lines, frame, (frame, true));
        }
    }

    /// Appends the line of a frame, and that of its source: the one of the function `innermost`, for which
    /// inlined functions were searched or not.
    #[inline]
    fn frame_line(
        &self,
        out: &mut Vec<u8>,
        lines: &mut Lines,
        frame: &ResolvedFrame,
        (innermost, is_listed): (&ResolvedFrame, bool),
    ) {
        let bias = match (self.style.like, frame.mapping) {
            (Like::Perf6_1, Some(id)) => lines.bias(id, || self.bias(id).unwrap_or(0)),
            _ => 0,
        };
        out.push(b'\t');
        push_hex(out, frame.address.wrapping_add(bias), 16);
        let is_forgotten = self.is_forgotten(frame);
        if self.fields.has(Set::SYM) {
            let function = frame.function.filter(|_| !is_forgotten);
            let with_offset = self.fields.has(Set::SYMOFF);
            lines
                .functions
                .append(function.map(|id| id.0), out, |part| {
                    part.push(b' ');
                    self.symbol_start(part, function, with_offset);
                });
            if function.is_some() && with_offset {
                push_hex(out, frame.function_offset, 0);
            }
        }
        if frame.is_inlined {
            self.source_line(out, frame, innermost, is_listed);
            out.extend_from_slice(b" (inlined)\n");
            return;
        }
        let module = frame.module.filter(|_| !is_forgotten);
        let object = |out: &mut Vec<u8>| self.dso(out, frame);
        // The recording can list the build ID of a kernel module later.
        let known = module.and_then(|id| self.tables().module(id));
        let is_final = known.is_some_and(|module| module.kind != DsoKind::Module);
        match is_final && !self.fields.has(Set::DSOFF) {
            true => lines.modules.append(module.map(|id| id.0), out, object),
            false => object(out),
        }
        self.source_line(out, frame, innermost, is_listed);
        out.push(b'\n');
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

    /// Returns the offset in the mapped object as perf computes it; `None` for addresses of kernels
    /// and of generated code.
    pub(super) fn offset(&self, frame: &ResolvedFrame) -> Option<u64> {
        Some(frame.address.wrapping_add(self.bias(frame.mapping?)?))
    }

    /// Returns what is added to the addresses in a mapping for their [`offset`](Self::offset).
    fn bias(&self, id: MappingId) -> Option<u64> {
        let session = self.sample.sample.session();
        let mapping = session.mapping(id)?;
        let dso = session.dso(mapping.dso)?;
        match dso.kind {
            DsoKind::Kernel | DsoKind::Module | DsoKind::KernelSymbol => None,
            // perf regards a file in memory as a file.
            DsoKind::Anonymous if !dso.name.starts_with(b"/memfd:") => None,
            _ => Some(mapping.pgoff.wrapping_sub(mapping.start)),
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
    pub(super) fn is_forgotten(&self, frame: &ResolvedFrame) -> bool {
        self.is_unmapped && matches!(frame.mode, CpuMode::USER | CpuMode::GUEST_USER)
    }

    pub(super) fn symbol(&self, out: &mut Vec<u8>, frame: &ResolvedFrame, with_offset: bool) {
        let function = frame.function.filter(|_| !self.is_forgotten(frame));
        self.symbol_start(out, function, with_offset);
        if function.is_some() && with_offset {
            push_hex(out, frame.function_offset, 0);
        }
    }

    /// Returns the name of a function in the spelling of the version.
    fn name(&self, function: Option<FunctionId>) -> Option<&[u8]> {
        let number = usize::try_from(function?.0).ok()?;
        self.names.get(number).map(|name| &**name)
    }

    /// Appends the name of a function, and what is before the offset in it if that follows.
    fn symbol_start(&self, out: &mut Vec<u8>, function: Option<FunctionId>, with_offset: bool) {
        let name = self.name(function);
        out.extend_from_slice(name.unwrap_or(UNKNOWN.as_bytes()));
        if function.is_some() && with_offset {
            out.extend_from_slice(b"+0x");
        }
    }

    pub(super) fn tables(&self) -> &Tables {
        self.sample.tables
    }

    /// Returns whether perf shows the path of a kernel module: if the recording lists its build ID,
    /// as one of the kernel.
    pub(super) fn has_path(&self, frame: &ResolvedFrame) -> bool {
        let session = self.sample.sample.session();
        let mapping = frame.mapping.and_then(|id| session.mapping(id));
        let dso = mapping.and_then(|mapping| session.dso(mapping.dso));
        dso.is_some_and(|dso| session.build_id_table().contains_of_kernel(dso))
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
            Some(module) if module.kind == DsoKind::Kernel => {
                let table = self.sample.sample.session().build_id_table();
                out.extend_from_slice(table.kernel().unwrap_or(&module.name));
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
