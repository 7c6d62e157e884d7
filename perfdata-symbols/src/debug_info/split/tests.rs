//! Programs of compilers, whose debug information is split, packed or not linked.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::debug_info::DebugInfo;
use crate::elf::Elf;
use crate::files::SplitFiles;
use crate::lines::SourceFrame;
use crate::sources::Sources;

const MOST: usize = 1 << 28;

/// Two files with functions that are inlined into each other.
const FILES: [(&str, &str); 2] = [
    (
        "first.c",
        "int other(int);\nvolatile int sink;\n\
         static inline int twice(int a)\n{\n    sink = a;\n    return a + sink;\n}\n\
         static inline int four(int a)\n{\n    int b = twice(a);\n    sink = b;\n    return twice(b);\n}\n\
         int main(int count, char **names)\n{\n    sink = count;\n    return four(count) + other(count);\n}\n",
    ),
    (
        "second.c",
        "extern volatile int sink;\n\
         static inline int square(int a)\n{\n    sink = a;\n    return a * sink;\n}\n\
         int other(int a)\n{\n    sink = 3;\n    return square(a) + square(a + 1);\n}\n",
    ),
];

/// Runs a command of a compiler in a folder. Returns whether it succeeded.
fn run(folder: &Path, command: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder);
    shell.output().is_ok_and(|output| output.status.success())
}

fn write_files(folder: &Path) {
    for (name, content) in FILES {
        fs::write(folder.join(name), content).unwrap();
    }
}

/// Opens the debug information of a file.
fn open(path: &Path) -> DebugInfo {
    let elf = Elf::open(path).unwrap();
    let files = SplitFiles::new(Sources::default(), vec![path.to_owned()]);
    DebugInfo::parse(&elf, MOST)
        .unwrap()
        .with_split_files(files)
}

/// Returns the functions at the addresses of all units.
fn all(info: &mut DebugInfo) -> Vec<Vec<SourceFrame>> {
    let starts: BTreeSet<u64> = info.some_addresses().into_iter().collect();
    let addresses = starts.into_iter().flat_map(|start| start..start + 0x60);
    addresses.map(|address| info.find(address)).collect()
}

/// Returns the number of lists with inlined functions.
fn inlined(found: &[Vec<SourceFrame>]) -> usize {
    found.iter().filter(|frames| frames.len() > 1).count()
}

#[test]
fn split_units_are_found_in_files_and_packages() {
    let mut tried = 0;
    for compiler in ["gcc", "clang", "clang-19"] {
        for version in [4, 5] {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            write_files(folder);
            let compile = format!("{compiler} -O2 -gdwarf-{version} -fno-ipa-icf");
            let compile = match compiler {
                "gcc" => compile,
                _ => format!("{compiler} -O2 -gdwarf-{version}"),
            };
            let whole =
                format!("{compile} -c first.c second.c && {compile} first.o second.o -o whole");
            let split = format!(
                "mkdir build && cp *.c build && cd build && \
                 {compile} -gsplit-dwarf -c first.c second.c && {compile} first.o second.o -o ../split"
            );
            if !run(folder, &whole) || !run(folder, &split) {
                continue;
            }
            tried += 1;
            let expected = all(&mut open(&folder.join("whole")));
            assert!(inlined(&expected) > 8, "{compiler} {version}: {expected:?}");
            let names = |found: &[Vec<SourceFrame>]| -> Vec<Vec<_>> {
                let of = |frame: &SourceFrame| {
                    let file = frame.file.as_ref().map(|file| {
                        let name = file.rsplit(|&byte| byte == b'/').next();
                        name.unwrap_or_default().to_vec()
                    });
                    (frame.function.clone(), frame.start_line, file, frame.line)
                };
                found
                    .iter()
                    .map(|frames| frames.iter().map(of).collect())
                    .collect()
            };
            let expected = names(&expected);
            let path = folder.join("split");
            let mut info = open(&path);
            assert_eq!(names(&all(&mut info)), expected, "{compiler} {version}");
            assert_eq!(info.missing_units(), None);
            // Beside the object.
            fs::create_dir(folder.join("moved")).unwrap();
            assert!(run(
                folder,
                "mv split moved/ && mv build/*.dwo moved/ && rm -r build"
            ));
            let path = folder.join("moved/split");
            let mut info = open(&path);
            assert_eq!(names(&all(&mut info)), expected, "{compiler} {version}");
            // In a package.
            let pack = "cd moved && mkdir ../build && cp *.dwo ../build && \
                ((cd ../build && timeout 9 dwp -e ../moved/split -o ../moved/split.dwp) || timeout 9 llvm-dwp -e split -o split.dwp) && rm -r ../build *.dwo";
            if run(folder, pack) {
                let mut info = open(&path);
                assert_eq!(
                    names(&all(&mut info)),
                    expected,
                    "{compiler} {version}: package"
                );
                assert_eq!(info.missing_units(), None);
                fs::remove_file(folder.join("moved/split.dwp")).unwrap();
            } else {
                assert!(run(folder, "rm -rf build moved/*.dwo moved/split.dwp"));
            }
            // Units of another compilation are not used.
            let other = format!(
                "sed -i 's/twice/thrice/g; s/square/cube/g' *.c && \
                 {compile} -gsplit-dwarf -c first.c second.c && mv *.dwo moved/"
            );
            assert!(run(folder, &other));
            for is_absent in [false, true] {
                if is_absent {
                    assert!(run(folder, "rm moved/*.dwo"));
                }
                let mut info = open(&path);
                let found = all(&mut info);
                let has = |name: &[u8]| {
                    let mut frames = found.iter().flatten();
                    frames.any(|frame| frame.function.as_deref() == Some(name))
                };
                assert!(!has(b"thrice") && !has(b"cube"), "{compiler} {version}");
                let (count, first) = info.missing_units().expect("units");
                assert_eq!((count, first.ends_with(b".dwo")), (2, true));
                // The lines are in the object.
                assert!(found.iter().flatten().any(|frame| frame.line != 0));
            }
        }
    }
    if tried == 0 {
        eprintln!("left out: no compiler");
    }
}

#[test]
fn modules_are_relocated() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_files(folder);
    for version in [4, 5] {
        let compile = format!(
            "gcc -O2 -gdwarf-{version} -c first.c second.c && \
             ld -r first.o second.o -o all.ko && xz -kf all.ko && zstd -qkf all.ko"
        );
        if !run(folder, &compile) {
            eprintln!("left out: gcc, ld, xz and zstd");
            return;
        }
        for name in ["all.ko", "all.ko.xz", "all.ko.zst"] {
            let path = folder.join(name);
            let elf = Elf::open(&path).unwrap();
            let text = elf.placed(b".text").unwrap();
            let startup = elf.placed(b".text.startup").unwrap();
            let mut info = DebugInfo::parse(&elf, MOST).unwrap();
            let mut find = |at| {
                let frames = info.find(at).into_iter();
                let names = frames.map(|frame| frame.function.unwrap_or_default().to_vec());
                names.collect::<Vec<_>>()
            };
            let of_text: Vec<_> = (text..text + 0x40).map(&mut find).collect();
            let inlined = [b"square".to_vec(), b"other".to_vec()];
            assert!(
                of_text.iter().any(|names| names[..] == inlined),
                "{name}: {of_text:?}"
            );
            let of_startup: Vec<_> = (startup..startup + 0x40).map(&mut find).collect();
            let inlined = [b"twice".to_vec(), b"four".to_vec(), b"main".to_vec()];
            assert!(
                of_startup.iter().any(|names| names[..] == inlined),
                "{name}: {of_startup:?}"
            );
        }
    }
}
