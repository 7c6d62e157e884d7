//! What a branch does to the stack of calls, and stacks of calls and branches by thread
//! (tools/perf/util/thread-stack.c).

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use perfdata_core::record::{BranchEntry, BranchFlags, BranchStack, CallchainContext};
use perfdata_core::wire::List;
use perfdata_intel_pt::{EventKinds, InstructionKind, TraceEvent};

/// What a branch is (`PERF_IP_FLAG_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Flow {
    pub(super) is_call: bool,
    pub(super) is_return: bool,
    /// An interrupt or exception.
    pub(super) is_asynchronous: bool,
    pub(super) begins: bool,
    pub(super) ends: bool,
    /// Size of the instruction, 0 if it is no call of an instruction.
    size: u64,
}

impl Flow {
    #[inline]
    pub(super) fn of(event: &TraceEvent) -> Self {
        let mut flow = Flow::default();
        if event.is_abort {
        } else if event.is_asynchronous {
            flow.is_asynchronous = true;
            match event.to {
                0 => flow.ends = true,
                _ => flow.is_call = true,
            }
        } else {
            if event.from == 0 {
                flow.begins = true;
            } else {
                (flow.is_call, flow.is_return) = kind(event);
            }
            flow.size = event.instruction.map_or(0, |found| found.size as u64);
        }
        flow.begins |= event.kinds.has(EventKinds::TRACE_BEGIN);
        flow.ends |= event.kinds.has(EventKinds::TRACE_END);
        flow
    }
}

fn kind(event: &TraceEvent) -> (bool, bool) {
    let Some(instruction) = event.instruction else {
        return (false, false);
    };
    let is_call = matches!(
        instruction.kind,
        InstructionKind::Call
            | InstructionKind::IndirectCall
            | InstructionKind::Interrupt
            | InstructionKind::SystemCall
            | InstructionKind::VirtualMachine
    );
    let is_return = matches!(
        instruction.kind,
        InstructionKind::Return | InstructionKind::InterruptReturn | InstructionKind::SystemReturn
    );
    (is_call, is_return)
}

/// Maximum number of calls of a thread. The outermost ones are forgotten: perf prints no more than
/// 1024.
const MAX_CALLS: usize = 1 << 12;

/// An open call.
#[derive(Debug, Clone, Copy)]
struct OpenCall {
    return_to: u64,
    /// Whether tracing ended with it.
    ends: bool,
}

/// The stacks of a thread.
#[derive(Debug, Default)]
struct Stack {
    /// The number of the part of the trace.
    part: u64,
    calls: Vec<OpenCall>,
    /// The newest first.
    branches: VecDeque<BranchEntry>,
}

/// A thread, or the idle thread of a CPU.
type ThreadKey = (u32, u32);

/// Where the stack of a queue's thread was last.
#[derive(Debug, Clone, Copy)]
pub(super) struct StackPlace {
    key: ThreadKey,
    index: usize,
}

/// The stacks of all threads.
#[derive(Debug)]
pub(super) struct Stacks {
    stacks: Vec<Stack>,
    by_thread: HashMap<ThreadKey, usize, RandomState>,
    /// Approximate memory in bytes.
    held: usize,
    /// Sizes of callchains and branch stacks.
    callchain: Option<usize>,
    branches: Option<usize>,
}

impl Stacks {
    pub(super) fn new(callchain: Option<u32>, branches: Option<u32>) -> Self {
        let size = |size: u32| usize::try_from(size).unwrap_or(usize::MAX);
        Stacks {
            stacks: Vec::new(),
            by_thread: HashMap::default(),
            held: 0,
            callchain: callchain.map(size),
            branches: branches.map(size),
        }
    }

    pub(super) fn are_wanted(&self) -> bool {
        self.callchain.is_some() || self.branches.is_some()
    }

    /// Returns the approximate memory in bytes.
    #[inline]
    pub(super) fn held(&self) -> usize {
        self.held
    }

    fn key(tid: u32, cpu: u32) -> ThreadKey {
        match tid {
            0 => (0, cpu),
            tid => (tid, 0),
        }
    }

    /// Returns the stack of a thread, which is new if there was none.
    #[inline]
    fn stack(&mut self, key: ThreadKey, last: &mut Option<StackPlace>) -> Option<&mut Stack> {
        if let Some(place) = last.filter(|place| place.key == key) {
            return self.stacks.get_mut(place.index);
        }
        let next = self.stacks.len();
        let index = *self.by_thread.entry(key).or_insert(next);
        *last = Some(StackPlace { key, index });
        if index == next {
            self.stacks.push(Stack::default());
            let branches = self.branches.unwrap_or(0);
            let each = branches.saturating_mul(size_of::<BranchEntry>());
            self.held = self.held.saturating_add(each.saturating_add(256));
        }
        self.stacks.get_mut(index)
    }

    fn known(&self, tid: u32, cpu: u32) -> Option<&Stack> {
        let at = *self.by_thread.get(&Self::key(tid, cpu))?;
        self.stacks.get(at)
    }

    /// Processes a branch of a thread. `last` is of the queue of the branch.
    pub(super) fn branch(
        &mut self,
        (tid, cpu): (u32, u32),
        event: &TraceEvent,
        flow: Flow,
        last: &mut Option<StackPlace>,
    ) {
        let (callchain, branches) = (self.callchain, self.branches);
        let Some(stack) = self.stack(Self::key(tid, cpu), last) else {
            return;
        };
        if stack.part != event.buffer_number {
            stack.calls.clear();
            stack.branches.clear();
            stack.part = event.buffer_number;
        }
        if let Some(size) = branches {
            let flags = BranchFlags::default()
                .with_abort(event.is_abort)
                .with_in_tx(event.in_tx && !event.is_asynchronous && !event.is_abort);
            stack.branches.truncate(size.saturating_sub(1));
            stack.branches.push_front(BranchEntry {
                from: event.from,
                to: event.to,
                flags,
            });
        }
        if callchain.is_none() {
            return;
        }
        if flow.is_call {
            let return_to = event.from.wrapping_add(flow.size);
            if event.to == 0 || return_to == event.to {
                return;
            }
            if stack.calls.len() >= MAX_CALLS {
                stack.calls.drain(..MAX_CALLS / 2);
            }
            let room = stack.calls.capacity();
            stack.calls.push(OpenCall {
                return_to,
                ends: flow.ends,
            });
            let grown = stack.calls.capacity().saturating_sub(room);
            let grown = grown.saturating_mul(size_of::<OpenCall>());
            self.held = self.held.saturating_add(grown);
        } else if flow.begins {
            stack.pop(event.to);
            while stack.calls.pop_if(|call| call.ends).is_some() {}
        } else if flow.is_return && event.from != 0 {
            stack.pop(event.to);
        }
    }

    /// Returns the callchain at an instruction.
    pub(super) fn callchain(&self, tid: u32, cpu: u32, ip: u64) -> Option<Vec<u64>> {
        // With the context of the first address.
        let size = self.callchain?.saturating_add(1);
        let mut context = context_of(ip);
        let mut chain = vec![context, ip];
        let calls = self
            .known(tid, cpu)
            .map(|stack| stack.calls.as_slice())
            .unwrap_or_default();
        for call in calls.iter().rev() {
            if chain.len() >= size {
                break;
            }
            let next = context_of(call.return_to);
            if next != context {
                if chain.len() >= size.saturating_sub(1) {
                    break;
                }
                chain.push(next);
                context = next;
            }
            chain.push(call.return_to);
        }
        Some(chain)
    }

    /// Returns the last branches.
    pub(super) fn branch_stack(&self, tid: u32, cpu: u32) -> Option<BranchStack> {
        self.branches?;
        let entries: Vec<BranchEntry> = self
            .known(tid, cpu)
            .map(|stack| stack.branches.iter().cloned().collect())
            .unwrap_or_default();
        Some(BranchStack {
            nr: entries.len() as u64,
            hw_idx: Some(0),
            entries: List(entries),
            counters: List(Vec::new()),
        })
    }
}

impl Stack {
    /// Returns to an address. If no call is to return there, the call was not seen.
    fn pop(&mut self, to: u64) {
        let call = self.calls.iter().rposition(|call| call.return_to == to);
        if let Some(at) = call {
            self.calls.truncate(at);
        }
    }
}

fn context_of(ip: u64) -> u64 {
    match ip >> 63 {
        0 => CallchainContext::USER.0,
        _ => CallchainContext::KERNEL.0,
    }
}
