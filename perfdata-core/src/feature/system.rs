//! The machine and the profiled program: CPUs, ELF machine.

use crate::codes::codes;
use crate::wire::wire;

wire! {
    /// A section without content that is either present or absent.
    pub struct Flag {}
}

wire! {
    /// Number of CPUs. perf before 4.4 swapped the two numbers in its output; the file format did
    /// not change.
    pub struct NrCpus {
        /// Number of possible CPUs: the highest number of a present CPU plus 1.
        pub available: u32 => Number,
        /// Number of online CPUs.
        pub online: u32 => Number,
    }
}

codes! {
    /// Instruction set, `e_machine` of an ELF file (include/uapi/linux/elf-em.h).
    pub struct ElfMachine: u32 {
        0 NONE "none",
        2 SPARC "sparc",
        3 I386 "i386",
        8 MIPS "mips",
        15 PARISC "parisc",
        20 PPC "ppc",
        21 PPC64 "ppc64",
        22 S390 "s390",
        40 ARM "arm",
        42 SH "sh",
        43 SPARCV9 "sparcv9",
        62 X86_64 "x86_64",
        83 AVR "avr",
        94 XTENSA "xtensa",
        183 AARCH64 "aarch64",
        195 ARCV2 "arcv2",
        243 RISCV "riscv",
        247 BPF "bpf",
        252 CSKY "csky",
        258 LOONGARCH "loongarch",
    }
}

wire! {
    /// ELF machine of the profiled code.
    pub struct EMachine {
        /// Processor family.
        pub e_machine: ElfMachine,
        /// Variant, `e_flags` of an ELF file; 0 if perf could not determine it.
        pub e_flags: u32 as Hex => Number,
    }
}
