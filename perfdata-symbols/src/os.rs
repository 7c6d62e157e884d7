//! What the systems of Unix know about files and clocks, and others do not.

use std::fs::Metadata;
use std::time::Duration;

#[cfg(unix)]
use std::os::unix::fs::MetadataExt;

/// Returns the inode of a file; `None` on a system without inodes.
#[cfg(unix)]
pub fn inode(meta: &Metadata) -> Option<u64> {
    Some(meta.ino())
}

#[cfg(not(unix))]
pub fn inode(_: &Metadata) -> Option<u64> {
    None
}

/// Returns the major and minor number of the device of a file, and its inode; `None` on a system
/// without them.
#[cfg(unix)]
pub fn device_and_inode(meta: &Metadata) -> Option<((u32, u32), u64)> {
    let device = meta.dev();
    let device = (rustix::fs::major(device), rustix::fs::minor(device));
    Some((device, meta.ino()))
}

#[cfg(not(unix))]
pub fn device_and_inode(_: &Metadata) -> Option<((u32, u32), u64)> {
    None
}

/// A clock that counts since this machine was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    Monotonic,
    MonotonicRaw,
    Boottime,
}

impl Clock {
    /// Returns the time on this clock; `None` on a system without it.
    #[cfg(target_os = "linux")]
    pub fn now(self) -> Option<Duration> {
        use rustix::time::{ClockId, clock_gettime};

        let now = clock_gettime(match self {
            Clock::Monotonic => ClockId::Monotonic,
            Clock::MonotonicRaw => ClockId::MonotonicRaw,
            Clock::Boottime => ClockId::Boottime,
        });
        Some(Duration::new(
            u64::try_from(now.tv_sec).ok()?,
            u32::try_from(now.tv_nsec).ok()?,
        ))
    }

    #[cfg(not(target_os = "linux"))]
    pub fn now(self) -> Option<Duration> {
        None
    }
}

/// Returns whether a file belongs to root or to the user of this process. Without users that have
/// numbers, every file does.
#[cfg(unix)]
pub fn is_own(meta: &Metadata) -> bool {
    meta.uid() == 0 || meta.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
pub fn is_own(_: &Metadata) -> bool {
    true
}
