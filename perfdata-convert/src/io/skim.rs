//! Reads the records of some types from a file, and not the contents of the others.

use std::io;

use perfdata_core::Endian;
use perfdata_core::header::FileSection;
use perfdata_core::read::Source;
use perfdata_core::record::{RawRecord, RecordHeader, RecordType};

use super::reader::Watch;
use crate::error::{Error, Result};

/// Numbers of bytes that are read at once: many while records are small, few after a record whose
/// contents were skipped.
const MANY: usize = 256 << 10;
const FEW: usize = 512;

/// Number of bytes from which on skipping costs less than reading: a system call costs about as
/// much as copying a page.
const FAR: u64 = 4096;

/// What a reader needs of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extent {
    /// Nothing: it is skipped.
    Nothing,
    /// Its first 128 bytes, or all of them.
    Head,
    /// All bytes.
    Whole,
}

impl Extent {
    /// Returns the extent of a record that is needed as a whole or not at all.
    pub(super) fn whole_if(is_wanted: bool) -> Self {
        match is_wanted {
            true => Extent::Whole,
            false => Extent::Nothing,
        }
    }
}

/// Number of bytes at the start of a record that an [`Extent::Head`] has: those of all parts of a
/// sample at fixed places.
const HEAD: usize = 128;

/// A pass over the records of a file.
pub(super) struct Skim<'a> {
    source: &'a dyn Source,
    watch: Option<&'a dyn Watch>,
    endian: Endian,
    /// Offset of the next record, and the end of the records.
    offset: u64,
    end: u64,
    /// The first `len` bytes are those of the file at offset `start`.
    buffer: Vec<u8>,
    start: u64,
    len: usize,
    /// Number of bytes to read next.
    block: usize,
    /// Offset up to which the watch knows the progress.
    reported: u64,
}

impl<'a> Skim<'a> {
    /// Returns a pass over the records at `place`.
    pub(super) fn new(
        source: &'a dyn Source,
        place: FileSection,
        endian: Endian,
        watch: Option<&'a dyn Watch>,
    ) -> Self {
        Skim {
            source,
            watch,
            endian,
            offset: place.offset,
            end: place.end().unwrap_or(u64::MAX),
            buffer: Vec::new(),
            start: 0,
            len: 0,
            block: FEW,
            reported: place.offset,
        }
    }

    /// Returns the next record of a type of which `wanted` needs something; `None` at the end of
    /// the records, or at bytes that are not a complete record. The bytes of a record may end where
    /// it is no longer needed.
    ///
    /// # Errors
    /// The file cannot be read.
    #[inline]
    pub(super) fn next(
        &mut self,
        wanted: impl Fn(RecordType) -> Extent,
    ) -> Result<Option<RawRecord<'_>>> {
        while self.fill(RecordHeader::SIZE)? {
            let Some(header) = RecordHeader::parse(self.bytes(), self.endian) else {
                break;
            };
            let size = usize::from(header.size);
            if size < RecordHeader::SIZE || (size as u64) > self.left() {
                break;
            }
            let extent = wanted(header.kind);
            let mut payload = 0;
            if header.kind.has_payload() {
                if !self.fill(size)? {
                    break;
                }
                let raw = RawRecord::first(self.bytes(), self.endian, self.offset);
                let Ok(len) = raw.and_then(|raw| raw.payload_len()) else {
                    break;
                };
                payload = len;
            }
            let needed = match extent {
                Extent::Nothing => 0,
                Extent::Head => size.min(HEAD),
                Extent::Whole => size,
            };
            if !self.fill(needed)? {
                break;
            }
            let (offset, from) = (self.offset, self.position());
            self.skip((size as u64).saturating_add(payload));
            if needed > 0 {
                let bytes = self.buffer.get(from..self.len).unwrap_or_default();
                return Ok(Some(RawRecord {
                    offset,
                    kind: header.kind,
                    misc: header.misc,
                    bytes: bytes.get(..size).unwrap_or(bytes),
                    endian: self.endian,
                }));
            }
        }
        self.report(self.end);
        Ok(None)
    }

    /// Returns the number of bytes from the next record on: those that are not records, at the end.
    pub(super) fn left(&self) -> u64 {
        self.end.saturating_sub(self.offset)
    }

    /// Returns the place of the next record in the buffer, or a place after its end.
    fn position(&self) -> usize {
        usize::try_from(self.offset.saturating_sub(self.start)).unwrap_or(usize::MAX)
    }

    /// Returns the bytes in memory from the next record on.
    fn bytes(&self) -> &[u8] {
        self.buffer
            .get(self.position()..self.len)
            .unwrap_or_default()
    }

    fn skip(&mut self, len: u64) {
        if len.saturating_sub(self.bytes().len() as u64) >= FAR {
            self.block = FEW;
        }
        self.offset = self.offset.saturating_add(len);
    }

    /// Makes `len` bytes from the next record on available; returns false if there are fewer.
    fn fill(&mut self, len: usize) -> Result<bool> {
        if self.bytes().len() >= len {
            return Ok(true);
        }
        self.report(self.offset);
        if self.watch.is_some_and(Watch::is_cancelled) {
            return Err(Error::io("input")(io::Error::other("cancelled")));
        }
        let left = usize::try_from(self.end.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let most = self.block.max(len).min(left);
        self.block = self.block.saturating_mul(2).min(MANY);
        if self.buffer.len() < most {
            self.buffer.resize(most, 0);
        }
        (self.start, self.len) = (self.offset, 0);
        while let Some(room) = self.buffer.get_mut(self.len..most)
            && !room.is_empty()
        {
            let at = self.start.saturating_add(self.len as u64);
            match self.source.read_at(room, at) {
                Ok(0) => break,
                Ok(read) => self.len = self.len.saturating_add(read).min(most),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("input")(error)),
            }
        }
        Ok(self.len >= len)
    }

    /// Reports the progress up to an offset.
    fn report(&mut self, offset: u64) {
        let offset = offset.min(self.end);
        if let Some(watch) = self.watch
            && offset > self.reported
        {
            watch.advance(offset.saturating_sub(self.reported));
            self.reported = offset;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfdata_core::read::{RecordStream, StreamItem};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Appends a record of `size` bytes.
    fn put(bytes: &mut Vec<u8>, kind: RecordType, size: u16, endian: Endian) {
        let end = bytes.len() + usize::from(size);
        let (kind, size) = match endian {
            Endian::Little => (kind.0.to_le_bytes(), size.to_le_bytes()),
            Endian::Big => (kind.0.to_be_bytes(), size.to_be_bytes()),
        };
        bytes.extend([&kind[..], &[0, 0], &size].concat());
        while bytes.len() < end {
            bytes.push((bytes.len() % 7) as u8);
        }
    }

    /// Records of all sizes, with payloads that contain what looks like records.
    fn records(endian: Endian) -> Vec<u8> {
        let mut bytes = vec![0xff; 104];
        for round in 0..300_u16 {
            let size = 8 * (1 + round * 37 % 1400);
            put(&mut bytes, RecordType::SAMPLE, size, endian);
            put(&mut bytes, RecordType::MMAP, 8 + 8 * (round % 9), endian);
            for _ in 0..round % 50 {
                put(&mut bytes, RecordType::SAMPLE, 64, endian);
            }
            if round % 10 == 0 {
                let start = bytes.len();
                put(&mut bytes, RecordType::AUXTRACE, 48, endian);
                let payload = u64::from(round) * 100;
                let size = match endian {
                    Endian::Little => payload.to_le_bytes(),
                    Endian::Big => payload.to_be_bytes(),
                };
                bytes[start + 8..start + 16].copy_from_slice(&size);
                let end = bytes.len() + payload as usize;
                while bytes.len() < end {
                    bytes.extend(MMAP_LIKE);
                }
                bytes.truncate(end);
            }
        }
        put(&mut bytes, RecordType::MMAP, u16::MAX - 7, endian);
        bytes
    }

    const MMAP_LIKE: [u8; 8] = [1, 0, 0, 0, 0, 0, 8, 0];

    struct Progress(AtomicU64);

    impl Watch for Progress {
        fn begin(&self, _: Option<u64>) {}

        fn advance(&self, bytes: u64) {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn is_wanted(kind: RecordType) -> bool {
        kind == RecordType::MMAP
    }

    /// Of mappings everything, of samples the start.
    fn extent(kind: RecordType) -> Extent {
        match kind {
            RecordType::SAMPLE => Extent::Head,
            kind => Extent::whole_if(is_wanted(kind)),
        }
    }

    /// Returns offsets and contents of the wanted records.
    fn skimmed(bytes: &[u8], endian: Endian) -> Vec<(u64, Vec<u8>)> {
        let progress = Progress(AtomicU64::new(0));
        let place = FileSection {
            offset: 104,
            size: bytes.len() as u64 - 104,
        };
        let mut skim = Skim::new(&bytes, place, endian, Some(&progress));
        let mut found = Vec::new();
        while let Some(raw) = skim.next(|kind| Extent::whole_if(is_wanted(kind))).unwrap() {
            assert_eq!(raw.kind, RecordType::MMAP);
            found.push((raw.offset, raw.bytes.to_vec()));
        }
        assert_eq!(progress.0.into_inner(), place.size);
        let mut skim = Skim::new(&bytes, place, endian, None);
        let mut whole = found.iter();
        while let Some(raw) = skim.next(extent).unwrap() {
            if is_wanted(raw.kind) {
                let expected = whole.next().expect("as many");
                assert!(*expected == (raw.offset, raw.bytes.to_vec()));
                continue;
            }
            let all = &bytes[raw.offset as usize..];
            let size = usize::from(RecordHeader::parse(all, endian).unwrap().size);
            assert_eq!(raw.kind, RecordType::SAMPLE);
            assert!(all[..size].starts_with(raw.bytes) && raw.bytes.len() >= size.min(HEAD));
        }
        assert_eq!(whole.next(), None);
        found
    }

    /// Likewise, by reading everything.
    fn streamed(bytes: &[u8], endian: Endian) -> Vec<(u64, Vec<u8>)> {
        let mut stream = RecordStream::new(&bytes[104..], endian, 104);
        let mut found = Vec::new();
        while let Some(item) = stream.next().unwrap() {
            if let StreamItem::Record(raw) = item
                && is_wanted(raw.kind)
            {
                found.push((raw.offset, raw.bytes.to_vec()));
            }
        }
        found
    }

    #[test]
    fn the_records_are_those_of_a_whole_pass() {
        for endian in [Endian::Little, Endian::Big] {
            let bytes = records(endian);
            let found = skimmed(&bytes, endian);
            assert!(found.len() > 300);
            assert!(found == streamed(&bytes, endian));
        }
    }

    #[test]
    fn damage_ends_a_pass_at_the_same_record() {
        let bytes = records(Endian::Little);
        for cut in (104..bytes.len()).step_by(9973).chain([104, 105, 111, 112]) {
            let cut = bytes[..cut].to_vec();
            assert!(skimmed(&cut, Endian::Little) == streamed(&cut, Endian::Little));
        }
        let starts: Vec<u64> = RecordStarts::of(&bytes).collect();
        for &start in starts.iter().step_by(501) {
            let mut damaged = bytes.clone();
            damaged[start as usize + 6..][..2].copy_from_slice(&[7, 0]);
            assert!(skimmed(&damaged, Endian::Little) == streamed(&damaged, Endian::Little));
        }
    }

    /// The offsets of all records.
    struct RecordStarts<'a>(RecordStream<&'a [u8]>);

    impl<'a> RecordStarts<'a> {
        fn of(bytes: &'a [u8]) -> Self {
            RecordStarts(RecordStream::new(&bytes[104..], Endian::Little, 104))
        }
    }

    impl Iterator for RecordStarts<'_> {
        type Item = u64;

        fn next(&mut self) -> Option<u64> {
            loop {
                if let StreamItem::Record(raw) = self.0.next().unwrap()? {
                    return Some(raw.offset);
                }
            }
        }
    }
}
