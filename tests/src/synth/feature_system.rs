//! Features about the machine and the command: HOSTNAME to CMDLINE, clocks, and single numbers.

use super::buf::{Buf, count32};
use super::feature::{CPUS, Features};

const HOSTNAME: u32 = 3;
const OSRELEASE: u32 = 4;
const VERSION: u32 = 5;
const ARCH: u32 = 6;
const NRCPUS: u32 = 7;
const CPUDESC: u32 = 8;
const CPUID: u32 = 9;
const TOTAL_MEM: u32 = 10;
const CMDLINE: u32 = 11;
const STAT: u32 = 19;
const SAMPLE_TIME: u32 = 21;
const CLOCKID: u32 = 23;
const DIR_FORMAT: u32 = 24;
const COMPRESSED: u32 = 27;
const CLOCK_DATA: u32 = 29;
const E_MACHINE: u32 = 33;
const CLN_SIZE: u32 = 34;

/// Adds variants of these sections by other writers and on rare machines.
pub fn cases(f: &mut Features) {
    plain(f);
    f.add(HOSTNAME, "HOSTNAME in 8 bytes", |b| b.str_in("host", 8));
    f.add(HOSTNAME, "HOSTNAME in its own length", |b| {
        b.str_in("host", 5)
    });
    f.add(HOSTNAME, "HOSTNAME empty", |b| b.str(""));
    f.add(HOSTNAME, "HOSTNAME of 63", |b| b.str(&"h".repeat(63)));
    f.add(HOSTNAME, "HOSTNAME of 64", |b| b.str(&"h".repeat(64)));
    f.add(HOSTNAME, "HOSTNAME, stale padding", |b| {
        b.u32(16).bytes(b"host\0-stale-byte")
    });
    // Some writers of pipes pad the whole record to a multiple of 8.
    f.add(HOSTNAME, "HOSTNAME padded", |b| b.str("host").zeros(4));
    f.add(CMDLINE, "CMDLINE of the path alone", |b| {
        b.u32(1).str("/usr/bin/perf")
    });
    f.add(CMDLINE, "CMDLINE empty", |b| b.u32(0));
    f.add(SAMPLE_TIME, "SAMPLE_TIME of a pipe", |b| b.u64(0).u64(0));
    f.add(COMPRESSED, "COMPRESSED of perf stat", |b| b.u32s(&[0; 5]));
    dir_format(f);
}

/// Adds every feature of this family in the form that perf writes to a file.
pub fn plain(f: &mut Features) {
    f.add(HOSTNAME, "HOSTNAME", |b| b.str("recorder"));
    f.add(OSRELEASE, "OSRELEASE", |b| b.str("7.2.13-synthetic"));
    f.add(VERSION, "VERSION", |b| b.str("7.2.13"));
    f.add(ARCH, "ARCH", |b| b.str("x86_64"));
    f.add(NRCPUS, "NRCPUS", |b| b.u32(CPUS.0).u32(CPUS.1));
    f.add(CPUDESC, "CPUDESC", |b| b.str("Synthetic CPU @ 1.00GHz"));
    f.add(CPUID, "CPUID", |b| b.str("GenuineIntel,6,142,10"));
    f.add(TOTAL_MEM, "TOTAL_MEM", |b| b.u64(0x1_0000_1000));
    f.add(CMDLINE, "CMDLINE", |b| {
        let words = [
            "/usr/bin/perf",
            "record",
            "-e",
            "cycles",
            "--",
            "/usr/bin/true",
            "",
        ];
        b.u32(count32(&words)).each(&words, |b, word| b.str(word))
    });
    f.add(STAT, "STAT", |b| b);
    f.add(SAMPLE_TIME, "SAMPLE_TIME", |b| {
        b.u64(1_000_000_007).u64(0x1_0000_0000_0009)
    });
    f.add(CLOCKID, "CLOCKID", |b| b.u64(1));
    f.add(COMPRESSED, "COMPRESSED", compressed);
    f.add(CLOCK_DATA, "CLOCK_DATA", |b| {
        b.u32(1)
            .u32(1)
            .u64(0x17a1_b2c3_d4e5_f607)
            .u64(1_000_000_007)
    });
    f.add(E_MACHINE, "E_MACHINE", |b| b.u32(62).u32(0x0102_0304));
    f.add(CLN_SIZE, "CLN_SIZE", |b| b.u32(64));
}

/// Appends the COMPRESSED section: version, type (zstd), level, ratio, and maximum decompressed
/// size of a record.
pub fn compressed(b: Buf) -> Buf {
    b.u32s(&[0, 1, 1, 5, 528_384])
}

/// Adds the section that exists only in recordings of several files.
pub fn dir_format(f: &mut Features) {
    f.add(DIR_FORMAT, "DIR_FORMAT", |b| b.u64(1));
}
