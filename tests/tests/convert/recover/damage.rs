//! Damaged bytes among the records: the others survive.

use std::fs;

use perfdata_convert::error::Error;
use perfdata_convert::io::Input;
use perfdata_convert::recover::{Gap, Recovery};
use perfdata_convert::verify::Report;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::record::RecordHeader;
use perfdata_tests::convert::open;
use perfdata_tests::fuzz::Numbers;
use perfdata_tests::is_thorough;
use perfdata_tests::recordings::{self, Recording};

use super::{Bench, Item, items};

/// Returns the first record in `wanted` that is not in `found`, in order.
fn missing<'a>(wanted: &'a [&Item], found: &[Item]) -> Option<&'a Item> {
    let mut found = found.iter();
    wanted
        .iter()
        .copied()
        .find(|item| !found.any(|other| other.bytes == item.bytes))
}

/// With damaged bytes among the records, the records outside of them survive, and the report
/// contains the offset.
fn survives_damage(recording: &Recording) -> Result<(), String> {
    let is_large = fs::metadata(&recording.path).is_ok_and(|meta| meta.len() > 64 << 10);
    if is_large && !is_thorough() {
        return Ok(());
    }
    let Some(mut patient) = Patient::of(recording)? else {
        return Ok(());
    };
    let bench = Bench::new();
    let rounds = if is_thorough() { 64 } else { 8 };
    for round in 0..rounds {
        let damage = Damage::in_place(&mut patient.numbers, patient.start, patient.end);
        let place = format!(
            "round {round}, {:#x} to {:#x}, kind {}",
            damage.from, damage.to, damage.kind
        );
        let recovered = patient
            .recover(&bench, &damage)
            .map_err(|error| format!("{place}: {error}"))?;
        let Some((recovery, found)) = recovered else {
            continue;
        };
        let damaged = damage.apply(&patient.whole);
        let hit: Vec<&Item> = patient
            .all
            .iter()
            .filter(|item| damage.hits(item))
            .collect();
        let (low, high) = hit.iter().fold((u64::MAX, 0), |(low, high), item| {
            (low.min(item.start), high.max(item.end))
        });
        let names =
            |gap: &Gap| gap.place.offset <= high && gap.place.end().is_some_and(|end| end >= low);
        let is_told = recovery
            .losses
            .iter()
            .any(|line| line.contains("ends inside a record"));
        // A damaged record that is still valid, for example one of an unknown type, is preserved.
        let stays = |item: &&Item| {
            found
                .iter()
                .any(|left| left.bytes == damaged[item.start as usize..item.end as usize])
        };
        let is_less = found.len() < patient.all.len() && !hit.iter().all(stays);
        if is_less && !is_told && !recovery.skipped.iter().any(names) {
            return Err(format!(
                "{place}: a record is lost and nothing is said: {:?}",
                recovery.skipped
            ));
        }
        let is_compressed = patient.all.iter().any(|item| item.compressed);
        if let Some(wide) = recovery
            .skipped
            .iter()
            .find(|gap| !is_compressed && !names(gap))
        {
            return Err(format!("{place}: skipped elsewhere: {wide}"));
        }
    }
    Ok(())
}

/// All kinds of damage, including damage that moves the following data.
fn survives_any_damage(recording: &Recording) -> Result<(), String> {
    let Some(mut patient) = Patient::of(recording)? else {
        return Ok(());
    };
    let bench = Bench::new();
    let mut failures = Vec::new();
    for round in 0..16 {
        let damage = Damage::any(
            &mut patient.numbers,
            &patient.whole,
            patient.start,
            patient.end,
        );
        if let Err(error) = patient.recover(&bench, &damage) {
            let Damage { from, to, kind, .. } = damage;
            failures.push(format!(
                "round {round}, {from:#x} to {to:#x}, kind {kind}: {error}"
            ));
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("\n  "))
    }
}

#[test]
fn any_damage() {
    let all = recordings::all();
    let step = if is_thorough() { 1 } else { 16 };
    let is_small = |recording: &&Recording| {
        fs::metadata(&recording.path).is_ok_and(|meta| meta.len() < 64 << 10)
    };
    let sound = |recording: &&Recording| {
        Input::open(&recording.path)
            .and_then(Report::of)
            .is_ok_and(|r| r.is_clean())
    };
    let some: Vec<Recording> = all
        .iter()
        .filter(|recording| step == 1 || is_small(recording))
        .step_by(step)
        .filter(sound)
        .cloned()
        .collect();
    recordings::check_all(&some, survives_any_damage);
}

/// Bytes that replace a range of a recording; an empty range is an offset at which they are
/// inserted.
#[derive(Debug)]
struct Damage {
    from: u64,
    to: u64,
    bytes: Vec<u8>,
    kind: usize,
}

impl Damage {
    /// Returns damage between `start` and `end`: zeros, ones or noise, of the same length as the
    /// replaced bytes.
    fn in_place(numbers: &mut Numbers, start: u64, end: u64) -> Self {
        let from = start + numbers.below((end - start) as usize) as u64;
        let most = 1 << numbers.below(9);
        let to = (from + 1 + numbers.below(most) as u64).min(end);
        let kind = numbers.below(3);
        let byte = |_| [0, 0xff, numbers.next_number() as u8][kind];
        Damage {
            from,
            to,
            bytes: (from..to).map(byte).collect(),
            kind,
        }
    }

    /// Returns the same, or a flipped bit, removed bytes, or inserted bytes: noise, or a copy of
    /// other bytes.
    fn any(numbers: &mut Numbers, whole: &[u8], start: u64, end: u64) -> Self {
        let plain = Self::in_place(numbers, start, end);
        let from = plain.from;
        match numbers.below(7) {
            kind @ 3 => {
                let byte = whole[from as usize] ^ (1 << numbers.below(8));
                Damage {
                    from,
                    to: from + 1,
                    bytes: vec![byte],
                    kind,
                }
            }
            kind @ 4 => Damage {
                bytes: Vec::new(),
                kind,
                ..plain
            },
            kind @ 5 => Damage {
                from,
                to: from,
                bytes: plain.bytes,
                kind,
            },
            kind @ 6 => {
                let copy = whole[plain.from as usize..plain.to as usize].to_vec();
                let to = start + numbers.below((end - start) as usize) as u64;
                Damage {
                    from: to,
                    to,
                    bytes: copy,
                    kind,
                }
            }
            _ => plain,
        }
    }

    fn apply(&self, whole: &[u8]) -> Vec<u8> {
        [
            &whole[..self.from as usize],
            &self.bytes,
            &whole[self.to as usize..],
        ]
        .concat()
    }

    fn hits(&self, item: &Item) -> bool {
        item.start < self.to.max(self.from + u64::from(self.from > item.start))
            && self.from < item.end
    }
}

/// A recording with damaged records.
struct Patient {
    whole: Vec<u8>,
    all: Vec<Item>,
    /// Offset after the metadata at the head of a pipe; `end` is the end of the records.
    start: u64,
    end: u64,
    /// Whether the attributes follow the records, as in files of perf inject.
    attrs_are_last: bool,
    numbers: Numbers,
}

impl Patient {
    /// Returns `None` if there are no records, or no complete ones.
    fn of(recording: &Recording) -> Result<Option<Self>, String> {
        if recording.path.is_dir() || recording.form.is_none() {
            return Ok(None);
        }
        if recording.name.contains("-file-crashed") || recording.name.ends_with("-pipe-cut") {
            return Ok(None);
        }
        let whole = fs::read(&recording.path).map_err(|error| error.to_string())?;
        // The metadata of a pipe may also be damaged. Then the data after it is reported, but not
        // the contents of the metadata.
        let all: Vec<Item> = items(&whole);
        let reader = open(whole.clone()).map_err(|error| error.to_string())?;
        let endian = reader.recording().endian;
        let attrs_are_last = match reader.container_layout() {
            ContainerLayout::File(file) => file.header.attrs.offset > file.header.data.offset,
            ContainerLayout::Pipe(_) => false,
        };
        let behind_metadata = |item: &&Item| {
            RecordHeader::parse(&item.bytes, endian)
                .is_some_and(|header| !header.kind.is_metadata())
        };
        let Some(first) = all.iter().find(behind_metadata) else {
            return Ok(None);
        };
        let (start, end) = (first.start, all.last().map_or(0, |item| item.end));
        let numbers = Numbers(crc32fast::hash(recording.name.as_bytes()).into());
        Ok(Some(Patient {
            start,
            end,
            whole,
            all,
            attrs_are_last,
            numbers,
        }))
    }

    /// Recovers the rest after `damage`, and returns it. Records outside of the damage survive. The
    /// result is intact, and does not change when it is recovered again. If the damage moves bytes,
    /// the offsets of the data after it are wrong; then only records before the damage survive, if
    /// the attributes do.
    fn recover(
        &self,
        bench: &Bench,
        damage: &Damage,
    ) -> Result<Option<(Recovery, Vec<Item>)>, String> {
        let moves = damage.to - damage.from != damage.bytes.len() as u64;
        let recovery = match bench.recover(&damage.apply(&self.whole), false) {
            Err(Error::Refused(_)) if moves && self.attrs_are_last => return Ok(None),
            other => other.map_err(|error| error.to_string())?,
        };
        bench.check_clean()?;
        let recovered = bench.recovered();
        bench
            .recover(&recovered, true)
            .map_err(|error| error.to_string())?;
        if bench.recovered() != recovered {
            return Err("what was recovered changes when it is recovered again".into());
        }
        let found = items(&recovered);
        // Compressed data continues from record to record.
        let is_exempt = |item: &&Item| {
            damage.hits(item)
                || (item.end > damage.from && (item.compressed || moves))
                || (moves && self.attrs_are_last)
        };
        let wanted: Vec<&Item> = self.all.iter().filter(|item| !is_exempt(item)).collect();
        match missing(&wanted, &found) {
            Some(lost) => Err(format!(
                "lost the record at {:#x}: {:?}",
                lost.start, recovery.skipped
            )),
            None => Ok(Some((recovery, found))),
        }
    }
}

mod damages {
    perfdata_tests::per_fixture!(super::survives_damage);
}
