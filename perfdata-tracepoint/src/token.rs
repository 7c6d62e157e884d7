//! The tokens of `format` files.

use std::borrow::Cow;

use crate::like::Like;
use crate::problem::{Parsed, Problem};

/// What a token is (`enum tep_event_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The end, or a byte that belongs to no token.
    None,
    /// Blanks.
    Space,
    /// The end of a line.
    Newline,
    /// An operator, or another punctuation character.
    Op,
    /// A parenthesis or a comma.
    Delim,
    /// A name or a number.
    Item,
    /// A string, without its quotes; adjacent strings are one.
    String,
    /// Characters in single quotes, without these.
    Quote,
}

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// The token itself.
    pub text: Cow<'a, [u8]>,
}

impl Token<'_> {
    /// Returns whether this is an operator, and which.
    pub fn is_op(&self, text: &[u8]) -> bool {
        self.kind == Kind::Op && *self.text == *text
    }

    /// Returns whether this is a parenthesis or a comma, and which.
    pub fn is_delim(&self, text: u8) -> bool {
        self.kind == Kind::Delim && *self.text == [text]
    }

    /// Returns whether this is a name, a number, or something in quotes (`event_item_type`).
    pub fn is_value(&self) -> bool {
        matches!(self.kind, Kind::Item | Kind::String | Kind::Quote)
    }
}

/// Reads tokens.
#[derive(Debug)]
pub struct Tokens<'a> {
    input: &'a [u8],
    at: usize,
    /// Where the last token starts.
    start: usize,
    like: Like,
}

/// What a kernel without commit 811cb50baf63 left in the formats of mac80211.
const MACROS: [(&[u8], &[u8]); 3] = [
    (b"LOCAL_PR_FMT", b"%s"),
    (b"STA_PR_FMT", b" sta:%pM"),
    (b"VIF_PR_FMT", b" vif:%p(%d)"),
];

fn kind(byte: Option<u8>) -> Kind {
    match byte {
        Some(b'\n') => Kind::Newline,
        Some(b' ' | b'\t' | 0x0b | 0x0c | b'\r') => Kind::Space,
        Some(b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') => Kind::Item,
        Some(b'\'') => Kind::Quote,
        Some(b'"') => Kind::String,
        Some(b'(' | b')' | b',') => Kind::Delim,
        Some(0x20..=0x7e) => Kind::Op,
        _ => Kind::None,
    }
}

impl<'a> Tokens<'a> {
    /// Reads the tokens of a file.
    pub fn new(input: &'a [u8], like: Like) -> Self {
        Tokens {
            input,
            at: 0,
            start: 0,
            like,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    fn advance(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    fn slice(&self, start: usize) -> &'a [u8] {
        let end = self.at.min(self.input.len());
        self.input.get(start..end).unwrap_or_default()
    }

    /// Returns the next token (`__read_token`).
    fn any(&mut self) -> Token<'a> {
        self.start = self.at;
        let first = self.peek();
        let mut found = kind(first);
        self.advance();
        match found {
            Kind::None => {}
            Kind::Newline | Kind::Delim => {}
            Kind::Op => self.rest_of_op(first.unwrap_or_default()),
            Kind::String | Kind::Quote => {
                let text = self.string(first.unwrap_or_default(), &mut found);
                return Token { kind: found, text };
            }
            Kind::Space | Kind::Item => {
                while kind(self.peek()) == found {
                    self.advance();
                }
            }
        }
        let text = self.slice(self.start);
        if found == Kind::Item
            && let Some((_, string)) = MACROS.iter().find(|(name, _)| *name == text)
        {
            let text = Cow::Borrowed(*string);
            return Token {
                kind: Kind::String,
                text,
            };
        }
        Token {
            kind: found,
            text: Cow::Borrowed(text),
        }
    }

    fn rest_of_op(&mut self, first: u8) {
        let next = self.peek();
        match first {
            b'-' if next == Some(b'>') => return self.advance(),
            b'-' | b'+' | b'|' | b'&' | b'<' | b'>' if next == Some(first) => {
                self.advance();
                if !matches!(first, b'<' | b'>') {
                    return;
                }
            }
            b'-' | b'+' | b'|' | b'&' | b'<' | b'>' | b'!' | b'=' => {}
            _ => return,
        }
        if self.peek() == Some(b'=') {
            self.advance();
        }
    }

    /// Reads the rest of a string, and the strings directly after it.
    fn string(&mut self, quote: u8, found: &mut Kind) -> Cow<'a, [u8]> {
        let mut joined: Option<Vec<u8>> = None;
        let mut start = self.at;
        loop {
            let mut byte = quote;
            loop {
                let mut last = byte;
                let next = self.peek();
                self.advance();
                // libtraceevent takes bytes as signed: those after ASCII are less than 0.
                let is_end = match next {
                    None => true,
                    Some(next) => self.like.is_library() && !matches!(next, 1..=0x7f),
                };
                byte = next.unwrap_or_default();
                if is_end {
                    *found = Kind::None;
                    return Cow::Borrowed(&[]);
                }
                if byte == b'\\' && last == b'\\' {
                    last = 0;
                }
                let is_inside = if self.like.is_library() {
                    let is_tab = byte == b'\t' && self.like >= Like::Perf7_2;
                    byte != quote && matches!(byte, 0x20..=0x7e) || byte == b'\n' || is_tab
                } else {
                    byte != quote
                };
                if !is_inside && last != b'\\' {
                    break;
                }
            }
            let piece = self
                .input
                .get(start..self.at.saturating_sub(1))
                .unwrap_or_default();
            let end = self.at;
            while matches!(kind(self.peek()), Kind::Space | Kind::Newline) {
                self.advance();
            }
            if *found == Kind::String && self.peek() == Some(b'"') {
                self.advance();
                start = self.at;
                joined.get_or_insert_default().extend_from_slice(piece);
                continue;
            }
            self.at = end;
            return match joined {
                Some(mut joined) => {
                    joined.extend_from_slice(piece);
                    Cow::Owned(joined)
                }
                None => Cow::Borrowed(piece),
            };
        }
    }

    /// Returns the next token that is not blank; the end of a line is one (`read_token`).
    pub fn next(&mut self) -> Token<'a> {
        loop {
            let token = self.any();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    /// Returns the next token, on another line if necessary (`read_token_item`).
    pub fn next_on_any_line(&mut self) -> Token<'a> {
        loop {
            let token = self.any();
            if !matches!(token.kind, Kind::Space | Kind::Newline) {
                return token;
            }
        }
    }

    /// Returns what is wrong with a token.
    pub fn problem(&self, found: &Token<'_>, expected: impl Into<Cow<'static, str>>) -> Problem {
        let found = match found.kind {
            Kind::None => "the end".to_owned(),
            _ => format!("`{}`", found.text.escape_ascii()),
        };
        self.wrong(found, expected)
    }

    /// Returns a problem at the last token.
    pub fn wrong(&self, found: String, expected: impl Into<Cow<'static, str>>) -> Problem {
        Problem {
            offset: self.start,
            found,
            expected: expected.into(),
        }
    }

    /// Reads a token of a kind.
    pub fn expect(&mut self, kind: Kind, expected: &'static str) -> Parsed<Cow<'a, [u8]>> {
        let token = self.next();
        if token.kind == kind {
            Ok(token.text)
        } else {
            Err(self.problem(&token, expected))
        }
    }

    /// Reads one of two tokens: `text` as a name or as an operator.
    pub fn expect_text(&mut self, kind: Kind, text: &'static str) -> Parsed<()> {
        let token = self.next();
        self.check(&token, kind, text)
    }

    /// Reads a token, on another line if necessary.
    pub fn expect_on_any_line(&mut self, kind: Kind, text: &'static str) -> Parsed<()> {
        let token = self.next_on_any_line();
        self.check(&token, kind, text)
    }

    /// Checks a token.
    pub fn check(&self, token: &Token<'_>, kind: Kind, text: &'static str) -> Parsed<()> {
        if token.kind == kind && *token.text == *text.as_bytes() {
            Ok(())
        } else {
            Err(self.problem(token, format!("`{text}`")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str, like: Like) -> Vec<(Kind, String)> {
        let mut tokens = Tokens::new(text.as_bytes(), like);
        let mut all = Vec::new();
        loop {
            let token = tokens.next();
            if token.kind == Kind::None {
                return all;
            }
            let text = String::from_utf8_lossy(&token.text).into_owned();
            all.push((token.kind, text));
        }
    }

    #[test]
    fn a_text_is_split_as_in_libtraceevent() {
        let found = tokens("REC->a>>=b !=c--\n(~'x', \"a\" \n \"b\")", Like::Perf7_2);
        let expected = [
            (Kind::Item, "REC"),
            (Kind::Op, "->"),
            (Kind::Item, "a"),
            (Kind::Op, ">>="),
            (Kind::Item, "b"),
            (Kind::Op, "!="),
            (Kind::Item, "c"),
            (Kind::Op, "--"),
            (Kind::Newline, "\n"),
            (Kind::Delim, "("),
            (Kind::Op, "~"),
            (Kind::Quote, "x"),
            (Kind::Delim, ","),
            (Kind::String, "ab"),
            (Kind::Delim, ")"),
        ];
        let expected: Vec<_> = expected.map(|(kind, text)| (kind, text.to_owned())).into();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_string_ends_at_its_quote_or_with_the_file() {
        assert_eq!(
            tokens(r#""a\"b" STA_PR_FMT"#, Like::Perf7_2),
            [
                (Kind::String, r#"a\"b"#.to_owned()),
                (Kind::String, " sta:%pM".to_owned())
            ]
        );
        assert_eq!(tokens("\"a", Like::Perf7_2), []);
        assert_eq!(tokens("\"a", Like::Perf6_1), []);
        assert_eq!(tokens("\"\u{e4}\"", Like::Perf7_2), []);
        let old = tokens("\"\u{e4}\"", Like::Perf6_1);
        assert_eq!(old, [(Kind::String, "\u{e4}".to_owned())]);
    }
}
