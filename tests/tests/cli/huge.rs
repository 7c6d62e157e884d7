//! Recordings of 100 GB: offsets above 4 GiB are exact, and neither memory nor the number of open
//! files grows. No disk is needed: streams go through pipes, and files have a hole.
//!
//! `PERFCONV_TEST_STREAM_MB` sets the length of the streams; the default is 64 MB, and 100 GB if
//! `PERFCONV_TEST_ALL` is set.

use std::{
    env, fs,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use perfdata_tests::{
    convert::perfconv,
    is_thorough,
    measure::peak,
    synth::{self, file::Magic, kind, pipe::Pipe, record},
};

/// Maximum memory of the command in kilobytes.
const LIMIT: u64 = 32 << 10;

/// Maximum number of open files, including standard input, output and error.
const MOST_FILES: usize = 16;

/// The size of a stream in bytes.
fn length() -> u64 {
    let megabytes = env::var("PERFCONV_TEST_STREAM_MB")
        .ok()
        .and_then(|text| text.parse().ok());
    megabytes.unwrap_or(if is_thorough() { 100_000 } else { 64 }) * 1_000_000
}

/// The head of a pipe; some records, and their number.
fn parts() -> (Vec<u8>, Vec<u8>, u64) {
    let basic = synth::file::basic(false);
    let head = Pipe::new(false, Magic::V2).event(&basic.events[0]);
    let mut cases = synth::file::basic_records(false, &basic.events[0]);
    cases.retain(|case| case.kind < 64);
    let records = record::stream(&cases);
    let times = (1 << 20) / records.len();
    let count = cases.len() * times;
    (
        head.terminator(32).bytes,
        records.repeat(times),
        count as u64,
    )
}

/// Returns the maximum memory of a process so far, in kilobytes, and the number of its open files.
fn used(child: &Child) -> (u64, usize) {
    let folder = format!("/proc/{}", child.id());
    let status = fs::read_to_string(format!("{folder}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let memory = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    let files = fs::read_dir(format!("{folder}/fd"))
        .expect("it runs")
        .count();
    (memory.expect("a number"), files)
}

/// Runs `words` with a stream whose last 8 bytes are not a record. Returns the offset of these, the
/// number of records, and the size and the last bytes of the output.
fn through(words: &[&str]) -> (u64, u64, u64, String) {
    let (head, records, count) = parts();
    let times = length() / records.len() as u64;
    let mut child = perfconv()
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("perfconv runs");
    let mut output = child.stdout.take().expect("a pipe");
    let reader = thread::spawn(move || {
        let (mut size, mut last) = (0, Vec::new());
        let mut block = vec![0; 1 << 16];
        loop {
            let read = output.read(&mut block).expect("a pipe");
            if read == 0 {
                break (size, String::from_utf8_lossy(&last).into_owned());
            }
            size += read as u64;
            last.extend_from_slice(&block[..read]);
            last.drain(..last.len().saturating_sub(1 << 16));
        }
    });
    let mut input = child.stdin.take().expect("a pipe");
    let mut write = |bytes: &[u8]| input.write_all(bytes).expect("perfconv reads");
    write(&head);
    (0..times).for_each(|_| write(&records));
    let (memory, files) = used(&child);
    write(&[0; 8]);
    drop(input);
    let (size, last) = reader.join().expect("no panic");
    child.wait().expect("it ends");
    eprintln!(
        "{words:?}, {} MB: {memory} kB, {files} files",
        length() / 1_000_000
    );
    assert!(
        memory < LIMIT,
        "{words:?}: {memory} kB, not less than {LIMIT}"
    );
    assert!(files <= MOST_FILES, "{words:?}: {files} open files");
    let end = head.len() as u64 + times * records.len() as u64;
    (end, times * count, size, last)
}

#[test]
fn streams_of_any_length_are_checked() {
    let (end, count, _, report) = through(&["verify", "--json", "-"]);
    assert!(
        report.contains(&format!("\"records\": {count},")),
        "{report}"
    );
    assert!(report.contains(&format!("\"offset\": {end},")), "{report}");
}

#[test]
fn streams_of_any_length_are_copied() {
    let (end, _, size, _) = through(&["convert", "-q", "-", "-o", "-"]);
    assert_eq!(size, end + 8);
}

/// Writes records, an AUXTRACE record with `size` bytes of data, which are a hole, and records.
/// Returns the offset of the last record.
fn with_aux_data(path: &Path, size: u64) -> io::Result<u64> {
    let (head, _, _) = parts();
    let basic = synth::file::basic(false);
    let mut cases = synth::file::basic_records(false, &basic.events[0]);
    cases.retain(|case| case.kind < 64);
    let last = cases.last().map_or(0, |case| case.record.len()) as u64;
    let records = record::stream(&cases);
    let mut body = size.to_le_bytes().to_vec();
    body.resize(40, 0);
    let mut file = File::create(path)?;
    file.write_all(&head)?;
    file.write_all(&records)?;
    file.write_all(&record::frame(false, kind::AUXTRACE, 0, &body))?;
    let end = file.seek(SeekFrom::Current(size.cast_signed()))?;
    file.write_all(&records)?;
    Ok(end + records.len() as u64 - last)
}

#[test]
fn files_of_any_length_have_exact_offsets() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (input, shown) = (folder.path().join("input"), folder.path().join("shown"));
    let size = if is_thorough() { 100 << 30 } else { 5 << 30 };
    let last = with_aux_data(&input, size).expect("a file with a hole");
    let mut command: Command = perfconv();
    command.args(["dump", "--json"]).arg(&input);
    command.stdout(File::create(&shown).expect("a temporary file"));
    let (status, memory, time) = peak(command);
    eprintln!("{} GB: {memory} kB, {time:.1?}", size >> 30);
    assert!(status.success(), "{status}");
    assert!(memory < LIMIT, "{memory} kB, not less than {LIMIT}");
    let shown = fs::read_to_string(&shown).expect("text");
    let line = shown.lines().last().unwrap_or_default();
    assert!(line.starts_with(&format!("{{\"offset\":{last},")), "{line}");
}
