//! The commands that are measured.

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use perfdata_tests::convert::perfconv;
use perfdata_tests::generate::Mix;

/// The files that jobs read and write.
pub struct Inputs {
    pub file: PathBuf,
    pub pipe: PathBuf,
    pub small: PathBuf,
    /// Two recordings of half the size.
    pub halves: [PathBuf; 2],
    pub output: PathBuf,
}

/// A command to measure.
pub struct Job {
    pub name: String,
    pub command: Box<dyn Fn() -> Result<Command, Box<dyn Error>>>,
    /// A file that the command reads through a pipe.
    pub feed: Option<PathBuf>,
    /// The job that it is compared with, and the target for the ratio of times, if there is one.
    pub beside: Option<(&'static str, Option<f64>)>,
    /// Whether one run is sufficient, because it takes so long.
    pub once: bool,
}

impl Job {
    fn beside(mut self, name: &'static str, goal: impl Into<Option<f64>>) -> Self {
        self.beside = Some((name, goal.into()));
        self
    }

    fn fed(mut self, path: &Path) -> Self {
        self.feed = Some(path.to_owned());
        self
    }

    fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Returns whether other jobs are compared with it.
    pub fn is_measure(&self) -> bool {
        self.beside.is_none()
    }
}

/// Returns a job that runs `words`, in which IN, OUT and so on represent files.
fn job(name: &str, program: fn() -> Command, words: &str, inputs: &Inputs) -> Job {
    let places = [
        ("IN", &inputs.file),
        ("PIPE", &inputs.pipe),
        ("SMALL", &inputs.small),
        ("ONE", &inputs.halves[0]),
        ("TWO", &inputs.halves[1]),
        ("OUT", &inputs.output),
    ];
    let place = |word: &str| {
        places
            .iter()
            .find(|place| place.0 == word)
            .map_or(word.into(), |place| place.1.clone())
    };
    let words: Vec<PathBuf> = words.split_whitespace().map(place).collect();
    let command = move || -> Result<Command, Box<dyn Error>> {
        let mut command = program();
        command.args(&words);
        Ok(command)
    };
    Job {
        name: name.into(),
        command: Box::new(command),
        feed: None,
        beside: None,
        once: false,
    }
}

/// Redirects the job's standard output to the output file.
fn into_output(inner: Job, inputs: &Inputs) -> Job {
    let output = inputs.output.clone();
    let make = inner.command;
    let command = move || -> Result<Command, Box<dyn Error>> {
        let mut command = make()?;
        command.stdout(Stdio::from(File::create(&output)?));
        Ok(command)
    };
    Job {
        command: Box::new(command),
        ..inner
    }
}

fn cp() -> Command {
    Command::new("cp")
}

fn cat() -> Command {
    Command::new("cat")
}

fn zstd() -> Command {
    Command::new("zstd")
}

fn perf() -> Command {
    let mut perf = Command::new("perf");
    perf.env("PERF_CONFIG", "/dev/null")
        .env_remove("DEBUGINFOD_URLS");
    perf
}

fn this_program() -> Command {
    Command::new(std::env::current_exe().unwrap_or_default())
}

fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

/// Returns all jobs for a mix.
pub fn all(mix: Mix, inputs: &Inputs) -> Result<Vec<Job>, Box<dyn Error>> {
    let own = |name: &str, words: &str| job(&format!("perfconv {name}"), perfconv, words, inputs);
    let mut jobs = vec![
        job("cp", cp, "IN OUT", inputs),
        into_output(job("cat >", cat, "", inputs).fed(&inputs.pipe), inputs),
        own("convert", "convert -q IN -o OUT").beside("cp", 1.3),
        own("pipe2file", "pipe2file -q PIPE -o OUT").beside("cp", 1.3),
        own("pipe2file, stdin", "pipe2file -q - -o OUT")
            .fed(&inputs.pipe)
            .beside("cat >", 1.5),
        own("file2pipe", "file2pipe -q IN -o OUT").beside("cp", 1.3),
        own("verify", "verify IN").beside("cp", 1.5),
        own("info", "info IN").beside("cp", 0.7),
        own("recover", "recover -q IN -o OUT").beside("cp", None),
        own("merge", "merge -q ONE TWO -o OUT").beside("cp", 1.5),
    ];
    if mix == Mix::Compressed {
        jobs.extend(compression(inputs)?);
        return Ok(jobs);
    }
    jobs.extend([
        own("--swap-endian", "--swap-endian -q IN -o OUT").beside("cp", 2.0),
        own("--sanitize", "--sanitize -q IN -o OUT").beside("cp", 3.0),
        own("inject -b", "inject -b -i IN -o OUT").beside("cp", 2.0),
        own("inject --buildid-all", "inject --buildid-all -i IN -o OUT").beside("cp", 1.3),
        own("dump --json, small", "dump --json SMALL"),
        job(
            "linux-perf-data",
            this_program,
            "--read-with linux-perf-data IN",
            inputs,
        ),
        job(
            "library, by time",
            this_program,
            "--read-with time IN",
            inputs,
        )
        .beside("linux-perf-data", 1.0 / 2.5),
        job(
            "library, resolved",
            this_program,
            "--read-with session IN",
            inputs,
        )
        .beside("linux-perf-data", 2.0),
        job(
            "library, in file order",
            this_program,
            "--read-with file IN",
            inputs,
        )
        .beside("linux-perf-data", 0.25),
    ]);
    if mix == Mix::Stacks {
        // The generated addresses are in no object, so that each callchain has one user frame.
        jobs.extend([
            own("--convert-callchain", "--convert-callchain -q IN -o OUT").beside("cp", None),
            own("--drop-stacks", "--drop-stacks -q IN -o OUT").beside("cp", None),
        ]);
    }
    if has("perf") {
        jobs.push(job("perf inject -b", perf, "inject -b -i IN -o OUT", inputs).once());
        jobs.push(
            own("inject -b, beside perf", "inject -b -i IN -o OUT").beside("perf inject -b", 0.1),
        );
        jobs.push(job("perf script, small", perf, "script -i SMALL", inputs).once());
        jobs.push(
            own("dump --json, beside perf", "dump --json SMALL").beside("perf script, small", 0.1),
        );
    }
    Ok(jobs)
}

/// Returns the jobs for compressed recordings, which are compared with zstd on the same records.
fn compression(inputs: &Inputs) -> Result<Vec<Job>, Box<dyn Error>> {
    let folder = inputs.output.parent().unwrap_or(Path::new("."));
    let (plain, packed) = (folder.join("plain.data"), folder.join("plain.zst"));
    let status = perfconv()
        .args(["--decompress", "-q", "-f"])
        .arg(&inputs.file)
        .arg("-o")
        .arg(&plain)
        .status()?;
    if !status.success() {
        return Err("the recording cannot be decompressed".into());
    }
    let own = |name: &str, words: &[&str], input: &Path| {
        let words = words.join(" ").replace("PLAIN", &input.to_string_lossy());
        job(&format!("perfconv {name}"), perfconv, &words, inputs)
    };
    let mut jobs = Vec::new();
    let (unpack, pack) = (
        own("--decompress", &["--decompress -q IN -o OUT"], &plain),
        "--compress=1 -q PLAIN -o OUT",
    );
    if !has("zstd") {
        return Ok(vec![unpack, own("--compress=1", &[pack], &plain)]);
    }
    Command::new("zstd")
        .args(["-q", "-1", "-f"])
        .arg(&plain)
        .arg("-o")
        .arg(&packed)
        .status()?;
    let words = format!("-q -d -f {} -o OUT", packed.display());
    jobs.push(job("zstd -d", zstd, &words, inputs));
    jobs.push(unpack.beside("zstd -d", 1.0 / 0.9));
    jobs.push(job(
        "zstd -1 -T0",
        zstd,
        &format!("-q -1 -T0 -f {} -o OUT", plain.display()),
        inputs,
    ));
    jobs.push(own("--compress=1", &[pack], &plain).beside("zstd -1 -T0", 1.0 / 0.9));
    Ok(jobs)
}
