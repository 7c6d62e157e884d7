//! Source lines (tools/perf/util/map.c, `map__fprintf_srcline`; tools/perf/util/srcline.c,
//! `__get_srcline`, 7.2).

use perfdata_session::DsoKind;
use perfdata_tracepoint::Like;

use super::fields::Set;
use super::line::LineWriter;
use super::numbers::{push_hex, push_number};
use crate::resolve::ResolvedFrame;
use crate::tables::Module;

/// Returns the part of a path after its last separator.
fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// Returns perf's short name of an object.
fn short_name(module: &Module) -> Vec<u8> {
    match module.kind {
        DsoKind::Module => module.short_name(),
        _ if module.name.starts_with(b"[") => module.name.to_vec(),
        _ => file_name(&module.name).to_vec(),
    }
}

impl LineWriter<'_> {
    /// Appends the source line of a frame in a line of its own, if it is shown, without its end.
    /// `innermost` is the function at its address in whose source that line is: the frame itself, or
    /// one that is inlined there but not shown. `is_listed` tells whether inlined functions were searched.
    pub(super) fn source_line(
        &self,
        out: &mut Vec<u8>,
        frame: &ResolvedFrame,
        innermost: &ResolvedFrame,
        is_listed: bool,
    ) {
        let is_mapped = frame.mapping.is_some() && !self.is_forgotten(frame);
        if !self.fields.has(Set::SRCLINE) || !is_mapped {
            return;
        }
        let start = out.len();
        out.extend_from_slice(b"\n  ");
        let function = |frame: &ResolvedFrame| self.tables().function(frame.function?);
        if let Some(file) = function(innermost).and_then(|function| function.file.as_deref()) {
            let shown = match self.style.full_source_path {
                true => file,
                false => file_name(file),
            };
            out.extend_from_slice(shown);
            out.push(b':');
            push_number(out, innermost.line.into(), 0);
            return;
        }
        // addr2line, which perf asks last, knows the symbols of the object.
        let is_symbol = |name: &[u8], is_in_symtab: bool| is_in_symtab && !name.ends_with(b"@plt");
        // perf 6.1 leaves out the line `??:0` unless it has searched inlined functions.
        let is_omitted = self.style.like == Like::Perf6_1 && !is_listed;
        if function(frame).is_some_and(|known| is_symbol(&known.system_name, known.is_in_symtab)) {
            match is_omitted {
                true => out.truncate(start),
                false => out.extend_from_slice(b"??:0"),
            }
            return;
        }
        let module = frame.module.and_then(|id| self.tables().module(id));
        if let Some(module) = module {
            let is_file = module.kind == DsoKind::File;
            let is_dynamic = function(frame).is_some_and(|function| !function.is_in_symtab);
            if is_omitted && is_file && is_dynamic {
                return out.truncate(start);
            }
            out.extend(short_name(module));
        }
        out.push(b'[');
        push_hex(out, self.offset(frame).unwrap_or(frame.address), 0);
        out.push(b']');
    }
}
