//! perf shows a sanitized recording as the original, under other names: the same samples in the
//! same order, with the same events, groups, callchain depths and differences of times; for a
//! vendor, also the same symbols.

use std::collections::HashMap;
use std::path::Path;

use perfdata_core::attr::{HardwareEvent, SampleType, SoftwareEvent};
use perfdata_edit::thin::Thin;
use perfdata_sanitize::{Audience, Key, Policy, Sanitize};
use perfdata_tests::convert::{Converted, convert};
use perfdata_tests::judge::can_judge;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, Recording};
use perfdata_tests::skipped;

/// Recordings of all kinds: callchains, branches, tracepoints, threads, pipes, compressed ones,
/// namespaces, probes, counts, other byte orders and machines.
const RECORDINGS: [&str; 19] = [
    "6.1-x86_64-file-g",
    "6.1-x86_64-file-z",
    "6.1-x86_64-pipe-default",
    "6.1-i386-file-tp-mixed",
    "6.1-i386-file-dwarf",
    "6.1-i386-file-threads",
    "6.12-x86_64-pipe-injected",
    "6.12-aarch64-file-default",
    "6.12-armhf-file-sampleall",
    "7.2-x86_64-file-g",
    "7.2-x86_64-file-cgroup-mk",
    "7.2-x86_64-file-defer",
    "7.2-x86_64-pipe-g",
    "6.1-s390x-file-g",
    "6.1-x86_64-file-kernelonly",
    "6.1-x86_64-file-uprobe",
    "6.12-aarch64-hw-pmuname",
    "6.12-armhf-stat-record-a",
    "6.12-s390x-pipe-a",
];

/// Returns the lines that perf prints.
fn printed(perf: &Perf, path: &Path, fields: &str) -> Result<Vec<String>, String> {
    let mut command = perf.command();
    command.args(["script", "--no-inline", "--ns", "-F", fields]);
    if !fields.contains("ip") {
        // Without callchains.
        command.arg("-G");
    }
    command.arg("-i").arg(path);
    let said = perf::run(command).map_err(|error| error.to_string())?;
    if !said.success() {
        return Err(format!("{perf} -F {fields}: {}", said.stderr));
    }
    Ok(said
        .stdout
        .lines()
        .map(|line| line.trim().to_owned())
        .collect())
}

/// Returns the name of the thread of each sample, without the spaces before it.
fn comms(perf: &Perf, path: &Path) -> Result<Vec<String>, String> {
    let mut comms = Vec::new();
    let mut comm = String::new();
    for line in printed(perf, path, "comm,tid")? {
        // `swapper     0`; a name may have several lines.
        let (name, tid) = line.rsplit_once(' ').unwrap_or(("", &line));
        comm += name.trim();
        match tid.parse::<i64>() {
            Ok(_) => comms.push(std::mem::take(&mut comm)),
            Err(_) => comm += tid,
        }
    }
    Ok(comms)
}

/// Returns whether perf itself gives this name to an event.
fn is_common(event: &str) -> bool {
    let event = event.strip_suffix(':').unwrap_or(event);
    let mut named = HardwareEvent::NAMES.iter().chain(SoftwareEvent::NAMES);
    named.any(|(_, name)| *name == event)
}

/// Checks that old and new words correspond to each other, one to one.
#[derive(Default)]
struct Pairs(HashMap<String, String>, HashMap<String, String>);

impl Pairs {
    fn add(&mut self, old: &str, new: &str) -> Result<(), String> {
        let there = self.0.entry(old.to_owned()).or_insert(new.to_owned()) == new;
        let back = self.1.entry(new.to_owned()).or_insert(old.to_owned()) == old;
        let wrong = || format!("{old:?} became {new:?}, which is not one to one");
        (there && back).then_some(()).ok_or_else(wrong)
    }
}

fn same_number(what: &str, old: &[String], new: &[String]) -> Result<(), String> {
    if old.len() == new.len() {
        return Ok(());
    }
    Err(format!("{what}: {} lines, then {}", old.len(), new.len()))
}

/// Compares what perf prints of the original and of the sanitized recording.
fn compare(perf: &Perf, from: &Path, to: &Path, audience: Audience) -> Result<(), String> {
    let both =
        |fields: &str| Ok::<_, String>((printed(perf, from, fields)?, printed(perf, to, fields)?));
    let (old, new) = (comms(perf, from)?, comms(perf, to)?);
    same_number("comms", &old, &new)?;
    let mut comms = Pairs::default();
    old.iter()
        .zip(&new)
        .try_for_each(|(old, new)| comms.add(old, new))?;
    let fields = match both("time") {
        Ok(_) => "pid,tid,time,event",
        // Samples without a time.
        Err(_) => "pid,tid,event",
    };
    let (old, new) = both(fields)?;
    same_number("samples", &old, &new)?;
    // By column: of `perf stat record`, there are lines of numbers.
    let mut ids: HashMap<usize, Pairs> = HashMap::new();
    let mut shift = None;
    for (old, new) in old.iter().zip(&new) {
        // `173/173    18.750631:  cpu-clock:`
        let words = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let (old, new) = (words(old), words(new));
        let is_same = |(old, new): (&String, &String)| old == new || !is_common(old);
        if old.len() != new.len() || !old.iter().zip(&new).all(is_same) {
            return Err(format!("{old:?} became {new:?}"));
        }
        for (column, (old, new)) in old.iter().zip(&new).enumerate() {
            let time = |word: &str| -> Option<i128> {
                let (seconds, rest) = word.strip_suffix(':')?.split_once('.')?;
                Some(seconds.parse::<i128>().ok()? * 1_000_000_000 + rest.parse::<i128>().ok()?)
            };
            match (time(old), time(new)) {
                (Some(old), Some(new)) if old != 0 => {
                    if *shift.get_or_insert(old - new) != old - new {
                        return Err(format!(
                            "the time {old} became {new}, others differ by {shift:?}"
                        ));
                    }
                }
                _ => ids.entry(column).or_default().add(old, new)?,
            }
        }
    }
    let fields = match audience {
        Audience::Vendor => "event,ip,sym,symoff",
        _ => "event,ip",
    };
    let (old, new) = both(fields)?;
    same_number("frames", &old, &new)?;
    for (old, new) in old.iter().zip(&new) {
        // `cpu-clock:  ffffffff88ad5f0c drop_spte+0x11c`, or only the frame.
        let rest = |line: &str| -> Vec<String> {
            let is_address = |word: &&str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
            let words = line.split_whitespace().filter(|word| !is_address(word));
            // perf 7.2 adds the functions that it finds by the paths of this machine.
            let is_event = |word: &str| word.ends_with(':');
            let is_kept = |word: &&str| audience == Audience::Vendor || is_event(word);
            // The names of events are compared above.
            let word = |word: &str| match is_event(word) && !is_common(word) {
                true => ":".to_owned(),
                false => word.to_owned(),
            };
            words.filter(is_kept).map(word).collect()
        };
        let is_same = rest(old) == rest(new);
        if !is_same || old.is_empty() != new.is_empty() {
            return Err(format!("the frame {old:?} became {new:?}"));
        }
    }
    Ok(())
}

/// Returns the recording without the memory of stacks and registers, which sanitizing removes: perf
/// finds callers in it. Nothing if there is none.
fn without_stacks(path: &Path) -> Option<Converted> {
    let mut thinned: Option<Converted> = None;
    for part in [
        SampleType::STACK_USER,
        SampleType::REGS_USER,
        SampleType::REGS_INTR,
    ] {
        let from = thinned.as_ref().map_or(path.to_owned(), Converted::path);
        let thin = Thin::new().omit(part);
        // Refused if no event has this part.
        if let Ok(made) = convert(&from, None, vec![Box::new(thin)]) {
            thinned = Some(made);
        }
    }
    thinned
}

/// Returns whether this perf crashes: all files of the recording have the same build ID, and
/// whether 6.12 survives that depends on their names. Without the section BUILD_ID, it shows the
/// same as 7.2.
fn crashes(perf: &Perf, recording: &Recording) -> bool {
    recording.name == "6.12-aarch64-odd-names" && perf.version.to_string() == "6.12"
}

fn check(recording: &Recording) -> Result<(), String> {
    let mut judges: Vec<&Perf> = Vec::new();
    for perf in perf::all() {
        if can_judge(perf, recording)? && !crashes(perf, recording) {
            judges.push(perf);
        }
    }
    if judges.is_empty() {
        skipped::note("a perf that reads the recording");
        return Ok(());
    }
    let thinned = without_stacks(&recording.path);
    let original = thinned
        .as_ref()
        .map_or(recording.path.clone(), Converted::path);
    for audience in [Audience::Public, Audience::Vendor] {
        let key =
            Key::of_secret(b"the secret of these tests").map_err(|error| error.to_string())?;
        let stage = Sanitize::new(Policy::new(audience), key);
        let made = convert(&recording.path, None, vec![Box::new(stage)])
            .map_err(|error| error.to_string())?;
        for perf in &judges {
            compare(perf, &original, &made.path(), audience)
                .map_err(|why| format!("{audience:?}, {perf}: {why}"))?;
        }
    }
    Ok(())
}

#[test]
fn perf_shows_the_same_under_other_names() {
    let recordings: Vec<Recording> = match perfdata_tests::is_thorough() {
        true => recordings::fixtures(),
        false => RECORDINGS
            .iter()
            .map(|name| recordings::fixture(name))
            .collect(),
    };
    recordings::check_all(&recordings, check);
}
