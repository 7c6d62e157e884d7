//! Folded stacks compared with those of the text of `perf script`: an independent implementation of
//! the rules of `inferno-collapse-perf`, and of `stackcollapse-perf.pl` for samples without frames.

use std::collections::BTreeMap;
use std::path::Path;

use super::symbols_perf::has_hash;
use perfdata_export::{Folded, Root, Sources, Symbolizer, export};
use perfdata_session::Samples;
use perfdata_symbols::demangled;
use perfdata_tests::perf::{self, Perf};

const PROGRAMS: &str = "ls -lR /usr/share /etc | sort | gzip -9 > /dev/null; \
    perl -e 'my %h; $h{$_ % 1000} .= $_ for 1..300000; print scalar(%h)'; \
    bash -c 'exec -a \"two words;\" sleep 0.01'";

/// Returns the name of a function without its arguments.
fn without_arguments(name: &str) -> String {
    let mut kept = String::new();
    let mut depth = 0;
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if c == '(' && depth == 0 && !rest.starts_with("(anonymous") && !kept.ends_with('.') {
            break;
        }
        depth += i32::from("<{[(".contains(c)) - i32::from(">}])".contains(c));
        kept.push(c);
        rest = &rest[c.len_utf8()..];
    }
    kept
}

/// Counts the stacks in the text of `perf script`.
fn collapse(text: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for paragraph in text.split("\n\n").filter(|text| !text.trim().is_empty()) {
        let mut lines = paragraph.lines();
        let head = lines.next().expect("a first line");
        // COMM PID/TID TIME: PERIOD EVENT:
        let words: Vec<&str> = head.split(' ').filter(|word| !word.is_empty()).collect();
        let ids = words
            .iter()
            .position(|word| {
                word.split_once('/')
                    .is_some_and(|(pid, tid)| [pid, tid].iter().all(|id| id.parse::<u32>().is_ok()))
            })
            .expect("the process and thread");
        let at = head.find(&format!(" {} ", words[ids])).expect("the IDs");
        let comm = head[..at].trim().replace(' ', "_").replace(';', ":");
        let period: u64 = words[ids + 2].parse().expect("a period");
        let mut frames: Vec<String> = lines
            .filter_map(|line| {
                let (_, rest) = line.trim().split_once(' ')?;
                let (symbol, dso) = rest.rsplit_once(" (")?;
                let dso = dso.strip_suffix(')')?;
                let is_kernel =
                    dso != "[unknown]" && (dso.starts_with('[') || dso.ends_with(".ko"));
                let name = match (symbol, dso) {
                    ("[unknown]", "[unknown]") => return Some("[unknown]".into()),
                    ("[unknown]", dso) => format!("[{}]", dso.rsplit('/').next()?),
                    (symbol, _) => without_arguments(&symbol.replace(';', ":")),
                };
                Some(name + if is_kernel { "_[k]" } else { "" })
            })
            .collect();
        frames.push(format!("{comm}-{}", words[ids]));
        frames.reverse();
        *counts.entry(frames.join(";")).or_default() += period;
    }
    counts
}

/// Returns the stacks that an export counts.
fn ours(path: &Path) -> BTreeMap<String, u64> {
    let mut out = Vec::new();
    let mut sink = Folded::new(&mut out)
        .with_root(Root::Tid)
        .with_marks(true, true);
    let mut samples = Samples::open(path).expect("a recording");
    let symbols = Symbolizer::new(Sources::default().with_caches(vec![]));
    export(&mut samples, Some(symbols), &mut sink).expect("intact");
    let text = String::from_utf8(out).expect("UTF-8");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.is_sorted(), "the lines are sorted by bytes");
    let counts = lines.into_iter().map(|line| {
        let (stack, count) = line.rsplit_once(' ').expect("a count");
        (stack.to_owned(), count.parse().expect("a number"))
    });
    counts.collect()
}

/// perf finds no name with the first lookup in some large objects, and frames of programs before
/// exec.
fn is_close(ours: &str, perfs: &str) -> bool {
    let (ours, perfs): (Vec<&str>, Vec<&str>) =
        (ours.split(';').collect(), perfs.split(';').collect());
    ours.len() == perfs.len()
        && ours.iter().zip(&perfs).all(|(ours, perfs)| {
            let mangled = demangled(perfs.as_bytes());
            ours == perfs
                || perfs.starts_with('[')
                || *ours == "[unknown]"
                || mangled == ours.as_bytes()
                || has_hash(perfs)
                || ours.ends_with("@plt") && perfs.ends_with("@plt")
                // The type of the result of a function template.
                || perfs.ends_with(&format!(" {ours}"))
        })
}

fn compare(perf: &Perf, path: &Path) {
    let mut command = perf.command();
    command
        .args(["script", "--no-inline", "--ns", "--max-stack", "1024"])
        .args(["-F", "comm,pid,tid,time,period,event,ip,sym,dso", "-i"])
        .arg(path);
    let output = perf::run(command).expect("perf runs");
    let (expected, mut ours) = (collapse(&output.stdout), ours(path));
    let all = expected.len();
    let sum = |counts: &BTreeMap<String, u64>| counts.values().sum::<u64>();
    assert_eq!(sum(&expected), sum(&ours), "{perf}: the sum of all counts");
    let mut missing: Vec<(String, u64)> = Vec::new();
    for (stack, count) in expected {
        match ours.get_mut(&stack) {
            Some(left) if *left >= count => *left -= count,
            _ => missing.push((stack, count)),
        }
    }
    ours.retain(|_, count| *count > 0);
    let exact = all - missing.len();
    // Those with names that perf omits match several stacks: they come last.
    let omitted = |stack: &str| {
        stack
            .split(';')
            .filter(|name| name.starts_with('['))
            .count()
    };
    missing.sort_by_key(|(stack, _)| omitted(stack));
    for (stack, count) in &missing {
        // Stacks that perf counts as one can be several here.
        let mut left = *count;
        if let Some(ours) = ours.get_mut(stack) {
            let taken = left.min(*ours);
            (left, *ours) = (left - taken, *ours - taken);
        }
        for (_, ours) in ours.iter_mut().filter(|(ours, _)| is_close(ours, stack)) {
            let taken = left.min(*ours);
            (left, *ours) = (left - taken, *ours - taken);
        }
        assert!(left == 0, "{perf}: no line {stack} {count}, but {ours:#?}");
        ours.retain(|_, count| *count > 0);
    }
    eprintln!("{perf}: {exact} of {all} lines are equal, the others but for names that perf omits");
    assert!(all > 100 && exact * 100 >= all * 90, "{exact} of {all}");
}

#[test]
fn folded_stacks_are_those_of_perf_script() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("programs.data");
    let Some(judges) = perf::record_programs(&path, 997, PROGRAMS) else {
        return;
    };
    judges.iter().for_each(|perf| compare(perf, &path));
}
