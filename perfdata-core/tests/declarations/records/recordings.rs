//! Every record of every available recording.
//!
//! A separate parser finds the records, so that these tests depend only on the table of records.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use perfdata_core::attr::{Attr, SampleType};
use perfdata_core::record::{Body, RawRecord, RecordType, TABLE};
use perfdata_core::wire::Wire;
use perfdata_core::{DecodeContext, Endian};

use crate::records::check;
use crate::{files, folders};

/// Recordings that do not end with a complete record, and why.
const CUT: &[(&str, &str)] = &[
    (
        "sleep.compressed2.pipe.data",
        "what perf said on the terminal ends it",
    ),
    (
        "piped.corrupted.zero_size_sample-3.2.data",
        "a size is damaged",
    ),
    (
        "x86_64-6.1/hw_stat.data",
        "perf left zeros in place of records",
    ),
    ("x86_64-6.1/pipe_cut.data", "cut"),
    ("x86_64-7.2/pipe_cut.data", "cut"),
    ("7.2-x86_64-pipe-cut.data", "cut"),
];

/// Start of the records of a recording, and the data needed to decode them.
struct Walk<'a> {
    file: &'a [u8],
    endian: Endian,
    attrs: Vec<(Attr, Vec<u64>)>,
}

impl<'a> Walk<'a> {
    fn number(&self, at: usize) -> Option<u64> {
        let word = *self.file.get(at..)?.first_chunk()?;
        Some(if self.endian == Endian::Little {
            u64::from_le_bytes(word)
        } else {
            u64::from_be_bytes(word)
        })
    }

    fn size(&self, at: usize) -> Option<usize> {
        usize::try_from(self.number(at)?).ok()
    }

    fn section(&self, at: usize) -> Option<&'a [u8]> {
        let (offset, size) = (self.size(at)?, self.size(at + 8)?);
        self.file.get(offset..offset.checked_add(size)?)
    }

    /// Reads the header of `file`; also returns the records.
    fn open(file: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let endian = match file.get(..8)? {
            b"PERFILE2" => Endian::Little,
            b"2ELIFREP" => Endian::Big,
            _ => return None,
        };
        let mut walk = Walk {
            file,
            endian,
            attrs: Vec::new(),
        };
        if walk.number(8)? == 16 {
            return Some((walk, &file[16..]));
        }
        let room = walk.size(16)?;
        let attrs = walk.section(24)?;
        let data = match walk.section(40)? {
            [] => file.get(walk.size(40)?..)?,
            data => data,
        };
        for (index, entry) in attrs.chunks_exact(room).enumerate() {
            let layout = DecodeContext::default().with_attr_room(u32::try_from(room - 16).ok()?);
            let (attr, _) = Attr::decode(entry, endian, layout).ok()?;
            let ids = walk.section(walk.size(24)? + index * room + room - 16)?;
            let ids = ids.as_chunks::<8>().0;
            let ids = ids.iter().map(|id| match endian {
                Endian::Little => u64::from_le_bytes(*id),
                Endian::Big => u64::from_be_bytes(*id),
            });
            walk.attrs.push((attr, ids.collect()));
        }
        Some((walk, data))
    }

    /// Returns the layout of `raw` by its event ID, whose offset follows from the first attribute.
    fn layout(&self, raw: &RawRecord<'_>) -> DecodeContext {
        let Some((first, _)) = self.attrs.first() else {
            return DecodeContext::default();
        };
        let has = |part| first.sample_type.has(part);
        let before = |parts: &[SampleType]| parts.iter().filter(|&&part| has(part)).count();
        let id = if raw.kind == RecordType::SAMPLE {
            let parts = [
                SampleType::IP,
                SampleType::TID,
                SampleType::TIME,
                SampleType::ADDR,
            ];
            raw.word(if has(SampleType::IDENTIFIER) {
                8
            } else {
                8 + 8 * before(&parts)
            })
        } else {
            let words = if has(SampleType::IDENTIFIER) {
                0
            } else {
                before(&[SampleType::CPU, SampleType::STREAM_ID])
            };
            raw.bytes
                .len()
                .checked_sub(8 * (words + 1))
                .and_then(|at| raw.word(at))
        };
        let known = has(SampleType::IDENTIFIER) || has(SampleType::ID);
        let owner = self
            .attrs
            .iter()
            .find(|(_, ids)| known && id.is_some_and(|id| ids.contains(&id)));
        DecodeContext::of_attr(owner.map_or(first, |(attr, _)| attr))
    }

    /// Checks all `records`; returns the bytes after the last complete one.
    fn check<'r>(
        &mut self,
        mut records: &'r [u8],
        seen: &mut BTreeMap<RecordType, usize>,
    ) -> &'r [u8] {
        while let Ok(raw) = RawRecord::first(records, self.endian, 0) {
            let layout = self.layout(&raw);
            let record = check::record(raw.bytes, self.endian, &layout)
                .unwrap_or_else(|e| panic!("{e}: {:02x?} {layout:?}", raw.bytes));
            let carrier = [
                RecordType::HEADER_FEATURE,
                RecordType::COMPRESSED,
                RecordType::COMPRESSED2,
            ];
            assert!(
                carrier.contains(&raw.kind) || record.opaque().is_none(),
                "{record:#x?}"
            );
            assert!(
                raw.kind != RecordType::SAMPLE || record.tail.is_empty(),
                "{record:#x?} {layout:?}"
            );
            if let Body::HeaderAttr(body) = record.body {
                self.attrs.push((body.attr, body.ids.0));
            }
            *seen.entry(raw.kind).or_default() += 1;
            let payload = usize::try_from(raw.payload_len().unwrap()).unwrap();
            records = records.get(raw.bytes.len() + payload..).unwrap_or_default();
        }
        records
    }
}

#[test]
fn every_record_of_every_recording() {
    let mut seen = BTreeMap::new();
    let mut bad = Vec::new();
    let recordings = folders().into_iter().flat_map(|folder| files(&folder));
    for path in recordings.filter(|path| !is_damaged(path)) {
        let file = fs::read(&path).expect("the file was listed a moment ago");
        let whole = std::panic::AssertUnwindSafe(|| {
            if let Some((mut walk, records)) = Walk::open(&file) {
                let rest = walk.check(records, &mut seen);
                let known = CUT.iter().any(|(name, _)| path.ends_with(name));
                assert_eq!(
                    rest.is_empty(),
                    !known,
                    "{} bytes that are no record",
                    rest.len()
                );
            }
        });
        if std::panic::catch_unwind(whole).is_err() {
            bad.push(path);
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
    println!("{seen:?}");
    let missing: Vec<_> = TABLE
        .iter()
        .map(|info| info.kind)
        .filter(|kind| !seen.contains_key(kind))
        .collect();
    println!("in no recording: {missing:?}");
}

/// Returns whether somebody damaged the recording on purpose.
fn is_damaged(path: &Path) -> bool {
    path.iter()
        .any(|folder| folder == "crashers" || folder == "defects")
}
