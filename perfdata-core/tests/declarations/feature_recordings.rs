//! Every feature section of every available recording: read, written, written in the other byte
//! order and damaged.
//!
//! A separate parser finds the sections, so that these tests depend only on the feature table.

use std::fs;
use std::path::Path;

use perfdata_core::describe::{Describe, Style, WireSize, opaque};
use perfdata_core::feature::{Feature, FeatureId, Section, tracing};
use perfdata_core::{DecodeContext, Endian};

use crate::{files, folders};

/// One section as stored in a recording.
struct Raw {
    file: String,
    id: FeatureId,
    bytes: Vec<u8>,
    endian: Endian,
    layout: DecodeContext,
    /// Whether it comes from a pipe, whose records some tools pad.
    pipe: bool,
}

impl Raw {
    fn decode(&self) -> Section {
        Section::decode(self.id, &self.bytes, self.endian, &self.layout)
            .unwrap_or_else(|error| panic!("{}: {error}", self.file))
    }
}

/// Recordings by other tools whose sections contain more than their content, and why.
const TAILS: &[(&str, &str)] = &[(
    "piped.header_features_aligned-6.12.data",
    "every record is padded to 8 bytes",
)];

fn other(endian: Endian) -> Endian {
    if endian == Endian::Little {
        Endian::Big
    } else {
        Endian::Little
    }
}

fn number(bytes: &[u8], at: usize, size: usize, endian: Endian) -> Option<u64> {
    let digits = bytes.get(at..at.checked_add(size)?)?;
    let fold = |value: u64, digit: &u8| value << 8 | u64::from(*digit);
    Some(if endian == Endian::Little {
        digits.iter().rev().fold(0, fold)
    } else {
        digits.iter().fold(0, fold)
    })
}

/// Passes the sections of `file` to `add`, as far as the file is complete.
fn walk(file: &[u8], add: &mut impl FnMut(u64, &[u8], Endian, bool)) -> Option<()> {
    let endian = match file.get(..8)? {
        b"PERFILE2" => Endian::Little,
        b"2ELIFREP" => Endian::Big,
        b"PERFFILE" if file.get(8) != Some(&0) => Endian::Little,
        b"PERFFILE" => Endian::Big,
        _ => return None,
    };
    let u64_at = |at: usize| number(file, at, 8, endian);
    let usize_at = |at: usize| usize::try_from(u64_at(at)?).ok();
    match u64_at(8)? {
        16 => {
            let mut at = 16_usize;
            loop {
                let kind = number(file, at, 4, endian)?;
                let size = usize::try_from(number(file, at + 6, 2, endian)?)
                    .ok()
                    .filter(|size| *size >= 8)?;
                let record = file.get(at..at.checked_add(size)?)?;
                if kind == 80 && size > 16 {
                    add(number(record, 8, 8, endian)?, &record[16..], endian, true);
                }
                let behind = match kind {
                    66 => number(record, 8, 4, endian)?,
                    71 => number(record, 8, 8, endian)?,
                    _ => 0,
                };
                at = at
                    .checked_add(size)?
                    .checked_add(usize::try_from(behind).ok()?)?;
                if kind == 66 {
                    add(
                        1,
                        file.get(at - usize::try_from(behind).ok()?..at)?,
                        endian,
                        true,
                    );
                }
            }
        }
        104 => {
            let data_size = usize_at(48).filter(|size| *size > 0)?;
            let mut entry = usize_at(40)?.checked_add(data_size)?;
            for bit in 0..256 {
                if u64_at(72 + bit / 64 * 8)? >> (bit % 64) & 1 == 1 {
                    let (offset, size) = (usize_at(entry)?, usize_at(entry + 8)?);
                    entry += 16;
                    add(
                        bit as u64,
                        file.get(offset..offset.checked_add(size)?)?,
                        endian,
                        false,
                    );
                }
            }
            Some(())
        }
        _ => None,
    }
}

/// Returns all sections of all recordings in a folder.
fn sections(folder: &Path) -> Vec<Raw> {
    let mut sections = Vec::new();
    for path in files(folder) {
        let bytes = fs::read(&path).expect("the file was listed a moment ago");
        let name = path
            .strip_prefix(folder)
            .unwrap_or(&path)
            .display()
            .to_string();
        let mut layout = DecodeContext::default();
        walk(&bytes, &mut |id, bytes, endian, pipe| {
            if id == 7 {
                layout.nr_cpus_available = number(bytes, 0, 4, endian)
                    .and_then(|n| u32::try_from(n).ok())
                    .unwrap_or(0);
            }
            let id = FeatureId(u32::try_from(id).unwrap_or(u32::MAX));
            sections.push(Raw {
                file: name.clone(),
                id,
                bytes: bytes.to_vec(),
                endian,
                layout,
                pipe,
            });
        });
    }
    sections
}

fn check(raw: &Raw) {
    let Raw {
        file,
        id,
        bytes,
        endian,
        layout,
        ..
    } = raw;
    let section = raw.decode();
    let name = format!("{file}: {id}");
    assert_eq!(
        &section.encode(*endian).unwrap(),
        bytes,
        "{name}: written as it was read"
    );

    let mut size = WireSize::default();
    section.describe("", Style::Plain, &mut size);
    assert_eq!(size.0, bytes.len(), "{name}: described whole");

    let tail_known = TAILS.iter().any(|(known, _)| file.ends_with(known));
    if raw.pipe && *id == FeatureId::TRACING_DATA {
        assert_eq!(
            tracing::len(bytes).unwrap(),
            bytes.len() - section.tail.len(),
            "{name}"
        );
        assert!(
            section.tail.len() < 8 && section.tail.iter().all(|&b| b == 0),
            "{name}: padding"
        );
    } else {
        assert!(
            section.tail.is_empty() != tail_known || section.tail.is_empty(),
            "{name}: tail {:02x?}",
            section.tail
        );
    }
    if !matches!(section.value, Feature::Unknown(_)) {
        assert_eq!(opaque(&section), None, "{name}: everything is known");
        if *id != FeatureId::BUILD_ID {
            assert_eq!(
                id.exact_len(bytes, *endian, layout),
                Some(bytes.len() - section.tail.len()),
                "{name}"
            );
        }
    }

    let swapped = section.encode(other(*endian)).unwrap();
    assert_eq!(
        swapped.len(),
        bytes.len(),
        "{name}: as long in the other byte order"
    );
    let back = Section::decode(*id, &swapped, other(*endian), layout)
        .unwrap_or_else(|e| panic!("{name} swapped: {e}"));
    assert_eq!(
        back, section,
        "{name}: means the same in the other byte order"
    );
}

/// Returns whether perf inject corrupted the section: it overwrote it with IDs and attributes.
fn is_overwritten(raw: &Raw) -> bool {
    raw.id == FeatureId::BUILD_ID
        && (raw.file.ends_with("pipe_injected.data") || raw.file.ends_with("pipe-injected.data"))
}

#[test]
fn every_section_of_every_recording() {
    let mut bad = Vec::new();
    for raw in folders()
        .iter()
        .flat_map(|folder| sections(folder))
        .filter(|raw| !raw.file.starts_with("crashers") && !raw.file.starts_with("defects"))
    {
        if is_overwritten(&raw) {
            let section = Section::decode(raw.id, &raw.bytes, raw.endian, &raw.layout);
            assert!(
                section.is_ok_and(|section| section.stops_early()),
                "{}: {}",
                raw.file,
                raw.id
            );
        } else if std::panic::catch_unwind(|| check(&raw)).is_err() {
            bad.push((raw.file, raw.id));
        }
    }
    assert_eq!(bad, [], "what is wrong with each stands above");
}

/// A small generator of numbers that are the same in every run (xorshift64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).expect("below a usize")
    }

    /// Damages a section like a bad disk, a faulty tool or an attacker.
    fn damage(&mut self, raw: &Raw) -> Raw {
        let mut bytes = raw.bytes.clone();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len());
            match self.below(8) {
                0 => bytes.truncate(at),
                1 => bytes.extend(self.next().to_le_bytes()),
                2..5 => {
                    let number = [0, 1, 3, 0x7fff_ffff, 0x8000_0000, u32::MAX][self.below(6)];
                    let digits = if raw.endian == Endian::Little {
                        number.to_le_bytes()
                    } else {
                        number.to_be_bytes()
                    };
                    bytes
                        .iter_mut()
                        .skip(at / 4 * 4)
                        .zip(digits)
                        .for_each(|(byte, digit)| *byte = digit);
                }
                _ => bytes
                    .iter_mut()
                    .skip(at)
                    .take(1)
                    .for_each(|byte| *byte ^= self.next().to_le_bytes()[3]),
            }
        }
        let odd = self.below(16);
        let mut layout = raw.layout;
        if odd == 0 {
            layout.nr_cpus_available = u32::try_from(self.below(9)).expect("below 9");
        }
        let id = if odd == 1 {
            FeatureId(u32::try_from(self.below(36)).expect("below 36"))
        } else {
            raw.id
        };
        let endian = if odd == 2 {
            other(raw.endian)
        } else {
            raw.endian
        };
        Raw {
            file: raw.file.clone(),
            id,
            bytes,
            endian,
            layout,
            pipe: raw.pipe,
        }
    }
}

#[test]
fn damaged_sections_are_errors_or_kept() {
    let sections: Vec<_> = folders()
        .iter()
        .flat_map(|folder| sections(folder))
        .filter(|raw| raw.bytes.len() <= 8192)
        .collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..if sections.is_empty() { 0 } else { 200_000 } {
        let intact = &sections[random.below(sections.len())];
        let raw = random.damage(intact);
        let Raw {
            file,
            id,
            bytes,
            endian,
            layout,
            ..
        } = &raw;
        let exact = id.exact_len(bytes, *endian, layout);
        assert!(exact.is_none_or(|len| len <= bytes.len()));
        match Section::decode(*id, bytes, *endian, layout) {
            Ok(section) => {
                read += 1;
                assert_eq!(
                    &section.encode(*endian).unwrap(),
                    bytes,
                    "{file}: {id} {bytes:02x?}"
                );
                let mut size = WireSize::default();
                section.describe("", Style::Plain, &mut size);
                assert_eq!(size.0, bytes.len(), "{file}: {id} {bytes:02x?}");
                opaque(&section);
            }
            Err(error) => {
                refused += 1;
                assert!(
                    error.offset().is_some_and(|at| at <= bytes.len() as u64),
                    "{file}: {error}"
                );
            }
        }
    }
    eprintln!("{read} damaged sections were read and written, {refused} refused");
    assert!(sections.is_empty() || read > 10_000 && refused > 10_000);
}
