//! Recordings in memory and from readers are those of their files.

use std::io::{self, Read};

use perfdata_core::read::{RecordSource, RecordingReader, StreamItem};
use perfdata_session::Samples;
use perfdata_tests::recordings::{Container, Recording};

mod every_recording {
    perfdata_tests::per_fixture!(super::check);
}

/// Bytes that cannot be copied as a whole.
struct Pinned(Vec<u8>);

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A connection: returns few bytes at a time, and no length.
struct Connection<'a>(&'a [u8]);

impl Read for Connection<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = buf.len().min(1000);
        self.0.read(&mut buf[..len])
    }
}

/// Returns the offset and bytes of all items, and how they end.
fn items<S: Read>(mut reader: RecordingReader<S>) -> (Vec<(u64, Vec<u8>)>, String) {
    let mut items = Vec::new();
    loop {
        items.push(match reader.next() {
            Ok(Some(StreamItem::Record(record))) => (record.offset, record.bytes.to_vec()),
            Ok(Some(other)) => (0, format!("{other:?}").into_bytes()),
            Ok(None) => return (items, format!("{:?}", reader.damage())),
            Err(error) => return (items, error.to_string()),
        });
    }
}

/// The comm of a sample, and the addresses of its frames.
type Seen = (Vec<u8>, Vec<u64>);

/// Returns all samples, and how they end.
fn samples<S: RecordSource>(mut samples: Samples<S>) -> (Vec<Seen>, String) {
    let mut all = Vec::new();
    loop {
        match samples.next() {
            Ok(Some(sample)) => {
                let frames = sample.frames().map(|frame| frame.address);
                all.push((sample.comm().to_vec(), frames.collect()));
            }
            Ok(None) => return (all, String::new()),
            Err(error) => return (all, error.to_string()),
        }
    }
}

fn check(recording: &Recording) -> Result<(), String> {
    if recording
        .form
        .is_some_and(|form| form.container == Container::Directory)
    {
        return Ok(());
    }
    let bytes = std::fs::read(&recording.path).map_err(|e| e.to_string())?;
    let pinned = || Pinned(bytes.clone());
    let of_file = items(perfdata_core::open(&recording.path).map_err(|e| e.to_string())?);
    let in_memory = perfdata_core::from_bytes(pinned()).map_err(|e| e.to_string())?;
    let received = perfdata_core::from_reader(Connection(&bytes)).map_err(|e| e.to_string())?;
    if of_file != items(in_memory) || of_file != items(received) {
        return Err("other records".into());
    }
    let of_file = samples(perfdata_session::open(&recording.path).map_err(|e| e.to_string())?);
    let in_memory = perfdata_session::from_bytes(pinned()).map_err(|e| e.to_string())?;
    let received = perfdata_session::from_reader(Connection(&bytes)).map_err(|e| e.to_string())?;
    if of_file != samples(in_memory) || of_file != samples(received) {
        return Err("other samples".into());
    }
    Ok(())
}

#[test]
fn what_is_not_a_recording_is_refused() {
    for bytes in [&b""[..], b"PERF", b"#!/bin/sh\nexit 0\n", &[0; 4096]] {
        let in_memory = perfdata_core::from_bytes(bytes).err();
        let received = perfdata_core::from_reader(Connection(bytes)).err();
        let (in_memory, received) = (in_memory.expect("an error"), received.expect("an error"));
        assert_eq!(in_memory.to_string(), received.to_string());
    }
}

/// A stream is not read further than its records are requested.
#[test]
fn a_stream_is_read_as_it_arrives() {
    let name = "6.1-x86_64-pipe-default.data";
    let recordings = perfdata_tests::recordings::fixtures();
    let recording = recordings.iter().find(|one| one.path.ends_with(name));
    let bytes = std::fs::read(&recording.expect("the fixture").path).expect("readable");
    /// Fails after its bytes: a reader that waits for the end sees the error.
    struct Broken<'a>(&'a [u8]);
    impl Read for Broken<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buf)? {
                0 => Err(io::Error::other("the connection broke")),
                read => Ok(read),
            }
        }
    }
    let mut reader =
        perfdata_core::from_reader(Broken(&bytes[..bytes.len() / 2])).expect("its head");
    assert!(reader.next().expect("a record").is_some());
    let error = loop {
        match reader.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("an error is not the end"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("the connection broke"), "{error}");
}
