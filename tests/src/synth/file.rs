//! Recordings in file mode: header, IDs, attributes, data, feature table, feature sections.

use super::attr::{Attr, Stamp, sample_type};
use super::buf::{Buf, count};
use super::feature_events::{self, Event};
use super::kernel;
use super::kind;
use super::record::{self, Case, Scribe, misc};
use super::sink;
use super::user;

/// The first eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Magic {
    /// `PERFILE2`, stored as a number and therefore reversed in big-endian files (since 3.4).
    V2,
    /// `PERFFILE`, a plain string that does not show the byte order.
    V1,
}

impl Magic {
    /// Appends the magic.
    pub fn put(self, b: Buf) -> Buf {
        match self {
            Magic::V2 => b.u64(u64::from_le_bytes(*b"PERFILE2")),
            Magic::V1 => b.bytes(b"PERFFILE"),
        }
    }
}

/// A recording in file mode, which can be edited before it is written.
#[derive(Clone, Debug)]
pub struct File {
    /// Byte order.
    pub big: bool,
    /// First eight bytes.
    pub magic: Magic,
    /// 104, or 72 before features existed.
    pub header_size: u64,
    /// The attributes with their IDs.
    pub events: Vec<Event>,
    /// IDs and names of event types (until 3.11), between attributes and data.
    pub event_types: Vec<(u64, String)>,
    /// Zero bytes before the data.
    pub hole: usize,
    /// The record stream.
    pub data: Vec<u8>,
    /// Bits and sections in any order; bits up to 255.
    pub features: Vec<(u32, Vec<u8>)>,
    /// Bytes between the feature table and the first section, where the writer dropped a feature.
    pub gap: Vec<u8>,
    /// Bytes after the last section.
    pub tail: Vec<u8>,
    /// Size of the recorder's `unsigned long` in bytes, the unit of the feature bitmap: 8 or 4.
    pub word: usize,
    /// Whether IDs and attributes follow the data instead of preceding them (`perf inject` of a
    /// pipe, since 6.12); only without features.
    pub attrs_behind_data: bool,
    /// Whether the recorder was killed: the size of the data is 0 and everything after them is
    /// missing.
    pub crashed: bool,
}

impl File {
    /// Returns a recording of these events without records and features.
    pub fn new(big: bool, events: Vec<Event>) -> Self {
        File {
            big,
            magic: Magic::V2,
            header_size: 104,
            events,
            event_types: Vec::new(),
            hole: 0,
            data: Vec::new(),
            features: Vec::new(),
            gap: Vec::new(),
            tail: Vec::new(),
            word: 8,
            attrs_behind_data: false,
            crashed: false,
        }
    }

    /// Returns the size of an entry of the attrs section in bytes.
    fn attr_size(&self) -> u64 {
        self.events
            .first()
            .map_or(144, |event| event.attr.room() as u64)
            + 16
    }

    /// Returns the size of all IDs in bytes.
    fn ids_size(&self) -> u64 {
        self.events.iter().map(|event| count(&event.ids) * 8).sum()
    }

    /// Returns the offset of the IDs, which the attributes follow.
    fn ids_offset(&self) -> u64 {
        if self.attrs_behind_data {
            self.header_size + self.data.len() as u64
        } else {
            self.header_size
        }
    }

    fn attrs_offset(&self) -> u64 {
        self.ids_offset() + self.ids_size()
    }

    fn attrs_bytes(&self) -> u64 {
        count(&self.events) * self.attr_size()
    }

    fn event_types_bytes(&self) -> u64 {
        count(&self.event_types) * 72
    }

    /// Returns the offset of the record stream.
    pub fn data_offset(&self) -> u64 {
        if self.attrs_behind_data {
            return self.header_size;
        }
        self.attrs_offset() + self.attrs_bytes() + self.event_types_bytes() + self.hole as u64
    }

    /// Adds or replaces a feature.
    pub fn set_feature(&mut self, bit: u32, section: Vec<u8>) {
        self.features.retain(|feature| feature.0 != bit);
        self.features.push((bit, section));
    }

    /// Returns the feature bitmap: an array of `unsigned long`, each in the file's byte order.
    fn bitmap(&self) -> [u8; 32] {
        let mut map = [0; 32];
        for (bit, _) in &self.features {
            let byte = *bit as usize / 8;
            let at = match self.big {
                true => byte - byte % self.word + self.word - 1 - byte % self.word,
                false => byte,
            };
            map[at] |= 1 << (bit % 8);
        }
        map
    }

    fn header(&self) -> Vec<u8> {
        let event_types = match self.event_types_bytes() {
            0 => [0, 0],
            size => [self.attrs_offset() + self.attrs_bytes(), size],
        };
        let data_size = if self.crashed {
            0
        } else {
            self.data.len() as u64
        };
        let header = Buf::new(self.big)
            .with(|b| self.magic.put(b))
            .u64s(&[self.header_size, self.attr_size()])
            .u64s(&[self.attrs_offset(), self.attrs_bytes()])
            .u64s(&[self.data_offset(), data_size])
            .u64s(&event_types);
        if self.header_size == 72 {
            header.bytes
        } else {
            header.bytes(&self.bitmap()).bytes
        }
    }

    /// Returns all IDs, then all attributes, each with the offset and size of its IDs.
    fn attrs(&self) -> Vec<u8> {
        let mut offset = self.ids_offset();
        Buf::new(self.big)
            .each(&self.events, |b, event| b.u64s(&event.ids))
            .each(&self.events, |b, event| {
                let size = count(&event.ids) * 8;
                let b = b.bytes(&event.attr.bytes(self.big)).u64s(&[offset, size]);
                offset += size;
                b
            })
            .bytes
    }

    /// Returns the whole file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut file = Buf::new(self.big).bytes(&self.header());
        if self.attrs_behind_data {
            assert!(
                self.features.is_empty(),
                "the feature table would lie on the ids"
            );
            return file
                .bytes(&self.data)
                .bytes(&self.attrs())
                .bytes(&self.tail)
                .bytes;
        }
        file = file
            .bytes(&self.attrs())
            .each(&self.event_types, |b, (id, name)| {
                user::event_type(b, *id, name)
            })
            .zeros(self.hole);
        assert_eq!(file.len() as u64, self.data_offset());
        file = file.bytes(&self.data);
        if self.crashed {
            return file.bytes;
        }
        let mut features: Vec<_> = self.features.iter().collect();
        features.sort_by_key(|feature| feature.0);
        let mut offset = (file.len() + 16 * features.len() + self.gap.len()) as u64;
        file.each(&features, |b, (_, section)| {
            let b = b.u64(offset).u64(count(section));
            offset += count(section);
            b
        })
        .bytes(&self.gap)
        .each(&features, |b, (_, section)| b.bytes(section))
        .bytes(&self.tail)
        .bytes
    }
}

/// Returns a file that every perf since 3.12 can read: one event, and a process that starts, runs
/// and ends.
pub fn basic(big: bool) -> File {
    use sample_type::*;
    let attr = Attr {
        kind: 1,
        size: 96,
        ..Attr::new(
            IP | TID | TIME | CPU | PERIOD,
            "inherit mmap comm freq task sample_id_all",
        )
    };
    let mut file = File::new(
        big,
        vec![Event {
            name: "cpu-clock".into(),
            attr,
            ids: vec![1],
        }],
    );
    file.data = record::stream(&basic_records(big, &file.events[0]));
    file.features = [
        (3, Buf::new(big).str("recorder")),
        (6, Buf::new(big).str("x86_64")),
        (7, Buf::new(big).u32(4).u32(4)),
        (12, feature_events::event_desc(Buf::new(big), &file.events)),
    ]
    .map(|(bit, section)| (bit, section.bytes))
    .to_vec();
    file
}

/// Returns the same file with an event name that perf does not generate, and without IDs, which
/// perf before 5.x wrote only for several events.
pub fn without_ids(big: bool) -> File {
    let mut file = basic(big);
    for event in &mut file.events {
        event.name = "mine".into();
        event.ids.clear();
    }
    let section = feature_events::event_desc(Buf::new(big), &file.events).bytes;
    file.set_feature(feature_events::EVENT_DESC, section);
    file
}

/// Returns the records of [`basic`].
pub fn basic_records(big: bool, event: &Event) -> Vec<Case> {
    let mut s = Scribe::new(
        big,
        event.attr.clone(),
        Stamp {
            id: event.ids[0],
            ..Stamp::SOME
        },
    );
    let task = s.stamp.task();
    s.kernel("COMM", kind::COMM, 1 << 13, |b| {
        kernel::comm(b, task, "true")
    });
    s.kernel("MMAP", kind::MMAP, misc::USER, |b| {
        kernel::mmap(b, task, [0x40_0000, 0x2000, 0], "/usr/bin/true")
    });
    for _ in 0..3 {
        s.sample("", |sample| sample.ip = 0x40_1234);
    }
    let time = s.stamp.time;
    s.kernel("EXIT", kind::EXIT, 0, |b| {
        kernel::fork(b, task, (1, task.1), time)
    });
    s.user("FINISHED_ROUND", kind::FINISHED_ROUND, 0, |b| b);
    s.cases
}

/// Returns one valid recording with every record type, except compressed ones, and every feature,
/// except DIR_FORMAT, which exists only in directories.
pub fn kitchen_sink(big: bool) -> Vec<u8> {
    sink::file(big).bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bitmap(big: bool, word: usize, bits: &[u32]) -> [u8; 32] {
        let features = bits.iter().map(|bit| (*bit, Vec::new())).collect();
        File {
            word,
            features,
            ..File::new(big, Vec::new())
        }
        .bitmap()
    }

    #[test]
    fn the_bitmap_is_an_array_of_long() {
        let start = |map: [u8; 32]| -> [u8; 8] { map[..8].try_into().expect("8 bytes") };
        assert_eq!(start(bitmap(false, 8, &[3, 34])), [8, 0, 0, 0, 4, 0, 0, 0]);
        assert_eq!(start(bitmap(true, 8, &[3, 34])), [0, 0, 0, 4, 0, 0, 0, 8]);
        assert_eq!(start(bitmap(true, 4, &[3, 34])), [0, 0, 0, 8, 0, 0, 0, 4]);
        assert_eq!(bitmap(true, 8, &[130])[23], 4);
    }

    #[test]
    fn a_killed_recording_ends_with_its_data() {
        let whole = basic(false);
        let cut = File {
            crashed: true,
            ..whole.clone()
        };
        let (whole, cut) = (whole.bytes(), cut.bytes());
        assert_eq!(cut[48..56], [0; 8]);
        assert_eq!(cut[..48], whole[..48]);
        assert_eq!(cut[56..], whole[56..cut.len()]);
    }
}
