//! Build IDs of images: those of perf 7.2.

use blake2::digest::consts::U20;
use blake2::{Blake2s, Digest};
use perfdata_core::Endian;

/// Size of a build ID in bytes.
pub const BUILD_ID_SIZE: usize = 20;

/// Returns the build ID of an image: BLAKE2s over code, symbol table and string table, each
/// preceded by a number of its position and its length (tools/perf/util/genelf.c,
/// `jit_write_elf`). perf before 7.2 writes other ones, which are random in some builds.
pub fn build_id(
    endian: Endian,
    code: &[u8],
    symbols: &[u8],
    strings: &[u8],
) -> [u8; BUILD_ID_SIZE] {
    let mut hash = Blake2s::<U20>::new();
    for (tag, part) in (0_u64..).zip([code, symbols, strings]) {
        let number = tag << 56 | part.len() as u64;
        hash.update(match endian {
            Endian::Little => number.to_le_bytes(),
            Endian::Big => number.to_be_bytes(),
        });
        hash.update(part);
    }
    hash.finalize().into()
}
