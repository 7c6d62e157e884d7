//! Generated recordings are the same for the same seed, sorted, and readable by perf.

use std::fs;
use std::io::Cursor;

use perfdata_convert::io::Input;
use perfdata_convert::verify::Report;
use perfdata_core::Endian;
use perfdata_core::record::RecordType;
use perfdata_tests::convert::Whole;
use perfdata_tests::generate::{Generator, Mix};
use perfdata_tests::perf::{self, Question};
use perfdata_tests::recordings;

const SIZE: u64 = 250_000;

fn file(generator: &Generator) -> Vec<u8> {
    generator
        .file(Cursor::new(Vec::new()))
        .expect("memory takes everything")
        .into_inner()
}

fn all() -> impl Iterator<Item = Generator> {
    let orders = [Endian::Little, Endian::Big];
    Mix::ALL.into_iter().flat_map(move |mix| {
        orders.map(|endian| Generator {
            endian,
            ..Generator::new(mix, SIZE)
        })
    })
}

#[test]
fn one_seed_makes_one_recording() {
    for generator in all() {
        let bytes = file(&generator);
        assert_eq!(bytes, file(&generator), "{generator:?}");
        assert_ne!(
            bytes,
            file(&Generator {
                seed: 2,
                ..generator
            }),
            "{generator:?}"
        );
        let compressed = if generator.mix == Mix::Compressed {
            8
        } else {
            1
        };
        let len = bytes.len() as u64;
        assert!(
            len > SIZE / compressed && len < SIZE + 20_000,
            "{generator:?}: {len} bytes"
        );
    }
}

#[test]
fn a_pipe_has_the_records_of_a_file() {
    for generator in all() {
        let pipe = Whole::read(generator.pipe(Vec::new()).expect("memory takes everything"))
            .expect("a recording");
        let file = Whole::read(file(&generator)).expect("a recording");
        assert!(pipe.stream == file.stream, "{generator:?}");
    }
}

#[test]
fn nothing_is_wrong_with_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("generated.data");
    for generator in all() {
        fs::write(&path, file(&generator)).expect("a temporary file");
        let report = Report::of(Input::open(&path).expect("it is there")).expect("a recording");
        let findings: Vec<_> = report
            .findings
            .iter()
            .map(|finding| &finding.meaning)
            .collect();
        assert!(report.is_clean(), "{generator:?}: {findings:?}");
    }
}

/// perf finds all samples, events with names, and no errors.
#[test]
fn perf_reads_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for perf in perf::all() {
        for generator in
            all().filter(|g| (g.endian == Endian::Big) == (perf.endian == recordings::Endian::Big))
        {
            let path = folder.path().join("generated.data");
            fs::write(&path, file(&generator)).expect("a temporary file");
            let said = perf.ask(Question::Script, &path).expect("perf starts");
            assert!(
                said.success() && said.stderr.is_empty(),
                "{perf}, {generator:?}: {}",
                said.stderr
            );
            let is_sample = |line: &&str| {
                line.contains(" cycles: ") || line.contains("synth:demo: ") || is_other(line)
            };
            assert_eq!(
                said.stdout.lines().filter(is_sample).count(),
                samples(&generator),
                "{perf}, {generator:?}"
            );
        }
    }
}

/// Returns whether a line of perf script shows a sample of an event other than `cycles`.
fn is_other(line: &str) -> bool {
    ["instructions: ", "cache-misses: ", "page-faults: "]
        .iter()
        .any(|name| line.contains(name))
}

/// Returns the number of samples in a generated recording. A compressed recording has the same
/// number as its uncompressed twin.
fn samples(generator: &Generator) -> usize {
    let mix = if generator.mix == Mix::Compressed {
        Mix::Callchains
    } else {
        generator.mix
    };
    let whole = Whole::read(file(&Generator { mix, ..*generator })).expect("a recording");
    whole
        .records
        .iter()
        .filter(|record| record.1 == RecordType::SAMPLE)
        .count()
}
