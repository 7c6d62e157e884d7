//! Types in C++ names, and arguments of templates.

use std::ops::Range;

use super::{Argument, Parser, Written};
use crate::demangle::MOST;

/// Maximum depth of types in each other.
const MOST_DEPTH: u32 = 32;

const BUILTIN: [(u8, &str); 20] = [
    (b'v', "void"),
    (b'b', "bool"),
    (b'c', "char"),
    (b'a', "signed char"),
    (b'h', "unsigned char"),
    (b's', "short"),
    (b't', "unsigned short"),
    (b'i', "int"),
    (b'j', "unsigned int"),
    (b'l', "long"),
    (b'm', "unsigned long"),
    (b'x', "long long"),
    (b'y', "unsigned long long"),
    (b'n', "__int128"),
    (b'o', "unsigned __int128"),
    (b'f', "float"),
    (b'd', "double"),
    (b'e', "long double"),
    (b'g', "__float128"),
    (b'w', "wchar_t"),
];

/// Types of numbers as arguments of templates, and what is written behind the numbers.
const LITERALS: [(u8, &str); 6] = [
    (b'i', ""),
    (b'j', "u"),
    (b'l', "l"),
    (b'm', "ul"),
    (b'x', "ll"),
    (b'y', "ull"),
];

impl Parser<'_> {
    /// Writes the arguments of a template, and returns where they are.
    pub(super) fn arguments(&mut self) -> Option<Vec<Argument>> {
        self.eat(b'I')?;
        self.push(if self.out.ends_with(b"<") { " <" } else { "<" });
        let mut arguments = Vec::new();
        self.list(|parser| {
            if parser.eat(b'E').is_some() {
                return Some(false);
            }
            let start = parser.out.len();
            arguments.push(match parser.eat(b'J') {
                Some(()) => Argument::Pack(parser.pack()?),
                None => {
                    parser.argument()?;
                    Argument::One(start..parser.out.len())
                }
            });
            Some(true)
        })?;
        // libiberty writes a space between two brackets, unless an empty pack was between them.
        let is_empty = match arguments.last()? {
            Argument::One(argument) => argument.is_empty(),
            Argument::Pack(elements) => elements.iter().all(Range::is_empty),
        };
        let is_space = self.out.ends_with(b">") && !is_empty;
        self.push(if is_space { " >" } else { ">" });
        Some(arguments)
    }

    /// Writes the arguments of a pack, and returns where they are.
    fn pack(&mut self) -> Option<Vec<Range<usize>>> {
        let mut elements = Vec::new();
        self.list(|parser| {
            if parser.eat(b'E').is_some() {
                return Some(false);
            }
            let start = parser.out.len();
            parser.argument()?;
            elements.push(start..parser.out.len());
            Some(true)
        })?;
        Some(elements)
    }

    /// Writes an argument of a template.
    fn argument(&mut self) -> Option<()> {
        match self.peek()? {
            b'L' => self.literal(),
            _ => self.kind(),
        }
    }

    /// Writes elements with commas between them until `write` returns false. A pack can be empty;
    /// like in libiberty, commas after the last element that is not are removed, and others remain.
    fn list(&mut self, mut write: impl FnMut(&mut Self) -> Option<bool>) -> Option<()> {
        let mut end = self.out.len();
        let mut is_first = true;
        loop {
            if !is_first {
                self.push(", ");
            }
            let start = self.out.len();
            if !write(self)? {
                self.out.truncate(end);
                return Some(());
            }
            is_first = false;
            if self.out.len() > start {
                end = self.out.len();
            }
        }
    }

    /// Writes a type for each element of a pack.
    fn expansion(&mut self) -> Option<()> {
        self.eat(b'D')?;
        self.eat(b'p')?;
        if self.element.is_some() {
            return None;
        }
        let (pattern, start) = (self.rest, self.out.len());
        let known = self.substitutions.len();
        (self.element, self.elements) = (Some(0), None);
        self.kind()?;
        // What was written for one element is not what later parts refer to.
        let added = self.substitutions.get_mut(known..)?;
        added.iter_mut().for_each(Written::forget);
        let (added, after) = (self.substitutions.len(), self.rest);
        let elements = self.elements?;
        if elements == 0 {
            self.out.truncate(start);
        }
        for element in 1..elements {
            (self.rest, self.element) = (pattern, Some(element));
            self.push(", ");
            self.kind()?;
            self.substitutions.truncate(added);
        }
        (self.rest, self.element) = (after, None);
        self.add(start, start..start);
        self.substitutions.last_mut()?.forget();
        Some(())
    }

    /// Writes a number as an argument of a template.
    fn literal(&mut self) -> Option<()> {
        self.eat(b'L')?;
        let suffix = match self.peek()? {
            b'b' => {
                let text = match self.rest.get(..3)? {
                    b"b0E" => "false",
                    b"b1E" => "true",
                    _ => return None,
                };
                self.rest = self.rest.get(3..)?;
                self.push(text);
                return Some(());
            }
            b'N' | b'S' | b'0'..=b'9' => {
                self.push("(");
                self.kind()?;
                self.push(")");
                ""
            }
            kind => {
                let (_, suffix) = LITERALS.iter().find(|(known, _)| *known == kind)?;
                self.eat(kind)?;
                suffix
            }
        };
        if self.eat(b'n').is_some() {
            self.push("-");
        }
        let end = self.rest.iter().position(|&byte| byte == b'E')?;
        let (digits, rest) = self.rest.split_at_checked(end)?;
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        self.rest = rest.get(1..)?;
        self.out.extend_from_slice(digits);
        self.push(suffix);
        Some(())
    }

    /// Writes the parameters of a function, up to the end of its name.
    pub(super) fn parameters(&mut self) -> Option<()> {
        match self.rest {
            b"" => return None,
            b"v" => {
                self.push("()");
                return Some(());
            }
            _ => {}
        }
        self.push("(");
        self.list(|parser| match parser.peek() {
            None => Some(false),
            // It stands for no parameters, and must be alone.
            Some(b'v') => None,
            Some(_) => parser.kind().map(|()| true),
        })?;
        self.push(")");
        Some(())
    }

    /// Writes a type.
    pub(super) fn kind(&mut self) -> Option<()> {
        self.depth = self
            .depth
            .checked_add(1)
            .filter(|depth| *depth <= MOST_DEPTH)?;
        self.kind_in_depth()?;
        self.depth = self.depth.checked_sub(1)?;
        (self.out.len() <= MOST).then_some(())
    }

    fn kind_in_depth(&mut self) -> Option<()> {
        let start = self.out.len();
        let first = self.peek()?;
        if let Some((_, text)) = BUILTIN.iter().find(|(known, _)| *known == first) {
            self.eat(first)?;
            self.push(text);
            return Some(());
        }
        let last = match first {
            b'P' | b'R' | b'O' | b'K' => {
                self.eat(first)?;
                self.kind()?;
                let is_reference = self.out.ends_with(b"&");
                match first {
                    // References to references are one reference; none can be constant, and there
                    // are no pointers to them.
                    b'P' | b'K' if is_reference => return None,
                    b'R' if self.out.ends_with(b"&&") => {
                        self.out.pop();
                    }
                    b'R' | b'O' if is_reference => {}
                    b'P' => self.push("*"),
                    b'R' => self.push("&"),
                    b'O' => self.push("&&"),
                    _ => self.push(" const"),
                }
                start..start
            }
            b'T' => {
                self.eat(b'T')?;
                let number = self.number()?;
                match self.arguments.as_ref()?.get(number)?.clone() {
                    Argument::One(argument) => self.again(&argument)?,
                    Argument::Pack(elements) => {
                        self.elements = Some(elements.len());
                        // Nothing is written for an empty pack.
                        if let Some(element) = elements.get(self.element?) {
                            self.again(element)?;
                        }
                    }
                }
                if self.peek() == Some(b'I') {
                    return None;
                }
                start..start
            }
            b'N' => {
                self.nested(true)?;
                return Some(());
            }
            b'D' => return self.expansion(),
            b'S' => match self.substitution()? {
                Some(_) if self.peek() != Some(b'I') => return Some(()),
                Some(last) => last,
                None => {
                    self.push("::");
                    self.class(start)?
                }
            },
            b'0'..=b'9' => self.class(start)?,
            _ => return None,
        };
        if self.peek() == Some(b'I') && !last.is_empty() {
            self.arguments()?;
        }
        self.add(start, last);
        Some(())
    }

    /// Writes the name of a class. That of a template becomes known to later parts.
    fn class(&mut self, start: usize) -> Option<Range<usize>> {
        let last = self.source_name()?;
        if self.peek() == Some(b'I') {
            self.add(start, last.clone());
        }
        Some(last)
    }
}
