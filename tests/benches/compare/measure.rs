//! Runs jobs and compares them.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use wait4::Wait4;

use crate::jobs::Job;

/// Time and memory of one run.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    /// Elapsed time in seconds.
    wall: f64,
    /// User and system time of all CPUs in seconds.
    cpu: f64,
    /// Peak memory in megabytes.
    memory: f64,
    /// User and system time in seconds of another run, on one CPU: what a busy machine gives.
    one_core: f64,
}

/// The runs of one job, or the reason why there are none.
pub type Runs = Result<Vec<Taken>, String>;

/// Runs every job once, then every job again, so that other load on the machine affects all jobs.
pub fn run(jobs: &[Job], runs: usize, output: &Path) -> Result<Vec<Runs>, Box<dyn Error>> {
    let mut results: Vec<Runs> = jobs.iter().map(|_| Ok(Vec::new())).collect();
    for round in 0..runs {
        for (job, result) in jobs.iter().zip(&mut results) {
            let Ok(taken) = result else { continue };
            if job.once && round > 0 {
                continue;
            }
            if output.exists() {
                fs::remove_file(output)?;
            }
            match once(job)? {
                Ok(run) => {
                    if output.exists() {
                        fs::remove_file(output)?;
                    }
                    let one_core = on_one_core(|| once(job))??.map_or(f64::NAN, |run| run.cpu);
                    taken.push(Taken { one_core, ..run });
                }
                Err(why) => *result = Err(why),
            }
        }
    }
    Ok(results)
}

/// Calls `run`, whose child processes all run on the last of the CPUs.
fn on_one_core<T>(run: impl FnOnce() -> T) -> Result<T, Box<dyn Error>> {
    let all = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| all.is_set(cpu));
    let mut one = CpuSet::new();
    one.set(last.ok_or("no CPU")?);
    sched_setaffinity(None, &one)?;
    let result = run();
    sched_setaffinity(None, &all)?;
    Ok(result)
}

fn once(job: &Job) -> Result<Result<Taken, String>, Box<dyn Error>> {
    let mut command = (job.command)()?;
    if !job.name.contains('>') {
        command.stdout(Stdio::null());
    }
    command.stderr(Stdio::null());
    let start = Instant::now();
    let mut feeder = None;
    match &job.feed {
        Some(path) => {
            let mut cat = Command::new("cat")
                .arg(path)
                .stdout(Stdio::piped())
                .spawn()?;
            command.stdin(cat.stdout.take().ok_or("no pipe")?);
            feeder = Some(cat);
        }
        None => {
            command.stdin(Stdio::null());
        }
    }
    let mut child = command.spawn()?;
    // The command also holds the pipe open.
    drop(command);
    let used = child.wait4()?;
    let wall = start.elapsed().as_secs_f64();
    if let Some(mut cat) = feeder {
        cat.wait()?;
    }
    if !used.status.success() {
        return Ok(Err(used.status.to_string()));
    }
    let cpu = (used.rusage.utime + used.rusage.stime).as_secs_f64();
    Ok(Ok(Taken {
        wall,
        cpu,
        memory: used.rusage.maxrss as f64 / 1e6,
        one_core: f64::NAN,
    }))
}

fn median(runs: &[Taken], what: fn(&Taken) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(what).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints a table of the medians. The first column is the CPU time on one core: as a multiple of
/// that of the job beside, or in seconds.
pub fn print(jobs: &[Job], results: &[Runs]) {
    println!("| job | one core | wall, s | CPU, s | memory, MB | beside | wall | CPU | goal |");
    println!("|---|--:|--:|--:|--:|---|--:|--:|--:|");
    let of = |name: &str| {
        jobs.iter()
            .zip(results)
            .find(|(job, _)| job.name == name)
            .and_then(|(_, runs)| runs.as_ref().ok())
    };
    for (job, runs) in jobs.iter().zip(results) {
        let Ok(runs) = runs
            .as_ref()
            .map_err(|why| println!("| {} | {why} | | | | | | | |", job.name))
        else {
            continue;
        };
        let (wall, cpu) = (median(runs, |run| run.wall), median(runs, |run| run.cpu));
        let memory = runs.iter().map(|run| run.memory).fold(0.0, f64::max);
        let one_core = median(runs, |run| run.one_core);
        let beside = job
            .beside
            .and_then(|(name, goal)| Some((name, goal, of(name)?)));
        let one_core = match beside {
            Some((.., other)) => format!("{:.2} ×", one_core / median(other, |run| run.one_core)),
            None => format!("{one_core:.2} s"),
        };
        print!(
            "| {} | {one_core} | {wall:.2} | {cpu:.2} | {memory:.0} |",
            job.name
        );
        match beside {
            Some((name, goal, other)) => {
                let (walls, cpus) = (
                    wall / median(other, |run| run.wall),
                    cpu / median(other, |run| run.cpu),
                );
                let goal = goal.map_or(String::new(), |goal| format!("≤ {goal:.2}"));
                println!(" {name} | {walls:.2} | {cpus:.2} | {goal} |");
            }
            None => println!(" | | | |"),
        }
    }
}
