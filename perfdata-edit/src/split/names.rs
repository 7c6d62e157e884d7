//! The names of the files of parts.

use super::EXTENSION;
use crate::slice::{Decisions, PartKey, duration};

/// Minimum number of digits of the number of a part.
pub(super) const DIGITS: usize = 5;

/// Maximum length of the text in a name, in bytes.
const MOST: usize = 40;

/// Returns the name of the file of each part: its number and its key, such as
/// `00003-event-page-faults.data`.
pub(super) fn of(decisions: &Decisions) -> Vec<String> {
    let keys = decisions.parts.iter().map(|part| match &part.key {
        PartKey::Interval(from, _) => format!("time-{}", duration(*from)),
        PartKey::Next => "samples".to_owned(),
        PartKey::Pid(pid) => id("pid", *pid),
        PartKey::Tid(tid) => id("tid", *tid),
        PartKey::Comm(comm) => format!("comm-{}", plain(comm)),
        PartKey::Cpu(cpu) => id("cpu", *cpu),
        PartKey::Event(event) => format!("event-{}", plain(event)),
        PartKey::Other => "other".to_owned(),
    });
    keys.enumerate()
        .map(|(at, key)| format!("{at:0DIGITS$}-{key}{EXTENSION}"))
        .collect()
}

/// Returns the name for a number; `u32::MAX` is none.
fn id(word: &str, number: u32) -> String {
    match number {
        u32::MAX => format!("{word}-none"),
        number => format!("{word}-{number}"),
    }
}

/// Returns a text with letters and digits, without characters that a shell or a file system may
/// treat differently.
fn plain(text: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._+".contains(byte);
    let plain = |byte: &u8| {
        if is_plain(byte) {
            char::from(*byte)
        } else {
            '-'
        }
    };
    text.iter().take(MOST).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slice::Part;

    #[test]
    fn names_are_plain() {
        let keys = [
            (
                PartKey::Interval(1_500_000_000, 0),
                "00000-time-1500ms.data",
            ),
            (PartKey::Next, "00001-samples.data"),
            (
                PartKey::Comm(b"../a b\n\xff".to_vec()),
                "00002-comm-..-a-b--.data",
            ),
            (PartKey::Tid(u32::MAX), "00003-tid-none.data"),
            (
                PartKey::Event(b"sched:sched_switch".to_vec()),
                "00004-event-sched-sched_switch.data",
            ),
            (PartKey::Other, "00005-other.data"),
        ];
        let mut decisions = Decisions::default();
        for (key, _) in &keys {
            decisions.parts.push(Part::of(key.clone()));
        }
        assert_eq!(of(&decisions), keys.map(|(_, name)| name.to_owned()));
    }
}
