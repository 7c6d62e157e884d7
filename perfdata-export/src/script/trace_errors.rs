//! Errors in the decoding of traces (tools/perf/util/auxtrace.c, `perf_event__fprintf_auxtrace_error`,
//! 7.2).

use perfdata_core::record::{AuxtraceError, AuxtraceErrorDetail, AuxtraceErrorType};

/// Appends the line of an error.
pub(super) fn push_trace_error(out: &mut Vec<u8>, error: &AuxtraceError) {
    let (time, message, guest): (u64, &[u8], _) = match &error.detail {
        AuxtraceErrorDetail::Message(message) => (0, message.text(), None),
        AuxtraceErrorDetail::Timed(timed) => (timed.time, timed.msg.text(), None),
        AuxtraceErrorDetail::Guest(guest) => (
            guest.time,
            guest.msg.text(),
            (guest.machine_pid != 0).then_some((guest.machine_pid, guest.vcpu)),
        ),
        _ => (0, b"", None),
    };
    let name = match error.kind {
        AuxtraceErrorType::ITRACE => "instruction trace",
        _ => "unknown AUX",
    };
    let kind = error.kind.0;
    let time = match time {
        0 => "0".to_owned(),
        _ => format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000),
    };
    let guest = guest.map_or_else(String::new, |(pid, vcpu)| {
        format!(
            " machine_pid {} vcpu {}",
            pid.cast_signed(),
            vcpu.cast_signed()
        )
    });
    let [cpu, pid, tid] = [error.cpu, error.pid, error.tid].map(u32::cast_signed);
    let ip = match error.ip {
        0 => "0".to_owned(),
        ip => format!("{ip:#x}"),
    };
    let code = error.code;
    let line = format!(
        " {name} error type {kind} time {time}{guest} cpu {cpu} pid {pid} tid {tid} ip {ip} code {code}: "
    );
    out.extend_from_slice(line.as_bytes());
    out.extend_from_slice(message);
    out.push(b'\n');
}
