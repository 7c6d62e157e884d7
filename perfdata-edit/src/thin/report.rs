//! What thinning changed, in numbers.

use perfdata_core::Events;
use perfdata_core::attr::{BranchSampleType, SampleType};
use perfdata_core::record::StackUser;

use super::StackSize;
use super::parts::list;
use perfdata_convert::count::number_of;

/// The numbers of changed records, and the bytes by which they became smaller.
#[derive(Debug, Default)]
pub(super) struct ThinningReport {
    callchains: Cut,
    deferred: Cut,
    stacks: Cut,
    samples: Cut,
    others: Cut,
    /// The parts that are omitted and that an event has.
    parts: SampleType,
    /// Whether there are callchains and user stacks, and whether the branch stack of an event is
    /// part of its callchain.
    has_chains: bool,
    has_stacks: bool,
    has_branch_chains: bool,
}

/// A kind of change: how many there are, and the bytes that they save.
#[derive(Debug, Default)]
struct Cut {
    count: u64,
    bytes: u64,
}

impl Cut {
    fn add(&mut self, before: usize, after: usize) {
        let less = before.saturating_sub(after) as u64;
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(less);
    }

    /// Returns the number, and the number of bytes.
    fn text(&self, what: &str) -> String {
        number_of(self.count, what)
    }

    fn less(&self) -> String {
        format!("{} less", number_of(self.bytes, "byte"))
    }
}

impl ThinningReport {
    /// Learns the original events of which the `dropped` parts are omitted.
    pub(super) fn set_events(&mut self, events: &Events, dropped: SampleType) {
        for event in events.iter() {
            let has = |part| event.attr.sample_type.has(part) && !dropped.has(part);
            let kinds = event.attr.branch_sample_type.unwrap_or_default();
            self.parts.0 |= event.attr.sample_type.0 & dropped.0;
            self.has_chains |= has(SampleType::CALLCHAIN);
            self.has_stacks |= has(SampleType::STACK_USER);
            self.has_branch_chains |=
                has(SampleType::BRANCH_STACK) && kinds.has(BranchSampleType::CALL_STACK);
        }
    }

    /// Counts a callchain that has `after` of `before` words.
    pub(super) fn callchain(&mut self, before: usize, after: usize) {
        self.callchains
            .add(before.saturating_mul(8), after.saturating_mul(8));
    }

    /// Counts a deferred callchain that lost `words`.
    pub(super) fn deferred(&mut self, words: usize) {
        self.deferred.add(words.saturating_mul(8), 0);
    }

    /// Counts a user stack that had `before` bytes.
    pub(super) fn stack(&mut self, before: usize, stack: &StackUser) {
        // Without data, there is no `dyn_size`.
        let size = if stack.dyn_size.is_some() { 8 } else { 0 };
        self.stacks.add(
            before.saturating_add(8),
            stack.data.0.len().saturating_add(size),
        );
    }

    /// Counts a sample without some of its parts, of whose size `cut` bytes are counted elsewhere.
    pub(super) fn sample(&mut self, before: usize, after: usize, cut: u64) {
        self.samples.add(before, after);
        self.samples.bytes = self.samples.bytes.saturating_sub(cut);
    }

    /// Counts another record that became smaller.
    pub(super) fn other(&mut self, before: usize, after: usize) {
        self.others.add(before, after);
    }

    /// Returns the bytes that are counted for callchains and user stacks.
    pub(super) fn cut(&self) -> u64 {
        self.callchains.bytes.saturating_add(self.stacks.bytes)
    }

    /// Returns the notes.
    pub(super) fn notes(
        &self,
        max_stack: Option<u32>,
        stack_size: Option<StackSize>,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(frames) = max_stack {
            self.add_callchains(frames, &mut notes);
        }
        match stack_size {
            None => {}
            Some(_) if !self.has_stacks && !self.parts.has(SampleType::STACK_USER) => {
                notes.push("no event has user stacks".into());
            }
            Some(_) if !self.has_stacks => {}
            Some(StackSize::Dumped) => notes.push(format!(
                "{} cut to the bytes that the kernel copied: {}",
                self.stacks.text("user stack"),
                self.stacks.less()
            )),
            Some(StackSize::AtMost(bytes)) => notes.push(format!(
                "{} cut to at most {}: {}",
                self.stacks.text("user stack"),
                number_of(u64::from(bytes), "byte"),
                self.stacks.less()
            )),
        }
        if self.parts.0 != 0 {
            notes.push(format!(
                "omitted {} from {}: {}",
                list(self.parts),
                self.samples.text("sample"),
                self.samples.less()
            ));
        }
        if self.others.count > 0 && self.parts.0 != 0 {
            notes.push(format!(
                "omitted the same from {}: {}",
                self.others.text("other record"),
                self.others.less()
            ));
        }
        notes
    }

    fn add_callchains(&self, frames: u32, notes: &mut Vec<String>) {
        if !self.has_chains {
            notes.push("no event has callchains".into());
            return;
        }
        let frames = number_of(u64::from(frames), "frame");
        notes.push(format!(
            "{} cut to {frames}: {}",
            self.callchains.text("callchain"),
            self.callchains.less()
        ));
        if self.deferred.count > 0 {
            notes.push(format!(
                "{} cut to the frames that samples show: {}",
                self.deferred.text("deferred callchain"),
                self.deferred.less()
            ));
        }
        if self.has_stacks {
            notes.push(format!(
                "frames that are unwound from user stacks are not in the callchains: they are not limited to {frames}"
            ));
        }
        if self.has_branch_chains {
            notes.push(format!(
                "branch stacks that continue callchains stay whole: they are not limited to {frames}"
            ));
        }
    }
}
