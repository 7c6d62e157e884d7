//! Profiles for compilers and linkers: how often each branch of an object was taken, and each code
//! between two branches ran.

mod binary;
mod code;
mod entries;
mod instructions;
mod objects;
mod rules;
mod table;

use std::io::Write;

use perfdata_core::Recording;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::RecordRef;
use perfdata_core::record::BranchFlags;
use perfdata_symbols::{ObjectFiles, ObjectFinder, Sources};

pub use self::binary::Binary;
use self::code::Code;
use self::entries::{Entries, Entry};
use self::objects::{Object, Objects, Place};
use self::rules::{KERNEL, Taken};
use self::table::Table;
use crate::error::{Error, Result};
use crate::events::is_dummy;
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

/// Writes the branches of one object (`perf record -b` and `-j`) as a table of distinct branches and
/// fall-throughs with their counts, which programs that make profiles for compilers read instead of
/// the recording. Several recordings are added up.
///
/// The object is the one with most branches, or the [`Binary`]. Its file is searched as for names:
/// addresses, functions and instructions come from it. The rules by which each reader leaves out
/// branches are its own.
///
/// The counts need up to 80 MiB of memory; more are stored in temporary files.
#[derive(Debug)]
pub struct BranchProfile<W> {
    out: W,
    form: ProfileForm,
    sources: Sources,
    binary: Option<Binary>,
    objects: Objects,
    entries: Entries,
    /// Of the first recording with a sample, what the search for files needs.
    host: Option<Recording>,
    /// The event of the first sample without a branch stack.
    event: Option<Box<[u8]>>,
    branches: Vec<Taken>,
    summary: ProfileSummary,
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
            form,
            sources,
            binary: None,
            objects: Objects::default(),
            entries: Entries::default(),
            host: None,
            event: None,
            branches: Vec::new(),
            summary: ProfileSummary::default(),
        }
    }

    /// Returns the sink for this object. The default is the one with most branches.
    #[must_use]
    pub fn with_binary(self, binary: Option<Binary>) -> Self {
        BranchProfile { binary, ..self }
    }

    /// Writes the profile of all recordings.
    ///
    /// # Errors
    /// No recording has branches of the object, its file is not found or has no symbols, or the
    /// output or a temporary file cannot be written.
    pub fn write(self) -> Result<ProfileSummary> {
        let BranchProfile {
            mut out,
            form,
            sources,
            binary,
            objects,
            entries,
            host,
            event,
            mut summary,
            ..
        } = self;
        summary.unnumbered = objects.unnumbered();
        let has_branches = summary.with_branches > 0;
        if !has_branches && form == ProfileForm::LlvmProfgen {
            return Err(Error::Profile(
                "the recording contains no branch records: record with perf record -b, or -j any,u"
                    .into(),
            ));
        }
        if !has_branches && summary.has_several_events {
            return Err(Error::Profile(
                "the samples belong to several events: --event selects one".into(),
            ));
        }
        let mut most = entries.tally().by_object().into_iter();
        let found = most
            .next()
            .and_then(|(counted, number)| Some((counted, number, objects.get(number)?)));
        let Some((counted, number, object)) = found else {
            let what = if has_branches { "branches" } else { "samples" };
            return Err(Error::Profile(match &binary {
                Some(binary) => format!("no {what} of {} were recorded", binary.name()),
                None => format!("no {what} of a file were recorded"),
            }));
        };
        let next = most.next();
        summary.next = next.and_then(|(sum, number)| Some((name(objects.get(number)?), sum)));
        summary.object = name(object);
        summary.of_others = entries.tally().total().saturating_sub(counted);
        let files = match (binary.and_then(Binary::into_file), host) {
            (Some(elf), _) => Ok(ObjectFiles::new(elf, None)),
            (None, Some(host)) => {
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
            self.host = Some(sample.recording().clone());
        }
        self.objects.of_sample(sample);
        let binary = self.binary.as_ref();
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
                self.summary.has_several_events = true;
            }
            self.event.get_or_insert_with(|| event.into());
            self.summary.without_branches = self.summary.without_branches.saturating_add(1);
            return Ok(());
        };
        self.summary.with_branches = self.summary.with_branches.saturating_add(1);
        self.branches.clear();
        for branch in branches {
            self.branches.push(Taken {
                from: self.objects.place(sample, branch.from, binary),
                to: self.objects.place(sample, branch.to, binary),
                is_mispredicted: is_mispredicted(branch.flags),
                is_kernel: branch.from >= KERNEL || branch.to >= KERNEL,
                speculation: branch.flags.spec(),
            });
        }
        let counts_kernel = binary.is_some_and(Binary::is_kernel);
        rules::count(self.form, counts_kernel, &self.branches, &mut self.entries)
    }

    fn finish(&mut self, _: &Tables) -> Result<()> {
        Ok(())
    }
}
