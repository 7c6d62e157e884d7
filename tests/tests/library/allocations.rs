//! Resolving a sample allocates nothing if threads, names and mappings are known.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::path::Path;

use perfdata_core::read::{Limits, RecordRef};
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_session::{Sample, Session, Stacks};
use perfdata_tests::recordings;

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending has no counter any more.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: all calls are passed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as guaranteed by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as guaranteed by the caller.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls all methods of a sample. Returns the number of frames and branches.
fn ask(sample: &Sample<'_>, stacks: &mut Stacks) -> usize {
    black_box((
        sample.comm(),
        sample.event_name(),
        sample.weight(),
        sample.time(),
        sample.cpu(),
        sample.thread(),
    ));
    black_box((sample.leaf(), sample.is_incomplete(), sample.attr()));
    let mut count = 0;
    let branches = sample
        .branches()
        .flat_map(|branch| [branch.from, branch.to]);
    for frame in sample.frames().chain(branches) {
        black_box((
            frame.dso(),
            frame.offset(),
            frame.build_id(),
            frame.mapping(),
            frame.dso_before_exec(),
        ));
        count += 1;
    }
    black_box(
        stacks
            .intern(sample.frames())
            .expect("it is within the limits"),
    );
    count
}

/// Returns the numbers of samples and frames of the recording at `path`, and the allocations in a
/// second pass over them.
fn second_pass(path: &Path) -> (usize, usize, u64) {
    let mut records = perfdata_core::open(path).expect("a recording").by_time();
    let mut kept: Vec<(Vec<u8>, u64)> = Vec::new();
    let mut session = Session::new(records.recording(), Limits::default()).expect("a session");
    while let Ok(Some(record)) = records.next() {
        match record.kind {
            RecordType::SAMPLE => kept.push((record.bytes.to_vec(), record.offset)),
            _ => session.see(&record).expect("a sound record"),
        }
    }
    let recording = records.recording();
    let mut stacks = Stacks::new(Limits::default());
    let mut pass = || {
        let (mut samples, mut frames) = (0, 0);
        let before = COUNT.with(Cell::get);
        for (bytes, offset) in &kept {
            let raw = RawRecord::first(bytes, recording.endian, *offset).expect("a record");
            if let Some(sample) = session
                .sample(RecordRef::new(raw, recording))
                .expect("a sound sample")
            {
                samples += 1;
                frames += ask(&sample, &mut stacks);
            }
        }
        (samples, frames, COUNT.with(Cell::get) - before)
    };
    let first = pass();
    let second = pass();
    assert_eq!((first.0, first.1), (second.0, second.1));
    assert!(first.0 == 0 || first.2 > 0, "the counter counts");
    second
}

#[test]
fn samples_allocate_nothing() {
    let (mut recordings, mut most) = (0, 0);
    for recording in recordings::fixtures()
        .into_iter()
        .filter(|recording| !recording.is_damaged())
    {
        let (samples, frames, allocations) = second_pass(&recording.path);
        assert_eq!(
            allocations, 0,
            "{}: {samples} samples with {frames} frames",
            recording.name
        );
        (recordings, most) = (recordings + usize::from(frames > 0), most.max(frames));
    }
    assert!(
        recordings > 10 && most > 1000,
        "{recordings} recordings with at most {most} frames"
    );
}
