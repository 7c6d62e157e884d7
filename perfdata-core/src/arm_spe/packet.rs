//! The packets of a trace (tools/perf/util/arm-spe-decoder/arm-spe-pkt-decoder.c, Linux 7.1).

/// A packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Packet {
    /// One byte without a meaning.
    Padding,
    /// Padding up to the next multiple of this number of bytes in the AUX buffer.
    Alignment(u64),
    /// The end of a record without a timestamp.
    End,
    /// The end of a record, with the value of the generic counter (`CNTVCT_EL0`, or that of
    /// `CNTPCT_EL0`).
    Timestamp(u64),
    /// What happened during the operation: see [`SpeEvents`](super::SpeEvents).
    Events(u64),
    /// The source of the loaded data. Its meaning depends on the CPU.
    DataSource(u64),
    /// The context, usually the thread ID, of exception level `index + 1`.
    Context {
        /// 0 for EL1, 1 for EL2.
        index: u8,
        /// `CONTEXTIDR_EL1` or `CONTEXTIDR_EL2`.
        value: u64,
    },
    /// The type of the operation.
    Operation {
        /// 0 other, 1 load, store or atomic, 2 branch or exception return.
        class: u8,
        /// Details, depending on the class.
        value: u64,
    },
    /// An address.
    Address {
        /// 0 instruction, 1 branch target, 2 virtual data address, 3 physical data address, 4
        /// previous branch target.
        index: u8,
        /// The address, and in its highest byte other fields.
        value: u64,
    },
    /// A number of cycles.
    Counter {
        /// 0 total latency, 1 issue latency, 2 address translation latency.
        index: u8,
        /// The number.
        value: u64,
    },
}

/// Why bytes are no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreadable {
    /// The packet is incomplete.
    Truncated,
    /// The header is reserved.
    Reserved,
}

/// Bits of the first byte, or of the second one after an extended header.
mod header {
    pub const PADDING: u8 = 0x00;
    pub const END: u8 = 0x01;
    pub const TIMESTAMP: u8 = 0x71;
    /// Without the bits of the size: see [`super::payload`].
    pub const WITHOUT_SIZE: u8 = 0b1100_1111;
    pub const EVENTS: u8 = 0x42;
    pub const DATA_SOURCE: u8 = 0x43;
    /// Without an index of two bits.
    pub const WITHOUT_2: u8 = 0b1111_1100;
    pub const CONTEXT: u8 = 0x64;
    pub const OPERATION: u8 = 0x48;
    pub const EXTENDED: u8 = 0x20;
    /// The second byte of an alignment packet.
    pub const ALIGNMENT: u8 = 0x00;
    /// Without an index of three bits.
    pub const WITHOUT_3: u8 = 0b1111_1000;
    pub const ADDRESS: u8 = 0xb0;
    pub const COUNTER: u8 = 0x98;
}

impl Packet {
    /// Largest size of a packet in bytes: an extended header and eight bytes.
    pub const MAX_SIZE: usize = 10;

    /// Decodes the packet at the start of `bytes`, and returns it with its size in bytes.
    ///
    /// # Errors
    /// The bytes are no packet.
    pub fn first(bytes: &[u8]) -> Result<(Packet, usize), Unreadable> {
        let (&first, mut rest) = bytes.split_first().ok_or(Unreadable::Truncated)?;
        let mut header = first;
        let mut size = 1_usize;
        // The upper bits of an index.
        let mut upper = 0;
        if first & header::WITHOUT_2 == header::EXTENDED {
            let (&second, behind) = rest.split_first().ok_or(Unreadable::Truncated)?;
            if second == header::ALIGNMENT {
                return Ok((Packet::Alignment(2 << (first & 3)), 2));
            }
            (header, rest, size) = (second, behind, 2);
            upper = (first & 3) << 3;
        }
        let is_extended = size == 2;
        let packet = |make: &dyn Fn(u64) -> Packet| {
            let (value, len) = payload(header, rest).ok_or(Unreadable::Truncated)?;
            Ok((make(value), size.saturating_add(len)))
        };
        // An extended header only precedes addresses and counters.
        let is = |mask: u8, bits: u8| !is_extended && header & mask == bits;
        let index = upper | header & 7;
        match header {
            header::PADDING if !is_extended => Ok((Packet::Padding, 1)),
            header::END if !is_extended => Ok((Packet::End, 1)),
            header::TIMESTAMP if !is_extended => packet(&Packet::Timestamp),
            _ if is(header::WITHOUT_SIZE, header::EVENTS) => packet(&Packet::Events),
            _ if is(header::WITHOUT_SIZE, header::DATA_SOURCE) => packet(&Packet::DataSource),
            _ if is(header::WITHOUT_2, header::CONTEXT) => packet(&|value| Packet::Context {
                index: header & 3,
                value,
            }),
            _ if is(header::WITHOUT_2, header::OPERATION) => packet(&|value| Packet::Operation {
                class: header & 3,
                value,
            }),
            _ if header & header::WITHOUT_3 == header::ADDRESS => {
                packet(&|value| Packet::Address { index, value })
            }
            _ if header & header::WITHOUT_3 == header::COUNTER => {
                packet(&|value| Packet::Counter { index, value })
            }
            _ => Err(Unreadable::Reserved),
        }
    }

    /// Returns the number of bytes from the start of the packet to that of the next one, for a
    /// packet of `size` bytes at `position` in the AUX buffer.
    pub fn step(self, size: usize, position: u64) -> u64 {
        let size = size as u64;
        match self {
            Packet::Alignment(multiple) => {
                let used = position.checked_rem(multiple).unwrap_or(0);
                multiple.saturating_sub(used).max(size)
            }
            _ => size,
        }
    }
}

/// Returns the payload of a packet, and its size. Bits 4 and 5 of the header are the logarithm of
/// the size.
fn payload(header: u8, rest: &[u8]) -> Option<(u64, usize)> {
    let size = 1_usize << (header >> 4 & 3);
    let mut bytes = [0; 8];
    bytes.get_mut(..size)?.copy_from_slice(rest.get(..size)?);
    Some((u64::from_le_bytes(bytes), size))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each header with its bytes, and every truncation.
    #[test]
    fn headers() {
        let long = [1, 2, 3, 4, 5, 6, 7, 8];
        let word = u64::from_le_bytes(long);
        let cases: &[(&[u8], usize, Packet)] = &[
            (&[0x00], 0, Packet::Padding),
            (&[0x01], 0, Packet::End),
            (&[0x71], 8, Packet::Timestamp(word)),
            (&[0x42], 1, Packet::Events(1)),
            (&[0x52], 2, Packet::Events(0x0201)),
            (&[0x62], 4, Packet::Events(0x0403_0201)),
            (&[0x72], 8, Packet::Events(word)),
            (&[0x43], 1, Packet::DataSource(1)),
            (&[0x53], 2, Packet::DataSource(0x0201)),
            (
                &[0x64],
                4,
                Packet::Context {
                    index: 0,
                    value: 0x0403_0201,
                },
            ),
            (
                &[0x65],
                4,
                Packet::Context {
                    index: 1,
                    value: 0x0403_0201,
                },
            ),
            (&[0x48], 1, Packet::Operation { class: 0, value: 1 }),
            (&[0x4a], 1, Packet::Operation { class: 2, value: 1 }),
            (
                &[0xb0],
                8,
                Packet::Address {
                    index: 0,
                    value: word,
                },
            ),
            (
                &[0xb4],
                8,
                Packet::Address {
                    index: 4,
                    value: word,
                },
            ),
            (
                &[0x21, 0xb2],
                8,
                Packet::Address {
                    index: 10,
                    value: word,
                },
            ),
            (
                &[0x98],
                2,
                Packet::Counter {
                    index: 0,
                    value: 0x0201,
                },
            ),
            (
                &[0x23, 0x9a],
                2,
                Packet::Counter {
                    index: 26,
                    value: 0x0201,
                },
            ),
            (&[0x20, 0x00], 0, Packet::Alignment(2)),
            (&[0x23, 0x00], 0, Packet::Alignment(16)),
        ];
        for &(header, size, packet) in cases {
            let bytes: Vec<u8> = [header, &long[..size]].concat();
            assert_eq!(Packet::first(&bytes), Ok((packet, bytes.len())));
            let more = [&bytes[..], &[0xff]].concat();
            assert_eq!(Packet::first(&more), Ok((packet, bytes.len())));
            for len in 0..bytes.len() {
                let cut = Packet::first(&bytes[..len]);
                assert_eq!(cut, Err(Unreadable::Truncated), "{bytes:x?}");
            }
        }
    }

    /// All other headers are reserved, also after an extended one.
    #[test]
    fn reserved_headers() {
        let bytes = |header: u8| [header, 1, 1, 1, 1, 1, 1, 1, 1, 1];
        let is_read = |bytes: &[u8]| match Packet::first(bytes) {
            Ok((_, size)) => {
                assert!(size <= Packet::MAX_SIZE);
                true
            }
            Err(error) => {
                assert_eq!(error, Unreadable::Reserved);
                false
            }
        };
        let read = (0..=255).filter(|&header| is_read(&bytes(header))).count();
        // Padding, end, timestamp, events and sources of four sizes, contexts, operations,
        // addresses, counters.
        assert_eq!(read, 3 + 4 + 4 + 4 + 4 + 8 + 8);
        let after = |second: u8| [0x20, second, 1, 1, 1, 1, 1, 1, 1, 1];
        let read = (0..=255).filter(|&second| is_read(&after(second))).count();
        assert_eq!(read, 1 + 8 + 8);
    }

    #[test]
    fn alignment_depends_on_the_position() {
        let step = |position| Packet::Alignment(16).step(2, position);
        assert_eq!([step(0), step(3), step(14), step(15)], [16, 13, 2, 2]);
        assert_eq!(Packet::End.step(1, 15), 1);
    }
}
