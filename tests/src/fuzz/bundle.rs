//! Bundles: a recording and its objects in one file; and archives of `perf archive`.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use perfdata_bundle::{Bundle, BundleWriter, Member, unpack_archive, write_archive};

/// Maximum number of bytes that are read of a member.
const MOST: u64 = 1 << 20;

/// Reads a bundle and all of its members, or an archive. Names of objects lead into the folder.
pub fn bundle(data: &[u8]) {
    if data.starts_with(b"BZh") || data.get(257..262) == Some(b"ustar") {
        archive(data);
    }
    let Ok(bundle) = Bundle::open(Arc::new(data.to_vec())) else {
        return;
    };
    let _ = (bundle.index(), bundle.build_ids());
    for part in bundle.parts() {
        if let Some(path) = part.member.object_path() {
            let mut parts = path.components();
            assert!(parts.all(|part| matches!(part, std::path::Component::Normal(_))));
        }
        if let Ok(reader) = bundle.reader(part) {
            let _ = reader.take(MOST).read_to_end(&mut Vec::new());
        }
    }
}

/// Unpacks an archive of `perf archive`: everything is below the folder, in a build ID cache.
fn archive(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let (packed, target) = (folder.path().join("packed"), folder.path().join("target"));
    fs::write(&packed, data).expect("a file");
    fs::create_dir(&target).expect("a folder");
    let file = fs::File::open(packed).expect("a file");
    let _ = unpack_archive(file, &target);
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(folder.path()), ["packed", "target"]);
    assert!(names(&target).iter().all(|name| name == "debug"));
}

/// Returns a small archive.
fn archive_seed() -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().ok()?;
    let object = Member::cached("0123456789abcdef0123456789abcdef01234567", "elf")?;
    let path = folder.path().join(object.object_path()?);
    fs::create_dir_all(path.parent()?).ok()?;
    fs::write(path, "content").ok()?;
    let mut archive = Vec::new();
    write_archive([&object].into_iter(), folder.path(), &mut archive).ok()?;
    Some(archive)
}

/// Returns a small bundle, and a small archive.
pub(super) fn bundle_seeds() -> Vec<Vec<u8>> {
    let make = || {
        let mut writer = BundleWriter::new(Vec::new(), "{}", b"abcdef /usr/bin/x\n").ok()?;
        let object = Member::cached("abcdef", "elf")?;
        let copy = Member::copied(b"/usr/bin/x")?;
        for member in [Member::Recording, object, copy] {
            writer.add(&member, &mut &b"content"[..], None).ok()?;
        }
        writer.finish().ok()
    };
    make().into_iter().chain(archive_seed()).collect()
}
