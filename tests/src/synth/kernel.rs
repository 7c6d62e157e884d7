//! Layouts of the kernel's records (types 1..22) except SAMPLE. Each function appends a body,
//! without header and trailer; include/uapi/linux/perf_event.h, `enum perf_event_type`.

use super::buf::{Buf, count};

/// Process ID and thread ID.
pub type Task = (u32, u32);

/// Appends pid and tid, which COMM, ITRACE_START and SWITCH_CPU_WIDE start with or consist of.
pub fn task(b: Buf, (pid, tid): Task) -> Buf {
    b.u32(pid).u32(tid)
}

/// Appends the body of COMM.
pub fn comm(b: Buf, of: Task, name: &str) -> Buf {
    task(b, of).text(name)
}

/// Appends the body of FORK and EXIT: pid, ppid, tid, ptid (the pairs are interleaved).
pub fn fork(b: Buf, (pid, tid): Task, (ppid, ptid): Task, time: u64) -> Buf {
    b.u32s(&[pid, ppid, tid, ptid]).u64(time)
}

/// The position of a mapping: address, length, offset in the file.
pub type Place = [u64; 3];

/// Appends the body of MMAP.
pub fn mmap(b: Buf, of: Task, place: Place, name: &str) -> Buf {
    task(b, of).u64s(&place).text(name)
}

/// The identity of the file in an MMAP2 record.
#[derive(Clone, Debug)]
pub enum Object<'a> {
    /// Major and minor number of the device, inode and its generation.
    Inode(u32, u32, u64, u64),
    /// With misc bit 14: the build ID, of up to 20 bytes.
    BuildId(&'a [u8]),
}

/// Appends the body of MMAP2; `access` is protection and flags.
pub fn mmap2(b: Buf, of: Task, place: Place, object: Object, access: [u32; 2], name: &str) -> Buf {
    mapped_object(b, of, place, object).u32s(&access).text(name)
}

/// Appends the body of MMAP2 as the kernel 3.10 of RHEL 7 writes it: without protection and flags.
pub fn mmap2_of_rhel7(b: Buf, of: Task, place: Place, name: &str) -> Buf {
    mapped_object(b, of, place, Object::Inode(8, 1, 0x1234_5678, 0x9abc)).text(name)
}

fn mapped_object(b: Buf, of: Task, place: Place, object: Object) -> Buf {
    let b = task(b, of).u64s(&place);
    match object {
        Object::Inode(major, minor, inode, generation) => {
            b.u32(major).u32(minor).u64(inode).u64(generation)
        }
        Object::BuildId(id) => b.u8(id.len() as u8).u8(0).u16(0).room(id, 20),
    }
}

/// Appends the body of LOST: ID of the event and number of lost records.
pub fn lost(b: Buf, id: u64, lost: u64) -> Buf {
    b.u64(id).u64(lost)
}

/// Appends the body of THROTTLE and UNTHROTTLE.
pub fn throttle(b: Buf, time: u64, id: u64, stream_id: u64) -> Buf {
    b.u64(time).u64(id).u64(stream_id)
}

/// Appends the body of AUX.
pub fn aux(b: Buf, offset: u64, size: u64, flags: u64) -> Buf {
    b.u64(offset).u64(size).u64(flags)
}

/// Appends the body of NAMESPACES: device and inode of each.
pub fn namespaces(b: Buf, of: Task, namespaces: &[(u64, u64)]) -> Buf {
    task(b, of)
        .u64(count(namespaces))
        .each(namespaces, |b, (device, inode)| b.u64(*device).u64(*inode))
}

/// Appends the body of KSYMBOL.
pub fn ksymbol(b: Buf, addr: u64, len: u32, kind: u16, flags: u16, name: &str) -> Buf {
    b.u64(addr).u32(len).u16(kind).u16(flags).text(name)
}

/// Appends the body of BPF_EVENT.
pub fn bpf_event(b: Buf, kind: u16, flags: u16, id: u32, tag: &[u8; 8]) -> Buf {
    b.u16(kind).u16(flags).u32(id).bytes(tag)
}

/// Appends the body of CGROUP.
pub fn cgroup(b: Buf, id: u64, path: &str) -> Buf {
    b.u64(id).text(path)
}

/// Appends the body of TEXT_POKE. The two lengths and the bytes together are padded to a multiple
/// of 8.
pub fn text_poke(b: Buf, addr: u64, old: &[u8], new: &[u8]) -> Buf {
    let poke = Buf::new(b.big)
        .u16(old.len() as u16)
        .u16(new.len() as u16)
        .bytes(old)
        .bytes(new);
    b.u64(addr).bytes(&poke.pad(8).bytes)
}

/// Appends the body of CALLCHAIN_DEFERRED.
pub fn callchain_deferred(b: Buf, cookie: u64, ips: &[u64]) -> Buf {
    b.u64(cookie).u64(count(ips)).u64s(ips)
}
