//! Bytes together with the fields that they encode.

use std::fmt::Write as _;

use perfdata_core::describe::{Leaf, Visitor};

use super::paths::Paths;
use super::text::{TextLimits, push_leaf};
use perfdata_convert::json::Json;
use perfdata_convert::support::text::push_hex;

/// The bytes of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// Offset from the start of the shown bytes.
    pub at: usize,
    /// Number of bytes.
    pub size: usize,
    /// The path of the field: the enclosing structures, outermost first, with indexes in lists,
    /// such as `attr.ids[2]`.
    pub field: String,
    /// The value as text; empty if it only consists of bytes.
    pub value: String,
}

/// Calls `see` with each field that `describe` visits, in file order. Skips fields without bytes.
/// Keeps no fields in memory, because there may be many.
pub fn each_span(describe: impl FnOnce(&mut dyn Visitor), mut see: impl FnMut(Span)) {
    let mut at = 0_usize;
    describe(&mut Paths::new(|path: &str, size, value: Leaf<'_>| {
        if size > 0 {
            let mut field = if path.is_empty() { "bytes" } else { path }.to_owned();
            let mut shown = String::new();
            match value {
                Leaf::Count(count) => {
                    field.push_str(".len()");
                    let _ = write!(shown, "{count}");
                }
                Leaf::Bytes(_) | Leaf::Opaque(_) | Leaf::Pad(_) => {}
                value => push_leaf(&mut shown, size, value, TextLimits::NONE),
            }
            see(Span {
                at,
                size,
                field,
                value: shown,
            });
        }
        at = at.saturating_add(size);
    }));
}

/// Bytes per line of text.
const ROW: usize = 16;

/// Appends lines of text: offset, bytes, field and value. `bytes` start at `offset` of the input.
/// Bytes of compressed data have no offset in the input; their offset is relative to their record.
pub fn push_text(out: &mut String, span: &Span, bytes: &[u8], offset: Option<u64>) {
    let content = bytes.get(span.at..).unwrap_or_default();
    let content = content.get(..span.size).unwrap_or(content);
    for (number, row) in content.chunks(ROW).enumerate() {
        let at = (span.at + number * ROW) as u64;
        let _ = match offset {
            Some(offset) => write!(out, "  {:#010x} ", offset.saturating_add(at)),
            None => write!(out, "  {at:+#9x} "),
        };
        let start = out.len();
        for byte in row {
            out.push(' ');
            push_hex(out, std::slice::from_ref(byte));
        }
        if number == 0 {
            let width = out.len() - start;
            let _ = write!(
                out,
                "{:pad$}  {}",
                "",
                span.field,
                pad = (3 * 8_usize).saturating_sub(width)
            );
            if !span.value.is_empty() {
                let _ = write!(out, " = {}", span.value);
            }
        }
        out.push('\n');
    }
}

/// Writes the list `spans` in JSON: the fields that `describe` visits, which encode `bytes`. Calls
/// `see` after each.
pub fn push_json(
    json: &mut Json,
    describe: impl FnOnce(&mut dyn Visitor),
    bytes: &[u8],
    mut see: impl FnMut(&mut Json),
) {
    json.list("spans");
    each_span(describe, |span| {
        json.object("");
        json.number("at", span.at as u64);
        json.number("size", span.size as u64);
        json.text("field", span.field.as_bytes());
        json.bytes(
            "bytes",
            bytes
                .get(span.at..)
                .and_then(|rest| rest.get(..span.size))
                .unwrap_or_default(),
        );
        json.close();
        see(json);
    });
    json.close();
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfdata_core::describe::Style;

    #[test]
    fn every_byte_has_a_name() {
        let bytes = [7, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        let mut spans = Vec::new();
        let describe = |v: &mut dyn Visitor| {
            v.begin("");
            v.leaf("a", 2, Leaf::Uint(7, Style::Hex));
            v.leaf("list", 1, Leaf::Count(2));
            v.begin_list("list", 2);
            v.leaf("", 1, Leaf::Uint(0, Style::Plain));
            v.begin("");
            v.leaf("b", 2, Leaf::Text(b"\0\0"));
            v.end();
            v.end();
            v.leaf("pad", 4, Leaf::Pad(&[0; 4]));
            v.end();
        };
        each_span(describe, |span| spans.push(span));
        let names: Vec<_> = spans
            .iter()
            .map(|span| (span.at, span.field.as_str(), span.value.as_str()))
            .collect();
        let expected = [
            (0, "a", "0x7"),
            (2, "list.len()", "2"),
            (3, "list[0]", "0"),
            (4, "list[1].b", "\"\""),
            (6, "pad", ""),
        ];
        assert_eq!(names, expected);
        let mut text = String::new();
        spans[..2]
            .iter()
            .for_each(|span| push_text(&mut text, span, &bytes, Some(0x100)));
        assert_eq!(
            text,
            "  0x00000100  07 00                    a = 0x7\n  0x00000102  01                       list.len() = 2\n"
        );
    }
}
