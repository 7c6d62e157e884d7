//! Objects from debuginfod servers, also from hostile ones.

use std::fs;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use perfdata_tests::convert::in_shell;
use perfdata_tests::debuginfod_server::{DebuginfodServer, ServedRequest, respond};
use perfdata_tests::recordings::fixtures_dir;
use perfdata_tests::synth::object::named_object;

/// The build ID of the program in the recording.
const PROGRAM: &str = "8ae3b650a3359c4186e60bb03362d03dcd558a21";

/// The name of its function, which is made up.
const FUNCTION: &str = "fetched_function";

/// Seconds without progress.
const TIMEOUT: u64 = 1;

/// Maximum size of a file.
const MOST: usize = 1 << 20;

fn bytes_of(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(&String::from_utf8_lossy(pair), 16).expect("digits"))
        .collect()
}

fn program() -> Vec<u8> {
    named_object(&bytes_of(PROGRAM), FUNCTION)
}

/// What an export did.
struct Exported {
    folded: String,
    messages: String,
    took: Duration,
    folder: tempfile::TempDir,
}

impl Exported {
    /// Returns the files of the program in the cache, each with its size.
    fn cached(&self) -> Vec<(String, u64)> {
        let folder = self.folder.path().join("cache").join(PROGRAM);
        let Ok(entries) = fs::read_dir(folder) else {
            return Vec::new();
        };
        let entries = entries.map(|entry| {
            let entry = entry.expect("an entry");
            let size = entry.metadata().expect("a file").len();
            (entry.file_name().to_string_lossy().into_owned(), size)
        });
        let mut files: Vec<(String, u64)> = entries.collect();
        files.sort();
        files
    }

    fn recording(&self) -> PathBuf {
        self.folder.path().join("in.data")
    }
}

/// Runs commands in a folder with an empty or used cache.
fn run(folder: &Path, commands: &str) -> (String, String) {
    let cache = folder.join("cache");
    let settings = format!(
        "export DEBUGINFOD_CACHE_PATH={} DEBUGINFOD_TIMEOUT={TIMEOUT} DEBUGINFOD_MAXSIZE={MOST}; \
         unset DEBUGINFOD_URLS http_proxy HTTP_PROXY all_proxy ALL_PROXY; ",
        cache.display()
    );
    let done = in_shell(folder, &(settings + commands));
    assert!(done.success(), "{commands}: {}", done.stderr);
    (done.stdout, done.stderr)
}

/// Exports a recording, with files of these servers.
fn export(servers: &[&str]) -> Exported {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = fixtures_dir().join("6.1-x86_64-file-g.data");
    fs::copy(recording, folder.path().join("in.data")).expect("a copy");
    let option = match servers.is_empty() {
        true => String::new(),
        false => format!("'--debuginfod={}'", servers.join(" ")),
    };
    let start = Instant::now();
    let command = format!("perfconv export -v in.data --to folded {option} -o -");
    let (folded, messages) = run(folder.path(), &command);
    Exported {
        folded,
        messages,
        took: start.elapsed(),
        folder,
    }
}

/// Starts a server that answers requests for files of the program with `answer`, and has no others.
fn server(
    answer: impl Fn(&ServedRequest, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> DebuginfodServer {
    DebuginfodServer::start(move |request, out| {
        match request.path.contains(PROGRAM) || !request.path.starts_with("/buildid/") {
            true => answer(request, out),
            false => respond(out, "404 Not Found", "", b"not found"),
        }
    })
}

/// Checks that a server fails for the reason `why`, but that everything else is exported, and that nothing
/// of it is stored.
fn fails(
    why: &str,
    answer: impl Fn(&ServedRequest, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> (DebuginfodServer, Exported) {
    let server = server(answer);
    let exported = export(&[&server.url]);
    let note = format!("perf-workload: not fetched from debuginfod: {why}");
    let Exported {
        messages, folded, ..
    } = &exported;
    assert!(messages.contains(&note), "{why}: {messages}");
    assert!(messages.contains(" failed"), "{messages}");
    assert!(
        messages.contains("perf-workload: 12 addresses without a name"),
        "{messages}"
    );
    assert_eq!(*folded, export(&[]).folded);
    assert_eq!(exported.cached(), []);
    (server, exported)
}

#[test]
fn names_come_from_the_server() {
    let server = server(|_, out| respond(out, "200 OK", "", &program()));
    let exported = export(&[&server.url]);
    let Exported {
        folded, messages, ..
    } = &exported;
    assert!(folded.contains(FUNCTION), "{folded}\n{messages}");
    assert!(
        messages.contains("debuginfod: 1 file fetched ("),
        "{messages}"
    );
    // The object has symbols: no debug file is needed.
    let size = program().len() as u64;
    assert_eq!(exported.cached(), [("executable".to_owned(), size)]);
    let requests = server.requests();
    let of_program = |request: &&ServedRequest| request.path.contains(PROGRAM);
    assert_eq!(requests.iter().filter(of_program).count(), 1);

    // What no server has is not asked for again, and nothing is fetched twice.
    let again = format!(
        "perfconv export in.data --to folded --debuginfod={} -o -",
        server.url
    );
    let (second, _) = run(exported.folder.path(), &again);
    assert_eq!(second, *folded);
    assert_eq!(server.requests().len(), requests.len());
    // Without the option, the cache is searched.
    let (third, said) = run(
        exported.folder.path(),
        "perfconv export in.data --to folded -o -",
    );
    assert_eq!(third, *folded);
    assert!(!said.contains("debuginfod: "), "{said}");
    assert_eq!(server.requests().len(), requests.len());
}

#[test]
fn a_bundle_contains_what_was_fetched() {
    let server = server(|_, out| respond(out, "200 OK", "", &program()));
    let folder = tempfile::tempdir().expect("a folder");
    let recording = fixtures_dir().join("6.1-x86_64-file-g.data");
    fs::copy(recording, folder.path().join("in.data")).expect("a copy");
    let commands = format!(
        "perfconv bundle in.data --debuginfod={} -o in.bundle && rm -r cache && \
         perfconv export in.bundle --to folded -o -",
        server.url
    );
    let (folded, _) = run(folder.path(), &commands);
    assert!(folded.contains(FUNCTION), "{folded}");
}

#[test]
fn a_stream_fetches_what_is_hit() {
    let server = server(|_, out| respond(out, "200 OK", "", &program()));
    let commands = format!(
        "perfconv file2pipe in.data -o - | perfconv export - --to folded --debuginfod={} -o -",
        server.url
    );
    let folded = run(export(&[]).folder.path(), &commands).0;
    assert!(folded.contains(FUNCTION), "{folded}");
}

#[test]
fn without_the_option_nothing_is_asked() {
    let server = server(|_, out| respond(out, "200 OK", "", &program()));
    let exported = export(&[]);
    let commands = format!(
        "DEBUGINFOD_URLS={} perfconv export in.data --to folded -o - && \
         ! perfconv export in.data --to folded --debuginfod -o -",
        server.url
    );
    let (folded, said) = run(exported.folder.path(), &commands);
    assert_eq!(folded, exported.folded);
    assert!(said.contains("set DEBUGINFOD_URLS"), "{said}");
    assert_eq!(server.requests(), []);
    let commands = format!(
        "DEBUGINFOD_URLS='ima:ignore {}' perfconv export in.data --to folded --debuginfod -o -",
        server.url
    );
    assert!(run(exported.folder.path(), &commands).0.contains(FUNCTION));
    assert!(exported.recording().is_file());
}

/// Answers with the whole file or the rest of it, but breaks off after `most` bytes.
fn in_parts(request: &ServedRequest, out: &mut TcpStream, most: usize) -> io::Result<()> {
    let whole = program();
    let tag = "ETag: \"one\"\r\n";
    let range = request.headers.get("range").and_then(|range| {
        let first = range.strip_prefix("bytes=")?.strip_suffix('-')?;
        first.parse::<usize>().ok()
    });
    let start = range.unwrap_or(0);
    let part = &whole[start..whole.len().min(start + most)];
    let (status, of) = match range {
        Some(first) => (
            "206 Partial Content",
            format!(
                "Content-Range: bytes {first}-{}/{}\r\n",
                whole.len() - 1,
                whole.len()
            ),
        ),
        None => ("200 OK", String::new()),
    };
    let size = whole.len() - start;
    respond(
        out,
        status,
        &format!("{tag}{of}Content-Length: {size}\r\n"),
        part,
    )
}

#[test]
fn an_interrupted_transfer_is_continued() {
    let server = server(|request, out| in_parts(request, out, 100_000));
    let exported = export(&[&server.url]);
    assert!(exported.folded.contains(FUNCTION), "{}", exported.messages);
    let size = program().len() as u64;
    assert_eq!(exported.cached(), [("executable".to_owned(), size)]);
    let requests = server.requests();
    let ranges: Vec<Option<&str>> = requests
        .iter()
        .filter(|request| request.path.contains(PROGRAM))
        .map(|request| request.headers.get("range").map(String::as_str))
        .collect();
    assert_eq!(ranges, [None, Some("bytes=100000-"), Some("bytes=200000-")]);
    let conditions = requests
        .iter()
        .filter_map(|request| request.headers.get("if-range"));
    assert!(conditions.eq(["\"one\"", "\"one\""]));
}

/// Without an ETag, the file is requested from its start once more.
#[test]
fn an_interrupted_transfer_is_repeated() {
    let server = server(|request, out| match request.number {
        0 => {
            let size = format!("Content-Length: {}\r\n", program().len());
            respond(out, "200 OK", &size, &program()[..5000])
        }
        _ => respond(out, "200 OK", "", &program()),
    });
    let exported = export(&[&server.url]);
    assert!(exported.folded.contains(FUNCTION), "{}", exported.messages);
}

#[test]
fn a_transfer_that_always_breaks_off_fails() {
    let (server, _) = fails("the transfer ended before it was complete", |_, out| {
        respond(
            out,
            "200 OK",
            "Content-Length: 300000\r\n",
            &program()[..5000],
        )
    });
    // Each of the two files twice.
    let requests = server.requests();
    let of_program = |request: &&ServedRequest| request.path.contains(PROGRAM);
    assert_eq!(requests.iter().filter(of_program).count(), 4);
    fails(
        "the transfer ended before it was complete",
        |request, out| in_parts(request, out, 10),
    );
    // The rest is that of another place.
    fails("the answer is not valid", |request, out| {
        match request.number {
            0 => in_parts(request, out, 1000),
            _ => respond(
                out,
                "206 Partial Content",
                "Content-Range: bytes 0-9/10\r\n",
                b"0123456789",
            ),
        }
    });
}

#[test]
fn a_false_size_fails() {
    fails("the file is not an ELF file", |_, out| {
        respond(out, "200 OK", "Content-Length: 5000\r\n", &program())
    });
    fails("the transfer ended before it was complete", |_, out| {
        respond(out, "200 OK", "X-DEBUGINFOD-SIZE: 5\r\n", &program())
    });
    fails("it has more than 1048576 bytes", |_, out| {
        respond(out, "200 OK", "Content-Length: 99999999999\r\n", &program())
    });
    fails("it has more than 1048576 bytes", |_, out| {
        write!(out, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        loop {
            write!(out, "10000\r\n")?;
            out.write_all(&[0; 0x10000])?;
            write!(out, "\r\n")?;
        }
    });
}

#[test]
fn another_build_id_fails() {
    let other = "00112233445566778899aabbccddeeff00112233";
    let why = format!("the file has the build ID {other}");
    fails(&why, move |_, out| {
        respond(out, "200 OK", "", &named_object(&bytes_of(other), FUNCTION))
    });
    fails("the file is not an ELF file", |_, out| {
        respond(out, "200 OK", "", b"<html>Sign in</html>")
    });
}

#[test]
fn compressed_answers_are_limited() {
    let packed = |content: &[u8]| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(content).expect("memory");
        packed.finish().expect("memory")
    };
    let whole = packed(&program());
    let server = server(move |_, out| respond(out, "200 OK", "Content-Encoding: gzip\r\n", &whole));
    let exported = export(&[&server.url]);
    assert!(exported.folded.contains(FUNCTION), "{}", exported.messages);
    let size = program().len() as u64;
    assert_eq!(exported.cached(), [("executable".to_owned(), size)]);

    let bomb = packed(&vec![0; 64 << 20]);
    assert!(bomb.len() < MOST);
    fails("it has more than 1048576 bytes", move |_, out| {
        respond(out, "200 OK", "Content-Encoding: gzip\r\n", &bomb)
    });
    let cut = packed(&program());
    fails("the answer is not valid", move |_, out| {
        respond(out, "200 OK", "Content-Encoding: gzip\r\n", &cut[..9000])
    });
    fails(
        "the answer is not valid: it has the encoding br",
        |_, out| respond(out, "200 OK", "Content-Encoding: br\r\n", b"..."),
    );
}

#[test]
fn errors_of_the_server_fail() {
    fails("the server reports HTTP status 500", |_, out| {
        respond(out, "500 Internal Server Error", "", b"")
    });
    fails("the server redirects too often", |request, out| {
        let to = format!("Location: {}\r\n", request.path);
        respond(out, "302 Found", &to, b"")
    });
    fails("the answer is not valid", |_, out| {
        let header = format!("X-Long: {}\r\n", "x".repeat(1 << 18));
        respond(out, "200 OK", &header, &program())
    });
    fails("the answer is not valid", |_, out| {
        out.write_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    });
    fails("it has more than 1048576 bytes", |request, out| {
        assert_eq!(request.headers["x-debuginfod-maxsize"], MOST.to_string());
        respond(out, "406 Not Acceptable", "", b"")
    });
}

/// A server that forwards to another one is followed.
#[test]
fn redirects_are_followed() {
    let server = server(|request, out| match request.path.starts_with("/buildid/") {
        true => respond(out, "302 Found", "Location: /elsewhere\r\n", b""),
        false => respond(out, "200 OK", "", &program()),
    });
    let exported = export(&[&server.url]);
    assert!(exported.folded.contains(FUNCTION), "{}", exported.messages);
}

#[test]
fn a_server_that_stalls_fails() {
    let stall = || thread::sleep(Duration::from_secs(20));
    let (_, exported) = fails("the server does not answer", move |_, out| {
        respond(
            out,
            "200 OK",
            "Content-Length: 300000\r\n",
            &program()[..5000],
        )?;
        stall();
        Ok(())
    });
    assert!(
        exported.took < Duration::from_secs(10),
        "{:?}",
        exported.took
    );
    // A byte from time to time is no progress.
    let (_, exported) = fails("the server does not answer", |_, out| {
        respond(out, "200 OK", "Content-Length: 300000\r\n", b"")?;
        for _ in 0..100 {
            out.write_all(b"x")?;
            thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    });
    assert!(
        exported.took < Duration::from_secs(10),
        "{:?}",
        exported.took
    );
}

/// Servers are asked in their order, and one that cannot be reached is asked once.
#[test]
fn the_next_server_is_asked() {
    // It never accepts a connection; the kernel does.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = format!(
        "http://{}",
        silent.local_addr().map(|at| (at, silent)).expect("it").0
    );
    let without = server(|_, out| respond(out, "404 Not Found", "", b""));
    let with = server(|_, out| respond(out, "200 OK", "", &program()));
    let exported = export(&["http://127.0.0.1:1", &silent, &without.url, &with.url]);
    let Exported {
        folded, messages, ..
    } = &exported;
    assert!(folded.contains(FUNCTION), "{messages}");
    assert_eq!(messages.matches("not asked again").count(), 2, "{messages}");
    assert!(
        exported.took < Duration::from_secs(10),
        "{:?}",
        exported.took
    );
    assert!(!without.requests().is_empty());
    // Not all servers said that they do not have the other files.
    let others = fs::read_dir(exported.folder.path().join("cache")).expect("a folder");
    assert_eq!(others.count(), 1);
}

#[test]
fn a_file_that_no_server_has_is_remembered() {
    let server = server(|_, out| respond(out, "404 Not Found", "", b""));
    let exported = export(&[&server.url]);
    assert!(exported.messages.contains("no debuginfod server has it"));
    let empty = [("debuginfo".to_owned(), 0), ("executable".to_owned(), 0)];
    assert_eq!(exported.cached(), empty);
    assert!(
        exported.messages.contains(" not on the servers"),
        "{}",
        exported.messages
    );
}

#[test]
fn a_cache_that_cannot_be_written_is_reported() {
    let server = server(|_, out| respond(out, "200 OK", "", &program()));
    let folder = export(&[]).folder;
    fs::write(folder.path().join("cache"), "a file").expect("a file");
    let commands = format!(
        "perfconv export in.data --to folded --debuginfod={} -o -",
        server.url
    );
    let (_, said) = run(folder.path(), &commands);
    assert!(said.contains("the cache cannot be written"), "{said}");
    assert_eq!(server.requests(), []);
}
