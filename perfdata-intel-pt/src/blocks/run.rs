//! Runs over blocks whose branches are of no interest.

use super::{BasicBlocks, BlockEnding, CodePlace, Return};
use crate::decoder::Loop;

/// The branches that are known.
pub(crate) struct Run<'a> {
    /// Whether each is taken; the last one is bit 0.
    pub(crate) bits: u64,
    /// Number of those that are left.
    pub(crate) left: u32,
    /// Whether some of the packet were passed before.
    pub(crate) has_begun: bool,
    /// The target of the indirect branch after them, with which the run ends.
    pub(crate) target: Option<u64>,
    /// The run ends before so many instructions; 0: it does not.
    pub(crate) limit: u64,
    /// Whether the run ends before calls and returns.
    pub(crate) stops_at_calls: bool,
    /// Whether returns can be compressed.
    pub(crate) return_compression: bool,
    pub(crate) returns: &'a mut Vec<Return>,
    pub(crate) max_returns: usize,
    pub(crate) endless: &'a mut Loop,
    pub(crate) max_loops: u32,
}

impl Run<'_> {
    /// Notes a call. Returns whether there is room for it.
    #[inline]
    fn push(&mut self, ip: u64, block: u32) -> bool {
        let fits = self.returns.len() < self.max_returns;
        if fits {
            self.returns.push(Return { ip, block });
        }
        fits
    }
}

/// What a run went over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Passed {
    pub(crate) instructions: u64,
    /// Whether the first of the known branches was taken; `None` if none was passed.
    pub(crate) first_is_taken: Option<bool>,
    /// Whether there is a branch that has the time of the packet.
    pub(crate) has_event: bool,
    /// Whether the indirect branch was passed.
    pub(crate) is_at_target: bool,
}

impl BasicBlocks {
    /// Runs over blocks that were decoded and followed before, from `place` on. It ends before a
    /// block that has to be walked: because a packet is missing, because the run is limited, or
    /// because the next block is not known.
    pub(crate) fn run(&mut self, place: &mut CodePlace, run: &mut Run<'_>) -> Passed {
        let mut passed = Passed::default();
        let Some(mut at) = self.known_block(*place) else {
            return passed;
        };
        let all = run.left;
        let from = loop {
            let Some(link) = self.links.get(at as usize) else {
                break None;
            };
            let count = passed.instructions.wrapping_add(link.count.into());
            if run.limit != 0 && count >= run.limit {
                break None;
            }
            let (ip, from, way) = match link.ending {
                BlockEnding::Call
                | BlockEnding::Return
                | BlockEnding::IndirectCall
                | BlockEnding::Indirect
                    if run.stops_at_calls =>
                {
                    break None;
                }
                BlockEnding::Conditional => {
                    let Some(left) = run.left.checked_sub(1) else {
                        break None;
                    };
                    let is_taken = run.bits >> left & 1 == 1;
                    if run.left == all {
                        passed.first_is_taken = Some(is_taken);
                    }
                    run.left = left;
                    run.endless.reset();
                    passed.has_event |= is_taken;
                    match is_taken {
                        true => (link.target, at, 1),
                        false => (link.after, at, 0),
                    }
                }
                BlockEnding::Jump | BlockEnding::Call => {
                    // The error has its place in a walk.
                    let mut endless = run.endless.clone();
                    if endless.closes(link.target, run.max_loops) {
                        break None;
                    }
                    let is_call = link.ending == BlockEnding::Call;
                    if is_call && !run.push(link.after, at) {
                        break None;
                    }
                    *run.endless = endless;
                    passed.has_event |= run.has_begun || passed.first_is_taken.is_some();
                    (link.target, at, 1)
                }
                BlockEnding::Return if run.left > 0 => {
                    let left = run.left.saturating_sub(1);
                    let is_compressed = run.return_compression && run.bits >> left & 1 == 1;
                    let Some(to) = run.returns.pop_if(|_| is_compressed) else {
                        break None;
                    };
                    if run.left == all {
                        passed.first_is_taken = Some(true);
                    }
                    run.left = left;
                    run.endless.reset();
                    passed.has_event = true;
                    (to.ip, to.block, 0)
                }
                BlockEnding::Return | BlockEnding::IndirectCall | BlockEnding::Indirect => {
                    let Some(target) = run.target.filter(|_| run.left == 0) else {
                        break None;
                    };
                    if link.ending == BlockEnding::IndirectCall && !run.push(link.after, at) {
                        break None;
                    }
                    let mut from = (at, 1);
                    if link.ending == BlockEnding::Return
                        && let Some(to) = run.returns.pop()
                        && to.ip == target
                    {
                        from = (to.block, 0);
                    }
                    run.endless.reset();
                    passed.instructions = count;
                    passed.is_at_target = true;
                    passed.has_event = true;
                    place.ip = target;
                    break Some(from);
                }
                BlockEnding::Other => break None,
            };
            passed.instructions = count;
            place.ip = ip;
            // What follows the last known branch has the time of the next packet.
            if run.left == 0 && all > 0 {
                break Some((from, way));
            }
            match self.successor(Some((from, way)), *place) {
                Some(next) => at = next,
                None => break Some((from, way)),
            }
        };
        match from {
            Some(_) => (self.cursor, self.from) = (None, from),
            None if passed.instructions > 0 => self.enter_block(at, *place),
            None => {}
        }
        passed
    }
}
