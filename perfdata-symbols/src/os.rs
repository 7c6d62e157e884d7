//! What the file systems of Unix know about files, and others do not.

use std::fs::Metadata;

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
