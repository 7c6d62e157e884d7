//! `perfconv extract-aux`: the AUX data of a recording as files.

use std::path::Path;

use super::open;
use perfdata_core::read::Limits;

use crate::aux_data::{EXTENSION, INDEX, extract};
use crate::cli::ExtractAuxArgs;
use crate::convert::without_aux::WithoutAux;
use crate::convert::{Conversion, Stage};
use crate::error::{Error, Result};
use crate::io::{Output, OutputDirectory};
use crate::messages::Messages;

/// Takes the AUX data out by `args`.
pub fn run(args: &ExtractAuxArgs, limits: Limits, messages: Messages) -> Result<()> {
    let is_ours = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        path.is_file() && (name == INDEX || name.ends_with(EXTENSION))
    };
    let directory = OutputDirectory::create(&args.output, &args.input, args.force, is_ours)?;
    let directory = directory.synced(!args.no_sync);
    if let Some(sideband) = args.sideband.as_deref().filter(|sideband| directory.would_replace(sideband)) {
        let what = format!("{} would be replaced with the AUX data: it needs another place", sideband.display());
        return Err(Error::Usage(what));
    }
    let sideband = args.sideband.as_deref().map(|path| Output::create(path, &args.input, args.force)).transpose()?;
    let sideband = sideband.map(|sideband| sideband.synced(!args.no_sync));
    let mut input = open(&args.input, limits, messages)?;
    let mut again = None;
    if sideband.is_some() {
        input = input.into_seekable()?;
        again = input.again();
    }
    let report = directory.write(|folder| extract(input, folder))?;
    if let (Some(output), Some(input)) = (sideband, again) {
        let stages: Vec<Box<dyn Stage>> = vec![Box::new(WithoutAux::default())];
        let conversion = Conversion { stages, to: None };
        let (complete, summary) = output.complete(|file| conversion.run_into(input, file))?;
        if complete.is_direct() {
            // It may take its time.
            complete.publish()?;
            directory.finish()?;
        } else {
            directory.finish_beside(complete)?;
        }
        summary.notes.iter().for_each(|note| messages.note(note));
    } else {
        directory.finish()?;
    }
    report.notes.iter().for_each(|note| messages.note(note));
    let files = if report.queues == 1 { "file" } else { "files" };
    messages.summary(format_args!("{} {files}, {} bytes of AUX data", report.queues, report.bytes));
    Ok(())
}
