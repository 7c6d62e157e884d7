//! Releases of Linux and perf, which the tables use to state when something was introduced.

use std::fmt;
use std::str::FromStr;

/// A release of Linux, and of the perf in the same source tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version([u16; 3]);

impl Version {
    /// Returns whether this release contains something introduced in release `since`, a number of
    /// the tables.
    pub fn has(self, since: &str) -> bool {
        since.parse().is_ok_and(|since: Version| since <= self)
    }
}

impl FromStr for Version {
    type Err = String;

    /// Parses two or three numbers and ignores a suffix added by perf: `6.1`, `2.6.35`, `6.12.107`,
    /// `7.0-rc1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut numbers = [0; 3];
        let mut parts = text.split('.');
        for (at, number) in numbers.iter_mut().enumerate() {
            let Some(part) = parts.next() else {
                if at < 2 {
                    return Err(format!("{text} is not a perf release such as 6.1"));
                }
                break;
            };
            let digits = part
                .find(|c: char| !c.is_ascii_digit())
                .map_or(part, |end| part.get(..end).unwrap_or(part));
            *number = digits
                .parse()
                .map_err(|_| format!("{text} is not a perf release such as 6.1"))?;
        }
        Ok(Version(numbers))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version([major, minor, patch]) = self;
        write!(f, "{major}.{minor}")?;
        if *patch == 0 {
            Ok(())
        } else {
            write!(f, ".{patch}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{attr, feature, record};

    #[test]
    fn releases_are_ordered() {
        let version = |text: &str| text.parse::<Version>();
        assert!(version("6.1") < version("6.12.107") && version("2.6.35") < version("3.2"));
        assert_eq!(version("7.0-rc1"), version("7.0"));
        assert_eq!(
            version("6.12.107").map(|v| v.to_string()),
            Ok("6.12.107".into())
        );
        assert!(version("6").is_err() && version("perf").is_err() && version("").is_err());
        assert!(version("6.1").is_ok_and(|v| v.has("6.1") && !v.has("6.3")));
    }

    #[test]
    fn the_tables_say_releases() {
        let features = feature::TABLE.iter().map(|info| info.since);
        let records = record::TABLE.iter().map(|info| info.since);
        let sizes = attr::SIZES.iter().map(|(_, since)| *since);
        let misc = record::TABLE.iter().flat_map(|info| info.misc);
        let words = [
            attr::SampleType::FIELDS,
            attr::ReadFormat::FIELDS,
            attr::BranchSampleType::FIELDS,
            attr::AttrFlags::FIELDS,
            attr::AuxAction::FIELDS,
            record::AuxFlags::FIELDS,
            record::KsymbolFlags::FIELDS,
            record::BranchFlags::FIELDS,
            record::Weights::FIELDS,
            record::DataSource::FIELDS,
            record::CsEtmPmu::FIELDS,
            feature::BpfArraySet::FIELDS,
            feature::BpfProgFlags::FIELDS,
        ];
        let bits = words
            .into_iter()
            .flatten()
            .chain(misc)
            .map(|field| field.since);
        for since in features.chain(records).chain(sizes).chain(bits) {
            assert!(since.parse::<Version>().is_ok(), "{since}");
        }
    }
}
