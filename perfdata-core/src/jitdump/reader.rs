//! The reader of jitdumps.

use std::io::{self, ErrorKind, Read};

use binrw::Endian;

use super::{JitHeader, JitRecord, JitRecordType, recognise};
use crate::decode_context::DecodeContext;
use crate::error::{Error, Problem, Result};
use crate::read::Limits;
use crate::wire::Wire;

/// Reads a jitdump record by record, also while its runtime still writes it. Holds one record in
/// memory.
#[derive(Debug)]
pub struct JitdumpReader<R> {
    source: R,
    endian: Endian,
    header: JitHeader,
    limits: Limits,
    /// Absolute offset of `record`.
    offset: u64,
    /// The bytes of the next record so far.
    record: Vec<u8>,
    /// The type of the last record.
    last: Option<JitRecordType>,
    /// Whether the next record cannot be found, because the size of the last one is wrong.
    is_lost: bool,
}

impl<R: Read> JitdumpReader<R> {
    /// Reads the header of the dump at the start of `source`. The memory for a record stays within
    /// the limit for metadata in `limits`.
    ///
    /// # Errors
    /// The header is incomplete, not that of a jitdump, or of an unknown version; it has unknown
    /// flags, on which the meaning of the timestamps may depend; or `source` cannot be read.
    pub fn new(source: R, limits: Limits) -> Result<Self> {
        let mut reader = JitdumpReader {
            source,
            endian: Endian::Little,
            header: JitHeader {
                magic: super::MAGIC,
                version: 1,
                total_size: JitHeader::SIZE,
                elf_mach: Default::default(),
                pad1: 0,
                pid: 0,
                timestamp: 0,
                flags: Default::default(),
            },
            limits,
            offset: 0,
            record: Vec::new(),
            last: None,
            is_lost: false,
        };
        reader.read_header()?;
        Ok(reader)
    }

    fn read_header(&mut self) -> Result<()> {
        const NAME: &str = "jitdump header";
        let at_start = |error: Error| error.structure(NAME).within(0);
        let size = u64::from(JitHeader::SIZE);
        let is_whole = self.fill(size).map_err(at_start)?;
        let Some(endian) = recognise(&self.record) else {
            let magic = self.record.get(..4).unwrap_or(&self.record);
            let found = magic.escape_ascii().to_string();
            return Err(Error::invalid(NAME, "magic", found, "JiTD or DTiJ").at(0));
        };
        if !is_whole {
            return Err(Error::truncated(NAME, size, self.record.len() as u64).at(0));
        }
        let (header, _) =
            JitHeader::decode(&self.record, endian, DecodeContext::default()).map_err(at_start)?;
        let invalid = |field, found: String, expected: &'static str| {
            Err(Error::invalid(NAME, field, found, expected).at(0))
        };
        if header.version != 1 {
            return invalid("version", header.version.to_string(), "1");
        }
        if header.flags.unknown() != 0 {
            let found = format!("{:#x}", header.flags.0);
            return invalid("flags", found, "no flags except ARCH_TIMESTAMP");
        }
        if header.total_size < JitHeader::SIZE {
            return invalid("total_size", header.total_size.to_string(), "40 or more");
        }
        // A newer form may be longer. Its fields are not kept.
        let more = u64::from(header.total_size.saturating_sub(JitHeader::SIZE));
        let skipped = io::copy(&mut (&mut self.source).take(more), &mut io::sink())
            .map_err(|error| Error::io(NAME, error))?;
        if skipped < more {
            let available = size.saturating_add(skipped);
            return Err(Error::truncated(NAME, u64::from(header.total_size), available).at(0));
        }
        self.endian = endian;
        self.offset = u64::from(header.total_size);
        self.header = header;
        self.record.clear();
        Ok(())
    }

    /// Returns the header.
    pub fn header(&self) -> &JitHeader {
        &self.header
    }

    /// Returns the byte order of the dump.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Returns the absolute offset of the next record in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the type of the last record, also of one that could not be decoded; `None` before
    /// the first.
    pub fn last_kind(&self) -> Option<JitRecordType> {
        self.last
    }

    /// Returns the number of bytes of an incomplete record at the end, as a killed runtime leaves
    /// it.
    pub fn pending(&self) -> usize {
        self.record.len()
    }

    /// Reads until the current record has `size` bytes. Returns whether it has.
    fn fill(&mut self, size: u64) -> Result<bool> {
        let missing = size.saturating_sub(self.record.len() as u64);
        if missing == 0 {
            return Ok(true);
        }
        self.limits.check_metadata("jitdump record", size)?;
        let read = loop {
            // Memory grows with the available bytes, not with `size`.
            match (&mut self.source)
                .take(missing)
                .read_to_end(&mut self.record)
            {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("jitdump record", error)),
                Ok(read) => break read,
            }
        };
        Ok(read as u64 == missing)
    }

    /// Returns the next record; `None` at the end, and before an incomplete record. If the dump has
    /// grown since, the next call continues there.
    ///
    /// # Errors
    /// The lengths in the record contradict each other, or it exceeds the limit. Unless the size of
    /// the record itself is wrong, the next call returns the record after it.
    #[allow(clippy::should_implement_trait, reason = "a stream that can fail")]
    pub fn next(&mut self) -> Result<Option<JitRecord>> {
        if self.is_lost || !self.fill(JitRecord::HEAD as u64)? {
            return Ok(None);
        }
        let (kind, size) = self.head();
        self.last = Some(kind);
        let structure = match kind.name() {
            Some(name) => format!("jitdump record {name}"),
            None => format!("jitdump record of type {kind}"),
        };
        let at = self.offset;
        let blame = |error: Error| error.structure(structure.clone()).within(at);
        if (size as usize) < JitRecord::HEAD {
            self.is_lost = true;
            return Err(blame(Error::invalid(
                "",
                "total_size",
                size.to_string(),
                "16 or more",
            )));
        }
        match self.fill(u64::from(size)) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => {
                self.is_lost = matches!(error.problem(), Problem::Limit { .. });
                return Err(blame(error));
            }
        }
        let context = DecodeContext::default().with_len(u64::from(size));
        let decoded = JitRecord::decode(&self.record, self.endian, context);
        self.offset = self.offset.saturating_add(u64::from(size));
        self.record.clear();
        let (record, _) = decoded.map_err(blame)?;
        record.check().map_err(blame)?;
        Ok(Some(record))
    }

    /// Returns type and size of the current record.
    fn head(&self) -> (JitRecordType, u32) {
        let word = |at: usize| {
            let bytes = self.record.get(at..).and_then(|rest| rest.first_chunk());
            let bytes = bytes.copied().unwrap_or_default();
            match self.endian {
                Endian::Little => u32::from_le_bytes(bytes),
                Endian::Big => u32::from_be_bytes(bytes),
            }
        };
        (JitRecordType(word(0)), word(4))
    }
}
