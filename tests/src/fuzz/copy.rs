//! Reading and writing a recording produces the same bytes.

use std::io::{Cursor, Read};
use std::sync::Arc;

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::read::{RecordingReader, StreamItem};
use perfdata_core::record::{RawRecord, Record};
use perfdata_write::{Error, FilePlan, FileWriter, PipePlan, PipeWriter, RecordSink};

/// Writes the recording with its original layout, and compares the result with the input.
pub fn copy(data: &[u8]) {
    let source = Arc::new(data.to_vec());
    let Ok(mut reader) = RecordingReader::open(source.clone()) else {
        return;
    };
    let recording = reader.recording().clone();
    let written = match reader.container_layout().clone() {
        ContainerLayout::File(file) => {
            let plan = FilePlan::exact(&file);
            FileWriter::begin(Cursor::new(Vec::new()), plan, &recording, &source).and_then(
                |mut writer| {
                    let is_whole = pass(&mut reader, &mut writer)?;
                    Ok(is_whole.then_some(writer.finish(&recording)?.into_inner()))
                },
            )
        }
        ContainerLayout::Pipe(pipe) => {
            PipeWriter::begin(Vec::new(), PipePlan::exact(&pipe), &recording).and_then(
                |mut writer| {
                    let is_whole = pass(&mut reader, &mut writer)?;
                    Ok(is_whole.then_some(writer.finish()?))
                },
            )
        }
    };
    match written {
        Ok(written) => assert!(
            written.is_none_or(|written| written == data),
            "the copy differs"
        ),
        // Files whose parts share bytes.
        Err(Error::Overlap { .. }) => {}
        Err(error) => panic!("what was read cannot be written: {error}"),
    }
}

/// Writes all records. Returns false if a corrupt attribute ends a pipe.
fn pass(
    reader: &mut RecordingReader<impl Read>,
    writer: &mut dyn RecordSink,
) -> perfdata_write::Result<bool> {
    loop {
        let Ok(next) = reader.next() else {
            return Ok(false);
        };
        let Some(item) = next else { return Ok(true) };
        writer.item(&item.map(|record| record.raw()))?;
        if let StreamItem::Record(raw) = item
            && let Ok(record) = raw.decode()
        {
            check(&raw, &record);
        }
    }
}

/// Checks that a decoded record is encoded to the same bytes.
fn check(raw: &RawRecord<'_>, record: &Record) {
    let again = record
        .encode(raw.endian)
        .expect("what was decoded can be encoded");
    assert!(
        again == raw.bytes,
        "the {} record at {:#x} differs when it is encoded again",
        raw.kind,
        raw.offset
    );
}
