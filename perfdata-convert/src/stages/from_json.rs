//! Feature sections from JSON, in the form that `perfconv info --json` prints.
//!
//! The declaration of a section requests its fields; this module supplies their values from the
//! JSON. At the end, every field must have received a value, and every value must belong to a
//! field.

use std::collections::HashSet;

use perfdata_core::describe::{Field, Leaf};
use perfdata_core::feature::{FeatureId, Section};
use perfdata_core::record::RecordHeader;
use perfdata_core::values::Values;
use perfdata_core::{DecodeContext, Endian};
use serde_json::{Map, Value};

/// Returns the section of feature `id` with the values in `json`, in byte order `endian`. Uses only
/// the number of CPUs in `layout`.
///
/// # Errors
/// The reason why the section cannot be made.
pub(super) fn section(
    id: FeatureId,
    json: &Value,
    endian: Endian,
    layout: &DecodeContext,
) -> Result<Vec<u8>, String> {
    if id == FeatureId::TRACING_DATA {
        return Err("its byte order may differ from the recording's".into());
    }
    if id == FeatureId::BUILD_ID {
        check_build_ids(json)?;
    }
    let mut values = JsonValues {
        json,
        frames: Vec::new(),
        wrong: None,
        unused: None,
        missing: None,
        refused: None,
    };
    let Some(section) = Section::from_values(id, &mut values, layout) else {
        return Err("its fields are not known".into());
    };
    match values
        .wrong
        .or(values.unused)
        .or(values.missing)
        .or(values.refused)
    {
        Some(why) => Err(why),
        None => section.encode(endian).map_err(|error| error.to_string()),
    }
}

/// Checks that each entry of BUILD_ID has a valid size in its header, because the entry ends there.
fn check_build_ids(json: &Value) -> Result<(), String> {
    let entries = json.as_array().ok_or("expected a list of build IDs")?;
    for (at, entry) in entries.iter().enumerate() {
        let size = entry
            .pointer("/header/size")
            .ok_or_else(|| format!("build ID {at} has no header with a size"))?;
        let fits = |&size: &u16| usize::from(size) >= RecordHeader::SIZE;
        let known = number(size)
            .and_then(|size| u16::try_from(size).ok())
            .filter(fits);
        known.ok_or_else(|| format!("build ID {at}: invalid record size {size}"))?;
    }
    Ok(())
}

/// The position in the JSON from which values are read.
enum JsonPosition<'a> {
    /// An object, and the names that were requested.
    Object(&'a Map<String, Value>, HashSet<&'static str>),
    /// The rest of a list.
    List(std::slice::Iter<'a, Value>),
    /// A value that the JSON does not contain.
    Absent,
}

/// The values in JSON, and the first error of each kind; the first kind has priority.
struct JsonValues<'a> {
    json: &'a Value,
    frames: Vec<JsonPosition<'a>>,
    /// A value of another kind than its field.
    wrong: Option<String>,
    unused: Option<String>,
    missing: Option<String>,
    refused: Option<String>,
}

impl<'a> JsonValues<'a> {
    /// Returns the JSON value of the field `name`, or the next element of a list.
    fn take(&mut self, name: &'static str) -> Option<&'a Value> {
        match self.frames.last_mut() {
            None => Some(self.json),
            Some(JsonPosition::Object(object, used)) => {
                used.insert(name);
                let found = object.get(name);
                if found.is_none() {
                    self.missing
                        .get_or_insert_with(|| format!("{name} is missing"));
                }
                found
            }
            Some(JsonPosition::List(items)) => items.next(),
            Some(JsonPosition::Absent) => None,
        }
    }

    fn wrong(&mut self, why: String) {
        self.wrong.get_or_insert(why);
    }

    /// Returns the bytes that `of` makes from the string of the field `name`, if `fit` accepts
    /// them.
    fn string(
        &mut self,
        name: &'static str,
        of: fn(&str) -> Option<Vec<u8>>,
        fit: impl FnOnce(&Vec<u8>) -> bool,
    ) -> Vec<u8> {
        let Some(given) = self.take(name) else {
            return Vec::new();
        };
        given.as_str().and_then(of).filter(fit).unwrap_or_else(|| {
            self.wrong(invalid(&text_of(given), name));
            Vec::new()
        })
    }
}

impl Values for JsonValues<'_> {
    fn begin(&mut self, name: &'static str) {
        let frame = match self.take(name) {
            Some(Value::Object(object)) => JsonPosition::Object(object, HashSet::new()),
            Some(_) => {
                self.wrong(expected("an object", name));
                JsonPosition::Absent
            }
            None => JsonPosition::Absent,
        };
        self.frames.push(frame);
    }

    fn begin_list(&mut self, name: &'static str) -> usize {
        let items = match self.take(name) {
            Some(Value::Array(items)) => items.iter(),
            Some(_) => {
                self.wrong(expected("a list", name));
                [].iter()
            }
            None => [].iter(),
        };
        let len = items.len();
        self.frames.push(JsonPosition::List(items));
        len
    }

    fn end(&mut self) {
        if let Some(JsonPosition::Object(object, used)) = self.frames.pop()
            && let Some(name) = object.keys().find(|name| !used.contains(name.as_str()))
        {
            self.unused
                .get_or_insert_with(|| format!("it has no field {name}"));
        }
    }

    fn has(&mut self, name: &'static str) -> bool {
        matches!(self.frames.last(), Some(JsonPosition::Object(object, _)) if object.contains_key(name))
    }

    fn number(&mut self, name: &'static str, size: usize, like: Leaf<'static>) -> u64 {
        let Some(given) = self.take(name) else {
            return 0;
        };
        number_like(given, size, &like).unwrap_or_else(|| {
            let given = text_of(given);
            self.wrong(match like {
                Leaf::Uint(..) => format!("{given} is not a {}-bit number", size * 8),
                _ => invalid(&given, name),
            });
            0
        })
    }

    fn text(&mut self, name: &'static str, most: usize) -> Vec<u8> {
        self.string(
            name,
            |text| Some(bytes_of_string(text)),
            |text| text.len() <= most,
        )
    }

    fn bytes(&mut self, name: &'static str, len: Option<usize>) -> Vec<u8> {
        self.string(name, bytes_of_digits, |bytes| {
            len.is_none_or(|len| bytes.len() == len)
        })
    }

    fn refuse(&mut self, why: String) {
        self.refused.get_or_insert(why);
    }
}

fn expected(what: &str, name: &str) -> String {
    if name.is_empty() {
        format!("expected {what}")
    } else {
        format!("{name}: expected {what}")
    }
}

fn invalid(given: &str, name: &str) -> String {
    let of = if name.is_empty() {
        String::new()
    } else {
        format!(" of {name}")
    };
    format!("{given} is not a valid value{of}")
}

fn text_of(given: &Value) -> String {
    given
        .as_str()
        .map_or_else(|| given.to_string(), str::to_owned)
}

/// Returns the largest number of `size` bytes.
fn largest(size: usize) -> u64 {
    u32::try_from(size * 8)
        .ok()
        .and_then(|bits| u64::MAX.checked_shr(u64::BITS.saturating_sub(bits)))
        .unwrap_or(0)
}

/// Returns `given` as a number in the form that [`Values::number`] requires.
fn number_like(given: &Value, size: usize, like: &Leaf<'_>) -> Option<u64> {
    match like {
        Leaf::Uint(_, style) if style.has_none() && given.as_i64() == Some(-1) => {
            return Some(largest(size));
        }
        Leaf::Int(_) => {
            return i32::try_from(given.as_i64()?)
                .ok()
                .map(|number| i64::from(number).cast_unsigned());
        }
        Leaf::Float(_) => {
            return given
                .as_f64()
                .or_else(|| given.as_str()?.parse().ok())
                .map(f64::to_bits);
        }
        Leaf::Code(_, _, codes) => {
            let called = |name| {
                codes
                    .iter()
                    .find(|(_, code)| *code == name)
                    .map(|(number, _)| *number)
            };
            given.as_str().and_then(called).or_else(|| number(given))
        }
        Leaf::Flags { fields, .. } => flags(given, fields),
        _ => number(given),
    }
    .filter(|&number| number <= largest(size))
}

/// Returns the flags in `given`: a list of set flags, an object with a number for each name, or one
/// number.
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
            Some(
                word | if name == "unknown" {
                    value
                } else {
                    field(name, value)?
                },
            )
        }),
        other => number(other),
    }
}

/// Returns a number in JSON, or in text with or without 0x.
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
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    pairs
        .iter()
        .map(|[high, low]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok())
        .collect()
}

/// Returns the bytes of a JSON string, in which U+FFFD and two hexadecimal digits represent a byte
/// that is not UTF-8.
fn bytes_of_string(string: &str) -> Vec<u8> {
    let mut parts = string.split('\u{fffd}');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
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
