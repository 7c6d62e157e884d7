//! What perf of a release shows of a converted recording of another release.

use std::path::Path;

use perfdata_convert::stages::compat::Compat;
use perfdata_convert::stages::swap::Unknown;
use perfdata_tests::convert::{convert, perfconv};
use perfdata_tests::judge::{self, Texts};
use perfdata_tests::perf::{self, Perf, Question};
use perfdata_tests::recordings::{self, Endian, PerfVersion};
use perfdata_tests::skipped;

use super::made::made;
use super::{all_recordings, single_recordings, version};

/// Converts recordings of other releases for perf `major`.`minor`, and checks that this perf shows
/// the events.
fn check_other_release(major: u16, minor: u16, is_other: impl Fn(&PerfVersion) -> bool) {
    let perfs = [Endian::Little, Endian::Big].map(|endian| perf_of(major, minor, endian));
    let release = version(&format!("{major}.{minor}"));
    let mut others = all_recordings();
    others.retain(|recording| {
        recording
            .recorder
            .as_ref()
            .is_some_and(|recorder| is_other(&recorder.perf))
    });
    recordings::check_all(&others, |recording| {
        let endian = recording.form.map(|form| form.endian);
        let Some(perf) = perfs
            .iter()
            .flatten()
            .find(|perf| Some(perf.endian) == endian)
        else {
            return Ok(());
        };
        let converted = match convert(&recording.path, None, vec![Box::new(Compat::new(release))]) {
            // No records would remain, or no callchain.
            Err(error)
                if error
                    .to_string()
                    .contains("knows none of the recording's data records") =>
            {
                return Ok(());
            }
            Err(error) if error.to_string().contains("CALLCHAIN_DEFERRED") => {
                let dropping = Box::new(Compat::new(release).deciding(Unknown::Drop));
                convert(&recording.path, None, vec![dropping])
            }
            other => other,
        };
        let converted = converted.map_err(|error| error.to_string())?;
        judge::compare_events(recording, &Texts::new(&converted.path(), perf))
    });
}

#[test]
fn perf_6_1_reads_what_later_ones_recorded() {
    check_other_release(6, 1, |perf| *perf > PerfVersion { major: 6, minor: 1 });
}

#[test]
fn perf_6_12_reads_what_later_ones_recorded() {
    check_other_release(6, 12, |perf| {
        *perf
            > PerfVersion {
                major: 6,
                minor: 12,
            }
    });
}

/// perf 7.2 rejects stat recordings whose COMPRESSED section consists of zeros, build IDs and CPU
/// maps of unaligned size, and empty sections.
#[test]
fn perf_7_2_reads_what_it_refused() {
    let Some(perf) = perf_of(7, 2, Endian::Little) else {
        return;
    };
    let mut repaired = 0;
    let mut all = single_recordings();
    let old = [
        "quipper/piped.header_features-4.16",
        "quipper/armv7.perf_3.14-3.8",
    ];
    all.extend(
        recordings::corpus()
            .into_iter()
            .filter(|r| old.contains(&r.name.as_str())),
    );
    for recording in &all {
        let is_stat = ["stat-record", "-hw-stat"]
            .iter()
            .any(|what| recording.name.contains(what));
        // Tracepoints without their formats, and a file that ends in zeros.
        let is_hopeless =
            recording.name.contains("stat-record-group") || recording.name == "6.1-x86_64-hw-stat";
        let is_known = is_stat
            || recording.name.contains("file-injected")
            || old.contains(&recording.name.as_str());
        if !is_known
            || is_hopeless
            || Texts::new(&recording.path, perf)
                .is_readable()
                .expect("perf starts")
        {
            continue;
        }
        let stage = Box::new(Compat::new(version("7.2")));
        let converted = convert(&recording.path, None, vec![stage]).expect("a conversion");
        let script = Texts::new(&converted.path(), perf);
        let script = script.answer(Question::Script).expect("perf starts");
        assert!(
            script.success() && !script.stdout.is_empty(),
            "{}: {}",
            recording.name,
            script.stderr
        );
        repaired += 1;
    }
    assert!(repaired > 5, "only {repaired} recordings were repaired");
}

/// perf 6.1 misinterprets branch counters as the data after them, and perf before 6.0 the counts of
/// lost samples.
#[test]
fn an_older_perf_reads_the_same_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = made(folder.path());
    let (Some(newer), Some(older)) = (perf_of(7, 2, Endian::Little), perf_of(6, 1, Endian::Little))
    else {
        return;
    };
    let text = |perf: &Perf, path: &Path| {
        let mut command = perf.command();
        command
            .args([
                "script",
                "-F",
                "comm,tid,cpu,time,event,ip,period,weight,brstack",
                "-i",
            ])
            .arg(path);
        let said = perf::run(command).expect("perf starts");
        assert!(said.success(), "{}", said.stderr);
        // A newer perf prints more properties of a branch.
        let words = |line: &str| -> Vec<String> {
            line.split_whitespace()
                .map(|word| word.split("/P/").next().unwrap_or_default().to_owned())
                .collect()
        };
        said.stdout.lines().map(words).collect::<Vec<_>>()
    };
    let converted = convert(&input, None, vec![Box::new(Compat::new(version("6.1")))])
        .expect("it is converted");
    let (new, old) = (text(newer, &input), text(older, &converted.path()));
    // perf shows each sample with the counts of both events.
    assert_eq!(
        new.iter().filter(|line| !line.is_empty()).count(),
        20,
        "{new:?}"
    );
    assert_eq!(new, old);
}

/// A regression test: perf 6.1 interpreted the branch counters of samples as their weights.
#[test]
fn branch_counters_are_no_weights() {
    let Some(perf) = perf_of(6, 1, Endian::Little) else {
        return;
    };
    let Some(bc) = recordings::further("defects/bc.data") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("old.data");
    let mut command = perfconv();
    command
        .args(["--compat", "6.1"])
        .arg(&bc)
        .arg("-o")
        .arg(&output);
    assert!(command.output().expect("perfconv runs").status.success());
    let mut command = perf.command();
    command.args(["script", "-F", "weight", "-i"]).arg(&output);
    let said = perf::run(command).expect("perf starts");
    assert!(
        said.stdout.lines().count() > 100 && said.stdout.lines().all(|line| line.trim() == "77"),
        "{}",
        said.stderr
    );
}

fn perf_of(major: u16, minor: u16, endian: Endian) -> Option<&'static Perf> {
    let wanted = PerfVersion { major, minor };
    let found = perf::all()
        .iter()
        .find(|perf| perf.version == wanted && perf.endian == endian);
    if found.is_none() {
        skipped::note(format_args!("a {endian:?}-endian perf {wanted}"));
    }
    found
}
