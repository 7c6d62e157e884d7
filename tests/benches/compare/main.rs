//! Time and memory of every conversion on generated recordings, compared with programs that do the
//! same, or only copy:
//!
//!     cargo bench -p perfdata-benches --bench compare
//!
//! For options after `--`, see `--help`. Jobs with programs that this machine does not have (perf,
//! zstd) are skipped.

mod jobs;
mod library;
mod measure;

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use clap::Parser;
use perfdata_core::header::ContainerKind;
use perfdata_tests::generate::{Generator, Mix};

use jobs::Inputs;

#[derive(Parser)]
struct Options {
    /// Size of the records in megabytes
    #[arg(long, default_value_t = 500)]
    size: u64,
    /// Runs of each job; the table contains their median
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Main content of the recordings; all mixes if not given
    #[arg(long, value_parser = |name: &str| Mix::by_name(name).ok_or("no such mix"))]
    mix: Vec<Mix>,
    /// Only jobs whose name contains this text
    #[arg(long)]
    only: Option<String>,
    /// Folder for the recordings; use a file system in memory to exclude the disk from the
    /// measurement
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Passed by cargo bench
    #[arg(long, hide = true)]
    bench: bool,
    /// Reads a recording with a library; used by the benchmark itself
    #[arg(long, hide = true, num_args = 2)]
    read_with: Vec<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    if let [how, path] = options.read_with.as_slice() {
        return library::read(how, Path::new(path));
    }
    let folder = match &options.dir {
        Some(dir) => tempfile::tempdir_in(dir)?,
        None => tempfile::tempdir()?,
    };
    let mixes = if options.mix.is_empty() {
        Mix::ALL.to_vec()
    } else {
        options.mix.clone()
    };
    for mix in mixes {
        let inputs = inputs(mix, options.size * 1_000_000, folder.path())?;
        println!(
            "\n{}, {} MB of records, medians of {} runs\n",
            mix.name(),
            options.size,
            options.runs
        );
        let mut jobs = jobs::all(mix, &inputs)?;
        if let Some(only) = &options.only {
            jobs.retain(|job| job.name.contains(only.as_str()) || job.is_measure());
        }
        let results = measure::run(&jobs, options.runs, &inputs.output)?;
        measure::print(&jobs, &results);
        for entry in fs::read_dir(folder.path())? {
            fs::remove_file(entry?.path())?;
        }
    }
    Ok(())
}

/// Generates the inputs of the jobs.
fn inputs(mix: Mix, size: u64, folder: &Path) -> Result<Inputs, Box<dyn Error>> {
    let seeded = |name: &str, size: u64, to: ContainerKind, seed: u64| {
        let path = folder.join(name);
        let mut generator = Generator::new(mix, size);
        generator.seed = seed;
        match to {
            ContainerKind::File => drop(generator.file(File::create(&path)?)?),
            ContainerKind::Pipe => drop(generator.pipe(File::create(&path)?)?),
        }
        Ok::<PathBuf, Box<dyn Error>>(path)
    };
    let make = |name: &str, size: u64, to: ContainerKind| seeded(name, size, to, 1);
    Ok(Inputs {
        file: make("file.data", size, ContainerKind::File)?,
        pipe: make("pipe.data", size, ContainerKind::Pipe)?,
        // perf takes minutes for jobs that others do in seconds.
        small: make("small.data", size.min(50_000_000), ContainerKind::File)?,
        halves: [
            seeded("one.data", size / 2, ContainerKind::File, 1)?,
            seeded("two.data", size / 2, ContainerKind::File, 2)?,
        ],
        output: folder.join("output"),
    })
}
