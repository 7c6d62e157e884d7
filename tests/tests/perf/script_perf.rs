//! The text of `perf script` compared with that of perf, byte for byte.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use perfdata_export::{Fields, PerfScript, Sources, Symbolizer, export};
use perfdata_session::Samples;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, Endian, Recording};
use perfdata_tests::{is_thorough, judge, skipped};
use perfdata_unwind::UserStacks;

/// Fields that do not depend on the machine that perf runs on: the default fields without the
/// names of functions.
const DEFAULT: &[&str] = &["-sym,-symoff"];

/// Lists of fields. perf refuses those that the samples of a recording do not have.
const LISTS: &[&[&str]] = &[
    &["comm,pid,time,period,event"],
    &["+misc,+pid,-sym,-symoff,-period"],
    &["+brstack,-sym,-symoff"],
    &["+brstackoff,-sym,-symoff"],
    &["+addr,-sym,-symoff"],
    &["+iregs,-sym,-symoff"],
    &["+uregs,-sym,-symoff"],
    &["+phys_addr,+data_src,+weight,-sym,-symoff"],
    &["+data_page_size,+code_page_size,-sym,-symoff"],
    &["+cgroup,-sym,-symoff"],
    &["-sym,-symoff", "trace:comm,trace,period"],
];

/// Numbers of compared texts and lines.
static COMPARED: Mutex<(usize, usize)> = Mutex::new((0, 0));

/// Returns why the text of perf is another for a recording.
fn exception(recording: &Recording, perf: &Perf, fields: &[&str]) -> Option<&'static str> {
    let name = &*recording.name;
    let has = |field: &str| fields.iter().any(|list| list.contains(field));
    if name.contains("dwarf") || perf.endian == Endian::Big && name.ends_with("-g") {
        return Some("perf unwinds user stacks");
    }
    if name.contains("intel_pt") {
        return Some("perf decodes AUX data");
    }
    if name.contains("quipper/piped") && perf.version.major >= 7 {
        return Some(
            "perf 7.2 adds modifiers to events without names, and does not show CPUs above its own",
        );
    }
    if name.ends_with("-pipe-cut") || name.ends_with("sleep.compressed2.pipe") {
        return Some("the last record is not complete");
    }
    if name.contains("aarch64") && has("regs") {
        return Some("perf names registers as those of the machine that it runs on");
    }
    if perf.endian == Endian::Big && has("addr") {
        return Some("perf does not know the mode of addresses on s390");
    }
    if name.ends_with("callgraph_and_branch-3.4") && has("brstack") && perf.version.minor < 3 {
        return Some("perf 6.1 takes the mode of the sample for that of each branch");
    }
    None
}

/// Returns the text of this project; `None` if the fields are refused.
fn ours(path: &Path, perf: &Perf, fields: &[&str]) -> Result<Option<Vec<u8>>, String> {
    let fields = fields.iter().try_fold(Fields::default(), |all, list| {
        Ok::<_, String>(all.and(list.parse().map_err(|error| format!("{error}"))?))
    })?;
    let mut out = Vec::new();
    let mut sink = PerfScript::new(&mut out, perf.version.like()).with_fields(&fields);
    let mut samples = Samples::open(path).map_err(|error| error.to_string())?;
    match export(&mut samples, None, &mut sink) {
        Ok(_) => Ok(Some(out)),
        Err(perfdata_export::Error::Fields(_)) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the text of perf, and that of this project; `None` if perf prints none.
fn texts(
    recording: &Recording,
    perf: &Perf,
    fields: &[&str],
) -> Result<Option<(String, String)>, String> {
    let mut command = perf.command();
    command.args(["script", "--no-inline", "--kallsyms", "/dev/null"]);
    for list in fields {
        command.args(["-F", list]);
    }
    let path = recording
        .path
        .canonicalize()
        .map_err(|error| error.to_string())?;
    command.arg("-i").arg(&path);
    let output = perf::run(command).map_err(|error| error.to_string())?;
    if !output.success() || output.stdout.is_empty() {
        return Ok(None);
    }
    let Some(found) = ours(&path, perf, fields)? else {
        return Err(format!("{perf}: perf accepts the fields {fields:?}"));
    };
    Ok(Some((output.stdout, perf::text(&found))))
}

fn compare(recording: &Recording, perf: &Perf, fields: &[&str]) -> Result<(), String> {
    let Some((mut expected, mut found)) = texts(recording, perf, fields)? else {
        return Ok(());
    };
    let mut compared = COMPARED.lock().expect("it does not panic");
    compared.0 += 1;
    compared.1 += expected.lines().count();
    drop(compared);
    if perf.endian == Endian::Big {
        // perf looks for the vDSO of its own process, which has none when emulated.
        found = found.replace("([vdso])", "([unknown])");
        expected = expected.replace("([vdso])", "([unknown])");
    }
    if found == expected {
        return Ok(());
    }
    let (expected, found): (Vec<&str>, Vec<&str>) =
        (expected.split('\n').collect(), found.split('\n').collect());
    let at = expected.iter().zip(&found).position(|(a, b)| a != b);
    let at = at.unwrap_or(expected.len().min(found.len()));
    Err(format!(
        "{perf}, fields {fields:?}: {} and {} lines, line {at}:\n  {:?}, but here\n  {:?}",
        expected.len(),
        found.len(),
        expected.get(at),
        found.get(at)
    ))
}

/// Compares a recording with all perfs that can read it.
fn check(recording: &Recording, lists: &[&[&str]]) -> Result<(), String> {
    for perf in judge::panel(recording)? {
        for fields in lists {
            if exception(recording, perf, fields).is_none() {
                compare(recording, perf, fields)?;
            }
        }
    }
    Ok(())
}

/// For the fixtures, or for all available recordings if `PERFCONV_TEST_ALL` is set.
#[test]
fn the_text_is_that_of_perf() {
    if perf::all().is_empty() {
        return skipped::note("perf");
    }
    let mut list = recordings::fixtures();
    if is_thorough() {
        list = recordings::all();
    }
    list.retain(|recording| !recording.is_damaged());
    recordings::check_all(&list, |recording: &Recording| check(recording, &[DEFAULT]));
    let (texts, lines) = *COMPARED.lock().expect("it does not panic");
    eprintln!("{texts} texts with {lines} lines compared");
    assert!(texts > 30 && lines > 10_000, "{texts} texts, {lines} lines");
}

#[test]
fn all_fields_are_those_of_perf() {
    if perf::all().is_empty() {
        return skipped::note("perf");
    }
    let names = [
        "6.1-x86_64-file-data",
        "6.1-x86_64-file-group-S",
        "6.12-x86_64-file-tp-g",
        "7.2-x86_64-file-lost",
        "7.2-x86_64-file-cgroup-mk",
    ];
    let mut list: Vec<Recording> = recordings::fixtures()
        .into_iter()
        .filter(|recording| {
            is_thorough()
                || names.contains(&&*recording.name)
                || recording.name.contains("regs")
                || recording.name.contains("data")
        })
        .collect();
    // These have branch stacks and data sources of hardware.
    list.extend(recordings::corpus());
    list.retain(|recording| !recording.is_damaged());
    recordings::check_all(&list, |recording: &Recording| check(recording, LISTS));
}

/// Recordings of other people: of guests, of modules that are listed as objects of processes, of
/// threads that outlive their leader, and of simpleperf.
#[test]
fn recordings_of_other_machines_are_those_of_perf() {
    let Some(folder) = recordings::further("defects") else {
        return;
    };
    let names = [
        "guest-samples",
        "kernel-module-path",
        "leader-exits-first",
        "rhel7-mmap2-layout",
    ];
    let paths = names.map(|name| folder.join(name).with_extension("data"));
    for path in paths {
        check(&Recording::at(&path), &[DEFAULT]).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// perf 7.2 shows the cookies of deferred callchains that never came, if it shows functions.
#[test]
fn cookies_are_those_of_perf() {
    let judges = perf::all().iter();
    let judges = judges.filter(|perf| perf.endian == Endian::Little && perf.version.major >= 7);
    let judges: Vec<&Perf> = judges.collect();
    if judges.is_empty() {
        return skipped::note("perf 7.2");
    }
    let recording = recordings::fixture("7.2-x86_64-file-defer-tp");
    // Which functions perf finds depends on the machine: only their addresses are compared.
    let without_names = |text: &str| -> Vec<String> {
        let line = |line: &str| match line.contains("(cookie)") {
            true => line.to_owned(),
            false => line
                .split_whitespace()
                .next()
                .unwrap_or_default()
                .to_owned(),
        };
        text.lines().map(line).collect()
    };
    for perf in judges {
        for fields in ["ip,sym", "comm,ip,sym,symoff,dso", "ip,dso", "ip"] {
            let (expected, found) = texts(&recording, perf, &[fields])
                .expect("the fields exist")
                .expect("perf reads it");
            let cookies = found.lines().filter(|line| line.contains("(cookie)"));
            assert_eq!(cookies.count() > 0, fields.contains("sym"), "{fields}");
            assert_eq!(without_names(&found), without_names(&expected), "{fields}");
        }
    }
}

/// Every source of data, in a recording made for this test.
#[test]
fn sources_of_data_are_those_of_perf() {
    let judges: Vec<&Perf> = perf::all()
        .iter()
        .filter(|perf| perf.endian == Endian::Little)
        .collect();
    if judges.is_empty() {
        return skipped::note("perf");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sources.data");
    let mut file = File::create(&path).expect("a file");
    file.write_all(&with_sources(&sources())).expect("written");
    let recording = Recording::at(&path);
    for perf in judges {
        compare(&recording, perf, &["data_src"]).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Returns sources with every value of each field, and random ones.
fn sources() -> Vec<u64> {
    const FIELDS: [(u32, u32); 11] = [
        (0, 5),
        (5, 14),
        (19, 5),
        (24, 2),
        (26, 7),
        (33, 4),
        (37, 1),
        (38, 2),
        (40, 3),
        (43, 3),
        (46, 5),
    ];
    let mut sources = vec![0];
    for (first, bits) in FIELDS {
        sources.extend((1..1_u64 << bits).map(|value| value << first));
    }
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..4000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        sources.push(random >> 13);
    }
    sources
}

/// Returns a recording in file mode of a raw event, with a sample for each source.
fn with_sources(sources: &[u64]) -> Vec<u8> {
    const HEADER: u64 = 104;
    const ATTR: u64 = 112;
    let mut attr: Vec<u8> = Vec::new();
    attr.extend(4_u32.to_le_bytes());
    attr.extend(112_u32.to_le_bytes());
    // The event, its period, and the parts IP, TID, TIME and DATA_SRC.
    for word in [0x1cd, 1000, 1 | 2 | 4 | 1 << 15, 0, 1 << 18] {
        attr.extend(u64::to_le_bytes(word));
    }
    attr.resize(112 + 16, 0);
    let mut records: Vec<u8> = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        records.extend(9_u32.to_le_bytes());
        records.extend(2_u16.to_le_bytes());
        records.extend(40_u16.to_le_bytes());
        let ids = 10 | 10 << 32;
        for word in [0x1000, ids, 1_000_000_000 + number as u64, *source] {
            records.extend(u64::to_le_bytes(word));
        }
    }
    let mut file = b"PERFILE2".to_vec();
    let behind = HEADER + ATTR + 16;
    let words = [
        HEADER,
        ATTR + 16,
        HEADER,
        ATTR + 16,
        behind,
        records.len() as u64,
    ];
    words
        .iter()
        .for_each(|word| file.extend(word.to_le_bytes()));
    file.resize(104, 0);
    file.extend(attr);
    file.extend(records);
    file
}

/// Programs of the system.
const PROGRAMS: &str = "ls -lR /usr/share | sort | gzip -9 > /dev/null";

/// Functions of this machine: programs of the system, recorded with callchains.
#[test]
fn functions_are_those_of_perf() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("programs.data");
    let Some(judges) = perf::record_programs(&path, 999, PROGRAMS) else {
        return;
    };
    for perf in judges {
        let mut command = perf.command();
        command.args(["script", "--no-inline", "-i"]).arg(&path);
        let output = perf::run(command).expect("perf runs");
        let mut out = Vec::new();
        let mut sink = PerfScript::new(&mut out, perf.version.like());
        let mut samples = Samples::open(&path).expect("a recording");
        let symbols = Symbolizer::new(Sources::default().with_caches(vec![]));
        export(&mut samples, Some(symbols), &mut sink).expect("intact");
        let text = String::from_utf8(out).expect("UTF-8");
        let (lines, expected) = (text.lines(), output.stdout.lines());
        assert_eq!(
            text.lines().count(),
            output.stdout.lines().count(),
            "{perf}"
        );
        let named = text.lines().filter(|line| line.contains("+0x")).count();
        assert!(named > 500, "{perf}: {named} functions");
        let mut differences = 0;
        for (ours, perfs) in lines.zip(expected) {
            // perf finds nothing with the first lookup in some large objects, and takes the entries
            // of procedure linkage tables in another order before 6.3.
            let is_tolerated = perfs.contains(" [unknown] (") || perfs.contains("plt+0x");
            if ours != perfs && !is_tolerated {
                eprintln!("{perf}: {ours:?}, perf {perfs:?}");
                differences += 1;
            }
        }
        // Every recording is another one: a rare difference must not fail by chance.
        let most = if is_thorough() { 0 } else { named / 1000 };
        assert!(differences <= most, "{perf}: {differences} of {named}");
    }
}

/// Returns the texts of perf and of this project about a recording of this machine, by samples.
fn samples_of(path: &Path, perf: &Perf) -> [Vec<String>; 2] {
    let mut command = perf.command();
    command.args(["script", "--no-inline", "-i"]).arg(path);
    let expected = perf::run(command).expect("perf runs").stdout;
    let mut out = Vec::new();
    let mut sink = PerfScript::new(&mut out, perf.version.like());
    let sources = Sources::default().with_caches(vec![]);
    let stacks = UserStacks::new(sources.clone());
    let samples = Samples::open(path).expect("a recording");
    let mut samples = samples.with_user_callchains(Box::new(stacks));
    export(&mut samples, Some(Symbolizer::new(sources)), &mut sink).expect("intact");
    let found = perf::text(&out);
    [expected, found].map(|text| text.split("\n\n").map(str::to_owned).collect())
}

/// Copies of user stacks, recorded on this machine.
#[test]
fn unwound_stacks_are_those_of_perf() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stacks.data");
    let options = ["--call-graph", "dwarf,16384", "-F", "499"];
    let programs = "ls -lR /usr/share > /dev/null; bash -c 'for i in {1..3000}; do :; done; exit 3'; \
                    python3 -c 'print(sum(i * i for i in range(300000)))'";
    let Some(judges) = perf::record_with(&path, &options, programs) else {
        return;
    };
    // perf 6.12 takes words of the stack for return addresses of some functions of the C library.
    let judges: Vec<&Perf> = judges
        .into_iter()
        .filter(|perf| perf.version.major >= 7)
        .collect();
    if judges.is_empty() {
        return skipped::note("perf 7.2");
    }
    for perf in judges {
        let [expected, found] = samples_of(&path, perf);
        assert_eq!(found.len(), expected.len(), "{perf}");
        let pairs = found.iter().zip(&expected);
        // perf leaves out the last return address of a callchain that it cannot continue.
        let is_equal = |(ours, perfs): &(&String, &String)| ours.starts_with(perfs.as_str());
        let equal = pairs.clone().filter(is_equal).count();
        for (ours, perfs) in pairs.filter(|pair| !is_equal(pair)).take(3) {
            eprintln!("{perf}: {ours}\nperf: {perfs}");
        }
        eprintln!("{perf}: {equal} of {} equal", found.len());
        assert!(
            found.len() > 50 && equal * 100 >= found.len() * 97,
            "{perf}: {equal}"
        );
    }
}

/// A program whose first thread ends before the others.
const LEADER: &str = "
#include <pthread.h>
static volatile long sum;
__attribute__((noinline)) static void spin(long n) { for (long i = 0; i < n; i++) sum += i; }
static void *thread(void *of) {
    pthread_t other;
    for (int i = 0; i < 300; i++) spin(400000);
    if (of) { pthread_create(&other, 0, thread, 0); pthread_join(other, 0); }
    return of;
}
int main(void) {
    pthread_t other;
    pthread_create(&other, 0, thread, &other);
    pthread_create(&other, 0, thread, 0);
    pthread_exit(0);
}
";

/// The threads of a process keep its mappings when its leader ends; one that they create then has
/// none in perf.
#[test]
fn threads_that_outlive_their_leader_are_those_of_perf() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("leader.c"), folder.path().join("leader"));
    std::fs::write(&source, LEADER).expect("written");
    let mut compiler = Command::new("gcc");
    compiler
        .args(["-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(&source);
    if !perf::run(compiler).is_ok_and(|output| output.success()) {
        return skipped::note("the compiler gcc");
    }
    let path = folder.path().join("leader.data");
    let program = program.display().to_string();
    let Some(judges) = perf::record_with(&path, &["-g", "-F", "999"], &program) else {
        return;
    };
    for perf in judges {
        let [expected, found] = samples_of(&path, perf);
        assert_eq!(found.len(), expected.len(), "{perf}");
        let named = found.iter().filter(|sample| sample.contains("spin+0x"));
        let unknown = found.iter().filter(|sample| sample.contains("[unknown]"));
        eprintln!(
            "{perf}: {} named, {} unknown",
            named.clone().count(),
            unknown.count()
        );
        assert!(named.count() > 30, "{perf}");
        for (ours, perfs) in found.iter().zip(&expected) {
            let is_same = |text: &str| text.matches("spin+0x").count();
            assert_eq!(
                is_same(ours),
                is_same(perfs),
                "{perf}: {ours}\nperf: {perfs}"
            );
        }
    }
}
