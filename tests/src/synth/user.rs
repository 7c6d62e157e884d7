//! Records of the perf tool (types 64..84) except those for tracing hardware and `perf stat`;
//! tools/lib/perf/include/perf/event.h.

use super::attr::{Attr, SIZES, Stamp, sample_type};
use super::buf::{Buf, count, island};
use super::build_id::{self, Entry, HEADER_BUILD_ID, Room, SIZE_VALID};
use super::record::{Case, Scribe, frame, misc};
use super::{feature, tracing, zstd};

/// `PERF_RECORD_HEADER_ATTR`.
pub const HEADER_ATTR: u32 = 64;
/// `PERF_RECORD_HEADER_EVENT_TYPE`, not written since 3.12.
pub const HEADER_EVENT_TYPE: u32 = 65;
/// `PERF_RECORD_HEADER_TRACING_DATA`.
pub const HEADER_TRACING_DATA: u32 = 66;
/// `PERF_RECORD_FINISHED_ROUND`.
pub const FINISHED_ROUND: u32 = 68;
/// `PERF_RECORD_ID_INDEX`.
pub const ID_INDEX: u32 = 69;
/// `PERF_RECORD_THREAD_MAP`.
pub const THREAD_MAP: u32 = 73;
/// `PERF_RECORD_TIME_CONV`.
pub const TIME_CONV: u32 = 79;
/// `PERF_RECORD_HEADER_FEATURE`.
pub const HEADER_FEATURE: u32 = 80;
/// `PERF_RECORD_COMPRESSED`.
pub const COMPRESSED: u32 = 81;
/// `PERF_RECORD_FINISHED_INIT`.
pub const FINISHED_INIT: u32 = 82;
/// `PERF_RECORD_COMPRESSED2`.
pub const COMPRESSED2: u32 = 83;
/// `PERF_RECORD_BPF_METADATA`.
pub const BPF_METADATA: u32 = 84;

/// Every type, every variant.
pub fn cases(s: &mut Scribe) {
    attributes(s);
    pipe_header(s);
    build_ids(s);
    markers(s);
    id_index(s, &[(1001, 0, 0, u64::MAX), (1002, 1, u64::MAX, 4202)]);
    id_index_of_guests(s);
    thread_map(s);
    time_conv(s);
    bpf_metadata(s);
    features(s);
    compressed(s);
}

/// The body of a HEADER_ATTR record: the attribute, then its ids.
pub fn header_attr(b: Buf, attr: &Attr, ids: &[u64]) -> Buf {
    let bytes = attr.bytes(b.big);
    b.bytes(&bytes).u64s(ids)
}

fn attributes(s: &mut Scribe) {
    let before = s.attr.clone();
    for size in SIZES.into_iter().chain([152]) {
        s.attr = Attr::rich(size);
        let attr = s.attr.clone();
        let name = format!("HEADER_ATTR of {size}");
        // What lies behind the 144 known bytes cannot be exchanged.
        s.user(&name, HEADER_ATTR, 0, |b| header_attr(b, &attr, &[1001, 1002])).swaps = size <= 144;
    }
    let old = Attr { size: 0, ..Attr::rich(64) };
    s.attr = old.clone();
    s.user("HEADER_ATTR of size 0, which is 64", HEADER_ATTR, 0, |b| header_attr(b, &old, &[7]));
    for precise_ip in 0..4 {
        let attr = Attr::new(sample_type::IP, &format!("freq precise_ip={precise_ip}"));
        s.attr = attr.clone();
        // Until 4.16 perf wrote whatever lay in misc.
        s.user(&format!("HEADER_ATTR precise_ip {precise_ip}"), HEADER_ATTR, 0x7f88, |b| header_attr(b, &attr, &[]));
    }
    for action in ["aux_start_paused", "aux_pause", "aux_resume"] {
        let attr = Attr { aux_action: action.to_owned(), ..Attr::new(sample_type::IP, "") };
        s.attr = attr.clone();
        s.user(&format!("HEADER_ATTR {action}"), HEADER_ATTR, 0, |b| header_attr(b, &attr, &[u64::MAX]));
    }
    for field in super::bits::ATTR_FLAGS {
        let flags = format!("{}=1", field.0);
        let attr = Attr::new(sample_type::IP, &flags);
        s.attr = attr.clone();
        s.user(&format!("HEADER_ATTR flag {flags}"), HEADER_ATTR, 0, |b| header_attr(b, &attr, &[]));
    }
    s.attr = before;
}

/// Writes a HEADER_EVENT_TYPE record.
pub fn event_type(s: &mut Scribe) {
    s.user("HEADER_EVENT_TYPE", HEADER_EVENT_TYPE, 0, |b| b.u64(0x0102_0304_0506_0708).room(b"cycles", 64));
}

/// Writes a HEADER_TRACING_DATA record; the data follow it, padded to 8.
pub fn tracing_data<'a>(s: &'a mut Scribe, name: &str, data: &[u8]) -> &'a mut Case {
    let payload = Buf::new(s.big).bytes(data).pad(8).bytes;
    let size = payload.len() as u32;
    let case = s.user(name, HEADER_TRACING_DATA, 0, |b| b.u32(size).u32(0));
    case.payload = payload;
    case
}

fn pipe_header(s: &mut Scribe) {
    event_type(s);
    tracing_data(s, "HEADER_TRACING_DATA", &tracing::data(tracing::Version::V0_6, false));
    // Before 6.0 the record was 12 bytes long.
    let data = Buf::new(s.big).bytes(&tracing::data(tracing::Version::V0_5, true)).pad(8).bytes;
    let size = data.len() as u32;
    s.user("HEADER_TRACING_DATA of 12", HEADER_TRACING_DATA, 0, |b| b.u32(size)).payload = data;
}

fn build_ids(s: &mut Scribe) {
    let big = s.big;
    let mut add = |name: &str, entry: &Entry, trailer: &[u8]| {
        let record = entry.record(big, HEADER_BUILD_ID, trailer);
        let misc = entry.misc | if entry.size_byte { SIZE_VALID } else { 0 };
        s.user(name, HEADER_BUILD_ID, misc, |b| b.bytes(&record[8..]));
    };
    for entry in build_id::usual(Room::Name64, false) {
        add(&format!("HEADER_BUILD_ID {} before 5.11", entry.name), &entry, &[]);
    }
    for entry in build_id::usual(Room::Name64, true) {
        add(&format!("HEADER_BUILD_ID {} before 6.12", entry.name), &entry, &[]);
    }
    for entry in build_id::usual(Room::Record8, true) {
        add(&format!("HEADER_BUILD_ID {}, no trailer", entry.name), &entry, &[]);
    }
    for entry in build_id::usual(Room::Record8, true) {
        let name = format!("HEADER_BUILD_ID {}, trailer", entry.name);
        build_id_with_trailer(s, &name, &entry);
    }
}

/// Writes a HEADER_BUILD_ID record as `perf inject` does since 6.12, with a trailer.
pub fn build_id_with_trailer(s: &mut Scribe, name: &str, entry: &Entry) {
    let misc = entry.misc | if entry.size_byte { SIZE_VALID } else { 0 };
    let body = entry.record(s.big, HEADER_BUILD_ID, &[]);
    s.kernel(name, HEADER_BUILD_ID, misc, |b| b.bytes(&body[8..]));
}

/// Writes the records that are a header and nothing else.
pub fn markers(s: &mut Scribe) {
    s.user("FINISHED_INIT", FINISHED_INIT, 0, |b| b);
    s.user("FINISHED_ROUND", FINISHED_ROUND, 0, |b| b);
}

/// Writes an ID_INDEX record of id, index, CPU and thread.
pub fn id_index(s: &mut Scribe, entries: &[(u64, u64, u64, u64)]) {
    s.user("ID_INDEX", ID_INDEX, 0, |b| {
        b.u64(count(entries)).each(entries, |b, (id, idx, cpu, tid)| b.u64s(&[*id, *idx, *cpu, *tid]))
    });
}

fn id_index_of_guests(s: &mut Scribe) {
    s.user("ID_INDEX of guests", ID_INDEX, 0, |b| {
        let entries = [[1001, 0, 0, u64::MAX], [1002, 1, 1, 4202]];
        let machines = [[0, u64::MAX], [3001, 1]];
        b.u64(count(&entries)).each(&entries, |b, entry| b.u64s(entry)).each(&machines, |b, machine| b.u64s(machine))
    });
    s.user("ID_INDEX empty", ID_INDEX, 0, |b| b.u64(0));
}

/// Writes THREAD_MAP records.
pub fn thread_map(s: &mut Scribe) {
    s.user("THREAD_MAP", THREAD_MAP, 0, |b| {
        // Copied by strncpy: a name of 16 bytes has no NUL.
        let threads: [(u64, &[u8]); 2] = [(4201, b"bash"), (4202, b"sixteen bytes ab")];
        b.u64(count(&threads)).each(&threads, |b, (pid, comm)| b.u64(*pid).room(comm, 16))
    });
    s.user("THREAD_MAP of no thread", THREAD_MAP, 0, |b| b.u64(1).u64(u64::MAX).zeros(16));
}

/// Writes a TIME_CONV record of the newer size.
pub fn time_conv_56(s: &mut Scribe) {
    s.user("TIME_CONV of 56", TIME_CONV, 0, |b| {
        b.u64s(&[31, 0x3e8_0001, 0x1234_5678_9abc]).u64s(&[0x11_2233_4455, 0xff_ffff_ffff]).u8(1).u8(0).zeros(6)
    });
}

fn time_conv(s: &mut Scribe) {
    s.user("TIME_CONV of 32", TIME_CONV, 0, |b| b.u64s(&[31, 0x3e8_0001, 0x1234_5678_9abc]));
    time_conv_56(s);
}

/// Writes BPF_METADATA records.
pub fn bpf_metadata(s: &mut Scribe) {
    s.user("BPF_METADATA", BPF_METADATA, 0, |b| {
        let variables: [(&[u8], &[u8]); 2] = [(b"version", b"1"), (b"commit", b"8d72895")];
        b.room(b"bpf_prog_6deef7357e7b4530_trace", 512)
            .u64(count(&variables))
            .each(&variables, |b, (key, value)| b.room(key, 64).room(value, 256))
    });
}

/// A HEADER_FEATURE record of a section.
pub fn header_feature(big: bool, bit: u32, section: &[u8]) -> Vec<u8> {
    let body = Buf::new(big).u64(bit.into()).bytes(section);
    frame(big, HEADER_FEATURE, 0, &body.bytes)
}

fn features(s: &mut Scribe) {
    for case in feature::cases(s.big).into_iter().filter(|case| case.pipe) {
        let name = format!("HEADER_FEATURE {}", case.name);
        s.user(&name, HEADER_FEATURE, 0, |b| b.u64(case.bit.into()).bytes(&case.section)).swaps = case.swaps;
    }
    s.user("HEADER_FEATURE padded to 8", HEADER_FEATURE, 0, |b| b.u64(3).str("otherbox").zeros(4));
    for last in [32, 35] {
        s.user(&format!("HEADER_FEATURE terminator {last}"), HEADER_FEATURE, 0, |b| b.u64(last));
    }
}

fn compressed(s: &mut Scribe) {
    let mut stream = zstd::Stream::default();
    let comm = |time| {
        let attr = Attr::new(sample_type::TRAILER, "sample_id_all");
        let mut inner = Scribe::new(s.big, attr, Stamp { time, ..Stamp::SOME });
        inner.kernel("", 3, 0, |b| b.u32(1).u32(1).text("compressed")).record.clone()
    };
    // The second record of the stream has no magic: perf never ends the frame.
    let parts = [stream.pack(&comm(1)), stream.pack(&comm(2))];
    for (name, part) in ["first", "later"].into_iter().zip(&parts) {
        s.user(&format!("COMPRESSED, {name}"), COMPRESSED, 0, |b| b.bytes(part)).swaps = false;
        s.user(&format!("COMPRESSED2, {name}"), COMPRESSED2, 0, |b| b.u64(count(part)).bytes(part).pad(8)).swaps =
            false;
    }
}

/// A feature that perf does not know, as a HEADER_FEATURE record.
pub fn unknown_feature(s: &mut Scribe) {
    let record = header_feature(s.big, 60, &island(20));
    s.user("HEADER_FEATURE 60, unknown", HEADER_FEATURE, misc::USER, |b| b.bytes(&record[8..])).swaps = false;
}
