//! The names of the symbols of an object, in memory or in its file.

use std::borrow::Cow;
use std::fs::File;
use std::sync::Arc;

use crate::bytes::read_up_to;

/// Bytes that are read for a name in a file at first.
const READ: usize = 256;

/// Maximum length of a name in a file in bytes. What is behind it is not read.
const MOST_NAME: usize = 1 << 20;

/// Names. Each is identified by its offset.
#[derive(Debug, Default)]
pub(crate) struct Names {
    parts: Vec<NamesBlock>,
    len: u32,
}

#[derive(Debug)]
struct NamesBlock {
    /// The offset of its first name.
    start: u32,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Each name ends with NUL.
    Memory(Vec<u8>),
    /// A file, and the offset and the size of the names in it. Each ends with NUL.
    File(Arc<File>, u64, u32),
    /// A text in which each name ends with NUL, a tab or the line.
    Text(Arc<Vec<u8>>),
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
            self.parts.push(NamesBlock {
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
    pub fn add_file(&mut self, file: Arc<File>, offset: u64, size: u64) -> Option<u32> {
        let size = u32::try_from(size).ok()?;
        self.add_part(size, Content::File(file, offset, size))
    }

    /// Adds a text whose names each end with NUL, a tab or the line. Returns the offset of its
    /// beginning; `None` if the names have 4 GiB.
    pub fn add_text(&mut self, text: Arc<Vec<u8>>) -> Option<u32> {
        let size = u32::try_from(text.as_slice().len()).ok()?;
        self.add_part(size, Content::Text(text))
    }

    fn add_part(&mut self, size: u32, content: Content) -> Option<u32> {
        let start = self.len;
        self.len = start.checked_add(size)?;
        self.parts.push(NamesBlock { start, content });
        Some(start)
    }

    /// Returns the part that contains an offset, and the offset in it.
    fn part(&self, at: u32) -> Option<(&Content, u32)> {
        let after = self.parts.partition_point(|part| part.start <= at);
        let part = self.parts.get(after.checked_sub(1)?)?;
        Some((&part.content, at.checked_sub(part.start)?))
    }

    /// Returns the name at an offset; an empty one if it cannot be read.
    pub fn get(&self, at: u32) -> Cow<'_, [u8]> {
        let Some((content, at)) = self.part(at) else {
            return Cow::Borrowed(&[]);
        };
        match content {
            Content::Memory(memory) => Cow::Borrowed(until(from(memory, at), b"\0")),
            Content::Text(text) => Cow::Borrowed(until(from(text, at), b"\0\t\n")),
            Content::File(file, offset, size) => {
                let left = usize::try_from(size.saturating_sub(at)).unwrap_or(usize::MAX);
                let offset = offset.saturating_add(at.into());
                Cow::Owned(read_name(file, offset, left).unwrap_or_default())
            }
        }
    }

    /// Returns whether the name at an offset is `name`.
    pub fn is(&self, at: u32, name: &[u8]) -> bool {
        // Most names differ at once.
        let may_be = match self.part(at) {
            Some((Content::Memory(memory), at)) => from(memory, at).starts_with(name),
            Some((Content::Text(text), at)) => from(text, at).starts_with(name),
            _ => true,
        };
        may_be && *self.get(at) == *name
    }

    /// Returns the size in memory in bytes.
    pub fn held(&self) -> usize {
        let sizes = self.parts.iter().map(|part| match &part.content {
            Content::Memory(memory) => memory.capacity(),
            Content::File(..) => 0,
            Content::Text(text) => text.capacity(),
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

/// Returns the bytes from an offset on.
fn from(bytes: &[u8], at: u32) -> &[u8] {
    let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
    rest.unwrap_or_default()
}

/// Returns the bytes up to the first one of `ends`.
fn until<'a>(bytes: &'a [u8], ends: &[u8]) -> &'a [u8] {
    let mut parts = bytes.split(|byte| ends.contains(byte));
    parts.next().unwrap_or_default()
}

/// Returns the name at an offset of a file, within `left` bytes, up to [`MOST_NAME`].
fn read_name(file: &File, offset: u64, left: usize) -> Option<Vec<u8>> {
    let left = left.min(MOST_NAME);
    let mut size = READ;
    loop {
        let mut bytes = vec![0; size.min(left)];
        let read = read_up_to(file, &mut bytes, offset).ok()?;
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
        let start = names.add_file(Arc::new(file), 7, size).unwrap();
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
        let two = names.add_one(b"two");
        assert_eq!(two, Some(after + 4));
        let lines = Arc::new(b"1 T x\t[m]\n2 T yz\n3 T last".to_vec());
        let lines = names.add_text(lines).unwrap();
        let in_lines = [4, 14, 21].map(|at| names.get(lines + at));
        assert_eq!(in_lines, [&b"x"[..], b"yz", b"last"]);
        for (at, name, other) in [
            (0, "a", "ab"),
            (start, "first", "firs"),
            (lines + 14, "yz", "y"),
        ] {
            assert!(names.is(at, name.as_bytes()), "{name}");
            assert!(!names.is(at, other.as_bytes()), "{other}");
        }
        assert!((10..5000).contains(&names.held()));
    }

    #[test]
    fn long_names_in_files_are_cut() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'n'; 3 << 20]).unwrap();
        let mut names = Names::default();
        let start = names.add_file(Arc::new(file), 0, 3 << 20).unwrap();
        assert_eq!(names.get(start).len(), MOST_NAME);
        assert_eq!(names.get(start + (3 << 20) - 5), Cow::Borrowed(b"nnnnn"));
    }

    #[test]
    fn names_have_less_than_4_gib() {
        let mut names = Names::default();
        let file = || Arc::new(tempfile::tempfile().unwrap());
        assert_eq!(names.add_file(file(), 0, u64::MAX), None);
        assert!(names.add_file(file(), 0, u64::from(u32::MAX) - 1).is_some());
        assert_eq!(names.add_file(file(), 0, 2), None);
        assert_eq!(names.add(b"ab"), None);
        assert_eq!(names.get(7), Cow::Borrowed(b""), "it cannot be read");
    }
}
