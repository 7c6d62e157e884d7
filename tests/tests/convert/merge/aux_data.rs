//! AUX data of one of several recordings.

use std::fs;

use perfdata_convert::io::Input;
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, RecordType};
use perfdata_edit::merge::{Align, Merge};
use perfdata_tests::convert::Whole;
use perfdata_tests::recordings::in_parallel;
use perfdata_tests::synth::attr::Stamp;
use perfdata_tests::synth::attr::sample_type::*;
use perfdata_tests::synth::auxtrace::{self, Origin};
use perfdata_tests::synth::buf::Buf;
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::record::{Scribe, stream};
use perfdata_tests::{recordings, skipped};

use super::{BASE, Small, event, merge, merge_noting, merge_with, records, samples, with_kernel};

/// Adds AUX data to a recording, in two blocks.
fn with_aux(small: &Small) -> File {
    let mut file = small.file();
    let attr = file.events[0].attr.clone();
    let mut s = Scribe::new(false, attr.clone(), Stamp::ZERO);
    auxtrace::info(&mut s, "INTEL_PT", 1, |b| b.u64s(&auxtrace::INTEL_PT));
    file.data.splice(0..0, stream(&s.cases));
    let mut s = Scribe::new(false, attr, Stamp::ZERO);
    for block in 0..2 {
        let origin = Origin {
            offset: block * 4096,
            reference: block,
            idx: 0,
            tid: u32::MAX,
            cpu: 0,
        };
        auxtrace::piece(&mut s, "AUXTRACE", origin, &[7 + block as u8; 4096]);
    }
    file.data.extend(stream(&s.cases));
    file
}

/// The AUX data of a recording: their description, and the records with their payloads.
fn aux_of(bytes: &[u8]) -> Vec<Vec<u8>> {
    let whole = Whole::read(bytes.to_vec()).expect("a recording");
    let ends = whole.records.iter().skip(1).map(|next| next.0);
    let ends = ends.chain([whole.records_end]);
    let all = whole.records.iter().zip(ends);
    let kinds = [RecordType::AUXTRACE_INFO, RecordType::AUXTRACE];
    all.filter(|((_, kind), _)| kinds.contains(kind))
        .map(|(&(start, _), end)| whole.stream[start..end].to_vec())
        .collect()
}

fn tracer(times: &[u64]) -> Small {
    Small::new(event(BASE, 4000, &[7]), "traced", times)
}

#[test]
fn aux_data_stay_with_their_records() {
    let traced = with_aux(&tracer(&[100, 300])).bytes();
    let expected = aux_of(&traced);
    assert_eq!(expected.len(), 3);
    assert!(expected[1].len() > 4096);
    let other = Small {
        pid: 2000,
        ..Small::new(event(BASE | ID, 5000, &[8]), "other", &[50, 200])
    }
    .bytes();
    for inputs in [[&traced, &other], [&other, &traced]] {
        let inputs = inputs.map(|bytes| &**bytes);
        let both = merge(&inputs);
        assert_eq!(aux_of(&both), expected);
        assert_eq!(samples(&both).len(), 4);
        let pipe = Some(ContainerKind::Pipe);
        let sources = inputs.map(|bytes| Input::from_source(bytes.to_vec()));
        let (piped, _) = merge_noting(Merge::default(), sources.into(), pipe).expect("a pipe");
        assert_eq!(aux_of(&piped), expected);
    }
    let three = merge(&[&merge(&[&traced, &other]), &tracer(&[400]).bytes()]);
    assert_eq!(aux_of(&three), expected);
}

/// What decoders of AUX data take from them cannot be changed.
#[test]
fn aux_data_that_would_change_are_refused() {
    let traced = with_aux(&tracer(&[100, 300])).bytes();
    let other = tracer(&[200]).bytes();
    let refuse = |merge: Merge, inputs: &[&[u8]]| {
        merge_with(merge, inputs).expect_err("AUX data cannot be changed")
    };
    let error = refuse(Merge::default(), &[&traced, &other, &traced]);
    assert!(error.starts_with("a and c both have AUX data"), "{error}");
    for merge in [
        Merge {
            align: Align::After,
            ..Merge::default()
        },
        Merge {
            machines: true,
            ..Merge::default()
        },
    ] {
        let error = refuse(merge, &[&other, &traced]);
        assert!(error.starts_with("b has AUX data, whose"), "{error}");
    }
    // A PMU with two types.
    let typed = |mut file: File, kind: u32| {
        file.events[0].attr.kind = kind;
        let pmus = Buf::new(false).u32(1).u32(kind).str("intel_pt");
        file.set_feature(16, pmus.bytes);
        file.bytes()
    };
    let (traced, other) = (
        typed(with_aux(&tracer(&[100])), 8),
        typed(tracer(&[200]).file(), 9),
    );
    let error = refuse(Merge::default(), &[&other, &traced]);
    assert_eq!(
        error,
        "b has AUX data of a PMU that has another type in a: name it first"
    );
    assert_eq!(aux_of(&merge(&[&traced, &other])), aux_of(&traced));
}

/// A trace contains addresses of the kernel.
#[test]
fn a_kernel_in_aux_data_is_not_moved() {
    let at_wall_clock = |kernel: u64, times: &[u64]| {
        let mut small = Small {
            kernel,
            ..tracer(times)
        };
        small.events[0].attr.flags += " use_clockid";
        small
    };
    let first = at_wall_clock(0xffff_ffff_8100_0000, &[100]);
    let second = at_wall_clock(0xffff_ffff_9200_0000, &[200]);
    let rebase = Merge {
        rebase_kernel: true,
        ..Merge::default()
    };
    let traced = with_kernel(with_aux(&second), 1);
    let error = merge_with(rebase, &[&with_kernel(first.file(), 1), &traced]);
    assert_eq!(
        error.expect_err("it would move"),
        "b has AUX data with addresses of the kernel, which cannot be moved: name it first"
    );
    let moved = merge_with(rebase, &[&traced, &with_kernel(first.file(), 1)]);
    assert_eq!(aux_of(&moved.expect("the other moves")), aux_of(&traced));
}

/// A real trace of Intel PT with a recording of the same clock.
#[test]
fn real_aux_data_stay_with_their_records() {
    let mut all = recordings::corpus();
    all.retain(|recording| recording.name.contains("intel_pt") && recording.path.is_file());
    if all.is_empty() {
        return skipped::note("recordings of Intel PT");
    }
    in_parallel(&all, |recording| {
        let bytes = fs::read(&recording.path).expect("a recording");
        let whole = Whole::read(bytes.clone()).expect("a recording");
        let attr = &whole.recording.events[0].attr;
        let middle = records(&bytes).iter().filter_map(|record| record.1).max();
        let mut other = tracer(&[middle.expect("there are times") / 2]);
        if attr.flags.use_clockid() != 0 {
            other.events[0].attr.flags += " use_clockid";
            other.events[0].attr.clockid = attr.clockid.unwrap_or(0);
        }
        let kernel = records(&bytes)
            .iter()
            .find_map(|(_, _, record)| match &record.body {
                Body::Mmap(map) if map.pid == u32::MAX => Some(map.addr),
                _ => None,
            });
        other.kernel = kernel.unwrap_or(other.kernel);
        let both = merge(&[&bytes, &other.bytes()]);
        assert!(aux_of(&both) == aux_of(&bytes), "{}", recording.name);
        assert_eq!(samples(&both).len(), samples(&bytes).len() + 1);
    });
}
