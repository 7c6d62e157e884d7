//! The `sample_id` trailer of kernel records, and the parts that it shares with SAMPLE
//! (include/uapi/linux/perf_event.h, `struct sample_id`; kernel/events/core.c,
//! perf_event__output_id_sample).

use binrw::Endian;

use crate::attr::SampleType;
use crate::record::parts::{InWord, WORD, parts, place};
use crate::record::words::{halves, word_of};
use crate::wire::wire;

wire! {
    /// Process and thread.
    #[derive(Copy, Eq)]
    pub struct Tid {
        /// Process ID in the recorder's namespace; `u32::MAX` if the task is outside of the
        /// namespace or has exited.
        pub pid: u32 as Pid,
        /// Thread ID.
        pub tid: u32 as Pid,
    }
}

wire! {
    /// The CPU that the event happened on.
    #[derive(Copy, Eq)]
    pub struct Cpu {
        /// CPU number.
            pub cpu: u32 as Cpu,
        /// Reserved, 0.
        pub reserved: u32 as Pad,
    }
}

impl InWord for Tid {
    #[inline]
    fn of_word(word: u64, endian: Endian) -> Self {
        let (pid, tid) = halves(word, endian);
        Tid { pid, tid }
    }

    #[inline]
    fn into_word(self, endian: Endian) -> u64 {
        word_of((self.pid, self.tid), endian)
    }
}

impl InWord for Cpu {
    #[inline]
    fn of_word(word: u64, endian: Endian) -> Self {
        let (cpu, reserved) = halves(word, endian);
        Cpu { cpu, reserved }
    }

    #[inline]
    fn into_word(self, endian: Endian) -> u64 {
        word_of((self.cpu, self.reserved), endian)
    }
}

parts! {
    /// The trailer of kernel records other than SAMPLE, with the flag `sample_id_all` (2.6.38). Its
    /// parts are read from the end of the record. A new trailer must have exactly the parts in the
    /// event's `sample_type`.
    pub struct SampleId(layout) {
        words {
            /// Process and thread.
            TID pair tid: Tid,
            /// Nanoseconds on the recording's clock.
            TIME word time: u64 as Time,
            /// Event ID.
            ID word id: u64 as Id,
            /// ID of the event's instance (one per CPU and task).
            STREAM_ID word stream_id: u64 as StreamId,
            /// CPU.
            CPU pair cpu: Cpu,
            /// Event ID at a fixed position: the last word (3.12).
            IDENTIFIER word identifier: u64 as Id,
        }
        counted {}
        others {}
    }
}

impl SampleId {
    /// Returns the size of a trailer in bytes.
    pub fn len(sample_type: SampleType) -> usize {
        ((sample_type.0 & Self::PARTS.0).count_ones() as usize).saturating_mul(WORD)
    }

    /// Returns those parts of `sample_type` that a trailer has.
    pub fn parts_of(sample_type: SampleType) -> SampleType {
        SampleType(sample_type.0 & Self::PARTS.0)
    }

    /// Returns the offset of `part` in a trailer, in bytes from its end.
    #[inline]
    pub(crate) fn from_end(sample_type: SampleType, part: SampleType) -> Option<usize> {
        let behind = Self::WORDS.iter().rev().take_while(|&&word| word != part);
        place(sample_type, part, behind).map(|behind| behind.saturating_add(WORD))
    }
}
