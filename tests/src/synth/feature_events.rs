//! Features about the events: EVENT_DESC, GROUP_DESC, BRANCH_STACK, AUXTRACE and BUILD_ID.

use super::attr::{Attr, SIZES, sample_type};
use super::buf::{Buf, count, count32, island};
use super::build_id::{self, Entry, HOST, Room};
use super::feature::Features;
use super::kind;
use super::record::misc;

/// `HEADER_BUILD_ID`.
pub const BUILD_ID: u32 = 2;
/// `HEADER_EVENT_DESC`.
pub const EVENT_DESC: u32 = 12;
/// `HEADER_BRANCH_STACK`.
pub const BRANCH_STACK: u32 = 15;
/// `HEADER_GROUP_DESC`.
pub const GROUP_DESC: u32 = 17;
/// `HEADER_AUXTRACE`.
pub const AUXTRACE: u32 = 18;

/// An event: its name, attribute and IDs.
#[derive(Clone, Debug)]
pub struct Event {
    /// The name as passed to `-e`.
    pub name: String,
    /// The attribute that was opened.
    pub attr: Attr,
    /// One ID per instance (CPU, thread).
    pub ids: Vec<u64>,
}

/// Appends the EVENT_DESC section: every attribute again, with names.
pub fn event_desc(b: Buf, events: &[Event]) -> Buf {
    let size = events.first().map_or(144, |event| event.attr.room());
    b.u32(count32(events))
        .u32(size as u32)
        .each(events, |b, event| {
            let attr = event.attr.bytes(b.big);
            assert_eq!(
                attr.len(),
                size,
                "all attributes of a section are of one size"
            );
            b.bytes(&attr)
                .u32(count32(&event.ids))
                .str(&event.name)
                .u64s(&event.ids)
        })
}

/// Appends the GROUP_DESC section: name, leader's index and number of members of each group.
pub fn group_desc(b: Buf, groups: &[(&str, u32, u32)]) -> Buf {
    b.u32(count32(groups))
        .each(groups, |b, (name, leader, members)| {
            b.str(name).u32(*leader).u32(*members)
        })
}

/// Appends the AUXTRACE section: the offsets of AUXTRACE records in the file. The size of each is
/// that of the record without the trace after it.
pub fn auxtrace_index(b: Buf, offsets: &[u64]) -> Buf {
    b.u64(count(offsets))
        .each(offsets, |b, offset| b.u64(*offset).u64(48))
}

/// Adds every section in every revision.
pub fn cases(f: &mut Features) {
    build_ids(f);
    for size in SIZES {
        let event = |name: &str, ids: &[u64]| Event {
            name: name.to_owned(),
            attr: Attr::rich(size),
            ids: ids.to_vec(),
        };
        f.add(
            EVENT_DESC,
            &format!("EVENT_DESC, attributes of {size}"),
            |b| {
                event_desc(
                    b,
                    &[event("cycles:u", &[1001, 1002]), event("sched:demo", &[])],
                )
            },
        );
    }
    f.add(EVENT_DESC, "EVENT_DESC empty", |b| event_desc(b, &[]));
    f.add(EVENT_DESC, "EVENT_DESC precise_ip 2", |b| {
        let attr = Attr::new(sample_type::IP, "precise_ip=2");
        event_desc(
            b,
            &[Event {
                name: "cycles:pp".into(),
                attr,
                ids: vec![1],
            }],
        )
    });
    f.add(BRANCH_STACK, "BRANCH_STACK", |b| b);
    f.add(GROUP_DESC, "GROUP_DESC", |b| {
        group_desc(b, &[("{anon_group}", 0, 2), ("mine", 2, 3)])
    });
    f.add(GROUP_DESC, "GROUP_DESC of perf stat", |b| {
        group_desc(b, &[])
    });
    f.add(AUXTRACE, "AUXTRACE", |b| {
        auxtrace_index(b, &[0x1_0000_0238, 0x1_0000_0400])
    });
    f.add(AUXTRACE, "AUXTRACE empty", |b| auxtrace_index(b, &[]));
}

fn build_ids(f: &mut Features) {
    let big = f.big;
    let forms = [
        ("before 5.11", Room::Name64, false),
        ("before 6.12", Room::Name64, true),
        ("since 6.12", Room::Name8, true),
    ];
    for (name, room, size_byte) in forms {
        let section = build_id::section(big, &build_id::usual(room, size_byte));
        f.add(BUILD_ID, &format!("BUILD_ID {name}"), |b| b.bytes(&section));
    }
    f.add(BUILD_ID, "BUILD_ID without pid", |b| {
        b.bytes(&build_id::section_without_pid(big))
    });
    // Some writers use the type of the record in entries of the section.
    f.add(BUILD_ID, "BUILD_ID of type 67", |b| {
        let entry = Entry {
            misc: misc::USER,
            pid: HOST,
            build_id: &island(20),
            size_byte: true,
            name: "/usr/bin/true",
            room: Room::Name64,
        };
        b.bytes(&entry.framed(big, kind::HEADER_BUILD_ID))
    });
    f.add(BUILD_ID, "BUILD_ID empty", |b| b);
}
