//! The browsers of this machine, without a window.

use std::fmt;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use perfdata_tests::skipped;
use serde_json::Value;

use super::server::Server;

/// What Firefox does not ask of its maker during a test.
const PREFERENCES: &str = r#"
user_pref("app.update.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("network.proxy.allow_hijacking_localhost", true);
user_pref("network.proxy.type", 1);
user_pref("network.proxy.http", "127.0.0.1");
user_pref("network.proxy.ssl", "127.0.0.1");
user_pref("toolkit.telemetry.enabled", false);
"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Browser {
    Chromium,
    Firefox,
}

impl fmt::Display for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Browser::Chromium => "Chromium",
            Browser::Firefox => "Firefox",
        })
    }
}

impl Browser {
    /// Returns the browsers that are installed, and notes those that are not.
    pub fn installed() -> Vec<Browser> {
        let all = [Browser::Chromium, Browser::Firefox];
        let is_installed = |browser: &Browser| {
            let version = Command::new(browser.program()).arg("--version").output();
            let is_installed = version.is_ok_and(|output| output.status.success());
            if !is_installed {
                skipped::note(browser.program());
            }
            is_installed
        };
        all.into_iter().filter(is_installed).collect()
    }

    fn program(self) -> &'static str {
        match self {
            Browser::Chromium => "chromium",
            Browser::Firefox => "firefox-esr",
        }
    }

    /// Opens an address, and returns the report that its script sends to the server.
    pub fn open(self, address: &str, server: &Server, limit: Duration) -> Value {
        let profile = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(self.program());
        match self {
            Browser::Chromium => {
                command
                    .args([
                        "--headless=new",
                        "--no-sandbox",
                        "--disable-gpu",
                        "--no-first-run",
                    ])
                    .args([
                        "--disable-background-networking",
                        "--disable-component-update",
                    ])
                    .arg(format!("--user-data-dir={}", profile.path().display()))
                    .arg(format!("--proxy-server=127.0.0.1:{}", server.port()))
                    .arg("--proxy-bypass-list=<-loopback>");
            }
            Browser::Firefox => {
                let port = server.port();
                let ports = ["http", "ssl"]
                    .map(|kind| format!("user_pref(\"network.proxy.{kind}_port\", {port});\n"));
                let preferences = [PREFERENCES, &ports.concat()].concat();
                fs::write(profile.path().join("user.js"), preferences).expect("a profile");
                command
                    .args(["--headless", "--no-remote", "--profile"])
                    .arg(profile.path());
                // It stores files beside its profile otherwise.
                command.env("HOME", profile.path());
            }
        }
        command
            .arg(address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command
            .spawn()
            .expect("a browser that has told its version");
        let report = server.reports().recv_timeout(limit);
        let _ = child.kill();
        let _ = child.wait();
        let report = report.unwrap_or_else(|_| panic!("{self} does not report within {limit:?}"));
        serde_json::from_slice(&report).expect("a report in JSON")
    }
}
