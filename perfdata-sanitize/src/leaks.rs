//! What a recording tells others: every field whose content is not for everybody, by place and
//! count. `--sanitize` replaces or removes all of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use perfdata_core::Recording;
use perfdata_core::container_layout::{ContainerLayout, Part};
use perfdata_core::content::{Content, Rewrite, Rewriter};
use perfdata_core::feature::{FeatureId, Section};
use perfdata_core::record::{CallchainContext, RawRecord, Record, RecordType};
use perfdata_core::{DecodeContext, Error as ReadError};

use super::{Action, Audience, Policy};
use perfdata_convert::count::number_of;
use perfdata_convert::error::Result;
use perfdata_convert::io::{Input, each_record};
use perfdata_convert::json::Json;

/// One place that tells something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Count {
    /// Number of values that are not empty.
    values: u64,
    /// Their size in bytes.
    bytes: u64,
    /// Number of texts like `NAME=value` in copies of memory.
    variables: u64,
}

/// What a recording tells.
#[derive(Debug)]
pub struct Leaks {
    policy: Policy,
    /// By content, and the name of the record or feature and its field.
    places: BTreeMap<(Content, String), Count>,
    /// The names of the enclosing structures.
    path: Vec<&'static str>,
    /// The name of the record or feature.
    of: String,
    /// The content of the whole record or section, if it has one.
    whole: Option<Content>,
    unreadable: u64,
}

impl Leaks {
    /// Reads a recording to its end.
    ///
    /// # Errors
    /// The input cannot be read, or a record cannot be decoded.
    pub fn of(input: Input) -> Result<Self> {
        let mut leaks = Leaks {
            policy: Policy::new(Audience::Public),
            places: BTreeMap::new(),
            path: Vec::new(),
            of: String::new(),
            whole: None,
            unreadable: 0,
        };
        let (mut reader, source) = input.reader()?;
        if let ContainerLayout::File(file) = reader.container_layout() {
            let gaps = file
                .regions
                .iter()
                .filter(|region| region.part == Part::Gap);
            for gap in gaps {
                if !source.is_zero(gap.place)? {
                    leaks.add(
                        Content::Padding,
                        "between the parts of the file".into(),
                        gap.place.size,
                        0,
                    );
                }
            }
        }
        if let Some(directory) = source.directory() {
            for name in directory.extras() {
                // The image of the kernel, its symbols and modules.
                leaks.add(Content::KernelTable, name.clone(), 0, 0);
            }
        }
        let head = reader.recording().clone();
        let ending = each_record(&mut *reader, |raw, now| {
            let now = if now.events.is_empty() { &head } else { now };
            Ok(leaks.record(raw, now)?)
        })?;
        leaks.unreadable = ending.unreadable.saturating_add(ending.pending);
        leaks.metadata(reader.recording());
        Ok(leaks)
    }

    fn record(&mut self, raw: &RawRecord<'_>, now: &Recording) -> Result<(), ReadError> {
        if raw.feature().is_some() {
            // It is in the model.
            return Ok(());
        }
        let known = raw.kind.info();
        self.start(
            raw.kind.to_string(),
            known.map_or(Content::Unknown, |info| info.content),
        );
        // Without its event, a record says as much as its bytes.
        let is_known = now.events.of_record(raw).is_some() || now.events.have_one_layout();
        if known.is_none() || !is_known {
            self.add(
                Content::Unknown,
                self.of.clone(),
                raw.body().len() as u64,
                0,
            );
            return Ok(());
        }
        let mut record = Record::decode(raw, &now.events.layout_of(raw))?;
        record.rewrite("", Content::Fields, self);
        // Tracing data is in the model.
        let payload = match raw.kind {
            RecordType::AUXTRACE => raw.payload_len()?,
            _ => 0,
        };
        if payload > 0 {
            self.add(Content::Trace, format!("{} data", raw.kind), payload, 0);
        }
        Ok(())
    }

    fn metadata(&mut self, recording: &Recording) {
        for event in recording.events.iter() {
            self.start("attribute".into(), Content::Fields);
            event.attr.clone().rewrite("", Content::Fields, self);
            event.ids.clone().rewrite("ids", Content::Id, self);
        }
        for name in &recording.event_types {
            self.start("event types".into(), Content::Fields);
            name.clone().rewrite("", Content::Fields, self);
        }
        let layout = DecodeContext::default().with_nr_cpus_available(recording.nr_cpus_available());
        for (&id, bytes) in &recording.features {
            let content = id.info().map_or(Content::Unknown, |info| info.content);
            self.start(id.to_string(), content);
            match Section::decode(id, bytes, recording.endian, &layout) {
                Ok(mut section) if content == Content::Fields && id != FeatureId::END => {
                    section.value.rewrite("", content, self);
                }
                Ok(_) | Err(_) if self.tells(content) => {
                    self.add(content, self.of.clone(), bytes.len() as u64, 0);
                }
                _ => {}
            }
        }
    }

    fn start(&mut self, of: String, content: Content) {
        self.of = of;
        self.path.clear();
        self.whole = (content != Content::Fields).then_some(content);
    }

    /// Returns whether others must not see this content.
    fn tells(&self, content: Content) -> bool {
        self.policy.action(content) != Action::Keep
    }

    fn add(&mut self, content: Content, place: String, bytes: u64, variables: u64) {
        let count = self.places.entry((content, place)).or_default();
        count.values = count.values.saturating_add(1);
        count.bytes = count.bytes.saturating_add(bytes);
        count.variables = count.variables.saturating_add(variables);
    }

    fn see(&mut self, name: &'static str, bytes: u64, content: Content, variables: u64) {
        let content = self.whole.unwrap_or(content);
        if !self.tells(content) {
            return;
        }
        let mut place = self.of.clone();
        let path = self.path.iter().copied().chain([name]);
        for name in path.filter(|name| !name.is_empty()) {
            place.push('.');
            place.push_str(name);
        }
        self.add(content, place, bytes, variables);
    }

    /// Returns the report as text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        if self.places.is_empty() {
            out.push_str("Nothing in this recording tells on persons, programs or addresses.\n");
            return out;
        }
        let place = self
            .places
            .keys()
            .map(|(_, place)| place.len())
            .max()
            .unwrap_or(0);
        let mut before = None;
        for ((content, name), count) in &self.places {
            let heading = meaning(*content);
            if before != Some(heading) {
                let _ = writeln!(out, "{heading}");
                before = Some(heading);
            }
            let values = number_of(count.values, "value");
            let bytes = number_of(count.bytes, "byte");
            let _ = write!(out, "  {name:place$}  {values}, {bytes}");
            if count.variables > 0 {
                let texts = number_of(count.variables, "text");
                let _ = write!(out, "; {texts} like NAME=value");
            }
            out.push('\n');
        }
        if self.unreadable > 0 {
            let _ = writeln!(
                out,
                "{} at the end that are not records",
                number_of(self.unreadable, "byte")
            );
        }
        out.push_str("\nconvert --sanitize replaces or removes all of this.\n");
        out
    }

    /// Returns the report for programs, with the name of the input.
    pub fn json(&self, input: Option<&Path>) -> String {
        let mut json = Json::pretty();
        json.object("");
        if let Some(input) = input {
            json.text("file", input.as_os_str().as_encoded_bytes());
        }
        json.list("leaks");
        for ((content, place), count) in &self.places {
            json.object("");
            json.text("content", word(*content).as_bytes());
            json.text("place", place.as_bytes());
            json.number("values", count.values);
            json.number("bytes", count.bytes);
            if count.variables > 0 {
                json.number("variables", count.variables);
            }
            let action = match self.policy.action(*content) {
                Action::Remove => "remove",
                _ => "replace",
            };
            json.text("sanitize", action.as_bytes());
            json.close();
        }
        json.close();
        if self.unreadable > 0 {
            json.number("unreadable_bytes", self.unreadable);
        }
        json.close();
        json.end_line();
        json.into_text()
    }
}

/// Returns the number of texts like `NAME=value` in a copy of memory.
fn variables(memory: &[u8]) -> u64 {
    let is_name = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let is_variable = |text: &&[u8]| {
        let mut parts = text.splitn(2, |&byte| byte == b'=');
        let (name, value) = (parts.next().unwrap_or_default(), parts.next());
        name.len() >= 2
            && name.iter().all(is_name)
            && value.is_some_and(|value| value.iter().all(|byte| matches!(byte, b' '..=b'~')))
    };
    memory.split(|&byte| byte == 0).filter(is_variable).count() as u64
}

impl Rewriter for Leaks {
    fn begin(&mut self, name: &'static str) {
        self.path.push(name);
    }

    fn end(&mut self) {
        self.path.pop();
    }

    fn number(&mut self, name: &'static str, value: u64, size: usize, content: Content) -> u64 {
        let none = u64::MAX >> (64 - 8 * size.clamp(1, 8));
        if value != 0 && value != none {
            self.see(name, size as u64, content, 0);
        }
        value
    }

    fn text(
        &mut self,
        name: &'static str,
        text: &[u8],
        _: usize,
        content: Content,
    ) -> Option<Vec<u8>> {
        if !text.is_empty() {
            self.see(name, text.len() as u64, content, 0);
        }
        None
    }

    fn bytes(&mut self, name: &'static str, bytes: &mut [u8], content: Content) {
        let set = bytes.iter().filter(|&&byte| byte != 0).count();
        if set > 0 {
            let variables = match content {
                Content::Memory | Content::Padding => variables(bytes),
                _ => 0,
            };
            self.see(name, bytes.len() as u64, content, variables);
        }
    }

    fn words(&mut self, name: &'static str, words: &mut [u64], content: Content) {
        let is_marker =
            |word: u64| content == Content::Callchain && CallchainContext::of(word).is_some();
        let count = words
            .iter()
            .filter(|&&word| word != 0 && !is_marker(word))
            .count();
        if count > 0 {
            self.see(name, (count as u64).saturating_mul(8), content, 0);
        }
    }
}

/// Returns the word of a kind of content in JSON.
fn word(content: Content) -> String {
    let mut word = String::new();
    for (at, letter) in format!("{content:?}").chars().enumerate() {
        if letter.is_ascii_uppercase() && at > 0 {
            word.push('_');
        }
        word.push(letter.to_ascii_lowercase());
    }
    word
}

/// Returns what a kind of content tells others.
fn meaning(content: Content) -> &'static str {
    match content {
        Content::Number
        | Content::Cpu
        | Content::Protection
        | Content::MapFlags
        | Content::BuildIdSize
        | Content::Fields => "Numbers",
        Content::Address | Content::Callchain | Content::MappingOffset => {
            "Addresses: where programs and the kernel are in memory (undoes ASLR)"
        }
        Content::PhysicalAddress => "Physical addresses",
        Content::Pid => "Process IDs: how long and how busily the machine runs",
        Content::Time | Content::Ticks => "Times: how long the machine runs",
        Content::Clock => "Clocks: the time of day, the time since boot",
        Content::Id | Content::StreamId | Content::Cookie => "Event IDs: numbers since boot",
        Content::CgroupId => "IDs of cgroups",
        Content::BpfId => "IDs of BPF programs",
        Content::Comm => "Names of threads: which programs run",
        Content::Path => "Names of files: users, projects, customers",
        Content::CgroupPath => "Names of cgroups: users, services, containers",
        Content::Symbol => "Names of functions and BPF programs",
        Content::EventName => "Names of events: functions that are probed",
        Content::PmuName => "Names of PMUs",
        Content::Host => "Host name",
        Content::Argument => "Command line of the recorder",
        Content::Release => "Releases of kernel and perf",
        Content::Processor => "Model of the processor",
        Content::Topology => "CPUs, caches and memory of the machine",
        Content::Message => "Messages of decoders",
        Content::FileId => "Identities of files: device and inode",
        Content::Namespace => "Namespaces",
        Content::User => "User IDs",
        Content::BuildId => "Build IDs: exactly which programs run",
        Content::Config => "Configuration of events, which may contain addresses",
        Content::Memory => "Memory of processes: passwords, keys, environment",
        Content::Registers => "Registers: addresses and data of processes",
        Content::Raw => "Raw data of tracepoints: names, process IDs, addresses",
        Content::Code => "Code",
        Content::Trace => "Instruction traces",
        Content::Bpf => "BPF programs: names, users, addresses, code",
        Content::Format => "Formats of tracepoints: functions that are probed",
        Content::KernelTable => "Tables of the kernel: addresses, names of tasks",
        Content::Padding => "Old data in padding",
        Content::Unknown => "Unknown content",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_recognised_in_memory() {
        assert_eq!(
            variables(b"x\0HOME=/root\0TOKEN_1=\0=\0A=b\0lower=1\0PATH=\xff\0"),
            2
        );
    }

    #[test]
    fn words_are_those_of_the_declaration() {
        assert_eq!(word(Content::Comm), "comm");
        assert_eq!(word(Content::PhysicalAddress), "physical_address");
    }
}
