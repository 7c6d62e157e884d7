//! Sorts samples and changes of mappings by time.

use perfdata_core::read::{OrderedEvents, Waiting};
use perfdata_core::record::CpuMode;

use perfdata_session::Change;

use super::moments::{Moment, Moments};
use super::objects::ObjectId;

/// Maximum size of waiting moments in bytes.
const MOST: usize = 16 << 20;

/// The addresses of one sample.
#[derive(Debug, Clone, Copy)]
pub struct Addresses<'a> {
    /// The CPU mode.
    pub mode: CpuMode,
    /// The process ID.
    pub pid: u32,
    /// The instruction pointer, followed by the callchain with its context markers.
    pub words: &'a [u64],
}

/// A receiver of changes and samples in time order.
pub trait Sink {
    /// Receives a change of mappings.
    fn change(&mut self, change: Change<Option<ObjectId>>);
    /// Receives a sample.
    fn sample(&mut self, sample: Addresses<'_>);
}

/// Sorts moments by time.
#[derive(Debug)]
pub struct Timeline(OrderedEvents<Moments>);

impl Default for Timeline {
    fn default() -> Self {
        Timeline(OrderedEvents::new(MOST))
    }
}

impl Timeline {
    /// Takes the next part of the stream. Moments without a time precede the recording, and are
    /// forwarded at once.
    pub fn take(&mut self, moments: Moments, sink: &mut impl Sink) {
        let len = moments.len();
        self.0.add(moments);
        for at in 0..len {
            match self
                .0
                .last()
                .and_then(|moments| Some((moments, moments.get(at)?)))
            {
                Some((_, (_, Moment::EndOfRound))) => {
                    self.0.end_round();
                    self.hand_out(sink);
                }
                Some((_, (Some(time), _))) => self.0.wait(time, at),
                Some((moments, (None, _))) => hand_out(moments, at, sink),
                None => return,
            }
        }
        self.0.settle();
        while self.0.has_next() {
            self.hand_out(sink);
            self.0.settle();
        }
    }

    /// Ends the stream.
    pub fn finish(&mut self, sink: &mut impl Sink) {
        self.0.finish();
        self.hand_out(sink);
    }

    /// Returns empty moments whose memory can be reused.
    pub fn spare(&mut self) -> Moments {
        self.0.spare()
    }

    fn hand_out(&mut self, sink: &mut impl Sink) {
        while let Some((moments, at)) = self.0.next() {
            hand_out(moments, at, sink);
        }
    }
}

fn hand_out(moments: &Moments, at: usize, sink: &mut impl Sink) {
    match moments.get(at) {
        Some((_, Moment::Change(change))) => sink.change(change),
        Some((_, Moment::Sample { mode, pid, words })) => {
            sink.sample(Addresses {
                mode,
                pid,
                words: moments.words(words),
            });
        }
        Some((_, Moment::EndOfRound)) | None => {}
    }
}

#[cfg(test)]
mod tests {
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

    fn exit(pid: u32) -> Moment {
        Moment::Change(Change::Exit(Owner::Process(Machine::HOST, pid)))
    }

    fn samples(samples: &[(u64, &[u64])]) -> Moments {
        let mut moments = Moments::default();
        for &(time, words) in samples {
            moments.push_sample(Some(time), (CpuMode::USER, 1), None, words.iter().copied());
        }
        moments
    }

    #[test]
    fn rounds_are_sorted_across_cpus() {
        let (mut line, mut log) = (Timeline::default(), Log::default());
        let mut moments = samples(&[(30, &[30, 31]), (10, &[10])]);
        moments.push(Some(20), exit(20));
        moments.push(None, Moment::EndOfRound);
        moments.push(Some(25), exit(25));
        moments.push(None, exit(1));
        line.take(moments, &mut log);
        assert_eq!(
            log.0,
            [1],
            "a round is complete only with the one behind it"
        );
        let mut moments = samples(&[(40, &[40])]);
        moments.push(None, Moment::EndOfRound);
        line.take(moments, &mut log);
        assert_eq!(log.0, [1, 10, 20, 25, 30, 31]);
        line.finish(&mut log);
        assert_eq!(log.0, [1, 10, 20, 25, 30, 31, 40]);
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
