//! A step with a packed row is the same as with the full one.

use super::made::return_register;
use super::{At, Machine, Maps, Objects, SP, Task};
use crate::frame::first_frame;
use crate::memory::Memory;
use crate::row::{Cfa, Packed, Row, Rule};
use crate::step::{full_step, packed_step};

/// A process in which nothing is mapped but its stack.
struct Nothing;

impl Maps for Nothing {
    fn at(&self, _: u64) -> At {
        At::Nothing
    }
}

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// Returns a row whose rules are all words in memory if `is_saved` is set, and of all kinds
/// otherwise.
fn row(machine: Machine, numbers: &mut Numbers, is_saved: bool) -> Row {
    let word = i64::from(machine.word());
    let mut registers: Vec<u8> = (0..numbers.below(6))
        .map(|_| numbers.below(34) as u8)
        .collect();
    if numbers.below(4) > 0 {
        registers.push(return_register(machine));
    }
    registers.sort_unstable();
    registers.dedup();
    let mut rule = || {
        let offset = (numbers.below(24) as i64 - 12) * word;
        match if is_saved { 0 } else { numbers.below(5) } {
            0 => Rule::Offset(offset),
            1 => Rule::ValOffset(offset),
            2 => Rule::Undefined,
            3 => Rule::Same,
            _ => Rule::Register(numbers.below(34) as u8),
        }
    };
    let rules = registers.into_iter().map(|register| (register, rule()));
    let rules = rules.collect();
    Row {
        cfa: Cfa::Register(numbers.below(34) as u8, numbers.below(8) as i64 * word),
        rules,
        return_register: return_register(machine),
        is_signal: false,
    }
}

#[test]
fn packed_rows_are_followed_as_full_ones() {
    let mut numbers = Numbers(1);
    let objects = Objects::known(Vec::new());
    let mut stepped = 0;
    for machine in Machine::ALL {
        let (ip, sp) = machine.pointers();
        let bits = (0..64).filter(|&bit| bit == ip || machine.dwarf_register(bit).is_some());
        let bits: Vec<u32> = bits.collect();
        for number in 0..4000 {
            // All registers refer to the stack, which may end before.
            let mut near = || SP + 4 * numbers.below(64);
            let values: Vec<u64> = bits
                .iter()
                .map(|&bit| if bit == sp { SP } else { near() })
                .collect();
            let stack: Vec<u8> = (0..30).flat_map(|_| near().to_le_bytes()).collect();
            let task = Task {
                machine,
                mask: bits.iter().fold(0, |mask, bit| mask | 1 << bit),
                registers: &values,
                stack: &stack,
            };
            let memory = Memory {
                task: &task,
                start: machine.truncated(SP),
                maps: &Nothing,
                objects: &objects,
                is_big_endian: number % 3 == 0,
            };
            let row = row(machine, &mut numbers, number % 2 == 0);
            let packed = Packed::of(&row).expect("no expressions");
            assert!(number % 2 != 0 || packed.is_saved);
            let mut one = first_frame(&task).expect("an instruction pointer");
            let mut other = one.clone();
            let result = packed_step(&packed, &mut one, &memory);
            assert_eq!(result, full_step(&row, &mut other, &memory), "{row:?}");
            if result.is_ok() {
                stepped += 1;
                for register in 0..=127 {
                    let values = (one.get(register), other.get(register));
                    assert_eq!(values.0, values.1, "{machine:?} {register} {row:?}");
                }
            }
        }
    }
    assert!(stepped > 4000, "{stepped}");
}
