//! Symbols of code that a JIT compiler generated: `/tmp/perf-PID.map`
//! (tools/perf/Documentation/jit-interface.txt).

use std::borrow::Cow;

use crate::kallsyms::number;
use crate::table::{Builder, Properties, Table};

/// Parses lines `START SIZE NAME` with hexadecimal numbers. Other lines are skipped. The last of
/// several lines about an address remains: the code was replaced.
pub(crate) fn parse(text: &[u8]) -> Table {
    let mut builder = Builder::default();
    // Of equal symbols, the first one in the table remains.
    for line in text.rsplit(|&byte| byte == b'\n') {
        let Some((start, size, name)) = fields(line) else {
            continue;
        };
        let Some(at) = builder.add_names(&[name, b"\0"].concat()) else {
            break;
        };
        builder.add(start, size.max(1), at, Properties::default());
    }
    // Names are compared by nothing: all are equally good.
    builder.build(|_| Cow::Borrowed(b""))
}

fn fields(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut words = line.splitn(3, |&byte| byte == b' ');
    let (start, size) = (number(words.next()?)?, number(words.next()?)?);
    let name = words.next().filter(|name| !name.is_empty())?;
    Some((start, size, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_symbols() {
        let table =
            parse(b"1000 20 first name\n0x1020 10 second\n1000 20 newer\nrubbish\n1040 x y\n");
        let at = |address| {
            let found = table.find(address)?;
            Some(String::from_utf8_lossy(table.name(found.index)).into_owned())
        };
        assert_eq!(at(0x101f).as_deref(), Some("newer"));
        assert_eq!(at(0x1020).as_deref(), Some("second"));
        assert_eq!(at(0x1030), None);
        assert_eq!(at(0xfff), None);
    }
}
