//! A program that copies its code to huge pages: recorded here, and named.

use std::fs;
use std::path::Path;
use std::process::Command;

use perfdata_tests::convert::in_shell;
use perfdata_tests::skipped;

/// Puts memory in the place of `hot`: with `mremap`, which perf does not see, or with `mmap`.
const PROGRAM: &str = r#"#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE (2UL << 20)
#define OWN_PAGE __attribute__((noinline, section(".text.own"), aligned(2097152)))

OWN_PAGE uint64_t hot(uint64_t x)
{
	for (int i = 0; i < 1000; i++)
		x = x * 6364136223846793005u + 1;
	return x;
}

OWN_PAGE int main(int argc, char **argv)
{
	char *from = (char *)((uintptr_t)hot & ~(HUGE - 1));
	char *copy = mmap(0, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t x = 1;

	copy = (char *)(((uintptr_t)copy + HUGE - 1) & ~(HUGE - 1));
	memcpy(copy, from, HUGE);
	if (argc > 1) {
		mprotect(copy, HUGE, PROT_READ | PROT_EXEC);
		if (mremap(copy, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_FIXED, from) == MAP_FAILED)
			return 3;
		fputs("ready\n", stderr);
		sleep(1);
	} else {
		if (mmap(from, HUGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			return 3;
		memcpy(from, copy, HUGE);
	}
	for (int i = 0; i < 400000; i++)
		x = hot(x);
	return x == 7;
}
"#;

/// Compiles the program, and records it as `run.data` and, after its code was replaced, `late.data`.
fn recorded(folder: &Path) -> bool {
    fs::write(folder.join("big.c"), PROGRAM).expect("a file");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-fno-reorder-functions", "-o", "big", "big.c"]);
    compiler
        .arg("-Wl,-z,max-page-size=0x200000")
        .current_dir(folder);
    if !compiler.output().is_ok_and(|said| said.status.success()) {
        skipped::note("gcc");
        return false;
    }
    let said = in_shell(
        folder,
        "perf record -q -e cpu-clock -F 999 -o run.data ./big || exit 9
         mkfifo ready; ./big late 2>ready & read line <ready
         perf record -q -e cpu-clock -F 999 -p $! -o late.data; wait",
    );
    if !said.success() {
        skipped::note("perf record");
    }
    said.success()
}

#[test]
fn code_on_huge_pages_has_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    if !recorded(folder) {
        return;
    }
    let share = |text: &str| {
        let count = |line: &str| {
            line.rsplit_once(' ')
                .and_then(|(_, n)| n.parse::<u64>().ok())
        };
        let all: u64 = text.lines().filter_map(count).sum();
        let hot = text.lines().filter(|line| line.contains(";hot"));
        hot.filter_map(count).sum::<u64>() as f64 / all as f64
    };
    for name in ["run", "late"] {
        let without = in_shell(
            folder,
            &format!("perfconv export {name}.data --to folded -o -"),
        );
        assert!(without.success(), "{}", without.stderr);
        assert!(share(&without.stdout) < 0.2, "{name}: {}", without.stdout);
        let hint = "big: its code seems to be on huge pages";
        assert!(without.stderr.contains(hint), "{name}: {}", without.stderr);
        let with = in_shell(
            folder,
            &format!("perfconv export {name}.data --deduce-huge-pages --to folded -o -"),
        );
        assert!(share(&with.stdout) > 0.8, "{name}: {}", with.stdout);
        assert!(
            with.stderr
                .contains("1 mapping with its code on huge pages")
        );
        assert!(!with.stderr.contains(hint), "{name}: {}", with.stderr);
        // A selection is made afterwards.
        let selected = in_shell(
            folder,
            &format!("perfconv export {name}.data --deduce-huge-pages --comm big --to folded -o -"),
        );
        assert!(share(&selected.stdout) > 0.8, "{name}: {}", selected.stdout);
        let judged = in_shell(
            folder,
            &format!(
                "perfconv {name}.data --deduce-huge-pages --build-ids -o {name}.new.data &&
                 perf script -i {name}.new.data -F ip,sym,dso"
            ),
        );
        let lines = judged.stdout.lines().filter(|line| line.contains(" hot ("));
        assert!(
            lines.count() > 100,
            "{name}: {}{}",
            judged.stdout,
            judged.stderr
        );
    }
}
