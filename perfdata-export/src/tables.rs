//! The functions and modules in an export.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_core::read::Limits;
use perfdata_core::record::CpuMode;
use perfdata_session::{BuildId, DsoKind, module_name};
use perfdata_symbols::{SourceFrame, demangled, demangled_without_parameters};

use crate::error::Result;
use crate::resolve::ResolvedFrame;
use crate::table_entries::{FunctionKey, ModuleKey};

/// How a frame without a function and a module is named, in all formats that name it.
pub(crate) const UNKNOWN: &str = "[unknown]";

/// How the code of guests is named, in user mode and in the kernel.
const GUEST: &str = "guest";
const GUEST_KERNEL: &str = "guest kernel";

/// The number of a function. The numbers count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// The number of a module. The numbers count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// A function with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Function {
    /// The demangled name: any bytes except NUL.
    pub name: Box<[u8]>,
    /// The name as it is in the object.
    pub system_name: Box<[u8]>,
    /// The path of the source file when it was compiled, if the symbolizer finds
    /// [lines](perfdata_symbols::Symbolizer::with_lines): any bytes except NUL.
    pub file: Option<Arc<[u8]>>,
    /// The line of the declaration in the file, from 1; 0 if it is not known.
    pub start_line: u32,
    /// Whether its symbol is that of an object with a complete table of symbols (`.symtab`).
    pub(crate) is_in_symtab: bool,
}

impl Function {
    /// Returns the name without parameters, for displays of many functions.
    pub fn short_name(&self) -> Cow<'_, [u8]> {
        // Names in lists of generated code are not mangled.
        match self.name == self.system_name {
            true => Cow::Borrowed(&self.name),
            false => demangled_without_parameters(&self.system_name),
        }
    }
}

/// An object that contains code: a file, a kernel, or the generated code of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Module {
    /// The name as perf shows it: a path, a name in brackets, or `/tmp/perf-PID.map` for generated
    /// code.
    pub name: Box<[u8]>,
    /// The kind of the object.
    pub kind: DsoKind,
    /// The build ID, if the recording contains it.
    pub build_id: Option<BuildId>,
}

impl Module {
    /// Returns the name of a kernel module without its folder and endings, in brackets: perf shows
    /// `[snd_hda_intel]` for `/lib/modules/6.1.0/kernel/sound/pci/hda/snd-hda-intel.ko.xz`.
    pub fn short_name(&self) -> Vec<u8> {
        let file = self.name.rsplit(|&byte| byte == b'/').next();
        let file = file.unwrap_or(&self.name);
        let has_ending = file.windows(3).any(|part| part == b".ko");
        if !has_ending || file.starts_with(b"[") {
            return file.to_vec();
        }
        [b"[", &*module_name(file), b"]"].concat()
    }

    /// Returns what represents a function without a name: the file name in brackets.
    pub fn label(&self) -> Vec<u8> {
        if self.name.starts_with(b"[") {
            return self.name.to_vec();
        }
        if self.kind == DsoKind::Module {
            return self.short_name();
        }
        let file = self.name.rsplit(|&byte| byte == b'/').next();
        [b"[", file.unwrap_or(&self.name), b"]"].concat()
    }
}

/// All functions and modules so far.
#[derive(Debug, Default)]
pub struct Tables {
    functions: Vec<Function>,
    modules: Vec<Module>,
    function_ids: HashMap<SymbolKey, FunctionId, RandomState>,
    inlined_ids: HashMap<InlinedKey, FunctionId, RandomState>,
    module_ids: HashMap<ModuleKey, ModuleId, RandomState>,
    function_keys: Vec<FunctionKey>,
    module_keys: Vec<ModuleKey>,
    held: usize,
    /// Changes when the numbers of places start again.
    pub(crate) epoch: u32,
}

/// The object and number of a symbol, and a source file of its function: code can be included from
/// several ones.
pub(crate) type SymbolKey = ((u32, u32), Option<Arc<[u8]>>);

/// The module, name and source file of an inlined function.
pub(crate) type InlinedKey = (ModuleId, Arc<[u8]>, Option<Arc<[u8]>>);

/// Approximate size of an entry in bytes, without its names.
const ENTRY: usize = 96;

impl Tables {
    /// Returns all functions, indexed by their numbers.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Returns all modules, indexed by their numbers.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Returns a function.
    pub fn function(&self, id: FunctionId) -> Option<&Function> {
        self.functions.get(usize::try_from(id.0).ok()?)
    }

    /// Returns a module.
    pub fn module(&self, id: ModuleId) -> Option<&Module> {
        self.modules.get(usize::try_from(id.0).ok()?)
    }

    /// Returns the demangled name of a frame's function, if it is known.
    pub fn name(&self, frame: &ResolvedFrame) -> Option<&[u8]> {
        Some(&self.function(frame.function?)?.name)
    }

    /// Returns how formats without addresses name a frame: its function, `[MODULE]`, or `[unknown]`.
    pub fn shown_name(&self, function: Option<FunctionId>, module: Option<ModuleId>) -> Vec<u8> {
        match function.and_then(|id| self.function(id)) {
            Some(function) => function.name.to_vec(),
            None => self.label(module),
        }
    }

    /// Returns the same with the function's name without parameters.
    pub fn short_shown_name(
        &self,
        function: Option<FunctionId>,
        module: Option<ModuleId>,
    ) -> Vec<u8> {
        match function.and_then(|id| self.function(id)) {
            Some(function) => function.short_name().into_owned(),
            None => self.label(module),
        }
    }

    /// Returns what represents a frame without a function.
    fn label(&self, module: Option<ModuleId>) -> Vec<u8> {
        let module = module.and_then(|id| self.module(id));
        module.map_or(UNKNOWN.into(), Module::label)
    }

    /// Returns the number of a symbol's function in a source file, which `make` creates if it is
    /// new.
    pub(crate) fn function_of(
        &mut self,
        key: SymbolKey,
        make: impl FnOnce() -> Option<Function>,
    ) -> Option<FunctionId> {
        if let Some(&id) = self.function_ids.get(&key) {
            return Some(id);
        }
        let function = make()?;
        Some(self.keyed_function(FunctionKey::Symbol(key), || function))
    }

    /// Returns the number of an inlined function, if its name is known.
    pub(crate) fn inlined_function(
        &mut self,
        module: ModuleId,
        frame: &SourceFrame,
    ) -> Option<FunctionId> {
        let name = frame.function.clone()?;
        let key = (module, name.clone(), frame.file.clone());
        let make = || Function {
            name: demangled(&name).as_ref().into(),
            system_name: name.as_ref().into(),
            file: frame.file.clone(),
            start_line: frame.start_line,
            is_in_symtab: false,
        };
        Some(self.keyed_function(FunctionKey::Inlined(key), make))
    }

    /// Returns the number of a function, which `make` creates if it is new.
    pub(crate) fn keyed_function(
        &mut self,
        key: FunctionKey,
        make: impl FnOnce() -> Function,
    ) -> FunctionId {
        let known = match &key {
            FunctionKey::Symbol(key) => self.function_ids.get(key),
            FunctionKey::Inlined(key) => self.inlined_ids.get(key),
        };
        if let Some(&id) = known {
            return id;
        }
        let function = make();
        let file = function.file.as_ref().map_or(0, |file| file.len());
        let sizes = [function.name.len(), function.system_name.len(), file, ENTRY];
        self.held = sizes.into_iter().fold(self.held, usize::saturating_add);
        let id = FunctionId(u32::try_from(self.functions.len()).unwrap_or(u32::MAX));
        self.functions.push(function);
        self.function_keys.push(key.clone());
        match key {
            FunctionKey::Symbol(key) => self.function_ids.insert(key, id),
            FunctionKey::Inlined(key) => self.inlined_ids.insert(key, id),
        };
        id
    }

    /// Returns the number of a module, which `make` creates if it is new.
    pub(crate) fn module_of(&mut self, key: ModuleKey, make: impl FnOnce() -> Module) -> ModuleId {
        if let Some(&id) = self.module_ids.get(&key) {
            return id;
        }
        let module = make();
        self.held = self
            .held
            .saturating_add(module.name.len())
            .saturating_add(ENTRY);
        let id = ModuleId(u32::try_from(self.modules.len()).unwrap_or(u32::MAX));
        self.modules.push(module);
        self.module_keys.push(key);
        self.module_ids.insert(key, id);
        id
    }

    /// Returns the number of the module for the code of a guest, of which the recording contains no
    /// mappings.
    pub(crate) fn guest(&mut self, mode: CpuMode) -> ModuleId {
        let (key, name, kind) = match mode == CpuMode::GUEST_KERNEL {
            true => (ModuleKey::GuestKernel, GUEST_KERNEL, DsoKind::Kernel),
            false => (ModuleKey::Guest, GUEST, DsoKind::File),
        };
        self.module_of(key, || Module {
            name: name.as_bytes().into(),
            kind,
            build_id: None,
        })
    }

    /// Returns all functions with what they are.
    pub(crate) fn keyed_functions(&self) -> impl Iterator<Item = (&FunctionKey, &Function)> {
        self.function_keys.iter().zip(&self.functions)
    }

    /// Returns all modules with what they are.
    pub(crate) fn keyed_modules(&self) -> impl Iterator<Item = (&ModuleKey, &Module)> {
        self.module_keys.iter().zip(&self.modules)
    }

    /// Checks the size of the tables.
    pub(crate) fn check(&self, limits: &Limits) -> Result<()> {
        Ok(limits.check_metadata("names of functions", self.held as u64)?)
    }
}
