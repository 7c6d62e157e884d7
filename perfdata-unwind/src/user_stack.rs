//! What a sample contains of its user stack, and what became of it.

use std::collections::HashMap;

use perfdata_core::attr::{Attr, SampleType};
use perfdata_core::record::{Registers, RegsAbi, Sample, SampleView, UserParts};

use crate::{End, Machine, Task};

/// Bytes of a word.
const WORD: usize = 8;

/// Returns whether the samples of an event have callchains whose user part can be unwound: the parts
/// CALLCHAIN, REGS_USER and STACK_USER.
pub fn has_user_stacks(attr: &Attr) -> bool {
    [
        SampleType::CALLCHAIN,
        SampleType::REGS_USER,
        SampleType::STACK_USER,
    ]
    .into_iter()
    .all(|part| attr.sample_type.has(part))
}

/// The copy of the user stack in a sample. The registers are in a separate buffer.
#[derive(Debug, Clone, Copy)]
pub struct UserStack<'a> {
    abi: RegsAbi,
    mask: u64,
    stack: &'a [u8],
}

impl<'a> UserStack<'a> {
    /// Returns the user stack in `bytes`, a sample with these `parts`, and replaces the contents of
    /// `registers` by its registers, which are those in `mask`.
    pub fn of_view(
        view: &SampleView<'_>,
        parts: &UserParts,
        bytes: &'a [u8],
        mask: u64,
        registers: &mut Vec<u64>,
    ) -> Self {
        let mut words = view.words_at(parts.regs.clone());
        let abi = RegsAbi(words.next().unwrap_or(0));
        registers.clear();
        registers.extend(words);
        let mut words = view.words_at(parts.stack.clone());
        let size = words.next().unwrap_or(0);
        let copied = words.next_back().unwrap_or(0).min(size);
        let copied = usize::try_from(copied).unwrap_or(usize::MAX);
        let start = parts.stack.start.saturating_add(WORD);
        let stack = bytes.get(start..start.saturating_add(copied));
        UserStack {
            abi,
            mask,
            stack: stack.unwrap_or_default(),
        }
    }

    /// As [`of_view`](Self::of_view), for a decoded sample.
    pub fn of_decoded(sample: &'a Sample, mask: u64, registers: &mut Vec<u64>) -> Self {
        let regs = sample.regs_user.as_ref();
        registers.clear();
        registers.extend(regs.iter().flat_map(|regs| regs.regs.iter()));
        let stack = sample.stack_user.as_ref();
        let copied = stack.and_then(|stack| stack.dyn_size).unwrap_or(0);
        let data = stack.map_or([].as_slice(), |stack| stack.data.0.as_slice());
        let copied = usize::try_from(copied).unwrap_or(usize::MAX);
        UserStack {
            abi: regs.map_or(RegsAbi::NONE, |regs| regs.abi),
            mask,
            stack: data.get(..copied.min(data.len())).unwrap_or_default(),
        }
    }

    /// Returns whether the copy is empty, as during the start of a new program.
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    /// Returns the task with this stack and these values of its registers. `registers` are those of
    /// the recording's machine.
    ///
    /// # Errors
    /// The reason why the stack cannot be unwound.
    pub fn task(self, registers: &Registers, values: &'a [u64]) -> Result<Task<'a>, Outcome> {
        if self.abi == RegsAbi::NONE {
            return Err(Outcome::NoRegisters);
        }
        let machine = Machine::of(registers, self.abi).ok_or(Outcome::Machine)?;
        Ok(Task {
            machine,
            mask: self.mask,
            registers: values,
            stack: self.stack,
        })
    }
}

/// What became of the user stack of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// It has no user registers: the task was a thread of the kernel, or its memory was gone.
    NoRegisters,
    /// Its callchain has no room for another frame.
    Full,
    /// Stacks of this kind of machine cannot be unwound.
    Machine,
    /// The recording does not contain its architecture, which says what the registers mean.
    UnknownMachine,
    /// Its user callchain was unwound, and ends for this reason.
    Unwound(End),
}

/// The numbers of samples by what became of their user stacks.
#[derive(Debug, Clone, Default)]
pub struct Outcomes(HashMap<Outcome, u64>);

impl Outcomes {
    /// Counts a sample.
    pub fn add(&mut self, outcome: Outcome) {
        let count = self.0.entry(outcome).or_default();
        *count = count.saturating_add(1);
    }

    /// Returns the number of samples with this outcome.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.0.get(&outcome).copied().unwrap_or(0)
    }

    /// Returns why user callchains end, with their numbers, in no particular order.
    pub fn ends(&self) -> impl Iterator<Item = (End, u64)> {
        self.0.iter().filter_map(|(outcome, count)| match outcome {
            Outcome::Unwound(end) => Some((*end, *count)),
            _ => None,
        })
    }

    /// Returns the number of user callchains that were unwound.
    pub fn unwound(&self) -> u64 {
        self.ends()
            .fold(0, |sum, (_, count)| sum.saturating_add(count))
    }
}
