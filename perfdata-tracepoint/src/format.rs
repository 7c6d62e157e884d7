//! The format of a tracepoint.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::conversion::{self, Item};
use crate::expression::Arg;
use crate::field::Field;
use crate::like::Like;
use crate::machine::Machine;
use crate::parse::Parser;
use crate::print;
use crate::problem::{Parsed, Problem};
use crate::read;
use crate::resolver::Resolver;
use crate::scheduler;
use crate::token::Tokens;

/// The longest `format` file in bytes. Those of the kernel have less than a tenth of it.
const MAX_FILE: usize = 256 * 1024;

/// The format of a tracepoint: its fields, and how it is printed.
#[derive(Debug)]
pub struct Format {
    pub(crate) id: u64,
    pub(crate) system: Box<[u8]>,
    pub(crate) name: Box<[u8]>,
    pub(crate) fields: Vec<Field>,
    pub(crate) common: usize,
    pub(crate) machine: Arc<Machine>,
    pub(crate) printed: Printed,
}

/// How the raw data are printed.
#[derive(Debug)]
pub(crate) enum Printed {
    /// By a format string.
    ByString {
        /// The format string.
        items: Vec<Item>,
        /// What it prints.
        args: Vec<Arg>,
    },
    /// By a format string that is recorded with the data (`ftrace:bprint`). The first one that
    /// does not fit its arguments turns this into a list of fields.
    ByRecordedString {
        /// Whether there was one.
        was_wrong: AtomicBool,
    },
    /// As a list of fields.
    AsFields(Problem),
}

impl Format {
    /// Parses a `format` file.
    ///
    /// # Errors
    /// The file has no name or no number, or is too long.
    pub(crate) fn parse(file: &[u8], system: &[u8], machine: &Arc<Machine>) -> Parsed<Self> {
        if file.len() > MAX_FILE {
            return Err(Problem {
                offset: MAX_FILE,
                found: format!("a file of {} bytes", file.len()),
                expected: "a shorter one".into(),
            });
        }
        let mut tokens = Tokens::new(file, machine.like);
        let is_ftrace = system == b"ftrace";
        let head = read::head(&mut tokens, machine, is_ftrace)?;
        let mut format = Format {
            id: u64::from(head.id.unsigned_abs()),
            system: system.into(),
            name: head.name,
            fields: head.fields,
            common: head.common,
            machine: Arc::clone(machine),
            printed: Printed::ByRecordedString {
                was_wrong: AtomicBool::new(false),
            },
        };
        let is_recorded = is_ftrace && *format.name == *b"bprint";
        let printed = match head.problem {
            Some(problem) => Err(problem),
            None => format.print_fmt(tokens, is_ftrace),
        };
        match printed {
            Ok(_) if is_recorded => {}
            Ok(printed) => format.printed = printed,
            Err(problem) => format.printed = Printed::AsFields(problem),
        }
        Ok(format)
    }

    /// Parses what is after the fields.
    fn print_fmt(&self, tokens: Tokens<'_>, is_ftrace: bool) -> Parsed<Printed> {
        let mut parser = Parser::new(tokens, &self.fields, self.common, &self.machine);
        let (format, mut args) = parser.print_fmt()?;
        if args.is_empty() && is_ftrace {
            // Old kernels do not repeat the fields.
            args = (self.common..self.fields.len())
                .map(|field| Arg::Field(Some(field)))
                .collect();
        }
        let is_library = self.machine.like.is_library();
        let (items, is_right) = conversion::split(&format, &args, is_library);
        if !is_right {
            let found = format!("`{}`", format.escape_ascii());
            let expected = "a format string that fits its arguments";
            return Err(parser.tokens.wrong(found, expected));
        }
        Ok(Printed::ByString { items, args })
    }

    /// Returns the number, which is `attr.config` of the event and `common_type` in the raw data.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the subsystem: `sched`.
    pub fn system(&self) -> &[u8] {
        &self.system
    }

    /// Returns the name without the subsystem: `sched_switch`.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns the name of the event: `sched:sched_switch`.
    pub fn event_name(&self) -> Vec<u8> {
        [self.system(), b":", self.name()].concat()
    }

    /// Returns all fields in the order of the format; those of all events first.
    pub fn all_fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the fields that all events have: `common_type`, `common_pid` and others.
    pub fn common_fields(&self) -> &[Field] {
        self.fields.get(..self.common).unwrap_or_default()
    }

    /// Returns the fields of this event in the order of the format.
    pub fn fields(&self) -> &[Field] {
        self.fields.get(self.common..).unwrap_or_default()
    }

    /// Returns the field of a name, of all events or of this one.
    pub fn field(&self, name: &[u8]) -> Option<&Field> {
        self.fields.iter().find(|field| *field.name == *name)
    }

    /// Returns why the raw data are printed as a list of fields. `None` if the format is completely
    /// parsed.
    pub fn problem(&self) -> Option<&Problem> {
        match &self.printed {
            Printed::AsFields(problem) => Some(problem),
            _ => None,
        }
    }

    /// Returns the version of perf whose text is printed.
    pub fn like(&self) -> Like {
        self.machine.like
    }

    /// Appends the text of raw data, as `perf script` prints it after the name of the event.
    ///
    /// perf takes the format of the event whose number is in the raw data
    /// ([`Formats::print`](crate::Formats::print)), not that of the attribute. It may contain bytes
    /// that are no UTF-8, and ends before the first NUL.
    ///
    /// If the format could not be parsed ([`Format::problem`]), the text starts with
    /// `[FAILED TO PARSE]` and contains the fields.
    pub fn print(&self, raw: &[u8], resolver: &mut dyn Resolver, out: &mut Vec<u8>) {
        print::print(self, raw, resolver, out);
    }

    /// Appends the text of raw data as perf prints it if libtraceevent's plugin `sched_switch` is
    /// installed: of `sched_switch`, `sched_wakeup` and `sched_wakeup_new`. Returns false, without a
    /// text, for all other events.
    pub fn print_as_plugin(&self, raw: &[u8], out: &mut Vec<u8>) -> bool {
        scheduler::print(self, raw, out)
    }
}
