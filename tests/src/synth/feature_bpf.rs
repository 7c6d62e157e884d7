//! Features about BPF programs: BPF_PROG_INFO and BPF_BTF.

use super::bits::Bits;
use super::buf::{Buf, count32, island};
use super::feature::Features;

/// Bit of the programs.
pub const BPF_PROG_INFO: u32 = 25;
/// Bit of the type information.
pub const BPF_BTF: u32 = 26;

/// Returns a section of programs with these IDs, each with the first `arrays` of its arrays.
pub fn prog_info(b: Buf, programs: &[(u32, u32)]) -> Buf {
    b.u32(count32(programs)).each(programs, |b, &(id, arrays)| {
        Program {
            id,
            size: 232,
            arrays: (1 << arrays) - 1,
            step: 8,
        }
        .put(b)
    })
}

/// Returns a section of type information: IDs and contents.
pub fn btf(b: Buf, all: &[(u32, &[u8])]) -> Buf {
    b.u32(count32(all)).each(all, |b, (id, data)| {
        b.u32(*id).u32(count32(data)).bytes(data)
    })
}

/// Adds every section, with every size of the kernel's struct.
pub fn cases(f: &mut Features) {
    for size in [208, 224, 232] {
        f.add(BPF_PROG_INFO, &format!("BPF_PROG_INFO of {size}"), |b| {
            b.u32(1).with(|b| {
                Program {
                    id: 12,
                    size,
                    arrays: 0x1ff,
                    step: 8,
                }
                .put(b)
            })
        });
    }
    f.add(BPF_PROG_INFO, "BPF_PROG_INFO of perf 5", |b| {
        b.u32(1).with(|b| {
            Program {
                id: 12,
                size: 216,
                arrays: 0x1fd,
                step: 1,
            }
            .put(b)
        })
    });
    plain(f);
    f.add(BPF_PROG_INFO, "BPF_PROG_INFO empty", |b| b.u32(0));
    f.add(BPF_BTF, "BPF_BTF empty", |b| b.u32(0));
}

/// Adds both features with several programs: with all arrays, only the first ones, none.
pub fn plain(f: &mut Features) {
    f.add(BPF_PROG_INFO, "BPF_PROG_INFO of several", |b| {
        let program = |id, arrays| Program {
            id,
            size: 232,
            arrays,
            step: 8,
        };
        let programs = [
            program(12, 0x1ff),
            program(13, 0b1_0001_1011),
            program(14, 0),
        ];
        b.u32(count32(&programs))
            .each(&programs, |b, program| program.put(b))
    });
    f.add(BPF_BTF, "BPF_BTF", |b| {
        // BTF indicates its own byte order with its magic; to the recording it is opaque.
        let mut data = vec![0x9f, 0xeb, 1, 0, 24, 0, 0, 0];
        data.extend(island(21));
        btf(b, &[(20, &data), (21, &data[..8])])
    });
}

/// A program: struct `bpf_prog_info` (include/uapi/linux/bpf.h) and the arrays that its pointers
/// point to. perf replaces the pointers with offsets (tools/perf/util/bpf-utils.c).
struct Program {
    id: u32,
    /// Size of the struct in bytes, which grew over time.
    size: usize,
    /// Bit i: array i is present.
    arrays: u64,
    /// Alignment of the arrays: 8 for perf 6, 1 before.
    step: usize,
}

/// The nine arrays in the order of their bits: number of elements, content.
struct Arrays {
    /// Offset in the data, and count as in the struct.
    places: [(u64, u32); 9],
    data: Vec<u8>,
}

impl Program {
    fn arrays(&self, big: bool) -> Arrays {
        let new = || Buf::new(big);
        let contents: [(u32, Buf); 9] = [
            // Code: bytes for an architecture, and BPF instructions in the recording machine's
            // layout.
            (36, new().bytes(&island(36))),
            (40, new().bytes(&island(40))),
            // map_ids
            (3, new().u32s(&[7, 8, 0x0102_0304])),
            // jited_ksyms, jited_func_lens
            (
                2,
                new().u64s(&[0xffff_ffff_c000_1000, 0xffff_ffff_c000_2000]),
            ),
            (2, new().u32s(&[0x4a, 0x24])),
            // func_info: insn_off, type_id
            (2, new().u32s(&[0, 9, 4, 11])),
            // line_info: insn_off, file_name_off, line_off, line_col
            (
                2,
                new().u32s(&[0, 0x11, 0x22, 0x2403, 3, 0x12, 0x33, 0x2c05]),
            ),
            // jited_line_info
            (
                2,
                new().u64s(&[0xffff_ffff_c000_1004, 0xffff_ffff_c000_1010]),
            ),
            // prog_tags
            (2, new().bytes(&island(16))),
        ];
        let mut places = [(0, 0); 9];
        let mut data = new();
        for (i, (count, content)) in contents.into_iter().enumerate() {
            let present = self.arrays >> i & 1 == 1;
            if present {
                places[i].0 = data.len() as u64;
                data = data.bytes(&content.bytes).pad(self.step);
            }
            // The kernel reports the length of code even if it does not provide the code.
            if present || i < 2 {
                places[i].1 = count;
            }
        }
        Arrays {
            places,
            data: data.pad(8).bytes,
        }
    }

    fn put(&self, b: Buf) -> Buf {
        let Arrays { places: p, data } = self.arrays(b.big);
        let mut info = Buf::new(b.big)
            .u32(2) // type: kprobe
            .u32(self.id)
            .bytes(&island(8)) // tag
            .u32(p[0].1)
            .u32(p[1].1)
            .u64(p[0].0)
            .u64(p[1].0)
            .u64(0x1_0000_0b1e) // load_time
            .u32(1000) // created_by_uid
            .u32(p[2].1)
            .u64(p[2].0)
            .room(b"demo", 16)
            .u32(3) // ifindex
            .bits(&Bits::bpf_prog_flags("gpl_compatible"))
            .u64s(&[4, 0xf000_0000]) // netns_dev, netns_ino
            .u32(p[3].1)
            .u32(p[4].1)
            .u64(p[3].0)
            .u64(p[4].0)
            .u32(20) // btf_id
            .u32(8) // func_info_rec_size
            .u64(p[5].0)
            .u32(p[5].1)
            .u32(p[6].1)
            .u64(p[6].0)
            .u64(p[7].0)
            .u32(p[7].1)
            .u32(16) // line_info_rec_size
            .u32(8) // jited_line_info_rec_size
            .u32(p[8].1)
            .u64(p[8].0)
            .u64s(&[0x1_0000_0001, 0x2_0000_0002, 0x3_0000_0003]) // run time, count, misses
            .u32s(&[77, 22, 23, 0]) // verified_insns, attach_btf_obj_id, attach_btf_id, padding
            .bytes;
        info.truncate(self.size);
        b.u32(self.size as u32)
            .u32(count32(&data))
            .u64(self.arrays)
            .bytes(&info)
            .bytes(&data)
    }
}
