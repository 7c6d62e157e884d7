//! The state of each thread between its context switches: it runs, waits, or could run.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::reason::Reason;

/// Approximate size of an entry in bytes.
const ENTRY: usize = 128;

/// What a thread does.
#[derive(Debug)]
enum State<P> {
    /// It was created at this time in nanoseconds, and did not run yet.
    New { since: u64, place: P },
    /// It runs.
    Running,
    /// It is off the CPU since this time, for this reason.
    Off {
        since: u64,
        reason: Reason,
        place: P,
        /// Whether a SWITCH record of this stop was seen.
        has_record: bool,
    },
}

/// A thread.
#[derive(Debug)]
struct Thread<P> {
    state: State<P>,
    /// Whether its EXIT record was seen.
    exits: bool,
}

/// A part of the time during which a thread was off the CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interval<P> {
    /// Nanoseconds on the recording's clock.
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) reason: Reason,
    /// Where the thread stopped.
    pub(super) place: P,
}

/// What shows a context switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Witness {
    /// A sample of `sched:sched_switch`. In a context switch, it comes first.
    Tracepoint,
    /// A SWITCH or SWITCH_CPU_WIDE record.
    Record,
}

/// Threads that were off the CPU for an unknown time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Unknown {
    /// They did not run before the first record.
    pub(super) before: u64,
    /// They stopped twice, and nothing shows when they ran in between.
    pub(super) missed: u64,
    /// Nanoseconds from these stops to the next one: on or off the CPU.
    pub(super) missed_ns: u64,
    /// They did not run again before the last record.
    pub(super) after: u64,
}

/// The memory of a place.
pub(super) trait Held {
    /// Returns the approximate size in bytes.
    fn held(&self) -> usize;
}

/// The state of all threads. `P` is where a thread stopped.
///
/// Calls must be in the order of time.
#[derive(Debug)]
pub(super) struct Threads<P> {
    list: HashMap<u32, Thread<P>, RandomState>,
    unknown: Unknown,
    /// Memory for places in bytes.
    held: usize,
}

impl<P> Default for Threads<P> {
    fn default() -> Self {
        Threads {
            list: HashMap::default(),
            unknown: Unknown::default(),
            held: 0,
        }
    }
}

impl<P> State<P> {
    fn place(&self) -> Option<&P> {
        match self {
            State::New { place, .. } | State::Off { place, .. } => Some(place),
            State::Running => None,
        }
    }
}

impl<P: Clone + Held> Threads<P> {
    /// Replaces what is known about a thread. Returns its former state.
    fn set(&mut self, tid: u32, thread: Option<Thread<P>>) -> Option<State<P>> {
        let held = |state: &State<P>| state.place().map_or(0, Held::held);
        let new = thread.as_ref().map_or(0, |thread| held(&thread.state));
        let old = match thread {
            Some(thread) => self.list.insert(tid, thread),
            None => self.list.remove(&tid),
        };
        let old = old.map(|thread| thread.state);
        self.held = self.held.saturating_add(new);
        self.held = self.held.saturating_sub(old.as_ref().map_or(0, held));
        old
    }

    /// A thread was created.
    pub(super) fn fork(&mut self, tid: u32, time: u64, place: P) {
        let thread = Thread {
            state: State::New { since: time, place },
            exits: false,
        };
        self.set(tid, Some(thread));
    }

    /// A thread begins to exit. It stops for the last time later.
    pub(super) fn exit(&mut self, tid: u32) {
        if let Some(thread) = self.list.get_mut(&tid) {
            thread.exits = true;
        }
    }

    /// Returns whether [`stop`](Self::stop) by this witness says nothing new.
    pub(super) fn is_known_stop(&mut self, tid: u32, by: Witness) -> bool {
        match self.list.get_mut(&tid).map(|thread| &mut thread.state) {
            Some(State::Off { has_record, .. }) if by == Witness::Record && !*has_record => {
                *has_record = true;
                true
            }
            _ => false,
        }
    }

    /// A thread stops. `reason` is `None` if it is dead.
    pub(super) fn stop(
        &mut self,
        tid: u32,
        time: u64,
        reason: Option<Reason>,
        (place, by): (P, Witness),
    ) {
        let exits = self.list.get(&tid).is_some_and(|thread| thread.exits);
        // A record does not say that this was the last time.
        let is_end = exits && by == Witness::Record && reason != Some(Reason::Preempted);
        let stopped = reason.filter(|_| !is_end).map(|reason| Thread {
            state: State::Off {
                since: time,
                reason,
                place,
                has_record: by == Witness::Record,
            },
            exits,
        });
        let before = self.set(tid, stopped);
        self.count_missed(before, time);
    }

    /// A thread is woken up: it could run from now on. Returns how long it waited.
    pub(super) fn wake(&mut self, tid: u32, time: u64) -> Option<Interval<P>> {
        let thread = self.list.get_mut(&tid)?;
        match &mut thread.state {
            State::New { since, place } => {
                let (since, place) = (time.max(*since), place.clone());
                thread.state = State::Off {
                    since,
                    reason: Reason::Runnable,
                    place,
                    has_record: true,
                };
                None
            }
            State::Off {
                since,
                reason,
                place,
                ..
            } if !reason.is_runnable() => {
                let waited = Interval {
                    begin: *since,
                    end: time,
                    reason: *reason,
                    place: place.clone(),
                };
                (*since, *reason) = (time, Reason::Runnable);
                Some(waited)
            }
            _ => None,
        }
    }

    /// A thread runs from now on. Returns how long it waited, or since when it could run.
    pub(super) fn start(&mut self, tid: u32, time: u64) -> Option<Interval<P>> {
        let exits = self.list.get(&tid).is_some_and(|thread| thread.exits);
        let state = State::Running;
        let (since, reason, place) = match self.set(tid, Some(Thread { state, exits })) {
            None => {
                self.unknown.before += 1;
                return None;
            }
            Some(State::Running) => return None,
            Some(State::New { since, place }) => (since, Reason::Runnable, place),
            Some(State::Off {
                since,
                reason,
                place,
                ..
            }) => (since, reason, place),
        };
        Some(Interval {
            begin: since,
            end: time,
            reason,
            place,
        })
    }

    /// A thread runs now: records of its switch are missing if it was off.
    pub(super) fn forget(&mut self, tid: u32, time: u64) {
        let before = self.set(tid, None);
        self.count_missed(before, time);
    }

    /// Counts a time off the CPU whose end is not known, before a thread that runs at `time`.
    fn count_missed(&mut self, before: Option<State<P>>, time: u64) {
        if let Some(State::Off { since, .. }) = before {
            self.unknown.missed += 1;
            let ns = time.saturating_sub(since);
            self.unknown.missed_ns = self.unknown.missed_ns.saturating_add(ns);
        }
    }

    /// Returns the times that are not known; at the end of the recording.
    pub(super) fn unknown(&self) -> Unknown {
        let is_off = |thread: &&Thread<P>| !matches!(thread.state, State::Running) && !thread.exits;
        Unknown {
            after: self.list.values().filter(is_off).count() as u64,
            ..self.unknown
        }
    }

    /// Returns the approximate size in bytes.
    pub(super) fn held(&self) -> usize {
        let entries = self.list.len().saturating_mul(ENTRY);
        entries.saturating_add(self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Held for char {
        fn held(&self) -> usize {
            1
        }
    }

    fn interval(begin: u64, end: u64, reason: Reason, place: char) -> Option<Interval<char>> {
        Some(Interval {
            begin,
            end,
            reason,
            place,
        })
    }

    const BY: Witness = Witness::Tracepoint;

    #[test]
    fn time_between_stop_and_start_is_waiting_and_then_runnable() {
        let mut threads = Threads::default();
        threads.stop(1, 10, Some(Reason::Sleep), ('a', BY));
        assert_eq!(threads.wake(1, 30), interval(10, 30, Reason::Sleep, 'a'));
        // A second waking changes nothing.
        assert_eq!(threads.wake(1, 35), None);
        assert_eq!(
            threads.start(1, 40),
            interval(30, 40, Reason::Runnable, 'a')
        );
        threads.stop(1, 50, Some(Reason::Preempted), ('b', BY));
        assert_eq!(threads.wake(1, 55), None);
        assert_eq!(
            threads.start(1, 60),
            interval(50, 60, Reason::Preempted, 'b')
        );
        // It runs, and cannot be woken up.
        assert_eq!(threads.wake(1, 65), None);
        assert_eq!(threads.start(1, 66), None);
        threads.stop(1, 70, Some(Reason::Disk), ('c', BY));
        assert_eq!(threads.start(1, 90), interval(70, 90, Reason::Disk, 'c'));
        assert_eq!(threads.unknown(), Unknown::default());
        assert_eq!(threads.held(), ENTRY);
    }

    #[test]
    fn new_threads_are_runnable_since_their_waking() {
        let mut threads = Threads::default();
        threads.fork(1, 10, 'a');
        assert_eq!(threads.wake(1, 12), None);
        assert_eq!(
            threads.start(1, 20),
            interval(12, 20, Reason::Runnable, 'a')
        );
        threads.fork(2, 10, 'b');
        assert_eq!(
            threads.start(2, 30),
            interval(10, 30, Reason::Runnable, 'b')
        );
        // Another thread with this number.
        threads.exit(2);
        threads.stop(2, 40, None, ('b', BY));
        threads.fork(2, 50, 'c');
        assert_eq!(
            threads.start(2, 70),
            interval(50, 70, Reason::Runnable, 'c')
        );
        assert_eq!(threads.unknown(), Unknown::default());
    }

    #[test]
    fn unknown_times_are_counted_and_not_invented() {
        let mut threads = Threads::default();
        assert_eq!(threads.start(1, 10), None);
        threads.stop(1, 20, Some(Reason::Sleep), ('a', BY));
        threads.stop(1, 30, Some(Reason::Sleep), ('b', BY));
        assert_eq!(threads.start(1, 35), interval(30, 35, Reason::Sleep, 'b'));
        threads.stop(2, 40, Some(Reason::Sleep), ('c', BY));
        threads.stop(3, 40, None, ('d', BY));
        let unknown = Unknown {
            before: 1,
            missed: 1,
            missed_ns: 10,
            after: 1,
        };
        assert_eq!(threads.unknown(), unknown);
    }

    #[test]
    fn a_record_repeats_what_the_tracepoint_said() {
        let mut threads = Threads::default();
        threads.stop(1, 10, Some(Reason::Sleep), ('a', BY));
        assert!(threads.is_known_stop(1, Witness::Record));
        assert!(!threads.is_known_stop(1, Witness::Record));
        assert_eq!(threads.start(1, 20), interval(10, 20, Reason::Sleep, 'a'));
        assert_eq!(threads.start(1, 21), None);
        // Threads that exit do so with their last switch.
        threads.exit(1);
        threads.stop(1, 30, Some(Reason::Blocked), ('a', Witness::Record));
        assert_eq!(threads.unknown(), Unknown::default());
    }
}
