//! A symbolizer that several threads use: it reads each table once.

use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use perfdata_session::{Frame, Sample};
use perfdata_symbols::{SourceFrame, SymbolPlace, Symbolizer};

use crate::resolve::Needs;

/// A symbolizer. Several threads search objects that it has read at the same time.
#[derive(Debug, Clone)]
pub(crate) struct SharedSymbols(Arc<RwLock<Symbolizer>>);

/// A symbolizer while the result of a search is used.
pub(crate) enum Searched<'a> {
    Shared(RwLockReadGuard<'a, Symbolizer>),
    Alone(RwLockWriteGuard<'a, Symbolizer>),
}

impl Deref for Searched<'_> {
    type Target = Symbolizer;

    fn deref(&self) -> &Symbolizer {
        match self {
            Searched::Shared(symbols) => symbols,
            Searched::Alone(symbols) => symbols,
        }
    }
}

impl SharedSymbols {
    pub fn new(symbols: Symbolizer) -> Self {
        SharedSymbols(Arc::new(RwLock::new(symbols)))
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

    /// Returns the symbolizer for results that it has.
    pub fn read(&self) -> RwLockReadGuard<'_, Symbolizer> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the functions at the address of a frame as they are in the source code:
    /// [`Symbolizer::source_frames`].
    pub fn source_frames(&self, sample: &Sample<'_>, frame: &Frame<'_>) -> Vec<SourceFrame> {
        let symbols = self.read();
        if !symbols.has_inlines() && !symbols.has_lines() {
            return Vec::new();
        }
        drop(symbols);
        self.write().source_frames(sample, frame)
    }

    /// Returns where the symbol at the address of a frame is, and the symbolizer for its name.
    pub fn locate(
        &self,
        sample: &Sample<'_>,
        frame: &Frame<'_>,
    ) -> (Option<SymbolPlace>, Searched<'_>) {
        let symbols = self.read();
        if let Some(found) = symbols.find(sample, frame) {
            return (found, Searched::Shared(symbols));
        }
        drop(symbols);
        let mut symbols = self.write();
        (symbols.locate(sample, frame), Searched::Alone(symbols))
    }

    fn write(&self) -> RwLockWriteGuard<'_, Symbolizer> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
