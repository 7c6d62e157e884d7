//! A record that is not decoded, and its header.

use binrw::Endian;

use crate::decode_context::DecodeContext;
use crate::error::{Error, Result};
use crate::feature::FeatureId;
use crate::record::{Auxtrace, HeaderTracingData, RecordType, words};
use crate::wire::{Wire, wire};

wire! {
    /// The first 8 bytes of every record, `struct perf_event_header`.
    pub struct RecordHeader {
        /// Type of the record.
        pub kind: RecordType,
        /// CPU mode in bits 0–2, and flags that depend on the type.
        pub misc: u16 as Hex => Number,
        /// Size of the record in bytes, including this header.
        pub size: u16 => Number,
    }
}

impl RecordHeader {
    /// Size of a header in bytes.
    pub const SIZE: usize = 8;

    /// Reads a header from the first bytes of `bytes`.
    #[inline]
    pub fn parse(bytes: &[u8], endian: Endian) -> Option<Self> {
        let &[a, b, c, d, e, f, g, h] = bytes.first_chunk()?;
        let (kind, misc, size) = match endian {
            Endian::Little => (
                u32::from_le_bytes([a, b, c, d]),
                u16::from_le_bytes([e, f]),
                u16::from_le_bytes([g, h]),
            ),
            Endian::Big => (
                u32::from_be_bytes([a, b, c, d]),
                u16::from_be_bytes([e, f]),
                u16::from_be_bytes([g, h]),
            ),
        };
        Some(RecordHeader {
            kind: RecordType(kind),
            misc,
            size,
        })
    }

    /// Puts another `misc` into the header at the start of `record`.
    pub fn put_misc(record: &mut [u8], misc: u16, endian: Endian) {
        put(record, 4, misc, endian);
    }

    /// Puts another size into the header at the start of `record`.
    pub fn put_size(record: &mut [u8], size: u16, endian: Endian) {
        put(record, 6, size, endian);
    }
}

fn put(bytes: &mut [u8], at: usize, number: u16, endian: Endian) {
    if let Some(field) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *field = if endian == Endian::Little {
            number.to_le_bytes()
        } else {
            number.to_be_bytes()
        };
    }
}

/// One record of the input, not decoded.
#[derive(Debug, Clone, Copy)]
pub struct RawRecord<'a> {
    /// Absolute offset of the record in the input; for a record inside compressed data, the offset
    /// of the compressed record.
    pub offset: u64,
    /// Type.
    pub kind: RecordType,
    /// CPU mode and flags.
    pub misc: u16,
    /// The whole record, including its header.
    pub bytes: &'a [u8],
    /// Byte order of the record.
    pub endian: Endian,
}

impl<'a> RawRecord<'a> {
    /// Returns the first record in `bytes`, which may contain other data after it.
    ///
    /// # Errors
    /// Fails if the size is below 8 or exceeds `bytes`.
    pub fn first(bytes: &'a [u8], endian: Endian, offset: u64) -> Result<Self> {
        let Some(header) = RecordHeader::parse(bytes, endian) else {
            return Err(Error::truncated(
                "record header",
                RecordHeader::SIZE as u64,
                bytes.len() as u64,
            )
            .at(offset));
        };
        let size = usize::from(header.size);
        if size < RecordHeader::SIZE {
            return Err(Error::invalid(
                format!("{} record", header.kind),
                "size",
                size.to_string(),
                "8 or more, the header being part of the record",
            )
            .at(offset));
        }
        match bytes.get(..size) {
            Some(bytes) => Ok(RawRecord {
                offset,
                kind: header.kind,
                misc: header.misc,
                bytes,
                endian,
            }),
            None => Err(Error::truncated(
                format!("{} record", header.kind),
                size as u64,
                bytes.len() as u64,
            )
            .at(offset)),
        }
    }

    /// Returns the record without its header.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(RecordHeader::SIZE..).unwrap_or_default()
    }

    /// Returns the number of bytes that follow the record outside its own size: AUX data, tracing
    /// data. See [`RecordType::has_payload`].
    ///
    /// # Errors
    /// Fails if the record is too short to contain this number.
    pub fn payload_len(&self) -> Result<u64> {
        match self.kind {
            RecordType::AUXTRACE => self
                .decode_body::<Auxtrace>(DecodeContext::default())
                .map(|r| r.size),
            RecordType::HEADER_TRACING_DATA => {
                let layout = DecodeContext {
                    len: self.body().len() as u64,
                    ..DecodeContext::default()
                };
                let body = self.decode_body::<HeaderTracingData>(layout)?;
                Ok(match body.data {
                    Some(_) => 0,
                    None => u64::from(body.size),
                })
            }
            _ => Ok(0),
        }
    }

    /// Decodes the body as a structure of type `T`, which must match [`kind`](Self::kind).
    ///
    /// # Errors
    /// Fails if the body is too short, or a count exceeds it.
    pub fn decode_body<T: Wire>(&self, layout: DecodeContext) -> Result<T> {
        T::decode(self.body(), self.endian, layout)
            .map(|(body, _)| body)
            .map_err(|e| self.blame(e))
    }

    /// Returns the u64 at offset `at` in bytes from the start of the record.
    #[inline]
    pub fn word(&self, at: usize) -> Option<u64> {
        let bytes = *self.bytes.get(at..)?.first_chunk()?;
        Some(if self.endian == Endian::Little {
            u64::from_le_bytes(bytes)
        } else {
            u64::from_be_bytes(bytes)
        })
    }

    /// The two numbers of 4 bytes at `at` bytes from the start of the record.
    #[inline]
    pub fn pair(&self, at: usize) -> Option<(u32, u32)> {
        self.word(at).map(|word| words::halves(word, self.endian))
    }

    /// The feature whose section a HEADER_FEATURE record holds, as far as its number is one; `None`
    /// for other records.
    pub fn feature(&self) -> Option<FeatureId> {
        if self.kind != RecordType::HEADER_FEATURE {
            return None;
        }
        self.word(RecordHeader::SIZE)
            .and_then(|id| u32::try_from(id).ok())
            .map(FeatureId)
    }

    pub(super) fn blame(&self, error: Error) -> Error {
        error
            .structure(format!("{} record", self.kind))
            .within(self.offset.saturating_add(RecordHeader::SIZE as u64))
    }
}
