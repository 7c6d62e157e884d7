//! Addresses of the Internet protocols (`print_ip_arg`).

use perfdata_core::Endian;

use crate::evaluate::Data;
use crate::expression::Arg;
use crate::field::Span;
use crate::pointer::{NO_FIELD, bytes, without_casts, wrong_type};
use crate::printf;

/// `AF_INET` of Linux.
const INET: u16 = 2;
/// `AF_INET6` of Linux.
const INET6: u16 = 10;

/// Appends an address in the notation of `%pI4`, `%pi4`, `%pI6`, `%pI6c`, `%pi6` or `%pISpc`.
pub fn print(data: Data<'_>, arg: &Arg, letters: &[u8], out: &mut Vec<u8>) {
    let is_padded = letters.first() == Some(&b'i');
    let rest = letters.get(2..).unwrap_or_default();
    match letters.get(1) {
        Some(b'4') => {
            if let Some(mut address) = bytes::<4>(data, arg, b"INVALIDIPv4", out) {
                if is_reversed(rest, data.format.machine.endian) {
                    address.reverse();
                }
                v4(address, is_padded, out);
            }
        }
        Some(b'6') => {
            if let Some(address) = bytes::<16>(data, arg, b"INVALIDIPv6", out) {
                v6(address, is_padded, rest.first() == Some(&b'c'), out);
            }
        }
        Some(b'S') => socket(data, arg, is_padded, rest, out),
        _ => {}
    }
}

/// Returns whether an address is in the other order than that of networks.
fn is_reversed(letters: &[u8], endian: Endian) -> bool {
    match letters.first() {
        Some(b'h') => endian == Endian::Little,
        Some(b'l') => true,
        _ => false,
    }
}

fn v4(address: [u8; 4], is_padded: bool, out: &mut Vec<u8>) {
    for (at, byte) in address.into_iter().enumerate() {
        if at > 0 {
            out.push(b'.');
        }
        if is_padded {
            if byte < 100 {
                out.push(b'0');
            }
            if byte < 10 {
                out.push(b'0');
            }
        }
        printf::decimal(byte.into(), out);
    }
}

fn v6(address: [u8; 16], is_plain: bool, is_short: bool, out: &mut Vec<u8>) {
    if is_short && !is_plain {
        return v6_short(address, out);
    }
    let (pairs, _) = address.as_chunks::<2>();
    for (at, pair) in pairs.iter().enumerate() {
        if at > 0 && !is_plain {
            out.push(b':');
        }
        pair.iter().for_each(|byte| printf::hex_byte(*byte, out));
    }
}

/// Appends an address without its longest row of zeros (`print_ip6c_addr`).
fn v6_short(address: [u8; 16], out: &mut Vec<u8>) {
    let (pairs, _) = address.as_chunks::<2>();
    let words: Vec<u16> = pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
    let [.., a, b, c, d] = address;
    let is_mapped = words.starts_with(&[0, 0, 0, 0, 0, 0xffff]);
    // ISATAP: the bit that distinguishes local addresses is ignored.
    let is_isatap = match words.get(4..6) {
        Some(&[first, second]) => first | 0x0200 == 0x0200 && second == 0x5efe,
        _ => false,
    };
    let has_v4 = is_mapped || is_isatap;
    let words = match has_v4 {
        true => words.get(..6).unwrap_or_default(),
        false => &words,
    };
    let mut longest = (0, 1);
    for at in 0..words.len() {
        let rest = words.get(at..).unwrap_or_default();
        let zeros = rest.iter().take_while(|word| **word == 0).count();
        if zeros > longest.1 {
            longest = (at, zeros);
        }
    }
    let (start, len) = match longest {
        (_, 1) => (usize::MAX, 0),
        longest => longest,
    };
    let end = start.saturating_add(len);
    let mut needs_colon = false;
    for (at, word) in words.iter().enumerate() {
        if at == start {
            out.extend_from_slice(if needs_colon || at == 0 { b"::" } else { b":" });
            needs_colon = false;
        }
        if (start..end).contains(&at) {
            continue;
        }
        if needs_colon {
            out.push(b':');
        }
        printf::hex((*word).into(), out);
        needs_colon = true;
    }
    if has_v4 {
        if needs_colon {
            out.push(b':');
        }
        v4([a, b, c, d], false, out);
    }
}

/// Appends the address in a `struct sockaddr` (`print_ipsa_arg`).
fn socket(data: Data<'_>, arg: &Arg, is_plain: bool, letters: &[u8], out: &mut Vec<u8>) {
    let mut rest = letters;
    let mut flag = |letter: u8| match rest {
        [first, after @ ..] if *first == letter && !is_plain => {
            rest = after;
            true
        }
        _ => false,
    };
    let has_port = flag(b'p');
    let is_short = flag(b'c');
    let is_reversed = is_reversed(rest, data.format.machine.endian);
    let is_library = data.format.machine.like.is_library();
    let arg = without_casts(data, arg);
    let span = match arg {
        Arg::Field(field) => match data.field(*field) {
            Some(field) => Span {
                offset: field.offset,
                len: field.size,
            },
            None => return,
        },
        Arg::DynamicArray(field) if is_library => match data.field(Some(*field)) {
            Some(field) => field.span(data.raw),
            None => return,
        },
        _ if is_library => {
            let text = b"ARG NOT FIELD NOR DYNAMIC ARRAY BUT TYPE ";
            return wrong_type(arg, text, out);
        }
        _ => return wrong_type(arg, NO_FIELD, out),
    };
    let bytes = data.from(span.offset);
    let Some((family, after)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let family = match data.format.machine.endian {
        Endian::Little => u16::from_le_bytes(*family),
        Endian::Big => u16::from_be_bytes(*family),
    };
    let Some((port, after)) = after.split_first_chunk::<2>() else {
        return;
    };
    let port = u16::from_be_bytes(*port);
    match family {
        INET if span.len < 16 => out.extend_from_slice(b"INVALIDIPv4"),
        INET => {
            let Some(mut address) = after.first_chunk::<4>().copied() else {
                return;
            };
            if is_reversed {
                address.reverse();
            }
            v4(address, is_plain, out);
            if has_port {
                out.push(b':');
                printf::decimal(port.into(), out);
            }
        }
        INET6 if span.len < 28 => out.extend_from_slice(b"INVALIDIPv6"),
        INET6 => {
            // The flow is before it.
            let Some(address) = after.get(4..).and_then(|rest| rest.first_chunk::<16>()) else {
                return;
            };
            if has_port {
                out.push(b'[');
            }
            v6(*address, is_plain, is_short, out);
            if has_port {
                out.extend_from_slice(b"]:");
                printf::decimal(port.into(), out);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shortened() {
        let cases: [([u16; 8], &str); 8] = [
            ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], "2001:db8::1"),
            ([0, 0, 0, 0, 0, 0, 0, 1], "::1"),
            ([0, 0, 0, 0, 0, 0, 0, 0], "::"),
            ([1, 0, 2, 0, 3, 0, 4, 0], "1:0:2:0:3:0:4:0"),
            ([0xfe80, 0, 0, 1, 0, 0, 0, 0], "fe80:0:0:1::"),
            ([0, 0, 0, 0, 0, 0xffff, 0x0102, 0x0304], "::ffff:1.2.3.4"),
            (
                [0xfe80, 0, 0, 0, 0x0200, 0x5efe, 0x0a00, 1],
                "fe80::200:5efe:10.0.0.1",
            ),
            (
                [0xfe80, 0, 0, 0, 0, 0x5efe, 0x0a00, 1],
                "fe80::5efe:10.0.0.1",
            ),
        ];
        for (words, expected) in cases {
            let mut address = [0; 16];
            for (place, word) in address.chunks_exact_mut(2).zip(words) {
                place.copy_from_slice(&word.to_be_bytes());
            }
            let mut out = Vec::new();
            v6(address, false, true, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn addresses_are_padded() {
        let mut out = Vec::new();
        v4([1, 20, 255, 0], true, &mut out);
        out.push(b' ');
        v4([1, 20, 255, 0], false, &mut out);
        assert_eq!(out, b"001.020.255.000 1.20.255.0");
    }
}
