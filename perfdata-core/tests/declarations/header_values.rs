//! Values and bytes of the structures outside records and features, in both byte orders:
//! little-endian as perf on x86-64 writes them, big-endian as on s390x.

use perfdata_core::attr::{Attr, AttrFlags, AuxAction, EventType, ReadFormat, SIZES, SampleType};
use perfdata_core::feature::FeatureId;
use perfdata_core::header::{FeatureBitmap, FileHeader, FileSection, Magic, PipeHeader, WordSize};
use perfdata_core::record::{RecordHeader, RecordType};
use perfdata_core::wire::{Rest, Wire};
use perfdata_core::{DecodeContext, Endian};

pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Checks that `value` is encoded as these bytes, and that they are decoded as `value`, in both
/// byte orders.
pub fn check<T: Wire + PartialEq + std::fmt::Debug>(value: &T, little: &str, big: &str) {
    for (endian, text) in [(Endian::Little, little), (Endian::Big, big)] {
        let bytes = hex(text);
        assert_eq!(value.encode(endian).unwrap(), bytes, "{endian:?}");
        let (read, used) = T::decode(
            &bytes,
            endian,
            DecodeContext::default().with_len(bytes.len() as u64),
        )
        .unwrap();
        assert_eq!((&read, used), (value, bytes.len()), "{endian:?}");
    }
}

#[test]
fn record_header() {
    check(
        &RecordHeader {
            kind: RecordType::SAMPLE,
            misc: 0x4002,
            size: 40,
        },
        "09000000 0240 2800",
        "00000009 4002 0028",
    );
}

#[test]
fn pipe_header() {
    check(
        &PipeHeader {
            magic: Magic::V2,
            size: 16,
        },
        "50455246494c4532 1000000000000000",
        "32454c4946524550 0000000000000010",
    );
    check(
        &PipeHeader {
            magic: Magic::V1,
            size: 16,
        },
        "5045524646494c45 1000000000000000",
        "5045524646494c45 0000000000000010",
    );
}

#[test]
fn file_header() {
    let header = FileHeader {
        magic: Magic::V2,
        size: 104,
        attr_size: 144,
        attrs: FileSection {
            offset: 168,
            size: 144,
        },
        data: FileSection {
            offset: 312,
            size: 0x3048,
        },
        event_types: FileSection::default(),
        features: Some(FeatureBitmap::of(
            [2, 3, 4, 13, 29].map(FeatureId),
            WordSize::Bits64,
        )),
    };
    check(
        &header,
        "50455246494c4532 6800000000000000 9000000000000000 a800000000000000 9000000000000000
         3801000000000000 4830000000000000 0000000000000000 0000000000000000
         1c20002000000000 0000000000000000 0000000000000000 0000000000000000",
        "32454c4946524550 0000000000000068 0000000000000090 00000000000000a8 0000000000000090
         0000000000000138 0000000000003048 0000000000000000 0000000000000000
         000000002000201c 0000000000000000 0000000000000000 0000000000000000",
    );
    // Before 2.6.32 the header ends before the bitmap.
    let old = FileHeader {
        size: 72,
        features: None,
        ..header
    };
    assert_eq!(old.encode(Endian::Little).unwrap().len(), 72);
}

#[test]
fn attribute_of_the_first_size() {
    let attr = Attr {
        kind: EventType::SOFTWARE,
        size: 64,
        config: 1,
        sample_period: 4000,
        sample_type: SampleType::IP | SampleType::TID | SampleType::TIME,
        read_format: ReadFormat::ID,
        // disabled, inherit, mmap, comm, freq, task, precise_ip = 2
        flags: AttrFlags(0b11 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 13 | 2 << 15),
        wakeup: 0,
        bp_type: 0,
        config1: 0,
        config2: None,
        branch_sample_type: None,
        sample_regs_user: None,
        sample_stack_user: None,
        clockid: None,
        sample_regs_intr: None,
        aux_watermark: None,
        sample_max_stack: None,
        reserved_2: None,
        aux_sample_size: None,
        aux_action: None,
        sig_data: None,
        config3: None,
        config4: None,
        tail: Rest::default(),
    };
    check(
        &attr,
        "01000000 40000000 0100000000000000 a00f000000000000 0700000000000000 0400000000000000
         0327010000000000 00000000 00000000 0000000000000000",
        "00000001 00000040 0000000000000001 0000000000000fa0 0000000000000007 0000000000000004
         c0e5000000000000 00000000 00000000 0000000000000000",
    );
}

#[test]
fn attribute_of_the_last_size() {
    let little =
        "01000000 90000000 0100000000000000 a00f000000000000 0700000000000000 0400000000000000
         0300000000000000 01000000 02000000 1100000000000000 2200000000000000 0100020000000000
         ff00000000000000 00200000 01000000 0f00000000000000 00100000 7f00 0000 00080000 05000000
         3300000000000000 4400000000000000 5500000000000000";
    let (attr, used) =
        Attr::decode(&hex(little), Endian::Little, DecodeContext::default()).unwrap();
    assert_eq!(used, 144);
    assert_eq!(
        (attr.clockid, attr.sample_max_stack, attr.config4),
        (Some(1), Some(127), Some(0x55))
    );
    let action = attr.aux_action.unwrap();
    assert_eq!(
        (
            action.aux_start_paused(),
            action.aux_pause(),
            action.aux_resume()
        ),
        (1, 0, 1)
    );
    check(
        &attr,
        little,
        "00000001 00000090 0000000000000001 0000000000000fa0 0000000000000007 0000000000000004
         c000000000000000 00000001 00000002 0000000000000011 0000000000000022 0000000000020001
         00000000000000ff 00002000 00000001 000000000000000f 00001000 007f 0000 00000800 a0000000
         0000000000000033 0000000000000044 0000000000000055",
    );
    assert_eq!(AuxAction(0b101).to_wire(Endian::Big), 0xa000_0000);
}

/// Every size of the attribute in any kernel: the fields beyond it are `None`, the others keep
/// their value.
#[test]
fn attribute_of_every_size() {
    let fields = [
        "01000000 90000000 0100000000000000 a00f000000000000 0700000000000000 0400000000000000",
        "0300000000000000 01000000 02000000 1100000000000000",
        "2200000000000000",
        "0100020000000000",
        "ff00000000000000 00200000 01000000",
        "0f00000000000000",
        "00100000 7f00 0000",
        "00080000 05000000",
        "3300000000000000",
        "4400000000000000",
        "5500000000000000",
    ];
    let words = [
        "00000001 00000090 0000000000000001 0000000000000fa0 0000000000000007 0000000000000004",
        "c000000000000000 00000001 00000002 0000000000000011",
        "0000000000000022",
        "0000000000020001",
        "00000000000000ff 00002000 00000001",
        "000000000000000f",
        "00001000 007f 0000",
        "00000800 a0000000",
        "0000000000000033",
        "0000000000000044",
        "0000000000000055",
    ];
    let (whole, _) = Attr::decode(
        &hex(&fields.concat()),
        Endian::Little,
        DecodeContext::default(),
    )
    .unwrap();
    for (at, (size, _)) in SIZES.iter().enumerate() {
        let with_size = |bytes: &[&str], size_bytes: &[u8]| {
            let mut bytes = hex(&bytes[..at + 2].concat());
            bytes[4..8].copy_from_slice(size_bytes);
            assert_eq!(bytes.len(), *size as usize);
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        let little = with_size(&fields, &size.to_le_bytes());
        let big = with_size(&words, &size.to_be_bytes());
        let from = |bytes: u32, value: bool| assert_eq!(value, *size >= bytes, "{size}");
        let (attr, _) =
            Attr::decode(&hex(&little), Endian::Little, DecodeContext::default()).unwrap();
        from(72, attr.config2 == Some(0x22));
        from(
            80,
            attr.branch_sample_type.is_some()
                && attr.branch_sample_type == whole.branch_sample_type,
        );
        from(
            96,
            (attr.sample_regs_user, attr.sample_stack_user, attr.clockid)
                == (Some(0xff), Some(0x2000), Some(1)),
        );
        from(104, attr.sample_regs_intr == Some(15));
        from(
            112,
            (attr.aux_watermark, attr.sample_max_stack, attr.reserved_2)
                == (Some(0x1000), Some(127), Some(0)),
        );
        from(
            120,
            attr.aux_sample_size == Some(0x800) && attr.aux_action.is_some(),
        );
        from(128, attr.sig_data == Some(0x33));
        from(136, attr.config3 == Some(0x44));
        from(144, attr.config4 == Some(0x55));
        check(&attr, &little, &big);
    }
}

/// 1, 2 and 3 keep their value: the two bits move as a whole, although a byte boundary separates
/// them.
#[test]
fn precise_ip() {
    // On the wire of a big-endian machine, the field's lowest bit is bit 64 - 15 - 2 = 47.
    for (value, little, big) in [
        (1, 0x0_8000, 1 << 47),
        (2, 0x1_0000, 1 << 48),
        (3, 0x1_8000, 3 << 47),
    ] {
        let flags = AttrFlags(0).with_precise_ip(value);
        assert_eq!(flags.to_wire(Endian::Little), little);
        assert_eq!(flags.to_wire(Endian::Big), big);
        assert_eq!(AttrFlags::from_wire(big, Endian::Big).precise_ip(), value);
    }
}
