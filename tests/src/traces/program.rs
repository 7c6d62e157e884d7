//! Programs whose control flow is random, and the instructions of a run of them.

use std::collections::BTreeMap;

use crate::generate::random::Random;
use crate::synth::branch_trace::{BASE, CODE_AT, object};

/// Number of functions, and of blocks of each.
const FUNCTIONS: usize = 9;
const BLOCKS: usize = 7;

/// Instructions that are no branches.
const PLAIN: &[&[u8]] = &[
    &[0x90],
    &[0x48, 0x89, 0xe5],
    &[0xf3, 0xa4],
    &[0x0f, 0x1f, 0x44, 0, 0],
    &[0x48, 0xb8, 0xe8, 0xc3, 0xeb, 0x74, 0xff, 0xe0, 0x0f, 0x05],
    &[0xc5, 0xf8, 0x77],
    &[0x66, 0x0f, 0x38, 0xf6, 0xc1],
];

/// What an instruction does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Does {
    /// Continues at the next instruction.
    Nothing,
    /// Continues there or at the next instruction.
    Conditional(u64),
    /// Continues there.
    Jump(u64),
    /// Calls a function.
    Call(u64),
    /// Continues at one of these.
    IndirectJump(Vec<u64>),
    /// Calls one of these functions.
    IndirectCall(Vec<u64>),
    /// Returns.
    Return,
    /// Calls the kernel.
    SystemCall,
}

/// An instruction.
#[derive(Debug, Clone)]
pub struct Instruction {
    /// Size in bytes.
    pub size: u64,
    /// What it does.
    pub does: Does,
}

/// A program.
#[derive(Debug)]
pub struct Program {
    code: Vec<u8>,
    /// By address.
    pub instructions: BTreeMap<u64, Instruction>,
    /// Address of the first function.
    pub start: u64,
}

/// A block of a function.
#[derive(Debug, Clone, Copy)]
enum End {
    Conditional(usize),
    Jump(usize),
    Call(usize),
    IndirectJump,
    IndirectCall,
    Return,
    SystemCall,
    Next,
}

impl End {
    fn size(self) -> usize {
        match self {
            End::Conditional(_) => 6,
            End::Jump(_) | End::Call(_) => 5,
            End::IndirectJump | End::IndirectCall | End::SystemCall => 2,
            End::Return => 1,
            End::Next => 0,
        }
    }
}

impl Program {
    /// Returns a program. Functions call only those after them.
    pub fn random(random: &mut Random) -> Self {
        let mut blocks = Vec::new();
        for function in 0..FUNCTIONS {
            for block in 0..BLOCKS {
                let plain: Vec<&[u8]> = (0..random.below(4))
                    .map(|_| PLAIN[random.below(PLAIN.len() as u64) as usize])
                    .collect();
                let first = function * BLOCKS;
                let other = first + random.below(BLOCKS as u64) as usize;
                let is_last = function + 1 == FUNCTIONS;
                let end = match random.below(14) {
                    _ if block + 1 == BLOCKS => End::Return,
                    0 => End::Jump(
                        first + block + 1 + random.below((BLOCKS - block - 1) as u64) as usize,
                    ),
                    1..=4 => End::Conditional(other),
                    5..=7 if !is_last => {
                        let after = FUNCTIONS - function - 1;
                        End::Call(BLOCKS * (function + 1 + random.below(after as u64) as usize))
                    }
                    8 => End::IndirectJump,
                    9 | 10 if !is_last => End::IndirectCall,
                    11 => End::Return,
                    12 => End::SystemCall,
                    _ => End::Next,
                };
                blocks.push((plain, end));
            }
        }
        let mut starts = Vec::new();
        let mut at = BASE + CODE_AT as u64;
        for (plain, end) in &blocks {
            starts.push(at);
            at += (plain.concat().len() + end.size()) as u64;
        }
        let mut program = Program {
            code: Vec::new(),
            instructions: BTreeMap::new(),
            start: starts[0],
        };
        for (number, (plain, end)) in blocks.iter().enumerate() {
            plain
                .iter()
                .for_each(|code| program.push(code, Does::Nothing));
            let function = number / BLOCKS;
            let near = program.next() + end.size() as u64;
            let relative = |to: u64| (to.wrapping_sub(near) as u32).to_le_bytes();
            let with = |code: &[u8], to| [code, &relative(to)].concat();
            match *end {
                End::Conditional(to) => {
                    program.push(
                        &with(&[0x0f, 0x85], starts[to]),
                        Does::Conditional(starts[to]),
                    );
                }
                End::Jump(to) => program.push(&with(&[0xe9], starts[to]), Does::Jump(starts[to])),
                End::Call(to) => program.push(&with(&[0xe8], starts[to]), Does::Call(starts[to])),
                End::IndirectJump => {
                    let own = &starts[function * BLOCKS..][..BLOCKS];
                    program.push(&[0xff, 0xe0], Does::IndirectJump(own.to_vec()));
                }
                End::IndirectCall => {
                    let others = (function + 1..FUNCTIONS).map(|other| starts[other * BLOCKS]);
                    program.push(&[0xff, 0xd0], Does::IndirectCall(others.collect()));
                }
                End::Return => program.push(&[0xc3], Does::Return),
                End::SystemCall => program.push(&[0x0f, 0x05], Does::SystemCall),
                End::Next => {}
            }
        }
        program
    }

    fn next(&self) -> u64 {
        BASE + (CODE_AT + self.code.len()) as u64
    }

    fn push(&mut self, code: &[u8], does: Does) {
        let size = code.len() as u64;
        self.instructions
            .insert(self.next(), Instruction { size, does });
        self.code.extend(code);
    }

    /// Returns the program as an ELF file.
    pub fn object(&self) -> Vec<u8> {
        object(&self.code)
    }

    /// Returns the addresses of the instructions of a run.
    pub fn run(&self, random: &mut Random, count: usize) -> Vec<u64> {
        let (mut ip, mut calls, mut run) = (self.start, Vec::new(), Vec::new());
        while run.len() < count {
            run.push(ip);
            let instruction = &self.instructions[&ip];
            let next = ip + instruction.size;
            ip = match &instruction.does {
                Does::Nothing | Does::SystemCall => next,
                Does::Conditional(to) if random.below(5) < 2 => *to,
                Does::Conditional(_) => next,
                Does::Jump(to) => *to,
                Does::Call(to) => {
                    calls.push(next);
                    *to
                }
                Does::IndirectJump(all) => *random.pick(all),
                Does::IndirectCall(all) => {
                    calls.push(next);
                    *random.pick(all)
                }
                Does::Return => calls.pop().unwrap_or(self.start),
            };
        }
        run
    }
}
