//! The evidence of the running kernel, its modules and its vDSO, one piece changed at a time. They
//! need the clock of Linux.

#![cfg(target_os = "linux")]

use std::fs;
use std::time::{Duration, SystemTime};

use perfdata_core::record::Mmap;
use perfdata_core::wire::Text;
use perfdata_core::{Endian, Recording};
use perfdata_session::Mapped;

use super::*;
use crate::machine::own_vdso;
use crate::os::Clock;
use crate::reason::HidingSetting;

const TEXT: u64 = 0xffff_ffff_9e00_0000;
const ETEXT: u64 = 0xffff_ffff_9f00_0000;
const MODULE: u64 = 0xffff_ffff_c080_0000;

/// The recording of a machine that is still running, whose description is in a folder.
struct Recorded {
    folder: tempfile::TempDir,
    sources: Sources,
    host: Host,
    time: Option<u64>,
    start: u64,
}

fn recorded() -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let list = format!(
        "{TEXT:x} T _text\n{:x} T do_work\n{ETEXT:x} T _etext\n{MODULE:x} t probe\t[ext4]\n",
        TEXT + 0x1000
    );
    fs::write(at("kallsyms"), list).unwrap();
    fs::write(at("modules"), format!("ext4 4096 1 - Live {MODULE:#x}\n")).unwrap();
    fs::write(at("kptr_restrict"), "1\n").unwrap();
    let now = Clock::MonotonicRaw.now().unwrap();
    let host = Host {
        is_this: true,
        relocation: Some((TEXT, b"_text".as_slice().into())),
        kernel_end: ETEXT,
        times: Times::of(&Recording::new(Endian::Little)),
        running: Running {
            kallsyms: at("kallsyms"),
            modules: at("modules"),
            sections: at("sections"),
            settings: folder.path().into(),
        },
        ..Host::default()
    };
    Recorded {
        sources: Sources::default().with_caches(Vec::new()),
        host,
        time: Some(u64::try_from(now.as_nanos()).unwrap()),
        start: MODULE,
        folder,
    }
}

impl Recorded {
    /// Changes one thing.
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Returns the evidence of the kernel, of a module, and of the vDSO, or why there is none.
    fn evidence(mut self) -> [Result<Evidence, Reason>; 3] {
        let kinds = [
            (DsoKind::Kernel, "[kernel.kallsyms]_text", 1),
            (DsoKind::Module, "[ext4]", 1),
            (DsoKind::Vdso, "[vdso]", 2),
        ];
        kinds.map(|(kind, name, mode)| {
            let map = Mmap {
                pid: 1,
                tid: 1,
                addr: 0x7fff_0000_0000,
                len: 0x2000,
                pgoff: 0,
                filename: Text::padded(name.as_bytes(), 8),
            };
            let dso = Mapped::of_mmap(&map, mode).dso.dso();
            assert_eq!(dso.kind, kind);
            let wanted = Wanted {
                dso: &dso,
                build_id: None,
                pid: 1,
                start: Some(self.start),
                time: self.time,
            };
            load(&wanted, &self.sources, &mut self.host).map(|symbols| symbols.evidence)
        })
    }
}

#[test]
fn each_piece_of_evidence_counts() {
    let all = recorded().evidence();
    let expected = [
        Evidence::RunningKernel,
        Evidence::LoadedModule,
        Evidence::RunningVdso,
    ];
    // A process may have no vDSO, and that of a program of 32 bits is another one.
    let has_vdso = cfg!(target_pointer_width = "64") && own_vdso().is_ok();
    let count = if has_vdso { 3 } else { 2 };
    assert_eq!(all[..count], expected.map(Ok)[..count]);
    let none = |changed: Recorded, reason: Reason| {
        let all = changed.evidence();
        assert_eq!(all, [(); 3].map(|()| Err(reason.clone())), "{reason}");
    };
    none(
        recorded().with(|r| r.host.is_this = false),
        Reason::NoBuildId,
    );
    none(
        recorded().with(|r| r.host.relocation = None),
        Reason::NoBuildId,
    );
    let moved = |r: &mut Recorded| {
        r.host.relocation = Some((TEXT + 0x20_0000, b"_text".as_slice().into()));
    };
    none(recorded().with(moved), Reason::OtherBoot);
    none(
        recorded().with(|r| r.host.kernel_end = ETEXT - 0x1000),
        Reason::OtherBoot,
    );
    none(
        recorded().with(|r| r.time = Some(u64::MAX >> 1)),
        Reason::OtherBoot,
    );
    let earlier = |r: &mut Recorded| {
        let uptime = Clock::Boottime.now().unwrap();
        let until = SystemTime::now().checked_sub(uptime + Duration::from_secs(60));
        r.sources = r.sources.clone().with_recorded_until(until);
    };
    none(recorded().with(earlier), Reason::OtherBoot);
    let hidden = |r: &mut Recorded| {
        let list = "0000000000000000 T _text\n0000000000000000 t do_work\n";
        fs::write(r.folder.path().join("kallsyms"), list).unwrap();
    };
    let setting = HidingSetting::KptrRestrict(1);
    none(recorded().with(hidden), Reason::HiddenAddresses(setting));
    let elsewhere = |r: &mut Recorded| {
        let root = r.folder.path().to_owned();
        let locate: crate::Locate = Arc::new(move |path| root.join(path));
        r.sources = r.sources.clone().with_root(Some(locate));
    };
    none(recorded().with(elsewhere), Reason::NoBuildId);
    // Old versions of perf record an end behind the image.
    let [kernel, ..] = recorded().with(|r| r.host.kernel_end = u64::MAX).evidence();
    assert_eq!(kernel, Ok(Evidence::RunningKernel));
}

#[test]
fn modules_must_be_where_they_were() {
    let module = |changed: Recorded| {
        let [kernel, module, _] = changed.evidence();
        assert_eq!(kernel, Ok(Evidence::RunningKernel));
        module
    };
    let moved = recorded().with(|r| r.start += 0x1000);
    assert_eq!(module(moved), Err(Reason::OtherModule));
    let unloaded = |r: &mut Recorded| fs::write(r.folder.path().join("modules"), "").unwrap();
    assert_eq!(module(recorded().with(unloaded)), Err(Reason::OtherModule));
    let unknown = |r: &mut Recorded| fs::remove_file(r.folder.path().join("modules")).unwrap();
    assert_eq!(module(recorded().with(unknown)), Err(Reason::OtherModule));
}

#[test]
fn unverified_kernels_are_used_if_that_is_allowed() {
    let moved = recorded().with(|r| {
        r.host.relocation = Some((TEXT + 0x20_0000, b"_text".as_slice().into()));
        r.sources = r.sources.clone().with_unverified(true);
    });
    assert_eq!(moved.evidence()[0], Ok(Evidence::Unverified));
}
