//! Expressions: `<expression>`, and the names of operators.

use super::{Parser, Unresolved};
use crate::builtin::NULLPTR;
use crate::node::{Node, NodeId};
use crate::operators::{self, Operands, Operator};

impl Parser<'_> {
    /// `<expression>`
    pub(super) fn expression(&mut self) -> Option<NodeId> {
        let was_expression = std::mem::replace(&mut self.is_expression, true);
        let expression = self.nested(Self::expression_inner);
        self.is_expression = was_expression;
        expression
    }

    fn expression_inner(&mut self) -> Option<NodeId> {
        let second = self.peek_second();
        match (self.peek()?, second) {
            (b'L', _) => self.primary(),
            (b'T', _) => self.template_parameter(),
            (b's', Some(b'r')) => self.unresolved_name(),
            (b's', Some(b'p')) => {
                self.skip(2);
                let pattern = self.expression()?;
                self.make(Node::PackExpansion(pattern))
            }
            (b'f', Some(b'p')) => self.function_parameter(),
            (b'0'..=b'9', _) | (b'o', Some(b'n')) => self.member_name(),
            (b'i' | b't', Some(b'l')) => self.initializer_list(),
            (b'u', _) => self.vendor_expression(),
            _ => {
                let operator = self.operator_name()?;
                self.operation(operator)
            }
        }
    }

    /// An unqualified name, and the arguments of a template.
    fn member_name(&mut self) -> Option<NodeId> {
        let name = self.unqualified_name()?;
        match self.peek() {
            Some(b'I') => self.template_of(name),
            _ => Some(name),
        }
    }

    /// `<unresolved-name>` after `sr`.
    fn unresolved_name(&mut self) -> Option<NodeId> {
        self.word(b"sr")?;
        let levels = match (self.peek()?, self.unresolved) {
            (b'N', Unresolved::Levels) => self.attempt(Self::levels_of_type),
            (b'0'..=b'9', Unresolved::LevelsOfNames | Unresolved::Levels) => {
                self.attempt(Self::levels)
            }
            _ => None,
        };
        self.has_unresolved = true;
        if levels.is_some() {
            return levels;
        }
        let scope = self.parse_type()?;
        let name = self.base_name()?;
        self.make(Node::Qualified { scope, name })
    }

    /// A type, the names of members of it up to an `E`, and the last name.
    fn levels_of_type(&mut self) -> Option<NodeId> {
        self.byte(b'N')?;
        let scope = self.parse_type()?;
        self.levels_in(scope)
    }

    /// Names up to an `E`, and the last name.
    fn levels(&mut self) -> Option<NodeId> {
        let scope = self.source_name()?;
        self.levels_in(scope)
    }

    fn levels_in(&mut self, mut scope: NodeId) -> Option<NodeId> {
        while !self.eat(b'E') {
            scope = match self.peek()? {
                b'I' => self.template_of(scope)?,
                b'0'..=b'9' => {
                    let name = self.source_name()?;
                    self.make(Node::Qualified { scope, name })?
                }
                _ => return None,
            };
        }
        let name = self.base_name()?;
        // The arguments are those of the whole name, which is not a simple operand then.
        if let Node::Template { name, arguments } = self.buffers.tree.get(name) {
            let name = self.make(Node::Qualified { scope, name })?;
            return self.make(Node::Template { name, arguments });
        }
        self.make(Node::Qualified { scope, name })
    }

    /// `<base-unresolved-name>`
    fn base_name(&mut self) -> Option<NodeId> {
        if !self.eat_word(b"dn") {
            return self.member_name();
        }
        let name = match self.peek()? {
            b'0'..=b'9' => self.member_name()?,
            _ => self.parse_type()?,
        };
        self.make(Node::Destructor(name))
    }

    fn function_parameter(&mut self) -> Option<NodeId> {
        self.word(b"fp")?;
        let number = match self.eat(b'T') {
            true => 0,
            false => self.compact_number()?.checked_add(1)?,
        };
        self.make(Node::FunctionParameter(number))
    }

    fn initializer_list(&mut self) -> Option<NodeId> {
        let has_type = self.next_byte()? == b't';
        self.skip(1);
        let ty = match has_type {
            true => Some(self.parse_type()?),
            false => None,
        };
        let list = self.expressions(b'E')?;
        self.make(Node::InitializerList { ty, list })
    }

    fn vendor_expression(&mut self) -> Option<NodeId> {
        self.byte(b'u')?;
        let name = self.source_name()?;
        let list = self.arguments_to_end()?;
        let arguments = self.make(Node::TemplateArguments(list))?;
        self.make(Node::VendorExpression { name, arguments })
    }

    /// Expressions up to a byte.
    fn expressions(&mut self, end: u8) -> Option<NodeId> {
        let start = self.buffers.elements.len();
        while !self.eat(end) {
            let expression = self.expression()?;
            self.buffers.elements.push(expression);
        }
        let list = self.list_since(start)?;
        self.make(Node::Arguments(list))
    }

    /// `<operator-name>`
    pub(super) fn operator_name(&mut self) -> Option<NodeId> {
        let code = [self.next_byte()?, self.next_byte()?];
        match code {
            [b'v', b'0'..=b'9'] => {
                let name = self.source_name()?;
                self.make(Node::VendorOperator(name))
            }
            [b'c', b'v'] => {
                let is_cast = self.is_expression;
                let was_conversion = std::mem::replace(&mut self.is_conversion, !is_cast);
                let ty = self.parse_type();
                self.is_conversion = was_conversion;
                match is_cast {
                    true => self.make(Node::Cast(ty?)),
                    false => self.make(Node::Conversion(ty?)),
                }
            }
            _ => self.make(Node::Operator(operators::of_code(code)?)),
        }
    }

    /// The operands of an operator.
    fn operation(&mut self, operator: NodeId) -> Option<NodeId> {
        let known: &Operator = match self.buffers.tree.get(operator) {
            Node::Operator(known) => known,
            Node::Cast(_) => {
                let operand = match self.eat(b'_') {
                    true => self.expressions(b'E')?,
                    false => self.expression()?,
                };
                return self.make(Node::Unary { operator, operand });
            }
            _ => return None,
        };
        match known.operands {
            Operands::None => self.make(Node::Nullary(operator)),
            Operands::One => {
                let operand = self.expression()?;
                self.make(Node::Unary { operator, operand })
            }
            Operands::PostfixOrPrefix => {
                let is_prefix = self.eat(b'_');
                let operand = self.expression()?;
                self.make(match is_prefix {
                    true => Node::Unary { operator, operand },
                    false => Node::Postfix { operator, operand },
                })
            }
            Operands::Type => {
                let operand = self.parse_type()?;
                self.make(Node::Unary { operator, operand })
            }
            Operands::Pack => {
                let list = self.arguments_to_end()?;
                let operand = self.make(Node::TemplateArguments(list))?;
                self.make(Node::Unary { operator, operand })
            }
            Operands::Two => {
                let left = self.expression()?;
                self.right_operand(operator, left)
            }
            Operands::NamedCast => {
                let left = self.parse_type()?;
                self.right_operand(operator, left)
            }
            Operands::UnaryFold => {
                let left = self.operator_name()?;
                self.right_operand(operator, left)
            }
            Operands::MemberInitializer => {
                let left = self.unqualified_name()?;
                self.right_operand(operator, left)
            }
            Operands::Call => {
                let left = self.expression()?;
                let right = self.expressions(b'E')?;
                self.binary(operator, left, right)
            }
            Operands::Member => {
                let left = self.expression()?;
                let right = match self.starts_with(b"gs") || self.starts_with(b"sr") {
                    true => self.expression()?,
                    false => self.base_name()?,
                };
                self.binary(operator, left, right)
            }
            Operands::BinaryFold => {
                let first = self.operator_name()?;
                let second = self.expression()?;
                let third = Some(self.expression()?);
                self.ternary(operator, first, second, third)
            }
            Operands::Three => {
                let first = self.expression()?;
                let second = self.expression()?;
                let third = Some(self.expression()?);
                self.ternary(operator, first, second, third)
            }
            Operands::New => {
                let first = self.expressions(b'_')?;
                let second = self.parse_type()?;
                let third = match (self.peek()?, self.peek_second()) {
                    (b'E', _) => {
                        self.skip(1);
                        None
                    }
                    (b'p', Some(b'i')) => {
                        self.skip(2);
                        Some(self.expressions(b'E')?)
                    }
                    (b'i', Some(b'l')) => Some(self.expression()?),
                    _ => return None,
                };
                self.ternary(operator, first, second, third)
            }
        }
    }

    fn right_operand(&mut self, operator: NodeId, left: NodeId) -> Option<NodeId> {
        let right = self.expression()?;
        self.binary(operator, left, right)
    }

    fn binary(&mut self, operator: NodeId, left: NodeId, right: NodeId) -> Option<NodeId> {
        self.make(Node::Binary {
            operator,
            left,
            right,
        })
    }

    fn ternary(
        &mut self,
        operator: NodeId,
        first: NodeId,
        second: NodeId,
        third: Option<NodeId>,
    ) -> Option<NodeId> {
        self.make(Node::Ternary {
            operator,
            first,
            second,
            third,
        })
    }

    /// `<expr-primary>`
    pub(super) fn primary(&mut self) -> Option<NodeId> {
        self.byte(b'L')?;
        if matches!(self.peek()?, b'_' | b'Z') {
            self.eat(b'_');
            self.byte(b'Z')?;
            let entity = self.encoding()?;
            self.byte(b'E')?;
            return Some(entity);
        }
        let ty = self.parse_type()?;
        if let Node::Builtin(builtin) = self.buffers.tree.get(ty)
            && *builtin == NULLPTR
            && self.eat(b'E')
        {
            return Some(ty);
        }
        let is_negative = self.eat(b'n');
        let start = self.at;
        while self.peek()? != b'E' {
            self.skip(1);
        }
        let len = self.at.checked_sub(start).filter(|len| *len > 0)?;
        let value = self.name_node(start, len)?;
        self.byte(b'E')?;
        self.make(Node::Literal {
            ty,
            value,
            is_negative,
        })
    }
}
