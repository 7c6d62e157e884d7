//! Bytes as text: escaped, or in hexadecimal digits.

use std::fmt::Write as _;

use super::json_text::is_plain;

/// Returns bytes in quotes. Control characters and invalid UTF-8 are escaped as in a Rust string,
/// so that different bytes never look the same.
pub fn quoted(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    push_escaped(&mut out, bytes);
    out.push('"');
    out
}

/// Returns bytes with the same escapes, but without quotes.
pub fn escaped(bytes: &[u8]) -> String {
    let mut out = String::new();
    push_escaped(&mut out, bytes);
    out
}

/// Appends bytes with the same escapes.
pub fn push_escaped(out: &mut String, bytes: &[u8]) {
    if is_plain(bytes)
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        out.push_str(text);
        return;
    }
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\'' {
                out.push(c)
            } else {
                out.extend(c.escape_debug())
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
}

/// Returns the hexadecimal digit of the lower 4 bits of `byte`.
fn digit(byte: u8) -> u8 {
    match byte & 15 {
        low @ 0..10 => b'0' + low,
        low => b'a' - 10 + low,
    }
}

/// Appends bytes in hexadecimal.
pub fn push_hex(out: &mut String, bytes: &[u8]) {
    let mut digits = [[0; 2]; 32];
    for part in bytes.chunks(digits.len()) {
        for (pair, byte) in digits.iter_mut().zip(part) {
            *pair = hex_pair(*byte);
        }
        let digits = digits.get(..part.len()).unwrap_or_default().as_flattened();
        out.push_str(std::str::from_utf8(digits).unwrap_or_default());
    }
}

/// Returns the hexadecimal digits of a byte.
pub fn hex_pair(byte: u8) -> [u8; 2] {
    [digit(byte >> 4), digit(byte)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_unescaped() {
        assert_eq!(
            quoted(b"it's\x1b[31m \xff\"\\"),
            r#""it's\u{1b}[31m \xff\"\\""#
        );
        assert_eq!(escaped("a\u{202e}b".as_bytes()), r"a\u{202e}b");
        assert_eq!(escaped(b"/usr/it's ~"), "/usr/it's ~");
    }
}
