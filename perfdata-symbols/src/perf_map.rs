//! Symbols of code that a JIT compiler generated: `/tmp/perf-PID.map`
//! (tools/perf/Documentation/jit-interface.txt).
//!
//! Such a file contains a line `START SIZE NAME` for each function, with hexadecimal numbers. It
//! contains neither code nor times: if an address was used again, the last line about it counts.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use crate::bytes::read_text;
use crate::kallsyms::number;
use crate::os;
use crate::reason::Reason;
use crate::table::{Builder, Properties, Table};

/// Maximum size of a perf map in bytes.
const MOST: u64 = 1 << 28;

/// The folder of perf maps.
pub const FOLDER: &str = "/tmp";

/// Returns the name of the perf map of process `pid`.
pub fn file_name(pid: u32) -> String {
    format!("perf-{pid}.map")
}

/// Returns the path of the perf map of process `pid`.
pub fn path(pid: u32) -> PathBuf {
    Path::new(FOLDER).join(file_name(pid))
}

/// A function in a perf map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Function<'a> {
    /// First address.
    pub start: u64,
    /// The address after the last one. A function of size 0 has one address, as in perf.
    pub end: u64,
    /// Name: any bytes except NUL and a line feed, at least one.
    pub name: &'a [u8],
}

impl<'a> Function<'a> {
    /// Returns the function in a line `START SIZE NAME`; `None` if the line is another one. The
    /// name extends to the end of the line or to a NUL, as in perf.
    pub fn of_line(line: &'a [u8]) -> Option<Self> {
        let mut words = line.splitn(3, |&byte| byte == b' ');
        let (start, size) = (number(words.next()?)?, number(words.next()?)?);
        let name = words.next()?.split(|&byte| byte == 0).next()?;
        let end = start.saturating_add(size.max(1));
        (!name.is_empty()).then_some(Function { start, end, name })
    }
}

/// Returns the content of the perf map at `path`. With `checks_owner`, it must belong to root or to
/// the user, as perf demands: everyone may write to `/tmp`. On other systems than Unix, files have no
/// such owner.
///
/// # Errors
/// There is no such file, it belongs to another user, or it cannot be read, or has more than 256
/// MiB.
pub fn read(path: &Path, checks_owner: bool) -> Result<Vec<u8>, Reason> {
    let meta = fs::metadata(path).map_err(|_| Reason::NoPerfMap)?;
    if checks_owner && !os::is_own(&meta) {
        return Err(Reason::Unreadable(format!(
            "{} belongs to another user",
            path.display()
        )));
    }
    read_text(path, MOST)
        .map_err(|error| Reason::Unreadable(format!("{}: {error}", path.display())))
}

/// Returns the symbols in a perf map. Lines without a function are skipped. The last of several
/// lines about an address remains: the code was replaced.
pub(crate) fn parse(text: &[u8]) -> Table {
    let mut builder = Builder::default();
    // Of equal symbols, the first one in the table remains.
    for line in text.rsplit(|&byte| byte == b'\n') {
        let Some(Function { start, end, name }) = Function::of_line(line) else {
            continue;
        };
        let Some(at) = builder.add_name(name) else {
            break;
        };
        let size = end.saturating_sub(start);
        builder.add(start, size, at, Properties::default());
    }
    // The choice between functions at an address must not depend on their names.
    builder.build(|_| Cow::Borrowed(b""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_symbols() {
        let table =
            parse(b"1000 20 first name\n0x1020 10 second\n1000 20 newer\nrubbish\n1040 x y\n");
        let at = |address| {
            let found = table.find(address)?;
            Some(String::from_utf8_lossy(&table.name(found.index)).into_owned())
        };
        assert_eq!(at(0x101f).as_deref(), Some("newer"));
        assert_eq!(at(0x1020).as_deref(), Some("second"));
        assert_eq!(at(0x1030), None);
        assert_eq!(at(0xfff), None);
    }

    #[test]
    fn a_line_contains_a_function() {
        let of = |line: &'static str| {
            let Function { start, end, name } = Function::of_line(line.as_bytes())?;
            Some((start, end, std::str::from_utf8(name).unwrap()))
        };
        assert_eq!(of("10 0 a  b "), Some((0x10, 0x11, "a  b ")));
        assert_eq!(of("10 2 a\0b"), Some((0x10, 0x12, "a")));
        assert_eq!(of("ffffffffffffffff 2 a").unwrap().1, u64::MAX);
        for line in [
            "", "10 2", "10 2 ", "10 2 \0a", "-1 2 a", "10  2 a", "g 2 a",
        ] {
            assert_eq!(of(line), None, "{line:?}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn the_owner_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perf-1.map");
        assert_eq!(read(&path, true), Err(Reason::NoPerfMap));
        fs::write(&path, "10 2 a\n").unwrap();
        assert_eq!(read(&path, true).as_deref(), Ok(&b"10 2 a\n"[..]));
        if !rustix::process::geteuid().is_root() {
            return;
        }
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        assert!(matches!(read(&path, true), Err(Reason::Unreadable(_))));
        assert!(read(&path, false).is_ok());
        assert!(read(folder.path(), false).is_err(), "not a file");
    }
}
