//! The packets of all parts of a trace.

use crate::branches::Tnt;
use crate::error::BadPacket;
use crate::event::DecodeError;
use crate::packet::{BlockItemSize, Packet};
use crate::source::{Buffer, TraceSource};
use crate::stream::{PSB, find_psb};

/// Why decoding stops.
#[derive(Debug)]
pub(super) enum Stop<E> {
    /// Something is wrong: an event.
    Error(DecodeError),
    /// A part begins that does not continue the one before.
    NewPart,
    /// The code is missing, which was said before.
    Silent,
    /// The trace ends.
    End,
    /// A part cannot be read.
    Source(E),
}

/// Reads packets.
#[derive(Debug)]
pub(super) struct PacketReader {
    bytes: Vec<u8>,
    /// Index of the byte after the current packet.
    at: usize,
    /// Offset of `bytes` in the trace.
    start: u64,
    /// The next part, which was read ahead.
    next: Option<Buffer>,
    has_begun: bool,
    /// The items that are open after the current packet, and before it.
    block: Option<BlockItemSize>,
    block_before: Option<BlockItemSize>,
    /// The current packet, and its size.
    pub(super) packet: Packet,
    size: usize,
    /// Whether the packet before was a CYC packet.
    pub(super) after_cyc: bool,
    /// The number of the current part.
    pub(super) number: u64,
    /// The reference time of the current part.
    pub(super) reference: u64,
}

impl PacketReader {
    pub(super) fn new() -> Self {
        PacketReader {
            bytes: Vec::new(),
            at: 0,
            start: 0,
            next: None,
            has_begun: false,
            block: None,
            block_before: None,
            packet: Packet::Pad,
            size: 0,
            after_cyc: false,
            number: 0,
            reference: 0,
        }
    }

    /// Returns the offset of the current packet in the trace.
    pub(super) fn offset(&self) -> u64 {
        let at = self.at.saturating_sub(self.size);
        self.start.wrapping_add(at as u64)
    }

    /// Returns whether the current packet is in no block that began before it.
    pub(super) fn begins_block(&self) -> bool {
        self.block_before.is_none()
    }

    /// Reads the current packet again.
    pub(super) fn unread(&mut self) {
        self.at = self.at.saturating_sub(self.size);
        self.size = 0;
        self.block = self.block_before;
    }

    /// Reads the next packet that is no padding.
    #[inline]
    pub(super) fn next<T: TraceSource>(&mut self, trace: &mut T) -> Result<Packet, Stop<T::Error>> {
        self.after_cyc = matches!(self.packet, Packet::Cyc(_));
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            if rest.is_empty() {
                self.size = 0;
                self.advance(trace)?;
                continue;
            }
            self.block_before = self.block;
            if self.block.is_none()
                && let Some(&first) = rest.first()
                && let Some(tnt) = Tnt::short(first)
            {
                (self.size, self.at) = (1, self.at.saturating_add(1));
                self.packet = Packet::Tnt(tnt);
                return Ok(self.packet);
            }
            match Packet::first(rest, self.block) {
                Ok(packet) => {
                    self.size = packet.size();
                    self.at = self.at.saturating_add(self.size);
                    self.block = packet.block_after(self.block);
                    if packet != Packet::Pad {
                        self.packet = packet;
                        return Ok(packet);
                    }
                }
                Err(BadPacket::Truncated) if self.extend(trace)? => {}
                Err(_) => {
                    self.size = 1;
                    self.at = self.at.saturating_add(1);
                    return Err(Stop::Error(DecodeError::BadPacket));
                }
            }
        }
    }

    /// Reads the next PSB packet.
    pub(super) fn next_psb<T: TraceSource>(
        &mut self,
        trace: &mut T,
    ) -> Result<Packet, Stop<T::Error>> {
        self.block = None;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            if let Some(found) = find_psb(rest) {
                self.at = self.at.saturating_add(found);
                return self.next(trace);
            }
            // The last bytes may be the start of one.
            let kept = (1..PSB.len())
                .rev()
                .find(|&size| PSB.get(..size).is_some_and(|start| rest.ends_with(start)))
                .unwrap_or(0);
            self.at = self.bytes.len().saturating_sub(kept);
            self.size = 0;
            if kept == 0 || !self.extend(trace)? {
                self.at = self.bytes.len();
                self.advance(trace)?;
            }
        }
    }

    /// Goes on to the next part, after all bytes of this one.
    fn advance<T: TraceSource>(&mut self, trace: &mut T) -> Result<(), Stop<T::Error>> {
        self.look_ahead(trace)?;
        let next = self.next.take().ok_or(Stop::End)?;
        self.start = self.start.wrapping_add(self.bytes.len() as u64);
        self.at = 0;
        self.bytes = next.bytes;
        self.number = next.number;
        self.reference = next.reference_time;
        if !next.is_consecutive || !self.has_begun {
            self.has_begun = true;
            return Err(Stop::NewPart);
        }
        Ok(())
    }

    /// Appends the next part, if it continues this one. Returns whether it did.
    fn extend<T: TraceSource>(&mut self, trace: &mut T) -> Result<bool, Stop<T::Error>> {
        self.look_ahead(trace)?;
        let Some(next) = self
            .next
            .take_if(|next| next.is_consecutive && self.has_begun)
        else {
            return Ok(false);
        };
        let passed = self.at.saturating_sub(self.size);
        self.bytes.drain(..passed.min(self.bytes.len()));
        self.start = self.start.wrapping_add(passed as u64);
        self.at = self.at.saturating_sub(passed);
        self.bytes.extend_from_slice(&next.bytes);
        self.number = next.number;
        self.reference = next.reference_time;
        Ok(true)
    }

    fn look_ahead<T: TraceSource>(&mut self, trace: &mut T) -> Result<(), Stop<T::Error>> {
        while self.next.is_none() {
            match trace.next_buffer().map_err(Stop::Source)? {
                Some(buffer) if buffer.bytes.is_empty() => {}
                Some(buffer) => self.next = Some(buffer),
                None => break,
            }
        }
        Ok(())
    }

    /// Passes the packets after the current one to `visit`, and whether a CYC packet is before them,
    /// until that returns true or the part ends.
    pub(super) fn peek<T: TraceSource>(
        &mut self,
        trace: &mut T,
        mut visit: impl FnMut(&Packet, bool) -> bool,
    ) -> Result<(), Stop<T::Error>> {
        let mut block = self.block;
        // As perf has it, that is the packet before the current one at first.
        let mut after_cyc = self.after_cyc;
        let mut passed = 0_usize;
        loop {
            let at = self.at.saturating_add(passed);
            let rest = self.bytes.get(at..).unwrap_or_default();
            match Packet::first(rest, block) {
                Ok(packet) => {
                    passed = passed.saturating_add(packet.size());
                    block = packet.block_after(block);
                    if packet == Packet::Pad {
                        continue;
                    }
                    if visit(&packet, after_cyc) {
                        return Ok(());
                    }
                    after_cyc = matches!(packet, Packet::Cyc(_));
                }
                Err(BadPacket::Truncated) => {
                    self.look_ahead(trace)?;
                    let is_same = |next: &Buffer| next.number == self.number;
                    if !self.next.as_ref().is_some_and(is_same) || !self.extend(trace)? {
                        return Ok(());
                    }
                }
                Err(_) => return Ok(()),
            }
        }
    }
}
