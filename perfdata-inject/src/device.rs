//! Numbers of devices.

/// Returns major and minor number of a device of Linux, as MMAP2 records contain them
/// (include/linux/kdev_t.h, `new_decode_dev`, and its extension to 64 bits in glibc).
pub(super) fn device(dev: u64) -> (u32, u32) {
    let major = (dev >> 8 & 0xfff) | (dev >> 32 & 0xffff_f000);
    let minor = (dev & 0xff) | (dev >> 12 & 0xffff_ff00);
    (major as u32, minor as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_divided() {
        assert_eq!(device(0x1b), (0, 0x1b));
        assert_eq!(device(0x801), (8, 1));
        assert_eq!(device(0x12_3456_7abc), (0x67a, 0x0123_45bc));
    }
}
