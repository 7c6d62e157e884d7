//! Records around AUX traces, except what they say of the trace's kind (tools/lib/perf/include/perf/event.h).

use crate::codes::codes;
use crate::record::choice::choice;
use crate::wire::{Chars, Rest, Text, wire};

wire! {
    /// Announces AUX data (4.1); the data follows the record.
    pub struct Auxtrace {
        /// Bytes behind the record.
        pub size: u64,
        /// Offset of the data in the AUX buffer.
        pub offset: u64 as Hex,
        /// Number that tells buffers apart.
        pub reference: u64 as Hex,
        /// Queue.
        pub idx: u32,
        /// Thread id, or -1.
        pub tid: u32 as Pid,
        /// CPU, or -1.
        pub cpu: u32 as Pid,
        /// Reserved.
        pub reserved: u32 as Pad,
    }
}

codes! {
    /// Kind of a decoder's error, `enum auxtrace_error_type` (tools/perf/util/auxtrace.h).
    pub struct AuxtraceErrorType: u32 {
        1 ITRACE "instruction trace",
    }
}

wire! {
    /// What a decoder of AUX data could not make out (4.1).
    pub struct AuxtraceError(layout) {
        /// Kind of the error.
        pub kind: AuxtraceErrorType,
        /// Number of the error, by kind.
        pub code: u32,
        /// CPU, or -1.
        pub cpu: u32 as Pid,
        /// Process id.
        pub pid: u32 as Pid,
        /// Thread id.
        pub tid: u32 as Pid,
        /// Form of what follows; reserved and 0 before 4.20.
        pub fmt: u32,
        /// Instruction pointer.
        pub ip: u64 as Hex,
        /// What follows.
        #[br(args_raw = (fmt, layout))]
        pub detail: AuxtraceErrorDetail,
    }
}

choice! {
    /// The later part of an AUXTRACE_ERROR, by `fmt`.
    pub enum AuxtraceErrorDetail(fmt: u32, layout) {
        /// The message alone.
        0 => Message(Text),
        /// With the time (4.20).
        1 => Timed(TimedMessage),
        /// With the time and the guest machine (6.0).
        2 => Guest(GuestMessage),
        /// A form that this version does not know.
        _ => Unknown(Rest as Opaque),
    }
}

wire! {
    /// A decoder's message and its time.
    pub struct TimedMessage {
        /// Nanoseconds on the recording's clock.
        pub time: u64 as Time,
        /// The message; the record is cut behind it.
        pub msg: Text,
    }
}

wire! {
    /// A decoder's message, its time and its guest machine.
    pub struct GuestMessage {
        /// Nanoseconds on the recording's clock.
        pub time: u64 as Time,
        /// The message.
        pub msg: Chars<64>,
        /// Process id of the guest machine.
        pub machine_pid: u32 as Pid,
        /// CPU of the guest machine.
        pub vcpu: u32 as Pid,
    }
}
