//! The source of sampled data (tools/perf/util/mem-events.c, `perf_script__meminfo_scnprintf`).

use perfdata_core::record::DataSource;

use super::numbers::push_hex;
use perfdata_tracepoint::Like;

/// Maximum number of bytes of the text.
const MOST: usize = 99;

/// Operations, `PERF_MEM_OP_*`.
const OPERATIONS: [&str; 5] = ["N/A", "LOAD", "STORE", "PFETCH", "EXEC"];

/// Levels of the memory hierarchy, `PERF_MEM_LVL_*`.
const LEVELS: [&str; 14] = [
    NOT_AVAILABLE,
    "HIT",
    "MISS",
    "L1",
    "LFB/MAB",
    "L2",
    "L3",
    "Local RAM",
    "Remote RAM (1 hop)",
    "Remote RAM (2 hops)",
    "Remote Cache (1 hop)",
    "Remote Cache (2 hops)",
    "I/O",
    "Uncached",
];

/// Levels as numbers, `PERF_MEM_LVLNUM_*`, from 1. Those up to 8 are new in perf 6.12.
const NUMBERED: [&str; 15] = [
    "L1",
    "L2",
    "L3",
    "L4",
    "L2 MHB",
    "Memory-side Cache",
    "",
    "Uncached",
    "CXL",
    "I/O",
    "Any cache",
    "LFB/MAB",
    "RAM",
    "PMEM",
    NOT_AVAILABLE,
];

/// The first of [`NUMBERED`] that perf 6.1 knows.
const FIRST_KNOWN: usize = 9;

/// Hops, `PERF_MEM_HOPS_*`, from 1. perf shows `(null)` for the others.
const HOPS: [&str; 4] = [
    "core, same node",
    "node, same socket",
    "socket, same board",
    "board",
];

/// Results of snooping, `PERF_MEM_SNOOP_*`.
const SNOOPS: [&str; 5] = [NOT_AVAILABLE, "None", "Hit", "Miss", "HitM"];

/// More results of snooping, `PERF_MEM_SNOOPX_*`.
const MORE_SNOOPS: [&str; 2] = ["Fwd", "Peer"];

/// Results of the TLB lookup, `PERF_MEM_TLB_*`.
const TLBS: [&str; 7] = [NOT_AVAILABLE, "HIT", "MISS", "L1", "L2", "Walker", "Fault"];

const NOT_AVAILABLE: &str = "N/A";

/// The flags of [`LEVELS`] and [`TLBS`] that are shown at the end.
const AVAILABLE: u64 = 1;
const HIT: u64 = 2;
const MISS: u64 = 4;

/// Returns the names of the flags that are set.
fn named<'a>(flags: u64, names: &'a [&'static str]) -> impl Iterator<Item = &'static str> + 'a {
    let is_set = move |(bit, name): (usize, &&'static str)| {
        let flag = u32::try_from(bit)
            .ok()
            .and_then(|bit| flags.checked_shr(bit));
        flag.is_some_and(|flag| flag & 1 == 1).then_some(*name)
    };
    names.iter().enumerate().filter_map(is_set)
}

/// Appends the names that are joined by `or`. Without a name, nothing is available.
fn push_joined(out: &mut String, names: &[&str]) {
    match names.is_empty() {
        true => out.push_str(NOT_AVAILABLE),
        false => out.push_str(&names.join(" or ")),
    }
}

/// Returns the name of a numbered level.
fn numbered(level: u64, like: Like) -> String {
    let at = usize::try_from(level).unwrap_or_default();
    let name = at.checked_sub(1).and_then(|at| NUMBERED.get(at));
    let is_known = like > Like::Perf6_1 || at >= FIRST_KNOWN;
    match name.filter(|name| is_known && !name.is_empty()) {
        Some(name) => (*name).into(),
        None if like == Like::Perf6_1 => format!("L{level}"),
        None => format!("Unknown level {level}"),
    }
}

/// Appends the level of the memory hierarchy (`perf_mem__lvl_scnprintf`).
fn push_level(out: &mut String, source: DataSource, like: Like) {
    let (flags, number) = (source.level(), source.level_number());
    let (is_hit, is_miss) = (flags & HIT != 0, flags & MISS != 0);
    let mut origin = String::new();
    if source.remote() == 1 {
        origin.push_str("Remote ");
    }
    let hops = usize::try_from(source.hops()).unwrap_or_default();
    if let Some(at) = hops.checked_sub(1) {
        origin.push_str(HOPS.get(at).copied().unwrap_or("(null)"));
        origin.push(' ');
    }
    if like == Like::Perf6_1 {
        // The number of hops replaces the flags.
        let flags = if hops > 0 { 0 } else { flags & !(HIT | MISS) };
        let mut names: Vec<String> = named(flags, &LEVELS).map(String::from).collect();
        if number > 0 {
            names.push(numbered(number, like));
        }
        let level = origin + &names.join(" or ");
        out.push_str(if level.is_empty() {
            NOT_AVAILABLE
        } else {
            &level
        });
        out.push_str(if is_hit { " hit" } else { "" });
        out.push_str(if is_miss { " miss" } else { "" });
        return;
    }
    let names: Vec<&str> = named(flags & !(AVAILABLE | HIT | MISS), &LEVELS).collect();
    match number {
        0 | 15 if names.is_empty() => return out.push_str(NOT_AVAILABLE),
        0 | 15 => push_joined(out, &names),
        number => {
            out.push_str(&origin);
            out.push_str(&numbered(number, like));
        }
    }
    out.push(' ');
    out.push_str(match (is_hit, is_miss) {
        (true, _) => "hit",
        (false, true) => "miss",
        (false, false) => "",
    });
}

/// Appends the source of the data as a number and as text. `width` is the length of the longest
/// text so far, to which perf pads.
pub(super) fn push_data_source(
    out: &mut Vec<u8>,
    source: DataSource,
    like: Like,
    width: &mut usize,
) {
    let start = out.len();
    push_hex(out, source.0, 16);
    let mut text = String::from(" |OP ");
    text.push_str(named(source.op(), &OPERATIONS).next().unwrap_or("No"));
    text.push_str("|LVL ");
    push_level(&mut text, source, like);
    text.push_str("|SNP ");
    let snoops = named(source.snoop(), &SNOOPS).chain(named(source.snoop_more(), &MORE_SNOOPS));
    push_joined(&mut text, &snoops.collect::<Vec<_>>());
    text.push_str("|TLB ");
    let tlb = source.tlb();
    push_joined(
        &mut text,
        &named(tlb & !(HIT | MISS), &TLBS).collect::<Vec<_>>(),
    );
    text.push_str(if tlb & HIT != 0 { " hit" } else { "" });
    text.push_str(if tlb & MISS != 0 { " miss" } else { "" });
    text.push_str("|LCK ");
    text.push_str(match source.lock() {
        0 => "No",
        2 => "Yes",
        _ => NOT_AVAILABLE,
    });
    text.push_str("|BLK ");
    let blocked = source.blocked();
    if blocked & AVAILABLE != 0 || blocked == 0 {
        text.push_str(" N/A");
    } else {
        text.push_str(if blocked & 2 != 0 { " Data" } else { "" });
        text.push_str(if blocked & 4 != 0 { " Addr" } else { "" });
    }
    out.extend_from_slice(text.as_bytes());
    out.truncate(start.saturating_add(MOST));
    *width = (*width).max(out.len().saturating_sub(start));
    super::numbers::pad_to(out, start, *width);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of each version of perf for the same values.
    #[test]
    fn sources_are_as_perf_shows_them() {
        let cases = [
            (
                0x0,
                "|OP No|LVL N/A|SNP N/A|TLB N/A|LCK No|BLK  N/A",
                "|OP No|LVL N/A|SNP N/A|TLB N/A|LCK No|BLK  N/A",
            ),
            (
                0x142,
                "|OP LOAD|LVL L1 hit|SNP N/A|TLB N/A|LCK No|BLK  N/A",
                "|OP LOAD|LVL L1 hit|SNP N/A|TLB N/A|LCK No|BLK  N/A",
            ),
            (
                0x100,
                "|OP No|LVL L1|SNP N/A|TLB N/A|LCK No|BLK  N/A",
                "|OP No|LVL L1 |SNP N/A|TLB N/A|LCK No|BLK  N/A",
            ),
            (
                0x560,
                "|OP No|LVL N/A or L1 or L2 hit|SNP N/A|TLB N/A|LCK No|BLK  N/A",
                "|OP No|LVL L1 or L2 hit|SNP N/A|TLB N/A|LCK No|BLK  N/A",
            ),
            (
                0x80200000020,
                "|OP No|LVL core, same node L1|SNP N/A|TLB N/A|LCK No|BLK  N/A",
                "|OP No|LVL core, same node L1 |SNP N/A|TLB N/A|LCK No|BLK  N/A",
            ),
            (
                0x11868100242,
                "|OP LOAD|LVL LFB/MAB or LFB/MAB hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A",
                "|OP LOAD|LVL LFB/MAB hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A",
            ),
        ];
        for (source, old, new) in cases {
            for (like, expected) in [
                (Like::Perf6_1, old),
                (Like::Perf6_12, new),
                (Like::Perf7_2, new),
            ] {
                let mut out = Vec::new();
                push_data_source(&mut out, DataSource(source), like, &mut 0);
                let text = String::from_utf8(out).unwrap();
                assert_eq!(text, format!("{source:16x} {expected}"), "{like:?}");
            }
        }
    }

    #[test]
    fn texts_are_padded_and_limited() {
        let (mut out, mut width) = (Vec::new(), 0);
        let longest = DataSource(u64::MAX);
        push_data_source(&mut out, longest, Like::Perf7_2, &mut width);
        assert_eq!((out.len(), width), (MOST, MOST));
        push_data_source(&mut out, DataSource(0), Like::Perf7_2, &mut width);
        assert_eq!(out.len(), 2 * MOST);
    }
}
