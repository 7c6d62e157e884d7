//! Files in forms that perf does not write today are read correctly.

use std::fs;

use perfdata_core::{
    Endian,
    container_layout::{ContainerLayout, Part},
    feature::FeatureId,
    header::{Magic, WordSize},
    wire::Wire,
};
use perfdata_tests::{
    convert::Whole,
    perf::{self, Question},
    recordings,
    synth::{
        file::{self, File},
        forms,
    },
};

/// Runs a test for both byte orders of all forms.
fn check(test: impl Fn(&str, &File, &Whole)) {
    for big in [false, true] {
        for (name, file) in forms::forms(big) {
            let name = format!(
                "{name}, {}",
                if big { "big-endian" } else { "little-endian" }
            );
            let whole = Whole::read(file.bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
            test(&name, &file, &whole);
        }
    }
}

#[test]
fn events_and_ids_are_read() {
    check(|name, file, whole| {
        let events = &whole.recording.events;
        assert_eq!(events.len(), file.events.len(), "{name}");
        for (read, written) in events.iter().zip(&file.events) {
            assert_eq!(read.ids, written.ids, "{name}");
            assert_eq!(
                read.attr
                    .encode(whole.recording.endian)
                    .expect("it was read"),
                written.attr.bytes(file.big),
                "{name}"
            );
            assert_eq!(read.attr.own_size() as usize, written.attr.room(), "{name}");
            assert_eq!(read.attr.tail.0, written.attr.tail, "{name}");
            assert_eq!(
                read.attr.flags.precise_ip(),
                u64::from(written.attr.has("precise_ip=1")),
                "{name}"
            );
        }
        let types = whole
            .recording
            .event_types
            .iter()
            .map(|entry| entry.event_id);
        assert!(
            types.eq(file.event_types.iter().map(|entry| entry.0)),
            "{name}"
        );
    });
}

#[test]
fn byte_order_and_version_are_recognised() {
    check(|name, file, whole| {
        assert_eq!(whole.recording.endian == Endian::Big, file.big, "{name}");
        assert_eq!(
            whole.recording.magic == Magic::V1,
            file.magic == file::Magic::V1,
            "{name}"
        );
    });
}

#[test]
fn features_are_read() {
    check(|name, file, whole| {
        let mut written = if file.crashed {
            Vec::new()
        } else {
            file.features.clone()
        };
        written.sort_by_key(|feature| feature.0);
        let read: Vec<_> = whole
            .recording
            .features
            .clone()
            .into_iter()
            .map(|(id, bytes)| (id.0, bytes))
            .collect();
        assert_eq!(read, written, "{name}");
        if let Some(section) = whole.recording.feature(FeatureId::HOSTNAME) {
            let section = section.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(
                section.encode(whole.recording.endian).expect("it was read"),
                written[0].1,
                "{name}"
            );
        }
        let ContainerLayout::File(found) = &whole.container_layout else {
            panic!("{name}: not read as a file")
        };
        let is_32 = found.words == WordSize::Bits32;
        assert_eq!(is_32, file.big && file.word == 4, "{name}");
    });
}

#[test]
fn records_are_found() {
    check(|name, file, whole| {
        assert_eq!(whole.stream, file.data, "{name}");
        let ContainerLayout::File(found) = &whole.container_layout else {
            panic!("{name}: not read as a file")
        };
        let place = found
            .place(Part::Data)
            .map_or(file.data_offset(), |place| place.offset);
        assert_eq!(place, file.data_offset(), "{name}");
    });
}

/// The forms are realistic: perf reads them as intended.
#[test]
fn perf_reads_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // perf rejects attributes larger than its own. In a file that was never finished, it assumes
    // that there are no records. It considers bitmaps of 32-bit words only for recordings of the
    // other byte order.
    let refused = |perf: &perf::Perf, file: &File| {
        file.events[0].attr.size > perf.attr_size() || file.crashed || (file.big && file.word == 4)
    };
    for perf in perf::all() {
        for (name, file) in forms::forms(perf.endian == recordings::Endian::Big) {
            if refused(perf, &file) || file.data.is_empty() {
                continue;
            }
            let path = folder.path().join(name.replace(' ', "-"));
            fs::write(&path, file.bytes()).expect("a temporary file");
            let output = perf.ask(Question::Script, &path).expect("perf starts");
            assert!(
                output
                    .stdout
                    .contains("PERF_RECORD_EXIT(4201:4202):(1:4202)"),
                "{perf}, {name}: {}",
                output.stderr
            );
            let header = perf.ask(Question::Header, &path).expect("perf starts");
            let has_hostname = file.features.iter().any(|feature| feature.0 == 3);
            assert_eq!(
                header.stdout.contains("# hostname : recorder"),
                has_hostname,
                "{perf}, {name}: {}",
                header.stdout
            );
        }
    }
}

#[test]
fn perf_reads_bitmaps_of_32_bit_words() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("big-endian.data");
    fs::write(
        &path,
        File {
            word: 4,
            ..file::basic(true)
        }
        .bytes(),
    )
    .expect("a temporary file");
    for perf in perf::all()
        .iter()
        .filter(|perf| perf.endian == recordings::Endian::Little)
    {
        let header = perf.ask(Question::Header, &path).expect("perf starts");
        assert!(
            header.stdout.contains("# hostname : recorder"),
            "{perf}: {}",
            header.stdout
        );
    }
}
