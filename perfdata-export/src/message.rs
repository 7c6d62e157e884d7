//! Messages in the encoding of Protocol Buffers.

/// A message.
#[derive(Debug, Default)]
pub(crate) struct Message(Vec<u8>);

/// Types of fields.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

/// Appends a number with 7 bits in each byte.
pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

impl Message {
    /// Returns the encoded message.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Removes all fields.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn key(&mut self, field: u32, kind: u64) {
        varint(&mut self.0, u64::from(field) << 3 | kind);
    }

    /// Appends a number. 0 is the default of all fields and is not written.
    pub fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.member(field, value);
        }
    }

    /// Appends a number of a field that is one of several, also if it is 0.
    pub fn member(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        varint(&mut self.0, value);
    }

    /// Appends a number of the type `fixed64`. 0 is the default and is not written.
    pub fn fixed(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.key(field, FIXED64);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// Appends the beginning of a field whose content has `len` bytes.
    pub fn begin(&mut self, field: u32, len: u64) {
        self.key(field, BYTES);
        varint(&mut self.0, len);
    }

    /// Appends the fields of another message.
    pub fn append(&mut self, message: &Message) {
        self.0.extend_from_slice(&message.0);
    }

    /// Appends bytes, also if there are none.
    pub fn content(&mut self, field: u32, content: &[u8]) {
        self.begin(field, content.len() as u64);
        self.0.extend_from_slice(content);
    }

    /// Appends text, also if it is empty.
    pub fn text(&mut self, field: u32, text: &str) {
        self.content(field, text.as_bytes());
    }

    /// Appends a message.
    pub fn message(&mut self, field: u32, message: &Message) {
        self.content(field, &message.0);
    }

    /// Appends a list of encoded numbers.
    pub fn packed(&mut self, field: u32, numbers: &[u8]) {
        if !numbers.is_empty() {
            self.content(field, numbers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded() {
        let mut inner = Message::default();
        inner.number(1, 150);
        inner.number(2, 0);
        let mut outer = Message::default();
        outer.message(3, &inner);
        outer.text(6, "ab");
        outer.packed(1, &[]);
        assert_eq!(
            outer.bytes(),
            [0x1a, 3, 0x08, 0x96, 0x01, 0x32, 2, b'a', b'b']
        );
        let mut fixed = Message::default();
        fixed.fixed(3, 0);
        fixed.fixed(3, 0x0102);
        assert_eq!(fixed.bytes(), [0x19, 2, 1, 0, 0, 0, 0, 0, 0]);
        let mut most = Vec::new();
        varint(&mut most, u64::MAX);
        assert_eq!(most.len(), 10);
    }
}
