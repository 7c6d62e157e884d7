//! C++ names of common forms: functions in namespaces and classes, with templates, whose parameters
//! are classes, numbers, pointers and references. The general demangler, which allocates memory for
//! every part of a name, takes ten times as long.
//!
//! What is written here is a part of the Itanium C++ ABI (“Mangling”). Everything else is left to
//! the general demangler.

mod types;

use std::ops::Range;

use super::MOST;

const OPERATORS: [(&[u8; 2], &str); 42] = [
    (b"nw", " new"),
    (b"na", " new[]"),
    (b"dl", " delete"),
    (b"da", " delete[]"),
    (b"ng", "-"),
    (b"ad", "&"),
    (b"de", "*"),
    (b"co", "~"),
    (b"pl", "+"),
    (b"mi", "-"),
    (b"ml", "*"),
    (b"dv", "/"),
    (b"rm", "%"),
    (b"an", "&"),
    (b"or", "|"),
    (b"eo", "^"),
    (b"aS", "="),
    (b"pL", "+="),
    (b"mI", "-="),
    (b"mL", "*="),
    (b"dV", "/="),
    (b"rM", "%="),
    (b"aN", "&="),
    (b"oR", "|="),
    (b"eO", "^="),
    (b"ls", "<<"),
    (b"rs", ">>"),
    (b"lS", "<<="),
    (b"rS", ">>="),
    (b"eq", "=="),
    (b"ne", "!="),
    (b"lt", "<"),
    (b"gt", ">"),
    (b"le", "<="),
    (b"ge", ">="),
    (b"nt", "!"),
    (b"aa", "&&"),
    (b"oo", "||"),
    (b"pp", "++"),
    (b"mm", "--"),
    (b"cl", "()"),
    (b"ix", "[]"),
];

/// Returns the demangled form of a C++ name of a common form. `None` for other forms.
pub(super) fn demangled(name: &[u8], has_parameters: bool) -> Option<String> {
    let suffix = name.iter().position(|&byte| byte == b'.');
    let (name, suffix) = name.split_at_checked(suffix.unwrap_or(name.len()))?;
    let mut parser = Parser {
        rest: name.strip_prefix(b"_Z")?,
        out: Vec::with_capacity(name.len().saturating_mul(3)),
        substitutions: Vec::new(),
        arguments: None,
        element: None,
        elements: None,
        depth: 0,
    };
    let name = parser.function()?;
    let name_end = parser.out.len();
    if parser.rest.is_empty() {
        // The name of data, which is no method.
        return match name.is_const || name.is_structor || !suffix.is_empty() {
            true => None,
            false => String::from_utf8(parser.out).ok(),
        };
    }
    // The type of the result is part of the names of templates.
    if name.has_arguments && !name.is_structor {
        parser.kind()?;
    }
    let result_end = parser.out.len();
    parser.parameters()?;
    let out = parser.out;
    let (result, parameters) = (out.get(name_end..result_end)?, out.get(result_end..)?);
    let mut text = Vec::with_capacity(out.len().saturating_add(8));
    if has_parameters && !result.is_empty() {
        text.extend_from_slice(result);
        text.push(b' ');
    }
    text.extend_from_slice(out.get(..name_end)?);
    if has_parameters {
        text.extend_from_slice(parameters);
        if name.is_const {
            text.extend_from_slice(b" const");
        }
        push_clones(&mut text, suffix)?;
    } else if !suffix.is_empty() {
        return None;
    }
    String::from_utf8(text).ok()
}

/// Appends what compilers add to the names of copies of a function: words, and numbers after them.
fn push_clones(text: &mut Vec<u8>, suffix: &[u8]) -> Option<()> {
    let mut parts = suffix.split(|&byte| byte == b'.');
    parts.next().filter(|before| before.is_empty())?;
    let mut parts = parts.peekable();
    while let Some(word) = parts.next() {
        let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
        if word.is_empty() || !word.iter().all(is_letter) {
            return None;
        }
        text.extend_from_slice(b" [clone .");
        text.extend_from_slice(word);
        let is_number = |part: &&[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        while let Some(number) = parts.next_if(is_number) {
            text.push(b'.');
            text.extend_from_slice(number);
        }
        text.push(b']');
    }
    Some(())
}

/// What is known about the name of a function.
#[derive(Debug, Clone, Copy, Default)]
struct Name {
    /// Whether it ends with arguments of a template.
    has_arguments: bool,
    /// Whether it is a constructor or a destructor.
    is_structor: bool,
    /// Whether it is a method of constant objects.
    is_const: bool,
}

/// Something to which later parts of a name can refer: where it was written.
#[derive(Debug, Clone)]
struct Written {
    text: Range<usize>,
    /// Its last name, which is that of its constructors.
    last: Range<usize>,
}

impl Written {
    /// Makes a reference to it an error.
    fn forget(&mut self) {
        self.text = usize::MAX..usize::MAX;
    }
}

/// An argument of a template: where it was written.
#[derive(Debug, Clone)]
enum Argument {
    One(Range<usize>),
    /// Any number of arguments for one parameter.
    Pack(Vec<Range<usize>>),
}

struct Parser<'a> {
    rest: &'a [u8],
    out: Vec<u8>,
    substitutions: Vec<Written>,
    /// The arguments of the template that the function is.
    arguments: Option<Vec<Argument>>,
    /// In a type that is written for each element of a pack, the element and the number of them.
    element: Option<usize>,
    elements: Option<usize>,
    depth: u32,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Passes over a byte if it is the next one.
    fn eat(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    fn push(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Writes what was written before.
    fn again(&mut self, text: &Range<usize>) -> Option<()> {
        let is_known = text.start <= text.end && text.end <= self.out.len();
        let len = self.out.len().checked_add(text.len())?;
        if !is_known || len > MOST {
            return None;
        }
        self.out.extend_from_within(text.clone());
        Some(())
    }

    /// Makes what was written since `start` known to later parts.
    fn add(&mut self, start: usize, last: Range<usize>) {
        let text = start..self.out.len();
        self.substitutions.push(Written { text, last });
    }

    /// Returns a number in base 36 up to an underscore, plus one; 0 if there are no digits.
    fn number(&mut self) -> Option<usize> {
        let end = self.rest.iter().position(|&byte| byte == b'_')?;
        let (digits, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.get(1..)?;
        if digits.is_empty() {
            return Some(0);
        }
        if digits.iter().any(u8::is_ascii_lowercase) || digits.len() > 4 {
            return None;
        }
        let digits = std::str::from_utf8(digits).ok()?;
        usize::from_str_radix(digits, 36).ok()?.checked_add(1)
    }

    /// Writes a name, and returns where it is.
    fn source_name(&mut self) -> Option<Range<usize>> {
        let end = self.rest.iter().position(|byte| !byte.is_ascii_digit())?;
        let (digits, rest) = self.rest.split_at_checked(end)?;
        let len: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
        let (name, rest) = rest.split_at_checked(len)?;
        let is_common = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        // Some names belong to another language, or end with arguments of their own.
        if digits.starts_with(b"0") || !name.iter().all(is_common) || rest.starts_with(b"B") {
            return None;
        }
        self.rest = rest;
        let start = self.out.len();
        match name.starts_with(b"_GLOBAL_") {
            true if name == b"_GLOBAL__N_1" => self.push("(anonymous namespace)"),
            true => return None,
            false => self.out.extend_from_slice(name),
        }
        Some(start..self.out.len())
    }

    /// Writes the name of an operator.
    fn operator(&mut self) -> Option<Range<usize>> {
        let (code, rest) = self.rest.split_first_chunk()?;
        let (_, text) = OPERATORS.iter().find(|(known, _)| *known == code)?;
        self.rest = rest;
        let start = self.out.len();
        self.push("operator");
        self.push(text);
        Some(start..self.out.len())
    }

    /// Writes a name without a namespace.
    fn unqualified(&mut self) -> Option<Range<usize>> {
        // Functions that only their file can call.
        if self.rest.starts_with(b"L") {
            self.eat(b'L')?;
        }
        match self.peek()? {
            b'0'..=b'9' => self.source_name(),
            b'a'..=b'z' => self.operator(),
            _ => None,
        }
    }

    /// Writes what a reference refers to, and returns its last name; nothing for `std`.
    fn substitution(&mut self) -> Option<Option<Range<usize>>> {
        self.eat(b'S')?;
        let std = match self.peek()? {
            b't' => "",
            b'a' => "allocator",
            b'0'..=b'9' | b'A'..=b'Z' | b'_' => {
                let number = self.number()?;
                let Written { text, last } = self.substitutions.get(number)?.clone();
                let start = self.out.len();
                self.again(&text)?;
                let moved = |at: usize| start.checked_add(at.checked_sub(text.start)?);
                return Some(Some(moved(last.start)?..moved(last.end)?));
            }
            _ => return None,
        };
        self.rest = self.rest.get(1..)?;
        self.push("std");
        if std.is_empty() {
            return Some(None);
        }
        self.push("::");
        let start = self.out.len();
        self.push(std);
        Some(Some(start..self.out.len()))
    }

    /// Writes the name of a function.
    fn function(&mut self) -> Option<Name> {
        let start = self.out.len();
        match self.peek()? {
            b'N' => return self.nested(false),
            b'S' => {
                // Only names in `std` itself have this form.
                if self.substitution()?.is_some() {
                    return None;
                }
                self.push("::");
            }
            _ => {}
        }
        let last = self.unqualified()?;
        let mut name = Name::default();
        if self.peek() == Some(b'I') {
            self.add(start, last);
            self.arguments = Some(self.arguments()?);
            name.has_arguments = true;
        }
        Some(name)
    }

    /// Writes a name with its namespaces and classes. That of a type becomes known to later parts as
    /// a whole.
    fn nested(&mut self, is_type: bool) -> Option<Name> {
        self.eat(b'N')?;
        let mut name = Name {
            is_const: !is_type && self.eat(b'K').is_some(),
            ..Name::default()
        };
        let start = self.out.len();
        let mut last = start..start;
        loop {
            let is_first = self.out.len() == start;
            name.has_arguments = false;
            match self.peek()? {
                b'S' if is_first => {
                    last = self.substitution()?.unwrap_or(start..start);
                    if self.peek()? == b'E' {
                        return None;
                    }
                    continue;
                }
                b'I' if !is_first => {
                    let arguments = self.arguments()?;
                    name.has_arguments = true;
                    if !is_type {
                        self.arguments = Some(arguments);
                    }
                }
                b'C' | b'D' if !is_first && !is_type => {
                    self.structor(&last)?;
                    name.is_structor = true;
                }
                _ if name.is_structor => return None,
                _ => {
                    if !is_first {
                        self.push("::");
                    }
                    last = self.unqualified()?;
                }
            }
            let is_end = self.peek()? == b'E';
            if is_type || !is_end {
                self.add(start, last.clone());
            }
            if is_end {
                self.eat(b'E')?;
                return Some(name);
            }
        }
    }

    /// Writes the name of a constructor or a destructor of the class with this name.
    fn structor(&mut self, class: &Range<usize>) -> Option<()> {
        let (code, rest) = self.rest.split_first_chunk()?;
        let tilde = match code {
            b"C1" | b"C2" | b"C3" => "::",
            b"D0" | b"D1" | b"D2" => "::~",
            _ => return None,
        };
        if class.is_empty() || rest.starts_with(b"B") {
            return None;
        }
        self.rest = rest;
        self.push(tilde);
        self.again(class)
    }
}
