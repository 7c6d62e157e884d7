//! `perfconv recover`: recordings that are truncated at any offset, were never finished, or have
//! damaged bytes.

mod command;
mod cuts;
mod damage;
mod directories;
mod intact;
mod whole;

use std::fs;
use std::path::{Path, PathBuf};

use perfdata_convert::error::Result;
use perfdata_convert::io::{Input, Output};
use perfdata_convert::recover::{Recover, Recovery};
use perfdata_convert::verify::Report;
use perfdata_core::feature::FeatureId;
use perfdata_core::read::{Decompressor, Head, Limits, Options, RecordingReader, StreamItem};
use perfdata_core::record::{RecordHeader, RecordType};
use perfdata_tests::convert::perfconv;
use tempfile::TempDir;

/// A folder for a recording and the recovered file.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        Bench {
            folder: tempfile::tempdir().expect("temporary folders can be made"),
        }
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("recovered.data")
    }

    /// Recovers `bytes` to the file `output`.
    fn recover(&self, bytes: &[u8], strict: bool) -> Result<Recovery> {
        let input = self.folder.path().join("input.data");
        fs::write(&input, bytes).expect("files can be written");
        fs::remove_file(self.output()).ok();
        let result = Recover::default().with_strict(strict).run(
            Input::open(&input)?,
            Output::create(&self.output(), &input, false)?.synced(false),
        );
        fs::remove_file(input).expect("it is there");
        if result.is_err() {
            let left = fs::read_dir(&self.folder)
                .expect("the folder is there")
                .count();
            assert_eq!(left, 0, "something is left behind");
        }
        result
    }

    fn recovered(&self) -> Vec<u8> {
        fs::read(self.output()).expect("the output is there")
    }

    fn check_clean(&self) -> std::result::Result<(), String> {
        let report = Input::open(&self.output())
            .and_then(Report::of)
            .map_err(|error| error.to_string())?;
        if report.is_clean() {
            Ok(())
        } else {
            Err(report.text())
        }
    }
}

/// A record with its payload: its offset and bytes. Records in a compressed record have its offset.
#[derive(Debug, Clone)]
struct Item {
    start: u64,
    end: u64,
    compressed: bool,
    bytes: Vec<u8>,
}

/// Returns all records, including those of a pipe's head, with compressed ones decompressed.
/// COMPRESSED sections are omitted.
fn items(bytes: &[u8]) -> Vec<Item> {
    let source = std::sync::Arc::new(bytes.to_vec());
    let mut reader = RecordingReader::open_with(source, Options::default().with_head(Head::Pass))
        .expect("a recording");
    let mut items: Vec<Item> = Vec::new();
    let mut zstd = None;
    while let Some(item) = reader.next().expect("it can be read") {
        match item {
            StreamItem::Record(record) => {
                let (start, end) = (record.offset, record.offset + record.bytes.len() as u64);
                if record.kind.is_compressed() {
                    let stream = zstd.get_or_insert_with(|| {
                        Decompressor::of(record.recording(), Limits::default()).expect("a decoder")
                    });
                    stream.push(&record).expect("compressed data");
                    while let Some(inner) = stream.next().expect("compressed data") {
                        items.push(Item {
                            start,
                            end,
                            compressed: true,
                            bytes: inner.bytes.to_vec(),
                        });
                    }
                } else if record.kind != RecordType::HEADER_FEATURE
                    || record.word(RecordHeader::SIZE) != Some(u64::from(FeatureId::COMPRESSED.0))
                {
                    items.push(Item {
                        start,
                        end,
                        compressed: false,
                        bytes: record.bytes.to_vec(),
                    });
                }
            }
            StreamItem::Payload(bytes) => {
                let last = items.last_mut().expect("a payload has a record");
                last.bytes.extend_from_slice(bytes);
                last.end += bytes.len() as u64;
            }
            StreamItem::Unreadable(_) => {}
        }
    }
    items
}

fn contents(items: &[Item]) -> Vec<&[u8]> {
    items.iter().map(|item| item.bytes.as_slice()).collect()
}

fn run(args: &[&str], folder: &Path) -> (Option<i32>, String) {
    let output = perfconv()
        .args(args)
        .current_dir(folder)
        .output()
        .expect("perfconv runs");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}
