//! A server for a browser on this machine: it gives files, takes a report, and notes all requests.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

/// Hosts that browsers ask of their own accord.
const VENDORS: [&str; 8] = [
    "google.com",
    "googleapis.com",
    "gvt1.com",
    "gstatic.com",
    "mozilla.com",
    "mozilla.net",
    "mozilla.org",
    "firefox.com",
];

/// The server, which is a proxy as well: so it sees what a page asks of others.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    reports: Receiver<Vec<u8>>,
}

struct Shared {
    pages: BTreeMap<String, Vec<u8>>,
    folder: OnceLock<PathBuf>,
    requests: Mutex<Vec<String>>,
    reports: Mutex<Sender<Vec<u8>>>,
}

impl Server {
    /// Starts a server with these pages, by path.
    pub fn start(pages: &[(&str, Vec<u8>)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, reports) = channel();
        let shared = Arc::new(Shared {
            pages: pages
                .iter()
                .map(|(path, page)| ((*path).to_owned(), page.clone()))
                .collect(),
            folder: OnceLock::new(),
            requests: Mutex::default(),
            reports: Mutex::new(sender),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                thread::spawn(move || shared.serve(stream));
            }
        });
        Server {
            address,
            shared,
            reports,
        }
    }

    /// Adds the files of a folder, as `/file/NAME`.
    pub fn with_folder(self, folder: &Path) -> Self {
        let _ = self.shared.folder.set(folder.to_owned());
        self
    }

    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn reports(&self) -> &Receiver<Vec<u8>> {
        &self.reports
    }

    /// Returns the requests for other hosts than this one, except what browsers ask themselves.
    pub fn foreign_requests(&self) -> Vec<String> {
        let own = self.address.to_string();
        let requests = self.shared.requests.lock().expect("a list");
        let is_foreign = |target: &&String| {
            let host = target.strip_prefix("http://").unwrap_or(target);
            let host = host.split(['/', ':']).next().unwrap_or_default();
            let is_own = target.starts_with('/') || target.contains(&own);
            let is_vendor = |name: &&str| {
                let before = host.strip_suffix(name);
                before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
            };
            !is_own && !VENDORS.iter().any(is_vendor)
        };
        requests.iter().filter(is_foreign).cloned().collect()
    }
}

impl Shared {
    /// Answers the requests of one connection.
    fn serve(&self, stream: TcpStream) {
        let Ok(reading) = stream.try_clone() else {
            return;
        };
        let (mut reader, mut writer) = (BufReader::new(reading), stream);
        while let Some((target, body)) = request(&mut reader) {
            self.requests.lock().expect("a list").push(target.clone());
            let path = target
                .split_once("://")
                .map_or(target.as_str(), |(_, rest)| {
                    rest.find('/').map_or("/", |at| &rest[at..])
                });
            let found = match path {
                "/report" => {
                    let _ = self.reports.lock().expect("a channel").send(body);
                    Some(Vec::new())
                }
                path => self.pages.get(path).cloned().or_else(|| {
                    let name = path.strip_prefix("/file/")?;
                    fs::read(self.folder.get()?.join(name)).ok()
                }),
            };
            let status = if found.is_some() {
                "200 OK"
            } else {
                "404 Not Found"
            };
            let body = found.unwrap_or_default();
            let kind = match path {
                "/" | "/page.html" => "text/html; charset=utf-8",
                _ => "application/octet-stream",
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Type: {kind}\r\nAccess-Control-Allow-Origin: *\r\n\r\n",
                body.len()
            );
            if writer
                .write_all(head.as_bytes())
                .and_then(|()| writer.write_all(&body))
                .is_err()
            {
                return;
            }
        }
    }
}

/// Reads a request; returns its target and its body.
fn request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|&size| size > 0)?;
    let target = line.split(' ').nth(1)?.to_owned();
    let mut size = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            size = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; size];
    reader.read_exact(&mut body).ok()?;
    Some((target, body))
}
