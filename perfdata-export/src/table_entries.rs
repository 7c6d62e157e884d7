//! Functions and modules that a part of an export adds to those of the others.

use perfdata_session::DsoId;

use crate::tables::{Function, FunctionId, InlinedKey, Module, ModuleId, SymbolKey, Tables};

/// What functions are the same in all parts.
#[derive(Debug, Clone)]
pub(crate) enum FunctionKey {
    Symbol(SymbolKey),
    Inlined(InlinedKey),
}

/// What modules are the same in all parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ModuleKey {
    /// A DSO; generated code belongs to a process.
    Dso(DsoId, Option<u32>),
    Guest,
    GuestKernel,
}

/// Further functions and modules, whose numbers follow those that are known.
#[derive(Debug, Default)]
pub(crate) struct TableEntries {
    functions: Vec<(FunctionKey, Function)>,
    modules: Vec<(ModuleKey, Module)>,
}

/// The numbers in the tables of all parts, by those in one of them.
#[derive(Debug, Default)]
pub(crate) struct TableNumbers {
    functions: Vec<FunctionId>,
    modules: Vec<ModuleId>,
}

impl TableNumbers {
    /// Returns the number of a function in the tables of all parts.
    pub fn function(&self, of_part: FunctionId) -> Option<FunctionId> {
        self.functions
            .get(usize::try_from(of_part.0).ok()?)
            .copied()
    }

    /// Returns the number of a module in the tables of all parts.
    pub fn module(&self, of_part: ModuleId) -> Option<ModuleId> {
        self.modules.get(usize::try_from(of_part.0).ok()?).copied()
    }
}

/// How many functions and modules were taken.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TakenEntries {
    functions: usize,
    modules: usize,
}

impl TakenEntries {
    /// Returns the functions and modules that are new in the tables of a part.
    pub fn take(&mut self, tables: &Tables) -> TableEntries {
        let functions = tables.keyed_functions().skip(self.functions);
        let modules = tables.keyed_modules().skip(self.modules);
        let new = TableEntries {
            functions: functions
                .map(|(key, function)| (key.clone(), function.clone()))
                .collect(),
            modules: modules
                .map(|(key, module)| (*key, module.clone()))
                .collect(),
        };
        self.functions = self.functions.saturating_add(new.functions.len());
        self.modules = self.modules.saturating_add(new.modules.len());
        new
    }
}

impl Tables {
    /// Adds functions and modules of a part, and their numbers to `numbers`.
    pub(crate) fn join(&mut self, new: &TableEntries, numbers: &mut TableNumbers) {
        for (key, module) in &new.modules {
            numbers
                .modules
                .push(self.module_of(*key, || module.clone()));
        }
        for (key, function) in &new.functions {
            let mut key = key.clone();
            if let FunctionKey::Inlined((module, ..)) = &mut key {
                *module = numbers.module(*module).unwrap_or(*module);
            }
            let id = self.keyed_function(key, || function.clone());
            numbers.functions.push(id);
        }
    }
}
