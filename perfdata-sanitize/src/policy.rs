//! What happens to each kind of content: the decision for whom a recording is made.

use perfdata_core::content::Content;

use perfdata_convert::error::{Error, Result};
use perfdata_convert::support::suggest::nearest;

/// Who receives the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Audience {
    /// Everybody: names, build IDs and releases are replaced, too
    #[default]
    Public,
    /// A vendor who has the programs: build IDs and file names stay, so that symbols are found
    Vendor,
}

/// What happens to a kind of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// It stays.
    Keep,
    /// A pseudonym, a new number or a shorter text replaces it.
    Replace,
    /// It becomes zeros or an empty text; a part of a sample, a record or a section with this
    /// content is removed.
    Remove,
}

/// Declares what `--keep` can name: the word, the variant, and the help.
macro_rules! kept {
    ($($word:literal $name:ident $help:literal),* $(,)?) => {
        /// Something that stays in the recording although the audience does not get it by default.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Kept {
            $(#[doc = $help] $name,)*
        }

        impl Kept {
            /// All of them, each with its word and its description.
            pub const ALL: &'static [(&'static str, Kept, &'static str)] = &[$(($word, Kept::$name, $help)),*];
        }
    };
}

kept! {
    "host" Host "The host name.",
    "cmdline" Cmdline "The command line of the recorder.",
    "release" Release "The whole releases of kernel and perf.",
    "cpu" Cpu "Sizes and arrangement of CPUs, caches and memory.",
    "comms" Comms "The names of threads.",
    "paths" Paths "The paths of files.",
    "basenames" Basenames "The names of files without their directories.",
    "cgroups" Cgroups "The paths of cgroups.",
    "symbols" Symbols "The names of functions and BPF programs.",
    "events" Events "The names of events, of dynamic probes, too.",
    "pids" Pids "Process and thread IDs.",
    "addresses" Addresses "Addresses of code and data.",
    "build-ids" BuildIds "Build IDs, and the tags of BPF programs.",
    "times" Times "Times since boot and the time of day.",
    "raw" Raw "The raw data of samples: all fields of tracepoints.",
    "stack" Stack "User stacks and registers. They contain memory: passwords, keys, environment.",
}

impl Kept {
    /// Returns what `word` names.
    ///
    /// # Errors
    /// There is no such word.
    pub fn of(word: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(name, ..)| *name == word);
        if let Some((_, kept, _)) = found {
            return Ok(*kept);
        }
        let words = || Self::ALL.iter().map(|(name, ..)| *name);
        let near = nearest(word, words());
        let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
        let words = words().collect::<Vec<_>>().join(", ");
        Err(Error::Usage(format!(
            "nothing to keep is called {word:?}{near} Words are: {words}; or EVENT:FIELD for a field of a \
             tracepoint, such as sched:sched_switch:prev_state"
        )))
    }
}

/// A field of a tracepoint that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptField {
    /// The subsystem and the name of the tracepoint: `sched:sched_switch`.
    pub(crate) event: String,
    /// The field.
    pub(crate) field: String,
}

/// Decides about each kind of content.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    audience: Audience,
    kept: Vec<Kept>,
    fields: Vec<KeptField>,
}

impl Policy {
    /// Returns the decisions for `audience`.
    pub fn new(audience: Audience) -> Self {
        Policy {
            audience,
            ..Policy::default()
        }
    }

    /// Returns the decisions that only move addresses, and remove memory and raw data: those of
    /// `perf inject --aslr`.
    pub fn only_addresses() -> Self {
        let others = Kept::ALL.iter().map(|(_, kept, _)| *kept);
        let others =
            others.filter(|kept| !matches!(kept, Kept::Addresses | Kept::Raw | Kept::Stack));
        others.fold(Policy::new(Audience::Vendor), Policy::keep)
    }

    /// Returns the decisions with `kept` in the recording, too.
    #[must_use]
    pub fn keep(mut self, kept: Kept) -> Self {
        self.kept.push(kept);
        self
    }

    /// Returns the decisions with what `word` names: a word of [`Kept::ALL`], or a field of a
    /// tracepoint, as `sched:sched_switch:prev_state`.
    ///
    /// # Errors
    /// The word names nothing.
    pub fn keep_named(mut self, word: &str) -> Result<Self> {
        match word.rsplit_once(':') {
            Some((event, field)) if event.contains(':') && !field.is_empty() => {
                self.fields.push(KeptField {
                    event: event.to_owned(),
                    field: field.to_owned(),
                });
                Ok(self)
            }
            _ => Ok(self.keep(Kept::of(word)?)),
        }
    }

    /// Returns whether `kept` stays.
    pub(crate) fn keeps(&self, kept: Kept) -> bool {
        self.kept.contains(&kept)
    }

    /// Returns the fields of tracepoints that stay.
    pub(crate) fn fields(&self) -> &[KeptField] {
        &self.fields
    }

    /// Returns whether the names of files stay, without their directories.
    pub(crate) fn keeps_basenames(&self) -> bool {
        self.audience == Audience::Vendor || self.keeps(Kept::Basenames)
    }

    /// Returns whether samples may contain memory or raw data of the original.
    pub(crate) fn keeps_memory(&self) -> bool {
        self.keeps(Kept::Raw) || self.keeps(Kept::Stack) || !self.fields.is_empty()
    }

    /// Returns what happens to `content`. Every kind is decided here, and nowhere else.
    pub(crate) fn action(&self, content: Content) -> Action {
        let unless = |kept, action| match self.keeps(kept) {
            true => Action::Keep,
            false => action,
        };
        let for_public = match self.audience {
            Audience::Public => Action::Replace,
            Audience::Vendor => Action::Keep,
        };
        match content {
            Content::Number
            | Content::Cpu
            | Content::Protection
            | Content::MapFlags
            | Content::BuildIdSize
            | Content::Fields
            | Content::Processor
            | Content::PmuName => Action::Keep,
            Content::Address | Content::Callchain | Content::MappingOffset | Content::Config => {
                unless(Kept::Addresses, Action::Replace)
            }
            Content::PhysicalAddress => unless(Kept::Addresses, Action::Remove),
            Content::Pid => unless(Kept::Pids, Action::Replace),
            Content::Time | Content::Ticks => unless(Kept::Times, Action::Replace),
            Content::Clock => unless(Kept::Times, Action::Remove),
            Content::Id
            | Content::StreamId
            | Content::Cookie
            | Content::CgroupId
            | Content::BpfId
            | Content::Namespace => Action::Replace,
            Content::Comm => unless(Kept::Comms, Action::Replace),
            Content::Path => unless(Kept::Paths, Action::Replace),
            Content::CgroupPath => unless(Kept::Cgroups, Action::Replace),
            Content::Symbol => unless(Kept::Symbols, Action::Replace),
            Content::EventName | Content::Format => unless(Kept::Events, Action::Replace),
            Content::Host => unless(Kept::Host, Action::Replace),
            Content::Argument => unless(Kept::Cmdline, Action::Replace),
            Content::Release => unless(Kept::Release, for_public),
            Content::BuildId => unless(Kept::BuildIds, for_public),
            Content::Topology => unless(Kept::Cpu, Action::Remove),
            Content::Memory | Content::Registers => unless(Kept::Stack, Action::Remove),
            Content::Raw if !self.fields.is_empty() => unless(Kept::Raw, Action::Replace),
            Content::Raw => unless(Kept::Raw, Action::Remove),
            Content::Message
            | Content::FileId
            | Content::User
            | Content::Code
            | Content::Trace
            | Content::Bpf
            | Content::KernelTable
            | Content::Padding
            | Content::Unknown => Action::Remove,
        }
    }
}
