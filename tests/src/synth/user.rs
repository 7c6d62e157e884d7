//! Layouts of the perf tool's records (types 64..84) except those for hardware tracing and `perf
//! stat`. Each function appends a body; tools/lib/perf/include/perf/event.h.

use super::attr::Attr;
use super::buf::{Buf, count};
use super::kind;

/// Appends the body of HEADER_ATTR: the attribute, then its IDs.
pub fn header_attr(b: Buf, attr: &Attr, ids: &[u64]) -> Buf {
    let bytes = attr.bytes(b.big);
    b.bytes(&bytes).u64s(ids)
}

/// Appends the body of HEADER_EVENT_TYPE, or an item of the header's event types.
pub fn event_type(b: Buf, id: u64, name: &str) -> Buf {
    b.u64(id).room(name.as_bytes(), 64)
}

/// Appends the body of ID_INDEX: ID, index, CPU and thread of each; machine and virtual CPU of
/// each, or none.
pub fn id_index(b: Buf, entries: &[[u64; 4]], guests: &[[u64; 2]]) -> Buf {
    b.u64(count(entries))
        .each(entries, |b, entry| b.u64s(entry))
        .each(guests, |b, guest| b.u64s(guest))
}

/// Appends the body of THREAD_MAP. A name of 16 bytes has no NUL.
pub fn thread_map(b: Buf, threads: &[(u64, &str)]) -> Buf {
    b.u64(count(threads)).each(threads, |b, (pid, comm)| {
        b.u64(*pid).room(comm.as_bytes(), 16)
    })
}

/// Appends the body of TIME_CONV: shift, multiplier and zero; since 5.11 also cycles and mask, and
/// whether to use the zero and the mask.
pub fn time_conv(b: Buf, conversion: [u64; 3], short: Option<([u64; 2], [u8; 2])>) -> Buf {
    let b = b.u64s(&conversion);
    match short {
        Some((cycles, flags)) => b.u64s(&cycles).bytes(&flags).zeros(6),
        None => b,
    }
}

/// Appends the body of HEADER_FEATURE.
pub fn header_feature(b: Buf, bit: u32, section: &[u8]) -> Buf {
    b.u64(bit.into()).bytes(section)
}

/// Appends the body of COMPRESSED or COMPRESSED2.
pub fn compressed(b: Buf, kind: u32, zstd: &[u8]) -> Buf {
    match kind {
        kind::COMPRESSED => b.bytes(zstd),
        _ => b.u64(count(zstd)).bytes(zstd).pad(8),
    }
}

/// Appends the body of BPF_METADATA: the program's name, then names and values of its variables.
pub fn bpf_metadata(b: Buf, program: &str, variables: &[(&str, &str)]) -> Buf {
    b.room(program.as_bytes(), 512)
        .u64(count(variables))
        .each(variables, |b, (key, value)| {
            b.room(key.as_bytes(), 64).room(value.as_bytes(), 256)
        })
}
