//! Recordings of Intel BTS: branches between the instructions of a made program.

use std::path::Path;

use super::attr::{Attr, Stamp, sample_type};
use super::auxtrace::{self, Origin};
use super::buf::{Buf, count};
use super::feature_events::Event;
use super::file::File;
use super::hardware_trace::{PMU, TASK};
use super::kernel::{self, Object};
use super::kind;
use super::record::{Scribe, misc};
use crate::generate::random::Random;

/// Instructions of every kind.
const CODE: &[&[u8]] = &[
    &[0xe8, 0, 0, 0, 0],       // call
    &[0xff, 0xd0],             // call rax
    &[0xff, 0x18],             // lcall [rax]
    &[0xc3],                   // ret
    &[0xc2, 8, 0],             // ret 8
    &[0xcb],                   // lret
    &[0x74, 0],                // je
    &[0x0f, 0x85, 0, 0, 0, 0], // jne
    &[0xe2, 0xfe],             // loop
    &[0xe3, 0xfe],             // jrcxz
    &[0xeb, 0],                // jmp
    &[0xff, 0xe0],             // jmp rax
    &[0x0f, 0x05],             // syscall
    &[0x0f, 0x34],             // sysenter
    &[0x48, 0x0f, 0x07],       // sysret
    &[0xcd, 0x80],             // int 0x80
    &[0xcc],                   // int3
    &[0x48, 0xcf],             // iretq
    &[0x90],                   // nop
    &[0xf3, 0xa4],             // rep movsb
];

/// Offset of the code in the file.
pub const CODE_AT: usize = 0x200;

/// Address at which the file is mapped.
pub const BASE: u64 = 0x40_0000;

/// Offset of the section headers in the file.
const SECTIONS: u64 = 0x1000;

/// The build ID of the program.
pub const BUILD_ID: [u8; 20] = [0x5a; 20];

/// Another thread of the process, and a process whose program is not known.
const OTHERS: [(u32, u32); 2] = [(TASK.0, TASK.1 + 1), (2000, 2000)];

/// How a recording is made.
#[derive(Debug, Clone, Copy)]
pub struct BranchRecipe {
    /// Byte order of the recording; the trace is little-endian.
    pub big: bool,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of branches in each AUXTRACE record.
    pub branches: usize,
    /// Whether AUX records say that data were lost.
    pub is_truncated: bool,
    /// Whether the data are snapshots, each of which repeats a part of the one before.
    pub are_snapshots: bool,
    /// Whether each piece ends with a record of zeros. perf drops the last record of each piece.
    pub ends_with_zeros: bool,
}

impl BranchRecipe {
    /// The usual recording.
    pub const USUAL: BranchRecipe = BranchRecipe {
        big: false,
        seed: 1,
        branches: 200,
        is_truncated: true,
        are_snapshots: false,
        ends_with_zeros: true,
    };

    /// Returns the program.
    pub fn program() -> Vec<u8> {
        object(&CODE.concat())
    }

    /// Returns the address of a random instruction.
    fn place(random: &mut Random) -> u64 {
        let number = random.below(CODE.len() as u64) as usize;
        let before: usize = CODE.iter().take(number).map(|code| code.len()).sum();
        BASE + (CODE_AT + before) as u64
    }

    fn branches(self, random: &mut Random) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..self.branches {
            let (mut from, mut to) = (Self::place(random), Self::place(random));
            match random.below(20) {
                0 => from = 0,
                1 => to = 0,
                2 => (from, to) = (0, 0),
                3 => to = 0xffff_ffff_8100_0010,
                4 => from = 0xffff_ffff_8100_0020,
                5 => from = 0x7f00_0000_1234,
                _ => {}
            }
            let flags = random.below(2) << 4;
            bytes.extend([from, to, flags].iter().flat_map(|word| word.to_le_bytes()));
        }
        if self.ends_with_zeros {
            bytes.resize(bytes.len() + 24, 0);
        }
        bytes
    }

    /// Returns the recording of the program at `path`.
    pub fn file(self, path: &Path) -> File {
        use sample_type::{CPU, IDENTIFIER, IP, TID, TIME};
        let path = path.to_str().expect("a path of text");
        let event = Event {
            name: "intel_bts//u".into(),
            attr: Attr {
                kind: PMU,
                size: 128,
                sample_period: 1,
                ..Attr::new(
                    IP | TID | TIME | CPU | IDENTIFIER,
                    "inherit exclude_kernel mmap comm task sample_id_all mmap2 build_id",
                )
            },
            ids: vec![7, 8, 9],
        };
        let stamp = |time, (pid, tid), id| Stamp {
            pid,
            tid,
            time,
            id,
            stream_id: 0,
            cpu: u32::MAX,
        };
        let attr = event.attr.clone();
        let mut file = File::new(self.big, vec![event]);
        let mut s = Scribe::new(self.big, attr, stamp(1_000_000, TASK, 7));
        s.tick = 0;
        auxtrace::info(&mut s, "INTEL_BTS", 2, |b| {
            b.u64s(&[PMU.into(), 0, 1, 0, 1, u64::from(self.are_snapshots)])
        });
        for (pid, tid) in [TASK, OTHERS[0], OTHERS[1]] {
            s.kernel("COMM", kind::COMM, 0, |b| {
                kernel::comm(b, (pid, tid), &format!("task-{tid}"))
            });
        }
        s.kernel("MMAP2", kind::MMAP2, misc::USER | 1 << 14, |b| {
            let place = [BASE, 0x1000, 0];
            kernel::mmap2(b, TASK, place, Object::BuildId(&BUILD_ID), [5, 2], path)
        });
        let mut random = Random(self.seed);
        let (mut time, mut offsets, mut last) = (1_000_000_u64, [0_u64; 3], Vec::new());
        for round in 0..4_u64 {
            for (at, task) in (0..).zip([TASK, OTHERS[0], OTHERS[1]]) {
                time += 1000;
                let mut data = self.branches(&mut random);
                if self.are_snapshots && at == 0 {
                    let new = data.clone();
                    let end = Vec::len(&last);
                    data = [last.get(end / 48 * 24..).unwrap_or_default(), &new].concat();
                    last.clone_from(&data);
                }
                s.stamp = stamp(time, task, 7 + at);
                s.kernel("AUX", kind::AUX, 0, |b| {
                    let flags = u64::from(self.is_truncated && round == 2);
                    kernel::aux(b, offsets[at as usize], count(&data), flags)
                });
                s.stamp.time += 100;
                s.kernel("COMM", kind::COMM, 0, |b| {
                    kernel::comm(b, task, &format!("round-{round}"))
                });
                let origin = Origin {
                    offset: offsets[at as usize],
                    reference: time + 50,
                    idx: at as u32,
                    tid: task.1,
                    cpu: u32::MAX,
                };
                offsets[at as usize] += count(&data);
                auxtrace::piece(&mut s, "AUXTRACE", origin, &data);
            }
            s.user("FINISHED_ROUND", kind::FINISHED_ROUND, 0, |b| b);
        }
        // The end of a thread, whose last data have a later reference.
        let data = self.branches(&mut random);
        let origin = Origin {
            offset: offsets[1],
            reference: time + 900_000,
            idx: 1,
            tid: OTHERS[0].1,
            cpu: u32::MAX,
        };
        auxtrace::piece(&mut s, "AUXTRACE", origin, &data);
        s.stamp = stamp(time + 5000, OTHERS[0], 8);
        s.kernel("EXIT", kind::EXIT, 0, |b| {
            kernel::fork(b, OTHERS[0], (TASK.0, TASK.1), time + 5000)
        });
        s.stamp = stamp(time + 6000, TASK, 7);
        s.kernel("COMM", kind::COMM, 0, |b| kernel::comm(b, TASK, "end"));
        s.user("FINISHED_ROUND", kind::FINISHED_ROUND, 0, |b| b);
        auxtrace::finish(&mut file, self.big, &s.cases, "x86_64", &[]);
        file
    }
}

/// Returns an ELF file with this code, a build ID and sections: perf does not read the
/// first instruction of an object without them.
pub fn object(code: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let b = Buf::new(false)
        .u16(2)
        .u16(62)
        .u32(1)
        .u64s(&[BASE + CODE_AT as u64, 64, SECTIONS]);
    let b = b.u32(0).u16(64).u16(56).u16(2).u16(64).u16(5).u16(3);
    // The whole file, executable; and the note with the build ID.
    let b = b
        .u32s(&[1, 5])
        .u64s(&[0, BASE, BASE, 0x1000, 0x1000, 0x1000]);
    let b = b
        .u32s(&[4, 4])
        .u64s(&[176, BASE + 176, BASE + 176, 36, 36, 4]);
    let b = b.u32s(&[4, 20, 3]).bytes(b"GNU\0").bytes(&BUILD_ID);
    bytes.extend(b.bytes);
    bytes.resize(CODE_AT, 0);
    bytes.extend(code);
    assert!(bytes.len() <= SECTIONS as usize, "too much code");
    bytes.resize(SECTIONS as usize, 0x90);
    let code = count(code);
    let section = |b: Buf, name, kind, flags, address, place: [u64; 2], link: [u32; 2], size| {
        let b = b.u32s(&[name, kind]).u64s(&[flags, address]).u64s(&place);
        b.u32s(&link).u64s(&[8, size])
    };
    let b = Buf::new(false).u64s(&[0; 8]);
    let (text, symbols, names) = (CODE_AT as u64, SECTIONS + 320, SECTIONS + 368);
    let b = section(b, 1, 1, 6, BASE + text, [text, code], [0, 0], 0);
    let b = section(b, 7, 2, 0, 0, [symbols, 48], [3, 1], 24);
    let b = section(b, 15, 3, 0, 0, [names, 47], [0, 0], 0);
    let b = section(b, 23, 7, 2, BASE + 176, [176, 36], [0, 0], 0);
    // A symbol of the whole code, and the names.
    let b = b.u64s(&[0; 3]).u32(42).u8(0x12).u8(0).u16(1);
    let b = b.u64s(&[BASE + text, code]);
    bytes.extend(
        b.bytes(b"\0.text\0.symtab\0.strtab\0.note.gnu.build-id\0main\0")
            .bytes,
    );
    bytes
}
