//! New names for old ones.
//!
//! A name that every machine has stays ([`known`]). Of others, the parts that say something are
//! replaced by pseudonyms, and the form that readers rely on stays: the separators of a path, the
//! brackets of a mapping that is not a file, the extension of a library.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use perfdata_core::content::Content;
use perfdata_core::read::Limits;

use super::arguments::is_argument;
use super::event_names::{is_known_event, modifiers};
use super::key::{Domain, Key};
use super::known;
use super::policy::{Action, Policy};

/// The suffix that the kernel appends to the name of a deleted file (fs/d_path.c).
const DELETED: &[u8] = b" (deleted)";

/// The shortest name that is searched for in the output. Shorter ones occur by chance.
pub(super) const SEARCHED: usize = 6;

/// Tracepoints in the recording: `subsystem:name`.
#[derive(Debug, Clone, Default)]
pub(super) struct Tracepoints {
    /// Those that the kernel has.
    pub(super) fixed: HashSet<Vec<u8>, RandomState>,
    /// Those that somebody added (kprobes, uprobes).
    pub(super) dynamic: HashSet<Vec<u8>, RandomState>,
}

/// Makes names, and remembers what it replaced.
#[derive(Debug)]
pub(super) struct Names {
    key: Key,
    policy: Policy,
    limits: Limits,
    pub(super) tracepoints: Tracepoints,
    /// The new name for each name so far; nothing if it stays.
    made: HashMap<(Content, Vec<u8>), Option<Vec<u8>>, RandomState>,
    /// All new names.
    issued: HashSet<Vec<u8>, RandomState>,
    /// What was replaced, and is long enough to be searched for.
    replaced: HashSet<Vec<u8>, RandomState>,
    /// Texts that stayed.
    kept: HashSet<Vec<u8>, RandomState>,
    /// Approximate size of these tables in bytes.
    held: usize,
}

impl Names {
    pub(super) fn new(key: Key, policy: Policy, limits: Limits) -> Self {
        Names {
            key,
            policy,
            limits,
            tracepoints: Tracepoints::default(),
            made: HashMap::default(),
            issued: HashSet::default(),
            replaced: HashSet::default(),
            kept: HashSet::default(),
            held: 0,
        }
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the names that were replaced and do not occur in a text that stayed.
    pub(super) fn searched(&self) -> impl Iterator<Item = &[u8]> {
        let mut texts: Vec<u8> = Vec::new();
        let points = &self.tracepoints.fixed;
        for text in self.kept.iter().chain(&self.issued).chain(points) {
            texts.extend_from_slice(text);
            texts.push(0);
        }
        let found = super::search::Needles::new(self.replaced.iter().map(Vec::as_slice));
        let mut hidden: HashSet<Vec<u8>, RandomState> = HashSet::default();
        found.each_in(&texts, |name| {
            hidden.insert(name.to_vec());
        });
        self.replaced
            .iter()
            .map(Vec::as_slice)
            .filter(move |name| !hidden.contains(*name))
    }

    /// Returns whether the stage wrote this text.
    pub(super) fn is_issued(&self, text: &[u8]) -> bool {
        self.issued.contains(text) || self.kept.contains(text)
    }

    /// Notes a text that stays as it is.
    pub(super) fn keep(&mut self, text: &[u8]) {
        if !text.is_empty() && !self.kept.contains(text) {
            self.held = self.held.saturating_add(text.len()).saturating_add(64);
            self.kept.insert(text.to_vec());
        }
    }

    /// Notes a name that must not be in the output.
    pub(super) fn replace(&mut self, name: &[u8]) {
        // Later stages give such names to events without a name.
        if name.len() >= SEARCHED && !is_known_event(name) && !self.replaced.contains(name) {
            self.held = self.held.saturating_add(name.len()).saturating_add(64);
            self.replaced.insert(name.to_vec());
        }
    }

    /// Returns the new name of at most `most` bytes for `name`; nothing if it stays.
    ///
    /// # Errors
    /// The names exceed the limits of the reader.
    pub(super) fn of(
        &mut self,
        content: Content,
        name: &[u8],
        most: usize,
    ) -> perfdata_core::Result<Option<Vec<u8>>> {
        let of = (content, name.to_vec());
        if let Some(made) = self.made.get(&of) {
            let new = made.clone().map(|name| cut(name, most));
            // In a shorter field than the first one.
            if let Some(new) = &new
                && !self.issued.contains(new)
            {
                self.issued.insert(new.clone());
            }
            return Ok(new);
        }
        let new = match self.policy.action(content) {
            _ if name.is_empty() => None,
            Action::Keep => None,
            Action::Remove => Some(Vec::new()),
            Action::Replace => Some(self.make(content, name)).filter(|new| new != name),
        };
        match &new {
            Some(new) => {
                self.issued.insert(cut(new.clone(), most));
            }
            None => self.keep(name),
        }
        self.held = self
            .held
            .saturating_add(name.len().saturating_mul(2))
            .saturating_add(160);
        self.limits.check_metadata("names", self.held as u64)?;
        self.made.insert(of, new.clone());
        Ok(new.map(|name| cut(name, most)))
    }

    fn make(&mut self, content: Content, name: &[u8]) -> Vec<u8> {
        match content {
            Content::Comm => self.comm(name),
            Content::Path => self.path(name),
            Content::CgroupPath => self.cgroup(name),
            Content::Symbol => self.symbol(name),
            Content::EventName => self.event(name),
            Content::Argument if is_argument(name) => name.to_vec(),
            Content::Argument if is_perf(name) => b"perf".to_vec(),
            Content::Argument => {
                self.note_words(name);
                b"*".to_vec()
            }
            Content::Release => numeric(name).to_vec(),
            Content::Host => self.word(Domain::Host, name),
            _ => self.word(Domain::Text, name),
        }
    }

    /// Returns the pseudonym of a name, which must then not be in the output.
    fn word(&mut self, domain: Domain, name: &[u8]) -> Vec<u8> {
        if name.is_empty() {
            return Vec::new();
        }
        self.replace(name);
        self.key.word(domain, name)
    }

    /// Notes the parts of a text.
    fn note_words(&mut self, text: &[u8]) {
        let is_part =
            |byte: &u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-' | b'.');
        self.replace(text);
        for part in text.split(is_part) {
            // Letters alone may be a word of a tracepoint's format.
            if part.iter().any(|byte| !byte.is_ascii_lowercase()) {
                self.replace(part);
            }
        }
    }

    fn pid(&self, digits: &[u8]) -> Vec<u8> {
        let number = std::str::from_utf8(digits)
            .ok()
            .and_then(|text| text.parse().ok());
        let pid = number.map_or(0, |pid| match self.policy.action(Content::Pid) {
            Action::Keep => pid,
            _ => self.key.pid(pid),
        });
        pid.to_string().into_bytes()
    }

    fn comm(&mut self, comm: &[u8]) -> Vec<u8> {
        if let Some(name) = known::kernel_thread(comm) {
            if let Some(rest) = comm.get(name.len()..) {
                self.replace(rest);
            }
            return name.to_vec();
        }
        // perf's name for a thread without one.
        if let Some(pid) = comm.strip_prefix(b":").filter(|pid| is_number(pid)) {
            return [b":", &*self.pid(pid)].concat();
        }
        if known::is_program(comm) {
            return comm.to_vec();
        }
        self.word(Domain::Comm, comm)
    }

    fn symbol(&mut self, name: &[u8]) -> Vec<u8> {
        if known::is_generated(name) {
            return name.to_vec();
        }
        let start = known::generated(name);
        let rest = name.get(start.len()..).unwrap_or_default();
        [start, &*self.word(Domain::Symbol, rest)].concat()
    }

    fn cgroup(&mut self, path: &[u8]) -> Vec<u8> {
        let parts = path.split(|&byte| byte == b'/');
        let parts: Vec<Vec<u8>> = parts.map(|part| self.word(Domain::Cgroup, part)).collect();
        parts.join(&b'/')
    }

    fn path(&mut self, path: &[u8]) -> Vec<u8> {
        let (name, deleted) = match path.strip_suffix(DELETED) {
            Some(name) => (name, DELETED),
            None => (path, &b""[..]),
        };
        let new = self.special(name).unwrap_or_else(|| self.file(name));
        [&*new, deleted].concat()
    }

    /// Returns the new name of a mapping that is not a file.
    fn special(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        if known::is_mapping(name) {
            return Some(name.to_vec());
        }
        if let Some(rest) = name.strip_prefix(b"/memfd:") {
            return Some([b"/memfd:", &*self.word(Domain::File, rest)].concat());
        }
        if name.starts_with(b"/SYSV") {
            return Some(b"/SYSV00000000".to_vec());
        }
        if known::generated(name) != b"" {
            return Some(self.symbol(name));
        }
        let (inner, rest) = match name.strip_prefix(b"[") {
            Some(inner) => {
                let end = inner.iter().position(|&byte| byte == b']')?;
                inner.split_at_checked(end)?
            }
            None => {
                // Pseudo files: `anon_inode:[name]`, `socket:[123]`.
                let (kind, inner) =
                    name.split_at_checked(name.iter().position(|&byte| byte == b':')?)?;
                let is_kind = matches!(kind, b"anon_inode" | b"socket" | b"pipe" | b"mnt" | b"net");
                let inner = inner.get(1..).filter(|_| is_kind)?;
                return Some([kind, b":", &*self.word(Domain::File, inner)].concat());
            }
        };
        let symbol = rest.get(1..).unwrap_or_default();
        for kernel in [
            &b"kernel.kallsyms"[..],
            b"guest.kernel.kallsyms",
            b"guest.kernel.kallsyms.",
        ] {
            let of = inner.strip_prefix(kernel);
            if let Some(pid) = of.filter(|pid| pid.is_empty() || is_number(pid)) {
                let pid = if pid.is_empty() {
                    Vec::new()
                } else {
                    self.pid(pid)
                };
                let symbol = match known::is_relocation_symbol(symbol) {
                    true => symbol.to_vec(),
                    false => self.word(Domain::Symbol, symbol),
                };
                return Some([b"[", kernel, &*pid, b"]", &*symbol].concat());
            }
        }
        if let Some(name) = inner.strip_prefix(b"anon:") {
            return Some([b"[anon:", &*self.word(Domain::File, name), b"]"].concat());
        }
        if let Some(tid) = inner.strip_prefix(b"stack:").filter(|tid| is_number(tid)) {
            return Some([b"[stack:", &*self.pid(tid), b"]"].concat());
        }
        let inner = match self.policy.keeps_basenames() {
            true => inner.to_vec(),
            false => self.word(Domain::File, inner),
        };
        Some([b"[", &*inner, b"]"].concat())
    }

    /// Returns the new path of a file.
    fn file(&mut self, path: &[u8]) -> Vec<u8> {
        let mut parts: Vec<Vec<u8>> = Vec::new();
        let mut old = path.split(|&byte| byte == b'/').peekable();
        let mut before: &[u8] = b"";
        while let Some(part) = old.next() {
            parts.push(if old.peek().is_none() {
                self.basename(part)
            } else if known::is_directory(part) {
                part.to_vec()
            } else if is_number(part) && matches!(before, b"proc" | b"task") {
                self.pid(part)
            } else if before == b"modules" && self.policy.action(Content::Release) == Action::Keep {
                part.to_vec()
            } else {
                self.word(Domain::Directory, part)
            });
            before = part;
        }
        parts.join(&b'/')
    }

    fn basename(&mut self, name: &[u8]) -> Vec<u8> {
        if let Some(name) = self.jit(name) {
            return name;
        }
        if self.policy.keeps_basenames() || known::is_file(name) {
            return name.to_vec();
        }
        let (stem, extension) = known::without_extension(name);
        [&*self.word(Domain::File, stem), extension].concat()
    }

    /// Returns the new name of a file that a JIT compiler or perf named after a process.
    fn jit(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        const FORMS: [(&[u8], &[u8]); 3] = [
            (b"perf-", b".map"),
            (b"jit-", b".dump"),
            (b"jitted-", b".so"),
        ];
        FORMS.into_iter().find_map(|(start, end)| {
            let numbers = name.strip_prefix(start)?.strip_suffix(end)?;
            let (pid, rest) = match numbers.iter().position(|&byte| byte == b'-') {
                Some(dash) => numbers.split_at_checked(dash)?,
                None => (numbers, &b""[..]),
            };
            let is_form = is_number(pid) && (rest.is_empty() || is_number(rest.get(1..)?));
            is_form.then(|| [start, &*self.pid(pid), rest, end].concat())
        })
    }

    /// Returns the new name of an event, of a subsystem, or of a group of events.
    fn event(&mut self, name: &[u8]) -> Vec<u8> {
        let (stem, modifiers) = modifiers(name);
        if is_known_event(stem) {
            return name.to_vec();
        }
        let Some(colon) = stem.iter().position(|&byte| byte == b':') else {
            // The subsystem in tracing data.
            let is_system = |point: &Vec<u8>| {
                let rest = point.strip_prefix(stem);
                rest.is_some_and(|rest| rest.starts_with(b":"))
            };
            if self.tracepoints.fixed.iter().any(is_system) {
                return name.to_vec();
            }
            return [&*self.word(Domain::Event, stem), modifiers].concat();
        };
        let (system, event) = stem.split_at_checked(colon).unwrap_or((stem, b""));
        let event = event.get(1..).unwrap_or_default();
        let is_fixed =
            match self.tracepoints.fixed.is_empty() && self.tracepoints.dynamic.is_empty() {
                true => known::is_subsystem(system) && is_identifier(event),
                false => self.tracepoints.fixed.contains(stem),
            };
        if is_fixed {
            return name.to_vec();
        }
        let system = self.event(system);
        [&*system, b":", &*self.word(Domain::Event, event), modifiers].concat()
    }
}

/// Returns the first `most` bytes of a name.
fn cut(mut name: Vec<u8>, most: usize) -> Vec<u8> {
    name.truncate(most);
    name
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

fn is_identifier(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    !text.is_empty() && text.iter().all(is_part)
}

/// Returns whether a word of a command line is the path of perf.
fn is_perf(word: &[u8]) -> bool {
    word.ends_with(b"/perf")
}

/// Returns the number at the start of a release: `6.1.0` of `6.1.0-13-amd64`.
fn numeric(release: &[u8]) -> &[u8] {
    let is_other = |byte: &u8| !byte.is_ascii_digit() && *byte != b'.';
    let end = release.iter().position(is_other).unwrap_or(release.len());
    let number = release.get(..end).unwrap_or(release);
    number.strip_suffix(b".").unwrap_or(number)
}
