//! The packets of traces, as `perfconv dump --aux` shows them.

use perfdata_convert::io::Input;
use perfdata_convert::pipeline::Stage;
use perfdata_core::record::RecordType;
use perfdata_edit::sort::Sort;
use perfdata_inject::itrace::{Itrace, ItraceOptions};
use perfdata_report::show::aux_packets::{AuxPackets, AuxPacketsShown};
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::generate::random::Random;
use perfdata_tests::synth::hardware_trace::{TraceKind, file};
use perfdata_tests::traces;
use serde_json::Value;

fn shown(bytes: &[u8], form: AuxPackets) -> (AuxPacketsShown, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("in.data");
    std::fs::write(&path, bytes).expect("a file");
    let mut out = Vec::new();
    let shown = form.run(Input::open(&path).expect("a recording"), &mut out);
    let shown = shown.expect("the packets are known");
    (shown, String::from_utf8(out).expect("text"))
}

fn objects(text: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).expect("a line is an object");
    text.lines().map(parse).collect()
}

fn json() -> AuxPackets {
    AuxPackets::default().with_json(true)
}

/// Each byte of any trace is in one packet, its padding, or an error, in both byte orders.
#[test]
fn each_byte_is_in_one_line() {
    let random = &mut Random(3);
    let mut any = |size: usize| (0..size).map(|_| random.word() as u8).collect::<Vec<u8>>();
    let noise = [any(8000), any(8), any(16), Vec::new()];
    let random = &mut Random(4);
    let cases = [
        (TraceKind::INTEL_PT, traces::intel_pt(random, 30_000, true)),
        (TraceKind::INTEL_BTS, traces::intel_bts(random, 100)),
        (TraceKind::ARM_SPE, traces::arm_spe(random, 30_000)),
    ];
    for (kind, trace) in cases {
        let pieces = [&noise[..], &[trace]].concat();
        for big in [false, true] {
            let (_, text) = shown(&file(big, kind, &pieces, &[]).bytes(), json());
            let mut sizes = Vec::new();
            for object in objects(&text) {
                let number = |name: &str| object[name].as_u64();
                if let Some(at) = number("at") {
                    let sum: &mut u64 = sizes.last_mut().expect("the record comes before");
                    assert_eq!(at, *sum, "{object}");
                    let size = number("size").expect("a size");
                    assert!(object["packet"].is_string() != object["error"].is_string());
                    *sum += size + number("padding").unwrap_or(0);
                } else {
                    assert_eq!(object["type"], "AUXTRACE");
                    sizes.push(0);
                }
            }
            let expected: Vec<_> = pieces.iter().map(|piece| piece.len() as u64).collect();
            assert_eq!(sizes, expected, "{kind:?}");
        }
    }
}

/// Any bytes as branches of Intel BTS become samples or errors.
#[test]
fn damaged_branches_are_converted() {
    let random = &mut Random(6);
    let mut any = |size: usize| (0..size).map(|_| random.word() as u8).collect::<Vec<u8>>();
    let pieces = [any(8000), any(8), Vec::new(), any(48), vec![0; 480]];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("in.data");
    for big in [false, true] {
        let bytes = file(big, TraceKind::INTEL_BTS, &pieces, &[]).bytes();
        std::fs::write(&path, bytes).expect("a file");
        for words in ["b", "cre", "e", ""] {
            let options = ItraceOptions::parse(words).expect("options");
            let stages: Vec<Box<dyn Stage>> =
                vec![Box::new(Sort::new()), Box::new(Itrace::new(options, false))];
            let converted = convert(&path, None, stages).expect("it is converted");
            let whole = Whole::read_file(&converted.path()).expect("a recording");
            let samples = whole.records.iter();
            let samples = samples.filter(|(_, kind)| *kind == RecordType::SAMPLE);
            let expected = if words == "b" { 8000 / 24 + 2 } else { 0 };
            assert_eq!(samples.count(), expected, "{words}");
        }
    }
}

#[test]
fn packets_as_objects() {
    let pt = vec![
        0x02, 0x03, 0x0a, 0x00, 0x6d, 1, 2, 3, 4, 5, 6, 0x05, 0, 0, 0, 0,
    ];
    let traces = [pt];
    let bytes = file(false, TraceKind::INTEL_PT, &traces, &traces).bytes();
    let (counts, text) = shown(&bytes, json());
    assert_eq!((counts.packets, counts.bad), (6, 2));
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0]
            .contains(r#""type":"SAMPLE","size":72,"pid":1000,"tid":1000,"time":1000900,"cpu":0}"#)
    );
    assert!(lines[5].contains(r#""type":"AUXTRACE""#));
    let without_record = |line: &str| {
        let (_, rest) = line.split_once(',').expect("several fields");
        rest.to_owned()
    };
    for lines in [&lines[1..5], &lines[6..10]] {
        let found: Vec<String> = lines.iter().map(|line| without_record(line)).collect();
        let expected = [
            r#""at":0,"size":4,"packet":"CBR","text":"CBR 0xa","fields":{"ratio":10,"reserved":0}}"#,
            r#""at":4,"size":7,"packet":"TIP","text":"TIP 0x60504030201","fields":{"ip":"0x60504030201"}}"#,
            r#""at":11,"size":1,"error":"no packet","bytes":"05"}"#,
            r#""at":12,"size":1,"padding":3,"packet":"PAD","text":"PAD","fields":{}}"#,
        ];
        assert_eq!(found, expected);
    }
    assert_eq!(lines.len(), 10);
}

#[test]
fn a_limit_ends_the_output() {
    let pieces = vec![traces::intel_pt(&mut Random(5), 10_000, false); 2];
    let bytes = file(false, TraceKind::INTEL_PT, &pieces, &[]).bytes();
    let (all, _) = shown(&bytes, json());
    for limit in [0, 1, 700, all.packets - 1, all.packets + 1] {
        let (counts, text) = shown(&bytes, json().with_limit(Some(limit)));
        assert_eq!(counts.packets, limit.min(all.packets));
        let packets = objects(&text)
            .iter()
            .filter(|object| !object["at"].is_null())
            .count();
        assert_eq!(packets as u64, counts.packets);
    }
}

#[test]
fn other_traces_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("in.data");
    let bytes = file(false, TraceKind::HISI_PTT, &[vec![0; 8]], &[]).bytes();
    std::fs::write(&path, bytes).expect("a file");
    let input = Input::open(&path).expect("a recording");
    let error = AuxPackets::default().run(input, &mut Vec::new());
    let error = error.expect_err("the packets are not known").to_string();
    assert!(error.contains("this is a trace of hisi-ptt"), "{error}");
    assert!(error.contains("extract-aux"), "{error}");
}
