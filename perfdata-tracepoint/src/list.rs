//! Lists of fields, for formats that cannot be parsed (`tep_print_fields`).

use crate::evaluate::Data;
use crate::field::{Field, Span, until_nul};
use crate::number;
use crate::printf;

/// Appends the fields with their values.
pub fn print(data: Data<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"[FAILED TO PARSE]");
    let end = data.most_text(out);
    for field in data.format.fields() {
        if out.len() > end {
            break;
        }
        out.push(b' ');
        out.extend_from_slice(&field.name);
        out.push(b'=');
        if field.is_array {
            array(data, field, out);
        } else {
            single(data, field, out);
        }
    }
}

/// Appends an array (`print_field_raw`).
fn array(data: Data<'_>, field: &Field, out: &mut Vec<u8>) {
    let span = if field.is_dynamic {
        field.span(data.raw)
    } else {
        Span {
            offset: field.offset,
            len: field.size,
        }
    };
    let bytes = data.at(span);
    if field.may_be_text() && until_nul(bytes).iter().all(|byte| is_printable(*byte)) {
        // Also what is after the field, if it contains no NUL.
        out.extend_from_slice(until_nul(data.from(span.offset)));
        return;
    }
    field.is_no_text();
    out.extend_from_slice(b"ARRAY[");
    for (at, byte) in bytes.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b", ");
        }
        printf::hex_byte(*byte, out);
    }
    out.push(b']');
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7e | b'\t'..=b'\r')
}

/// Appends a number.
fn single(data: Data<'_>, field: &Field, out: &mut Vec<u8>) {
    let value = number::read(data.raw, field.offset, field.size, field.endian);
    let is_hex = field.is_pointer || field.is_long && (!field.is_signed || field.size == 4);
    if is_hex {
        out.extend_from_slice(b"0x");
        return printf::hex(value, out);
    }
    let value = match (field.is_signed, field.size) {
        (true, 4) => i64::from(value as i32),
        (true, 2) => {
            let value = i64::from(value as i16);
            if (0..10).contains(&value) {
                out.push(b' ');
            }
            value
        }
        (true, 1) => i64::from(value as i8),
        (true, _) => value.cast_signed(),
        (false, _) => {
            return out.extend_from_slice(printf::digits(value, 10, false, &mut [0; 24]));
        }
    };
    printf::decimal(value, out);
}
