//! Samples of one event that differ only in single words, as those that are made of traces.

use binrw::Endian;

use super::sample_offsets::SampleOffsets;
use super::words::WORD;
use crate::attr::SampleType;
use crate::decode_context::DecodeContext;
use crate::error::Result;
use crate::record::{RawRecord, Record, RecordHeader};

/// The bytes of a sample whose parts can be replaced. Encoding a sample part by part takes much more
/// time than to replace those that are different from the sample before.
#[derive(Debug, Clone)]
pub struct SampleTemplate {
    bytes: Vec<u8>,
    offsets: SampleOffsets,
    endian: Endian,
}

impl SampleTemplate {
    /// Returns the template with the parts of `sample`; `None` if it has others than those of one
    /// word that precede the read value.
    ///
    /// # Errors
    /// The sample is too large for a record.
    pub fn of(sample: &Record, layout: &DecodeContext, endian: Endian) -> Result<Option<Self>> {
        let bytes = sample.encode(endian)?;
        let offsets = SampleOffsets::of(layout);
        let is_of_words =
            layout.placed_parts() == layout.sample_type && offsets.behind == bytes.len();
        Ok(is_of_words.then_some(SampleTemplate {
            bytes,
            offsets,
            endian,
        }))
    }

    /// Sets a part of one word; nothing changes if the sample does not have it.
    #[inline]
    pub fn set(&mut self, part: SampleType, word: u64) {
        let bytes = match self.endian {
            Endian::Little => word.to_le_bytes(),
            Endian::Big => word.to_be_bytes(),
        };
        self.put(part, bytes);
    }

    /// Sets a part of two numbers of 32 bits, such as `TID` (process and thread) and `CPU` (its
    /// number, and 0).
    #[inline]
    pub fn set_pair(&mut self, part: SampleType, first: u32, second: u32) {
        let [first, second] = match self.endian {
            Endian::Little => [first.to_le_bytes(), second.to_le_bytes()],
            Endian::Big => [first.to_be_bytes(), second.to_be_bytes()],
        };
        let mut bytes = [0; WORD];
        let halves = bytes.as_chunks_mut::<4>().0.iter_mut();
        halves
            .zip([first, second])
            .for_each(|(half, new)| *half = new);
        self.put(part, bytes);
    }

    /// Sets `misc` of the header.
    #[inline]
    pub fn set_misc(&mut self, misc: u16) {
        RecordHeader::put_misc(&mut self.bytes, misc, self.endian);
    }

    /// Returns the record.
    ///
    /// # Errors
    /// None: the header is that of the sample that the template was made of.
    #[inline]
    pub fn record(&self) -> Result<RawRecord<'_>> {
        RawRecord::first(&self.bytes, self.endian, 0)
    }

    #[inline]
    fn put(&mut self, part: SampleType, bytes: [u8; WORD]) {
        if let Some(at) = self.offsets.place(part)
            && let Some(word) = self.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut)
        {
            *word = bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Body, Cpu, CpuMode, Sample, Tid};
    use crate::wire::Counted;

    const PARTS: SampleType = SampleType(
        SampleType::IP.0
            | SampleType::TID.0
            | SampleType::TIME.0
            | SampleType::CPU.0
            | SampleType::PERIOD.0,
    );

    fn sample(ip: u64, tid: u32, time: u64, cpu: u32) -> Record {
        let sample = Sample {
            ip: Some(ip),
            tid: Some(Tid { pid: 7, tid }),
            time: Some(time),
            cpu: Some(Cpu { cpu, reserved: 0 }),
            period: Some(5),
            ..Sample::default()
        };
        Record::new(Body::Sample(sample)).with_misc(CpuMode::USER.0)
    }

    #[test]
    fn replaced_parts_are_those_of_an_encoded_sample() {
        let layout = DecodeContext {
            sample_type: PARTS,
            ..DecodeContext::default()
        };
        for endian in [Endian::Little, Endian::Big] {
            let first = sample(1, 2, 3, 4);
            let template = SampleTemplate::of(&first, &layout, endian).expect("a sample");
            let mut template = template.expect("only words");
            assert_eq!(
                template.record().expect("a record").bytes,
                first.encode(endian).expect("bytes")
            );
            template.set(SampleType::IP, 0x1122_3344_5566_7788);
            template.set_pair(SampleType::TID, 7, 0x99);
            template.set(SampleType::TIME, u64::MAX);
            template.set_pair(SampleType::CPU, 0x55, 0);
            template.set_misc(CpuMode::KERNEL.0);
            // It has none.
            template.set(SampleType::ADDR, 77);
            let other = sample(0x1122_3344_5566_7788, 0x99, u64::MAX, 0x55);
            let other = other.with_misc(CpuMode::KERNEL.0).encode(endian);
            assert_eq!(
                template.record().expect("a record").bytes,
                other.expect("bytes")
            );
        }
    }

    #[test]
    fn samples_of_other_parts_have_no_template() {
        let layout = DecodeContext {
            sample_type: SampleType(SampleType::IP.0 | SampleType::CALLCHAIN.0),
            ..DecodeContext::default()
        };
        let with_callchain = Sample {
            ip: Some(1),
            callchain: Some(Counted::from(vec![])),
            ..Sample::default()
        };
        let record = Record::new(Body::Sample(with_callchain));
        let template = SampleTemplate::of(&record, &layout, Endian::Little);
        assert!(template.expect("a sample").is_none());
    }
}
