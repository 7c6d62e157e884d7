//! SAMPLE records: each field in each of its forms, and several fields together.

use super::attr::{Attr, sample_type};
use super::buf::island;
use super::kind;
use super::record::{Case, Scribe, misc};
use super::sample::{BranchStack, Regs, Sample, Stack, branch_sample_type, context, read_format};

impl Scribe {
    /// Writes a rich sample of the current attribute, modified by `edit`.
    pub fn sample(&mut self, name: &str, edit: impl FnOnce(&mut Sample)) -> &mut Case {
        self.sample_in(name, misc::USER, edit)
    }

    /// Does the same as [`sample`](Scribe::sample), with the given misc word.
    pub fn sample_in(
        &mut self,
        name: &str,
        misc: u16,
        edit: impl FnOnce(&mut Sample),
    ) -> &mut Case {
        let mut sample = Sample::rich(&self.stamp, &self.attr);
        edit(&mut sample);
        self.stamp.time += self.tick;
        let attr = self.attr.clone();
        self.user(&format!("SAMPLE {name}"), kind::SAMPLE, misc, |b| {
            sample.put(b, &attr)
        })
    }
}

/// Returns an attribute that samples `bits`, with the masks and formats that they require.
pub fn attr(bits: u64) -> Attr {
    Attr {
        branch_sample_type: branch_sample_type::USER | branch_sample_type::ANY,
        sample_regs_user: 0xff_0001,
        sample_regs_intr: 0x0187,
        sample_stack_user: 24,
        read_format: read_format::ID | read_format::LOST,
        ..Attr::new(bits, "sample_id_all")
    }
}

/// The fields that nearly every sample has.
const USUAL: u64 = sample_type::IDENTIFIER
    | sample_type::IP
    | sample_type::TID
    | sample_type::TIME
    | sample_type::CPU
    | sample_type::PERIOD;

/// Writes every field alone, every form of every field, and several fields together.
pub fn cases(s: &mut Scribe) {
    for bit in 0..=24 {
        s.attr = attr(1 << bit);
        s.sample(&format!("bit {bit} alone"), |_| ());
    }
    s.attr = attr(0);
    s.sample("no parts", |_| ());
    modes(s);
    reads(s);
    callchains(s);
    raws(s);
    branches(s);
    machine_state(s);
    together(s);
}

fn modes(s: &mut Scribe) {
    s.attr = attr(USUAL);
    const EXACT_IP: u16 = 1 << 14;
    let modes = [
        0,
        misc::KERNEL,
        misc::HYPERVISOR,
        misc::GUEST_KERNEL,
        misc::GUEST_USER,
    ];
    for mode in modes {
        s.sample_in(&format!("cpumode {mode}"), mode | EXACT_IP, |_| ());
    }
}

fn reads(s: &mut Scribe) {
    s.attr = attr(USUAL | sample_type::READ);
    for read_format in 0..32 {
        s.attr.read_format = read_format;
        s.sample(&format!("READ, format {read_format:#x}"), |_| ());
    }
    s.attr.read_format = 0x1f;
    s.sample("READ, empty group", |sample| sample.read.values.clear());
}

fn callchains(s: &mut Scribe) {
    use context::*;
    s.attr = attr(USUAL | sample_type::CALLCHAIN);
    s.sample("CALLCHAIN empty", |sample| sample.callchain.clear());
    s.sample("CALLCHAIN every context", |sample| {
        sample.callchain = vec![
            HV,
            1,
            KERNEL,
            2,
            USER,
            3,
            GUEST,
            4,
            GUEST_KERNEL,
            5,
            GUEST_USER,
        ];
    });
    s.attr.flags += " defer_callchain";
    s.sample("CALLCHAIN deferred", |sample| {
        sample.callchain = vec![KERNEL, 0xffff_ffff_8112_3456, USER_DEFERRED, 0x1_0000_0007];
    });
}

fn raws(s: &mut Scribe) {
    s.attr = attr(USUAL | sample_type::RAW);
    s.sample("RAW of 4, none", |sample| sample.raw = vec![0; 4]);
    s.sample("RAW of 60", |sample| sample.raw = island(60));
    s.attr = attr(USUAL | sample_type::RAW | sample_type::REGS_USER | sample_type::AUX);
    s.sample("RAW before other parts", |sample| sample.raw = island(20));
}

fn branches(s: &mut Scribe) {
    use branch_sample_type::*;
    use sample_type::{AUX, BRANCH_STACK, REGS_USER, STACK_USER};
    s.attr = attr(USUAL | BRANCH_STACK);
    s.sample("BRANCH_STACK empty", |sample| {
        sample.branch_stack.entries.clear()
    });
    for (name, bits) in [
        ("", 0),
        (" before other parts", REGS_USER | STACK_USER | AUX),
    ] {
        s.attr = attr(USUAL | BRANCH_STACK | bits);
        s.attr.branch_sample_type |= HW_INDEX;
        s.sample(&format!("BRANCH_STACK hw_idx{name}"), |_| ());
        s.sample(&format!("BRANCH_STACK hw_idx but empty{name}"), |sample| {
            sample.branch_stack.entries.clear();
        });
        s.sample(
            &format!("BRANCH_STACK none, without hw_idx{name}"),
            |sample| {
                sample.branch_stack = BranchStack::default();
            },
        );
        s.attr.branch_sample_type |= COUNTERS;
        s.sample(&format!("BRANCH_STACK hw_idx and counters{name}"), |_| ());
        s.attr.branch_sample_type &= !HW_INDEX;
        s.sample(&format!("BRANCH_STACK counters{name}"), |_| ());
        s.attr.branch_sample_type &= !COUNTERS;
        s.sample(
            &format!("BRANCH_STACK counters of the group's leader{name}"),
            |sample| {
                sample.branch_stack.counters = vec![1, 2, 3];
            },
        );
    }
}

fn machine_state(s: &mut Scribe) {
    use sample_type::*;
    s.attr = attr(USUAL | REGS_USER | STACK_USER | REGS_INTR);
    s.sample("REGS 64-bit, STACK", |_| ());
    s.sample("REGS 32-bit", |sample| {
        (sample.regs_user.abi, sample.regs_intr.abi) = (1, 1);
    });
    s.sample("REGS none, STACK none", |sample| {
        (sample.regs_user, sample.regs_intr) = (Regs::default(), Regs::default());
        sample.stack_user = Stack::default();
    });
    s.sample("STACK of 8 KiB, nothing real", |sample| {
        sample.stack_user = Stack {
            data: island(8192),
            dyn_size: 0,
        };
    });
    s.attr = attr(USUAL | AUX);
    s.sample("AUX empty", |sample| sample.aux.clear());
}

fn together(s: &mut Scribe) {
    use sample_type::*;
    const ALL: u64 = (1 << 25) - 1;
    s.attr = attr(ALL & !WEIGHT_STRUCT);
    s.sample("every part, WEIGHT", |_| ());
    s.attr = attr(ALL & !WEIGHT);
    s.attr.branch_sample_type |= branch_sample_type::HW_INDEX;
    s.attr.read_format = 0x1f;
    s.sample("every part, WEIGHT_STRUCT", |_| ());
    s.attr = attr(IP | TID | TIME | ID | CPU | PERIOD);
    s.sample("of before 3.12", |_| ());
    s.attr = attr(USUAL | ADDR | WEIGHT_STRUCT | DATA_SRC | PHYS_ADDR | DATA_PAGE_SIZE);
    s.sample("of perf mem", |_| ());
}
