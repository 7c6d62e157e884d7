//! Records of the same form as JSON, without decoding them.
//!
//! Two records of one type, event and `misc` word that consist of numbers at fixed places, counted
//! words and RAW data, or of numbers and a text, have the same fields in the same order. What is
//! between the values, which is most of the text, is therefore the same as well. The first such
//! record is decoded and written as any other. The [`Form`] that follows from it writes the others.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "offsets in a record, which has less than 64 KiB"
)]

use perfdata_core::attr::{ReadFormat, SampleType};
use perfdata_core::describe::{Leaf, Style, Visitor};
use perfdata_core::record::{CallchainContext, RawRecord, RecordType};
use perfdata_core::wire::until_nul;
use perfdata_core::{Endian, Recording};

use super::buffer::{Buffer, Known, Literal};
use super::digits::ROOM;
use super::is_filling;
use super::json::{Json, NumberForm, is_plain, push_contexts, push_string};
use super::record::{HeadNumber, RecordWriter, Shown, named_event};

/// Number of forms that are known at a time; a recording has few.
const FORMS: usize = 64;

/// Bytes of a word.
const WORD: usize = 8;

/// The characters that a byte of a record takes at most: a word of a callchain is written with
/// sixteen digits, a comma, two quotation marks and `0x`.
const PER_BYTE: usize = 3;

/// The forms of the records so far.
#[derive(Debug)]
pub struct Forms {
    /// The forms by their keys; a key that has no form is known as well.
    known: Vec<Option<(Key, Option<Form>)>>,
    /// The version of the state of the recording that they belong to.
    version: Option<u64>,
}

/// What the form of a record depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    kind: RecordType,
    misc: u16,
    is_inner: bool,
    /// The events that determine the layout and the name.
    event: Option<usize>,
    named: Option<usize>,
}

impl Key {
    /// Returns the key of a record whose form does not depend on its content.
    #[inline]
    fn of(raw: &RawRecord<'_>, inner: Option<usize>, recording: &Recording) -> Option<Self> {
        let events = &recording.events;
        let event = if raw.kind == RecordType::SAMPLE {
            let (event, sample) = events.look(raw)?;
            if !sample.is_whole() {
                return None;
            }
            Some(event)
        } else {
            events.fixed_record(raw)?;
            events.of_record(raw)
        };
        Some(Key {
            kind: raw.kind,
            misc: raw.misc,
            is_inner: inner.is_some(),
            event,
            named: named_event(raw, recording),
        })
    }

    /// Returns where the form is stored.
    #[inline]
    fn place(&self) -> usize {
        let event = self.event.unwrap_or_default();
        let number = self.kind.0 as usize ^ usize::from(self.misc) << 2 ^ event.wrapping_mul(5);
        number % FORMS
    }
}

impl Default for Forms {
    fn default() -> Self {
        Forms {
            known: (0..FORMS).map(|_| None).collect(),
            version: None,
        }
    }
}

impl Forms {
    /// Forgets all forms if they belong to another version of the state of the recording. A state
    /// without a version is different from all others.
    pub fn belong_to(&mut self, version: Option<u64>) {
        if version.is_none() || self.version != version {
            self.known.iter_mut().for_each(|form| *form = None);
            self.version = version;
        }
    }

    /// Appends a record as an object on one line. `show` decodes it if necessary.
    pub fn write<'a>(
        &mut self,
        raw: &RawRecord<'_>,
        inner: Option<usize>,
        recording: &Recording,
        out: &mut Buffer,
        show: impl FnOnce() -> Shown<'a>,
    ) {
        let generic = |shown: &Shown<'_>, out: &mut Buffer| {
            out.append(|text| {
                let mut json = Json::compact_in(std::mem::take(text));
                shown.json(&mut json, false);
                json.end_line();
                *text = json.out;
            });
        };
        let Some(key) = Key::of(raw, inner, recording) else {
            return generic(&show(), out);
        };
        let Some(place) = self.known.get_mut(key.place()) else {
            return generic(&show(), out);
        };
        match place {
            Some((known, Some(form))) if *known == key && form.is_that_of(raw) => {
                form.write(raw, inner, out);
            }
            // It has been tried.
            Some((known, _)) if *known == key => generic(&show(), out),
            _ => {
                let shown = show();
                let before = out.text().len();
                generic(&shown, out);
                let mut form = Form::of(&shown, raw, recording);
                let expected = out.text().get(before..).unwrap_or_default();
                form.take_if(|form| !form.gives(raw, inner, expected));
                *place = Some((key, form));
            }
        }
    }
}

/// How the records of one form are written.
#[derive(Debug)]
struct Form {
    pieces: Vec<Piece>,
    /// What follows the last value.
    end: Literal,
    /// Room that is needed in addition to [`PER_BYTE`] bytes for each byte of the record.
    room: usize,
    /// Size of what follows a text, in bytes.
    after_text: usize,
    /// The size of the record in bytes, if the form depends on it.
    size: Option<usize>,
}

/// A fixed text, and the value after it.
#[derive(Debug)]
struct Piece {
    before: Literal,
    value: Value,
    /// The last number here.
    known: Known,
}

/// A value, from the next bytes of the record if nothing else is said.
#[derive(Debug, Clone, Copy)]
enum Value {
    /// A number of the record as a whole.
    Head(HeadNumber),
    /// A number of `size` bytes.
    Number { size: usize, form: NumberForm },
    /// A count, and that many words of a callchain.
    Callchain { name: &'static str },
    /// A 32-bit count, and that many bytes.
    Raw,
    /// Bytes.
    Bytes { size: usize },
    /// A text up to the trailer.
    Text,
    /// Bytes that are not shown.
    Filling { size: usize },
}

impl Form {
    /// Returns the form of a record of which [`Key::of`] returns a key.
    fn of(shown: &Shown<'_>, raw: &RawRecord<'_>, recording: &Recording) -> Option<Form> {
        let layout = recording.events.layout_of(raw);
        let has = |part| raw.kind == RecordType::SAMPLE && layout.sample_type.has(part);
        let is_group = has(SampleType::READ) && layout.read_format.has(ReadFormat::GROUP);
        // The size then does not determine how many counters there are.
        if is_group && (has(SampleType::CALLCHAIN) || has(SampleType::RAW)) {
            return None;
        }
        let mut learner = Learner::default();
        shown.write_json(&mut learner);
        learner.json.end_line();
        learner.form(is_group.then_some(raw.bytes.len()))
    }

    /// Returns whether the form is that of a record with its key.
    #[inline]
    fn is_that_of(&self, raw: &RawRecord<'_>) -> bool {
        self.size.is_none_or(|size| size == raw.bytes.len())
    }

    /// Returns whether it writes a record as expected.
    fn gives(&mut self, raw: &RawRecord<'_>, inner: Option<usize>, expected: &[u8]) -> bool {
        let mut out = Buffer::default();
        self.write(raw, inner, &mut out);
        debug_assert!(out.text() == expected, "a record of this form");
        out.text() == expected
    }

    /// Appends a record.
    fn write(&mut self, raw: &RawRecord<'_>, inner: Option<usize>, out: &mut Buffer) {
        let room = self.room + PER_BYTE * raw.bytes.len();
        out.reserve(room);
        let mut rest = raw.body();
        for piece in &mut self.pieces {
            out.literal(&piece.before);
            match piece.value {
                Value::Head(number) => {
                    out.known_decimal(number.of(raw, inner), &mut piece.known);
                }
                Value::Number { size, form } => {
                    let number = number(&mut rest, size, raw.endian);
                    write_number(number, size, form, &mut piece.known, out);
                }
                Value::Callchain { name } => {
                    let count = number(&mut rest, WORD, raw.endian);
                    let words = take(&mut rest, (count as usize).saturating_mul(WORD));
                    write_callchain(name, words, raw.endian, out);
                    out.reserve(room);
                }
                Value::Raw => {
                    let size = number(&mut rest, 4, raw.endian);
                    write_bytes(take(&mut rest, size as usize), out);
                }
                Value::Bytes { size } => write_bytes(take(&mut rest, size), out),
                Value::Text => {
                    let len = rest.len().saturating_sub(self.after_text);
                    write_text(until_nul(take(&mut rest, len)), out);
                    out.reserve(room);
                }
                Value::Filling { size } => {
                    take(&mut rest, size);
                }
            }
        }
        out.literal(&self.end);
    }
}

/// Removes the first bytes.
#[inline]
fn take<'a>(rest: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, behind) = rest.split_at_checked(len).unwrap_or_default();
    *rest = behind;
    taken
}

/// Removes a number of 1, 2, 4 or 8 bytes.
#[inline]
fn number(rest: &mut &[u8], size: usize, endian: Endian) -> u64 {
    fn word<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.first_chunk().copied().unwrap_or([0; N])
    }
    let bytes = take(rest, size);
    match (size, endian) {
        (8, Endian::Little) => u64::from_le_bytes(word(bytes)),
        (8, Endian::Big) => u64::from_be_bytes(word(bytes)),
        (4, Endian::Little) => u32::from_le_bytes(word(bytes)).into(),
        (4, Endian::Big) => u32::from_be_bytes(word(bytes)).into(),
        (2, Endian::Little) => u16::from_le_bytes(word(bytes)).into(),
        (2, Endian::Big) => u16::from_be_bytes(word(bytes)).into(),
        _ => u8::from_le_bytes(word(bytes)).into(),
    }
}

#[inline]
fn write_number(number: u64, size: usize, form: NumberForm, known: &mut Known, out: &mut Buffer) {
    match form {
        NumberForm::Hexadecimal => write_address(number, out),
        NumberForm::DecimalOrNone if number == u64::MAX >> (64 - 8 * size) => {
            out.byte(b'-');
            out.byte(b'1');
        }
        _ => out.known_decimal(number, known),
    }
}

#[inline]
fn write_address(number: u64, out: &mut Buffer) {
    [b'"', b'0', b'x']
        .into_iter()
        .for_each(|byte| out.byte(byte));
    out.hexadecimal(number);
    out.byte(b'"');
}

fn write_callchain(name: &'static str, words: &[u8], endian: Endian, out: &mut Buffer) {
    let mut has_context = false;
    let words = words.as_chunks::<WORD>().0.iter().map(|word| match endian {
        Endian::Little => u64::from_le_bytes(*word),
        Endian::Big => u64::from_be_bytes(*word),
    });
    out.byte(b'[');
    for (at, word) in words.clone().enumerate() {
        if at > 0 {
            out.byte(b',');
        }
        write_address(word, out);
        has_context |= CallchainContext::of(word).is_some();
    }
    out.byte(b']');
    if has_context {
        out.append(|text| push_contexts(text, name, words));
    }
}

fn write_bytes(bytes: &[u8], out: &mut Buffer) {
    out.byte(b'"');
    let (words, last) = bytes.as_chunks::<WORD>();
    for word in words {
        out.padded_hexadecimal(u64::from_be_bytes(*word));
    }
    for &byte in last {
        super::text::hex_pair(byte)
            .into_iter()
            .for_each(|digit| out.byte(digit));
    }
    out.byte(b'"');
}

fn write_text(text: &[u8], out: &mut Buffer) {
    if is_plain(text) {
        out.byte(b'"');
        out.bytes(text);
        out.byte(b'"');
    } else {
        out.append(|to| push_string(to, text));
    }
}

/// Writes a record, and notes where its values are.
#[derive(Debug, Default)]
struct Learner {
    json: Json,
    pieces: Vec<Piece>,
    /// Where the text after the last value starts.
    from: usize,
    /// Size of a count whose elements follow.
    count: Option<usize>,
    /// Size of the values after a text, if there is one.
    after_text: Option<usize>,
    /// Whether there is anything that is not a [`Value`].
    is_other: bool,
}

impl Learner {
    /// Adds a value after the text so far.
    fn value(&mut self, value: Value) {
        let text = self.json.out.get(self.from..).unwrap_or_default();
        self.pieces.push(Piece {
            before: Literal::new(text),
            value,
            known: Known::default(),
        });
        self.from = self.json.out.len();
    }

    /// Adds a field of `size` bytes.
    fn field(&mut self, name: &'static str, size: usize, value: Value) {
        self.json.declared_key(name);
        self.value(value);
        self.pass(size);
    }

    fn pass(&mut self, size: usize) {
        self.after_text = self.after_text.map(|after| after + size);
    }

    fn form(self, size: Option<usize>) -> Option<Form> {
        let text = self.json.out.get(self.from..).unwrap_or_default();
        let end = Literal::new(text);
        let rooms = self.pieces.iter().map(|piece| piece.before.room() + ROOM);
        let room = rooms.sum::<usize>() + end.room();
        let is_known = !self.is_other && self.count.is_none();
        is_known.then(|| Form {
            room,
            pieces: self.pieces,
            end,
            after_text: self.after_text.unwrap_or_default(),
            size,
        })
    }
}

impl RecordWriter for Learner {
    fn json(&mut self) -> &mut Json {
        &mut self.json
    }

    fn head_number(&mut self, number: HeadNumber, _: u64) {
        self.json.declared_key(number.name());
        self.value(Value::Head(number));
    }
}

impl Visitor for Learner {
    fn begin(&mut self, name: &'static str) {
        self.json.begin(name);
    }

    fn begin_list(&mut self, name: &'static str, len: usize) {
        self.json.begin_list(name, len);
    }

    fn end(&mut self) {
        self.json.end();
    }

    fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>) {
        let count = self.count.take();
        match (value, count) {
            (Leaf::Count(_), None) => self.count = Some(size),
            (Leaf::Bytes(_), Some(4)) => self.field(name, size, Value::Raw),
            (_, Some(_)) => self.is_other = true,
            (Leaf::Bytes(_), None) => self.field(name, size, Value::Bytes { size }),
            (Leaf::Text(_), None) if self.after_text.is_none() => {
                self.field(name, size, Value::Text);
                self.after_text = Some(0);
            }
            (filling, None) if is_filling(&filling) => {
                self.value(Value::Filling { size });
                self.pass(size);
            }
            (Leaf::Uint(_, style), None) if matches!(size, 1 | 2 | 4 | 8) => {
                let form = NumberForm::of(style);
                self.field(name, size, Value::Number { size, form });
            }
            _ => self.is_other = true,
        }
    }

    fn words(&mut self, name: &'static str, _: &[u64], style: Style) {
        match (self.count.take(), style) {
            (Some(WORD), Style::Callchain) => self.field(name, 0, Value::Callchain { name }),
            _ => self.is_other = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfdata_core::attr::{Attr, AttrFlags};
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
}
