//! Starts the workers, and collects their results. If a worker dies or hangs, this is a fault of
//! its current input.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use crate::{families::FAMILIES, figures::Figures, is_thorough, worker::is_asked_for};

/// Maximum address space of a worker in kilobytes: attempts to allocate all memory abort.
const ADDRESS_SPACE: u64 = 2 << 20;

/// Maximum time of a command, even on a busy machine.
const HANG: Duration = Duration::from_secs(600);

/// Maximum memory of a worker in kilobytes: the recordings from which inputs are made, 64 MB for a
/// command, and the window of zstd, if the stream requests it.
const PROCESS: u64 = 256 << 10;

/// Maximum number of faults that are displayed for one worker.
const SHOWN: usize = 20;

#[derive(Default)]
struct Gathered {
    figures: BTreeMap<String, Figures>,
    process: u64,
    faults: Vec<String>,
}

/// Runs the families, prints their figures, and returns the faults.
pub fn run(names: &[String]) -> Vec<String> {
    let start = Instant::now();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let gathered = Mutex::new(Gathered::default());
    thread::scope(|scope| {
        for share in 0..workers {
            let progress = folder.path().join(share.to_string());
            let gathered = &gathered;
            scope.spawn(move || {
                supervise(&format!("{share}/{workers}"), &progress, names, gathered)
            });
        }
    });
    let Gathered {
        figures,
        process,
        mut faults,
    } = gathered.into_inner().expect("gathering does not panic");
    if process > PROCESS {
        faults.push(format!("a process took {} MiB of memory", process >> 10));
    }
    println!(
        "{:20}{}",
        if is_thorough() {
            "all inputs"
        } else {
            "a sample of inputs"
        },
        Figures::HEAD
    );
    let mut sum = Figures::default();
    for family in FAMILIES
        .iter()
        .filter(|family| is_asked_for(family.name, names))
    {
        let figures = figures.get(family.name).cloned().unwrap_or_default();
        println!("{:20}{figures}", family.name);
        sum.add(figures);
    }
    println!("{:20}{sum}", "together");
    println!("slowest: {}\nmost memory: {}", sum.slowest, sum.largest);
    println!(
        "{} faults; at most {} MiB of memory for a process; {:.0?}",
        faults.len(),
        process >> 10,
        start.elapsed()
    );
    faults
}

fn supervise(share: &str, progress: &Path, names: &[String], gathered: &Mutex<Gathered>) {
    let own = env::current_exe().expect("this program has a path");
    let mut shell = Command::new("sh");
    shell
        .args([
            "-c",
            &format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" \"$@\""),
        ])
        .arg(own);
    shell
        .args(["--worker", share, "--progress"])
        .arg(progress)
        .args(names);
    let mut child = shell
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("sh starts");
    let said = child.stdout.take().expect("it is piped");
    thread::scope(|scope| {
        let reader = scope.spawn(|| gather(BufReader::new(said), gathered));
        let end = wait(&mut child, progress);
        reader.join().expect("gathering does not panic");
        if let Some(end) = end {
            let at = fs::read_to_string(progress).unwrap_or_default();
            gathered
                .lock()
                .expect("gathering does not panic")
                .faults
                .push(format!("{}: {end}", at.trim_end()));
        }
    });
}

/// Waits for the end. Returns the reason if the worker failed.
fn wait(child: &mut Child, progress: &Path) -> Option<String> {
    let (mut last, mut since) = (String::new(), Instant::now());
    loop {
        thread::sleep(Duration::from_millis(50));
        match child.try_wait() {
            Ok(Some(status)) => {
                return (!status.success()).then(|| format!("the process ended with {status}"));
            }
            Ok(None) => {}
            Err(error) => return Some(error.to_string()),
        }
        let now = fs::read_to_string(progress).unwrap_or_default();
        if now != last {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() > HANG && !last.is_empty() {
            let _ = child.kill();
            let _ = child.wait();
            return Some(format!("no end after {} s", HANG.as_secs()));
        }
    }
}

fn gather(said: impl BufRead, gathered: &Mutex<Gathered>) {
    let mut shown = 0;
    for line in said.lines().map_while(Result::ok) {
        let mut gathered = gathered.lock().expect("gathering does not panic");
        match line.split_once('\t') {
            Some(("fault", what)) => {
                shown += 1;
                if shown <= SHOWN {
                    gathered.faults.push(what.to_owned());
                }
            }
            Some(("process", kilobytes)) => {
                gathered.process = gathered.process.max(kilobytes.parse().unwrap_or(0))
            }
            Some(("figures", rest)) => {
                if let Some((family, figures)) = rest.split_once('\t')
                    && let Some(figures) = Figures::of_line(figures)
                {
                    gathered
                        .figures
                        .entry(family.to_owned())
                        .or_default()
                        .add(figures);
                }
            }
            _ => gathered.faults.push(format!("a worker said {line:?}")),
        }
    }
}
