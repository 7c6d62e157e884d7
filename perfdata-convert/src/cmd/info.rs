//! `perfconv info`: what is in a recording, without its records.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use anstream::ColorChoice;

use super::{open, print};
use perfdata_core::read::Limits;

use crate::cli::InfoArgs;
use crate::error::{Error, Result};
use crate::io::Output;
use crate::messages::Messages;
use crate::show::overview::Overview;
use crate::show::survey::Survey;
use crate::show::{map, page};

/// The width of a map that goes into a file.
const WIDTH: u16 = 80;

/// Shows the recording by `args`.
pub fn run(args: &InfoArgs, out: &mut dyn Write, limits: Limits, messages: Messages) -> Result<()> {
    if let Some(path) = &args.html {
        let output = Output::create(path, &args.input, args.force)?;
        let survey = Survey::of(open(&args.input, limits, messages)?)?;
        let name = args.input.file_name().unwrap_or(args.input.as_os_str());
        let page = page::html(&survey, name.as_bytes());
        return output.write_stream(|out| out.write_all(page.as_bytes()).map_err(Error::io(path)));
    }
    if args.map {
        let survey = Survey::of(open(&args.input, limits, messages)?)?;
        let width = terminal_size::terminal_size_of(io::stdout()).map_or(WIDTH, |(width, _)| width.0);
        return print(out, &colored(map::draw(&survey, usize::from(width))));
    }
    let overview = Overview::of(open(&args.input, limits, messages)?)?;
    print(out, &if args.json { overview.json() } else { overview.text() })
}

/// The text as standard output wants it: a file gets no colours.
fn colored(text: String) -> String {
    match anstream::AutoStream::choice(&io::stdout()) {
        ColorChoice::Never => anstream::adapter::strip_str(&text).to_string(),
        _ => text,
    }
}
