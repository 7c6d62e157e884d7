//! Frames as formats without addresses show them.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::RandomState;
use indexmap::set::Slice;
use indexmap::{Equivalent, IndexSet};
use perfdata_core::record::CpuMode;
use perfdata_session::DsoKind;

use crate::folded::is_jit_name;
use crate::resolve::ResolvedFrame;
use crate::tables::{FunctionId, ModuleId, Tables};

/// The kind of code of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Code {
    User,
    Kernel,
    /// Code that a JIT compiler generated.
    Generated,
    /// Nothing is known about the address.
    Unknown,
}

/// A frame as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Shown {
    /// The name of the function, `[MODULE]` or `[unknown]`.
    pub name: Box<[u8]>,
    pub module: Box<[u8]>,
    pub code: Code,
    /// The source file and the line of the function's declaration, as far as they are known.
    pub source: Option<(Arc<[u8]>, u32)>,
}

impl Shown {
    /// Returns what is shown for the name of a thread.
    pub fn of_comm(comm: Box<[u8]>) -> Self {
        Shown {
            name: comm,
            module: Box::default(),
            code: Code::Unknown,
            source: None,
        }
    }
}

/// A list without duplicates.
#[derive(Debug)]
pub(crate) struct Interned<T> {
    pub list: IndexSet<T, RandomState>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Interned {
            list: IndexSet::default(),
        }
    }
}

impl<T: Eq + Hash> Interned<T> {
    /// Returns the number of a value, which is added if it is new.
    pub fn number(&mut self, value: T) -> u32 {
        u32::try_from(self.list.insert_full(value).0).unwrap_or(u32::MAX)
    }

    /// Returns the number of a borrowed value, which is copied if it is new.
    pub fn number_of<'a, Q>(&mut self, value: &'a Q) -> u32
    where
        Q: Hash + Equivalent<T> + ?Sized,
        T: From<&'a Q>,
    {
        match self.list.get_index_of(value) {
            Some(number) => u32::try_from(number).unwrap_or(u32::MAX),
            None => self.number(value.into()),
        }
    }

    /// Returns the value with a number.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.list.get_index(usize::try_from(number).ok()?)
    }
}

/// All shown frames. Addresses in the same function are one frame.
#[derive(Debug, Default)]
pub(crate) struct ShownFrames {
    frames: Interned<Shown>,
    ids: HashMap<(Option<FunctionId>, Option<ModuleId>, bool), u32, RandomState>,
    has_sources: bool,
    has_parameters: bool,
}

impl ShownFrames {
    /// Returns an empty list whose frames have their source files, and names with parameters.
    pub fn with_sources() -> Self {
        ShownFrames {
            has_sources: true,
            has_parameters: true,
            ..ShownFrames::default()
        }
    }

    /// Returns all frames, by their numbers.
    pub fn list(&self) -> &Slice<Shown> {
        self.frames.list.as_slice()
    }

    /// Returns the number of a frame.
    pub fn number(&mut self, frame: &ResolvedFrame, tables: &Tables) -> u32 {
        let is_kernel = matches!(frame.mode, CpuMode::KERNEL | CpuMode::GUEST_KERNEL);
        let key = (frame.function, frame.module, is_kernel);
        if let Some(&known) = self.ids.get(&key) {
            return known;
        }
        let module = frame.module.and_then(|id| tables.module(id));
        let code = match module {
            _ if is_kernel => Code::Kernel,
            None => Code::Unknown,
            Some(module) if module.kind == DsoKind::Anonymous || is_jit_name(&module.name) => {
                Code::Generated
            }
            Some(_) => Code::User,
        };
        let module = module.map_or(&b""[..], |module| &module.name).into();
        let function = frame.function.filter(|_| self.has_sources);
        let source = function
            .and_then(|id| tables.function(id))
            .and_then(|function| Some((function.file.clone()?, function.start_line)));
        let name = match self.has_parameters {
            true => tables.shown_name(frame.function, frame.module),
            false => tables.short_shown_name(frame.function, frame.module),
        };
        let number = self.frames.number(Shown {
            name: name.into(),
            module,
            code,
            source,
        });
        self.ids.insert(key, number);
        number
    }
}
