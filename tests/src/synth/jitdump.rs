//! jitdumps, byte by byte (tools/perf/Documentation/jitdump-specification.txt).

use super::buf::Buf;

/// A jitdump.
#[derive(Clone, Debug)]
pub struct Dump {
    /// The bytes so far.
    pub buf: Buf,
    /// The process ID in the records.
    pub pid: u32,
}

/// The header of a jitdump.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// Size in bytes: 40, or more.
    pub size: u32,
    /// ELF machine.
    pub machine: u32,
    /// The reserved field.
    pub padding: u32,
    /// Process ID.
    pub pid: u32,
    /// Flags.
    pub flags: u64,
}

impl Header {
    /// Returns the header of a dump of a process on x86-64.
    pub fn of(pid: u32) -> Self {
        Header {
            size: 40,
            machine: 62,
            padding: 0,
            pid,
            flags: 0,
        }
    }
}

impl Dump {
    /// Returns a dump without records.
    pub fn new(big: bool, header: Header) -> Self {
        let buf = Buf::new(big)
            .u32s(&[0x4A69_5444, 1, header.size, header.machine])
            .u32s(&[header.padding, header.pid])
            .u64s(&[0, header.flags])
            .zeros(header.size.saturating_sub(40) as usize);
        Dump {
            buf,
            pid: header.pid,
        }
    }

    /// Appends a record: its size is that of `body`.
    pub fn record(mut self, kind: u32, time: u64, body: impl FnOnce(Buf) -> Buf) -> Self {
        let body = body(Buf::new(self.buf.big)).bytes;
        let size = u32::try_from(16 + body.len()).expect("a short record");
        self.buf = self.buf.u32s(&[kind, size]).u64(time).bytes(&body);
        self
    }

    /// Appends a CODE_LOAD.
    pub fn load(self, time: u64, addr: u64, index: u64, name: &str, code: &[u8]) -> Self {
        self.load_of_size(time, addr, index, name, code, code.len() as u64)
    }

    /// Appends a CODE_LOAD whose `code_size` is `size`.
    pub fn load_of_size(
        self,
        time: u64,
        addr: u64,
        index: u64,
        name: &str,
        code: &[u8],
        size: u64,
    ) -> Self {
        let pid = self.pid;
        self.record(0, time, |buf| {
            buf.u32s(&[pid, pid])
                .u64s(&[addr, addr, size, index])
                .bytes(name.as_bytes())
                .u8(0)
                .bytes(code)
        })
    }

    /// Appends a CODE_MOVE.
    pub fn moved(self, time: u64, from: u64, to: u64, size: u64, index: u64) -> Self {
        let pid = self.pid;
        self.record(1, time, |buf| {
            buf.u32s(&[pid, pid]).u64s(&[to, from, to, size, index])
        })
    }

    /// Appends a CODE_DEBUG_INFO with these addresses, lines and files.
    pub fn lines(self, time: u64, addr: u64, lines: &[(u64, i32, &[u8])]) -> Self {
        self.record(2, time, |buf| {
            buf.u64s(&[addr, lines.len() as u64])
                .each(lines, |buf, (addr, line, file)| {
                    buf.u64(*addr).i32(*line).i32(0).bytes(file).u8(0)
                })
        })
    }

    /// Appends a CODE_CLOSE.
    pub fn close(self, time: u64) -> Self {
        self.record(3, time, |buf| buf)
    }

    /// Appends a CODE_UNWINDING_INFO.
    pub fn unwinding(self, time: u64, eh_frame: &[u8], hdr: &[u8], mapped: u64) -> Self {
        let size = (eh_frame.len() + hdr.len()) as u64;
        self.record(4, time, |buf| {
            buf.u64s(&[size, hdr.len() as u64, mapped])
                .bytes(eh_frame)
                .bytes(hdr)
                .zeros(3)
        })
    }

    /// Returns the bytes.
    pub fn bytes(self) -> Vec<u8> {
        self.buf.bytes
    }
}
