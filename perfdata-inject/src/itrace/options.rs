//! The options of `--itrace`, in the words of perf (tools/perf/util/auxtrace.c, Linux 7.1,
//! `itrace_do_parse_synth_opts`).

use perfdata_convert::error::{Error, Result};

/// Which samples are synthesised. Letters that concern another kind of trace have no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ItraceOptions {
    /// `i`: instructions of Intel PT, operations of Arm SPE.
    pub instructions: bool,
    /// Number of records for which there is one; 0 and 1 mean all. It is also the period of the
    /// samples. `None`: it is a number of something else, such as a time.
    pub period: Option<u64>,
    /// `b`, `c`, `r`: branches.
    pub branches: bool,
    /// `c`: of Intel PT and BTS, only calls, and with `r` also returns.
    pub calls: bool,
    /// `r`: of Intel PT and BTS, only returns, and with `c` also calls.
    pub returns: bool,
    /// `e`: records of errors.
    pub errors: bool,
    /// `s`: number of samples that are left out first.
    pub skip: Option<u64>,
    /// `L`, `G`: branches or callchains are added to existing samples.
    pub changes_samples: bool,
    /// `y`: of Intel PT, cycles at the end of each period.
    pub cycles: bool,
    /// Number after `i` or `y`: the length of a period of Intel PT.
    pub number: u64,
    /// Its unit.
    pub unit: PeriodUnit,
    /// `x`: transactions.
    pub transactions: bool,
    /// `w`: operands of PTWRITE.
    pub ptwrites: bool,
    /// `p`: C-states, changes of frequency and PSB packets.
    pub power: bool,
    /// `o`: records of PEBS in the trace.
    pub others: bool,
    /// `I`: interrupts and the like.
    pub interrupts: bool,
    /// `e-o`: no errors about overflows.
    pub no_overflows: bool,
    /// `e-l`: no errors about lost data.
    pub no_losses: bool,
    /// `g`: the samples of Intel PT have callchains of up to this number of addresses.
    pub callchains: Option<u32>,
    /// `q`: only the addresses in packets of Intel PT; twice: only those after PSB packets.
    pub quick: u8,
    /// `A`: cycles are counted although they are of another moment than the instructions.
    pub approximates: bool,
    /// The command whose default this is, which depends on the kind of trace; `None`: all traces
    /// have the same options.
    pub command: Option<ItraceCommand>,
    /// `Z`: without times.
    pub timeless: bool,
    /// `f`: hits and misses of the first-level cache.
    pub first_level: bool,
    /// `m`: hits and misses of the last-level cache.
    pub last_level: bool,
    /// `t`: hits and misses of the TLB.
    pub tlb: bool,
    /// `a`: accesses to remote memory.
    pub remote_access: bool,
    /// `M`: all accesses to memory.
    pub memory: bool,
    /// `l`: the samples contain up to this number of branches.
    pub last_branches: Option<u32>,
}

/// A command whose default is not that of `perf inject`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ItraceCommand {
    /// `perf report`, and profiles: only instructions of Intel PT, with callchains.
    Report,
    /// `perf script`: calls of Intel PT and BTS, and no instructions.
    Script,
    /// None of perf, but a profile for a compiler: samples with branch stacks.
    Compiler,
}

/// A kind of trace that is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TraceKind {
    IntelPt,
    IntelBts,
    ArmSpe,
}

/// The unit of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PeriodUnit {
    /// Instructions, or operations.
    Instructions,
    /// Ticks of the clock of the trace.
    Ticks,
    /// Nanoseconds.
    #[default]
    Nanoseconds,
}

/// Period without a number after `i` or `y`, in nanoseconds (`PERF_ITRACE_DEFAULT_PERIOD`).
const PERIOD: u64 = 100_000;

/// Number of addresses without a number after `g` (`PERF_ITRACE_DEFAULT_CALLCHAIN_SZ`).
const CALLCHAIN: u32 = 16;

/// Number of branches without a number after `l` (`PERF_ITRACE_DEFAULT_LAST_BRANCH_SZ`).
const LAST_BRANCHES: u32 = 64;

/// Largest number after `l` (`PERF_ITRACE_MAX_LAST_BRANCH_SZ`), and after `g`
/// (`PERF_ITRACE_MAX_CALLCHAIN_SZ`).
const LARGEST: u64 = 1024;

/// A letter of other decoders.
const OTHERS: &str = "T";

impl ItraceOptions {
    /// Returns the options for `--itrace` without options: all samples except branch stacks, of
    /// every record, and errors.
    pub fn all() -> Self {
        ItraceOptions {
            instructions: true,
            period: Some(1),
            branches: true,
            errors: true,
            first_level: true,
            last_level: true,
            tlb: true,
            remote_access: true,
            memory: true,
            number: PERIOD,
            transactions: true,
            ptwrites: true,
            power: true,
            others: true,
            interrupts: true,
            ..ItraceOptions::default()
        }
    }

    /// Returns the options without letters, of a command that shows samples instead of writing a
    /// recording.
    pub fn of_command(command: ItraceCommand) -> Self {
        ItraceOptions {
            command: Some(command),
            ..ItraceOptions::all()
        }
    }

    /// Returns the options for a kind of trace, where they are the default of a command.
    pub(super) fn of_trace(self, kind: TraceKind) -> Self {
        let Some(command) = self.command else {
            return self;
        };
        match (command, kind) {
            (ItraceCommand::Report, TraceKind::IntelPt) => ItraceOptions {
                instructions: true,
                number: PERIOD,
                errors: true,
                callchains: Some(CALLCHAIN),
                ..ItraceOptions::default()
            },
            (ItraceCommand::Script, TraceKind::IntelPt | TraceKind::IntelBts) => ItraceOptions {
                instructions: false,
                calls: true,
                ..self
            },
            (ItraceCommand::Compiler, TraceKind::IntelPt) => ItraceOptions {
                instructions: true,
                number: PERIOD,
                last_branches: Some(LAST_BRANCHES),
                ..ItraceOptions::default()
            },
            // Its samples have no branch stacks.
            (ItraceCommand::Compiler, TraceKind::IntelBts) => ItraceOptions::default(),
            // Each operation once: with all events, a branch would be in several of them.
            (ItraceCommand::Compiler, TraceKind::ArmSpe) => ItraceOptions {
                branches: true,
                last_branches: Some(LAST_BRANCHES),
                ..ItraceOptions::default()
            },
            _ => self,
        }
    }

    /// Checks that the options can be applied to Arm SPE.
    ///
    /// # Errors
    /// One cannot.
    pub fn check_arm_spe(&self) -> Result<()> {
        let what = if self.instructions && self.period.is_none() {
            "Arm SPE samples operations, so the period of i must be a number of them: i1i, i10i"
        } else if self.changes_samples {
            "L and G add branches or callchains to existing samples, and Arm SPE has none of them"
        } else if self.skip.is_some() {
            "s skips events of a decoder for instructions, which Arm SPE does not need"
        } else {
            return Ok(());
        };
        Err(Error::Usage(format!("--itrace: {what}")))
    }

    /// Parses the options after `--itrace=`.
    ///
    /// # Errors
    /// A letter or number is not known.
    pub fn parse(text: &str) -> Result<Self> {
        let mut options = ItraceOptions::default();
        let mut rest = text;
        let bad = || Error::Usage(format!("{text:?} are no options of instruction tracing"));
        while let Some(letter) = rest.chars().next() {
            rest = rest.get(letter.len_utf8()..).unwrap_or_default();
            match letter {
                'i' | 'y' => {
                    options.instructions |= letter == 'i';
                    options.cycles |= letter == 'y';
                    (options.number, options.unit) = period(&mut rest).ok_or_else(bad)?;
                    options.period =
                        (options.unit == PeriodUnit::Instructions).then_some(options.number);
                }
                'x' => options.transactions = true,
                'w' => options.ptwrites = true,
                'p' => options.power = true,
                'o' => options.others = true,
                'I' => options.interrupts = true,
                'q' => options.quick = options.quick.saturating_add(1),
                'A' => options.approximates = true,
                'Z' => options.timeless = true,
                'b' => options.branches = true,
                'c' => (options.branches, options.calls) = (true, true),
                'r' => (options.branches, options.returns) = (true, true),
                'f' => options.first_level = true,
                'm' => options.last_level = true,
                't' => options.tlb = true,
                'a' => options.remote_access = true,
                'M' => options.memory = true,
                'l' => {
                    let count = count(&mut rest).ok_or_else(bad)?;
                    options.last_branches = Some(count.unwrap_or(LAST_BRANCHES));
                }
                'g' => {
                    let count = count(&mut rest).ok_or_else(bad)?;
                    options.callchains = Some(count.unwrap_or(CALLCHAIN));
                }
                'L' | 'G' => {
                    options.changes_samples = true;
                    count(&mut rest).ok_or_else(bad)?;
                }
                's' => {
                    let skip = number(&mut rest).ok_or_else(bad)?;
                    options.skip = Some(skip.ok_or_else(bad)?);
                }
                'e' => {
                    options.errors = true;
                    let without = flags(&mut rest);
                    options.no_overflows |= without.contains('o');
                    options.no_losses |= without.contains('l');
                }
                'd' => {
                    flags(&mut rest);
                }
                ' ' | ',' => {}
                _ if OTHERS.contains(letter) => {}
                _ => return Err(bad()),
            }
        }
        Ok(options)
    }
}

/// Removes separators and then a number from the start of `rest`. `None`: it is too large;
/// `Some(None)`: there is none.
fn number(rest: &mut &str) -> Option<Option<u64>> {
    *rest = rest.trim_start_matches([' ', ',']);
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (digits, behind) = rest.split_at_checked(end)?;
    *rest = behind;
    if digits.is_empty() {
        return Some(None);
    }
    digits.parse().ok().map(Some)
}

/// Returns the number after `l` or `g`, if there is one. `None`: it is out of range.
fn count(rest: &mut &str) -> Option<Option<u32>> {
    match number(rest)? {
        None => Some(None),
        Some(count @ 1..=LARGEST) => u32::try_from(count).ok().map(Some),
        Some(_) => None,
    }
}

/// Returns the period after `i` or `y`. `None`: the text is wrong.
fn period(rest: &mut &str) -> Option<(u64, PeriodUnit)> {
    let Some(number) = number(rest)? else {
        return Some((PERIOD, PeriodUnit::Nanoseconds));
    };
    *rest = rest.trim_start_matches([' ', ',']);
    let units = [
        ("i", PeriodUnit::Instructions, 1),
        ("t", PeriodUnit::Ticks, 1),
        ("ms", PeriodUnit::Nanoseconds, 1_000_000),
        ("us", PeriodUnit::Nanoseconds, 1000),
        ("ns", PeriodUnit::Nanoseconds, 1),
    ];
    for (name, unit, factor) in units {
        if let Some(behind) = rest.strip_prefix(name) {
            *rest = behind;
            return Some((number.checked_mul(factor)?, unit));
        }
    }
    // perf takes it for nanoseconds.
    rest.is_empty().then_some((number, PeriodUnit::Nanoseconds))
}

/// Removes the flags of `e` and `d` from the start of `rest`: `+` or `-` and letters. Returns those
/// after `-`.
fn flags<'a>(rest: &mut &'a str) -> &'a str {
    let mut without = "";
    while let Some(behind) = rest.strip_prefix(['+', '-']) {
        let is_minus = rest.starts_with('-');
        let end = behind.trim_start_matches(|c: char| c.is_ascii_lowercase());
        let size = behind.len().saturating_sub(end.len());
        if is_minus {
            without = behind.get(..size).unwrap_or_default();
        }
        *rest = end;
    }
    without
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_perf() {
        let of = |text| ItraceOptions::parse(text).expect("options");
        let all = ItraceOptions::all();
        assert_eq!(of("i1ibflmtaM").last_branches, Some(64));
        assert_eq!(of("i100us,b f,m,t,a,M x w p o I").number, all.number);
        let expected = ItraceOptions {
            instructions: true,
            period: Some(10),
            number: 10,
            unit: PeriodUnit::Instructions,
            ..ItraceOptions::default()
        };
        assert_eq!(of("i10i"), expected);
        assert_eq!(of("i,10,i"), expected);
        let more = of("i10ixwpoIqq,d+e-l e-ol g l4 Z A");
        assert!(more.transactions && more.ptwrites && more.power && more.others);
        assert!(more.interrupts && more.timeless && more.approximates);
        assert!(more.no_overflows && more.no_losses && more.errors);
        assert_eq!((more.quick, more.callchains), (2, Some(16)));
        assert_eq!(of("y5t").unit, PeriodUnit::Ticks);
        assert_eq!((of("i2ms").number, of("i").number), (2_000_000, 100_000));
        assert!(of("e+o-l").errors && !of("e").branches);
        assert!(of("c").calls && of("c").branches && !of("c").returns);
        assert_eq!(of("bs10").skip, Some(10));
        assert!(of("i100usb").branches && of("i7tb").period.is_none());
        assert_eq!(of("l16").last_branches, Some(16));
        assert!(of("cr").branches && !of("cr").instructions);
        assert_eq!(of(""), ItraceOptions::default());
    }

    #[test]
    fn others_are_refused() {
        let error = |text| {
            let checked = ItraceOptions::parse(text).and_then(|options| options.check_arm_spe());
            checked.expect_err("an error").to_string()
        };
        for text in ["i", "i100us", "i100", "i10t"] {
            assert!(error(text).contains("i1i"), "{text}");
        }
        for text in [
            "k",
            "i10x",
            "l0",
            "l1025",
            "i99999999999999999999i",
            "ö",
            "s",
        ] {
            assert!(error(text).contains("no options"), "{text}");
        }
        for text in ["L", "G16", "s100"] {
            assert!(error(text).contains("Arm SPE"), "{text}");
        }
    }
}
