//! perfconv in the middle of a stream on its standard input, whose rest is delayed.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command, ExitStatus, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use perfdata_tests::skipped;
use rustix::io::ioctl_fionread;

/// Maximum time of a run that must end by itself, even on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(300);

/// Longer than the interval between signals that are sent for the same reason.
const APART: Duration = Duration::from_millis(400);

/// A command that waits for the rest of a stream.
pub struct Stalled {
    pub child: Child,
    input: Option<File>,
    rest: Vec<u8>,
}

impl Stalled {
    /// Starts `command`, whose input is `-`, and writes the first half of `stream` to it.
    pub fn new(command: Command, stream: &[u8]) -> Self {
        Self::behind(command, stream, stream.len() / 2)
    }

    /// Does the same with the first `len` bytes.
    pub fn behind(mut command: Command, stream: &[u8], len: usize) -> Self {
        let (read, write) = io::pipe().expect("a pipe");
        command
            .stdin(read)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        // The command holds its end of the pipe open.
        drop(command);
        let mut input = File::from(OwnedFd::from(write));
        input.write_all(&stream[..len]).expect("perfconv reads");
        let start = Instant::now();
        while ioctl_fionread(&input).expect("a pipe") > 0 {
            assert!(start.elapsed() < TIMEOUT, "perfconv does not read");
            thread::sleep(Duration::from_millis(1));
        }
        Stalled {
            child,
            input: Some(input),
            rest: stream[len..].to_vec(),
        }
    }

    /// Sends the command a signal, by name or number.
    pub fn send(&self, signal: &str) {
        let sent = Command::new("kill")
            .arg(format!("-{signal}"))
            .arg(self.child.id().to_string())
            .status();
        assert!(
            sent.is_ok_and(|status| status.success()),
            "kill -{signal} fails"
        );
    }

    /// Returns whether the command still waits after a short time.
    pub fn waits(&mut self) -> bool {
        thread::sleep(Duration::from_millis(100));
        self.child.try_wait().expect("it is a child").is_none()
    }

    /// Writes the rest, and returns the output.
    pub fn finish(mut self) -> Output {
        let mut input = self.input.take().expect("it is open");
        // A command that refuses the stream stops reading it.
        let _ = input.write_all(&self.rest);
        drop(input);
        self.child.wait_with_output().expect("it is a child")
    }

    /// Sends the command a signal until it ends without the rest. The second one ends it, except if
    /// the machine is so busy that the command sees two as one.
    pub fn insist(mut self, signal: &str, what: &str) -> ExitStatus {
        let start = Instant::now();
        while start.elapsed() < TIMEOUT {
            thread::sleep(APART);
            if let Some(status) = self.child.try_wait().expect("it is a child") {
                return status;
            }
            self.send(signal);
        }
        end(&mut self.child, what)
    }

    /// Returns how the command ends without the rest.
    pub fn end(mut self, what: &str) -> ExitStatus {
        end(&mut self.child, what)
    }
}

/// Returns whether a child receives signals. The children of a process that ignores signals, as
/// with `nohup` and a shell's `&`, ignore them, too.
pub fn signals_arrive() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    // HUP, INT, QUIT and TERM by their numbers. Rust ignores PIPE, but not in its children.
    let is_ignored = [1, 2, 3, 15]
        .iter()
        .any(|signal| ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1));
    if is_ignored {
        skipped::note("signals: these tests were started by what ignores them, such as nohup");
    }
    !is_ignored
}

/// Waits for a child that must end by itself.
pub fn end(child: &mut Child, what: &str) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            return status;
        }
        if start.elapsed() > TIMEOUT {
            let _ = child.kill();
            panic!("{what}: no end after {TIMEOUT:?}");
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let names = entries.map(|entry| {
        entry
            .expect("it can be read")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Returns the standard error output of a command.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
