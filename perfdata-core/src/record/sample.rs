//! SAMPLE: the attribute's `sample_type` determines which parts are present
//! (include/uapi/linux/perf_event.h, enum perf_event_type; kernel/events/core.c,
//! perf_output_sample).

use binrw::Endian;

use crate::attr::SampleType;
use crate::decode_context::DecodeContext;
use crate::record::RecordHeader;
use crate::record::parts::{InWord, all, parts, place};
use crate::record::sample_id::{Cpu, Tid};
use crate::record::sample_parts::{BranchStack, DataSource, ReadValue, Regs, StackUser, Weights};
use crate::wire::{Counted, decode_words};

impl DecodeContext {
    /// Returns the parts of a SAMPLE whose position is certain. New parts are inserted before AUX,
    /// and new words of a read value before all parts that follow it; the data after the certain
    /// parts remains bytes.
    pub(crate) fn placed_parts(&self) -> SampleType {
        let mut parts = self.sample_type;
        if parts.unknown() != 0 {
            parts.0 &= SampleType::KNOWN.0 & !SampleType::AUX.0;
        }
        if parts.has(SampleType::READ) && self.read_format.unknown() != 0 {
            parts.0 &= all(&Sample::WORDS).0;
        }
        parts
    }
}

parts! {
    /// One occurrence of an event (2.6.31). Parts are in file order. The event's `sample_type`
    /// determines which parts are present; a new sample must have exactly these parts.
    pub struct Sample(layout) {
        words {
            /// Event ID at a fixed position (3.12).
            IDENTIFIER word identifier: u64 as Id,
            /// Instruction pointer.
            IP word ip: u64 as Address,
            /// Process and thread.
            TID pair tid: Tid,
            /// Nanoseconds on the recording's clock.
            TIME word time: u64 as Time,
            /// Data address.
            ADDR word addr: u64 as Address,
            /// Event ID.
            ID word id: u64 as Id,
            /// ID of the event's instance.
            STREAM_ID word stream_id: u64 as StreamId,
            /// CPU.
            CPU pair cpu: Cpu,
            /// Events since the last sample.
            PERIOD word period: u64 => Number,
        }
        counted {
            /// Counter values.
            READ(layout) read: ReadValue,
            /// Return addresses, innermost first, with
            /// [`CallchainContext`](crate::record::CallchainContext) markers between them.
            CALLCHAIN callchain: Counted<u64, u64> as Callchain,
            /// Raw data of a tracepoint or PMU, in the recording machine's layout, with padding.
            RAW raw: Counted<u32, u8> => Raw,
        }
        others {
            /// The last branches.
            BRANCH_STACK(layout) branch_stack: BranchStack,
            /// User registers (3.7).
            REGS_USER(layout.with_regs(layout.sample_regs_user)) regs_user: Regs => Registers,
            /// User stack (3.7).
            STACK_USER stack_user: StackUser => Memory,
            /// Cost, in the unit of the event (3.10).
            WEIGHT weight: u64 => Number,
            /// Several costs (5.12), if [`weight`](Self::weight) is not requested.
            WEIGHT_STRUCT[unless WEIGHT] weight_struct: Weights,
            /// Source of the data, `union perf_mem_data_src` (3.10).
            DATA_SRC data_src: DataSource,
            /// Transaction flags in bits 0–7, abort code in bits 32–63 (3.13).
            TRANSACTION transaction: u64 as Hex => Number,
            /// Registers at the interrupt (3.19).
            REGS_INTR(layout.with_regs(layout.sample_regs_intr)) regs_intr: Regs => Registers,
            /// Physical data address (4.14).
            PHYS_ADDR phys_addr: u64 as Hex => PhysicalAddress,
            /// ID of the cgroup (5.7).
            CGROUP cgroup: u64 as CgroupId,
            /// Page size at the data address in bytes (5.11).
            DATA_PAGE_SIZE data_page_size: u64 => Number,
            /// Page size at the instruction in bytes (5.11).
            CODE_PAGE_SIZE code_page_size: u64 => Number,
            /// Piece of an AUX trace (5.5).
            AUX aux: Counted<u64, u8> => Trace,
        }
    }
}

const _: () = assert!(
    Sample::PARTS.0 == SampleType::KNOWN.0,
    "every bit of sample_type has its part"
);

impl Sample {
    /// The parts that [`of_words`](Self::of_words) reads: words, CALLCHAIN and RAW.
    const USUAL: SampleType =
        SampleType(all(&Self::WORDS).0 | all(&Self::COUNTED).0 & !SampleType::READ.0);

    /// Returns the offset of `part`, which is a word, in a SAMPLE, in bytes from the start of the
    /// record.
    pub(crate) fn from_start(sample_type: SampleType, part: SampleType) -> Option<usize> {
        let before = Self::WORDS.iter().take_while(|&&word| word != part);
        place(sample_type, part, before).map(|before| before.saturating_add(RecordHeader::SIZE))
    }

    /// Decodes a sample with `parts` in a fraction of the time if it contains only the most common
    /// parts and they use all of `bytes`; returns `None` for all other samples, corrupt or not.
    pub(super) fn of_words(bytes: &[u8], endian: Endian, parts: SampleType) -> Option<Self> {
        if parts.0 & !Self::USUAL.0 != 0 {
            return None;
        }
        let mut rest = bytes;
        let mut word = || -> Option<u64> {
            let (word, behind) = rest.split_first_chunk()?;
            rest = behind;
            Some(if endian == Endian::Little {
                u64::from_le_bytes(*word)
            } else {
                u64::from_be_bytes(*word)
            })
        };
        let mut part = |part| {
            if parts.has(part) {
                word().map(Some)
            } else {
                Some(None)
            }
        };
        let mut sample = Sample {
            identifier: part(SampleType::IDENTIFIER)?,
            ip: part(SampleType::IP)?,
            tid: part(SampleType::TID)?.map(|word| Tid::of_word(word, endian)),
            time: part(SampleType::TIME)?,
            addr: part(SampleType::ADDR)?,
            id: part(SampleType::ID)?,
            stream_id: part(SampleType::STREAM_ID)?,
            cpu: part(SampleType::CPU)?.map(|word| Cpu::of_word(word, endian)),
            period: part(SampleType::PERIOD)?,
            ..Sample::default()
        };
        if let Some(nr) = part(SampleType::CALLCHAIN)? {
            let (chain, behind) =
                rest.split_at_checked(usize::try_from(nr).ok()?.checked_mul(8)?)?;
            sample.callchain = Some(decode_words(chain, endian).into());
            rest = behind;
        }
        if parts.has(SampleType::RAW) {
            let (size, raw) = rest.split_first_chunk()?;
            let size = if endian == Endian::Little {
                u32::from_le_bytes(*size)
            } else {
                u32::from_be_bytes(*size)
            };
            let (raw, behind) = raw.split_at_checked(usize::try_from(size).ok()?)?;
            sample.raw = Some(raw.to_vec().into());
            rest = behind;
        }
        rest.is_empty().then_some(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{Content, Rewrite, Rewriter};
    use crate::record::parts::{bytes_of, number};
    use crate::wire::Wire;

    /// Replaces every value by a number that depends on its name, its size and its content.
    struct Other;

    impl Rewriter for Other {
        fn number(&mut self, name: &'static str, value: u64, size: usize, content: Content) -> u64 {
            let other = (value ^ (name.len() as u64) << 9).wrapping_mul(3) ^ content as u64;
            other & u64::MAX >> (64 - 8 * size)
        }

        fn text(&mut self, _: &'static str, _: &[u8], _: usize, _: Content) -> Option<Vec<u8>> {
            None
        }

        fn bytes(&mut self, _: &'static str, _: &mut [u8], _: Content) {}
    }

    /// Collects all numbers.
    #[derive(Default)]
    struct Seen(Vec<u64>);

    impl Rewriter for Seen {
        fn number(&mut self, _: &'static str, value: u64, _: usize, _: Content) -> u64 {
            self.0.push(value);
            !value
        }

        fn text(&mut self, _: &'static str, _: &[u8], _: usize, _: Content) -> Option<Vec<u8>> {
            None
        }

        fn bytes(&mut self, _: &'static str, _: &mut [u8], _: Content) {}
    }

    /// Every combination of the most common parts, in both byte orders: samples are changed in
    /// place as by decoding and encoding them, or not at all.
    #[test]
    fn words_are_changed_in_place() {
        let (mut changed, mut others) = (0, 0);
        for sample_type in combinations() {
            for endian in [Endian::Little, Endian::Big] {
                let body = sample(sample_type, endian);
                let layout = DecodeContext {
                    sample_type,
                    len: body.len() as u64,
                    ..DecodeContext::default()
                };
                let offsets = crate::record::SampleOffsets::of(&layout);
                let mut expected = Sample::decode(&body, endian, layout).unwrap().0;
                expected.rewrite("", Content::Fields, &mut Other);
                for extra in [0, 8] {
                    let header = RecordHeader {
                        kind: crate::record::RecordType::SAMPLE,
                        misc: 2,
                        size: u16::try_from(body.len() + RecordHeader::SIZE + extra).unwrap(),
                    };
                    let mut bytes = Vec::new();
                    header.encode_into(&mut bytes, endian).unwrap();
                    bytes.extend_from_slice(&body);
                    bytes.resize(bytes.len() + extra, 7);
                    let before = bytes.clone();
                    let mut seen = Seen::default();
                    let is_inspected = offsets.inspect(&bytes, endian, &mut seen, |seen, words| {
                        seen.0
                            .extend(words.iter().map(|word| number(*word, endian)));
                    });
                    let is_done =
                        offsets.rewrite(&mut bytes, endian, &mut Other, |other, words| {
                            for word in words {
                                let mut new = [number(*word, endian)];
                                other.words("callchain", &mut new, Content::Callchain);
                                *word = bytes_of(new[0], endian);
                            }
                        });
                    assert_eq!(is_inspected, is_done, "{sample_type:?}");
                    let is_possible = extra == 0 && !sample_type.has(SampleType::RAW);
                    assert_eq!(is_done, is_possible, "{sample_type:?}");
                    if !is_done {
                        assert_eq!(bytes, before, "{sample_type:?}");
                        others += 1;
                        continue;
                    }
                    let (made, _) =
                        Sample::decode(&bytes[RecordHeader::SIZE..], endian, layout).unwrap();
                    assert_eq!(made, expected, "{sample_type:?}");
                    let mut decoded = Seen::default();
                    let mut sample = Sample::decode(&body, endian, layout).unwrap().0;
                    sample.rewrite("", Content::Fields, &mut decoded);
                    assert_eq!(seen.0, decoded.0, "{sample_type:?}");
                    changed += 1;
                }
            }
        }
        assert!(changed > 1000 && others > changed, "{changed} {others}");
    }

    /// Every combination of the most common parts, in both byte orders: whole, truncated anywhere,
    /// with extra bytes.
    #[test]
    fn words_are_what_the_declaration_says() {
        let mut compared = 0;
        for sample_type in combinations() {
            for endian in [Endian::Little, Endian::Big] {
                let bytes = sample(sample_type, endian);
                for len in 0..bytes.len() + 8 {
                    let mut bytes = bytes.clone();
                    bytes.resize(len, 7);
                    let layout = DecodeContext {
                        sample_type,
                        len: len as u64,
                        ..DecodeContext::default()
                    };
                    let declared = Sample::decode(&bytes, endian, layout);
                    let declared = declared
                        .ok()
                        .filter(|(_, used)| *used == len)
                        .map(|(sample, _)| sample);
                    assert_eq!(
                        Sample::of_words(&bytes, endian, sample_type),
                        declared,
                        "{sample_type:?}, {len} bytes"
                    );
                    compared += usize::from(declared.is_some());
                }
            }
        }
        assert!(compared >= 2 << Sample::USUAL.0.count_ones());
        assert_eq!(
            Sample::of_words(&[0; 8], Endian::Little, SampleType::WEIGHT),
            None
        );
    }

    /// Every combination of the most common parts.
    fn combinations() -> impl Iterator<Item = SampleType> {
        let bits = || (0..u64::BITS).map(|bit| 1_u64 << bit);
        let parts: Vec<u64> = bits().filter(|bit| Sample::USUAL.0 & bit != 0).collect();
        (0..1_u64 << parts.len()).map(move |choice| {
            let bits = parts.iter().zip(bits());
            let chosen = bits.filter(|(_, number)| choice & number != 0);
            SampleType(chosen.fold(0, |all, (part, _)| all | part))
        })
    }

    /// Different words, then a callchain of three and RAW data of five bytes.
    fn sample(parts: SampleType, endian: Endian) -> Vec<u8> {
        let counted = SampleType::CALLCHAIN.0 | SampleType::RAW.0;
        let mut words: Vec<u64> = (0..u64::from((parts.0 & !counted).count_ones()))
            .map(|at| 0x0102_0304_0506_0708 * (at + 1))
            .collect();
        if parts.has(SampleType::CALLCHAIN) {
            words.extend([3, 0xffff_ffff_ffff_fe00, 0x10, 0x20]);
        }
        let mut bytes = crate::wire::encode_words(&words, endian);
        if parts.has(SampleType::RAW) {
            bytes.extend(if endian == Endian::Little {
                5_u32.to_le_bytes()
            } else {
                5_u32.to_be_bytes()
            });
            bytes.extend(*b"bytes");
        }
        bytes
    }
}
