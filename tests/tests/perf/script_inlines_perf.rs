//! The text with inlined functions and source lines, compared with that of perf: recordings of
//! programs in C and C++ that GCC and Clang compile here.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use perfdata_tests::convert::in_shell;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::skipped;

/// Nested inlined functions, a copy of a function in itself, and callbacks of the C library.
const C: &str = r#"#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline __attribute__((always_inline)) uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x9e3779b97f4a7c15u;
	return x;
}

static inline __attribute__((always_inline)) uint64_t rounds(uint64_t x, int n)
{
	for (int i = 0; i < n; i++)
		x += mix(x + i);
	return x;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = mix(*(const uint64_t *)a), y = mix(*(const uint64_t *)b);
	return x < y ? -1 : x > y;
}

static __attribute__((noinline)) uint64_t leaf(uint64_t seed, int n, int which)
{
	if (which)
		seed = rounds(seed, n);
	return rounds(seed, 3 * n);
}

__attribute__((noinline)) uint64_t sorted(uint64_t seed)
{
	static uint64_t values[4096];
	for (int i = 0; i < 4096; i++)
		values[i] = seed = mix(seed + i);
	qsort(values, 4096, sizeof *values, compare);
	return values[17];
}

static uint64_t depth(uint64_t x, int n)
{
	return n < 2 ? rounds(x, 3) : depth(x + 1, n - 1) + depth(x ^ 5, n - 2);
}

int main(void)
{
	uint64_t sum = 0;
	for (int i = 0; i < 300; i++) {
		uint64_t a = leaf(1, 2000, 1);
		sum += a + leaf(a, 2000, 1);
		sum ^= sorted(sum) + depth(sum, 12);
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
"#;

/// Templates, lambdas, function objects, and copies of functions of the library.
const CPP: &str = r#"#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

namespace shop {

template <typename T> struct Adder {
	T base;
	T operator()(T x) const { return x * base + 3; }
};

template <typename F, typename T> inline T apply(F f, T x, int n)
{
	for (int i = 0; i < n; i++)
		x = f(x);
	return x;
}

struct Item {
	std::string name;
	double price;
	bool operator<(const Item &other) const { return price < other.price; }
};

class Cart {
	std::vector<Item> items;
	std::unordered_map<std::string, long> counts;
	std::map<long, double> index;

public:
	void add(int n)
	{
		for (int i = 0; i < n; i++) {
			Item item{"item" + std::to_string(i % 97), (i * 7919 % 1009) / 3.0};
			counts[item.name]++;
			index[i * 31 % 4093] += item.price;
			items.push_back(std::move(item));
		}
	}
	double total() const
	{
		return std::accumulate(items.begin(), items.end(), 0.0,
				       [](double s, const Item &i) { return s + i.price; });
	}
	void order()
	{
		std::sort(items.begin(), items.end());
		std::stable_sort(items.begin(), items.end(),
				 [](auto &a, auto &b) { return a.name < b.name; });
	}
};

} // namespace shop

static std::function<double(double)> chain(int n)
{
	return [n](double x) { return shop::apply(shop::Adder<double>{1.0001}, x, n); };
}

int main()
{
	double all = 0;
	for (int i = 0; i < 12; i++) {
		shop::Cart cart;
		cart.add(20000);
		cart.order();
		all += cart.total() + chain(20000)(i);
		all += shop::apply(shop::Adder<long>{3}, 5L, 30000);
	}
	std::printf("%f\n", all);
}
"#;

/// A compiler and how a program is compiled. The libdw of perf finds no ranges of Clang's DWARF 5, and so
/// no inlined functions with several of them, which addr2line does not find either.
const COMPILERS: [(&str, &str, &str); 4] = [
    ("GCC, C", "gcc", "-gdwarf-5 program.c"),
    ("GCC, C++", "g++", "-gdwarf-5 -std=c++17 program.cc"),
    ("Clang, C", "clang", "-gdwarf-4 program.c"),
    ("Clang, C++", "clang++", "-gdwarf-4 -std=c++17 program.cc"),
];

/// How samples are recorded: the options of compilers, and of perf record.
const RECORDED: [(&str, &str); 3] = [
    ("-fno-omit-frame-pointer", "-F 797 -g"),
    ("-fomit-frame-pointer", "-F 297 --call-graph dwarf"),
    ("-fno-omit-frame-pointer", "-F 797"),
];

/// What is compared: options of perf script, and ours.
const OPTIONS: [(&str, &str); 4] = [
    ("", "--inlines"),
    ("-F +srcline", "--inlines -F +srcline"),
    ("-F ip,sym,srcline --no-inline", "-F ip,sym,srcline"),
    ("-F ip,sym,dso", "--inlines -F ip,sym,dso"),
];

/// Returns the newest version of a compiler that is installed: `clang-19` if there is no `clang`.
fn installed(compiler: &str) -> Option<String> {
    let versions = (11..30)
        .rev()
        .map(|version| format!("{compiler}-{version}"));
    let mut names = [compiler.to_owned()].into_iter().chain(versions);
    names.find(|name| {
        let mut command = Command::new(name);
        command.arg("--version");
        perf::run(command).is_ok_and(|output| output.success())
    })
}

/// Returns the number of lines in both texts of a sample, and of those that are only in one of them.
fn compared(perfs: &str, ours: &str) -> (usize, usize) {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    perfs
        .lines()
        .for_each(|line| *counts.entry(line).or_default() += 1);
    ours.lines()
        .for_each(|line| *counts.entry(line).or_default() -= 1);
    let only: i64 = counts.values().map(|count| count.abs()).sum();
    (perfs.lines().count(), only as usize)
}

/// Returns the text of a version of perf, and ours.
fn texts(folder: &Path, perf: &Perf, (perfs, own): (&str, &str)) -> [String; 2] {
    let mut command = perf.command();
    command.current_dir(folder).arg("script");
    command
        .args(perfs.split_whitespace())
        .args(["-i", "perf.data"]);
    let expected = perf::run(command).expect("perf runs").stdout;
    let like = match perf.version.major {
        7.. => "7.2",
        _ if perf.version.minor > 1 => "6.12",
        _ => "6.1",
    };
    let ours = in_shell(
        folder,
        &format!("perfconv export -q perf.data --to perf-script --like {like} {own} -o -"),
    );
    assert!(ours.success(), "{own}: {}", ours.stderr);
    [expected, ours.stdout]
}

/// What older versions of perf show otherwise. addr2line, which they ask, names the file of code that
/// was included, where `llvm-symbolizer` names the included one. Before 6.3, perf has no names for
/// linkage table entries of indirect functions.
fn is_of_old_perf(perf: &Perf, line: &str) -> bool {
    let files = ["libc-start.c", "libc_start_call_main.h"];
    let is_old = (perf.version.major, perf.version.minor) < (6, 3);
    perf.version.major < 7 && files.iter().any(|file| line.contains(file))
        || is_old && line.contains("@plt")
}

fn compare(perf: &Perf, folder: &Path, what: &str) {
    for options in OPTIONS {
        let [expected, found] = texts(folder, perf, options);
        let name = format!("{perf}: {what}: {}", options.0);
        let samples = |text: &str| -> Vec<String> {
            let samples = text.split("\n\n").map(|sample| {
                let lines = sample.lines().filter(|line| !is_of_old_perf(perf, line));
                lines.collect::<Vec<_>>().join("\n")
            });
            samples.collect()
        };
        let (expected, found) = (samples(&expected), samples(&found));
        assert_eq!(found.len(), expected.len(), "{name}");
        let (mut lines, mut only) = (0, 0);
        for (perfs, ours) in expected.iter().zip(&found) {
            let (all, different) = compared(perfs, ours);
            (lines, only) = (lines + all, only + different);
            if different > 0 {
                eprintln!("{name}:\n{perfs}\n--- ours:\n{ours}\n");
            }
        }
        eprintln!("{name}: {lines} lines, {only} differ");
        assert!(lines > 50, "{name}: {lines} lines");
        assert!(only * 50 <= lines, "{name}: {only} of {lines} lines differ");
        let is_inlined = options.1.contains("--inlines") && what.contains("-g");
        let text = found.concat();
        if is_inlined && perf.version.major >= 7 {
            assert!(text.contains(" (inlined)"), "{name}");
        }
        // Without callchains, it is chance whether a sample is in this file or only in headers.
        if options.1.contains("srcline") && what.contains("-g") {
            assert!(text.contains("\n  program.c"), "{name}");
        }
    }
}

#[test]
fn inlined_functions_and_lines_in_the_text_are_those_of_perf() {
    let Some(recorder) = perf::all().iter().find(|perf| perf.name == "perf") else {
        return skipped::note("perf");
    };
    let can_judge =
        |perf: &&Perf| perf.version >= recorder.version && perf.endian == recorder.endian;
    for (language, compiler, arguments) in COMPILERS {
        let Some(compiler) = installed(compiler) else {
            skipped::note(compiler);
            continue;
        };
        for (flags, options) in RECORDED {
            let folder = tempfile::tempdir().expect("a folder");
            fs::write(folder.path().join("program.c"), C).expect("a file");
            fs::write(folder.path().join("program.cc"), CPP).expect("a file");
            let compile = format!("{compiler} -O2 {flags} -Wl,--build-id {arguments} -o program");
            if !in_shell(folder.path(), &compile).success() {
                skipped::note(format_args!("the libraries of {compiler}"));
                continue;
            }
            let mut command = recorder.command();
            command.current_dir(folder.path());
            command.args(["record", "-q", "-e", "cpu-clock", "-o", "perf.data"]);
            command
                .args(options.split_whitespace())
                .args(["--", "./program"]);
            let output = perf::run(command).expect("perf runs");
            if !output.success() || !folder.path().join("perf.data").exists() {
                return skipped::note("the permission to record");
            }
            let mut judges = perf::all().iter().filter(can_judge).peekable();
            if judges.peek().is_none() {
                return skipped::note("a perf of this version");
            }
            for perf in judges {
                compare(perf, folder.path(), &format!("{language}, {options}"));
            }
        }
    }
}
