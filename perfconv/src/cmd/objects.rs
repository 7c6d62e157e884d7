//! What helps if the objects of a recording are not found.

use perfdata_export::{HidingSetting, NamedWeight, Reason, Report, SearchedSources, Unresolved};
use perfdata_session::DsoKind;

use crate::suggestions;

/// From this part of the samples' weight with names, in percent, nothing more is suggested.
const ENOUGH: u64 = 90;

/// Returns the option that could find an object, as a part of a note.
pub fn help(reason: &Reason) -> &'static str {
    match reason {
        Reason::NoBuildId => " (--unverified uses this machine's files nevertheless)",
        Reason::NeitherIdNorFile => {
            " (--sysroot with --unverified uses the file in a copy of the machine's root)"
        }
        Reason::OtherFile | Reason::ModifiedFile => " (--unverified uses it nevertheless)",
        Reason::OtherModule => " (--kallsyms names a list of its symbols)",
        Reason::OtherBoot => {
            " (--vmlinux names its image, --unverified uses the running kernel; perf record with build IDs, or perfconv inject -b before the machine is started again, prevents this)"
        }
        Reason::OtherKernel => " (--vmlinux or --kallsyms names it)",
        Reason::NotFound | Reason::OtherBuildId(_) if cfg!(feature = "debuginfod") => {
            " (--sysroot and --debug-dir name folders, --debuginfod names servers)"
        }
        Reason::NotFound | Reason::OtherBuildId(_) => " (--sysroot and --debug-dir name folders)",
        Reason::HiddenAddresses(HidingSetting::KptrRestrict(2)) => {
            " (set it to 1 and run as root, or use --vmlinux)"
        }
        Reason::HiddenAddresses(_) => " (run as root, or use --vmlinux)",
        Reason::Stripped | Reason::NoRemainingSymbol if cfg!(feature = "debuginfod") => {
            " (--debug-dir names a folder with its debug file, --debuginfod names servers)"
        }
        Reason::Stripped | Reason::NoRemainingSymbol => {
            " (--debug-dir names a folder with its debug file)"
        }
        _ => "",
    }
}

/// Returns the option that could find the names of an object, as a part of a note.
pub fn help_for(object: &Unresolved) -> &'static str {
    match (object.kind, &object.reason) {
        // What belongs to a kernel that is not known to be the running one is not taken from it.
        (DsoKind::Vdso | DsoKind::Vdso32, Reason::NoBuildId) => "",
        (DsoKind::Kernel, Reason::NoBuildId) => " (--vmlinux or --kallsyms names it)",
        (DsoKind::Module, Reason::NoBuildId) => help(&Reason::OtherModule),
        (_, reason) => help(reason),
    }
}

/// What could find the names of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// `--debuginfod`: objects of distributions from servers.
    Debuginfod,
    /// `--debug-dir`: debug files of stripped objects.
    DebugDir,
    /// `--unverified`: this machine's files without verifying that they are the recorded ones.
    Unverified,
    /// The rights to read the addresses in the kernel's list of symbols.
    Root,
    /// `--sysroot`: a copy of the recorded machine's root.
    Sysroot,
    /// Both: the recording contains no build IDs that could verify the files in the copy.
    UnverifiedSysroot,
    /// `perfconv bundle` on the recorded machine.
    Bundle,
}

impl Remedy {
    /// The easiest one first.
    const ALL: [Remedy; 7] = [
        Remedy::Debuginfod,
        Remedy::DebugDir,
        Remedy::Unverified,
        Remedy::Root,
        Remedy::Bundle,
        Remedy::Sysroot,
        Remedy::UnverifiedSysroot,
    ];

    /// Returns its name in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Remedy::Debuginfod => "--debuginfod",
            Remedy::DebugDir => "--debug-dir",
            Remedy::Unverified => "--unverified",
            Remedy::Root => "running as root",
            Remedy::Sysroot => "--sysroot",
            Remedy::UnverifiedSysroot => "--sysroot with --unverified",
            Remedy::Bundle => "a bundle made on the recorded machine",
        }
    }

    /// Returns whether it could find the names of an object that were not found in `searched`.
    fn could_name(self, object: &Unresolved, searched: SearchedSources) -> bool {
        let is_file = object.kind == DsoKind::File;
        let is_kernel = object.kind == DsoKind::Kernel;
        let is_stripped = matches!(object.reason, Reason::Stripped | Reason::NoRemainingSymbol);
        match (self, &object.reason) {
            (_, Reason::Guest | Reason::NoSymbol | Reason::Unreadable(_)) => false,
            (Remedy::Root, reason) => matches!(reason, Reason::HiddenAddresses(_)),
            (_, Reason::HiddenAddresses(_)) => false,
            (Remedy::Debuginfod, reason) => {
                let is_missing = matches!(
                    reason,
                    Reason::NotFound | Reason::OtherBuildId(_) | Reason::OtherKernel
                );
                cfg!(feature = "debuginfod")
                    && !searched.has_fetcher
                    && (is_missing || is_stripped)
                    && object.build_id.is_some()
                    && (!is_file || is_of_distribution(&object.name))
            }
            (Remedy::DebugDir, _) => is_stripped,
            (Remedy::Unverified, Reason::OtherBoot) => is_kernel,
            (Remedy::Unverified, Reason::NoBuildId | Reason::OtherFile | Reason::ModifiedFile) => {
                is_file
            }
            (Remedy::Unverified, _) => false,
            (Remedy::Sysroot, reason) => {
                let is_missing = matches!(reason, Reason::NotFound | Reason::OtherBuildId(_));
                !searched.has_root && is_missing && (is_file || object.kind == DsoKind::Module)
            }
            (Remedy::UnverifiedSysroot, reason) => {
                let is_missing = matches!(reason, Reason::NeitherIdNorFile | Reason::NoBuildId);
                !searched.has_root && is_missing && is_file
            }
            // It was made where all objects were: what it does not contain was nowhere.
            (Remedy::Bundle, _) => !searched.has_bundle && !searched.is_own_machine && !is_stripped,
        }
    }
}

/// Returns whether a file is in a folder that packages of a distribution use.
fn is_of_distribution(path: &[u8]) -> bool {
    const FOLDERS: [&[u8]; 6] = [
        b"/usr/", b"/lib/", b"/lib64/", b"/lib32/", b"/bin/", b"/sbin/",
    ];
    FOLDERS.iter().any(|folder| path.starts_with(folder)) && !path.starts_with(b"/usr/local/")
}

/// For how much of the weight of samples the function is known, and what could name most of the rest.
#[derive(Debug)]
pub struct NamedShare<'a> {
    named: &'a NamedWeight,
    is_one_of_several: bool,
    /// Number of samples, if they are only the first ones.
    first: Option<u64>,
    best: Option<Best<'a>>,
}

/// What could name most of the weight without names.
#[derive(Debug)]
struct Best<'a> {
    remedy: Remedy,
    weight: u64,
    /// The object with most of this weight.
    object: &'a Unresolved,
    others: usize,
}

impl<'a> NamedShare<'a> {
    /// Returns the share of the event with the most samples without a function; `None` if functions
    /// were not searched.
    pub fn of(report: &'a Report) -> Option<Self> {
        let named = report
            .named
            .iter()
            .rev()
            .max_by_key(|named| named.unnamed)?;
        let best = Remedy::ALL.iter().rev().filter_map(|&remedy| {
            let missing = named.missing.iter().filter_map(|&(at, weight)| {
                let object = report.unresolved.get(at)?;
                let could = remedy.could_name(object, report.searched);
                could.then_some((object, weight))
            });
            let mut missing = missing.peekable();
            let &(object, _) = missing.peek()?;
            let (others, weight) = missing
                .enumerate()
                .fold((0, 0u64), |(_, sum), (at, (_, weight))| {
                    (at, sum.saturating_add(weight))
                });
            Some(Best {
                remedy,
                weight,
                object,
                others,
            })
        });
        // Of those with the same weight, the easiest one.
        let best = best.max_by_key(|best| best.weight);
        Some(NamedShare {
            named,
            is_one_of_several: report.named.len() > 1,
            first: None,
            best,
        })
    }

    /// Returns the same share as one of only the first samples, if there is a number of them.
    #[must_use]
    pub fn of_first(self, first: Option<u64>) -> Self {
        NamedShare { first, ..self }
    }

    /// Returns the share in percent, rounded down.
    pub fn percent(&self) -> u64 {
        self.named.percent(self.named.named)
    }

    /// Returns whether so much has no name that flame graphs and tables show little.
    pub fn is_low(&self) -> bool {
        self.percent() < ENOUGH
    }

    /// Returns what could name most of the rest.
    pub fn remedy(&self) -> Option<Remedy> {
        self.best.as_ref().map(|best| best.remedy)
    }

    /// Returns it as a part of a sentence: `0 % of the samples' weight: --sysroot could name …`.
    pub fn text(&self) -> String {
        let percent = self.percent();
        let mut text = match self.first {
            None => format!("{percent} % of the samples' weight"),
            Some(first) => format!("{percent} % of the weight of the first {first} samples"),
        };
        if self.is_one_of_several {
            text.push_str(" of ");
            text.push_str(&String::from_utf8_lossy(&self.named.event));
        }
        let Some(best) = self.best.as_ref().filter(|_| self.is_low()) else {
            return text;
        };
        let others = match best.others {
            0 => String::new(),
            others => format!(" and {}", suggestions::count(others as u64, "other object")),
        };
        text.push_str(&format!(
            ": {} could name {} % more, in {}{others}",
            best.remedy.name(),
            self.named.percent(best.weight),
            String::from_utf8_lossy(&best.object.name),
        ));
        text
    }
}

/// Returns a note if so much has no name that flame graphs and tables show little.
pub fn note(report: &Report) -> Option<String> {
    let share = NamedShare::of(report).filter(NamedShare::is_low)?;
    Some(format!("functions are known for {}", share.text()))
}
