//! A debuginfod server on this machine, which answers as a test wants.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A request to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedRequest {
    /// The path, for instance `/buildid/ab12/debuginfo`.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: HashMap<String, String>,
    /// How many requests for the same path came before.
    pub number: usize,
}

/// What a server answers to a request.
pub type ServerAnswer = dyn Fn(&ServedRequest, &mut TcpStream) -> io::Result<()> + Send + Sync;

/// A server, whose threads run until the end of the process.
#[derive(Debug)]
pub struct DebuginfodServer {
    /// Its URL.
    pub url: String,
    requests: Arc<Mutex<Vec<ServedRequest>>>,
}

impl DebuginfodServer {
    /// Starts a server on a free port. Each connection gets one answer of `answer`, and is closed.
    pub fn start(
        answer: impl Fn(&ServedRequest, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let requests: Arc<Mutex<Vec<ServedRequest>>> = Arc::default();
        let (seen, answer) = (requests.clone(), Arc::new(answer) as Arc<ServerAnswer>);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, answer) = (seen.clone(), answer.clone());
                // If the client closes the connection, there is nothing to answer.
                thread::spawn(move || stream.and_then(|stream| serve(stream, &seen, &*answer)));
            }
        });
        DebuginfodServer {
            url: format!("http://{address}"),
            requests,
        }
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<ServedRequest> {
        let requests = self.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<ServedRequest>>,
    answer: &ServerAnswer,
) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let request = {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let number = seen.iter().filter(|other| other.path == path).count();
        let request = ServedRequest {
            path,
            headers,
            number,
        };
        seen.push(request.clone());
        request
    };
    answer(&request, &mut stream)
}

/// Writes an answer with this status, headers that each end with CRLF, and a body. The size is that of
/// the body, unless the headers contain it.
///
/// # Errors
/// The client closed the connection.
pub fn respond(out: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> io::Result<()> {
    let size = match headers.to_ascii_lowercase().contains("content-length") {
        true => String::new(),
        false => format!("Content-Length: {}\r\n", body.len()),
    };
    write!(
        out,
        "HTTP/1.1 {status}\r\nConnection: close\r\n{size}{headers}\r\n"
    )?;
    out.write_all(body)?;
    out.flush()
}
