//! Basic blocks of the code that is followed, each decoded once.

mod run;

pub(crate) use run::Run;

use std::collections::HashMap;

use crate::instruction::{Instruction, InstructionKind, MAX_INSTRUCTION};
use crate::source::CodeSource;

/// Maximum size of a block in bytes. A longer one is continued by another block.
const MAX_BLOCK: usize = 4096;

/// Bytes that are read at once.
const PART: usize = 256;

/// Approximate memory for a block without its code in bytes.
const PER_BLOCK: usize =
    size_of::<BasicBlock>() + size_of::<Link>() + 2 * size_of::<(CodePlace, u32)>();

/// What is after a jump by 16 bytes whose conditional branches before it are the operand of an
/// emulated PTWRITE (tools/perf/Documentation/perf-intel-pt.txt, Linux 7.1).
const PTWRITE_MAGIC: &[u8; 16] = b"\x0f\x0bperf,ptwrite  ";

/// No block.
const NONE: u32 = u32::MAX;

/// Where and in which mode code is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CodePlace {
    pub(crate) ip: u64,
    pub(crate) space: u64,
    /// 16, 32 or 64.
    pub(crate) bits: u8,
    pub(crate) is_guest: bool,
}

/// The last instruction of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastInstruction {
    pub(crate) instruction: Instruction,
    /// Its code; the rest is 0.
    pub(crate) code: [u8; 16],
    /// Whether it is the jump of an emulated PTWRITE.
    pub(crate) is_ptwrite: bool,
}

/// Why a walk stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// At a branch, which is counted.
    Branch(LastInstruction),
    /// At the last instruction of a period, which is no branch and is counted.
    Limit(LastInstruction),
    /// At the wanted address, whose instruction is not counted.
    Reached,
}

/// There is no code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoCode;

#[derive(Debug, Clone)]
struct BasicBlock {
    place: CodePlace,
    /// Where the sizes of its instructions begin.
    first_size: usize,
    /// Number of instructions.
    count: u32,
    /// Where its code begins.
    first_byte: usize,
    /// Size of all instructions in bytes.
    size: u32,
    /// The last instruction, if it is a branch.
    end: Option<LastInstruction>,
}

/// What is needed of a block to run over it.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// Number of instructions.
    count: u32,
    ending: BlockEnding,
    /// The block after it, and that at the target of its branch, or at the last target.
    next: [u32; 2],
    /// The address after it, and the fixed target.
    after: u64,
    target: u64,
}

/// How a block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockEnding {
    Conditional,
    Jump,
    Call,
    Return,
    IndirectCall,
    /// With another indirect branch.
    Indirect,
    /// With something that is not run over.
    Other,
}

/// Where a call continues after its return.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Return {
    pub(crate) ip: u64,
    /// The block of the call.
    block: u32,
}

/// A place in a block.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    block: u32,
    /// Index of the instruction.
    at: u32,
    /// Offset of the instruction in the block.
    offset: u32,
    place: CodePlace,
}

/// The basic blocks that were decoded. One for all decoders of a recording: they share them.
#[derive(Debug)]
pub struct BasicBlocks {
    known: HashMap<CodePlace, u32, foldhash::fast::RandomState>,
    blocks: Vec<BasicBlock>,
    /// Of each block.
    links: Vec<Link>,
    /// Sizes of the instructions of all blocks.
    sizes: Vec<u8>,
    /// Code of all blocks.
    bytes: Vec<u8>,
    max_bytes: usize,
    /// Number of decoders, and the one that walked last.
    decoders: u64,
    owner: u64,
    /// Where its walk stopped.
    cursor: Option<Cursor>,
    /// The block after which execution continues at another address, and which of its successors.
    from: Option<(u32, usize)>,
}

impl Default for BasicBlocks {
    fn default() -> Self {
        BasicBlocks::new(16 << 20)
    }
}

impl BasicBlocks {
    /// Returns a cache that needs about this number of bytes of memory.
    pub fn new(max_bytes: usize) -> Self {
        BasicBlocks {
            known: HashMap::default(),
            blocks: Vec::new(),
            links: Vec::new(),
            sizes: Vec::new(),
            bytes: Vec::new(),
            max_bytes,
            decoders: 0,
            owner: 0,
            cursor: None,
            from: None,
        }
    }

    /// Forgets all blocks.
    pub fn clear(&mut self) {
        self.known.clear();
        self.blocks.clear();
        self.links.clear();
        self.sizes.clear();
        self.bytes.clear();
        self.cursor = None;
        self.from = None;
    }

    /// Returns approximately the memory in bytes.
    pub fn held(&self) -> usize {
        self.blocks
            .len()
            .saturating_mul(PER_BLOCK)
            .saturating_add(self.bytes.len())
            .saturating_add(self.sizes.len())
    }

    /// Notes which decoder walks from now on: 0 is a new one. Returns its number.
    #[inline]
    pub(crate) fn enter(&mut self, decoder: u64) -> u64 {
        if self.owner == decoder && decoder != 0 {
            return decoder;
        }
        self.cursor = None;
        self.from = None;
        self.owner = match decoder {
            0 => {
                self.decoders = self.decoders.wrapping_add(1);
                self.decoders
            }
            known => known,
        };
        self.owner
    }

    /// Notes that the branch at which the last walk stopped is followed: to its target, or to the
    /// instruction after it.
    #[inline]
    pub(crate) fn follow(&mut self, is_taken: bool) {
        self.from = self
            .cursor
            .take()
            .map(|cursor| (cursor.block, usize::from(is_taken)));
    }

    /// Returns where the call at which the last walk stopped continues after its return.
    pub(crate) fn return_to(&self, ip: u64) -> Return {
        Return {
            ip,
            block: self.cursor.map_or(NONE, |cursor| cursor.block),
        }
    }

    /// Notes that the return at which the last walk stopped is followed.
    pub(crate) fn follow_return(&mut self, to: Return) {
        self.cursor = None;
        self.from = Some((to.block, 0));
    }

    /// Walks from `place` to the next branch; or over `limit` instructions, if it is not 0; or to
    /// the address `to`. `place.ip` becomes the address of the last instruction. Returns the number
    /// of instructions, too.
    #[inline]
    pub(crate) fn walk(
        &mut self,
        code: &mut impl CodeSource,
        place: &mut CodePlace,
        to: Option<u64>,
        limit: u64,
    ) -> (u64, Result<Stopped, NoCode>) {
        if to == Some(place.ip) {
            return (0, Ok(Stopped::Reached));
        }
        let mut count = 0_u64;
        loop {
            // What was passed before is not counted then.
            let Some(cursor) = self.find(code, *place) else {
                return (0, Err(NoCode));
            };
            let Some(block) = self.blocks.get(cursor.block as usize) else {
                return (0, Err(NoCode));
            };
            let left = u64::from(block.count.saturating_sub(cursor.at));
            let all = count.saturating_add(left);
            let is_passed = to.is_some_and(|to| {
                let end = block.place.ip.wrapping_add(block.size.into());
                to.wrapping_sub(place.ip) < end.wrapping_sub(place.ip)
            });
            let is_limited = limit != 0 && all >= limit;
            if is_passed || is_limited && !(all == limit && block.end.is_some()) {
                if let Some(stopped) = self.step(cursor, place, to, limit, &mut count) {
                    return (count, Ok(stopped));
                }
                continue;
            }
            count = all;
            match block.end {
                Some(end) => {
                    let offset = u64::from(block.size).wrapping_sub(end.instruction.size as u64);
                    place.ip = block.place.ip.wrapping_add(offset);
                    self.cursor = Some(Cursor {
                        at: block.count.saturating_sub(1),
                        offset: offset as u32,
                        place: *place,
                        ..cursor
                    });
                    return (count, Ok(Stopped::Branch(end)));
                }
                None => {
                    place.ip = block.place.ip.wrapping_add(block.size.into());
                    self.cursor = None;
                    self.from = Some((cursor.block, 0));
                    if to == Some(place.ip) {
                        return (count, Ok(Stopped::Reached));
                    }
                }
            }
        }
    }

    /// Walks over the instructions of a block one by one. `None` at its end, unless it is a branch.
    fn step(
        &mut self,
        mut cursor: Cursor,
        place: &mut CodePlace,
        to: Option<u64>,
        limit: u64,
        count: &mut u64,
    ) -> Option<Stopped> {
        let block = self.blocks.get(cursor.block as usize)?.clone();
        loop {
            let index = block.first_size.checked_add(cursor.at as usize)?;
            let size = *self.sizes.get(index)?;
            *count = count.saturating_add(1);
            self.cursor = Some(cursor);
            let is_last = cursor.at.saturating_add(1) >= block.count;
            if let Some(end) = block.end.filter(|_| is_last) {
                return Some(Stopped::Branch(end));
            }
            if limit != 0 && *count >= limit {
                let first = block.first_byte.checked_add(cursor.offset as usize)?;
                let mut code = [0; 16];
                let bytes = self.bytes.get(first..).unwrap_or_default().iter();
                code.iter_mut()
                    .take(size.into())
                    .zip(bytes)
                    .for_each(|(to, from)| *to = *from);
                let instruction = Instruction {
                    size: size.into(),
                    kind: InstructionKind::Sequential,
                    displacement: 0,
                };
                return Some(Stopped::Limit(LastInstruction {
                    instruction,
                    code,
                    is_ptwrite: false,
                }));
            }
            place.ip = place.ip.wrapping_add(size.into());
            cursor.at = cursor.at.saturating_add(1);
            cursor.offset = cursor.offset.saturating_add(size.into());
            cursor.place = *place;
            if is_last {
                self.cursor = None;
                self.from = Some((cursor.block, 0));
            } else {
                self.cursor = Some(cursor);
            }
            if to == Some(place.ip) {
                return Some(Stopped::Reached);
            }
            if is_last {
                return None;
            }
        }
    }

    /// Notes that execution continues after the instruction at which a walk was limited.
    #[inline]
    pub(crate) fn pass(&mut self, place: CodePlace, size: usize) {
        let Some(cursor) = self.cursor.take() else {
            return;
        };
        let Some(block) = self.blocks.get(cursor.block as usize) else {
            return;
        };
        let at = cursor.at.saturating_add(1);
        if at < block.count {
            self.cursor = Some(Cursor {
                block: cursor.block,
                at,
                offset: cursor.offset.saturating_add(size as u32),
                place,
            });
        } else {
            self.from = Some((cursor.block, 0));
        }
    }

    /// Returns the block that begins at a place, if it was seen before.
    #[inline]
    fn known_block(&mut self, place: CodePlace) -> Option<u32> {
        if let Some(cursor) = self.cursor.filter(|cursor| cursor.place == place) {
            return (cursor.at == 0).then_some(cursor.block);
        }
        self.successor(self.from, place)
    }

    /// Returns the block at a place, if it was seen before, where `from` is the block before it.
    #[inline]
    fn successor(&mut self, from: Option<(u32, usize)>, place: CodePlace) -> Option<u32> {
        let (block, way) = from?;
        let next = *self.links.get(block as usize)?.next.get(way)?;
        let is_it = |block: &BasicBlock| block.place == place;
        if self.blocks.get(next as usize).is_some_and(is_it) {
            return Some(next);
        }
        let found = *self.known.get(&place)?;
        *self.links.get_mut(block as usize)?.next.get_mut(way)? = found;
        Some(found)
    }

    /// Continues at the start of a block.
    fn enter_block(&mut self, block: u32, place: CodePlace) {
        self.from = None;
        self.cursor = Some(Cursor {
            block,
            at: 0,
            offset: 0,
            place,
        });
    }

    /// Finds the instruction at a place, and decodes its block if it is not known.
    #[inline]
    fn find(&mut self, code: &mut impl CodeSource, place: CodePlace) -> Option<Cursor> {
        if let Some(cursor) = self.cursor.filter(|cursor| cursor.place == place) {
            return Some(cursor);
        }
        let from = self.from.take();
        let begin = |block| Cursor {
            block,
            at: 0,
            offset: 0,
            place,
        };
        if let Some(next) = self.successor(from, place) {
            return Some(begin(next));
        }
        let found = match self.known.get(&place) {
            Some(&found) => found,
            None => {
                let clears = self.held() >= self.max_bytes;
                if clears {
                    self.clear();
                }
                let found = self.decode(code, place)?;
                self.known.insert(place, found);
                if clears {
                    return Some(begin(found));
                }
                found
            }
        };
        if let Some((block, way)) = from
            && let Some(link) = self.links.get_mut(block as usize)
            && let Some(next) = link.next.get_mut(way)
        {
            *next = found;
        }
        Some(begin(found))
    }

    fn decode(&mut self, code: &mut impl CodeSource, place: CodePlace) -> Option<u32> {
        let (first_byte, first_size) = (self.bytes.len(), self.sizes.len());
        let mut end = None;
        let mut size = 0_usize;
        let mut part = [0; PART];
        let bits = code.bits(place.ip, place.is_guest);
        let bits = bits.unwrap_or(place.bits);
        'parts: while size < MAX_BLOCK {
            let ip = place.ip.wrapping_add(size as u64);
            let read = code.read(ip, place.is_guest, &mut part);
            let bytes = part.get(..read).unwrap_or(&part);
            let mut used = 0_usize;
            for (offset, found) in Instruction::all(bits, bytes) {
                let Some(found) = found else {
                    break;
                };
                // What is left may be the start of a longer one.
                let is_cut = read == PART && offset.saturating_add(MAX_INSTRUCTION) > PART;
                if is_cut {
                    break;
                }
                self.sizes.push(found.size as u8);
                let behind = offset.saturating_add(found.size);
                let this = bytes.get(offset..behind).unwrap_or_default();
                self.bytes.extend(this);
                used = behind;
                if found.kind != InstructionKind::Sequential && !is_no_branch(found.kind, this) {
                    let mut code_of = [0; 16];
                    code_of
                        .iter_mut()
                        .zip(this)
                        .for_each(|(to, from)| *to = *from);
                    let mut magic = [0; PTWRITE_MAGIC.len()];
                    let next = ip.wrapping_add(behind as u64);
                    let is_ptwrite = found.kind == InstructionKind::Jump
                        && found.displacement == PTWRITE_MAGIC.len() as i64
                        && code.read(next, place.is_guest, &mut magic) == magic.len()
                        && &magic == PTWRITE_MAGIC;
                    size = size.saturating_add(behind);
                    end = Some(LastInstruction {
                        instruction: found,
                        code: code_of,
                        is_ptwrite,
                    });
                    break 'parts;
                }
            }
            size = size.saturating_add(used);
            if used == 0 {
                break;
            }
        }
        let count = self.sizes.len().saturating_sub(first_size);
        if count == 0 {
            return None;
        }
        let found = u32::try_from(self.blocks.len())
            .ok()
            .filter(|&at| at != NONE)?;
        let after = place.ip.wrapping_add(size as u64);
        let displacement = end.map_or(0, |end| end.instruction.displacement);
        self.links.push(Link {
            count: count as u32,
            ending: end.map_or(BlockEnding::Other, BlockEnding::of),
            next: [NONE; 2],
            after,
            target: after.wrapping_add_signed(displacement),
        });
        self.blocks.push(BasicBlock {
            place,
            first_size,
            count: count as u32,
            first_byte,
            size: size as u32,
            end,
        });
        Some(found)
    }
}

impl BlockEnding {
    fn of(last: LastInstruction) -> Self {
        match last.instruction.kind {
            InstructionKind::ConditionalJump => BlockEnding::Conditional,
            InstructionKind::Jump if !last.is_ptwrite => BlockEnding::Jump,
            // Of the next instruction: it does not return.
            InstructionKind::Call if last.instruction.displacement == 0 => BlockEnding::Jump,
            InstructionKind::Call => BlockEnding::Call,
            InstructionKind::Return => BlockEnding::Return,
            InstructionKind::IndirectCall => BlockEnding::IndirectCall,
            InstructionKind::Jump | InstructionKind::Sequential => BlockEnding::Other,
            _ => BlockEnding::Indirect,
        }
    }
}

/// Returns whether execution continues after an instruction, although its kind is a branch: VMCALL
/// leaves a virtual machine, but the trace of the guest does not see it.
fn is_no_branch(kind: InstructionKind, code: &[u8]) -> bool {
    let is_entry = matches!(code, [0x0f, 0x01, 0xc2 | 0xc3]);
    kind == InstructionKind::VirtualMachine && !is_entry
}
