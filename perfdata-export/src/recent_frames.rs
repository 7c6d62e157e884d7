//! Frames that were resolved recently: most frames of a sample are among them.

use perfdata_session::FrameKey;

use crate::resolve::ResolvedFrame;

/// Number of frames, a power of two.
const FRAMES: usize = 1 << 12;

/// What a resolved frame depends on: its key, and whether frames without a mapping have the mapping
/// of an earlier program.
type Key = (FrameKey, bool);

/// The last resolved frame of each hash.
#[derive(Debug)]
pub(crate) struct RecentFrames(Box<[Option<(Key, ResolvedFrame)>]>);

impl Default for RecentFrames {
    fn default() -> Self {
        RecentFrames(vec![None; FRAMES].into())
    }
}

/// Returns the index of a frame.
#[inline]
fn place(key: &FrameKey) -> usize {
    // Multiplication by the golden ratio distributes neighbouring addresses. Frames of different
    // processes at the same address are rarely in turns.
    let hash = key.address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    usize::try_from(hash).unwrap_or_default() & (FRAMES - 1)
}

impl RecentFrames {
    /// Returns a frame that was resolved.
    #[inline]
    pub fn get(&self, key: &FrameKey, before_exec: bool) -> Option<&ResolvedFrame> {
        let (known, frame) = self.0.get(place(key))?.as_ref()?;
        (*known == (*key, before_exec)).then_some(frame)
    }

    /// Remembers a frame that does not depend on its process, and has no inlined functions.
    #[inline]
    pub fn set(&mut self, key: &FrameKey, before_exec: bool, frame: ResolvedFrame) {
        if let Some(known) = self.0.get_mut(place(key)) {
            *known = Some(((*key, before_exec), frame));
        }
    }

    /// Forgets all frames.
    pub fn clear(&mut self) {
        self.0.fill(None);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_frame_is_found_by_its_own_key() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../fixtures/6.1-x86_64-file-g.data"
        );
        let mut samples = perfdata_session::open(path).unwrap();
        let mut keys = HashSet::new();
        while let Some(sample) = samples.next().unwrap() {
            let mut frames = sample.frames();
            keys.extend(std::iter::from_fn(|| frames.next_key()));
        }
        let keys: Vec<FrameKey> = keys.into_iter().collect();
        let mut recent = RecentFrames::default();
        let (mut found, mut lost) = (0, 0);
        for (number, key) in (0..).zip(&keys) {
            let frame = ResolvedFrame::unmapped(number, key.mode);
            recent.set(key, number % 2 == 0, frame);
            assert_eq!(recent.get(key, number % 2 == 0), Some(&frame));
            assert_eq!(recent.get(key, number % 2 != 0), None);
        }
        for (number, key) in (0..).zip(&keys) {
            match recent.get(key, number % 2 == 0) {
                Some(frame) => {
                    assert_eq!(frame.address, number);
                    found += 1;
                }
                None => lost += 1,
            }
        }
        // Some addresses are in several processes.
        assert!(found > lost && lost > 0, "{found} {lost}");
        recent.clear();
        assert!(keys.iter().all(|key| recent.get(key, true).is_none()));
    }
}
