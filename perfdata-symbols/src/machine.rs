//! The machine that made a recording.

use perfdata_core::Recording;
use perfdata_core::feature::{Feature, FeatureId, Section};

/// Returns the text of the feature OSRELEASE or HOSTNAME.
pub(crate) fn text(recording: &Recording, id: FeatureId) -> Option<String> {
    match recording.feature(id) {
        Some(Ok(Section {
            value: Feature::OsRelease(text) | Feature::Hostname(text),
            ..
        })) => String::from_utf8(text.text().to_vec()).ok(),
        _ => None,
    }
}

/// Returns whether `recording` was made on this machine, by its host name and the release of its
/// kernel: `false` if it does not contain them.
pub fn is_this_machine(recording: &Recording) -> bool {
    let is_own = |id, name: &str| {
        let own = std::fs::read_to_string(format!("/proc/sys/kernel/{name}"));
        own.is_ok_and(|own| text(recording, id).as_deref() == Some(own.trim_end()))
    };
    is_own(FeatureId::OSRELEASE, "osrelease") && is_own(FeatureId::HOSTNAME, "hostname")
}
