//! Build ID entries: record 67 and the entries of the BUILD_ID section have the same layout
//! (tools/perf/lib: `struct perf_record_header_build_id`).

use super::buf::{Buf, island};
use super::record::{frame, misc};

/// misc bit: the size byte after the build ID is valid (since 5.11).
pub const SIZE_VALID: u16 = 1 << 15;

/// pid of the host's kernel machine.
pub const HOST: i32 = -1;

/// Size of the field for the file name.
#[derive(Clone, Copy, Debug)]
pub enum Room {
    /// The name padded to a multiple of 64, as perf wrote it until 6.11.
    Name64,
    /// The name padded to a multiple of 8: sections since perf 6.12.
    Name8,
    /// The whole record padded to a multiple of 8: records injected since perf 6.12.
    Record8,
}

/// An entry.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// cpumode.
    pub misc: u16,
    /// Machine: [`HOST`], 0 for the default guest, otherwise the guest's pid.
    pub pid: i32,
    /// Up to 20 bytes.
    pub build_id: &'a [u8],
    /// Whether to write the size of the build ID after it, and to set [`SIZE_VALID`].
    pub size_byte: bool,
    /// Name of the DSO.
    pub name: &'a str,
    /// Size of the field for the name.
    pub room: Room,
}

impl Entry<'_> {
    /// Returns the misc word of the entry's header.
    pub fn misc(&self) -> u16 {
        self.misc | if self.size_byte { SIZE_VALID } else { 0 }
    }

    /// Appends the entry without its header.
    pub fn put(&self, b: Buf) -> Buf {
        let size = if self.size_byte {
            self.build_id.len() as u8
        } else {
            0
        };
        let len = self.name.len() + 1;
        let room = match self.room {
            Room::Name64 => len.next_multiple_of(64),
            Room::Name8 => len.next_multiple_of(8),
            Room::Record8 => (36 + len).next_multiple_of(8) - 36,
        };
        b.i32(self.pid)
            .room(self.build_id, 20)
            .u8(size)
            .zeros(3)
            .room(self.name.as_bytes(), room)
    }

    /// Returns the entry as in a section, with a header of type `kind`.
    pub fn framed(&self, big: bool, kind: u32) -> Vec<u8> {
        frame(big, kind, self.misc(), &self.put(Buf::new(big)).bytes)
    }
}

/// Returns entries of the kernel, a program, and a library with an MD5 build ID.
pub fn usual(room: Room, size_byte: bool) -> Vec<Entry<'static>> {
    static IDS: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| island(20));
    let entry = |misc, pid, length: usize, name| Entry {
        misc,
        pid,
        build_id: &IDS[..length],
        size_byte,
        name,
        room,
    };
    vec![
        entry(misc::KERNEL, HOST, 20, "[kernel.kallsyms]"),
        entry(misc::USER, HOST, 20, "/usr/bin/true"),
        entry(
            misc::USER,
            HOST,
            if size_byte { 16 } else { 20 },
            "/usr/lib/libmd5.so",
        ),
        entry(misc::GUEST_KERNEL, 0, 20, "[guest.kernel.kallsyms]"),
    ]
}

/// Returns a section of such entries.
pub fn section(big: bool, entries: &[Entry]) -> Vec<u8> {
    entries
        .iter()
        .flat_map(|entry| entry.framed(big, 0))
        .collect()
}

/// Returns a section from before 2.6.35: no pid, 24 bytes of build ID, the name at offset 32. The
/// kernel comes first; readers recognize the form by this.
pub fn section_without_pid(big: bool) -> Vec<u8> {
    let names = [
        (misc::KERNEL, "[kernel.kallsyms]"),
        (misc::USER, "/bin/bash"),
    ];
    let entry = |(misc, name): (u16, &str)| {
        let room = (name.len() + 1).next_multiple_of(64);
        let body = Buf::new(big)
            .room(&island(20), 24)
            .room(name.as_bytes(), room);
        frame(big, 0, misc, &body.bytes)
    };
    names.into_iter().flat_map(entry).collect()
}
