//! Recordings with every record and feature: no text and no address of the original is left.

use std::collections::BTreeSet;

use perfdata_sanitize::{Audience, Policy};
use perfdata_tests::synth::{kind, sink};

use super::{plain, sanitized, texts};

/// Texts of the sink that a sanitized recording may contain: names that every machine has, the
/// model of the processor, tracepoints and their formats, and numbers that configure a processor's
/// event.
const KEPT: &[&str] = &[
    "# compressed entry header",
    "'&%$#\"!87654321",
    "!\"#$%&'(12345678",
    "//anon",
    "//toolong",
    "/usr/bin/true",
    "/usr/lib/libc.so.6",
    "7.2.13",
    "Dtracing0.6",
    "GenuineIntel,6,142,10",
    "ID: 314",
    "Joules",
    "PERFILE2h",
    "2ELIFREP",
    "PERFILE2",
    "Synthetic CPU @ 1.00GHz",
    "[guest.kernel.kallsyms]",
    "[kernel.kallsyms]",
    "[kernel.kallsyms]_text",
    "[stack]",
    "array       :   32 bits",
    "branches",
    "branches:ppp",
    "cpu_atom",
    "cpu_core",
    "cycles:u",
    "cycles:upp",
    "data max type_len  == 28",
    "field: char data;",
    "field: int overwrite;",
    "field: local_t commit;",
    "field: u64 timestamp;",
    "field:int common_pid;",
    "field:int value;",
    "field:unsigned char common_flags;",
    "field:unsigned char common_preempt_count;",
    "field:unsigned short common_type;",
    "format:",
    "header_event",
    "header_page",
    "kprobe_insn_page",
    "max_precise",
    "name: demo",
    "offset:0;",
    "offset:16;",
    "offset:2;",
    "offset:3;",
    "offset:4;",
    "offset:8;",
    "padding     : type == 29",
    "pmu_name",
    "print fmt: \"value=%d\", REC->value",
    "record",
    "signed:0;",
    "signed:1;",
    "size:1;",
    "size:2;",
    "size:4080;",
    "size:4;",
    "size:8;",
    "skylake",
    "software",
    "synth:demo",
    "time_delta  :   27 bits",
    "time_extend : type == 30",
    "time_stamp : type == 31",
    "tracepoint",
    "type_len    :    5 bits",
    "x86_64",
    "{anon_group}",
];

/// The recordings of the independent writer that contain every record and feature.
fn sinks() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for big in [false, true] {
        let order = if big { "big" } else { "little" };
        all.push((format!("{order} file"), sink::file(big).bytes()));
        all.push((format!("{order} pipe"), sink::pipe(big).bytes));
        all.push((
            format!("{order} compressed file"),
            sink::compressed_file(big, kind::COMPRESSED2).bytes(),
        ));
        all.push((
            format!("{order} compressed pipe"),
            sink::compressed_pipe(big, kind::COMPRESSED).bytes,
        ));
    }
    all
}

/// Every record type, every part of samples, every attribute field and every feature at once: no
/// text of the original is in the output, unless it is one that every recording has.
#[test]
fn no_text_of_any_record_or_feature_survives() {
    for (name, input) in sinks() {
        let before = texts(&plain(input.clone()), 6);
        assert!(before.len() > 60, "{name}: {before:?}");
        let after = plain(sanitized(input, Policy::new(Audience::Public)));
        let left = texts(&after, 6);
        let left: Vec<&String> = before
            .intersection(&left)
            .filter(|text| !KEPT.contains(&text.as_str()))
            .collect();
        assert!(left.is_empty(), "{name}: {left:#?}");
    }
}

/// Numbers that the independent writer chose so that they are recognised anywhere.
#[test]
fn no_address_of_any_record_or_feature_survives() {
    for (name, input) in sinks() {
        let before = plain(input.clone());
        let after = plain(sanitized(input, Policy::new(Audience::Public)));
        let words = |bytes: &[u8]| -> BTreeSet<u64> {
            let all = bytes.windows(8).map(|word| {
                let word: [u8; 8] = word.try_into().expect("8 bytes");
                match name.starts_with("big") {
                    true => u64::from_be_bytes(word),
                    false => u64::from_le_bytes(word),
                }
            });
            // Addresses of programs and of the kernel; neither parts of texts nor of small numbers.
            let is_address = |word: &u64| {
                let digits = word.to_le_bytes();
                let mut digits = digits.iter().filter(|byte| !matches!(byte, 0 | 0xff));
                let is_number = digits.clone().any(|byte| !(b' '..=b'~').contains(byte));
                let count = digits.by_ref().count();
                let is_user = matches!(*word >> 40, 0x55 | 0x56 | 0x7f);
                (is_user || *word >= 0xffff_ffff_8000_0000) && is_number && count >= 3
            };
            all.filter(is_address).collect()
        };
        let (before, after) = (words(&before), words(&after));
        assert!(before.len() > 4, "{name}: {before:x?}");
        let left: Vec<&u64> = before.intersection(&after).collect();
        assert!(left.is_empty(), "{name}: {left:x?}");
    }
}
