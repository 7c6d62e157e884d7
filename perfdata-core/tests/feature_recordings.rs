//! Every feature section of every recording at hand: read, written, written in the other byte order and damaged.
//!
//! The sections are found by a walk of its own, so that these tests depend on nothing but the feature table.

use std::fs;
use std::path::{Path, PathBuf};

use perfdata_core::describe::{Describe, Style, WireSize, opaque};
use perfdata_core::feature::{Feature, FeatureId, Section, tracing};
use perfdata_core::{Endian, Layout};

/// One section as it stands in a recording.
struct Raw {
    file: String,
    id: FeatureId,
    bytes: Vec<u8>,
    endian: Endian,
    layout: Layout,
    /// Whether it was found in a pipe, whose records some tools pad.
    pipe: bool,
}

impl Raw {
    fn decode(&self) -> Section {
        Section::decode(self.id, &self.bytes, self.endian, &self.layout)
            .unwrap_or_else(|error| panic!("{}: {error}", self.file))
    }
}

/// Recordings by other tools whose sections hold more than their content, and why.
const TAILS: &[(&str, &str)] = &[("piped.header_features_aligned-6.12.data", "every record is padded to 8 bytes")];

fn other(endian: Endian) -> Endian {
    if endian == Endian::Little { Endian::Big } else { Endian::Little }
}

fn number(bytes: &[u8], at: usize, size: usize, endian: Endian) -> Option<u64> {
    let digits = bytes.get(at..at.checked_add(size)?)?;
    let fold = |value: u64, digit: &u8| value << 8 | u64::from(*digit);
    Some(if endian == Endian::Little { digits.iter().rev().fold(0, fold) } else { digits.iter().fold(0, fold) })
}

/// The sections of `file`, as far as it is whole.
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
                let size = usize::try_from(number(file, at + 6, 2, endian)?).ok().filter(|size| *size >= 8)?;
                let record = file.get(at..at.checked_add(size)?)?;
                if kind == 80 && size > 16 {
                    add(number(record, 8, 8, endian)?, &record[16..], endian, true);
                }
                let behind = match kind {
                    66 => number(record, 8, 4, endian)?,
                    71 => number(record, 8, 8, endian)?,
                    _ => 0,
                };
                at = at.checked_add(size)?.checked_add(usize::try_from(behind).ok()?)?;
                if kind == 66 {
                    add(1, file.get(at - usize::try_from(behind).ok()?..at)?, endian, true);
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
                    add(bit as u64, file.get(offset..offset.checked_add(size)?)?, endian, false);
                }
            }
            Some(())
        }
        _ => None,
    }
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if !path.extension().is_some_and(|ext| ext == "txt" || ext == "gz" || ext == "cmd" || ext == "md") {
            found.push(path);
        }
    }
}

/// All sections of all recordings in a folder beside the repository.
fn sections(folder: &str) -> Vec<Raw> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(folder);
    let mut paths = Vec::new();
    files(&dir, &mut paths);
    paths.sort();
    if paths.is_empty() {
        eprintln!("skipped: no recordings in {}", dir.display());
    }
    let mut sections = Vec::new();
    for path in paths {
        let bytes = fs::read(&path).expect("the file was listed a moment ago");
        let name = path.strip_prefix(&dir).unwrap_or(&path).display().to_string();
        let mut layout = Layout::default();
        walk(&bytes, &mut |id, bytes, endian, pipe| {
            if id == 7 {
                layout.nr_cpus_available = number(bytes, 0, 4, endian).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
            }
            let id = FeatureId(u32::try_from(id).unwrap_or(u32::MAX));
            sections.push(Raw { file: name.clone(), id, bytes: bytes.to_vec(), endian, layout, pipe });
        });
    }
    sections
}

fn check(raw: &Raw) {
    let Raw { file, id, bytes, endian, layout, .. } = raw;
    let section = raw.decode();
    let name = format!("{file}: {id}");
    assert_eq!(&section.encode(*endian).unwrap(), bytes, "{name}: written as it was read");

    let mut size = WireSize::default();
    section.describe("", Style::Plain, &mut size);
    assert_eq!(size.0, bytes.len(), "{name}: described whole");

    let tail_known = TAILS.iter().any(|(known, _)| file.ends_with(known));
    if raw.pipe && *id == FeatureId::TRACING_DATA {
        assert_eq!(tracing::len(bytes).unwrap(), bytes.len() - section.tail.len(), "{name}");
        assert!(section.tail.len() < 8 && section.tail.iter().all(|&b| b == 0), "{name}: padding");
    } else {
        assert!(section.tail.is_empty() != tail_known || section.tail.is_empty(), "{name}: tail {:02x?}", section.tail);
    }
    if !matches!(section.value, Feature::Unknown(_)) {
        assert_eq!(opaque(&section), None, "{name}: everything is known");
        if *id != FeatureId::BUILD_ID {
            assert_eq!(id.exact_len(bytes, *endian, layout), Some(bytes.len() - section.tail.len()), "{name}");
        }
    }

    let swapped = section.encode(other(*endian)).unwrap();
    assert_eq!(swapped.len(), bytes.len(), "{name}: as long in the other byte order");
    let back = Section::decode(*id, &swapped, other(*endian), layout).unwrap_or_else(|e| panic!("{name} swapped: {e}"));
    assert_eq!(back, section, "{name}: means the same in the other byte order");
}

/// Checks all sections of the recordings in a folder, and that each exception is still needed.
fn check_all(folder: &str, damaged: &[(&str, FeatureId)]) {
    let mut bad = Vec::new();
    let sections = sections(folder);
    for raw in sections.iter().filter(|raw| !raw.file.starts_with("crashers")) {
        if damaged.contains(&(&raw.file, raw.id)) {
            assert!(Section::decode(raw.id, &raw.bytes, raw.endian, &raw.layout).is_err(), "{}: {}", raw.file, raw.id);
        } else if std::panic::catch_unwind(|| check(raw)).is_err() {
            bad.push((&raw.file, raw.id));
        }
    }
    assert_eq!(bad, []);
}

#[test]
fn our_recordings() {
    // perf inject wrote ids and attributes over the section.
    let overwritten = |file| (file, FeatureId::BUILD_ID);
    check_all("recordings", &["x86_64-6.12/pipe_injected.data", "x86_64-7.2/pipe_injected.data"].map(overwritten));
}

#[test]
fn published_recordings() {
    check_all("corpus", &[]);
}
