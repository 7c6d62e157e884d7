//! Names of functions of the kernel.

use std::borrow::Cow;

/// A function of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function<'a> {
    /// Its name.
    pub name: Cow<'a, [u8]>,
    /// Its first address in the recorded kernel.
    pub start: u64,
}

/// Finds functions of the recorded kernel by their addresses, for `%pS` and `%ps`.
///
/// perf finds them in its own symbol tables (tools/perf/util/machine.c,
/// `machine__resolve_kernel_addr`): the kernel and its modules as mapped in the recording.
pub trait Resolver {
    /// Returns the function that contains an address; `None` if there is none. Then the address is
    /// printed.
    fn function(&mut self, address: u64) -> Option<Function<'_>>;
}

/// Finds no functions.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFunctions;

impl Resolver for NoFunctions {
    fn function(&mut self, _: u64) -> Option<Function<'_>> {
        None
    }
}

impl<F: FnMut(u64) -> Option<Function<'static>>> Resolver for F {
    fn function(&mut self, address: u64) -> Option<Function<'_>> {
        self(address)
    }
}
