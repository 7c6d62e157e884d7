//! Records about AUX traces, without the content that depends on the type of the trace
//! (tools/lib/perf/include/perf/event.h).

use crate::codes::codes;
use crate::record::choice::choice;
use crate::wire::{Chars, Rest, Text, wire};

wire! {
    /// Announces AUX data (4.1); the data follows the record.
    pub struct Auxtrace => Trace {
        /// Size in bytes of the data after the record.
        pub size: u64,
        /// Offset of the data in the AUX buffer.
        pub offset: u64 as Hex,
        /// Number that distinguishes buffers.
        pub reference: u64 as Hex,
        /// Queue.
        pub idx: u32,
        /// Thread ID, or -1.
        pub tid: u32 as Pid,
        /// CPU, or -1.
        pub cpu: u32 as Cpu,
        /// Reserved.
        pub reserved: u32 as Pad,
    }
}

codes! {
    /// Type of a decoder's error, `enum auxtrace_error_type` (tools/perf/util/auxtrace.h).
    pub struct AuxtraceErrorType: u32 {
        1 ITRACE "instruction trace",
    }
}

wire! {
    /// An error in the decoding of AUX data (4.1).
    pub struct AuxtraceError(layout) => Trace {
        /// Type of the error.
        pub kind: AuxtraceErrorType,
        /// Number of the error, depending on the type.
        pub code: u32,
        /// CPU, or -1.
        pub cpu: u32 as Cpu,
        /// Process ID.
        pub pid: u32 as Pid,
        /// Thread ID.
        pub tid: u32 as Pid,
        /// Format of the rest; reserved and 0 before 4.20.
        pub fmt: u32,
        /// Instruction pointer.
        pub ip: u64 as Address,
        /// The rest.
        #[br(args_raw = (fmt, layout))]
        pub detail: AuxtraceErrorDetail,
    }
}

choice! {
    /// The rest of an AUXTRACE_ERROR, by `fmt`.
    pub enum AuxtraceErrorDetail(fmt: u32, layout) {
        /// Only the message.
        0 => Message(Text => Message),
        /// Message with time (4.20).
        1 => Timed(TimedMessage),
        /// Message with time and guest machine (6.0).
        2 => Guest(GuestMessage),
        /// A format that this version of the library does not know.
        _ => Unknown(Rest as Opaque),
    }
}

wire! {
    /// A decoder's message with its time.
    pub struct TimedMessage {
        /// Nanoseconds on the recording's clock.
        pub time: u64 as Time,
        /// Message; the record ends after it.
        pub msg: Text => Message,
    }
}

wire! {
    /// A decoder's message with time and guest machine.
    pub struct GuestMessage {
        /// Nanoseconds on the recording's clock.
        pub time: u64 as Time,
        /// Message.
        pub msg: Chars<64> => Message,
        /// Process ID of the guest machine.
        pub machine_pid: u32 as Pid,
        /// CPU of the guest machine.
        pub vcpu: u32 as Optional => Number,
    }
}
