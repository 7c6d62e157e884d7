//! Recordings of one thread with traces of any content.

use super::attr::{Attr, Stamp, sample_type};
use super::auxtrace::{self, Origin};
use super::buf::count;
use super::feature_events::Event;
use super::file::File;
use super::kernel;
use super::kind;
use super::record::{Scribe, misc, stream};

/// The type of the PMU.
pub const PMU: u32 = 6;

/// Process and thread.
pub const TASK: (u32, u32) = (1000, 1000);

/// ID of the event.
const ID: u64 = 7;

/// A kind of trace, as AUXTRACE_INFO declares it.
#[derive(Debug, Clone, Copy)]
pub struct TraceKind {
    /// The type.
    pub number: u32,
    /// The words after it.
    pub words: &'static [u64],
}

impl TraceKind {
    /// Intel PT without times.
    pub const INTEL_PT: TraceKind = TraceKind {
        number: 1,
        words: &[
            PMU as u64, 0, 0, 0, 0, 0, 0x800, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
    };

    /// Intel BTS. One tick of the time stamp counter is a nanosecond.
    pub const INTEL_BTS: TraceKind = TraceKind {
        number: 2,
        words: &[PMU as u64, 0, 1, 0, 1, 0],
    };

    /// Arm SPE, before 6.13.
    pub const ARM_SPE: TraceKind = TraceKind {
        number: 4,
        words: &[PMU as u64, 0],
    };

    /// HiSilicon PCIe Tune and Trace.
    pub const HISI_PTT: TraceKind = TraceKind {
        number: 6,
        words: &[PMU as u64],
    };
}

/// Returns a recording whose AUXTRACE records have the data `pieces`, and whose samples `samples`.
pub fn file(big: bool, kind: TraceKind, pieces: &[Vec<u8>], samples: &[Vec<u8>]) -> File {
    use sample_type::{AUX, CPU, IDENTIFIER, IP, TID, TIME};
    let parts = IP | TID | TIME | CPU | IDENTIFIER | if samples.is_empty() { 0 } else { AUX };
    let event = Event {
        name: "trace//u".into(),
        // The attribute of perf 6.1, which reads no larger one.
        attr: Attr {
            kind: PMU,
            size: 128,
            config: 0x2801,
            sample_period: 1,
            ..Attr::new(
                parts,
                "inherit exclude_kernel mmap comm task sample_id_all mmap2",
            )
        },
        ids: vec![ID],
    };
    let stamp = Stamp {
        pid: TASK.0,
        tid: TASK.1,
        time: 1_000_000,
        id: ID,
        stream_id: 0,
        cpu: u32::MAX,
    };
    let attr = event.attr.clone();
    let mut file = File::new(big, vec![event]);
    let mut s = Scribe::new(big, attr, stamp);
    auxtrace::info(&mut s, "trace", kind.number, |b| b.u64s(kind.words));
    s.kernel("COMM", kind::COMM, 0, |b| kernel::comm(b, TASK, "program"));
    for data in samples {
        s.user("SAMPLE", kind::SAMPLE, misc::USER, |b| {
            let b = b.u64s(&[ID, 0x40_1000]).u32s(&[TASK.0, TASK.1]);
            let b = b.u64(1_000_900).u32s(&[0, 0]);
            b.u64(count(data)).bytes(data)
        });
    }
    let mut offset = 0;
    for (number, data) in (0..).zip(pieces) {
        s.kernel("AUX", kind::AUX, 0, |b| {
            kernel::aux(b, offset, count(data), 0)
        });
        let origin = Origin {
            offset,
            reference: number,
            idx: 0,
            tid: TASK.1,
            cpu: u32::MAX,
        };
        auxtrace::piece(&mut s, "AUXTRACE", origin, data);
        offset += count(data);
    }
    s.user("FINISHED_ROUND", kind::FINISHED_ROUND, 0, |b| b);
    file.data = stream(&s.cases);
    file
}
