//! The text of tracepoints.

use std::borrow::Cow;

use perfdata_core::attr::EventType;
use perfdata_core::record::CpuMode;
use perfdata_session::Sample;
use perfdata_tracepoint::{Formats, Function, Like, Resolver};

use crate::shared_symbols::SharedSymbols;

/// Prints the raw data of tracepoints.
#[derive(Debug, Default)]
pub(crate) struct Tracepoints {
    /// The formats, since the first sample of a tracepoint.
    formats: Option<Option<Formats>>,
    /// Whether events of the scheduler are printed as by libtraceevent's plugin.
    pub has_plugin: bool,
    /// The last text.
    pub text: Vec<u8>,
}

impl Tracepoints {
    /// Prints the raw data of a sample. Returns false if it has none, or its format is not known.
    pub fn print(
        &mut self,
        sample: &Sample<'_>,
        like: Like,
        symbols: Option<&SharedSymbols>,
    ) -> bool {
        self.text.clear();
        let Some(attr) = sample.attr() else {
            return false;
        };
        let Some(raw) = sample.sample_view().raw() else {
            return false;
        };
        if attr.kind != EventType::TRACEPOINT {
            return false;
        }
        let formats = self
            .formats
            .get_or_insert_with(|| Formats::of(sample.recording(), like));
        let format = formats.as_ref().and_then(|all| all.by_id(attr.config));
        let Some(format) = format else {
            return false;
        };
        if self.has_plugin && format.print_as_plugin(raw, &mut self.text) {
            return true;
        }
        let mut functions = Functions { sample, symbols };
        format.print(raw, &mut functions, &mut self.text);
        true
    }
}

/// The functions of the kernel at the time of a sample.
struct Functions<'a> {
    sample: &'a Sample<'a>,
    symbols: Option<&'a SharedSymbols>,
}

impl Resolver for Functions<'_> {
    fn function(&mut self, address: u64) -> Option<Function<'_>> {
        let frame = self.sample.address(address, CpuMode::KERNEL);
        let (found, symbols) = self.symbols?.locate(self.sample, &frame);
        symbols.with_symbol(found?, |symbol| Function {
            name: Cow::Owned(symbol.demangled().into_owned()),
            start: address.wrapping_sub(symbol.offset),
        })
    }
}
