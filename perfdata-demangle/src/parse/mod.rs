//! The parser of mangled names: recursive descent by the grammar of the Itanium C++ ABI
//! (<https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling>).

mod expression;
mod name;
mod special;
mod substitution;
mod types;

use crate::node::{List, Modifier, Node, NodeId, Tree};

/// Maximum depth of the grammar's recursion.
const MAX_DEPTH: u32 = 384;

/// Maximum number of nodes, with those of attempts that failed.
const MAX_NODES: u32 = 1 << 17;

/// What follows `sr` in an expression. Versions of compilers differ, and the text does not always show
/// which it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unresolved {
    /// After a digit, names up to an `E` and the last name; otherwise, a type and a name.
    LevelsOfNames,
    /// After an `N`, also a type, names up to an `E`, and the last name.
    Levels,
    /// A type and a name.
    Type,
}

/// What the parser fills. It is used again for the next name, so that it is rarely allocated.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) tree: Tree,
    /// What later parts of the name can refer to.
    substitutions: Vec<NodeId>,
    /// Elements of the lists that are being read.
    elements: Vec<NodeId>,
}

impl Buffers {
    fn clear(&mut self) {
        self.tree.clear();
        self.substitutions.clear();
        self.elements.clear();
    }
}

/// Parses a whole mangled name, and returns the root of the tree. Without `has_parameters`, only the
/// name of a function is read, and what follows it is ignored. With `is_verbose`, abbreviations of the
/// standard library are written in full.
pub(crate) fn symbol(
    name: &[u8],
    buffers: &mut Buffers,
    has_parameters: bool,
    is_verbose: bool,
) -> Option<NodeId> {
    for unresolved in [
        Unresolved::LevelsOfNames,
        Unresolved::Levels,
        Unresolved::Type,
    ] {
        buffers.clear();
        let mut parser = Parser::new(name, buffers, is_verbose, unresolved);
        let root = parser.symbol(has_parameters);
        if root.is_some() || !parser.has_unresolved {
            return root;
        }
    }
    None
}

/// The state of the parser.
struct Parser<'a> {
    name: &'a [u8],
    at: usize,
    buffers: &'a mut Buffers,
    /// The last name of a class, which is that of its constructors.
    last_name: Option<NodeId>,
    /// Whether abbreviations of the standard library are written in full.
    is_verbose: bool,
    /// Whether this is the type of a conversion operator's name.
    is_conversion: bool,
    is_expression: bool,
    unresolved: Unresolved,
    /// Whether there was an `sr`.
    has_unresolved: bool,
    depth: u32,
    /// Number of nodes that were made.
    made: u32,
}

/// What an attempt restores when it fails.
struct Checkpoint {
    at: usize,
    substitutions: usize,
    elements: usize,
    last_name: Option<NodeId>,
    is_conversion: bool,
    is_expression: bool,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn new(
        name: &'a [u8],
        buffers: &'a mut Buffers,
        is_verbose: bool,
        unresolved: Unresolved,
    ) -> Parser<'a> {
        Parser {
            name,
            at: 0,
            buffers,
            last_name: None,
            is_verbose,
            is_conversion: false,
            is_expression: false,
            unresolved,
            has_unresolved: false,
            depth: 0,
            made: 0,
        }
    }

    fn symbol(&mut self, has_parameters: bool) -> Option<NodeId> {
        if let Some(id) = self.constructors_of_file()? {
            return Some(id);
        }
        self.word(b"_Z")?;
        let mut id = match has_parameters {
            true => self.encoding()?,
            false => return self.encoding_without_parameters(),
        };
        while !self.is_end() {
            id = self.clone_suffix(id)?;
        }
        Some(id)
    }

    /// Parses the name of the function that runs the static constructors or destructors of a file.
    fn constructors_of_file(&mut self) -> Option<Option<NodeId>> {
        let words = match self.name {
            [
                b'_',
                b'G',
                b'L',
                b'O',
                b'B',
                b'A',
                b'L',
                b'_',
                b'.' | b'_' | b'$',
                code,
                b'_',
                ..,
            ] => match code {
                b'I' => "global constructors keyed to ",
                b'D' => "global destructors keyed to ",
                _ => return None,
            },
            _ => return Some(None),
        };
        self.at = 11;
        let of = match self.eat_word(b"_Z") {
            true => self.encoding()?,
            false => {
                let len = self.name.len().checked_sub(self.at)?;
                self.name_node(self.at, len)?
            }
        };
        self.at = self.name.len();
        self.make(Node::Special { words, of }).map(Some)
    }

    /// `<encoding>`
    fn encoding(&mut self) -> Option<NodeId> {
        self.nested(Self::encoding_inner)
    }

    fn encoding_inner(&mut self) -> Option<NodeId> {
        if matches!(self.peek(), Some(b'G' | b'T')) {
            return self.special_name();
        }
        let name = self.any_name()?;
        if matches!(self.peek(), None | Some(b'E' | b'.')) {
            return Some(name);
        }
        let has_result = self.has_result(name);
        let function = self.bare_function_type(has_result)?;
        self.make(Node::Typed { name, function })
    }

    /// Parses an encoding up to the end of the function's name, and leaves out its qualifiers.
    fn encoding_without_parameters(&mut self) -> Option<NodeId> {
        if matches!(self.peek(), Some(b'G' | b'T')) {
            return self.special_name();
        }
        let id = self.any_name()?;
        let id = self.buffers.tree.without_function_qualifiers(id);
        if let Node::Local { function, name } = self.buffers.tree.get(id) {
            let name = self.buffers.tree.without_function_qualifiers(name);
            return self.make(Node::Local { function, name });
        }
        Some(id)
    }

    /// Returns whether the type of a function with this name begins with its result.
    fn has_result(&self, mut id: NodeId) -> bool {
        loop {
            id = match self.buffers.tree.get(id) {
                Node::Local { name, .. } => name,
                Node::Modified { modifier, of } if modifier.is_of_function() => of,
                Node::Template { name, .. } => return !self.is_without_result(name),
                _ => return false,
            }
        }
    }

    /// Returns whether it is the name of a constructor, a destructor or a conversion operator.
    fn is_without_result(&self, mut id: NodeId) -> bool {
        loop {
            id = match self.buffers.tree.get(id) {
                Node::Qualified { name, .. } | Node::Local { name, .. } => name,
                Node::Constructor(_) | Node::Destructor(_) | Node::Conversion(_) => return true,
                _ => return false,
            }
        }
    }

    /// Parses what a compiler appends to the name of a copy: `.cold`, `.part.0`.
    fn clone_suffix(&mut self, of: NodeId) -> Option<NodeId> {
        let start = self.at;
        self.byte(b'.')?;
        let is_of_word =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        self.peek().filter(|&byte| is_of_word(byte))?;
        while self.peek().is_some_and(is_of_word) {
            self.skip(1);
        }
        while self.peek() == Some(b'.') && self.peek_second().is_some_and(|b| b.is_ascii_digit()) {
            self.skip(2);
            while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                self.skip(1);
            }
        }
        let suffix = self.name_node(start, self.at.checked_sub(start)?)?;
        self.make(Node::Clone { of, suffix })
    }

    // What the parts of the parser share.

    fn peek(&self) -> Option<u8> {
        self.name.get(self.at).copied()
    }

    fn peek_second(&self) -> Option<u8> {
        self.name.get(self.at.checked_add(1)?).copied()
    }

    fn is_end(&self) -> bool {
        self.at >= self.name.len()
    }

    fn skip(&mut self, len: usize) {
        self.at = self.at.saturating_add(len).min(self.name.len());
    }

    fn next_byte(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.skip(1);
        Some(byte)
    }

    /// Passes over a byte if it is the next one.
    fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        if is_next {
            self.skip(1);
        }
        is_next
    }

    /// Passes over a byte, which must be the next one.
    fn byte(&mut self, byte: u8) -> Option<()> {
        self.eat(byte).then_some(())
    }

    fn starts_with(&self, word: &[u8]) -> bool {
        self.name
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word))
    }

    fn eat_word(&mut self, word: &[u8]) -> bool {
        let is_next = self.starts_with(word);
        if is_next {
            self.skip(word.len());
        }
        is_next
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.eat_word(word).then_some(())
    }

    /// Makes a node.
    fn make(&mut self, node: Node) -> Option<NodeId> {
        self.made = self.made.checked_add(1).filter(|made| *made <= MAX_NODES)?;
        self.buffers.tree.add(node)
    }

    /// Makes a node of bytes of the mangled name.
    fn name_node(&mut self, start: usize, len: usize) -> Option<NodeId> {
        let (start, len) = (u32::try_from(start).ok()?, u32::try_from(len).ok()?);
        self.make(Node::Name { start, len })
    }

    fn modified(&mut self, modifier: Modifier, of: NodeId) -> Option<NodeId> {
        self.make(Node::Modified { modifier, of })
    }

    /// Makes a list of the elements that were added since there were `start` of them.
    fn list_since(&mut self, start: usize) -> Option<List> {
        let Buffers { tree, elements, .. } = &mut *self.buffers;
        let list = tree.add_list(elements.get(start..)?)?;
        elements.truncate(start);
        Some(list)
    }

    /// Parses one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth = self.depth.saturating_add(1);
        let parsed = parse(self);
        self.depth = self.depth.saturating_sub(1);
        parsed
    }

    /// Tries to parse something. On failure, everything is as before.
    fn attempt<T>(&mut self, parse: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = Checkpoint {
            at: self.at,
            substitutions: self.buffers.substitutions.len(),
            elements: self.buffers.elements.len(),
            last_name: self.last_name,
            is_conversion: self.is_conversion,
            is_expression: self.is_expression,
            depth: self.depth,
        };
        let parsed = parse(self);
        if parsed.is_none() {
            self.at = before.at;
            self.buffers.substitutions.truncate(before.substitutions);
            self.buffers.elements.truncate(before.elements);
            self.last_name = before.last_name;
            self.is_conversion = before.is_conversion;
            self.is_expression = before.is_expression;
            self.depth = before.depth;
        }
        parsed
    }

    /// `<number>` without a sign; `None` if there are no digits.
    fn digits(&mut self) -> Option<u32> {
        let mut number: Option<u32> = None;
        while let Some(byte) = self.peek().filter(u8::is_ascii_digit) {
            let digit = u32::from(byte.checked_sub(b'0')?);
            number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(digit)?);
            self.skip(1);
        }
        number
    }

    /// `<number>`, which is negative after an `n`; 0 if there are no digits.
    fn number(&mut self) -> Option<i64> {
        let is_negative = self.eat(b'n');
        let has_digits = self.peek().is_some_and(|byte| byte.is_ascii_digit());
        let number = match has_digits {
            true => i64::from(self.digits()?),
            false => 0,
        };
        Some(match is_negative {
            true => number.checked_neg()?,
            false => number,
        })
    }

    /// A number and an underscore: 0 without digits, otherwise the number plus one.
    fn compact_number(&mut self) -> Option<u32> {
        if self.eat(b'_') {
            return Some(0);
        }
        let number = self.digits()?.checked_add(1)?;
        self.byte(b'_')?;
        Some(number)
    }

    /// `<discriminator>`, which is not part of the name's text.
    fn discriminator(&mut self) -> Option<()> {
        if !self.eat(b'_') {
            return Some(());
        }
        let is_long = self.eat(b'_');
        let number = self.number().filter(|number| *number >= 0)?;
        if is_long && number >= 10 {
            self.byte(b'_')?;
        }
        Some(())
    }
}
