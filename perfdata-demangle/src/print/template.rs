//! Templates: their arguments, and the packs among them.

use super::Printer;
use crate::node::{Node, NodeId};

/// A template whose parameters are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope {
    template: NodeId,
    /// The scope around it.
    next: Option<usize>,
}

/// The scopes at the place where a reference to a parameter was written first. A substitution can
/// refer to it from a place with other scopes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SavedScope {
    parameter: NodeId,
    scope: Option<usize>,
}

impl Printer<'_> {
    /// Adds a scope, which ends when [`Printer::scope`] is restored.
    pub(super) fn push_scope(&mut self, template: NodeId) {
        let at = self.buffers.scopes.len();
        let next = self.scope;
        self.buffers.scopes.push(Scope { template, next });
        self.scope = Some(at);
    }

    /// Writes a template. Nothing around it belongs into it.
    pub(super) fn template(&mut self, id: NodeId, name: NodeId, arguments: NodeId) -> Option<()> {
        let modifiers = self.modifiers.take();
        let template = self.template.replace(id);
        self.node(name)?;
        self.bracketed(arguments)?;
        self.modifiers = modifiers;
        self.template = template;
        Some(())
    }

    /// Writes the argument for a parameter.
    pub(super) fn template_parameter(&mut self, number: u32) -> Option<()> {
        if self.lambdas > 0 {
            // The parameter of a generic lambda.
            self.push("auto:")?;
            return self.push_number(u64::from(number).saturating_add(1));
        }
        let argument = self.argument_or_element(number)?;
        // An argument can refer to parameters of the templates around this one.
        let scope = self.scope;
        self.scope = self.buffers.scopes.get(scope?)?.next;
        self.node(argument)?;
        self.scope = scope;
        Some(())
    }

    /// Returns the argument for a parameter: also a whole pack.
    fn argument(&self, number: u32) -> Option<NodeId> {
        let scope = self.buffers.scopes.get(self.scope?)?;
        let Node::Template { arguments, .. } = self.tree.get(scope.template) else {
            return None;
        };
        let Node::TemplateArguments(list) = self.tree.get(arguments) else {
            return None;
        };
        let list = self.tree.list(list);
        list.get(usize::try_from(number).ok()?).copied()
    }

    /// Returns the argument for a parameter: of a pack, the element that is being written.
    pub(super) fn argument_or_element(&self, number: u32) -> Option<NodeId> {
        let argument = self.argument(number)?;
        match (self.tree.get(argument), self.pack_index) {
            (Node::TemplateArguments(list), Some(index)) => {
                self.tree.list(list).get(index).copied()
            }
            _ => Some(argument),
        }
    }

    /// Changes to the scopes that a reference to a parameter had where it was written first, unless
    /// this is inside of that place.
    pub(super) fn enter_saved_scope(&mut self, reference: NodeId, parameter: NodeId) -> Option<()> {
        // The search takes time.
        self.step(self.buffers.saved_scopes.len() / 16)?;
        let saved = |saved: &&SavedScope| saved.parameter == parameter;
        let Some(saved) = self.buffers.saved_scopes.iter().find(saved).copied() else {
            let scope = self.scope;
            self.buffers
                .saved_scopes
                .push(SavedScope { parameter, scope });
            return Some(());
        };
        self.step(self.buffers.path.len() / 16)?;
        let above = self
            .buffers
            .path
            .split_last()
            .map_or(&[][..], |(_, above)| above);
        if !above.contains(&parameter) && !above.contains(&reference) {
            self.scope = saved.scope;
        }
        Some(())
    }

    /// Writes a pattern for each element of the pack in it.
    pub(super) fn pack_expansion(&mut self, pattern: NodeId) -> Option<()> {
        let pack = match self.lambdas {
            0 => self.pack(pattern, 0)?,
            _ => None,
        };
        let Some(pack) = pack else {
            // Only packs of function parameters.
            self.operand(pattern)?;
            return self.push("...");
        };
        let len = self.pack_len(pack);
        for index in 0..len {
            self.pack_index = Some(index);
            self.node(pattern)?;
            if index.saturating_add(1) < len {
                self.push(", ")?;
            }
        }
        Some(())
    }

    /// Returns the number of elements of a pack.
    pub(super) fn pack_len(&self, pack: NodeId) -> usize {
        match self.tree.get(pack) {
            Node::TemplateArguments(list) => self.tree.list(list).len(),
            _ => 0,
        }
    }

    /// Returns the first pack in a pattern; the outer `None` if the search is too long.
    pub(super) fn pack(&mut self, id: NodeId, depth: usize) -> Option<Option<NodeId>> {
        self.step(1)?;
        if depth >= super::MAX_DEPTH {
            return None;
        }
        let depth = depth.saturating_add(1);
        let tree = self.tree;
        let (nodes, list) = match tree.get(id) {
            Node::TemplateParameter(number) => {
                let is_pack = |id: &NodeId| matches!(tree.get(*id), Node::TemplateArguments(_));
                return Some(self.argument(number).filter(is_pack));
            }
            node => node.parts(),
        };
        let elements = list.map(|list| tree.list(list)).unwrap_or_default();
        for part in nodes.into_iter().flatten().chain(elements.iter().copied()) {
            if let Some(pack) = self.pack(part, depth)? {
                return Some(Some(pack));
            }
        }
        Some(None)
    }
}
