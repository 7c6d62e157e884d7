//! Exports in several threads have the output and the report of one thread.

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use perfdata_core::read::{Options, RecordingReader};
use perfdata_export::{
    Binary, BranchProfile, Error, ExportThreads, Fields, Firefox, FlameGraph, FlameGraphForm,
    Folded, Label, Like, Otlp, PerfScript, Pprof, ProfileForm, Root, Sink, Sources, Speedscope,
    Symbolizer, export_in_parts,
};
use perfdata_session::Samples;
use perfdata_tests::recordings;
use perfdata_tests::synth::object::named_object;
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
    check_each(&|path| {
        let path = path.to_owned();
        Box::new(move |threads| export(&path, threads, make))
    });
}

/// An export of a recording.
type Export<'a> = dyn Fn(ExportThreads) -> Option<Output> + 'a;

/// Checks the outputs for all recordings, of which `exporting` makes the export.
fn check_each<'a>(exporting: &(dyn Fn(&Path) -> Box<Export<'a>> + Sync)) {
    let failed = |recording: &recordings::Recording| {
        let path = recording.main_file();
        let export = exporting(&path);
        let expected = export(ExportThreads::new(1))?;
        for (threads, block) in [(2, 1), (3, 4 << 10), (8, 64 << 10)] {
            let found = export(ExportThreads::new(threads).with_block(block))?;
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

/// A stream has no functions to show before its first event is known, and then they are not searched.
#[test]
fn whether_functions_are_searched_does_not_change() {
    let path = recordings::fixture("7.2-x86_64-pipe-g").main_file();
    let fields: Fields = "event,trace".parse().expect("fields");
    let make: &Make =
        &move |out| Box::new(PerfScript::new(out, Like::Perf7_2).with_fields(&fields));
    let output = export(&path, ExportThreads::new(1), make).expect("an export");
    let report = output.report;
    assert!(report.contains("without_functions: true"), "{report}");
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

/// Writes the profile of the branches of an object, by default of the one with most.
fn profile(
    path: &Path,
    threads: ExportThreads,
    form: ProfileForm,
    binary: Option<&Path>,
) -> Option<(Output, Option<Error>)> {
    let source = RecordingReader::open_path(path, Options::default()).ok()?;
    let mut samples = Samples::new(source).ok()?;
    let mut bytes = Vec::new();
    let binary = binary.map(|path| Binary::open(path).expect("an object"));
    let mut sink = BranchProfile::new(&mut bytes, form, Sources::default()).with_binary(binary);
    let written = export_in_parts(&mut samples, None, &mut sink, threads)
        .and_then(|report| Ok((report, sink.write()?)));
    let (report, error) = match written {
        Ok(all) => (text(all), None),
        Err(error) => (error.to_string(), Some(error)),
    };
    Some((Output { bytes, report }, error))
}

/// Makes the file of an object that is named as in a message: its name and its build ID, if it has one.
fn object(folder: &Path, named: &str) -> PathBuf {
    let (name, id) = named.split_once(" (build ID ").unwrap_or((named, ""));
    let name = match name.starts_with('[') {
        true => "vmlinux",
        false => name.rsplit('/').next().unwrap_or_default(),
    };
    let digits = id.trim_end_matches(')').as_bytes().chunks_exact(2);
    let id: Vec<u8> = digits
        .map(|two| u8::from_str_radix(&String::from_utf8_lossy(two), 16).expect("a byte"))
        .collect();
    let path = folder.join(name);
    fs::write(&path, named_object(&id, "_text")).expect("a file");
    path
}

#[test]
fn profiles_for_compilers_do_not_depend_on_the_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let written = AtomicUsize::new(0);
    for form in [
        ProfileForm::AutoFdo,
        ProfileForm::LlvmProfgen,
        ProfileForm::Bolt,
    ] {
        check_each(&|path| {
            let (path, written) = (path.to_owned(), &written);
            let own = tempfile::tempdir_in(&folder).expect("a folder");
            // The objects of the recordings are not here: one is made that has the name.
            let binary = match profile(&path, ExportThreads::new(1), form, None) {
                Some((_, Some(Error::Object { name, .. }))) => Some(object(own.path(), &name)),
                _ => None,
            };
            Box::new(move |threads| {
                let _ = &own;
                let (output, _) = profile(&path, threads, form, binary.as_deref())?;
                written.fetch_add(usize::from(!output.bytes.is_empty()), Ordering::Relaxed);
                Some(output)
            })
        });
    }
    assert!(written.into_inner() > 100, "few profiles were written");
}
