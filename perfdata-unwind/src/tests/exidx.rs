//! The tables of 32-bit Arm, as readelf -u shows them.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::made::Form;
use super::object;
use crate::Object;
use crate::row::{Cfa, Row, Rule};

const ARM: Form = Form {
    machine: 40,
    is_big_endian: false,
    is_64: false,
};

/// Addresses of the sections.
const INDEX: u64 = 0x2000;
const TABLE: u64 = 0x3000;

/// Returns the first address of each function in the text of readelf, with the instructions; `None`
/// for a function that cannot be unwound.
fn functions(text: &str) -> Vec<(u64, Option<Vec<String>>)> {
    let mut functions = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with("0x") {
            let address = words[0].trim_end_matches(':').trim_start_matches("0x");
            let address = u64::from_str_radix(address, 16).expect("an address");
            let can = !line.contains("[cantunwind]");
            functions.push((address, can.then(Vec::new)));
        } else if line.contains("Personality routine") {
            // readelf does not show its instructions.
            functions.pop();
        } else if line.starts_with("  0x")
            && let Some((_, Some(lines))) = functions.last_mut()
        {
            // The first byte, and what the instruction does.
            let first = words[0].to_owned();
            let at = words.iter().position(|word| !word.starts_with("0x"));
            let rest = words[at.expect("an instruction")..].join(" ");
            lines.push(format!("{first} {rest}"));
        }
    }
    functions
}

/// Returns the row for the instructions in the words of readelf.
fn row(lines: &[String]) -> Row {
    let (mut base, mut offset) = (13_u8, 0_i64);
    let mut saved: Vec<(u8, i64)> = Vec::new();
    for line in lines {
        let (first, what) = line.split_once(' ').expect("words");
        let words: Vec<&str> = what.split([' ', ',', '{', '}']).collect();
        match words[..] {
            ["finish"] => break,
            ["vsp", "=", "vsp", "+", size] => offset += size.parse::<i64>().expect("a number"),
            ["vsp", "=", "vsp", "-", size] => offset -= size.parse::<i64>().expect("a number"),
            ["vsp", "=", register] => {
                base = register[1..].parse().expect("a register");
                offset = 0;
            }
            ["pop", ..] => {
                let has_format = matches!(first, "0xb3") || ("0xb8".."0xc0").contains(&first);
                for register in &words[1..] {
                    if let Some(number) = register.strip_prefix('r') {
                        saved.push((number.parse().expect("a register"), offset));
                        offset += 4;
                    } else if let Some(range) = register.strip_prefix('D') {
                        let number = |text: &str| text.parse::<i64>().expect("a register");
                        let (first, last) = match range.split_once("-D") {
                            Some((first, last)) => (number(first), number(last)),
                            None => (number(range), number(range)),
                        };
                        offset += 8 * (last - first + 1);
                    }
                }
                offset += if has_format { 4 } else { 0 };
            }
            _ => panic!("{line}"),
        }
    }
    saved.sort_unstable();
    let is_popped = saved.iter().any(|(register, _)| *register == 15);
    let restores_stack = saved.iter().any(|(register, _)| *register == 13);
    Row {
        cfa: Cfa::Register(base, offset),
        rules: saved
            .iter()
            .map(|(register, place)| (*register, Rule::Offset(place - offset)))
            .collect(),
        return_register: if is_popped { 15 } else { 14 },
        is_signal: is_popped && restores_stack,
    }
}

/// Compares all functions with the text of readelf. Returns their number; `None` without readelf.
fn compare(path: &Path, object: &Object) -> Option<usize> {
    let Ok(said) = Command::new("readelf").arg("-u").arg(path).output() else {
        eprintln!("skipped for want of readelf");
        return None;
    };
    let text = String::from_utf8_lossy(&said.stdout);
    let functions = functions(&text);
    for (address, lines) in &functions {
        let found = object.row(*address, &mut Box::default());
        let found = found.unwrap_or_else(|| panic!("{address:#x}: {lines:?}"));
        match lines {
            Some(lines) => assert_eq!(found, row(lines), "{address:#x}: {lines:?}"),
            None => assert_eq!(found.rules, [(14, Rule::Undefined)], "{address:#x}"),
        }
    }
    Some(functions.len())
}

/// Instructions that compilers write, in the order of a return from a function.
fn code(mut seed: u64) -> Vec<u8> {
    let mut below = |end: u64| {
        seed = seed
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        u8::try_from((seed >> 33) % end).expect("a byte")
    };
    let mut code = Vec::new();
    if below(3) == 0 {
        code.push(0x90 | [7, 11, 4][usize::from(below(3))]);
    }
    match below(4) {
        0 => code.push(below(0x40)),
        1 => code.push(0x40 + below(0x40)),
        2 => code.extend([0xb2, 0x80 | below(0x80), below(4)]),
        _ => {}
    }
    match below(4) {
        0 => code.push(0xd0 + below(8)),
        1 => code.push(0xb8 + below(8)),
        2 => code.extend([0xc9, 0x80 | below(8)]),
        _ => {}
    }
    match below(4) {
        0 => code.push(0xa0 + below(16)),
        // With the program counter, and without it. The stack pointer may only be the last.
        1 => code.extend([0x88, 1 + below(0xff)]),
        2 => code.extend([0x84, below(0xff)]),
        _ => {}
    }
    if below(4) == 0 {
        code.extend([0xb1, 1 + below(15)]);
    }
    code
}

/// Returns an object with the tables of 100 functions.
fn tables() -> Vec<u8> {
    let relative = |to: u64, from: u64| u32::try_from(to.wrapping_sub(from) & 0x7fff_ffff);
    let (mut index, mut table) = (Vec::<u32>::new(), Vec::<u32>::new());
    for number in 0..100 {
        let place = INDEX + index.len() as u64 * 4;
        index.push(relative(0x1000 + number * 16, place).expect("31 bits"));
        let mut code = code(number);
        let word = |bytes: &[u8]| {
            let mut word = [0xb0; 4];
            word[4 - bytes.len()..].copy_from_slice(bytes);
            u32::from_be_bytes(word)
        };
        if number % 10 == 9 {
            index.push(1);
        } else if code.len() <= 3 {
            code.resize(3, 0xb0);
            index.push(word(&code) & 0xff_ffff | 0x80 << 24);
        } else {
            let entry = TABLE + table.len() as u64 * 4;
            index.push(relative(entry, place + 4).expect("31 bits"));
            let more = code.split_off(2);
            let words: Vec<u32> = more
                .chunks(4)
                .map(|bytes| {
                    let mut bytes = bytes.to_vec();
                    bytes.resize(4, 0xb0);
                    word(&bytes)
                })
                .collect();
            table.push(word(&code) & 0xffff | 0x81 << 24 | (words.len() as u32) << 16);
            table.extend(words);
        }
    }
    let bytes = |words: &[u32]| -> Vec<u8> {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        bytes.collect()
    };
    let (index, table) = (bytes(&index), bytes(&table));
    let sections: [(&str, u64, &[u8]); 2] =
        [(".ARM.exidx", INDEX, &index), (".ARM.extab", TABLE, &table)];
    ARM.elf(&sections)
}

#[test]
fn tables_are_those_of_readelf() {
    let elf = tables();
    let name = format!("perfconv-exidx-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    fs::write(&path, &elf).expect("a file");
    let count = compare(&path, &object(elf));
    fs::remove_file(&path).expect("a file");
    assert!(count.is_none_or(|count| count == 100), "{count:?}");
    // The C library of a cross-compiler, where it is installed.
    let path = Path::new("/usr/arm-linux-gnueabihf/lib/libc.so.6");
    if let Ok(elf) = fs::read(path) {
        assert!(compare(path, &object(elf)).is_none_or(|count| count > 100));
    }
}

#[test]
fn damaged_tables_do_no_harm() {
    let elf = tables();
    assert!(crate::unwind_everything(&elf) > 100);
    let end = elf.iter().rposition(|byte| *byte != 0x90);
    for at in (0..end.expect("not empty")).step_by(17) {
        for value in [0, 0x7f, 0xff] {
            let mut damaged = elf.clone();
            damaged[at] = value;
            crate::unwind_everything(&damaged);
        }
    }
}
