//! Values as JSON. `docs/json.md` describes the representation of each kind of value.

use std::io::Write as _;

use perfdata_core::describe::{Describe, Field, Leaf, Style, Visitor, set_fields};
use perfdata_core::record::CallchainContext;
use perfdata_core::wire::until_nul;

use crate::support::digits;
use crate::support::json_text::{NumberForm, is_plain, push_contexts, push_string};
use crate::support::text;
use crate::support::values::{is_filling, signed};

/// Writes JSON incrementally, without values in memory.
#[derive(Debug, Default)]
pub struct Json {
    /// The text so far, in UTF-8. Numbers and names are appended as bytes: checking each of them
    /// takes longer than writing it.
    pub out: Vec<u8>,
    /// The enclosing structures and lists. The fields of a flat structure belong to the structure
    /// around it.
    frames: Vec<OpenValue>,
    /// The innermost frame that is not flat.
    inner: Option<OpenValue>,
    /// Whether the innermost structure or list already has an element.
    comma: bool,
    /// Whether the text has line breaks and indentation.
    pretty: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenValue {
    Object,
    List,
    Flat,
}

impl Json {
    /// Returns a writer of text without line breaks.
    pub fn compact() -> Self {
        Self::default()
    }

    /// Returns a writer of text without line breaks that appends to `out`.
    pub fn compact_in(out: Vec<u8>) -> Self {
        Json {
            out,
            ..Self::default()
        }
    }

    /// Returns a writer of text with line breaks and indentation.
    pub fn pretty() -> Self {
        Json {
            pretty: true,
            ..Self::default()
        }
    }

    /// Ends a line.
    pub fn end_line(&mut self) {
        self.out.push(b'\n');
    }

    /// Returns the text.
    pub fn into_text(self) -> String {
        String::from_utf8(self.out)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    fn depth(&self) -> usize {
        self.frames
            .iter()
            .filter(|&&frame| frame != OpenValue::Flat)
            .count()
    }

    fn new_line(&mut self) {
        if self.pretty {
            self.out.push(b'\n');
            for _ in 0..self.depth() {
                self.out.extend_from_slice(b"  ");
            }
        }
    }

    /// Begins an element of the innermost list, or a field of the innermost structure. Its name consists
    /// of letters and the like.
    #[doc(hidden)]
    pub fn key(&mut self, name: &'static str) {
        debug_assert!(is_plain(name.as_bytes()), "{name}");
        self.begin_key();
        if self.inner == Some(OpenValue::Object) {
            // Only unknown content has no name.
            let name = if name.is_empty() { "bytes" } else { name };
            self.out.push(b'"');
            self.out.extend_from_slice(name.as_bytes());
            self.out.extend_from_slice(b"\":");
            self.end_key();
        }
    }

    fn begin_key(&mut self) {
        if self.comma {
            self.out.push(b',');
        }
        self.comma = true;
        if self.inner.is_some() {
            self.new_line();
        }
    }

    fn end_key(&mut self) {
        if self.pretty {
            self.out.push(b' ');
        }
    }

    fn open(&mut self, frame: OpenValue, bracket: u8) {
        self.out.push(bracket);
        self.frames.push(frame);
        self.inner = Some(frame);
        self.comma = false;
    }

    /// Begins an object as the field `name` of the enclosing object.
    pub fn object(&mut self, name: &'static str) {
        self.key(name);
        self.open(OpenValue::Object, b'{');
    }

    /// Begins a list as the field `name` of the enclosing object.
    pub fn list(&mut self, name: &'static str) {
        self.key(name);
        self.open(OpenValue::List, b'[');
    }

    /// Ends the innermost object or list.
    pub fn close(&mut self) {
        let frame = self.frames.pop();
        if let Some(OpenValue::Flat) | None = frame {
            return;
        }
        let mut outer = self.frames.iter().rev();
        self.inner = outer.find(|&&frame| frame != OpenValue::Flat).copied();
        if self.comma {
            self.new_line();
        }
        self.out.push(if frame == Some(OpenValue::Object) {
            b'}'
        } else {
            b']'
        });
        self.comma = true;
    }

    /// Writes a number.
    pub fn number(&mut self, name: &'static str, number: u64) {
        self.key(name);
        digits::push(&mut self.out, number);
    }

    /// Writes a number as a string of hexadecimal digits after `0x`.
    pub fn hexadecimal(&mut self, name: &'static str, number: u64) {
        self.key(name);
        self.hex(number);
    }

    /// Writes a text of arbitrary bytes.
    pub fn text(&mut self, name: &'static str, text: &[u8]) {
        self.key(name);
        push_string(&mut self.out, text);
    }

    /// Writes bytes in hexadecimal digits.
    pub fn bytes(&mut self, name: &'static str, bytes: &[u8]) {
        self.key(name);
        self.hex_bytes(bytes);
    }

    /// Adds a number, or -1 if all its bits are set.
    pub fn number_or_none(&mut self, name: &'static str, number: u32) {
        let leaf = Leaf::Uint(number.into(), Style::Optional);
        self.leaf(name, size_of_val(&number), leaf);
    }

    /// Writes a Boolean.
    pub fn boolean(&mut self, name: &'static str, value: bool) {
        self.key(name);
        let _ = write!(self.out, "{value}");
    }

    /// Writes a list of texts.
    pub fn texts(&mut self, name: &'static str, texts: impl IntoIterator<Item = impl AsRef<[u8]>>) {
        self.list(name);
        texts
            .into_iter()
            .for_each(|item| self.text("", item.as_ref()));
        self.close();
    }

    /// Writes an element of the innermost list on a single line.
    pub fn on_line(&mut self, element: impl FnOnce(&mut Self)) {
        if std::mem::take(&mut self.comma) {
            self.out.push(b',');
        }
        self.new_line();
        let pretty = std::mem::replace(&mut self.pretty, false);
        element(self);
        self.pretty = pretty;
    }

    /// Writes a value as the field `name`.
    pub fn value(&mut self, name: &'static str, value: &(impl Describe + ?Sized)) {
        value.describe(name, Style::Plain, self);
    }
}

impl Visitor for Json {
    fn begin(&mut self, name: &'static str) {
        if name.is_empty() && self.inner == Some(OpenValue::Object) {
            self.frames.push(OpenValue::Flat)
        } else {
            self.key(name);
            self.open(OpenValue::Object, b'{');
        }
    }

    fn begin_list(&mut self, name: &'static str, _: usize) {
        self.key(name);
        self.open(OpenValue::List, b'[');
    }

    fn end(&mut self) {
        self.close();
    }

    fn words(&mut self, name: &'static str, words: &[u64], style: Style) {
        self.key(name);
        self.open(OpenValue::List, b'[');
        for &word in words {
            match style {
                // Callchains and registers: the largest part of the output.
                Style::Hex | Style::Address | Style::Callchain if !self.pretty => {
                    if std::mem::replace(&mut self.comma, true) {
                        self.out.push(b',');
                    }
                    self.hex(word);
                }
                _ => self.leaf("", size_of::<u64>(), Leaf::Uint(word, style)),
            }
        }
        self.close();
        if style == Style::Callchain
            && words
                .iter()
                .any(|&word| CallchainContext::of(word).is_some())
        {
            push_contexts(&mut self.out, name, words.iter().copied());
        }
    }

    fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>) {
        if is_filling(&value) {
            return;
        }
        self.key(name);
        let _ = match value {
            Leaf::Uint(word, style) => {
                match (NumberForm::of(style), signed(word, size, style)) {
                    (NumberForm::Hexadecimal, _) => self.hex(word),
                    (_, Some(number)) => digits::push_signed(&mut self.out, number),
                    (_, None) => digits::push(&mut self.out, word),
                }
                Ok(())
            }
            Leaf::Int(number) => {
                digits::push_signed(&mut self.out, number);
                Ok(())
            }
            // JSON has no infinity.
            Leaf::Float(number) if number.is_finite() => write!(self.out, "{number}"),
            Leaf::Float(number) => write!(self.out, "\"{number}\""),
            Leaf::Code(_, Some(code), _) => {
                push_string(&mut self.out, code.as_bytes());
                Ok(())
            }
            Leaf::Code(number, None, _) | Leaf::Count(number) => {
                digits::push(&mut self.out, number);
                Ok(())
            }
            Leaf::Flags { word, fields, .. } => {
                self.flags(word, fields);
                Ok(())
            }
            Leaf::Text(bytes) => {
                push_string(&mut self.out, until_nul(bytes));
                Ok(())
            }
            Leaf::Bytes(bytes) | Leaf::Pad(bytes) | Leaf::Opaque(bytes) => {
                self.hex_bytes(bytes);
                Ok(())
            }
            _ => write!(self.out, "null"),
        };
    }
}

impl Json {
    /// Writes a word in hexadecimal digits, as a string.
    fn hex(&mut self, word: u64) {
        self.out.extend_from_slice(b"\"0x");
        digits::push_hexadecimal(&mut self.out, word);
        self.out.push(b'"');
    }

    fn hex_bytes(&mut self, bytes: &[u8]) {
        self.out.push(b'"');
        let digits = bytes.iter().copied().flat_map(text::hex_pair);
        self.out.extend(digits);
        self.out.push(b'"');
    }

    /// Writes flags as a list of names, or as an object with numbers if a field has several bits.
    fn flags(&mut self, word: u64, fields: &'static [Field]) {
        let numbers = fields.iter().any(|field| field.width > 1);
        if numbers {
            self.open(OpenValue::Object, b'{')
        } else {
            self.open(OpenValue::List, b'[')
        }
        for (name, value) in set_fields(word, fields) {
            match (numbers, name) {
                (true, "unknown") => self.hexadecimal(name, value),
                (true, _) => self.number(name, value),
                (false, "unknown") => self.hexadecimal("", value),
                (false, _) => self.text("", name.as_bytes()),
            }
        }
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(out: &[u8]) -> &str {
        std::str::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn strings_lose_nothing() {
        let mut out = Vec::new();
        push_string(&mut out, "a\"\\é\n\u{9b}\u{1f600}".as_bytes());
        assert_eq!(text(&out), "\"a\\\"\\\\é\\u000a\\u009b\u{1f600}\"");
        assert_eq!(
            serde_json::from_slice::<String>(&out).expect("JSON"),
            "a\"\\é\n\u{9b}\u{1f600}"
        );
        out.clear();
        push_string(&mut out, b"\xff|\xef\xbf\xbd");
        assert_eq!(text(&out), "\"\u{fffd}ff|\u{fffd}ef\u{fffd}bf\u{fffd}bd\"");
    }

    #[test]
    fn words_are_written_as_leaves() {
        let words = [
            0,
            1,
            0xf,
            0x10,
            0xffff_ffff_ffff_fe00,
            u64::MAX,
            1 << 63,
            0x0123_4567_89ab_cdef,
        ];
        for style in [Style::Hex, Style::Plain, Style::Id, Style::Pid] {
            let (mut one, mut all) = (Json::compact(), Json::compact());
            one.begin_list("", words.len());
            words
                .iter()
                .for_each(|&word| one.leaf("", 8, Leaf::Uint(word, style)));
            one.end();
            all.words("", &words, style);
            assert_eq!(all.out, one.out);
        }
        let mut json = Json::compact();
        json.words("", &words, Style::Hex);
        let expected: Vec<_> = words.iter().map(|word| format!("\"{word:#x}\"")).collect();
        assert_eq!(json.into_text(), format!("[{}]", expected.join(",")));
    }

    #[test]
    fn pretty_text_is_the_same_value() {
        let write = |mut json: Json| {
            json.object("");
            json.number("a", 1);
            json.list("empty");
            json.close();
            json.texts("b", ["x", "y"]);
            json.list("c");
            (2..4).for_each(|number| json.on_line(|json| json.number("", number)));
            json.close();
            json.close();
            json.into_text()
        };
        let (compact, pretty) = (write(Json::compact()), write(Json::pretty()));
        assert_eq!(compact, r#"{"a":1,"empty":[],"b":["x","y"],"c":[2,3]}"#);
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(parse(&compact), parse(&pretty));
    }
}
