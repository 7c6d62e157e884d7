//! The names of members.

use std::fmt::Write as _;
use std::path::PathBuf;

use perfdata_core::file_name::to_path;

/// The folder of all members.
const FOLDER: &[u8] = b"perf.bundle/";
const INDEX: &[u8] = b"index.json";
const BUILD_IDS: &[u8] = b"build-ids";
const RECORDING: &[u8] = b"recording.zst";
const CACHE: &[u8] = b"debug/.build-id/";
const ROOT: &[u8] = b"root/";
const ZST: &[u8] = b".zst";

/// Maximum number of bytes of a name in a header of a tar archive (POSIX.1-1988): its last part.
const MOST_NAME: usize = 100;
/// Maximum number of bytes of the folders before it.
const MOST_PREFIX: usize = 155;

/// Maximum number of digits of a build ID: 20 bytes.
const MOST_DIGITS: usize = 40;

/// The files that perf's build ID cache has for an object, and packages of split units (`.dwp`) beside
/// them.
pub const CACHE_NAMES: [&str; 7] = [
    "elf",
    "debug",
    "vdso",
    "kallsyms",
    "vmlinux",
    "elf.dwp",
    "debug.dwp",
];

/// Returns whether a file that begins with these bytes is a bundle. 16 bytes suffice.
pub fn is_bundle(first: &[u8]) -> bool {
    let name = [FOLDER, INDEX].concat();
    first.len() >= FOLDER.len() && name.iter().zip(first).all(|(a, b)| a == b)
}

/// A member of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Member {
    /// What the bundle contains, as JSON.
    Index,
    /// The build IDs of objects by their paths.
    BuildIds,
    /// The recording.
    Recording,
    /// A file of an object with a build ID.
    Cached {
        /// The build ID, in hexadecimal digits.
        build_id: String,
        /// One of [`CACHE_NAMES`].
        name: &'static str,
    },
    /// A file of the recorded machine, by its path without the first slash.
    Copied(Vec<u8>),
}

impl Member {
    /// Returns the file `name` of an object with this build ID in hexadecimal digits; `None` if these
    /// are not its digits, or `name` is not one of [`CACHE_NAMES`].
    pub fn cached(build_id: &str, name: &str) -> Option<Member> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_id = (4..=MOST_DIGITS).contains(&build_id.len()) && build_id.bytes().all(is_digit);
        let name = CACHE_NAMES.into_iter().find(|known| *known == name)?;
        is_id.then(|| Member::Cached {
            build_id: build_id.to_owned(),
            name,
        })
    }

    /// Returns the copy of the file at `path` of the recorded machine; `None` if a bundle cannot
    /// contain it: its path leads upwards, or is too long.
    pub fn copied(path: &[u8]) -> Option<Member> {
        let path = path.strip_prefix(b"/").unwrap_or(path);
        let mut parts = path.split(|&byte| byte == b'/');
        let is_part = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !part.contains(&0);
        let member = Member::Copied(path.to_vec());
        (parts.all(is_part) && to_path(path).is_some() && member.split_name().is_some())
            .then_some(member)
    }

    /// Returns the member with this name; `None` if it is not the name of one.
    pub(crate) fn parse(name: &[u8]) -> Option<Member> {
        let name = name.strip_prefix(FOLDER)?;
        match name {
            INDEX => return Some(Member::Index),
            BUILD_IDS => return Some(Member::BuildIds),
            RECORDING => return Some(Member::Recording),
            _ => {}
        }
        let name = name.strip_suffix(ZST)?;
        if let Some(path) = name.strip_prefix(ROOT) {
            return Member::copied(path).filter(|_| !path.starts_with(b"/"));
        }
        let name = std::str::from_utf8(name.strip_prefix(CACHE)?).ok()?;
        let mut parts = name.split('/');
        let (first, rest, name) = (parts.next()?, parts.next()?, parts.next()?);
        let is_whole = parts.next().is_none() && first.len() == 2;
        Member::cached(&format!("{first}{rest}"), name).filter(|_| is_whole)
    }

    /// Returns the name of the member.
    pub fn name(&self) -> Vec<u8> {
        let mut name = FOLDER.to_vec();
        match self {
            Member::Index => name.extend_from_slice(INDEX),
            Member::BuildIds => name.extend_from_slice(BUILD_IDS),
            Member::Recording => name.extend_from_slice(RECORDING),
            Member::Cached { .. } | Member::Copied(_) => {
                name.extend(self.inner_name());
                name.extend_from_slice(ZST);
            }
        }
        name
    }

    /// Returns the name of an object below the folder, without the ending.
    fn inner_name(&self) -> Vec<u8> {
        match self {
            Member::Cached { build_id, name } => {
                let (first, rest) = build_id.split_at_checked(2).unwrap_or((build_id, ""));
                let mut text = String::new();
                let _ = write!(text, "{first}/{rest}/{name}");
                [CACHE, text.as_bytes()].concat()
            }
            Member::Copied(path) => [ROOT, path].concat(),
            Member::Index | Member::BuildIds | Member::Recording => Vec::new(),
        }
    }

    /// Returns whether the member is compressed.
    pub(crate) fn is_compressed(&self) -> bool {
        !matches!(self, Member::Index | Member::BuildIds)
    }

    /// Returns the path of an object in the folder into which objects are extracted:
    /// `debug/.build-id/XX/YYYY/NAME` or `root/PATH`; `None` for other members.
    pub fn object_path(&self) -> Option<PathBuf> {
        let name = self.inner_name();
        match self {
            Member::Cached { .. } | Member::Copied(_) => to_path(&name).map(PathBuf::from),
            _ => None,
        }
    }

    /// Returns the folders and the last part of the name as they are in a header; `None` if it does not
    /// fit.
    pub(crate) fn split_name(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let name = self.name();
        if name.len() <= MOST_NAME {
            return Some((Vec::new(), name));
        }
        let slashes = name.iter().enumerate().filter(|&(_, &byte)| byte == b'/');
        let mut ends = slashes.map(|(at, _)| at);
        ends.find_map(|at| {
            let (folders, last) = name.split_at_checked(at)?;
            let last = last.strip_prefix(b"/")?;
            (folders.len() <= MOST_PREFIX && last.len() <= MOST_NAME)
                .then(|| (folders.to_vec(), last.to_vec()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_members() {
        let long = [b"a/".repeat(60), b"libx.so".to_vec()].concat();
        for member in [
            Member::Index,
            Member::BuildIds,
            Member::Recording,
            Member::cached("0123456789abcdef", "elf").unwrap(),
            Member::copied(b"/usr/lib/libx.so").unwrap(),
            Member::copied(b"[vdso]").unwrap(),
            Member::copied(&long).unwrap(),
        ] {
            assert_eq!(Member::parse(&member.name()), Some(member.clone()));
            let (folders, last) = member.split_name().unwrap();
            assert!(folders.len() <= MOST_PREFIX && last.len() <= MOST_NAME);
        }
        assert!(is_bundle(&Member::Index.name()[..16]));
        assert!(!is_bundle(b"perf.bund") && !is_bundle(b"PERFILE2\0\0\0\0\0\0\0\0"));
    }

    #[test]
    fn other_names_are_refused() {
        for name in [
            &b"perf.bundle/root/../../etc/passwd.zst"[..],
            b"perf.bundle/root//etc/passwd.zst",
            b"perf.bundle/root/a/./b.zst",
            b"perf.bundle/root/.zst",
            b"perf.bundle/root/a\0b.zst",
            b"perf.bundle/debug/.build-id/../abcdef/elf.zst",
            b"perf.bundle/debug/.build-id/ab/cdeF/elf.zst",
            b"perf.bundle/debug/.build-id/ab/cdef/sh.zst",
            b"perf.bundle/debug/.build-id/ab/cdef/x/elf.zst",
            b"perf.bundle/debug/.build-id/a/bcdef/elf.zst",
            b"perf.bundle/other",
            b"/etc/passwd",
            b"",
        ] {
            assert_eq!(Member::parse(name), None, "{}", name.escape_ascii());
        }
        assert_eq!(Member::copied(b"/../x"), None);
        assert_eq!(Member::copied(&[b'a'; 300]), None);
        assert_eq!(Member::cached("ab", "elf"), None);
    }
}
