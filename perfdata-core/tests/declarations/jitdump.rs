//! jitdumps: values of every record against bytes in both byte orders, and the reader.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read};

use perfdata_core::Endian;
use perfdata_core::feature::ElfMachine;
use perfdata_core::jitdump::{
    CodeLoad, CodeMove, JitBody, JitDebugEntry, JitDebugInfo, JitFlags, JitHeader, JitRecord,
    JitRecordType, JitdumpReader, MAGIC, UnwindingInfo, recognise,
};
use perfdata_core::read::Limits;
use perfdata_core::wire::{CStr, List, Rest, Wire};

use super::header_values::{check, hex};

#[test]
fn header() {
    let header = JitHeader {
        magic: MAGIC,
        version: 1,
        total_size: 40,
        elf_mach: ElfMachine::X86_64,
        pad1: 0xDEAD_BEEF,
        pid: 461,
        timestamp: 0xc_55a9_4bf5,
        flags: JitFlags::ARCH_TIMESTAMP,
    };
    check(
        &header,
        "4454694a 01000000 28000000 3e000000 efbeadde cd010000 f54ba9550c000000 0100000000000000",
        "4a695444 00000001 00000028 0000003e deadbeef 000001cd 0000000c55a94bf5 0000000000000001",
    );
    assert!(header.has_arch_timestamps());
}

fn record(kind: JitRecordType, total_size: u32, body: JitBody) -> JitRecord {
    JitRecord {
        kind,
        total_size,
        timestamp: 0xc_55bd_01ca,
        body,
    }
}

#[test]
fn code_load() {
    let load = CodeLoad {
        pid: 461,
        tid: 462,
        vma: 0x7fa1_0f8a_6000,
        code_addr: 0x7fa1_0f8a_6000,
        code_size: 3,
        code_index: 1,
        // Two bytes between the name and the code.
        name: Rest(b"entry\0xy".to_vec()),
        code: Rest(vec![0x48, 0x89, 0xf9]),
    };
    assert_eq!(load.name(), b"entry");
    check(
        &record(JitRecordType::CODE_LOAD, 67, JitBody::CodeLoad(load)),
        "00000000 43000000 ca01bd550c000000 cd010000 ce010000 00608a0fa17f0000 00608a0fa17f0000
         0300000000000000 0100000000000000 656e747279007879 4889f9",
        "00000000 00000043 0000000c55bd01ca 000001cd 000001ce 00007fa10f8a6000 00007fa10f8a6000
         0000000000000003 0000000000000001 656e747279007879 4889f9",
    );
}

#[test]
fn code_move() {
    let moved = CodeMove {
        pid: 461,
        tid: 462,
        vma: 0x8000,
        old_code_addr: 0x6600,
        new_code_addr: 0x8000,
        code_size: 24,
        code_index: 4,
        tail: Rest(vec![7]),
    };
    check(
        &record(JitRecordType::CODE_MOVE, 65, JitBody::CodeMove(moved)),
        "01000000 41000000 ca01bd550c000000 cd010000 ce010000 0080000000000000 0066000000000000
         0080000000000000 1800000000000000 0400000000000000 07",
        "00000001 00000041 0000000c55bd01ca 000001cd 000001ce 0000000000008000 0000000000006600
         0000000000008000 0000000000000018 0000000000000004 07",
    );
}

#[test]
fn debug_info() {
    let entry = |addr, lineno, discrim, name: &[u8]| JitDebugEntry {
        addr,
        lineno,
        discrim,
        name: CStr::new(name),
    };
    let entries = vec![entry(0x6200, 10, 2, b"a.js"), entry(0x6202, -1, 0, b"\xff")];
    assert_eq!(entries[0].file(), Some(&b"a.js"[..]));
    assert_eq!(entries[1].file(), None);
    let info = JitDebugInfo {
        code_addr: 0x6200,
        nr_entry: 2,
        entries: List(entries),
        padding: Rest(vec![0; 3]),
    };
    check(
        &record(JitRecordType::CODE_DEBUG_INFO, 74, JitBody::DebugInfo(info)),
        "02000000 4a000000 ca01bd550c000000 0062000000000000 0200000000000000
         0062000000000000 0a000000 02000000 612e6a7300
         0262000000000000 ffffffff 00000000 ff00 000000",
        "00000002 0000004a 0000000c55bd01ca 0000000000006200 0000000000000002
         0000000000006200 0000000a 00000002 612e6a7300
         0000000000006202 ffffffff 00000000 ff00 000000",
    );
}

#[test]
fn unwinding_info() {
    let info = UnwindingInfo {
        unwinding_size: 7,
        eh_frame_hdr_size: 3,
        mapped_size: 7,
        eh_frame: Rest(vec![1, 2, 3, 4]),
        eh_frame_hdr: Rest(vec![5, 6, 7]),
        padding: Rest(vec![0]),
    };
    check(
        &record(
            JitRecordType::CODE_UNWINDING_INFO,
            48,
            JitBody::UnwindingInfo(info),
        ),
        "04000000 30000000 ca01bd550c000000 0700000000000000 0300000000000000 0700000000000000
         01020304 050607 00",
        "00000004 00000030 0000000c55bd01ca 0000000000000007 0000000000000003 0000000000000007
         01020304 050607 00",
    );
}

#[test]
fn close_and_unknown_records() {
    check(
        &record(
            JitRecordType::CODE_CLOSE,
            16,
            JitBody::Close(Rest::default()),
        ),
        "03000000 10000000 ca01bd550c000000",
        "00000003 00000010 0000000c55bd01ca",
    );
    check(
        &record(JitRecordType(9), 18, JitBody::Unknown(Rest(vec![1, 2]))),
        "09000000 12000000 ca01bd550c000000 0102",
        "00000009 00000012 0000000c55bd01ca 0102",
    );
}

/// A dump with a header of `header_size` bytes, and these records.
fn dump(endian: Endian, header_size: u32, records: &[Vec<u8>]) -> Vec<u8> {
    let header = JitHeader {
        magic: MAGIC,
        version: 1,
        total_size: header_size,
        elf_mach: ElfMachine::NONE,
        pad1: 0,
        pid: 7,
        timestamp: 0,
        flags: JitFlags(0),
    };
    let mut bytes = header.encode(endian).unwrap();
    bytes.resize(header_size as usize, 0xaa);
    bytes.extend(records.concat());
    bytes
}

/// A CODE_LOAD of `code_index`, whose `code_size` is `size` instead of 2.
fn load(endian: Endian, code_index: u64, size: u64) -> Vec<u8> {
    let load = CodeLoad {
        pid: 7,
        tid: 7,
        vma: 0x1000,
        code_addr: 0x1000,
        code_size: size,
        code_index,
        name: Rest(b"f\0".to_vec()),
        code: Rest(vec![0x90, 0xc3]),
    };
    let body = JitBody::CodeLoad(load);
    record(JitRecordType::CODE_LOAD, 60, body)
        .encode(endian)
        .unwrap()
}

fn index(record: Option<JitRecord>) -> Option<u64> {
    match record?.body {
        JitBody::CodeLoad(load) => Some(load.code_index),
        _ => None,
    }
}

#[test]
fn a_header_may_be_longer_and_the_last_record_incomplete() {
    for endian in [Endian::Little, Endian::Big] {
        let cut = load(endian, 2, 2)[..59].to_vec();
        let bytes = dump(endian, 56, &[load(endian, 1, 2), cut]);
        assert_eq!(recognise(&bytes), Some(endian));
        let mut dump = JitdumpReader::new(&bytes[..], Limits::default()).unwrap();
        assert_eq!((dump.endian(), dump.header().pid), (endian, 7));
        assert_eq!(dump.offset(), 56);
        assert_eq!(index(dump.next().unwrap()), Some(1));
        assert_eq!(dump.next().unwrap(), None);
        assert_eq!((dump.offset(), dump.pending()), (116, 59));
    }
}

/// A file that grows by one part whenever its end is reached.
struct Growing<'a>(&'a RefCell<VecDeque<Vec<u8>>>);

impl Read for Growing<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut parts = self.0.borrow_mut();
        let Some(part) = parts.front_mut() else {
            return Ok(0);
        };
        let got = buf.len().min(part.len());
        buf[..got].copy_from_slice(&part[..got]);
        part.drain(..got);
        if got == 0 {
            parts.pop_front();
        }
        Ok(got)
    }
}

#[test]
fn a_dump_may_grow() {
    let endian = Endian::Little;
    let bytes = dump(endian, 40, &[load(endian, 1, 2), load(endian, 2, 2)]);
    let parts = [&bytes[..70], &bytes[70..105], &bytes[105..]].map(<[u8]>::to_vec);
    let parts = RefCell::new(VecDeque::from(parts));
    let mut dump = JitdumpReader::new(Growing(&parts), Limits::default()).unwrap();
    assert_eq!(dump.next().unwrap(), None);
    assert_eq!(index(dump.next().unwrap()), Some(1));
    assert_eq!(dump.next().unwrap(), None);
    assert_eq!(index(dump.next().unwrap()), Some(2));
    assert_eq!((dump.next().unwrap(), dump.pending()), (None, 0));
}

#[test]
fn lengths_that_lie_are_errors_of_their_record() {
    let endian = Endian::Little;
    let mut nameless = load(endian, 3, 2);
    nameless[57] = b'x';
    let info = UnwindingInfo {
        unwinding_size: 2,
        eh_frame_hdr_size: 3,
        mapped_size: 0,
        eh_frame: Rest::default(),
        eh_frame_hdr: Rest(vec![1, 2, 3]),
        padding: Rest::default(),
    };
    let unwinding = record(
        JitRecordType::CODE_UNWINDING_INFO,
        43,
        JitBody::UnwindingInfo(info),
    );
    let mut lines = hex("02000000 30000000 0000000000000000 0062000000000000 ffffffffffffff00");
    lines.extend(hex("0062000000000000 0a000000 00000000"));
    let records = [
        load(endian, 1, 0x10000),
        load(endian, 2, u64::MAX),
        nameless,
        unwinding.encode(endian).unwrap(),
        lines,
        load(endian, 4, 2),
    ];
    let bytes = dump(endian, 40, &records);
    let mut dump = JitdumpReader::new(&bytes[..], Limits::default()).unwrap();
    let mut errors = Vec::new();
    let last = loop {
        match dump.next() {
            Ok(record) => break index(record),
            Err(error) => errors.push(error.to_string()),
        }
    };
    assert_eq!(last, Some(4));
    assert_eq!(
        errors,
        [
            "at offset 0x60: jitdump record CODE_LOAD, field code: 65536 bytes needed, 4 available",
            "at offset 0x9c: jitdump record CODE_LOAD, field code: 18446744073709551615 bytes needed, 4 available",
            "at offset 0xa0: jitdump record CODE_LOAD, field name: found no NUL before the code, expected a NUL-terminated name",
            "at offset 0xdc: jitdump record CODE_UNWINDING_INFO, field eh_frame_hdr_size: found 3, expected at most unwinding_size, 2",
            "at offset 0x127: jitdump record CODE_DEBUG_INFO, field entries: 72057594037927935 bytes needed, 16 available",
        ]
    );
}

#[test]
fn after_a_wrong_record_size_nothing_is_read() {
    let endian = Endian::Little;
    let mut bytes = dump(endian, 40, &[load(endian, 1, 2), load(endian, 2, 2)]);
    bytes[44] = 15;
    let mut dump = JitdumpReader::new(&bytes[..], Limits::default()).unwrap();
    assert_eq!(
        dump.next().unwrap_err().to_string(),
        "at offset 0x28: jitdump record CODE_LOAD, field total_size: found 15, expected 16 or more"
    );
    assert_eq!(dump.next().unwrap(), None);

    let bytes = self::dump(endian, 40, &[load(endian, 1, 2)]);
    let limits = Limits::default().with_max_metadata(59);
    let mut dump = JitdumpReader::new(&bytes[..], limits).unwrap();
    assert_eq!(
        dump.next().unwrap_err().to_string(),
        "at offset 0x28: jitdump record CODE_LOAD: 60 exceeds the limit max-metadata of 59"
    );
    assert_eq!(dump.next().unwrap(), None);
}

#[test]
fn headers_that_are_refused() {
    let good = dump(Endian::Little, 48, &[]);
    let error = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        let refused = JitdumpReader::new(&bytes[..], Limits::default());
        refused.map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        [error(0, b'x'), error(4, 2), error(8, 39), error(32, 3)],
        [
            "at offset 0x0: jitdump header, field magic: found xTiJ, expected JiTD or DTiJ",
            "at offset 0x0: jitdump header, field version: found 2, expected 1",
            "at offset 0x0: jitdump header, field total_size: found 39, expected 40 or more",
            "at offset 0x0: jitdump header, field flags: found 0x3, expected no flags except ARCH_TIMESTAMP",
        ]
    );
    for len in 0..48 {
        assert!(JitdumpReader::new(&good[..len], Limits::default()).is_err());
    }
}
