//! `perfconv extract-aux`: the raw AUX data of a recording, and the index file.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use perfdata_core::{
    feature::FeatureId,
    header::ContainerKind,
    read::StreamItem,
    record::{Body, RawRecord, Record, RecordType},
};
use perfdata_tests::{
    convert::{Whole, convert, open, perfconv},
    perf,
    recordings::{self, Recording},
    synth::{
        Buf, auxtrace,
        auxtrace::Origin,
        buf::island,
        build_id,
        feature_events::{self, Event},
        feature_system,
        file::{File, Magic},
        kernel, kind,
        pipe::Pipe,
        record::{Scribe, misc, stream},
        sample_cases, sink, user,
    },
};
use serde_json::Value;
use tempfile::TempDir;

/// Runs `perfconv extract-aux`.
fn run(input: &Path, output: &Path, options: &[&str]) -> Output {
    let mut command = perfconv();
    command
        .arg("extract-aux")
        .arg(input)
        .arg("-o")
        .arg(output)
        .args(options);
    command.output().expect("perfconv runs")
}

/// The result of a successful run: a folder, its index, and the messages.
struct Extracted {
    folder: TempDir,
    index: Value,
    said: String,
}

impl Extracted {
    fn of_file(input: &Path, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = run(input, &folder.path().join("aux"), options);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {said}", input.display());
        let index = fs::read(folder.path().join("aux/index.json")).expect("the index");
        let index = serde_json::from_slice(&index).expect("the index is JSON");
        Extracted {
            folder,
            index,
            said,
        }
    }

    fn of(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("input");
        fs::write(&path, bytes).expect("a temporary file");
        Self::of_file(&path, &[])
    }

    fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join("aux").join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn queues(&self) -> &[Value] {
        self.index["queues"].as_array().expect("a list")
    }

    /// Returns the bytes of the only queue.
    fn only(&self) -> Vec<u8> {
        assert_eq!(self.queues().len(), 1);
        self.file(self.queues()[0]["file"].as_str().expect("a name"))
    }

    /// Returns `fields` of the blocks of the only queue.
    fn pieces(&self, fields: &[&str]) -> Vec<Value> {
        let pieces = self.queues()[0]["pieces"].as_array().expect("a list");
        pieces
            .iter()
            .map(|piece| fields.iter().map(|field| piece[field].clone()).collect())
            .collect()
    }

    fn by_cpu(&self) -> BTreeMap<i64, Vec<u8>> {
        let file = |queue: &Value| self.file(queue["file"].as_str().expect("a name"));
        self.queues()
            .iter()
            .map(|queue| (queue["cpu"].as_i64().expect("a number"), file(queue)))
            .collect()
    }
}

/// Returns the AUX data of each CPU, found only by the sizes of records.
fn walked(recording: &Path) -> BTreeMap<i64, Vec<u8>> {
    let bytes = fs::read(recording).expect("a recording");
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    assert_eq!(&bytes[..8], b"PERFILE2");
    let (mut at, end) = if word(8) == 16 {
        (16, bytes.len())
    } else {
        (word(40) as usize, (word(40) + word(48)) as usize)
    };
    let mut found: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
    while at < end {
        let size = usize::from(u16::from_le_bytes([bytes[at + 6], bytes[at + 7]]));
        let behind = at + size;
        let payload = match half(at) {
            71 => word(at + 8) as usize,
            66 => half(at + 8) as usize,
            _ => 0,
        };
        if half(at) == 71 {
            let cpu = i64::from(half(at + 40).cast_signed());
            found
                .entry(cpu)
                .or_default()
                .extend_from_slice(&bytes[behind..behind + payload]);
        }
        at = behind + payload;
    }
    found
}

/// Returns the real recordings of Intel PT.
fn intel_pt() -> Vec<Recording> {
    let mut all = recordings::corpus();
    all.retain(|recording| recording.name.contains("intel_pt"));
    all
}

#[test]
fn real_traces_come_out_whole() {
    recordings::check_all(&intel_pt(), |recording| {
        let extracted = Extracted::of_file(&recording.path, &[]);
        let expected = walked(&recording.path);
        assert!(
            expected
                .values()
                .all(|bytes| bytes.starts_with(&[0x02, 0x82].repeat(8))),
            "a PSB packet"
        );
        if extracted.by_cpu() != expected {
            return Err("other bytes".into());
        }
        assert_eq!(extracted.index["auxtrace_info"]["type"], "intel-pt");
        assert_eq!(
            extracted.index["auxtrace_info"]["private"]["tsc_ctc_n"],
            100
        );
        assert_eq!(extracted.index["time_conv"]["time_shift"], 31);
        assert_eq!(extracted.index["features"]["CPUID"], "GenuineIntel,6,78,3");
        let aux = extracted.index["aux_records"].as_array().expect("a list");
        assert!(
            aux.len() > 8 && aux.iter().all(|record| record["queue"].is_u64()),
            "{aux:?}"
        );
        let mmaps = extracted.index["mmaps"].as_array().expect("a list");
        let named = mmaps
            .iter()
            .filter(|map| map["build_id"].is_string())
            .count();
        // The pipe has none.
        assert_eq!(
            named > 60,
            extracted.index["features"].get("CLOCKID").is_none()
                && !recording.name.contains("piped")
        );
        Ok(())
    });
}

#[test]
fn a_stream_is_taken_as_the_file() {
    for recording in intel_pt() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = folder.path().join("aux");
        let (side, other) = (folder.path().join("side"), folder.path().join("other"));
        let mut command = perfconv();
        command
            .args(["extract-aux", "-q", "-", "-o"])
            .arg(&output)
            .arg("--sideband")
            .arg(&side);
        let status = command
            .stdin(fs::File::open(&recording.path).expect("a recording"))
            .status();
        assert!(status.expect("perfconv runs").success());
        let from_file = Extracted::of_file(
            &recording.path,
            &["--sideband", other.to_str().expect("UTF-8")],
        );
        for entry in fs::read_dir(&output).expect("a folder") {
            let name = entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8");
            assert_eq!(
                fs::read(output.join(&name)).expect("a file"),
                from_file.file(&name),
                "{name}"
            );
        }
        assert_eq!(
            fs::read(side).expect("a file"),
            fs::read(other).expect("a file")
        );
    }
}

/// Checks the sideband: all records except AUXTRACE, and no index of them.
fn check_sideband(recording: &Path, sideband: &Path) {
    let mut reader = open(fs::read(recording).expect("a recording")).expect("a recording");
    let (mut expected, mut in_aux) = (Vec::new(), false);
    while let Some(piece) = reader.next().expect("a sound recording") {
        match piece {
            StreamItem::Record(record) => {
                in_aux = record.kind == RecordType::AUXTRACE;
                if !in_aux {
                    expected.extend_from_slice(record.bytes);
                }
            }
            StreamItem::Payload(bytes) if !in_aux => expected.extend_from_slice(bytes),
            _ => {}
        }
    }
    let side = Whole::read_file(sideband).expect("a recording");
    assert!(
        side.stream == expected,
        "{}: other records",
        recording.display()
    );
    let mut features = reader.recording().features.clone();
    features.remove(&FeatureId::AUXTRACE);
    assert_eq!(side.recording.features, features);
}

#[test]
fn the_sideband_is_the_recording_without_the_data() {
    for recording in intel_pt() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let side = folder.path().join("side.data");
        Extracted::of_file(
            &recording.path,
            &["--sideband", side.to_str().expect("UTF-8")],
        );
        check_sideband(&recording.path, &side);
        let script = |perf: &perf::Perf, path: &Path, options: &[&str]| {
            let mut command = perf.command();
            command.args([
                "script",
                "--ns",
                "--show-mmap-events",
                "--show-switch-events",
                "-F",
                "-comm,-sym,-symoff,-dso",
            ]);
            command
                .args(options)
                .arg("-i")
                .arg(path.canonicalize().expect("it is there"));
            perf::run(command).expect("perf runs")
        };
        for perf in perf::all()
            .iter()
            .filter(|perf| perf.endian == recordings::Endian::Little)
        {
            let new = script(perf, &side, &["--no-itrace"]);
            let decoding = script(perf, &side, &[]);
            assert!(
                new.success() && decoding.success(),
                "{perf}: {}{}",
                new.stderr,
                decoding.stderr
            );
            assert_eq!(
                new.stdout.lines().count(),
                decoding.stdout.lines().count(),
                "{perf}"
            );
            // Without decoding, no perf can skip AUX data in a pipe.
            if !recording.name.contains("piped") {
                let old = script(perf, &recording.path, &["--no-itrace"]);
                assert_eq!(tidy(&new.stdout), tidy(&old.stdout), "{perf}");
            }
        }
    }
}

/// Removes the padding of columns. perf since 6.12 makes them as wide as the longest event name so
/// far, including decoded events.
fn tidy(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// Returns the events of a recording of Intel PT on two CPUs.
fn events(bits: u64) -> Vec<Event> {
    vec![Event {
        name: "intel_pt//".into(),
        attr: sample_cases::attr(bits),
        ids: vec![1001, 1002],
    }]
}

const USUAL: u64 = (1 << 16) | 0b111 | (1 << 7);
const AUX: u64 = 1 << 20;

/// Writes the records of a recording: the Intel PT information, the IDs, then those of `more`.
fn records(big: bool, bits: u64, snapshot: u64, more: impl FnOnce(&mut Scribe)) -> Scribe {
    let mut s = Scribe::new(
        big,
        events(bits).remove(0).attr,
        Scribe::standard(big).stamp,
    );
    let mut words = auxtrace::INTEL_PT;
    words[8] = snapshot;
    auxtrace::info(&mut s, "INTEL_PT", 1, |b| b.u64s(&words));
    let ids = [[1001, 0, 0, u64::MAX], [1002, 1, 1, u64::MAX]];
    s.user("ID_INDEX", kind::ID_INDEX, 0, |b| {
        user::id_index(b, &ids, &[])
    });
    more(&mut s);
    s
}

fn file(big: bool, bits: u64, snapshot: u64, more: impl FnOnce(&mut Scribe)) -> Vec<u8> {
    let mut file = File::new(big, events(bits));
    file.data = stream(&records(big, bits, snapshot, more).cases);
    file.bytes()
}

fn piece(s: &mut Scribe, cpu: u32, offset: u64, bytes: &[u8]) {
    let origin = Origin {
        offset,
        reference: s.cases.len() as u64,
        idx: cpu,
        tid: u32::MAX,
        cpu,
    };
    auxtrace::piece(s, "AUXTRACE", origin, bytes);
}

/// Extracts blocks of one CPU in a recording without snapshots.
fn one_cpu(snapshot: u64, pieces: &[(u64, &[u8])]) -> Extracted {
    let [little, big] = [false, true].map(|big| {
        Extracted::of(&file(big, USUAL, snapshot, |s| {
            pieces
                .iter()
                .for_each(|(offset, bytes)| piece(s, 0, *offset, bytes));
        }))
    });
    assert_eq!(
        little.only(),
        big.only(),
        "the order of bytes has no part in it"
    );
    assert_eq!(little.queues(), big.queues());
    assert_eq!(little.queues()[0]["file"], "intel-pt-cpu0.aux");
    assert_eq!(little.queues()[0]["size"], little.only().len());
    little
}

#[test]
fn each_cpu_has_its_file() {
    for big in [false, true] {
        let data = island(64);
        let bytes = file(big, USUAL, 0, |s| {
            piece(s, 0, 0, &data[..16]);
            piece(s, 1, 0x10, &data[16..24]);
            let id = s.stamp.id;
            s.stamp.id = 1002;
            s.kernel("AUX", kind::AUX, 0, |b| kernel::aux(b, 0x18, 8, 1 | 8));
            s.stamp.id = id;
            piece(s, 0, 16, &data[24..48]);
            piece(s, 1, 0x18, &data[48..]);
            auxtrace::piece(
                s,
                "of a thread",
                Origin {
                    offset: 0,
                    reference: 0,
                    idx: 0,
                    tid: 77,
                    cpu: u32::MAX,
                },
                &data[..8],
            );
        });
        let extracted = Extracted::of(&bytes);
        assert_eq!(
            extracted.file("intel-pt-cpu0.aux"),
            [&data[..16], &data[24..48]].concat()
        );
        assert_eq!(
            extracted.file("intel-pt-cpu1.aux"),
            [&data[16..24], &data[48..]].concat()
        );
        assert_eq!(extracted.file("intel-pt-tid77.aux"), data[..8]);
        assert_eq!(
            extracted.index["byte_order"],
            if big { "big-endian" } else { "little-endian" }
        );
        assert_eq!(
            extracted.index["aux_records"][0]["fields"]["flags"],
            serde_json::json!(["TRUNCATED", "COLLISION"])
        );
        assert_eq!(extracted.index["aux_records"][0]["queue"], 1);
        assert!(
            extracted
                .said
                .contains("data was lost (TRUNCATED): 1 AUX record"),
            "{}",
            extracted.said
        );
        assert!(
            extracted.said.ends_with("3 files, 72 bytes of AUX data\n"),
            "{}",
            extracted.said
        );
        let mode = |path: &Path| {
            fs::metadata(path)
                .expect("it is there")
                .permissions()
                .mode()
                & 0o777
        };
        assert_eq!(mode(&extracted.folder.path().join("aux")), 0o700);
        assert_eq!(
            mode(&extracted.folder.path().join("aux/intel-pt-cpu0.aux")),
            0o600
        );
    }
}

#[test]
fn gaps_are_told() {
    let data = island(32);
    let extracted = one_cpu(0, &[(8, &data[..16]), (0x100, &data[16..])]);
    assert_eq!(extracted.only(), data);
    assert_eq!(
        extracted.pieces(&["at", "size", "offset", "gap"]),
        [
            serde_json::json!([0, 16, "0x8", null]),
            serde_json::json!([16, 16, "0x100", 0x100 - 24])
        ]
    );
    assert!(
        extracted.said.contains("232 bytes missing in 1 gap "),
        "{}",
        extracted.said
    );
}

#[test]
fn pieces_come_in_the_order_of_their_offsets() {
    let data = island(64);
    let extracted = one_cpu(
        0,
        &[(32, &data[32..48]), (0, &data[..32]), (48, &data[48..])],
    );
    assert_eq!(extracted.only(), data);
    assert_eq!(
        extracted.pieces(&["at", "size", "offset", "gap", "restart"]),
        [[0, 32], [32, 16], [48, 16]]
            .map(|[at, size]| { serde_json::json!([at, size, format!("{at:#x}"), null, null]) })
    );
}

#[test]
fn what_is_there_twice_comes_once() {
    let data = island(64);
    let extracted = one_cpu(
        0,
        &[
            (0, &data[..32]),
            (16, &data[16..48]),
            (24, &data[24..40]),
            (40, &data[40..]),
        ],
    );
    assert_eq!(extracted.only(), data);
    assert_eq!(
        extracted.pieces(&["at", "size", "overlap"]),
        [[0, 32, 0], [32, 16, 16], [48, 0, 16], [48, 16, 8]].map(
            |[at, size, overlap]| match overlap {
                0 => serde_json::json!([at, size, null]),
                _ => serde_json::json!([at, size, overlap]),
            }
        )
    );
}

/// perf pads the data to a multiple of 8. The offset of the next block shows the actual size.
#[test]
fn padding_is_left_out() {
    let data = island(13);
    let padded = [&data[..5], &[0; 3]].concat();
    let extracted = one_cpu(0, &[(0, &padded), (5, &data[5..])]);
    assert_eq!(extracted.only(), data);
    assert_eq!(
        extracted.pieces(&["at", "size", "padding"]),
        [
            serde_json::json!([0, 5, 3]),
            serde_json::json!([5, 8, null])
        ]
    );
}

#[test]
fn contradictions_are_kept() {
    let data = island(48);
    let extracted = one_cpu(0, &[(0, &data[..32]), (8, &data[32..])]);
    assert_eq!(extracted.only(), data);
    assert_eq!(
        extracted.pieces(&["restart"]),
        [serde_json::json!([null]), serde_json::json!([true])]
    );
    assert!(
        extracted.said.contains("1 piece does not continue"),
        "{}",
        extracted.said
    );
}

/// The offsets of Intel PT snapshots are positions in a circular buffer.
#[test]
fn snapshots_stay_as_they_came() {
    let data = island(80);
    let pieces: [(u64, &[u8]); 4] = [
        (0x40, &data[..32]),
        (0x60, &data[32..48]),
        (0x10, &data[48..]),
        (0x10, &data[48..]),
    ];
    let extracted = one_cpu(1, &pieces);
    assert_eq!(extracted.only(), [&data[..], &data[48..]].concat());
    assert_eq!(
        extracted.pieces(&["restart", "overlap", "gap"]),
        [Value::Null, Value::Null, true.into(), true.into()]
            .map(|restart| serde_json::json!([restart, null, null]))
    );
}

/// perf before 5.14 recorded the whole buffer for every CoreSight snapshot, so each repeats the
/// previous one.
#[test]
fn snapshots_of_coresight_overlap() {
    let data = island(96);
    for big in [false, true] {
        let mut s = Scribe::new(
            big,
            events(USUAL).remove(0).attr,
            Scribe::standard(big).stamp,
        );
        auxtrace::info(&mut s, "CS_ETM", 3, |b| b.u64s(&[0, 11 << 32, 1]));
        for (offset, bytes) in [(0, &data[..64]), (32, &data[32..])] {
            piece(&mut s, 0, offset, bytes);
        }
        // A lower offset and different data: the buffer was allocated again.
        piece(&mut s, 0, 0, &data[8..24]);
        let mut file = File::new(big, events(USUAL));
        file.data = stream(&s.cases);
        let extracted = Extracted::of(&file.bytes());
        assert_eq!(
            extracted.file("cs-etm-cpu0.aux"),
            [&data[..], &data[8..24]].concat()
        );
        assert_eq!(
            extracted.pieces(&["at", "overlap", "restart"]),
            [
                serde_json::json!([0, null, null]),
                serde_json::json!([64, 32, null]),
                serde_json::json!([96, null, true])
            ]
        );
    }
}

/// `perf record --aux-sample`, also with `-z`.
#[test]
fn samples_hold_aux_data() {
    let data = island(48);
    for big in [false, true] {
        let mut s = records(big, USUAL | AUX, 0, |s| {
            for (id, range) in [(1001, 0..16), (1002, 16..24), (1001, 24..48)] {
                s.stamp.id = id;
                s.sample("AUX", |sample| sample.aux = data[range].to_vec());
            }
            s.sample("without", |sample| sample.aux.clear());
        });
        let plain = stream(&s.cases);
        s.cases = sink::compress(big, &s.cases, kind::COMPRESSED2, 100);
        let compressed = stream(&s.cases);
        for (data_section, is_compressed) in [(plain, false), (compressed, true)] {
            let mut file = File::new(big, events(USUAL | AUX));
            file.data = data_section;
            if is_compressed {
                file.set_feature(27, feature_system::compressed(Buf::new(big)).bytes);
            }
            let folder = tempfile::tempdir().expect("a temporary folder");
            let (input, side) = (folder.path().join("input"), folder.path().join("side"));
            fs::write(&input, file.bytes()).expect("a temporary file");
            let extracted =
                Extracted::of_file(&input, &["--sideband", side.to_str().expect("UTF-8")]);
            assert_eq!(
                extracted.file("intel-pt-cpu0.aux"),
                [&data[..16], &data[24..]].concat()
            );
            assert_eq!(extracted.file("intel-pt-cpu1.aux"), data[16..24]);
            assert_eq!(
                extracted.pieces(&["at", "size", "id", "time", "offset"]),
                [
                    serde_json::json!([0, 16, 1001, 1_000_000_007, null]),
                    serde_json::json!([16, 24, 1001, 1_000_002_007, null])
                ]
            );
            check_emptied(&side);
            // The same in a stream.
            let pipe = convert(&input, Some(ContainerKind::Pipe), Vec::new())
                .expect("it fits into a pipe")
                .bytes();
            fs::write(&input, pipe).expect("a temporary file");
            let side = folder.path().join("side of a stream");
            Extracted::of_file(&input, &["--sideband", side.to_str().expect("UTF-8")]);
            check_emptied(&side);
        }
    }
}

/// Checks that the samples are the same with empty AUX fields, and that nothing is compressed.
fn check_emptied(side: &Path) {
    let whole = Whole::read_file(side).expect("a recording");
    let samples = whole
        .records
        .iter()
        .filter(|(_, kind)| *kind == RecordType::SAMPLE);
    assert_eq!(samples.count(), 4);
    assert!(
        !whole
            .recording
            .features
            .contains_key(&FeatureId::COMPRESSED)
    );
    let events = &whole.recording.events;
    for (at, _) in whole
        .records
        .iter()
        .filter(|(_, kind)| *kind == RecordType::SAMPLE)
    {
        let raw =
            RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0).expect("a record");
        let Body::Sample(sample) = Record::decode(&raw, &events.layout_of(&raw))
            .expect("sound")
            .body
        else {
            panic!("no sample");
        };
        assert!(sample.aux.expect("the part").is_empty());
    }
}

/// Without the table of IDs, the queue is determined by the sample's CPU. Fields that a sample does
/// not contain are omitted.
#[test]
fn samples_without_a_table_of_ids_go_by_cpu() {
    let mut file = File::new(false, events(USUAL | AUX));
    let mut s = Scribe::new(
        false,
        file.events[0].attr.clone(),
        Scribe::standard(false).stamp,
    );
    s.sample("AUX", |sample| sample.aux = island(8));
    file.data = stream(&s.cases);
    let extracted = Extracted::of(&file.bytes());
    assert_eq!(extracted.file("unknown-cpu3.aux"), island(8));
    assert_eq!(extracted.queues()[0]["idx"], -1);
}

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

#[test]
fn a_cut_recording_gives_what_it_has() {
    let whole = file(false, USUAL, 0, |s| piece(s, 0, 0, &island(64)));
    let extracted = Extracted::of(&whole[..whole.len() - 24]);
    assert_eq!(extracted.only(), island(64)[..40]);
    assert!(
        extracted.index["damage"][0]
            .as_str()
            .is_some_and(|text| text.contains("payload of a record"))
    );
    assert!(
        extracted.said.contains("payload of a record"),
        "{}",
        extracted.said
    );
}

/// Returns the sorted names of the files in `folder`.
fn names(folder: &Path) -> Vec<String> {
    let name =
        |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name().into_string();
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("a folder")
        .map(|e| name(e).expect("UTF-8"))
        .collect();
    names.sort();
    names
}

#[test]
fn the_directory_appears_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = |name: &str| folder.path().join(name);
    let none = recordings::fixture("6.1-x86_64-file-default").path;
    let failed = |output: &Output, status: i32, text: &str| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(status) && said.contains(text),
            "{said}"
        );
    };
    let side = place("side").display().to_string();
    failed(
        &run(&none, &place("aux"), &["--sideband", &side]),
        1,
        "no AUX data",
    );
    failed(&run(&place("nothing"), &place("aux"), &[]), 2, "nothing");
    assert_eq!(names(folder.path()), [""; 0]);

    fs::write(
        place("input"),
        file(false, USUAL, 0, |s| piece(s, 0, 0, &island(8))),
    )
    .expect("a temporary file");
    assert!(
        run(&place("input"), &place("aux"), &["-q"])
            .status
            .success()
    );
    failed(&run(&place("input"), &place("aux"), &[]), 2, "--force");
    failed(
        &run(&place("input"), &place("input"), &["-f"]),
        2,
        "is not a directory",
    );
    fs::write(place("aux/old.aux"), "").expect("a temporary file");
    assert!(
        run(&place("input"), &place("aux"), &["-f"])
            .status
            .success()
    );
    assert_eq!(names(&place("aux")), ["index.json", "intel-pt-cpu0.aux"]);
    fs::write(place("aux/mine"), "").expect("a temporary file");
    failed(
        &run(&place("input"), &place("aux"), &["-f"]),
        2,
        "mine was not written by a conversion",
    );
    // Nothing of a run that fails late is left, and the old directory stays.
    fs::remove_file(place("aux/mine")).expect("a temporary file");
    failed(&run(&none, &place("aux"), &["-f"]), 1, "no AUX data");
    assert_eq!(names(&place("aux")), ["index.json", "intel-pt-cpu0.aux"]);
    assert_eq!(names(folder.path()), ["aux", "input"]);
}

#[test]
fn a_signal_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut command = perfconv();
    command
        .args(["extract-aux", "-", "-o"])
        .arg(folder.path().join("aux"))
        .stdin(Stdio::piped());
    let mut child = command.spawn().expect("perfconv runs");
    let records = records(false, USUAL, 0, |s| piece(s, 0, 0, &island(64)));
    let pipe = Pipe::new(false, Magic::V2).event(&events(USUAL)[0]);
    let bytes = pipe.terminator(32).records(&records.cases).bytes;
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(&bytes[..bytes.len() - 8])
        .and_then(|()| stdin.flush())
        .expect("perfconv reads");
    let folders = || names(folder.path());
    for _ in 0..1000 {
        if !folders().is_empty() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert!(
        folders().iter().all(|name| name.starts_with(".perfconv-")),
        "{:?}",
        folders()
    );
    let killed = Command::new("kill")
        .arg("-QUIT")
        .arg(child.id().to_string())
        .status()
        .expect("kill runs");
    assert!(killed.success());
    assert!(!child.wait().expect("a child").success());
    assert_eq!(folders(), [""; 0]);
}

/// More buffers than files that can be open at the same time, alternating.
#[test]
fn many_threads_have_a_file_each() {
    let bytes = file(false, USUAL, 0, |s| {
        for round in 0..3_u8 {
            for tid in 1..200 {
                let origin = Origin {
                    offset: u64::from(round) * 8,
                    reference: 0,
                    idx: tid,
                    tid,
                    cpu: u32::MAX,
                };
                auxtrace::piece(s, "AUXTRACE", origin, &[tid as u8 ^ round; 8]);
            }
        }
    });
    let extracted = Extracted::of(&bytes);
    assert_eq!(extracted.queues().len(), 199);
    for tid in 1..200 {
        let expected: Vec<u8> = (0..3).flat_map(|round| [tid as u8 ^ round; 8]).collect();
        assert_eq!(extracted.file(&format!("intel-pt-tid{tid}.aux")), expected);
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

/// Other files in the directory of the data are removed with it.
#[test]
fn a_recording_in_the_directory_of_the_data() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("in"), sink::file(false).bytes()).expect("a temporary file");
    for sideband in ["aux", "aux/side", "./aux/more/side"] {
        let mut command = perfconv();
        command
            .args([
                "extract-aux",
                "in",
                "-o",
                "aux",
                "-f",
                "--sideband",
                sideband,
            ])
            .current_dir(&folder);
        let said = command.output().expect("perfconv runs");
        let error = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{error}");
        assert!(error.contains("choose another path"), "{error}");
        let names: Vec<_> = fs::read_dir(&folder)
            .expect("it is there")
            .map(|e| e.expect("a file").file_name())
            .collect();
        assert_eq!(names, ["in"]);
    }
}
