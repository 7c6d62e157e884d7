//! The threads of a profile, with their samples and markers. They are not those of a session, which
//! has one idle thread for all CPUs: a profile has a track for each.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::error::Result;
use crate::spool::Spool;

/// The thread ID of the idle threads, of which each CPU has one.
const IDLE: u32 = 0;

/// A thread from its start to its end. Another thread may have the same ID later.
#[derive(Debug)]
pub(super) struct Thread {
    pub pid: u32,
    pub tid: u32,
    /// The CPU of an idle thread.
    pub cpu: Option<u32>,
    pub comm: Box<[u8]>,
    /// Its start in nanoseconds, if the recording contains it.
    pub start: Option<u64>,
    pub end: Option<u64>,
    /// When it stopped running, and whether it was preempted.
    pub off: Option<(u64, bool)>,
    /// The numbers of its tracks, by event.
    tracks: Vec<(u32, usize)>,
}

impl Thread {
    /// Returns whether the thread's track for `event` is the first one, which has the markers.
    pub fn is_first(&self, event: u32) -> bool {
        self.tracks.first().is_some_and(|track| track.0 == event)
    }
}

/// The samples of a thread for an event, and its markers.
#[derive(Debug)]
pub(super) struct Track {
    pub thread: usize,
    pub event: u32,
    pub samples: usize,
    pub count: u64,
    /// The last time, and the sum of the distances between samples.
    pub last: u64,
    pub span: u64,
    pub markers: usize,
    pub marker_count: u64,
}

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    pub stack: u32,
    pub time: u64,
    pub weight: u64,
}

/// A marker: something that happened at a time, or lasted for some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marker {
    /// The number of its name among the strings.
    pub name: u32,
    pub start: u64,
    /// `None` if it did not last.
    pub end: Option<u64>,
    pub category: u8,
    /// A JSON object.
    pub data: Vec<u8>,
}

/// All threads.
#[derive(Debug, Default)]
pub(super) struct Threads {
    pub list: Vec<Thread>,
    pub tracks: Vec<Track>,
    current: HashMap<(u32, Option<u32>), usize, RandomState>,
    spool: Spool,
}

impl Threads {
    fn key(tid: u32, cpu: Option<u32>) -> (u32, Option<u32>) {
        (tid, cpu.filter(|_| tid == IDLE))
    }

    /// Returns the number of the thread that currently has an ID.
    pub fn find(&mut self, pid: u32, tid: u32, cpu: Option<u32>) -> usize {
        match self.current.get(&Self::key(tid, cpu)) {
            Some(&known) => known,
            None => self.add(pid, tid, cpu, b""),
        }
    }

    /// Adds a thread, which replaces another one with the same ID.
    pub fn add(&mut self, pid: u32, tid: u32, cpu: Option<u32>, comm: &[u8]) -> usize {
        let number = self.list.len();
        let key = Self::key(tid, cpu);
        self.list.push(Thread {
            pid,
            tid,
            cpu: key.1,
            comm: comm.into(),
            start: None,
            end: None,
            off: None,
            tracks: Vec::new(),
        });
        self.current.insert(key, number);
        number
    }

    /// Returns a thread.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut Thread> {
        self.list.get_mut(number)
    }

    /// Returns the number of a thread's track for `event`.
    fn track(&mut self, thread: usize, event: u32) -> usize {
        let known = self.list.get(thread).and_then(|thread| {
            let mut tracks = thread.tracks.iter();
            tracks.find(|track| track.0 == event).map(|track| track.1)
        });
        if let Some(known) = known {
            return known;
        }
        let number = self.tracks.len();
        self.tracks.push(Track {
            thread,
            event,
            samples: self.spool.add(),
            count: 0,
            last: 0,
            span: 0,
            markers: self.spool.add(),
            marker_count: 0,
        });
        if let Some(thread) = self.list.get_mut(thread) {
            thread.tracks.push((event, number));
        }
        number
    }

    /// Adds a sample.
    pub fn sample(&mut self, thread: usize, event: u32, point: Point) -> Result<()> {
        let number = self.track(thread, event);
        let Some(track) = self.tracks.get_mut(number) else {
            return Ok(());
        };
        if track.count > 0 {
            let step = point.time.saturating_sub(track.last);
            track.span = track.span.saturating_add(step);
        }
        track.count = track.count.saturating_add(1);
        track.last = point.time;
        let mut bytes = Vec::with_capacity(POINT);
        bytes.extend(point.stack.to_le_bytes());
        bytes.extend(point.time.to_le_bytes());
        bytes.extend(point.weight.to_le_bytes());
        self.spool.write(track.samples, &bytes)
    }

    /// Adds a marker to the first track of a thread.
    pub fn marker(&mut self, thread: usize, marker: &Marker) -> Result<()> {
        let event = self
            .list
            .get(thread)
            .and_then(|thread| thread.tracks.first());
        let number = self.track(thread, event.map_or(0, |track| track.0));
        let Some(track) = self.tracks.get_mut(number) else {
            return Ok(());
        };
        track.marker_count = track.marker_count.saturating_add(1);
        let mut bytes = Vec::new();
        bytes.extend(marker.name.to_le_bytes());
        bytes.extend(marker.start.to_le_bytes());
        bytes.extend(marker.end.unwrap_or(NO_END).to_le_bytes());
        bytes.push(marker.category);
        bytes.extend((marker.data.len() as u64).to_le_bytes());
        bytes.extend(&marker.data);
        self.spool.write(track.markers, &bytes)
    }

    /// Passes all samples of a track to `read`.
    pub fn samples(&self, track: &Track, mut read: impl FnMut(Point) -> Result<()>) -> Result<()> {
        self.spool.read(track.samples, &mut |bytes| {
            let mut points = bytes.chunks_exact(POINT).filter_map(point);
            points.try_for_each(&mut read)
        })
    }

    /// Passes all markers of a track to `read`.
    pub fn markers(&self, track: &Track, mut read: impl FnMut(Marker) -> Result<()>) -> Result<()> {
        self.spool.read(track.markers, &mut |mut bytes| {
            while let Some((marker, rest)) = marker(bytes) {
                read(marker)?;
                bytes = rest;
            }
            Ok(())
        })
    }
}

/// Size of a stored sample in bytes.
const POINT: usize = 20;

/// The stored end of a marker without one.
const NO_END: u64 = u64::MAX;

fn point(bytes: &[u8]) -> Option<Point> {
    let (stack, rest) = bytes.split_first_chunk()?;
    let (time, rest) = rest.split_first_chunk()?;
    let (weight, _) = rest.split_first_chunk()?;
    Some(Point {
        stack: u32::from_le_bytes(*stack),
        time: u64::from_le_bytes(*time),
        weight: u64::from_le_bytes(*weight),
    })
}

/// Returns the next marker and the bytes after it.
fn marker(bytes: &[u8]) -> Option<(Marker, &[u8])> {
    let (name, rest) = bytes.split_first_chunk()?;
    let (start, rest) = rest.split_first_chunk()?;
    let (end, rest) = rest.split_first_chunk()?;
    let (&category, rest) = rest.split_first()?;
    let (len, rest) = rest.split_first_chunk()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let (data, rest) = rest.split_at_checked(len)?;
    let marker = Marker {
        name: u32::from_le_bytes(*name),
        start: u64::from_le_bytes(*start),
        end: Some(u64::from_le_bytes(*end)).filter(|&end| end != NO_END),
        category,
        data: data.to_vec(),
    };
    Some((marker, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_and_markers_are_kept() {
        let mut threads = Threads::default();
        let thread = threads.add(1, 2, None, b"main");
        assert_eq!(threads.find(1, 2, Some(5)), thread);
        let point = |time| Point {
            stack: 7,
            time,
            weight: u64::MAX,
        };
        let marker = |end| Marker {
            name: 3,
            start: 5,
            end,
            category: 2,
            data: b"{}".to_vec(),
        };
        for time in [10, 14] {
            threads.sample(thread, 0, point(time)).unwrap();
        }
        for end in [None, Some(9)] {
            threads.marker(thread, &marker(end)).unwrap();
        }
        let (mut points, mut markers) = (Vec::new(), Vec::new());
        let track = &threads.tracks[0];
        let read = threads.samples(track, |point| {
            points.push(point);
            Ok(())
        });
        read.unwrap();
        let read = threads.markers(track, |marker| {
            markers.push(marker);
            Ok(())
        });
        read.unwrap();
        assert_eq!(points, [point(10), point(14)]);
        assert_eq!(markers, [marker(None), marker(Some(9))]);
        assert_eq!((track.count, track.span, track.marker_count), (2, 4, 2));
    }

    #[test]
    fn each_cpu_has_an_idle_thread() {
        let mut threads = Threads::default();
        let first = threads.find(0, 0, Some(0));
        assert_ne!(first, threads.find(0, 0, Some(1)));
        assert_eq!(first, threads.find(0, 0, Some(0)));
        let other = threads.add(9, 8, Some(1), b"");
        assert_eq!(threads.find(9, 8, Some(0)), other);
    }
}
