//! Bit-fields by name.
//!
//! C allocates the fields of a word from the least significant bit on little-endian machines and
//! from the most significant bit on big-endian ones. A field of width `w` whose lowest bit is `o`
//! on a little-endian machine lies at `64 - o - w` (or `32 - o - w`) on a big-endian one; the
//! order of the bits inside the field is the same on both.

/// One bit-field: name, lowest bit on a little-endian machine, width in bits.
#[derive(Debug)]
pub struct Field(pub &'static str, pub u32, pub u32);

/// The flags word of `perf_event_attr`, include/uapi/linux/perf_event.h.
pub static ATTR_FLAGS: &[Field] = &[
    Field("disabled", 0, 1),
    Field("inherit", 1, 1),
    Field("pinned", 2, 1),
    Field("exclusive", 3, 1),
    Field("exclude_user", 4, 1),
    Field("exclude_kernel", 5, 1),
    Field("exclude_hv", 6, 1),
    Field("exclude_idle", 7, 1),
    Field("mmap", 8, 1),
    Field("comm", 9, 1),
    Field("freq", 10, 1),
    Field("inherit_stat", 11, 1),
    Field("enable_on_exec", 12, 1),
    Field("task", 13, 1),
    Field("watermark", 14, 1),
    Field("precise_ip", 15, 2),
    Field("mmap_data", 17, 1),
    Field("sample_id_all", 18, 1),
    Field("exclude_host", 19, 1),
    Field("exclude_guest", 20, 1),
    Field("exclude_callchain_kernel", 21, 1),
    Field("exclude_callchain_user", 22, 1),
    Field("mmap2", 23, 1),
    Field("comm_exec", 24, 1),
    Field("use_clockid", 25, 1),
    Field("context_switch", 26, 1),
    Field("write_backward", 27, 1),
    Field("namespaces", 28, 1),
    Field("ksymbol", 29, 1),
    Field("bpf_event", 30, 1),
    Field("aux_output", 31, 1),
    Field("cgroup", 32, 1),
    Field("text_poke", 33, 1),
    Field("build_id", 34, 1),
    Field("inherit_thread", 35, 1),
    Field("remove_on_exec", 36, 1),
    Field("sigtrap", 37, 1),
    Field("defer_callchain", 38, 1),
    Field("defer_output", 39, 1),
];

/// `perf_event_attr.aux_action`, include/uapi/linux/perf_event.h.
pub static AUX_ACTION: &[Field] = &[
    Field("aux_start_paused", 0, 1),
    Field("aux_pause", 1, 1),
    Field("aux_resume", 2, 1),
];

/// The third word of `perf_branch_entry`, include/uapi/linux/perf_event.h.
pub static BRANCH_FLAGS: &[Field] = &[
    Field("mispred", 0, 1),
    Field("predicted", 1, 1),
    Field("in_tx", 2, 1),
    Field("abort", 3, 1),
    Field("cycles", 4, 16),
    Field("type", 20, 4),
    Field("spec", 24, 2),
    Field("new_type", 26, 4),
    Field("priv", 30, 3),
];

/// The bit-field of `bpf_prog_info`, include/uapi/linux/bpf.h.
pub static BPF_PROG_FLAGS: &[Field] = &[Field("gpl_compatible", 0, 1)];

/// A word of bit-fields, held by name until the byte order is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    width: u32,
    /// Lowest bit, width and value of each field that was set.
    fields: Vec<(u32, u32, u64)>,
}

impl Bits {
    /// Returns a word of `width` bits with the given fields of `table` set. Each field is written
    /// as `name` (set to 1) or `name=value`; fields are separated by spaces.
    ///
    /// # Panics
    /// `table` does not contain the name, or the value does not fit into the field.
    pub fn new(width: u32, table: &[Field], text: &str) -> Self {
        let fields = text.split_whitespace().map(|word| {
            let (name, value) = word.split_once('=').unwrap_or((word, "1"));
            let Some(Field(_, at, wide)) = table.iter().find(|field| field.0 == name) else {
                panic!("no bit-field is called {name}");
            };
            let value: u64 = value.parse().expect("a decimal value");
            assert!(
                value >> wide == 0,
                "{name}={value} does not fit into {wide} bits"
            );
            (*at, *wide, value)
        });
        Bits {
            width,
            fields: fields.collect(),
        }
    }

    /// Returns the flags of an event attribute.
    pub fn attr_flags(text: &str) -> Self {
        Bits::new(64, ATTR_FLAGS, text)
    }

    /// Returns the action of an event on the AUX area.
    pub fn aux_action(text: &str) -> Self {
        Bits::new(32, AUX_ACTION, text)
    }

    /// Returns the flags of a branch stack entry.
    pub fn branch_flags(text: &str) -> Self {
        Bits::new(64, BRANCH_FLAGS, text)
    }

    /// Returns the flags of a BPF program.
    pub fn bpf_prog_flags(text: &str) -> Self {
        Bits::new(32, BPF_PROG_FLAGS, text)
    }

    /// Returns the width of the word in bits: 32 or 64.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the number that a machine of this byte order reads from the word.
    pub fn word(&self, big: bool) -> u64 {
        self.fields.iter().fold(0, |word, (at, wide, value)| {
            word | value << if big { self.width - at - wide } else { *at }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags words of two recordings with the same options, on x86-64 and on s390x.
    #[test]
    fn attr_flags_of_both_orders() {
        let flags = Bits::attr_flags(
            "disabled inherit mmap comm freq enable_on_exec task sample_id_all exclude_guest mmap2 comm_exec ksymbol \
             bpf_event",
        );
        assert_eq!(
            flags.word(false).to_le_bytes(),
            [0x03, 0x37, 0x94, 0x61, 0, 0, 0, 0]
        );
        assert_eq!(
            flags.word(true).to_be_bytes(),
            [0xc0, 0xec, 0x29, 0x86, 0, 0, 0, 0]
        );
    }

    #[test]
    fn a_field_of_several_bits_keeps_their_order() {
        let flags = Bits::attr_flags("precise_ip=1");
        assert_eq!(flags.word(false).to_le_bytes(), [0, 0x80, 0, 0, 0, 0, 0, 0]);
        assert_eq!(flags.word(true).to_be_bytes(), [0, 0, 0x80, 0, 0, 0, 0, 0]);
        let flags = Bits::branch_flags("cycles=1");
        assert_eq!(flags.word(false), 1 << 4);
        assert_eq!(flags.word(true), 1 << (64 - 4 - 16));
        let flags = Bits::aux_action("aux_resume");
        assert_eq!(flags.word(true), 1 << 29);
    }

    #[test]
    fn fields_do_not_overlap() {
        for (table, width) in [
            (ATTR_FLAGS, 64),
            (AUX_ACTION, 32),
            (BRANCH_FLAGS, 64),
            (BPF_PROG_FLAGS, 32),
        ] {
            let mut end = 0;
            for Field(name, at, wide) in table {
                assert!(*at >= end, "{name}");
                end = at + wide;
            }
            assert!(end <= width);
        }
    }

    #[test]
    #[should_panic(expected = "does not fit")]
    fn a_value_that_does_not_fit_is_refused() {
        Bits::attr_flags("precise_ip=4");
    }
}
