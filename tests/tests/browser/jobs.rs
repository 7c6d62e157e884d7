//! What the command in the page has to write: what the command outside of it writes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::UNIX_EPOCH;

use perfdata_tests::convert::perfconv;
use perfdata_tests::generate::random::Random;
use perfdata_tests::recordings;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Recordings that are converted and exported in all ways.
const IN_ALL_WAYS: [&str; 6] = [
    "6.1-x86_64-file-g",
    "6.1-s390x-file-z",
    "6.12-x86_64-pipe-dwarf",
    "6.1-x86_64-pipe-z",
    "7.2-x86_64-file-threads",
    "6.1-x86_64-tool-offcpu",
];

/// Commands for these; `IN` is the recording.
const WAYS: [&str; 22] = [
    "IN --decompress -o out",
    "IN --compress -o out",
    "IN --endian big -o out",
    "IN --to pipe -o out",
    "pipe2file IN -o out",
    "convert IN --to dir -o out",
    "convert IN --compat 6.1 -o out",
    "convert IN --sort --time 10%-60% -o out",
    "convert IN --sanitize --key key -o out",
    "split --by tid IN -o out",
    "recover IN -o out",
    "diff IN 6.1-x86_64-file-default.data",
    "info --leaks IN",
    "dump IN",
    "dump --hex --skip 3 --limit 5 IN",
    "export --to flamegraph --sysroot empty IN -o out",
    "export --to svg --sysroot empty IN -o out",
    "export --to pprof --sysroot empty IN -o out",
    "export --to firefox --sysroot empty IN -o out",
    "export --to speedscope --sysroot empty IN -o out",
    "export --to perf-script --sysroot empty IN -o out",
    "export --to otlp-1.10 --sysroot empty IN -o out",
];

/// Commands for every recording.
const FOR_ALL: [&str; 3] = [
    "info --json IN",
    "verify --json IN",
    "export --to folded --sysroot empty IN",
];

/// Number of damaged recordings.
const DAMAGED: u64 = 80;

/// The runs, their results, and the folder with their files.
pub struct Jobs {
    pub folder: TempDir,
    pub list: Value,
}

impl Jobs {
    /// Writes the recordings to a folder, and runs the command for all of them.
    pub fn prepare() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let recordings = recordings_in(folder.path());
        let files = files_below(folder.path());
        let mut commands: Vec<String> = Vec::new();
        for name in &recordings {
            commands.extend(FOR_ALL.map(|command| command.replace("IN", name)));
        }
        for name in IN_ALL_WAYS {
            let name = format!("{name}.data");
            commands.extend(WAYS.map(|command| command.replace("IN", &name)));
        }
        let runs = Mutex::new(Vec::new());
        recordings::in_parallel(&commands, |command| {
            let run = run(folder.path(), &files, command);
            runs.lock().expect("a list").push(run);
        });
        let modified = |path: &String| {
            let meta = fs::metadata(folder.path().join(path)).expect("a file");
            let time = meta.modified().expect("a time").duration_since(UNIX_EPOCH);
            json!([path, time.expect("a time after 1970").as_millis() as u64])
        };
        let files: Vec<Value> = files.keys().map(modified).collect();
        let runs = runs.into_inner().expect("a list");
        let list = json!({ "files": files, "runs": runs });
        Jobs { folder, list }
    }

    pub fn count(&self) -> usize {
        self.list["runs"].as_array().map_or(0, Vec::len)
    }
}

/// Copies all fixtures and defects to a folder, and adds damaged ones; returns their names.
fn recordings_in(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for recording in recordings::fixtures() {
        let name = format!("{}.data", recording.name);
        for (path, bytes) in contents_of(&recording.path, &name) {
            let target = folder.join(&path);
            fs::create_dir_all(target.parent().expect("a folder")).expect("a folder");
            fs::write(target, bytes).expect("a file");
        }
        names.push(name);
    }
    for (path, bytes) in contents_of(&recordings::fixtures_dir().join("defects"), "") {
        if path.ends_with(".data") {
            fs::write(folder.join(&path), bytes).expect("a file");
            names.push(path);
        }
    }
    let mut random = Random(51);
    // zstd's code for x86-64 accepts some damaged blocks that its portable code refuses.
    let is_damaged_alike = |name: &&String| folder.join(name).is_file() && !name.contains("-z");
    let whole: Vec<String> = names.iter().filter(is_damaged_alike).cloned().collect();
    for number in 0..DAMAGED {
        let from = &whole[random.below(whole.len() as u64) as usize];
        let mut bytes = fs::read(folder.join(from)).expect("a recording");
        if number % 4 == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        for _ in 0..random.below(6) {
            let at = random.below(bytes.len().max(1) as u64) as usize;
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.below(256) as u8;
            }
        }
        let name = format!("damaged-{number}.data");
        fs::write(folder.join(&name), bytes).expect("a file");
        names.push(name);
    }
    // With the objects that this machine happens to have.
    let bundle = "bundle -q 6.1-x86_64-file-g.data -o names.bundle";
    let made = perfconv()
        .args(bundle.split(' '))
        .current_dir(folder)
        .status();
    assert!(made.is_ok_and(|status| status.success()), "a bundle");
    names.push("names.bundle".to_owned());
    fs::create_dir(folder.join("empty")).expect("a folder");
    fs::write(folder.join("empty/nothing"), "").expect("a file");
    fs::write(folder.join("key"), "a secret of thirty-two characters").expect("a file");
    names
}

/// Returns the files of a recording, which may be a directory.
fn contents_of(path: &Path, name: &str) -> Vec<(String, Vec<u8>)> {
    if path.is_file() {
        return vec![(name.to_owned(), fs::read(path).expect("a file"))];
    }
    let entries = fs::read_dir(path).expect("a folder").flatten();
    let inner = |entry: fs::DirEntry| {
        let below = entry.file_name().into_string().expect("a name");
        let below = if name.is_empty() {
            below
        } else {
            format!("{name}/{below}")
        };
        contents_of(&entry.path(), &below)
    };
    entries.flat_map(inner).collect()
}

/// Returns the files below a folder, with length and checksum.
fn files_below(folder: &Path) -> BTreeMap<String, String> {
    let contents = contents_of(folder, "").into_iter();
    contents
        .map(|(path, bytes)| (path, checksum(&bytes)))
        .collect()
}

/// Returns what two results are compared by.
fn checksum(bytes: &[u8]) -> String {
    format!("{} {:08x}", bytes.len(), crc32fast::hash(bytes))
}

/// Runs a command in a folder of links to `files`, and returns what the page has to give for it.
fn run(folder: &Path, files: &BTreeMap<String, String>, command: &str) -> Value {
    let scratch = tempfile::tempdir().expect("a folder");
    for path in files.keys() {
        let link = scratch.path().join(path);
        fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
        fs::hard_link(folder.join(path), &link).expect("a link");
    }
    let args: Vec<&str> = command.split(' ').collect();
    let output = perfconv()
        .args(&args)
        // No objects of this machine: they might be in the caches of its user.
        .env("HOME", scratch.path())
        .env_remove("XDG_CACHE_HOME")
        .env_remove("DEBUGINFOD_CACHE_PATH")
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .output()
        .expect("perfconv can be started");
    let outputs: BTreeMap<String, String> = files_below(scratch.path())
        .into_iter()
        .filter(|(path, _)| !files.contains_key(path))
        .collect();
    json!({
        "args": args,
        "status": output.status.code(),
        "stdout": checksum(&output.stdout),
        "messages": String::from_utf8_lossy(&output.stderr),
        "outputs": outputs,
    })
}

/// Returns a script with two recordings and the number of records of the first one.
pub fn embedded() -> String {
    let names = ["6.1-x86_64-file-g", "7.2-x86_64-file-crashed"];
    let files = names.map(|name| {
        let path: PathBuf = recordings::fixture(name).path;
        json!([format!("{name}.data"), fs::read(path).expect("a fixture")])
    });
    format!("const FILES = {};\n", json!(files))
}
