//! Unwinding of one stack.

use gimli::UnwindContext;

use crate::frame::{FrameRegisters, first_frame};
use crate::machine::Machine;
use crate::memory::Memory;
use crate::objects::{ObjectId, Objects};
use crate::row::{Packed, Row as FullRow};
use crate::step::{full_step, packed_step, pointer_step};

/// A mapping of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedObject {
    /// The object.
    pub object: ObjectId,
    /// First address of the mapping.
    pub start: u64,
    /// Offset of the first byte in the file, in bytes.
    pub pgoff: u64,
}

/// What is mapped at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// A part of an object.
    Object(MappedObject),
    /// Memory that is not a file.
    Anonymous,
    /// Nothing, as far as the recording shows.
    Nothing,
}

/// The mappings of a process when its stack was copied.
pub trait Maps {
    /// Returns what is mapped at an address.
    fn at(&self, address: u64) -> At;
}

/// The registers of a task in user mode, and a copy of the top of its stack.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The machine.
    pub machine: Machine,
    /// The registers in the sample, one bit for each: `sample_regs_user` of the attribute.
    pub mask: u64,
    /// Their values, in the order of the bits.
    pub registers: &'a [u64],
    /// The copied bytes, which start at the stack pointer: `dyn_size` bytes.
    pub stack: &'a [u8],
}

/// Why a callchain ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum End {
    /// The outermost function: its return address is undefined or 0.
    Outermost,
    /// The maximum number of frames.
    Frames,
    /// The stack continues after the end of the copy.
    StackCopy,
    /// The object at the address cannot be used: [`Objects::get`] returns the reason.
    Object(ObjectId),
    /// The object contains no call frame information for the address.
    NoRule(ObjectId),
    /// The address is in memory that is not a file, such as generated code.
    Anonymous,
    /// Nothing is mapped at the address.
    Unmapped,
    /// The sample does not contain a register that is needed, or the call frame information needs
    /// memory that is neither stack nor constant, is damaged, or makes no progress.
    Other,
}

/// The number of slots of the cache of rows, a power of two.
const SLOTS: usize = 1 << 14;

/// A row in the cache.
#[derive(Debug, Clone)]
enum Row {
    Packed(Packed),
    Full(Box<FullRow>),
}

/// A place in an object, for a machine with words of `word` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ObjectPlace {
    object: ObjectId,
    /// Offset in the file in bytes.
    offset: u64,
    word: u8,
}

/// The row for a place, if there is one.
#[derive(Debug, Clone)]
struct Slot {
    place: ObjectPlace,
    is_big_endian: bool,
    row: Option<Row>,
}

/// Unwinds stacks, one after the other. It keeps the rows of recent addresses, so one unwinder
/// should unwind many stacks; each thread needs its own one. The results do not depend on what was
/// unwound before.
#[derive(Debug)]
pub struct Unwinder {
    context: Box<UnwindContext<usize>>,
    /// For each slot, the number of its entry in the cache plus one; 0 if there is none.
    slots: Box<[u32]>,
    cache: Vec<Slot>,
    follows_frame_pointers: bool,
}

impl Default for Unwinder {
    fn default() -> Self {
        Unwinder::new()
    }
}

impl Unwinder {
    /// Returns an unwinder that uses call frame information only.
    pub fn new() -> Self {
        Unwinder {
            context: Box::default(),
            slots: vec![0; SLOTS].into(),
            cache: Vec::new(),
            follows_frame_pointers: false,
        }
    }

    /// Returns the unwinder, which follows the chain of frame pointers where there is no call frame
    /// information, if `follows` is set. If code does not keep frame pointers, this can return
    /// wrong frames.
    #[must_use]
    pub fn with_frame_pointers(self, follows: bool) -> Self {
        Unwinder {
            follows_frame_pointers: follows,
            ..self
        }
    }

    /// Appends the user callchain of `task` to `frames`, at most `most` addresses, and returns why
    /// it ends.
    ///
    /// As perf does (tools/perf/util/unwind-libdw.c, Linux 7.2), the first address is the
    /// instruction pointer, and the others are return addresses minus 1: addresses inside of the
    /// call instructions. The addresses of a signal handler's return, and of the function that the
    /// signal interrupted, are exact.
    pub fn unwind(
        &mut self,
        task: &Task<'_>,
        maps: &impl Maps,
        objects: &Objects,
        most: usize,
        frames: &mut Vec<u64>,
    ) -> End {
        if most == 0 {
            return End::Frames;
        }
        let Some(mut frame) = first_frame(task) else {
            return End::Other;
        };
        let mut memory = Memory {
            task,
            start: frame.get(task.machine.stack_pointer()).unwrap_or(u64::MAX),
            maps,
            objects,
            is_big_endian: false,
        };
        let mut cfa = None;
        for number in 1_usize.. {
            let adjusted = match frame.is_exact {
                true => frame.pc,
                false => frame.pc.wrapping_sub(1),
            };
            let pc = frame.pc;
            let step = self.step(adjusted, &mut frame, &mut memory, cfa);
            let (Ok((_, is_signal)) | Err((is_signal, _))) = step;
            // perf considers the return of a signal handler as interrupted, too.
            frames.push(if is_signal { pc } else { adjusted });
            match step {
                Ok((next, _)) => cfa = Some(next),
                Err((_, end)) => return end,
            }
            if number >= most {
                return End::Frames;
            }
        }
        End::Frames
    }

    /// Changes `frame`, in which `address` is executed, to that of its caller. Returns the CFA, and
    /// whether the function returns from a signal handler, which is also part of an error.
    fn step<M: Maps>(
        &mut self,
        address: u64,
        frame: &mut FrameRegisters,
        memory: &mut Memory<'_, M>,
        last_cfa: Option<u64>,
    ) -> Result<(u64, bool), (bool, End)> {
        let machine = memory.task.machine;
        let pc = frame.pc;
        let follows = self.follows_frame_pointers;
        let (is_signal, stepped) = match self.row_at(address, memory) {
            Ok(Row::Packed(row)) => (row.is_signal, packed_step(row, frame, memory)),
            Ok(Row::Full(row)) => (row.is_signal, full_step(row, frame, memory)),
            Err(reason) if follows => (false, pointer_step(frame, memory).ok_or(reason)),
            Err(reason) => return Err((false, reason)),
        };
        let (cfa, callers_pc) = stepped.map_err(|end| (is_signal, end))?;
        let callers_pc = callers_pc.map_or(0, |pc| machine.code_address(machine.truncated(pc)));
        if callers_pc == 0 {
            return Err((is_signal, End::Outermost));
        }
        if last_cfa == Some(cfa) && callers_pc == pc {
            return Err((is_signal, End::Other));
        }
        (frame.pc, frame.is_exact) = (callers_pc, is_signal);
        Ok((cfa, is_signal))
    }

    /// Returns the row for an address of the task, from the cache if it is there.
    fn row_at<M: Maps>(&mut self, address: u64, memory: &mut Memory<'_, M>) -> Result<&Row, End> {
        let mapped = match memory.maps.at(address) {
            At::Object(mapped) => mapped,
            At::Anonymous => return Err(End::Anonymous),
            At::Nothing => return Err(End::Unmapped),
        };
        let id = mapped.object;
        let place = ObjectPlace {
            object: id,
            offset: address
                .wrapping_sub(mapped.start)
                .wrapping_add(mapped.pgoff),
            word: memory.task.machine.word(),
        };
        // Multiplication by the golden ratio distributes neighbouring places.
        let key = place.offset ^ (id.index() as u64).rotate_left(40);
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let hash = usize::try_from(hash).unwrap_or(0) & (SLOTS - 1);
        let number = self.slots.get(hash).copied().unwrap_or(0);
        let mut at = usize::try_from(number).unwrap_or(0).wrapping_sub(1);
        if self.cache.get(at).is_none_or(|slot| slot.place != place) {
            let slot = self.slot(place, memory.objects)?;
            match self.cache.get_mut(at) {
                Some(old) => *old = slot,
                None => {
                    at = self.cache.len();
                    self.cache.push(slot);
                    if let Some(number) = self.slots.get_mut(hash) {
                        *number = u32::try_from(self.cache.len()).unwrap_or(0);
                    }
                }
            }
        }
        let slot = self.cache.get(at).ok_or(End::NoRule(id))?;
        memory.is_big_endian = slot.is_big_endian;
        slot.row.as_ref().ok_or(End::NoRule(id))
    }

    /// Returns the row for a place.
    #[cold]
    fn slot(&mut self, place: ObjectPlace, objects: &Objects) -> Result<Slot, End> {
        let object = objects.get(place.object);
        let object = object.map_err(|_| End::Object(place.object))?;
        // The addresses of an object of another class mean something else.
        let row = match object.form().address_size == place.word {
            true => object
                .address_of(place.offset)
                .and_then(|address| object.row(address, &mut self.context)),
            false => None,
        };
        Ok(Slot {
            place,
            is_big_endian: object.form().is_big_endian,
            row: row.map(|row| match Packed::of(&row) {
                Some(packed) => Row::Packed(packed),
                None => Row::Full(Box::new(row)),
            }),
        })
    }
}
