//! Why threads are off the CPU, and the frames that show it.

use perfdata_core::attr::{Attr, SampleType};
use perfdata_core::record::{
    Body, Cpu, CpuMode, Ksymbol, KsymbolFlags, KsymbolType, Record, SampleId, Tid,
};
use perfdata_core::wire::Text;

/// Why a thread is off the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// `S`: it waits for something, and signals end this.
    Sleep,
    /// `D`: it waits for something that signals do not end, such as a disk.
    Disk,
    /// `R`, `R+`: another thread runs instead.
    Preempted,
    /// `T`: it was stopped by a signal.
    Stopped,
    /// `t`: it is traced.
    Traced,
    /// `P`: it is a parked thread of the kernel.
    Parked,
    /// `I`: it is an idle thread of the kernel, such as a worker.
    Idle,
    /// It waits; for what, is not recorded.
    Blocked,
    /// It could run again.
    Runnable,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 9] = [
        Reason::Sleep,
        Reason::Disk,
        Reason::Preempted,
        Reason::Stopped,
        Reason::Traced,
        Reason::Parked,
        Reason::Idle,
        Reason::Blocked,
        Reason::Runnable,
    ];

    /// Returns the name of the frame that shows the reason.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Sleep => "[sleep]",
            Reason::Disk => "[disk]",
            Reason::Preempted => "[preempted]",
            Reason::Stopped => "[stopped]",
            Reason::Traced => "[traced]",
            Reason::Parked => "[parked]",
            Reason::Idle => "[idle]",
            Reason::Blocked => "[blocked]",
            Reason::Runnable => "[runnable]",
        }
    }

    /// Returns whether the thread could run.
    pub fn is_runnable(self) -> bool {
        matches!(self, Reason::Preempted | Reason::Runnable)
    }

    /// Returns the reason for the letters that `sched:sched_switch` shows for the state of the
    /// previous thread (`prev_state`, include/trace/events/sched.h); `None` if it is dead.
    pub(super) fn of_letters(letters: &[u8]) -> Option<Self> {
        Some(match letters.first() {
            Some(b'S') => Reason::Sleep,
            Some(b'D') => Reason::Disk,
            Some(b'R') => Reason::Preempted,
            Some(b'T') => Reason::Stopped,
            Some(b't') => Reason::Traced,
            Some(b'P') => Reason::Parked,
            Some(b'I') => Reason::Idle,
            Some(b'X' | b'x' | b'Z') => return None,
            _ => Reason::Blocked,
        })
    }
}

/// The name of the frame between a reason and the stack of an earlier sample.
pub(super) const LAST_SAMPLE: &[u8] = b"[last sample]";

/// The address of the first named frame. No architecture has kernel code in its last 2 MiB (that
/// is also unused on x86: Documentation/arch/x86/x86_64/mm.rst), and the last page contains the
/// context markers of callchains.
const FIRST: u64 = 0xffff_ffff_ffe0_0000;
/// The distance of their addresses in bytes.
const STEP: u64 = 0x1000;
/// Maximum number of names.
const MOST: usize = 500;

/// Frames with names that are no functions: symbols of the kernel, which KSYMBOL records add.
/// Every reader shows them (perf since 5.1).
#[derive(Debug, Default)]
pub(super) struct Names(Vec<Box<[u8]>>);

impl Names {
    /// Returns the address of the symbol, and whether the name is new. `None` if there are too many
    /// names.
    pub(super) fn symbol(&mut self, name: &[u8]) -> Option<(u64, bool)> {
        let known = self.0.iter().position(|known| **known == *name);
        let at = match known {
            Some(at) => at,
            None if self.0.len() < MOST => {
                self.0.push(name.into());
                self.0.len().saturating_sub(1)
            }
            None => return None,
        };
        let start = (at as u64).saturating_mul(STEP).saturating_add(FIRST);
        Some((start, known.is_none()))
    }
}

/// Returns the KSYMBOL record for a name, as a record of the event `attr` with the ID `id`.
pub(super) fn symbol(name: &[u8], address: u64, attr: &Attr, id: u64, time: u64) -> Record {
    let symbol = Ksymbol {
        addr: address,
        len: STEP as u32,
        ksym_type: KsymbolType::OUT_OF_LINE,
        flags: KsymbolFlags::default(),
        name: Text::padded(name, 8),
    };
    let record = Record::new(Body::Ksymbol(symbol)).with_misc(CpuMode::KERNEL.0);
    if attr.flags.sample_id_all() == 0 {
        return record;
    }
    let has = |part| attr.sample_type.has(part);
    record.with_sample_id(SampleId {
        tid: has(SampleType::TID).then_some(Tid { pid: 0, tid: 0 }),
        time: has(SampleType::TIME).then_some(time),
        id: has(SampleType::ID).then_some(id),
        stream_id: has(SampleType::STREAM_ID).then_some(id),
        cpu: has(SampleType::CPU).then(Cpu::default),
        identifier: has(SampleType::IDENTIFIER).then_some(id),
    })
}
