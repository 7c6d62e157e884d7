//! The unwinding tables of 32-bit Arm, `.ARM.exidx` and `.ARM.extab` (Exception Handling ABI for
//! the Arm Architecture, 2023Q3, sections 6, 7 and 10). Compilers write them in place of
//! `.eh_frame`.
//!
//! They describe how a function returns from its body. Samples in its prologue or epilogue can
//! therefore have a wrong caller, as with every reader of these tables.

use crate::row::{Cfa, Row, Rule};

/// Registers with a special meaning.
const SP: u8 = 13;
const LR: u8 = 14;
const PC: u8 = 15;

/// The word of an entry without information (`EXIDX_CANTUNWIND`).
const CANNOT_UNWIND: u32 = 1;

/// Bit 31 of a word with the instructions, in place of an address.
const INLINE: u32 = 1 << 31;

/// The instruction that ends the others.
const FINISH: u8 = 0xb0;

/// The tables of an object.
#[derive(Debug)]
pub(crate) struct Exidx {
    is_big_endian: bool,
    /// Address and content of `.ARM.exidx`.
    index: (u64, Vec<u8>),
    /// Address and content of `.ARM.extab`.
    table: (u64, Vec<u8>),
}

/// What an entry says.
enum ExidxEntry {
    CannotUnwind,
    Instructions(Vec<u8>),
}

impl Exidx {
    /// Returns the tables: address and content of `.ARM.exidx`, and of `.ARM.extab`, if there is
    /// one.
    pub fn new(is_big_endian: bool, index: (u64, Vec<u8>), table: Option<(u64, Vec<u8>)>) -> Self {
        Exidx {
            is_big_endian,
            index,
            table: table.unwrap_or_default(),
        }
    }

    /// Returns the size in bytes.
    pub fn held(&self) -> usize {
        self.index.1.len().saturating_add(self.table.1.len())
    }

    /// Returns the first addresses of all functions.
    pub fn functions(&self) -> impl Iterator<Item = u64> {
        (0..self.count()).filter_map(|at| self.start(at))
    }

    /// Returns the row for an address of the object; `None` if there is none, or it needs more than
    /// offsets from one register.
    pub fn row(&self, address: u64) -> Option<Row> {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            if self.start(middle)? <= address {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        match self.entry(low.checked_sub(1)?)? {
            ExidxEntry::CannotUnwind => Some(Row {
                cfa: Cfa::Register(SP, 0),
                rules: vec![(LR, Rule::Undefined)],
                return_register: LR,
                is_signal: false,
            }),
            ExidxEntry::Instructions(code) => ExidxFrame::of(&code)?.row(),
        }
    }

    /// Returns the number of entries of the index: two words each.
    fn count(&self) -> usize {
        self.index.1.len() / 8
    }

    /// Returns a word of a section at an offset.
    fn word(&self, bytes: &[u8], offset: usize) -> Option<u32> {
        let word = *bytes.get(offset..)?.first_chunk()?;
        Some(match self.is_big_endian {
            true => u32::from_be_bytes(word),
            false => u32::from_le_bytes(word),
        })
    }

    /// Returns the first address of the function of an entry.
    fn start(&self, at: usize) -> Option<u64> {
        let offset = at.checked_mul(8)?;
        let word = self.word(&self.index.1, offset)?;
        Some(relative(word, self.index.0.wrapping_add(offset as u64)))
    }

    fn entry(&self, at: usize) -> Option<ExidxEntry> {
        let offset = at.checked_mul(8)?.checked_add(4)?;
        let word = self.word(&self.index.1, offset)?;
        if word == CANNOT_UNWIND {
            return Some(ExidxEntry::CannotUnwind);
        }
        if word & INLINE != 0 {
            // Only the first of the common personality routines has inline entries.
            let is_first = word >> 24 == 0x80;
            return is_first.then(|| ExidxEntry::Instructions(bytes_of(word, 3)));
        }
        let address = relative(word, self.index.0.wrapping_add(offset as u64));
        let at = usize::try_from(address.checked_sub(self.table.0)?).ok()?;
        self.instructions(at).map(ExidxEntry::Instructions)
    }

    /// Returns the instructions of an entry of `.ARM.extab`.
    fn instructions(&self, at: usize) -> Option<Vec<u8>> {
        let word = |number: usize| {
            let offset = at.checked_add(number.checked_mul(4)?)?;
            self.word(&self.table.1, offset)
        };
        let first = word(0)?;
        let (mut code, next, more) = match (first & INLINE, first >> 24 & 0xf) {
            // Another personality routine: compilers use the form of the common ones.
            (0, _) => {
                let second = word(1)?;
                (bytes_of(second, 3), 2, second >> 24)
            }
            (_, 0) => (bytes_of(first, 3), 1, 0),
            (_, 1 | 2) => (bytes_of(first, 2), 1, first >> 16 & 0xff),
            _ => return None,
        };
        for number in 0..usize::try_from(more).ok()? {
            code.extend(bytes_of(word(number.checked_add(next)?)?, 4));
        }
        Some(code)
    }
}

/// Returns the address that the lower 31 bits of a word at `place` give relative to it (prel31).
fn relative(word: u32, place: u64) -> u64 {
    // The shift removes bit 31, and the shift back extends the sign.
    let offset = (word << 1).cast_signed() >> 1;
    place.wrapping_add_signed(offset.into()) & 0xffff_ffff
}

/// Returns the last `count` bytes of a word, the most significant one first.
fn bytes_of(word: u32, count: usize) -> Vec<u8> {
    let bytes = word.to_be_bytes();
    let first = bytes.len().saturating_sub(count);
    bytes.get(first..).unwrap_or_default().to_vec()
}

/// The effect of instructions.
#[derive(Debug, PartialEq, Eq)]
struct ExidxFrame {
    /// The register that the virtual stack pointer is relative to.
    base: u8,
    /// The virtual stack pointer, relative to it.
    offset: i64,
    /// The registers on the stack, with their places relative to the base.
    saved: Vec<(u8, i64)>,
    /// Whether the stack pointer is among them: only the return of a signal handler restores it
    /// from the stack.
    restores_stack: bool,
}

impl ExidxFrame {
    /// Executes the instructions (section 10.3); `None` if one is reserved, forbids unwinding, or
    /// has an effect that a row cannot describe.
    fn of(code: &[u8]) -> Option<Self> {
        let mut frame = ExidxFrame {
            base: SP,
            offset: 0,
            saved: Vec::new(),
            restores_stack: false,
        };
        let mut rest = code.iter().copied();
        while let Some(byte) = rest.next() {
            if frame.restores_stack && byte != FINISH {
                return None;
            }
            let low = i64::from(byte & 0x3f);
            match byte {
                0x00..=0x3f => frame.skip((low << 2).saturating_add(4)),
                0x40..=0x7f => frame.skip(i64::saturating_sub(-4, low << 2)),
                0x80..=0x8f => {
                    let mask = u16::from(byte & 0xf) << 8 | u16::from(rest.next()?);
                    // A mask without registers forbids unwinding.
                    frame.pop_mask(Some(mask << 4).filter(|mask| *mask != 0)?)?;
                }
                0x90..=0x9f => frame.rebase(byte & 0xf)?,
                0xa0..=0xaf => {
                    // From r4 on, one to eight registers.
                    let mask = (0x0ff0_u16 >> (7 & !byte)) & 0x0ff0;
                    let link = if byte & 8 != 0 { 1 << LR } else { 0 };
                    frame.pop_mask(mask | link)?;
                }
                FINISH => break,
                0xb1 => {
                    let mask = rest.next()?;
                    frame.pop_mask(Some(mask.into()).filter(|mask| matches!(mask, 1..=0xf))?)?;
                }
                0xb2 => {
                    let words = uleb128(&mut rest)?;
                    frame.skip(words.checked_mul(4)?.checked_add(0x204)?);
                }
                // Floating-point registers in the older form, with a word of format.
                0xb3 => {
                    let count = i64::from(rest.next()? & 0xf);
                    frame.skip(count.saturating_mul(8).saturating_add(12));
                }
                // The authentication code of the return address.
                0xb4 => frame.skip(4),
                0xb8..=0xbf => frame.skip((low & 7).saturating_mul(8).saturating_add(12)),
                // Registers of Wireless MMX: 8 bytes each, and control registers of 4 bytes.
                0xc0..=0xc5 => frame.skip((low & 7).saturating_mul(8).saturating_add(8)),
                0xc6 | 0xc8 | 0xc9 => {
                    let count = i64::from(rest.next()? & 0xf);
                    frame.skip(count.saturating_mul(8).saturating_add(8));
                }
                0xc7 => {
                    let mask = Some(rest.next()?).filter(|mask| matches!(mask, 1..=0xf))?;
                    frame.skip(i64::from(mask.count_ones()).saturating_mul(4));
                }
                0xd0..=0xd7 => frame.skip((low & 7).saturating_mul(8).saturating_add(8)),
                _ => return None,
            }
        }
        Some(frame)
    }

    fn skip(&mut self, bytes: i64) {
        self.offset = self.offset.saturating_add(bytes);
    }

    /// Sets the virtual stack pointer to the value of a register.
    fn rebase(&mut self, register: u8) -> Option<()> {
        // Places of registers that were popped before would be relative to another register.
        if register == SP || register == PC || !self.saved.is_empty() {
            return None;
        }
        (self.base, self.offset) = (register, 0);
        Some(())
    }

    /// Pops registers, the lowest number first.
    fn pop_mask(&mut self, mask: u16) -> Option<()> {
        self.restores_stack = mask >> SP & 1 == 1;
        for register in (0..=PC).filter(|register| mask >> register & 1 == 1) {
            self.saved.retain(|(other, _)| *other != register);
            self.saved.push((register, self.offset));
            self.skip(4);
        }
        Some(())
    }

    /// Returns the row: the virtual stack pointer at the end is that of the caller.
    fn row(self) -> Option<Row> {
        let ExidxFrame {
            base,
            offset,
            mut saved,
            restores_stack,
        } = self;
        saved.sort_unstable();
        let is_popped = saved.iter().any(|(register, _)| *register == PC);
        let rule = |(register, place): (u8, i64)| {
            Some((register, Rule::Offset(place.checked_sub(offset)?)))
        };
        Some(Row {
            cfa: Cfa::Register(base, offset),
            rules: saved.into_iter().map(rule).collect::<Option<_>>()?,
            return_register: if is_popped { PC } else { LR },
            is_signal: restores_stack && is_popped,
        })
    }
}

/// Returns a number of variable length; `None` if it exceeds 32 bits.
fn uleb128(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let mut value = 0_i64;
    for shift in [0, 7, 14, 21, 28] {
        let byte = bytes.next()?;
        value |= i64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return (value <= u32::MAX.into()).then_some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the ABI and of compilers, with the instructions that readelf -u shows.
    #[test]
    fn instructions() {
        let of = |code: &[u8]| ExidxFrame::of(code).and_then(ExidxFrame::row);
        let row = |cfa, rules: &[(u8, i64)], return_register| {
            let rules = rules
                .iter()
                .map(|(register, place)| (*register, Rule::Offset(*place)));
            Some(Row {
                cfa,
                rules: rules.collect(),
                return_register,
                is_signal: false,
            })
        };
        // Finish: a leaf.
        assert_eq!(of(&[0xb0, 0xb0, 0xb0]), row(Cfa::Register(13, 0), &[], 14));
        // vsp = vsp + 8; pop {r4, r5, r14}
        let expected = row(Cfa::Register(13, 20), &[(4, -12), (5, -8), (14, -4)], 14);
        assert_eq!(of(&[0x01, 0xa9, 0xb0]), expected);
        // vsp = r7; vsp = vsp - 8; pop {r7, r14}
        let expected = row(Cfa::Register(7, 0), &[(7, -8), (14, -4)], 14);
        assert_eq!(of(&[0x97, 0x41, 0x84, 0x08]), expected);
        // vsp = vsp + 1028; pop {D8, D9}; pop {r4, r15}
        let expected = row(Cfa::Register(13, 1052), &[(4, -8), (15, -4)], 15);
        assert_eq!(of(&[0xb2, 0x80, 0x01, 0xd1, 0x88, 0x01]), expected);
        // pop {r0, r1, r2, r3}; pop {D8} of the older form
        let all = [(0, -28), (1, -24), (2, -20), (3, -16)];
        assert_eq!(
            of(&[0xb1, 0x0f, 0xb8]),
            row(Cfa::Register(13, 28), &all, 14)
        );
    }

    #[test]
    fn what_a_row_cannot_say() {
        let codes: [&[u8]; 12] = [
            // Refuse to unwind; more after the stack pointer; reserved registers and instructions.
            &[0x80, 0x00],
            &[0x82, 0x00, 0x01],
            &[0x9d],
            &[0x9f],
            &[0xb1, 0x00],
            &[0xb1, 0x10],
            &[0xc7, 0x00],
            &[0xca],
            &[0xff],
            // Registers relative to two others; truncated instructions.
            &[0xa8, 0x97],
            &[0x80],
            &[0xb2, 0xff, 0xff, 0xff, 0xff, 0xff],
        ];
        for code in codes {
            assert_eq!(ExidxFrame::of(code), None, "{code:x?}");
        }
    }

    /// An index with an inline entry, one without information, and two in the table.
    #[test]
    fn entries() {
        for is_big_endian in [false, true] {
            let bytes = |words: &[u32]| -> Vec<u8> {
                let bytes = words.iter().map(|word| match is_big_endian {
                    true => word.to_be_bytes(),
                    false => word.to_le_bytes(),
                });
                bytes.flatten().collect()
            };
            let prel = |to: i64, from: i64| (to - from) as u32 & 0x7fff_ffff;
            let (index, table) = (0x2000, 0x3000);
            let exidx = Exidx::new(
                is_big_endian,
                (
                    index,
                    bytes(&[
                        prel(0x1000, 0x2000),
                        0x80a8_b0b0,
                        prel(0x1100, 0x2008),
                        1,
                        prel(0x1200, 0x2010),
                        prel(0x3000, 0x2014),
                        prel(0x1300, 0x2018),
                        prel(0x3008, 0x201c),
                        prel(0x1400, 0x2020),
                        prel(0x9000, 0x2024),
                    ]),
                ),
                Some((
                    table,
                    bytes(&[
                        0x8101_a8b0,
                        0xb0b0_b0b0,
                        // A personality routine at another place, and one more word.
                        prel(0x500, 0x3008),
                        0x0101_0101,
                        0xaab0_b0b0,
                    ]),
                )),
            );
            let cfa = |address| match exidx.row(address)?.cfa {
                Cfa::Register(register, offset) => Some((register, offset)),
                Cfa::Expression(_) => None,
            };
            assert_eq!(cfa(0xfff), None);
            assert_eq!(cfa(0x1000), Some((13, 8)));
            assert_eq!(cfa(0x10ff), Some((13, 8)));
            let end = exidx.row(0x1100).expect("a row");
            assert_eq!(end.rules, [(14, Rule::Undefined)]);
            assert_eq!(cfa(0x1200), Some((13, 8)));
            assert_eq!(cfa(0x1300), Some((13, 40)));
            assert_eq!(cfa(0x1400), None, "outside of the table");
            let functions: Vec<_> = exidx.functions().collect();
            assert_eq!(functions, [0x1000, 0x1100, 0x1200, 0x1300, 0x1400]);
        }
    }
}
