//! Records: the packets of one operation (tools/perf/util/arm-spe-decoder/arm-spe-decoder.c, Linux
//! 7.1, `arm_spe_read_record`).

use std::fmt;

use super::packet::{Packet, Unreadable};
use crate::codes::flags;

flags! {
    /// What happened during the operation (arm-spe-pkt-decoder.h, `enum arm_spe_events`). perf of
    /// the given release knows the bit.
    pub struct SpeEvents: u64 {
        since "6.12" {
            0 EXCEPTION "EXCEPTION-GEN", 1 RETIRED "RETIRED", 2 L1D_ACCESS "L1D-ACCESS",
            3 L1D_REFILL "L1D-REFILL", 4 TLB_ACCESS "TLB-ACCESS", 5 TLB_WALK "TLB-REFILL",
            6 NOT_TAKEN "NOT-TAKEN", 7 MISPREDICTED "MISPRED", 8 LLC_ACCESS "LLC-ACCESS",
            9 LLC_MISS "LLC-REFILL", 10 REMOTE_ACCESS "REMOTE-ACCESS", 11 ALIGNMENT "ALIGNMENT",
            17 PARTIAL_PREDICATE "SVE-PARTIAL-PRED", 18 EMPTY_PREDICATE "SVE-EMPTY-PRED",
        }
        since "7.1" {
            16 TRANSACTION "TXN", 19 L2D_ACCESS "L2D-ACCESS", 20 L2D_MISS "L2D-MISS",
            21 MODIFIED "HITM", 22 RECENTLY_FETCHED "LFB", 23 SNOOPED "SNOOPED",
            24 STREAMING "STREAMING-SVE", 25 SMCU "SMCU",
        }
    }
}

flags! {
    /// The type of the operation.
    pub struct Operation: u32 {
        since "6.12" {
            /// None of the others.
            0 OTHER "OTHER",
            1 LOAD "LOAD",
            2 STORE "STORE",
            3 BRANCH "BRANCH",
            /// A conditional branch.
            4 CONDITIONAL "CONDITIONAL",
            /// An indirect branch.
            5 INDIRECT "INDIRECT",
            /// A branch with link.
            6 CALL "CALL",
            7 RETURN "RETURN",
            /// A branch that is known to be neither call nor return.
            8 PLAIN "PLAIN",
            /// An operation on vectors or matrices: Advanced SIMD, SVE or SME.
            9 SIMD "SIMD",
        }
    }
}

impl Operation {
    /// Returns whether any of the bits of `flags` is set.
    #[inline]
    pub const fn is_any(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }

    /// Returns the operation of a packet; `None` if the class is reserved.
    fn of(class: u8, value: u64) -> Option<Self> {
        let bit = |bit: u32| value >> bit & 1 == 1;
        let flag = |is_set, flag| if is_set { flag } else { Operation(0) };
        Some(match class {
            0 => {
                let is_sve = value & 0x89 == 0x08;
                let is_sme = value & 0x89 == 0x88;
                let is_asimd = value & 0xf8 == 0 && bit(2);
                Operation::OTHER | flag(is_sve || is_sme || is_asimd, Operation::SIMD)
            }
            1 => {
                let access = if bit(0) {
                    Operation::STORE
                } else {
                    Operation::LOAD
                };
                let is_asimd = value & 0xfe == 0x04;
                let has_other_subclass = [0x00, 0x04, 0x10, 0x30, 0x14].contains(&(value & 0xfe))
                    || value & 0xe2 == 0x02;
                let is_sve = value & 0x0a == 0x08 && !has_other_subclass;
                access | flag(is_asimd || is_sve, Operation::SIMD)
            }
            2 => {
                let kind = match value >> 3 & 3 {
                    1 => Operation::CALL,
                    2 => Operation::RETURN,
                    3 => Operation::PLAIN,
                    _ => Operation(0),
                };
                Operation::BRANCH
                    | kind
                    | flag(bit(0), Operation::CONDITIONAL)
                    | flag(bit(1), Operation::INDIRECT)
            }
            _ => return None,
        })
    }
}

/// A sampled operation. What the trace does not contain is 0 or `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SpeRecord {
    /// Virtual address of the instruction.
    pub pc: u64,
    /// Virtual address of the branch target.
    pub target: u64,
    /// Target of the previous taken branch.
    pub previous_target: u64,
    /// Virtual data address, without its tag.
    pub virtual_address: u64,
    /// Physical data address.
    pub physical_address: u64,
    /// Type of the operation.
    pub operation: Operation,
    /// What happened.
    pub events: SpeEvents,
    /// Source of the loaded data. Its meaning depends on the CPU.
    pub data_source: u16,
    /// Total latency in cycles.
    pub latency: u32,
    /// Thread ID.
    pub context: Option<u32>,
    /// Value of the generic counter.
    pub timestamp: Option<u64>,
}

/// Returns a virtual address of code. The highest byte contains the security state and the
/// exception level; addresses of the kernel have a highest byte of ones.
fn code_address(value: u64) -> u64 {
    let is_not_secure = value >> 63 == 1;
    let level = value >> 61 & 3;
    let is_kernel = is_not_secure && (level == 1 || level == 2);
    value & ADDRESS | if is_kernel { !ADDRESS } else { 0 }
}

/// Returns a virtual address of data, whose highest byte is a tag.
fn data_address(value: u64) -> u64 {
    let is_kernel = value >> 52 & 0xf == 0xf;
    value & ADDRESS | if is_kernel { !ADDRESS } else { 0 }
}

/// The bits of an address.
const ADDRESS: u64 = u64::MAX >> 8;

/// Makes records of packets.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordBuilder {
    record: SpeRecord,
    /// Whether a packet of the record could not be decoded.
    is_damaged: bool,
}

/// A record that contains undecodable bytes. The record is lost; the next one can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage;

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record of Arm SPE contains bytes that are no packet")
    }
}

impl std::error::Error for Damage {}

impl RecordBuilder {
    /// Adds a packet. Returns the record if the packet ends it.
    pub fn push(&mut self, packet: Packet) -> Option<Result<SpeRecord, Damage>> {
        let record = &mut self.record;
        match packet {
            Packet::Timestamp(value) => {
                record.timestamp = Some(value);
                return Some(self.end());
            }
            Packet::End => return Some(self.end()),
            Packet::Events(value) => record.events = SpeEvents(value),
            // Sources have 16 bits.
            Packet::DataSource(value) => record.data_source = value as u16,
            // Thread IDs have 32 bits.
            Packet::Context { value, .. } => record.context = Some(value as u32),
            Packet::Operation { class, value } => match Operation::of(class, value) {
                Some(operation) => record.operation = record.operation | operation,
                None => self.is_damaged = true,
            },
            Packet::Address { index, value } => match index {
                0 => record.pc = code_address(value),
                1 => record.target = code_address(value),
                2 => record.virtual_address = data_address(value),
                3 => record.physical_address = value & ADDRESS,
                4 => record.previous_target = code_address(value),
                _ => {}
            },
            Packet::Counter { index: 0, value } => {
                record.latency = u32::try_from(value).unwrap_or(u32::MAX);
            }
            Packet::Counter { .. } | Packet::Padding | Packet::Alignment(_) => {}
        }
        None
    }

    /// Notes that the record contains bytes that are no packet.
    pub fn damage(&mut self) {
        self.is_damaged = true;
    }

    fn end(&mut self) -> Result<SpeRecord, Damage> {
        let RecordBuilder { record, is_damaged } = std::mem::take(self);
        if is_damaged { Err(Damage) } else { Ok(record) }
    }
}

/// The records of a buffer. An incomplete record at its end is omitted.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
    /// Offset of the rest in the AUX buffer.
    position: u64,
    builder: RecordBuilder,
}

impl<'a> Records<'a> {
    /// Returns the records of `bytes`, which begin at `position` in the AUX buffer
    /// ([`Auxtrace::offset`](crate::record::Auxtrace::offset)).
    pub fn new(bytes: &'a [u8], position: u64) -> Self {
        Records::after(RecordBuilder::default(), bytes, position)
    }

    /// Returns the records of `bytes`, which continue other bytes with [`builder`](Self::builder).
    pub fn after(builder: RecordBuilder, bytes: &'a [u8], position: u64) -> Self {
        Records {
            rest: bytes,
            position,
            builder,
        }
    }

    /// Returns the state, for the bytes that follow.
    pub fn builder(&self) -> RecordBuilder {
        self.builder
    }

    /// Returns the offset of the next packet in the AUX buffer. It is beyond the end of the bytes
    /// if they end in padding that continues.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the number of bytes that were not yet decoded.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Skips bytes.
    fn skip(&mut self, bytes: u64) {
        let skipped = usize::try_from(bytes).map_or(self.rest.len(), |n| n.min(self.rest.len()));
        self.rest = self.rest.get(skipped..).unwrap_or_default();
        self.position = self.position.wrapping_add(bytes);
    }

    /// Decodes the next record. With `may_continue`, an incomplete packet at the end remains
    /// undecoded; otherwise, its bytes are damage.
    pub fn decode(&mut self, may_continue: bool) -> Option<Result<SpeRecord, Damage>> {
        while !self.rest.is_empty() {
            match Packet::first(self.rest) {
                Ok((packet, size)) => {
                    self.skip(packet.step(size, self.position));
                    if let Some(record) = self.builder.push(packet) {
                        return Some(record);
                    }
                }
                Err(Unreadable::Truncated) if may_continue => return None,
                Err(_) => {
                    self.builder.damage();
                    self.skip(1);
                }
            }
        }
        None
    }
}

impl Iterator for Records<'_> {
    type Item = Result<SpeRecord, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        self.decode(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(index: u8, value: u64) -> Vec<u8> {
        [&[0xb0 | index][..], &value.to_le_bytes()].concat()
    }

    #[test]
    fn addresses_lose_what_is_no_address() {
        let trace = [
            address(0, 1 << 63 | 1 << 61 | 0x00ff_8000_1234_5678),
            address(1, 1 << 63 | 0x0040_1000),
            address(2, 0xa5ff_0000_0000_0010),
            address(3, 0xa500_0000_8000_0040),
            address(4, 3 << 61 | 1 << 63 | 0x20),
            vec![1],
        ]
        .concat();
        let record = Records::new(&trace, 0).next();
        let expected = SpeRecord {
            pc: 0xffff_8000_1234_5678,
            target: 0x40_1000,
            virtual_address: 0xffff_0000_0000_0010,
            physical_address: 0x8000_0040,
            previous_target: 0x20,
            ..SpeRecord::default()
        };
        assert_eq!(record, Some(Ok(expected)));
    }

    #[test]
    fn operations() {
        let of = |class, value| {
            Operation::of(class, value).map(|operation| operation.names().collect::<Vec<_>>())
        };
        assert_eq!(of(0, 0), Some(vec!["OTHER"]));
        assert_eq!(of(0, 0x04), Some(vec!["OTHER", "SIMD"]));
        assert_eq!(of(0, 0x08), Some(vec!["OTHER", "SIMD"]));
        assert_eq!(of(0, 0x09), Some(vec!["OTHER"]));
        assert_eq!(of(1, 0), Some(vec!["LOAD"]));
        assert_eq!(of(1, 0x01), Some(vec!["STORE"]));
        assert_eq!(of(1, 0x04), Some(vec!["LOAD", "SIMD"]));
        assert_eq!(of(1, 0x09), Some(vec!["STORE", "SIMD"]));
        // An atomic access with acquire and release semantics.
        assert_eq!(of(1, 0x1e), Some(vec!["LOAD"]));
        assert_eq!(of(2, 0x01), Some(vec!["BRANCH", "CONDITIONAL"]));
        assert_eq!(of(2, 0x0a), Some(vec!["BRANCH", "INDIRECT", "CALL"]));
        assert_eq!(of(2, 0x12), Some(vec!["BRANCH", "INDIRECT", "RETURN"]));
        assert_eq!(of(2, 0x18), Some(vec!["BRANCH", "PLAIN"]));
        assert_eq!(of(3, 0), None);
    }

    /// Undecodable bytes only lose the record that contains them. Records continue across parts.
    #[test]
    fn damage_ends_with_the_record() {
        let trace = [
            address(0, 0x10),
            vec![0xff],
            vec![0x01],
            address(0, 0x20),
            vec![0x23, 0x00, 0xff],
        ]
        .concat();
        let mut trace = trace;
        trace.resize(32, 0xff);
        trace.extend([0x98, 7, 0, 0x01]);
        let all: Vec<_> = Records::new(&trace, 0).collect();
        let second = SpeRecord {
            pc: 0x20,
            latency: 7,
            ..SpeRecord::default()
        };
        assert_eq!(all, [Err(Damage), Ok(second)]);
        for cut in 0..trace.len() {
            // The alignment packet skips bytes of both parts.
            if (21..32).contains(&cut) {
                continue;
            }
            let mut found = Vec::new();
            let mut one = Records::new(&trace[..cut], 0);
            while let Some(record) = one.decode(true) {
                found.push(record);
            }
            let at = cut - one.remaining();
            let two = Records::after(one.builder(), &trace[at..], at as u64);
            found.extend(two);
            assert_eq!(found, all, "cut at {cut}");
        }
        let cut = Records::new(&trace[..trace.len() - 1], 0);
        assert_eq!(cut.collect::<Vec<_>>(), [Err(Damage)]);
    }
}
