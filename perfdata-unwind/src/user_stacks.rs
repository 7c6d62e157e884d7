//! The user callchains of samples in the order of time.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use perfdata_core::record::{Body, CallchainContext, Registers};
use perfdata_session::{Sample, Session, UserCallchains};
use perfdata_symbols::{KernelMapping, ObjectFinder, Sources};

use crate::objects::is_object;
use crate::{
    At, MappedObject, Maps, ObjectId, Objects, Outcome, Outcomes, Unwinder, UserStack,
    has_user_stacks,
};

/// Default maximum of the user frames of a sample. The largest copy of a stack has 64 KiB, and
/// compilers align frames to 16 bytes.
const MOST_FRAMES: usize = 4096;

/// Unwinds the user stacks of samples (`perf record --call-graph dwarf`), for
/// [`Samples::with_user_callchains`](perfdata_session::Samples::with_user_callchains).
///
/// A sample is unwound if it has user registers and a copy of its user stack, and its callchain
/// contains no user addresses. It sees the mappings of its time. In code without call frame
/// information, the chain of frame pointers is followed, as perf does
/// (elfutils, backends/x86_64_unwind.c).
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-dwarf-u.data");
/// use perfdata_symbols::Sources;
/// use perfdata_unwind::UserStacks;
///
/// let stacks = UserStacks::new(Sources::default());
/// let result = stacks.result();
/// let mut samples = perfdata_session::open(path)?.with_user_callchains(Box::new(stacks));
/// let mut frames = 0;
/// while let Some(sample) = samples.next()? {
///     frames += sample.frames().count();
/// }
/// println!("{frames} frames, {} user callchains", result.outcomes().unwound());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct UserStacks {
    sources: Sources,
    unwinder: Unwinder,
    most_frames: usize,
    /// Values of the registers of a sample.
    registers: Vec<u64>,
    /// What this one has taken over of what is known.
    known: Option<RecordedMachine>,
    result: UnwoundStacks,
}

/// What became of the user stacks of samples.
#[derive(Debug, Clone, Default)]
pub struct UnwoundStacks(Arc<Mutex<Unwound>>);

#[derive(Debug, Default)]
struct Unwound {
    outcomes: Outcomes,
    /// `None` before the first sample with a user stack.
    known: Option<RecordedMachine>,
}

/// What is known about a recording with user stacks.
#[derive(Debug, Clone)]
struct RecordedMachine {
    /// Those of the recording's machine, if it is known.
    registers: Option<&'static Registers>,
    objects: Objects,
    /// The object of each DSO of the session; `None` if it is not a file.
    ids: Vec<Option<ObjectId>>,
}

impl RecordedMachine {
    /// Adds the objects of the DSOs that are new in a session.
    fn add_objects(&mut self, session: &Session) {
        for number in session.dso_ids().skip(self.ids.len()) {
            let Some(dso) = session.dso(number) else {
                return;
            };
            let time = session.mapped_at(number);
            let build_id = session.build_id_table().find(dso);
            let id = is_object(dso).then(|| self.objects.add(dso.clone(), build_id, time));
            self.ids.push(id.flatten());
        }
    }

    /// Takes over what is new in `shared`, which is told the objects of the session first.
    fn update(&mut self, shared: &UnwoundStacks, session: &Session) {
        if self.ids.len() >= session.dsos().len() {
            return;
        }
        let mut shared = shared.locked();
        if let Some(known) = &mut shared.known {
            known.add_objects(session);
            self.objects.follow(&known.objects);
            let new = known.ids.get(self.ids.len()..).unwrap_or_default();
            self.ids.extend_from_slice(new);
        }
    }
}

impl UnwoundStacks {
    /// Returns the numbers of samples so far.
    pub fn outcomes(&self) -> Outcomes {
        self.locked().outcomes.clone()
    }

    /// Returns the objects of the processes so far; `None` before the first sample with a user
    /// stack.
    pub fn objects(&self) -> Option<Objects> {
        let unwound = self.locked();
        unwound.known.as_ref().map(|known| known.objects.clone())
    }

    /// Returns what is known so far about the recording of a sample.
    fn known(&self, sources: &Sources, sample: &Sample<'_>) -> RecordedMachine {
        let mut unwound = self.locked();
        let known = unwound.known.get_or_insert_with(|| RecordedMachine {
            registers: Registers::of(sample.recording()),
            objects: Objects::new(finder(sources.clone(), sample)),
            ids: Vec::new(),
        });
        known.clone()
    }

    fn locked(&self) -> MutexGuard<'_, Unwound> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UserStacks {
    /// Returns what unwinds with objects from `sources`.
    pub fn new(sources: Sources) -> Self {
        UserStacks {
            sources,
            unwinder: Unwinder::new().with_frame_pointers(true),
            most_frames: MOST_FRAMES,
            registers: Vec::new(),
            known: None,
            result: UnwoundStacks::default(),
        }
    }

    /// Returns the same with a maximum of the user frames of a sample. The default is 4096.
    #[must_use]
    pub fn with_max_frames(self, most_frames: usize) -> Self {
        UserStacks {
            most_frames,
            ..self
        }
    }

    /// Returns what became of the user stacks, which is up to date while samples are unwound.
    pub fn result(&self) -> UnwoundStacks {
        self.result.clone()
    }

    /// As [`unwind`](UserCallchains::unwind), for a sample with a user stack. Returns what became of it;
    /// `None` if the stack is empty.
    fn unwind_stack(
        &mut self,
        sample: &Sample<'_>,
        mask: u64,
        words: &mut Vec<u64>,
    ) -> Option<Outcome> {
        let UserStacks {
            sources,
            unwinder,
            most_frames,
            registers,
            known,
            result,
        } = self;
        let (record, view) = (sample.record(), sample.sample_view());
        let decoded;
        let stack = match view.user_parts() {
            Some(parts) => UserStack::of_view(&view, &parts, record.bytes, mask, registers),
            None => match record.decode().map(|record| record.body) {
                Ok(Body::Sample(sample)) => {
                    decoded = sample;
                    UserStack::of_decoded(&decoded, mask, registers)
                }
                _ => return Some(Outcome::NoRegisters),
            },
        };
        // perf does not unwind them either.
        if stack.is_empty() {
            return None;
        }
        let known = known.get_or_insert_with(|| result.known(sources, sample));
        let task = match known.registers {
            Some(of_machine) => stack.task(of_machine, registers),
            None => Err(Outcome::UnknownMachine),
        };
        let task = match task {
            Ok(task) => task,
            Err(outcome) => return Some(outcome),
        };
        known.update(result, sample.session());
        let maps = SampleMaps {
            sample,
            ids: &known.ids,
            last: Cell::new((0, 0, At::Nothing)),
        };
        let end = unwinder.unwind(&task, &maps, &known.objects, *most_frames, words);
        Some(Outcome::Unwound(end))
    }
}

impl UserCallchains for UserStacks {
    fn unwind(&mut self, sample: &Sample<'_>, words: &mut Vec<u64>) {
        let Some(attr) = sample.attr().filter(|attr| has_user_stacks(attr)) else {
            return;
        };
        let mask = attr.sample_regs_user.unwrap_or(0);
        let mode = perfdata_session::Machine::of(sample.mode());
        if !mode.is_guest() && !has_user_addresses(sample) {
            let outcome = self.unwind_stack(sample, mask, words);
            if let Some(outcome) = outcome {
                self.result.locked().outcomes.add(outcome);
            }
        }
    }

    fn another(&self) -> Option<Box<dyn UserCallchains>> {
        let another = UserStacks {
            result: self.result.clone(),
            ..UserStacks::new(self.sources.clone()).with_max_frames(self.most_frames)
        };
        Some(Box::new(another))
    }
}

/// Returns what finds the objects of a sample's recording.
fn finder(sources: Sources, sample: &Sample<'_>) -> ObjectFinder {
    let finder = ObjectFinder::new(sources, sample.recording());
    match KernelMapping::of_session(sample.session()) {
        Some((kernel, build_id)) => finder.with_kernel(kernel, build_id),
        None => finder,
    }
}

/// Returns whether the callchain contains addresses after a marker of user frames.
fn has_user_addresses(sample: &Sample<'_>) -> bool {
    let mut is_user = false;
    for word in sample.sample_view().callchain() {
        match CallchainContext::of(word) {
            Some(marker) => is_user = marker == CallchainContext::USER,
            None if is_user => return true,
            None => {}
        }
    }
    false
}

/// The mappings of the process of a sample.
struct SampleMaps<'a> {
    sample: &'a Sample<'a>,
    ids: &'a [Option<ObjectId>],
    /// The last mapping that was found: that of the next frame is often the same.
    last: Cell<(u64, u64, At)>,
}

impl SampleMaps<'_> {
    fn find(&self, address: u64) -> Option<(u64, u64, At)> {
        let (range, mapping) = self.sample.user_mapping(address)?;
        let at = match self.ids.get(mapping.dso.index()).copied().flatten() {
            Some(object) => At::Object(MappedObject {
                object,
                start: mapping.start,
                pgoff: mapping.pgoff,
            }),
            None => At::Anonymous,
        };
        Some((range.start, range.end, at))
    }
}

impl Maps for SampleMaps<'_> {
    #[inline]
    fn at(&self, address: u64) -> At {
        let (start, end, last) = self.last.get();
        if start <= address && address < end {
            return last;
        }
        let Some(found) = self.find(address) else {
            return At::Nothing;
        };
        self.last.set(found);
        found.2
    }
}
