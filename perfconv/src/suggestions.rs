//! A short report about a recording, with suggested commands to paste, as shown by `perfconv FILE`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use perfdata_core::attr::SampleType;
use perfdata_core::feature::FeatureId;
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{RecordType, TABLE};
use perfdata_core::{Endian, Version};

use perfdata_convert::stages::compress::Compress;
use perfdata_convert::support::shell;
use perfdata_convert::support::text::escaped;
use perfdata_report::show::endian_name;
use perfdata_report::show::overview::Overview;

use crate::cmd::objects::{NamedShare, Remedy};

/// A suggested step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// Its result.
    pub what: &'static str,
    /// The command.
    pub command: String,
}

/// Maximum number of steps shown.
const STEPS: usize = 3;
/// The release after 6.1, which is the oldest perf that is still common.
const NEW_PERF: &str = "6.2";

/// Returns the most useful steps for the recording at `input`, at most three.
pub fn steps(overview: &Overview, share: Option<&NamedShare<'_>>, input: &Path) -> Vec<Suggestion> {
    if input == Path::new("-") {
        // Standard input cannot be read again.
        return Vec::new();
    }
    let facts = Facts::of(overview, input);
    let step = |what, before: &str, kind: &str| Suggestion {
        what,
        command: command(before, input, kind),
    };
    let traces = || Suggestion {
        what: "Extract the AUX data for decoders",
        command: extract_aux(input),
    };
    let all = [
        (facts.damaged).then(|| Suggestion {
            what: "Recover the intact records",
            command: recover(input),
        }),
        share
            .filter(|share| share.is_low() && share.remedy() == Some(Remedy::Bundle))
            .filter(|_| !facts.damaged)
            .map(|_| Suggestion {
                what: "On the recorded machine, add what contains the names of its functions",
                command: to_output("bundle", input, &output(input, "names", ".bundle")),
            }),
        (facts.large && !facts.damaged).then(|| Suggestion {
            what: "Keep a tenth of it: viewers are slow with large recordings",
            command: tenth(input),
        }),
        (facts.directory).then(|| step("Merge the directory into one file", "--to file", "file")),
        (facts.pipe).then(|| step("Convert it to a seekable file", "pipe2file", "file")),
        (facts.aux).then(traces),
        (facts.foreign).then(|| {
            step(
                "Convert it to this machine's byte order",
                "--swap-endian",
                "native",
            )
        }),
        (facts.compressed).then(|| step("Decompress it for other tools", "--decompress", "plain")),
        (facts.is_refused).then(|| step("Make it readable for perf 7", "--compat 7.2", "compat")),
        (facts.new).then(|| step("Make it readable for perf 6.1", "--compat 6.1", "compat")),
        (facts.callchains && !facts.damaged).then(|| Suggestion {
            what: "Draw a flame graph",
            command: flame_graph(input),
        }),
        (facts.telling).then(|| Suggestion {
            what: "Show what it would tell others, before you share it",
            command: format!("perfconv info --leaks {}", shell::word(input)),
        }),
        (!facts.compressed && !facts.damaged).then(|| {
            step(
                "Compress it, as perf record -z does",
                &facts.compress,
                "compressed",
            )
        }),
    ];
    all.into_iter().flatten().take(STEPS).collect()
}

/// The criteria for the selection.
struct Facts {
    directory: bool,
    damaged: bool,
    pipe: bool,
    aux: bool,
    foreign: bool,
    compressed: bool,
    large: bool,
    /// Whether new releases of perf refuse it.
    is_refused: bool,
    new: bool,
    /// Whether samples have callchains.
    callchains: bool,
    /// Whether it contains the host name or the command line.
    telling: bool,
    /// The options to compress it for the perf version that made it.
    compress: String,
}

impl Facts {
    fn of(overview: &Overview, input: &Path) -> Self {
        let release = overview
            .perf_version()
            .and_then(|text| text.parse::<Version>().ok());
        let has = |id: FeatureId| overview.recording().features.contains_key(&id);
        Facts {
            telling: has(FeatureId::HOSTNAME) || has(FeatureId::CMDLINE),
            compress: compress(release),
            directory: input.is_dir(),
            damaged: !overview.damage().is_empty(),
            pipe: overview.container() == ContainerKind::Pipe,
            aux: overview.count(RecordType::AUXTRACE) > 0,
            foreign: overview.recording().endian != Endian::NATIVE,
            compressed: is_compressed(overview),
            large: is_large(overview),
            is_refused: overview.is_refused_by_new_perf(),
            new: release.is_some_and(|release| release.has(NEW_PERF)),
            callchains: has_callchains(overview),
        }
    }
}

/// Returns the options to compress a recording of perf `release`.
fn compress(release: Option<Version>) -> String {
    match release {
        Some(old) if Compress::kind_for(old) == Some(RecordType::COMPRESSED) => {
            format!("--compress --compat {old}")
        }
        _ => "--compress".into(),
    }
}

/// Returns the command that recovers `input`.
pub fn recover(input: &Path) -> String {
    command("recover", input, "recovered")
}

/// Returns the command that keeps the first tenth of `input`.
pub fn tenth(input: &Path) -> String {
    command("--time 10%/1", input, "tenth")
}

/// Size of the records in bytes from which a recording is large.
const LARGE: u64 = 256 << 20;

/// Returns whether a recording is too large for many viewers.
pub fn is_large(overview: &Overview) -> bool {
    overview.stream_bytes() >= LARGE
}

/// Returns a name for the result of a conversion of `input`, as a word of a shell.
pub fn output_of(input: &Path) -> String {
    shell::word(&output(input, "converted", ".data"))
}

/// Returns the command that draws a flame graph of `input`.
fn flame_graph(input: &Path) -> String {
    to_output("export", input, &output(input, "flame", ".html"))
}

/// Returns whether the samples of an event have callchains.
fn has_callchains(overview: &Overview) -> bool {
    let mut events = overview.recording().events.iter();
    events.any(|event| event.attr.sample_type.has(SampleType::CALLCHAIN))
}

/// Returns the command that extracts the AUX data of `input`.
fn extract_aux(input: &Path) -> String {
    to_output("extract-aux", input, &output(input, "aux", ""))
}

/// Returns the command for a conversion of `input` to a file named after it.
fn command(words: &str, input: &Path, kind: &str) -> String {
    to_output(words, input, &output(input, kind, ".data"))
}

fn to_output(words: &str, input: &Path, output: &Path) -> String {
    format!(
        "perfconv {words} {} -o {}",
        shell::word(input),
        shell::word(output)
    )
}

/// Returns a name for the output that no existing file has.
fn output(input: &Path, kind: &str, extension: &str) -> PathBuf {
    let stem = input
        .file_stem()
        .filter(|stem| *stem != "-")
        .unwrap_or("perf".as_ref());
    let name = |number: Option<u32>| {
        let mut name = stem.to_owned();
        name.push(format!(".{kind}"));
        if let Some(number) = number {
            name.push(format!(".{number}"));
        }
        name.push(extension);
        PathBuf::from(name)
    };
    [None]
        .into_iter()
        .chain((2..100).map(Some))
        .map(name)
        .find(|name| !name.exists())
        .unwrap_or_else(|| name(None))
}

fn is_compressed(overview: &Overview) -> bool {
    TABLE
        .iter()
        .any(|info| info.kind.is_compressed() && overview.count(info.kind) > 0)
}

/// Returns a description of the recording at `input` in a few lines, and the suggested steps.
pub fn text(overview: &Overview, share: Option<&NamedShare<'_>>, input: &Path) -> String {
    let mut out = String::new();
    let name = if input == Path::new("-") {
        "standard input".into()
    } else {
        shell::word(input)
    };
    let container = if input.is_dir() {
        "directory".into()
    } else {
        overview.container().to_string()
    };
    let compressed = if is_compressed(overview) {
        ", compressed"
    } else {
        ""
    };
    let _ = writeln!(out, "{name}: a recording of Linux perf");
    let _ = writeln!(
        out,
        "  {}, {container}{compressed}",
        endian_name(overview.recording().endian)
    );
    let origin = overview.origin();
    if !origin.is_empty() {
        let _ = writeln!(out, "  made {origin}");
    }
    let names: Vec<String> = overview.event_names().map(|name| escaped(&name)).collect();
    let _ = writeln!(
        out,
        "  {}: {}",
        count(names.len() as u64, "event"),
        names.join(", ")
    );
    let _ = writeln!(out, "  {}", overview.counts());
    for (what, text) in overview.facts() {
        let _ = writeln!(out, "  {what}: {text}");
    }
    if let Some(share) = share {
        let _ = writeln!(
            out,
            "  functions: known for {}",
            escaped(share.text().as_bytes())
        );
    }
    for damage in overview.damage() {
        let _ = writeln!(out, "  damaged: {damage}");
    }
    for step in steps(overview, share, input) {
        let _ = writeln!(out, "\n{}:\n  {}", step.what, step.command);
    }
    if input != Path::new("-") {
        let _ = writeln!(
            out,
            "\nMore: perfconv info {}; perfconv --help",
            shell::word(input)
        );
    }
    out
}

/// Formats a number and its unit: `1 event`, `2 events`.
pub fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
