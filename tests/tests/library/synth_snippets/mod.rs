//! The independent writer, compared with the kernel and perf: records, attributes, feature sections
//! and complete files of real recordings, written again from their values.

mod files;
mod kernel_records;
mod samples;
mod tool_records;

use std::fs;

use perfdata_tests::recordings;
use perfdata_tests::synth::attr::sample_type::{TID, TIME};
use perfdata_tests::synth::record::Scribe;
use perfdata_tests::synth::{Attr, Buf, Stamp};

const LITTLE: bool = false;
const BIG: bool = true;

fn fixture(name: &str) -> Vec<u8> {
    let path = recordings::fixture(name).main_file();
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .chunks(8)
        .map(|word| {
            word.iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
                + " "
        })
        .collect()
}

/// Checks that both are the same bytes; otherwise displays the words around the first difference.
#[track_caller]
fn same(what: &str, real: &[u8], written: &[u8]) {
    let Some(at) = (0..real.len().max(written.len())).find(|at| real.get(*at) != written.get(*at))
    else {
        return;
    };
    let around = |bytes: &[u8]| {
        hex(bytes
            .get(at / 8 * 8..)
            .map_or(&[], |rest| &rest[..rest.len().min(32)]))
    };
    let lengths = (real.len(), written.len());
    panic!(
        "{what}, byte {at} of {lengths:?}:\n   real {}\nwritten {}",
        around(real),
        around(written)
    );
}

/// Checks that the bytes at `offset` of a fixture are those in `written`.
#[track_caller]
fn found(name: &str, offset: usize, written: &[u8]) {
    same(
        &format!("{name} at {offset:#x}"),
        &fixture(name)[offset..][..written.len()],
        written,
    );
}

/// Checks that the layout of the values is the kernel record at `offset` of a fixture.
#[track_caller]
fn kernel_record(
    at: (&str, usize),
    big: bool,
    kind: u32,
    misc: u16,
    trailer: (u64, Stamp),
    body: impl FnOnce(Buf) -> Buf,
) {
    let mut scribe = Scribe::new(big, Attr::new(trailer.0, "sample_id_all"), trailer.1);
    let written = scribe.kernel("", kind, misc, body).record.clone();
    found(at.0, at.1, &written);
}

/// Does the same for a record without a trailer.
#[track_caller]
fn user_record(at: (&str, usize), big: bool, kind: u32, misc: u16, body: impl FnOnce(Buf) -> Buf) {
    kernel_record(at, big, kind, misc, (0, Stamp::ZERO), body);
}

/// Returns a trailer with thread and time.
fn thread(pid: u32, tid: u32, time: u64) -> (u64, Stamp) {
    (
        TID | TIME,
        Stamp {
            pid,
            tid,
            time,
            ..Stamp::ZERO
        },
    )
}

/// The trailer of records that perf synthesized: zeros.
const NOBODY: (u64, Stamp) = (TID | TIME, Stamp::ZERO);
