//! An older perf reads what a newer one recorded, and a newer one what an older one did.

use perfdata_convert::convert::compat::Compat;
use perfdata_core::Version;
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::judge::Texts;
use perfdata_tests::perf::{self, Perf, Question};
use perfdata_tests::recordings::{self, Container, Endian, Form, PerfVersion, Recording};

/// Recordings whose text differs between releases of perf for reasons of its own, and those reasons.
const OTHER_TEXT: &[(&str, &str)] = &[
    ("-file-defer", "the deferred callchains are left out, and with them what they add to other lines"),
    ("-pipe-tp-mixed", "perf 6.1 cannot print a dynamic array of bytes that perf 7.2 can"),
    ("-tool-kmem", "perf 6.1 prints addresses in tracepoints as numbers, later ones as symbols of the reader"),
    ("-pipe-stat-I", "perf 6.1 and 6.12 print an aggregation that they cannot read in different words"),
    ("-odd-64events", "perf 6.12 forgets the name of a thread that ended, which stands in the text of its tracepoints"),
];

fn version(text: &str) -> Version {
    text.parse().expect("a release")
}

fn perf_of(major: u16, minor: u16) -> Option<&'static Perf> {
    let wanted = PerfVersion { major, minor };
    let found = perf::all().iter().find(|perf| perf.version == wanted && perf.endian == Endian::Little);
    if found.is_none() {
        eprintln!("skipped: no perf {wanted}");
    }
    found
}

fn single_recordings() -> Vec<Recording> {
    let mut all = recordings::fixtures();
    all.extend(recordings::shared());
    all.retain(|r| {
        matches!(r.form, Some(Form { container: Container::File | Container::Pipe, endian: Endian::Little }))
    });
    all
}

/// What every line says from the time on, in order. Names of threads before it, callchains and the width of columns
/// depend on the release that prints.
fn events(text: &str) -> Vec<String> {
    let is_time =
        |word: &&str| word.ends_with(':') && word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
    let event = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(is_time)?;
        Some(words.get(at..)?.join(" "))
    };
    let mut events: Vec<String> = text.lines().filter(|line| !line.starts_with('\t')).filter_map(event).collect();
    events.sort();
    events
}

#[test]
fn perf_6_1_reads_what_later_ones_recorded() {
    let Some(perf) = perf_of(6, 1) else { return };
    let newer: Vec<_> = single_recordings()
        .into_iter()
        .filter(|r| r.recorder.as_ref().is_some_and(|recorder| recorder.perf > perf.version))
        .collect();
    recordings::check_all(&newer, |recording| {
        let stage = Box::new(Compat::new(version("6.1")));
        let converted = convert(&recording.path, None, vec![stage]).map_err(|error| error.to_string())?;
        let golden = perf::text(&recording.script_text().ok_or("no text beside it")?);
        if events(&golden).is_empty() {
            return Ok(());
        }
        let texts = Texts::new(&converted.path(), perf);
        if recording.name == "6.12-aarch64-odd-names" {
            // perf 6.1 frees memory twice when it meets the names in it.
            return Ok(());
        }
        if !texts.is_readable()? {
            return Err(format!("{perf} does not read it: {}", texts.answer(Question::Script)?.stderr));
        }
        let (old, new) = (events(&golden), events(&texts.answer(Question::Script)?.stdout));
        if old == new || OTHER_TEXT.iter().any(|(name, _)| recording.name.contains(name)) {
            return Ok(());
        }
        let first = old.iter().zip(&new).find(|(old, new)| old != new);
        Err(format!("{} events before, {} after; the first to differ: {first:?}", old.len(), new.len()))
    });
}

/// perf 7.2 refuses stat recordings whose COMPRESSED section is all zeros, build ids and CPU maps of odd size, and
/// empty sections.
#[test]
fn perf_7_2_reads_what_it_refused() {
    let Some(perf) = perf_of(7, 2) else { return };
    let mut repaired = 0;
    let mut all = single_recordings();
    let old = ["quipper/piped.header_features-4.16", "quipper/armv7.perf_3.14-3.8"];
    all.extend(recordings::corpus().into_iter().filter(|r| old.contains(&r.name.as_str())));
    for recording in &all {
        let is_stat = ["stat-record", "-hw-stat"].iter().any(|what| recording.name.contains(what));
        // Tracepoints without their formats, and a file that ends in zeros.
        let is_hopeless = recording.name.contains("stat-record-group") || recording.name == "6.1-x86_64-hw-stat";
        let is_known = is_stat || recording.name.contains("file-injected") || old.contains(&recording.name.as_str());
        if !is_known || is_hopeless || Texts::new(&recording.path, perf).is_readable().expect("perf starts") {
            continue;
        }
        let stage = Box::new(Compat::new(version("7.2")));
        let converted = convert(&recording.path, None, vec![stage]).expect("a conversion");
        let script = Texts::new(&converted.path(), perf);
        let script = script.answer(Question::Script).expect("perf starts");
        assert!(script.success() && !script.stdout.is_empty(), "{}: {}", recording.name, script.stderr);
        repaired += 1;
    }
    assert!(repaired > 5, "only {repaired} recordings were repaired");
}

/// A recording that was killed says that it has no data; it says so still when records were changed.
#[test]
fn unfinished_recordings_stay_unfinished() {
    let unfinished: Vec<_> =
        single_recordings().into_iter().filter(|recording| recording.name.contains("file-crashed")).collect();
    for recording in &unfinished {
        let before = Whole::read_file(&recording.path).expect("a recording");
        let stage = Box::new(Compat::new(version("5.10")));
        let converted = convert(&recording.path, None, vec![stage]).expect("a conversion");
        let after = Whole::read(converted.bytes()).expect("a recording");
        assert!(after.records.len() + 9 >= before.records.len(), "{}: {} records", recording.name, after.records.len());
    }
}
