//! Names are bytes: each format contains all of them, and no name ends a line or a text.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use flate2::read::GzDecoder;
use perfdata_core::read::Limits;
use perfdata_core::record::CpuMode;
use perfdata_export::{
    Firefox, FlameGraph, FlameGraphForm, Folded, Label, Like, Otlp, PerfScript, Pprof, Sink,
    Sources, Speedscope, Symbolizer, export, push_text,
};
use serde_json::Value;

use crate::export::page_data;
use crate::messages::contents;
use crate::session::{Stream, USER, USUAL};

const PID: u32 = 5;
const COMM: &[u8] = b"c;\"\\\n\xff\x1b<&";
const FOLDER: &[u8] = b"/d;\"\\\n\xff\x1b<&/";
const FILE: &[u8] = b"o;\"\\\n\xff\x1b<&";
const FUNCTION: &[u8] = b"f;\"\\\r\xff\x1b<& g";

/// Passes one sample, in a function that a file without symbols calls, to a sink.
fn run(sink: &mut dyn Sink) {
    let root = tempfile::tempdir().expect("a folder");
    let maps = root.path().join("tmp");
    std::fs::create_dir(&maps).expect("a folder");
    let map = [b"1000 100 ", FUNCTION, b"\n"].concat();
    std::fs::write(maps.join(format!("perf-{PID}.map")), map).expect("a perf map");
    let mut stream = Stream::new(USUAL);
    stream.comm(PID, PID, COMM, false);
    stream.map(CpuMode::USER, PID, 0x1000, 0x1000, 0, "//anon");
    let path = [FOLDER, FILE].concat();
    stream.map(CpuMode::USER, PID, 0x8000, 0x1000, 0, path);
    stream.sample(CpuMode::USER, (PID, PID), &[USER, 0x1010, 0x8010]);
    let root = root.path().to_owned();
    let locate = move |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
    let sources = Sources::default()
        .with_root(Some(Arc::new(locate)))
        .with_unverified(true);
    let mut samples = stream.samples(Limits::default());
    let report = export(&mut samples, Some(Symbolizer::new(sources)), sink).expect("it is sound");
    assert_eq!((report.frames, report.unnamed), (2, 1));
}

fn text(name: &[u8]) -> String {
    let mut text = String::new();
    push_text(&mut text, name);
    assert!(!text.contains(char::is_control));
    text
}

fn path() -> String {
    text(&[FOLDER, FILE].concat())
}

fn contains(list: &Value, name: &str) -> bool {
    let list = list.as_array().expect("a list");
    list.iter().any(|value| value.as_str() == Some(name))
}

#[test]
fn folded_stacks_have_one_line() {
    let mut out = Vec::new();
    run(&mut Folded::new(&mut out));
    let name = |name| text(name).replace(';', ":");
    let expected = format!("{};[{}];{} 3\n", name(COMM), name(FILE), name(FUNCTION));
    assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
}

/// perf does not escape names.
#[test]
fn the_text_of_perf_script_contains_the_bytes() {
    let mut out = Vec::new();
    run(&mut PerfScript::new(&mut out, Like::default()));
    let line = b"       5 [001]     0.000000:          3 cycles: \n\t            1010 ";
    let start = [COMM, line, FUNCTION, b"+0x10 ("].concat();
    assert!(out.starts_with(&start), "{}", out.escape_ascii());
    let callers = [b"\t            8010 [unknown] (", FOLDER, FILE, b")\n\n"];
    assert!(out.ends_with(&callers.concat()), "{}", out.escape_ascii());
}

#[test]
fn profiles_for_pprof_and_opentelemetry_contain_the_names() {
    let mut out = Vec::new();
    run(&mut Pprof::new(&mut out).with_labels(vec![Label::Comm]));
    let mut profile = Vec::new();
    let read = GzDecoder::new(&*out).read_to_end(&mut profile);
    read.expect("compressed");
    let mut file = Vec::new();
    run(&mut Otlp::new(&mut file).with_labels(vec![Label::Comm]));
    let strings = contents(&contents(&file, 2)[0], 5);
    for strings in [contents(&profile, 6), strings] {
        for name in [path(), text(FUNCTION)] {
            assert!(strings.contains(&name.clone().into_bytes()), "{name}");
        }
    }
    assert!(contents(&profile, 6).contains(&text(COMM).into_bytes()));
}

#[test]
fn speedscope_has_the_names() {
    let mut out = Vec::new();
    run(&mut Speedscope::new(&mut out, FILE));
    let file: Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(file["name"], text(FILE));
    let frames = file["shared"]["frames"].as_array().expect("frames");
    for name in [text(FUNCTION), format!("[{}]", text(FILE))] {
        assert!(frames.iter().any(|frame| frame["name"] == name), "{name}");
    }
    let profiles = file["profiles"].as_array().expect("profiles");
    let is_thread = |profile: &Value| {
        let name = profile["name"].as_str().expect("a name");
        name.contains(&text(COMM))
    };
    assert!(profiles.iter().any(is_thread));
}

#[test]
fn firefox_has_the_names() {
    let mut out = Vec::new();
    run(&mut Firefox::new(&mut out, FILE));
    let profile: Value = serde_json::from_reader(GzDecoder::new(&*out)).expect("JSON");
    assert!(contains(&profile["shared"]["stringArray"], &text(FUNCTION)));
    assert_eq!(profile["threads"][0]["name"], text(COMM));
    let libs = profile["libs"].as_array().expect("libraries");
    assert!(libs.iter().any(|lib| lib["path"] == path()));
}

#[test]
fn flame_graphs_have_the_names() {
    let form = |form| {
        let mut out = Vec::new();
        run(&mut FlameGraph::new(&mut out, form, FILE));
        String::from_utf8(out).expect("UTF-8")
    };
    let data = page_data(&form(FlameGraphForm::Page));
    let all = data.to_string();
    for name in [text(FUNCTION), format!("[{}]", text(FILE)), text(COMM)] {
        let quoted = Value::from(name).to_string();
        assert!(all.contains(&quoted), "{quoted} in {all}");
    }
    let picture = form(FlameGraphForm::Picture);
    let name = text(FUNCTION).replace('&', "&amp;").replace('<', "&lt;");
    assert!(picture.contains(&format!("<title>{name} (")), "{picture}");
}
