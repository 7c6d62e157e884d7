//! What the index tells about a recording.

use perfdata_tests::synth::buf::island;
use perfdata_tests::synth::feature_events;
use perfdata_tests::synth::file::{File, Magic};
use perfdata_tests::synth::pipe::Pipe;
use perfdata_tests::synth::record::{Scribe, misc, stream};
use perfdata_tests::synth::{Buf, auxtrace, build_id, kernel, kind, sink};
use serde_json::Value;

use super::{Extracted, USUAL, events, piece, records};

#[test]
fn mappings_have_their_build_ids() {
    let ids = [island(20), island(16)];
    for pipe in [false, true] {
        let entry = |misc, name: &'static str, room| build_id::Entry {
            misc,
            pid: build_id::HOST,
            build_id: &ids[0],
            size_byte: false,
            name,
            room,
        };
        let s = records(false, USUAL, 0, |s| {
            piece(s, 0, 0, &island(8));
            let task = s.stamp.task();
            let place = [0x1000, 0x1000, 0];
            s.kernel("the kernel", kind::MMAP, misc::KERNEL, |b| {
                kernel::mmap(b, task, place, "[kernel.kallsyms]_text")
            });
            s.kernel("by name", kind::MMAP, misc::USER, |b| {
                kernel::mmap(b, task, place, "/bin/a")
            });
            s.kernel("nameless", kind::MMAP, misc::USER, |b| {
                kernel::mmap(b, task, place, "/bin/b")
            });
            s.kernel("with its own", kind::MMAP2, misc::USER | 1 << 14, |b| {
                kernel::mmap2(
                    b,
                    task,
                    place,
                    kernel::Object::BuildId(&ids[1]),
                    [5, 2],
                    "/bin/a",
                )
            });
        });
        let names = [(misc::KERNEL, "[kernel.kallsyms]"), (misc::USER, "/bin/a")];
        let bytes = if pipe {
            let mut pipe = Pipe::new(false, Magic::V2).event(&events(USUAL)[0]);
            pipe = pipe.terminator(32).records(&s.cases);
            for (misc, name) in names {
                let entry = entry(misc, name, build_id::Room::Name64);
                pipe = pipe.record(kind::HEADER_BUILD_ID, misc, entry.put(Buf::new(false)));
            }
            pipe.bytes
        } else {
            let mut file = File::new(false, events(USUAL));
            file.data = stream(&s.cases);
            let entries = names.map(|(misc, name)| entry(misc, name, build_id::Room::Name8));
            file.set_feature(feature_events::BUILD_ID, build_id::section(false, &entries));
            file.bytes()
        };
        let extracted = Extracted::of(&bytes);
        let hex = |id: &[u8]| {
            id.iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        let found = extracted.index["mmaps"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|map| map["build_id"].clone());
        let expected: [Value; 4] = [
            hex(&ids[0]).into(),
            hex(&ids[0]).into(),
            Value::Null,
            hex(&ids[1]).into(),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}

/// For every kind of trace that the independent writer supports, the index contains its words by
/// name.
#[test]
fn every_kind_of_trace_is_described() {
    for big in [false, true] {
        let mut scribe = Scribe::standard(big);
        auxtrace::cases(&mut scribe);
        for info in scribe
            .cases
            .iter()
            .filter(|case| case.kind == kind::AUXTRACE_INFO)
        {
            let mut s = Scribe::new(big, events(USUAL).remove(0).attr, scribe.stamp);
            s.cases.push(info.clone());
            piece(&mut s, 5, 0, &island(16));
            let mut file = File::new(big, events(USUAL));
            file.data = stream(&s.cases);
            let extracted = Extracted::of(&file.bytes());
            let kind = extracted.index["auxtrace_info"]["type"]
                .as_str()
                .expect("a name");
            assert_eq!(
                extracted.file(&format!("{kind}-cpu5.aux")),
                island(16),
                "{}",
                info.name
            );
        }
    }
}

/// The kitchen sink contains an AUXTRACE record and samples with AUX data, among all other records.
#[test]
fn the_kitchen_sink_has_aux_data() {
    for big in [false, true] {
        for bytes in [sink::file(big).bytes(), sink::pipe(big).bytes] {
            let extracted = Extracted::of(&bytes);
            assert!(extracted.queues().len() > 1);
        }
    }
}
