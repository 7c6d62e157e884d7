//! Names: `<name>`.

use super::Parser;
use crate::node::{Modifier, Node, NodeId};

/// The start of the name of an anonymous namespace. A separator and `N` follow it.
const ANONYMOUS: &[u8] = b"_GLOBAL_";

impl Parser<'_> {
    /// `<name>`
    pub(super) fn any_name(&mut self) -> Option<NodeId> {
        let mut is_substitution = false;
        let name = match self.peek()? {
            b'N' => return self.nested_name(),
            b'Z' => return self.nested(Self::local_name),
            b'S' if self.peek_second() != Some(b't') => {
                is_substitution = true;
                self.substitution(false)?
            }
            b'S' => {
                self.skip(2);
                let scope = self.make(Node::Text("std"))?;
                let name = self.unqualified_name()?;
                self.make(Node::Qualified { scope, name })?
            }
            _ => self.unqualified_name()?,
        };
        if self.peek() != Some(b'I') {
            return Some(name);
        }
        if !is_substitution {
            self.buffers.substitutions.push(name);
        }
        self.template_of(name)
    }

    /// `<template-args>` of a template.
    pub(super) fn template_of(&mut self, name: NodeId) -> Option<NodeId> {
        let arguments = self.template_arguments()?;
        self.make(Node::Template { name, arguments })
    }

    /// `<nested-name>`
    fn nested_name(&mut self) -> Option<NodeId> {
        self.byte(b'N')?;
        let qualifiers = self.qualifiers()?;
        let reference = self.reference_qualifier();
        let mut name = self.prefix()?;
        for modifier in qualifiers.into_iter().flatten().rev() {
            name = self.modified(modifier.of_this(), name)?;
        }
        if let Some(modifier) = reference {
            name = self.modified(modifier, name)?;
        }
        self.byte(b'E')?;
        Some(name)
    }

    /// `<CV-qualifiers>` of a function.
    fn qualifiers(&mut self) -> Option<[Option<Modifier>; 3]> {
        let mut qualifiers = [None; 3];
        for (code, modifier) in [
            (b'r', Modifier::Restrict),
            (b'V', Modifier::Volatile),
            (b'K', Modifier::Const),
        ] {
            if self.eat(code) {
                *qualifiers.iter_mut().find(|one| one.is_none())? = Some(modifier);
            }
        }
        Some(qualifiers)
    }

    /// `<ref-qualifier>`
    pub(super) fn reference_qualifier(&mut self) -> Option<Modifier> {
        let modifier = match self.peek()? {
            b'R' => Modifier::ReferenceThis,
            b'O' => Modifier::RvalueReferenceThis,
            _ => return None,
        };
        self.skip(1);
        Some(modifier)
    }

    /// `<prefix>`, up to an `E`.
    fn prefix(&mut self) -> Option<NodeId> {
        let mut prefix: Option<NodeId> = None;
        loop {
            let next = self.peek()?;
            let mut is_substitution = next == b'S';
            let part = match next {
                b'E' => return prefix,
                b'I' => {
                    let template = self.template_of(prefix?)?;
                    prefix = Some(template);
                    self.add_unless_end(template, false);
                    continue;
                }
                // The scope of an initializer with a lambda is already known.
                b'M' => {
                    prefix?;
                    self.skip(1);
                    continue;
                }
                b'D' if matches!(self.peek_second(), Some(b'T' | b't')) => {
                    is_substitution = true;
                    self.parse_type()?
                }
                b'S' => self.substitution(true)?,
                b'T' => self.template_parameter()?,
                _ => self.unqualified_name()?,
            };
            let new = match prefix {
                None => part,
                Some(scope) => self.make(Node::Qualified { scope, name: part })?,
            };
            self.add_unless_end(new, is_substitution);
            prefix = Some(new);
        }
    }

    /// Makes a prefix known to later parts. The whole name is not: it is a function, or its type is
    /// added elsewhere.
    fn add_unless_end(&mut self, prefix: NodeId, is_known: bool) {
        if !is_known && self.peek() != Some(b'E') {
            self.buffers.substitutions.push(prefix);
        }
    }

    /// `<unqualified-name>`
    pub(super) fn unqualified_name(&mut self) -> Option<NodeId> {
        let name = match self.peek()? {
            b'0'..=b'9' => self.source_name()?,
            b'a'..=b'z' => self.operator_as_name()?,
            b'D' if self.peek_second() == Some(b'C') => self.structured_binding()?,
            b'C' | b'D' => self.constructor_or_destructor()?,
            // A name that only its file can use.
            b'L' => {
                self.skip(1);
                let name = self.source_name()?;
                self.discriminator()?;
                name
            }
            b'U' => match self.peek_second()? {
                b'l' => self.lambda()?,
                b't' => self.unnamed_type()?,
                _ => return None,
            },
            _ => return None,
        };
        self.abi_tags(name)
    }

    /// `<abi-tags>`
    pub(super) fn abi_tags(&mut self, mut name: NodeId) -> Option<NodeId> {
        let last_name = self.last_name;
        while self.eat(b'B') {
            let tag = self.source_name()?;
            name = self.make(Node::Tagged { name, tag })?;
        }
        self.last_name = last_name;
        Some(name)
    }

    /// `<source-name>`
    pub(super) fn source_name(&mut self) -> Option<NodeId> {
        let len = usize::try_from(self.digits()?).ok()?;
        let start = self.at;
        let end = start.checked_add(len).filter(|_| len > 0)?;
        let name = self.name.get(start..end)?;
        self.at = end;
        let is_anonymous = |name: &[u8]| match name.strip_prefix(ANONYMOUS) {
            Some([b'.' | b'_' | b'$', b'N', ..]) => true,
            Some(_) | None => false,
        };
        let node = match is_anonymous(name) {
            true => self.make(Node::Text("(anonymous namespace)"))?,
            false => self.name_node(start, len)?,
        };
        self.last_name = Some(node);
        Some(node)
    }

    /// `<operator-name>` where it is the name of a function.
    fn operator_as_name(&mut self) -> Option<NodeId> {
        self.eat_word(b"on");
        let was_expression = std::mem::replace(&mut self.is_expression, false);
        let operator = self.operator_name();
        self.is_expression = was_expression;
        let operator = operator?;
        match self.buffers.tree.get(operator) {
            Node::Operator(known) if known.code == *b"li" => {
                let operand = self.source_name()?;
                self.make(Node::Unary { operator, operand })
            }
            _ => Some(operator),
        }
    }

    /// The names of a structured binding.
    fn structured_binding(&mut self) -> Option<NodeId> {
        self.skip(2);
        let start = self.buffers.elements.len();
        while !self.eat(b'E') {
            let name = self.source_name()?;
            self.buffers.elements.push(name);
        }
        let list = self.list_since(start)?;
        self.make(Node::StructuredBinding(list))
    }

    /// `<ctor-dtor-name>`
    fn constructor_or_destructor(&mut self) -> Option<NodeId> {
        self.last_name?;
        let is_constructor = self.next_byte()? == b'C';
        let is_inheriting = is_constructor && self.eat(b'I');
        match (is_constructor, self.next_byte()?) {
            (true, b'1'..=b'5') | (false, b'0'..=b'2' | b'4' | b'5') => {}
            _ => return None,
        }
        // An inherited constructor has the name of its class.
        if is_inheriting {
            self.parse_type()?;
        }
        let class = self.last_name?;
        match is_constructor {
            true => self.make(Node::Constructor(class)),
            false => self.make(Node::Destructor(class)),
        }
    }

    /// `<closure-type-name>`
    fn lambda(&mut self) -> Option<NodeId> {
        self.word(b"Ul")?;
        let parameters = self.parameters()?;
        self.byte(b'E')?;
        let number = self.compact_number()?;
        self.make(Node::Lambda { parameters, number })
    }

    /// `<unnamed-type-name>`
    fn unnamed_type(&mut self) -> Option<NodeId> {
        self.word(b"Ut")?;
        let number = self.compact_number()?;
        let unnamed = self.make(Node::UnnamedType(number))?;
        self.buffers.substitutions.push(unnamed);
        Some(unnamed)
    }

    /// `<local-name>`
    fn local_name(&mut self) -> Option<NodeId> {
        self.byte(b'Z')?;
        let function = self.encoding()?;
        self.byte(b'E')?;
        let name = match self.peek()? {
            b's' => {
                self.skip(1);
                self.discriminator()?;
                self.make(Node::Text("string literal"))?
            }
            b'd' => {
                self.skip(1);
                let number = self.compact_number()?;
                let name = self.local_entity()?;
                self.make(Node::DefaultArgument { number, name })?
            }
            _ => self.local_entity()?,
        };
        self.remove_result(function);
        self.make(Node::Local { function, name })
    }

    /// The name of a local entity with its discriminator.
    fn local_entity(&mut self) -> Option<NodeId> {
        let name = self.any_name()?;
        match self.buffers.tree.get(name) {
            Node::Lambda { .. } | Node::UnnamedType(_) => {}
            _ => self.discriminator()?,
        }
        Some(name)
    }

    /// Leaves out the result of the function that contains an entity: it could be taken for that of
    /// the entity.
    fn remove_result(&mut self, id: NodeId) {
        if let Node::Typed { function, .. } = self.buffers.tree.get(id)
            && let Node::Function { parameters, .. } = self.buffers.tree.get(function)
        {
            let result = None;
            self.buffers
                .tree
                .set(function, Node::Function { result, parameters });
        }
    }
}
