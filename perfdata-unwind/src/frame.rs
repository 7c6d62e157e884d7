//! The registers of a frame.

use crate::machine::REGISTERS;
use crate::unwinder::Task;

/// The registers of a frame.
#[derive(Debug, Clone)]
pub(crate) struct FrameRegisters {
    values: [u64; REGISTERS],
    /// One bit for each register with a known value: in two words, because a number with 128 bits
    /// is slow to shift.
    known: [u64; 2],
    pub pc: u64,
    /// Whether the pc is the address of an instruction that was not executed, as opposed to a
    /// return address.
    pub is_exact: bool,
}

impl FrameRegisters {
    #[inline]
    pub fn get(&self, register: u8) -> Option<u64> {
        let value = self.values.get(usize::from(register)).copied()?;
        let known = self.known.get(usize::from(register >> 6 & 1))?;
        (known >> (register & 63) & 1 == 1).then_some(value)
    }

    #[inline]
    pub fn set(&mut self, register: u8, value: Option<u64>) {
        let (Some(place), Some(known)) = (
            self.values.get_mut(usize::from(register)),
            self.known.get_mut(usize::from(register >> 6 & 1)),
        ) else {
            return;
        };
        let bit = 1 << (register & 63);
        match value {
            Some(value) => {
                *place = value;
                *known |= bit;
            }
            None => *known &= !bit,
        }
    }

    /// Forgets the registers that are not in `kept`, which has one bit for each DWARF number.
    #[inline]
    pub fn keep(&mut self, kept: u128) {
        let [low, high] = &mut self.known;
        *low &= kept as u64;
        *high &= (kept >> 64) as u64;
    }
}

/// Returns the registers in a sample.
pub(crate) fn first_frame(task: &Task<'_>) -> Option<FrameRegisters> {
    let (ip, _) = task.machine.pointers();
    let mut frame = FrameRegisters {
        values: [0; REGISTERS],
        known: [0; 2],
        pc: 0,
        is_exact: true,
    };
    let mut has_pc = false;
    let numbers = task.machine.dwarf_registers();
    let mut mask = task.mask;
    for value in task.registers {
        if mask == 0 {
            break;
        }
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        let value = task.machine.truncated(*value);
        if bit == ip {
            (frame.pc, has_pc) = (task.machine.code_address(value), true);
        } else if let Some(Some(number)) = numbers.get(usize::try_from(bit).unwrap_or(0)) {
            frame.set(*number, Some(value));
        }
    }
    if let Some(number) = task.machine.instruction_pointer() {
        frame.set(number, Some(frame.pc));
    }
    has_pc.then_some(frame)
}
