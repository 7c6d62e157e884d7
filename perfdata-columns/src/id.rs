//! The identity of a recording.

use std::fmt::Write as _;

use twox_hash::XxHash3_128;

/// Computes the ID of a recording from its bytes.
///
/// ```
/// use perfdata_columns::RecordingId;
///
/// let mut id = RecordingId::new();
/// id.update(b"PERFILE2");
/// id.update(b" and all the rest");
/// assert_eq!(id.finish().len(), 32);
/// ```
#[derive(Clone)]
pub struct RecordingId(XxHash3_128);

impl std::fmt::Debug for RecordingId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordingId").finish_non_exhaustive()
    }
}

impl Default for RecordingId {
    fn default() -> Self {
        RecordingId::new()
    }
}

impl RecordingId {
    /// Returns the state before the first byte.
    pub fn new() -> Self {
        RecordingId(XxHash3_128::new())
    }

    /// Adds bytes of the recording, in their order; for a directory, those of `data`, then those of
    /// the other files in the order of their numbers.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// Returns the ID: XXH3-128 in 32 hexadecimal digits.
    pub fn finish(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write!(text, "{:032x}", self.0.finish_128());
        text
    }
}

/// Returns the ID of a recording in memory.
pub fn recording_id(bytes: &[u8]) -> String {
    let mut id = RecordingId::new();
    id.update(bytes);
    id.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are those of xxHash's own test (`XSUM_XXH3_128`): without bytes, and of `a`.
    #[test]
    fn ids_are_hashes() {
        assert_eq!(recording_id(b""), "99aa06d3014798d86001c324468d497f");
        assert_eq!(recording_id(b"a"), "a96faf705af16834e6c632b61e964e1f");
        let mut id = RecordingId::new();
        id.update(b"perf");
        id.update(b".data");
        assert_eq!(id.finish(), recording_id(b"perf.data"));
    }
}
