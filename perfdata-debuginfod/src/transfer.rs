//! One file from one server.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::sync::Arc;
use std::time::Instant;

use flate2::read::MultiGzDecoder;
use rustls::crypto::ring;
use ureq::http::{HeaderMap, Response, StatusCode, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use crate::client::FetchObserver;
use crate::failure::FetchFailure;
use crate::settings::ClientSettings;

/// Maximum number of requests for a file that breaks off.
const MOST_REQUESTS: usize = 3;

/// Maximum number of redirects.
const MOST_REDIRECTS: u32 = 5;

/// Maximum size of the headers of an answer in bytes.
const MOST_HEADERS: usize = 1 << 16;

/// Size of the buffer in bytes.
const BUFFER: usize = 1 << 16;

/// The progress that must be made within the timeout, in bytes: that of elfutils' client.
const PROGRESS: u64 = 100 << 10;

/// Returns what makes the requests.
pub(crate) fn agent(settings: &ClientSettings) -> Agent {
    // Those of the system, as for elfutils' client. If there are none, no server is trusted.
    let system = rustls_native_certs::load_native_certs().certs;
    let certificates = system
        .iter()
        .map(|der| Certificate::from_der(der).to_owned());
    let certificates: Vec<Certificate<'static>> = certificates.collect();
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(certificates)))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build();
    let timeout = Some(settings.timeout);
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(MOST_REDIRECTS)
        .max_response_header_size(MOST_HEADERS)
        .timeout_resolve(Some(settings.connect_timeout))
        .timeout_connect(Some(settings.connect_timeout))
        .timeout_send_request(timeout)
        .timeout_recv_response(timeout)
        .timeout_per_read(timeout)
        .timeout_per_write(timeout)
        .timeout_global(settings.max_time)
        .user_agent(concat!("perfconv/", env!("CARGO_PKG_VERSION")))
        .accept_encoding("gzip")
        .tls_config(tls);
    config.build().new_agent()
}

/// How the bytes of an answer are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Plain,
    Gzip,
}

/// What the headers of an answer say about the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Described {
    encoding: Encoding,
    /// The size of the transfer in bytes, if it is known.
    size: Option<u64>,
    /// The size of the unpacked file in bytes, if it is known.
    unpacked: Option<u64>,
    /// What identifies this version of the file.
    validator: Option<String>,
}

/// A transfer, which may consist of several requests.
#[derive(Debug)]
pub(crate) struct Transfer<'a> {
    agent: &'a Agent,
    settings: &'a ClientSettings,
    url: &'a str,
    observer: &'a dyn FetchObserver,
    /// The answer that the file continues.
    described: Option<Described>,
    received: u64,
}

impl<'a> Transfer<'a> {
    pub fn new(
        agent: &'a Agent,
        settings: &'a ClientSettings,
        url: &'a str,
        observer: &'a dyn FetchObserver,
    ) -> Self {
        Transfer {
            agent,
            settings,
            url,
            observer,
            described: None,
            received: 0,
        }
    }

    /// Writes the file to `file`, as the server packed it. Returns how that is, and the size of the
    /// unpacked file if the server tells it.
    ///
    /// # Errors
    /// The reason why the file is not complete.
    pub fn run(&mut self, file: &mut File) -> Result<(Encoding, Option<u64>), FetchFailure> {
        let mut failure = FetchFailure::Incomplete;
        let mut restarts = 0_usize;
        for _ in 0..MOST_REQUESTS {
            let before = self.received;
            failure = match self.request(file) {
                Ok(()) => {
                    let described = self.described.as_ref();
                    let encoding = described.map_or(Encoding::Plain, |known| known.encoding);
                    let unpacked = described.and_then(|known| known.unpacked);
                    return Ok((encoding, unpacked));
                }
                Err(failure @ FetchFailure::Incomplete) => failure,
                Err(failure) => return Err(failure),
            };
            let is_resumable = self.described.as_ref().is_some_and(is_resumable);
            if !is_resumable || self.received <= before {
                // Without progress, the file is requested once more from its start.
                restarts = restarts.saturating_add(1);
                if restarts > 1 {
                    break;
                }
                self.described = None;
            }
        }
        Err(failure)
    }

    /// Makes one request, for the whole file or for the rest of it.
    fn request(&mut self, file: &mut File) -> Result<(), FetchFailure> {
        let mut request = self.agent.get(self.url);
        if self.settings.tells_size {
            request = request.header("X-DEBUGINFOD-MAXSIZE", self.settings.max_size.to_string());
        }
        let validator = self.described.as_ref().and_then(|d| d.validator.as_ref());
        if let Some(validator) = validator.filter(|_| self.received > 0) {
            request = request
                .header(header::RANGE, format!("bytes={}-", self.received))
                .header(header::IF_RANGE, validator);
        }
        let mut answer = request.call()?;
        match answer.status() {
            StatusCode::OK => {
                self.received = 0;
                file.set_len(0).map_err(FetchFailure::unwritable)?;
                self.described = Some(describe(&answer)?);
            }
            StatusCode::PARTIAL_CONTENT => self.check_continuation(&answer)?,
            StatusCode::NOT_FOUND => return Err(FetchFailure::NotFound),
            StatusCode::NOT_ACCEPTABLE => {
                return Err(FetchFailure::TooLarge(self.settings.max_size));
            }
            StatusCode::RANGE_NOT_SATISFIABLE if self.received > 0 => {
                self.described = None;
                return Err(FetchFailure::Incomplete);
            }
            status if status.is_redirection() => return Err(FetchFailure::Redirects),
            status => return Err(FetchFailure::Status(status.as_u16())),
        }
        let size = self.described.as_ref().and_then(|known| known.size);
        if size.is_some_and(|size| size > self.settings.max_size) {
            return Err(FetchFailure::TooLarge(self.settings.max_size));
        }
        let start = io::SeekFrom::Start(self.received);
        file.seek(start).map_err(FetchFailure::unwritable)?;
        self.receive(answer.body_mut(), file)?;
        match size.is_some_and(|size| size != self.received) {
            true => Err(FetchFailure::Incomplete),
            false => Ok(()),
        }
    }

    /// Writes a body to the file.
    fn receive(&mut self, body: &mut Body, file: &mut File) -> Result<(), FetchFailure> {
        let most = self.settings.max_size;
        let mut reader = body.with_config().limit(u64::MAX).reader();
        let mut buffer = vec![0; BUFFER];
        let mut since = (Instant::now(), 0_u64);
        loop {
            let count = match reader.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(of_body(error)),
            };
            let part = buffer.get(..count).unwrap_or_default();
            let arrived = part.len() as u64;
            self.received = self.received.saturating_add(arrived);
            if self.received > most {
                return Err(FetchFailure::TooLarge(most));
            }
            file.write_all(part).map_err(FetchFailure::unwritable)?;
            self.observer.arrived(arrived);
            since.1 = since.1.saturating_add(arrived);
            if since.1 >= PROGRESS {
                since = (Instant::now(), 0);
            } else if since.0.elapsed() > self.settings.timeout {
                return Err(FetchFailure::Timeout);
            }
        }
    }

    /// Checks that an answer continues the file.
    fn check_continuation(&mut self, answer: &Response<Body>) -> Result<(), FetchFailure> {
        let range = text(answer.headers(), header::CONTENT_RANGE);
        let first = range.and_then(|range| {
            let (first, _) = range.strip_prefix("bytes ")?.split_once('-')?;
            first.trim().parse::<u64>().ok()
        });
        let encoding = encoding(answer.headers())?;
        let known = self.described.as_ref();
        if self.received > 0
            && first == Some(self.received)
            && known.is_some_and(|known| known.encoding == encoding)
        {
            return Ok(());
        }
        self.described = None;
        Err(FetchFailure::Invalid(
            "it is another part of the file".into(),
        ))
    }
}

/// Returns whether the rest of a file can be requested.
fn is_resumable(known: &Described) -> bool {
    known.validator.is_some()
}

/// Returns what an answer with the start of a file says about it.
fn describe(answer: &Response<Body>) -> Result<Described, FetchFailure> {
    let headers = answer.headers();
    let number = |value: Option<&str>| value.and_then(|value| value.trim().parse().ok());
    // A weak validator does not say that all bytes are the same.
    let tag = text(headers, header::ETAG).filter(|tag| tag.starts_with('"'));
    let validator = tag.or_else(|| text(headers, header::LAST_MODIFIED));
    Ok(Described {
        encoding: encoding(headers)?,
        size: number(text(headers, header::CONTENT_LENGTH)),
        unpacked: number(
            headers
                .get("x-debuginfod-size")
                .and_then(|v| v.to_str().ok()),
        ),
        validator: validator.map(str::to_owned),
    })
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn encoding(headers: &HeaderMap) -> Result<Encoding, FetchFailure> {
    match text(headers, header::CONTENT_ENCODING).map(str::trim) {
        None | Some("" | "identity") => Ok(Encoding::Plain),
        Some("gzip" | "x-gzip") => Ok(Encoding::Gzip),
        Some(other) => Err(FetchFailure::Invalid(format!(
            "it has the encoding {other}, which was not requested"
        ))),
    }
}

/// Returns why a body ended.
fn of_body(error: io::Error) -> FetchFailure {
    match error.downcast::<ureq::Error>() {
        Ok(error) => match FetchFailure::from(error) {
            // The connection existed.
            FetchFailure::Unreachable(_) => FetchFailure::Incomplete,
            other => other,
        },
        Err(error) if error.kind() == io::ErrorKind::TimedOut => FetchFailure::Timeout,
        Err(_) => FetchFailure::Incomplete,
    }
}

/// Unpacks a file. Returns its size in bytes.
///
/// # Errors
/// It is damaged, or has more than `most` bytes, or cannot be written.
pub(crate) fn unpack(packed: &mut File, out: &mut File, most: u64) -> Result<u64, FetchFailure> {
    packed.rewind().map_err(FetchFailure::unwritable)?;
    let mut decoder = MultiGzDecoder::new(io::BufReader::with_capacity(BUFFER, packed));
    let mut buffer = vec![0; BUFFER];
    let mut size = 0_u64;
    loop {
        let count = decoder
            .read(&mut buffer)
            .map_err(|error| FetchFailure::Invalid(error.to_string()))?;
        let part = buffer.get(..count).unwrap_or_default();
        if part.is_empty() {
            return Ok(size);
        }
        size = size.saturating_add(part.len() as u64);
        if size > most {
            return Err(FetchFailure::TooLarge(most));
        }
        out.write_all(part).map_err(FetchFailure::unwritable)?;
    }
}
