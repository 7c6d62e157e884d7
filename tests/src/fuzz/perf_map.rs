//! Perf maps of any content.

use std::collections::BTreeSet;
use std::fs;

use perfdata_convert::io::Output;
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_core::Endian;
use perfdata_inject::jit::Images;
use perfdata_inject::perf_maps::PerfMaps;
use perfdata_symbols::perf_map::Function;

use crate::told::{MONOTONIC, Told, made, names};

/// The memory of the process: two areas.
const MEMORY: [(u64, u64); 2] = [(0x1000, 0x2000), (0x7000, 0x1000)];

/// Maximum number of addresses that are compared.
const MOST: usize = 512;

/// Maximum size of a name in an image.
const MOST_NAME: usize = 4096;

/// Adds the names in a perf map to a recording. Every address around the ends of functions has the
/// name in the last line that contains it.
pub fn perf_map(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("perf-5.map"), data).expect("a file");
    let lines: Vec<Function<'_>> = data
        .split(|&byte| byte == b'\n')
        .filter_map(Function::of_line)
        .collect();
    let is_mapped = |at: &u64| {
        let mut memory = MEMORY.iter();
        memory.any(|(start, size)| (*start..start + size).contains(at))
    };
    let ends = lines.iter().flat_map(|line| [line.start, line.end]);
    let around = ends.flat_map(|at| [at.wrapping_sub(1), at]);
    let starts = MEMORY.iter().map(|(start, _)| *start);
    let addresses: BTreeSet<u64> = around.chain(starts).filter(is_mapped).take(MOST).collect();
    let mut told: Vec<(u64, Told<'_>)> = MEMORY
        .iter()
        .map(|&(start, size)| (1, Told::Map(5, start, size, "//anon")))
        .collect();
    told.extend(addresses.iter().map(|&at| (2, Told::Sample(5, at))));
    made(&path("in.data"), Endian::Little, MONOTONIC, &told);

    let maps = PerfMaps::new(Images::In(path("images")))
        .with_maps(folder.path().to_owned())
        .synced(false);
    let stages: Vec<Box<dyn Stage>> = vec![Box::new(maps)];
    let output = Output::create(&path("out.data"), &path("in.data"), true).expect("a file");
    Conversion::new(stages)
        .run(&path("in.data"), output.synced(false))
        .expect("it is converted");
    let found = names(&path("out.data"));
    assert_eq!(found.len(), addresses.len());
    for (at, name) in found {
        let line = lines
            .iter()
            .rev()
            .find(|line| (line.start..line.end).contains(&at));
        let expected = line.map_or(&b""[..], |line| {
            line.name.get(..MOST_NAME).unwrap_or(line.name)
        });
        assert_eq!(name, String::from_utf8_lossy(expected), "{at:#x}");
    }
}

/// Returns perf maps as runtimes write them, and one with overlapping lines.
pub(super) fn perf_map_seeds() -> Vec<Vec<u8>> {
    [
        "1000 20 JS:^fib /tmp/fib.js:1:13\n1020 8 Builtin:Add\n7ff0 20 stub\n",
        "0x1000 0x100 void Fib::main(java.lang.String[])\n0x00007000 1 x\n",
        "1000 2000 outer\n1010 10 inner\n1018 10 newer\n2000 10 a\n2000 10 b\n2ff0 ffff end\n",
        "0 ffffffffffffffff all\nffffffffffffffff 1 last\n7010 0 empty\nrubbish\n\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}
