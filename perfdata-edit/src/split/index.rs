//! The index of the parts, `index.json`. `docs/json.md` describes its content.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::PartReport;
use crate::slice::{By, Decisions, PartKey};
use perfdata_convert::error::{Error, Result};
use perfdata_convert::interrupt;
use perfdata_convert::json::Json;
use perfdata_convert::pipeline::to_parts::WrittenPart;
use perfdata_convert::support::os::private;

/// Writes the index to the new file `path`.
pub(super) fn write(
    path: &Path,
    by: By,
    decisions: &Decisions,
    parts: &[PartReport],
    written: &[WrittenPart],
) -> Result<()> {
    let mut json = Json::pretty();
    json.object("");
    json.text("by", by.to_string().as_bytes());
    if let By::Time(_) = by {
        json.number("start", decisions.start);
    }
    json.list("parts");
    for ((part, report), written) in decisions.parts.iter().zip(parts).zip(written) {
        json.object("");
        json.text("file", report.file.as_bytes());
        match &part.key {
            PartKey::Interval(from, to) => {
                json.number("from", decisions.start.saturating_add(*from));
                json.number("to", decisions.start.saturating_add(*to));
            }
            PartKey::Pid(pid) => json.number_or_none("pid", *pid),
            PartKey::Tid(tid) => json.number_or_none("tid", *tid),
            PartKey::Cpu(cpu) => json.number_or_none("cpu", *cpu),
            PartKey::Comm(comm) => json.text("comm", comm),
            PartKey::Event(event) => json.text("event", event),
            PartKey::Other => json.boolean("other", true),
            PartKey::Next => {}
        }
        json.number("samples", part.samples);
        for (name, time) in [("first_time", part.first), ("last_time", part.last)] {
            time.into_iter().for_each(|time| json.number(name, time));
        }
        json.number("bytes", report.bytes);
        if !written.notes.is_empty() {
            json.texts("notes", &written.notes);
        }
        json.close();
    }
    json.close();
    json.close();
    json.end_line();
    let mut options = File::options();
    private(options.write(true).create_new(true));
    let mut file = interrupt::open(&options, path).map_err(Error::io(path))?;
    file.write_all(&json.out).map_err(Error::io(path))
}
