//! Bundles: a recording and its objects in one file.

use std::io::Read;
use std::sync::Arc;

use perfdata_bundle::{Bundle, BundleWriter, Member};

/// Maximum number of bytes that are read of a member.
const MOST: u64 = 1 << 20;

/// Reads a bundle and all of its members. Names of objects lead into the folder.
pub fn bundle(data: &[u8]) {
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

/// Returns a small bundle.
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
    make().into_iter().collect()
}
