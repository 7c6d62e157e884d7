//! Exports in several threads have the output and the report of one thread.

use std::fmt::Debug;
use std::path::Path;

use perfdata_core::read::{Options, RecordingReader};
use perfdata_export::{
    ExportThreads, Fields, Firefox, FlameGraph, FlameGraphForm, Folded, Label, Like, Otlp,
    PerfScript, Pprof, Root, Sink, Sources, Speedscope, Symbolizer, export_in_parts,
};
use perfdata_session::Samples;
use perfdata_tests::recordings;
use perfdata_unwind::UserStacks;

/// All of an export that must not depend on the threads.
#[derive(Debug, PartialEq, Eq)]
struct Output {
    bytes: Vec<u8>,
    report: String,
}

fn text(what: impl Debug) -> String {
    format!("{what:?}")
}

/// Exports the recording at `path` to a sink, of which `make` makes one that writes to a list.
fn export(
    path: &Path,
    threads: ExportThreads,
    make: &dyn for<'b> Fn(&'b mut Vec<u8>) -> Box<dyn Sink + 'b>,
) -> Option<Output> {
    let source = RecordingReader::open_path(path, Options::default()).ok()?;
    let stacks = UserStacks::new(Sources::default());
    let unwound = stacks.result();
    let samples = Samples::new(source).ok()?;
    let mut samples = samples.with_user_callchains(Box::new(stacks));
    let symbols = Symbolizer::new(Sources::default());
    let mut bytes = Vec::new();
    let mut sink = make(&mut bytes);
    let report = export_in_parts(&mut samples, Some(symbols), sink.as_mut(), threads);
    drop(sink);
    let report = match report {
        Ok(report) => {
            let mut ends: Vec<String> = unwound.outcomes().ends().map(text).collect();
            ends.sort_unstable();
            text((report, ends))
        }
        Err(error) => {
            // What was written before an error is not an output.
            bytes.clear();
            error.to_string()
        }
    };
    Some(Output { bytes, report })
}

type Make = dyn for<'b> Fn(&'b mut Vec<u8>) -> Box<dyn Sink + 'b> + Sync;

/// Checks the outputs for all recordings.
fn check(make: &Make) {
    let failed = |recording: &recordings::Recording| {
        let path = recording.main_file();
        let expected = export(&path, ExportThreads::new(1), make)?;
        for (threads, block) in [(2, 1), (3, 4 << 10), (8, 64 << 10)] {
            let found = export(&path, ExportThreads::new(threads).with_block(block), make)?;
            if found.bytes != expected.bytes {
                return Some(format!("{path:?}: other bytes with {threads} threads"));
            }
            if found.report != expected.report {
                let (found, expected) = (found.report, expected.report);
                return Some(format!("{path:?}: {found}\ninstead of\n{expected}"));
            }
        }
        None
    };
    recordings::check_all(&recordings::all(), |recording| match failed(recording) {
        Some(what) => Err(what),
        None => Ok(()),
    });
}

#[test]
fn folded_stacks_do_not_depend_on_the_threads() {
    check(&|out| Box::new(Folded::new(out)));
    check(&|out| Box::new(Folded::new(out).with_root(Root::Tid)));
}

#[test]
fn flame_graphs_do_not_depend_on_the_threads() {
    check(&|out| Box::new(FlameGraph::new(out, FlameGraphForm::Page, b"name")));
    check(&|out| Box::new(FlameGraph::new(out, FlameGraphForm::Picture, b"name")));
}

#[test]
fn the_text_of_perf_script_does_not_depend_on_the_threads() {
    for like in [Like::Perf6_1, Like::Perf6_12, Like::Perf7_2] {
        check(&move |out| Box::new(PerfScript::new(out, like)));
    }
    check(&|out| Box::new(PerfScript::new(out, Like::Perf7_2).with_inlines(true)));
}

#[test]
fn fields_of_perf_script_do_not_depend_on_the_threads() {
    for fields in [
        "comm,tid,pid,time,cpu,event,ip,sym,dso,symoff,period",
        "+weight,+data_src,+phys_addr,+addr",
        "+brstack,+brstacksym",
        "event,trace",
    ] {
        let fields: Fields = fields.parse().expect("fields");
        check(&move |out| Box::new(PerfScript::new(out, Like::Perf7_2).with_fields(&fields)));
    }
}

#[test]
fn speedscope_does_not_depend_on_the_threads() {
    check(&|out| Box::new(Speedscope::new(out, b"name")));
}

#[test]
fn profiles_for_firefox_do_not_depend_on_the_threads() {
    check(&|out| Box::new(Firefox::new(out, b"name")));
}

#[test]
fn profiles_do_not_depend_on_the_threads() {
    check(&|out| Box::new(Pprof::new(out)));
    check(&|out| Box::new(Pprof::new(out).with_labels(Label::ALL.to_vec())));
    check(&|out| Box::new(Otlp::new(out).with_labels(Label::ALL.to_vec())));
}
