//! Small inputs: compressed data, ELF files, jitdumps, lists of build IDs, values of feature
//! sections.

use std::fs;
use std::path::PathBuf;

use perfdata_convert::io::{Input, Output};
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_convert::stages::edit::{Change, Edit};
use perfdata_core::Endian;
use perfdata_core::jitdump::{JitRecord, JitdumpReader};
use perfdata_core::read::{Decompressor, Limits};
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::wire::Wire;
use perfdata_demangle::{Demangler, MAX_TEXT, Style};
use perfdata_inject::build_ids::KnownBuildIds;
use perfdata_symbols::{Elf, machine};

use crate::recordings;
use crate::synth::jitdump::{Dump, Header};
use crate::synth::object::object;

/// Maximum decompressed size of a record in this test: 1 MiB.
const MOST: usize = 1 << 20;

/// Decompresses the data of compressed records, in pieces of up to 255 bytes, each preceded by its
/// length.
pub fn zstd(data: &[u8]) {
    for endian in [Endian::Little, Endian::Big] {
        let mut stream = Decompressor::new(
            endian,
            Limits::default().with_max_decompressed(Some(MOST as u64)),
        )
        .expect("a decoder");
        let (mut rest, mut total) = (data, 0);
        while let Some((&len, behind)) = rest.split_first() {
            let (piece, behind) = behind.split_at(usize::from(len).min(behind.len()));
            rest = behind;
            let bytes = [&[0; 8], piece].concat();
            let raw = RawRecord {
                offset: 0,
                kind: RecordType::COMPRESSED,
                misc: 0,
                bytes: &bytes,
                endian,
            };
            if stream.push(&raw).is_err() {
                break;
            }
            let before = total;
            while let Ok(Some(record)) = stream.next() {
                total += record.bytes.len();
            }
            assert!(
                total - before <= MOST + usize::from(u16::MAX) + (1 << 18),
                "more than the limit came out"
            );
        }
    }
}

/// Returns the compressed data of real recordings, in pieces.
pub(super) fn zstd_seeds() -> Vec<Vec<u8>> {
    let record =
        |kind: u32, size: u16| [&kind.to_le_bytes()[..], &[0, 0], &size.to_le_bytes()].concat();
    let plain: Vec<u8> = (0..100_u32)
        .flat_map(|n| [record(9, 16), vec![n as u8; 8]].concat())
        .collect();
    let compressed = zstd::encode_all(plain.as_slice(), 1).unwrap_or_default();
    let pieces = |bytes: &[u8], len: usize| -> Vec<u8> {
        bytes
            .chunks(len)
            .flat_map(|piece| [&[piece.len() as u8][..], piece].concat())
            .collect()
    };
    vec![
        pieces(&compressed, 255),
        pieces(&compressed, 7),
        pieces(&[&compressed[..], &compressed[..]].concat(), 100),
    ]
}

/// Parses an ELF file, and notes without a file.
pub fn elf(data: &[u8]) {
    if let Ok(elf) = Elf::from_bytes(data.to_vec()) {
        let _ = (elf.build_id(), elf.debug_link());
    }
    let _ = machine::build_id_in_notes(data);
}

/// Returns the ELF files among the fixtures.
pub(super) fn elf_seeds() -> Vec<Vec<u8>> {
    let files =
        fs::read_dir(recordings::fixtures_dir().join("elf")).expect("part of the repository");
    files
        .filter_map(|file| fs::read(file.ok()?.path()).ok())
        .collect()
}

/// Reads a jitdump, as a whole and in two parts. Every record is encoded as the bytes that it was
/// decoded from.
pub fn jitdump(data: &[u8]) {
    let limits = Limits::default().with_max_metadata(1 << 20);
    let Ok(mut dump) = JitdumpReader::new(data, limits) else {
        return;
    };
    let mut errors = 0;
    let mut records: Vec<JitRecord> = Vec::new();
    loop {
        let at = dump.offset() as usize;
        match dump.next() {
            Ok(Some(record)) => {
                let bytes = record.encode(dump.endian()).expect("it was decoded");
                assert_eq!(data[at..][..bytes.len()], bytes, "at {at:#x}");
                assert_eq!(dump.offset() as usize, at + bytes.len());
                records.push(record);
            }
            Ok(None) => break,
            Err(_) => errors += 1,
        }
        assert!(errors + records.len() <= data.len() / JitRecord::HEAD);
    }
    // A record that arrives later gives the same records.
    let half = data.len() / 2;
    let parts = std::cell::RefCell::new(vec![&data[half..], &data[..half]]);
    let Ok(mut dump) = JitdumpReader::new(Parts(&parts), limits) else {
        return;
    };
    let mut again = Vec::new();
    let mut ends = 0;
    while ends < 3 {
        match dump.next() {
            Ok(Some(record)) => again.push(record),
            Ok(None) => ends += 1,
            Err(_) => {}
        }
    }
    assert_eq!(again, records);
}

/// A file that grows when its end is reached.
struct Parts<'a, 'data>(&'a std::cell::RefCell<Vec<&'data [u8]>>);

impl std::io::Read for Parts<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let mut parts = self.0.borrow_mut();
        let Some(part) = parts.last_mut() else {
            return Ok(0);
        };
        let got = std::io::Read::read(part, buf)?;
        if got == 0 {
            parts.pop();
        }
        Ok(got)
    }
}

/// Returns dumps of both byte orders with all records.
pub(super) fn jitdump_seeds() -> Vec<Vec<u8>> {
    let dump = |big, size| {
        let header = Header {
            size,
            ..Header::of(7)
        };
        Dump::new(big, header)
            .load(1, 0x1000, 1, "first", b"\x90\xc3")
            .lines(2, 0x2000, &[(0x2000, 10, b"a.js"), (0x2001, 11, b"\xff")])
            .unwinding(3, &[1; 16], &[2; 20], 36)
            .load(4, 0x2000, 2, "second", &[0x90; 16])
            .moved(5, 0x1000, 0x3000, 2, 1)
            .close(6)
            .bytes()
    };
    vec![dump(false, 40), dump(true, 40), dump(false, 56)]
}

/// Parses data as an ELF file with symbols, as a list of kernel symbols, as a perf map, and as
/// mangled names.
pub fn symbols(data: &[u8]) {
    perfdata_symbols::parse_everything(data);
}

/// Returns ELF files, and short lists and names.
pub(super) fn symbols_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "ffffffff81000000 T _text\nffffffffc0000000 t init\t[ext4]\n",
        "1000 20 first name\n0x1020 10 second\n",
        "_ZNSt6vectorIiSaIiEE9push_backERKi\n_ZN4core3fmt5write17h0123456789abcdefE\n_RNvCs1234_7mycrate3foo\n",
    ];
    let texts = texts.iter().map(|text| text.as_bytes().to_vec());
    elf_seeds().into_iter().chain(texts).collect()
}

/// Demangles each line as a C++ name, in all styles.
pub fn demangle(data: &[u8]) {
    let style = Style::new();
    let styles = [style, style.verbose(), style.without_parameters()];
    let mut demangler = Demangler::new();
    for name in data.split(|&byte| byte == b'\n') {
        for style in styles {
            let text = demangler.demangle(name, style);
            assert!(text.is_none_or(|text| text.len() <= MAX_TEXT));
        }
    }
}

/// Returns names of every production of the grammar, each as an input.
pub(super) fn demangle_seeds() -> Vec<Vec<u8>> {
    let names = include_str!("../../../perfdata-demangle/tests/names.txt");
    let names = names.lines().filter(|line| !line.starts_with('#'));
    let names = names.filter_map(|line| line.split('\t').next());
    names.map(|name| name.as_bytes().to_vec()).collect()
}

/// Parses the format of a tracepoint and prints raw data with it.
pub fn tracepoint(data: &[u8]) {
    let longest = perfdata_tracepoint::print_everything(data);
    // The limit, and the longest conversion after it.
    let most = (128 << 10) + 64 * data.len();
    assert!(longest <= most, "a text of {longest} bytes");
}

/// Returns formats with raw data: all functions of libtraceevent, all letters of pointers.
pub(super) fn tracepoint_seeds() -> Vec<Vec<u8>> {
    const HEAD: &str = "name: n\nID: 7\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:int a;\toffset:4;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] d;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:u8 m[6];\toffset:12;\tsize:6;\tsigned:0;\n\
        \tfield:__rel_loc u64[] r;\toffset:20;\tsize:4;\tsigned:0;\n\n\
        print fmt: ";
    let formats = [
        r#""%d %5s|%-*s", REC->a ? -1 : REC->a << 2, __get_str(d), 9, "x""#,
        r#""%s %s", __print_flags(REC->a, "|", { 1 << 0, "a" }), __print_symbolic(REC->a, { 3, "c" })"#,
        r#""%s %s %s", __print_hex(REC->m, 6), __print_array(__get_dynamic_array(r), 1, 8), __get_bitmask(r)"#,
        r#""%pM %pI4 %pI6c %pU %pS %*ph %pISpc", REC->m, REC->m, REC->m, REC->m, REC->a, 3, __get_dynamic_array(r), __get_sockaddr(d)"#,
        r#""%s %s %d", __get_cpumask(r), __get_stacktrace(r), ((u16 *)__get_dynamic_array(r))[1] + sizeof(REC->a)"#,
        r#""%d", no_function(REC->a)"#,
    ];
    let raw = b"\x07\0\0\0\x01\0\0\0\x18\0\x04\0\x01\x02\x03\x04\x05\x06\0\0\x04\0\x08\0abc\0\xff\0\0\0\x01\0\0\0";
    let seed = |format: &str| [HEAD.as_bytes(), format.as_bytes(), b"\n\0", raw].concat();
    formats.into_iter().map(seed).collect()
}

/// Unwinds with an object and a stack of arbitrary data.
pub fn unwind(data: &[u8]) {
    perfdata_unwind::unwind_everything(data);
}

/// Returns an object with call frame information.
pub(super) fn unwind_seeds() -> Vec<Vec<u8>> {
    vec![object()]
}

/// Parses a list of build IDs, separated by commas or on lines.
pub fn known(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if !text.starts_with("file://") {
        let _ = KnownBuildIds::parse(&text);
    }
    let file = tempfile::NamedTempFile::new().expect("files can be made");
    fs::write(file.path(), data).expect("files can be written");
    let _ = KnownBuildIds::parse(&format!("file://{}", file.path().display()));
}

/// Returns lists as users and perf write them.
pub(super) fn known_seeds() -> Vec<Vec<u8>> {
    let id = "0123456789abcdef0123456789abcdef01234567";
    [
        format!("{id} /bin/a b, aaBB [kernel.kallsyms]"),
        format!("{id} /bin/a\n   /bin/none\n\n1234 [vdso]\n"),
    ]
    .map(String::into_bytes)
    .to_vec()
}

/// Applies `NAME=VALUE` of `--set`.
pub fn set(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Some((name, value)) = text.split_once('=') else {
        return;
    };
    let Ok(edit) = Edit::new([(name.to_owned(), Change::Set(value.to_owned()))]) else {
        return;
    };
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let path: PathBuf = folder.path().join("output");
    let stages: Vec<Box<dyn Stage>> = vec![Box::new(edit)];
    let input = recordings::fixture("6.12-x86_64-file-tid").path;
    let output = Output::create(&path, &input, false)
        .expect("a new file")
        .synced(false);
    if Conversion::new(stages).run(&input, output).is_ok() {
        Input::open(&path)
            .and_then(Input::reader)
            .expect("the output is a recording");
    }
}

/// Returns the sections of a recording as JSON, and further text.
pub(super) fn set_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "HOSTNAME=build-7",
        "NRCPUS={\"available\": 8, \"online\": 4}",
        "TOTAL_MEM=1048576",
        "CMDLINE=[\"perf\", \"record\"]",
        "SAMPLE_TIME={\"first\": 1, \"last\": 2}",
        "CLOCKID=1000",
        "GROUP_DESC=[{\"name\": \"g\", \"leader_idx\": 0, \"nr_members\": 2}]",
        "CPU_TOPOLOGY={\"core_siblings\": [\"0-3\"], \"thread_siblings\": [\"0\"]}",
        "99=",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
