//! Columns of every recording, read back from Parquet files and compared with the samples.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use perfdata_columns::{
    ArrowStream, Options, ParquetTables, Partition, SampleBatches, SampleColumn, Table, TableSink,
    WallClock, export_tables,
};
use perfdata_core::attr::EventType;
use perfdata_core::read::{Options as ReadOptions, RecordSource, RecordingReader};
use perfdata_export::push_text;
use perfdata_session::Samples;
use perfdata_tests::recordings::{self, Recording};

use crate::export::{Counters, counted};

/// Writes all tables of a recording to files in `folder`.
fn export<S: RecordSource>(
    samples: Samples<S>,
    folder: &Path,
    threads: usize,
) -> Result<(), String> {
    let mut tables = ParquetTables::new(threads, |table| {
        let path = folder.join(format!("{}.parquet", table.name()));
        fs::create_dir_all(path.parent().expect("a folder"))?;
        Ok(Box::new(File::create_new(path)?))
    })
    .with_empty_tables(true);
    let options = Options::default().with_recording(Some("id"));
    let summary = export_tables(samples, None, &options, &mut tables);
    let summary = summary.map_err(|error| error.to_string())?;
    tables
        .finish(&summary.metadata)
        .map_err(|error| error.to_string())
}

/// Reads a file, and returns its batches and its metadata.
fn read(path: &Path) -> (Vec<RecordBatch>, BTreeMap<String, String>) {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
    let pairs = reader.metadata().file_metadata().key_value_metadata();
    let pairs = pairs.into_iter().flatten();
    let metadata = pairs.map(|pair| (pair.key.clone(), pair.value.clone().unwrap_or_default()));
    let metadata = metadata.collect();
    let batches = reader.build().expect("a Parquet file");
    let batches = batches.map(|batch| batch.expect("rows"));
    (batches.collect(), metadata)
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a ArrayRef {
    batch
        .column_by_name(name)
        .unwrap_or_else(|| panic!("there is no column {name}"))
}

fn int(array: &ArrayRef, row: usize) -> Option<i64> {
    if array.is_null(row) {
        return None;
    }
    match array.as_primitive_opt::<Int32Type>() {
        Some(numbers) => Some(numbers.value(row).into()),
        None => Some(array.as_primitive::<Int64Type>().value(row)),
    }
}

/// Returns a name or a text.
fn text(array: &ArrayRef, row: usize) -> Option<String> {
    if array.is_null(row) {
        return None;
    }
    if let Some(texts) = array.as_string_opt::<i32>() {
        return Some(texts.value(row).to_owned());
    }
    let names = array.as_dictionary::<Int32Type>();
    let key = usize::try_from(names.keys().value(row)).expect("a key");
    Some(names.values().as_string::<i32>().value(key).to_owned())
}

fn ints(array: &ArrayRef, row: usize) -> Vec<Option<i64>> {
    let list = array.as_list::<i32>().value(row);
    (0..list.len()).map(|at| int(&list, at)).collect()
}

fn texts(array: &ArrayRef, row: usize) -> Vec<Option<String>> {
    let list = array.as_list::<i32>().value(row);
    (0..list.len()).map(|at| text(&list, at)).collect()
}

fn shown(name: &[u8]) -> String {
    let mut text = String::new();
    push_text(&mut text, name);
    text
}

/// Compares a row with the sample that it comes from, and with the event that it counts.
fn check_row(
    batch: &RecordBatch,
    row: usize,
    sample: &perfdata_session::Sample<'_>,
    (event, weight): &(Vec<u8>, u64),
) -> Result<(), String> {
    let number = |name: &str| int(column(batch, name), row);
    let name = |name: &str| text(column(batch, name), row);
    let same = |what: &str, is_same: bool| match is_same {
        true => Ok(()),
        false => Err(format!("row {row}: {what}")),
    };
    same(
        "time",
        number("time") == sample.time().map(|time| time as i64),
    )?;
    let wall = column(batch, "wall").as_primitive::<TimestampMicrosecondType>();
    let wall = wall.is_valid(row).then(|| wall.value(row));
    let clock = WallClock::of(sample.recording());
    let expected = sample.time().and_then(|time| clock?.micros(time));
    same("wall", wall == expected)?;
    same("event", name("event") == Some(shown(event)))?;
    same("period", number("period") == Some(*weight as i64))?;
    let tid = sample.tid();
    same(
        "pid",
        number("pid") == tid.map(|tid| (tid.pid as i32).into()),
    )?;
    same(
        "tid",
        number("tid") == tid.map(|tid| (tid.tid as i32).into()),
    )?;
    same(
        "cpu",
        number("cpu") == sample.cpu().map(|cpu| (cpu as i32).into()),
    )?;
    same("comm", name("comm") == Some(shown(sample.comm())))?;
    let view = sample.sample_view();
    same("ip", number("ip") == view.ip().map(|ip| ip as i64))?;
    same(
        "addr",
        number("addr") == view.addr().map(|addr| addr as i64),
    )?;
    let frames: Vec<_> = sample.frames().collect();
    let addresses = frames.iter().map(|frame| Some(frame.address as i64));
    let callchain = ints(column(batch, "callchain"), row);
    same("callchain", callchain == addresses.collect::<Vec<_>>())?;
    let offsets = frames.iter().map(|frame| {
        // Code of the kernel behind its mapping belongs to its image.
        let frame = sample.behind_kernel(frame).unwrap_or(*frame);
        frame.offset().map(|offset| offset as i64)
    });
    let found = ints(column(batch, "offsets"), row);
    let behind = frames
        .iter()
        .any(|frame| sample.behind_kernel(frame).is_some());
    same("offsets", behind || found == offsets.collect::<Vec<_>>())?;
    let modules = texts(column(batch, "modules"), row);
    let known = frames.iter().map(|frame| frame.mapping.is_some());
    let is_known = modules.iter().map(Option::is_some);
    same("modules", is_known.eq(known))?;
    same("frames", column(batch, "frames").is_null(row))?;
    let kernel = frames
        .iter()
        .take_while(|frame| matches!(frame.mode.0, 1 | 4))
        .count();
    same(
        "kernel_frames",
        number("kernel_frames") == Some(kernel as i64),
    )?;
    same("stack", number("stack").is_some())?;
    same("recording", name("recording").as_deref() == Some("id"))
}

/// Checks all tables of a recording.
fn check(recording: &Recording) -> Result<(), String> {
    let Ok(samples) = Samples::open(&recording.path) else {
        return Ok(());
    };
    let folder = tempfile::tempdir().expect("a folder");
    let exported = export(samples, folder.path(), 2);
    let mut samples = Samples::open(&recording.path).map_err(|error| error.to_string())?;
    let mut rows = 0;
    let mut traced: BTreeMap<String, u64> = BTreeMap::new();
    if let Err(error) = exported {
        // It is the same error.
        loop {
            match samples.next() {
                Ok(Some(_)) => {}
                Ok(None) => return Err(format!("refused: {error}")),
                Err(_) => return Ok(()),
            }
        }
    }
    let (batches, metadata) = read(&folder.path().join("samples.parquet"));
    if metadata.get("perfconv.schema").map(String::as_str) != Some("1") {
        return Err(format!("{metadata:?}"));
    }
    let mut places = batches
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)));
    let mut counters = Counters::new();
    while let Some(sample) = samples.next().map_err(|error| error.to_string())? {
        // A group has a row for each event whose counter increased.
        for counted in counted(&sample, &mut counters).unwrap_or_default() {
            let (batch, row) = places.next().ok_or("there are fewer rows than samples")?;
            check_row(batch, row, &sample, &counted)?;
            rows += 1;
        }
        let has_raw = sample.sample_view().raw().is_some();
        let attr = sample
            .attr()
            .filter(|attr| attr.kind == EventType::TRACEPOINT);
        if attr.is_some() && has_raw {
            *traced.entry(shown(sample.event_name())).or_default() += 1;
        }
    }
    if places.next().is_some() {
        return Err(format!("there are more rows than {rows}"));
    }
    check_side_tables(folder.path(), &samples, rows)?;
    for (event, count) in traced {
        let name = event.replacen(':', "__", 1);
        let path = folder.path().join(format!("tracepoints/{name}.parquet"));
        if path.exists() {
            let (batches, _) = read(&path);
            let found: usize = batches.iter().map(RecordBatch::num_rows).sum();
            if found as u64 != count {
                return Err(format!("{event}: {found} rows of {count} samples"));
            }
        }
    }
    Ok(())
}

fn check_side_tables<S: RecordSource>(
    folder: &Path,
    samples: &Samples<S>,
    rows: u64,
) -> Result<(), String> {
    for table in Table::FIXED {
        let (batches, _) = read(&folder.join(format!("{}.parquet", table.name())));
        let columns = table.columns().iter();
        for batch in &batches {
            let schema = batch.schema();
            let fields = schema.fields().iter();
            let fields: Vec<_> = fields
                .map(|field| (field.name().as_str(), field.data_type().clone()))
                .collect();
            let expected: Vec<_> = columns
                .clone()
                .map(|column| (column.name, column.kind.data_type()))
                .collect();
            if fields != expected {
                return Err(format!("{}: {fields:?}", table.name()));
            }
        }
    }
    let (recordings, _) = read(&folder.join("recordings.parquet"));
    let [recording] = &recordings[..] else {
        return Err("there is more than one batch".into());
    };
    let found = int(column(recording, "samples"), 0);
    if recording.num_rows() != 1 || found != Some(rows as i64) {
        return Err(format!("{found:?} samples of {rows}"));
    }
    let (events, _) = read(&folder.join("events.parquet"));
    let sums = events.iter().flat_map(|batch| {
        let samples = column(batch, "samples");
        (0..batch.num_rows()).map(move |row| int(samples, row).unwrap_or_default())
    });
    let found: i64 = sums.sum();
    let count: usize = events.iter().map(RecordBatch::num_rows).sum();
    if found != rows as i64 || count != samples.recording().events.len() {
        return Err(format!("{count} events with {found} samples of {rows}"));
    }
    let (threads, _) = read(&folder.join("threads.parquet"));
    let count: usize = threads.iter().map(RecordBatch::num_rows).sum();
    if count != samples.session().threads().len() {
        return Err(format!("{count} threads"));
    }
    Ok(())
}

#[cfg_attr(target_endian = "big", ignore = "written on little-endian hosts only")]
#[test]
fn rows_are_the_samples() {
    recordings::check_all(&recordings::fixtures(), check);
}

/// Returns a fixture's table `samples` in one batch, and the other tables.
fn tables_of(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = recordings::fixture(name).path;
    let samples = Samples::open(path).expect("a fixture");
    export(samples, folder.path(), 0).expect("a fixture");
    folder
}

/// The values are those that perf script shows.
#[cfg_attr(target_endian = "big", ignore = "written on little-endian hosts only")]
#[test]
fn values_are_those_of_perf() {
    let name = "6.1-x86_64-file-g";
    let folder = tables_of(name);
    let (batches, metadata) = read(&folder.path().join("samples.parquet"));
    let fixture = recordings::fixture(name);
    let script = fixture.script_text().expect("the text of perf script");
    let script = String::from_utf8_lossy(&script).into_owned();
    // `perf-workload   173    18.750631872:    5025125 cpu-clock: `, then an address in each line.
    let is_sample = |line: &&str| line.contains("cpu-clock:");
    let lines: Vec<&str> = script.lines().filter(is_sample).collect();
    let mut at = 0;
    let mut seen = String::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let time = int(column(batch, "time"), row).expect("a time");
            let _ = write!(
                seen,
                "{:<16}{:>4} {:>5}.{:09}: {:>10} {}: ",
                text(column(batch, "comm"), row).expect("a name"),
                int(column(batch, "tid"), row).expect("a thread"),
                time / 1_000_000_000,
                time % 1_000_000_000,
                int(column(batch, "period"), row).expect("a period"),
                text(column(batch, "event"), row).expect("an event"),
            );
            let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(squeeze(&seen), squeeze(lines[at]));
            seen.clear();
            at += 1;
        }
    }
    assert_eq!(at, lines.len());
    assert_eq!(metadata["perfconv.recording"], "id");
    assert_eq!(metadata["perfconv.symbols"], "none");
    assert!(metadata["perf.cmdline"].contains("record"), "{metadata:?}");
    assert!(
        metadata["perf.osrelease"].starts_with("6.1"),
        "{metadata:?}"
    );
    // perf script shows kernel addresses as they are recorded.
    let first = &batches[0];
    let last = ints(column(first, "callchain"), 1);
    assert_eq!(last[0], Some(0xffff_ffff_8924_f129_u64 as i64));
    let (mappings, _) = read(&folder.path().join("mappings.parquet"));
    let kernel = &mappings[0];
    assert_eq!(
        text(column(kernel, "module"), 0).as_deref(),
        Some("[kernel.kallsyms]")
    );
    assert_eq!(
        int(column(kernel, "start"), 0),
        Some(0xffff_ffff_8880_0000_u64 as i64)
    );
    let workload = (0..kernel.num_rows()).find(|&row| {
        text(column(kernel, "module"), row).as_deref() == Some("/usr/local/bin/perf-workload")
    });
    let row = workload.expect("it is mapped");
    let numbers = ["pid", "start", "end", "pgoff", "prot"];
    let numbers = numbers.map(|name| int(column(kernel, name), row));
    let page = 0x55cf_d445_f000;
    assert_eq!(numbers, [173, page, page + 0x1000, 0x1000, 5].map(Some));
    let (features, _) = read(&folder.path().join("features.parquet"));
    let value = |feature: &str, path: &str| {
        let rows = features.iter().flat_map(|batch| {
            (0..batch.num_rows()).map(move |row| {
                ["feature", "path", "text"].map(|name| text(column(batch, name), row))
            })
        });
        let mut found = rows.filter_map(|[of, at, text]| {
            (of.as_deref() == Some(feature) && at.as_deref() == Some(path)).then_some(text?)
        });
        found.next()
    };
    assert_eq!(value("ARCH", "").as_deref(), Some("x86_64"));
    assert!(value("NRCPUS", "online").is_some());
    assert_eq!(value("CMDLINE", "[1]").as_deref(), Some("record"));
}

/// The fields of tracepoints have the types of their formats.
#[cfg_attr(target_endian = "big", ignore = "written on little-endian hosts only")]
#[test]
fn tracepoints_have_typed_columns() {
    let folder = tables_of("6.1-x86_64-file-tp");
    let tables = fs::read_dir(folder.path().join("tracepoints")).expect("tracepoints");
    let tables: Vec<PathBuf> = tables.map(|file| file.expect("a file").path()).collect();
    assert!(!tables.is_empty());
    let mut names = Vec::new();
    for path in &tables {
        let (batches, _) = read(path);
        let schema = batches[0].schema();
        for field in schema.fields().iter().skip(9) {
            names.push(format!(
                "{} {}: {}",
                path.file_stem().expect("a name").to_string_lossy(),
                field.name(),
                field.data_type()
            ));
        }
    }
    names.sort();
    let snapshot = recordings::root().join("tests/snapshots/columns/tracepoints.txt");
    perfdata_tests::snapshot::check(&snapshot, &names.join("\n"));
}

#[test]
fn batches_are_lazy_and_have_the_chosen_columns() {
    fn is_send<T: Send>(_: &T) {}
    let path = recordings::fixture("6.1-x86_64-file-g").path;
    let open = || {
        let reader = RecordingReader::open_path(&path, ReadOptions::default()).expect("a fixture");
        Samples::new(reader).expect("a fixture")
    };
    let columns = [
        SampleColumn::Callchain,
        SampleColumn::Time,
        SampleColumn::Time,
    ];
    let options = Options::default().with_columns(columns).with_batch_rows(7);
    let mut batches = SampleBatches::new(open(), None, &options);
    is_send(&batches);
    let first = batches.next_batch().expect("a batch").expect("a batch");
    assert_eq!(first.num_rows(), 7);
    assert_eq!(batches.samples().session().counts().samples, 7);
    let names = |batch: &RecordBatch| {
        let schema = batch.schema();
        let fields = schema.fields().iter();
        fields.map(|field| field.name().clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&first), ["callchain", "time"]);
    assert_eq!(first.schema(), batches.schema());
    let rest: Vec<RecordBatch> = batches
        .by_ref()
        .map(|batch| batch.expect("a batch"))
        .collect();
    assert!(rest.iter().rev().skip(1).all(|batch| batch.num_rows() == 7));
    let rows = 7 + rest.iter().map(RecordBatch::num_rows).sum::<usize>();
    let all = SampleBatches::new(open(), None, &Options::default());
    let all: Vec<RecordBatch> = all.map(|batch| batch.expect("a batch")).collect();
    assert_eq!(rows, all.iter().map(RecordBatch::num_rows).sum::<usize>());
    let none = Options::default().with_columns([]);
    let none: usize = SampleBatches::new(open(), None, &none)
        .map(|batch| batch.expect("a batch").num_rows())
        .sum();
    assert_eq!(none, rows);
}

/// An Arrow stream contains the rows of the batches.
#[cfg_attr(target_endian = "big", ignore = "written on little-endian hosts only")]
#[test]
fn streams_contain_the_batches() {
    let path = recordings::fixture("6.1-x86_64-file-g").path;
    let options = Options::default().with_batch_rows(10);
    let samples = Samples::open(&path).expect("a fixture");
    let mut batches = SampleBatches::new(samples, None, &options);
    let mut bytes = Vec::new();
    let mut stream = ArrowStream::new(&mut bytes, batches.schema()).with_metadata(
        batches.samples().recording(),
        Some("id"),
        false,
    );
    let mut written = Vec::new();
    while let Some(batch) = batches.next_batch().expect("a batch") {
        stream.write(&batch).expect("memory");
        written.push(batch);
    }
    stream.finish().expect("memory");
    let reader = arrow_ipc::reader::StreamReader::try_new(&bytes[..], None).expect("a stream");
    assert_eq!(reader.schema().metadata()["perfconv.schema"], "1");
    let read: Vec<RecordBatch> = reader.map(|batch| batch.expect("a batch")).collect();
    assert_eq!(read.len(), written.len());
    for (read, written) in read.iter().zip(&written) {
        assert_eq!(read.columns(), written.columns());
    }
}

/// Collects nothing.
struct Nothing(u64);

impl TableSink for Nothing {
    fn write(&mut self, _: &Table, batch: RecordBatch) -> perfdata_columns::Result<()> {
        self.0 += batch.num_rows() as u64;
        Ok(())
    }
}

/// Corrupt recordings are errors or fewer rows.
#[test]
fn corrupt_recordings_do_no_harm() {
    for name in [
        "6.1-x86_64-file-g",
        "6.1-x86_64-file-tp",
        "6.1-x86_64-file-z",
    ] {
        let bytes = fs::read(recordings::fixture(name).path).expect("a fixture");
        let mut random = 0x9e37_79b9_u64;
        for _ in 0..60 {
            let mut changed = bytes.clone();
            for _ in 0..8 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let at = usize::try_from(random >> 33).expect("31 bits") % changed.len();
                changed[at] = (random >> 8) as u8;
            }
            let Ok(reader) = RecordingReader::open(changed) else {
                continue;
            };
            let Ok(samples) = Samples::new(reader) else {
                continue;
            };
            let options = Options::default().with_batch_rows(100);
            let _ = export_tables(samples, None, &options, &mut Nothing(0));
        }
    }
}

/// A file that cannot be written.
struct Full(Arc<Mutex<usize>>);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut left = self.0.lock().expect("no panic");
        match left.checked_sub(bytes.len()) {
            Some(less) => *left = less,
            None => return Err(std::io::ErrorKind::StorageFull.into()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg_attr(target_endian = "big", ignore = "written on little-endian hosts only")]
#[test]
fn a_full_disk_is_an_error() {
    let path = recordings::fixture("6.1-x86_64-file-g").path;
    for (threads, room) in [(0, 0), (2, 0), (0, 3000), (2, 3000)] {
        let samples = Samples::open(&path).expect("a fixture");
        let room = Arc::new(Mutex::new(room));
        let mut tables = ParquetTables::new(threads, |_| Ok(Box::new(Full(Arc::clone(&room)))));
        let result = export_tables(samples, None, &Options::default(), &mut tables)
            .and_then(|summary| tables.finish(&summary.metadata));
        match result {
            Err(perfdata_columns::Error::Output(error)) => {
                assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
            }
            other => panic!("{threads} {other:?}"),
        }
    }
}

/// Names are bytes in recordings, and text in columns.
#[test]
fn names_that_are_no_text_remain_different() {
    let bytes = fs::read(recordings::fixture("6.1-x86_64-file-g").path).expect("a fixture");
    let name = b"perf-workload\0";
    let mut changed = bytes.clone();
    let mut at = 0;
    while let Some(found) = changed[at..]
        .windows(name.len())
        .position(|part| part == name)
    {
        at += found;
        changed[at] = 0xff;
        changed[at + 1] = b'\n';
        at += 1;
    }
    let reader = RecordingReader::open(changed).expect("a recording");
    let samples = Samples::new(reader).expect("a recording");
    let options = Options::default().with_columns([SampleColumn::Comm]);
    let batches = SampleBatches::new(samples, None, &options);
    let mut names: Vec<String> = batches
        .flat_map(|batch| {
            let batch = batch.expect("a batch");
            let names = (0..batch.num_rows()).map(|row| text(batch.column(0), row));
            names.flatten().collect::<Vec<_>>()
        })
        .collect();
    names.dedup();
    assert!(
        names.contains(&"\u{fffd}ff\u{fffd}0arf-workload".to_owned()),
        "{names:?}"
    );
}

/// The document contains the columns as they are declared.
#[test]
fn the_document_lists_all_columns() {
    let path = recordings::root().join("docs/parquet.md");
    let mut document = String::new();
    File::open(path)
        .and_then(|mut file| file.read_to_string(&mut document))
        .expect("docs/parquet.md");
    let traced = Table::Tracepoint("SYSTEM__NAME".into());
    for table in Table::FIXED.iter().chain([&Table::Broken, &traced]) {
        let mut expected = String::from("| column | type | contents |\n|---|---|---|\n");
        for column in table.columns() {
            let _ = writeln!(
                expected,
                "| `{}` | {} | {} |",
                column.name, column.kind, column.meaning
            );
        }
        let section = document
            .split("\n### ")
            .find(|section| section.starts_with(&format!("{}\n", table.name())));
        let section = section.unwrap_or_else(|| panic!("no section {}", table.name()));
        assert!(
            section.contains(&expected),
            "docs/parquet.md must contain:\n{expected}"
        );
    }
}

/// The paths of a set of recordings.
#[test]
fn partitions_are_folders() {
    let partition = Partition::new(Some(0));
    let path = partition.path_of(&Table::Tracepoint("sched__sched_switch".into()), "id");
    assert_eq!(
        path,
        "tracepoints/sched__sched_switch/date=1970-01-01/id.parquet"
    );
}

#[cfg(target_endian = "big")]
#[test]
fn big_endian_hosts_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = recordings::fixture("6.1-x86_64-file-g").path;
    let samples = perfdata_session::open(path).expect("a fixture");
    let error = export(samples, folder.path(), 0).expect_err("a refusal");
    assert!(error.contains("little-endian host"), "{error}");
}
