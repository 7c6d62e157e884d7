//! Records in the order of time.

use std::fs;
use std::path::{Path, PathBuf};

use perfdata_convert::io::Input;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_convert::verify::{Report, Severity};
use perfdata_core::attr::{Attr, AttrFlags, EventType, SampleType};
use perfdata_core::feature::FeatureId;
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{
    Auxtrace, Body, Comm, NoBody, RawRecord, Record, RecordType, SampleId,
};
use perfdata_core::wire::Text;
use perfdata_core::{Endian as Order, Event, Recording as Model};
use perfdata_edit::slice::{Select, Slice};
use perfdata_edit::sort::Sort;
use perfdata_tests::convert::{Converted, Whole, convert, in_shell};
use perfdata_tests::generate::{Generator, Mix};
use perfdata_tests::is_thorough;
use perfdata_tests::recordings;
use perfdata_write::{FilePlan, FileWriter, PipePlan, PipeWriter, RecordSink};

/// The note for a recording that is in order.
const IN_ORDER: &str = "the records are in the order of time already";

/// A record with its payload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    /// The time by which perf queues it.
    time: Option<u64>,
    kind: u32,
    bytes: Vec<u8>,
}

impl Piece {
    fn is_round(&self) -> bool {
        self.kind == RecordType::FINISHED_ROUND.0
    }
}

/// Returns the records of a recording, decompressed.
fn pieces(path: &Path) -> Result<Vec<Piece>, String> {
    let plain = convert(path, None, vec![Box::new(Decompress::default())]);
    let plain = plain.map_err(|error| error.to_string())?;
    let whole = Whole::read_file(&plain.path())?;
    let ends = whole.records.iter().skip(1).map(|&(at, _)| at);
    let spans = whole
        .records
        .iter()
        .zip(ends.chain([whole.records_end]))
        .map(|(&(from, _), to)| &whole.stream[from..to]);
    Ok(spans
        .map(|bytes| {
            let raw = RawRecord::first(bytes, whole.recording.endian, 0).expect("a record");
            let time = whole.recording.events.time(&raw);
            Piece {
                time: time.filter(|&time| time != 0 && time != u64::MAX),
                kind: raw.kind.0,
                bytes: bytes.to_vec(),
            }
        })
        .collect())
}

/// Delivers records as perf does (tools/perf/util/ordered-events.c). Returns them without
/// FINISHED_ROUND, and the number of records that perf would report as out of order.
fn delivered(pieces: &[Piece]) -> (Vec<Piece>, usize) {
    let (mut queue, mut told) = (Vec::<Piece>::new(), Vec::new());
    let (mut next_flush, mut newest, mut last_flush, mut late) = (0, 0, 0, 0);
    for piece in pieces {
        if let Some(time) = piece.time {
            late += usize::from(time < last_flush);
            let at = queue.partition_point(|other| other.time <= piece.time);
            queue.insert(at, piece.clone());
            newest = newest.max(time);
        } else if piece.is_round() {
            let ready = queue.partition_point(|other| other.time <= Some(next_flush));
            if let Some(last) = queue[..ready].last() {
                last_flush = last.time.unwrap_or(0);
            }
            told.extend(queue.drain(..ready));
            next_flush = newest;
        } else {
            told.push(piece.clone());
        }
    }
    told.extend(queue);
    (told, late)
}

fn sorted(path: &Path, sort: Sort) -> Result<Converted, String> {
    convert(path, None, vec![Box::new(sort)]).map_err(|error| error.to_string())
}

fn is_noted(converted: &Converted) -> bool {
    converted.summary.notes.iter().any(|note| note == IN_ORDER)
}

fn errors_of(path: &Path) -> Vec<String> {
    let report = Input::open(path).and_then(Report::of).expect("a recording");
    let errors = report.findings.into_iter();
    errors
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| finding.meaning)
        .collect()
}

/// Checks all properties of the sorted recording. Returns whether the input was in order.
fn check(path: &Path) -> Result<bool, String> {
    let output = sorted(path, Sort::new())?;
    let (before, after) = (pieces(path)?, pieces(&output.path())?);
    let times: Vec<u64> = before.iter().filter_map(|piece| piece.time).collect();
    let is_sorted = times.is_sorted();
    let is_file = path.is_file();
    if is_noted(&output) != is_sorted {
        return Err(format!("the note is wrong: {:?}", output.summary.notes));
    }
    if is_sorted {
        let same = !is_file || output.bytes() == fs::read(path).expect("the input");
        return if same {
            Ok(true)
        } else {
            Err("it was in order, but the output differs".to_owned())
        };
    }
    if !after.iter().filter_map(|piece| piece.time).is_sorted() {
        return Err("it is not in order".to_owned());
    }
    let all = |pieces: &[Piece]| {
        let mut all: Vec<Piece> = pieces.iter().filter(|p| !p.is_round()).cloned().collect();
        all.sort();
        all
    };
    if all(&before) != all(&after) {
        return Err("records were lost or changed".to_owned());
    }
    let stable = |pieces: &[Piece]| {
        let timed = pieces.iter().filter(|piece| piece.time.is_some());
        let mut timed: Vec<Piece> = timed.cloned().collect();
        timed.sort_by_key(|piece| piece.time);
        timed
    };
    if stable(&before) != stable(&after) {
        return Err("records with equal times were exchanged".to_owned());
    }
    let (was, late) = delivered(&before);
    let (is, still_late) = delivered(&after);
    if still_late > 0 || late == 0 && was != is {
        let at = was.iter().zip(&is).position(|(was, is)| was != is);
        return Err(format!("perf delivers it in another order, from {at:?} on"));
    }
    let (faults, known) = (errors_of(&output.path()), errors_of(path));
    if faults.len() > known.len() {
        return Err(format!(
            "verify finds {faults:?}, and in the input {known:?}"
        ));
    }
    let again = sorted(&output.path(), Sort::new())?;
    if again.bytes() != output.bytes() || !is_noted(&again) {
        return Err("sorting it again changes it".to_owned());
    }
    let small = sorted(path, Sort::with_memory(16 << 10))?;
    if small.bytes() != output.bytes() {
        return Err("the result depends on the memory".to_owned());
    }
    Ok(false)
}

/// For the fixtures, or for all available recordings if `PERFCONV_TEST_ALL` is set.
#[test]
fn recordings_are_sorted() {
    let mut list = recordings::fixtures();
    if is_thorough() {
        list = recordings::all();
    }
    list.retain(|recording| {
        !recording.is_damaged()
            && convert(&recording.path, None, vec![Box::new(Decompress::default())]).is_ok()
    });
    let unsorted = std::sync::atomic::AtomicUsize::new(0);
    recordings::check_all(&list, |recording| {
        if !check(&recording.path)? {
            unsorted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    });
    assert!(unsorted.into_inner() > 10);
}

/// A record of a made recording.
#[derive(Clone, Copy)]
enum Told {
    /// A record with this time; 0 for one that perf does not queue.
    At(u64),
    Round,
    Aux(usize),
}

/// Writes a recording with these records. Each record contains its number.
fn made(folder: &Path, to: ContainerKind, order: Order, told: &[Told]) -> PathBuf {
    let flags = AttrFlags::default()
        .with("sample_id_all", 1)
        .expect("a flag");
    let attr = Attr {
        kind: EventType::SOFTWARE,
        flags,
        sample_type: SampleType(SampleType::IP.0 | SampleType::TIME.0),
        size: Attr::MIN_SIZE,
        ..Attr::default()
    };
    let mut model = Model::new(order);
    model.events.push(Event { attr, ids: vec![7] });
    let path = folder.join("made.data");
    let file = fs::File::create(&path).expect("a file");
    let no_gaps: Vec<u8> = Vec::new();
    match to {
        ContainerKind::File => {
            let plan = FilePlan::standard();
            let mut writer = FileWriter::begin(file, plan, &model, &no_gaps).expect("a writer");
            put(&mut writer, &model, told);
            writer.finish(&model).expect("a file");
        }
        ContainerKind::Pipe => {
            let plan = PipePlan::standard(&model, PipePlan::END);
            let mut writer = PipeWriter::begin(file, plan, &model).expect("a writer");
            put(&mut writer, &model, told);
            writer.finish().expect("a pipe");
        }
    }
    path
}

fn put(writer: &mut dyn RecordSink, model: &Model, told: &[Told]) {
    for (number, told) in told.iter().enumerate() {
        let number = number as u32;
        let (kind, body, time, payload) = match *told {
            Told::At(time) => {
                let comm = Comm {
                    pid: number,
                    tid: number,
                    comm: Text::padded(b"made", 8),
                };
                (RecordType::COMM, Body::Comm(comm), Some(time), None)
            }
            Told::Round => (
                RecordType::FINISHED_ROUND,
                Body::FinishedRound(NoBody {}),
                None,
                None,
            ),
            Told::Aux(size) => {
                let piece = Auxtrace {
                    size: size as u64,
                    offset: 0,
                    reference: u64::from(number),
                    idx: 0,
                    tid: u32::MAX,
                    cpu: 0,
                    reserved: 0,
                };
                let payload = vec![number as u8; size];
                (
                    RecordType::AUXTRACE,
                    Body::Auxtrace(piece),
                    None,
                    Some(payload),
                )
            }
        };
        let sample_id = time.map(|time| SampleId {
            tid: None,
            time: Some(time),
            id: None,
            stream_id: None,
            cpu: None,
            identifier: None,
        });
        let record = Record {
            kind,
            misc: 0,
            body,
            tail: Vec::new(),
            sample_id,
        };
        let bytes = record
            .encode_for(&model.events, model.endian)
            .expect("a record");
        let raw = RawRecord::first(&bytes, model.endian, 0).expect("a record");
        writer.record(&raw).expect("it is written");
        if let Some(payload) = payload {
            writer.payload(&payload).expect("it is written");
        }
    }
}

/// Returns the numbers of the records, and `None` for a FINISHED_ROUND.
fn numbers(path: &Path, order: Order) -> Vec<Option<u32>> {
    let number = |piece: Piece| {
        let at = if piece.kind == RecordType::AUXTRACE.0 {
            24
        } else {
            8
        };
        let word: [u8; 8] = piece.bytes.get(at..at + 8)?.try_into().ok()?;
        Some(match (order, at) {
            (Order::Little, 8) => u64::from_le_bytes(word) as u32,
            (Order::Little, _) => u64::from_le_bytes(word) as u32,
            (Order::Big, 8) => (u64::from_be_bytes(word) >> 32) as u32,
            (Order::Big, _) => u64::from_be_bytes(word) as u32,
        })
    };
    let pieces = pieces(path).expect("a recording");
    pieces
        .into_iter()
        .map(|piece| {
            if piece.is_round() {
                None
            } else {
                number(piece)
            }
        })
        .collect()
}

/// Records that perf does not queue stay where perf delivers them: after the records up to the
/// latest time before the last but one FINISHED_ROUND.
#[test]
fn records_without_a_time_stay_where_perf_delivers_them() {
    use Told::{At, Aux, Round};
    let told = [
        At(20),
        At(0),
        At(10),
        Round,
        Aux(5000),
        At(30),
        At(15),
        Round,
        At(0),
        Aux(8),
        At(25),
        At(40),
        Round,
        At(0),
        At(20 + 1_000),
    ];
    let expected = [
        Some(1),
        Some(4),
        Some(2),
        Some(6),
        Some(0),
        None,
        None,
        Some(8),
        Some(9),
        Some(10),
        Some(5),
        None,
        None,
        Some(13),
        Some(11),
        Some(14),
        None,
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for order in [Order::Little, Order::Big] {
        for to in [ContainerKind::File, ContainerKind::Pipe] {
            let path = made(folder.path(), to, order, &told);
            assert!(!check(&path).expect("it is sorted"), "{order:?} {to}");
            let output = sorted(&path, Sort::new()).expect("it is sorted");
            assert_eq!(numbers(&output.path(), order), expected, "{order:?} {to}");
        }
    }
}

/// Times that are older than the FINISHED_ROUND records permit are sorted, too.
#[test]
fn rounds_that_are_not_true_do_not_matter() {
    use Told::{At, Round};
    let mut told = vec![At(0)];
    told.extend((0..2000).map(|at| if at % 5 == 4 { Round } else { At(10_000 - at) }));
    told.push(At(0));
    told.push(At(3));
    let folder = tempfile::tempdir().expect("a folder");
    let path = made(folder.path(), ContainerKind::File, Order::Little, &told);
    assert!(!check(&path).expect("it is sorted"));
}

/// Without FINISHED_ROUND records, and with a last record that belongs to the start, all records go
/// through temporary files, in many runs.
#[test]
fn runs_in_files_are_merged() {
    use Told::At;
    let mut random = 1u64;
    let mut told: Vec<Told> = Vec::new();
    for _ in 0..40_000 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        told.push(At(1 + (random >> 50)));
    }
    told.push(Told::Aux(100_000));
    told.push(At(1));
    let folder = tempfile::tempdir().expect("a folder");
    let path = made(folder.path(), ContainerKind::File, Order::Big, &told);
    assert!(!check(&path).expect("it is sorted"));
    let output = sorted(&path, Sort::with_memory(1 << 20)).expect("it is sorted");
    assert_eq!(numbers(&output.path(), Order::Big)[0], Some(40_000));
}

/// Sessions of several CPUs with records that perf does not queue between them.
#[test]
fn perf_delivers_in_the_same_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut state = 7u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(99);
        (state >> 33) % below
    };
    for case in 0..30 {
        let mut told = Vec::new();
        let mut start = 1000;
        for _ in 0..random(12) {
            // Each CPU's records of this round; those of one round overlap with the next one.
            for cpu in 0..4 {
                let mut time = start + cpu;
                for _ in 0..random(20) {
                    time += 4 * (1 + random(10));
                    told.push(Told::At(time));
                    match random(12) {
                        0 => told.push(Told::At(0)),
                        1 => told.push(Told::Aux(random(3000) as usize)),
                        2 => told.push(Told::At(u64::MAX)),
                        _ => {}
                    }
                }
            }
            told.push(Told::Round);
            start += 400;
            if random(4) == 0 {
                told.push(Told::At(0));
            }
        }
        let path = made(folder.path(), ContainerKind::File, Order::Little, &told);
        check(&path).unwrap_or_else(|why| panic!("case {case}: {why}"));
    }
}

/// Large generated recordings, also compressed ones and streams.
#[test]
fn generated_recordings_are_sorted() {
    let folder = tempfile::tempdir().expect("a folder");
    for mix in [Mix::System, Mix::Events, Mix::Compressed] {
        let path = folder.path().join("generated.data");
        let file = fs::File::create(&path).expect("a file");
        let mut generator = Generator::new(mix, 6 << 20);
        if mix == Mix::Events {
            generator.endian = Order::Big;
            generator.pipe(file).expect("a pipe");
        } else {
            generator.file(file).expect("a file");
        }
        assert!(!check(&path).expect("it is sorted"), "{}", mix.name());
    }
}

/// Compressed records are compressed again, at the same level and as records of the same type.
#[test]
fn compressed_recordings_stay_compressed() {
    let path = recordings::fixture("6.1-s390x-file-z").path;
    let output = sorted(&path, Sort::new()).expect("it is sorted");
    let kinds = |path: &Path| {
        let whole = Whole::read_file(path).expect("a recording");
        let mut kinds: Vec<u32> = whole.records.iter().map(|(_, kind)| kind.0).collect();
        kinds.retain(|kind| RecordType(*kind).is_compressed());
        kinds.dedup();
        let level = whole
            .recording
            .features
            .contains_key(&FeatureId::COMPRESSED);
        (kinds, level)
    };
    assert!(!is_noted(&output));
    assert_eq!(kinds(&output.path()), kinds(&path));
    assert!(kinds(&path).1 && output.bytes().len() < fs::read(&path).expect("it").len() * 11 / 10);
    let stages: Vec<Box<dyn Stage>> = vec![Box::new(Decompress::default()), Box::new(Sort::new())];
    let plain = convert(&path, None, stages).expect("it is sorted");
    assert_eq!(kinds(&plain.path()), (vec![], false));
}

/// One pass with several conversions gives the same records as one pass for each.
#[test]
fn one_pass_is_several_passes() {
    let swap = || Box::new(Swap::new(Target::Other, Unknown::Error)) as Box<dyn Stage>;
    let sort = || Box::new(Sort::new()) as Box<dyn Stage>;
    for name in [
        "6.1-s390x-file-multi",
        "7.2-x86_64-file-z",
        "6.1-s390x-pipe-multi",
    ] {
        let path = recordings::fixture(name).path;
        for to in [ContainerKind::File, ContainerKind::Pipe] {
            let first = convert(&path, None, vec![sort()]).expect("it is sorted");
            let second = convert(&first.path(), Some(to), vec![swap()]).expect("it is swapped");
            let once = convert(&path, Some(to), vec![sort(), swap()]).expect("it is converted");
            let expected = pieces(&second.path()).expect("a recording");
            assert!(
                pieces(&once.path()).expect("a recording") == expected,
                "{name} {to}"
            );
            let other = convert(&path, Some(to), vec![swap(), sort()]).expect("it is converted");
            assert!(
                pieces(&other.path()).expect("a recording") == expected,
                "{name} {to}"
            );
            let stages = vec![
                Box::new(Decompress::default()) as Box<dyn Stage>,
                sort(),
                swap(),
                Box::new(Compress::new(RecordType::COMPRESSED2, 1)),
            ];
            let packed = convert(&path, Some(to), stages).expect("it is converted");
            assert!(
                pieces(&packed.path()).expect("a recording") == expected,
                "{name} {to}"
            );
        }
    }
}

/// perf delivers the records of a sorted slice in the same order, whether one pass makes it or two.
#[test]
fn slices_are_sorted() {
    let slice = || {
        let mut select = Select::default();
        select.times = Some("20%-70%".parse().expect("a range"));
        Box::new(Slice::new(select)) as Box<dyn Stage>
    };
    for name in ["6.1-s390x-file-multi", "7.2-x86_64-file-z"] {
        let path = recordings::fixture(name).path;
        let part = convert(&path, None, vec![slice()]).expect("it is sliced");
        let twice = sorted(&part.path(), Sort::new()).expect("it is sorted");
        let stages = vec![slice(), Box::new(Sort::new()) as Box<dyn Stage>];
        let once = convert(&path, None, stages).expect("it is converted");
        let before = pieces(&path).expect("a recording").len();
        let [part, once, twice] =
            [&part, &once, &twice].map(|made| pieces(&made.path()).expect("a recording"));
        assert!(once.iter().filter_map(|piece| piece.time).is_sorted());
        assert!(part.len() < before, "{name}");
        assert!(delivered(&once) == delivered(&part), "{name}");
        assert!(delivered(&once) == delivered(&twice), "{name}");
    }
}

/// Attributes between the records of a stream, or after them.
#[test]
fn late_attributes_come_with_their_stream() {
    let path = recordings::fixture("6.1-s390x-pipe-multi").path;
    let bytes = fs::read(&path).expect("a fixture");
    let whole = Whole::read(bytes.clone()).expect("a recording");
    let head = bytes.len() - whole.stream.len();
    let mut metadata = Vec::new();
    let mut at = 16;
    while at < head {
        let raw = RawRecord::first(&bytes[at..], whole.recording.endian, 0).expect("a record");
        metadata.push(raw.bytes);
        at += raw.bytes.len();
    }
    let mut between = bytes[..16].to_vec();
    let ends = whole.records.iter().skip(1).map(|&(at, _)| at);
    let mut rest = metadata.iter();
    for (&(from, _), to) in whole.records.iter().zip(ends.chain([whole.stream.len()])) {
        between.extend_from_slice(&whole.stream[from..to]);
        between.extend_from_slice(rest.next().copied().unwrap_or_default());
    }
    let behind = [&bytes[..16], &whole.stream, &bytes[16..head]].concat();
    let folder = tempfile::tempdir().expect("a folder");
    let times = |path: &Path| -> Vec<Piece> {
        let output = sorted(path, Sort::new()).expect("it is sorted");
        let all = pieces(&output.path()).expect("a recording");
        let timed = all.into_iter().filter(|piece| piece.time.is_some());
        timed.collect()
    };
    let expected = times(&path);
    assert!(expected.len() > 100 && expected.iter().map(|piece| piece.time).is_sorted());
    for late in [behind, between] {
        let other = folder.path().join("late.data");
        fs::write(&other, late).expect("a file");
        assert!(times(&other) == expected);
    }
}

/// A stage that changes times after the recording was read ahead is refused instead of a wrong
/// order.
#[test]
fn changed_times_are_refused() {
    use Told::{At, Round};
    struct Change;
    impl Stage for Change {
        fn record(
            &mut self,
            record: &RawRecord<'_>,
            next: &mut perfdata_convert::pipeline::Link<'_>,
        ) -> perfdata_convert::Result<()> {
            let layout = next.recording().events.layout_of(record);
            let mut changed = Record::decode(record, &layout)?;
            if let Some(time) = changed.sample_id.as_mut().and_then(|id| id.time.as_mut())
                && *time == 500
            {
                *time = 1;
            }
            next.write(&changed)
        }
    }
    let told = [
        At(20),
        At(10),
        Round,
        At(40),
        Round,
        At(50),
        Round,
        At(0),
        At(500),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let path = made(folder.path(), ContainerKind::File, Order::Little, &told);
    let stages: Vec<Box<dyn Stage>> = vec![Box::new(Change), Box::new(Sort::new())];
    let error = convert(&path, None, stages).expect_err("it is refused");
    assert!(
        error.to_string().contains("its time was changed"),
        "{error}"
    );
}

#[test]
fn the_command_sorts_files_streams_and_directories() {
    let folder = tempfile::tempdir().expect("a folder");
    let fixture = |name: &str| recordings::fixture(name).path.display().to_string();
    let (file, pipe) = (
        fixture("6.1-s390x-file-multi"),
        fixture("6.1-s390x-pipe-multi"),
    );
    let directory = fixture("6.1-s390x-file-threads");
    let script = format!(
        "set -e
        perfconv --sort {file} -o file 2>&1
        perfconv convert --sort file -o again 2>&1; cmp file again
        cat {pipe} | perfconv --sort - -o stream -q; perfconv --sort {pipe} -o stream2 -q; cmp stream stream2
        cat {pipe} | perfconv pipe2file --sort - -o piped -q; perfconv verify -q piped
        perfconv --sort {directory} -o merged -q; perfconv verify -q merged
        perfconv --sort --to dir {directory} -o dir 2>&1 || echo refused $?"
    );
    let output = in_shell(folder.path(), &script);
    assert!(output.success(), "{}{}", output.stdout, output.stderr);
    assert_eq!(
        output.stdout.matches(IN_ORDER).count(),
        1,
        "{}",
        output.stdout
    );
    assert!(
        output.stdout.contains("refused 1") && output.stdout.contains("sorting"),
        "{}",
        output.stdout
    );
}
