//! The registers of a frame.

use crate::machine::REGISTERS;
use crate::unwinder::Task;

/// The registers of a frame.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    values: [u64; REGISTERS],
    /// One bit for each register with a known value.
    pub known: u128,
    pub pc: u64,
    /// Whether the pc is the address of an instruction that was not executed, as opposed to a return
    /// address.
    pub is_exact: bool,
}

impl Frame {
    pub fn get(&self, register: u8) -> Option<u64> {
        let value = self.values.get(usize::from(register)).copied()?;
        (self.known >> (register & 127) & 1 == 1).then_some(value)
    }

    pub fn set(&mut self, register: u8, value: Option<u64>) {
        let bit = 1_u128 << (register & 127);
        self.known &= !bit;
        if let Some(value) = value
            && let Some(place) = self.values.get_mut(usize::from(register))
        {
            *place = value;
            self.known |= bit;
        }
    }
}

/// Returns the registers in a sample.
pub(crate) fn first_frame(task: &Task<'_>) -> Option<Frame> {
    let (ip, _) = task.machine.pointers();
    let mut frame = Frame {
        values: [0; REGISTERS],
        known: 0,
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
