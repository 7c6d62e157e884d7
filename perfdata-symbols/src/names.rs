//! The names of the symbols of an object, in memory or in its file.

use std::borrow::Cow;
use std::fs::File;

use perfdata_core::read::Source;

/// Bytes that are read for a name in a file at first.
const READ: usize = 256;

/// Maximum length of a name in a file in bytes. What is behind it is not read.
const MOST_NAME: usize = 1 << 20;

/// Names that each end with NUL. A name is identified by its offset.
#[derive(Debug, Default)]
pub(crate) struct Names {
    parts: Vec<Part>,
    len: u32,
}

#[derive(Debug)]
struct Part {
    /// The offset of its first name.
    start: u32,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Memory(Vec<u8>),
    /// A file, and the offset and the size of the names in it.
    File(File, u64, u32),
}

impl Names {
    /// Adds names. Returns the offset of the first one; `None` if the names have 4 GiB.
    pub fn add(&mut self, names: &[u8]) -> Option<u32> {
        self.append(|memory| {
            memory.extend_from_slice(names);
            // A truncated list of names must not continue in the next one.
            if names.last().is_some_and(|&last| last != 0) {
                memory.push(0);
            }
        })
    }

    /// Adds one name without its NUL. Returns its offset; `None` if the names have 4 GiB.
    pub fn add_one(&mut self, name: &[u8]) -> Option<u32> {
        self.append(|memory| {
            memory.extend_from_slice(name);
            memory.push(0);
        })
    }

    fn append(&mut self, add: impl FnOnce(&mut Vec<u8>)) -> Option<u32> {
        if !matches!(self.parts.last(), Some(part) if matches!(part.content, Content::Memory(_))) {
            self.parts.push(Part {
                start: self.len,
                content: Content::Memory(Vec::new()),
            });
        }
        let part = self.parts.last_mut()?;
        let Content::Memory(memory) = &mut part.content else {
            return None;
        };
        let before = memory.len();
        add(memory);
        let at = self.len;
        let added = u32::try_from(memory.len().checked_sub(before)?).ok();
        match added.and_then(|added| at.checked_add(added)) {
            Some(len) => {
                self.len = len;
                Some(at)
            }
            None => {
                memory.truncate(before);
                None
            }
        }
    }

    /// Adds `size` bytes of names at `offset` of a file. They are read when they are needed. Returns
    /// the offset of the first one; `None` if the names have 4 GiB.
    pub fn add_file(&mut self, file: File, offset: u64, size: u64) -> Option<u32> {
        let size = u32::try_from(size).ok()?;
        let start = self.len;
        self.len = start.checked_add(size)?;
        self.parts.push(Part {
            start,
            content: Content::File(file, offset, size),
        });
        Some(start)
    }

    /// Returns the name at an offset; an empty one if it cannot be read.
    pub fn get(&self, at: u32) -> Cow<'_, [u8]> {
        let after = self.parts.partition_point(|part| part.start <= at);
        let part = after.checked_sub(1).and_then(|last| self.parts.get(last));
        let Some(part) = part else {
            return Cow::Borrowed(&[]);
        };
        let at = at.saturating_sub(part.start);
        match &part.content {
            Content::Memory(memory) => {
                let rest = usize::try_from(at).ok().and_then(|at| memory.get(at..));
                Cow::Borrowed(until_nul(rest.unwrap_or_default()))
            }
            Content::File(file, offset, size) => {
                let left = usize::try_from(size.saturating_sub(at)).unwrap_or(usize::MAX);
                let offset = offset.saturating_add(at.into());
                Cow::Owned(read_name(file, offset, left).unwrap_or_default())
            }
        }
    }

    /// Returns the size in memory in bytes.
    pub fn held(&self) -> usize {
        let sizes = self.parts.iter().map(|part| match &part.content {
            Content::Memory(memory) => memory.capacity(),
            Content::File(..) => 0,
        });
        sizes.fold(0, usize::saturating_add)
    }

    /// Releases memory that is not used.
    pub fn shrink(&mut self) {
        for part in &mut self.parts {
            if let Content::Memory(memory) = &mut part.content {
                memory.shrink_to_fit();
            }
        }
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Returns the name at an offset of a file, within `left` bytes, up to [`MOST_NAME`].
fn read_name(file: &File, offset: u64, left: usize) -> Option<Vec<u8>> {
    let left = left.min(MOST_NAME);
    let mut size = READ;
    loop {
        let mut bytes = vec![0; size.min(left)];
        let read = file.read_at(&mut bytes, offset).ok()?;
        bytes.truncate(read);
        if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
            bytes.truncate(end);
            return Some(bytes);
        }
        // The rest of the names, or of a file that became shorter.
        if read < size {
            return Some(bytes);
        }
        size = size.saturating_mul(4);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn names_are_in_memory_and_in_files() {
        let long = "n".repeat(5000);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(format!("before\0first\0{long}\0last\0after").as_bytes())
            .unwrap();
        let mut names = Names::default();
        assert_eq!(names.add(b"a\0bc"), Some(0));
        let size = 6 + long.len() as u64 + 1 + 4;
        let start = names.add_file(file, 7, size).unwrap();
        assert_eq!(start, 5);
        let after = names.add_one(b"one").unwrap();
        let text = |at| String::from_utf8(names.get(at).into_owned()).unwrap();
        assert_eq!((text(0), text(2)), ("a".into(), "bc".into()));
        assert_eq!(
            (text(start), text(start + 2)),
            ("first".into(), "rst".into())
        );
        assert_eq!(text(start + 6), long);
        // It ends with the names, not with the file.
        assert_eq!(text(start + 6 + 5001), "last");
        assert_eq!(text(after), "one");
        assert_eq!(text(after + 100), "");
        assert_eq!(names.add_one(b"two"), Some(after + 4));
        assert!((10..5000).contains(&names.held()));
    }

    #[test]
    fn long_names_in_files_are_cut() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'n'; 3 << 20]).unwrap();
        let mut names = Names::default();
        let start = names.add_file(file, 0, 3 << 20).unwrap();
        assert_eq!(names.get(start).len(), MOST_NAME);
        assert_eq!(names.get(start + (3 << 20) - 5), Cow::Borrowed(b"nnnnn"));
    }

    #[test]
    fn names_have_less_than_4_gib() {
        let mut names = Names::default();
        let file = || tempfile::tempfile().unwrap();
        assert_eq!(names.add_file(file(), 0, u64::MAX), None);
        assert!(names.add_file(file(), 0, u64::from(u32::MAX) - 1).is_some());
        assert_eq!(names.add_file(file(), 0, 2), None);
        assert_eq!(names.add(b"ab"), None);
        assert_eq!(names.get(7), Cow::Borrowed(b""), "it cannot be read");
    }
}
