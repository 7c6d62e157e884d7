//! Lists of numbers and names, in perf's notation.

use std::collections::BTreeSet;
use std::str::FromStr;

use perfdata_convert::error::{Error, Result};

/// Process or thread IDs between commas. -1 is the ID of tasks that no longer exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ids(Vec<u32>);

impl Ids {
    /// Returns a list of these IDs.
    pub fn new(mut ids: Vec<u32>) -> Self {
        ids.sort_unstable();
        Ids(ids)
    }

    /// Returns whether `id` is in the list.
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        self.0.binary_search(&id).is_ok()
    }
}

impl FromStr for Ids {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let id = |text: &str| match text.trim() {
            "-1" => Ok(u32::MAX),
            id => id
                .parse::<u32>()
                .map_err(|_| Error::Usage(format!("{id:?} is not a process or thread ID"))),
        };
        Ok(Ids::new(text.split(',').map(id).collect::<Result<_>>()?))
    }
}

/// CPU numbers: numbers and ranges between commas, as in `0-3,7` (`perf_cpu_map__new`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpus(Vec<(u32, u32)>);

impl Cpus {
    /// Returns whether `cpu` is in the list.
    #[inline]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.iter().any(|&(from, to)| (from..=to).contains(&cpu))
    }

    /// Returns the highest number.
    pub fn highest(&self) -> u32 {
        self.0.iter().map(|range| range.1).max().unwrap_or(0)
    }
}

impl FromStr for Cpus {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let range = |text: &str| {
            let (from, to) = text.split_once('-').unwrap_or((text, text));
            match (from.trim().parse(), to.trim().parse()) {
                (Ok(from), Ok(to)) if from <= to => Ok((from, to)),
                _ => Err(Error::Usage(format!(
                    "{text:?} is not a CPU number or range of CPU numbers"
                ))),
            }
        };
        Ok(Cpus(text.split(',').map(range).collect::<Result<_>>()?))
    }
}

/// Names and patterns. In a pattern, `*` stands for any bytes, and `?` for any one byte. What is the
/// name of something in the recording is no pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patterns {
    list: Vec<Vec<u8>>,
    /// Those that are names.
    names: BTreeSet<Vec<u8>>,
}

impl Patterns {
    /// Returns a list of these patterns.
    pub fn new(patterns: Vec<Vec<u8>>) -> Self {
        Patterns {
            list: patterns,
            names: BTreeSet::new(),
        }
    }

    /// Parses names between commas. A comma between slashes belongs to the name, as in
    /// `cpu/event=0x3c,umask=0/`; so does one in braces.
    pub fn between_commas(text: &str) -> Self {
        let mut is_inside = false;
        let names = text.split(|letter| {
            is_inside ^= letter == '/';
            letter == ',' && !is_inside
        });
        let names = names.map(|name| name.trim().as_bytes().to_vec());
        Patterns::new(names.filter(|name| !name.is_empty()).collect())
    }

    /// Parses names, one in each line.
    pub fn lines(text: &[u8]) -> Self {
        let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        Patterns::new(
            lines
                .filter(|line| !line.is_empty() && !line.starts_with(b"#"))
                .map(<[u8]>::to_vec)
                .collect(),
        )
    }

    /// Returns whether `name` matches one of them.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.list
            .iter()
            .any(|pattern| match self.names.contains(pattern) {
                true => pattern == name,
                false => matches(pattern, name),
            })
    }

    /// Returns all patterns.
    pub fn list(&self) -> &[Vec<u8>] {
        &self.list
    }

    /// Returns whether there are patterns, and not only names.
    pub(super) fn have_wildcards(&self) -> bool {
        let mut bytes = self.list.iter().flatten();
        bytes.any(|byte| matches!(byte, b'*' | b'?'))
    }

    /// Takes a name in the recording: a pattern that is equal to it only matches this name.
    pub(super) fn see_name(&mut self, name: &[u8]) {
        if self.list.iter().any(|pattern| pattern == name) && !self.names.contains(name) {
            self.names.insert(name.to_vec());
        }
    }
}

/// Returns whether `name` matches `pattern`. The work is at most the product of their lengths.
pub(super) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut pattern, mut name) = (pattern, name);
    // The pattern after the last star, and the name after the bytes that this star stands for.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        match (pattern.split_first(), name.split_first()) {
            (Some((b'*', rest)), _) => {
                retry = Some((rest, name));
                pattern = rest;
            }
            (Some((b'?', pattern_rest)), Some((_, name_rest))) => {
                (pattern, name) = (pattern_rest, name_rest);
            }
            (Some((one, pattern_rest)), Some((other, name_rest))) if one == other => {
                (pattern, name) = (pattern_rest, name_rest);
            }
            (None, None) => return true,
            _ => {
                let Some((after_star, rest)) =
                    retry.and_then(|(after, rest)| Some((after, rest.split_first()?.1)))
                else {
                    return false;
                };
                retry = Some((after_star, rest));
                (pattern, name) = (after_star, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parsed() {
        let ids: Ids = "7, 3,-1".parse().unwrap();
        assert!(ids.contains(3) && ids.contains(7) && ids.contains(u32::MAX) && !ids.contains(4));
        assert!("3,x".parse::<Ids>().is_err() && "".parse::<Ids>().is_err());
        let cpus: Cpus = "0-2,7".parse().unwrap();
        assert_eq!(
            (0..9).filter(|&cpu| cpus.contains(cpu)).collect::<Vec<_>>(),
            [0, 1, 2, 7]
        );
        assert_eq!(cpus.highest(), 7);
        assert!("2-1".parse::<Cpus>().is_err() && "a".parse::<Cpus>().is_err());
        assert_eq!(
            Patterns::between_commas("cycles:u, cpu/event=1,umask=2/,").list(),
            [b"cycles:u".to_vec(), b"cpu/event=1,umask=2/".to_vec()]
        );
        assert_eq!(
            Patterns::lines(b"# names\na b\n\n c\r\n").list(),
            [b"a b".to_vec(), b"c".to_vec()]
        );
    }

    #[test]
    fn names_are_no_patterns() {
        let mut patterns = Patterns::between_commas("a*,b?");
        assert!(patterns.have_wildcards() && patterns.contains(b"ab") && patterns.contains(b"bc"));
        patterns.see_name(b"a*");
        patterns.see_name(b"c");
        assert!(patterns.contains(b"a*") && patterns.contains(b"bc"));
        assert!(!patterns.contains(b"ab") && !patterns.contains(b"c"));
        assert!(!Patterns::between_commas(r"a[0],a\b").have_wildcards());
    }

    #[test]
    fn stars_and_question_marks_match() {
        for (pattern, name, expected) in [
            ("perf", "perf", true),
            ("perf", "perf2", false),
            ("perf*", "perf2", true),
            ("*", "", true),
            ("?", "", false),
            ("k*er/?:*", "kworker/1:0-ev", true),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "aXbXbd", false),
            ("**", "x", true),
            ("", "x", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
    }
}
