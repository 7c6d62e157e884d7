//! Shortening the callchain of a sample.

use perfdata_core::record::{CallchainContext, deferred_cookie};

/// What remains of a callchain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// All of it.
    All,
    /// This many words.
    Words(usize),
    /// All of it, and this many of the frames that a CALLCHAIN_DEFERRED record with the cookie
    /// contains.
    Deferred(u64, u64),
}

/// Returns what remains of a callchain with at most `frames` frames. Context markers do not count
/// (tools/perf/util/machine.c, thread__resolve_callchain_sample, 7.2). Words after the last kept
/// frame are removed, so that no marker remains there; a callchain that is short enough does not
/// change, even if its last word is a marker.
pub(super) fn kept(
    words: impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + Clone,
    frames: u64,
) -> Kept {
    let cookie = deferred_cookie(words.clone());
    let len = words.len();
    // The marker and the cookie at the end are no frames.
    let own = if cookie.is_some() {
        len.saturating_sub(2)
    } else {
        len
    };
    let mut left = frames;
    let mut end = 0;
    for (at, word) in words.take(own).enumerate() {
        if left == 0 {
            break;
        }
        if CallchainContext::of(word).is_none() {
            left = left.saturating_sub(1);
            end = at.saturating_add(1);
        }
    }
    match cookie {
        _ if left == 0 && end < len => Kept::Words(end),
        Some(cookie) if left > 0 => Kept::Deferred(cookie, left),
        _ => Kept::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u64 = CallchainContext::KERNEL.0;
    const USER: u64 = CallchainContext::USER.0;
    const DEFERRED: u64 = CallchainContext::USER_DEFERRED.0;

    fn chain(words: &[u64], frames: u64) -> Kept {
        kept(words.iter().copied(), frames)
    }

    #[test]
    fn markers_do_not_count() {
        let words = [KERNEL, 1, 2, USER, 3, 4];
        let expected = [
            Kept::Words(0),
            Kept::Words(2),
            Kept::Words(3),
            Kept::Words(5),
        ];
        for (frames, expected) in (0..).zip(expected) {
            assert_eq!(chain(&words, frames), expected, "{frames} frames");
        }
        assert_eq!(chain(&words, 4), Kept::All);
        assert_eq!(chain(&words, 5), Kept::All);
        // A marker after the last frame is removed with a cut only.
        assert_eq!(chain(&[KERNEL, 1, USER], 1), Kept::Words(2));
        assert_eq!(chain(&[KERNEL, 1, USER], 2), Kept::All);
        assert_eq!(chain(&[KERNEL, USER], 1), Kept::All);
        assert_eq!(chain(&[], 0), Kept::All);
    }

    #[test]
    fn deferred_frames_count_after_the_others() {
        let words = [KERNEL, 1, 2, DEFERRED, 77];
        assert_eq!(chain(&words, 1), Kept::Words(2));
        assert_eq!(chain(&words, 2), Kept::Words(3));
        assert_eq!(chain(&words, 3), Kept::Deferred(77, 1));
        assert_eq!(chain(&[DEFERRED, 77], 3), Kept::Deferred(77, 3));
        assert_eq!(chain(&[DEFERRED, 77], 0), Kept::Words(0));
        // Without another word, it is a marker like others.
        assert_eq!(chain(&[1, DEFERRED], 1), Kept::Words(1));
        assert_eq!(chain(&[1, DEFERRED], 2), Kept::All);
    }
}
