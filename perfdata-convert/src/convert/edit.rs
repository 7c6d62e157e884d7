//! Changing feature sections: `--set`, `--set-raw` and `--drop`.

use std::collections::BTreeMap;

use perfdata_core::arrangement::{Arrangement, Slot, SlotContent};
use perfdata_core::describe::{Describe, Leaf, Style, Visitor};
use perfdata_core::feature::{Feature, FeatureId, Section, TABLE};
use perfdata_core::header::FeatureBitmap;
use perfdata_core::read::is_metadata;
use perfdata_core::record::{RawRecord, RecordHeader, RecordType};
use perfdata_core::wire::{Str, Wire};
use perfdata_core::{Endian, Layout, Recording};
use serde_json::Value;

use super::{Link, Stage};
use crate::error::{Error, Result};
use crate::suggest;

/// What becomes of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It has this value: text, a number, or JSON.
    Set(String),
    /// It has these bytes.
    Raw(Vec<u8>),
    /// There is none.
    Drop,
}

/// Changes feature sections, in the model and in metadata records that stand anywhere in the stream.
#[derive(Debug)]
pub struct Edit {
    changes: BTreeMap<FeatureId, Change>,
    /// Whether the last record was left out, and so is its payload.
    dropped: bool,
}

impl Edit {
    /// A stage that makes the changes, each named by a feature's name or number.
    ///
    /// # Errors
    /// A name that no feature has, or that comes twice.
    pub fn new(changes: impl IntoIterator<Item = (String, Change)>) -> Result<Self> {
        let mut all = BTreeMap::new();
        for (name, change) in changes {
            let id = feature_called(&name)?;
            if all.insert(id, change).is_some() {
                return Err(Error::Usage(format!("feature {id} is to be changed twice")));
            }
        }
        Ok(Edit { changes: all, dropped: false })
    }

    fn apply(&self, recording: &mut Recording) -> Result<()> {
        for (&id, change) in &self.changes {
            let bytes = match change {
                Change::Set(value) => section(id, value, recording.endian)?,
                Change::Raw(bytes) => bytes.clone(),
                Change::Drop => {
                    recording.features.remove(&id.0);
                    continue;
                }
            };
            recording.features.insert(id.0, bytes);
        }
        Ok(())
    }

    /// Whether the record says what a changed section says.
    fn concerns(&self, record: &RawRecord<'_>) -> bool {
        let id = match record.kind {
            RecordType::HEADER_TRACING_DATA => Some(FeatureId::TRACING_DATA),
            RecordType::HEADER_BUILD_ID => Some(FeatureId::BUILD_ID),
            // Without section it is the end of the features.
            RecordType::HEADER_FEATURE if record.body().len() > 8 => {
                record.word(RecordHeader::SIZE).and_then(|id| u32::try_from(id).ok()).map(FeatureId)
            }
            _ => None,
        };
        id.is_some_and(|id| self.changes.contains_key(&id))
    }

    /// Whether a record at the head of a pipe goes: the writer makes those that the model has anew.
    fn replaces(&self, slot: &Slot, endian: Endian) -> bool {
        match &slot.content {
            SlotContent::Verbatim(bytes) => RawRecord::first(bytes, endian, 0).is_ok_and(|raw| self.concerns(&raw)),
            _ => slot.feature().is_some_and(|id| self.changes.contains_key(&id)),
        }
    }
}

impl Stage for Edit {
    fn is_behind_container(&self) -> bool {
        true
    }

    fn begin(&mut self, recording: &mut Recording, arrangement: &mut Arrangement) -> Result<()> {
        if let Arrangement::Pipe(head) = arrangement {
            head.slots.retain(|slot| !self.replaces(slot, recording.endian));
        }
        self.apply(recording)
    }

    /// Also those that have a payload: it goes the way of its record.
    fn wants(&self, kind: RecordType) -> bool {
        is_metadata(kind) || matches!(kind, RecordType::HEADER_BUILD_ID | RecordType::AUXTRACE)
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        self.dropped = self.concerns(record);
        if self.dropped { Ok(()) } else { next.record(record) }
    }

    fn payload(&mut self, bytes: &[u8], next: &mut Link<'_>) -> Result<()> {
        if self.dropped { Ok(()) } else { next.payload(bytes) }
    }

    fn finish(&mut self, recording: &mut Recording, _: &mut Link<'_>) -> Result<()> {
        self.apply(recording)
    }
}

/// The feature with the given name or number.
fn feature_called(name: &str) -> Result<FeatureId> {
    let number = || name.parse().ok().filter(|number| (1..FeatureBitmap::BITS).contains(number)).map(FeatureId);
    FeatureId::by_name(name).or_else(number).ok_or_else(|| {
        Error::Usage(match suggest::nearest(name, TABLE.iter().map(|info| info.name)) {
            Some(near) => format!("no feature is called {name}; did you mean {near}?"),
            None => format!("no feature is called {name}: a name as in perfconv info, or a number from 1 to 255"),
        })
    })
}

/// The bytes of a section of feature `id` with the given value.
fn section(id: FeatureId, value: &str, endian: Endian) -> Result<Vec<u8>> {
    let refused = |why: String| Error::Usage(format!("--set {id}: {why}"));
    let json = serde_json::from_str::<Value>(value).ok();
    let shape = empty(id, endian).ok_or_else(|| by_bytes(id))?;
    let mut leaves = Leaves::default();
    shape.value.describe("", Style::Plain, &mut leaves);
    let bytes = match (&shape.value, leaves.0.as_slice()) {
        (Feature::CmdLine(_), _) => {
            let words = json.as_ref().and_then(Value::as_array).ok_or_else(|| refused("not a JSON list".into()))?;
            let words = words.iter().map(|word| Some(Str::new(&text(word.as_str()?))));
            let words: Vec<Str> =
                words.collect::<Option<_>>().ok_or_else(|| refused("not a list of strings".into()))?;
            Section { id, value: Feature::CmdLine(words.into()), tail: Vec::new() }.encode(endian)?
        }
        (_, [Place { kind: Kind::Count, .. }, Place { kind: Kind::Text, .. }]) => {
            let text = json.as_ref().and_then(Value::as_str).map_or_else(|| value.as_bytes().to_vec(), text);
            encode(&Str::new(&text), endian)?
        }
        (_, []) => match value {
            "" => Vec::new(),
            _ => return Err(refused("a flag has no value".into())),
        },
        (_, [place @ Place { kind: Kind::Number, .. }]) => {
            let number = number(&json.unwrap_or_else(|| Value::from(value)));
            let bytes = number.and_then(|number| place.bytes(number, endian));
            bytes.ok_or_else(|| refused(format!("{value} is no number of {} bits", place.size * 8)))?
        }
        (_, places) if places.iter().all(|place| matches!(place.kind, Kind::Number | Kind::Code)) => {
            let object = json.as_ref().and_then(Value::as_object).ok_or_else(|| refused("not a JSON object".into()))?;
            if let Some(other) = object.keys().find(|key| !places.iter().any(|place| place.name == key.as_str())) {
                return Err(refused(format!("it has no field {other}")));
            }
            let mut bytes = Vec::new();
            for place in places {
                let value = object.get(place.name).ok_or_else(|| refused(format!("{} is missing", place.name)))?;
                let number = match (place.kind, value.as_str()) {
                    (Kind::Code, Some(name)) => code_called(id, &bytes, place, name, endian),
                    _ => number(value),
                };
                let field = number.and_then(|number| place.bytes(number, endian));
                bytes.extend(field.ok_or_else(|| refused(format!("{value} is no value of {}", place.name)))?);
            }
            bytes
        }
        _ => return Err(by_bytes(id)),
    };
    Ok(bytes)
}

fn by_bytes(id: FeatureId) -> Error {
    Error::Usage(format!("feature {id} cannot be set from text; --set-raw {id}=FILE takes the bytes of the section"))
}

/// The shortest section of feature `id` that is all zeros: what its fields are.
fn empty(id: FeatureId, endian: Endian) -> Option<Section> {
    const LONGEST: usize = 64;
    let zeros = [0; LONGEST];
    let decode = |len| Section::decode(id, zeros.get(..len)?, endian, &Layout::default()).ok();
    let known =
        |section: &Section| section.tail.is_empty() && !matches!(section.value, Feature::Empty | Feature::Unknown(_));
    (0..=LONGEST).filter_map(decode).find(known)
}

/// The code that the field at `place`, behind the bytes of the fields before it, shows by the given name.
fn code_called(id: FeatureId, before: &[u8], place: &Place, name: &str, endian: Endian) -> Option<u64> {
    /// No code with a name is higher.
    const HIGHEST: u64 = 1 << 10;
    (0..HIGHEST).find(|&code| {
        let mut bytes = before.to_vec();
        bytes.extend(place.bytes(code, endian).unwrap_or_default());
        bytes.resize(bytes.len() + 64, 0);
        let section = Section::decode(id, &bytes, endian, &Layout::default());
        let mut leaves = Leaves::default();
        section.is_ok_and(|section| {
            section.value.describe("", Style::Plain, &mut leaves);
            leaves.0.iter().any(|leaf| leaf.name == place.name && leaf.code == Some(name))
        })
    })
}

/// A number as JSON, or as text with or without 0x.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        },
        _ => None,
    }
}

/// The bytes of a JSON string, where U+FFFD and two hexadecimal digits stand for a byte that is not UTF-8.
fn text(string: &str) -> Vec<u8> {
    let mut parts = string.split('\u{fffd}');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (byte, part.get(2..)) {
            (Some(byte), Some(rest)) => {
                bytes.push(byte);
                bytes.extend_from_slice(rest.as_bytes());
            }
            _ => {
                bytes.extend_from_slice("\u{fffd}".as_bytes());
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    bytes
}

fn encode(value: &impl Wire, endian: Endian) -> Result<Vec<u8>> {
    Ok(value.encode(endian)?)
}

/// One field of a section.
struct Place {
    name: &'static str,
    size: usize,
    kind: Kind,
    code: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Code,
    Count,
    Text,
    Other,
}

impl Place {
    /// A number as it stands in the section; nothing where it does not fit.
    fn bytes(&self, number: u64, endian: Endian) -> Option<Vec<u8>> {
        let (little, big) = (number.to_le_bytes(), number.to_be_bytes());
        let fits = self.size == 8 || number.checked_shr(u32::try_from(self.size * 8).ok()?)? == 0;
        let bytes = if endian == Endian::Little { little.get(..self.size) } else { big.get(8 - self.size.min(8)..) };
        bytes.filter(|_| fits).map(<[u8]>::to_vec)
    }
}

/// The fields of a section in order; lists and what is in them count as [`Kind::Other`].
#[derive(Default)]
struct Leaves(Vec<Place>);

impl Visitor for Leaves {
    fn begin(&mut self, _: &'static str) {}

    fn begin_list(&mut self, name: &'static str, _: usize) {
        self.0.push(Place { name, size: 0, kind: Kind::Other, code: None });
    }

    fn end(&mut self) {}

    fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>) {
        let (kind, code) = match value {
            Leaf::Uint(..) | Leaf::Int(_) => (Kind::Number, None),
            Leaf::Code(_, code) => (Kind::Code, code),
            Leaf::Count(_) => (Kind::Count, None),
            Leaf::Text(_) => (Kind::Text, None),
            _ => (Kind::Other, None),
        };
        self.0.push(Place { name, size, kind, code });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(id: FeatureId, value: &str, endian: Endian) -> String {
        match section(id, value, endian) {
            Ok(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn values_become_sections() {
        let little = |id, value| bytes(id, value, Endian::Little);
        assert_eq!(little(FeatureId::TOTAL_MEM, "258"), "0201000000000000");
        assert_eq!(bytes(FeatureId::CLN_SIZE, "0x40", Endian::Big), "00000040");
        assert_eq!(little(FeatureId::NRCPUS, r#"{"online": 2, "available": 4}"#), "0400000002000000");
        let data = r#"{"version": 1, "clock": "monotonic", "wall_clock": 2, "clock_time": 3}"#;
        assert_eq!(bytes(FeatureId::CLOCK_DATA, data, Endian::Big), "000000010000000100000000000000020000000000000003");
        assert_eq!(little(FeatureId::E_MACHINE, r#"{"e_machine": "s390", "e_flags": "0x10"}"#), "1600000010000000");
        assert_eq!(little(FeatureId::STAT, ""), "");
        assert_eq!(little(FeatureId::HOSTNAME, "box"), format!("40000000626f78{}", "00".repeat(61)));
        assert_eq!(little(FeatureId::HOSTNAME, "\"b\u{fffd}ff\""), format!("4000000062ff{}", "00".repeat(62)));
        assert_eq!(little(FeatureId::CMDLINE, r#"["perf"]"#), format!("010000004000000070657266{}", "00".repeat(60)));
    }

    #[test]
    fn what_is_no_value_is_named() {
        let why = |id, value| bytes(id, value, Endian::Little);
        assert_eq!(why(FeatureId::CLN_SIZE, "0x100000000"), "--set CLN_SIZE: 0x100000000 is no number of 32 bits");
        assert_eq!(why(FeatureId::NRCPUS, r#"{"online": 2}"#), "--set NRCPUS: available is missing");
        assert_eq!(why(FeatureId::NRCPUS, r#"{"cpus": 2}"#), "--set NRCPUS: it has no field cpus");
        assert_eq!(why(FeatureId::CMDLINE, "perf"), "--set CMDLINE: not a JSON list");
        assert_eq!(
            why(FeatureId::CPU_TOPOLOGY, "[]"),
            "feature CPU_TOPOLOGY cannot be set from text; --set-raw CPU_TOPOLOGY=FILE takes the bytes of the section"
        );
        assert!(why(FeatureId(60), "1").contains("--set-raw 60=FILE"));
        assert!(Edit::new([("HOST".to_owned(), Change::Drop)]).is_err());
        assert!(Edit::new([("hostname".to_owned(), Change::Drop), ("3".to_owned(), Change::Drop)]).is_err());
    }
}
