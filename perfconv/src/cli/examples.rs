//! The examples at the end of `--help`. A test parses them.

/// Examples of `perfconv`.
pub const TOP: &str = "\
Examples:
  Show what a recording contains and which conversions are useful:
    perfconv perf.data
  Convert a stream to a file while it is recorded:
    perf record -o - -- make | perfconv pipe2file - -o perf.data
  Convert a recording of a big-endian machine to the byte order of this one:
    perfconv --endian native s390x.data -o here.data
  Decompress a recording of perf record -z for tools that cannot:
    perfconv --decompress perf.data -o plain.data
  Convert a recording of a newer perf for perf 6.1:
    perfconv --compat 6.1 perf.data -o old.data

Exit status:
  0  success
  1  the input is invalid or the conversion was refused; nothing was written
  2  usage or I/O error

perfconv never changes its inputs. An output file appears only when it is complete. Messages go to standard error; \
reports and -o - go to standard output. Colours are used only on terminals; NO_COLOR turns them off.";

/// Examples of `perfconv convert`.
pub const CONVERT: &str = "\
Examples:
    perfconv convert perf.data -o copy.data
    perfconv convert --to file perf.data.dir -o perf.data
    perfconv convert --time 1961.5,1971.5 day.data -o spike.data
    perfconv convert --comms 'nginx*' --descendants system.data -o nginx.data
    perfconv convert --swap-endian --decompress s390x.data -o plain.data
    perfconv convert --set HOSTNAME=somewhere --drop CMDLINE perf.data -o shown.data
    perfconv convert --build-ids --sysroot /mnt/target perf.data -o with-ids.data
    perfconv convert --jit perf.data -o with-jit.data
    perfconv convert --perf-maps perf.data -o with-names.data
    perfconv convert --convert-callchain dwarf.data -o unwound.data
    perfconv convert --max-stack 16 --omit raw,brstack perf.data -o thin.data

Exit status: 0 success; 1 invalid input or refused, nothing written; 2 usage or I/O error.";

/// Examples of `perfconv pipe2file`.
pub const PIPE2FILE: &str = "\
Examples:
    perf record -o - -- make | perfconv pipe2file - -o perf.data
    ssh host perf record -a -o - sleep 10 | perfconv pipe2file - -o host.data
    perfconv pipe2file --endian native stream.data -o perf.data";

/// Examples of `perfconv file2pipe`.
pub const FILE2PIPE: &str = "\
Examples:
    perfconv file2pipe perf.data -o - | perf script -i -
    perfconv file2pipe --compat 6.1 new.data -o - | perf report -i -
    perfconv file2pipe --decompress perf.data -o stream.data";

/// Examples of `perfconv inject`.
pub const INJECT: &str = "\
Examples:
    perf record -o - -- make | perfconv inject -b | perf report -i -
    perfconv inject --buildid-all -i perf.data -o with-ids.data";

/// Examples of `perfconv split`.
pub const SPLIT: &str = "\
Examples:
    perfconv split perf.data -o minutes --by time=1m
    perfconv split perf.data -o programs --by comm
    perfconv split --time 10,20 perf.data -o cpus --by cpu
    perfconv split --compress perf.data -o parts --by size=100M";

/// Examples of `perfconv merge`.
pub const MERGE: &str = "\
Examples:
    perfconv merge server.data client.data -o both.data
    perfconv merge --align wall monday.data tuesday.data -o all.data
    perfconv merge --align after --rebase-kernel before-boot.data after-boot.data -o runs.data
    perfconv merge --machines --align wall host-a.data host-b.data -o hosts.data

Exit status: 0 success; 1 invalid input or recordings that contradict each other, nothing written; 2 usage or I/O error.";

/// Examples of `perfconv export`.
pub const EXPORT: &str = "\
Examples:
    perfconv export perf.data -o perf.html
    perfconv export new.data --diff old.data -o diff.html
    perfconv export perf.data -o perf.folded
    perfconv export perf.data --to folded -o - | inferno-flamegraph > perf.svg
    perfconv export perf.data -o perf.pb.gz
    perfconv export perf.data -o perf.json.gz
    perfconv export perf.data -o perf.speedscope.json
    perfconv export perf.data -o perf.parquet
    perfconv export *.data --append-to fleet
    perfconv export --comms nginx --time 10%-20% --mark kernel perf.data -o nginx.folded
    perfconv export --sysroot /mnt/target other-machine.data -o target.folded

Exit status: 0 success; 1 invalid input or refused, nothing written; 2 usage or I/O error.";

/// Examples of `perfconv compact`.
#[cfg(feature = "columns")]
pub const COMPACT: &str = "\
Examples:
    perfconv compact fleet
    perfconv compact --dry-run fleet
    perfconv compact --drop-before 2026-11-01 fleet

Exit status: 0 success; 1 refused, or a file could not be read and is left; 2 usage or I/O error.";

/// Examples of `perfconv info`.
pub const INFO: &str = "\
Examples:
    perfconv info perf.data
    perfconv info --json perf.data | jq .records
    perfconv info --map perf.data
    perfconv info --html perf.html perf.data";

/// Examples of `perfconv dump`.
pub const DUMP: &str = "\
Examples:
    perfconv dump --type MMAP2 --type COMM perf.data
    perfconv dump --hex --limit 10 perf.data
    perfconv dump --resolved --limit 10 perf.data
    perfconv dump --aux perf.data | grep PTWRITE
    perfconv dump --json --type SAMPLE perf.data | jq .fields.ip";

/// Examples of `perfconv verify`.
pub const VERIFY: &str = "\
Examples:
    perfconv verify perf.data
    perfconv verify --json perf.data | jq .findings
    perfconv verify -q --fail-on warning *.data

Exit status: 0 no errors found (--fail-on: nor warnings); 1 errors found; 2 usage or I/O error.";

/// Examples of `perfconv diff`.
pub const DIFF: &str = "\
Examples:
    perfconv diff before.data after.data
    perfconv diff --stat before.data after.data
    perfconv diff -q before.data after.data

Exit status: 0 no differences; 1 differences found; 2 error.";

/// Examples of `perfconv recover`.
pub const RECOVER: &str = "\
Examples:
    perfconv recover killed.data -o good.data
    perfconv recover --strict cut.data -o good.data
    perfconv recover perf.data.dir -o good.data";

/// Examples of `perfconv extract-aux`.
pub const EXTRACT_AUX: &str = "\
Examples:
    perfconv extract-aux intel-pt.data -o traces
    perfconv extract-aux --sideband rest.data intel-pt.data -o traces
    perf record -e intel_pt// -o - -- make | perfconv extract-aux - -o traces";

/// Examples of `perfconv bundle`.
pub const BUNDLE: &str = "\
Examples:
    perfconv bundle perf.data -o perf.bundle
    perf record -g -o - -- make | perfconv bundle - -o perf.bundle
    perfconv export perf.bundle -o perf.folded";

/// Examples of `perfconv unbundle`.
pub const UNBUNDLE: &str = "\
Examples:
    perfconv unbundle perf.bundle -o recorded
    perf --buildid-dir recorded/debug report -i recorded/perf.data";

/// Examples of `perfconv man`.
pub const MAN: &str = "\
Examples:
    perfconv man > ~/.local/share/man/man1/perfconv.1
    perfconv man convert | man -l -";

/// Examples of `perfconv completions`.
pub const COMPLETIONS: &str = "\
Examples:
    perfconv completions bash > ~/.local/share/bash-completion/completions/perfconv
    perfconv completions fish > ~/.config/fish/completions/perfconv.fish
    perfconv completions zsh > ~/.zfunc/_perfconv";
