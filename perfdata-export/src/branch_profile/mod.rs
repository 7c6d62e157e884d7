//! Profiles for compilers and linkers: how often each branch of an object was taken, and each code
//! between two branches ran.

mod binary;
mod code;
mod entries;
mod instructions;
mod objects;
mod rules;
mod table;

use std::cmp::Reverse;
use std::io::Write;
use std::sync::Arc;

use perfdata_core::Recording;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::RecordRef;
use perfdata_core::record::BranchFlags;
use perfdata_session::DsoKind;
use perfdata_symbols::{Elf, ObjectFiles, ObjectFinder, Sources};

pub use self::binary::Binary;
use self::code::Code;
use self::entries::{Entries, Entry};
use self::objects::{KnownObjects, Object, Objects, Place};
use self::rules::{KERNEL, Taken};
use self::table::Table;
use crate::error::{Error, Result};
use crate::events::is_dummy;
use crate::parts::{Made, MadeOf, SinkPart};
use crate::resolve::{Needs, ResolvedSample, Sink};
use crate::tables::Tables;

/// A form of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileForm {
    /// The aggregated branches that `perf2bolt --pa` reads.
    Bolt,
    /// What `llvm-profgen --unsymbolized-profile` reads.
    LlvmProfgen,
    /// What `create_llvm_prof --profiler=text` reads.
    AutoFdo,
}

impl ProfileForm {
    /// Returns whether readers of the form read files of this kind. Kernel modules have sections,
    /// but no segments, whose addresses llvm-profgen and BOLT take.
    fn is_for(self, kind: DsoKind) -> bool {
        self == ProfileForm::AutoFdo || kind != DsoKind::Module
    }
}

/// Writes the branches of one object (`perf record -b` and `-j`) as a table of distinct branches and
/// fall-throughs with their counts, which programs that make profiles for compilers read instead of
/// the recording. Several recordings are added up.
///
/// The object is the one with most branches, or the [`Binary`]. Its file is searched as for names:
/// addresses, functions and instructions come from it. The rules by which each reader leaves out
/// branches are its own.
///
/// The counts need up to 80 MiB of memory, twice as much in several threads; more are stored in
/// temporary files.
#[derive(Debug)]
pub struct BranchProfile<W> {
    out: W,
    sources: Sources,
    /// The file of the [`Binary`].
    file: Option<Elf>,
    counts: BranchCounts,
}

/// The counted branches of one or several recordings, of the [`BranchProfile`] that
/// [made](BranchProfile::counts_of) it.
#[derive(Debug)]
pub struct BranchCounts {
    form: ProfileForm,
    binary: Option<Arc<Binary>>,
    objects: Objects,
    entries: Entries,
    /// Of the first recording with a sample, its number and what the search for files needs.
    host: Option<(usize, Recording)>,
    /// The event of the first sample without a branch stack.
    event: Option<Box<[u8]>>,
    has_several_events: bool,
    without_branches: u64,
    with_branches: u64,
    branches: Vec<Taken>,
}

/// What a profile contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileSummary {
    /// The name of the object in the recording, and its build ID, if it has one.
    pub object: String,
    /// Number of branches from, to or in the object, or of sampled addresses.
    pub counted: u64,
    /// Number of branches of other objects.
    pub of_others: u64,
    /// The other object with most branches, and how many it has.
    pub next: Option<(String, u64)>,
    /// Number of samples without a branch stack.
    pub without_branches: u64,
    /// Number of samples with one.
    pub with_branches: u64,
    /// Number of fall-throughs that are left out: a branch that is always taken is in between, or
    /// the end of a function.
    pub impossible: u64,
    /// Whether samples of several events have no branch stack.
    pub has_several_events: bool,
    /// Number of objects that were not counted, since there are more than 65,534.
    pub unnumbered: u64,
}

impl<W: Write> BranchProfile<W> {
    /// Returns a sink whose [`write`](Self::write) writes to `out`.
    pub fn new(out: W, form: ProfileForm, sources: Sources) -> Self {
        BranchProfile {
            out,
            sources,
            file: None,
            counts: BranchCounts::new(form, None, Objects::default(), Entries::default()),
        }
    }

    /// Returns the sink for this object. The default is the one with most branches.
    #[must_use]
    pub fn with_binary(mut self, binary: Option<Binary>) -> Self {
        self.counts.binary = binary.map(|mut binary| {
            self.file = binary.take_file();
            Arc::new(binary)
        });
        self
    }

    /// Returns counts for one of several recordings, which can be filled in a thread of its own.
    /// `number` is that of the recording, from 0, in an order in which the first one decides where
    /// files are searched. `parts` is the number of counts that are filled at the same time, which
    /// share the memory.
    pub fn counts_of(&self, number: usize, parts: usize) -> BranchCounts {
        self.counts.of_part(number, Entries::of_part(parts))
    }

    /// Adds counts.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub fn add(&mut self, counts: BranchCounts) -> Result<()> {
        self.counts.add(counts)
    }

    /// Writes the profile of all recordings.
    ///
    /// # Errors
    /// No recording has branches of the object, its file is not found or has no symbols, or the
    /// output or a temporary file cannot be written.
    pub fn write(self) -> Result<ProfileSummary> {
        let BranchProfile {
            mut out,
            sources,
            file,
            counts,
        } = self;
        let BranchCounts {
            form,
            binary,
            objects,
            mut entries,
            host,
            event,
            has_several_events,
            without_branches,
            with_branches,
            ..
        } = counts;
        entries.settle()?;
        let objects = objects.known();
        let mut summary = ProfileSummary {
            without_branches,
            with_branches,
            has_several_events,
            unnumbered: objects.unnumbered(),
            ..ProfileSummary::default()
        };
        let has_branches = with_branches > 0;
        if !has_branches && form == ProfileForm::LlvmProfgen {
            return Err(Error::Profile(
                "the recording contains no branch records: record with perf record -b, or -j any,u"
                    .into(),
            ));
        }
        if !has_branches && has_several_events {
            return Err(Error::Profile(
                "the samples belong to several events: --event selects one".into(),
            ));
        }
        let mut most = by_branches(&entries, &objects);
        // Of a module that was not named, nothing can be written.
        most.retain(|(_, _, object)| binary.is_some() || form.is_for(object.dso.kind));
        let mut most = most.into_iter();
        let Some((counted, number, object)) = most.next() else {
            let what = if has_branches { "branches" } else { "samples" };
            return Err(Error::Profile(match &binary {
                Some(binary) => format!("no {what} of {} were recorded", binary.name()),
                None => format!("no {what} of a file were recorded"),
            }));
        };
        summary.next = most.next().map(|(sum, _, object)| (name(object), sum));
        summary.object = name(object);
        if !form.is_for(object.dso.kind) {
            return Err(Error::Object {
                name: summary.object,
                reason: "only create_llvm_prof reads kernel modules: --to autofdo".into(),
            });
        }
        summary.of_others = entries.tally().total().saturating_sub(counted);
        let files = match (file, host) {
            (Some(elf), _) => Ok(ObjectFiles::new(elf, None)),
            (None, Some((_, host))) => {
                let finder = ObjectFinder::new(sources, &host);
                let found = finder.find(&object.dso, object.build_id, object.time, b".symtab");
                found.map_err(|reason| reason.to_string())
            }
            (None, None) => Err("it is not known".into()),
        };
        let code = files.and_then(|files| Code::new(files, object));
        let mut code = code.map_err(|reason| Error::Object {
            name: summary.object.clone(),
            reason,
        })?;
        let mut table = Table::new(form, number, &mut code);
        entries.finish(&mut |entry, sums| table.add(entry, sums))?;
        summary.counted = match has_branches {
            true => table.branches,
            false => table.addresses,
        };
        summary.impossible = table.impossible;
        if form == ProfileForm::Bolt && !has_branches {
            let event = event.unwrap_or_default();
            let written = out.write_all(b"E ").and_then(|()| out.write_all(&event));
            written
                .and_then(|()| writeln!(out))
                .map_err(Error::Output)?;
        }
        table.write(&mut out)?;
        out.flush().map_err(Error::Output)?;
        Ok(summary)
    }
}

/// Returns how many branches each object has, its number and itself, those with most first.
fn by_branches<'a>(entries: &Entries, objects: &'a KnownObjects) -> Vec<(u64, u16, &'a Object)> {
    let all = entries.tally().by_object();
    let all = all.filter_map(|(sum, number)| Some((sum, number, objects.get(number)?)));
    let mut list: Vec<_> = all.collect();
    // The numbers depend on the threads.
    list.sort_by_cached_key(|&(sum, _, object)| (Reverse(sum), name(object)));
    list
}

/// Returns the name of an object for messages.
fn name(object: &Object) -> String {
    let name = String::from_utf8_lossy(object.dso.path());
    match &object.build_id {
        Some(id) => format!("{name} (build ID {id})"),
        None => name.into_owned(),
    }
}

/// Returns whether the source of a branch is known to have mispredicted it: what `perf script` shows
/// as `M`.
fn is_mispredicted(flags: BranchFlags) -> bool {
    flags.predicted() == 0 && (flags.mispred() != 0 || flags.not_taken() != 0)
}

impl<W: Write> Sink for BranchProfile<W> {
    fn needs(&self) -> Needs {
        self.counts.needs()
    }

    fn begin(&mut self, container: ContainerKind) {
        self.counts.begin(container);
    }

    fn record(&mut self, record: &RecordRef<'_>) -> Result<()> {
        self.counts.record(record)
    }

    fn sample(&mut self, sample: &ResolvedSample<'_>) -> Result<()> {
        self.counts.sample(sample)
    }

    fn part(&self, parts: usize) -> Option<Box<dyn SinkPart>> {
        self.counts.part(parts)
    }

    fn join(&mut self, made: Made) -> Result<()> {
        self.counts.join(made)
    }

    fn finish(&mut self, tables: &Tables) -> Result<()> {
        self.counts.finish(tables)
    }
}

impl BranchCounts {
    fn new(
        form: ProfileForm,
        binary: Option<Arc<Binary>>,
        objects: Objects,
        entries: Entries,
    ) -> Self {
        BranchCounts {
            form,
            binary,
            objects,
            entries,
            host: None,
            event: None,
            has_several_events: false,
            without_branches: 0,
            with_branches: 0,
            branches: Vec::new(),
        }
    }

    /// Returns counts for a part of the samples, of a recording with this number.
    fn of_part(&self, recording: usize, entries: Entries) -> Self {
        let objects = self.objects.shared(recording);
        BranchCounts::new(self.form, self.binary.clone(), objects, entries)
    }

    fn add(&mut self, part: BranchCounts) -> Result<()> {
        self.host = match (self.host.take(), part.host) {
            (Some(own), Some(other)) if other.0 < own.0 => Some(other),
            (own, other) => own.or(other),
        };
        let is_other = |event: &_| self.event.as_ref().is_some_and(|own| own != event);
        self.has_several_events |=
            part.has_several_events || part.event.as_ref().is_some_and(is_other);
        self.event = self.event.take().or(part.event);
        self.without_branches = self.without_branches.saturating_add(part.without_branches);
        self.with_branches = self.with_branches.saturating_add(part.with_branches);
        self.entries.join(part.entries)
    }
}

impl SinkPart for BranchCounts {
    fn pass_record(&mut self, record: &RecordRef<'_>) -> Result<()> {
        self.record(record)
    }

    fn end(self: Box<Self>) -> Option<Made> {
        Some(Made::new(MadeOf::Branches(self)))
    }
}

impl Sink for BranchCounts {
    fn needs(&self) -> Needs {
        Needs::default().without_frames(true)
    }

    fn begin(&mut self, _: ContainerKind) {
        self.objects.begin();
    }

    fn record(&mut self, _: &RecordRef<'_>) -> Result<()> {
        self.objects.forget();
        Ok(())
    }

    fn sample(&mut self, sample: &ResolvedSample<'_>) -> Result<()> {
        let sample = &sample.sample;
        if is_dummy(sample.attr()) {
            return Ok(());
        }
        if self.host.is_none() {
            self.host = Some((self.objects.recording(), sample.recording().clone()));
        }
        self.objects.of_sample(sample);
        let binary = self.binary.as_deref();
        let branches = sample.sample_view().branches();
        let is_counted = match self.form {
            ProfileForm::AutoFdo => true,
            ProfileForm::Bolt => branches.is_none(),
            ProfileForm::LlvmProfgen => false,
        };
        if is_counted && let Some(ip) = sample.sample_view().ip() {
            let to = self.objects.place(sample, ip, binary);
            if to != Place::OUTSIDE {
                let (from, end) = (Place::SAMPLED, Place::OUTSIDE);
                self.entries.add(Entry { from, to, end }, false)?;
            }
        }
        let Some(branches) = branches else {
            let event = sample.event_name();
            let is_other = |known: &[u8]| known != event;
            if self.event.as_deref().is_some_and(is_other) {
                self.has_several_events = true;
            }
            self.event.get_or_insert_with(|| event.into());
            self.without_branches = self.without_branches.saturating_add(1);
            return Ok(());
        };
        self.with_branches = self.with_branches.saturating_add(1);
        self.branches.clear();
        self.branches.extend(branches.map(|branch| Taken {
            from: self.objects.place(sample, branch.from, binary),
            to: self.objects.place(sample, branch.to, binary),
            is_mispredicted: is_mispredicted(branch.flags),
            is_kernel: branch.from >= KERNEL || branch.to >= KERNEL,
            // It has two bits.
            speculation: u8::try_from(branch.flags.spec()).unwrap_or_default(),
        }));
        let counts_kernel = binary.is_some_and(Binary::is_kernel);
        rules::count(self.form, counts_kernel, &self.branches, &mut self.entries)
    }

    fn part(&self, parts: usize) -> Option<Box<dyn SinkPart>> {
        let part = self.of_part(self.objects.recording(), Entries::of_part(parts));
        Some(Box::new(part))
    }

    fn join(&mut self, made: Made) -> Result<()> {
        match made.of {
            MadeOf::Branches(part) => self.add(*part),
            _ => Ok(()),
        }
    }

    fn finish(&mut self, _: &Tables) -> Result<()> {
        self.objects.end();
        Ok(())
    }
}
