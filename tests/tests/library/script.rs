//! The text of `perf script` compared with the text that perf printed on the recording machine.

use perfdata_export::{PerfScript, Sink, export};
use perfdata_session::Samples;
use perfdata_tests::perf;
use perfdata_tests::recordings::{self, Recording};
use perfdata_tracepoint::Like;

/// Returns why the text of perf is another for a recording.
fn exception(recording: &Recording) -> Option<&'static str> {
    let name = &*recording.name;
    if name.contains("dwarf") {
        return Some("perf unwinds user stacks");
    }
    if matches!(name, "7.2-s390x-file-g" | "7.2-s390x-pipe-g") {
        return Some("perf unwinds user stacks on s390");
    }
    if name.ends_with("-tool-kmem") {
        return Some("perf names the functions of the recording machine's kernel");
    }
    if ["-odd-names", "-odd-comm-tp", "-bid-odd"]
        .iter()
        .any(|part| name.contains(part))
    {
        return Some("names contain line breaks, also in records that are not samples");
    }
    None
}

/// Returns the samples and counts in perf's text, without the records that it also shows.
fn samples(text: &str) -> Vec<&str> {
    // The lists of namespaces have lines of their own.
    let is_record = |line: &&str| line.contains("PERF_RECORD_") || line.starts_with("\t\t");
    let lines = text.lines().filter(|line| !is_record(line));
    lines.filter(|line| !line.is_empty()).collect()
}

fn check(recording: &Recording) -> Result<(), String> {
    let Some(text) = recording.script_text() else {
        return Ok(());
    };
    let Some(recorder) = recording.recorder.as_ref().filter(|_| !text.is_empty()) else {
        return Ok(());
    };
    if exception(recording).is_some() || recording.is_damaged() {
        return Ok(());
    }
    let expected = perf::text(&text);
    let mut out = Vec::new();
    let fields = "-symoff,-sym,-dso";
    let fields = fields.parse().map_err(|error| format!("{error}"))?;
    let mut sink = PerfScript::new(&mut out, recorder.perf.like())
        .with_fields(&fields)
        .with_nanoseconds(true);
    let mut all = Samples::open(&recording.path).map_err(|error| error.to_string())?;
    // The last record of a recording whose writer was killed is not complete.
    let exported = export(&mut all, None, &mut sink);
    drop(sink);
    let is_cut = recording.name.ends_with("-cut");
    if let Err(error) = exported
        && !is_cut
    {
        return Err(error.to_string());
    }
    let found = perf::text(&out);
    let (expected, found) = (samples(&expected), samples(&found));
    if is_cut && expected.starts_with(&found) || found == expected {
        return Ok(());
    }
    let at = expected.iter().zip(&found).position(|(a, b)| a != b);
    let at = at.unwrap_or(expected.len().min(found.len()));
    Err(format!(
        "{} and {} lines, line {at}:\n  {:?}, but here\n  {:?}",
        expected.len(),
        found.len(),
        expected.get(at),
        found.get(at)
    ))
}

#[test]
fn the_text_is_that_of_the_recorder() {
    recordings::check_all(&recordings::fixtures(), check);
    recordings::check_all(&recordings::shared(), check);
}

/// Only fields that show functions have them searched.
#[test]
fn functions_are_searched_if_fields_show_them() {
    for (fields, branches, functions) in [
        ("pid,ip,brstack", false, false),
        ("comm,tid,time,event,ip", false, false),
        ("ip,brstack,dso", true, true),
        ("ip,brstacksym", true, true),
        ("ip,brstackoff", true, false),
        ("ip,sym,brstack", false, true),
        ("ip,symoff", false, true),
        ("ip,srcline", false, true),
        ("addr", false, false),
    ] {
        let fields = fields.parse().expect("fields");
        let sink = PerfScript::new(Vec::new(), Like::Perf7_2).with_fields(&fields);
        let needs = sink.needs();
        assert_eq!(
            (needs.branches, !needs.without_functions),
            (branches, functions),
            "{fields:?}"
        );
        assert!(!sink.with_inlines(true).needs().without_functions);
    }
}
