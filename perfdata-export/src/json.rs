//! JSON of names and tables.

use std::io::Write;

use crate::error::{Error, Result};
use crate::text::push_text;

/// Writes the members of objects.
pub(crate) struct Writer<'a, W> {
    out: &'a mut W,
    separator: &'static str,
    /// Whether the next member or element is the first of its object or list.
    is_first: bool,
}

impl<'a, W: Write> Writer<'a, W> {
    /// Returns a writer that writes `separator`, which contains a comma, between members.
    pub(crate) fn new(out: &'a mut W, separator: &'static str) -> Self {
        Writer {
            out,
            separator,
            is_first: true,
        }
    }

    /// Writes text as it is.
    pub(crate) fn put(&mut self, text: &str) -> Result<()> {
        self.out.write_all(text.as_bytes()).map_err(Error::Output)
    }

    /// Writes text that ends with the start of an object or list.
    pub(crate) fn open(&mut self, text: &str) -> Result<()> {
        self.is_first = true;
        self.put(text)
    }

    /// Writes text that ends with the end of an object or list.
    pub(crate) fn close(&mut self, text: &str) -> Result<()> {
        self.is_first = false;
        self.put(text)
    }

    /// Writes an element of a list.
    pub(crate) fn item(&mut self, text: &str) -> Result<()> {
        if !std::mem::replace(&mut self.is_first, false) {
            self.put(",")?;
        }
        self.put(text)
    }

    /// Writes the key of a member, whose value must follow.
    pub(crate) fn key(&mut self, key: &str) -> Result<()> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        let separator = if is_first { "" } else { self.separator };
        self.put(&format!("{separator}\"{key}\":"))
    }

    /// Writes a member that is a list.
    pub(crate) fn list<T>(
        &mut self,
        key: &str,
        items: impl IntoIterator<Item = T>,
        text: impl Fn(T) -> String,
    ) -> Result<()> {
        self.key(key)?;
        self.open("[")?;
        for item in items {
            self.item(&text(item))?;
        }
        self.close("]")
    }

    /// Writes a member that is a number or a Boolean value.
    pub(crate) fn value(&mut self, key: &str, value: impl ToString) -> Result<()> {
        self.key(key)?;
        self.put(&value.to_string())
    }
}

/// Returns a name as a JSON string with its quotes.
pub(crate) fn string(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    push_text(&mut text, name);
    let mut out = String::with_capacity(text.len().saturating_add(2));
    out.push('"');
    for c in text.chars() {
        // Control characters are already escaped.
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_control_characters_are_escaped() {
        assert_eq!(
            string(b"a\"b\\c\nd\xff"),
            "\"a\\\"b\\\\c\u{fffd}0ad\u{fffd}ff\""
        );
    }
}
