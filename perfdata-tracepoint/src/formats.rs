//! The formats of a recording.

use std::borrow::Cow;
use std::sync::Arc;

use perfdata_core::attr::{Attr, EventType};
use perfdata_core::feature::tracing::TracingData;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::names::EventNames;
use perfdata_core::{Endian, Recording};

use crate::format::Format;
use crate::like::Like;
use crate::machine::Machine;
use crate::number;
use crate::problem::Problem;
use crate::resolver::Resolver;

/// The formats of the tracepoints in a recording.
#[derive(Debug)]
pub struct Formats {
    /// Sorted by their numbers.
    formats: Vec<Format>,
    machine: Arc<Machine>,
    unparsed: Vec<Unparsed>,
}

/// A `format` file without a name or a number, which no lookup finds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unparsed {
    /// The subsystem.
    pub system: Vec<u8>,
    /// What is wrong in the file.
    pub problem: Problem,
}

impl Formats {
    /// Parses the formats in tracing data, for the text of the newest perf.
    pub fn new(data: &TracingData) -> Self {
        Formats::like(data, Like::default())
    }

    /// Parses the formats in tracing data, for the text of a version of perf.
    ///
    /// Formats that cannot be parsed completely are kept ([`Format::problem`]), except those
    /// without a name or a number ([`Formats::unparsed`]).
    pub fn like(data: &TracingData, like: Like) -> Self {
        let machine = Arc::new(Machine::new(data, like));
        let mut formats = Vec::new();
        let mut unparsed = Vec::new();
        let ftrace = data.body.ftrace_formats.iter();
        let ftrace = ftrace.map(|file| (&b"ftrace"[..], &file.0));
        let systems = data.body.systems.iter().flat_map(|system| {
            let name = system.name.text();
            system.formats.iter().map(move |file| (name, &file.0))
        });
        for (system, file) in ftrace.chain(systems) {
            match Format::parse(file, system, &machine) {
                Ok(format) => formats.push(format),
                Err(problem) => unparsed.push(Unparsed {
                    system: system.to_vec(),
                    problem,
                }),
            }
        }
        formats.sort_by_key(Format::id);
        Formats {
            formats,
            machine,
            unparsed,
        }
    }

    /// Parses the formats in the feature section TRACING_DATA of a recording, for the text of a
    /// version of perf. `None` if it has no such section, or one that cannot be read.
    pub fn of(recording: &Recording, like: Like) -> Option<Self> {
        match recording.feature(FeatureId::TRACING_DATA) {
            Some(Ok(Section {
                value: Feature::TracingData(data),
                ..
            })) => Some(Formats::like(&data, like)),
            _ => None,
        }
    }

    /// Returns the format with a number: `attr.config` of an event of the type `TRACEPOINT`.
    pub fn by_id(&self, id: u64) -> Option<&Format> {
        let at = self.formats.binary_search_by_key(&id, Format::id).ok()?;
        self.formats.get(at)
    }

    /// Returns the format of an event; `None` also if it is not of the type `TRACEPOINT`.
    pub fn of_event(&self, attr: &Attr) -> Option<&Format> {
        let is_tracepoint = attr.kind == EventType::TRACEPOINT;
        self.by_id(attr.config).filter(|_| is_tracepoint)
    }

    /// Returns the name of the event at `at` in the list of `recording`. Where `names` has only one
    /// that was made of its number, it is that of its format, if `formats` contain it.
    pub fn event_name<'a>(
        formats: Option<&Self>,
        recording: &Recording,
        names: &'a EventNames,
        at: usize,
    ) -> Cow<'a, [u8]> {
        let name = names.get(recording, at).unwrap_or_default();
        let format = || formats?.of_event(&recording.events.get(at)?.attr);
        match name.starts_with(EventType::TRACEPOINT.to_string().as_bytes()) {
            true => format().map_or(name, |format| Cow::Owned(format.event_name())),
            false => name,
        }
    }

    /// Returns the format of an event by its subsystem and its name.
    pub fn by_name(&self, system: &[u8], name: &[u8]) -> Option<&Format> {
        self.iter()
            .find(|format| format.name() == name && format.system() == system)
    }

    /// Returns the format of raw data by the number in them (`common_type`).
    pub fn of_raw(&self, raw: &[u8]) -> Option<&Format> {
        let field = self.formats.first()?.common_fields();
        let field = field.iter().find(|field| field.name() == b"common_type")?;
        self.by_id(number::read(raw, field.offset, field.size, field.endian))
    }

    /// Returns all formats, sorted by their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Format> {
        self.formats.iter()
    }

    /// Returns the files that are not in [`Formats::iter`], because they have no name or no number.
    pub fn unparsed(&self) -> &[Unparsed] {
        &self.unparsed
    }

    /// Returns the byte order of the raw data.
    pub fn endian(&self) -> Endian {
        self.machine.endian
    }

    /// Returns the size of a `long` of the recording machine in bytes.
    pub fn long_size(&self) -> usize {
        self.machine.long_size
    }

    /// Appends the text of raw data, as `perf script` prints it after the name of the event:
    /// [`Format::print`] of the format whose number is in the raw data, or `[UNKNOWN EVENT]`.
    pub fn print(&self, raw: &[u8], resolver: &mut dyn Resolver, out: &mut Vec<u8>) {
        match self.of_raw(raw) {
            Some(format) => format.print(raw, resolver, out),
            None => out.extend_from_slice(b"[UNKNOWN EVENT]"),
        }
    }
}
