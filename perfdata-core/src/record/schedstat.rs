//! Records of `perf sched stats` (7.0): counters of the scheduler, as in /proc/schedstat
//! (tools/lib/perf/include/perf/event.h, schedstat-v15.h to schedstat-v17.h;
//! Documentation/scheduler/sched-stats.rst).

use crate::record::choice::choice;
use crate::wire::{ToEnd, wire};

wire! {
    /// Counters of a CPU (7.0).
    pub struct SchedstatCpu(layout) {
        /// Jiffies.
        pub timestamp: u64 => Ticks,
        /// CPU.
        pub cpu: u32 => Number,
        /// Version of the kernel's counters.
        pub version: u16 => Number,
        /// Reserved.
        pub pad: [u8; 2] as Pad,
        /// The counters.
        #[br(args_raw = (version, layout))]
        pub counters: CpuCounters,
    }
}

choice! {
    /// Counters of a CPU, by version.
    pub enum CpuCounters(version: u16, layout) {
        /// The same in all versions so far.
        15..=17 => V15(CpuCounters15),
        /// A version that this library does not know; probably words.
        _ => Unknown(ToEnd<u32> as Opaque) with (4,),
    }
}

wire! {
    /// Counters of a CPU, versions 15 to 17.
    pub struct CpuCounters15 {
        /// Calls of sched_yield.
        pub yld_count: u32 => Number,
        /// Switches of the active and the expired array; 0.
        pub array_exp: u32 => Number,
        /// Calls of schedule.
        pub sched_count: u32 => Number,
        /// Calls of schedule that left the CPU idle.
        pub sched_goidle: u32 => Number,
        /// Wake-ups.
        pub ttwu_count: u32 => Number,
        /// Wake-ups of a task on the waking CPU.
        pub ttwu_local: u32 => Number,
        /// Nanoseconds that tasks ran.
        pub rq_cpu_time: u64 => Number,
        /// Nanoseconds that tasks waited.
        pub run_delay: u64 => Number,
        /// Time slices.
        pub pcount: u64 => Number,
    }
}

wire! {
    /// Counters of a scheduling domain of a CPU (7.0).
    pub struct SchedstatDomain(layout) {
        /// Jiffies.
        pub timestamp: u64 => Ticks,
        /// CPU.
        pub cpu: u32 => Number,
        /// Version of the kernel's counters.
        pub version: u16 => Number,
        /// Level of the domain.
        pub domain: u16 => Number,
        /// The counters.
        #[br(args_raw = (version, layout))]
        pub counters: DomainCounters,
    }
}

choice! {
    /// Counters of a domain, by version.
    pub enum DomainCounters(version: u16, layout) {
        /// Before Linux 6.10.
        15 => V15(DomainCounters15),
        /// Linux 6.10 to 6.13.
        16 => V16(DomainCounters16),
        /// Since Linux 6.14.
        17 => V17(DomainCounters17),
        /// A version that this library does not know; probably words.
        _ => Unknown(ToEnd<u32> as Opaque) with (4,),
    }
}

wire! {
    /// Load balancing while the CPU was in one state, before version 17.
    pub struct LoadBalance {
        /// Calls of load_balance.
        pub count: u32 => Number,
        /// Calls that found the load balanced.
        pub balanced: u32 => Number,
        /// Calls that could move no task.
        pub failed: u32 => Number,
        /// Sum of imbalances.
        pub imbalance: u32 => Number,
        /// Tasks moved.
        pub gained: u32 => Number,
        /// Tasks moved although their cache was hot.
        pub hot_gained: u32 => Number,
        /// Calls that found no busier queue.
        pub nobusyq: u32 => Number,
        /// Calls that found no busier group.
        pub nobusyg: u32 => Number,
    }
}

wire! {
    /// Load balancing while the CPU was in one state, since version 17.
    pub struct LoadBalance17 {
        /// Calls of load_balance.
        pub count: u32 => Number,
        /// Calls that found the load balanced.
        pub balanced: u32 => Number,
        /// Calls that could move no task.
        pub failed: u32 => Number,
        /// Sum of imbalances in load.
        pub imbalance_load: u32 => Number,
        /// Sum of imbalances in utilization.
        pub imbalance_util: u32 => Number,
        /// Sum of imbalances in the number of tasks.
        pub imbalance_task: u32 => Number,
        /// Sum of imbalances from misfit tasks.
        pub imbalance_misfit: u32 => Number,
        /// Tasks moved.
        pub gained: u32 => Number,
        /// Tasks moved although their cache was hot.
        pub hot_gained: u32 => Number,
        /// Calls that found no busier queue.
        pub nobusyq: u32 => Number,
        /// Calls that found no busier group.
        pub nobusyg: u32 => Number,
    }
}

wire! {
    /// Active balancing: a running task pushed away.
    pub struct ActiveBalance {
        /// Calls.
        pub count: u32 => Number,
        /// Calls that could not push.
        pub failed: u32 => Number,
        /// Tasks pushed.
        pub pushed: u32 => Number,
    }
}

wire! {
    /// Balancing at exec or fork.
    pub struct StartBalance {
        /// Calls.
        pub count: u32 => Number,
        /// Calls that found the load balanced.
        pub balanced: u32 => Number,
        /// Tasks pushed.
        pub pushed: u32 => Number,
    }
}

wire! {
    /// Counters common to all versions.
    pub struct DomainCountersEnd {
        /// Active balancing.
        pub active: ActiveBalance,
        /// Balancing at exec.
        pub exec: StartBalance,
        /// Balancing at fork.
        pub fork: StartBalance,
        /// Wake-ups of a task that last ran on another CPU of the domain.
        pub ttwu_wake_remote: u32 => Number,
        /// Wake-ups that moved the task to the waking CPU because its cache was cold.
        pub ttwu_move_affine: u32 => Number,
        /// Wake-ups that moved the task to the waking CPU to balance the load.
        pub ttwu_move_balance: u32 => Number,
    }
}

wire! {
    /// Counters of a domain, version 15.
    pub struct DomainCounters15 {
        /// Balancing while idle.
        pub idle: LoadBalance,
        /// Balancing while busy.
        pub busy: LoadBalance,
        /// Balancing when becoming idle.
        pub newidle: LoadBalance,
        /// The other counters.
        pub other: DomainCountersEnd,
    }
}

wire! {
    /// Counters of a domain, version 16.
    pub struct DomainCounters16 {
        /// Balancing while busy.
        pub busy: LoadBalance,
        /// Balancing while idle.
        pub idle: LoadBalance,
        /// Balancing when becoming idle.
        pub newidle: LoadBalance,
        /// The other counters.
        pub other: DomainCountersEnd,
    }
}

wire! {
    /// Counters of a domain, version 17.
    pub struct DomainCounters17 {
        /// Balancing while busy.
        pub busy: LoadBalance17,
        /// Balancing while idle.
        pub idle: LoadBalance17,
        /// Balancing when becoming idle.
        pub newidle: LoadBalance17,
        /// The other counters.
        pub other: DomainCountersEnd,
    }
}
