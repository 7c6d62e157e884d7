//! The page of `web/build` in Chromium and Firefox: it opens every fixture, and what the command in
//! the page writes is what the command outside of it writes.
//!
//! The environment variable `PERFCONV_PAGE` names the page; otherwise it is `target/web/perfconv.html`.

mod browser;
mod jobs;
mod server;

use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs};

use browser::Browser;
use perfdata_tests::{recordings, skipped};
use serde_json::Value;
use server::Server;

/// Returns the page; `None` if it was not built.
fn page() -> Option<String> {
    let built = recordings::root().join("target/web/perfconv.html");
    let path = env::var_os("PERFCONV_PAGE").map_or(built, PathBuf::from);
    let page = fs::read_to_string(path).ok();
    if page.is_none() {
        skipped::note("the page for browsers (web/build)");
    }
    page
}

/// How long a test may take in one browser.
const LIMIT: Duration = Duration::from_secs(480);

/// Checks that all of the reported checks hold, and that there are `least` of them.
fn assert_all(browser: &Browser, report: &Value, least: usize) {
    let checks = report["checks"].as_array().expect("a list of checks");
    let failed: Vec<String> = checks
        .iter()
        .filter(|check| check["ok"] != true)
        .map(|check| format!("{}: {}", check["name"], check["detail"]))
        .collect();
    let first = &failed[..failed.len().min(20)];
    assert!(
        first.is_empty(),
        "{browser}: {} failed: {first:#?}",
        failed.len()
    );
    assert!(
        checks.len() >= least,
        "{browser}: {} of {least} checks: {report}",
        checks.len()
    );
}

/// The script of a test in the page itself, which may then send its report to this server.
fn with_script(page: &str, script: &str, address: &str) -> String {
    let allowed = page.replacen("connect-src 'none'", &format!("connect-src {address}"), 1);
    assert_ne!(allowed, page, "the page may use no network");
    let script = format!("<script>const ADDRESS = {address:?};\n{script}\n</script></body>");
    allowed.replacen("</body>", &script, 1)
}

#[test]
fn the_page_writes_what_the_command_writes() {
    let Some(page) = page() else { return };
    let jobs = jobs::Jobs::prepare();
    for browser in Browser::installed() {
        let server = Server::start(&[
            ("/", include_bytes!("jobs.html").to_vec()),
            ("/page.html", page.clone().into_bytes()),
            ("/jobs", jobs.list.to_string().into_bytes()),
        ]);
        let server = server.with_folder(jobs.folder.path());
        let report = browser.open(&server.address(), &server, LIMIT);
        assert_all(&browser, &report, jobs.count());
        let foreign = server.foreign_requests();
        assert!(foreign.is_empty(), "{browser}: {foreign:?}");
    }
}

#[test]
fn the_views_work_from_a_file() {
    let Some(page) = page() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for browser in Browser::installed() {
        let server = Server::start(&[]);
        let path = folder.path().join("page.html");
        let script = [jobs::embedded().as_str(), include_str!("views.js")].concat();
        let page = with_script(&page, &script, &server.address());
        fs::write(&path, page).expect("a page");
        let address = format!("file://{}", path.display());
        let report = browser.open(&address, &server, LIMIT);
        assert_all(&browser, &report, 25);
    }
}

/// The page says who may be asked: nobody.
#[test]
fn the_page_forbids_the_network() {
    let Some(page) = page() else { return };
    let (_, policy) = page
        .split_once("Content-Security-Policy\" content=\"")
        .expect("a policy");
    let (policy, _) = policy.split_once('"').expect("a policy");
    let parts: Vec<&str> = policy.split("; ").collect();
    for part in [
        "default-src 'none'",
        "connect-src 'none'",
        "form-action 'none'",
        "base-uri 'none'",
    ] {
        assert!(parts.contains(&part), "{policy}");
    }
    for part in parts {
        assert!(!part.contains("http") && !part.contains('*'), "{part}");
    }
    for reference in ["src=\"http", "href=\"http", "url(http", "import(", "fetch("] {
        assert!(!page.contains(reference), "the page contains {reference}");
    }
}
