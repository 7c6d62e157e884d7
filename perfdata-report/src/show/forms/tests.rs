//! Records in their form are the same as decoded ones.

use super::*;
use perfdata_core::Endian;
use perfdata_core::attr::{Attr, AttrFlags};
use perfdata_core::attr::{ReadFormat, SampleType};
use perfdata_core::names::EventNames;
use perfdata_core::recording::{Event, Events};

/// Numbers without a pattern, with many small ones, pairs and context markers among them.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        let word = self.0 ^ self.0 >> 29;
        match word % 8 {
            0 => u64::MAX,
            1 => u64::MAX << 32 | word >> 40,
            2 => 0u64.wrapping_sub(word >> 32 & 0xfff),
            3 => 0xffff_ffff_ffff_fe00,
            _ => word >> (word % 61),
        }
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

fn recording(endian: Endian, sample_type: SampleType, read_format: ReadFormat) -> Recording {
    let mut recording = Recording::new(endian);
    let attr = Attr {
        sample_type,
        read_format,
        flags: AttrFlags::default().with_sample_id_all(true),
        ..Attr::default()
    };
    let events = [7, 9].map(|id| Event {
        attr: attr.clone(),
        ids: vec![id],
    });
    recording.events = Events::from_iter(events);
    recording
}

fn record(kind: RecordType, misc: u16, endian: Endian, body: &[u8]) -> Vec<u8> {
    let word = |number: u64, size: usize| match endian {
        Endian::Little => number.to_le_bytes()[..size].to_vec(),
        Endian::Big => number.to_be_bytes()[8 - size..].to_vec(),
    };
    let size = u64::try_from(body.len() + 8).unwrap();
    [
        word(kind.0.into(), 4),
        word(misc.into(), 2),
        word(size, 2),
        body.to_vec(),
    ]
    .concat()
}

/// Writes each record twice, after another one of its form or not, and as an object of the fields
/// of the decoded record. Returns how many records have a form.
fn compare(records: &[Vec<u8>], recording: &Recording) -> usize {
    let names = EventNames::default();
    let mut forms = Forms::default();
    let mut have_forms = 0;
    for (at, bytes) in records.iter().chain(records).enumerate() {
        let inner = (at % 3 == 0).then_some(at);
        let raw = RawRecord::first(bytes, recording.endian, at as u64 * 1000).unwrap();
        let shown = Shown::new(&raw, inner, recording, &names);
        let mut expected = Json::compact();
        shown.json(&mut expected, false);
        expected.end_line();
        let mut out = Buffer::default();
        let mut is_decoded = false;
        forms.write(&raw, inner, recording, &mut out, || {
            is_decoded = true;
            Shown::new(&raw, inner, recording, &names)
        });
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(out.text()), text(&expected.out));
        have_forms += usize::from(!is_decoded);
    }
    have_forms
}

#[test]
fn samples_are_the_same_as_if_they_were_decoded() {
    let mut numbers = Numbers(1);
    let mut have_forms = 0;
    for choice in 0..3000_u64 {
        let endian = [Endian::Little, Endian::Big][choice as usize % 2];
        let sample_type = SampleType(numbers.0 >> 20 & 0x1_07ff | numbers.next() & 0x1_0000);
        let read_format = ReadFormat(numbers.0 >> 33 & 0x1f);
        let recording = recording(endian, sample_type, read_format);
        let word = |word: u64| match endian {
            Endian::Little => word.to_le_bytes(),
            Endian::Big => word.to_be_bytes(),
        };
        let (times, group) = (
            [
                ReadFormat::TOTAL_TIME_ENABLED,
                ReadFormat::TOTAL_TIME_RUNNING,
            ],
            read_format.has(ReadFormat::GROUP),
        );
        let records: Vec<_> = (0..4)
            .map(|at| {
                let mut body = Vec::new();
                for bit in [16, 0, 1, 2, 3, 6, 9, 7, 8, 4, 5, 10] {
                    if sample_type.0 >> bit & 1 == 0 {
                        continue;
                    }
                    let count = numbers.next() % 4;
                    match bit {
                        4 => {
                            let times = times.iter().filter(|&&time| read_format.has(time));
                            let more = [ReadFormat::ID, ReadFormat::LOST];
                            let more = more.iter().filter(|&&more| read_format.has(more));
                            let each = 1 + more.count() as u64;
                            let values = if group { count } else { 1 };
                            if group {
                                body.extend(word(count));
                            }
                            for _ in 0..times.count() as u64 + values * each {
                                body.extend(word(numbers.next()));
                            }
                        }
                        5 => {
                            body.extend(word(count));
                            (0..count).for_each(|_| body.extend(word(numbers.next())));
                        }
                        10 => {
                            let size = 4 + 8 * count;
                            let all = word(size);
                            body.extend(match endian {
                                Endian::Little => &all[..4],
                                Endian::Big => &all[4..],
                            });
                            body.extend(numbers.bytes(size as usize));
                        }
                        16 | 6 => body.extend(word([7, 9, 0, 8][at])),
                        _ => body.extend(word(numbers.next())),
                    }
                }
                record(RecordType::SAMPLE, (at as u16 % 2) + 1, endian, &body)
            })
            .collect();
        have_forms += compare(&records, &recording);
    }
    assert!(have_forms > 2000, "{have_forms}");
}

#[test]
fn other_records_are_the_same_as_if_they_were_decoded() {
    let mut numbers = Numbers(2);
    let mut have_forms = 0;
    for choice in 0..2000_u64 {
        let endian = [Endian::Little, Endian::Big][choice as usize % 2];
        let sample_type = SampleType(numbers.0 >> 20 & 0x1_02ce);
        let recording = recording(endian, sample_type, ReadFormat(0));
        for kind in (1..=23).map(RecordType) {
            let records: Vec<_> = (0..3)
                .map(|at| {
                    let len = 8 * (numbers.next() % 20) as usize;
                    let mut body = numbers.bytes(len);
                    // Names without and with characters that are escaped.
                    if at < 2 {
                        body.iter_mut()
                            .skip(32)
                            .for_each(|byte| *byte = b' ' + *byte % 64);
                    }
                    record(kind, [2, 0x4002, 1][at], endian, &body)
                })
                .collect();
            have_forms += compare(&records, &recording);
        }
    }
    assert!(have_forms > 10_000, "{have_forms}");
}
