//! Memory with huge pages in the place of a file's mapping becomes a mapping of the file.

use perfdata_edit::sort::Sort;
use perfdata_inject::huge_pages::HugePages;
use perfdata_tests::code_folder::CodeFolder;
use perfdata_tests::convert::convert;
use perfdata_tests::told::Told::{self, Data, Map, OldMap, Part, Round, Sample as At};
use perfdata_tests::told::{MONOTONIC, made, shown};

const M: u64 = 1 << 20;

/// Returns the notes and mappings of a recording.
fn deduced(told: &[(u64, Told<'_>)]) -> (Vec<String>, Vec<String>) {
    let folder = CodeFolder::new();
    folder.converted(told, Box::new(HugePages::default()))
}

#[test]
fn memory_over_a_file_is_the_file() {
    let (notes, records) = deduced(&[
        (1, Part(5, 0x40_0000, 8 * M, 0x20_0000, "/bin/big")),
        (2, Map(5, 0x60_0000, 2 * M, "//anon")),
        (3, At(5, 0x60_0010)),
        // A part of what is deduced already, and a part of the file.
        (4, Map(5, 0x70_0000, 2 * M, "/anon_hugepage (deleted)")),
        // Beyond its end.
        (5, Map(5, 0xb0_0000, 2 * M, "//anon")),
        // Not in units of huge pages.
        (6, Map(5, 0x42_0000, M, "//anon")),
        // Not executable.
        (7, Data(5, 0x50_0000, M, "//anon")),
        // Another process.
        (8, Map(6, 0x60_0000, 2 * M, "//anon")),
        (9, OldMap(5, 0x40_0000, 2 * M, "/lib/old")),
        (10, OldMap(5, 0x40_0000, M, "//anon")),
        // Two files.
        (11, Map(5, 0x50_0000, 2 * M, "//anon")),
        (0, Round),
    ]);
    assert_eq!(
        records,
        [
            "1 5/5 0x400000+0x800000 @0x200000 big",
            "2 5/5 0x600000+0x200000 @0x400000 big",
            "3 sample 0x600010",
            "4 5/5 0x700000+0x200000 @0x500000 big",
            "5 5/5 0xb00000+0x200000 @0x0 anon",
            "6 5/5 0x420000+0x100000 @0x0 anon",
            "7 5/5 0x500000+0x100000 @0x0 anon",
            "8 6/6 0x600000+0x200000 @0x0 anon",
            "9 5/5 0x400000+0x200000 @0x0 old (MMAP)",
            "10 5/5 0x400000+0x100000 @0x0 old (MMAP)",
            "11 5/5 0x500000+0x200000 @0x0 anon",
            "round",
        ]
    );
    assert_eq!(
        notes,
        [
            "/bin/big: 2 mappings with its code on huge pages",
            "/lib/old: 1 mapping with its code on huge pages",
        ]
    );
}

/// perf reads the mappings of running processes, whose records have no time.
#[test]
fn memory_between_parts_of_a_file_is_the_file() {
    let (notes, records) = deduced(&[
        (0, Part(5, 0x40_0000, 2 * M, 0x20_0000, "/bin/big")),
        (0, Map(5, 0x60_0000, 2 * M, "//anon")),
        (0, Map(5, 0x80_0000, 2 * M, "//anon")),
        (0, Part(5, 0xa0_0000, 0x1000, 0x80_0000, "/bin/big")),
        // The file begins in memory.
        (0, Map(5, 0x7f00_0000, 2 * M, "//anon")),
        (0, Part(5, 0x7f20_0000, 0x1000, 2 * M, "/lib/whole")),
        // The offsets do not fit.
        (0, Part(6, 0x40_0000, 2 * M, 0x20_0000, "/bin/big")),
        (0, Map(6, 0x60_0000, 2 * M, "//anon")),
        (0, Part(6, 0x80_0000, 0x1000, 0x50_0000, "/bin/big")),
        // Another file follows, or nothing at once.
        (0, Part(7, 0x40_0000, 2 * M, 0x20_0000, "/bin/big")),
        (0, Map(7, 0x60_0000, 2 * M, "//anon")),
        (0, Part(7, 0x80_0000, 0x1000, 0x60_0000, "/bin/other")),
        (0, Part(8, 0x40_0000, 2 * M, 0x20_0000, "/bin/big")),
        (0, Map(8, 0x60_0000, 2 * M, "//anon")),
        (0, Part(8, 0x90_0000, 0x1000, 0x70_0000, "/bin/big")),
        // Mapped while perf recorded: what is behind it need not have been there.
        (3, Part(9, 0x40_0000, 2 * M, 0x20_0000, "/bin/big")),
        (4, Map(9, 0x60_0000, 2 * M, "//anon")),
        (5, Part(9, 0x80_0000, 0x1000, 0x60_0000, "/bin/big")),
        (0, Round),
    ]);
    let of = |pid: u32| {
        let part = format!(" {pid}/{pid} ");
        let of = records.iter().filter(|record| record.contains(&part));
        of.map(|record| record.rsplit_once('@').expect("an offset").1)
            .collect::<Vec<_>>()
    };
    let deduced = [
        "0x200000 big",
        "0x400000 big",
        "0x600000 big",
        "0x800000 big",
        "0x0 whole",
        "0x200000 whole",
    ];
    assert_eq!(of(5), deduced);
    for pid in [6, 7, 8, 9] {
        assert_eq!(of(pid)[1], "0x0 anon", "{pid}");
    }
    assert_eq!(
        notes,
        [
            "/bin/big: 2 mappings with its code on huge pages",
            "/lib/whole: 1 mapping with its code on huge pages",
        ]
    );
}

/// Nothing changes where no file is known, also at the end of the recording.
#[test]
fn other_memory_stays() {
    let folder = CodeFolder::new();
    let told = [
        (0, Map(5, 0x60_0000, 2 * M, "//anon")),
        (1, At(5, 0x60_0010)),
        (0, Map(5, 0x80_0000, 2 * M, "//anon")),
    ];
    let input = folder.path("in.data");
    made(&input, perfdata_core::Endian::Little, MONOTONIC, &told);
    let stages: Vec<Box<dyn perfdata_convert::pipeline::Stage>> =
        vec![Box::new(Sort::new()), Box::new(HugePages::default())];
    let converted = convert(&input, None, stages).expect("it is converted");
    assert_eq!(shown(&converted.path()), shown(&input));
    assert_eq!(
        deduced(&told).0,
        ["no executable memory is in the place of a file"]
    );
}
