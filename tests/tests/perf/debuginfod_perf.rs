//! Names and lines from elfutils' debuginfod server.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use perfdata_tests::convert::in_shell;
use perfdata_tests::perf::Output;
use perfdata_tests::skipped;

use super::bundle_perf;

/// The time within which the server finds the files.
const PATIENCE: Duration = Duration::from_secs(60);

fn run(folder: &Path, commands: &str) -> Output {
    let settings = "export DEBUGINFOD_CACHE_PATH=$PWD/cache; unset DEBUGINFOD_URLS http_proxy; ";
    let output = in_shell(folder, &format!("{settings}{commands}"));
    assert!(output.success(), "{commands}: {}", output.stderr);
    output
}

/// Writes `in.data`, a recording of a program in the folder. Returns whether that is possible.
fn record(folder: &Path) -> bool {
    if !in_shell(folder, "objcopy --version").success() {
        skipped::note("binutils");
        return false;
    }
    bundle_perf::record(folder)
}

/// A server that runs as long as this value.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts a server of the files in `served`; `None` if there is no program for it.
    fn start(folder: &Path) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = port.local_addr().expect("an address").port();
        let mut command = Command::new("debuginfod");
        command
            .args(["-d", ":memory:", "-t", "0", "-g", "0", "-F", "-p"])
            .arg(port.to_string())
            .arg(folder.join("served"))
            .env("DEBUGINFOD_CACHE_PATH", folder.join("server-cache"))
            .env_remove("DEBUGINFOD_URLS")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match command.spawn() {
            Ok(process) => Some(Server { process, port }),
            Err(_) => {
                skipped::note("debuginfod");
                None
            }
        }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the status line of an answer.
    fn status(&self, path: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )?;
        let mut start = [0; 12];
        stream.read_exact(&mut start)?;
        Ok(String::from_utf8_lossy(&start).into_owned())
    }

    /// Waits until the server has a file.
    fn wait_for(&self, path: &str) {
        let start = Instant::now();
        while !self
            .status(path)
            .is_ok_and(|status| status.ends_with("200"))
        {
            assert!(
                start.elapsed() < PATIENCE,
                "the server does not serve {path}"
            );
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn build_id(folder: &Path) -> String {
    let list = run(folder, "perf buildid-list -i in.data").stdout;
    let line = list.lines().find(|line| line.ends_with("/program"));
    let id = line.and_then(|line| line.split(' ').next());
    id.expect("the program").to_owned()
}

/// Returns the exports of `in.data`.
fn texts(folder: &Path, option: &str) -> [String; 3] {
    let forms = [
        "--to folded",
        "--to perf-script -F +srcline",
        "--to folded --inlines",
    ];
    forms.map(|form| {
        run(
            folder,
            &format!("perfconv export in.data {form} {option} -o -"),
        )
        .stdout
    })
}

/// A stripped program is here, and only the server has its debug file; then the server has both.
#[test]
fn names_and_lines_are_those_of_local_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    if !record(folder) {
        return;
    }
    let id = build_id(folder);
    let expected = texts(folder, "");
    assert!(expected[0].contains("work_inside"), "{}", expected[0]);
    assert!(expected[1].contains("program.c:2"), "{}", expected[1]);

    run(
        folder,
        "mkdir served && objcopy --only-keep-debug program served/program.debug && strip program",
    );
    assert!(!texts(folder, "")[0].contains("work_inside"));
    let Some(server) = Server::start(folder) else {
        return;
    };
    let debuginfo = format!("/buildid/{id}/debuginfo");
    server.wait_for(&debuginfo);
    let option = format!("--debuginfod={}", server.url());
    assert_eq!(texts(folder, &option), expected);
    // The file in the cache is that of elfutils' client.
    let find = format!(
        "DEBUGINFOD_URLS=http://127.0.0.1:1 debuginfod-find debuginfo {id} && cmp cache/{id}/debuginfo served/program.debug"
    );
    if in_shell(folder, "command -v debuginfod-find").success() {
        run(folder, &find);
    }
    // Without the server, the cache is enough.
    drop(server);
    assert_eq!(texts(folder, ""), expected);

    // Neither file is here.
    run(folder, "rm -rf cache && mv program served/");
    assert!(!texts(folder, "")[0].contains("work_inside"));
    let server = Server::start(folder).expect("it was started before");
    server.wait_for(&debuginfo);
    server.wait_for(&format!("/buildid/{id}/executable"));
    let option = format!("--debuginfod={}", server.url());
    assert_eq!(texts(folder, &option), expected);
}
