//! `perfconv info`: the content of a recording except its records.

use std::io::{self, Write};
use std::path::Path;

use anstream::ColorChoice;

use super::{Outcome, Several, open, print, system};
use perfdata_core::read::Limits;

use crate::cli::InfoArgs;
use crate::messages::{Messages, Verbosity};
use crate::suggestions;
use perfdata_convert::io::{Input, Output};
use perfdata_convert::{Error, Result};
use perfdata_inject::off_cpu;
use perfdata_report::show::overview::Overview;
use perfdata_report::show::survey::ChartData;
use perfdata_report::show::{input_name, map, page};
use perfdata_sanitize::leaks::Leaks;

/// The width of a map that is written to a file.
const WIDTH: u16 = 80;

/// Reports the names of the objects in a bundle: whoever has it has these files.
fn tell_objects(input: &Input, messages: Messages) {
    let Some(bundle) = input.bundle() else {
        return;
    };
    for part in bundle.bundle().objects() {
        messages.note(format_args!(
            "the bundle contains a file, {} compressed bytes: {}",
            part.place.size,
            part.member.name().escape_ascii()
        ));
    }
}

/// Shows the recordings according to `args`.
pub fn run(
    args: &InfoArgs,
    out: &mut dyn Write,
    limits: Limits,
    inputs: &Several<'_>,
) -> Result<Outcome> {
    if let Some(path) = &args.html {
        let [input] = inputs.paths else {
            return Err(Error::Usage("--html accepts only one recording".into()));
        };
        write_page(input, path, args, limits, inputs.messages)?;
        return Ok(Outcome::Done);
    }
    let in_full = inputs.messages.verbosity >= Verbosity::Verbose;
    let mut is_first = true;
    inputs.each(out, |input, out| {
        let before = if std::mem::take(&mut is_first) {
            ""
        } else {
            "\n"
        };
        let heading = match inputs.are_many() && !args.json {
            true => format!("{before}{}:\n", input_name(input)),
            false => String::new(),
        };
        let input_of = || open(input, limits, inputs.messages);
        let text = if args.leaks {
            let input_to_read = input_of()?;
            tell_objects(&input_to_read, inputs.messages);
            let leaks = Leaks::of(input_to_read)?;
            match args.json {
                true => leaks.json(Some(input)),
                false => leaks.text(),
            }
        } else if args.map {
            let width = system::width_of_stdout().unwrap_or(WIDTH);
            colored(map::draw(&ChartData::of(input_of()?)?, usize::from(width)))
        } else {
            let overview = Overview::of(input_of()?)?;
            if args.json {
                overview.json_of(Some(input))
            } else {
                if suggestions::is_large(&overview) && input != Path::new("-") {
                    inputs
                        .messages
                        .note("this recording is large; a slice of it is enough for most viewers");
                    inputs.messages.next(suggestions::tenth(input));
                }
                tell_off_cpu(&overview, inputs.messages);
                overview.text(in_full)
            }
        };
        print(out, &(heading + &text))?;
        Ok(Outcome::Done)
    })
}

/// Tells whether the recording says where threads wait; if not, only as a detail, with how to record
/// it.
fn tell_off_cpu(overview: &Overview, messages: Messages) {
    match off_cpu::source_of(overview.recording(), overview.names()) {
        Ok(source) => messages.note(format_args!(
            "--off-cpu shows where threads wait: the recording has {source}"
        )),
        Err(error) => messages.detail(format_args!("no --off-cpu: {error}")),
    }
}

/// Writes the page about `input` to `path`.
fn write_page(
    input: &Path,
    path: &Path,
    args: &InfoArgs,
    limits: Limits,
    messages: Messages,
) -> Result<()> {
    let output = Output::create(path, input, args.force)?.synced(!args.no_sync);
    let survey = ChartData::of(open(input, limits, messages)?)?;
    let name = input.file_name().unwrap_or(input.as_os_str());
    let page = page::html(&survey, name.as_encoded_bytes());
    output.write_stream(1, |out| {
        out.write_all(page.as_bytes()).map_err(Error::io(path))
    })
}

/// Returns the text for standard output: without colours for a file.
fn colored(text: String) -> String {
    match anstream::AutoStream::choice(&io::stdout()) {
        ColorChoice::Never => anstream::adapter::strip_str(&text).to_string(),
        _ => text,
    }
}
