//! The parts of JSON text that are also written without [`Json`](crate::json::Json).

use std::io::Write as _;

use perfdata_core::describe::Style;
use perfdata_core::record::CallchainContext;

use super::digits;

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberForm {
    /// In decimal digits.
    Decimal,
    /// In decimal digits, or as -1 if all bits are set.
    DecimalOrNone,
    /// As a string of hexadecimal digits.
    Hexadecimal,
}

impl NumberForm {
    /// Returns the form of numbers of this style.
    pub fn of(style: Style) -> Self {
        match style {
            Style::Hex | Style::Address | Style::Callchain | Style::Opaque => {
                NumberForm::Hexadecimal
            }
            style if style.has_none() => NumberForm::DecimalOrNone,
            _ => NumberForm::Decimal,
        }
    }
}

/// Appends the context markers of the callchain `name`, which precedes them: their indexes and
/// names, on the same line.
pub fn push_contexts(out: &mut Vec<u8>, name: &str, words: impl Iterator<Item = u64>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"_contexts\":[");
    let mut comma: &[u8] = b"";
    for (at, word) in words.enumerate() {
        let Some(context) = CallchainContext::of(word).and_then(CallchainContext::name) else {
            continue;
        };
        out.extend_from_slice(comma);
        out.extend_from_slice(b"{\"at\":");
        digits::push(out, at as u64);
        out.extend_from_slice(b",\"name\":\"");
        out.extend_from_slice(context.as_bytes());
        out.extend_from_slice(b"\"}");
        comma = b",";
    }
    out.push(b']');
}

/// Appends a JSON string of arbitrary bytes. A byte of invalid UTF-8 is written as U+FFFD followed
/// by its two hexadecimal digits, and so is each of the three bytes of U+FFFD itself. Thus no
/// information is lost. Control characters are escaped.
pub fn push_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    if is_plain(bytes) {
        out.extend_from_slice(bytes);
        out.push(b'"');
        return;
    }
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => out.extend([b'\\', c as u8]),
                '\u{fffd}' => c
                    .encode_utf8(&mut [0; 4])
                    .bytes()
                    .for_each(|byte| push_byte(out, byte)),
                ' '..='~' => out.push(c as u8),
                // A printable character escapes to itself.
                c if c.escape_debug().len() == 1 => {
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                c => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
            }
        }
        chunk
            .invalid()
            .iter()
            .for_each(|&byte| push_byte(out, byte));
    }
    out.push(b'"');
}

/// Returns whether a string of these bytes has no escaped character.
pub fn is_plain(bytes: &[u8]) -> bool {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    // Avoids a branch for each byte.
    let mut blocks = bytes.chunks(16);
    blocks.all(|block| block.iter().fold(true, |all, &byte| all & is_plain(byte)))
}

fn push_byte(out: &mut Vec<u8>, byte: u8) {
    let _ = write!(out, "\u{fffd}{byte:02x}");
}
