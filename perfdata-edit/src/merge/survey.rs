//! What must be known of a recording before its records are merged: one pass over the input.

use perfdata_core::read::{ByTime, Limits, RecordSource};
use perfdata_core::record::{
    Body, CpuMode, RawRecord, Record, RecordType, is_known_time, is_moment,
};
use perfdata_core::{Events, Recording};

use super::spans::{Spans, extend};
use perfdata_convert::error::Result;
use perfdata_convert::io::each_record;

/// The mapping of a kernel or a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KernelMap {
    /// First address.
    pub(super) addr: u64,
    /// Length in bytes.
    pub(super) len: u64,
    /// Name, such as `[kernel.kallsyms]_text`, or the path of a module.
    pub(super) name: Vec<u8>,
    /// Build ID, if the record contains it.
    pub(super) build_id: Option<Vec<u8>>,
}

impl KernelMap {
    /// Returns the mapping in an MMAP or MMAP2 record, if it is one of the kernel.
    pub(super) fn of(record: &RawRecord<'_>, events: &Events) -> Result<Option<KernelMap>> {
        let is_mapping = matches!(record.kind, RecordType::MMAP | RecordType::MMAP2);
        if !is_mapping || CpuMode::of(record.misc) != CpuMode::KERNEL {
            return Ok(None);
        }
        Ok(
            match Record::decode(record, &events.layout_of(record))?.body {
                Body::Mmap(map) => Some(KernelMap {
                    addr: map.addr,
                    len: map.len,
                    name: map.filename.text().to_vec(),
                    build_id: None,
                }),
                Body::Mmap2(map) => Some(KernelMap {
                    addr: map.addr,
                    len: map.len,
                    name: map.filename.text().to_vec(),
                    build_id: map
                        .build_id
                        .and_then(|id| Some(id.build_id.get(..id.build_id_size.into())?.to_vec())),
                }),
                _ => None,
            },
        )
    }

    /// Returns whether this is the kernel itself, not a module (tools/perf/util/machine.c,
    /// `machine__process_kernel_mmap_event`).
    pub(super) fn is_kernel(&self) -> bool {
        self.name.starts_with(KERNEL)
    }

    /// Returns the first address after the mapping.
    pub(super) fn end(&self) -> u64 {
        self.addr.saturating_add(self.len)
    }
}

/// The start of the name of the kernel's mapping, and its name in the table of build IDs.
pub(super) const KERNEL: &[u8] = b"[kernel.kallsyms]";

/// The records of a recording, in summary.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The moments of all records.
    pub(super) spans: Spans,
    /// The first and the last moment of the samples.
    pub(super) samples: Option<(u64, u64)>,
    /// The records about tasks, mappings and the kernel that have no time, in order: perf
    /// synthesized them for what existed before the recording.
    pub(super) opening: Vec<Vec<u8>>,
    /// The mapping of the kernel that comes first, and those of the modules.
    pub(super) kernel: Option<KernelMap>,
    pub(super) modules: Vec<KernelMap>,
    /// Whether there are AUX data.
    pub(super) has_aux: bool,
    /// The body of the TIME_CONV record.
    pub(super) time_conv: Option<Vec<u8>>,
    /// The first type of record that contains counts instead of samples.
    pub(super) counts: Option<RecordType>,
    /// Whether [`ByTime`] returns the records in the order of time.
    pub(super) is_orderly: bool,
}

impl Survey {
    /// Reads `source` to its end.
    ///
    /// # Errors
    /// The input cannot be read or is corrupt, or the records to keep exceed the limit for
    /// metadata.
    pub(super) fn of(source: &mut dyn RecordSource) -> Result<Survey> {
        let mut survey = Survey::default();
        let mut order = Order::default();
        let mut held = Held {
            bytes: 0,
            limits: source.limits(),
        };
        let ending = each_record(source, |record, recording| {
            survey.see(record, recording, &mut order, &mut held)
        })?;
        if let Some(damage) = source.take_damage() {
            return Err(damage.into());
        }
        let (what, rest) = if ending.pending > 0 {
            ("compressed record stream", ending.pending)
        } else {
            ("records", ending.unreadable)
        };
        if rest > 0 {
            return Err(perfdata_core::Error::truncated(what, rest.saturating_add(1), rest).into());
        }
        survey.is_orderly = order.is_sorted || !order.is_late;
        Ok(survey)
    }

    fn see(
        &mut self,
        record: &RawRecord<'_>,
        recording: &Recording,
        order: &mut Order,
        held: &mut Held,
    ) -> Result<()> {
        let events = &recording.events;
        order.size = order
            .size
            .saturating_add(record.bytes.len())
            .saturating_add(32);
        match record.kind {
            RecordType::FINISHED_ROUND => order.end_round(),
            RecordType::AUXTRACE | RecordType::AUXTRACE_INFO => self.has_aux = true,
            RecordType::TIME_CONV => self.time_conv = Some(record.body().to_vec()),
            RecordType::STAT
            | RecordType::STAT_ROUND
            | RecordType::STAT_CONFIG
            | RecordType::SCHEDSTAT_CPU
            | RecordType::SCHEDSTAT_DOMAIN => {
                self.counts.get_or_insert(record.kind);
            }
            kind if kind.is_kernel() => {
                let time = events.time(record);
                if let Some(map) = KernelMap::of(record, events)? {
                    if !map.is_kernel() {
                        held.add(size_of::<KernelMap>().saturating_add(map.name.len()))?;
                        self.modules.push(map);
                    } else if self.kernel.is_none() {
                        self.kernel = Some(map);
                    }
                }
                match time.filter(|&time| is_known_time(time)) {
                    None if is_state(kind) => {
                        let overhead = size_of::<Vec<u8>>();
                        held.add(record.bytes.len().saturating_add(overhead))?;
                        self.opening.push(record.bytes.to_vec());
                    }
                    None => {}
                    Some(time) => {
                        order.see(time);
                        if kind != RecordType::SAMPLE {
                            held.add(self.spans.see(record, events, time)?)?;
                        } else if is_moment(time) {
                            extend(&mut self.samples, time);
                            self.spans.extend(time);
                        }
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The memory for records that are kept.
struct Held {
    bytes: u64,
    limits: Limits,
}

impl Held {
    /// Adds `len` bytes.
    fn add(&mut self, len: usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(len as u64);
        let what = "records about what existed before the recording";
        self.limits.check_metadata(what, self.bytes)?;
        Ok(())
    }
}

/// Returns whether records of this type describe tasks, mappings or the kernel, which perf also
/// synthesizes.
pub(super) const fn is_state(kind: RecordType) -> bool {
    kind.is_kernel()
        && !matches!(
            kind,
            RecordType::SAMPLE | RecordType::LOST | RecordType::LOST_SAMPLES | RecordType::READ
        )
}

/// Predicts whether [`ByTime`] returns records in the order of time.
#[derive(Debug)]
struct Order {
    /// Whether the records are in order as they stand.
    is_sorted: bool,
    /// Whether a record came after younger ones were returned, or could have.
    is_late: bool,
    youngest: u64,
    /// The youngest time at the end of the last round, and of the one before it.
    complete: u64,
    released: u64,
    /// Size of the records that wait: of this round, and of the last one.
    size: usize,
    last_size: usize,
}

impl Default for Order {
    fn default() -> Self {
        Order {
            is_sorted: true,
            is_late: false,
            youngest: 0,
            complete: 0,
            released: 0,
            size: 0,
            last_size: 0,
        }
    }
}

impl Order {
    #[inline]
    fn see(&mut self, time: u64) {
        if time < self.youngest {
            self.is_sorted = false;
        }
        // Beyond the limit of its memory, records are returned before their round ends.
        let most = ByTime::<Box<dyn RecordSource>>::MOST / 2;
        if time < self.released || self.size.saturating_add(self.last_size) > most {
            self.is_late = true;
        }
        self.youngest = self.youngest.max(time);
    }

    fn end_round(&mut self) {
        self.released = self.complete;
        self.complete = self.youngest;
        self.last_size = std::mem::take(&mut self.size);
    }
}
