//! Brings the inputs to one form: files in one byte order that can be read twice.

use std::panic::resume_unwind;
use std::thread;

use perfdata_core::header::ContainerKind;
use perfdata_core::read::{InputFile, Limits};
use perfdata_core::{Endian, Recording};

use super::survey::Survey;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::Input;
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_convert::support::files::temporary_file;

/// An input in the common form.
pub(super) struct Prepared {
    pub(super) name: String,
    pub(super) input: Input,
    pub(super) recording: Recording,
    pub(super) survey: Survey,
}

/// Adds the name of the recording to an error about it.
pub(super) fn named(name: &str) -> impl FnOnce(Error) -> Error {
    let path = name.into();
    move |source| match source {
        merged @ Error::Merged { .. } => merged,
        source => Error::Merged {
            path,
            source: Box::new(source),
        },
    }
}

/// Returns an input that can be read twice, in file mode and in the byte order `endian`; `None`
/// means its own. Also returns its byte order.
///
/// # Errors
/// The input cannot be read or converted, or a temporary file cannot be written.
pub(super) fn prepared(
    input: Input,
    endian: Option<Endian>,
    unknown: Unknown,
) -> Result<(Input, Endian)> {
    let input = if input.is_open() {
        // A reader of the caller.
        let limits = input.limits();
        stored(input, Vec::new())?.limited_by(limits)
    } else {
        input.into_seekable()?
    };
    let (container, own) = {
        let (reader, _) = again(&input)?.reader()?;
        (
            reader.container_layout().container(),
            reader.recording().endian,
        )
    };
    let wanted = endian.unwrap_or(own);
    if container == ContainerKind::File && own == wanted {
        return Ok((input, wanted));
    }
    let mut stages: Vec<Box<dyn Stage>> = Vec::new();
    if own != wanted {
        stages.push(Box::new(Swap::new(Target::Order(wanted), unknown)));
    }
    let limits = input.limits();
    Ok((stored(input, stages)?.limited_by(limits), wanted))
}

/// Converts an input to a temporary file in file mode.
fn stored(input: Input, stages: Vec<Box<dyn Stage>>) -> Result<Input> {
    let mut file = temporary_file()?;
    Conversion::new(stages)
        .to(ContainerKind::File)
        .run_into(input, &mut file)?;
    let file = InputFile::new(file).map_err(Error::io("temporary file"))?;
    Ok(Input::from_source(file))
}

/// Returns a seekable input again.
pub(super) fn again(input: &Input) -> Result<Input> {
    let refused = || Error::Refused("this reader can be read only once".into());
    input.again().ok_or_else(refused)
}

/// Reads the inputs once, several at a time.
///
/// # Errors
/// An input cannot be read or is corrupt.
pub(super) fn surveyed(inputs: Vec<(String, Input)>, limits: Limits) -> Result<Vec<Prepared>> {
    let most = limits.threads();
    let limits = limits.of_each(inputs.len().min(most));
    let mut all = Vec::with_capacity(inputs.len());
    let mut inputs = inputs.into_iter().peekable();
    while inputs.peek().is_some() {
        let batch: Vec<(String, Input)> = inputs.by_ref().take(most).collect();
        let surveys = match batch.as_slice() {
            [(_, input)] => vec![again(input).and_then(|input| survey(input.limited_by(limits)))],
            _ => thread::scope(|scope| {
                let running: Vec<_> = batch
                    .iter()
                    .map(|(_, input)| {
                        let open = || again(input).map(|input| input.limited_by(limits));
                        let opened = open();
                        let work = move || survey(opened?);
                        let thread = thread::Builder::new().spawn_scoped(scope, work);
                        // If no thread can be started, this one does the work.
                        thread.map_err(|_| Box::new(open().and_then(survey)))
                    })
                    .collect();
                let finished = running.into_iter().map(|survey| match survey {
                    Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                    Err(survey) => *survey,
                });
                finished.collect::<Vec<_>>()
            }),
        };
        for ((name, input), survey) in batch.into_iter().zip(surveys) {
            let (recording, survey) = survey.map_err(Error::of_records).map_err(named(&name))?;
            all.push(Prepared {
                name,
                input,
                recording,
                survey,
            });
        }
    }
    Ok(all)
}

fn survey(input: Input) -> Result<(Recording, Survey)> {
    let (mut reader, _) = input.reader()?;
    let survey = Survey::of(&mut *reader)?;
    Ok((reader.recording().clone(), survey))
}
