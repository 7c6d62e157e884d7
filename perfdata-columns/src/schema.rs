//! The tables and their columns. `docs/parquet.md` contains the same lists, and a test compares
//! them.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

/// The version of the schema: the value of the metadata key [`SCHEMA_KEY`]. It changes if a column
/// changes its type or its meaning; new columns and tables do not change it.
pub const SCHEMA_VERSION: &str = "1";

/// The metadata key for the version of the schema.
pub const SCHEMA_KEY: &str = "perfconv.schema";

/// The type of a column. All of them can be read by engines that know neither unsigned numbers nor
/// nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A number of 64 bits. Addresses and masks are the same bits: addresses of the kernel are
    /// negative.
    Int64,
    /// A number of 32 bits.
    Int32,
    /// A truth value.
    Bool,
    /// A time of day: microseconds since 1970 (UTC).
    Timestamp,
    /// A name from a dictionary.
    Name,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// A list of numbers of 64 bits.
    Int64List,
    /// A list of numbers of 32 bits.
    Int32List,
    /// A list of truth values.
    BoolList,
    /// A list of names from a dictionary.
    NameList,
    /// A list of texts.
    TextList,
}

impl Kind {
    /// Returns the type in Arrow.
    pub fn data_type(self) -> DataType {
        let list = |of: Kind| {
            // Only a name can be unknown.
            let is_nullable = of == Kind::Name || of == Kind::Int64;
            let field = Field::new(ELEMENT, of.data_type(), is_nullable);
            DataType::List(Arc::new(field))
        };
        match self {
            Kind::Int64 => DataType::Int64,
            Kind::Int32 => DataType::Int32,
            Kind::Bool => DataType::Boolean,
            Kind::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Kind::Name => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Kind::Text => DataType::Utf8,
            Kind::Bytes => DataType::Binary,
            Kind::Int64List => list(Kind::Int64),
            Kind::Int32List => list(Kind::Int32),
            Kind::BoolList => list(Kind::Bool),
            Kind::NameList => list(Kind::Name),
            Kind::TextList => list(Kind::Text),
        }
    }
}

/// The name of the field in lists.
pub(crate) const ELEMENT: &str = "element";

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Int64 => "int64",
            Kind::Int32 => "int32",
            Kind::Bool => "bool",
            Kind::Timestamp => "timestamp",
            Kind::Name => "name",
            Kind::Text => "text",
            Kind::Bytes => "bytes",
            Kind::Int64List => "list of int64",
            Kind::Int32List => "list of int32",
            Kind::BoolList => "list of bool",
            Kind::NameList => "list of name",
            Kind::TextList => "list of text",
        })
    }
}

/// A column of a table. All columns may be null: then the recording does not contain the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub kind: Kind,
    /// What it contains: the unit, and where it comes from.
    pub meaning: &'static str,
}

/// Declares the columns of a table.
macro_rules! columns {
    ($list:ident { $($name:literal $kind:ident $meaning:literal,)* }) => {
        const $list: &[Column] = &[$(Column {
            name: $name,
            kind: Kind::$kind,
            meaning: $meaning,
        }),*];
    };
}

/// Declares the columns of a table in groups, an enum of all of them, and an enum of each group.
macro_rules! chosen_columns {
    (
        $(#[$meta:meta])*
        $list:ident $enum:ident by $groups:ident {
            $(
                $(#[$of:meta])*
                $group:ident $members:ident {
                    $($variant:ident $name:literal $kind:ident $meaning:literal,)*
                }
            )*
        }
    ) => {
        columns!($list { $($($name $kind $meaning,)*)* });

        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $enum {
            $($(#[doc = concat!("`", $name, "`: ", $meaning, ".")] $variant,)*)*
        }

        $(
            $(#[$of])*
            #[derive(Debug, Clone, Copy)]
            pub(crate) enum $members {
                $($variant,)*
            }
        )*

        /// A column and its group.
        #[derive(Debug, Clone, Copy)]
        pub(crate) enum $groups {
            $($group($members),)*
        }

        impl $enum {
            /// All columns, in their order.
            pub const ALL: &[$enum] = &[$($($enum::$variant,)*)*];

            /// Returns the column as one of its group.
            pub(crate) fn group(self) -> $groups {
                match self {
                    $($($enum::$variant => $groups::$group($members::$variant),)*)*
                }
            }
        }
    };
}

chosen_columns! {
    /// A column of the table `samples`.
    SAMPLES SampleColumn by ColumnGroup {
        /// A column about the sample.
        Sample OfSample {
            Recording "recording" Name "ID of the recording",
            Host "host" Name "host name (HOSTNAME)",
            Time "time" Int64 "time in ns on the clock of the recording (PERF_SAMPLE_TIME)",
            Wall "wall" Timestamp "time of day, by CLOCK_DATA (`perf record -k`)",
            Event "event" Name "name of the event, as in perf script",
            Period "period" Int64 "weight in units of the event: PERF_SAMPLE_PERIOD, otherwise `sample_period` of the event, otherwise 1; in a sample with counters, the increase of the event's one",
            Pid "pid" Int32 "process ID (PERF_SAMPLE_TID)",
            Tid "tid" Int32 "thread ID (PERF_SAMPLE_TID)",
            Cpu "cpu" Int32 "CPU (PERF_SAMPLE_CPU)",
            Comm "comm" Name "name of the thread at this time (COMM, FORK)",
            Mode "mode" Name "CPU mode: user, kernel, hypervisor, guest_kernel, guest_user, unknown",
            Ip "ip" Int64 "instruction pointer (PERF_SAMPLE_IP)",
            Addr "addr" Int64 "data address (PERF_SAMPLE_ADDR)",
            Weight "weight" Int64 "hardware weight, such as a latency in cycles (PERF_SAMPLE_WEIGHT; the low 32 bits of PERF_SAMPLE_WEIGHT_STRUCT)",
            DataSrc "data_src" Int64 "source of the data, bits of union perf_mem_data_src (PERF_SAMPLE_DATA_SRC)",
            PhysAddr "phys_addr" Int64 "physical data address (PERF_SAMPLE_PHYS_ADDR)",
            Cgroup "cgroup" Name "path of the cgroup (PERF_SAMPLE_CGROUP, CGROUP)",
        }
        /// A column about its frames.
        Frames OfFrames {
            Callchain "callchain" Int64List "addresses of the frames, from the sampled function to its outermost caller; those of callers are return addresses",
            KernelFrames "kernel_frames" Int32 "number of frames in the kernel; they are the first ones",
            Modules "modules" NameList "object of each frame: a path or a name in brackets; null if nothing was mapped",
            Offsets "offsets" Int64List "offset of each frame in its object, in bytes; null if nothing was mapped, or names were searched (`--columns +offsets`)",
            Frames "frames" NameList "function of each frame: its name, `[OBJECT]` or `[unknown]`; null without symbols",
            Inlined "inlined" BoolList "whether each frame is an inlined function; null without `--inlines`",
            Files "files" NameList "source file of each frame; null without `--lines`",
            Lines "lines" Int32List "source line of each frame, 0 if unknown; null without `--lines`",
            Stack "stack" Int64 "hash of the frames: equal on all hosts for equal `frames`; without symbols, for equal objects and offsets",
        }
    }
}

columns! {
    RECORDINGS {
        "recording" Name "ID of the recording: XXH3-128 of its bytes, in hexadecimal",
        "host" Name "host name (HOSTNAME)",
        "file" Text "name of the file",
        "path" Text "absolute path of the recording; null for a pipe",
        "container" Text "file or pipe",
        "byte_order" Text "little or big",
        "osrelease" Text "kernel release (OSRELEASE)",
        "arch" Text "architecture (ARCH)",
        "version" Text "version of perf (VERSION)",
        "cpudesc" Text "name of the processor (CPUDESC)",
        "cpuid" Text "identifier of the processor (CPUID)",
        "cpus_online" Int32 "number of online CPUs (NRCPUS)",
        "cpus_available" Int32 "number of possible CPUs (NRCPUS)",
        "total_mem" Int64 "memory of the machine in kB (TOTAL_MEM)",
        "cmdline" TextList "command line of perf (CMDLINE)",
        "clock" Text "clock of the recording (CLOCK_DATA)",
        "clock_resolution" Int64 "resolution of the clock in ns (CLOCKID)",
        "clock_time" Int64 "a moment in ns on the clock of the recording (CLOCK_DATA)",
        "clock_wall" Timestamp "the same moment as time of day (CLOCK_DATA)",
        "first_time" Int64 "time of the first sample in ns",
        "last_time" Int64 "time of the last sample in ns",
        "samples" Int64 "number of rows in `samples`",
        "frames" Int64 "number of frames in them",
        "unnamed" Int64 "number of frames without a name",
        "lost_records" Int64 "number of lost records (LOST)",
        "lost_samples" Int64 "number of lost samples (LOST_SAMPLES)",
        "symbols" Text "none, or perf-rules: the rules by which names were searched",
        "exporter" Text "version of perfconv",
        "recorded_at" Timestamp "time of day of the recording, whose date is that of the partition",
        "date_source" Text "where this time comes from: clock (the first sample, by CLOCK_DATA), header (CLOCK_DATA without samples), option (`--recorded-at`), name (`--recorded-at-name`) or mtime (the last change of the file)",
    }
}

columns! {
    BROKEN {
        "path" Text "absolute path of the recording",
        "size" Int64 "its size in bytes when it was read",
        "mtime" Timestamp "time of its last change",
        "error" Text "text of the error",
        "status" Int32 "exit status of the error: 1 if the recording is invalid or was refused, 2 for an error of the system",
        "retry" Bool "whether the next run tries again although the file has not changed",
        "tried" Timestamp "time of the attempt",
        "exporter" Text "version of perfconv",
    }
}

columns! {
    FEATURES {
        "recording" Name "ID of the recording",
        "host" Name "host name",
        "feature" Name "name of the feature section",
        "path" Name "name of the field in the section, with those of the structures and the indexes of the lists that contain it",
        "text" Text "value as text; null for bytes",
        "number" Int64 "value of a number",
        "bytes" Bytes "value of bytes",
    }
}

columns! {
    EVENTS {
        "recording" Name "ID of the recording",
        "host" Name "host name",
        "index" Int32 "number of the event, from 0",
        "event" Name "name, as in perf script",
        "type" Int64 "`perf_event_attr.type`",
        "type_name" Name "name of the type: hardware, software, tracepoint, …",
        "config" Int64 "`perf_event_attr.config`; the ID of a tracepoint",
        "config1" Int64 "`perf_event_attr.config1`",
        "config2" Int64 "`perf_event_attr.config2`",
        "sample_period" Int64 "events between two samples; null if there is a frequency",
        "sample_freq" Int64 "samples per second",
        "sample_type" Int64 "bits PERF_SAMPLE_*",
        "read_format" Int64 "bits PERF_FORMAT_*",
        "flags" TextList "names of the flags of the attribute that are set",
        "precise_ip" Int32 "permitted skid, from 0 (arbitrary) to 3 (none)",
        "ids" Int64List "IDs of the event, one for each CPU or thread",
        "samples" Int64 "number of its rows in `samples`",
        "period" Int64 "sum of their periods",
    }
}

columns! {
    MAPPINGS {
        "recording" Name "ID of the recording",
        "host" Name "host name",
        "time" Int64 "time in ns; 0 or null for mappings that existed before the recording",
        "pid" Int32 "process ID; -1 for the kernel",
        "tid" Int32 "thread ID",
        "start" Int64 "first address",
        "end" Int64 "address after the last one",
        "pgoff" Int64 "offset in the file in bytes; for a kernel, the address of its relocation symbol",
        "module" Name "object: a path or a name in brackets (MMAP, MMAP2, KSYMBOL)",
        "build_id" Name "build ID in the record, in hexadecimal (MMAP2)",
        "prot" Int32 "PROT_* of the recorded machine (MMAP2)",
        "flags" Int32 "MAP_* of the recorded machine (MMAP2)",
        "executable" Bool "whether it contains code",
        "mode" Name "CPU mode of the record",
    }
}

columns! {
    MODULES {
        "recording" Name "ID of the recording",
        "host" Name "host name",
        "module" Name "object, as in `samples.modules`",
        "build_id" Name "build ID in hexadecimal (MMAP2, otherwise BUILD_ID)",
        "kind" Name "kernel, module, kernel_symbol, vdso, vdso32, file or anonymous",
    }
}

columns! {
    THREADS {
        "recording" Name "ID of the recording",
        "host" Name "host name",
        "pid" Int32 "process ID; -1 if unknown",
        "tid" Int32 "thread ID",
        "ppid" Int32 "process ID of the thread that created it (FORK)",
        "ptid" Int32 "thread ID of the thread that created it (FORK)",
        "comm" Name "last name (COMM)",
        "start" Int64 "time of its start in ns; null if it existed before (FORK)",
        "end" Int64 "time of its end in ns; null if it existed until the end (EXIT)",
        "guest" Int32 "process ID of the guest machine; null for the host",
    }
}

columns! {
    LOST {
        "recording" Name "ID of the recording",
        "host" Name "host name",
        "time" Int64 "time in ns",
        "kind" Name "LOST: records that did not fit into the ring buffer; LOST_SAMPLES: samples that the hardware or a BPF filter dropped",
        "event" Name "name of the event",
        "lost" Int64 "number of records or samples",
        "cpu" Int32 "CPU",
        "by_bpf" Bool "whether a BPF filter dropped the samples",
    }
}

columns! {
    SWITCHES {
        "recording" Name "ID of the recording",
        "host" Name "host name",
        "time" Int64 "time in ns",
        "wall" Timestamp "time of day, by CLOCK_DATA",
        "cpu" Int32 "CPU",
        "pid" Int32 "process ID",
        "tid" Int32 "thread ID",
        "out" Bool "whether the thread stops running; otherwise, it starts",
        "preempted" Bool "whether a thread that stops could have continued",
        "other_pid" Int32 "process that runs next or ran before (SWITCH_CPU_WIDE)",
        "other_tid" Int32 "thread that runs next or ran before (SWITCH_CPU_WIDE)",
    }
}

columns! {
    TRACEPOINT {
        "recording" Name "ID of the recording",
        "host" Name "host name",
        "time" Int64 "time of the sample in ns",
        "wall" Timestamp "time of day, by CLOCK_DATA",
        "pid" Int32 "process ID",
        "tid" Int32 "thread ID",
        "cpu" Int32 "CPU",
        "comm" Name "name of the thread at this time",
        "period" Int64 "weight, as in `samples`",
    }
}

impl SampleColumn {
    /// Returns the declaration of the column.
    pub fn column(self) -> &'static Column {
        // The list and the enum are one declaration.
        SAMPLES.get(self as usize).unwrap_or(&FIRST)
    }

    /// Returns the column of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|column| column.column().name == name)
    }
}

/// The first column of all tables.
const FIRST: Column = Column {
    name: "recording",
    kind: Kind::Name,
    meaning: "ID of the recording",
};

/// A table of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Table {
    /// The samples, a row for each.
    Samples,
    /// The recording and its feature sections with one value: one row.
    Recordings,
    /// A recording that could not be exported: one row, in a directory of many recordings.
    Broken,
    /// All fields of the feature sections.
    Features,
    /// The events.
    Events,
    /// The mappings, in the order of time.
    Mappings,
    /// The objects that samples hit.
    Modules,
    /// The threads.
    Threads,
    /// Losses of records and samples.
    Lost,
    /// Context switches (`perf record --switch-events`).
    Switches,
    /// The samples of a tracepoint, with its fields: `tracepoints/SYSTEM__NAME`.
    Tracepoint(Arc<str>),
}

impl Table {
    /// All tables of a recording except those of tracepoints.
    pub const FIXED: [Table; 9] = [
        Table::Samples,
        Table::Recordings,
        Table::Features,
        Table::Events,
        Table::Mappings,
        Table::Modules,
        Table::Threads,
        Table::Lost,
        Table::Switches,
    ];

    /// Returns the name, which is that of its file or folder: `samples`,
    /// `tracepoints/sched__sched_switch`.
    pub fn name(&self) -> String {
        match self {
            Table::Samples => "samples".into(),
            Table::Recordings => "recordings".into(),
            Table::Broken => "broken".into(),
            Table::Features => "features".into(),
            Table::Events => "events".into(),
            Table::Mappings => "mappings".into(),
            Table::Modules => "modules".into(),
            Table::Threads => "threads".into(),
            Table::Lost => "lost".into(),
            Table::Switches => "switches".into(),
            Table::Tracepoint(name) => format!("tracepoints/{name}"),
        }
    }

    /// Returns the columns; for a tracepoint those that all of them have.
    pub fn columns(&self) -> &'static [Column] {
        match self {
            Table::Samples => SAMPLES,
            Table::Recordings => RECORDINGS,
            Table::Broken => BROKEN,
            Table::Features => FEATURES,
            Table::Events => EVENTS,
            Table::Mappings => MAPPINGS,
            Table::Modules => MODULES,
            Table::Threads => THREADS,
            Table::Lost => LOST,
            Table::Switches => SWITCHES,
            Table::Tracepoint(_) => TRACEPOINT,
        }
    }
}

/// Returns the schema of record batches with these columns.
pub fn sample_schema(columns: impl IntoIterator<Item = SampleColumn>) -> SchemaRef {
    schema_of(columns.into_iter().map(|column| {
        let declared = column.column();
        (declared.name, declared.kind)
    }))
}

/// Returns the schema of columns.
pub(crate) fn schema_of<'a>(columns: impl IntoIterator<Item = (&'a str, Kind)>) -> SchemaRef {
    let fields = columns
        .into_iter()
        .map(|(name, kind)| Field::new(name, kind.data_type(), true));
    Arc::new(Schema::new(fields.collect::<Fields>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_their_declarations() {
        assert_eq!(SampleColumn::ALL.len(), SAMPLES.len());
        for (column, declared) in SampleColumn::ALL.iter().zip(SAMPLES) {
            assert_eq!(column.column(), declared);
            assert_eq!(SampleColumn::by_name(declared.name), Some(*column));
        }
        assert_eq!(SampleColumn::by_name("nothing"), None);
        for table in Table::FIXED
            .iter()
            .chain([&Table::Tracepoint("a__b".into())])
        {
            let columns = table.columns();
            assert_eq!((columns[0].name, columns[1].name), ("recording", "host"));
            let mut names: Vec<_> = columns.iter().map(|column| column.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), columns.len(), "{}", table.name());
        }
    }
}
