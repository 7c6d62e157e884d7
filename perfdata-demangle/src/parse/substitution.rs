//! References to earlier parts of the name, and abbreviations of the standard library:
//! `<substitution>`.

use super::Parser;
use crate::node::{Node, NodeId};

/// An abbreviation.
struct Abbreviation {
    code: u8,
    short: &'static str,
    full: &'static str,
    /// The name of the constructors.
    last_name: Option<&'static str>,
}

static ABBREVIATIONS: [Abbreviation; 7] = [
    Abbreviation {
        code: b't',
        short: "std",
        full: "std",
        last_name: None,
    },
    Abbreviation {
        code: b'a',
        short: "std::allocator",
        full: "std::allocator",
        last_name: Some("allocator"),
    },
    Abbreviation {
        code: b'b',
        short: "std::basic_string",
        full: "std::basic_string",
        last_name: Some("basic_string"),
    },
    Abbreviation {
        code: b's',
        short: "std::string",
        full: "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
        last_name: Some("basic_string"),
    },
    Abbreviation {
        code: b'i',
        short: "std::istream",
        full: "std::basic_istream<char, std::char_traits<char> >",
        last_name: Some("basic_istream"),
    },
    Abbreviation {
        code: b'o',
        short: "std::ostream",
        full: "std::basic_ostream<char, std::char_traits<char> >",
        last_name: Some("basic_ostream"),
    },
    Abbreviation {
        code: b'd',
        short: "std::iostream",
        full: "std::basic_iostream<char, std::char_traits<char> >",
        last_name: Some("basic_iostream"),
    },
];

impl Parser<'_> {
    /// `<substitution>`. In the prefix of a constructor or destructor, an abbreviation is always
    /// written in full.
    pub(super) fn substitution(&mut self, is_prefix: bool) -> Option<NodeId> {
        self.byte(b'S')?;
        let code = self.peek()?;
        if matches!(code, b'_' | b'0'..=b'9' | b'A'..=b'Z') {
            let number = self.sequence_number()?;
            return self.buffers.substitutions.get(number).copied();
        }
        self.skip(1);
        let known = ABBREVIATIONS.iter().find(|known| known.code == code)?;
        let is_full = self.is_verbose || is_prefix && matches!(self.peek(), Some(b'C' | b'D'));
        if let Some(name) = known.last_name {
            self.last_name = Some(self.make(Node::Text(name))?);
        }
        let text = match is_full {
            true => known.full,
            false => known.short,
        };
        let name = self.make(Node::Text(text))?;
        if self.peek() != Some(b'B') {
            return Some(name);
        }
        // With tags, it is a new name.
        let name = self.abi_tags(name)?;
        self.buffers.substitutions.push(name);
        Some(name)
    }

    /// `<seq-id>` and an underscore: 0 without digits, otherwise the number in base 36 plus one.
    fn sequence_number(&mut self) -> Option<usize> {
        if self.eat(b'_') {
            return Some(0);
        }
        let mut number: usize = 0;
        while !self.eat(b'_') {
            let byte = self.next_byte()?;
            let digit = match byte {
                b'0'..=b'9' => byte.checked_sub(b'0')?,
                b'A'..=b'Z' => byte.checked_sub(b'A')?.checked_add(10)?,
                _ => return None,
            };
            number = number.checked_mul(36)?.checked_add(usize::from(digit))?;
        }
        number.checked_add(1)
    }
}
