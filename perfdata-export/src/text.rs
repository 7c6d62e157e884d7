//! Names as text. Names are bytes; the formats require UTF-8, or use some characters themselves.

/// The character before the two hexadecimal digits of an escaped byte.
const ESCAPE: char = char::REPLACEMENT_CHARACTER;

/// Appends a name as UTF-8, for formats that require it: the names in recordings are bytes. Control characters and bytes that are not UTF-8 become U+FFFD and two
/// hexadecimal digits, and so do the bytes of U+FFFD itself: different names never become equal.
pub fn push_text(out: &mut String, name: &[u8]) {
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() || c == ESCAPE {
                let mut buffer = [0; 4];
                push_bytes(out, c.encode_utf8(&mut buffer).as_bytes());
            } else {
                out.push(c);
            }
        }
        push_bytes(out, chunk.invalid());
    }
}

fn push_bytes(out: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        out.push(ESCAPE);
        for digit in [byte >> 4, byte & 0xf] {
            out.push(char::from_digit(digit.into(), 16).unwrap_or('0'));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &[u8]) -> String {
        let mut out = String::new();
        push_text(&mut out, name);
        out
    }

    fn back(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            if c == ESCAPE {
                bytes.push(u8::from_str_radix(&rest[..2], 16).unwrap());
                rest = &rest[2..];
            } else {
                bytes.extend_from_slice(c.to_string().as_bytes());
            }
        }
        bytes
    }

    #[test]
    fn names_can_be_recovered() {
        let names: [&[u8]; 6] = [
            b"main",
            "größe \u{fffd}ff".as_bytes(),
            b"\xff\xfe not utf-8",
            b"line\nbreak\ttab\x7f\x1b[31m",
            "\u{85}".as_bytes(),
            b"\"quoted\" \\ 'name';",
        ];
        for name in names {
            assert_eq!(back(&text(name)), name);
            assert!(!text(name).contains(char::is_control));
        }
        assert_ne!(text("\u{fffd}ff".as_bytes()), text(b"\xff"));
    }
}
