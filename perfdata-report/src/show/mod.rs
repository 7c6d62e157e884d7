//! Reports about recordings, for people and for programs: visitors of the declarations in
//! `perfdata-core`.

pub mod aux_packets;
mod bins;
mod buffer;
mod comms;
mod date;
pub mod dump;
mod facts;
mod forms;
mod hex;
pub mod overview;
pub mod record;
pub(crate) mod tallies;

// What only the other crates of this workspace use: it may change in any release.
#[doc(hidden)]
pub mod map;
#[doc(hidden)]
pub mod page;
#[doc(hidden)]
pub mod paths;
#[doc(hidden)]
pub mod resolved;
#[doc(hidden)]
pub mod survey;
#[doc(hidden)]
pub mod text;

use std::borrow::Cow;
use std::path::Path;

use perfdata_convert::support::text::escaped;

use perfdata_core::Endian;
use perfdata_core::container_layout::Part;

use perfdata_core::record::{CpuMode, RecordType};

/// Returns the names in the `misc` word of a record: the CPU mode, then the flags. Bits without a
/// name are one number.
pub fn misc_names(kind: RecordType, misc: u16) -> Vec<Cow<'static, str>> {
    let mode = CpuMode::of(misc);
    let mode = match mode.name() {
        Some(_) if mode == CpuMode::UNKNOWN => None,
        Some(name) => Some(name.into()),
        None => Some(format!("{:#x}", mode.0).into()),
    };
    let flag = |(name, value)| match name {
        "unknown" => format!("{value:#x}").into(),
        name => Cow::Borrowed(name),
    };
    mode.into_iter()
        .chain(kind.misc_flags(misc).map(flag))
        .collect()
}

/// Returns the name of a byte order.
pub fn endian_name(endian: Endian) -> &'static str {
    match endian {
        Endian::Little => "little-endian",
        Endian::Big => "big-endian",
    }
}

/// Returns the name of an input for reports and messages.
pub fn input_name(input: &Path) -> String {
    if input == Path::new("-") {
        "standard input".into()
    } else {
        escaped(input.as_os_str().as_encoded_bytes())
    }
}

/// Returns the name of a part of a file.
pub fn part_name(part: Part) -> String {
    match part {
        Part::Header => "header".to_owned(),
        Part::Ids(event) => format!("ids of event {event}"),
        Part::Attrs => "attributes".into(),
        Part::EventTypes => "event types".into(),
        Part::Data => "records".into(),
        Part::FeatureTable => "feature table".into(),
        Part::Feature(id) => format!("feature {id}"),
        Part::Gap => "gap".into(),
    }
}

/// Formats nanoseconds as seconds.
pub fn seconds(nanoseconds: u64) -> String {
    format!(
        "{}.{:09}",
        nanoseconds / 1_000_000_000,
        nanoseconds % 1_000_000_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misc_is_told_by_name() {
        assert_eq!(misc_names(RecordType::SAMPLE, 0x4002), ["USER", "EXACT_IP"]);
        assert_eq!(misc_names(RecordType::FINISHED_ROUND, 0), [""; 0]);
        assert_eq!(
            misc_names(RecordType::COMM, 0x2807),
            ["0x7", "COMM_EXEC", "0x800"]
        );
    }
}
