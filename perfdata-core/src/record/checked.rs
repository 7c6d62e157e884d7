//! Encodes records so that a reader that knows only the event's attribute decodes the same record.

use binrw::Endian;

use super::{Body, RawRecord, Record, RecordType, Sample, SampleId};
use crate::attr::SampleType;
use crate::decode_context::DecodeContext;
use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::error::{Error, Problem, Result};
use crate::recording::Events;

impl Record {
    /// Returns the index of the event that the record belongs to, according to the IDs in it;
    /// `None` if there is no such event.
    pub fn event(&self, events: &Events) -> Option<usize> {
        let first = events.first()?;
        if events.len() == 1 || !self.kind.is_kernel() {
            return Some(0);
        }
        let id = match &self.body {
            Body::Sample(sample) => sample.identifier.or(sample.id),
            _ if first.attr.flags.sample_id_all() == 0 => return Some(0),
            _ => self
                .sample_id
                .as_ref()
                .and_then(|trailer| trailer.identifier.or(trailer.id)),
        };
        events.of_id(id?)
    }

    /// Returns the record's bytes, as [`encode`](Self::encode) does, if a reader decodes the same
    /// record from them.
    ///
    /// # Errors
    /// Fails if the body does not match `kind`; if a sample or trailer does not have exactly the
    /// parts in `sample_type` of its event; if there is a trailer without `sample_id_all`, or no
    /// trailer with it; if a count, a form or a flag in `misc` contradicts the fields; if the
    /// record's event is unknown and its layout depends on it; or if the record exceeds 65,535
    /// bytes.
    pub fn encode_for(&self, events: &Events, endian: Endian) -> Result<Vec<u8>> {
        let layout = match self.event(events) {
            Some(event) => events
                .get(event)
                .map(|event| DecodeContext::of_attr(&event.attr))
                .unwrap_or_default(),
            None if events.have_one_layout() => events
                .first()
                .map(|event| DecodeContext::of_attr(&event.attr))
                .unwrap_or_default(),
            None => {
                return Err(self.wrong(
                    "id",
                    "an unknown ID",
                    "the ID of an event, because the events have different layouts",
                ));
            }
        };
        self.check_parts(&layout)?;
        let bytes = self.encode(endian)?;
        let raw = RawRecord::first(&bytes, endian, 0)?;
        let layout = layout.with_requests_build_ids(events.requests_build_ids(&raw));
        let back = Record::decode(&raw, &layout)?;
        if self.is_same(&back) {
            return Ok(bytes);
        }
        let expected = "the fields that a reader decodes with the attribute of the event: a count, a form or a flag in misc \
                        contradicts them, or bytes follow a field that extends to the end";
        Err(self.wrong("", "other fields", expected))
    }

    /// Compares the records; treats NaN as equal to NaN, and a trailer without parts as equal to
    /// none.
    fn is_same(&self, back: &Record) -> bool {
        let no_trailer = |record: &Record| {
            record
                .sample_id
                .as_ref()
                .is_none_or(|id| parts_of(id).is_empty())
        };
        let is_same_trailer =
            self.sample_id == back.sample_id || (no_trailer(self) && no_trailer(back));
        let is_same_body =
            self.body == back.body || format!("{:?}", self.body) == format!("{:?}", back.body);
        is_same_trailer
            && is_same_body
            && (self.kind, self.misc, &self.tail) == (back.kind, back.misc, &back.tail)
    }

    fn check_parts(&self, layout: &DecodeContext) -> Result<()> {
        let of_body = self.body.kind();
        if of_body.unwrap_or(self.kind) != self.kind
            || (of_body.is_none() && self.kind.info().is_some())
        {
            let found = of_body.map_or("bytes of an unknown type".into(), |kind| {
                format!("the fields of {kind}")
            });
            return Err(self.wrong("", &found, "the fields of its type"));
        }
        let sample_type = layout.sample_type;
        if let Body::Sample(sample) = &self.body {
            self.compare(
                "",
                &parts_of(sample),
                named(sample_type, Sample::PARTS),
                sample_type,
            )?;
        }
        let found = self.sample_id.as_ref().map(parts_of).unwrap_or_default();
        if self.kind.is_kernel() && self.kind != RecordType::SAMPLE {
            let wanted = if layout.sample_id_all {
                SampleId::PARTS
            } else {
                SampleType(0)
            };
            if !layout.sample_id_all && !found.is_empty() {
                return Err(self.wrong(
                    "sample_id",
                    "a trailer",
                    "none: its event has no sample_id_all",
                ));
            }
            self.compare(
                "sample_id.",
                &found,
                named(sample_type, wanted),
                sample_type,
            )
        } else if self.kind != RecordType::HEADER_BUILD_ID && !found.is_empty() {
            Err(self.wrong(
                "sample_id",
                "a trailer",
                "none: records of this type have no trailer",
            ))
        } else {
            Ok(())
        }
    }

    fn compare(
        &self,
        of: &str,
        found: &[&str],
        wanted: Vec<&str>,
        sample_type: SampleType,
    ) -> Result<()> {
        let has =
            |list: &[&str], name: &str| list.iter().any(|other| other.eq_ignore_ascii_case(name));
        if let Some(missing) = wanted.iter().find(|name| !has(found, name)) {
            let expected = format!("a value: sample_type of its event has {missing}");
            return Err(self.wrong(
                &format!("{of}{}", missing.to_ascii_lowercase()),
                "nothing",
                &expected,
            ));
        }
        match found.iter().find(|name| !has(&wanted, name)) {
            // It is unknown which part belongs to a bit without a name.
            Some(more) if sample_type.unknown() == 0 => {
                let expected = format!(
                    "nothing: sample_type of its event has no {}",
                    more.to_ascii_uppercase()
                );
                Err(self.wrong(&format!("{of}{more}"), "a value", &expected))
            }
            _ => Ok(()),
        }
    }

    fn wrong(&self, field: &str, found: &str, expected: &str) -> Error {
        let problem = Problem::Invalid {
            found: found.to_owned().into(),
            expected: expected.to_owned().into(),
        };
        let error = Error::new(format!("{} record", self.kind), problem);
        if field.is_empty() {
            error
        } else {
            error.field(field.to_owned())
        }
    }
}

/// Returns the names of the parts in `sample_type` that are also in `among`. Treats WEIGHT and
/// WEIGHT_STRUCT as one part.
fn named(sample_type: SampleType, among: SampleType) -> Vec<&'static str> {
    let mut parts = SampleType(sample_type.0 & among.0);
    if parts.has(SampleType::WEIGHT) {
        parts.0 &= !SampleType::WEIGHT_STRUCT.0;
    }
    parts.names().collect()
}

/// Returns the names of the parts that are present, which are those of the bits in `sample_type`.
fn parts_of(value: &impl Describe) -> Vec<&'static str> {
    let mut parts = Parts::default();
    value.describe("", Style::Plain, &mut parts);
    parts.names
}

/// Collects the names of the fields of a structure, without the fields inside of them.
#[derive(Default)]
struct Parts {
    depth: usize,
    names: Vec<&'static str>,
}

impl Parts {
    fn add(&mut self, name: &'static str) {
        // A count has the name of the list that follows it.
        if self.depth == 1 && self.names.last() != Some(&name) {
            self.names.push(name);
        }
    }
}

impl Visitor for Parts {
    fn begin(&mut self, name: &'static str) {
        self.add(name);
        self.depth = self.depth.saturating_add(1);
    }
    fn begin_list(&mut self, name: &'static str, _: usize) {
        self.begin(name);
    }
    fn end(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
    fn leaf(&mut self, name: &'static str, _: usize, _: Leaf<'_>) {
        self.add(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Wire;

    /// Every part of a sample and of a trailer is named like its bit of `sample_type`.
    #[test]
    fn parts_are_called_as_their_bits() {
        for endian in [Endian::Little, Endian::Big] {
            for field in SampleType::FIELDS {
                let layout = DecodeContext {
                    sample_type: SampleType(1 << field.bit),
                    sample_id_all: true,
                    ..DecodeContext::default()
                };
                let zeros = [0; 64];
                let (sample, _) = Sample::decode(&zeros, endian, layout).unwrap();
                let names = parts_of(&sample);
                assert!(
                    matches!(&names[..], [name] if name.eq_ignore_ascii_case(field.name)),
                    "{names:?}: {field:?}"
                );
                let mut kept = sample.clone();
                kept.keep_parts(SampleType(1 << field.bit));
                assert_eq!(kept, sample);
                kept.keep_parts(SampleType(!(1 << field.bit)));
                assert_eq!(kept, Sample::default());
                let (mut trailer, _) = SampleId::decode(&zeros, endian, layout).unwrap();
                trailer.keep_parts(SampleType(1 << field.bit));
                let names = parts_of(&trailer);
                let is_part = SampleId::PARTS.0 >> field.bit & 1 == 1;
                assert_eq!(names.len(), usize::from(is_part), "{names:?}: {field:?}");
                assert!(
                    names
                        .iter()
                        .all(|name| name.eq_ignore_ascii_case(field.name)),
                    "{names:?}: {field:?}"
                );
                trailer.keep_parts(SampleType(!(1 << field.bit)));
                assert!(parts_of(&trailer).is_empty());
            }
        }
    }
}
