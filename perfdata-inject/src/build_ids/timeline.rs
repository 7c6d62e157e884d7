//! Sorts samples and changes of mappings by time.

use perfdata_core::read::{OrderedEvents, Waiting};

use perfdata_session::Change;

use super::moments::{Addresses, Moment, Moments, When};
use super::objects::ObjectId;

/// Maximum size of waiting moments in bytes.
const MOST: usize = 16 << 20;

/// A receiver of changes and samples in time order.
pub trait Sink {
    /// Receives a change of mappings.
    fn change(&mut self, change: Change<Option<ObjectId>>);
    /// Receives a sample.
    fn sample(&mut self, sample: Addresses<'_>);
}

/// Sorts moments by time. Samples have no effect on others: between changes, they keep the order of
/// the stream.
#[derive(Debug)]
pub struct Timeline {
    moments: OrderedEvents<Moments>,
    changes: ChangeTimes,
}

/// The earliest and the latest time of the changes that wait. The earliest one may be too early.
#[derive(Debug)]
struct ChangeTimes {
    earliest: u64,
    latest: u64,
}

impl ChangeTimes {
    const NONE: ChangeTimes = ChangeTimes {
        earliest: u64::MAX,
        latest: 0,
    };

    fn wait(&mut self, time: u64) {
        self.earliest = self.earliest.min(time);
        self.latest = self.latest.max(time);
    }

    /// Ends the waiting up to the time `until`. Returns whether a change may have waited until then.
    fn release(&mut self, until: u64) -> bool {
        let is_released = self.earliest <= until;
        if self.latest <= until {
            *self = Self::NONE;
        } else if is_released {
            self.earliest = until.saturating_add(1);
        }
        is_released
    }
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline {
            moments: OrderedEvents::new(MOST),
            changes: ChangeTimes::NONE,
        }
    }
}

impl Timeline {
    /// Takes the next part of the stream. Moments without a time precede the recording, and are
    /// forwarded at once.
    pub fn take(&mut self, moments: Moments, sink: &mut impl Sink) {
        let len = moments.len();
        self.moments.add(moments);
        for at in 0..len {
            let Some(moments) = self.moments.last() else {
                return;
            };
            match moments.when(at) {
                Some(When::Sample(time)) => self.moments.wait(time, at),
                Some(When::Change(time)) => {
                    self.changes.wait(time);
                    self.moments.wait(time, at);
                }
                Some(When::BeforeRecording) => hand_out(moments, at, sink),
                Some(When::EndOfRound) => {
                    self.end_round();
                    self.hand_out(sink);
                }
                None => return,
            }
        }
        self.moments.settle();
        while self.moments.has_next() {
            self.hand_out(sink);
            self.moments.settle();
        }
    }

    fn end_round(&mut self) {
        let changes = &mut self.changes;
        self.moments.end_round_if(|until| changes.release(until));
    }

    /// Ends the stream.
    pub fn finish(&mut self, sink: &mut impl Sink) {
        self.moments.finish();
        self.hand_out(sink);
    }

    /// Returns empty moments whose memory can be reused.
    pub fn spare(&mut self) -> Moments {
        self.moments.spare()
    }

    fn hand_out(&mut self, sink: &mut impl Sink) {
        while let Some((moments, at)) = self.moments.next() {
            hand_out(moments, at, sink);
        }
    }
}

fn hand_out(moments: &Moments, at: usize, sink: &mut impl Sink) {
    match moments.get(at) {
        Some((_, Moment::Change(change))) => sink.change(*change),
        Some((_, Moment::Sample(sample))) => sink.sample(sample),
        Some((_, Moment::EndOfRound)) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use perfdata_core::record::CpuMode;
    use perfdata_session::{Machine, Owner};

    use super::*;

    #[derive(Default)]
    struct Log(Vec<u64>);

    impl Sink for Log {
        fn change(&mut self, change: Change<Option<ObjectId>>) {
            if let Change::Exit(Owner::Process(_, pid)) = change {
                self.0.push(u64::from(pid));
            }
        }
        fn sample(&mut self, sample: Addresses<'_>) {
            self.0.extend(sample.words);
        }
    }

    fn exit(pid: u32) -> Change<Option<ObjectId>> {
        Change::Exit(Owner::Process(Machine::HOST, pid))
    }

    fn samples(samples: &[(u64, &[u64])]) -> Moments {
        let mut moments = Moments::default();
        for &(time, words) in samples {
            moments.push_sample(Some(time), (CpuMode::USER, 1), |out| {
                out.extend_from_slice(words)
            });
        }
        moments
    }

    #[test]
    fn rounds_are_sorted_across_cpus() {
        let (mut line, mut log) = (Timeline::default(), Log::default());
        let mut moments = samples(&[(30, &[30, 31]), (10, &[10])]);
        moments.push_change(Some(20), exit(20));
        moments.end_round();
        moments.push_change(Some(25), exit(25));
        moments.push_change(None, exit(1));
        line.take(moments, &mut log);
        assert_eq!(
            log.0,
            [1],
            "a round is complete only with the one behind it"
        );
        let mut moments = samples(&[(40, &[40])]);
        moments.end_round();
        line.take(moments, &mut log);
        assert_eq!(log.0, [1, 10, 20, 25, 30, 31]);
        line.finish(&mut log);
        assert_eq!(log.0, [1, 10, 20, 25, 30, 31, 40]);
    }

    /// A round is only sorted if a mapping changes up to its end.
    #[test]
    fn samples_without_changes_keep_their_order() {
        let (mut line, mut log) = (Timeline::default(), Log::default());
        let mut round = |own: &[u64], change: Option<u32>| {
            let own: Vec<_> = own
                .iter()
                .map(|time| (*time, std::slice::from_ref(time)))
                .collect();
            let mut moments = samples(&own);
            if let Some(time) = change {
                moments.push_change(Some(u64::from(time)), exit(time));
            }
            moments.end_round();
            line.take(moments, &mut log);
            std::mem::take(&mut log.0)
        };
        assert!(round(&[30, 10], None).is_empty());
        assert_eq!(round(&[20, 40], Some(60)), [30, 10, 20]);
        assert_eq!(round(&[70, 50], Some(45)), [40, 45, 50, 60]);
        assert_eq!(round(&[90, 80], None), [70]);
        assert_eq!(round(&[110, 100], None), [90, 80]);
    }

    #[test]
    fn a_stream_without_rounds_does_not_fill_the_memory() {
        let (mut line, mut log) = (Timeline::default(), Log::default());
        for part in 0..64 {
            line.take(
                samples(
                    &(part << 12..(part + 1) << 12)
                        .map(|time| (time, &[5; 20][..]))
                        .collect::<Vec<_>>(),
                ),
                &mut log,
            );
        }
        assert!(log.0.len() * 8 > MOST, "what is older than that has gone");
        line.finish(&mut log);
        assert_eq!(log.0.len(), (64 << 12) * 20);
    }
}
