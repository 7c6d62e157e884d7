//! The tree of a mangled name: nodes in an arena, in which substitutions share nodes.

use crate::builtin::Builtin;
use crate::operators::Operator;

/// The index of a node in its [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

/// A range of [`Tree::lists`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    start: u32,
    len: u32,
}

/// Part of a type or a function that is written before or after what it applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Modifier {
    Restrict,
    Volatile,
    Const,
    Pointer,
    Reference,
    RvalueReference,
    Complex,
    Imaginary,
    /// A vendor's qualifier, and its name.
    Vendor(NodeId),
    RestrictThis,
    VolatileThis,
    ConstThis,
    ReferenceThis,
    RvalueReferenceThis,
    TransactionSafe,
    /// With the expression of `noexcept(…)`, if there is one.
    Noexcept(Option<NodeId>),
    /// With the list of types.
    Throw(NodeId),
}

impl Modifier {
    /// Returns whether it qualifies a function: it is written after the parameters.
    pub(crate) fn is_of_function(self) -> bool {
        match self {
            Modifier::Restrict
            | Modifier::Volatile
            | Modifier::Const
            | Modifier::Pointer
            | Modifier::Reference
            | Modifier::RvalueReference
            | Modifier::Complex
            | Modifier::Imaginary
            | Modifier::Vendor(_) => false,
            Modifier::RestrictThis
            | Modifier::VolatileThis
            | Modifier::ConstThis
            | Modifier::ReferenceThis
            | Modifier::RvalueReferenceThis
            | Modifier::TransactionSafe
            | Modifier::Noexcept(_)
            | Modifier::Throw(_) => true,
        }
    }

    /// Returns whether it is `const`, `volatile` or `restrict` of a type.
    pub(crate) fn is_cv(self) -> bool {
        matches!(
            self,
            Modifier::Restrict | Modifier::Volatile | Modifier::Const
        )
    }

    /// Returns the qualifier of a function that this one of a type is before a function type.
    pub(crate) fn of_this(self) -> Modifier {
        match self {
            Modifier::Restrict => Modifier::RestrictThis,
            Modifier::Volatile => Modifier::VolatileThis,
            Modifier::Const => Modifier::ConstThis,
            other => other,
        }
    }
}

/// A part of a name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Node {
    /// Bytes of the mangled name.
    Name {
        start: u32,
        len: u32,
    },
    /// A name that the mangled name abbreviates.
    Text(&'static str),
    /// A name with ABI tags: `name[abi:tag]`.
    Tagged {
        name: NodeId,
        tag: NodeId,
    },
    /// The names of a structured binding.
    StructuredBinding(List),
    Qualified {
        scope: NodeId,
        name: NodeId,
    },
    /// An entity that a function contains.
    Local {
        function: NodeId,
        name: NodeId,
    },
    /// An entity in a default argument; the number counts from 0.
    DefaultArgument {
        number: u32,
        name: NodeId,
    },
    /// A function with its type.
    Typed {
        name: NodeId,
        function: NodeId,
    },
    /// A template with its [`Node::TemplateArguments`].
    Template {
        name: NodeId,
        arguments: NodeId,
    },
    TemplateArguments(List),
    TemplateParameter(u32),
    /// A parameter of a function in an expression; 0 is `this`.
    FunctionParameter(u32),
    Constructor(NodeId),
    Destructor(NodeId),
    /// What the compiler generates for an entity: the words before its name.
    Special {
        words: &'static str,
        of: NodeId,
    },
    ConstructionVtable {
        base: NodeId,
        derived: NodeId,
    },
    ReferenceTemporary {
        number: NodeId,
        of: NodeId,
    },
    Lambda {
        parameters: NodeId,
        number: u32,
    },
    UnnamedType(u32),
    /// A copy of a function, and what the compiler appended to its name.
    Clone {
        of: NodeId,
        suffix: NodeId,
    },

    Builtin(&'static Builtin),
    /// `_FloatN`, or `_FloatNx`.
    Float {
        start: u32,
        len: u32,
    },
    /// A vendor's type.
    VendorType {
        name: NodeId,
        arguments: Option<NodeId>,
    },
    Modified {
        modifier: Modifier,
        of: NodeId,
    },
    Function {
        result: Option<NodeId>,
        parameters: NodeId,
    },
    /// Parameters, or arguments of a call.
    Arguments(List),
    Array {
        dimension: Option<NodeId>,
        element: NodeId,
    },
    Vector {
        dimension: NodeId,
        element: NodeId,
    },
    PointerToMember {
        class: NodeId,
        member: NodeId,
    },
    Decltype(NodeId),
    PackExpansion(NodeId),

    Operator(&'static Operator),
    /// A vendor's operator.
    VendorOperator(NodeId),
    /// The name of a conversion operator to a type.
    Conversion(NodeId),
    /// A cast to a type in an expression.
    Cast(NodeId),
    Nullary(NodeId),
    Unary {
        operator: NodeId,
        operand: NodeId,
    },
    /// An operator after its operand: `i++`.
    Postfix {
        operator: NodeId,
        operand: NodeId,
    },
    Binary {
        operator: NodeId,
        left: NodeId,
        right: NodeId,
    },
    Ternary {
        operator: NodeId,
        first: NodeId,
        second: NodeId,
        third: Option<NodeId>,
    },
    /// A vendor's expression.
    VendorExpression {
        name: NodeId,
        arguments: NodeId,
    },
    Literal {
        ty: NodeId,
        value: NodeId,
        is_negative: bool,
    },
    InitializerList {
        ty: Option<NodeId>,
        list: NodeId,
    },
    Number(i64),
}

/// The nodes of a name.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    lists: Vec<NodeId>,
}

impl Tree {
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.lists.clear();
    }

    /// Returns a node. Every index comes from [`Tree::add`].
    pub(crate) fn get(&self, id: NodeId) -> Node {
        let node = usize::try_from(id.0).ok().and_then(|at| self.nodes.get(at));
        node.copied().unwrap_or(Node::Text(""))
    }

    pub(crate) fn add(&mut self, node: Node) -> Option<NodeId> {
        let id = NodeId(u32::try_from(self.nodes.len()).ok()?);
        self.nodes.push(node);
        Some(id)
    }

    pub(crate) fn set(&mut self, id: NodeId, node: Node) {
        let at = usize::try_from(id.0).ok();
        if let Some(old) = at.and_then(|at| self.nodes.get_mut(at)) {
            *old = node;
        }
    }

    pub(crate) fn add_list(&mut self, elements: &[NodeId]) -> Option<List> {
        let list = List {
            start: u32::try_from(self.lists.len()).ok()?,
            len: u32::try_from(elements.len()).ok()?,
        };
        self.lists.extend_from_slice(elements);
        Some(list)
    }

    pub(crate) fn list(&self, list: List) -> &[NodeId] {
        let range = || {
            let start = usize::try_from(list.start).ok()?;
            let end = start.checked_add(usize::try_from(list.len).ok()?)?;
            self.lists.get(start..end)
        };
        range().unwrap_or_default()
    }

    /// Returns the node without the qualifiers of a function around it.
    pub(crate) fn without_function_qualifiers(&self, mut id: NodeId) -> NodeId {
        while let Node::Modified { modifier, of } = self.get(id)
            && modifier.is_of_function()
        {
            id = of;
        }
        id
    }
}

impl Node {
    /// Returns the nodes in which a pack can be, in their order. Names and packs that are expanded
    /// have none.
    pub(crate) fn parts(self) -> ([Option<NodeId>; 4], Option<List>) {
        let two = |one, two| ([Some(one), Some(two), None, None], None);
        let one = |one| ([Some(one), None, None, None], None);
        match self {
            Node::Name { .. }
            | Node::Text(_)
            | Node::Tagged { .. }
            | Node::TemplateParameter(_)
            | Node::FunctionParameter(_)
            | Node::Lambda { .. }
            | Node::UnnamedType(_)
            | Node::DefaultArgument { .. }
            | Node::Builtin(_)
            | Node::Float { .. }
            | Node::PackExpansion(_)
            | Node::Operator(_)
            | Node::Number(_) => ([None; 4], None),
            Node::StructuredBinding(list)
            | Node::TemplateArguments(list)
            | Node::Arguments(list) => ([None; 4], Some(list)),
            Node::Constructor(part)
            | Node::Destructor(part)
            | Node::Special { of: part, .. }
            | Node::Decltype(part)
            | Node::VendorOperator(part)
            | Node::Conversion(part)
            | Node::Cast(part)
            | Node::Nullary(part) => one(part),
            Node::Qualified { scope, name } => two(scope, name),
            Node::Local { function, name } => two(function, name),
            Node::Typed { name, function } => two(name, function),
            Node::Template { name, arguments } => two(name, arguments),
            Node::ConstructionVtable { base, derived } => two(base, derived),
            Node::ReferenceTemporary { number, of } => two(of, number),
            Node::Clone { of, suffix } => two(of, suffix),
            Node::VendorType { name, arguments } => ([Some(name), arguments, None, None], None),
            Node::Modified { modifier, of } => match modifier {
                Modifier::Vendor(other) | Modifier::Throw(other) => two(of, other),
                Modifier::Noexcept(other) => ([Some(of), other, None, None], None),
                _ => one(of),
            },
            Node::Function { result, parameters } => ([result, Some(parameters), None, None], None),
            Node::Array { dimension, element } => ([dimension, Some(element), None, None], None),
            Node::Vector { dimension, element } => two(dimension, element),
            Node::PointerToMember { class, member } => two(class, member),
            Node::Unary { operator, operand } | Node::Postfix { operator, operand } => {
                two(operator, operand)
            }
            Node::Binary {
                operator,
                left,
                right,
            } => ([Some(operator), Some(left), Some(right), None], None),
            Node::Ternary {
                operator,
                first,
                second,
                third,
            } => ([Some(operator), Some(first), Some(second), third], None),
            Node::VendorExpression { name, arguments } => two(name, arguments),
            Node::Literal { ty, value, .. } => two(ty, value),
            Node::InitializerList { ty, list } => ([ty, Some(list), None, None], None),
        }
    }
}
