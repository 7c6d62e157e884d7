//! Files as output: they appear complete or not at all.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, IsTerminal, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::new_file::{NewFile, folder_of, sync_folder};
use super::same::{input_stays, is_input, resolved, stdout_is_input};
use super::spool::{annotated, failed, temporary_file};
use super::{BackgroundWriter, STANDARD};
use crate::error::{Error, Result, Step};
use crate::support::os;

/// The destination of a command's output. The output becomes visible when it is complete.
#[derive(Debug)]
pub struct Output {
    kind: OutputKind,
    /// Whether an existing file of this name may be replaced at the end.
    replaces: bool,
    /// Whether the output must survive a crash of the machine.
    syncs: bool,
    /// Whether it is a file of a directory. The directory handles the remaining steps, including
    /// messages.
    is_part: bool,
    /// The time of its last change.
    modified: Option<SystemTime>,
}

#[derive(Debug)]
enum OutputKind {
    /// A file beside the target, which receives the target's name at the end.
    New(NewFile),
    /// A device, FIFO or standard output, with its name. It is written from start to end.
    Direct(DirectTarget, PathBuf),
}

/// The destination of a direct output.
pub(crate) enum DirectTarget {
    File(File),
    Writer(Box<dyn Write + Send>),
}

impl fmt::Debug for DirectTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DirectTarget::File(file) => file.fmt(f),
            DirectTarget::Writer(_) => f.write_str("Writer"),
        }
    }
}

impl Output {
    /// Writes to `writer`, which receives the recording from start to end. A file is first
    /// completed in a temporary file; a pipe is written during the conversion.
    pub fn to_writer(writer: impl Write + Send + 'static) -> Output {
        let kind = OutputKind::Direct(DirectTarget::Writer(Box::new(writer)), "output".into());
        Output {
            kind,
            replaces: false,
            syncs: false,
            is_part: false,
            modified: None,
        }
    }

    /// Prepares an output to `path`, or to standard output for `-`. The mode of a new file is that
    /// of `perf record`: only the owner can access it.
    ///
    /// # Errors
    /// The file exists and `force` is not given, it is the input, or its directory cannot be
    /// written.
    pub fn create(path: &Path, input: &Path, force: bool) -> Result<Output> {
        Self::create_beside(path, &[input], force)
    }

    /// Prepares an output like [`create`](Self::create), which is made of several inputs.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_beside(path: &Path, inputs: &[&Path], force: bool) -> Result<Output> {
        let output = |kind| Output {
            kind,
            replaces: force,
            syncs: true,
            is_part: false,
            modified: None,
        };
        if path.as_os_str() == STANDARD {
            if io::stdout().is_terminal() {
                let what = "standard output is a terminal: write to a file or a pipe";
                return Err(Error::Usage(what.into()));
            }
            if inputs.iter().any(|input| stdout_is_input(input)) {
                return Err(input_stays(Path::new("standard output")));
            }
            let stdout = os::stdout().map_err(Error::io("standard output"))?;
            return Ok(output(OutputKind::Direct(
                DirectTarget::File(stdout),
                "standard output".into(),
            )));
        }
        // Writes the target of a symbolic link, not the link.
        let target = if path.is_symlink() {
            linked(path)?
        } else {
            path.to_owned()
        };
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                return Err(Error::Usage(format!("{} is a directory", path.display())));
            }
            Ok(meta) if !meta.is_file() => {
                let file = File::options()
                    .write(true)
                    .open(path)
                    .map_err(Error::io(path))?;
                return Ok(output(OutputKind::Direct(
                    DirectTarget::File(file),
                    path.to_owned(),
                )));
            }
            _ if inputs.iter().any(|input| is_input(&target, input)) => {
                return Err(input_stays(path));
            }
            Ok(_) if !force => {
                let what = format!("{} exists", path.display());
                return Err(Error::Usage(what).with_step(Step::Overwrite));
            }
            _ => {}
        }
        Ok(output(OutputKind::New(NewFile::beside(target)?)))
    }

    /// Prepares an output to a file of a new directory.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub(super) fn part(path: PathBuf) -> Result<Output> {
        Ok(Output {
            kind: OutputKind::New(NewFile::beside(path)?),
            replaces: false,
            syncs: false,
            is_part: true,
            modified: None,
        })
    }

    /// Returns the same output with `syncs`, which determines whether a written file survives a
    /// crash of the machine. The default is true.
    #[must_use]
    pub fn synced(self, syncs: bool) -> Output {
        Output { syncs, ..self }
    }

    /// Returns the same output, whose file gets this time of its last change: perf shows it as the
    /// date of the recording (`captured on`). `None` means the time at which it is written.
    #[must_use]
    pub fn dated(self, modified: Option<SystemTime>) -> Output {
        Output { modified, ..self }
    }

    /// Returns whether written data are immediately visible, and cannot be removed again.
    pub(crate) fn is_direct(&self) -> bool {
        matches!(self.kind, OutputKind::Direct(..))
    }

    /// Calls `write` with a seekable file, and makes the result visible.
    ///
    /// # Errors
    /// The errors of `write` and of the operating system; or the target was created in the
    /// meantime, and must not be replaced.
    pub fn write_seekable<T>(self, write: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
        let (complete, result) = self.complete(write)?;
        complete.publish()?;
        Ok(result)
    }

    /// Writes like [`write_seekable`](Self::write_seekable), but the data become visible only with
    /// [`Complete::publish`].
    ///
    /// # Errors
    /// As [`write_seekable`](Self::write_seekable).
    pub fn complete<T>(self, write: impl FnOnce(&mut File) -> Result<T>) -> Result<(Complete, T)> {
        let Output {
            kind,
            replaces,
            syncs,
            is_part,
            modified,
        } = self;
        let mut new = match kind {
            OutputKind::New(new) => new,
            OutputKind::Direct(target, name) => {
                let mut spool = temporary_file()?;
                let result = write(&mut spool).map_err(in_temporary)?;
                spool.seek(SeekFrom::Start(0)).map_err(failed())?;
                return Ok((
                    Complete(Written::Direct {
                        spool,
                        target,
                        name,
                        syncs,
                    }),
                    result,
                ));
            }
        };
        let target = new.target().to_owned();
        let folder = folder_of(&target);
        let unwritten = || {
            let place = if is_part {
                String::new()
            } else {
                format!("; its temporary file was in {}", folder.display())
            };
            let target = target.clone();
            move |source| Error::Io {
                path: target,
                source: annotated(source, &place),
            }
        };
        let result = write(new.file()).map_err(|error| of_file(error, unwritten()))?;
        date(new.file(), modified);
        if syncs {
            new.sync().map_err(|error| of_file(error, unwritten()))?;
        }
        Ok((
            Complete(Written::New {
                new,
                replaces,
                syncs,
            }),
            result,
        ))
    }

    /// Calls `write` with a writer that receives the output from start to end, and makes the result
    /// visible. With more than one of `threads`, another one writes large files.
    ///
    /// # Errors
    /// As [`write_seekable`](Self::write_seekable).
    pub fn write_stream<T>(
        self,
        threads: usize,
        write: impl FnOnce(&mut dyn Write) -> Result<T>,
    ) -> Result<T> {
        match self.kind {
            OutputKind::New(_) => {
                self.write_seekable(|file| BackgroundWriter::write_all(file, threads, write))
            }
            OutputKind::Direct(target, name) => write_direct(target, name, self.syncs, write),
        }
    }
}

/// An output that is completely written, but not yet visible.
#[derive(Debug)]
#[must_use]
pub struct Complete(Written);

/// Where the bytes of a complete output are.
#[derive(Debug)]
enum Written {
    /// A file that does not have its name yet.
    New {
        new: NewFile,
        replaces: bool,
        syncs: bool,
    },
    /// Data that must still be copied.
    Direct {
        spool: File,
        target: DirectTarget,
        name: PathBuf,
        syncs: bool,
    },
}

impl Complete {
    /// Returns whether the output goes to an existing target, and cannot be removed again.
    pub fn is_direct(&self) -> bool {
        matches!(self.0, Written::Direct { .. })
    }

    /// Makes the output visible.
    ///
    /// # Errors
    /// The operating system reports an error; or the target was created in the meantime, and must
    /// not be replaced.
    pub fn publish(self) -> Result<()> {
        self.appear()?.sync()
    }

    /// Makes the output visible without waiting until the name is on the disk.
    ///
    /// # Errors
    /// As [`publish`](Self::publish). The target remains unchanged.
    pub(super) fn appear(self) -> Result<Named> {
        match self.0 {
            Written::Direct {
                mut spool,
                target,
                name,
                syncs,
            } => {
                write_direct(target, name, syncs, |out| {
                    io::copy(&mut spool, out).map_err(Error::io("output"))
                })?;
                Ok(Named(None))
            }
            Written::New {
                new,
                replaces,
                syncs,
            } => {
                let target = new.target().to_owned();
                new.publish(replaces).map_err(|error| match error.kind() {
                    ErrorKind::AlreadyExists => appeared(&target),
                    _ => Error::io(&target)(error),
                })?;
                Ok(Named(syncs.then(|| folder_of(&target).to_owned())))
            }
        }
    }
}

/// A visible output, and the folder in which its name may not be on the disk yet.
#[derive(Debug)]
#[must_use]
pub(crate) struct Named(Option<PathBuf>);

impl Named {
    /// Waits until the name is on the disk.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub fn sync(self) -> Result<()> {
        self.0.map_or(Ok(()), |folder| sync_folder(&folder))
    }
}

/// Writes to an existing target. A file that is written through standard output must survive a
/// crash of the machine, too.
fn write_direct<T>(
    target: DirectTarget,
    name: PathBuf,
    syncs: bool,
    write: impl FnOnce(&mut dyn Write) -> Result<T>,
) -> Result<T> {
    let mut file = match target {
        DirectTarget::File(file) => file,
        DirectTarget::Writer(mut writer) => {
            let result = write(&mut writer).map_err(|error| of_file(error, Error::io(&name)))?;
            writer.flush().map_err(Error::io(&name))?;
            return Ok(result);
        }
    };
    let result = write(&mut file).map_err(|error| of_file(error, Error::io(&name)))?;
    if syncs && file.metadata().is_ok_and(|meta| meta.is_file()) {
        file.sync_all().map_err(Error::io(&name))?;
    }
    Ok(result)
}

/// Sets the time of the last change of a file, if it is known. A file system may not support that.
pub fn date(file: &File, modified: Option<SystemTime>) {
    let _ = modified.map(|modified| file.set_modified(modified));
}

/// Maximum number of links that lead to links, as in Linux.
const MOST_LINKS: usize = 40;

/// Returns the target of a symbolic link, whether it exists or not.
fn linked(path: &Path) -> Result<PathBuf> {
    let mut target = match fs::canonicalize(path) {
        Ok(target) => return Ok(target),
        Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(Error::io(path)(error)),
    };
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&target) else {
            break;
        };
        target = folder_of(&target).join(next);
    }
    let folder = folder_of(&target);
    if !folder.is_dir() {
        let what = "a symbolic link into a missing folder";
        return Err(Error::Usage(format!(
            "{} is {what}: {}",
            path.display(),
            folder.display()
        )));
    }
    Ok(resolved(&target))
}

/// Adds the folder of temporary files to the system's error about a temporary file; returns other
/// errors unchanged.
pub(crate) fn in_temporary(error: Error) -> Error {
    of_file(error, failed())
}

/// Adds the names of `at` to the system's error about the output file; returns other errors
/// unchanged.
fn of_file(error: Error, at: impl FnOnce(io::Error) -> Error) -> Error {
    match error {
        Error::Write(perfdata_write::Error::Io { source, .. })
            if source.raw_os_error().is_some() =>
        {
            at(source)
        }
        Error::Io { path, source } if path == Path::new("output") => at(source),
        other => other,
    }
}

/// Returns the error for a target that did not exist at first.
pub(super) fn appeared(target: &Path) -> Error {
    let what = format!(
        "{} was created by another process and was not changed",
        target.display()
    );
    Error::Usage(what).with_step(Step::Overwrite)
}
