//! What `perf archive` packs (tools/perf/perf-archive.sh, Linux 7.2): a part of a build ID cache, as a tar
//! archive that is compressed by bzip2.
//!
//! ```text
//! .build-id/XX/YYYY -> ../../usr/bin/ls/XXYYYY     a link to a folder
//! usr/bin/ls/XXYYYY/elf                            its files
//! [kernel.kallsyms]/XXYYYY/kallsyms
//! ```
//!
//! Before Linux 4.12, the link led to a file: `usr/bin/ls/XXYYYY`.

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bzip2::Compression;
use bzip2::read::MultiBzDecoder;
use bzip2::write::BzEncoder;
use tar::{Archive, Builder, EntryType, Header};

use crate::error::{Error, Result};
use crate::member::Member;
use crate::read::{MOST_MEMBERS, copied, most_of};

/// The first bytes of a file that bzip2 compressed.
const BZIP2: &[u8] = b"BZh";

/// Writes the objects of an archive into `folder`, which must be empty: a build ID cache. Everything else
/// in the archive is skipped; it is not trusted. Returns the number of objects' files.
///
/// # Errors
/// It is no such archive, is truncated or corrupt, or grows to more than a thousand times its size; or
/// the folder cannot be written.
pub fn unpack_archive(archive: File, folder: &Path) -> Result<u64> {
    let most = most_of(archive.metadata()?.len());
    let mut packed = BufReader::new(archive);
    let mut first = [0; 3];
    packed.read_exact(&mut first)?;
    let packed = Cursor::new(first).chain(packed);
    let plain: Box<dyn Read> = match first == BZIP2 {
        true => Box::new(MultiBzDecoder::new(packed)),
        false => Box::new(packed),
    };
    let mut archive = Archive::new(plain.take(most));
    let (mut total, mut files) = (0_u64, 0_u64);
    for (number, entry) in archive.entries()?.enumerate() {
        let mut entry = entry?;
        if number >= MOST_MEMBERS {
            return Err(too_large(most));
        }
        let name = entry.path_bytes().into_owned();
        let Some(path) = cached(&name).and_then(|member| member.object_path()) else {
            continue;
        };
        let path = folder.join(path);
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {}
            // Another name of a file that was there before.
            EntryType::Link => {
                let target = entry.link_name_bytes();
                let target = target.and_then(|name| cached(&name)?.object_path());
                if let Some(target) = target.filter(|_| !path.exists()) {
                    let target = folder.join(target);
                    if target.is_file() {
                        created_above(&path)?;
                        fs::copy(target, path).map_err(Error::Temporary)?;
                        files = files.saturating_add(1);
                    }
                }
                continue;
            }
            _ => continue,
        }
        if path.exists() || entry.size() == 0 {
            continue;
        }
        created_above(&path)?;
        // The folder contains no links: everything in it comes from here.
        let new = OpenOptions::new().write(true).create_new(true).open(&path);
        let mut file = new.map_err(Error::Temporary)?;
        total = total.saturating_add(copied(&mut entry, &mut file)?);
        if total >= most {
            return Err(too_large(most));
        }
        files = files.saturating_add(1);
        let modified = entry.header().mtime().unwrap_or(0);
        let modified = Duration::from_secs(modified.min(u64::from(u32::MAX)));
        let _ = file.set_modified(UNIX_EPOCH.checked_add(modified).unwrap_or(UNIX_EPOCH));
    }
    match files {
        0 => Err(Error::Missing(
            "file of an object, as perf archive packs them",
        )),
        files => Ok(files),
    }
}

/// Writes an archive of objects that are in `folder` as [`Bundle::extract_objects`] writes them; those
/// without a build ID are left out. `perf archive --unpack` reads it. Returns the number of files.
///
/// [`Bundle::extract_objects`]: crate::Bundle::extract_objects
///
/// # Errors
/// The output cannot be written, or a file of the folder cannot be read.
pub fn write_archive<'a>(
    objects: impl Iterator<Item = &'a Member>,
    folder: &Path,
    out: &mut dyn Write,
) -> Result<u64> {
    let mut archive = Builder::new(BzEncoder::new(out, Compression::best()));
    let mut files = 0_u64;
    for member in objects {
        let (Member::Cached { build_id, name }, Some(path)) = (member, member.object_path()) else {
            continue;
        };
        let mut file = File::open(folder.join(&path)).map_err(Error::Temporary)?;
        let mut names = vec![path.strip_prefix("debug").unwrap_or(&path).to_owned()];
        // perf searches the symbols of a kernel by the name of its object (tools/perf/util/build-id.c,
        // `build_id_cache__kallsyms_path`).
        if *name == "kallsyms" {
            names.push(Path::new("[kernel.kallsyms]").join(build_id).join(name));
        }
        for name in names {
            file.seek(SeekFrom::Start(0))?;
            let meta = file.metadata()?;
            let mut header = Header::new_gnu();
            header.set_size(meta.len());
            header.set_mode(0o644);
            header.set_mtime(seconds(meta.modified().unwrap_or(UNIX_EPOCH)));
            archive.append_data(&mut header, name, &mut file)?;
        }
        files = files.saturating_add(1);
    }
    archive.into_inner()?.finish()?;
    Ok(files)
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

fn created_above(path: &Path) -> Result<()> {
    match path.parent() {
        Some(parent) => fs::create_dir_all(parent).map_err(Error::Temporary),
        None => Ok(()),
    }
}

fn too_large(most: u64) -> Error {
    Error::TooLarge {
        member: "the archive of perf archive".into(),
        most,
    }
}

/// Returns the file of an object that the archive calls `name`.
fn cached(name: &[u8]) -> Option<Member> {
    let name = std::str::from_utf8(name).ok()?;
    let mut parts = name.rsplit('/');
    let (last, above) = (parts.next()?, parts.next()?);
    // .build-id/XX/YYYY/elf, or NAME/XXYYYY/elf: a build ID may have 16 bytes, or less.
    if let (Some(first), Some(".build-id")) = (parts.next(), parts.next()) {
        return Member::cached(&format!("{first}{above}"), last);
    }
    Member::cached(above, last).or_else(|| match above {
        "[kernel.kallsyms]" => Member::cached(last, "kallsyms"),
        "[vdso]" => Member::cached(last, "vdso"),
        _ => Member::cached(last, "elf").filter(|_| last.len() == 40),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn names_are_those_of_objects() {
        let member = |name| Member::cached(ID, name);
        let (first, rest) = ID.split_at(2);
        for (name, expected) in [
            (format!("usr/bin/ls/{ID}/elf"), member("elf")),
            (format!("./usr/bin/ls/{ID}/debug"), member("debug")),
            (
                format!("[kernel.kallsyms]/{ID}/kallsyms"),
                member("kallsyms"),
            ),
            (format!("[vdso]/{ID}/vdso"), member("vdso")),
            (format!("./.build-id/{first}/{rest}/elf"), member("elf")),
            (
                format!("usr/bin/cc/{rest}/elf"),
                Member::cached(rest, "elf"),
            ),
            (
                "usr/bin/cc/0123456789abcdef/elf".into(),
                Member::cached("0123456789abcdef", "elf"),
            ),
            (format!("usr/bin/ls/{ID}"), member("elf")),
            (format!("[kernel.kallsyms]/{ID}"), member("kallsyms")),
            (format!("usr/bin/ls/{ID}/probes"), None),
            (format!("usr/bin/ls/{ID}/"), None),
            ("../../etc/passwd".into(), None),
            ("elf".into(), None),
        ] {
            assert_eq!(cached(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn an_archive_is_written_and_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let members = ["elf", "kallsyms"].map(|name| Member::cached(ID, name).unwrap());
        for member in &members {
            let path = folder.path().join(member.object_path().unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{member:?}")).unwrap();
        }
        let copied = Member::copied(b"/usr/bin/ls").unwrap();
        let mut bytes = Vec::new();
        let objects = members.iter().chain([&copied]);
        assert_eq!(
            write_archive(objects, folder.path(), &mut bytes).unwrap(),
            2
        );
        let packed = folder.path().join("perf.data.tar.bz2");
        for end in [bytes.len(), bytes.len() / 2, 4, 2, 0] {
            fs::write(&packed, &bytes[..end]).unwrap();
            let target = tempfile::tempdir().unwrap();
            let result = unpack_archive(File::open(&packed).unwrap(), target.path());
            if end < bytes.len() {
                assert!(result.is_err(), "{end}");
                continue;
            }
            // The symbols of the kernel are there by both names.
            assert_eq!(result.unwrap(), 2);
            for member in &members {
                let path = target.path().join(member.object_path().unwrap());
                assert_eq!(fs::read_to_string(path).unwrap(), format!("{member:?}"));
            }
        }
    }
}
