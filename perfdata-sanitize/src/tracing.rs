//! The formats of tracepoints: those of the kernel stay; of those that somebody added, only the
//! form stays.

use perfdata_core::content::Content;
use perfdata_core::feature::TracingData;

use super::names::{Names, Tracepoints};

/// Fields of tracepoints that somebody added (kernel/trace/trace_probe.c,
/// `trace_probe_print_args`).
const OF_PROBES: [&[u8]; 3] = [b"__probe_ip;", b"__probe_func;", b"__probe_ret_ip;"];

/// Returns whether somebody added the tracepoint with this format.
fn is_dynamic(format: &[u8]) -> bool {
    OF_PROBES
        .iter()
        .any(|field| format.windows(field.len()).any(|window| window == *field))
}

/// Returns the value of a line at the start of a format: `name: sched_switch`.
fn line<'a>(format: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut lines = format.split(|&byte| byte == b'\n').take(4);
    lines.find_map(|line| line.strip_prefix(key))
}

/// Returns a format without what a person wrote: nothing if it stays.
///
/// # Errors
/// The names exceed the limits of the reader.
pub(super) fn format(format: &[u8], names: &mut Names) -> perfdata_core::Result<Option<Vec<u8>>> {
    if !is_dynamic(format) {
        names.keep(format);
        return Ok(None);
    }
    let name = line(format, b"name: ").unwrap_or_default();
    let name = names
        .of(Content::EventName, name, usize::MAX)?
        .unwrap_or_else(|| name.to_vec());
    let number = line(format, b"ID: ").unwrap_or_default();
    let number = if number.iter().all(u8::is_ascii_digit) {
        number
    } else {
        b"0"
    };
    let mut new = [b"name: ", &*name, b"\nID: ", number, b"\nformat:\n"].concat();
    let common = |line: &&[u8]| line.windows(8).any(|window| window == b" common_");
    for field in format.split(|&byte| byte == b'\n').filter(common) {
        new.extend_from_slice(field);
        new.push(b'\n');
    }
    // An empty line follows the common fields, and another one the fields of the tracepoint
    // (kernel/trace/trace_events.c, `f_show`).
    new.extend_from_slice(b"\n\nprint fmt: \"\"\n");
    names.keep(&new);
    Ok(Some(new))
}

impl Tracepoints {
    /// Returns the tracepoints in tracing data.
    pub(super) fn of(data: &TracingData) -> Self {
        let mut points = Tracepoints::default();
        for system in data.body.systems.iter() {
            for file in system.formats.iter() {
                let name = line(&file.0, b"name: ").unwrap_or_default();
                let point = [system.name.text(), b":", name].concat();
                match is_dynamic(&file.0) {
                    true => points.dynamic.insert(point),
                    false => points.fixed.insert(point),
                };
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use perfdata_core::read::Limits;

    use super::*;
    use crate::{Audience, Key, Policy};

    const PROBE: &[u8] = b"name: acme_secret_entry\nID: 1234\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:__data_loc char[] acme_token;\toffset:16;\tsize:4;\tsigned:1;\n\nprint fmt: \"(%lx) token=\\\"%s\\\"\", REC->__probe_ip\n";

    #[test]
    fn formats_of_probes_keep_only_their_form() {
        let key = Key::of_secret(b"a secret of some length").unwrap();
        let mut names = Names::new(key, Policy::new(Audience::Vendor), Limits::default());
        let new = format(PROBE, &mut names).unwrap().unwrap();
        let text = String::from_utf8(new).unwrap();
        assert!(!text.contains("acme") && !text.contains("token"), "{text}");
        assert!(
            text.starts_with("name: ") && text.contains("\nID: 1234\nformat:\n"),
            "{text}"
        );
        assert!(
            text.contains("common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\nprint fmt")
                && !text.contains("__probe_ip"),
            "{text}"
        );
        assert!(names.searched().any(|name| name == b"acme_secret_entry"));
        let fixed = b"name: sched_switch\nID: 1\nformat:\n\nprint fmt: \"\"\n";
        assert_eq!(format(fixed, &mut names).unwrap(), None);
    }
}
