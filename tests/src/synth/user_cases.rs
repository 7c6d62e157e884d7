//! The perf tool's records (types 64..84) except those for hardware tracing and `perf stat`, each
//! in every variant.

use super::attr::{Attr, SIZES, Stamp, sample_type};
use super::bits::{ATTR_FLAGS, AUX_ACTION};
use super::buf::{Buf, island};
use super::build_id::{self, Entry, Room};
use super::kernel;
use super::kind;
use super::record::{Case, Scribe};
use super::user;
use super::{feature, tracing, zstd};

/// Writes every type in every variant.
pub fn cases(s: &mut Scribe) {
    attributes(s);
    pipe_header(s);
    build_ids(s);
    markers(s);
    id_index(s);
    thread_map(s);
    s.user("TIME_CONV of 32", kind::TIME_CONV, 0, |b| {
        user::time_conv(b, TIME_CONV, None)
    });
    time_conv(s);
    bpf_metadata(s);
    s.user("BPF_METADATA without trailer", kind::BPF_METADATA, 0, |b| {
        user::bpf_metadata(b, "prog", &[])
    });
    features(s);
    compressed(s);
}

fn attributes(s: &mut Scribe) {
    let before = s.attr.clone();
    let mut add = |name: &str, misc, attr: Attr, ids: &[u64]| {
        s.attr = attr.clone();
        s.user(
            &format!("HEADER_ATTR {name}"),
            kind::HEADER_ATTR,
            misc,
            |b| user::header_attr(b, &attr, ids),
        )
        .swaps = attr.tail.is_empty();
    };
    for size in SIZES {
        add(&format!("of {size}"), 0, Attr::rich(size), &[1001, 1002]);
    }
    // Bytes after the 144 known ones cannot be swapped.
    add(
        "of 152, not yet invented",
        0,
        Attr::rich(152),
        &[1001, 1002],
    );
    add(
        "of size 0, which is 64",
        0,
        Attr {
            size: 0,
            ..Attr::rich(64)
        },
        &[7],
    );
    // Until 4.16, perf wrote uninitialized data to misc.
    add("stale misc", 0x7f88, Attr::rich(112), &[]);
    for precise_ip in 0..4 {
        let flags = format!("freq precise_ip={precise_ip}");
        add(&flags, 0, Attr::new(sample_type::IP, &flags), &[]);
    }
    for field in ATTR_FLAGS {
        add(field.0, 0, Attr::new(sample_type::IP, field.0), &[]);
    }
    for field in AUX_ACTION {
        let attr = Attr {
            aux_action: field.0.to_owned(),
            ..Attr::new(sample_type::IP, "")
        };
        add(field.0, 0, attr, &[u64::MAX]);
    }
    s.attr = before;
}

/// Writes a HEADER_EVENT_TYPE record.
pub fn event_type(s: &mut Scribe) {
    s.user("HEADER_EVENT_TYPE", kind::HEADER_EVENT_TYPE, 0, |b| {
        user::event_type(b, 0x0102_0304_0506_0708, "cycles")
    });
}

/// Writes a HEADER_TRACING_DATA record, followed by the data, padded to a multiple of 8.
pub fn tracing_data<'a>(s: &'a mut Scribe, name: &str, data: &[u8]) -> &'a mut Case {
    let payload = Buf::new(s.big).bytes(data).pad(8).bytes;
    let size = payload.len() as u32;
    let case = s.user(name, kind::HEADER_TRACING_DATA, 0, |b| b.u32(size).u32(0));
    case.payload = payload;
    case
}

fn pipe_header(s: &mut Scribe) {
    event_type(s);
    tracing_data(
        s,
        "HEADER_TRACING_DATA",
        &tracing::data(tracing::Version::V0_6, false),
    );
    // Before 6.0 the record was 12 bytes long.
    let data = Buf::new(s.big)
        .bytes(&tracing::data(tracing::Version::V0_5, true))
        .pad(8)
        .bytes;
    let size = data.len() as u32;
    s.user(
        "HEADER_TRACING_DATA of 12",
        kind::HEADER_TRACING_DATA,
        0,
        |b| b.u32(size),
    )
    .payload = data;
    // simpleperf pads to 64 bytes.
    let contained = contained_tracing_data(s.big, &tracing::data(tracing::Version::V0_5, false));
    s.user(
        "HEADER_TRACING_DATA of simpleperf",
        kind::HEADER_TRACING_DATA,
        0,
        |b| b.bytes(&contained),
    )
    .swaps = false;
}

/// Returns the body of a HEADER_TRACING_DATA record of simpleperf, which contains the data.
pub fn contained_tracing_data(big: bool, data: &[u8]) -> Vec<u8> {
    let b = Buf::new(big).u32(data.len() as u32);
    b.bytes(&Buf::new(big).bytes(data).pad(64).bytes).bytes
}

fn build_ids(s: &mut Scribe) {
    let forms = [
        ("before 5.11", Room::Name64, false),
        ("before 6.12", Room::Name64, true),
        ("without trailer", Room::Record8, true),
    ];
    for (name, room, size_byte) in forms {
        for entry in build_id::usual(room, size_byte) {
            let name = format!("HEADER_BUILD_ID {} {name}", entry.name);
            s.user(&name, kind::HEADER_BUILD_ID, entry.misc(), |b| entry.put(b));
        }
    }
    for entry in build_id::usual(Room::Record8, true) {
        injected_build_id(s, &entry);
    }
}

/// Writes a HEADER_BUILD_ID record as `perf inject` does since 6.12: with the trailer of the record
/// that caused perf to read the DSO.
pub fn injected_build_id(s: &mut Scribe, entry: &Entry) {
    let name = format!("HEADER_BUILD_ID {} with trailer", entry.name);
    s.kernel(&name, kind::HEADER_BUILD_ID, entry.misc(), |b| entry.put(b));
}

/// Writes the records that consist only of a header.
pub fn markers(s: &mut Scribe) {
    s.user("FINISHED_INIT", kind::FINISHED_INIT, 0, |b| b);
    s.user("FINISHED_ROUND", kind::FINISHED_ROUND, 0, |b| b);
}

fn id_index(s: &mut Scribe) {
    let entries = [[1001, 0, 0, u64::MAX], [1002, 1, u64::MAX, 4202]];
    s.user("ID_INDEX", kind::ID_INDEX, 0, |b| {
        user::id_index(b, &entries, &[])
    });
    let guests = [[0, u64::MAX], [3001, 1]];
    s.user("ID_INDEX of guests", kind::ID_INDEX, 0, |b| {
        user::id_index(b, &entries, &guests)
    });
    s.user("ID_INDEX empty", kind::ID_INDEX, 0, |b| {
        user::id_index(b, &[], &[])
    });
}

/// Writes THREAD_MAP records.
pub fn thread_map(s: &mut Scribe) {
    s.user("THREAD_MAP", kind::THREAD_MAP, 0, |b| {
        user::thread_map(b, &[(4201, "bash"), (4202, "sixteen bytes ab")])
    });
    s.user("THREAD_MAP of no thread", kind::THREAD_MAP, 0, |b| {
        user::thread_map(b, &[(u64::MAX, "")])
    });
}

/// Writes a TIME_CONV record of the newer size.
pub fn time_conv(s: &mut Scribe) {
    s.user("TIME_CONV of 56", kind::TIME_CONV, 0, |b| {
        user::time_conv(
            b,
            TIME_CONV,
            Some(([0x11_2233_4455, 0xff_ffff_ffff], [1, 0])),
        )
    });
}

const TIME_CONV: [u64; 3] = [31, 0x3e8_0001, 0x1234_5678_9abc];

/// Writes a BPF_METADATA record. perf reserves space for a trailer after it, as after kernel
/// records that it synthesizes, and fills it with zeros.
pub fn bpf_metadata(s: &mut Scribe) {
    let stamp = std::mem::replace(&mut s.stamp, Stamp::ZERO);
    s.kernel("BPF_METADATA", kind::BPF_METADATA, 0, |b| {
        user::bpf_metadata(
            b,
            "bpf_prog_6deef7357e7b4530_trace",
            &[("version", "1"), ("name", "\"synthetic\"")],
        )
    });
    s.stamp = stamp;
}

fn features(s: &mut Scribe) {
    for case in feature::cases(s.big).into_iter().filter(|case| case.pipe) {
        let name = format!("HEADER_FEATURE {}", case.name);
        s.user(&name, kind::HEADER_FEATURE, 0, |b| {
            user::header_feature(b, case.bit, &case.section)
        });
    }
    for last in [32, 35] {
        let name = format!("HEADER_FEATURE terminator {last}");
        s.user(&name, kind::HEADER_FEATURE, 0, |b| {
            user::header_feature(b, last, &[])
        });
    }
    s.user("HEADER_FEATURE 60, unknown", kind::HEADER_FEATURE, 0, |b| {
        user::header_feature(b, 60, &island(20))
    })
    .swaps = false;
}

fn compressed(s: &mut Scribe) {
    let mut stream = zstd::Stream::default();
    let mut part = |time| {
        let mut inner = Scribe::new(
            s.big,
            s.attr.clone(),
            Stamp {
                time,
                ..Stamp::SOME
            },
        );
        stream.pack(
            &inner
                .kernel("", kind::COMM, 0, |b| kernel::comm(b, (1, 1), "compressed"))
                .record,
        )
    };
    // The second record has no magic: perf never ends the frame.
    let parts = [("first", part(1)), ("later", part(2))];
    for (name, part) in &parts {
        for (kind, what) in [
            (kind::COMPRESSED, "COMPRESSED"),
            (kind::COMPRESSED2, "COMPRESSED2"),
        ] {
            s.user(&format!("{what}, {name}"), kind, 0, |b| {
                user::compressed(b, kind, part)
            })
            .swaps = false;
        }
    }
}
