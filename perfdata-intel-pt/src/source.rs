//! Where the decoder gets trace data and code from.

/// A part of a trace.
#[derive(Debug, Clone, Default)]
pub struct Buffer {
    /// The packets.
    pub bytes: Vec<u8>,
    /// Whether it continues the part before: nothing is missing between them. A packet may begin in
    /// one and end in the next.
    pub is_consecutive: bool,
    /// A time of the time stamp counter near the start of the part, for the high bits of times;
    /// 0 if it is not known.
    pub reference_time: u64,
    /// A number of it, for events.
    pub number: u64,
}

/// A trace, in parts.
pub trait TraceSource {
    /// Why a part cannot be read.
    type Error;

    /// Returns the next part; `None` at the end.
    fn next_buffer(&mut self) -> Result<Option<Buffer>, Self::Error>;
}

/// The code of what is traced, as it is now: of the task that runs, and of the kernel.
pub trait CodeSource {
    /// Returns a number that identifies the code of the current task around an address. When the
    /// mappings change, it has to change, too.
    fn space(&mut self, ip: u64, is_guest: bool) -> u64;

    /// Copies code from `ip` on. Returns the number of bytes; fewer than the size of `to` at the
    /// end of a mapping, and 0 if there is none.
    fn read(&mut self, ip: u64, is_guest: bool, to: &mut [u8]) -> usize;

    /// Returns 16, 32 or 64 if the object of the code at an address says so. It has precedence over the
    /// packets.
    fn bits(&mut self, _ip: u64, _is_guest: bool) -> Option<u8> {
        None
    }

    /// Returns whether the code at an address is of an object that cannot be read, and an error was
    /// reported for that object before: then none is reported again.
    fn is_known_missing(&mut self, _ip: u64, _is_guest: bool) -> bool {
        false
    }

    /// Returns whether a branch to this address ends tracing, because it is outside of the
    /// address filters.
    fn is_filtered_out(&mut self, _ip: u64) -> bool {
        false
    }
}
