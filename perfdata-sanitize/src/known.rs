//! Names that are the same on all machines, and therefore say nothing about one of them: the only
//! names that stay for everybody.

/// Directories of every Linux system, and those of the kernel's modules.
const DIRECTORIES: &[&[u8]] = &[
    b"",
    b".",
    b"..",
    b"bin",
    b"sbin",
    b"lib",
    b"lib32",
    b"lib64",
    b"libx32",
    b"libexec",
    b"usr",
    b"local",
    b"etc",
    b"var",
    b"tmp",
    b"run",
    b"proc",
    b"sys",
    b"dev",
    b"shm",
    b"home",
    b"root",
    b"opt",
    b"mnt",
    b"srv",
    b"boot",
    b"debug",
    b".debug",
    b".build-id",
    b"self",
    b"task",
    b"fd",
    b"cache",
    b"share",
    b"x86_64-linux-gnu",
    b"i386-linux-gnu",
    b"aarch64-linux-gnu",
    b"arm-linux-gnueabihf",
    b"s390x-linux-gnu",
    b"powerpc64le-linux-gnu",
    b"riscv64-linux-gnu",
    b"modules",
    b"kernel",
    b"drivers",
    b"arch",
    b"fs",
    b"net",
    b"sound",
    b"crypto",
    b"block",
    b"mm",
    b"security",
    b"virt",
    b"updates",
    b"extra",
    b"dkms",
];

/// Libraries that almost every program maps: those of the C and C++ compilers.
const LIBRARIES: &[&[u8]] = &[
    b"libc",
    b"libm",
    b"libpthread",
    b"libdl",
    b"librt",
    b"libresolv",
    b"libutil",
    b"libgcc_s",
    b"libstdc++",
    b"libc++",
    b"libc++abi",
    b"libanl",
    b"libnsl",
    b"libcrypt",
    b"ld-linux",
    b"ld-linux-x86-64",
    b"ld-linux-aarch64",
    b"ld-linux-armhf",
    b"ld64",
    b"ld",
    b"ld-musl-x86_64",
    b"ld-musl-aarch64",
    b"libz",
    b"libselinux",
    b"libtinfo",
    b"libpcre2-8",
    b"libcap",
];

/// Programs of every Linux system.
const PROGRAMS: &[&[u8]] = &[
    b"perf",
    b"perf-exec",
    b"sh",
    b"dash",
    b"bash",
    b"sleep",
    b"true",
    b"false",
    b"cat",
    b"ls",
    b"dd",
    b"echo",
    b"env",
    b"init",
    b"systemd",
    b"sudo",
    b"su",
    b"sshd",
    b"ssh",
    b"cron",
    b"taskset",
    b"stress",
    b"stress-ng",
    b"time",
    b"timeout",
    b"yes",
    b"seq",
    b"sort",
    b"grep",
    b"sed",
    b"awk",
    b"tar",
    b"gzip",
    b"find",
    b"xargs",
    b"vmlinux",
    b"busybox",
];

/// Threads of every kernel, without their numbers.
const KERNEL_THREADS: &[&[u8]] = &[
    b"swapper",
    b"kthreadd",
    b"ksoftirqd",
    b"migration",
    b"cpuhp",
    b"idle_inject",
    b"rcu_preempt",
    b"rcu_sched",
    b"rcu_bh",
    b"rcu_gp",
    b"rcu_par_gp",
    b"rcuop",
    b"rcuos",
    b"rcuog",
    b"rcub",
    b"rcuc",
    b"rcu_tasks_kthre",
    b"rcu_tasks_rude_",
    b"rcu_tasks_trace",
    b"rcu_exp_gp_kthr",
    b"rcu_exp_par_gp_",
    b"watchdog",
    b"watchdogd",
    b"kswapd",
    b"khugepaged",
    b"kcompactd",
    b"kauditd",
    b"kdevtmpfs",
    b"oom_reaper",
    b"writeback",
    b"ksmd",
    b"kblockd",
    b"kintegrityd",
    b"khungtaskd",
    b"netns",
    b"mm_percpu_wq",
    b"slub_flushwq",
    b"inet_frag_wq",
    b"pool_workqueue_",
    b"ktimers",
    b"irq_work",
    b"stopper",
];

/// Names of mappings that are not files.
const MAPPINGS: &[&[u8]] = &[
    b"[kernel.kallsyms]",
    b"[guest.kernel.kallsyms]",
    b"[kernel]",
    b"[kernel.vmlinux]",
    b"[guest.kernel]",
    b"[hypervisor]",
    b"[vdso]",
    b"[vdso32]",
    b"[vdsox32]",
    b"[vvar]",
    b"[vvar_vclock]",
    b"[vsyscall]",
    b"[vectors]",
    b"[sigpage]",
    b"[heap]",
    b"[stack]",
    b"[anon]",
    b"[uprobes]",
    b"[bpf]",
    b"[unknown]",
    b"[unresolved]",
    b"[aio]",
    b"//anon",
    b"/dev/zero",
    b"/anon_hugepage",
    b"//toolong",
    b"//enomem",
    b"anon_inode:[perf_event]",
    b"inode",
    b"[other]",
];

/// Relocation symbols of kernels, which perf writes after the name of their mapping.
const RELOCATION_SYMBOLS: &[&[u8]] = &[b"", b"_text", b"_stext", b"startup_64"];

/// Beginnings of the names of code that the kernel generates.
const GENERATED: &[&[u8]] = &[b"bpf_prog_", b"bpf_trampoline_", b"bpf_dispatcher_"];

/// Code that the kernel generates.
const GENERATED_CODE: &[&[u8]] = &[
    b"kprobe_insn_page",
    b"kprobe_optinsn_page",
    b"ftrace_trampoline",
    b"bpf_prog_pack",
];

/// Tracepoint subsystems of the kernel, for recordings without the formats of their tracepoints.
const SUBSYSTEMS: &[&[u8]] = &[
    b"sched",
    b"syscalls",
    b"raw_syscalls",
    b"irq",
    b"irq_vectors",
    b"timer",
    b"block",
    b"ext4",
    b"xfs",
    b"btrfs",
    b"kmem",
    b"net",
    b"sock",
    b"skb",
    b"tcp",
    b"udp",
    b"power",
    b"workqueue",
    b"writeback",
    b"exceptions",
    b"page_fault",
    b"vmscan",
    b"compaction",
    b"migrate",
    b"mmap",
    b"rcu",
    b"lock",
    b"signal",
    b"task",
    b"cgroup",
    b"bpf_test_run",
    b"xdp",
    b"kvm",
    b"nmi",
    b"context_tracking",
    b"filemap",
    b"hrtimer",
    b"printk",
    b"module",
    b"oom",
    b"csd",
    b"ipi",
];

fn is_in(list: &[&[u8]], name: &[u8]) -> bool {
    list.contains(&name)
}

/// Returns whether every system has a directory of this name.
pub(super) fn is_directory(name: &[u8]) -> bool {
    is_in(DIRECTORIES, name)
}

/// Returns whether every system has a file of this name: a program, or a library with any version.
pub(super) fn is_file(name: &[u8]) -> bool {
    let stem = without_extension(name).0;
    // `libc-2.31.so`, as glibc named its files.
    let versionless = match stem.iter().rposition(|&byte| byte == b'-') {
        Some(dash) => {
            let (before, version) = stem.split_at_checked(dash).unwrap_or((stem, b""));
            let rest = version.get(1..).unwrap_or_default();
            let is_version = rest
                .iter()
                .all(|byte| byte.is_ascii_digit() || *byte == b'.');
            if is_version { before } else { stem }
        }
        None => stem,
    };
    is_in(PROGRAMS, name)
        || (stem.len() < name.len() && (is_in(LIBRARIES, stem) || is_in(LIBRARIES, versionless)))
        || name == b"vdso.so"
}

/// Returns whether every system has a program of this name.
pub(super) fn is_program(name: &[u8]) -> bool {
    is_in(PROGRAMS, name)
}

/// Returns the name of a thread without what is particular to a machine if every kernel has such a
/// thread: numbers stay, the names of workqueues do not.
pub(super) fn kernel_thread(name: &[u8]) -> Option<&[u8]> {
    if let Some(rest) = name.strip_prefix(b"kworker/") {
        let end = rest
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'u' | b'R' | b':' | b'H'));
        let len = end.unwrap_or(rest.len());
        return name.get(..b"kworker/".len().saturating_add(len));
    }
    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'/';
    let letters = name.iter().position(is_number).unwrap_or(name.len());
    let (stem, number) = name.split_at_checked(letters)?;
    (is_in(KERNEL_THREADS, stem) && number.iter().all(is_number)).then_some(name)
}

/// Returns whether it is the name of a mapping that is not a file.
pub(super) fn is_mapping(name: &[u8]) -> bool {
    is_in(MAPPINGS, name)
}

/// Returns whether it is the relocation symbol of a kernel.
pub(super) fn is_relocation_symbol(name: &[u8]) -> bool {
    is_in(RELOCATION_SYMBOLS, name)
}

/// Returns the beginning of a name of generated code that tells which kind of code it is.
pub(super) fn generated(name: &[u8]) -> &[u8] {
    let start = GENERATED.iter().find(|start| name.starts_with(start));
    start.copied().unwrap_or_default()
}

/// Returns whether it is the name of code that every kernel generates.
pub(super) fn is_generated(name: &[u8]) -> bool {
    is_in(GENERATED_CODE, name)
}

/// Returns whether it is a tracepoint subsystem of the kernel.
pub(super) fn is_subsystem(name: &[u8]) -> bool {
    is_in(SUBSYSTEMS, name)
}

/// Divides the name of a file before its extension, if readers use the extension to tell what the
/// file is: `.so` with a version, `.ko` also compressed.
pub(super) fn without_extension(name: &[u8]) -> (&[u8], &[u8]) {
    let is_version = |rest: &[u8]| {
        rest.iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'.')
    };
    let found = name
        .windows(3)
        .enumerate()
        .skip(1)
        .find_map(|(at, window)| {
            let rest = name.get(at.saturating_add(3)..)?;
            let is_it = match window {
                b".so" => rest.is_empty() || (rest.starts_with(b".") && is_version(rest)),
                b".ko" => matches!(rest, b"" | b".gz" | b".xz" | b".zst"),
                _ => false,
            };
            is_it.then_some(at)
        });
    name.split_at_checked(found.unwrap_or(name.len()))
        .unwrap_or((name, b""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_programs_are_known_with_any_version() {
        for name in [
            "libc.so.6",
            "libc-2.31.so",
            "libstdc++.so.6.0.30",
            "ld-linux-x86-64.so.2",
            "bash",
        ] {
            assert!(is_file(name.as_bytes()), "{name}");
        }
        for name in [
            "libacme.so.6",
            "libc",
            "libc.so.acme",
            "acme",
            "libc-acme.so",
            "",
        ] {
            assert!(!is_file(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn workqueues_are_removed_from_kernel_threads() {
        let known = |name: &'static str| {
            kernel_thread(name.as_bytes()).map(|name| String::from_utf8_lossy(name).into_owned())
        };
        assert_eq!(
            known("kworker/u8:1-acme_wq").as_deref(),
            Some("kworker/u8:1")
        );
        assert_eq!(known("kworker/0:1H").as_deref(), Some("kworker/0:1H"));
        assert_eq!(known("ksoftirqd/3").as_deref(), Some("ksoftirqd/3"));
        assert_eq!(known("swapper").as_deref(), Some("swapper"));
        assert_eq!(known("swapperoo"), None);
        assert_eq!(known("jbd2/sda1-8"), None);
        assert_eq!(known("acme/0"), None);
    }

    #[test]
    fn extensions_tell_what_a_file_is() {
        let split = |name: &'static str| {
            let (stem, extension) = without_extension(name.as_bytes());
            (
                String::from_utf8_lossy(stem).into_owned(),
                String::from_utf8_lossy(extension).into_owned(),
            )
        };
        assert_eq!(split("libx.so.1.2"), ("libx".into(), ".so.1.2".into()));
        assert_eq!(split("x.ko.zst"), ("x".into(), ".ko.zst".into()));
        assert_eq!(split("x.so.acme"), ("x.so.acme".into(), String::new()));
        assert_eq!(split("x.source"), ("x.source".into(), String::new()));
        assert_eq!(split(".so"), (".so".into(), String::new()));
    }
}
