//! The families of inputs. Each knows how many inputs it makes from a seed, and makes an input by
//! its number.

use perfdata_core::header::{ContainerKind, FileHeader, FileSection};
use perfdata_core::wire::Wire;
use perfdata_core::{DecodeContext, Endian};
use perfdata_tests::synth::{self, Buf, file::Magic, pipe::Pipe, record::frame};

use crate::fields::{Spot, spots};
use crate::seeds::{self, SMALL, Seed};

/// A kind of damage.
pub struct Family {
    pub name: &'static str,
    /// The recordings that are damaged.
    pub seeds: fn() -> Vec<Seed>,
    /// Returns the inputs for a seed.
    pub inputs: fn(&Seed) -> Box<dyn Inputs>,
    /// Number of inputs that are tested by default, selected evenly from all.
    pub sample: usize,
}

/// The inputs made from a seed.
pub trait Inputs {
    fn len(&self) -> usize;
    /// Returns an input and its description.
    fn make(&self, seed: &Seed, number: usize) -> (String, Vec<u8>);
}

pub const FAMILIES: &[Family] = &[
    Family {
        name: "as they are",
        seeds: with_crashers,
        inputs: |_| Box::new(Whole),
        sample: 1000,
    },
    Family {
        name: "cut",
        seeds: all_seeds,
        inputs: |seed| Box::new(Cut::of(seed)),
        sample: 300,
    },
    Family {
        name: "flipped byte",
        seeds: small_seeds,
        inputs: |seed| Box::new(Flip(seed.bytes.len())),
        sample: 300,
    },
    Family {
        name: "count or length",
        seeds: all_seeds,
        inputs: |seed| Box::new(Numbers::of(seed)),
        sample: 400,
    },
    Family {
        name: "sections",
        seeds: all_seeds,
        inputs: |seed| Box::new(Sections::of(seed)),
        sample: 150,
    },
    Family {
        name: "names",
        seeds: all_seeds,
        inputs: |_| Box::new(Names),
        sample: 90,
    },
    Family {
        name: "records",
        seeds: seeds::synthetic,
        inputs: |_| Box::new(Records),
        sample: 150,
    },
];

fn with_crashers() -> Vec<Seed> {
    let mut all = seeds::crashers();
    all.extend(all_seeds());
    all
}

fn all_seeds() -> Vec<Seed> {
    let mut all = seeds::synthetic();
    all.extend(seeds::fixtures());
    all
}

fn small_seeds() -> Vec<Seed> {
    let mut all = seeds::synthetic();
    all.extend(
        seeds::fixtures()
            .into_iter()
            .filter(|seed| seed.bytes.len() <= SMALL),
    );
    all.extend(seeds::crashers());
    all
}

struct Whole;

impl Inputs for Whole {
    fn len(&self) -> usize {
        1
    }

    fn make(&self, seed: &Seed, _: usize) -> (String, Vec<u8>) {
        ("whole".to_owned(), seed.bytes.clone())
    }
}

/// Truncation: at every byte of small recordings, at a thousand offsets of large ones.
struct Cut(usize);

impl Cut {
    const PLACES: usize = 1000;

    fn of(seed: &Seed) -> Self {
        Cut(if seed.bytes.len() <= SMALL {
            seed.bytes.len()
        } else {
            Self::PLACES
        })
    }
}

impl Inputs for Cut {
    fn len(&self) -> usize {
        self.0
    }

    fn make(&self, seed: &Seed, number: usize) -> (String, Vec<u8>) {
        let at = seed.bytes.len() * number / self.0;
        (format!("cut at {at}"), seed.bytes[..at].to_vec())
    }
}

/// Changes each byte once.
struct Flip(usize);

impl Inputs for Flip {
    fn len(&self) -> usize {
        self.0
    }

    fn make(&self, seed: &Seed, number: usize) -> (String, Vec<u8>) {
        let mut bytes = seed.bytes.clone();
        // Alternates between all bits of a byte and one bit.
        let bits = if number.is_multiple_of(2) {
            0xff
        } else {
            1 << (number / 2 % 8)
        };
        bytes[number] ^= bits;
        (format!("byte {number} ^ {bits:#x}"), bytes)
    }
}

/// Sets every count, size and offset to 0, 1, the largest value, and the largest value minus one.
struct Numbers(Vec<Spot>);

impl Numbers {
    const VALUES: [u64; 4] = [0, 1, u64::MAX, u64::MAX - 1];

    fn of(seed: &Seed) -> Self {
        Numbers(spots(&seed.bytes))
    }
}

impl Inputs for Numbers {
    fn len(&self) -> usize {
        self.0.len() * Self::VALUES.len()
    }

    fn make(&self, seed: &Seed, number: usize) -> (String, Vec<u8>) {
        let Spot { name, at, size } = &self.0[number / Self::VALUES.len()];
        let value = Self::VALUES[number % Self::VALUES.len()];
        let mut bytes = seed.bytes.clone();
        put(&mut bytes, *at, *size, value);
        (format!("{name} at {at} = {value:#x}"), bytes)
    }
}

/// Writes the low bytes of a number in the byte order of the recording.
fn put(bytes: &mut [u8], at: usize, size: usize, value: u64) {
    let is_big = bytes.starts_with(b"2ELIFREP");
    let Some(room) = bytes.get_mut(at..at + size) else {
        return;
    };
    for (number, byte) in room.iter_mut().enumerate() {
        let shift = if is_big { size - 1 - number } else { number };
        *byte = if shift < 8 {
            (value >> (8 * shift)) as u8
        } else {
            0
        };
    }
}

/// Sections of a file that overlap, or are outside of it, and IDs that overlap their own
/// attributes.
struct Sections {
    /// Offsets of the section descriptors in a file, and their values.
    places: Vec<(usize, FileSection)>,
    len: u64,
}

impl Sections {
    fn of(seed: &Seed) -> Self {
        let mut places = Vec::new();
        let bytes = &seed.bytes;
        let endian = if bytes.starts_with(b"2ELIFREP") {
            Endian::Big
        } else {
            Endian::Little
        };
        let section = |at: usize| {
            let bytes = bytes.get(at..)?;
            FileSection::decode(bytes, endian, DecodeContext::default())
                .ok()
                .map(|(section, _)| (at, section))
        };
        if ContainerKind::recognise(bytes).is_some_and(|(kind, _)| kind == ContainerKind::File)
            && let Ok((header, _)) = FileHeader::decode(bytes, endian, DecodeContext::default())
        {
            let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            let entry = whole(header.attr_size);
            let ids = (1..4).map(|n| {
                whole(header.attrs.offset)
                    .saturating_add(n * entry)
                    .saturating_sub(16)
            });
            let table = whole(header.data.end().unwrap_or(0));
            let table = (0..4).map(|n| table.saturating_add(16 * n));
            places.extend(
                [24, 40, 56]
                    .into_iter()
                    .chain(ids)
                    .chain(table)
                    .filter_map(section),
            );
        }
        Sections {
            places,
            len: bytes.len() as u64,
        }
    }

    /// Returns invalid offsets and sizes for a section.
    fn elsewhere(&self, at: usize, found: FileSection) -> Vec<FileSection> {
        let section = |offset: u64, size: u64| FileSection { offset, size };
        let mut all = vec![
            section(0, self.len),
            section(0, found.size),
            section(at as u64, found.size),
            section(at as u64, 16),
            section(self.len, 8),
            section(self.len - 1, 8),
            section(self.len.saturating_mul(2), 8),
            section(u64::MAX, 1),
            section(u64::MAX - 7, 8),
            section(1, u64::MAX),
            section(found.offset, !found.offset),
            section(found.offset, self.len),
            section(found.offset.wrapping_add(1), found.size),
            section(found.offset, 0),
        ];
        all.extend(
            self.places
                .iter()
                .map(|(_, other)| *other)
                .filter(|other| *other != found),
        );
        all
    }
}

impl Inputs for Sections {
    fn len(&self) -> usize {
        self.places
            .iter()
            .map(|(at, found)| self.elsewhere(*at, *found).len())
            .sum()
    }

    fn make(&self, seed: &Seed, number: usize) -> (String, Vec<u8>) {
        let all = self.places.iter().flat_map(|(at, found)| {
            self.elsewhere(*at, *found)
                .into_iter()
                .map(move |section| (*at, section))
        });
        let (at, section) = all.into_iter().nth(number).unwrap_or_default();
        let mut bytes = seed.bytes.clone();
        put(&mut bytes, at, 8, section.offset);
        put(&mut bytes, at + 8, 8, section.size);
        (format!("section at {at} = {section:?}"), bytes)
    }
}

/// Replaces every name in the recording by an unusual one: control characters, terminal escapes,
/// line feeds, and bytes that are not UTF-8.
pub struct Names;

impl Names {
    /// Minimum number of characters of a text that counts as a name.
    const LEAST: usize = 4;
    const NASTY: [&[u8]; 3] = [
        b"\x1b[31m\x1b]0;title\x07",
        b"\n\r\xff\xfe\xc2\x9b\x80\xe2\x80\xae\x7f",
        b"\"'\\\t\x08\0\xf0\x9f\xff|,=",
    ];
}

impl Inputs for Names {
    fn len(&self) -> usize {
        Self::NASTY.len()
    }

    fn make(&self, seed: &Seed, number: usize) -> (String, Vec<u8>) {
        let mut bytes = seed.bytes.clone();
        let header = bytes.len().min(16);
        let is_letter = |byte: &u8| (b' '..=b'~').contains(byte);
        for run in bytes[header..].chunk_by_mut(|a, b| is_letter(a) == is_letter(b)) {
            if run.len() >= Self::LEAST && run.iter().all(is_letter) {
                run.iter_mut()
                    .zip(Self::NASTY[number].iter().cycle())
                    .for_each(|(to, from)| *to = *from);
            }
        }
        (format!("names {number}"), bytes)
    }
}

/// Records of every type with impossible sizes and contents, before the other records of a pipe.
/// The seed determines only the byte order and whether events are known.
struct Records;

impl Records {
    const KINDS: u32 = 96;
    const FORMS: usize = 6;

    fn record(big: bool, kind: u32, form: usize) -> (String, Vec<u8>) {
        let header = |size: u16| Buf::new(big).u32(kind).u16(0xffff).u16(size).bytes;
        let filled = |byte: u8| {
            frame(
                big,
                kind,
                u16::from(byte) << 8 | u16::from(byte),
                &[byte; 65_535 - 8],
            )
        };
        match form {
            0 => ("of size 0".to_owned(), header(0)),
            1 => ("of size 7".to_owned(), header(7)),
            2 => ("of size 8".to_owned(), header(8)),
            3 => ("of 65535 zeros".to_owned(), filled(0)),
            4 => ("of 65535 ones".to_owned(), filled(0xff)),
            _ => {
                let words: Vec<u8> = (0..65_528_u32)
                    .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
                    .collect();
                (
                    "of 65535 bytes of noise".to_owned(),
                    frame(big, kind, 0, &words[..65_527]),
                )
            }
        }
    }
}

impl Inputs for Records {
    fn len(&self) -> usize {
        Self::KINDS as usize * Self::FORMS
    }

    fn make(&self, seed: &Seed, number: usize) -> (String, Vec<u8>) {
        let big = seed.bytes.starts_with(b"2ELIFREP");
        let kind = (number / Self::FORMS) as u32;
        let (what, record) = Self::record(big, kind, number % Self::FORMS);
        let basic = synth::file::basic(big);
        let records = synth::file::basic_records(big, &basic.events[0]);
        let records = synth::record::stream(&records);
        let bytes = if seeds::is_pipe(&seed.bytes) {
            let mut pipe = Pipe::new(big, Magic::V2).event(&basic.events[0]).bytes;
            pipe.extend(record);
            pipe.extend(records);
            pipe
        } else {
            let mut data = record;
            data.extend(records);
            synth::file::File { data, ..basic }.bytes()
        };
        (format!("type {kind} {what}"), bytes)
    }
}
