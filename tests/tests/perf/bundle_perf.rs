//! Bundles of recordings, where the recorded program is no longer there.

use std::fs;
use std::path::Path;

use perfdata_tests::convert::in_shell;
use perfdata_tests::perf::{self, Output, Perf};
use perfdata_tests::recordings::Endian;
use perfdata_tests::skipped;
use perfdata_tests::traces::encoder::Features;
use perfdata_tests::traces::flow::FlowRecipe;

const PROGRAM: &str = "
__attribute__((noinline)) unsigned work_inside(unsigned x) { for (int i = 0; i < 100000; i++) x = x * 5 + 1; return x; }
__attribute__((noinline)) unsigned work_outside(unsigned x) { for (int i = 0; i < 40; i++) x += work_inside(x); return x; }
int main(void) { unsigned x = 1; for (int i = 0; i < 40; i++) x += work_outside(x); return x == 7; }
";

fn run(folder: &Path, commands: &str) -> Output {
    let output = in_shell(folder, commands);
    assert!(output.success(), "{commands}: {}", output.stderr);
    output
}

/// Writes `in.data`, a recording of a program in the folder. Returns whether that is possible.
pub(super) fn record(folder: &Path) -> bool {
    fs::write(folder.join("program.c"), PROGRAM).expect("a file");
    let build = "cc -O1 -g -fno-omit-frame-pointer -Wl,--build-id -o program program.c";
    if !in_shell(folder, build).success() {
        skipped::note("cc");
        return false;
    }
    let record = "perf record -q -N -g -e cpu-clock:u -o in.data -- ./program";
    if !in_shell(folder, record).success() {
        skipped::note("perf, and the permission to record");
        return false;
    }
    true
}

/// Returns how much of the weight of folded stacks has a function at its end, in percent.
fn named_percent(folded: &[u8]) -> u64 {
    let (mut named, mut total) = (0, 0);
    for line in String::from_utf8_lossy(folded).lines() {
        let (stack, weight) = line.rsplit_once(' ').expect("a weight");
        let weight: u64 = weight.parse().expect("a number");
        let innermost = stack.rsplit(';').next().expect("a frame");
        total += weight;
        named += if innermost.starts_with('[') {
            0
        } else {
            weight
        };
    }
    named * 100 / total
}

/// Names and lines are those that the objects gave, although they are gone; perf finds them in what
/// unbundle writes.
#[test]
fn names_are_in_the_bundle() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    if !record(folder) {
        return;
    }
    let texts = |input: &str| {
        ["folded", "perf-script", "pprof"].map(|form| {
            let export = format!("perfconv export {input} --to {form} -o {form} --force");
            run(folder, &export);
            fs::read(folder.join(form)).expect("a file")
        })
    };
    let before = texts("in.data");
    let folded = String::from_utf8_lossy(&before[0]).into_owned();
    assert!(folded.contains("work_inside"), "{folded}");
    run(folder, "perfconv bundle in.data -o in.bundle && rm program");
    assert!(before == texts("in.bundle"));
    let without = &texts("in.data")[0];
    assert!(!String::from_utf8_lossy(without).contains("work_inside"));
    let note = |words: &str| {
        let said = run(
            folder,
            &format!("perfconv export {words} --to folded -o - > note"),
        )
        .stderr;
        let share = |line: &str| {
            line.split_once("functions are known for ")
                .map(|(_, share)| share.to_owned())
        };
        said.lines().find_map(share)
    };
    let percent = named_percent(without);
    let share = note("in.data").expect("a note");
    assert!(
        share.starts_with(&format!("{percent} % of the samples' weight: ")),
        "{percent}: {share}"
    );
    let overview = run(folder, "perfconv in.data").stdout;
    assert!(
        overview.contains(&format!("  functions: known for {share}\n")),
        "{overview}"
    );
    for words in ["in.bundle", "-q in.data", "--no-symbols in.data"] {
        assert_eq!(note(words), None, "{words}");
    }
    let overview = run(folder, "perfconv in.bundle").stdout;
    let percent = named_percent(&before[0]);
    let share = format!("  functions: known for {percent} % of the samples' weight\n");
    assert!(percent >= 90 && overview.contains(&share), "{overview}");

    run(
        folder,
        "perfconv unbundle in.bundle -o out && cmp in.data out/perf.data",
    );
    for perf in perf::all()
        .iter()
        .filter(|perf| perf.endian == Endian::Little)
    {
        let mut command = perf.command();
        command.arg("--buildid-dir").arg(folder.join("out/debug"));
        command
            .args(["script", "-F", "ip,sym", "-i"])
            .arg(folder.join("out/perf.data"));
        let said = perf::run(command).expect("perf can be started");
        let named = said.stdout.matches("work_inside").count();
        assert!(named > 10, "{perf}: {named}, {}", said.stderr);
    }
}

/// perf decodes a trace with the code that unbundle writes, as it did with the program.
#[test]
fn perf_decodes_traces_with_the_code_in_the_bundle() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let program = folder.join("program");
    let features = Features {
        tsc: true,
        mtc: true,
        ..FlowRecipe::USUAL.features
    };
    let recipe = FlowRecipe {
        features,
        ..FlowRecipe::USUAL
    };
    let recording = recipe.make(&program);
    fs::write(&program, recording.program.object()).expect("a file");
    fs::write(folder.join("in.data"), recording.file.bytes()).expect("a file");
    run(
        folder,
        "perfconv bundle in.data -o in.bundle && perfconv unbundle in.bundle -o out",
    );
    let decoded = |perf: &Perf| {
        let mut command = perf.command();
        command.arg("--buildid-dir").arg(folder.join("out/debug"));
        command.args(["script", "--itrace=be", "-F", "ip,addr,time", "-i"]);
        command.arg(folder.join("out/perf.data"));
        perf::run(command).expect("perf can be started").stdout
    };
    let judges = perf::all()
        .iter()
        .filter(|perf| perf.endian == Endian::Little);
    let judges: Vec<&Perf> = judges.collect();
    if judges.is_empty() {
        return skipped::note("perf");
    }
    let before: Vec<String> = judges.iter().map(|perf| decoded(perf)).collect();
    fs::remove_file(&program).expect("a file");
    for (perf, before) in judges.iter().zip(&before) {
        assert!(before.lines().count() > 100, "{perf}: {before}");
        assert!(decoded(perf) == *before, "{perf}");
    }
    fs::remove_dir_all(folder.join("out/debug")).expect("a folder");
    for (perf, before) in judges.iter().zip(&before) {
        assert!(decoded(perf) != *before, "{perf}");
    }
}

/// What `perf archive` packs names the functions here, and perf unpacks what unbundle writes.
#[test]
fn archives_of_perf_are_read_and_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    if !record(folder) {
        return;
    }
    let (own, other) = (folder.join("own"), folder.join("other"));
    let with_home = |home: &Path, commands: &str| {
        run(
            folder,
            &format!("export HOME={}; {commands}", home.display()),
        )
    };
    // `perf record -N` leaves the cache as it is.
    let archive = "mkdir own other && perf buildid-cache --add program && perf archive in.data \
        && mkdir symbols && tar -C symbols -xf in.data.tar.bz2";
    let said = in_shell(folder, &format!("export HOME={}; {archive}", own.display()));
    if !said.success() {
        return skipped::note("perf archive, tar and bzip2");
    }
    let folded = |words: &str| {
        let export = format!("perfconv export {words} --to folded -o -");
        with_home(&other, &export).stdout
    };
    let before = folded("in.data");
    assert!(before.contains("work_inside"), "{before}");
    fs::remove_file(folder.join("program")).expect("a file");
    assert!(!folded("in.data").contains("work_inside"));
    assert_eq!(folded("in.data --debug-dir symbols"), before);
    assert_eq!(folded("in.data --debug-dir in.data.tar.bz2"), before);
    let bundle = "perfconv bundle in.data --debug-dir in.data.tar.bz2 -o in.bundle";
    with_home(&other, bundle);
    assert_eq!(folded("in.bundle"), before);
    let unpack = "perfconv unbundle in.bundle --to perf-archive -o out.tar.bz2 \
        && mkdir -p other/.debug && tar -C other/.debug -xf out.tar.bz2 && perf script -F ip,sym -i in.data";
    let names = with_home(&other, unpack).stdout;
    assert!(names.matches("work_inside").count() > 10, "{names}");
    // What is damaged is refused, and nothing is left.
    let whole = fs::read(folder.join("out.tar.bz2")).expect("an archive");
    fs::create_dir(folder.join("temporary")).expect("a folder");
    for end in [0, 3, whole.len() / 2] {
        fs::write(folder.join("cut.tar.bz2"), &whole[..end]).expect("a file");
        let export =
            "TMPDIR=$PWD/temporary perfconv export in.data --debug-dir cut.tar.bz2 -o cut.folded";
        let said = in_shell(folder, export);
        let status = said.status.and_then(|status| status.code());
        assert_eq!(status, Some(1), "{end}: {}", said.stderr);
        assert!(said.stderr.contains("cut.tar.bz2: "), "{}", said.stderr);
        assert!(!folder.join("cut.folded").exists());
    }
    let left = fs::read_dir(folder.join("temporary")).expect("a folder");
    assert_eq!(left.count(), 0);
}
