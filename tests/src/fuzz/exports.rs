//! Exports of any input: an output that its readers can parse, or an error.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use arrow_ipc::reader::StreamReader;
use flate2::read::GzDecoder;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use perfdata_columns::{ArrowStream, Options as Columns, ParquetTables, SampleBatches};
use perfdata_core::read::{Limits, Options, RecordSource, RecordingReader};
use perfdata_export::{
    BranchProfile, ExportThreads, Firefox, FlameGraph, FlameGraphForm, Folded, Like, Otlp,
    PerfScript, Pprof, ProfileForm, ProfileSummary, Report, Result, Sink, Sources, Speedscope,
    export, export_in_parts,
};
use perfdata_session::Samples;

/// Returns the samples of a recording.
fn samples(data: &[u8]) -> Option<Samples<impl RecordSource + use<'_>>> {
    let limits = Limits::default().with_max_metadata(1 << 20);
    let options = Options::default().with_limits(limits);
    Samples::new(RecordingReader::open_with(data, options).ok()?).ok()
}

/// Exports a recording to a format, selected by the last byte.
pub fn exports(data: &[u8]) {
    let Some(mut samples) = samples(data) else {
        return;
    };
    let mut out = Vec::new();
    let forms = [
        ProfileForm::Bolt,
        ProfileForm::LlvmProfgen,
        ProfileForm::AutoFdo,
    ];
    let choice = data.last().copied().unwrap_or(0) % 12;
    if let Some(form) = usize::from(choice).checked_sub(9).map(|at| forms[at]) {
        let mut sink = BranchProfile::new(&mut out, form, Sources::default());
        let result = export(&mut samples, None, &mut sink).and_then(|_| sink.write());
        if result.is_ok() {
            let is_text = |byte: &u8| byte.is_ascii_graphic() || b" \n".contains(byte);
            assert!(out.iter().all(is_text), "no table");
        }
        let Some(mut samples) = self::samples(data) else {
            return;
        };
        let mut in_parts = Vec::new();
        let mut sink = BranchProfile::new(&mut in_parts, form, Sources::default());
        let threads = ExportThreads::new(2).with_block(1);
        let other = export_in_parts(&mut samples, None, &mut sink, threads);
        let other = other.and_then(|_| sink.write());
        let text = |result: Result<ProfileSummary>| result.map_err(|error| error.to_string());
        assert_eq!(text(other), text(result), "in two threads");
        return;
    }
    let result = export(&mut samples, None, &mut *sink_of(choice, &mut out));
    if result.is_ok() {
        check(choice, &out);
    }
    let Some(mut samples) = self::samples(data) else {
        return;
    };
    // Each thread takes a record at a time.
    let threads = ExportThreads::new(2).with_block(1);
    let mut in_parts = Vec::new();
    let mut sink = sink_of(choice, &mut in_parts);
    let other = export_in_parts(&mut samples, None, &mut *sink, threads);
    drop(sink);
    match (result, other) {
        (Ok(_), Ok(_)) => assert!(in_parts == out, "another output in two threads"),
        (result, other) => {
            let message = |result: Result<Report>| result.err().map(|error| error.to_string());
            assert_eq!(message(other), message(result), "in two threads");
        }
    }
}

/// Returns the sink of a choice.
fn sink_of(choice: u8, out: &mut Vec<u8>) -> Box<dyn Sink + '_> {
    match choice {
        0 => Box::new(Folded::new(out)),
        1 => Box::new(FlameGraph::new(out, FlameGraphForm::Page, b"a<b>&c")),
        2 => Box::new(FlameGraph::new(out, FlameGraphForm::Picture, b"a<b>&c")),
        3 => Box::new(Pprof::new(out)),
        4 => Box::new(Otlp::new(out)),
        5 => Box::new(Firefox::new(out, b"\"a\"")),
        6 => Box::new(Speedscope::new(out, b"\"a\"")),
        7 => Box::new(PerfScript::new(out, Like::Perf7_2)),
        _ => Box::new(PerfScript::new(out, Like::Perf6_1).with_nanoseconds(true)),
    }
}

/// Parses the output of an export.
fn check(choice: u8, out: &[u8]) {
    match choice {
        0 => {
            for line in out
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty())
            {
                let count = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
                assert!(count.iter().all(u8::is_ascii_digit) && !count.is_empty());
            }
        }
        1 | 2 => assert!(out.is_empty() || out.starts_with(b"<")),
        3 => assert!(is_message(&unpacked(out)), "no protobuf message"),
        4 => assert!(is_message(out), "no protobuf message"),
        5 => drop(serde_json::from_slice::<serde_json::Value>(&unpacked(out)).expect("JSON")),
        6 => drop(serde_json::from_slice::<serde_json::Value>(out).expect("JSON")),
        // Terminals interpret control characters.
        _ => assert!(!out.contains(&0x1b), "a control character"),
    }
}

fn unpacked(out: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(out).read_to_end(&mut plain).expect("gzip");
    plain
}

/// Returns whether `bytes` are fields of a protobuf message, up to the end.
fn is_message(mut bytes: &[u8]) -> bool {
    fn number(bytes: &mut &[u8]) -> Option<u64> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let (&byte, rest) = bytes.split_first()?;
            *bytes = rest;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
    while !bytes.is_empty() {
        let Some(key) = number(&mut bytes) else {
            return false;
        };
        let len = match key & 7 {
            0 => number(&mut bytes).map(|_| 0),
            1 => Some(8),
            2 => number(&mut bytes),
            5 => Some(4),
            _ => None,
        };
        let rest = len.and_then(|len| bytes.get(usize::try_from(len).ok()?..));
        match rest {
            Some(rest) if key >> 3 > 0 => bytes = rest,
            _ => return false,
        }
    }
    true
}

/// Exports a recording to an Arrow stream, or to the tables of Parquet, and reads them again.
pub fn columns(data: &[u8]) {
    let Some(samples) = samples(data) else {
        return;
    };
    let options = Columns::default().with_recording(Some("id"));
    match data.last().copied().unwrap_or(0) % 2 {
        0 => arrow(samples, &options),
        _ => tables(samples, &options),
    }
}

fn arrow(samples: Samples<impl RecordSource>, options: &Columns) {
    let mut batches = SampleBatches::new(samples, None, options);
    let mut bytes = Vec::new();
    let (mut stream, mut rows) = (ArrowStream::new(&mut bytes, batches.schema()), 0);
    loop {
        match batches.next_batch() {
            Ok(Some(batch)) => {
                rows += batch.num_rows();
                stream.write(&batch).expect("a stream in memory");
            }
            Ok(None) => break,
            Err(_) => return,
        }
    }
    stream.finish().expect("a stream in memory");
    let read = StreamReader::try_new(bytes.as_slice(), None).expect("an Arrow stream");
    let read = read.map(|batch| batch.expect("rows").num_rows());
    assert_eq!(read.sum::<usize>(), rows);
}

fn tables(samples: Samples<impl RecordSource>, options: &Columns) {
    let files = std::cell::RefCell::new(Vec::new());
    let mut tables = ParquetTables::new(0, |_| {
        let file = tempfile::tempfile()?;
        files.borrow_mut().push(file.try_clone()?);
        Ok(Box::new(file) as Box<dyn Write + Send>)
    })
    .with_empty_tables(true);
    let Ok(summary) = perfdata_columns::export_tables(samples, None, options, &mut tables) else {
        return;
    };
    tables.finish(&summary.metadata).expect("temporary files");
    for mut file in files.into_inner() {
        file.seek(SeekFrom::Start(0)).expect("a file");
        read_table(file);
    }
}

fn read_table(file: File) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
    for batch in reader.build().expect("a Parquet file") {
        batch.expect("rows");
    }
}
