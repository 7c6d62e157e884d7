//! Recordings in pipe mode: a header of 16 bytes, then records.

use super::auxtrace;
use super::buf::Buf;
use super::feature_events::Event;
use super::file::{self, Magic};
use super::kind;
use super::record::{Case, Scribe, frame, stream};
use super::sink;
use super::user;

/// The ID of the terminator that perf 7.2 writes after the features: one more than the last feature
/// it knows. 32 in perf 5.14 to 6.x.
pub const TERMINATOR: u32 = 35;

/// A recording in pipe mode, which is written sequentially.
#[derive(Clone, Debug)]
pub struct Pipe {
    /// Byte order.
    pub big: bool,
    /// The bytes written so far.
    pub bytes: Vec<u8>,
}

impl Pipe {
    /// Returns a pipe that contains only the header.
    pub fn new(big: bool, magic: Magic) -> Self {
        Pipe {
            big,
            bytes: magic.put(Buf::new(big)).u64(16).bytes,
        }
    }

    /// Appends a record.
    pub fn record(mut self, kind: u32, misc: u16, body: Buf) -> Self {
        self.bytes.extend(frame(self.big, kind, misc, &body.bytes));
        self
    }

    /// Appends the attribute and IDs of an event.
    pub fn event(self, event: &Event) -> Self {
        let body = user::header_attr(Buf::new(self.big), &event.attr, &event.ids);
        self.record(kind::HEADER_ATTR, 0, body)
    }

    /// Appends a feature.
    pub fn feature(self, bit: u32, section: &[u8]) -> Self {
        let body = user::header_feature(Buf::new(self.big), bit, section);
        self.record(kind::HEADER_FEATURE, 0, body)
    }

    /// Appends the record that ends the features.
    pub fn terminator(self, id: u32) -> Self {
        self.feature(id, &[])
    }

    /// Appends tracing data.
    pub fn tracing_data(self, data: &[u8]) -> Self {
        let payload = Buf::new(self.big).bytes(data).pad(8).bytes;
        let body = Buf::new(self.big).u32(payload.len() as u32).u32(0);
        let mut pipe = self.record(kind::HEADER_TRACING_DATA, 0, body);
        pipe.bytes.extend(payload);
        pipe
    }

    /// Appends records with their payloads.
    pub fn records(mut self, cases: &[Case]) -> Self {
        self.bytes.extend(stream(cases));
        self
    }
}

/// Returns one event and four blocks of an Intel PT trace of 4096 bytes each.
pub fn with_aux(big: bool) -> Vec<u8> {
    let mut s = Scribe::standard(big);
    auxtrace::info(&mut s, "INTEL_PT", 1, |b| b.u64s(&auxtrace::INTEL_PT));
    (0..4).for_each(|_| auxtrace::auxtrace(&mut s, "AUXTRACE", &[7; 4096]));
    let event = file::basic(big).events[0].clone();
    Pipe::new(big, Magic::V2)
        .event(&event)
        .terminator(TERMINATOR)
        .records(&s.cases)
        .bytes
}

/// Returns one valid recording with every record type, except compressed ones, and every feature
/// that perf writes to a pipe.
pub fn kitchen_sink(big: bool) -> Vec<u8> {
    sink::pipe(big).bytes
}
