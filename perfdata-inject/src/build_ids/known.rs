//! Build IDs from the user: `ID PATH` pairs, in the format of `perf buildid-list`.

use std::collections::HashMap;
use std::path::Path;

use perfdata_core::read::Limits;
use perfdata_session::BuildId as Id;

use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::read_at_most;

/// The prefix of the name of a file with the pairs, one per line.
const FILE: &str = "file://";

/// Build IDs by the name of their object.
#[derive(Debug, Clone, Default)]
pub struct KnownBuildIds(HashMap<Vec<u8>, Id>);

impl KnownBuildIds {
    /// Parses the pairs in `list`, separated by commas, or in the file that it names. A line of the
    /// file without a build ID is an object without one, as `perf buildid-list` prints it.
    ///
    /// # Errors
    /// The file cannot be read, or is larger than the default limit for the metadata of a
    /// recording; or a pair is invalid.
    pub fn parse(list: &str) -> Result<Self> {
        match list.strip_prefix(FILE) {
            Some(path) => {
                let text = read_at_most(Limits::default().max_metadata, Path::new(path))?;
                let lines = text.split(|&byte| byte == b'\n').enumerate();
                let is_pair =
                    |line: &[u8]| line.first().is_some_and(|byte| !byte.is_ascii_whitespace());
                let pairs = lines.filter(|(_, line)| is_pair(line));
                pairs
                    .map(|(at, line)| {
                        pair(line).ok_or_else(|| bad(&format!("{path}, line {}", at + 1)))
                    })
                    .collect()
            }
            None => {
                let pairs = list
                    .split(',')
                    .map(str::trim)
                    .filter(|text| !text.is_empty());
                pairs
                    .map(|text| pair(text.as_bytes()).ok_or_else(|| bad(text)))
                    .collect()
            }
        }
    }

    /// Returns the same build IDs, and others for objects that have none of them.
    #[must_use]
    pub fn or(mut self, others: impl IntoIterator<Item = (Vec<u8>, Id)>) -> Self {
        for (name, id) in others {
            self.0.entry(name).or_insert(id);
        }
        self
    }

    /// Returns the build ID of the object called `name`.
    pub fn get(&self, name: &[u8]) -> Option<Id> {
        self.0.get(name).copied()
    }
}

impl FromIterator<(Vec<u8>, Id)> for KnownBuildIds {
    fn from_iter<I: IntoIterator<Item = (Vec<u8>, Id)>>(pairs: I) -> Self {
        KnownBuildIds(pairs.into_iter().collect())
    }
}

fn pair(text: &[u8]) -> Option<(Vec<u8>, Id)> {
    let at = text.iter().position(u8::is_ascii_whitespace)?;
    let (digits, name) = (text.get(..at)?, text.get(at..)?.trim_ascii());
    let id = Id::from_hex(std::str::from_utf8(digits).ok()?)?;
    (!name.is_empty()).then(|| (name.to_vec(), id))
}

fn bad(what: &str) -> Error {
    Error::Usage(format!(
        "known build IDs: {what}: expected \"BUILD-ID PATH\""
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_between_commas() {
        let known = KnownBuildIds::parse(
            "0123456789abcdef0123456789abcdef01234567 /bin/a b, aaBB [kernel.kallsyms]",
        )
        .unwrap();
        assert_eq!(known.get(b"/bin/a b").unwrap().bytes().len(), 20);
        assert_eq!(known.get(b"[kernel.kallsyms]").unwrap().to_string(), "aabb");
        assert!(known.get(b"/bin/a").is_none());
        for bad in [
            "abc /bin/a",
            "xy /bin/a",
            "abcd",
            "abcd ",
            "/bin/a",
            "é /bin/a",
        ] {
            assert!(
                !KnownBuildIds::parse(bad).unwrap_err().is_refusal(),
                "{bad}"
            );
        }
    }

    #[test]
    fn lines_of_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            "abcd /bin/a\n                    /bin/none\n\n1234 [vdso]\n",
        )
        .unwrap();
        let known = KnownBuildIds::parse(&format!("file://{}", file.path().display())).unwrap();
        assert_eq!(known.get(b"/bin/a").unwrap().to_string(), "abcd");
        assert!(known.get(b"/bin/none").is_none() && known.get(b"[vdso]").is_some());
    }
}
