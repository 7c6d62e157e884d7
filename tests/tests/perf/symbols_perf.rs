//! The names of functions compared with perf: every frame of a recording of programs on this
//! machine.

use std::collections::HashSet;

use perfdata_session::{Frame, Samples};
use perfdata_symbols::{Sources, Symbolizer, demangled};
use perfdata_tests::is_thorough;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::PerfVersion;

/// Programs of the system, stripped or not, and the kernel.
const PROGRAMS: &str = "for n in 1 2 3; do ls -lR /usr/share /etc; done | sort | gzip -9 > /dev/null; \
    find /usr -name '*.so*' | sort | head -n 20 | xargs cat | gzip -c | gzip -d | cksum; \
    perl -e 'my %h; $h{$_ % 1000} .= $_ for 1..300000; print scalar(%h)'";

/// Programs with hundreds of thousands of functions of other compilers. The versions of perf write
/// their names differently, and each recording hits others of them: they are recorded only if
/// `PERFCONV_TEST_ALL` is set.
const LARGE_PROGRAMS: &str = "cargo --version; rustc -vV";

/// Returns the programs to record.
fn programs() -> String {
    match is_thorough() {
        true => format!("{PROGRAMS}; {LARGE_PROGRAMS}"),
        false => PROGRAMS.into(),
    }
}

/// A frame with a symbol: its name, and the offset in it.
type Named = Option<(String, u64)>;

/// Returns the name without the list of arguments, as far as the versions of perf differ in it.
fn cut(name: &str) -> &str {
    let mut depth = 0_u32;
    for (at, c) in name.char_indices() {
        match c {
            '<' | '{' | '[' => depth += 1,
            '>' | '}' | ']' => depth = depth.saturating_sub(1),
            '(' if depth == 0 && !name[at..].starts_with("(anonymous namespace)") => {
                return &name[..at];
            }
            _ => {}
        }
    }
    name
}

/// Returns whether a version of perf knows only a part of the procedure linkage tables.
fn is_old(version: PerfVersion) -> bool {
    (version.major, version.minor) < (6, 3)
}

/// Returns whether a name is that of an entry of a procedure linkage table, or of what is before
/// the entries.
fn is_plt(name: &str) -> bool {
    name.ends_with("@plt") || name == ".plt"
}

/// Returns whether a name has the hash of a Rust symbol. perf 6.12 shows these names as a C++
/// compiler would have made them.
pub fn has_hash(name: &str) -> bool {
    let hash = name.rsplit_once("::h").map(|(_, hash)| hash);
    hash.is_some_and(|hash| hash.len() == 16 && u64::from_str_radix(hash, 16).is_ok())
}

/// Returns whether perf's name of a function is ours. perf 6.1 omits the types of results and
/// arguments and what compilers append to names (`.cold`, `.llvm.`), and takes the entries of
/// procedure linkage tables in the order of the relocations.
fn is_same(ours: &str, perfs: &str, version: PerfVersion) -> bool {
    let is_plt = is_old(version) && is_plt(perfs) && is_plt(ours);
    // perf 6.12 shows the names of newer Rust compilers as they are.
    let is_mangled = perfs.starts_with("_R") && *demangled(perfs.as_bytes()) == *ours.as_bytes();
    ours == perfs
        || is_mangled
        || has_hash(perfs)
        || is_plt
        || cut(ours) == cut(perfs)
        || is_old(version)
            && ours
                .strip_prefix(perfs)
                .is_some_and(|appended| appended.starts_with('.'))
        || cut(ours).ends_with(&format!(" {}", cut(perfs)))
}

/// Returns the address and the symbol in a line of `perf script`.
fn frame(line: &str) -> Option<(u64, Named)> {
    let (address, rest) = line.trim().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let (symbol, _dso) = rest.trim().rsplit_once(" (")?;
    let named = symbol
        .rsplit_once("+0x")
        .and_then(|(name, offset)| Some((name.to_owned(), u64::from_str_radix(offset, 16).ok()?)));
    Some((address, named))
}

/// Compares all frames of a recording. Returns the numbers of frames and of names, and the
/// differences.
fn compare(perf: &Perf, path: &std::path::Path) -> (usize, usize, Vec<String>) {
    let mut command = perf.command();
    command
        .args([
            "script",
            "--no-inline",
            "--ns",
            "-F",
            "comm,tid,time,ip,sym,symoff,dso",
        ])
        .args(["--max-stack", "1024", "-i"])
        .arg(path);
    let output = perf::run(command).expect("perf runs");
    let mut paragraphs = output.stdout.split("\n\n");
    let mut symbols = Symbolizer::new(Sources::default().with_caches(vec![]));
    let mut samples = Samples::open(path).expect("a recording");
    let (mut frames, mut names) = (0, 0);
    let mut wrong = Vec::new();
    let mut looked_up = HashSet::new();
    while let Some(sample) = samples.next().expect("intact") {
        let paragraph = paragraphs.next().expect("as many samples");
        let expected: Vec<(u64, Named)> = paragraph.lines().skip(1).filter_map(frame).collect();
        let ours: Vec<Frame<'_>> = sample.frames().collect();
        // A callchain of context markers only, as of a process that is about to end, has no frame
        // in perf, and here the instruction pointer.
        if ours.len() == 1 && expected.is_empty() {
            continue;
        }
        assert_eq!(ours.len(), expected.len(), "{paragraph}");
        for ((address, expected), ours) in expected.into_iter().zip(&ours) {
            // perf finds what was mapped before exec.
            if ours.before_exec.is_some() {
                continue;
            }
            assert!(
                [Some(ours.address), ours.offset()].contains(&Some(address)),
                "{address:#x}, but here {:#x}",
                ours.address
            );
            frames += 1;
            let found = symbols.resolve(&sample, ours);
            let found = found.map(|symbol| {
                let name = String::from_utf8_lossy(&symbol.demangled()).into_owned();
                (name, symbol.offset)
            });
            // perf finds nothing with the first lookup in some large objects.
            let is_first = looked_up.insert(ours.dso_id());
            let is_equal = match (&found, &expected) {
                (Some((name, at)), Some((other, other_at))) => {
                    is_same(name, other, perf.version) && at == other_at
                }
                (None, None) => true,
                (Some(_), None) if is_first => true,
                (Some((name, _)), None) if is_old(perf.version) => is_plt(name),
                _ => false,
            };
            names += usize::from(expected.is_some());
            if !is_equal {
                let dso = ours
                    .dso()
                    .map(|dso| String::from_utf8_lossy(&dso.name).into_owned());
                wrong.push(format!(
                    "{dso:?} {address:#x}: {found:?}, perf {expected:?}"
                ));
            }
        }
    }
    for object in symbols.unresolved() {
        let name = String::from_utf8_lossy(&object.name).into_owned();
        eprintln!("{name}: {} lookups: {}", object.lookups, object.reason);
    }
    (frames, names, wrong)
}

#[test]
fn perf_finds_the_same_functions() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("programs.data");
    let Some(judges) = perf::record_programs(&path, 1999, &programs()) else {
        return;
    };
    for perf in judges {
        let (frames, names, mut wrong) = compare(perf, &path);
        let count = wrong.len();
        wrong.sort();
        wrong.dedup();
        wrong.truncate(20);
        eprintln!("{perf}: {frames} frames compared, {names} with names, {count} differences");
        assert!(
            frames > 1000 && names > 500,
            "{frames} frames, {names} names"
        );
        // Every recording is another one: a rare difference is shown, but must not fail by chance.
        let most = if is_thorough() { 0 } else { frames / 1000 };
        assert!(
            count <= most,
            "{perf}: {count} of {frames} frames:\n{}",
            wrong.join("\n")
        );
        wrong
            .iter()
            .for_each(|difference| eprintln!("{difference}"));
    }
}
