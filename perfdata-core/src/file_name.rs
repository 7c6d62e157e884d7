//! Names of files in recordings: bytes, in the form of Linux.

use std::path::Path;

/// Returns the path of the file with this name; `None` if this system cannot have such a file.
///
/// On Unix, every name is a path. Elsewhere, a path is a name in UTF-8 that does not contain `\\`
/// or `:`, and does not begin with `//`: with these, it would lead to another place, such as a
/// drive, a stream of a file, or another machine of the network.
///
/// ```
/// use std::path::Path;
///
/// use perfdata_core::file_name::to_path;
///
/// assert_eq!(to_path(b"/usr/bin/cat"), Some(Path::new("/usr/bin/cat")));
/// # assert_eq!(to_path(b"//server/share").is_some(), cfg!(unix));
/// ```
pub fn to_path(name: &[u8]) -> Option<&Path> {
    #[cfg(unix)]
    {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        Some(Path::new(OsStr::from_bytes(name)))
    }
    #[cfg(not(unix))]
    portable(name)
}

/// Returns the path with this name on a system that is not Unix.
#[cfg(any(not(unix), test))]
fn portable(name: &[u8]) -> Option<&Path> {
    let name = std::str::from_utf8(name).ok()?;
    let leads_elsewhere = name.contains(['\\', ':']) || name.starts_with("//");
    (!leads_elsewhere).then(|| Path::new(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_another_meaning_are_no_paths() {
        for name in ["/usr/bin/cat", "a.so", "/gr\u{fc}n", "/tmp/a (deleted)", ""] {
            assert_eq!(portable(name.as_bytes()), Some(Path::new(name)));
            assert_eq!(to_path(name.as_bytes()), Some(Path::new(name)));
        }
        let others: [&[u8]; 6] = [
            b"//host/a",
            b"\\\\host\\a",
            b"C:/a",
            b"C:a",
            b"/a:b",
            b"/\xff",
        ];
        for name in others {
            assert_eq!(portable(name), None, "{name:?}");
        }
    }
}
