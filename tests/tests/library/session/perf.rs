//! What perf printed for each recording when it was made, on a machine of its byte order.

use std::collections::BTreeMap;
use std::sync::Mutex;

use perfdata_tests::recordings::{self, Recording};
use perfdata_tests::script::{self, Line, Seen};

/// Number of occurrences of perf's choices, by reason.
static CHOICES: Mutex<BTreeMap<&str, usize>> = Mutex::new(BTreeMap::new());

fn met(choice: &'static str) {
    *CHOICES
        .lock()
        .expect("it does not panic")
        .entry(choice)
        .or_default() += 1;
}

/// Checks that every sample that perf printed has the same thread, time, name and addresses here.
fn check(recording: &Recording) -> Result<(), String> {
    let Some(text) = recording.script_text() else {
        return Ok(());
    };
    let expected = script::lines(&String::from_utf8_lossy(&text));
    if expected.is_empty() {
        return Ok(());
    }
    let (seen, result) = script::resolved(&recording.path);
    if let Err(error) = result
        && !recording.name.ends_with("-pipe-cut")
    {
        return Err(error);
    }
    let mut seen = script::by_time(seen, |(line, _)| (line.time, line.tid));
    let mut wrong = Vec::new();
    for line in &expected {
        let found = match seen.get_mut(&(line.time, line.tid)) {
            Some(found) if !found.is_empty() => found,
            // The first line of such a sample was compared before.
            Some(_) if recording.name.contains("-group-S") => {
                met("perf makes a sample of each counter that a sample reads");
                continue;
            }
            _ => {
                wrong.push(format!("no such sample: {line:?}"));
                continue;
            }
        };
        let at = found
            .iter()
            .position(|(ours, frames)| why_not(line, ours, frames).is_none());
        let (ours, frames) = found.remove(at.unwrap_or(0));
        let Some(why) = why_not(line, &ours, &frames) else {
            continue;
        };
        match choice(line, &ours, &frames, recording) {
            Some(choice) => met(choice),
            None => wrong.push(format!("{why}\n  {line:x?}\n  {ours:?}\n  {frames:x?}")),
        }
    }
    let left: usize = seen.values().map(Vec::len).sum();
    if left > 0 {
        wrong.push(format!("{left} samples are not in perf's text"));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let count = wrong.len();
    wrong.truncate(2);
    Err(format!(
        "{count} of {}:\n{}",
        expected.len(),
        wrong.join("\n")
    ))
}

/// Returns which field is different.
fn why_not(line: &Line, ours: &Line, frames: &[Seen]) -> Option<&'static str> {
    // perf 6.1 prints the offset in the file for user frames in callchains.
    let same =
        |(line, seen): (&(u64, _), &Seen)| line.0 == seen.address || Some(line.0) == seen.offset;
    if line.comm != ours.comm {
        Some("name")
    } else if line.pid.is_some() && line.pid != ours.pid
        || line.cpu.is_some() && line.cpu != ours.cpu
    {
        Some("process or CPU")
    } else if !line.frames.is_empty()
        && (line.frames.len() != frames.len() || !line.frames.iter().zip(frames).all(same))
    {
        Some("frames")
    } else {
        None
    }
}

/// Returns the choice of perf that causes the difference.
fn choice(
    line: &Line,
    ours: &Line,
    frames: &[Seen],
    recording: &Recording,
) -> Option<&'static str> {
    let same =
        |(line, seen): (&(u64, _), &Seen)| line.0 == seen.address || Some(line.0) == seen.offset;
    if line.comm == format!(":{}", line.tid) {
        return Some("perf forgets the name of a thread that has ended");
    }
    let others = || line.frames.iter().zip(frames).filter(|pair| !same(*pair));
    if line.frames.len() == frames.len() && others().all(|(_, seen)| seen.before_exec.is_some()) {
        return Some("perf keeps what was mapped before exec");
    }
    if ours.comm.contains('\n') {
        return Some("a name of two lines");
    }
    if recording.name.contains("-defer") && line.comm != ours.comm {
        return Some("perf names threads at the time when a callchain comes later");
    }
    if ours.rest == script::USER_STACK
        && line.frames.len() >= frames.len()
        && line.frames.iter().zip(frames).all(same)
    {
        return Some("perf unwinds a copy of the user stack");
    }
    None
}

#[test]
fn perf_said_the_same() {
    recordings::check_all(&recordings::fixtures(), check);
    recordings::check_all(&recordings::shared(), check);
    eprintln!("{:#?}", CHOICES.lock().expect("it does not panic"));
}
