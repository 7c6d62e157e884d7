//! What is printed for `%p` with its letters (`print_arg_pointer`).

use crate::evaluate::Data;
use crate::expression::Arg;
use crate::ip;
use crate::printf;
use crate::resolver::Resolver;

/// Appends what a pointer points to. `len` is the argument of `*`, otherwise 1.
pub fn print(
    data: Data<'_>,
    arg: &Arg,
    letters: &[u8],
    len: i32,
    resolver: &mut dyn Resolver,
    out: &mut Vec<u8>,
) {
    if let Arg::Recorded(text) = arg {
        return out.extend_from_slice(text);
    }
    match letters.first() {
        Some(letter @ (b'F' | b'f' | b'S' | b's')) => {
            let has_offset = matches!(letter, b'F' | b'S');
            let address = data.number(arg);
            if !function(address, has_offset, resolver, out) {
                out.extend_from_slice(b"0x");
                printf::hex(address, out);
            }
        }
        Some(b'M' | b'm') => mac(data, arg, letters, out),
        Some(b'I' | b'i') => ip::print(data, arg, letters, out),
        Some(b'U') => uuid(data, arg, letters.get(1).copied(), out),
        Some(b'h') => buffer(data, arg, letters.get(1).copied(), len, out),
        _ => match data.number(arg) {
            0 => out.extend_from_slice(b"(nil)"),
            address => {
                out.extend_from_slice(b"0x");
                printf::hex(address, out);
            }
        },
    }
}

/// Appends the function at an address with or without the offset in it. Returns false if there is
/// none.
pub fn function(
    address: u64,
    has_offset: bool,
    resolver: &mut dyn Resolver,
    out: &mut Vec<u8>,
) -> bool {
    let Some(function) = resolver.function(address) else {
        return false;
    };
    out.extend_from_slice(&function.name);
    if has_offset {
        out.extend_from_slice(b"+0x");
        printf::hex(address.wrapping_sub(function.start), out);
    }
    true
}

/// Returns what is converted, where libtraceevent ignores conversions.
pub fn without_casts<'a>(data: Data<'_>, mut arg: &'a Arg) -> &'a Arg {
    if data.format.machine.like.is_library() {
        while let Arg::Cast(cast) = arg {
            arg = &cast.item;
        }
    }
    arg
}

/// Returns the number that libtraceevent has for a kind of arguments (`enum tep_print_arg_type`).
pub fn type_number(arg: &Arg) -> u8 {
    match arg {
        Arg::Null => 0,
        Arg::Atom(_) => 1,
        Arg::Field(_) => 2,
        Arg::Flags(_) => 3,
        Arg::Symbolic(_) => 4,
        Arg::Hex(hex) if hex.is_spaced => 5,
        Arg::Array(_) => 6,
        Arg::Cast(_) => 7,
        Arg::Str(_) => 8,
        Arg::Recorded(_) => 9,
        Arg::DynamicArray(_) => 10,
        Arg::Op(_) => 11,
        Arg::Bitmask(_) => 13,
        Arg::DynamicArrayLen(_) => 14,
        Arg::Hex(_) => 15,
        Arg::Cpumask(_) => 16,
        Arg::Stacktrace(_) => 17,
    }
}

/// Appends that an argument is none that is known.
pub fn wrong_type(arg: &Arg, text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(text);
    printf::decimal(type_number(arg).into(), out);
}

/// What is printed for an argument that is no field.
pub const NO_FIELD: &[u8] = b"ARG TYPE NOT FIELD BUT ";

/// Returns the bytes of a field of `N` bytes. Appends `invalid` if it has another size.
pub fn bytes<const N: usize>(
    data: Data<'_>,
    arg: &Arg,
    invalid: &[u8],
    out: &mut Vec<u8>,
) -> Option<[u8; N]> {
    let arg = without_casts(data, arg);
    let Arg::Field(field) = arg else {
        wrong_type(arg, NO_FIELD, out);
        return None;
    };
    let field = data.field(*field)?;
    if field.size != N {
        out.extend_from_slice(invalid);
        return None;
    }
    data.from(field.offset).first_chunk().copied()
}

/// Appends an Ethernet address (`print_mac_arg`).
fn mac(data: Data<'_>, arg: &Arg, letters: &[u8], out: &mut Vec<u8>) {
    let Some(mut bytes) = bytes::<6>(data, arg, b"INVALIDMAC", out) else {
        return;
    };
    let delimiter: &[u8] = match letters {
        [b'm', ..] => b"",
        [b'M', b'F', ..] => b"-",
        _ => b":",
    };
    if letters.get(1) == Some(&b'R') {
        bytes.reverse();
    }
    delimited(&bytes, delimiter, out);
}

fn delimited(bytes: &[u8], delimiter: &[u8], out: &mut Vec<u8>) {
    for (at, byte) in bytes.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(delimiter);
        }
        printf::hex_byte(*byte, out);
    }
}

/// Appends a UUID (`print_uuid_arg`).
fn uuid(data: Data<'_>, arg: &Arg, letter: Option<u8>, out: &mut Vec<u8>) {
    let Some([a, b, c, d, e, f, g, h, rest @ ..]) = bytes::<16>(data, arg, b"INVALIDUUID", out)
    else {
        return;
    };
    let start = match letter {
        Some(b'L' | b'l') => [d, c, b, a, f, e, h, g],
        _ => [a, b, c, d, e, f, g, h],
    };
    let first = out.len();
    for (at, byte) in start.iter().chain(&rest).enumerate() {
        printf::hex_byte(*byte, out);
        if matches!(at, 3 | 5 | 7 | 9) {
            out.push(b'-');
        }
    }
    if matches!(letter, Some(b'L' | b'B')) {
        out.get_mut(first..)
            .unwrap_or_default()
            .make_ascii_uppercase();
    }
}

/// Appends bytes (`print_raw_buff_arg`).
fn buffer(data: Data<'_>, arg: &Arg, letter: Option<u8>, len: i32, out: &mut Vec<u8>) {
    let Arg::DynamicArray(field) = arg else {
        return wrong_type(arg, NO_FIELD, out);
    };
    let Some(field) = data.field(Some(*field)) else {
        return;
    };
    let bytes = data.at(field.span(data.raw));
    let len = usize::try_from(len).unwrap_or_default();
    let bytes = bytes.get(..len).unwrap_or(bytes);
    let delimiter: &[u8] = match letter {
        Some(b'C') => b":",
        Some(b'D') => b"-",
        Some(b'N') => b"",
        _ => b" ",
    };
    delimited(bytes, delimiter, out);
}
