//! The branch stack (tools/perf/builtin-script.c, `perf_sample__fprintf_brstack`;
//! tools/perf/util/branch.c, 7.2).

use perfdata_core::record::BranchFlags;
use perfdata_tracepoint::Like;

use super::fields::Set;
use super::line::LineWriter;
use super::numbers::{push_hex, push_number};

/// Types of branches, `PERF_BR_*`.
const KINDS: [&str; 15] = [
    "",
    "COND",
    "UNCOND",
    "IND",
    "CALL",
    "IND_CALL",
    "RET",
    "SYSCALL",
    "SYSRET",
    "COND_CALL",
    "COND_RET",
    "ERET",
    "IRQ",
    "SERROR",
    "NO_TX",
];

/// The type of branch whose kind is in `new_kind`, `PERF_BR_EXTEND_ABI`.
const EXTENDED: u64 = 15;

/// Further types of branches, `PERF_BR_NEW_*`.
const NEW_KINDS: [&str; 8] = [
    "FAULT_ALGN",
    "FAULT_DATA",
    "FAULT_INST",
    "ARCH_1",
    "ARCH_2",
    "ARCH_3",
    "ARCH_4",
    "ARCH_5",
];

/// Speculation, `PERF_BR_SPEC_*`.
const SPECULATION: [&str; 4] = [
    "-",
    "SPEC_WRONG_PATH",
    "NON_SPEC_CORRECT_PATH",
    "SPEC_CORRECT_PATH",
];

fn name<const N: usize>(names: &[&'static str; N], number: u64) -> &'static str {
    let at = usize::try_from(number).unwrap_or(N);
    names.get(at).copied().unwrap_or("???")
}

/// Appends the properties of a branch. perf 6.1 does not show speculation.
fn push_flags(out: &mut Vec<u8>, flags: BranchFlags, like: Like) {
    let set = |value: u64| value != 0;
    let (predicted, missed, not_taken) = (
        set(flags.predicted()),
        set(flags.mispred()),
        set(flags.not_taken()),
    );
    out.push(b'/');
    match predicted || missed || not_taken {
        false => out.push(b'-'),
        true => out.push(if predicted { b'P' } else { b'M' }),
    }
    if not_taken {
        out.push(b'N');
    }
    out.push(b'/');
    out.push(if set(flags.in_tx()) { b'X' } else { b'-' });
    out.push(b'/');
    out.push(if set(flags.abort()) { b'A' } else { b'-' });
    out.push(b'/');
    push_number(out, flags.cycles(), 0);
    out.push(b'/');
    let kind = match flags.kind() {
        EXTENDED => name(&NEW_KINDS, flags.new_kind()),
        kind => name(&KINDS, kind),
    };
    out.extend_from_slice(kind.as_bytes());
    if like > Like::Perf6_1 {
        out.push(b'/');
        out.extend_from_slice(name(&SPECULATION, flags.spec()).as_bytes());
    }
    out.push(b' ');
}

impl LineWriter<'_> {
    /// Appends the branch stack.
    pub(super) fn branches(&self, out: &mut Vec<u8>) {
        let fields = self.fields;
        let shows_symbols = !fields.has(Set::BRSTACK) && fields.has(Set::BRSTACKSYM);
        let shows_offsets = !fields.has(Set::BRSTACK) && !shows_symbols;
        if !fields.has_any(Set::BRSTACK.with(Set::BRSTACKSYM).with(Set::BRSTACKOFF)) {
            return;
        }
        let Some(entries) = self.sample.sample.sample_view().branches() else {
            return;
        };
        for ((from, to), entry) in self.sample.branches.iter().zip(entries) {
            for (frame, before) in [(from, &b" "[..]), (to, b"/")] {
                if shows_symbols {
                    if before == b"/" {
                        out.push(b'/');
                    }
                    self.symbol(out, frame, true);
                } else {
                    out.extend_from_slice(before);
                    out.extend_from_slice(b"0x");
                    let offset = self.any_offset(frame).filter(|_| shows_offsets);
                    push_hex(out, offset.unwrap_or(frame.address), 0);
                }
                if fields.has(Set::DSO) {
                    let before = if self.style.like == Like::Perf6_1 {
                        "("
                    } else {
                        " ("
                    };
                    out.extend_from_slice(before.as_bytes());
                    self.dso_name(out, frame);
                    out.push(b')');
                }
            }
            push_flags(out, entry.flags, self.style.like);
        }
    }
}
