//! What a program takes: memory and time.

use std::{
    fs,
    process::{Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

/// Runs a command; the most memory that it had, in kilobytes, and how long it ran.
pub fn peak(mut command: Command) -> (ExitStatus, u64, Duration) {
    let start = Instant::now();
    let mut child = command.spawn().expect("the program runs");
    // The command holds its input open until then.
    drop(command);
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        // The system keeps the maximum: that of the last look is the one of the whole time before.
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        peak = now.unwrap_or(0).max(peak);
        if let Some(status) = child.try_wait().expect("it is a child") {
            return (status, peak, start.elapsed());
        }
        thread::sleep(Duration::from_millis(1));
    }
}
