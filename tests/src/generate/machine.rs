//! The recorded machine: processes, their mappings, and their callchains.

use std::ops::Range;

use perfdata_core::record::CallchainContext;

use super::random::Random;

/// Addresses of the kernel's code.
pub const KERNEL: Range<u64> = 0xffff_ffff_8100_0000..0xffff_ffff_82a0_0000;

/// Number of files that processes map. Each process maps a program and some libraries.
const FILES: u64 = 200;

/// A mapped file.
#[derive(Debug, Clone)]
pub struct Mapping {
    /// First address, and the address after the last one.
    pub range: Range<u64>,
    /// Offset in the file.
    pub pgoff: u64,
    /// Path.
    pub name: String,
    /// Inode number.
    pub ino: u64,
}

/// A process.
#[derive(Debug, Clone)]
pub struct Process {
    /// Process ID.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// Its mappings, starting with its program.
    pub mappings: Vec<Mapping>,
    /// Its callchains, which repeat, innermost address first.
    stacks: Vec<Vec<u64>>,
}

/// Number of callchains of a process.
const STACKS: usize = 64;

impl Process {
    /// Returns a process with the process ID `pid` that maps some files, with callchains of `depth`
    /// addresses.
    pub fn new(pid: u32, depth: Range<u64>, random: &mut Random) -> Self {
        let file = random.below(FILES);
        let mut mappings = vec![mapping(
            0x5500_0000_0000 + (random.below(1 << 20) << 12),
            &format!("app-{file}"),
            file,
        )];
        let mut here = 0x7f00_0000_0000 + (random.below(1 << 24) << 12);
        for name in [
            "libc.so.6",
            "libstdc++.so.6",
            "libm.so.6",
            "ld-linux-x86-64.so.2",
        ] {
            mappings.push(mapping(here, name, FILES));
            here += 0x40_0000;
        }
        for _ in 0..random.below(6) {
            let file = random.below(FILES);
            mappings.push(mapping(here, &format!("libgenerated-{file}.so"), file));
            here += 0x40_0000;
        }
        let stacks = (0..STACKS)
            .map(|_| stack(&mappings, depth.clone(), random))
            .collect();
        Process {
            pid,
            comm: format!("app-{file}"),
            mappings,
            stacks,
        }
    }

    /// Fills `chain` with the callchain of a sample, including markers. Returns the address, and
    /// whether it is in the kernel.
    pub fn sample(&self, random: &mut Random, chain: &mut Vec<u64>) -> (u64, bool) {
        chain.clear();
        let stack = random.pick(&self.stacks);
        let leaf = stack
            .first()
            .copied()
            .unwrap_or(0)
            .wrapping_add(random.below(64) * 4);
        let in_kernel = random.below(4) == 0;
        let ip = if in_kernel {
            chain.push(CallchainContext::KERNEL.0);
            let depth = 2 + random.below(6);
            // The kernel has few entry points.
            chain.extend((0..depth).map(|at| KERNEL.start + (random.below(64) << 8) + (at << 16)));
            chain.get(1).copied().unwrap_or(KERNEL.start)
        } else {
            leaf
        };
        chain.extend([CallchainContext::USER.0, leaf]);
        chain.extend(stack.iter().skip(1));
        (ip, in_kernel)
    }
}

fn mapping(start: u64, name: &str, file: u64) -> Mapping {
    let folder = if name.contains(".so") {
        "/usr/lib/x86_64-linux-gnu"
    } else {
        "/usr/bin"
    };
    Mapping {
        range: start..start + 0x20_0000,
        pgoff: 0x1000,
        name: format!("{folder}/{name}"),
        ino: 131_072 + file,
    }
}

fn stack(mappings: &[Mapping], depth: Range<u64>, random: &mut Random) -> Vec<u64> {
    let depth = depth.start + random.below(depth.end - depth.start);
    (0..depth)
        .map(|_| random.pick(mappings).range.start + 0x1000 + (random.below(1 << 18) << 2))
        .collect()
}
