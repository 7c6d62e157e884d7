//! Types: `<type>`, and the arguments of templates.

use super::Parser;
use crate::builtin::{self, BFLOAT16, VOID};
use crate::node::{List, Modifier, Node, NodeId};

impl Parser<'_> {
    /// `<type>`
    pub(super) fn parse_type(&mut self) -> Option<NodeId> {
        let code = self.peek()?;
        if let Some(builtin) = builtin::of_letter(code) {
            self.skip(1);
            return self.make(Node::Builtin(builtin));
        }
        self.nested(|parser| parser.type_inner(code))
    }

    fn type_inner(&mut self, code: u8) -> Option<NodeId> {
        if self.is_qualifier() {
            let qualified = self.qualified_type()?;
            return self.known(qualified);
        }
        let ty = match code {
            b'u' => {
                self.skip(1);
                let name = self.source_name()?;
                let arguments = match self.peek() {
                    Some(b'I') => Some(self.template_arguments()?),
                    _ => None,
                };
                self.make(Node::VendorType { name, arguments })?
            }
            b'F' => self.function_type()?,
            b'0'..=b'9' | b'N' | b'Z' => self.any_name()?,
            b'A' => self.array_type()?,
            b'M' => self.pointer_to_member()?,
            b'T' => self.template_parameter_as_type()?,
            b'P' => self.modified_type(Modifier::Pointer)?,
            b'R' => self.modified_type(Modifier::Reference)?,
            b'O' => self.modified_type(Modifier::RvalueReference)?,
            b'C' => self.modified_type(Modifier::Complex)?,
            b'G' => self.modified_type(Modifier::Imaginary)?,
            b'U' => self.vendor_qualified_type()?,
            b'S' => match self.peek_second()? {
                b'0'..=b'9' | b'A'..=b'Z' | b'_' => {
                    let name = self.substitution(false)?;
                    if self.peek() != Some(b'I') {
                        return Some(name);
                    }
                    self.template_of(name)?
                }
                _ => {
                    let name = self.any_name()?;
                    // An abbreviation of a whole type is known already.
                    if let Node::Text(_) = self.buffers.tree.get(name) {
                        return Some(name);
                    }
                    name
                }
            },
            b'D' => {
                self.skip(1);
                return self.type_after_d();
            }
            _ => return None,
        };
        self.known(ty)
    }

    /// Makes a type known to later parts.
    fn known(&mut self, ty: NodeId) -> Option<NodeId> {
        self.buffers.substitutions.push(ty);
        Some(ty)
    }

    fn modified_type(&mut self, modifier: Modifier) -> Option<NodeId> {
        self.skip(1);
        let of = self.parse_type()?;
        self.modified(modifier, of)
    }

    /// The types whose codes begin with `D`.
    fn type_after_d(&mut self) -> Option<NodeId> {
        let code = self.next_byte()?;
        if let Some(builtin) = builtin::of_letter_after_d(code) {
            return self.make(Node::Builtin(builtin));
        }
        match code {
            b'T' | b't' => {
                let expression = self.expression()?;
                self.byte(b'E')?;
                let ty = self.make(Node::Decltype(expression))?;
                self.known(ty)
            }
            b'p' => {
                let pattern = self.parse_type()?;
                let ty = self.make(Node::PackExpansion(pattern))?;
                self.known(ty)
            }
            b'a' => self.make(Node::Text("auto")),
            b'c' => self.make(Node::Text("decltype(auto)")),
            b'v' => {
                let ty = self.vector_type()?;
                self.known(ty)
            }
            b'F' => self.float(),
            _ => None,
        }
    }

    /// `_FloatN`, `_FloatNx` and `std::bfloat16_t`.
    fn float(&mut self) -> Option<NodeId> {
        let start = self.at;
        let bits = self.digits()?;
        if bits == 16 && self.eat(b'b') {
            return self.make(Node::Builtin(&BFLOAT16));
        }
        self.eat(b'x');
        let len = u32::try_from(self.at.checked_sub(start)?).ok()?;
        self.eat(b'_');
        let start = u32::try_from(start).ok()?;
        self.make(Node::Float { start, len })
    }

    /// Returns whether the qualifiers of a type follow.
    fn is_qualifier(&self) -> bool {
        match self.peek() {
            Some(b'r' | b'V' | b'K') => true,
            Some(b'D') => matches!(self.peek_second(), Some(b'x' | b'o' | b'O' | b'w')),
            _ => false,
        }
    }

    /// `<qualified-type>`, and function types with qualifiers.
    fn qualified_type(&mut self) -> Option<NodeId> {
        let mut qualifiers = Vec::new();
        while self.is_qualifier() {
            qualifiers.push(match self.next_byte()? {
                b'r' => Modifier::Restrict,
                b'V' => Modifier::Volatile,
                b'K' => Modifier::Const,
                _ => match self.next_byte()? {
                    b'x' => Modifier::TransactionSafe,
                    b'o' => Modifier::Noexcept(None),
                    b'O' => {
                        let expression = self.expression()?;
                        self.byte(b'E')?;
                        Modifier::Noexcept(Some(expression))
                    }
                    _ => {
                        let types = self.parameters()?;
                        self.byte(b'E')?;
                        Modifier::Throw(types)
                    }
                },
            });
        }
        let is_function = self.peek() == Some(b'F');
        let ty = match is_function {
            true => self.function_type()?,
            false => self.parse_type()?,
        };
        // The qualifier of the object is written after the others.
        let (mut ty, reference) = match self.buffers.tree.get(ty) {
            Node::Modified {
                modifier: modifier @ (Modifier::ReferenceThis | Modifier::RvalueReferenceThis),
                of,
            } => (of, Some(modifier)),
            _ => (ty, None),
        };
        for qualifier in qualifiers.into_iter().rev() {
            let modifier = match is_function {
                true => qualifier.of_this(),
                false => qualifier,
            };
            ty = self.modified(modifier, ty)?;
        }
        match reference {
            Some(modifier) => self.modified(modifier, ty),
            None => Some(ty),
        }
    }

    fn vendor_qualified_type(&mut self) -> Option<NodeId> {
        self.byte(b'U')?;
        let mut qualifier = self.source_name()?;
        if self.peek() == Some(b'I') {
            qualifier = self.template_of(qualifier)?;
        }
        let of = self.parse_type()?;
        self.modified(Modifier::Vendor(qualifier), of)
    }

    /// `<function-type>` without its qualifiers.
    fn function_type(&mut self) -> Option<NodeId> {
        self.byte(b'F')?;
        // The function has C linkage.
        self.eat(b'Y');
        let function = self.bare_function_type(true)?;
        let function = match self.reference_qualifier() {
            Some(modifier) => self.modified(modifier, function)?,
            None => function,
        };
        self.byte(b'E')?;
        Some(function)
    }

    /// `<bare-function-type>`
    pub(super) fn bare_function_type(&mut self, has_result: bool) -> Option<NodeId> {
        let has_result = self.eat(b'J') || has_result;
        let result = match has_result {
            true => Some(self.parse_type()?),
            false => None,
        };
        let parameters = self.parameters()?;
        self.make(Node::Function { result, parameters })
    }

    /// The types of parameters: at least one, or `void`.
    pub(super) fn parameters(&mut self) -> Option<NodeId> {
        let start = self.buffers.elements.len();
        loop {
            match self.peek() {
                None | Some(b'E' | b'.') => break,
                // The qualifier of the object.
                Some(b'R' | b'O') if self.peek_second() == Some(b'E') => break,
                Some(_) => {}
            }
            let parameter = self.parse_type()?;
            self.buffers.elements.push(parameter);
        }
        match self.buffers.elements.get(start..)? {
            [] => return None,
            [only] => {
                if let Node::Builtin(builtin) = self.buffers.tree.get(*only)
                    && *builtin == VOID
                {
                    self.buffers.elements.truncate(start);
                }
            }
            _ => {}
        }
        let list = self.list_since(start)?;
        self.make(Node::Arguments(list))
    }

    /// `<array-type>`
    fn array_type(&mut self) -> Option<NodeId> {
        self.byte(b'A')?;
        let dimension = match self.peek()? {
            b'_' => None,
            b'0'..=b'9' => Some(self.digits_as_name()?),
            _ => Some(self.expression()?),
        };
        self.byte(b'_')?;
        let element = self.parse_type()?;
        self.make(Node::Array { dimension, element })
    }

    fn digits_as_name(&mut self) -> Option<NodeId> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.skip(1);
        }
        self.name_node(start, self.at.checked_sub(start)?)
    }

    /// `<vector-type>`
    fn vector_type(&mut self) -> Option<NodeId> {
        let dimension = match self.eat(b'_') {
            true => self.expression()?,
            false => {
                let number = self.number()?;
                self.make(Node::Number(number))?
            }
        };
        self.byte(b'_')?;
        let element = self.parse_type()?;
        self.make(Node::Vector { dimension, element })
    }

    /// `<pointer-to-member-type>`
    fn pointer_to_member(&mut self) -> Option<NodeId> {
        self.byte(b'M')?;
        let class = self.parse_type()?;
        let member = self.parse_type()?;
        self.make(Node::PointerToMember { class, member })
    }

    /// `<template-param>`
    pub(super) fn template_parameter(&mut self) -> Option<NodeId> {
        self.byte(b'T')?;
        let number = self.compact_number()?;
        self.make(Node::TemplateParameter(number))
    }

    /// `<template-param>`, and with arguments `<template-template-param>`.
    fn template_parameter_as_type(&mut self) -> Option<NodeId> {
        let parameter = self.template_parameter()?;
        if self.peek() != Some(b'I') {
            return Some(parameter);
        }
        if !self.is_conversion {
            self.buffers.substitutions.push(parameter);
            return self.template_of(parameter);
        }
        // The arguments are those of the conversion operator, unless others follow.
        let template = self.attempt(|parser| {
            let template = parser.template_of(parameter)?;
            (parser.peek() == Some(b'I')).then_some(template)
        });
        if template.is_some() {
            self.buffers.substitutions.push(parameter);
        }
        template.or(Some(parameter))
    }

    /// `<template-args>`, or an argument pack.
    pub(super) fn template_arguments(&mut self) -> Option<NodeId> {
        if !matches!(self.next_byte()?, b'I' | b'J') {
            return None;
        }
        let list = self.arguments_to_end()?;
        self.make(Node::TemplateArguments(list))
    }

    /// `<template-arg>`s up to an `E`.
    pub(super) fn arguments_to_end(&mut self) -> Option<List> {
        let last_name = self.last_name;
        let start = self.buffers.elements.len();
        while !self.eat(b'E') {
            let argument = self.template_argument()?;
            self.buffers.elements.push(argument);
        }
        self.last_name = last_name;
        self.list_since(start)
    }

    /// `<template-arg>`
    pub(super) fn template_argument(&mut self) -> Option<NodeId> {
        match self.peek()? {
            b'X' => {
                self.skip(1);
                let expression = self.expression()?;
                self.byte(b'E')?;
                Some(expression)
            }
            b'L' => self.primary(),
            b'I' | b'J' => self.nested(Self::template_arguments),
            _ => self.parse_type(),
        }
    }
}
