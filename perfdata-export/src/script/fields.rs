//! The fields of `perf script -F`: their names, and which are shown for each type of event
//! (tools/perf/builtin-script.c, 7.2).

use std::fmt;
use std::str::FromStr;

use perfdata_core::attr::{Attr, EventType, SampleType};
use perfdata_tracepoint::Like;

macro_rules! fields {
    ($($(#[$doc:meta])* $bit:literal $name:ident $word:literal,)*) => {
        /// A set of fields.
        #[derive(Clone, Copy, PartialEq, Eq, Default)]
        pub(super) struct Set(u64);

        impl Set {
            $($(#[$doc])* pub const $name: Set = Set(1 << $bit);)*

            /// All fields, with perf's words for them.
            const ALL: &'static [(Set, &'static str)] = &[$((Set::$name, $word),)*];
        }
    };
}

fields! {
    /// Name of the thread.
    0 COMM "comm",
    /// Thread ID.
    1 TID "tid",
    /// Process ID.
    2 PID "pid",
    /// Time.
    3 TIME "time",
    /// CPU.
    4 CPU "cpu",
    /// Name of the event.
    5 EVENT "event",
    /// Data of a tracepoint.
    6 TRACE "trace",
    /// Instruction pointer or callchain.
    7 IP "ip",
    /// Function.
    8 SYM "sym",
    /// Mapped object.
    9 DSO "dso",
    /// Data address.
    10 ADDR "addr",
    /// Offset in the function.
    11 SYMOFF "symoff",
    /// Source file and line.
    12 SRCLINE "srcline",
    /// Period.
    13 PERIOD "period",
    /// Registers at the interrupt.
    14 IREGS "iregs",
    /// Branches as addresses.
    15 BRSTACK "brstack",
    /// Branches as functions.
    16 BRSTACKSYM "brstacksym",
    /// Source of the data.
    17 DATA_SRC "data_src",
    /// Cost.
    18 WEIGHT "weight",
    /// Data of a BPF program.
    19 BPF_OUTPUT "bpf-output",
    /// Branches as offsets in the mapped objects.
    24 BRSTACKOFF "brstackoff",
    /// What a sample of a trace says.
    25 SYNTH "synth",
    /// Physical data address.
    26 PHYS_ADDR "phys_addr",
    /// User registers.
    27 UREGS "uregs",
    /// Flags of the record.
    29 MISC "misc",
    /// Page size at the data address.
    33 DATA_PAGE_SIZE "data_page_size",
    /// Page size at the instruction.
    34 CODE_PAGE_SIZE "code_page_size",
    /// Latency of the instruction.
    35 INS_LAT "ins_lat",
    /// Name of the cgroup.
    39 CGROUP "cgroup",
    /// Latency of the retirement.
    40 RETIRE_LAT "retire_lat",
    /// Offset in the mapped object.
    41 DSOFF "dsoff",
}

/// Fields of perf that are not supported, and the reason.
const UNSUPPORTED: [(&str, &str); 15] = [
    ("srccode", "source files are not read"),
    ("flags", NO_TRACE),
    ("callindent", NO_TRACE),
    ("ipc", NO_TRACE),
    ("machine_pid", NO_GUESTS),
    ("vcpu", NO_GUESTS),
    ("insn", NO_CODE),
    ("insnlen", NO_CODE),
    ("disasm", NO_CODE),
    ("brstackinsn", NO_CODE),
    ("brstackinsnlen", NO_CODE),
    ("brstackdisasm", NO_CODE),
    ("brcntr", NO_CODE),
    ("metric", "metrics depend on the CPU model"),
    ("tod", "the time of day depends on the time zone"),
];
const NO_TRACE: &str = "the samples of a trace do not contain it";
const NO_GUESTS: &str = "samples of guests are not told apart";
const NO_CODE: &str = "instructions are not decoded";

impl Set {
    /// Returns whether all fields of `other` are in the set.
    pub const fn has(self, other: Set) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether one of the fields of `other` is in the set.
    pub const fn has_any(self, other: Set) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the fields of both sets.
    pub const fn with(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    /// Returns the set without the fields of `other`.
    pub const fn without(self, other: Set) -> Set {
        Set(self.0 & !other.0)
    }

    /// Returns those fields that are also in `other`.
    pub const fn only(self, other: Set) -> Set {
        Set(self.0 & other.0)
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        let named = move |(field, name): &(Set, &'static str)| self.has(*field).then_some(*name);
        Set::ALL.iter().filter_map(named)
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// A type of event as perf distinguishes them for the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    Hardware,
    Software,
    Tracepoint,
    HwCache,
    Raw,
    Breakpoint,
    Synth,
    Other,
}

impl EventKind {
    pub const ALL: [EventKind; 8] = [
        EventKind::Hardware,
        EventKind::Software,
        EventKind::Tracepoint,
        EventKind::HwCache,
        EventKind::Raw,
        EventKind::Breakpoint,
        EventKind::Synth,
        EventKind::Other,
    ];

    /// Returns the type of an event.
    pub fn of(attr: &Attr) -> EventKind {
        match attr.kind {
            EventType::HARDWARE => EventKind::Hardware,
            EventType::SOFTWARE => EventKind::Software,
            EventType::TRACEPOINT => EventKind::Tracepoint,
            EventType::HW_CACHE => EventKind::HwCache,
            EventType::RAW => EventKind::Raw,
            EventType::BREAKPOINT => EventKind::Breakpoint,
            EventType::SYNTH => EventKind::Synth,
            _ => EventKind::Other,
        }
    }

    /// Returns the position in [`EventKind::ALL`].
    pub const fn number(self) -> usize {
        self as usize
    }

    /// Returns perf's word for the type, with which a list of fields starts.
    const fn word(self) -> Option<&'static str> {
        Some(match self {
            EventKind::Hardware => "hw",
            EventKind::Software => "sw",
            EventKind::Tracepoint => "trace",
            EventKind::Raw => "raw",
            EventKind::Breakpoint => "break",
            EventKind::Synth => "synth",
            EventKind::HwCache | EventKind::Other => return None,
        })
    }

    /// Returns the fields that are shown by default.
    fn default_fields(self, like: Like) -> Set {
        const COMMON: Set = Set::COMM
            .with(Set::TID)
            .with(Set::CPU)
            .with(Set::TIME)
            .with(Set::EVENT);
        const CODE: Set = COMMON
            .with(Set::IP)
            .with(Set::SYM)
            .with(Set::SYMOFF)
            .with(Set::DSO);
        const MEMORY: Set = Set::ADDR
            .with(Set::DATA_SRC)
            .with(Set::WEIGHT)
            .with(Set::PHYS_ADDR)
            .with(Set::DATA_PAGE_SIZE)
            .with(Set::CODE_PAGE_SIZE)
            .with(Set::INS_LAT);
        match self {
            EventKind::Tracepoint => COMMON.with(Set::TRACE),
            EventKind::Software => CODE.with(Set::PERIOD).with(Set::BPF_OUTPUT),
            EventKind::Raw if like == Like::Perf6_1 => CODE.with(Set::PERIOD).with(MEMORY),
            EventKind::Raw => CODE.with(Set::PERIOD).with(MEMORY).with(Set::RETIRE_LAT),
            EventKind::Synth => CODE.with(Set::SYNTH),
            EventKind::Hardware | EventKind::HwCache | EventKind::Breakpoint | EventKind::Other => {
                CODE.with(Set::PERIOD)
            }
        }
    }

    /// Returns the fields that events of this type never have.
    const fn invalid_fields(self) -> Set {
        match self {
            EventKind::Tracepoint => Set(0),
            EventKind::Software => Set::TRACE,
            _ => Set::TRACE.with(Set::BPF_OUTPUT),
        }
    }
}

/// Which fields are shown, in the words of `perf script -F`: `comm,tid,ip`, `+addr,-period`,
/// `sw:comm,ip`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields(Vec<FieldsChange>);

/// One list of fields.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldsChange {
    /// The type of event, if the list starts with one.
    kind: Option<EventKind>,
    /// What to do with each field: to set only these, to add, or to remove it.
    change: Option<bool>,
    added: Set,
    removed: Set,
}

/// Why a list of fields is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FieldsError(String);

impl FromStr for Fields {
    type Err = FieldsError;

    fn from_str(text: &str) -> Result<Self, FieldsError> {
        let (kind, list) = match text.split_once(':') {
            None => (None, text),
            Some((word, list)) => {
                let known = |kind: &EventKind| kind.word() == Some(word);
                let kind = EventKind::ALL.into_iter().find(known);
                let kind = kind.ok_or_else(|| {
                    FieldsError(format!(
                        "unknown type of event '{word}': hw, sw, trace, raw, break and synth are known"
                    ))
                })?;
                (Some(kind), list)
            }
        };
        let mut change = FieldsChange {
            kind,
            change: None,
            added: Set(0),
            removed: Set(0),
        };
        let words = list.split(',').filter(|word| !word.is_empty());
        for (number, word) in words.enumerate() {
            let (wanted, word) = match (word.strip_prefix('+'), word.strip_prefix('-')) {
                (Some(word), _) => (Some(true), word),
                (None, Some(word)) => (Some(false), word),
                (None, None) => (None, word),
            };
            if number > 0 && wanted.is_some() != change.change.is_some() {
                let what = format!("'{text}' mixes fields with and without a sign");
                return Err(FieldsError(what));
            }
            change.change = wanted;
            let field = field(word)?;
            if let Some(kind) = kind
                && kind.invalid_fields().has(field)
            {
                return Err(FieldsError(format!(
                    "events of type '{}' have no field '{word}'",
                    kind.word().unwrap_or_default()
                )));
            }
            let (to, from) = match wanted {
                Some(false) => (&mut change.removed, &mut change.added),
                _ => (&mut change.added, &mut change.removed),
            };
            (*to, *from) = (to.with(field), from.without(field));
        }
        Ok(Fields(vec![change]))
    }
}

/// Returns the field with perf's name `word`.
fn field(word: &str) -> Result<Set, FieldsError> {
    if let Some((field, _)) = Set::ALL.iter().find(|(_, name)| *name == word) {
        return Ok(*field);
    }
    let reason = UNSUPPORTED.iter().find(|(name, _)| *name == word);
    Err(FieldsError(match reason {
        Some((_, reason)) => format!("the field '{word}' is not supported: {reason}"),
        None => {
            let known: Vec<&str> = Set::ALL.iter().map(|(_, name)| *name).collect();
            format!("unknown field '{word}': known are {}", known.join(", "))
        }
    }))
}

impl Fields {
    /// Returns both lists: `other` is applied after these.
    #[must_use]
    pub fn and(mut self, other: Fields) -> Fields {
        self.0.extend(other.0);
        self
    }
}

/// The fields of each type of event.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// What is shown, by [`EventKind::number`].
    fields: [Set; EventKind::ALL.len()],
    /// What was requested.
    requested: [Set; EventKind::ALL.len()],
    /// What was removed.
    removed: [Set; EventKind::ALL.len()],
    /// Whether the fields of a type were requested.
    is_set: [bool; EventKind::ALL.len()],
}

impl Shown {
    /// Returns the fields after all `changes` of the default ones.
    pub fn new(like: Like, changes: &Fields) -> Self {
        let mut shown = Shown {
            fields: EventKind::ALL.map(|kind| kind.default_fields(like)),
            requested: [Set(0); EventKind::ALL.len()],
            removed: [Set(0); EventKind::ALL.len()],
            is_set: [false; EventKind::ALL.len()],
        };
        for change in &changes.0 {
            shown.apply(change);
        }
        shown
    }

    fn apply(&mut self, change: &FieldsChange) {
        let columns = self
            .fields
            .iter_mut()
            .zip(&mut self.requested)
            .zip(&mut self.removed)
            .zip(&mut self.is_set);
        for (kind, (((fields, requested), removed), is_set)) in
            EventKind::ALL.into_iter().zip(columns)
        {
            if change.kind.is_some_and(|only| only != kind) {
                continue;
            }
            let added = change.added.without(kind.invalid_fields());
            if change.change.is_none() {
                (*fields, *requested) = (Set(0), Set(0));
            }
            *fields = fields.with(added).without(change.removed);
            *requested = requested.with(added).without(change.removed);
            *removed = removed.with(change.removed).without(added);
            *is_set = true;
        }
    }

    /// Returns whether one of these fields is shown for a type of event.
    pub fn has_any(&self, fields: Set) -> bool {
        self.fields.iter().any(|shown| shown.has_any(fields))
    }

    /// Returns the fields of a type of event.
    pub fn of(&self, kind: EventKind) -> Set {
        self.fields.get(kind.number()).copied().unwrap_or_default()
    }

    /// Returns whether the fields of a type were requested.
    pub fn is_set(&self, kind: EventKind) -> bool {
        self.is_set.get(kind.number()).copied().unwrap_or_default()
    }

    /// Returns the fields that were removed.
    pub fn removed(&self, kind: EventKind) -> Set {
        self.removed.get(kind.number()).copied().unwrap_or_default()
    }

    /// Adds fields of a type of event.
    pub fn add(&mut self, kind: EventKind, fields: Set) {
        if let Some(shown) = self.fields.get_mut(kind.number()) {
            *shown = shown.with(fields);
        }
    }

    /// Removes those fields that samples of an event do not have, as perf does with the first event
    /// of each type. With AUX data, requested fields stay: perf synthesizes samples with them.
    ///
    /// # Errors
    /// A missing field was requested.
    pub fn check(&mut self, attr: &Attr, name: &[u8], has_aux: bool) -> Result<(), FieldsError> {
        let kind = EventKind::of(attr);
        let (fields, requested) = (
            self.of(kind),
            self.requested
                .get(kind.number())
                .copied()
                .unwrap_or_default(),
        );
        let weights = SampleType(SampleType::WEIGHT.0 | SampleType::WEIGHT_STRUCT.0);
        let needs: [(Set, SampleType, bool); 14] = [
            (Set::IP, SampleType::IP, false),
            (Set::ADDR, SampleType::ADDR, true),
            (Set::DATA_SRC, SampleType::DATA_SRC, true),
            (Set::WEIGHT, weights, true),
            (Set::TID.with(Set::PID), SampleType::TID, false),
            (Set::TIME, SampleType::TIME, false),
            (Set::CPU, SampleType::CPU, true),
            (Set::IREGS, SampleType::REGS_INTR, true),
            (Set::UREGS, SampleType::REGS_USER, false),
            (Set::PHYS_ADDR, SampleType::PHYS_ADDR, true),
            (Set::DATA_PAGE_SIZE, SampleType::DATA_PAGE_SIZE, false),
            (Set::CODE_PAGE_SIZE, SampleType::CODE_PAGE_SIZE, false),
            (
                Set::INS_LAT.with(Set::RETIRE_LAT),
                SampleType::WEIGHT_STRUCT,
                false,
            ),
            (Set::CGROUP, SampleType::CGROUP, false),
        ];
        let mut missing = Set(0);
        for (field, part, stays_with_aux) in needs {
            if !fields.has_any(field) || attr.sample_type.0 & part.0 != 0 {
                continue;
            }
            if !requested.has_any(field) {
                missing = missing.with(field);
            } else if !(stays_with_aux && has_aux) {
                let names: Vec<&str> = Set(requested.0 & field.0).names().collect();
                return Err(FieldsError(format!(
                    "samples of the event '{}' have no field '{}'",
                    String::from_utf8_lossy(name),
                    names.join("' and '")
                )));
            }
        }
        if let Some(fields) = self.fields.get_mut(kind.number()) {
            *fields = fields.without(missing);
            if fields.has(Set::SRCLINE) && !fields.has(Set::IP) {
                return Err(FieldsError(format!(
                    "the field 'srcline' needs 'ip' for the event '{}'",
                    String::from_utf8_lossy(name)
                )));
            }
            if fields.has(Set::DSOFF) {
                *fields = fields.with(Set::DSO);
            }
        }
        Ok(())
    }
}
