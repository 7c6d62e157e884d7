//! The machine that made a recording, and this machine: what tells them apart, and where their
//! files are.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};

use object::Endianness;
use perfdata_core::Recording;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::read::Source;
use perfdata_session::BuildId;

use crate::elf::id_in_notes;
use crate::kallsyms::Line;

/// Folder for the debug files of a distribution. Each has the path of its object there.
pub const DEBUG_DIRECTORY: &str = "/usr/lib/debug";

/// Paths of a kernel with symbols; the release replaces the star (tools/perf/util/symbol.c,
/// `vmlinux_path__init`).
pub const KERNEL_IMAGES: [&str; 5] = [
    "/boot/vmlinux-*",
    "/usr/lib/debug/boot/vmlinux-*",
    "/lib/modules/*/build/vmlinux",
    "/usr/lib/debug/lib/modules/*/vmlinux",
    "/usr/lib/debug/boot/vmlinux-*.debug",
];

/// Maximum size of a vDSO in bytes.
const MOST_VDSO: u64 = 1 << 20;

/// Returns the release of the recorded kernel, as `uname -r` prints it; `None` if the recording does
/// not contain it.
pub fn release(recording: &Recording) -> Option<String> {
    text(recording, FeatureId::OSRELEASE)
}

/// Returns the text of the feature OSRELEASE or HOSTNAME.
fn text(recording: &Recording, id: FeatureId) -> Option<String> {
    match recording.feature(id) {
        Some(Ok(Section {
            value: Feature::OsRelease(text) | Feature::Hostname(text),
            ..
        })) => String::from_utf8(text.text().to_vec()).ok(),
        _ => None,
    }
}

/// Returns whether a kernel of the same release as the recorded one is running on this machine:
/// `false` if the recording does not contain the release.
pub fn is_this_release(recording: &Recording) -> bool {
    is_own(recording, FeatureId::OSRELEASE, "osrelease")
}

/// Returns whether `recording` was made on this machine, by its host name and the release of its
/// kernel: `false` if it does not contain them.
pub fn is_this_machine(recording: &Recording) -> bool {
    is_this_release(recording) && is_of_this_host(recording)
}

/// Returns whether `recording` was made on this machine, by its host name: `false` if it does not
/// contain that.
pub fn is_of_this_host(recording: &Recording) -> bool {
    is_own(recording, FeatureId::HOSTNAME, "hostname")
}

/// Returns whether a feature is the value `name` of this machine.
fn is_own(recording: &Recording, id: FeatureId, name: &str) -> bool {
    let own = fs::read_to_string(format!("/proc/sys/kernel/{name}"));
    own.is_ok_and(|own| text(recording, id).as_deref() == Some(own.trim_end()))
}

/// Returns the build ID in ELF notes of this machine's byte order, such as those in
/// `/sys/kernel/notes`.
pub fn build_id_in_notes(notes: &[u8]) -> Option<BuildId> {
    id_in_notes(notes, Endianness::default())
}

/// Returns the address at which the code of the running kernel starts (`_text` or `_stext`), if this
/// user may know it.
pub fn kernel_start() -> Option<u64> {
    let list = BufReader::new(File::open("/proc/kallsyms").ok()?);
    let start = list.split(b'\n').find_map(|line| {
        let line = line.ok()?;
        let line = Line::of(&line)?;
        matches!(line.name, b"_text" | b"_stext").then_some(line.address)
    });
    start.filter(|&address| address != 0)
}

/// Returns the build ID of the running kernel.
pub fn running_kernel() -> Option<BuildId> {
    let notes = fs::read("/sys/kernel/notes").ok()?;
    build_id_in_notes(&notes)
}

/// Returns the vDSO that the running kernel maps into this process.
///
/// # Errors
/// This process has none, or its memory cannot be read.
pub fn own_vdso() -> io::Result<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"));
    let range = line.and_then(|line| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let size = u64::from_str_radix(end, 16).ok()?.checked_sub(start)?;
        Some((start, usize::try_from(size.min(MOST_VDSO)).ok()?))
    });
    let (start, size) = range.ok_or_else(|| io::Error::other("this process has none"))?;
    let mut image = vec![0; size];
    Source::read_exact_at(&File::open("/proc/self/mem")?, &mut image, start)?;
    Ok(image)
}
