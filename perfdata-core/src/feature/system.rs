//! The machine and the program as a whole: CPUs, machine code.

use crate::codes::codes;
use crate::wire::wire;

wire! {
    /// A section that is there or not, and empty.
    pub struct Flag {}
}

wire! {
    /// Number of CPUs. Readers before 4.4 exchanged the two in their listings; the file never changed.
    pub struct NrCpus {
        /// CPUs that the machine can have: the highest present number plus 1.
        pub available: u32,
        /// CPUs that run.
        pub online: u32,
    }
}

codes! {
    /// Machine code, `e_machine` of an ELF file (include/uapi/linux/elf-em.h).
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
    /// Machine code that was profiled.
    pub struct EMachine {
        /// Processor family.
        pub e_machine: ElfMachine,
        /// Variant, `e_flags` of an ELF file; 0 where perf could not tell.
        pub e_flags: u32 as Hex,
    }
}
