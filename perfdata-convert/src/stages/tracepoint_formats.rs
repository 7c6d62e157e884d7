//! Tracing data for recordings that lack them, such as killed ones: without the format of every
//! tracepoint among its events, perf refuses a whole file (tools/perf/util/header.c,
//! `evsel__prepare_tracepoint_event`).

use std::collections::BTreeMap;

use perfdata_core::attr::EventType;
use perfdata_core::feature::TracingData;
use perfdata_core::feature::tracing::{
    ByteOrder, EventSystem, File, TracingBody, TracingHeader, Word,
};
use perfdata_core::wire::CStr;
use perfdata_core::{Endian, Recording};

/// The fields that all tracepoints have (kernel/trace/trace_events.c, `trace_define_common_fields`),
/// and one for the rest, without which libtraceevent refuses a format.
const COMMON_FIELDS: &str = "\
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:unsigned char data[];\toffset:8;\tsize:0;\tsigned:0;

print fmt: \"\"
";

/// `events/header_page` of a 64-bit kernel (kernel/trace/ring_buffer.c, `ring_buffer_print_page_header`).
/// perf refuses tracing data with an empty file.
const HEADER_PAGE: &str = "\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;
";

/// `events/header_event` (kernel/trace/ring_buffer.c, `ring_buffer_print_entry_header`).
const HEADER_EVENT: &str = "\
# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
";

/// Returns tracing data with the common fields of each tracepoint among the events. `name` returns
/// the name of the event at a position in the list, `SYSTEM:NAME` if it is known.
pub(crate) fn common_formats(
    recording: &Recording,
    mut name: impl FnMut(usize) -> Vec<u8>,
) -> TracingData {
    let mut by_id = BTreeMap::new();
    for (at, event) in recording.events.iter().enumerate() {
        if event.attr.kind == EventType::TRACEPOINT {
            by_id.entry(event.attr.config).or_insert(at);
        }
    }
    let mut systems: BTreeMap<String, Vec<File<u64>>> = BTreeMap::new();
    for (id, at) in by_id {
        let (system, name) =
            split(&name(at)).unwrap_or_else(|| (UNKNOWN.to_owned(), format!("{MADE}{id}")));
        let format = format!("name: {name}\nID: {id}\n{COMMON_FIELDS}");
        let formats = systems.entry(system).or_default();
        formats.push(file(&format));
    }
    let systems: Vec<_> = systems
        .into_iter()
        .map(|(name, formats)| EventSystem {
            name: c_str(&name),
            formats: formats.into(),
        })
        .collect();
    let byte_order = match recording.endian {
        Endian::Little => ByteOrder::LITTLE,
        Endian::Big => ByteOrder::BIG,
    };
    TracingData {
        header: TracingHeader {
            magic: Word(*b"\x17\x08\x44tracing"),
            version: c_str("0.6"),
            byte_order,
            long_size: 8,
        },
        body: TracingBody {
            page_size: 4096,
            header_page_name: Word(*b"header_page\0"),
            header_page: file(HEADER_PAGE),
            header_event_name: Word(*b"header_event\0"),
            header_event: file(HEADER_EVENT),
            ftrace_formats: Vec::new().into(),
            systems: systems.into(),
            kallsyms: File::default(),
            printk_formats: File::default(),
            saved_cmdlines: Some(File::default()),
        },
    }
}

/// The system and the start of the name of a tracepoint that a recording does not name.
const UNKNOWN: &str = "unknown";
const MADE: &str = "tracepoint_";

/// Returns whether the name of an event was made by [`common_formats`].
pub(crate) fn is_made_name(name: &[u8]) -> bool {
    let name = name.strip_prefix(UNKNOWN.as_bytes());
    let name = name.and_then(|name| name.strip_prefix(b":"));
    name.is_some_and(|name| name.starts_with(MADE.as_bytes()))
}

/// Returns whether tracing data contain only formats of [`common_formats`].
pub(crate) fn has_only_common_formats(data: &TracingData) -> bool {
    let formats = || {
        data.body
            .systems
            .iter()
            .flat_map(|system| system.formats.iter())
    };
    formats().count() > 0
        && formats().all(|File(format)| format.ends_with(COMMON_FIELDS.as_bytes()))
}

fn file(text: &str) -> File<u64> {
    File(text.as_bytes().to_vec().into())
}

fn c_str(text: &str) -> CStr {
    CStr::new(text.as_bytes())
}

/// Returns the system and the name of a tracepoint, without modifiers.
fn split(name: &[u8]) -> Option<(String, String)> {
    let is_word = |word: &&str| {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && word.chars().all(is_part)
    };
    let mut words = std::str::from_utf8(name).ok()?.split(':');
    let system = words.next().filter(is_word)?;
    let name = words.next().filter(is_word)?;
    Some((system.to_owned(), name.to_owned()))
}
