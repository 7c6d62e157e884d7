//! Conversion to a directory: `data`, and, if the input is a directory, every `data.N` separately,
//! as in perf.

use std::fs;
use std::io;
use std::path::Path;

use perfdata_core::header::ContainerKind;
use perfdata_write::{PipeWriter, RecordSink};

use super::{Begun, Conversion, Opened, Ready, Stage, Summary, checks, look_ahead, pump};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::io::{Input, Output, OutputDirectory};
use crate::support::os;

/// Returns whether [`convert`] writes a file or folder of this name to a directory.
pub fn is_part(path: &Path) -> bool {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if name.starts_with("kcore_dir") {
        is_kernel(path)
    } else {
        path.is_file() && (name == "data" || is_records(name))
    }
}

/// Returns whether it is a folder that contains only the image of a kernel, as written by perf.
fn is_kernel(path: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(path) else {
        return false;
    };
    let is_part = |entry: fs::DirEntry| {
        KERNEL.iter().any(|&name| entry.file_name() == name) && entry.path().is_file()
    };
    !path.is_symlink() && entries.all(|entry| entry.is_ok_and(is_part))
}

/// The files that perf writes to `kcore_dir` (tools/perf/util/symbol-elf.c, `kcore_copy`).
const KERNEL: [&str; 3] = ["kcore", "kallsyms", "modules"];

/// Returns whether it is the name of a file that contains only records.
fn is_records(name: &str) -> bool {
    name.strip_prefix("data.")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Converts `input` to the directory `output`, through new `stages` for each of its files; a stage
/// that checks the output is the same for all of them. Also copies the image of the recorded
/// kernel, unless there is such a stage.
///
/// # Errors
/// The input cannot be read or converted, or the output cannot be written. In these cases, there is
/// no output.
pub fn convert(
    input: Input,
    output: OutputDirectory,
    stages: impl Fn() -> Result<Vec<Box<dyn Stage>>>,
) -> Result<Summary> {
    convert_and(input, output, stages, |_| Ok(()))
}

/// Converts like [`convert`], but the directory only becomes visible if `check` accepts its
/// temporary version.
///
/// # Errors
/// As [`convert`], and the errors of `check`.
pub(crate) fn convert_and(
    input: Input,
    output: OutputDirectory,
    stages: impl Fn() -> Result<Vec<Box<dyn Stage>>>,
    check: impl FnOnce(&Path) -> Result<()>,
) -> Result<Summary> {
    let summary = output.write(|folder| {
        let summary = convert_into(input, &output, folder, stages)?;
        check(folder)?;
        Ok(summary)
    })?;
    output.finish()?;
    Ok(summary)
}

fn convert_into(
    input: Input,
    output: &OutputDirectory,
    folder: &Path,
    stages: impl Fn() -> Result<Vec<Box<dyn Stage>>>,
) -> Result<Summary> {
    let place = |name: &str| output.file(name);
    let conversion = || Ok::<_, Error>(Conversion::new(stages()?).to(ContainerKind::File));
    let Some(directory) = input.directory().cloned() else {
        return conversion()?.run_on(input, place("data")?);
    };
    let main = conversion()?;
    if directory.is_split()
        && main
            .stages
            .iter()
            .any(|stage| stage.requirements().all_records)
    {
        let what = "build IDs, generated code, compression, sorting and merging callchains need all records in one \
                    stream, but this directory has several data files: use --to file";
        return Err(Error::Refused(what.into()));
    }
    let mut checker = Checker::of(&input, conversion()?)?;
    let mut main = main;
    checker.put_into(&mut main);
    let mut summary = main.convert(input.data(&directory), place("data")?)?;
    checker.take_from(main);
    for (name, part) in input.beside(&directory) {
        let mut conversion = conversion()?;
        let told = checker.put_into(&mut conversion);
        let part = conversion
            .run_beside(part, place(&name)?)
            .map_err(|error| inside(error, &name))?;
        checker.take_from(conversion);
        summary.counts.merge(part.counts);
        summary.bytes_in = summary.bytes_in.saturating_add(part.bytes_in);
        summary.bytes_out = summary.bytes_out.saturating_add(part.bytes_out);
        summary.elapsed = summary.elapsed.saturating_add(part.elapsed);
        summary.unreadable = summary.unreadable.or(part.unreadable);
        // The same stage says more with each file.
        summary.notes.retain(|note| !told.contains(note));
        let new = part
            .notes
            .into_iter()
            .filter(|note| !summary.notes.contains(note))
            .collect::<Vec<_>>();
        summary.notes.extend(new);
    }
    if let Some(stage) = &mut checker.stage {
        if let Some(check) = stage.output_check() {
            check.check(Input::open(folder)?.limited_by(input.limits()))?;
        }
        let note = |name| format!("removed {name}: it is the image of the kernel");
        summary.notes.extend(directory.extras().iter().map(note));
        return Ok(summary);
    }
    for name in directory.extras() {
        copy(&directory.path().join(name), &folder.join(name))?;
    }
    Ok(summary)
}

/// The stage that checks the output, if there is one. It processes all files, one after the other.
struct Checker {
    stage: Option<Box<dyn Stage>>,
}

impl Checker {
    /// Returns the stage of `conversion` that checks the output, after it has read all files ahead.
    fn of(input: &Input, mut conversion: Conversion) -> Result<Self> {
        let mut checker = Checker { stage: None };
        if !conversion
            .stages
            .iter_mut()
            .any(|stage| checks(&mut **stage))
        {
            return Ok(checker);
        }
        if let Some(all) = input.again() {
            let Opened {
                source, recording, ..
            } = Opened::new(all, true)?;
            let to = ContainerKind::File;
            look_ahead(&mut conversion.stages, &source, &recording, to)
                .map_err(Error::of_records)?;
        }
        checker.take_from(conversion);
        Ok(checker)
    }

    fn take_from(&mut self, conversion: Conversion) {
        let mut stages = conversion.stages.into_iter();
        self.stage = stages.find_map(|mut stage| checks(&mut *stage).then_some(stage));
    }

    /// Replaces the stage of `conversion`. Returns its notes so far.
    fn put_into(&mut self, conversion: &mut Conversion) -> Vec<String> {
        let mut stages = conversion.stages.iter_mut();
        let place = stages.find_map(|stage| checks(&mut **stage).then_some(stage));
        match (place, self.stage.take()) {
            (Some(place), Some(stage)) => {
                *place = stage;
                place.notes()
            }
            _ => Vec::new(),
        }
    }
}

/// Adds the name of the file to the error.
fn inside(error: Error, name: &str) -> Error {
    match error {
        Error::Read(error) => Error::Read(error.inside(name)),
        Error::Refused(why) => Error::Refused(format!("{name}: {why}")),
        Error::Avoidable { source, step } => inside(*source, name).with_step(step),
        other => other,
    }
}

/// Copies a file, or a folder with its content.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let meta = fs::symlink_metadata(from).map_err(Error::io(from))?;
    if meta.is_dir() {
        interrupt::undisturbed(|| fs::create_dir(to)).map_err(Error::io(to))?;
        for entry in fs::read_dir(from).map_err(Error::io(from))? {
            let name = entry.map_err(Error::io(from))?.file_name();
            copy(&from.join(&name), &to.join(&name))?;
        }
        // The content of a folder without write permission could not be removed.
        os::copy_access(&meta, to).map_err(Error::io(to))
    } else if meta.is_file() {
        let copied = fs::copy(from, to).map_err(Error::io(from))?;
        if copied < meta.len() {
            let what = format!(
                "the file was truncated while it was read: copied {copied} of {} bytes",
                meta.len()
            );
            return Err(Error::io(from)(io::Error::other(what)));
        }
        Ok(())
    } else {
        // A link may refer to a file that the user who recorded could not read.
        Err(Error::Refused(format!(
            "{} is neither a file nor a folder: it is not copied",
            from.display()
        )))
    }
}

impl Conversion {
    /// Converts an input that contains only records, without metadata in the output. Afterwards,
    /// the conversion has the stages of the pipeline.
    fn run_beside(&mut self, input: Input, output: Output) -> Result<Summary> {
        let size = input.size();
        let output = output.dated(input.modified());
        let (reader, source) = input.reader()?;
        let recording = reader.recording().clone();
        let to = ContainerKind::File;
        let ready = Ready {
            reader,
            source,
            to,
            recording,
            has_late_events: false,
            is_moved: self.are_neutral(),
            skipped: 0,
        };
        let mut summary = output.write_seekable(|file| {
            let Begun {
                mut reader,
                mut recording,
                mut steps,
                ..
            } = self.begin(ready, to)?;
            let mut writer = PipeWriter::bare(&mut *file);
            let mut summary = pump(
                &mut reader,
                &mut steps,
                &mut recording,
                &mut writer as &mut dyn RecordSink,
                ContainerKind::File,
            )?;
            writer.finish()?;
            summary.bytes_out = file.metadata().map_err(Error::io("output"))?.len();
            self.done(steps);
            Ok(summary)
        })?;
        summary.bytes_in = size.bytes();
        Ok(summary)
    }
}
