//! Evidence that an object of this machine is the recorded one.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use perfdata_core::Recording;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_session::{BuildId, FileId};

use crate::kallsyms::number;
use crate::machine::build_id_in_notes;
use crate::os::{self, Clock};
use crate::reason::{HidingSetting, Reason};

/// Why an object is regarded as the recorded one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Evidence {
    /// Its build ID is the recorded one.
    BuildId(BuildId),
    /// The recorded kernel is the running one: the host name, the release, and the address of its
    /// relocation symbol are equal.
    RunningKernel,
    /// The running kernel is the recorded one, and the module has the recorded address.
    LoadedModule,
    /// The vDSO of the running kernel, which is the recorded one.
    RunningVdso,
    /// Host name, kernel release, device and inode are equal, and the file was neither created nor
    /// modified after it was recorded.
    File,
    /// Host name and kernel release are equal: generated code has no other evidence.
    Machine,
    /// It came with the recording in a bundle, and was the recorded one by other evidence when that was
    /// made.
    Bundled,
    /// The caller named the file, and the build ID of one of both is not known.
    Named,
    /// None: objects that cannot be verified are [allowed](crate::Sources::unverified).
    Unverified,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Evidence::BuildId(id) => return write!(f, "build ID {id}"),
            Evidence::RunningKernel => {
                "host name, kernel release, and address of the relocation symbol"
            }
            Evidence::LoadedModule => "running kernel, and address of the module",
            Evidence::RunningVdso => "running kernel",
            Evidence::File => {
                "host name, kernel release, device, inode, and no modification since the recording"
            }
            Evidence::Machine => "host name and kernel release",
            Evidence::Bundled => "copied on the recorded machine, by its path",
            Evidence::Named => "named by an option",
            Evidence::Unverified => "none, unverified objects are allowed",
        })
    }
}

/// An object whose symbols were found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The name of the object in the recording.
    pub name: Box<[u8]>,
    /// Why the symbols are those of the recorded object.
    pub evidence: Evidence,
}

/// Where the running kernel describes itself.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    /// The list of its symbols.
    pub kallsyms: PathBuf,
    /// The list of its modules with their addresses.
    pub modules: PathBuf,
    /// A folder for each module, with the addresses of its sections.
    pub sections: PathBuf,
    /// The folder with the settings that hide addresses.
    pub settings: PathBuf,
}

impl Default for Running {
    fn default() -> Self {
        Running {
            kallsyms: "/proc/kallsyms".into(),
            modules: "/proc/modules".into(),
            sections: "/sys/module".into(),
            settings: "/proc/sys/kernel".into(),
        }
    }
}

impl Running {
    /// Returns whether a module is loaded at an address: that of the module, or that of its code, which
    /// perf records for s390 (tools/perf/arch/s390/util/machine.c). `None` if it cannot be read.
    pub fn has_module_at(&self, name: &[u8], address: u64) -> Option<bool> {
        let list = fs::read(&self.modules).ok()?;
        let line = list.split(|&byte| byte == b'\n').find(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(b" "))
        });
        let own = line.and_then(|line| {
            let mut fields = line.split(|&byte| byte == b' ');
            number(fields.nth(5)?)
        });
        // The kernel hides the addresses of modules as zeros.
        if own == Some(0) {
            return None;
        }
        let code = || {
            let name = std::str::from_utf8(name).ok()?;
            let path = self.sections.join(name).join("sections/.text");
            number(fs::read(path).ok()?.trim_ascii())
        };
        Some(own == Some(address) || code() == Some(address))
    }

    /// Returns the build ID of a loaded module.
    pub fn module_id(&self, name: &[u8]) -> Option<BuildId> {
        let name = std::str::from_utf8(name).ok()?;
        let path = self.sections.join(name).join("notes/.note.gnu.build-id");
        build_id_in_notes(&fs::read(path).ok()?)
    }

    /// Returns the setting that hides the addresses of kernel symbols (kernel/kallsyms.c,
    /// `kallsyms_show_value`).
    pub fn hiding_setting(&self) -> HidingSetting {
        let setting = |name| {
            let text = fs::read_to_string(self.settings.join(name)).ok()?;
            text.trim().parse::<i64>().ok()
        };
        match (setting("kptr_restrict"), setting("perf_event_paranoid")) {
            (Some(0), Some(paranoid)) => HidingSetting::PerfEventParanoid(paranoid),
            (restrict, _) => HidingSetting::KptrRestrict(restrict.unwrap_or(1)),
        }
    }
}

/// Clocks of `clock_gettime`, as attributes name them (include/uapi/linux/time.h).
const CLOCK_REALTIME: i32 = 0;
const CLOCK_MONOTONIC: i32 = 1;
const CLOCK_MONOTONIC_RAW: i32 = 4;
const CLOCK_BOOTTIME: i32 = 7;

/// How much the clock of perf may differ from the one that is read here, and the times of files from
/// the time of day.
const TOLERANCE: Duration = Duration::from_secs(1);

/// The times in a recording.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    /// The clock; `None` if this machine cannot read it.
    clock: Option<Clock>,
    is_realtime: bool,
    /// A moment on the clock, and the same moment as time of day, in nanoseconds.
    moment: Option<(u64, u64)>,
}

impl Times {
    /// Returns the clock of a recording.
    pub fn of(recording: &Recording) -> Self {
        let attr = recording.events.iter().next().map(|event| &event.attr);
        let selected = attr
            .filter(|attr| attr.flags.use_clockid() != 0)
            .and_then(|attr| attr.clockid);
        let moment = match recording.feature(FeatureId::CLOCK_DATA) {
            Some(Ok(Section {
                value: Feature::ClockData(data),
                ..
            })) if data.wall_clock != 0 => Some((data.clock_time, data.wall_clock)),
            _ => None,
        };
        Times {
            clock: match selected {
                // The clock of the scheduler, which is not adjusted.
                None | Some(CLOCK_MONOTONIC_RAW) => Some(Clock::MonotonicRaw),
                Some(CLOCK_MONOTONIC) => Some(Clock::Monotonic),
                Some(CLOCK_BOOTTIME) => Some(Clock::Boottime),
                _ => None,
            },
            is_realtime: selected == Some(CLOCK_REALTIME),
            moment,
        }
    }

    /// Returns whether what was recorded at `time` was recorded before this machine was started: the time
    /// is later than now, or the time of day is earlier than the start. `until` is when the recording was
    /// complete, if that is known.
    pub fn is_of_another_boot(&self, time: Option<u64>, until: Option<SystemTime>) -> bool {
        let clock = self.clock.and_then(Clock::now);
        let times = time.map(Duration::from_nanos).zip(clock);
        if times.is_some_and(|(time, now)| time > now.saturating_add(TOLERANCE)) {
            return true;
        }
        // The clock first: without it, there may be no time of day either.
        let start = || {
            let since = Clock::Boottime.now()?;
            SystemTime::now().checked_sub(since)
        };
        let latest = self.latest(time, until);
        let latest = latest.and_then(|latest| latest.checked_add(TOLERANCE));
        latest
            .zip(start())
            .is_some_and(|(latest, start)| latest < start)
    }

    /// Returns the latest time of day at which something at `time` can have been recorded. `until` is
    /// when the recording was complete, if that is known.
    fn latest(&self, time: Option<u64>, until: Option<SystemTime>) -> Option<SystemTime> {
        let of_moment = || {
            let (clock, wall) = self.moment?;
            let wall = i128::from(wall)
                .saturating_add(i128::from(time?))
                .saturating_sub(i128::from(clock));
            of_nanoseconds(u64::try_from(wall).ok()?)
        };
        let of_clock = || {
            let time = time.filter(|&time| time != 0)?;
            if self.is_realtime {
                return of_nanoseconds(time);
            }
            // In an earlier boot, the same time on its clock was before this one.
            let since = self
                .clock?
                .now()?
                .saturating_sub(Duration::from_nanos(time));
            SystemTime::now().checked_sub(since)
        };
        let known = of_moment().or_else(of_clock);
        known.into_iter().chain(until).min()
    }
}

fn of_nanoseconds(wall: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(wall))
}

/// Checks that the file at `path` is the recorded one, by its device, inode and times.
///
/// # Errors
/// It is another file, it was modified after `time` in the recording, or this cannot be known.
pub(crate) fn check_file(
    path: &Path,
    recorded: Option<&FileId>,
    times: &Times,
    time: Option<u64>,
    until: Option<SystemTime>,
) -> Result<(), Reason> {
    let Ok(meta) = fs::metadata(path) else {
        return Err(Reason::NotFound);
    };
    if let Some(file) = recorded {
        let own = os::device_and_inode(&meta).ok_or(Reason::NoBuildId)?;
        let is_device = || own.0 == file.device || is_device_of_mount(path, file.device);
        if own.1 != file.inode || !is_device() {
            return Err(Reason::OtherFile);
        }
    }
    // A new file may have the inode of an old one, and the time of another file. The time of the last
    // change (`st_ctime`) is of no use: perf links the files of each recording to its cache.
    let times_of_file = [meta.modified().ok(), meta.created().ok()];
    let changed = times_of_file.into_iter().flatten().max();
    let changed = changed.ok_or(Reason::NoBuildId)?;
    let latest = times.latest(time, until).ok_or(Reason::NoBuildId)?;
    match latest.checked_add(TOLERANCE) {
        Some(latest) if changed > latest => Err(Reason::ModifiedFile),
        _ => Ok(()),
    }
}

/// Returns whether the file system with the file at `path` has this device in records of the kernel.
/// `stat` reports the devices of subvolumes (btrfs), and records contain those of the layers of
/// `overlay`, which cannot be known here.
fn is_device_of_mount(path: &Path, device: (u32, u32)) -> bool {
    let is_it = || -> io::Result<bool> {
        let path = fs::canonicalize(path)?;
        let list = fs::read_to_string("/proc/self/mountinfo")?;
        let mounts = list.lines().filter_map(|line| {
            let mut fields = line.split(' ');
            let (number, folder) = (fields.nth(2)?, fields.nth(1)?);
            let kind = line.split_once(" - ")?.1.split(' ').next()?;
            path.starts_with(folder)
                .then_some((folder.len(), number, kind))
        });
        // Of several mounts in the same folder, the last one is used.
        let mount = mounts.max_by_key(|&(len, ..)| len);
        Ok(mount.is_some_and(|(_, number, kind)| {
            let (major, minor) = device;
            number == format!("{major}:{minor}") || kind == "overlay"
        }))
    };
    is_it().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_modules_are_compared() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let running = Running {
            modules: at("modules"),
            sections: at("module"),
            settings: at("settings"),
            ..Running::default()
        };
        let has = |name: &[u8], address| running.has_module_at(name, address);
        assert_eq!(has(b"ext4", 0xffff_ffff_c000_0000), None);
        let list = "ext4 1007616 1 - Live 0xffffffffc0000000\njbd2 176128 1 ext4, Live 0xffffffffc0200000\n";
        fs::write(at("modules"), list).unwrap();
        assert_eq!(has(b"ext4", 0xffff_ffff_c000_0000), Some(true));
        assert_eq!(has(b"jbd2", 0xffff_ffff_c020_0000), Some(true));
        assert_eq!(has(b"ext4", 0xffff_ffff_c020_0000), Some(false));
        assert_eq!(has(b"ext", 0xffff_ffff_c000_0000), Some(false));
        // The address of the code.
        fs::create_dir_all(at("module/ext4/sections")).unwrap();
        fs::write(at("module/ext4/sections/.text"), "0xffffffffc0000040\n").unwrap();
        assert_eq!(has(b"ext4", 0xffff_ffff_c000_0040), Some(true));
        // The kernel hides them.
        fs::write(at("modules"), "ext4 1007616 1 - Live 0x0000000000000000\n").unwrap();
        assert_eq!(has(b"ext4", 0xffff_ffff_c000_0000), None);
    }

    #[test]
    fn the_setting_that_hides_addresses_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let running = Running {
            settings: folder.path().into(),
            ..Running::default()
        };
        let set = |restrict: &str, paranoid: &str| {
            fs::write(folder.path().join("kptr_restrict"), restrict).unwrap();
            fs::write(folder.path().join("perf_event_paranoid"), paranoid).unwrap();
            running.hiding_setting()
        };
        assert_eq!(set("1\n", "4\n"), HidingSetting::KptrRestrict(1));
        assert_eq!(set("2\n", "1\n"), HidingSetting::KptrRestrict(2));
        assert_eq!(set("0\n", "2\n"), HidingSetting::PerfEventParanoid(2));
    }

    /// Elsewhere, there is no such clock.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_is_the_recorded_one_until_it_is_modified() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "1").unwrap();
        let meta = fs::metadata(&path).unwrap();
        let (device, inode) = os::device_and_inode(&meta).unwrap();
        let file = FileId {
            device,
            inode,
            generation: 0,
        };
        let times = Times {
            clock: Some(Clock::MonotonicRaw),
            ..Times::default()
        };
        let now = u64::try_from(Clock::MonotonicRaw.now().unwrap().as_nanos()).unwrap();
        let check = |file: &FileId, times: &Times, time, until| {
            check_file(&path, Some(file), times, time, until)
        };
        let ago = |seconds| SystemTime::now().checked_sub(Duration::from_secs(seconds));
        assert_eq!(check(&file, &times, Some(now), None), Ok(()));
        assert_eq!(check(&file, &times, None, ago(0)), Ok(()));
        let other = FileId {
            inode: inode + 1,
            ..file
        };
        assert_eq!(
            check(&other, &times, Some(now), None),
            Err(Reason::OtherFile)
        );
        let other = FileId {
            device: (device.0, device.1 + 1),
            ..file
        };
        let is_overlay = is_device_of_mount(&path, other.device);
        assert_eq!(check(&other, &times, Some(now), None).is_err(), !is_overlay);
        // It was modified after the recording.
        let earlier = now.saturating_sub(10_000_000_000).max(1);
        assert_eq!(
            check(&file, &times, Some(earlier), None),
            Err(Reason::ModifiedFile)
        );
        assert_eq!(
            check(&file, &times, Some(now), ago(10)),
            Err(Reason::ModifiedFile)
        );
        let moment = |seconds: u64| {
            let wall = ago(seconds).unwrap();
            let wall = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap();
            Times {
                moment: Some((70, u64::try_from(wall.as_nanos()).unwrap())),
                ..Times::default()
            }
        };
        assert_eq!(check(&file, &moment(0), Some(70), None), Ok(()));
        let early = moment(10);
        assert_eq!(
            check(&file, &early, Some(70), None),
            Err(Reason::ModifiedFile)
        );
        // Nothing says when it was recorded.
        assert_eq!(check(&file, &times, None, None), Err(Reason::NoBuildId));
        assert_eq!(
            check(&file, &Times::default(), Some(now), None),
            Err(Reason::NoBuildId)
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn times_behind_the_clock_are_those_of_another_boot() {
        let times = Times {
            clock: Some(Clock::MonotonicRaw),
            ..Times::default()
        };
        let now = u64::try_from(Clock::MonotonicRaw.now().unwrap().as_nanos()).unwrap();
        assert!(!times.is_of_another_boot(Some(now), None));
        assert!(!times.is_of_another_boot(None, None));
        assert!(times.is_of_another_boot(Some(now + 60_000_000_000), None));
        assert!(!Times::default().is_of_another_boot(Some(u64::MAX), None));
        // The recording was complete before.
        let uptime = Clock::Boottime.now().unwrap();
        let until =
            |distance| SystemTime::now().checked_sub(uptime + Duration::from_secs(distance));
        assert!(times.is_of_another_boot(Some(now), until(60)));
        assert!(!times.is_of_another_boot(Some(now), until(0)));
    }
}
