//! The callchains of samples of threads that were off the CPU.

use perfdata_core::record::{CallchainContext, CpuMode, Sample};

const KERNEL: u64 = CallchainContext::KERNEL.0;
const USER: u64 = CallchainContext::USER.0;

/// The markers that perf knows in callchains (tools/perf/util/machine.c, `add_callchain_ip`).
const KNOWN: [CallchainContext; 4] = [
    CallchainContext::HV,
    CallchainContext::KERNEL,
    CallchainContext::USER,
    CallchainContext::USER_DEFERRED,
];

/// Returns the words of a callchain, of which the first one is a marker, up to an unknown marker.
/// With frame pointers, that can be anything on the stack; perf shows no callchain that has one.
pub(super) fn marked(words: impl Iterator<Item = u64>, mode: CpuMode) -> Vec<u64> {
    let mut is_cookie = false;
    let mut words = words
        .take_while(|&word| {
            let marker = CallchainContext::of(word).filter(|_| !is_cookie);
            is_cookie = marker == Some(CallchainContext::USER_DEFERRED);
            marker.is_none_or(|marker| KNOWN.contains(&marker))
        })
        .peekable();
    let first = match words.peek() {
        Some(&first) if CallchainContext::of(first).is_none() => Some(match mode {
            CpuMode::USER => USER,
            _ => KERNEL,
        }),
        _ => None,
    };
    first.into_iter().chain(words).collect()
}

/// Returns `chain` with named frames above it, and the callchain of the thread that ended the
/// waiting above these, from its end: where it called is next to the frames. `is_same_process`
/// says whether its user addresses mean the same in both threads.
pub(super) fn complete(chain: &[u64], frames: &[u64], waker: Option<(&Sample, bool)>) -> Vec<u64> {
    let mut words = Vec::with_capacity(chain.len().saturating_add(frames.len() + 1));
    if let Some((waker, is_same_process)) = waker {
        let known = waker.callchain.as_ref().map_or(&[][..], |chain| chain);
        let (user, kernel) = contexts(known);
        if is_same_process && !user.is_empty() {
            words.push(USER);
            words.extend(user.iter().rev());
        }
        if !kernel.is_empty() {
            words.push(KERNEL);
            words.extend(kernel.iter().rev());
        }
    }
    let rest = match chain {
        [KERNEL, rest @ ..] => rest,
        other => other,
    };
    words.push(KERNEL);
    words.extend(frames);
    words.extend(rest);
    words
}

/// Returns the user and the kernel addresses of a callchain.
fn contexts(words: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let (mut user, mut kernel) = (Vec::new(), Vec::new());
    let mut context = KERNEL;
    for &word in words {
        match CallchainContext::of(word) {
            Some(_) => context = word,
            None if context == USER => user.push(word),
            None if context == KERNEL => kernel.push(word),
            None => {}
        }
    }
    (user, kernel)
}

/// Returns the first address of a callchain, and its mode.
pub(super) fn leaf(words: &[u64]) -> (u64, CpuMode) {
    let mut mode = CpuMode::KERNEL;
    for &word in words {
        match CallchainContext::of(word) {
            Some(CallchainContext::USER) => mode = CpuMode::USER,
            Some(_) => mode = CpuMode::KERNEL,
            None => return (word, mode),
        }
    }
    (0, mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_and_wakers_are_above_the_stack() {
        let stack = [KERNEL, 11, 12, USER, 21, 22];
        assert_eq!(
            complete(&stack, &[1, 2], None),
            [KERNEL, 1, 2, 11, 12, USER, 21, 22]
        );
        assert_eq!(complete(&stack[3..], &[1], None), [KERNEL, 1, USER, 21, 22]);
        assert_eq!(complete(&[], &[1], None), [KERNEL, 1]);
        let waker = Sample {
            callchain: Some(vec![KERNEL, 31, 32, USER, 41, 42].into()),
            ..Sample::default()
        };
        assert_eq!(
            complete(&stack, &[1], Some((&waker, false))),
            [KERNEL, 32, 31, KERNEL, 1, 11, 12, USER, 21, 22]
        );
        let all = complete(&stack[3..], &[1], Some((&waker, true)));
        assert_eq!(all, [USER, 42, 41, KERNEL, 32, 31, KERNEL, 1, USER, 21, 22]);
        assert_eq!(leaf(&all), (42, CpuMode::USER));
        assert_eq!(leaf(&stack), (11, CpuMode::KERNEL));
    }

    #[test]
    fn the_first_word_is_a_marker() {
        let marked = |words: &[u64], mode| marked(words.iter().copied(), mode);
        assert_eq!(marked(&[5], CpuMode::USER), [USER, 5]);
        assert_eq!(marked(&[5], CpuMode::KERNEL), [KERNEL, 5]);
        assert_eq!(marked(&[USER, 5], CpuMode::KERNEL), [USER, 5]);
        assert!(marked(&[], CpuMode::KERNEL).is_empty());
        assert_eq!(marked(&[USER, 5, u64::MAX, 6], CpuMode::USER), [USER, 5]);
        assert!(marked(&[u64::MAX], CpuMode::USER).is_empty());
        let deferred = [KERNEL, 5, CallchainContext::USER_DEFERRED.0, u64::MAX];
        assert_eq!(marked(&deferred, CpuMode::KERNEL), deferred);
    }
}
