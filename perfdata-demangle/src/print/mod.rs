//! The text of a parsed name, as binutils writes it.
//!
//! C++ writes parts of a type around the name that it declares: `int (*f(char))[3]`. Pointers,
//! qualifiers, functions and arrays are therefore held in a list of modifiers while the type inside of
//! them is written, and the innermost function or array writes those that belong around it
//! ([`modifiers`]).

mod expression;
mod modifiers;
mod template;

use crate::node::{List, Modifier, Node, NodeId, Tree};

use modifiers::Pending;
use template::{SavedScope, Scope};

/// Maximum depth of the tree, and of a path to a template's argument.
const MAX_DEPTH: usize = 384;

/// Maximum number of steps. A few bytes of a mangled name can stand for gigabytes.
const MAX_STEPS: usize = 1 << 18;

/// What the printer fills. It is used again for the next name, so that it is rarely allocated.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) out: Vec<u8>,
    /// The nodes that are being written, from the root.
    path: Vec<NodeId>,
    /// All modifiers from the root to here; the list of those that can be written here is linked.
    pending: Vec<Pending>,
    /// All scopes of templates; those that enclose this place are linked.
    scopes: Vec<Scope>,
    saved_scopes: Vec<SavedScope>,
}

/// The state of the printer.
struct Printer<'a> {
    name: &'a [u8],
    tree: &'a Tree,
    buffers: &'a mut Buffers,
    /// The last byte that was written, also if it was removed: a space after a comma.
    last: Option<u8>,
    max_len: usize,
    steps: usize,
    modifiers: Option<usize>,
    scope: Option<usize>,
    /// The template that is being written, for the type of a conversion operator.
    template: Option<NodeId>,
    /// The element of packs; `None` is the whole pack.
    pack_index: Option<usize>,
    /// Number of lambdas whose parameters are being written.
    lambdas: u32,
}

/// Writes the text of a tree to [`Buffers::out`]. `None` if it refers to an argument that does not
/// exist, or is too long.
pub(crate) fn text(
    name: &[u8],
    tree: &Tree,
    root: NodeId,
    buffers: &mut Buffers,
    max_len: usize,
) -> Option<()> {
    buffers.out.clear();
    buffers.path.clear();
    buffers.pending.clear();
    buffers.scopes.clear();
    buffers.saved_scopes.clear();
    let mut printer = Printer {
        name,
        tree,
        buffers,
        last: None,
        max_len,
        steps: 0,
        modifiers: None,
        scope: None,
        template: None,
        pack_index: Some(0),
        lambdas: 0,
    };
    printer.node(root)
}

impl Printer<'_> {
    fn push(&mut self, text: &str) -> Option<()> {
        self.push_bytes(text.as_bytes())
    }

    fn push_bytes(&mut self, text: &[u8]) -> Option<()> {
        let len = self.buffers.out.len().checked_add(text.len())?;
        if len > self.max_len {
            return None;
        }
        self.buffers.out.extend_from_slice(text);
        self.last = text.last().copied().or(self.last);
        Some(())
    }

    fn push_number(&mut self, number: impl ToString) -> Option<()> {
        self.push(&number.to_string())
    }

    fn push_name(&mut self, start: u32, len: u32) -> Option<()> {
        let start = usize::try_from(start).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        let name = self.name;
        self.push_bytes(name.get(start..end)?)
    }

    /// Counts work that writes nothing.
    fn step(&mut self, number: usize) -> Option<()> {
        self.steps = self.steps.checked_add(number)?;
        (self.steps <= MAX_STEPS).then_some(())
    }

    /// Writes a node.
    fn node(&mut self, id: NodeId) -> Option<()> {
        self.step(1)?;
        let node = self.tree.get(id);
        match node {
            // Most nodes are leaves.
            Node::Name { start, len } => return self.push_name(start, len),
            Node::Text(text) => return self.push(text),
            Node::Builtin(builtin) => return self.push(builtin.name),
            _ => {}
        }
        if self.buffers.path.len() >= MAX_DEPTH {
            return None;
        }
        self.buffers.path.push(id);
        let done = self.inner(id, node);
        self.buffers.path.pop();
        done
    }

    fn inner(&mut self, id: NodeId, node: Node) -> Option<()> {
        match node {
            Node::Float { start, len } => {
                self.push("_Float")?;
                self.push_name(start, len)
            }
            Node::Tagged { name, tag } => {
                self.node(name)?;
                self.push("[abi:")?;
                self.node(tag)?;
                self.push("]")
            }
            Node::StructuredBinding(list) => {
                self.push("[")?;
                self.list(list)?;
                self.push("]")
            }
            Node::Qualified { scope, name } => {
                self.node(scope)?;
                self.push("::")?;
                self.node(name)
            }
            Node::Local { function, name } => {
                self.node(function)?;
                self.push("::")?;
                let name = self.without_default_argument(name)?;
                self.node(name)
            }
            Node::DefaultArgument { .. } => {
                let name = self.without_default_argument(id)?;
                self.node(name)
            }
            Node::Typed { name, function } => self.typed(name, function),
            Node::Template { name, arguments } => self.template(id, name, arguments),
            Node::TemplateArguments(list) | Node::Arguments(list) => self.list(list),
            Node::TemplateParameter(number) => self.template_parameter(number),
            Node::Constructor(class) => self.node(class),
            Node::Destructor(class) => {
                self.push("~")?;
                self.node(class)
            }
            Node::Special { words, of } => {
                self.push(words)?;
                self.node(of)
            }
            Node::ConstructionVtable { base, derived } => {
                self.push("construction vtable for ")?;
                self.node(base)?;
                self.push("-in-")?;
                self.node(derived)
            }
            Node::ReferenceTemporary { number, of } => {
                self.push("reference temporary #")?;
                self.node(number)?;
                self.push(" for ")?;
                self.node(of)
            }
            Node::Lambda { parameters, number } => {
                self.push("{lambda(")?;
                self.lambdas = self.lambdas.saturating_add(1);
                self.node(parameters)?;
                self.lambdas = self.lambdas.saturating_sub(1);
                self.push(")#")?;
                self.push_number(u64::from(number).saturating_add(1))?;
                self.push("}")
            }
            Node::UnnamedType(number) => {
                self.push("{unnamed type#")?;
                self.push_number(u64::from(number).saturating_add(1))?;
                self.push("}")
            }
            Node::Clone { of, suffix } => {
                self.node(of)?;
                self.push(" [clone ")?;
                self.node(suffix)?;
                self.push("]")
            }
            Node::VendorType { name, arguments } => {
                self.node(name)?;
                match arguments {
                    Some(arguments) => self.bracketed(arguments),
                    None => Some(()),
                }
            }
            Node::Modified { modifier, of } => self.modified(id, modifier, of),
            Node::Function { result, .. } => self.function(id, result),
            Node::Array { element, .. } => self.array(id, element),
            Node::Vector { element, .. }
            | Node::PointerToMember {
                member: element, ..
            } => self.around(id, element),
            Node::Decltype(expression) => {
                self.push("decltype (")?;
                self.node(expression)?;
                self.push(")")
            }
            Node::PackExpansion(pattern) => self.pack_expansion(pattern),
            expression => self.expression(expression),
        }
    }

    /// Writes the scope of a default argument, and returns the name of the entity in it.
    fn without_default_argument(&mut self, name: NodeId) -> Option<NodeId> {
        let Node::DefaultArgument { number, name } = self.tree.get(name) else {
            return Some(name);
        };
        self.push("{default arg#")?;
        self.push_number(u64::from(number).saturating_add(1))?;
        self.push("}::")?;
        Some(name)
    }

    /// Writes a list with commas. There is none after the last element that writes something.
    fn list(&mut self, list: List) -> Option<()> {
        let tree = self.tree;
        let mut trailing: usize = 0;
        for (number, element) in tree.list(list).iter().enumerate() {
            if number > 0 {
                self.push(", ")?;
                trailing = trailing.saturating_add(1);
            }
            let len = self.buffers.out.len();
            self.node(*element)?;
            if self.buffers.out.len() > len {
                trailing = 0;
            }
        }
        let empty = trailing.saturating_mul(2);
        self.buffers
            .out
            .truncate(self.buffers.out.len().saturating_sub(empty));
        Some(())
    }

    /// Writes the arguments of a template in angle brackets.
    fn bracketed(&mut self, arguments: NodeId) -> Option<()> {
        // `operator< <int>`
        if self.last == Some(b'<') {
            self.push(" ")?;
        }
        self.push("<")?;
        self.node(arguments)?;
        if self.last == Some(b'>') {
            self.push(" ")?;
        }
        self.push(">")
    }

    /// Writes a node in parentheses.
    fn in_parentheses(&mut self, id: NodeId) -> Option<()> {
        self.push("(")?;
        self.node(id)?;
        self.push(")")
    }
}

/// Returns whether two modifiers are the same qualifier.
fn is_same_cv(one: Modifier, other: Modifier) -> bool {
    one.is_cv() && one == other
}
