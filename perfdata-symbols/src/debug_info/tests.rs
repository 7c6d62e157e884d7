//! Debug information in files that are made here.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::*;

/// A section: its name, its content, and whether it is stored compressed.
type Part<'a> = (&'a str, Vec<u8>, bool);

/// Returns an ELF file for 64-bit little-endian machines with these sections.
fn elf(parts: &[Part<'_>]) -> Elf {
    let mut names = vec![0];
    let mut content = vec![0; 64];
    let mut headers = vec![0; 64];
    for (name, data, is_packed) in parts.iter().chain([&(".shstrtab", vec![], false)]) {
        let name_at = names.len() as u32;
        names.extend(name.bytes().chain([0]));
        let data = match (*name, is_packed) {
            (".shstrtab", _) => names.clone(),
            (_, true) => {
                let mut packed = Vec::new();
                packed.extend(1_u32.to_le_bytes());
                packed.extend([0; 4]);
                packed.extend((data.len() as u64).to_le_bytes());
                packed.extend(1_u64.to_le_bytes());
                let mut encoder = ZlibEncoder::new(packed, Compression::default());
                encoder.write_all(data).unwrap();
                encoder.finish().unwrap()
            }
            _ => data.clone(),
        };
        let flags: u64 = if *is_packed { 0x800 } else { 0 };
        headers.extend(name_at.to_le_bytes());
        headers.extend(1_u32.to_le_bytes());
        for number in [flags, 0, content.len() as u64, data.len() as u64, 0, 1, 0] {
            headers.extend(number.to_le_bytes());
        }
        content.extend(data);
    }
    let count = (parts.len() + 2) as u16;
    let mut header = b"\x7fELF\x02\x01\x01".to_vec();
    header.resize(16, 0);
    header.extend(3_u16.to_le_bytes());
    header.extend(62_u16.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    for number in [0, 0, content.len() as u64] {
        header.extend(number.to_le_bytes());
    }
    header.extend(0_u32.to_le_bytes());
    for number in [64, 56, 0, 64, count, count - 1] {
        header.extend(number.to_le_bytes());
    }
    content[..64].copy_from_slice(&header);
    content.extend(headers);
    Elf::from_bytes(content).unwrap()
}

/// The abbreviations of a unit (1), of a function with a name (2), and of an inlined function (3).
fn abbreviations() -> Vec<u8> {
    let lists: [&[u8]; 3] = [
        // low_pc, high_pc, stmt_list, comp_dir
        &[0x11, 1, 0x11, 1, 0x12, 7, 0x10, 0x17, 0x1b, 8, 0, 0],
        // name, decl_line, low_pc, high_pc
        &[0x2e, 1, 3, 8, 0x3b, 0xb, 0x11, 1, 0x12, 7, 0, 0],
        // abstract_origin, low_pc, high_pc, call_file, call_line
        &[
            0x1d, 1, 0x31, 0x13, 0x11, 1, 0x12, 7, 0x58, 0xb, 0x59, 0xb, 0, 0,
        ],
    ];
    let lists = (1..).zip(lists);
    let mut all: Vec<u8> = lists
        .flat_map(|(code, list)| [&[code], list].concat())
        .collect();
    all.push(0);
    all
}

fn range(begin: u64, size: u64) -> Vec<u8> {
    [begin.to_le_bytes(), size.to_le_bytes()].concat()
}

fn function(name: &str, line: u8, begin: u64, size: u64) -> Vec<u8> {
    [&[2], name.as_bytes(), &[0, line], &range(begin, size)].concat()
}

fn inlined(origin: u32, begin: u64, size: u64, line: u8) -> Vec<u8> {
    [
        &[3],
        origin.to_le_bytes().as_slice(),
        &range(begin, size),
        &[1, line],
    ]
    .concat()
}

/// Returns a unit of version 4 with these entries.
fn unit(entries: &[u8]) -> Vec<u8> {
    let first = [&[1], &*range(0x1000, 0x100), &[0; 4], b"/src\0"].concat();
    let body = [&[4, 0, 0, 0, 0, 0, 8], &*first, entries].concat();
    [(body.len() as u32).to_le_bytes().as_slice(), &body].concat()
}

/// The offset in the unit of the entry after the first one.
const AFTER_FIRST: u32 = 11 + 1 + 16 + 4 + 5;

/// Returns a line number program: lines 10, 11, 12, … each for 16 bytes from 0x1000.
fn line_program() -> Vec<u8> {
    let mut header = vec![1, 1, 1, 0xfb, 14, 13];
    header.extend([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
    header.extend(b"\0a.c\0\0\0\0\0");
    let mut program = vec![0, 9, 2];
    program.extend(0x1000_u64.to_le_bytes());
    program.extend([3, 9, 1]);
    for _ in 1..16 {
        program.extend([2, 16, 3, 1, 1]);
    }
    program.extend([2, 16, 0, 1, 1]);
    let length = (header.len() as u32).to_le_bytes();
    let body = [&[4, 0], length.as_slice(), &header, &program].concat();
    [(body.len() as u32).to_le_bytes().as_slice(), &body].concat()
}

fn parts(entries: &[u8], is_packed: bool) -> Vec<Part<'static>> {
    vec![
        (".debug_info", unit(entries), is_packed),
        (".debug_abbrev", abbreviations(), false),
        (".debug_line", line_program(), is_packed),
    ]
}

/// Returns the name, the line of the declaration, and the line of each function at an address.
fn found(info: &mut DebugInfo, address: u64) -> Vec<(String, u32, u32)> {
    let frames = info.find(address).into_iter().map(|frame| {
        assert_eq!(frame.file.as_deref(), Some(&b"/src/a.c"[..]));
        let name = frame.function.unwrap_or_default();
        let name = String::from_utf8(name.to_vec()).unwrap();
        (name, frame.start_line, frame.line)
    });
    frames.collect()
}

/// `inner` is inlined into `middle`, and `middle` into `outer`; `other` follows.
fn nested() -> Vec<u8> {
    let inner = function("inner", 3, 0, 0);
    let middle = function("middle", 4, 0, 0);
    let inner_at = AFTER_FIRST;
    let middle_at = inner_at + inner.len() as u32 + 1;
    [
        inner,
        vec![0],
        middle,
        vec![0],
        function("outer", 5, 0x1000, 0x80),
        inlined(inner_at, 0x1008, 8, 50),
        vec![0],
        inlined(middle_at, 0x1020, 0x40, 51),
        inlined(inner_at, 0x1030, 0x10, 52),
        vec![0, 0, 0],
        function("other", 6, 0x1080, 0x80),
        vec![0, 0],
    ]
    .concat()
}

#[test]
fn inlined_functions_and_lines_are_found() {
    for is_packed in [false, true] {
        let elf = elf(&parts(&nested(), is_packed));
        let mut info = DebugInfo::parse(&elf, 1 << 20).unwrap();
        let frame = |name: &str, declared, line| (name.to_owned(), declared, line);
        assert_eq!(found(&mut info, 0x1000), [frame("outer", 5, 10)]);
        let inner = [frame("inner", 3, 10), frame("outer", 5, 50)];
        assert_eq!(found(&mut info, 0x1008), inner);
        let all = [
            frame("inner", 3, 13),
            frame("middle", 4, 52),
            frame("outer", 5, 51),
        ];
        assert_eq!(found(&mut info, 0x103f), all);
        assert_eq!(
            found(&mut info, 0x1040),
            [all[1].clone(), all[2].clone()].map(|(name, declared, line)| match &*name {
                "middle" => (name, declared, 14),
                _ => (name, declared, line),
            })
        );
        assert_eq!(found(&mut info, 0x10ff), [frame("other", 6, 25)]);
        for address in [0, 0xfff, 0x1100, u64::MAX] {
            assert_eq!(info.find(address), []);
        }
    }
}

#[test]
fn deep_nesting_is_bounded() {
    let inner = function("inner", 3, 0, 0);
    let mut entries = [inner, vec![0], function("outer", 5, 0x1000, 0x100)].concat();
    for _ in 0..200_000 {
        entries.extend(inlined(AFTER_FIRST, 0x1000, 0x100, 50));
    }
    let elf = elf(&parts(&entries, false));
    let mut info = DebugInfo::parse(&elf, 1 << 24).unwrap();
    assert_eq!(info.find(0x1000).len(), MOST_INLINED + 1);
}

#[test]
fn references_in_a_circle_end() {
    let entries = [
        function("outer", 5, 0x1000, 0x100),
        // It refers to itself.
        inlined(
            AFTER_FIRST + function("outer", 5, 0, 0).len() as u32,
            0x1000,
            0x100,
            50,
        ),
        vec![0, 0, 0],
    ]
    .concat();
    let mut info = DebugInfo::parse(&elf(&parts(&entries, false)), 1 << 20).unwrap();
    let frames = info.find(0x1000);
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[0].function, None);
}

#[test]
fn memory_is_limited() {
    let elf = elf(&parts(&nested(), false));
    assert!(DebugInfo::parse(&elf, 100).is_none());
    let mut most = 100;
    while DebugInfo::parse(&elf, most).is_none() {
        most += 16;
        assert!(most < 10_000);
    }
    // There is room for the units, but not for all of their lines.
    let mut info = DebugInfo::parse(&elf, most).unwrap();
    assert!(info.find(0x103f).len() <= 3);
    assert!(info.held() <= most);
}

#[test]
fn damaged_information_is_harmless() {
    let whole = parts(&nested(), false);
    for part in 0..whole.len() {
        for at in 0..whole[part].1.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[part].1[at] = value;
                if let Some(mut info) = DebugInfo::parse(&elf(&damaged), 1 << 20) {
                    for address in (0x1000..0x1100).step_by(24) {
                        info.find(address);
                    }
                }
            }
            let mut short = whole.clone();
            short[part].1.truncate(at);
            if let Some(mut info) = DebugInfo::parse(&elf(&short), 1 << 20) {
                info.find(0x103f);
            }
        }
    }
}
