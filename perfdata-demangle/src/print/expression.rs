//! Expressions, and the names of operators.

use super::Printer;
use crate::builtin::Literals;
use crate::node::{List, Node, NodeId};
use crate::operators::{Operands, Operator};

impl Printer<'_> {
    pub(super) fn expression(&mut self, node: Node) -> Option<()> {
        match node {
            Node::Operator(operator) => {
                self.push("operator")?;
                if operator.text.starts_with(|c: char| c.is_ascii_lowercase()) {
                    self.push(" ")?;
                }
                self.push(operator.text.trim_end())
            }
            Node::VendorOperator(name) => {
                self.push("operator ")?;
                self.node(name)
            }
            Node::Conversion(ty) => {
                self.push("operator ")?;
                self.conversion(ty)
            }
            Node::Cast(ty) => {
                self.push("operator ")?;
                self.node(ty)
            }
            Node::FunctionParameter(0) => self.push("this"),
            Node::FunctionParameter(number) => {
                self.push("{parm#")?;
                self.push_number(number)?;
                self.push("}")
            }
            Node::Nullary(operator) => self.operator(operator),
            Node::Unary { operator, operand } => self.unary(operator, operand),
            Node::Postfix { operator, operand } => {
                self.operand(operand)?;
                self.operator(operator)
            }
            Node::Binary {
                operator,
                left,
                right,
            } => self.binary(operator, left, right),
            Node::Ternary {
                operator,
                first,
                second,
                third,
            } => self.ternary(operator, first, second, third),
            Node::VendorExpression { name, arguments } => {
                self.node(name)?;
                self.in_parentheses(arguments)
            }
            Node::Literal {
                ty,
                value,
                is_negative,
            } => self.literal(ty, value, is_negative),
            Node::InitializerList { ty, list } => {
                if let Some(ty) = ty {
                    self.node(ty)?;
                }
                self.push("{")?;
                self.node(list)?;
                self.push("}")
            }
            Node::Number(number) => self.push_number(number),
            _ => None,
        }
    }

    fn known_operator(&self, id: NodeId) -> Option<&'static Operator> {
        match self.tree.get(id) {
            Node::Operator(operator) => Some(operator),
            _ => None,
        }
    }

    /// Writes an operator in an expression.
    fn operator(&mut self, id: NodeId) -> Option<()> {
        match self.known_operator(id) {
            Some(operator) => self.push(operator.text),
            None => self.node(id),
        }
    }

    /// Writes an operand, in parentheses if it is not simple.
    pub(super) fn operand(&mut self, id: NodeId) -> Option<()> {
        match self.tree.get(id) {
            Node::Name { .. }
            | Node::Text(_)
            | Node::Qualified { .. }
            | Node::InitializerList { .. }
            | Node::FunctionParameter(_) => self.node(id),
            _ => self.in_parentheses(id),
        }
    }

    /// Writes the type of a conversion operator, which the arguments of its template belong to.
    fn conversion(&mut self, ty: NodeId) -> Option<()> {
        let scope = self.scope;
        if let Some(template) = self.template {
            self.push_scope(template);
        }
        if let Node::Template { name, arguments } = self.tree.get(ty) {
            self.node(name)?;
            self.scope = scope;
            return self.bracketed(arguments);
        }
        self.node(ty)?;
        self.scope = scope;
        Some(())
    }

    fn unary(&mut self, operator: NodeId, mut operand: NodeId) -> Option<()> {
        let Some(known) = self.known_operator(operator) else {
            match self.tree.get(operator) {
                Node::Cast(ty) => self.in_parentheses(ty)?,
                _ => self.operator(operator)?,
            }
            return self.operand(operand);
        };
        match &known.code {
            b"ad" => {
                // The address of a function without its parameters.
                if let Node::Typed { name, .. } = self.tree.get(operand)
                    && let Node::Qualified { .. } = self.tree.get(name)
                {
                    operand = name;
                }
            }
            b"sZ" => {
                let pack = self.pack(operand, 0)?;
                let len = pack.map_or(0, |pack| self.pack_len(pack));
                return self.push_number(len);
            }
            b"sP" => {
                let len = match self.tree.get(operand) {
                    Node::TemplateArguments(list) => self.arguments_len(list)?,
                    _ => 0,
                };
                return self.push_number(len);
            }
            _ => {}
        }
        self.operator(operator)?;
        match &known.code {
            b"gs" => self.node(operand),
            b"st" | b"nx" => self.in_parentheses(operand),
            _ => self.operand(operand),
        }
    }

    /// Returns the number of arguments with those in packs.
    fn arguments_len(&mut self, list: List) -> Option<usize> {
        let tree = self.tree;
        let mut len: usize = 0;
        for element in tree.list(list) {
            let number = match tree.get(*element) {
                Node::PackExpansion(pattern) => {
                    let pack = self.pack(pattern, 0)?;
                    pack.map_or(0, |pack| self.pack_len(pack))
                }
                _ => 1,
            };
            len = len.saturating_add(number);
        }
        Some(len)
    }

    fn binary(&mut self, operator: NodeId, left: NodeId, right: NodeId) -> Option<()> {
        let known = self.known_operator(operator)?;
        match known.operands {
            Operands::NamedCast => {
                self.push(known.text)?;
                self.push("<")?;
                self.node(left)?;
                self.push(">")?;
                self.in_parentheses(right)
            }
            Operands::UnaryFold => self.fold(known, left, right, None),
            Operands::MemberInitializer => {
                self.push(".")?;
                self.node(left)?;
                self.initializer(right)
            }
            Operands::Call => {
                // A function without the types of its parameters.
                match self.tree.get(left) {
                    Node::Typed { name, .. } => self.operand(name)?,
                    _ => self.operand(left)?,
                }
                self.operand(right)
            }
            _ => match &known.code {
                b"dx" => {
                    self.push("[")?;
                    self.node(left)?;
                    self.push("]")?;
                    self.initializer(right)
                }
                b"ix" => {
                    self.operand(left)?;
                    self.push("[")?;
                    self.node(right)?;
                    self.push("]")
                }
                // It could be taken for the end of the arguments.
                b"gt" => {
                    self.push("(")?;
                    self.operand(left)?;
                    self.push(known.text)?;
                    self.operand(right)?;
                    self.push(")")
                }
                _ => {
                    self.operand(left)?;
                    self.push(known.text)?;
                    self.operand(right)
                }
            },
        }
    }

    /// Writes the value of a member or an element. Designators can follow each other.
    fn initializer(&mut self, value: NodeId) -> Option<()> {
        let operator = match self.tree.get(value) {
            Node::Binary { operator, .. } | Node::Ternary { operator, .. } => {
                self.known_operator(operator)
            }
            _ => None,
        };
        if operator.is_some_and(|operator| [*b"di", *b"dx", *b"dX"].contains(&operator.code)) {
            return self.node(value);
        }
        self.push("=")?;
        self.operand(value)
    }

    fn ternary(
        &mut self,
        operator: NodeId,
        first: NodeId,
        second: NodeId,
        third: Option<NodeId>,
    ) -> Option<()> {
        let known = self.known_operator(operator)?;
        match known.operands {
            Operands::BinaryFold => self.fold(known, first, second, third),
            Operands::New => {
                self.push("new ")?;
                if !self.is_empty_list(first) {
                    self.operand(first)?;
                    self.push(" ")?;
                }
                self.node(second)?;
                match third {
                    Some(third) => self.operand(third),
                    None => Some(()),
                }
            }
            _ if known.code == *b"dX" => {
                self.push("[")?;
                self.node(first)?;
                self.push(" ... ")?;
                self.node(second)?;
                self.push("]")?;
                self.initializer(third?)
            }
            _ => {
                self.operand(first)?;
                self.push(known.text)?;
                self.operand(second)?;
                self.push(" : ")?;
                self.operand(third?)
            }
        }
    }

    fn is_empty_list(&self, id: NodeId) -> bool {
        match self.tree.get(id) {
            Node::Arguments(list) => self.tree.list(list).is_empty(),
            _ => false,
        }
    }

    /// Writes a fold expression, with whole packs.
    fn fold(
        &mut self,
        fold: &Operator,
        operator: NodeId,
        first: NodeId,
        second: Option<NodeId>,
    ) -> Option<()> {
        let pack_index = self.pack_index.take();
        match (&fold.code, second) {
            (b"fl", _) => {
                self.push("(...")?;
                self.operator(operator)?;
                self.operand(first)?;
                self.push(")")?;
            }
            (b"fr", _) => {
                self.push("(")?;
                self.operand(first)?;
                self.operator(operator)?;
                self.push("...)")?;
            }
            (_, second) => {
                self.push("(")?;
                self.operand(first)?;
                self.operator(operator)?;
                self.push("...")?;
                self.operator(operator)?;
                self.operand(second?)?;
                self.push(")")?;
            }
        }
        self.pack_index = pack_index;
        Some(())
    }

    fn literal(&mut self, ty: NodeId, value: NodeId, is_negative: bool) -> Option<()> {
        let sign = match is_negative {
            true => "-",
            false => "",
        };
        let literals = match self.tree.get(ty) {
            Node::Builtin(builtin) => builtin.literals,
            _ => Literals::WithType,
        };
        match literals {
            Literals::Suffix(suffix) => {
                self.push(sign)?;
                self.node(value)?;
                return self.push(suffix);
            }
            Literals::Bool if !is_negative => {
                let bytes = match self.tree.get(value) {
                    Node::Name { start, len: 1 } => {
                        usize::try_from(start).ok().and_then(|at| self.name.get(at))
                    }
                    _ => None,
                };
                match bytes {
                    Some(b'0') => return self.push("false"),
                    Some(b'1') => return self.push("true"),
                    _ => {}
                }
            }
            _ => {}
        }
        self.in_parentheses(ty)?;
        self.push(sign)?;
        if literals == Literals::Bytes {
            self.push("[")?;
            self.node(value)?;
            return self.push("]");
        }
        self.node(value)
    }
}
