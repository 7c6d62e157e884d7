//! `perfconv man`: the manual pages, generated from the definition of the command line.

use std::io::{self, IsTerminal, Write};
use std::process::{Command as Process, Stdio};

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::{STANDARD_OUTPUT, pager, print};
use crate::cli::{Cli, ManArgs, nearest_command};
use perfdata_convert::{Error, Result};

/// Shows the page of perfconv, or of one of its commands, on a terminal. Otherwise, writes its
/// source, so that it can be installed.
pub fn run(args: &ManArgs, out: &mut dyn Write, may_page: bool) -> Result<()> {
    let mut page = Vec::new();
    write(args.command.as_deref(), &mut page)?;
    if !io::stdout().is_terminal() {
        return out.write_all(&page).map_err(Error::io(STANDARD_OUTPUT));
    }
    out.flush().map_err(Error::io(STANDARD_OUTPUT))?;
    if is_shown(&page, may_page) {
        return Ok(());
    }
    // Without `man`, shows plain text.
    let text = help(args.command.as_deref());
    if may_page && pager::is_of_use() {
        pager::paged(|out| print(out, &text))
    } else {
        print(out, &text)
    }
}

/// Shows the page with `man`, and returns whether this succeeded.
fn is_shown(page: &[u8], may_page: bool) -> bool {
    let mut man = Process::new("man");
    if !(may_page && pager::is_of_use()) {
        man.args(["-P", "cat"]);
    }
    let Ok(mut child) = man
        .args(["-l", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
    else {
        return false;
    };
    // An error means that the user has quit the pager.
    let _ = child.stdin.take().map(|mut pipe| pipe.write_all(page));
    child.wait().is_ok_and(|status| status.success())
}

/// Returns the definition of the command line, or of the command called `name`.
fn command(name: Option<&str>) -> Option<Command> {
    // The help command has no page.
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    match name {
        Some(name) => {
            let found = command.find_subcommand(name)?.clone();
            Some(found.name(format!("perfconv-{name}")))
        }
        None => {
            let usage = "perfconv FILE…\nperfconv [OPTIONS] INPUT -o OUTPUT\nperfconv COMMAND …";
            Some(command.override_usage(usage))
        }
    }
}

/// Writes the page of the command called `name`.
fn write(name: Option<&str>, out: &mut Vec<u8>) -> Result<()> {
    let Some(command) = command(name) else {
        let name = name.unwrap_or_default();
        let near = nearest_command(name).map(|near| format!("; did you mean {near}?"));
        return Err(Error::Usage(format!(
            "perfconv has no command {name}{}",
            near.unwrap_or_default()
        )));
    };
    // A page also contains the options that the short help omits.
    let command = command.mut_args(|arg| arg.hide_short_help(false));
    let after = command
        .get_after_long_help()
        .or(command.get_after_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    let has_commands = command.has_subcommands();
    let man = Man::new(command);
    let written = man
        .render_title(out)
        .and_then(|()| man.render_name_section(out))
        .and_then(|()| man.render_synopsis_section(out))
        .and_then(|()| man.render_description_section(out))
        .and_then(|()| man.render_options_section(out))
        .and_then(|()| {
            if has_commands {
                man.render_subcommands_section(out)
            } else {
                Ok(())
            }
        })
        .and_then(|()| sections(&after).to_writer(out));
    written.map_err(Error::io(STANDARD_OUTPUT))
}

/// Returns the end of `--help` as sections of a page. A line that ends with a colon, or begins with
/// a heading, starts a section.
fn sections(text: &str) -> Roff {
    const STATUS: &str = "Exit status:";
    let mut roff = Roff::new();
    let mut section = "";
    for block in text.split("\n\n") {
        let mut lines = block.lines();
        let first = lines.next().unwrap_or_default();
        let (heading, rest) = match first.strip_suffix(':') {
            Some(heading) => (heading, None),
            None if first.starts_with(STATUS) => {
                (STATUS.trim_end_matches(':'), first.strip_prefix(STATUS))
            }
            None => ("Notes", Some(first)),
        };
        if heading == section {
            roff.control("PP", []);
        } else {
            roff.control("SH", [heading.to_uppercase().as_str()]);
            section = heading;
        }
        let is_layout = rest.is_none();
        if is_layout {
            roff.control("nf", []);
        }
        for line in rest.into_iter().map(str::trim_start).chain(lines) {
            roff.text([roman(line)]);
        }
        if is_layout {
            roff.control("fi", []);
        }
    }
    roff
}

/// Returns the output of `--help`.
fn help(name: Option<&str>) -> String {
    let words = ["perfconv"].into_iter().chain(name).chain(["--help"]);
    Cli::from_args(words).map_or_else(|help| help.to_string(), |_| String::new())
}
