//! Real recordings: all of the data, and the rest of the recording without it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use perfdata_core::feature::FeatureId;
use perfdata_core::read::StreamItem;
use perfdata_core::record::RecordType;
use perfdata_tests::convert::{Whole, open, perfconv};
use perfdata_tests::perf;
use perfdata_tests::recordings::{self, Recording};

use super::Extracted;

/// Returns the AUX data of each CPU, found only by the sizes of records.
fn walked(recording: &Path) -> BTreeMap<i64, Vec<u8>> {
    let bytes = fs::read(recording).expect("a recording");
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    assert_eq!(&bytes[..8], b"PERFILE2");
    let (mut at, end) = if word(8) == 16 {
        (16, bytes.len())
    } else {
        (word(40) as usize, (word(40) + word(48)) as usize)
    };
    let mut found: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
    while at < end {
        let size = usize::from(u16::from_le_bytes([bytes[at + 6], bytes[at + 7]]));
        let behind = at + size;
        let payload = match half(at) {
            71 => word(at + 8) as usize,
            66 => half(at + 8) as usize,
            _ => 0,
        };
        if half(at) == 71 {
            let cpu = i64::from(half(at + 40).cast_signed());
            found
                .entry(cpu)
                .or_default()
                .extend_from_slice(&bytes[behind..behind + payload]);
        }
        at = behind + payload;
    }
    found
}

/// Returns the real recordings of Intel PT.
fn intel_pt() -> Vec<Recording> {
    let mut all = recordings::corpus();
    all.retain(|recording| recording.name.contains("intel_pt"));
    all
}

#[test]
fn real_traces_come_out_whole() {
    recordings::check_all(&intel_pt(), |recording| {
        let extracted = Extracted::of_file(&recording.path, &[]);
        let expected = walked(&recording.path);
        assert!(
            expected
                .values()
                .all(|bytes| bytes.starts_with(&[0x02, 0x82].repeat(8))),
            "a PSB packet"
        );
        if extracted.by_cpu() != expected {
            return Err("other bytes".into());
        }
        assert_eq!(extracted.index["auxtrace_info"]["type"], "intel-pt");
        assert_eq!(
            extracted.index["auxtrace_info"]["private"]["tsc_ctc_n"],
            100
        );
        assert_eq!(extracted.index["time_conv"]["time_shift"], 31);
        assert_eq!(extracted.index["features"]["CPUID"], "GenuineIntel,6,78,3");
        let aux = extracted.index["aux_records"].as_array().expect("a list");
        assert!(
            aux.len() > 8 && aux.iter().all(|record| record["queue"].is_u64()),
            "{aux:?}"
        );
        let mmaps = extracted.index["mmaps"].as_array().expect("a list");
        let named = mmaps
            .iter()
            .filter(|map| map["build_id"].is_string())
            .count();
        // The pipe has none.
        assert_eq!(
            named > 60,
            extracted.index["features"].get("CLOCKID").is_none()
                && !recording.name.contains("piped")
        );
        Ok(())
    });
}

#[test]
fn a_stream_is_taken_as_the_file() {
    for recording in intel_pt() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = folder.path().join("aux");
        let (side, other) = (folder.path().join("side"), folder.path().join("other"));
        let mut command = perfconv();
        command
            .args(["extract-aux", "-q", "-", "-o"])
            .arg(&output)
            .arg("--sideband")
            .arg(&side);
        let status = command
            .stdin(fs::File::open(&recording.path).expect("a recording"))
            .status();
        assert!(status.expect("perfconv runs").success());
        let from_file = Extracted::of_file(
            &recording.path,
            &["--sideband", other.to_str().expect("UTF-8")],
        );
        for entry in fs::read_dir(&output).expect("a folder") {
            let name = entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8");
            assert_eq!(
                fs::read(output.join(&name)).expect("a file"),
                from_file.file(&name),
                "{name}"
            );
        }
        assert_eq!(
            fs::read(side).expect("a file"),
            fs::read(other).expect("a file")
        );
    }
}

/// Checks the sideband: all records except AUXTRACE, and no index of them.
fn check_sideband(recording: &Path, sideband: &Path) {
    let mut reader = open(fs::read(recording).expect("a recording")).expect("a recording");
    let (mut expected, mut in_aux) = (Vec::new(), false);
    while let Some(piece) = reader.next().expect("a sound recording") {
        match piece {
            StreamItem::Record(record) => {
                in_aux = record.kind == RecordType::AUXTRACE;
                if !in_aux {
                    expected.extend_from_slice(record.bytes);
                }
            }
            StreamItem::Payload(bytes) if !in_aux => expected.extend_from_slice(bytes),
            _ => {}
        }
    }
    let side = Whole::read_file(sideband).expect("a recording");
    assert!(
        side.stream == expected,
        "{}: other records",
        recording.display()
    );
    let mut features = reader.recording().features.clone();
    features.remove(&FeatureId::AUXTRACE);
    assert_eq!(side.recording.features, features);
}

#[test]
fn the_sideband_is_the_recording_without_the_data() {
    for recording in intel_pt() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let side = folder.path().join("side.data");
        Extracted::of_file(
            &recording.path,
            &["--sideband", side.to_str().expect("UTF-8")],
        );
        check_sideband(&recording.path, &side);
        let script = |perf: &perf::Perf, path: &Path, options: &[&str]| {
            let mut command = perf.command();
            command.args([
                "script",
                "--ns",
                "--show-mmap-events",
                "--show-switch-events",
                "-F",
                "-comm,-sym,-symoff,-dso",
            ]);
            command
                .args(options)
                .arg("-i")
                .arg(path.canonicalize().expect("it is there"));
            perf::run(command).expect("perf runs")
        };
        for perf in perf::all()
            .iter()
            .filter(|perf| perf.endian == recordings::Endian::Little)
        {
            let new = script(perf, &side, &["--no-itrace"]);
            let decoding = script(perf, &side, &[]);
            assert!(
                new.success() && decoding.success(),
                "{perf}: {}{}",
                new.stderr,
                decoding.stderr
            );
            assert_eq!(
                new.stdout.lines().count(),
                decoding.stdout.lines().count(),
                "{perf}"
            );
            // Without decoding, no perf can skip AUX data in a pipe.
            if !recording.name.contains("piped") {
                let old = script(perf, &recording.path, &["--no-itrace"]);
                assert_eq!(tidy(&new.stdout), tidy(&old.stdout), "{perf}");
            }
        }
    }
}

/// Removes the padding of columns. perf since 6.12 makes them as wide as the longest event name so
/// far, including decoded events.
fn tidy(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}
