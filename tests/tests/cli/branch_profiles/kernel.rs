//! Images and modules of a kernel: a program that does the same in user space runs step by step, and
//! its branches are recorded as those of the kernel.

use std::fs;

use perfdata_tests::convert::in_shell;
use perfdata_tests::skipped;

use super::made::{KERNEL_TEXT, KernelImage, Traced, Variant};
use super::readers::Counted;
use super::{prepare, readers_make_the_same_profiles, step};

/// Where the program runs in user space.
const USER_TEXT: u64 = 0x1000_0000;

/// Where a module was loaded.
const MODULE_TEXT: u64 = 0xffff_ffff_c040_0000;

/// How far from the addresses in its image a kernel was loaded (KASLR).
const MOVED: u64 = 0x1280_0000;

/// Returns a script for the linker that puts the code at an address, where a kernel has these symbols.
fn script(text: u64) -> String {
    format!(
        "ENTRY(_start)
SECTIONS {{
    . = {text:#x};
    .text : {{ _text = .; _stext = .; *(.text .text.*) _etext = .; }}
    . = ALIGN(4096);
    .rodata : {{ *(.rodata .rodata.*) }}
    .notes : {{ *(.note.gnu.build-id) }}
    . = ALIGN(4096);
    .data : {{ *(.data .data.* .bss) }}
}}
"
    )
}

#[test]
fn profiles_of_kernels_are_those_of_the_recordings() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    if !prepare(folder, &["program.c"]) {
        return;
    }
    fs::write(folder.join("user.ld"), script(USER_TEXT)).expect("a script");
    fs::write(folder.join("vmlinux.ld"), script(KERNEL_TEXT)).expect("a script");
    let flags = "-gdwarf-4 -O1 -nostdlib -static -no-pie -fno-pie -mcmodel=kernel \
                 -fno-stack-protector -fcf-protection=none -Wl,--build-id,--emit-relocs";
    let built = in_shell(
        folder,
        &format!(
            "for name in user vmlinux; do \
                 cc {flags} program.c -Wl,-T,$name.ld -o $name || exit; \
             done && \
             cc {flags} -c program.c -o module.o && ld -r --build-id module.o -o work-load.ko"
        ),
    );
    if !built.success() {
        skipped::note("a C compiler that links programs without its library");
        return;
    }
    if !step(folder, "user", u32::MAX) {
        skipped::note("ptrace");
        return;
    }
    let user = Traced::read(folder, "user");
    let functions = ["_start", "work", "collatz", "twice", "down"];
    let all = [("vmlinux", 0), ("moved-vmlinux", MOVED)].map(|(name, moved)| {
        let image = KernelImage::Kernel(folder.join("vmlinux"));
        let traced = user.clone().in_kernel(name, image, KERNEL_TEXT + moved);
        (traced, ["vmlinux"].as_slice())
    });
    readers_make_the_same_profiles(folder, &all, &[("plain", Variant::PLAIN)], &functions);
    let image = KernelImage::Module(folder.join("work-load.ko"));
    let module = user.in_kernel("module", image, MODULE_TEXT);
    module.record(Variant::PLAIN, &folder.join("module.data"));
    let counted = Counted {
        folder,
        input: "module.data",
        object: "work-load.ko",
        functions: &functions,
        is_kernel: false,
    };
    counted.autofdo_makes_the_same();
    // Neither BOLT nor llvm-profgen reads modules.
    for to in ["bolt", "llvm-profgen"] {
        let command = format!("perfconv export --to {to} --binary work-load.ko module.data -o no");
        let output = in_shell(folder, &command);
        assert!(
            !output.success() && output.stderr.contains("only create_llvm_prof reads"),
            "{}",
            output.stderr
        );
        assert!(!folder.join("no").exists());
    }
}
