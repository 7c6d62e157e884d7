//! Profiles of [pprof](https://github.com/google/pprof/blob/main/proto/profile.proto).

use std::io::{BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::counts::Sums;
use crate::error::{Error, Result};
use crate::message::{Message, varint};
use crate::parts::{Made, SinkPart};
use crate::profile::{Label, LabelValue, Profile};
use crate::profile_parts::ProfilePart;
use crate::resolve::{ResolvedSample, Sink};
use crate::tables::Tables;

/// Writes a compressed profile for pprof.
///
/// Each event has two types of values: the number of samples, and the sum of their periods, in
/// nanoseconds for clock events. The names of the types are `samples` and `cpu` if there is only one
/// event and it is a clock, otherwise `EVENT_samples` and `EVENT`; those of `offcpu-time` are
/// `off-cpu_samples` and `off-cpu`. The periods of the first event are the default type. Dummy events
/// are skipped.
///
/// Locations have addresses in the mappings of the recording, with build IDs. The addresses of
/// callers are those of the last byte of the call. If the functions of an object are known, pprof
/// does not search them itself.
///
/// User addresses outside of all mappings of their process are one location with the function
/// `[unknown]`, unless the recording contains no mapping of the process.
///
/// Control characters and bytes that are not UTF-8 become U+FFFD and two hexadecimal digits.
///
/// Different stacks need up to 8 MiB of memory. Whenever there are more, they are stored in a temporary
/// file, and stacks that repeat after that are further samples, which pprof adds up. The tables of
/// locations and names are in memory.
#[derive(Debug)]
pub struct Pprof<W: Write> {
    out: BufWriter<GzEncoder<W>>,
    profile: Profile,
    /// The beginning of a field.
    head: Message,
}

impl<W: Write> Pprof<W> {
    /// Returns a sink that writes to `out` at the end.
    pub fn new(out: W) -> Self {
        Pprof {
            // As in the profiles that Go programs write: a profile is read soon, or recompressed.
            out: BufWriter::new(GzEncoder::new(out, Compression::fast())),
            profile: Profile::in_parts(Vec::new()),
            head: Message::default(),
        }
    }

    /// Returns the sink with labels. By default, there are none.
    #[must_use]
    pub fn with_labels(self, labels: Vec<Label>) -> Self {
        Pprof {
            profile: Profile::in_parts(labels),
            ..self
        }
    }

    /// Writes a field of the profile that is a message.
    fn put(&mut self, field: u32, message: &Message) -> Result<()> {
        self.put_bytes(field, message.bytes())
    }

    fn put_bytes(&mut self, field: u32, content: &[u8]) -> Result<()> {
        self.head.clear();
        self.head.begin(field, content.len() as u64);
        let out = &mut self.out;
        let written = out.write_all(self.head.bytes());
        written
            .and_then(|()| out.write_all(content))
            .map_err(Error::Output)
    }

    /// Writes a field of the profile that is a number.
    fn put_number(&mut self, field: u32, value: u64) -> Result<()> {
        self.head.clear();
        self.head.number(field, value);
        self.out.write_all(self.head.bytes()).map_err(Error::Output)
    }

    /// Writes the types of values.
    fn write_types(&mut self) -> Result<()> {
        let events = self.profile.events.list().to_vec();
        let has_one_clock = self.profile.events.have_one_clock();
        let count = self.profile.strings.intern(b"count");
        for (number, event) in events.iter().enumerate() {
            let unit = match event.is_time {
                true => self.profile.strings.intern(b"nanoseconds"),
                false => count,
            };
            let (samples, sum) = match has_one_clock {
                _ if event.is_off_cpu => (b"off-cpu_samples".to_vec(), b"off-cpu".to_vec()),
                true => (b"samples".to_vec(), b"cpu".to_vec()),
                false => (
                    [&event.name, &b"_samples"[..]].concat(),
                    event.name.to_vec(),
                ),
            };
            let (samples, sum) = (
                self.profile.strings.intern(&samples),
                self.profile.strings.intern(&sum),
            );
            for (name, unit) in [(samples, count), (sum, unit)] {
                let mut kind = Message::default();
                kind.number(1, name.into());
                kind.number(2, unit.into());
                self.put(1, &kind)?;
            }
            if number == 0 {
                let mut kind = Message::default();
                kind.number(1, sum.into());
                kind.number(2, unit.into());
                self.put(11, &kind)?;
                let period = self.profile.periods.first().copied().flatten();
                self.put_number(12, period.unwrap_or(0))?;
                self.put_number(14, sum.into())?;
            }
        }
        Ok(())
    }

    /// Writes all samples. `events` has the number of each event in the counts.
    fn write_samples(&mut self, events: &[u32]) -> Result<()> {
        let keys: Vec<u32> = self
            .profile
            .labels
            .iter()
            .map(|label| self.profile.strings.intern(label.key().as_bytes()))
            .collect();
        let counts = std::mem::take(&mut self.profile.counts);
        let labels = std::mem::take(&mut self.profile.labels);
        let mut sample = SampleMessage::default();
        counts.finish_numbers(&mut |numbers, sums| {
            self.put(2, sample.of(numbers, sums, events, &labels, &keys))
        })
    }

    fn write_tables(&mut self, tables: &Tables) -> Result<()> {
        let program = self.profile.program.map(u64::from);
        let mappings = std::mem::take(&mut self.profile.mappings);
        let mut mappings: Vec<_> = (1_u64..).zip(mappings).collect();
        // pprof takes the first mapping for the program.
        mappings.sort_by_key(|(number, _)| Some(*number) != program);
        for (number, mapping) in mappings {
            let module = mapping.module.and_then(|id| tables.module(id));
            let name = module.map(|module| &*module.name).unwrap_or_default();
            let build_id = module.and_then(|module| module.build_id);
            let build_id = build_id.map_or(String::new(), |id| id.to_string());
            let mut message = Message::default();
            message.number(1, number);
            message.number(2, mapping.start);
            message.number(3, mapping.end);
            message.number(4, mapping.offset);
            message.number(5, self.profile.strings.intern(name).into());
            message.number(6, self.profile.strings.intern(build_id.as_bytes()).into());
            message.number(7, mapping.has_functions.into());
            message.number(8, mapping.has_lines.into());
            message.number(9, mapping.has_lines.into());
            message.number(10, mapping.has_inlined.into());
            self.put(3, &message)?;
        }
        let (mut message, mut line) = (Message::default(), Message::default());
        let locations = std::mem::take(&mut self.profile.locations);
        for (number, (location, lines)) in (1_u64..).zip(locations.iter(tables)) {
            message.clear();
            message.number(1, number);
            message.number(2, location.mapping.into());
            message.number(3, location.address);
            for (function, number) in lines {
                line.clear();
                line.number(1, u64::from(function.0).saturating_add(1));
                line.number(2, number.into());
                message.message(4, &line);
            }
            self.put(4, &message)?;
        }
        for (number, function) in (1_u64..).zip(locations.functions(tables)) {
            message.clear();
            message.number(1, number);
            message.number(
                2,
                self.profile.strings.intern(&function.short_name()).into(),
            );
            message.number(3, self.profile.strings.intern(&function.system_name).into());
            let file = function.file.as_deref().unwrap_or_default();
            message.number(4, self.profile.strings.intern(file).into());
            message.number(5, function.start_line.into());
            self.put(5, &message)?;
        }
        for string in std::mem::take(&mut self.profile.strings.0.list) {
            self.put_bytes(6, string.as_bytes())?;
        }
        self.put_number(9, self.profile.start().unwrap_or(0))?;
        self.put_number(10, self.profile.duration())?;
        Ok(())
    }
}

/// The message of a sample, and the numbers in it.
#[derive(Default)]
struct SampleMessage {
    message: Message,
    packed: Vec<u8>,
}

impl SampleMessage {
    /// Returns a sample. The numbers are the event, whose number among the types is in `events`, the
    /// labels, and the locations.
    fn of(
        &mut self,
        numbers: &[u32],
        sums: Sums,
        events: &[u32],
        labels: &[Label],
        keys: &[u32],
    ) -> &Message {
        let SampleMessage { message, packed } = self;
        let (event, rest) = numbers.split_first().unwrap_or((&0, &[]));
        let (values, locations) = rest.split_at_checked(labels.len()).unwrap_or_default();
        message.clear();
        packed.clear();
        for &location in locations {
            varint(packed, location.into());
        }
        message.packed(1, packed);
        packed.clear();
        let event = usize::try_from(*event).ok();
        let event = event.and_then(|at| events.get(at)).copied();
        for number in (0_u32..).take(events.len()) {
            let (samples, weight) = if event == Some(number) {
                (sums.samples, sums.weight)
            } else {
                (0, 0)
            };
            varint(packed, samples);
            varint(packed, weight.min(i64::MAX.cast_unsigned()));
        }
        message.packed(2, packed);
        for ((label, key), &value) in labels.iter().zip(keys).zip(values) {
            let mut pair = Message::default();
            pair.number(1, (*key).into());
            match label.value(value) {
                Some(LabelValue::Text(text)) => pair.number(2, text.into()),
                Some(LabelValue::Number(number)) => pair.number(3, number.cast_unsigned()),
                None => continue,
            }
            message.message(3, &pair);
        }
        message
    }
}

impl<W: Write> Sink for Pprof<W> {
    fn sample(&mut self, sample: &ResolvedSample<'_>) -> Result<()> {
        self.profile.add(sample)
    }

    fn part(&self, _: usize) -> Option<Box<dyn SinkPart>> {
        Some(Box::new(ProfilePart::of(&self.profile)))
    }

    fn join(&mut self, made: Made) -> Result<()> {
        self.profile.join(made)
    }

    fn finish(&mut self, tables: &Tables) -> Result<()> {
        let of_parts = self.profile.parts.tables.take();
        let tables = of_parts.as_ref().unwrap_or(tables);
        let events = self.profile.sort_events();
        self.write_types()?;
        self.write_samples(&events)?;
        self.write_tables(tables)?;
        self.out.flush().map_err(Error::Output)?;
        self.out.get_mut().try_finish().map_err(Error::Output)
    }
}
