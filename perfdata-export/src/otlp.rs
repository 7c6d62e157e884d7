//! Profiles of OpenTelemetry, as the message `ProfilesData` of
//! `opentelemetry/proto/profiles/v1development/profiles.proto` (opentelemetry-proto 1.10; 1.11 has
//! the same messages).

use std::collections::{BTreeMap, HashMap};
use std::io::{BufWriter, Write};

use foldhash::fast::RandomState;

use crate::counts::{Sums, line, numbers};
use crate::error::{Error, Result};
use crate::events::Event;
use crate::machine::Machine;
use crate::message::{Message, varint};
use crate::parts::{Made, SinkPart};
use crate::process_names::NO_PID;
use crate::profile::{Label, LabelValue, Profile};
use crate::profile_parts::ProfilePart;
use crate::resolve::{ResolvedSample, Sink};
use crate::shown::Interned;
use crate::spool::Spool;
use crate::tables::Tables;
use crate::text::push_text;

/// Maximum size of a message of Protocol Buffers in bytes.
const MOST_BYTES: u64 = (1 << 31) - 1;

/// Size of the stacks that are remembered, in bytes. Beyond it, a stack may be in the table twice.
const MOST_STACKS: usize = 64 << 20;

/// Writes a message `ProfilesData` of OpenTelemetry. It has the same encoding as
/// `ExportProfilesServiceRequest`, which receivers expect.
///
/// Each process is a resource. Each of its events has two profiles: the number of samples
/// (`samples`), and the sum of their periods. A clock event is called `cpu`, unless there are several
/// ones. Dummy events are skipped. Samples with equal stacks are added up, so that they have no
/// times. Labels become attributes of the samples.
///
/// Locations have addresses in the mappings of the recording, with build IDs. The addresses of
/// callers are those of the last byte of the call.
///
/// Control characters and bytes that are not UTF-8 become U+FFFD and two hexadecimal digits.
///
/// Different stacks need up to 128 MiB of memory; further ones are stored in temporary files. The
/// tables of locations and names are in memory.
#[derive(Debug)]
pub struct Otlp<W: Write> {
    out: BufWriter<W>,
    profile: Profile,
}

impl<W: Write> Otlp<W> {
    /// Returns a sink that writes to `out` at the end.
    pub fn new(out: W) -> Self {
        Otlp {
            out: BufWriter::new(out),
            profile: Profile::with_labels(vec![Label::Pid]).with_processes(),
        }
    }

    /// Returns the sink with labels. The process ID is always known.
    #[must_use]
    pub fn with_labels(self, mut labels: Vec<Label>) -> Self {
        labels.push(Label::Pid);
        Otlp {
            profile: Profile::with_labels(labels).with_processes(),
            ..self
        }
    }

    fn write(&mut self, message: &Message) -> Result<()> {
        self.out.write_all(message.bytes()).map_err(Error::Output)
    }
}

/// The profiles of an event in a process.
#[derive(Debug)]
struct Group {
    /// The streams of the samples with their numbers, and of those with their weights.
    streams: [usize; 2],
    lens: [u64; 2],
}

/// Fields of `ProfilesDictionary`.
const MAPPINGS: u32 = 1;
const LOCATIONS: u32 = 2;
const FUNCTIONS: u32 = 3;
const LINKS: u32 = 4;
const STRINGS: u32 = 5;
const ATTRIBUTES: u32 = 6;
const STACKS: u32 = 7;

/// Samples and stacks, encoded.
#[derive(Debug)]
struct Encoded {
    groups: BTreeMap<(u32, u32), Group>,
    spool: Spool,
    /// The stream of the stacks in `spool`, and its length.
    stacks: (usize, u64),
    stack_ids: HashMap<Box<[u32]>, u32, RandomState>,
    /// Approximate size of `stack_ids` in bytes.
    held: usize,
    last_stack: u32,
    /// The attributes, which are numbered from 1: the number of the key, and the value.
    attributes: Interned<(u32, LabelValue)>,
}

impl Encoded {
    fn new() -> Self {
        let mut spool = Spool::default();
        Encoded {
            groups: BTreeMap::new(),
            stacks: (spool.add(), 0),
            spool,
            stack_ids: HashMap::default(),
            held: 0,
            last_stack: 0,
            attributes: Interned::default(),
        }
    }

    /// Returns the number of an attribute.
    fn attribute(&mut self, key: u32, value: LabelValue) -> u32 {
        self.attributes.number((key, value)).saturating_add(1)
    }

    /// Returns the number of a stack.
    fn stack(&mut self, locations: &[u32]) -> Result<u32> {
        if locations.is_empty() {
            return Ok(0);
        }
        if let Some(&known) = self.stack_ids.get(locations) {
            return Ok(known);
        }
        let mut list = Message::default();
        list.packed(1, &packed(locations));
        let mut field = Message::default();
        field.message(STACKS, &list);
        self.spool.write(self.stacks.0, field.bytes())?;
        self.stacks.1 = self.stacks.1.saturating_add(len(&field));
        self.last_stack = self.last_stack.saturating_add(1);
        let size = size_of_val(locations).saturating_add(ENTRY);
        self.held = self.held.saturating_add(size);
        if self.held > MOST_STACKS {
            self.stack_ids.clear();
            self.held = size;
        }
        self.stack_ids.insert(locations.into(), self.last_stack);
        Ok(self.last_stack)
    }

    /// Adds the samples with a stack.
    fn sample(
        &mut self,
        (pid, event): (u32, u32),
        attributes: &[u32],
        locations: &[u32],
        sums: Sums,
    ) -> Result<()> {
        let stack = self.stack(locations)?;
        let spool = &mut self.spool;
        let group = self.groups.entry((pid, event)).or_insert_with(|| Group {
            streams: [spool.add(), spool.add()],
            lens: [0; 2],
        });
        let weight = sums.weight.min(i64::MAX.cast_unsigned());
        let streams = group.streams.into_iter().zip(&mut group.lens);
        for ((stream, total), value) in streams.zip([sums.samples, weight]) {
            let mut sample = Message::default();
            sample.number(1, stack.into());
            sample.packed(2, &packed(attributes));
            let mut values = Vec::new();
            varint(&mut values, value);
            sample.packed(4, &values);
            let mut field = Message::default();
            field.message(2, &sample);
            self.spool.write(stream, field.bytes())?;
            *total = total.saturating_add(len(&field));
        }
        Ok(())
    }
}

/// Approximate size of an entry of a map in bytes.
const ENTRY: usize = 48;

fn len(message: &Message) -> u64 {
    message.bytes().len() as u64
}

/// Returns numbers as the content of a packed field.
fn packed(numbers: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.len());
    for &number in numbers {
        varint(&mut bytes, number.into());
    }
    bytes
}

/// Returns the attribute of a resource: a `KeyValue`.
fn resource_attribute(key: &str, value: &Message) -> Message {
    let mut attribute = Message::default();
    attribute.text(1, key);
    attribute.message(2, value);
    attribute
}

/// Returns an `AnyValue` with text.
fn text(text: &str) -> Message {
    let mut message = Message::default();
    message.text(1, text);
    message
}

/// Returns an `AnyValue` with a number.
fn number(number: i64) -> Message {
    let mut message = Message::default();
    message.member(3, number.cast_unsigned());
    message
}

/// Returns the name of an architecture in the semantic conventions (`host.arch`).
fn architecture(machine: &str) -> &str {
    match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "i386" | "i486" | "i586" | "i686" => "x86",
        "ppc" => "ppc32",
        "ppc64le" => "ppc64",
        arm if arm.starts_with("armv") => "arm32",
        other => other,
    }
}

/// Returns the key of a label in the semantic conventions.
fn key(label: Label) -> &'static str {
    match label {
        Label::Pid => "process.pid",
        Label::Tid => "thread.id",
        Label::Comm => "thread.name",
        Label::Cpu => "cpu.logical_number",
        Label::Cgroup => "process.linux.cgroup",
        Label::Mode => "cpu.mode",
    }
}

/// The parts of a profile that are around its samples, encoded.
struct ProfileParts {
    head: Message,
    tail: Message,
}

impl<W: Write> Otlp<W> {
    /// Encodes the samples and stacks.
    fn encode(&mut self) -> Result<Encoded> {
        let mut encoded = Encoded::new();
        let events = self.profile.sort_events();
        let counts = std::mem::take(&mut self.profile.counts);
        let labels = &self.profile.labels;
        let strings = &mut self.profile.strings;
        let keys = labels
            .iter()
            .map(|label| strings.intern(key(*label).as_bytes()));
        let keys: Vec<u32> = keys.collect();
        counts.finish(line, &mut |line, sums| {
            let numbers: Vec<u32> = numbers(line).collect();
            let (event, rest) = numbers.split_first().unwrap_or((&0, &[]));
            let (values, locations) = rest.split_at_checked(labels.len()).unwrap_or_default();
            let mut pid = NO_PID;
            let mut attributes = Vec::new();
            for ((&label, &key), &value) in labels.iter().zip(&keys).zip(values) {
                if label == Label::Pid {
                    pid = value;
                    continue;
                }
                if let Some(value) = label.value(value) {
                    attributes.push(encoded.attribute(key, value));
                }
            }
            let event = usize::try_from(*event).ok();
            let event = event.and_then(|at| events.get(at)).copied();
            let key = (pid, event.unwrap_or_default());
            encoded.sample(key, &attributes, locations, sums)
        })?;
        Ok(encoded)
    }

    /// Returns what is before and after the samples of a profile. `is_weight` tells whether their
    /// values are weights.
    fn frame(&mut self, event: u32, is_weight: bool) -> ProfileParts {
        let at = usize::try_from(event).unwrap_or(usize::MAX);
        let events = self.profile.events.list();
        let is_clock = |event: &&Event| event.is_time && !event.is_off_cpu;
        let clocks = events.iter().filter(is_clock).count();
        let event = events.get(at);
        let is_time = event.is_some_and(|event| event.is_time);
        let name = match event {
            Some(event) if event.is_off_cpu => (*b"off-cpu").into(),
            Some(event) if !is_time || clocks > 1 => event.name.clone(),
            _ => (*b"cpu").into(),
        };
        let start = self.profile.start().unwrap_or(0);
        let duration = self.profile.duration();
        let period = self.profile.periods.get(at).copied().flatten();
        let period = period.unwrap_or(0);
        let strings = &mut self.profile.strings;
        let count = strings.intern(b"count");
        let unit = match is_time {
            true => strings.intern(b"nanoseconds"),
            false => count,
        };
        let mut kind = |name: &[u8], unit: u32| {
            let mut kind = Message::default();
            kind.number(1, strings.intern(name).into());
            kind.number(2, unit.into());
            kind
        };
        let period_type = kind(&name, unit);
        let sample_type = match is_weight {
            true => kind(&name, unit),
            false => kind(b"samples", count),
        };
        let mut frame = ProfileParts {
            head: Message::default(),
            tail: Message::default(),
        };
        frame.head.message(1, &sample_type);
        frame.tail.fixed(3, start);
        frame.tail.number(4, duration);
        frame.tail.message(5, &period_type);
        frame.tail.number(6, period);
        frame
    }

    /// Returns the resource of a process.
    fn resource(&self, pid: u32) -> Message {
        let unknown = Machine::default();
        let machine = self.profile.machine.as_ref().unwrap_or(&unknown);
        let shown = |name: &[u8]| {
            let mut text = String::new();
            push_text(&mut text, name);
            text
        };
        let processes = self.profile.processes.as_ref();
        let name = processes.and_then(|names| names.get(pid)).map(shown);
        let name = name.unwrap_or_default();
        let mut attributes = vec![
            ("service.name", name.clone()),
            ("process.executable.name", name),
            ("host.name", shown(&machine.host)),
            ("host.arch", architecture(&shown(&machine.arch)).to_owned()),
            ("os.type", "linux".to_owned()),
            ("os.version", shown(&machine.release)),
        ];
        attributes.retain(|(_, value)| !value.is_empty());
        let mut resource = Message::default();
        for (key, value) in attributes {
            resource.message(1, &resource_attribute(key, &text(&value)));
        }
        if pid != NO_PID {
            resource.message(1, &resource_attribute("process.pid", &number(pid.into())));
        }
        resource
    }

    /// Writes the profiles of all processes.
    fn write_processes(&mut self, encoded: &Encoded) -> Result<()> {
        let mut scope = Message::default();
        scope.text(1, "perfconv");
        scope.text(2, env!("CARGO_PKG_VERSION"));
        let groups: Vec<(&(u32, u32), &Group)> = encoded.groups.iter().collect();
        for process in groups.chunk_by(|left, right| left.0.0 == right.0.0) {
            let mut profiles = Vec::new();
            for &(&(_, event), group) in process {
                for (number, (stream, samples)) in
                    group.streams.into_iter().zip(group.lens).enumerate()
                {
                    let frame = self.frame(event, number == 1);
                    let around = len(&frame.head).saturating_add(len(&frame.tail));
                    let mut head = Message::default();
                    head.begin(2, samples.saturating_add(around));
                    head.append(&frame.head);
                    profiles.push((head, stream, samples, frame.tail));
                }
            }
            let sizes = profiles.iter().map(|(head, _, samples, tail)| {
                len(head).saturating_add(*samples).saturating_add(len(tail))
            });
            let size = sizes.fold(0, u64::saturating_add);
            let mut inner = Message::default();
            inner.message(1, &scope);
            let mut resource = Message::default();
            let pid = process.first().map_or(NO_PID, |(key, _)| key.0);
            resource.message(1, &self.resource(pid));
            resource.begin(2, len(&inner).saturating_add(size));
            resource.append(&inner);
            let mut whole = Message::default();
            whole.begin(1, len(&resource).saturating_add(size));
            whole.append(&resource);
            self.write(&whole)?;
            for (head, stream, _, tail) in profiles {
                self.write(&head)?;
                let out = &mut self.out;
                let copy = &mut |bytes: &[u8]| out.write_all(bytes).map_err(Error::Output);
                encoded.spool.read(stream, copy)?;
                self.write(&tail)?;
            }
        }
        Ok(())
    }

    /// Returns the tables of the dictionary without its stacks. The first entry of each table is
    /// empty.
    fn dictionary(&mut self, encoded: &mut Encoded, tables: &Tables) -> Message {
        let empty = Message::default();
        let mut dictionary = Message::default();
        let strings = &mut self.profile.strings;
        let id_key = strings.intern(b"process.executable.build_id.gnu");
        let type_key = strings.intern(b"profile.frame.type");
        let mut frame_type = |name: &[u8]| {
            let name = LabelValue::Text(strings.intern(name));
            packed(&[encoded.attribute(type_key, name)])
        };
        let (native, kernel) = (frame_type(b"native"), frame_type(b"kernel"));
        dictionary.message(MAPPINGS, &empty);
        for mapping in &self.profile.mappings {
            let module = mapping.module.and_then(|id| tables.module(id));
            let name = module.map(|module| &*module.name).unwrap_or_default();
            let mut message = Message::default();
            message.number(1, mapping.start);
            message.number(2, mapping.end);
            message.number(3, mapping.offset);
            message.number(4, strings.intern(name).into());
            if let Some(id) = module.and_then(|module| module.build_id) {
                let id = LabelValue::Text(strings.intern(id.to_string().as_bytes()));
                message.packed(5, &packed(&[encoded.attribute(id_key, id)]));
            }
            dictionary.message(MAPPINGS, &message);
        }
        dictionary.message(LOCATIONS, &empty);
        for (location, lines) in self.profile.locations.iter(tables) {
            let mut message = Message::default();
            message.number(1, location.mapping.into());
            message.number(2, location.address);
            for (function, number) in lines {
                let mut line = Message::default();
                line.number(1, u64::from(function.0).saturating_add(1));
                line.number(2, number.into());
                message.message(3, &line);
            }
            message.packed(4, if location.is_kernel { &kernel } else { &native });
            dictionary.message(LOCATIONS, &message);
        }
        dictionary.message(FUNCTIONS, &empty);
        for function in self.profile.locations.functions(tables) {
            let mut message = Message::default();
            message.number(1, strings.intern(&function.short_name()).into());
            message.number(2, strings.intern(&function.system_name).into());
            let file = function.file.as_deref().unwrap_or_default();
            message.number(3, strings.intern(file).into());
            message.number(4, function.start_line.into());
            dictionary.message(FUNCTIONS, &message);
        }
        // Decoders expect IDs of their full sizes.
        let mut link = Message::default();
        link.content(1, &[0; 16]);
        link.content(2, &[0; 8]);
        dictionary.message(LINKS, &link);
        dictionary.message(ATTRIBUTES, &empty);
        for &(key, value) in &encoded.attributes.list {
            let value = match value {
                LabelValue::Text(at) => {
                    let at = usize::try_from(at).ok();
                    text(
                        at.and_then(|at| strings.0.list.get_index(at))
                            .map_or("", |text| text),
                    )
                }
                LabelValue::Number(value) => number(value),
            };
            let mut attribute = Message::default();
            attribute.number(1, key.into());
            attribute.message(2, &value);
            dictionary.message(ATTRIBUTES, &attribute);
        }
        for string in &strings.0.list {
            dictionary.text(STRINGS, string);
        }
        dictionary.message(STACKS, &empty);
        dictionary
    }
}

impl<W: Write> Sink for Otlp<W> {
    fn sample(&mut self, resolved: &ResolvedSample<'_>) -> Result<()> {
        self.profile.add(resolved)
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
        let mut encoded = self.encode()?;
        // The strings of the profiles belong to the dictionary.
        let events = self.profile.events.list().len();
        for event in 0..u32::try_from(events).unwrap_or(u32::MAX) {
            self.frame(event, false);
        }
        let dictionary = self.dictionary(&mut encoded, tables);
        let dictionary_len = len(&dictionary).saturating_add(encoded.stacks.1);
        let samples = encoded.groups.values().flat_map(|group| group.lens);
        let total = samples.fold(dictionary_len, u64::saturating_add);
        if total > MOST_BYTES {
            return Err(Error::TooLarge {
                len: total,
                most: MOST_BYTES,
            });
        }
        self.write_processes(&encoded)?;
        let mut head = Message::default();
        head.begin(2, dictionary_len);
        self.write(&head)?;
        self.write(&dictionary)?;
        let out = &mut self.out;
        let copy = &mut |bytes: &[u8]| out.write_all(bytes).map_err(Error::Output);
        encoded.spool.read(encoded.stacks.0, copy)?;
        self.out.flush().map_err(Error::Output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_have_the_names_of_the_semantic_conventions() {
        assert_eq!(architecture("x86_64"), "amd64");
        assert_eq!(architecture("armv7l"), "arm32");
        assert_eq!(architecture("s390x"), "s390x");
    }

    #[test]
    fn equal_stacks_have_one_number_unless_too_many_are_remembered() {
        let mut encoded = Encoded::new();
        let mut number = |locations: &[u32]| encoded.stack(locations).expect("a number");
        assert_eq!(number(&[]), 0);
        assert_eq!(
            [number(&[5, 300]), number(&[5]), number(&[5, 300])],
            [1, 2, 1]
        );
        encoded.held = MOST_STACKS;
        assert_eq!(encoded.stack(&[6]).expect("a number"), 3);
        assert_eq!(encoded.stack(&[5]).expect("a number"), 4);
        let mut table = Vec::new();
        let (stream, len) = encoded.stacks;
        encoded
            .spool
            .read(stream, &mut |bytes| {
                table.extend_from_slice(bytes);
                Ok(())
            })
            .expect("the stacks");
        assert_eq!(table.len() as u64, len);
        assert_eq!(
            table[..7],
            [STACKS as u8 * 8 + 2, 5, 0x0a, 3, 5, 0xac, 0x02]
        );
    }
}
