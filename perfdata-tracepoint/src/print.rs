//! Printing of raw data (`pretty_print`).

use crate::bprint;
use crate::conversion::{Item, To};
use crate::evaluate::Data;
use crate::expression::{Arg, Array, Choice, Hex, OpKind};
use crate::field::{Field, Span, until_nul};
use crate::format::{Format, Printed};
use crate::list;
use crate::masks;
use crate::number;
use crate::pointer;
use crate::printf::{self, Spec};
use crate::resolver::Resolver;

/// The longest text without raw data in bytes, before the last conversion.
const MOST_TEXT: usize = 64 * 1024;

/// How much longer the text may be for each byte of raw data. A list of processors needs up to 28
/// bytes for a byte.
const TEXT_PER_BYTE: usize = 32;

/// Appends the text of raw data.
pub fn print(format: &Format, raw: &[u8], resolver: &mut dyn Resolver, out: &mut Vec<u8>) {
    let start = out.len();
    let data = Data { raw, format };
    match &format.printed {
        Printed::ByString { items, args } => data.items(items, args, resolver, out),
        Printed::ByRecordedString { was_wrong } => bprint::print(data, was_wrong, resolver, out),
        Printed::AsFields(_) => list::print(data, out),
    }
    // perf prints the text as a string of C.
    let text = out.get(start..).unwrap_or_default();
    if let Some(end) = text.iter().position(|byte| *byte == 0) {
        out.truncate(start.saturating_add(end));
    }
}

impl<'a> Data<'a> {
    /// Appends a format string with its arguments.
    pub fn items(
        self,
        items: &[Item],
        args: &[Arg],
        resolver: &mut dyn Resolver,
        out: &mut Vec<u8>,
    ) {
        let end = self.most_text(out);
        for item in items {
            if out.len() > end {
                break;
            }
            let (to, arg, len) = match item {
                Item::Text(text) => {
                    out.extend_from_slice(text);
                    continue;
                }
                Item::Conversion { to, arg, len } => (to, args.get(*arg), len),
            };
            let Some(arg) = arg else {
                continue;
            };
            let len = len.and_then(|len| args.get(len));
            // An `int` there.
            let len = len.map(|len| self.number(len) as i32);
            match to {
                To::Number(spec, bits) => spec.number(self.number(arg), *bits, len, out),
                To::String(spec) => self.string(arg, spec, len, resolver, out),
                To::Pointer(letters) => {
                    pointer::print(self, arg, letters, len.unwrap_or(1), resolver, out);
                }
            }
        }
    }

    /// Returns the length of `out` after which nothing more is appended. perf has no limit; here
    /// the format and the raw data are not trusted.
    pub fn most_text(self, out: &[u8]) -> usize {
        let most = self.raw.len().saturating_mul(TEXT_PER_BYTE);
        out.len().saturating_add(most).saturating_add(MOST_TEXT)
    }

    /// Returns a field by its place.
    pub fn field(self, at: Option<usize>) -> Option<&'a Field> {
        self.format.fields.get(at?)
    }

    /// Returns the bytes from an offset to the end of the raw data.
    pub fn from(self, offset: usize) -> &'a [u8] {
        self.raw.get(offset..).unwrap_or_default()
    }

    /// Returns bytes of the raw data, as far as they are there.
    pub fn at(self, span: Span) -> &'a [u8] {
        let rest = self.from(span.offset);
        rest.get(..span.len).unwrap_or(rest)
    }

    /// Appends an argument as a text (`print_str_arg`).
    fn string(
        self,
        arg: &Arg,
        spec: &Spec,
        len: Option<i32>,
        resolver: &mut dyn Resolver,
        out: &mut Vec<u8>,
    ) {
        match arg {
            Arg::Atom(atom) => spec.string(until_nul(&atom.text), len, out),
            Arg::Recorded(text) => spec.string(text, len, out),
            Arg::Field(field) => self.field_string(*field, spec, len, out),
            Arg::Flags(flags) => self.flags(flags, spec, len, out),
            Arg::Symbolic(choice) => self.symbolic(choice, spec, len, out),
            Arg::Hex(hex) => self.hex(hex, out),
            Arg::Array(array) => self.array(array, out),
            Arg::Str(field) => {
                let Some(field) = self.field(*field) else {
                    return;
                };
                let span = field.span(self.raw);
                // Since 1.4 nothing is printed for strings without a length.
                if span.len > 0 || !self.format.machine.like.is_library() {
                    spec.string(until_nul(self.from(span.offset)), len, out);
                }
            }
            Arg::Bitmask(field) | Arg::Cpumask(field) => {
                let Some(field) = self.field(*field) else {
                    return;
                };
                let bytes = self.at(field.span(self.raw));
                let mut text = Vec::new();
                match arg {
                    Arg::Bitmask(_) => masks::bits(bytes, field.endian, &mut text),
                    _ => masks::list(bytes, field.endian, &mut text),
                }
                spec.string(&text, len, out);
            }
            Arg::Op(op) if op.kind == OpKind::Condition => {
                self.string(self.chosen(op), spec, len, resolver, out);
            }
            Arg::Stacktrace(field) => self.stacktrace(*field, resolver, out),
            Arg::Null | Arg::Cast(_) | Arg::Op(_) => {}
            Arg::DynamicArray(_) | Arg::DynamicArrayLen(_) => {}
        }
    }

    /// Appends a field as a text.
    fn field_string(self, field: Option<usize>, spec: &Spec, len: Option<i32>, out: &mut Vec<u8>) {
        let Some(field) = self.field(field) else {
            return;
        };
        let machine = &self.format.machine;
        if !field.is_array && field.size == machine.long_size {
            // A pointer to a string in the kernel.
            let address = number::read(self.raw, field.offset, field.size, field.endian);
            match machine.string_at(address) {
                Some(string) => out.extend_from_slice(string),
                None => printf::hex(address, out),
            }
            return;
        }
        let rest = self.from(field.offset);
        let bytes = match field.size {
            0 => rest,
            size => rest.get(..size).unwrap_or(rest),
        };
        spec.string(until_nul(bytes), len, out);
    }

    fn flags(self, flags: &Choice, spec: &Spec, len: Option<i32>, out: &mut Vec<u8>) {
        let mut value = self.number(&flags.value).cast_signed();
        let mut is_first = true;
        let mut delimit = |out: &mut Vec<u8>| {
            if !is_first {
                out.extend_from_slice(&flags.delimiter);
            }
            is_first = false;
        };
        let end = self.most_text(out);
        for flag in flags.names.iter() {
            if out.len() > end {
                return;
            }
            if value == 0 && flag.value < 0 {
                spec.string(&flag.name, len, out);
                break;
            }
            if flag.value > 0 && value & flag.value == flag.value {
                delimit(out);
                spec.string(&flag.name, len, out);
                value &= !flag.value;
            }
        }
        if value != 0 {
            delimit(out);
            out.extend_from_slice(b"0x");
            printf::hex(value.cast_unsigned(), out);
        }
    }

    fn symbolic(self, choice: &Choice, spec: &Spec, len: Option<i32>, out: &mut Vec<u8>) {
        let value = self.number(&choice.value);
        let is_it = |named: &&crate::expression::Named| named.value == value.cast_signed();
        match choice.names.iter().find(is_it) {
            Some(named) => spec.string(&named.name, len, out),
            None => {
                out.extend_from_slice(b"0x");
                printf::hex(value, out);
            }
        }
    }

    /// Returns the bytes of an array, from its start to the end of the raw data.
    fn array_bytes(self, of: &Arg) -> Option<&'a [u8]> {
        match of {
            Arg::DynamicArray(field) => {
                let field = self.field(Some(*field))?;
                Some(self.from(field.span(self.raw).offset))
            }
            Arg::Field(field) => Some(self.from(self.field(*field)?.offset)),
            _ => None,
        }
    }

    fn hex(self, hex: &Hex, out: &mut Vec<u8>) {
        let Some(bytes) = self.array_bytes(&hex.of) else {
            return;
        };
        // An `unsigned int` there.
        let len = self.number(&hex.len) as u32 as usize;
        for (at, byte) in bytes.iter().take(len).enumerate() {
            if at > 0 && hex.is_spaced {
                out.push(b' ');
            }
            printf::hex_byte(*byte, out);
        }
    }

    fn array(self, array: &Array, out: &mut Vec<u8>) {
        let Some(bytes) = self.array_bytes(&array.of) else {
            return;
        };
        let is_library = self.format.machine.like.is_library();
        let mut count = self.number(&array.count) as u32 as usize;
        let size = self.number(&array.element_size) as i32;
        let known = match size {
            1 | 2 | 4 | 8 => size as usize,
            _ => 1,
        };
        if array.is_bytes {
            let size = usize::try_from(size).unwrap_or_default();
            count = count.checked_div(size).unwrap_or(count);
        }
        if is_library {
            out.push(b'{');
        }
        let elements = bytes.chunks_exact(known).take(count).enumerate();
        for (at, element) in elements {
            if at > 0 {
                out.push(if is_library { b',' } else { b' ' });
            }
            let number = number::read(element, 0, known, self.format.machine.endian);
            if at == 0 && !matches!(size, 1 | 2 | 4 | 8) {
                // The size is 1 from then on.
                out.extend_from_slice(b"BAD SIZE:");
                printf::decimal(size.into(), out);
                out.extend_from_slice(b" 0x");
                printf::hex(number, out);
            } else if is_library {
                out.extend_from_slice(b"0x");
                printf::hex(number, out);
            } else {
                out.extend_from_slice(printf::digits(number, 10, false, &mut [0; 24]));
            }
        }
        if is_library {
            out.push(b'}');
        }
    }

    /// Appends the functions of a callchain, each on its line.
    fn stacktrace(self, field: Option<usize>, resolver: &mut dyn Resolver, out: &mut Vec<u8>) {
        let Some(field) = self.field(field) else {
            return;
        };
        let machine = &self.format.machine;
        let bytes = self.at(field.span(self.raw));
        out.push(b'\n');
        // The first number is how many there are.
        for address in bytes.chunks_exact(machine.long_size.max(1)).skip(1) {
            let address = number::read(address, 0, machine.long_size, machine.endian);
            out.extend_from_slice(b"=> ");
            if !pointer::function(address, true, resolver, out) {
                printf::hex(address, out);
            }
            out.push(b'\n');
        }
    }
}
