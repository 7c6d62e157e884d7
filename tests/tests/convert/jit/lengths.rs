//! Lengths in jitdumps that lie: every field with a length, in both byte orders.

use std::fs;

use perfdata_inject::jit::Jit;
use perfdata_tests::code_folder::CodeFolder;
use perfdata_tests::synth::buf::Buf;
use perfdata_tests::synth::jitdump::{Dump, Header};
use perfdata_tests::told::Told::{Map, Sample};

/// Sizes of the records of [`dump`], in bytes.
const HEADER: usize = 40;
const DEBUG_INFO: usize = 16 + 16 + 2 * (16 + 4);
const UNWINDING: usize = 16 + 24 + 12 + 20 + 3;
const LOAD: usize = 16 + 40 + 6 + 16;
const MOVE: usize = 16 + 48;

/// Offsets of its records.
const DEBUG_INFO_AT: usize = HEADER;
const UNWINDING_AT: usize = DEBUG_INFO_AT + DEBUG_INFO;
const LOAD_AT: usize = UNWINDING_AT + UNWINDING;
const MOVE_AT: usize = LOAD_AT + LOAD;
const OTHER_AT: usize = MOVE_AT + MOVE;

/// Returns a dump with a record of every type, and a second function.
fn dump(big: bool) -> Vec<u8> {
    let lines: [(u64, i32, &[u8]); 2] = [(0x1000, 1, b"a.c"), (0x1008, 2, b"b.c")];
    let dump = Dump::new(big, Header::of(5))
        .lines(100, 0x1000, &lines)
        .unwinding(100, &[1; 12], &[2; 20], 32)
        .load(110, 0x1000, 1, "first", &[0x90; 16])
        .moved(120, 0x1000, 0x2000, 16, 1)
        .load(130, 0x3000, 2, "other", &[0x91; 16])
        .close(140);
    let bytes = dump.bytes();
    assert_eq!(bytes.len(), OTHER_AT + LOAD + 16);
    bytes
}

/// The size of the dump in bytes.
const FILE: u64 = (OTHER_AT + LOAD + 16) as u64;

/// A record: its name, offset and size, and the size of the fields that it always has.
const RECORDS: [(&str, usize, usize, usize); 6] = [
    ("CODE_DEBUG_INFO", DEBUG_INFO_AT, DEBUG_INFO, 32),
    ("CODE_UNWINDING_INFO", UNWINDING_AT, UNWINDING, 40),
    ("CODE_LOAD", LOAD_AT, LOAD, 56),
    ("CODE_MOVE", MOVE_AT, MOVE, 64),
    ("CODE_LOAD", OTHER_AT, LOAD, 56),
    ("CODE_CLOSE", OTHER_AT + LOAD, 16, 16),
];

/// A length of 64 bits inside of a record.
struct Length {
    /// The record and the field.
    name: &'static str,
    /// Its offset in bytes.
    at: usize,
    /// Values, and what a note says: nothing for values that are allowed.
    values: &'static [(u64, &'static str)],
}

const LENGTHS: [Length; 6] = [
    Length {
        name: "CODE_DEBUG_INFO, field nr_entry",
        at: DEBUG_INFO_AT + 24,
        values: &[
            (0, ""),
            (1, ""),
            (
                3,
                "0x70: jitdump record CODE_DEBUG_INFO, field addr: 73 bytes needed, 72",
            ),
            (
                1 << 32,
                "0x48: jitdump record CODE_DEBUG_INFO, field entries: 4294967296",
            ),
            (
                u64::MAX,
                "0x48: jitdump record CODE_DEBUG_INFO, field entries: 1844674407",
            ),
        ],
    },
    Length {
        name: "CODE_UNWINDING_INFO, field unwinding_size",
        at: UNWINDING_AT + 16,
        values: &[
            (
                0,
                "0x70: jitdump record CODE_UNWINDING_INFO, field eh_frame_hdr_size: found 20",
            ),
            (
                19,
                "0x70: jitdump record CODE_UNWINDING_INFO, field eh_frame_hdr_size: found 20",
            ),
            (20, ""),
            (31, ""),
            (35, ""),
            (
                36,
                "0xa8: jitdump record CODE_UNWINDING_INFO, field eh_frame_hdr: 20 bytes needed, 19",
            ),
            (
                FILE,
                "0x98: jitdump record CODE_UNWINDING_INFO, field eh_frame: 403 bytes needed, 35",
            ),
            (
                u64::MAX,
                "0x98: jitdump record CODE_UNWINDING_INFO, field eh_frame: 18446744",
            ),
        ],
    },
    Length {
        name: "CODE_UNWINDING_INFO, field eh_frame_hdr_size",
        at: UNWINDING_AT + 24,
        values: &[
            (0, ""),
            (1, ""),
            (32, ""),
            (
                33,
                "0x70: jitdump record CODE_UNWINDING_INFO, field eh_frame_hdr_size: found 33",
            ),
            (
                u64::MAX,
                "0x98: jitdump record CODE_UNWINDING_INFO, field eh_frame_hdr: 18446",
            ),
        ],
    },
    Length {
        name: "CODE_UNWINDING_INFO, field mapped_size",
        at: UNWINDING_AT + 32,
        values: &[
            (0, ""),
            (1, ""),
            (0x1020, ""),
            (
                0x1021,
                "0x70: jitdump record CODE_UNWINDING_INFO, field mapped_size: found 4129",
            ),
            (
                u64::MAX,
                "0x70: jitdump record CODE_UNWINDING_INFO, field mapped_size: found 1844",
            ),
        ],
    },
    Length {
        name: "CODE_LOAD, field code_size",
        at: LOAD_AT + 40,
        values: &[
            // The move of the function contradicts its size then.
            (
                0,
                "0x109: jitdump record CODE_MOVE, field code_index: found 1",
            ),
            (
                1,
                "0x109: jitdump record CODE_MOVE, field code_size: found 16, expected at most 1,",
            ),
            (
                15,
                "0x109: jitdump record CODE_MOVE, field code_size: found 16, expected at most 15",
            ),
            // The code would contain parts of the name.
            (
                17,
                "0xbb: jitdump record CODE_LOAD, field name: found no NUL before the code",
            ),
            (
                22,
                "0xbb: jitdump record CODE_LOAD, field name: found no NUL before the code",
            ),
            (
                23,
                "0xf3: jitdump record CODE_LOAD, field code: 23 bytes needed, 22 available",
            ),
            (
                FILE,
                "0xf3: jitdump record CODE_LOAD, field code: 423 bytes needed, 22 available",
            ),
            (
                u64::MAX,
                "0xf3: jitdump record CODE_LOAD, field code: 18446744073709551615 bytes",
            ),
        ],
    },
    Length {
        name: "CODE_MOVE, field code_size",
        at: MOVE_AT + 48,
        values: &[
            (0, ""),
            (1, ""),
            (
                17,
                "0x109: jitdump record CODE_MOVE, field code_size: found 17, expected at most 16",
            ),
            (
                u64::MAX,
                "0x109: jitdump record CODE_MOVE, field code_size: found 18446744",
            ),
        ],
    },
];

/// Converts a dump in which a field has another value. Returns the notes, the mappings, and the
/// size of all images in bytes.
fn converted(bytes: &[u8]) -> (Vec<String>, Vec<String>, u64) {
    let folder = CodeFolder::new();
    let path = folder.path("jit-5.dump");
    fs::write(&path, bytes).expect("a file");
    let stage = Jit::new(folder.destination()).synced(false);
    let marker = path.to_str().expect("text");
    let told = [(50, Map(5, 0, 1, marker)), (900, Sample(5, 0x1000))];
    let (notes, records) = folder.converted(&told, Box::new(stage));
    let size = |name: &String| {
        let image = fs::metadata(folder.path("out.jit").join(name));
        image.expect("an image").len()
    };
    let size = folder.images().iter().map(size).sum();
    (notes, records, size)
}

/// Puts a length into the dump. A note must contain `expected`, or there is no note about a problem
/// if that is empty. Returns whether the second function was found.
fn check(big: bool, name: &str, at: usize, value: Buf, expected: &str) -> bool {
    let mut bytes = dump(big);
    bytes[at..][..value.bytes.len()].copy_from_slice(&value.bytes);
    let (notes, records, size) = converted(&bytes);
    let what = format!("{name} = {:x?}: {notes:?} {records:?}", value.bytes);
    let words = ["skipped", "incomplete", "cannot be read"];
    let is_problem = |note: &&String| words.iter().any(|word| note.contains(word));
    match notes.iter().find(is_problem) {
        Some(note) => assert!(!expected.is_empty() && note.contains(expected), "{what}"),
        None => assert_eq!(expected, "", "{what}"),
    }
    // Each image is smaller than the dump and the parts that all images have.
    assert!(size <= 2 * (bytes.len() as u64 + 0x400), "{what}");
    records.contains(&"130 5/5 0x3000+0x10 @0x80 jitted-5-2.so".to_owned())
}

/// A length in a record says nothing about the next record, which is read.
#[test]
fn lengths_in_records_are_checked() {
    for big in [false, true] {
        for length in &LENGTHS {
            for (value, expected) in length.values {
                let expected = match *expected {
                    "" => String::new(),
                    expected => format!("at offset {expected}"),
                };
                let value = Buf::new(big).u64(*value);
                let goes_on = check(big, length.name, length.at, value, &expected);
                assert!(goes_on, "{} {expected}", length.name);
            }
        }
    }
}

/// The size of a record says where the next one is.
#[test]
fn sizes_of_records_are_checked() {
    for big in [false, true] {
        for (name, at, size, fixed) in RECORDS {
            let check = |value: usize, expected: &str| {
                let value = u32::try_from(value).expect("32 bits");
                check(big, name, at + 4, Buf::new(big).u32(value), expected)
            };
            for value in [0, 1, 15] {
                let expected = format!(
                    "at offset {at:#x}: jitdump record {name}, field total_size: found {value}, expected 16 or more"
                );
                check(value, &expected);
            }
            let filling = if name == "CODE_UNWINDING_INFO" { 3 } else { 0 };
            for value in [16, fixed - 1, size - filling - 1] {
                // A field of the record is not inside of it.
                if (16..size).contains(&value) {
                    let expected = format!(": jitdump record {name}, field ");
                    check(value, &expected);
                }
            }
            // This record ends inside of the next one.
            if name != "CODE_CLOSE" {
                check(size + 1, "at offset 0x");
            }
            let incomplete = format!("the last record is incomplete, at offset {at:#x}");
            check(FILE as usize - at + 1, &incomplete);
            let too_large = format!(
                "at offset {at:#x}: jitdump record {name}: 4294967295 exceeds the limit max-metadata"
            );
            check(u32::MAX as usize, &too_large);
        }
    }
}

/// The size of the header says where the first record is.
#[test]
fn the_size_of_the_header_is_checked() {
    for big in [false, true] {
        let check = |value: u64, expected: &str| {
            let value = u32::try_from(value).expect("32 bits");
            check(big, "header", 8, Buf::new(big).u32(value), expected)
        };
        for value in [0, 1, 39] {
            let expected = format!(
                "at offset 0x0: jitdump header, field total_size: found {value}, expected 40 or more"
            );
            check(value, &expected);
        }
        for value in [FILE + 1, u64::from(u32::MAX)] {
            let expected =
                format!("at offset 0x0: jitdump header: {value} bytes needed, {FILE} available");
            check(value, &expected);
        }
        check(41, "at offset 0x29");
        // The record with the lines is skipped, and so is everything.
        assert!(check((HEADER + DEBUG_INFO) as u64, ""));
        assert!(!check(FILE, ""));
    }
}

/// What describes a damaged function is not used for the next one.
#[test]
fn a_damaged_function_keeps_its_unwinding_information() {
    for big in [false, true] {
        let mut bytes = dump(big);
        let size = Buf::new(big).u64(17).bytes;
        bytes[LOAD_AT + 40..][..8].copy_from_slice(&size);
        let (_, records, size) = converted(&bytes);
        assert_eq!(
            records,
            [
                "130 5/5 0x3000+0x10 @0x80 jitted-5-2.so",
                "900 sample 0x1000"
            ]
        );
        let bare = Dump::new(big, Header::of(5)).load(130, 0x3000, 2, "other", &[0x91; 16]);
        assert_eq!(size, converted(&bare.bytes()).2);
    }
}
