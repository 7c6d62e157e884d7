//! The branch stack (tools/perf/builtin-script.c, `perf_sample__fprintf_brstack`;
//! tools/perf/util/branch.c, 7.2).

use perfdata_core::record::BranchFlags;
use perfdata_tracepoint::Like;

use super::fields::Set;
use super::line::LineWriter;
use super::numbers::push_hex;
use super::short_text::ShortText;

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
#[inline(always)]
fn push_flags(text: &mut ShortText, flags: BranchFlags, like: Like) {
    let or_dash = |is_set: bool, letter: u8| if is_set { letter } else { b'-' };
    let (predicted, missed) = (flags.predicted() != 0, flags.mispred() != 0);
    let not_taken = flags.not_taken() != 0;
    let letter = if predicted { b'P' } else { b'M' };
    text.push(&[b'/', or_dash(predicted || missed || not_taken, letter)]);
    if not_taken {
        text.push(b"N");
    }
    let in_tx = or_dash(flags.in_tx() != 0, b'X');
    let abort = or_dash(flags.abort() != 0, b'A');
    text.push(&[b'/', in_tx, b'/', abort, b'/']);
    text.push_number(flags.cycles());
    text.push(b"/");
    match flags.kind() {
        0 => {}
        EXTENDED => text.push_word(name(&NEW_KINDS, flags.new_kind())),
        kind => text.push_word(name(&KINDS, kind)),
    }
    if like > Like::Perf6_1 {
        text.push(b"/");
        match flags.spec() {
            0 => text.push(b"-"),
            spec => text.push_word(name(&SPECULATION, spec)),
        }
    }
    text.push(b" ");
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
        if super::shown_as_addresses(|set| fields.has_any(set)) {
            let mut text = ShortText::new();
            for entry in entries {
                text.clear();
                text.push(b" 0x");
                text.push_hex(entry.from);
                text.push(b"/0x");
                text.push_hex(entry.to);
                push_flags(&mut text, entry.flags, self.style.like);
                out.extend_from_slice(text.bytes());
            }
            return;
        }
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
            let mut text = ShortText::new();
            push_flags(&mut text, entry.flags, self.style.like);
            out.extend_from_slice(text.bytes());
        }
    }
}
