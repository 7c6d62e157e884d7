//! The form of a record, from the way in which it is written.

use perfdata_core::describe::{Leaf, Style, Visitor};

use super::form::{Form, TextPiece, Value, WORD};
use crate::show::buffer::{Known, Literal};
use crate::show::record::{HeadNumber, RecordWriter};
use perfdata_convert::json::Json;
use perfdata_convert::support::digits::ROOM;
use perfdata_convert::support::json_text::NumberForm;
use perfdata_convert::support::values::is_filling;

/// Writes a record, and notes where its values are.
#[derive(Debug, Default)]
pub(super) struct Learner {
    json: Json,
    pieces: Vec<TextPiece>,
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
        self.pieces.push(TextPiece {
            before: Literal::new(text),
            value,
            known: Known::default(),
        });
        self.from = self.json.out.len();
    }

    /// Adds a field of `size` bytes.
    fn field(&mut self, name: &'static str, size: usize, value: Value) {
        self.json.key(name);
        self.value(value);
        self.pass(size);
    }

    fn pass(&mut self, size: usize) {
        self.after_text = self.after_text.map(|after| after + size);
    }

    /// Ends the line.
    pub(super) fn end_line(&mut self) {
        self.json.end_line();
    }

    /// Returns the form of the record, which depends on its `size` if there is one.
    pub(super) fn into_form(self, size: Option<usize>) -> Option<Form> {
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
        self.json.key(number.name());
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
