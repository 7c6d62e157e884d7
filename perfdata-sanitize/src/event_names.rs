//! Names of events that stay: those of perf itself, of the processor and of PMUs that every machine
//! of a kind has.

use perfdata_core::attr::{HardwareEvent, SoftwareEvent};

/// Divides the name of an event before its modifiers: `:u`, `:ppp`.
pub(super) fn modifiers(name: &[u8]) -> (&[u8], &[u8]) {
    let is_modifier = |byte: &u8| b"ukhGHpPSDIWebRX".contains(byte);
    let at = name.iter().rposition(|&byte| byte == b':');
    let split = at.and_then(|at| name.split_at_checked(at));
    match split {
        Some((stem, rest)) => {
            let rest_of = rest.get(1..).unwrap_or_default();
            // Tracepoints have longer names.
            let is_short = rest_of.len() <= 8 && rest_of.iter().all(is_modifier);
            if is_short { (stem, rest) } else { (name, b"") }
        }
        None => (name, b""),
    }
}

/// Returns whether perf itself gives this name to an event, or it is the name of a processor's
/// event.
pub(super) fn is_known_event(name: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(name) else {
        return false;
    };
    let text = without_pmu(text);
    let named = HardwareEvent::NAMES.iter().chain(SoftwareEvent::NAMES);
    if named.clone().any(|(_, known)| *known == text) {
        return true;
    }
    const OTHERS: [&str; 21] = [
        "cpu-cycles",
        "branch-instructions",
        "cs",
        "migrations",
        "faults",
        "dummy",
        "{anon_group}",
        "anon_group",
        "offcpu-time",
        "duration_time",
        "user_time",
        "system_time",
        "slots",
        "topdown-retiring",
        "topdown-bad-spec",
        "topdown-fe-bound",
        "topdown-be-bound",
        "msec",
        "Joules",
        "ns",
        "GHz",
    ];
    if OTHERS.contains(&text) || is_cache_event(text) {
        return true;
    }
    let is_hex = |digits: &str| {
        let has_digit = digits.bytes().any(|digit| digit.is_ascii_digit());
        has_digit && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    let raw = text.strip_prefix("raw 0x").or(text.strip_prefix('r'));
    raw.is_some_and(is_hex) || is_processor_event(text) || is_pmu_event(text)
}

/// Returns the name before the PMU that perf stat appends: `cpu-clock [software]`
/// (6.12).
fn without_pmu(name: &str) -> &str {
    let divided = name
        .strip_suffix(']')
        .and_then(|name| name.split_once(" ["));
    match divided {
        Some((stem, pmu)) if is_pmu(pmu) => stem,
        _ => name,
    }
}

/// Returns whether it is the name of a PMU that perf or the kernel gives.
fn is_pmu(name: &str) -> bool {
    const PMUS: [&str; 16] = [
        "cpu",
        "cpu_core",
        "cpu_atom",
        "intel_pt",
        "intel_bts",
        "msr",
        "power",
        "cstate_core",
        "cstate_pkg",
        "ibs_op",
        "ibs_fetch",
        "arm_spe_0",
        "cs_etm",
        "breakpoint",
        "software",
        "tool",
    ];
    // drivers/perf/arm_pmuv3.c, 7.2: `armv8_pmuv3`, `armv8_cortex_a53`.
    let is_arm = |rest: &str| {
        let is_letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        rest.len() <= 20 && rest.bytes().all(is_letter)
    };
    PMUS.contains(&name) || name.strip_prefix("armv8_").is_some_and(is_arm)
}

/// Returns whether it is the name of a cache event: `L1-dcache-load-misses`.
fn is_cache_event(text: &str) -> bool {
    const CACHES: [&str; 7] = [
        "L1-dcache",
        "L1-icache",
        "LLC",
        "dTLB",
        "iTLB",
        "branch",
        "node",
    ];
    const RESULTS: [&str; 10] = [
        "",
        "loads",
        "load-misses",
        "stores",
        "store-misses",
        "prefetches",
        "prefetch-misses",
        "load",
        "misses",
        "references",
    ];
    CACHES.iter().any(|cache| {
        let rest = text
            .strip_prefix(cache)
            .and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|rest| RESULTS.contains(&rest))
    })
}

fn is_word(part: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !part.is_empty() && part.bytes().all(is_part)
}

/// Returns whether it has the form of the names that manufacturers give to events:
/// `mem_load_retired.l3_miss`.
fn is_processor_event(text: &str) -> bool {
    const FIRST: [&str; 32] = [
        "inst", "cpu", "mem", "br", "uops", "l1d", "l2", "l3", "llc", "dtlb", "itlb", "idq",
        "icache", "cycle", "offcore", "ocr", "machine", "resource", "rs", "topdown", "exe",
        "frontend", "int", "fp", "arith", "ld", "sw", "misc", "baclears", "longest", "unc", "hw",
    ];
    let (family, rest) = match text.split_once('.') {
        Some(parts) => parts,
        None => return false,
    };
    let first = family.split('_').next().unwrap_or(family);
    FIRST.contains(&first)
        && is_word(family)
        && rest.split('.').all(is_word)
        && rest.split('.').count() <= 2
}

/// Returns whether it is an event of a PMU with known words, or numbers as terms:
/// `cpu/event=0x3c,umask=0x0/`, `armv8_pmuv3/cpu_cycles/`.
fn is_pmu_event(text: &str) -> bool {
    const TERMS: [&str; 32] = [
        "",
        "event",
        "umask",
        "edge",
        "inv",
        "cmask",
        "any",
        "period",
        "freq",
        "call-graph",
        "ldlat",
        "offcore_rsp",
        "tsc",
        "noretcomp",
        "branch",
        "cyc",
        "mtc",
        "pt",
        "psb_period",
        "config",
        "config1",
        "config2",
        "precise",
        "frontend",
        "max-stack",
        "stack-size",
        "branch_type",
        "time",
        "overwrite",
        "aux-sample-size",
        "u",
        "k",
    ];
    /// tools/perf/util/parse-events.c and evsel.c, 7.2.
    const WORDS: [&str; 10] = [
        "no", "yes", "on", "off", "fp", "dwarf", "lbr", "any", "any_call", "any_ret",
    ];
    let mut parts = text.split('/');
    let (Some(pmu), Some(terms)) = (parts.next(), parts.next()) else {
        return false;
    };
    let is_value = |value: &str| {
        if WORDS.contains(&value) {
            return true;
        }
        let value = value.strip_prefix("0x").unwrap_or(value);
        value.len() <= 8 && value.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_term = |term: &str| {
        match term.split_once('=') {
            Some((name, value)) => TERMS.contains(&name) && is_value(value),
            // The PMU's own name for an event: perf knows no other word without a value.
            None => {
                TERMS.contains(&term)
                    || is_pmu(pmu) && (is_word(term) || is_known_event(term.as_bytes()))
            }
        }
    };
    let modifiers = parts.next().unwrap_or_default();
    (is_pmu(pmu) || is_known_event(pmu.as_bytes()))
        && terms.split(',').all(is_term)
        && modifiers
            .bytes()
            .all(|byte| b"ukhGHpPSDIWe".contains(&byte))
        && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_many_machines_have_are_known() {
        for name in [
            "cpu-clock",
            "cpu-clock [software]",
            "L1-dcache-load-misses",
            "mem_load_retired.l3_miss",
            "r1a8",
            "cpu/event=0x3c,umask=0x0/",
            "cpu/cpu-cycles/u",
            "cpu_core/cycles/",
            "armv8_pmuv3/cpu_cycles/",
            "page-faults/call-graph=no,period=3/",
            "intel_pt/tsc,noretcomp/k",
        ] {
            assert!(is_known_event(name.as_bytes()), "{name}");
        }
        for name in [
            "sensor",
            "demo:leaf",
            "mem:0x4040e0:w",
            "sensor [software]",
            "cpu-clock [secret]",
            "cpu/name=secret/",
            "cpu/Secret/",
            "secret/cpu_cycles/",
            "armv8_pmuv3/cpu_cycles/secret",
            "page-faults/call-graph=secret/",
            "page-faults/secret/",
        ] {
            assert!(!is_known_event(name.as_bytes()), "{name}");
        }
    }
}
