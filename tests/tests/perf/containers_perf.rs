//! Programs in containers that still run: their files and perf maps are in another mount namespace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use perfdata_tests::convert::in_shell;
use perfdata_tests::perf::Output;
use perfdata_tests::skipped;

/// It also runs generated code, and lists it in the perf map of its own process ID.
const PROGRAM: &str = "
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) unsigned work_inside(unsigned x) { for (int i = 0; i < 100000; i++) x = x * 5 + 1; return x; }
__attribute__((noinline)) unsigned work_outside(unsigned x) { for (int i = 0; i < 40; i++) x += work_inside(x); return x; }
int main(void) {
    volatile unsigned x = 1;
    char name[64];
    /* mov $1000000, %ecx; 1: dec %ecx; jnz 1b; ret */
    const unsigned char code[] = {0xb9, 0x40, 0x42, 0x0f, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
    void *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(at, code, sizeof(code));
    sprintf(name, \"/tmp/perf-%d.map\", getpid());
    FILE *map = fopen(name, \"w\");
    fprintf(map, \"%lx %x generated_function\\n\", (unsigned long)at, (unsigned)sizeof(code));
    fclose(map);
    /* The first process of a namespace ignores alarms. */
    for (time_t end = time(0) + 100; time(0) < end;) { x += work_outside(x); ((void (*)(void))at)(); }
}
";

/// A container: a process with its own files, `/tmp` and process IDs.
struct Container {
    outside: Child,
    /// The process ID of the program.
    pid: u32,
}

impl Container {
    /// Starts `program` there as `/mnt/inside`; `None` if that is not possible.
    fn start(program: &Path) -> Option<Self> {
        let commands = format!(
            "mount -t tmpfs none /mnt && cp {} /mnt/inside && mount -t tmpfs none /tmp && exec /mnt/inside",
            program.display()
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c"]);
        command.arg(commands).stdin(Stdio::null());
        let outside = command.stderr(Stdio::null()).spawn().ok()?;
        let children = PathBuf::from(format!("/proc/{0}/task/{0}/children", outside.id()));
        let mut container = Container { outside, pid: 0 };
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20)
            && container.outside.try_wait().ok()?.is_none()
        {
            let children = fs::read_to_string(&children).unwrap_or_default();
            if let Some(pid) = children
                .split_whitespace()
                .next()
                .and_then(|pid| pid.parse().ok())
                && fs::read_to_string(format!("/proc/{pid}/comm"))
                    .is_ok_and(|comm| comm == "inside\n")
            {
                // It has written its list.
                thread::sleep(Duration::from_millis(200));
                container.pid = pid;
                return Some(container);
            }
            thread::sleep(Duration::from_millis(20));
        }
        None
    }
}

impl Drop for Container {
    /// Ends unshare, and with it the program.
    fn drop(&mut self) {
        let _ = self.outside.kill();
        let _ = self.outside.wait();
    }
}

fn run(folder: &Path, commands: &str) -> Output {
    let output = in_shell(folder, commands);
    assert!(output.success(), "{commands}: {}", output.stderr);
    output
}

#[test]
fn programs_in_containers_have_names_while_they_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    if !cfg!(target_arch = "x86_64") {
        return skipped::note("x86_64, for which the test generates code");
    }
    fs::write(folder.join("program.c"), PROGRAM).expect("a file");
    let build = "cc -O1 -g -fno-omit-frame-pointer -Wl,--build-id -o program program.c";
    if !in_shell(folder, build).success() {
        return skipped::note("cc");
    }
    let Some(container) = Container::start(&folder.join("program")) else {
        return skipped::note("the permission to make namespaces");
    };
    let kinds = [
        ("frames", "-g"),
        ("stacks", "--call-graph dwarf,4096"),
        ("none", "-g -B"),
    ];
    for (name, words) in kinds {
        let pid = container.pid;
        let record = format!(
            "perf record -q -N -e cpu-clock:u {words} -p {pid} -o {name}.data -- sleep 0.3"
        );
        if !in_shell(folder, &record).success() {
            return skipped::note("perf, and the permission to record");
        }
    }
    let folded = |input: &str| {
        let export = format!("perfconv export {input} --to folded -o folded --force");
        run(folder, &export);
        fs::read_to_string(folder.join("folded")).expect("a file")
    };
    let running = kinds.map(|(name, _)| {
        run(
            folder,
            &format!("perfconv bundle {name}.data -o {name}.bundle"),
        );
        folded(&format!("{name}.data"))
    });
    let list = "perfconv inject -b -i none.data -o with.data && perf buildid-list -i with.data";
    let known = run(folder, list).stdout;
    let own = run(folder, "readelf -n program").stdout;
    let notes = own.split_once("Build ID: ").expect("a build ID").1;
    let id = notes.lines().next().expect("a line");
    assert!(known.contains(&format!("{id} /mnt/inside")), "{known}");
    let process = PathBuf::from(format!("/proc/{}", container.pid));
    drop(container);
    let start = Instant::now();
    while process.exists() {
        assert!(start.elapsed() < Duration::from_secs(20), "it runs on");
        thread::sleep(Duration::from_millis(20));
    }
    for ((name, _), running) in kinds.iter().zip(&running) {
        // Only unwound stacks contain the caller of a function without a frame pointer.
        let callers = if *name == "stacks" {
            "main;work_outside;"
        } else {
            "main;"
        };
        for functions in [&format!("{callers}work_inside "), "generated_function "] {
            assert!(
                running.contains(functions),
                "{name}: {functions}: {running}"
            );
        }
        assert_eq!(folded(&format!("{name}.bundle")), *running, "{name}");
        let ended = folded(&format!("{name}.data"));
        assert!(!ended.contains("work_inside"), "{name}: {ended}");
    }
}
