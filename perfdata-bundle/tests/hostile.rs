//! Damaged and hostile bundles: an error, never a panic, and nothing outside of the folder.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a panic fails the test"
)]

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use perfdata_bundle::{Bundle, BundleWriter, Error, Member};
use tar::{Builder, EntryType, Header};

fn bundle() -> Vec<u8> {
    let mut writer = BundleWriter::new(Vec::new(), "{}", b"abcdef01 /usr/bin/x\n").unwrap();
    let objects = [
        Member::cached("abcdef01", "elf").unwrap(),
        Member::copied(b"/usr/bin/x").unwrap(),
    ];
    writer
        .add(&Member::Recording, &mut &b"PERFILE2 and so on"[..], None)
        .unwrap();
    for object in &objects {
        writer
            .add(object, &mut &b"\x7fELF and so on"[..], None)
            .unwrap();
    }
    writer.finish().unwrap()
}

/// Reads everything. Returns whether that is possible.
fn read(bytes: &[u8], folder: &Path) -> Result<u64, Error> {
    let bundle = Bundle::open(Arc::new(bytes.to_vec()))?;
    bundle.index()?;
    bundle.build_ids()?;
    bundle.recording()?.read_to_end(&mut Vec::new())?;
    bundle.extract_objects(folder)
}

fn read_anywhere(bytes: &[u8]) -> Result<u64, Error> {
    let folder = tempfile::tempdir().unwrap();
    read(bytes, folder.path())
}

#[test]
fn a_bundle_contains_what_was_added() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(read(&bundle(), folder.path()).unwrap(), 28);
    for name in ["debug/.build-id/ab/cdef01/elf", "root/usr/bin/x"] {
        let content = fs::read(folder.path().join(name)).unwrap();
        assert_eq!(content, b"\x7fELF and so on");
    }
    let ids = Bundle::open(Arc::new(bundle()))
        .unwrap()
        .build_ids()
        .unwrap();
    assert_eq!(ids, [(b"/usr/bin/x".to_vec(), "abcdef01".to_owned())]);
}

#[test]
fn every_truncation_is_an_error() {
    let whole = bundle();
    // Only the second block of zeros at the end can be missing.
    for len in 0..whole.len() - 512 {
        assert!(read_anywhere(&whole[..len]).is_err(), "{len} bytes");
    }
}

#[test]
fn bit_flips_do_no_harm() {
    let whole = bundle();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        let _ = read_anywhere(&bytes);
    }
}

/// Returns the bundle with another member before its end.
fn with(kind: EntryType, name: &[u8], content: &[u8]) -> Vec<u8> {
    let mut bytes = bundle();
    bytes.truncate(bytes.len() - 1024);
    let mut header = Header::new_ustar();
    let field = &mut header.as_ustar_mut().unwrap().name;
    field[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_link_name("/etc/passwd").unwrap();
    header.set_size(content.len() as u64);
    header.set_cksum();
    let mut more = Builder::new(Vec::new());
    more.append(&header, content).unwrap();
    bytes.extend(more.into_inner().unwrap());
    bytes
}

#[test]
fn other_members_are_refused() {
    let name = b"perf.bundle/root/x.zst";
    let content = zstd::encode_all(&b"x"[..], 1).unwrap();
    assert!(read_anywhere(&with(EntryType::Regular, name, &content)).is_ok());
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Fifo,
        EntryType::Directory,
        EntryType::GNULongName,
        EntryType::XHeader,
    ] {
        assert!(read_anywhere(&with(kind, name, b"")).is_err(), "{kind:?}");
    }
    for name in [
        &b"perf.bundle/root/../../x.zst"[..],
        b"/tmp/x.zst",
        b"perf.bundle/recording.zst",
        b"perf.bundle/other",
    ] {
        let bytes = with(EntryType::Regular, name, &content);
        assert!(read_anywhere(&bytes).is_err(), "{}", name.escape_ascii());
    }
}

#[test]
fn small_members_do_not_become_large_ones() {
    let zeros = std::io::repeat(0).take(1 << 30);
    let content = zstd::encode_all(zeros, 1).unwrap();
    let bytes = with(EntryType::Regular, b"perf.bundle/root/x.zst", &content);
    assert!(read_anywhere(&bytes).is_err());
}
