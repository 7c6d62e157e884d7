//! Feature sections from JSON, in the form that `perfconv info --json` prints.
//!
//! Only its declaration knows the shape of a section, and that may depend on values: counts in front of lists, flags
//! that say which parts follow. So a section grows step by step: what there is of it is decoded, with zeros behind; the
//! walk over it tells its fields, and these get the values that the JSON has for them. That goes on until nothing
//! changes. At the end every field must have had a value, and every value a field.

use std::collections::HashSet;

use perfdata_core::describe::{Describe, Field, Leaf, Style, Visitor};
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::record::RecordHeader;
use perfdata_core::{Endian, Layout};
use serde_json::{Map, Value};

/// Room in bytes that perf rounds a text up to where its length stands in front of it.
const TEXT_ROOM: usize = 64;

/// More steps than any section has lists inside of lists.
const MOST_STEPS: usize = 4096;

/// The section of feature `id` that says what `json` says, in byte order `endian`; of `layout` the number of CPUs
/// counts.
///
/// # Errors
/// Why there is none.
pub(super) fn section(id: FeatureId, json: &Value, endian: Endian, layout: &Layout) -> Result<Vec<u8>, String> {
    if id == FeatureId::TRACING_DATA {
        return Err("its numbers have a byte order of their own".into());
    }
    if id.info().is_none() {
        return Err("nobody knows its fields".into());
    }
    // Where pieces of a word stand is the same in text and bytes in this order only.
    const BUILT: Endian = Endian::Little;
    let mut bytes = seed(id, json)?;
    // Every element of a list has more letters in JSON than a fourth of its bytes.
    let zeros = json.to_string().len().saturating_mul(4).saturating_add(4096);
    let zeros = if bytes.is_empty() { zeros } else { 0 };
    let (mut end, mut why) = (0, None);
    for _ in 0..MOST_STEPS {
        let mut grown = bytes.clone();
        grown.resize(grown.len().saturating_add(zeros), 0);
        let found = Section::decode(id, &grown, BUILT, layout).map_err(|error| error.to_string())?;
        let fill = Fill::over(&found.value, json);
        (end, why) = (fill.end, fill.stopped);
        if fill.out == bytes {
            break;
        }
        bytes = fill.out;
    }
    // What no value was given for may be a part that is not there, or filling.
    bytes.truncate(end);
    for _ in 0..=8 {
        match exact(id, &bytes, json, BUILT, layout) {
            Ok(found) => return found.encode(endian).map_err(|error| error.to_string()),
            Err(reason) => why.get_or_insert(reason),
        };
        bytes.push(0);
    }
    Err(why.unwrap_or_default())
}

/// The section in `bytes`, if `json` says all of it and nothing else.
fn exact(id: FeatureId, bytes: &[u8], json: &Value, endian: Endian, layout: &Layout) -> Result<Section, String> {
    let found = Section::decode(id, bytes, endian, layout).map_err(|error| error.to_string())?;
    let fill = Fill::over(&found.value, json);
    match fill.unused.or(fill.stopped).or(fill.missing) {
        Some(why) => Err(why),
        None if fill.is_short => Err("there are too few elements in a list".into()),
        None if fill.out != bytes || !found.tail.is_empty() => Err("it does not say all of the section".into()),
        None => Ok(found),
    }
}

/// All of the section but its values, where zeros are none: an entry of BUILD_ID ends where its header says.
fn seed(id: FeatureId, json: &Value) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    if id != FeatureId::BUILD_ID {
        return Ok(bytes);
    }
    let entries = json.as_array().ok_or("it is no list of build IDs")?;
    for (at, entry) in entries.iter().enumerate() {
        let size = entry.pointer("/header/size").ok_or_else(|| format!("build id {at} has no header with a size"))?;
        let fits = |&size: &u16| usize::from(size) >= RecordHeader::SIZE;
        let known = number(size).and_then(|size| u16::try_from(size).ok()).filter(fits);
        let size = known.ok_or_else(|| format!("build id {at}: {size} is no size of a record"))?;
        bytes.extend([0; 6]);
        bytes.extend(size.to_le_bytes());
        bytes.resize(bytes.len() + usize::from(size) - RecordHeader::SIZE, 0);
    }
    Ok(bytes)
}

/// Where in the JSON the walk is.
enum Frame<'a> {
    Object(&'a Map<String, Value>, HashSet<&'static str>),
    /// A list, and how many elements of it were taken.
    List(&'a [Value], usize),
    /// In the object around it.
    Flat,
    /// In something that the JSON does not have.
    Absent,
}

/// Puts values of JSON in place of those of a section, in the order of its fields.
struct Fill<'a> {
    json: &'a Value,
    frames: Vec<Frame<'a>>,
    out: Vec<u8>,
    /// Where the last field that the JSON has ends.
    end: usize,
    /// Place and size of a count whose list comes next.
    count: Option<(usize, usize)>,
    /// Why the walk cannot go on: what it meets is not what the JSON has there.
    stopped: Option<String>,
    /// Likewise, a list that has fewer elements in the JSON: zeros behind the bytes look like more of them.
    is_short: bool,
    missing: Option<String>,
    unused: Option<String>,
}

impl<'a> Fill<'a> {
    fn over(value: &Feature, json: &'a Value) -> Self {
        let mut fill = Fill {
            json,
            frames: Vec::new(),
            out: Vec::new(),
            end: 0,
            count: None,
            stopped: None,
            is_short: false,
            missing: None,
            unused: None,
        };
        value.describe("", Style::Plain, &mut fill);
        fill
    }

    fn stop(&mut self, why: String) {
        self.stopped.get_or_insert(why);
    }

    /// What the JSON has for the field `name`, or as the next element of a list.
    fn peek(&self, name: &str) -> Option<&'a Value> {
        let mut frames = self.frames.iter().rev();
        match frames.find(|frame| !matches!(frame, Frame::Flat)) {
            None => Some(self.json),
            Some(Frame::Object(object, _)) => object.get(name),
            Some(Frame::List(items, next)) => items.get(*next),
            Some(_) => None,
        }
    }

    /// The same, once.
    fn take(&mut self, name: &'static str) -> Option<&'a Value> {
        let found = self.peek(name);
        let mut frames = self.frames.iter_mut().rev();
        match frames.find(|frame| !matches!(frame, Frame::Flat)) {
            Some(Frame::Object(_, used)) => {
                used.insert(name);
                if found.is_none() {
                    self.missing.get_or_insert(format!("{name} is missing"));
                }
            }
            Some(Frame::List(_, next)) => {
                *next += 1;
                self.is_short |= found.is_none();
            }
            _ => {}
        }
        found
    }

    /// Writes a count that stood in front of what comes now.
    fn settle_count(&mut self, len: usize) {
        let Some((at, size)) = self.count.take() else { return };
        let bytes = (len as u64).to_le_bytes();
        if fits(len as u64, size)
            && let (Some(place), Some(bytes)) = (self.out.get_mut(at..at.saturating_add(size)), bytes.get(..size))
        {
            place.copy_from_slice(bytes);
        } else {
            self.stop(format!("{len} elements are more than {size} bytes can count"));
        }
    }

    /// The bytes of one value, `None` where there are none: it is of another kind, or has no room.
    fn bytes_of(&mut self, given: &Value, size: usize, leaf: &Leaf<'_>) -> Option<Vec<u8>> {
        let sized = |number: u64| fits(number, size).then(|| number.to_le_bytes().into_iter().take(size).collect());
        match leaf {
            Leaf::Text(_) => {
                let mut text = bytes_of_string(given.as_str()?);
                let room = if self.count.is_some() { (text.len() + 1).next_multiple_of(TEXT_ROOM) } else { size };
                if text.len() > room {
                    return None;
                }
                text.resize(room, 0);
                self.settle_count(room);
                Some(text)
            }
            Leaf::Bytes(_) | Leaf::Opaque(_) | Leaf::Pad(_) => {
                let bytes = bytes_of_digits(given.as_str()?)?;
                let has_room = self.count.is_some() || bytes.len() == size;
                self.settle_count(bytes.len());
                has_room.then_some(bytes)
            }
            Leaf::Uint(_, Style::Pid) if given.as_i64() == Some(-1) => Some(vec![0xff; size]),
            Leaf::Uint(..) | Leaf::Count(_) => sized(number(given)?),
            Leaf::Int(_) => {
                let number = i32::try_from(given.as_i64()?).ok().filter(|_| size == size_of::<i32>())?;
                Some(number.to_le_bytes().to_vec())
            }
            Leaf::Float(_) => {
                let number =
                    given.as_f64().or_else(|| given.as_str()?.parse().ok()).filter(|_| size == size_of::<f64>())?;
                Some(number.to_le_bytes().to_vec())
            }
            Leaf::Code(_, _, codes) => {
                let called = |name| codes.iter().find(|(_, code)| *code == name).map(|(number, _)| *number);
                sized(given.as_str().and_then(called).or_else(|| number(given))?)
            }
            Leaf::Flags { fields, .. } => sized(flags(given, fields)?),
        }
    }
}

impl Visitor for Fill<'_> {
    fn begin(&mut self, name: &'static str) {
        let in_object = self.frames.iter().rev().find(|frame| !matches!(frame, Frame::Flat));
        let frame = match in_object {
            Some(Frame::Object(..)) if name.is_empty() => Frame::Flat,
            Some(Frame::Absent) => Frame::Absent,
            _ => match self.take(name) {
                Some(Value::Object(object)) => Frame::Object(object, HashSet::new()),
                Some(_) => {
                    self.stop(format!("{} is no object", shown(name)));
                    Frame::Absent
                }
                None => Frame::Absent,
            },
        };
        self.frames.push(frame);
    }

    fn begin_list(&mut self, name: &'static str, _: usize) {
        let frame = match self.take(name) {
            Some(Value::Array(items)) => {
                if self.stopped.is_none() && !self.is_short {
                    self.settle_count(items.len());
                    self.end = self.out.len();
                }
                Frame::List(items, 0)
            }
            Some(_) => {
                self.stop(format!("{} is no list", shown(name)));
                Frame::Absent
            }
            None => Frame::Absent,
        };
        self.count = None;
        self.frames.push(frame);
    }

    fn end(&mut self) {
        match self.frames.pop() {
            Some(Frame::Object(object, used)) => {
                if let Some(name) = object.keys().find(|name| !used.contains(name.as_str())) {
                    self.unused.get_or_insert(format!("it has no field {name}"));
                }
            }
            Some(Frame::List(items, taken)) if taken < items.len() => {
                self.stop("there are too many elements in a list".into());
            }
            _ => {}
        }
    }

    fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>) {
        // Only the content of what is unknown has no name.
        let name = if name.is_empty() && self.is_in_object() { "bytes" } else { name };
        let is_hidden = matches!(value, Leaf::Pad(_) | Leaf::Uint(_, Style::Pad) | Leaf::Count(_));
        if let Leaf::Count(_) = value {
            self.count = self.peek(name).is_some().then_some((self.out.len(), size));
        }
        let given = if is_hidden { None } else { self.take(name) };
        if self.stopped.is_some() || self.is_short {
            return;
        }
        match given {
            Some(given) => match self.bytes_of(given, size, &value) {
                Some(bytes) => {
                    self.out.extend(bytes);
                    self.end = self.out.len();
                }
                None => self.stop(no_value(name, given, size, &value)),
            },
            None => self.out.resize(self.out.len().saturating_add(size), 0),
        }
        if !is_hidden {
            self.count = None;
        }
    }
}

impl Fill<'_> {
    fn is_in_object(&self) -> bool {
        let mut frames = self.frames.iter().rev();
        matches!(frames.find(|frame| !matches!(frame, Frame::Flat)), Some(Frame::Object(..)))
    }
}

fn shown(name: &str) -> &str {
    if name.is_empty() { "it" } else { name }
}

fn no_value(name: &str, given: &Value, size: usize, leaf: &Leaf<'_>) -> String {
    let given = given.as_str().map_or_else(|| given.to_string(), str::to_owned);
    match leaf {
        Leaf::Uint(..) => format!("{given} is no number of {} bits", size * 8),
        _ if name.is_empty() => format!("{given} is no value of it"),
        _ => format!("{given} is no value of {name}"),
    }
}

fn fits(number: u64, size: usize) -> bool {
    u32::try_from(size * 8).is_ok_and(|bits| number.checked_shr(bits).unwrap_or(0) == 0)
}

/// Names of what is set, or numbers by name.
fn flags(given: &Value, fields: &[Field]) -> Option<u64> {
    let field = |name: &str, value: u64| {
        let field = fields.iter().find(|field| field.name == name)?;
        (value <= u64::MAX >> (64 - field.width)).then_some(value << field.bit)
    };
    match given {
        Value::Array(names) => names.iter().try_fold(0, |word, name| {
            let name = name.as_str()?;
            Some(word | field(name, 1).or_else(|| number(&Value::from(name)))?)
        }),
        Value::Object(values) => values.iter().try_fold(0, |word, (name, value)| {
            let value = number(value)?;
            Some(word | if name == "unknown" { value } else { field(name, value)? })
        }),
        other => number(other),
    }
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

fn bytes_of_digits(digits: &str) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    pairs.iter().map(|[high, low]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()).collect()
}

/// The bytes of a JSON string, where U+FFFD and two hexadecimal digits stand for a byte that is not UTF-8.
fn bytes_of_string(string: &str) -> Vec<u8> {
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
