//! All conditions that determine the layout of a record or section, in one `Copy` value.

use crate::attr::{Attr, BranchSampleType, ReadFormat, SampleType};
use crate::record::{Mmap2, RawRecord, RecordType};
use crate::setters::setters;

/// The conditions under which a structure is read. Every structure with optional parts imports it,
/// so that the tables of records and features need no arguments of their own.
///
/// For a record, it follows from the record's attribute ([`DecodeContext::of_attr`]) and header;
/// for a feature section, from its length and from the sections before it.
///
/// It gets a new field with each new condition, so it is made from [`default`](Self::default) or
/// [`of_attr`](Self::of_attr).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DecodeContext {
    /// The parts of a SAMPLE, and the words of the `sample_id` trailer.
    pub sample_type: SampleType,
    /// The words of a read value.
    pub read_format: ReadFormat,
    /// The mask of user registers, one u64 in a sample for each set bit.
    pub sample_regs_user: u64,
    /// The mask of registers at the interrupt.
    pub sample_regs_intr: u64,
    /// The mask of the registers that are read next: one of the two masks above.
    pub regs: u64,
    /// Whether kernel records other than SAMPLE end with a trailer.
    pub sample_id_all: bool,
    /// The words of a branch stack other than its entries.
    pub branch_form: BranchForm,
    /// The record header's `misc` word.
    pub misc: u16,
    /// Length in bytes of the data that are read with this layout: record body without trailer, or
    /// section.
    pub len: u64,
    /// Space in bytes for one attribute if the container specifies it; 0 if only the attribute's
    /// own `size` does.
    pub attr_room: u32,
    /// NRCPUS.available, on which CPU_TOPOLOGY depends.
    pub nr_cpus_available: u32,
    /// Whether build IDs lack the process ID, as before 2.6.35.
    pub build_id_without_pid: bool,
    /// Whether an MMAP2 record has its name in place of `prot` and `flags`.
    pub mmap2_without_protection: bool,
    /// Whether the attribute requests build IDs in MMAP2 records (`attr.build_id`).
    pub requests_build_ids: bool,
    /// Whether an MMAP2 record identifies its file by a build ID instead of an inode.
    pub mmap2_with_build_id: bool,
}

/// The words of a branch stack whose presence no count indicates. The attribute specifies the
/// expected words, but the kernel writes only `nr = 0` if it has no stack, and counters if *any*
/// event of the group requests them (kernel/events/core.c, perf_output_sample). Therefore the
/// record's size decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BranchForm {
    /// `hw_idx` after `nr` (5.7).
    pub hw_idx: bool,
    /// A u64 of counters for each entry, after the entries (6.8).
    pub counters: bool,
}

impl BranchForm {
    /// Returns all forms: the form in the attribute, and what differs in the counters, first.
    pub fn candidates(self) -> [BranchForm; 4] {
        let other = |hw_idx, counters| BranchForm {
            hw_idx: self.hw_idx ^ hw_idx,
            counters: self.counters ^ counters,
        };
        [
            self,
            other(false, true),
            other(true, false),
            other(true, true),
        ]
    }
}

setters! {
    DecodeContext {
        sample_type: SampleType => with_sample_type,
        read_format: ReadFormat => with_read_format,
        sample_regs_user: u64 => with_sample_regs_user,
        sample_regs_intr: u64 => with_sample_regs_intr,
        regs: u64 => with_regs,
        sample_id_all: bool => with_sample_id_all,
        branch_form: BranchForm => with_branch_form,
        misc: u16 => with_misc,
        len: u64 => with_len,
        attr_room: u32 => with_attr_room,
        nr_cpus_available: u32 => with_nr_cpus_available,
        build_id_without_pid: bool => with_build_id_without_pid,
        mmap2_without_protection: bool => with_mmap2_without_protection,
        requests_build_ids: bool => with_requests_build_ids,
        mmap2_with_build_id: bool => with_mmap2_with_build_id,
    }
}

impl DecodeContext {
    /// Returns the layout of records that belong to `attr`.
    pub fn of_attr(attr: &Attr) -> Self {
        DecodeContext {
            sample_type: attr.sample_type,
            read_format: attr.read_format,
            branch_form: BranchForm {
                hw_idx: attr
                    .branch_sample_type
                    .unwrap_or_default()
                    .has(BranchSampleType::HW_INDEX),
                counters: attr
                    .branch_sample_type
                    .unwrap_or_default()
                    .has(BranchSampleType::COUNTERS),
            },
            sample_regs_user: attr.sample_regs_user.unwrap_or(0),
            sample_regs_intr: attr.sample_regs_intr.unwrap_or(0),
            sample_id_all: attr.flags.sample_id_all() != 0,
            requests_build_ids: attr.flags.build_id() != 0,
            ..DecodeContext::default()
        }
    }

    /// Returns the layout of `body`, that of `raw` without the trailer, for which this is the layout
    /// of the event.
    pub(crate) fn of_body(&self, raw: &RawRecord<'_>, body: &[u8]) -> Self {
        DecodeContext {
            misc: raw.misc,
            len: body.len() as u64,
            mmap2_without_protection: raw.kind == RecordType::MMAP2
                && Mmap2::lacks_protection(body),
            mmap2_with_build_id: Mmap2::has_build_id(raw, self.requests_build_ids),
            ..*self
        }
    }

    /// Returns the size in bytes of the `sample_id` trailer at the end of a kernel record other
    /// than SAMPLE.
    pub fn trailer_len(&self) -> usize {
        if self.sample_id_all {
            crate::record::SampleId::len(self.sample_type)
        } else {
            0
        }
    }
}
