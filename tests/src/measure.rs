//! Measurement of a program's memory and time.

use std::{
    fs,
    process::{Command, ExitStatus},
    thread,
    time::Duration,
};

/// Ticks per second: Linux reports this value to all programs, regardless of its internal clock.
const TICKS: u64 = 100;

/// Returns user and system time in a line of `/proc/PID/stat`. The program's name is in
/// parentheses, and may contain parentheses.
fn ticks_in(stat: &str) -> Option<u64> {
    let mut words = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(words.next()?.parse::<u64>().ok()? + words.next()?.parse::<u64>().ok()?)
}

/// Runs a command. Returns its peak memory in kilobytes and its CPU time.
pub fn peak(mut command: Command) -> (ExitStatus, u64, Duration) {
    let mut child = command.spawn().expect("the program runs");
    // The command keeps its input open until it is dropped.
    drop(command);
    let status = format!("/proc/{}/status", child.id());
    let stat = format!("/proc/{}/stat", child.id());
    let (mut peak, mut ticks) = (0, 0);
    loop {
        // The kernel keeps the maximum, so the last sample covers the whole time before. The first
        // sample may be too early, and show the memory of this process, which starts the program.
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        peak = now.unwrap_or(peak);
        ticks = ticks.max(ticks_in(&fs::read_to_string(&stat).unwrap_or_default()).unwrap_or(0));
        if let Some(status) = child.try_wait().expect("it is a child") {
            return (status, peak, Duration::from_millis(ticks * 1000 / TICKS));
        }
        thread::sleep(Duration::from_millis(1));
    }
}
