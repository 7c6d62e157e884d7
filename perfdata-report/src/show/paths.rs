//! Fields and their paths, such as `attr.ids[2]`.

use std::fmt::Write as _;

use perfdata_core::describe::{Describe, Leaf, Style, Visitor};
use perfdata_core::wire::until_nul;

use super::text::{TextLimits, push_leaf};
use perfdata_convert::support::values::is_filling;

/// Calls `see` with the path, size and value of every field. A path consists of the names of the
/// enclosing structures, outermost first, the indexes in lists, and the name of the field. The path
/// of a value that is a single field is empty.
pub struct Paths<F> {
    see: F,
    path: String,
    /// The enclosing structures and lists: length of the path before each, and the number of
    /// elements of a list so far.
    frames: Vec<(usize, Option<usize>)>,
}

impl<F: FnMut(&str, usize, Leaf<'_>)> Paths<F> {
    /// Returns a visitor that calls `see`.
    pub fn new(see: F) -> Self {
        Paths {
            see,
            path: String::new(),
            frames: Vec::new(),
        }
    }

    /// Adds a step to the path, and returns the previous length of the path.
    fn step(&mut self, name: &str) -> usize {
        let before = self.path.len();
        if let Some((_, Some(count))) = self.frames.last_mut() {
            let _ = write!(self.path, "[{count}]");
            *count = count.saturating_add(1);
        }
        if !name.is_empty() {
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(name);
        }
        before
    }
}

impl<F: FnMut(&str, usize, Leaf<'_>)> Visitor for Paths<F> {
    fn begin(&mut self, name: &'static str) {
        let before = self.step(name);
        self.frames.push((before, None));
    }

    fn begin_list(&mut self, name: &'static str, _: usize) {
        let before = self.step(name);
        self.frames.push((before, Some(0)));
    }

    fn end(&mut self) {
        if let Some((before, _)) = self.frames.pop() {
            self.path.truncate(before);
        }
    }

    fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>) {
        let counts = matches!(value, Leaf::Count(_));
        let before = self.step(name);
        (self.see)(&self.path, size, value);
        self.path.truncate(before);
        // The length of an element is not an element.
        if let (true, Some((_, Some(count)))) = (counts, self.frames.last_mut()) {
            *count = count.saturating_sub(1);
        }
    }
}

/// Returns all fields of a value except padding and counts, each with its path and its value as
/// text.
pub fn fields(value: &(impl Describe + ?Sized)) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let mut walk = Paths::new(|path: &str, size, leaf: Leaf<'_>| {
        if !is_filling(&leaf) {
            let mut text = String::new();
            // Bytes after the terminating NUL of a text are padding.
            let leaf = if let Leaf::Text(bytes) = leaf {
                Leaf::Text(until_nul(bytes))
            } else {
                leaf
            };
            push_leaf(&mut text, size, leaf, TextLimits::NONE);
            fields.push((path.to_owned(), text));
        }
    });
    value.describe("", Style::Plain, &mut walk);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfdata_core::wire::{Counted, HeaderString};

    #[test]
    fn the_length_of_an_element_is_no_element() {
        let list: Counted<u32, HeaderString> =
            vec![HeaderString::new(b"a"), HeaderString::new(b"b")].into();
        let expected = [("[0]", "\"a\""), ("[1]", "\"b\"")];
        assert_eq!(
            fields(&list),
            expected.map(|(path, text)| (path.to_owned(), text.to_owned()))
        );
    }
}
