//! Texts of binary `trace_printk` (`ftrace:bprint`): the format string is in `printk_formats`, and
//! the raw data contain its arguments (`make_bprint_args`).

use std::sync::atomic::{AtomicBool, Ordering};

use crate::conversion;
use crate::evaluate::Data;
use crate::expression::{Arg, Atom};
use crate::field::until_nul;
use crate::list;
use crate::number;
use crate::printf;
use crate::resolver::Resolver;

/// Appends the text.
pub fn print(
    data: Data<'_>,
    was_wrong: &AtomicBool,
    resolver: &mut dyn Resolver,
    out: &mut Vec<u8>,
) {
    if was_wrong.load(Ordering::Relaxed) {
        return list::print(data, out);
    }
    let own = |name: &[u8]| {
        data.format
            .fields()
            .iter()
            .find(|field| field.name() == name)
    };
    let (Some(format), Some(ip), Some(buffer)) = (own(b"fmt"), own(b"ip"), own(b"buf")) else {
        return;
    };
    let read = |field: &crate::field::Field| {
        number::read(data.raw, field.offset, field.size, field.endian)
    };
    let address = read(format);
    let mut string = b"%ps: ".to_vec();
    match data.format.machine.string_at(address) {
        Some(text) => string.extend_from_slice(text),
        None => {
            string.extend_from_slice(b"(NO FORMAT FOUND at ");
            printf::hex(address, &mut string);
            string.extend_from_slice(b")\n");
        }
    }
    let mut args = vec![number_arg(read(ip))];
    let string = until_nul(&string);
    let mut recorded = Recorded {
        data,
        at: buffer.offset,
        args: &mut args,
    };
    recorded.read(string.get(5..).unwrap_or_default());
    let is_library = data.format.machine.like.is_library();
    let (items, is_right) = conversion::split(string, &args, is_library);
    if !is_right {
        was_wrong.store(true, Ordering::Relaxed);
    }
    data.items(&items, &args, resolver, out);
}

fn number_arg(number: u64) -> Arg {
    Atom::arg(number.cast_signed().to_string().as_bytes())
}

/// The recorded arguments.
struct Recorded<'a, 'b> {
    data: Data<'a>,
    at: usize,
    args: &'b mut Vec<Arg>,
}

impl Recorded<'_, '_> {
    /// Reads the arguments of a format string.
    fn read(&mut self, format: &[u8]) {
        let mut rest = format.iter();
        while self.at < self.data.raw.len()
            && let Some(byte) = rest.next()
        {
            if *byte == b'%' {
                self.conversion(&mut rest);
            }
        }
    }

    fn conversion(&mut self, rest: &mut std::slice::Iter<'_, u8>) {
        let mut longs = 0_usize;
        let long_size = self.data.format.machine.long_size;
        let is_library = self.data.format.machine.like.is_library();
        while let Some(letter) = rest.next() {
            match letter {
                b'l' => longs = longs.saturating_add(1),
                b'L' => longs = 2,
                b'z' | b'Z' => longs = 1,
                b'0'..=b'9' | b'.' => {}
                b'#' | b'+' if is_library => {}
                b'*' => self.number(4),
                b'p' => {
                    let next = rest.as_slice();
                    if next.first().is_some_and(u8::is_ascii_alphanumeric) {
                        rest.next();
                        let is_plain = match next {
                            [b's' | b'S' | b'x', ..] => true,
                            [b'f' | b'F', after @ ..] => after.first() != Some(&b'w'),
                            _ => false,
                        };
                        let here = self.data.from(self.at).first();
                        if !is_plain && here.is_some_and(|byte| matches!(byte, 0x20..=0x7e)) {
                            return self.string();
                        }
                    }
                    return self.number(long_size);
                }
                b'd' | b'u' | b'i' | b'x' | b'X' | b'o' => {
                    return self.number(match longs {
                        0 => 4,
                        1 => long_size,
                        2 => 8,
                        other => other,
                    });
                }
                b's' => return self.string(),
                _ => return,
            }
        }
    }

    /// Reads a number. All are aligned to 4 bytes.
    fn number(&mut self, size: usize) {
        self.at = self.at.checked_next_multiple_of(4).unwrap_or(self.at);
        let endian = self.data.format.machine.endian;
        let number = number::read(self.data.raw, self.at, size, endian);
        self.at = self.at.saturating_add(size);
        self.args.push(number_arg(number));
    }

    fn string(&mut self) {
        let text = until_nul(self.data.from(self.at));
        self.at = self.at.saturating_add(text.len()).saturating_add(1);
        self.args.push(Arg::Recorded(text.into()));
    }
}
