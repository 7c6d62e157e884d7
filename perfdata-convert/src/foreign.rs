//! Recognises files that are not recordings of perf by their first bytes.

use std::io::Read;

use perfdata_core::read::zstd_reader;

/// Number of bytes that are examined.
pub const SNIFF: usize = 4096;

/// Maximum window of compressed data that is decompressed for this purpose, as a power of 2.
const WINDOW_LOG: u32 = 23;

/// A file that is not a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Foreign {
    /// A description, as in "x.data is …".
    pub what: &'static str,
    /// The program that extracts a stream with a recording from it.
    pub unpack: Option<&'static str>,
}

/// First bytes of compressed files, and the programs that decompress them to a stream.
const PACKED: &[(&[u8], &str)] = &[
    (b"\x1f\x8b", "zcat"),
    (b"\xfd7zXZ\0", "xzcat"),
    (b"\x28\xb5\x2f\xfd", "zstdcat"),
    (b"BZh", "bzcat"),
    (b"\x04\x22\x4d\x18", "lz4cat"),
];

/// First bytes of other files.
const OTHERS: &[(&[u8], &str)] = &[
    (b"\x7fELF", "an ELF file: a program, library or core"),
    (
        b"\x17\x08\x44tracing",
        "a recording of trace-cmd (trace.dat), which trace-cmd report reads",
    ),
    (
        b"SIMPLEPERF",
        "output of simpleperf report-sample; perfconv reads files of simpleperf record",
    ),
    (
        b"{\"meta\":{",
        "a profile for the Firefox Profiler; perfconv reads files of perf record",
    ),
    (
        b"{\"linux-perf-json-version\"",
        "JSON of perf data convert; perfconv reads files of perf record",
    ),
    (b"{", "text in JSON; perfconv reads files of perf record"),
    (b"PK\x03\x04", "a ZIP archive; it may contain a recording"),
];

/// The offset and the bytes that identify a tar archive.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// Returns the type of a file that starts with `first`; `None` if it is not known.
pub fn recognise(first: &[u8]) -> Option<Foreign> {
    if let Some(unpack) = PACKED
        .iter()
        .find(|(start, _)| first.starts_with(start))
        .map(|(_, program)| *program)
    {
        return Some(packed(&unpacked(first), unpack));
    }
    let is_tar = first
        .get(TAR.0..)
        .is_some_and(|rest| rest.starts_with(TAR.1));
    let what = if is_tar {
        "a tar archive; it may contain a recording"
    } else if is_pprof(first) {
        "a profile for pprof; perfconv reads files of perf record"
    } else if let Some((_, what)) = OTHERS.iter().find(|(start, _)| first.starts_with(start)) {
        what
    } else if is_text(first) {
        "text; perfconv reads files of perf record, not output of perf script"
    } else {
        return None;
    };
    Some(Foreign { what, unpack: None })
}

/// Returns the type of a compressed file whose decompressed content starts with `first`.
fn packed(first: &[u8], unpack: &'static str) -> Foreign {
    let is_tar = first
        .get(TAR.0..)
        .is_some_and(|rest| rest.starts_with(TAR.1));
    let what = if is_tar {
        "a compressed tar archive; it may contain a recording"
    } else if is_pprof(first) {
        "a compressed profile for pprof; perfconv reads files of perf record"
    } else if first.starts_with(b"{\"meta\":{") {
        "a compressed profile for the Firefox Profiler; perfconv reads files of perf record"
    } else {
        return Foreign {
            what: "a compressed file",
            unpack: Some(unpack),
        };
    };
    Foreign { what, unpack: None }
}

/// Returns the start of the decompressed content of a compressed file, as far as its first bytes
/// contain it.
fn unpacked(first: &[u8]) -> Vec<u8> {
    if first.starts_with(b"\x1f\x8b") {
        start_of(flate2::read::GzDecoder::new(first))
    } else if first.starts_with(b"\x28\xb5\x2f\xfd") {
        zstd_reader(first, WINDOW_LOG).map_or_else(|_| Vec::new(), start_of)
    } else if first.starts_with(b"\xfd7zXZ\0") {
        start_of(lzma_rust2::XzReader::new_mem_limit(
            first,
            false,
            1 << (WINDOW_LOG - 10),
        ))
    } else {
        Vec::new()
    }
}

/// Reads the bytes up to the first error.
fn start_of(mut reader: impl Read) -> Vec<u8> {
    let mut bytes = vec![0; TAR.0 + TAR.1.len()];
    let mut len = 0;
    while let Some(room) = bytes.get_mut(len..).filter(|room| !room.is_empty()) {
        match reader.read(room) {
            Ok(read) if read > 0 => len += read,
            _ => break,
        }
    }
    bytes.truncate(len);
    bytes
}

/// A Profile in protocol buffers starts with a ValueType: field 1, a few bytes, and in it field 1,
/// a number.
fn is_pprof(first: &[u8]) -> bool {
    matches!(first, [0x0a, 2..=12, 0x08, ..])
}

fn is_text(first: &[u8]) -> bool {
    let whole = match std::str::from_utf8(first) {
        Ok(text) => text,
        // The last character may be truncated.
        Err(error) if error.error_len().is_none() => first
            .get(..error.valid_up_to())
            .and_then(|text| std::str::from_utf8(text).ok())
            .unwrap_or_default(),
        Err(_) => return false,
    };
    // Programs with coloured output write escape sequences.
    let is_of_text = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\x1b');
    !whole.is_empty() && whole.chars().all(is_of_text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder
            .write_all(bytes)
            .and_then(|()| encoder.finish())
            .expect("memory")
    }

    #[test]
    fn things_are_recognised() {
        let mut tar = vec![0; 512];
        tar[..6].copy_from_slice(b"x.data");
        tar[257..262].copy_from_slice(b"ustar");
        let pprof = [0x0a, 4, 0x08, 1, 0x10, 2, 0x0a, 4, 0x08, 3];
        for (bytes, what, unpack) in [
            (tar.clone(), "a tar archive", None),
            (gzip(&tar), "a compressed tar archive", None),
            (
                zstd::encode_all(&tar[..], 1).expect("memory"),
                "a compressed tar archive",
                None,
            ),
            (pprof.to_vec(), "a profile for pprof", None),
            (gzip(&pprof), "a compressed profile for pprof", None),
            (
                gzip(b"{\"meta\":{\"version\":24}}"),
                "a compressed profile for the Firefox",
                None,
            ),
            (
                b"{\"meta\":{\"version\":24}}".to_vec(),
                "a profile for the Firefox",
                None,
            ),
            (gzip(b"PERFILE2"), "a compressed file", Some("zcat")),
            (
                b"\xfd7zXZ\0\0\x04".to_vec(),
                "a compressed file",
                Some("xzcat"),
            ),
            (
                b"\x17\x08\x44tracing6\0".to_vec(),
                "a recording of trace-cmd",
                None,
            ),
            (
                b"SIMPLEPERF\x01\0".to_vec(),
                "output of simpleperf report-sample",
                None,
            ),
            (
                b"{\"linux-perf-json-version\": 1}".to_vec(),
                "JSON of perf data convert",
                None,
            ),
            (b"{}".to_vec(), "text in JSON", None),
            ("grün".as_bytes()[..3].to_vec(), "text; ", None),
        ] {
            let found = recognise(&bytes).unwrap_or_else(|| panic!("{what}"));
            assert!(
                found.what.starts_with(what) && found.unpack == unpack,
                "{what}: {found:?}"
            );
        }
        for bytes in [
            &b""[..],
            b"\0\0\0\0",
            b"PERFILE2\x68\0",
            b"\x0a\x01\x08",
            b"\xff\xfe",
        ] {
            assert_eq!(recognise(bytes), None, "{bytes:?}");
        }
    }
}
