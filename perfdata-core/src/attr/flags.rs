//! The flags of an attribute, and the flags that select the content of samples
//! (include/uapi/linux/perf_event.h).

use crate::codes::{bitfield, flags};

flags! {
    /// Content of a SAMPLE, `enum perf_event_sample_format`.
    pub struct SampleType: u64 {
        since "2.6.31" {
            0 IP "IP", 1 TID "TID", 2 TIME "TIME", 3 ADDR "ADDR", 4 READ "READ", 5 CALLCHAIN "CALLCHAIN", 6 ID "ID",
            7 CPU "CPU", 8 PERIOD "PERIOD", 9 STREAM_ID "STREAM_ID", 10 RAW "RAW",
        }
        since "3.4" {
            11 BRANCH_STACK "BRANCH_STACK",
        }
        since "3.7" {
            12 REGS_USER "REGS_USER", 13 STACK_USER "STACK_USER",
        }
        since "3.10" {
            14 WEIGHT "WEIGHT", 15 DATA_SRC "DATA_SRC",
        }
        since "3.12" {
            16 IDENTIFIER "IDENTIFIER",
        }
        since "3.13" {
            17 TRANSACTION "TRANSACTION",
        }
        since "3.19" {
            18 REGS_INTR "REGS_INTR",
        }
        since "4.14" {
            19 PHYS_ADDR "PHYS_ADDR",
        }
        since "5.5" {
            20 AUX "AUX",
        }
        since "5.7" {
            21 CGROUP "CGROUP",
        }
        since "5.11" {
            22 DATA_PAGE_SIZE "DATA_PAGE_SIZE", 23 CODE_PAGE_SIZE "CODE_PAGE_SIZE",
        }
        since "5.12" {
            24 WEIGHT_STRUCT "WEIGHT_STRUCT",
        }
    }
}

flags! {
    /// Content of a read value, `enum perf_event_read_format`.
    pub struct ReadFormat: u64 {
        since "2.6.31" {
            0 TOTAL_TIME_ENABLED "TOTAL_TIME_ENABLED", 1 TOTAL_TIME_RUNNING "TOTAL_TIME_RUNNING", 2 ID "ID",
            3 GROUP "GROUP",
        }
        since "6.0" {
            4 LOST "LOST",
        }
    }
}

flags! {
    /// Selection and format of the branches in a branch stack, `enum perf_branch_sample_type`.
    pub struct BranchSampleType: u64 {
        since "3.4" {
            0 USER "USER", 1 KERNEL "KERNEL", 2 HV "HV", 3 ANY "ANY", 4 ANY_CALL "ANY_CALL",
            5 ANY_RETURN "ANY_RETURN", 6 IND_CALL "IND_CALL",
        }
        since "3.11" {
            7 ABORT_TX "ABORT_TX", 8 IN_TX "IN_TX", 9 NO_TX "NO_TX",
        }
        since "3.16" {
            10 COND "COND",
        }
        since "4.1" {
            11 CALL_STACK "CALL_STACK",
        }
        since "4.2" {
            12 IND_JUMP "IND_JUMP",
        }
        since "4.4" {
            13 CALL "CALL",
        }
        since "4.5" {
            14 NO_FLAGS "NO_FLAGS", 15 NO_CYCLES "NO_CYCLES",
        }
        since "4.14" {
            16 TYPE_SAVE "TYPE_SAVE",
        }
        since "5.7" {
            17 HW_INDEX "HW_INDEX",
        }
        since "6.1" {
            18 PRIV_SAVE "PRIV_SAVE",
        }
        since "6.8" {
            19 COUNTERS "COUNTERS",
        }
    }
}

bitfield! {
    /// The flags word of an attribute (byte 40), in little-endian bit numbering for both byte
    /// orders.
    pub struct AttrFlags: mirrored u64 {
        /// The event starts disabled.
        disabled with_disabled 0 1 since "2.6.31",
        /// Children inherit the event.
        inherit with_inherit 1 1 since "2.6.31",
        /// Must always be on the PMU.
        pinned with_pinned 2 1 since "2.6.31",
        /// Its group must be the only one on the PMU.
        exclusive with_exclusive 3 1 since "2.6.31",
        /// Does not count user space.
        exclude_user with_exclude_user 4 1 since "2.6.31",
        /// Does not count the kernel.
        exclude_kernel with_exclude_kernel 5 1 since "2.6.31",
        /// Does not count the hypervisor.
        exclude_hv with_exclude_hv 6 1 since "2.6.31",
        /// Does not count while idle.
        exclude_idle with_exclude_idle 7 1 since "2.6.31",
        /// Writes MMAP records for executable mappings.
        mmap with_mmap 8 1 since "2.6.31",
        /// Writes COMM records.
        comm with_comm 9 1 since "2.6.31",
        /// `sample_period` is a frequency in Hz.
        freq with_freq 10 1 since "2.6.31",
        /// Counts per task.
        inherit_stat with_inherit_stat 11 1 since "2.6.31",
        /// exec enables the event.
        enable_on_exec with_enable_on_exec 12 1 since "2.6.31",
        /// Writes FORK and EXIT records.
        task with_task 13 1 since "2.6.31",
        /// `wakeup` is a number of bytes instead of events.
        watermark with_watermark 14 1 since "2.6.32",
        /// Permitted skid of the sampled address: from 0 (arbitrary) to 3 (none).
        precise_ip with_precise_ip 15 2 since "2.6.35",
        /// Also writes MMAP records for data mappings.
        mmap_data with_mmap_data 17 1 since "2.6.36",
        /// Kernel records other than SAMPLE end with a `sample_id` trailer.
        sample_id_all with_sample_id_all 18 1 since "2.6.38",
        /// Does not count the host.
        exclude_host with_exclude_host 19 1 since "3.2",
        /// Does not count guests.
        exclude_guest with_exclude_guest 20 1 since "3.2",
        /// Callchains without the kernel part.
        exclude_callchain_kernel with_exclude_callchain_kernel 21 1 since "3.7",
        /// Callchains without the user part.
        exclude_callchain_user with_exclude_callchain_user 22 1 since "3.7",
        /// Writes MMAP2 instead of MMAP records.
        mmap2 with_mmap2 23 1 since "3.16",
        /// COMM records caused by exec are marked.
        comm_exec with_comm_exec 24 1 since "3.16",
        /// `clockid` selects the clock of the times.
        use_clockid with_use_clockid 25 1 since "4.1",
        /// Writes SWITCH records.
        context_switch with_context_switch 26 1 since "4.3",
        /// The kernel writes the ring buffer from end to start.
        write_backward with_write_backward 27 1 since "4.7",
        /// Writes NAMESPACES records.
        namespaces with_namespaces 28 1 since "4.12",
        /// Writes KSYMBOL records.
        ksymbol with_ksymbol 29 1 since "5.1",
        /// Writes BPF_EVENT records.
        bpf_event with_bpf_event 30 1 since "5.1",
        /// The event writes its data to the AUX event.
        aux_output with_aux_output 31 1 since "5.4",
        /// Writes CGROUP records.
        cgroup with_cgroup 32 1 since "5.7",
        /// Writes TEXT_POKE records.
        text_poke with_text_poke 33 1 since "5.9",
        /// MMAP2 records contain build IDs.
        build_id with_build_id 34 1 since "5.12",
        /// Only threads inherit the event.
        inherit_thread with_inherit_thread 35 1 since "5.13",
        /// exec removes the event.
        remove_on_exec with_remove_on_exec 36 1 since "5.13",
        /// An overflow raises SIGTRAP.
        sigtrap with_sigtrap 37 1 since "5.13",
        /// User callchains follow later, in CALLCHAIN_DEFERRED records.
        defer_callchain with_defer_callchain 38 1 since "6.19",
        /// This event writes the deferred callchains.
        defer_output with_defer_output 39 1 since "6.19",
    }
}

bitfield! {
    /// Effect of an event on the AUX trace (byte 116, since 6.13).
    pub struct AuxAction: mirrored u32 {
        /// The trace starts paused.
        aux_start_paused with_aux_start_paused 0 1 since "6.13",
        /// Pauses the trace.
        aux_pause with_aux_pause 1 1 since "6.13",
        /// Resumes the trace.
        aux_resume with_aux_resume 2 1 since "6.13",
    }
}
