//! JSON strings of names.

use crate::text::push_text;

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
