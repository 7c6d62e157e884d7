//! Properties that must hold for any input: the bodies of the fuzz targets.
//!
//! Each body reads bytes and panics if a property does not hold. The targets in `fuzz/` run it with
//! inputs found by cargo-fuzz, the suite `fuzz` with the recordings of this project, damaged in
//! reproducible ways.

mod arm_spe;
mod bundle;
mod conversions;
mod copy;
mod exports;
mod fields;
mod intel_pt;
mod intel_pt_walk;
mod part;
mod perf_map;
mod small;
mod splice;

use std::fs;

// A program that calls one body contains no code of the others.
pub use arm_spe::arm_spe;
pub use bundle::bundle;
pub use conversions::{convert, look, merge, recover, sanitize, session, split};
pub use copy::copy;
pub use exports::{columns, exports};
pub use fields::fields;
pub use intel_pt::intel_pt;
pub use intel_pt_walk::intel_pt_walk;
pub use part::{record, section};
pub use perf_map::perf_map;
pub use small::{demangle, elf, jitdump, known, set, symbols, tracepoint, unwind, zstd};
pub use splice::splice;

use crate::recordings::{self, Container};

/// A body and its initial inputs.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is also the name of the cargo-fuzz target.
    pub name: &'static str,
    /// Tests one input.
    pub run: fn(&[u8]),
    /// Returns the initial inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "copy",
        run: copy,
        seeds: recordings,
    },
    Target {
        name: "record",
        run: record,
        seeds: part::record_seeds,
    },
    Target {
        name: "section",
        run: section,
        seeds: part::section_seeds,
    },
    Target {
        name: "convert",
        run: convert,
        seeds: recordings,
    },
    Target {
        name: "sanitize",
        run: sanitize,
        seeds: recordings,
    },
    Target {
        name: "merge",
        run: merge,
        seeds: conversions::pairs,
    },
    Target {
        name: "split",
        run: split,
        seeds: recordings,
    },
    Target {
        name: "fields",
        run: fields,
        seeds: fields::seeds,
    },
    Target {
        name: "splice",
        run: splice,
        seeds: fields::seeds,
    },
    Target {
        name: "exports",
        run: exports,
        seeds: recordings,
    },
    Target {
        name: "columns",
        run: columns,
        seeds: recordings,
    },
    Target {
        name: "recover",
        run: recover,
        seeds: recordings,
    },
    Target {
        name: "look",
        run: look,
        seeds: recordings,
    },
    Target {
        name: "session",
        run: session,
        seeds: recordings,
    },
    Target {
        name: "zstd",
        run: zstd,
        seeds: small::zstd_seeds,
    },
    Target {
        name: "elf",
        run: elf,
        seeds: small::elf_seeds,
    },
    Target {
        name: "jitdump",
        run: jitdump,
        seeds: small::jitdump_seeds,
    },
    Target {
        name: "bundle",
        run: bundle,
        seeds: bundle::bundle_seeds,
    },
    Target {
        name: "arm_spe",
        run: arm_spe,
        seeds: arm_spe::seeds,
    },
    Target {
        name: "intel_pt",
        run: intel_pt,
        seeds: intel_pt::seeds,
    },
    Target {
        name: "intel_pt_walk",
        run: intel_pt_walk,
        seeds: intel_pt_walk::seeds,
    },
    Target {
        name: "perf_map",
        run: perf_map,
        seeds: perf_map::perf_map_seeds,
    },
    Target {
        name: "symbols",
        run: symbols,
        seeds: small::symbols_seeds,
    },
    Target {
        name: "demangle",
        run: demangle,
        seeds: small::demangle_seeds,
    },
    Target {
        name: "tracepoint",
        run: tracepoint,
        seeds: small::tracepoint_seeds,
    },
    Target {
        name: "unwind",
        run: unwind,
        seeds: small::unwind_seeds,
    },
    Target {
        name: "known",
        run: known,
        seeds: small::known_seeds,
    },
    Target {
        name: "set",
        run: set,
        seeds: small::set_seeds,
    },
];

/// Returns the target called `name`.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Returns the small recordings of the project, files and pipes.
fn recordings() -> Vec<Vec<u8>> {
    let single = |recording: &&recordings::Recording| {
        recording
            .form
            .is_some_and(|form| form.container != Container::Directory)
    };
    let all = recordings::fixtures();
    let bytes = all
        .iter()
        .filter(single)
        .filter_map(|recording| fs::read(&recording.path).ok());
    bytes.filter(|bytes| bytes.len() < 20 << 10).collect()
}

/// Reproducible random numbers (splitmix64).
#[derive(Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    /// Returns the next number.
    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `limit`, or 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next_number() % (limit.max(1) as u64)).unwrap_or(0)
    }
}

/// Numbers at the limits of counts and sizes.
const EDGES: [u64; 8] = [
    0,
    1,
    7,
    0x7f,
    0xffff,
    0x7fff_ffff,
    u32::MAX as u64,
    u64::MAX,
];

/// Damages `bytes` in one to four places: changes bytes or numbers, truncates, duplicates, removes.
pub fn damage(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len());
        match numbers.below(6) {
            0 => bytes
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|byte| *byte ^= 1 << numbers.below(8)),
            1 => {
                let len = 1 + numbers.below(64);
                bytes
                    .iter_mut()
                    .skip(at)
                    .take(len)
                    .for_each(|byte| *byte = numbers.next_number() as u8);
            }
            2 | 3 => {
                let (edge, width) = (EDGES[numbers.below(EDGES.len())], 1 << numbers.below(4));
                let word = if numbers.below(2) == 0 {
                    edge.to_le_bytes()
                } else {
                    edge.to_be_bytes()
                };
                let aligned = at - at % width;
                bytes
                    .iter_mut()
                    .skip(aligned)
                    .zip(&word[..width])
                    .for_each(|(byte, new)| *byte = *new);
            }
            4 => bytes.truncate(at),
            _ => {
                let end = bytes.len().min(at + numbers.below(256));
                let piece: Vec<u8> = bytes.drain(at..end).collect();
                if numbers.below(2) == 0 {
                    let to = numbers.below(bytes.len());
                    bytes.splice(to..to, piece);
                }
            }
        }
    }
}
