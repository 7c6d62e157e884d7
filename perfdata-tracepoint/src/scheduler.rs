//! The text of two events of the scheduler that libtraceevent's plugin `sched_switch` prints.

use crate::format::Format;

/// The letters of the bits of `prev_state`, from the lowest one.
const STATES: &[u8] = b"SDTtZXxW";

/// Appends the text of raw data as the plugin prints it. Returns false if it does not print this
/// event.
pub fn print(format: &Format, raw: &[u8], out: &mut Vec<u8>) -> bool {
    if format.system() != b"sched" {
        return false;
    }
    let complete = match format.name() {
        b"sched_switch" => switch(format, raw, out),
        b"sched_wakeup" | b"sched_wakeup_new" => wakeup(format, raw, out),
        _ => return false,
    };
    if complete.is_none() {
        out.push(b'!');
    }
    true
}

fn number(format: &Format, name: &[u8], raw: &[u8]) -> Option<u64> {
    format.field(name)?.number(raw)
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends `COMM:PID`. Returns `None` if there is no process ID.
fn task(format: &Format, [comm, pid]: [&[u8]; 2], raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let pid = number(format, pid, raw)?;
    if let Some(comm) = format.field(comm).and_then(|field| field.string(raw)) {
        out.extend_from_slice(comm);
        out.push(b':');
    }
    put(out, &pid.cast_signed().to_string());
    Some(())
}

/// `COMM:PID [PRIO] STATE ==> COMM:PID [PRIO]`.
fn switch(format: &Format, raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let priority = |name: &[u8]| {
        let priority = number(format, name, raw)?;
        Some(priority.cast_signed() as i32)
    };
    task(format, [b"prev_comm", b"prev_pid"], raw, out)?;
    out.push(b' ');
    if let Some(priority) = priority(b"prev_prio") {
        put(out, &format!("[{priority}] "));
    }
    if let Some(state) = number(format, b"prev_state", raw) {
        let is_set = |bit| state.checked_shr(bit).unwrap_or(0) & 1 == 1;
        let set = (0_u32..).zip(STATES).filter(|&(bit, _)| is_set(bit));
        let letters: Vec<&[u8]> = set
            .map(|(_, letter)| std::slice::from_ref(letter))
            .collect();
        match letters.is_empty() {
            true => out.push(b'R'),
            false => out.extend(letters.join(&b'|')),
        }
    }
    put(out, " ==> ");
    task(format, [b"next_comm", b"next_pid"], raw, out)?;
    if let Some(priority) = priority(b"next_prio") {
        put(out, &format!(" [{priority}]"));
    }
    Some(())
}

/// `COMM:PID [PRIO] success=N CPU:NNN`, without what the format does not have.
fn wakeup(format: &Format, raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
    task(format, [b"comm", b"pid"], raw, out)?;
    if let Some(priority) = number(format, b"prio", raw) {
        put(out, &format!(" [{}]", priority.cast_signed()));
    }
    if let Some(success) = number(format, b"success", raw) {
        put(out, &format!(" success={}", success.cast_signed()));
    }
    if let Some(cpu) = number(format, b"target_cpu", raw) {
        put(out, &format!(" CPU:{cpu:03}"));
    }
    Some(())
}
