//! A symbolizer that several threads use: it reads each table once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use perfdata_symbols::Symbolizer;

use crate::resolve::Needs;

/// A symbolizer, locked while a place is searched that its user does not remember.
#[derive(Debug, Clone)]
pub(crate) struct SharedSymbols(Arc<Mutex<Symbolizer>>);

impl SharedSymbols {
    pub fn new(symbols: Symbolizer) -> Self {
        SharedSymbols(Arc::new(Mutex::new(symbols)))
    }

    /// Returns the symbolizer with what a sink needs of it, if nobody else uses it yet.
    #[must_use]
    pub fn with_needs(self, needs: Needs) -> Self {
        let alone = match Arc::try_unwrap(self.0) {
            Ok(alone) => alone.into_inner(),
            Err(shared) => return SharedSymbols(shared),
        };
        let symbols = alone.unwrap_or_else(PoisonError::into_inner);
        let (inlines, lines) = (symbols.has_inlines(), symbols.has_lines());
        let symbols = symbols
            .with_spelling(needs.spelling)
            .with_inlines(inlines || needs.inlines)
            .with_lines(lines || needs.lines);
        SharedSymbols::new(symbols)
    }

    pub fn lock(&self) -> MutexGuard<'_, Symbolizer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
