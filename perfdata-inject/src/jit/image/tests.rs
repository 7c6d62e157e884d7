use object::read::elf::{ElfFile32, ElfFile64};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};

use super::*;

const X86_64: Target = Target {
    machine: ElfMachine::X86_64,
    is_64: true,
    endian: Endian::Little,
};

/// Returns an image with an alignment of 8.
fn image<'a>(target: Target, name: &'a [u8], code: &'a [u8]) -> Image<'a> {
    Image {
        target,
        name,
        code,
        unwinding: None,
        lines: &[],
        p_align: 8,
    }
}

const CODE: &[u8] = b"H\x89\xf9H\xff\xc9u\xfbH\x89\xf8\xc3";

/// Two functions whose images perf 7.2 wrote: their sizes and CRC-32.
#[test]
fn an_image_without_lines_is_that_of_perf() {
    let written = image(X86_64, b"interp_entry", CODE).write().unwrap();
    assert_eq!(written.bytes.len(), 744);
    assert_eq!(crc32fast::hash(&written.bytes), 0x4a67_e59d);

    let code = [&[0x90; 8], CODE].concat();
    let eh_frame = b"\x14\0\0\0\0\0\0\0\x01zR\0\x01x\x10\x01\x1b\x0c\x07\x08\x90\x01\0\0\
        \x14\0\0\0\x1c\0\0\0\xc8\xff\xff\xff\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let hdr = b"\x01\x1b\x03\x3b\xc4\xff\xff\xff\x01\0\0\0\xb0\xff\xff\xff\xe0\xff\xff\xff";
    let unwindable = Image {
        unwinding: Some((eh_frame, hdr)),
        ..image(X86_64, b"unwindable_leaf", &code)
    };
    let written = unwindable.write().unwrap();
    assert_eq!(written.bytes.len(), 960);
    assert_eq!(crc32fast::hash(&written.bytes), 0x8364_9adc);
}

fn check<'data>(file: &impl Object<'data>, text: u64, written: &Written) {
    let section = file.section_by_name(".text").unwrap();
    assert_eq!((section.address(), section.data().unwrap()), (text, CODE));
    let symbol = file.symbols().next().unwrap();
    assert_eq!((symbol.name(), symbol.address()), (Ok("f"), text));
    assert_eq!(symbol.size(), CODE.len() as u64);
    let segment = file.segments().next().unwrap();
    assert_eq!((segment.address(), segment.data().unwrap()), (text, CODE));
    assert_eq!(file.build_id().unwrap().unwrap(), written.build_id);
    assert_eq!(file.entry(), text);
}

/// perf itself only writes images for the machine that it runs on.
#[test]
fn images_of_other_machines_are_read() {
    for endian in [Endian::Little, Endian::Big] {
        let target = |machine, is_64| Target {
            machine,
            is_64,
            endian,
        };
        let wide = image(target(ElfMachine::S390, true), b"f", CODE)
            .write()
            .unwrap();
        check(
            &ElfFile64::<object::Endianness>::parse(&*wide.bytes).unwrap(),
            0x80,
            &wide,
        );
        let narrow = image(target(ElfMachine::ARM, false), b"f", CODE)
            .write()
            .unwrap();
        let file = ElfFile32::<object::Endianness>::parse(&*narrow.bytes).unwrap();
        check(&file, 0x60, &narrow);
        assert_eq!(file.is_little_endian(), endian == Endian::Little);
    }
}

#[test]
fn lines_are_in_sections_of_their_own() {
    let line = |offset, line, file| SourceLine {
        offset,
        file,
        line,
        column: 3,
    };
    let lines = [
        line(0, 10, b"a.js"),
        line(3, 9, b"b.js"),
        line(3, 9, b"b.js"),
    ];
    let plain = image(X86_64, b"f", CODE).write().unwrap();
    let written = Image {
        lines: &lines,
        ..image(X86_64, b"f", CODE)
    };
    let written = written.write().unwrap();
    assert_eq!(written.build_id, plain.build_id, "of code and name alone");
    let file = ElfFile64::<object::Endianness>::parse(&*written.bytes).unwrap();
    for name in [".debug_line", ".debug_info", ".debug_abbrev"] {
        assert!(file.section_by_name(name).unwrap().size() > 0, "{name}");
    }
}

/// The names of several functions, for readers of ELF files of all kinds.
#[test]
fn images_of_names_have_no_code() {
    let symbol = |offset, size, name| Symbol { offset, size, name };
    let name: &[u8] = b"outer";
    let symbols = [
        symbol(0, 0x10, name),
        symbol(0x10, 8, b"inner"),
        symbol(0x18, 0x20, name),
    ];
    for (machine, is_64, endian) in [
        (ElfMachine::X86_64, true, Endian::Little),
        (ElfMachine::S390, true, Endian::Big),
        (ElfMachine::ARM, false, Endian::Little),
        (ElfMachine::PPC, false, Endian::Big),
    ] {
        let target = Target {
            machine,
            is_64,
            endian,
        };
        let of = |symbols| {
            let image = SymbolImage {
                target,
                size: 0x3000,
                symbols,
            };
            image.write().unwrap()
        };
        let written = of(&symbols);
        let file = object::File::parse(&*written.bytes).unwrap();
        assert_eq!(file.is_64(), is_64);
        assert_eq!(file.is_little_endian(), endian == Endian::Little);
        let found: Vec<_> = file
            .symbols()
            .map(|symbol| {
                (
                    symbol.address(),
                    symbol.size(),
                    symbol.name_bytes().unwrap(),
                )
            })
            .collect();
        let expected = symbols.map(|symbol| (symbol.offset, symbol.size, symbol.name));
        assert_eq!(found, expected);
        assert!(file.symbols().all(|symbol| symbol.is_global()));
        let text = file.section_by_name(".text").unwrap();
        assert_eq!((text.address(), text.size()), (0, 0x3000));
        assert_eq!(text.data().unwrap(), b"");
        let segment = file.segments().next().unwrap();
        assert_eq!((segment.address(), segment.size()), (0, 0x3000));
        assert_eq!(segment.data().unwrap(), b"");
        assert_eq!(file.build_id().unwrap().unwrap(), written.build_id);
        assert_ne!(of(&symbols[..2]).build_id, written.build_id);
        let strings = file.section_by_name(".strtab").unwrap();
        assert_eq!(
            strings.data().unwrap(),
            b"\0outer\0inner\0",
            "each name once"
        );
    }
}
