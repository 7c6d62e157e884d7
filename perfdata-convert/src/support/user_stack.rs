//! Shortening the user stack of a sample.

use perfdata_core::record::StackUser;

/// No other limit than what the kernel copied.
pub const DUMPED: u64 = u64::MAX;

/// Cuts a user stack to what the kernel copied, and to at most `most` bytes; returns whether it changed. The rest of the last word is 0. A dump
/// whose `dyn_size` exceeds its size is corrupt and does not change.
pub fn cut_stack(stack: &mut StackUser, most: u64) -> bool {
    let Some(dumped) = stack.dyn_size.filter(|&dumped| dumped <= stack.size) else {
        return false;
    };
    let kept = dumped.min(most);
    // The kernel writes a multiple of 8 bytes (kernel/events/core.c, perf_sample_ustack_size).
    let reserved = kept.next_multiple_of(8);
    let (Ok(bytes), Ok(room)) = (usize::try_from(kept), usize::try_from(reserved)) else {
        return false;
    };
    if reserved >= stack.size {
        return false;
    }
    stack.data.0.truncate(bytes);
    stack.data.0.resize(room, 0);
    stack.size = reserved;
    stack.dyn_size = (reserved > 0).then_some(kept);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfdata_core::wire::Rest;

    fn stack(size: u64, dumped: u64) -> StackUser {
        StackUser {
            size,
            data: Rest((1..=size).map(|byte| byte as u8).collect()),
            dyn_size: (size > 0).then_some(dumped),
        }
    }

    #[test]
    fn stacks_are_cut_to_words() {
        let mut cut = stack(64, 20);
        assert!(cut_stack(&mut cut, DUMPED));
        assert_eq!((cut.size, cut.dyn_size), (24, Some(20)));
        assert_eq!(cut.data.0[16..], [17, 18, 19, 20, 0, 0, 0, 0]);
        assert!(!cut_stack(&mut cut, DUMPED), "{cut:?}");

        let mut cut = stack(64, 64);
        assert!(!cut_stack(&mut cut, DUMPED));
        assert!(!cut_stack(&mut cut, 64));
        assert!(cut_stack(&mut cut, 16));
        assert_eq!((cut.size, cut.dyn_size), (16, Some(16)));

        let mut cut = stack(64, 0);
        assert!(cut_stack(&mut cut, DUMPED));
        assert_eq!((cut.size, cut.dyn_size, cut.data.0.len()), (0, None, 0));
        for mut same in [stack(0, 0), stack(16, 17), stack(16, u64::MAX)] {
            let before = same.clone();
            assert!(!cut_stack(&mut same, 8), "{before:?}");
            assert_eq!(same, before);
        }
    }
}
