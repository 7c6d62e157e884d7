//! Commands inside of another program: without signal handlers, and without output to the terminal.

use std::ffi::OsString;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clap::{Arg, ArgAction, CommandFactory};
use perfdata_convert::Error;
use perfdata_convert::io::Watch;
use perfdata_convert::support::suggest;
#[cfg(feature = "columns")]
use {
    crate::cli::{Command, ExportArgs},
    perfdata_convert::io::Input,
    perfdata_convert::pipeline::Converted,
    perfdata_core::container_layout::ContainerLayout,
    perfdata_core::read::{Limits, RecordSource},
    perfdata_inject::itrace::ItraceCommand,
    perfdata_recipe::{Ending, OpenExport},
};

use super::diagnostics::Given;
use super::{Outcome, run_telling};
use crate::cli::Cli;
use crate::messages::{Host, MessageKind, Messages};

/// What a command did.
#[derive(Debug)]
pub struct Finished {
    /// The outcome, or the error.
    pub result: Result<Outcome, Failure>,
    /// The messages in the order of time, without colours. After an error, the message with the
    /// solution is one of them.
    pub messages: Vec<(MessageKind, String)>,
    /// The bytes of the report.
    pub report: Vec<u8>,
}

/// The reason why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The command line is invalid.
    CommandLine(String),
    /// The command failed.
    Command(Error),
}

/// Ends a command early: the next read of an input fails, and the output is removed.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends the command.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the command was ended.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Watch for Cancel {
    fn begin(&self, _: Option<u64>) {}

    fn advance(&self, _: u64) {}

    fn is_cancelled(&self) -> bool {
        self.is_cancelled()
    }
}

/// Collects the messages.
struct Collector<'a> {
    messages: Mutex<Vec<(MessageKind, String)>>,
    cancel: &'a Cancel,
}

impl Host for Collector<'_> {
    fn message(&self, kind: MessageKind, text: String) {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.push((kind, text));
    }

    fn watch(&self) -> Arc<dyn Watch> {
        Arc::new(self.cancel.clone())
    }
}

/// Runs the command line `words`, which begins with the name of the command, such as `convert`.
pub fn run(words: impl IntoIterator<Item = OsString>, cancel: &Cancel) -> Finished {
    let words = [OsString::from("perfconv")].into_iter().chain(words);
    let mut report = Vec::new();
    let cli = match Cli::from_args(words) {
        Ok(cli) => cli,
        Err(said) => {
            return Finished {
                result: Err(Failure::CommandLine(reason(&said))),
                messages: Vec::new(),
                report,
            };
        }
    };
    let collector = Collector {
        messages: Mutex::default(),
        cancel,
    };
    let messages = Messages {
        host: Some(&collector),
        ..Messages::from(cli.messages)
    };
    let given = Given::new(&cli);
    let result = run_telling(cli, messages, &mut report);
    if let Err(error) = &result {
        given.explain(error, messages);
    }
    Finished {
        result: result.map_err(Failure::Command),
        messages: collector
            .messages
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner),
        report,
    }
}

/// Returns the reason in an error of the command line, without the usage that follows it.
fn reason(said: &clap::Error) -> String {
    let text = said.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let end = text
        .find("\n\nUsage:")
        .or_else(|| text.find("\n\nFor more"));
    text.get(..end.unwrap_or(text.len()))
        .unwrap_or(text)
        .trim()
        .to_owned()
}

/// The samples of a recording as record batches, with the options of `export`.
#[cfg(feature = "columns")]
pub struct ExportedSamples {
    /// The first batch, if it was read: the metadata of a pipe, or of a file that perf inject made
    /// of one, may follow the start.
    first: Option<perfdata_columns::RecordBatch>,
    /// The other batches.
    batches: perfdata_columns::SampleBatches<Converted>,
    /// How reading ended.
    pub ending: Ending,
    /// The keys of the schema.
    pub metadata: Vec<(String, String)>,
}

#[cfg(feature = "columns")]
impl ExportedSamples {
    /// Returns the columns.
    pub fn schema(&self) -> perfdata_columns::SchemaRef {
        self.batches.schema()
    }

    /// Returns the next batch; `None` at the end.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn next_batch(&mut self) -> Result<Option<perfdata_columns::RecordBatch>, Error> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => super::columns::next_batch(&mut self.batches),
        }
    }
}

/// Checks the options of `export` in `words`, which begin with the name of the command.
///
/// # Errors
/// They are invalid.
#[cfg(feature = "columns")]
pub fn export_options(words: Vec<OsString>) -> Result<ExportOptions, Failure> {
    let words = [OsString::from("perfconv")].into_iter().chain(words);
    let cli = Cli::from_args(words).map_err(|said| Failure::CommandLine(reason(&said)))?;
    let limits = cli.limits.into();
    match cli.command {
        Some(Command::Export(args)) => Ok(ExportOptions { args, limits }),
        _ => Err(Failure::CommandLine(
            "these are not options of export".into(),
        )),
    }
}

/// The options of an export.
#[cfg(feature = "columns")]
#[derive(Debug)]
pub struct ExportOptions {
    args: ExportArgs,
    limits: Limits,
}

#[cfg(feature = "columns")]
impl ExportOptions {
    /// Returns the columns of the samples.
    pub fn columns(&self) -> &[perfdata_columns::SampleColumn] {
        let chosen = self.args.columns.columns.as_ref();
        chosen.map_or(perfdata_columns::SampleColumn::ALL, |chosen| {
            &chosen.columns
        })
    }

    /// Returns the selected samples of `input`. `id` is the ID of the recording.
    ///
    /// # Errors
    /// The input cannot be read, or a file that the options name.
    pub fn samples(
        &self,
        input: Input,
        id: Option<&str>,
        batch_rows: usize,
    ) -> Result<ExportedSamples, Error> {
        let opened =
            super::export::of_args(&self.args, ItraceCommand::Report, self.limits)?.open(input)?;
        let OpenExport {
            samples,
            symbols,
            ending,
            ..
        } = opened;
        let options = super::columns::options(&self.args, id).with_batch_rows(batch_rows);
        let is_pipe = matches!(
            samples.source().container_layout(),
            ContainerLayout::Pipe(_)
        );
        let is_described_later = is_pipe || samples.recording().features.is_empty();
        let has_symbols = symbols.is_some();
        let mut batches = perfdata_columns::SampleBatches::new(samples, symbols, &options);
        let first = match is_described_later {
            true => super::columns::next_batch(&mut batches)?,
            false => None,
        };
        let recording = batches.samples().recording();
        Ok(ExportedSamples {
            metadata: perfdata_columns::metadata(recording, id, has_symbols),
            first,
            batches,
            ending,
        })
    }
}

/// Returns the ID of a recording; `None` for a stream.
///
/// # Errors
/// The input cannot be read.
#[cfg(feature = "columns")]
pub fn recording_id(input: &Input) -> Result<Option<String>, Error> {
    super::columns::id_of(input)
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// The option without a value.
    Given,
    /// One value.
    One(OsString),
    /// Several values: for an option that is repeatable, each is a value of its own; for others,
    /// they are separated by commas.
    Several(Vec<OsString>),
}

/// An option that a command does not have, or not with this value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misuse {
    /// There is no such option; perhaps there is a similar one.
    Unknown(Option<String>),
    /// The option has no value.
    NoValue,
    /// The option needs a value.
    NeedsValue,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misuse::Unknown(None) => f.write_str("unknown option"),
            Misuse::Unknown(Some(near)) => write!(f, "unknown option; did you mean {near}?"),
            Misuse::NoValue => f.write_str("it has no value: use True"),
            Misuse::NeedsValue => f.write_str("it needs a value"),
        }
    }
}

/// The options of a command.
#[derive(Debug)]
pub struct CommandOptions(Vec<Arg>);

/// Options that concern the terminal, and those for the input.
const ELSEWHERE: [&str; 5] = ["help", "version", "no-pager", "input", "output"];

/// Options of `export` that concern its outputs and messages, and not the samples.
pub const OF_OUTPUTS: [&str; 9] = [
    "append-to",
    "force",
    "in-place",
    "no-sync",
    "quiet",
    "recording-label",
    "sideband",
    "to",
    "verbose",
];

impl CommandOptions {
    /// Returns the options of a command; `None` if there is no such command.
    pub fn of(command: &str) -> Option<Self> {
        let mut program = Cli::command();
        program.build();
        let command = program.find_subcommand(command)?;
        let options = command.get_arguments().filter(|arg| {
            arg.get_long()
                .is_some_and(|long| !ELSEWHERE.contains(&long))
        });
        Some(CommandOptions(options.cloned().collect()))
    }

    /// Returns the names of the options without `--`, each with its help.
    pub fn names(&self) -> impl Iterator<Item = (&str, String)> {
        let shown = self.0.iter().filter(|arg| !arg.is_hide_set());
        shown.filter_map(|arg| {
            let help = arg.get_help().map(ToString::to_string);
            Some((arg.get_long()?, help.unwrap_or_default()))
        })
    }

    /// Returns the names of the options that select samples.
    pub fn selecting(&self) -> impl Iterator<Item = &str> {
        let heading = Some(crate::cli::SAMPLES_TO_KEEP);
        let chosen = self.0.iter();
        let chosen = chosen.filter(move |arg| arg.get_help_heading() == heading);
        chosen.flat_map(|arg| {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long().into_iter().chain(aliases)
        })
    }

    /// Returns the words of the command line for an option.
    ///
    /// # Errors
    /// The command does not have it, or not with this value.
    pub fn words(&self, name: &str, value: Value) -> Result<Vec<OsString>, Misuse> {
        let is_meant = |arg: &&Arg| {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long() == Some(name) || aliases.contains(&name)
        };
        let Some(option) = self.0.iter().find(is_meant) else {
            let names = self.0.iter().filter_map(Arg::get_long);
            let near = suggest::nearest(name, names).map(str::to_owned);
            return Err(Misuse::Unknown(near));
        };
        let has_value = option.get_action().takes_values();
        let is_optional = option
            .get_num_args()
            .is_some_and(|range| range.min_values() == 0);
        let with = |value: OsString| {
            let mut word = OsString::from(format!("--{name}="));
            word.push(value);
            word
        };
        Ok(match value {
            Value::Given if has_value && !is_optional => return Err(Misuse::NeedsValue),
            Value::Given => vec![format!("--{name}").into()],
            _ if !has_value => return Err(Misuse::NoValue),
            Value::One(value) => vec![with(value)],
            Value::Several(values) if matches!(option.get_action(), ArgAction::Append) => {
                values.into_iter().map(with).collect()
            }
            Value::Several(values) => vec![with(values.join(",".as_ref()))],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(name: &str, value: Value) -> Result<Vec<OsString>, Misuse> {
        CommandOptions::of("convert")
            .expect("the command")
            .words(name, value)
    }

    #[test]
    fn options_become_words() {
        let one = |value: &str| Value::One(value.into());
        let several = |values: &[&str]| Value::Several(values.iter().map(Into::into).collect());
        assert_eq!(words("sort", Value::Given), Ok(vec!["--sort".into()]));
        assert_eq!(words("sort", one("x")), Err(Misuse::NoValue));
        assert_eq!(words("endian", Value::Given), Err(Misuse::NeedsValue));
        assert_eq!(words("endian", one("big")), Ok(vec!["--endian=big".into()]));
        assert_eq!(
            words("compress", Value::Given),
            Ok(vec!["--compress".into()])
        );
        assert_eq!(words("compress", one("5")), Ok(vec!["--compress=5".into()]));
        assert_eq!(
            words("drop", several(&["a", "b"])),
            Ok(vec!["--drop=a".into(), "--drop=b".into()])
        );
        assert_eq!(
            words("comm", several(&["a", "b"])),
            Ok(vec!["--comm=a,b".into()])
        );
        assert_eq!(
            words("compres", Value::Given),
            Err(Misuse::Unknown(Some("compress".into())))
        );
        assert!(matches!(words("input", one("x")), Err(Misuse::Unknown(_))));
        assert!(CommandOptions::of("nothing").is_none());
    }

    #[test]
    fn options_of_outputs_are_those_of_export() {
        let options = CommandOptions::of("export").expect("the command");
        for name in OF_OUTPUTS {
            let given = options.words(name, Value::Given);
            assert!(!matches!(given, Err(Misuse::Unknown(_))), "{name}");
        }
    }

    #[test]
    fn failures_are_returned() {
        let run = |words: &[&str]| run(words.iter().map(Into::into), &Cancel::default());
        let finished = run(&["convert", "--nothing"]);
        assert!(
            matches!(finished.result, Err(Failure::CommandLine(text)) if text.contains("--nothing"))
        );
        let finished = run(&["convert", "--input=/nowhere/x", "--output=/nowhere/y"]);
        assert!(matches!(
            finished.result,
            Err(Failure::Command(Error::Io { .. }))
        ));
        let kinds: Vec<MessageKind> = finished.messages.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [MessageKind::Error]);
    }

    #[test]
    fn a_cancelled_command_reads_nothing() {
        let input = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/fixtures/6.1-x86_64-file-g.data"
        );
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("out.data");
        let words = [
            "convert".into(),
            format!("--input={input}"),
            format!("--output={}", output.display()),
        ];
        let run = |cancel: &Cancel| run(words.iter().map(Into::into), cancel);
        let cancel = Cancel::default();
        cancel.cancel();
        assert!(run(&cancel).result.is_err());
        assert_eq!(folder.path().read_dir().expect("the folder").count(), 0);
        let finished = run(&Cancel::default());
        assert_eq!(finished.result.ok(), Some(Outcome::Done));
        assert!(matches!(
            finished.messages.as_slice(),
            [(MessageKind::Summary, _)]
        ));
        assert!(output.exists());
    }
}
