//! Records as values and as bytes of both byte orders.
//!
//! If a recording is named, the bytes of one byte order come from it. All other bytes were composed
//! according to the layout in the kernel's headers, not by this library.

mod auxtrace;
mod auxtrace_arm;
mod events;
mod forms;
mod maps;
mod sample;
mod sample_parts;
mod stat;
mod tasks;
mod user;

use perfdata_core::record::{RawRecord, Record, Sample, SampleId, TABLE};
use perfdata_core::wire::Chars;
use perfdata_core::{DecodeContext, Endian};

use crate::records::check;

/// One record.
pub struct Case {
    /// Its value.
    pub record: Record,
    /// The layout for decoding.
    pub layout: DecodeContext,
    /// Its bytes on a little-endian machine.
    pub little: Vec<u8>,
    /// Its bytes on a big-endian machine.
    pub big: Vec<u8>,
}

impl Case {
    /// Returns the record in one byte order.
    pub fn bytes(&self, endian: Endian) -> &[u8] {
        if endian == Endian::Little {
            &self.little
        } else {
            &self.big
        }
    }

    fn check(&self) {
        for endian in [Endian::Little, Endian::Big] {
            let bytes = self.bytes(endian);
            let raw = RawRecord::first(bytes, endian, 0).unwrap();
            assert_eq!(raw.bytes.len(), bytes.len(), "the record's size");
            assert_eq!(
                Record::decode(&raw, &self.layout).unwrap(),
                self.record,
                "read as {endian:?}"
            );
            assert_eq!(
                self.record.encode(endian).unwrap(),
                bytes,
                "written as {endian:?}"
            );
            check::record(bytes, endian, &self.layout).unwrap();
        }
    }
}

/// Declares cases: `fn name() { record, layout, "little-endian bytes", "big-endian bytes" }`, each
/// with its test.
macro_rules! cases {
    ($($(#[$meta:meta])* fn $name:ident() { $record:expr, $layout:expr, $little:literal, $big:literal $(,)? })*) => {
        $(
            $(#[$meta])*
            mod $name {
                use super::*;

                pub fn case() -> Case {
                    let (little, big) = (crate::records::values::bytes($little), crate::records::values::bytes($big));
                    Case { record: $record, layout: $layout, little, big }
                }

                #[test]
                fn value_and_bytes() {
                    case().check();
                }
            }
        )*

        /// Returns all cases of this file.
        pub fn all() -> Vec<Case> {
            vec![$($name::case()),*]
        }
    };
}
use cases;

/// Returns all cases.
pub fn all() -> Vec<Case> {
    let files = [
        auxtrace::all(),
        auxtrace_arm::all(),
        events::all(),
        forms::all(),
        maps::all(),
        sample::all(),
        sample_parts::all(),
        stat::all(),
        tasks::all(),
        user::all(),
    ];
    files.into_iter().flatten().collect()
}

#[test]
fn every_type_has_a_case() {
    let cases = all();
    let missing: Vec<_> = TABLE
        .iter()
        .filter(|info| !cases.iter().any(|case| case.record.kind == info.kind))
        .map(|info| info.name)
        .collect();
    assert_eq!(missing, [""; 0]);
}

/// Returns the bytes of hexadecimal digits; `00*16` is 16 times the byte 0.
fn bytes(hex: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for word in hex.split_whitespace() {
        let (digits, times) = word.split_once('*').unwrap_or((word, "1"));
        let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
            panic!("{word}: half a byte")
        };
        let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        let word: Vec<u8> = pairs.iter().map(byte).collect();
        out.extend(word.repeat(times.parse().unwrap()));
    }
    out
}

fn array<const N: usize>(hex: &str) -> [u8; N] {
    bytes(hex).try_into().expect("as many bytes as the array")
}

fn chars<const N: usize>(text: &[u8]) -> Chars<N> {
    let mut room = [0; N];
    room[..text.len()].copy_from_slice(text);
    Chars(room)
}

/// Returns a SAMPLE without parts.
fn sample() -> Sample {
    Sample {
        identifier: None,
        ip: None,
        tid: None,
        time: None,
        addr: None,
        id: None,
        stream_id: None,
        cpu: None,
        period: None,
        read: None,
        callchain: None,
        raw: None,
        branch_stack: None,
        regs_user: None,
        stack_user: None,
        weight: None,
        weight_struct: None,
        data_src: None,
        transaction: None,
        regs_intr: None,
        phys_addr: None,
        cgroup: None,
        data_page_size: None,
        code_page_size: None,
        aux: None,
    }
}

/// Returns a trailer without parts.
fn sample_id() -> SampleId {
    SampleId {
        tid: None,
        time: None,
        id: None,
        stream_id: None,
        cpu: None,
        identifier: None,
    }
}
