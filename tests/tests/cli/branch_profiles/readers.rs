//! The programs that read the tables.

use std::fs;
use std::path::Path;

use super::made::KERNEL_NAME;
use super::{LLVM, are_here, succeed, text};

/// A recording whose branches are counted, in a folder, and one of its objects.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    pub folder: &'a Path,
    pub input: &'a str,
    pub object: &'a str,
    /// The functions of the object.
    pub functions: &'a [&'a str],
    pub is_kernel: bool,
}

impl Counted<'_> {
    /// Each reader makes the same profile of the table as of the recording.
    pub fn readers_make_the_same(&self) {
        // BOLT reads tables of a kernel that the images of these tests do not have.
        if !self.is_kernel {
            self.bolt_makes_the_same();
        }
        self.profgen_makes_the_same();
        self.autofdo_makes_the_same();
    }

    /// Writes the table for a reader, and returns its name.
    fn table(&self, to: &str) -> String {
        let Counted { input, object, .. } = self;
        let table = format!("{object}.{to}");
        let export = format!("perfconv export --to {to} --binary {object} {input}");
        succeed(self.folder, &format!("{export} -o {table} --force"));
        table
    }

    fn bolt_makes_the_same(&self) {
        let Counted { input, object, .. } = self;
        let bolt = format!("{LLVM}/perf2bolt");
        if !are_here(&["perf", &bolt]) {
            return;
        }
        let table = self.table("bolt");
        succeed(
            self.folder,
            &format!(
                "{bolt} -p {input} --ignore-build-id -o a.fdata -w a.yaml {object} > out 2>&1 && \
                 {bolt} --pa -p {table} -o b.fdata -w b.yaml {object} > out 2>&1"
            ),
        );
        let written = |name: &str| text(self.folder.join(name));
        let (a, b) = (written("a.fdata"), written("b.fdata"));
        assert!(a.lines().count() > 10, "{self:?}: {a}");
        assert_eq!(sorted(&a), sorted(&b), "{self:?}");
        let (a, b) = (written("a.yaml"), written("b.yaml"));
        assert!(a.contains("functions:"), "{self:?}: {a}");
        assert_eq!(a, b, "{self:?}");
    }

    pub fn profgen_makes_the_same(&self) {
        let Counted { input, object, .. } = self;
        let kernel = if self.is_kernel { "--kernel" } else { "" };
        let own = format!("--format=text {kernel} --binary {object} > out 2>&1");
        let profgen = format!("{LLVM}/llvm-profgen");
        if !are_here(&["perf", &profgen]) {
            return;
        }
        let table = self.table("llvm-profgen");
        succeed(
            self.folder,
            &format!(
                "{profgen} --perfdata {input} --skip-symbolization --output a.raw {own} && \
                 {profgen} --perfdata {input} --output a.prof {own} && \
                 {profgen} --unsymbolized-profile {table} --output b.prof {own}"
            ),
        );
        let written = |name: &str| text(self.folder.join(name));
        let (a, b) = (written("a.raw"), written(&table));
        assert_eq!(sorted(&a), sorted(&b), "{self:?}");
        let (a, b) = (written("a.prof"), written("b.prof"));
        assert!(a.lines().count() > 10, "{self:?}: {a}");
        assert_eq!(a, b, "{self:?}");
    }

    pub fn autofdo_makes_the_same(&self) {
        if !are_here(&["create_llvm_prof"]) {
            return;
        }
        let Counted { input, object, .. } = self;
        let table = self.table("autofdo");
        if self.is_kernel {
            name_by_file(&self.folder.join(input));
        }
        let own = format!("--format=text --binary=./{object} > out 2>&1");
        succeed(
            self.folder,
            &format!(
                "create_llvm_prof --profile={input} --out=a.afdo {own} && \
                 create_llvm_prof --profile={table} --profiler=text --out=b.afdo {own}"
            ),
        );
        let written = |name: &str| text(self.folder.join(name));
        let (a, b) = (written("a.afdo"), written("b.afdo"));
        // It makes no profile of Go's programs.
        assert!(a.lines().count() > 10 || *object == "go", "{self:?}: {a}");
        let known = |text| without_freed_names(text, self.functions);
        assert_eq!(known(&a), known(&b), "{self:?}");
    }
}

/// Gives the code of the kernel a path: create_llvm_prof 0.19 finds no others.
fn name_by_file(recording: &Path) {
    let mut bytes = fs::read(recording).expect("a recording");
    let mut places = bytes.windows(KERNEL_NAME.len());
    let at = places.position(|name| name == KERNEL_NAME).expect("a name");
    bytes[at..at + KERNEL_NAME.len()].copy_from_slice(b"/lib/modules/6/vmlinux");
    fs::write(recording, bytes).expect("a recording");
}

pub fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// The profile that create_llvm_prof writes names the targets of some calls by memory that it has
/// freed: any bytes, also spaces and ends of lines. Lines about functions are `NAME:COUNT:COUNT`, those
/// about their code ` LINE: COUNT NAME:COUNT …`, with more spaces in functions that are inlined.
fn without_freed_names(text: &str, functions: &[&str]) -> Vec<String> {
    let is_number = |text: &str| {
        let mut parts = text.split('.');
        !text.is_empty() && parts.all(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_of_function = |word: &str| {
        let (name, counts) = word.split_once(':').unwrap_or((word, ""));
        functions.contains(&name) && counts.split(':').all(is_number)
    };
    let known = |line: &str| {
        let code = line.trim_start_matches(' ');
        let spaces = line.len() - code.len();
        let mut words = code.split(' ');
        let first = words.next().unwrap_or_default();
        let is_first = match spaces {
            0 => is_of_function(first),
            _ => first.strip_suffix(':').is_some_and(is_number),
        };
        let words = words.filter(|word| is_number(word) || is_of_function(word));
        let words: Vec<&str> = [first].into_iter().chain(words).collect();
        is_first.then(|| format!("{spaces} {}", words.join(" ")))
    };
    text.lines().filter_map(known).collect()
}
