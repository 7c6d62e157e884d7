//! The data of BPF programs (tools/perf/builtin-script.c, `perf_sample__fprintf_bpf_output`;
//! tools/perf/util/print_binary.c, 7.2).

use super::numbers::push_bytes;

/// Bytes in a line.
const LINE: usize = 8;

/// Width of what a line starts with.
const LABEL: usize = 17;

/// Appends raw data as hexadecimal numbers and characters, and as a string if it is one.
pub(super) fn push_bpf_output(out: &mut Vec<u8>, data: &[u8]) {
    out.push(b'\n');
    for (number, line) in data.chunks(LINE).enumerate() {
        let label: &[u8] = if number == 0 { b"BPF output:" } else { b"" };
        push_bytes(out, label, LABEL);
        let text = format!(" {:04x}:", number.saturating_mul(LINE));
        out.extend_from_slice(text.as_bytes());
        for byte in line {
            out.extend_from_slice(format!(" {byte:02x}").as_bytes());
        }
        let missing = LINE.saturating_sub(line.len());
        out.resize(out.len().saturating_add(missing.saturating_mul(3)), b' ');
        out.extend_from_slice(b"  ");
        let shown = |&byte: &u8| if is_printable(byte) { byte } else { b'.' };
        out.extend(line.iter().map(shown));
        out.resize(out.len().saturating_add(missing), b' ');
        out.push(b'\n');
    }
    if let Some(string) = string(data) {
        push_bytes(out, b"BPF string:", LABEL);
        out.extend_from_slice(b" \"");
        out.extend_from_slice(string);
        out.extend_from_slice(b"\"\n");
    }
}

/// Returns the string that the data is: printable characters, then only NULs.
fn string(data: &[u8]) -> Option<&[u8]> {
    let end = data.iter().position(|&byte| byte == 0)?;
    let (text, rest) = data.split_at_checked(end)?;
    let is_string = text.iter().copied().all(is_printable) && rest.iter().all(|&byte| byte == 0);
    is_string.then_some(text)
}

/// Returns whether perf shows a byte as a character: the printable ones of ISO 8859-1
/// (tools/lib/ctype.c).
fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | 0xa0..)
}
