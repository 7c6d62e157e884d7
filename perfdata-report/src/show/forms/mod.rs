//! Records of the same form as JSON, without decoding them.
//!
//! Two records of one type, event and `misc` word that consist of numbers at fixed places, counted
//! words and RAW data, or of numbers and a text, have the same fields in the same order. What is
//! between the values, which is most of the text, is therefore the same as well. The first such
//! record is decoded and written as any other. The [`Form`] that follows from it writes the others.

mod form;
mod learner;
#[cfg(test)]
mod tests;

use perfdata_core::Recording;
use perfdata_core::record::{RawRecord, RecordType};

use super::buffer::Buffer;
use super::record::{Shown, named_event};
use form::Form;
use perfdata_convert::json::Json;

/// Number of forms that are known at a time; a recording has few.
const FORMS: usize = 64;

/// The forms of the records so far.
#[derive(Debug)]
pub struct Forms {
    /// The forms by their keys; a key that has no form is known as well.
    known: Vec<Option<(FormKey, Option<Form>)>>,
    /// The version of the state of the recording that they belong to.
    version: Option<u64>,
}

/// What the form of a record depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FormKey {
    kind: RecordType,
    misc: u16,
    is_inner: bool,
    /// The events that determine the layout and the name.
    event: Option<usize>,
    named: Option<usize>,
}

impl FormKey {
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
        Some(FormKey {
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
        let Some(key) = FormKey::of(raw, inner, recording) else {
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
