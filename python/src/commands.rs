//! The commands, run in this process by the command's own parser of options.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use perfconv::cmd::Outcome;
use perfconv::cmd::embedded::{self, Cancel, CommandOptions, Failure, Finished, Misuse, Value};
use perfconv::messages::MessageKind;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::errors;

/// The time between two looks at signals.
const LOOK: Duration = Duration::from_millis(50);

/// How long an interrupted command may take to remove its output. It takes longer only if it waits
/// for an input; then it ends with the next byte of it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Stack size of the thread of a command, as that of a process.
const STACK: usize = 8 << 20;

/// What a command said, by the kind of message.
type Said = (Vec<String>, Vec<String>, Vec<String>);

/// Runs a command with its inputs, its output and its options. Returns summaries, notes and
/// warnings.
#[pyfunction]
#[pyo3(signature = (function, command, inputs, output, options, before))]
pub fn run(
    py: Python<'_>,
    function: &str,
    command: &str,
    inputs: Vec<PathBuf>,
    output: Option<PathBuf>,
    options: &Bound<'_, PyDict>,
    before: Vec<String>,
) -> PyResult<Said> {
    let mut words: Vec<OsString> = vec![command.into()];
    let named = |option: &str, path: &PathBuf| {
        let mut word = OsString::from(format!("--{option}="));
        word.push(path);
        word
    };
    words.extend(inputs.iter().map(|path| named("input", path)));
    words.extend(output.iter().map(|path| named("output", path)));
    words.extend(before.into_iter().map(OsString::from));
    words.extend(words_of(function, command, options, &[])?);
    let finished = run_interruptibly(py, words)?;
    let of_kind = |kinds: &[MessageKind]| {
        let said = finished.messages.iter();
        let said = said.filter(|(kind, _)| kinds.contains(kind));
        said.map(|(_, text)| text.clone()).collect::<Vec<_>>()
    };
    let reason = || of_kind(&[MessageKind::Error]).join("\n");
    match &finished.result {
        Ok(Outcome::Done | Outcome::Found) => Ok((
            of_kind(&[MessageKind::Summary, MessageKind::Detail]),
            of_kind(&[MessageKind::Note]),
            of_kind(&[MessageKind::Warning]),
        )),
        Ok(Outcome::Failed(_)) => Err(errors::error(py, &reason())),
        Err(Failure::CommandLine(text)) => Err(PyValueError::new_err(text.clone())),
        Err(Failure::Command(error)) => Err(errors::of(py, error, &reason())),
    }
}

/// Runs a command on a thread of its own, and ends it if a signal handler of Python raises an
/// exception, as that of Ctrl-C does.
fn run_interruptibly(py: Python<'_>, words: Vec<OsString>) -> PyResult<Finished> {
    let cancel = Cancel::default();
    let (done, finished) = sync_channel(1);
    let here = cancel.clone();
    let work = move || drop(done.send(embedded::run(words, &here)));
    let thread = thread::Builder::new()
        .name("perfconv".into())
        .stack_size(STACK);
    thread
        .spawn(work)
        .map_err(|error| errors::of_io(py, &error, None))?;
    let mut finished = finished;
    loop {
        let (next, again) = py.detach(move || (finished.recv_timeout(LOOK), finished));
        finished = again;
        match next {
            Ok(finished) => return Ok(finished),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(errors::error(py, "internal error: the command ended"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(raised) = py.check_signals() {
            cancel.cancel();
            let _ = py.detach(move || finished.recv_timeout(PATIENCE).map(drop));
            return Err(raised);
        }
    }
}

/// Runs the command with `words`, which begin with the name of the program, as a process of its own
/// does: it handles signals, and writes to the standard output and error. Returns the exit status.
#[pyfunction]
pub fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| perfconv::process::run(words))
}

/// Returns the names of the options of a command as keyword arguments, with their help.
#[pyfunction]
pub fn option_names(command: &str) -> PyResult<Vec<(String, String)>> {
    let options = options_of(command)?;
    let names = options.names();
    Ok(names
        .map(|(name, help)| (name.replace('-', "_"), help))
        .collect())
}

/// Returns the names of the options that select samples.
#[pyfunction]
pub fn selecting_options() -> PyResult<Vec<String>> {
    let options = options_of("convert")?;
    Ok(options
        .selecting()
        .map(|name| name.replace('-', "_"))
        .collect())
}

fn options_of(command: &str) -> PyResult<CommandOptions> {
    let unknown = || PyValueError::new_err(format!("there is no command {command}"));
    CommandOptions::of(command).ok_or_else(unknown)
}

/// Returns the words of the command line for keyword arguments. `reserved` are options that the
/// function itself sets.
pub fn words_of(
    function: &str,
    command: &str,
    options: &Bound<'_, PyDict>,
    reserved: &[&str],
) -> PyResult<Vec<OsString>> {
    let known = options_of(command)?;
    let mut words = Vec::new();
    for (name, value) in options {
        let name = name.to_string();
        let Some(value) = value_of(&value)? else {
            continue;
        };
        // A word of Python, such as `from`, is written with an underscore after it.
        let option = name.strip_suffix('_').unwrap_or(&name).replace('_', "-");
        let made = match reserved.contains(&option.as_str()) {
            true => Err(Misuse::Unknown(None)),
            false => known.words(&option, value),
        };
        words.extend(made.map_err(|misuse| match misuse {
            Misuse::Unknown(near) => {
                let near = near.map(|near| format!("; did you mean '{}'?", near.replace('-', "_")));
                PyTypeError::new_err(format!(
                    "{function}() got an unexpected keyword argument '{name}'{}",
                    near.unwrap_or_default()
                ))
            }
            misuse => PyTypeError::new_err(format!("{function}(), argument '{name}': {misuse}")),
        })?);
    }
    Ok(words)
}

/// Returns the value of an option; `None` if it is not given.
pub fn value_of(value: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if value.is_none() {
        return Ok(None);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().then_some(Value::Given));
    }
    if let Ok(pairs) = value.cast::<PyDict>() {
        let pairs = pairs.iter().map(|(name, value)| {
            let mut word = text_of(&name)?;
            word.push("=");
            word.push(text_of(&value)?);
            Ok(word)
        });
        return pairs
            .collect::<PyResult<_>>()
            .map(|all| Some(Value::Several(all)));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let all = value.try_iter()?.map(|value| text_of(&value?));
        return all
            .collect::<PyResult<_>>()
            .map(|all| Some(Value::Several(all)));
    }
    text_of(value).map(|one| Some(Value::One(one)))
}

/// Returns one value as a word.
fn text_of(value: &Bound<'_, PyAny>) -> PyResult<OsString> {
    if value.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(
            "a list of options must not contain True or False",
        ));
    }
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return Ok(value.str()?.to_string().into());
    }
    if value.is_instance_of::<PyString>() {
        return value.extract();
    }
    if value.is_instance_of::<PyBytes>() {
        let os = value.py().import("os")?;
        return os.call_method1("fsdecode", (value,))?.extract();
    }
    if value.hasattr("__fspath__")? {
        return value.extract::<PathBuf>().map(PathBuf::into_os_string);
    }
    let kind = value.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "the value of an option must be text, a number, a path, a list of them or True, not {kind}"
    )))
}
