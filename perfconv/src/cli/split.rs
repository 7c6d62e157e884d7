//! The options of `perfconv split`.

use clap::{Arg, Args, ValueHint};

use super::ConvertArgs;
use super::debuginfod::DEBUGINFOD;
use super::slice::parse;
use perfdata_edit::split::By;

/// Arguments of `split`.
#[derive(Debug, Args)]
pub struct SplitArgs {
    /// What each part contains: time=DURATION, size=BYTES, samples=N, pid, tid, comm, cpu, event
    ///
    /// time=10s: the samples of 10 seconds each (h, m, s, ms, us, ns). size=100M: up to 100 MiB of
    /// records, without compression. samples=1000: so many samples each, in the order of time. pid,
    /// tid, comm, cpu, event: the samples of a process, thread, thread name, CPU or event each;
    /// with more than 250 of them, the last part contains those with the fewest samples.
    #[arg(long, value_name = "WHAT", value_parser = parse::<By>, help_heading = SPLITTING)]
    pub by: By,
    /// Input and output, and conversions of each part.
    #[command(flatten)]
    pub convert: ConvertArgs,
}

/// Heading of the options of `split` alone.
const SPLITTING: &str = "Splitting";

/// Returns an argument of `convert` for `split`, which has several outputs.
pub fn of_split(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "output" => {
            let help = "Directory to create for the parts and index.json";
            arg.value_name("DIR")
                .required(true)
                .value_hint(ValueHint::DirPath)
                .help(help)
                .long_help(help)
        }
        "force" => {
            let help = "Replace DIR if perfconv created it";
            arg.help(help).long_help(help)
        }
        "to" => {
            let help = "Container of the parts: file or pipe [default: file]";
            arg.help(help).long_help(help)
        }
        "related" => {
            let help = "Also put tracepoints into the parts of all threads that they name";
            arg.help(help).long_help(format!(
                "{help}\n\nBy pid, tid or comm, or with --pid, --tid or --comms. The threads are in the \
                 fields pid, tid, and those that end like this: next_pid, child_pid. Without these \
                 samples, perf sched, perf timechart and perf lock lack what others did to the \
                 threads of a part."
            ))
        }
        // Refused: the recording must contain the code and the callchains before it is divided.
        id if id.starts_with("jit") || id == "perf_maps" => arg.hide(true),
        "sanitize" | "keep" | "key" => arg.hide(true),
        "convert_callchain" | "frame_pointers" | "debug_dir" | "unverified" => arg.hide(true),
        DEBUGINFOD => arg.hide(true),
        _ => arg,
    }
}
