//! Servers and limits.

use std::env;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use perfdata_symbols::debuginfod_cache;

/// Time without progress after which a transfer ends, as in elfutils' client. A server may have to unpack
/// a package before it answers.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Maximum time for a connection. Servers that run accept one at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a file in bytes. The debug information of browsers has 1 to 3 GiB.
const MAX_SIZE: u64 = 4 << 30;

/// Which servers are asked, and the limits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientSettings {
    /// The addresses of the servers, in the order in which they are asked, each with `/buildid` at its
    /// end.
    pub(crate) servers: Vec<String>,
    /// The folder with fetched files; `None` if this user has none.
    pub cache: Option<PathBuf>,
    /// A transfer ends if fewer than 100 KiB arrive in this time.
    pub timeout: Duration,
    /// Maximum time for a connection.
    pub connect_timeout: Duration,
    /// Maximum time for a file, if there is one.
    pub max_time: Option<Duration>,
    /// Maximum size of a file in bytes, as it is transferred and unpacked.
    pub max_size: u64,
    /// Whether servers are told the maximum size.
    pub tells_size: bool,
}

/// An address that is not that of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidServer(pub String);

impl fmt::Display for InvalidServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is not the URL of a debuginfod server: it must begin with https:// or http://",
            self.0
        )
    }
}

impl std::error::Error for InvalidServer {}

impl ClientSettings {
    /// Returns the settings of the variables that elfutils' client reads, except for its servers:
    /// `DEBUGINFOD_TIMEOUT` and `DEBUGINFOD_MAXTIME` in seconds, `DEBUGINFOD_MAXSIZE` in bytes, and the
    /// folder of the cache.
    pub fn from_env() -> Self {
        let timeout = number("DEBUGINFOD_TIMEOUT").map_or(TIMEOUT, Duration::from_secs);
        let max_size = number("DEBUGINFOD_MAXSIZE");
        ClientSettings {
            servers: Vec::new(),
            cache: debuginfod_cache(),
            timeout,
            connect_timeout: timeout.min(CONNECT_TIMEOUT),
            max_time: number("DEBUGINFOD_MAXTIME").map(Duration::from_secs),
            max_size: max_size.unwrap_or(MAX_SIZE),
            tells_size: max_size.is_some(),
        }
    }

    /// Returns the settings with these servers.
    ///
    /// # Errors
    /// An address is not that of a server.
    pub fn with_servers<'a>(
        self,
        addresses: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, InvalidServer> {
        let servers = addresses.into_iter().map(server);
        Ok(ClientSettings {
            servers: servers.collect::<Result<_, _>>()?,
            ..self
        })
    }

    /// Returns the addresses in the variable `DEBUGINFOD_URLS`. Its words for signatures (`ima:…`) are
    /// not addresses.
    pub fn servers_of_env() -> Vec<String> {
        let list = env::var("DEBUGINFOD_URLS").unwrap_or_default();
        let words = list.split_whitespace();
        let addresses = words.filter(|word| !word.starts_with("ima:"));
        addresses.map(str::to_owned).collect()
    }
}

/// Returns the address below which a server has its files.
fn server(address: &str) -> Result<String, InvalidServer> {
    let is_http = |scheme: &str| {
        let start = address.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
            && address.len() > scheme.len()
    };
    if !is_http("https://") && !is_http("http://") {
        return Err(InvalidServer(address.into()));
    }
    let address = address.trim_end_matches('/');
    Ok(match address.ends_with("/buildid") {
        true => address.into(),
        false => format!("{address}/buildid"),
    })
}

/// Returns the number in a variable of the environment, unless it is 0 or not a number.
fn number<T: FromStr + PartialEq + Default>(variable: &str) -> Option<T> {
    let value = env::var(variable).ok()?;
    let number = value.trim().parse().ok()?;
    (number != T::default()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_servers() {
        let servers = |list: &[&str]| {
            let settings = ClientSettings::from_env().with_servers(list.iter().copied());
            settings.map(|settings| settings.servers)
        };
        assert_eq!(
            servers(&["https://a.b", "HTTP://c:8002/x//", "http://d/buildid/"]),
            Ok(vec![
                "https://a.b/buildid".into(),
                "HTTP://c:8002/x/buildid".into(),
                "http://d/buildid".into()
            ])
        );
        for wrong in ["file:///tmp", "a.b", "http://", "\u{e4}://"] {
            assert_eq!(servers(&[wrong]), Err(InvalidServer(wrong.into())));
        }
    }
}
