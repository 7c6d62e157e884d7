//! A decoder of Protocol Buffers.

/// A field of a message: its number, and its value or bytes.
pub type Field = (u64, u64, Vec<u8>);

/// Returns the fields of a message.
pub fn fields(mut bytes: &[u8]) -> Vec<Field> {
    let mut list = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        match key & 7 {
            0 => list.push((key >> 3, varint(&mut bytes), vec![])),
            1 => {
                let (value, rest) = bytes.split_first_chunk().expect("eight bytes");
                list.push((key >> 3, u64::from_le_bytes(*value), vec![]));
                bytes = rest;
            }
            2 => {
                let len = usize::try_from(varint(&mut bytes)).expect("a length");
                let (content, rest) = bytes.split_at(len);
                list.push((key >> 3, 0, content.to_vec()));
                bytes = rest;
            }
            kind => panic!("type {kind}"),
        }
    }
    list
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first().expect("a byte");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// Returns the numbers of a packed field.
pub fn packed(mut bytes: &[u8]) -> Vec<u64> {
    let mut list = Vec::new();
    while !bytes.is_empty() {
        list.push(varint(&mut bytes));
    }
    list
}

/// Returns the number in a field; 0 if the message does not contain it.
pub fn number_in(message: &[u8], number: u64) -> u64 {
    let fields = fields(message);
    let mut found = fields.iter().filter(|field| field.0 == number);
    found.next().map_or(0, |field| field.1)
}

/// Returns the content of all fields with this number.
pub fn contents(message: &[u8], number: u64) -> Vec<Vec<u8>> {
    let fields = fields(message).into_iter();
    let found = fields.filter(|field| field.0 == number);
    found.map(|field| field.2).collect()
}
