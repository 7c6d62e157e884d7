//! Types with what is written around them.

use super::{Printer, is_same_cv};
use crate::node::{Modifier, Node, NodeId};

/// A modifier around the type that is being written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    node: NodeId,
    is_written: bool,
    /// The scopes of templates at its place.
    scope: Option<usize>,
    /// The modifier around this one.
    next: Option<usize>,
}

/// Maximum number of qualifiers of one function or array.
const MAX_QUALIFIERS: usize = 4;

impl Printer<'_> {
    fn push_pending(&mut self, node: NodeId) -> usize {
        let at = self.buffers.pending.len();
        self.buffers.pending.push(Pending {
            node,
            is_written: false,
            scope: self.scope,
            next: self.modifiers,
        });
        self.modifiers = Some(at);
        at
    }

    /// Forgets the modifiers since there were `len` of them.
    fn pop_pending(&mut self, len: usize, modifiers: Option<usize>) {
        self.buffers.pending.truncate(len);
        self.modifiers = modifiers;
    }

    fn is_written(&self, at: usize) -> bool {
        self.buffers
            .pending
            .get(at)
            .is_none_or(|pending| pending.is_written)
    }

    /// Returns the first modifier from `at` that is not written.
    fn unwritten(&self, mut at: Option<usize>) -> Option<Pending> {
        loop {
            let pending = self.buffers.pending.get(at?)?;
            if !pending.is_written {
                return Some(*pending);
            }
            at = pending.next;
        }
    }

    /// Writes a type inside of a modifier, and then the modifier, unless the type wrote it.
    pub(super) fn around(&mut self, id: NodeId, inner: NodeId) -> Option<()> {
        let modifiers = self.modifiers;
        let at = self.push_pending(id);
        self.node(inner)?;
        if !self.is_written(at) {
            self.modifier(id)?;
        }
        self.pop_pending(at, modifiers);
        Some(())
    }

    /// Writes a type with a modifier.
    pub(super) fn modified(&mut self, id: NodeId, modifier: Modifier, of: NodeId) -> Option<()> {
        match modifier {
            Modifier::Reference | Modifier::RvalueReference => {
                return self.reference(id, modifier, of);
            }
            _ if modifier.is_cv() => {
                // The qualifier of an array is also that of its elements.
                let mut at = self.modifiers;
                while let Some(pending) = self.unwritten(at) {
                    match self.tree.get(pending.node) {
                        Node::Modified {
                            modifier: other, ..
                        } if other.is_cv() => {
                            if is_same_cv(other, modifier) {
                                return self.node(of);
                            }
                        }
                        _ => break,
                    }
                    at = pending.next;
                    self.step(1)?;
                }
            }
            _ => {}
        }
        self.around(id, of)
    }

    /// Writes a reference. A reference to a reference is one reference.
    fn reference(&mut self, id: NodeId, modifier: Modifier, of: NodeId) -> Option<()> {
        let outer = self.scope;
        let mut target = of;
        if let Node::TemplateParameter(number) = self.tree.get(of)
            && self.lambdas == 0
        {
            self.enter_saved_scope(id, of)?;
            target = self.argument_or_element(number)?;
        }
        match self.tree.get(target) {
            Node::Modified {
                modifier: inner,
                of: referenced,
            } if inner == Modifier::Reference || inner == modifier => {
                self.around(target, referenced)?;
            }
            Node::Modified {
                modifier: Modifier::RvalueReference,
                of: referenced,
            } => self.around(id, referenced)?,
            _ => self.around(id, of)?,
        }
        self.scope = outer;
        Some(())
    }

    /// Writes a function: the type has the name inside.
    pub(super) fn typed(&mut self, name: NodeId, function: NodeId) -> Option<()> {
        let modifiers = self.modifiers.take();
        let len = self.buffers.pending.len();
        // The name, and the qualifiers of the function around it.
        let mut inner = name;
        loop {
            self.push_pending(inner);
            match self.tree.get(inner) {
                Node::Modified { modifier, of } if modifier.is_of_function() => inner = of,
                _ => break,
            }
            if self.buffers.pending.len().saturating_sub(len) >= MAX_QUALIFIERS {
                return None;
            }
        }
        // The qualifiers of a local function are those of the last name.
        if let Node::Local { name, .. } = self.tree.get(inner) {
            let local = self.buffers.pending.pop()?;
            self.modifiers = local.next;
            inner = match self.tree.get(name) {
                Node::DefaultArgument { name, .. } => name,
                _ => name,
            };
            while let Node::Modified { modifier, of } = self.tree.get(inner)
                && modifier.is_of_function()
            {
                self.push_pending(inner);
                inner = of;
                if self.buffers.pending.len().saturating_sub(len) > MAX_QUALIFIERS {
                    return None;
                }
            }
            self.push_pending(local.node);
        }
        let scope = self.scope;
        if let Node::Template { .. } = self.tree.get(inner) {
            self.push_scope(inner);
        }
        self.node(function)?;
        self.scope = scope;
        // What the type did not write.
        for at in (len..self.buffers.pending.len()).rev() {
            if let Some(pending) = self.buffers.pending.get(at)
                && !pending.is_written
            {
                let node = pending.node;
                self.push(" ")?;
                self.modifier(node)?;
            }
        }
        self.pop_pending(len, modifiers);
        Some(())
    }

    /// Writes a function type: the result has the parameters, and what is around them, inside.
    pub(super) fn function(&mut self, id: NodeId, result: Option<NodeId>) -> Option<()> {
        if let Some(result) = result {
            let modifiers = self.modifiers;
            let at = self.push_pending(id);
            self.node(result)?;
            let is_written = self.is_written(at);
            self.pop_pending(at, modifiers);
            if is_written {
                return Some(());
            }
            self.push(" ")?;
        }
        self.parameters(id, self.modifiers)
    }

    /// Writes an array type: the element has the dimension, and what is around it, inside.
    pub(super) fn array(&mut self, id: NodeId, element: NodeId) -> Option<()> {
        let modifiers = self.modifiers;
        let at = self.push_pending(id);
        // Qualifiers of the array are those of its elements.
        let mut outer = modifiers;
        while let Some(index) = outer {
            let pending = *self.buffers.pending.get(index)?;
            match self.tree.get(pending.node) {
                Node::Modified { modifier, .. } if modifier.is_cv() => {}
                _ => break,
            }
            if !pending.is_written {
                if self.buffers.pending.len().saturating_sub(at) >= MAX_QUALIFIERS {
                    return None;
                }
                let next = self.modifiers;
                self.modifiers = Some(self.buffers.pending.len());
                self.buffers.pending.push(Pending { next, ..pending });
                self.buffers.pending.get_mut(index)?.is_written = true;
            }
            outer = pending.next;
        }
        self.node(element)?;
        self.modifiers = modifiers;
        if self.is_written(at) {
            self.buffers.pending.truncate(at);
            return Some(());
        }
        let first = at.saturating_add(1);
        for index in (first..self.buffers.pending.len()).rev() {
            if let Some(pending) = self.buffers.pending.get(index) {
                let node = pending.node;
                self.modifier(node)?;
            }
        }
        self.buffers.pending.truncate(at);
        self.dimension(id, modifiers)
    }

    /// Writes the modifiers from `at` outwards; qualifiers of functions only after the parameters.
    fn modifiers(&mut self, mut at: Option<usize>, is_after_parameters: bool) -> Option<()> {
        while let Some(index) = at {
            self.step(1)?;
            let pending = *self.buffers.pending.get(index)?;
            at = pending.next;
            let node = self.tree.get(pending.node);
            let is_qualifier = match node {
                Node::Modified { modifier, .. } => modifier.is_of_function(),
                _ => false,
            };
            if pending.is_written || is_qualifier && !is_after_parameters {
                continue;
            }
            self.buffers.pending.get_mut(index)?.is_written = true;
            let scope = std::mem::replace(&mut self.scope, pending.scope);
            let is_rest_written = match node {
                Node::Function { .. } => {
                    self.parameters(pending.node, pending.next)?;
                    true
                }
                Node::Array { .. } => {
                    self.dimension(pending.node, pending.next)?;
                    true
                }
                Node::Local { function, name } => {
                    let modifiers = self.modifiers.take();
                    self.node(function)?;
                    self.modifiers = modifiers;
                    self.push("::")?;
                    let name = self.without_default_argument(name)?;
                    let name = self.tree.without_function_qualifiers(name);
                    self.node(name)?;
                    true
                }
                _ => {
                    self.modifier(pending.node)?;
                    false
                }
            };
            self.scope = scope;
            if is_rest_written {
                break;
            }
        }
        Some(())
    }

    /// Writes a modifier alone.
    fn modifier(&mut self, id: NodeId) -> Option<()> {
        let modifier = match self.tree.get(id) {
            Node::Modified { modifier, .. } => modifier,
            Node::PointerToMember { class, .. } => {
                if self.last != Some(b'(') {
                    self.push(" ")?;
                }
                self.node(class)?;
                return self.push("::*");
            }
            Node::Vector { dimension, .. } => {
                self.push(" __vector(")?;
                self.node(dimension)?;
                return self.push(")");
            }
            Node::Typed { name, .. } => return self.node(name),
            _ => return self.node(id),
        };
        match modifier {
            Modifier::Restrict | Modifier::RestrictThis => self.push(" restrict"),
            Modifier::Volatile | Modifier::VolatileThis => self.push(" volatile"),
            Modifier::Const | Modifier::ConstThis => self.push(" const"),
            Modifier::Pointer => self.push("*"),
            Modifier::Reference => self.push("&"),
            Modifier::RvalueReference => self.push("&&"),
            Modifier::ReferenceThis => self.push(" &"),
            Modifier::RvalueReferenceThis => self.push(" &&"),
            Modifier::Complex => self.push(" _Complex"),
            Modifier::Imaginary => self.push(" _Imaginary"),
            Modifier::TransactionSafe => self.push(" transaction_safe"),
            Modifier::Vendor(name) => {
                self.push(" ")?;
                self.node(name)
            }
            Modifier::Noexcept(None) => self.push(" noexcept"),
            Modifier::Noexcept(Some(expression)) => {
                self.push(" noexcept")?;
                self.in_parentheses(expression)
            }
            Modifier::Throw(types) => {
                self.push(" throw")?;
                self.in_parentheses(types)
            }
        }
    }

    /// Writes the parameters of a function type, and the modifiers from `at` around them.
    fn parameters(&mut self, id: NodeId, at: Option<usize>) -> Option<()> {
        let Node::Function { parameters, .. } = self.tree.get(id) else {
            return None;
        };
        let (needs_parentheses, needs_space) = self.around_parameters(at);
        if needs_parentheses {
            let needs_space = needs_space || !matches!(self.last, Some(b'(' | b'*'));
            if needs_space && self.last != Some(b' ') {
                self.push(" ")?;
            }
            self.push("(")?;
        }
        let modifiers = self.modifiers.take();
        self.modifiers(at, false)?;
        if needs_parentheses {
            self.push(")")?;
        }
        self.in_parentheses(parameters)?;
        self.modifiers(at, true)?;
        self.modifiers = modifiers;
        Some(())
    }

    /// Returns whether the modifiers from `at` around parameters need parentheses, and a space before
    /// them.
    fn around_parameters(&self, mut at: Option<usize>) -> (bool, bool) {
        while let Some(pending) = at.and_then(|at| self.buffers.pending.get(at)) {
            if pending.is_written {
                break;
            }
            match self.tree.get(pending.node) {
                Node::Modified { modifier, .. } if modifier.is_of_function() => {}
                Node::Modified { modifier, .. } => {
                    let is_alone = matches!(
                        modifier,
                        Modifier::Pointer | Modifier::Reference | Modifier::RvalueReference
                    );
                    return (true, !is_alone);
                }
                Node::PointerToMember { .. } => return (true, true),
                _ => {}
            }
            at = pending.next;
        }
        (false, false)
    }

    /// Writes the dimension of an array type, and the modifiers from `at` around it.
    fn dimension(&mut self, id: NodeId, at: Option<usize>) -> Option<()> {
        let Node::Array { dimension, .. } = self.tree.get(id) else {
            return None;
        };
        let mut needs_space = true;
        if at.is_some() {
            let mut needs_parentheses = false;
            if let Some(pending) = self.unwritten(at) {
                let is_array = matches!(self.tree.get(pending.node), Node::Array { .. });
                needs_space = !is_array;
                needs_parentheses = !is_array;
            }
            if needs_parentheses {
                self.push(" (")?;
            }
            self.modifiers(at, false)?;
            if needs_parentheses {
                self.push(")")?;
            }
        }
        if needs_space {
            self.push(" ")?;
        }
        self.push("[")?;
        if let Some(dimension) = dimension {
            self.node(dimension)?;
        }
        self.push("]")
    }
}
