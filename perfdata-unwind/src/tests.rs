//! Stacks unwound with call frame information that is written byte by byte.

mod exidx;
mod made;
mod sections;
mod steps;

use perfdata_symbols::{Elf, ObjectFiles};

use crate::{At, End, Machine, MappedObject, Maps, Object, ObjectId, Objects, Task, Unwinder};

use made::{COMMON, Form, X86_64, eh_frame, return_register};

/// The code of the object, and the address at which it is mapped.
const CODE: u64 = 0x1000;
const BIAS: u64 = 0x7f00_0000_0000;

/// The stack pointer of all samples.
const SP: u64 = 0x7ffd_0000_1000;

fn object(elf: Vec<u8>) -> Object {
    let elf = Elf::from_bytes(elf).expect("an ELF file");
    Object::new(ObjectFiles::new(elf, None)).expect("its sections are inside")
}

/// The first object from [`BIAS`] on, anonymous memory at 0x10000, nothing elsewhere.
struct Mapped(ObjectId);

impl Maps for Mapped {
    fn at(&self, address: u64) -> At {
        match address {
            BIAS..0x7f00_0000_4000 => At::Object(MappedObject {
                object: self.0,
                start: BIAS,
                pgoff: 0,
            }),
            0x10000..0x20000 => At::Anonymous,
            _ => At::Nothing,
        }
    }
}

/// Unwinds a sample: registers by their bits in perf's mask, and the words of the stack.
fn unwind(
    object: Object,
    form: Form,
    machine: Machine,
    registers: &[(u32, u64)],
    stack: &[u64],
) -> (Vec<u64>, End) {
    unwind_mapped(object, Mapped, form, machine, registers, stack)
}

/// The same with the mappings that `maps` returns.
fn unwind_mapped<M: Maps>(
    object: Object,
    maps: impl FnOnce(ObjectId) -> M,
    form: Form,
    machine: Machine,
    registers: &[(u32, u64)],
    stack: &[u64],
) -> (Vec<u64>, End) {
    let stack: Vec<u8> = stack.iter().flat_map(|word| form.word(*word)).collect();
    let mut registers = registers.to_vec();
    registers.sort();
    let values: Vec<u64> = registers.iter().map(|(_, value)| *value).collect();
    let task = Task {
        machine,
        mask: registers.iter().fold(0, |mask, (bit, _)| mask | 1 << bit),
        registers: &values,
        stack: &stack,
    };
    let objects = Objects::known(vec![object]);
    let maps = maps(objects.id(0).expect("an object"));
    let mut unwinder = Unwinder::new();
    let mut frames = Vec::new();
    let end = unwinder.unwind(&task, &maps, &objects, 100, &mut frames);
    // What is in the cache changes nothing.
    let mut again = Vec::new();
    assert_eq!(
        unwinder.unwind(&task, &maps, &objects, 100, &mut again),
        end
    );
    assert_eq!(again, frames);
    (frames, end)
}

fn at(offset: u64) -> u64 {
    BIAS + CODE + offset
}

/// Stack pointer and instruction pointer of x86-64.
fn pointers(pc: u64) -> [(u32, u64); 2] {
    [(7, SP), (8, pc)]
}

#[test]
fn callers_are_found_value_for_value() {
    let functions = [
        // DW_CFA_advance_loc 1, DW_CFA_def_cfa_offset 24, DW_CFA_offset rbx at CFA-16.
        (CODE, 0x100, vec![0x41, 0x0e, 24, 0x83, 2]),
        // DW_CFA_def_cfa rbx 16: as in _dl_runtime_resolve.
        (CODE + 0x100, 0x100, vec![0x0c, 3, 16]),
        // DW_CFA_undefined RA: as in _start.
        (CODE + 0x200, 0x100, vec![0x07, 16]),
    ];
    let object = || X86_64.object(Machine::X86_64, &COMMON, &functions);
    let run = |registers: &[(u32, u64)], stack: &[u64]| {
        unwind(object(), X86_64, Machine::X86_64, registers, stack)
    };
    // In the body of the first function: rbx is on the stack, at SP + 8.
    let stack = [0, SP + 0x20, at(0x110), 0, 0, at(0x210)];
    let (frames, end) = run(&pointers(at(0x50)), &stack);
    assert_eq!(frames, [at(0x50), at(0x10f), at(0x20f)]);
    assert_eq!(end, End::Outermost);
    // At its first instruction: rbx is still in its register.
    let mut registers = pointers(at(0)).to_vec();
    registers.push((1, SP + 0x20));
    let (frames, end) = run(&registers, &[at(0x110), 0, 0, 0, 0, at(0x210)]);
    assert_eq!(frames, [at(0), at(0x10f), at(0x20f)]);
    assert_eq!(end, End::Outermost);
    // rbx is not in the sample, so that the second frame has no CFA.
    let (frames, end) = run(&pointers(at(0)), &[at(0x110), 0, 0, 0, 0, at(0x210)]);
    assert_eq!((frames, end), (vec![at(0), at(0x10f)], End::Other));
    // A return address of 0 is the end, too.
    let (frames, end) = run(&pointers(at(0)), &[0]);
    assert_eq!((frames, end), (vec![at(0)], End::Outermost));
}

#[test]
fn the_reasons_of_ends_are_told_apart() {
    let functions = [(CODE, 0x100, vec![])];
    let run = |pc, stack: &[u64]| {
        let object = X86_64.object(Machine::X86_64, &COMMON, &functions);
        unwind(object, X86_64, Machine::X86_64, &pointers(pc), stack)
    };
    let id = Objects::known(vec![X86_64.object(Machine::X86_64, &[], &[])])
        .id(0)
        .expect("an object");
    assert_eq!(run(at(0), &[]), (vec![at(0)], End::StackCopy));
    let anonymous = (vec![at(0), 0x10fff], End::Anonymous);
    assert_eq!(run(at(0), &[0x11000]), anonymous);
    assert_eq!(run(at(0), &[0x99]), (vec![at(0), 0x98], End::Unmapped));
    let without_rule = (vec![at(0), at(0x150) - 1], End::NoRule(id));
    assert_eq!(run(at(0), &[at(0x150)]), without_rule);
    assert_eq!(run(0x98, &[]), (vec![0x98], End::Unmapped));
    // The address of the function after a call that does not return is not that of the caller.
    let (frames, _) = run(at(0), &[at(0x100), 0]);
    assert_eq!(frames, [at(0), at(0xff)]);
    // The same function for ever.
    let (frames, end) = run(at(0), &[at(0x10); 200]);
    assert_eq!((frames.len(), end), (100, End::Frames));
}

#[test]
fn no_progress_is_an_end() {
    // CFA = rsp, and RA is kept in rbx: the caller is the function itself, for ever.
    let functions = [(CODE, 0x100, vec![0x0c, 7, 0, 0x09, 16, 3])];
    let object = X86_64.object(Machine::X86_64, &COMMON, &functions);
    let mut registers = pointers(at(0)).to_vec();
    registers.push((1, at(0x10)));
    let (frames, end) = unwind(object, X86_64, Machine::X86_64, &registers, &[]);
    assert_eq!(end, End::Other);
    assert!(frames.len() <= 3, "{frames:x?}");
}

#[test]
fn millions_of_frames_are_bounded() {
    // RA: DW_CFA_val_expression DW_OP_const8u of the function itself; the CFA grows.
    let mut code = vec![0x0e];
    code.extend(at(0x10).to_le_bytes());
    let mut instructions = vec![0x16, 16, 9];
    instructions.extend(code);
    let functions = [(CODE, 0x100, instructions)];
    let objects = Objects::known(vec![X86_64.object(Machine::X86_64, &COMMON, &functions)]);
    let task = Task {
        machine: Machine::X86_64,
        mask: 1 << 7 | 1 << 8,
        registers: &[SP, at(0)],
        stack: &[],
    };
    let maps = Mapped(objects.id(0).expect("an object"));
    let mut frames = Vec::new();
    let end = Unwinder::new().unwind(&task, &maps, &objects, 1_000_000, &mut frames);
    assert_eq!((frames.len(), end), (1_000_000, End::Frames));
}

#[test]
fn expressions_are_evaluated() {
    // CFA of an entry of the procedure linkage table: rsp + 8, and 8 more from its byte 11 on.
    let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
    let mut instructions = vec![0x0f, 11];
    instructions.extend(plt);
    // RBX is at the address in DW_OP_breg7 16, DW_OP_deref.
    instructions.extend([0x10, 3, 3, 0x77, 16, 0x06]);
    let functions = [
        (CODE, 0x100, instructions),
        (CODE + 0x100, 0x100, vec![0x0c, 3, 0]),
        (CODE + 0x200, 0x100, vec![0x07, 16]),
    ];
    let run = |pc, stack: &[u64]| {
        let object = X86_64.object(Machine::X86_64, &COMMON, &functions);
        unwind(object, X86_64, Machine::X86_64, &pointers(pc), stack)
    };
    let expected = |pc| (vec![pc, at(0x10f), at(0x20f)], End::Outermost);
    // The word at SP + 16 is the address of the saved register, which is the CFA of the caller.
    let stack = [at(0x110), 0, SP + 24, SP + 48, 0, at(0x210)];
    assert_eq!(run(at(0x06), &stack), expected(at(0x06)));
    let stack = [1, at(0x110), SP + 24, SP + 48, 0, at(0x210)];
    assert_eq!(run(at(0x0b), &stack), expected(at(0x0b)));
}

#[test]
fn the_table_and_a_scan_find_the_same_entries() {
    let functions: Vec<_> = (0..20)
        .map(|number| (CODE + number * 0x20, 0x18, vec![0x0e, 8 + 8 * number as u8]))
        .collect();
    let (frames, header) = eh_frame("zR", &functions, 0x3000);
    let header_at = 0x3000 + frames.len() as u64;
    let with = |header: &[u8]| {
        let sections: [(&str, u64, &[u8]); 2] = [
            (".eh_frame", 0x3000, &frames),
            (".eh_frame_hdr", header_at, header),
        ];
        object(X86_64.elf(&sections[..if header.is_empty() { 1 } else { 2 }]))
    };
    let rows = |object: &Object| -> Vec<_> {
        let mut context = gimli::UnwindContext::new();
        (CODE - 1..CODE + 20 * 0x20 + 8)
            .map(|address| object.row(address, &mut context))
            .collect()
    };
    let expected = rows(&with(&[]));
    assert_eq!(expected.iter().flatten().count(), 20 * 0x18);
    assert_eq!(rows(&with(&header)), expected);
    // A table whose size lies is not used.
    let mut lying = header.clone();
    lying[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(rows(&with(&lying)), expected);
    // An unsorted one finds less, but never another entry.
    let mut unsorted = header.clone();
    unsorted[12..].rotate_left(40);
    let found = rows(&with(&unsorted));
    let pairs = found.iter().zip(&expected);
    assert!(
        pairs
            .clone()
            .all(|(found, expected)| found.is_none() || found == expected)
    );
    assert_ne!(found, expected);
}

#[test]
fn interrupted_functions_have_their_exact_address() {
    // The return of a handler: CFA = rsp + 32, and RA is at CFA-16, as in a signal frame.
    let signal = eh_frame("zRS", &[(CODE, 0x10, vec![0x0c, 7, 32, 0x90, 2])], 0x3000);
    let functions = [
        (CODE + 0x100, 0x100, vec![]),
        (CODE + 0x200, 0x100, vec![0x07, 16]),
    ];
    let frames = X86_64.debug_frame(Machine::X86_64, &COMMON, &functions);
    let sections: [(&str, u64, &[u8]); 2] = [
        (".eh_frame", 0x3000, &signal.0),
        (".debug_frame", 0, &frames),
    ];
    // The handler was called at the first instruction of a function, which had just been called.
    let stack = [at(1), 0, 0, at(0x100), 0, at(0x210)];
    let (frames, end) = unwind(
        object(X86_64.elf(&sections)),
        X86_64,
        Machine::X86_64,
        &pointers(at(0x150)),
        &stack,
    );
    // The handler's return and the interrupted function are not after calls.
    assert_eq!(frames, [at(0x150), at(1), at(0x100), at(0x20f)]);
    assert_eq!(end, End::Outermost);
}

#[test]
fn constants_of_mapped_files_are_memory() {
    // The return address is at a constant address in the object.
    let place = BIAS + 0x2000;
    let mut instructions = vec![0x10, 16, 9, 0x0e];
    instructions.extend(place.to_le_bytes());
    let functions = [
        (CODE, 0x100, instructions),
        (CODE + 0x200, 0x100, vec![0x07, 16]),
    ];
    let frames = X86_64.debug_frame(Machine::X86_64, &COMMON, &functions);
    let mut elf = X86_64.elf(&[(".debug_frame", 0, &frames)]);
    elf[0x2000..0x2008].copy_from_slice(&at(0x210).to_le_bytes());
    let run = |elf| unwind(object(elf), X86_64, Machine::X86_64, &pointers(at(0)), &[]);
    assert_eq!(run(elf.clone()), (vec![at(0), at(0x20f)], End::Outermost));
    // The segment is writable: the process may have changed it.
    elf[64 + 4] = 7;
    assert_eq!(run(elf), (vec![at(0)], End::Other));
}

/// Two frames on every machine: the function saved the return address and a preserved register,
/// from which the CFA of its caller follows.
#[test]
fn all_machines_are_unwound() {
    /// Machine, form, the bit of the preserved register in perf's mask, and its DWARF number.
    const MACHINES: [(Machine, u16, bool, bool, u32, u8); 7] = [
        (Machine::X86_64, 62, false, true, 1, 3),
        (Machine::I386, 3, false, false, 6, 5),
        (Machine::Aarch64, 183, false, true, 29, 29),
        (Machine::Arm, 40, false, false, 11, 11),
        (Machine::S390x, 22, true, true, 11, 11),
        (Machine::Riscv64, 243, false, true, 8, 8),
        (Machine::Ppc64, 21, false, true, 31, 31),
    ];
    for (machine, number, is_big_endian, is_64, bit, register) in MACHINES {
        let form = Form {
            machine: number,
            is_big_endian,
            is_64,
        };
        let word = u64::from(machine.word());
        let return_register = return_register(machine);
        let sp = machine.stack_pointer();
        // CFA = SP + 4 words; the register at CFA-2 words, the return address at CFA-1 word.
        let functions = [
            (
                CODE,
                0x100,
                vec![
                    0x0c,
                    sp,
                    4 * word as u8,
                    0x05,
                    register,
                    2,
                    0x05,
                    return_register,
                    1,
                ],
            ),
            // CFA = the register, with the return address below.
            (
                CODE + 0x100,
                0x100,
                vec![0x0c, register, 0, 0x05, return_register, 1],
            ),
            (
                CODE + 0x200,
                0x100,
                vec![0x0c, sp, 0, 0x07, return_register],
            ),
        ];
        let frames = form.debug_frame(machine, &[], &functions);
        let object = object(form.elf(&[(".debug_frame", 0, &frames)]));
        // 32-bit machines have no addresses as large as the others.
        let (bias, stack_at) = if is_64 {
            (BIAS, SP)
        } else {
            (0x4000_0000, 0x7fff_0000)
        };
        struct MappedAt(ObjectId, u64);
        impl Maps for MappedAt {
            fn at(&self, address: u64) -> At {
                match address.checked_sub(self.1) {
                    Some(offset) if offset < 0x4000 => At::Object(MappedObject {
                        object: self.0,
                        start: self.1,
                        pgoff: 0,
                    }),
                    _ => At::Nothing,
                }
            }
        }
        let at = |offset: u64| bias + CODE + offset;
        // Pointer authentication of AArch64 changes the upper bits of return addresses.
        let signed = |address| match machine {
            Machine::Aarch64 => address | 0x2b << 48,
            _ => address,
        };
        let words = [
            0,
            0,
            stack_at + 6 * word,
            signed(at(0x110)),
            0,
            signed(at(0x210)),
        ];
        let (ip_bit, sp_bit) = machine.pointers();
        let registers = [(ip_bit, at(0x50)), (sp_bit, stack_at), (bit, 0x1234)];
        let maps = |id| MappedAt(id, bias);
        let (frames, end) = unwind_mapped(object, maps, form, machine, &registers, &words);
        assert_eq!(frames, [at(0x50), at(0x10f), at(0x20f)], "{machine:?}");
        assert_eq!(end, End::Outermost, "{machine:?}");
    }
}

#[test]
fn frame_pointers_are_followed_on_request() {
    // No call frame information at all; rbp points to the caller's rbp and the return address.
    let objects = Objects::known(vec![X86_64.object(Machine::X86_64, &[], &[])]);
    let maps = Mapped(objects.id(0).expect("an object"));
    let words = [0, 0, SP + 32, at(0x110), 0, 0];
    let stack: Vec<u8> = words
        .iter()
        .flat_map(|word: &u64| word.to_le_bytes())
        .collect();
    let task = Task {
        machine: Machine::X86_64,
        mask: 1 << 6 | 1 << 7 | 1 << 8,
        registers: &[SP + 16, SP, at(0)],
        stack: &stack,
    };
    let run = |mut unwinder: Unwinder| {
        let mut frames = Vec::new();
        let end = unwinder.unwind(&task, &maps, &objects, 100, &mut frames);
        (frames, end)
    };
    let id = objects.id(0).expect("an object");
    assert_eq!(run(Unwinder::new()), (vec![at(0)], End::NoRule(id)));
    let (frames, end) = run(Unwinder::new().with_frame_pointers(true));
    assert_eq!((frames, end), (vec![at(0), at(0x10f)], End::Outermost));
}

/// Damage of every byte of an object, and truncation everywhere.
#[test]
fn damaged_objects_do_no_harm() {
    let functions: Vec<_> = (0..4)
        .map(|number| {
            (
                CODE + number * 0x20,
                0x18,
                vec![0x0e, 16, 0x83, 2, 0x0f, 3, 0x77, 16, 0x06],
            )
        })
        .collect();
    let (frames, header) = eh_frame("zLR", &functions, 0x3000);
    let debug = X86_64.debug_frame(Machine::X86_64, &COMMON, &functions);
    let mut elf = X86_64.elf(&[
        (".eh_frame", 0x3000, &frames),
        (".eh_frame_hdr", 0x3000 + frames.len() as u64, &header),
        (".debug_frame", 0, &debug),
    ]);
    let end = elf
        .iter()
        .rposition(|byte| *byte != 0x90)
        .expect("not empty")
        + 1;
    elf.truncate(end);
    assert!(crate::unwind_everything(&elf) > 4);
    for at in 0..elf.len() {
        for value in [0, 0x7f, 0xff] {
            let mut damaged = elf.clone();
            damaged[at] = value;
            crate::unwind_everything(&damaged);
        }
        crate::unwind_everything(&elf[..at]);
    }
}
