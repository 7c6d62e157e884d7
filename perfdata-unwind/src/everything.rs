//! Unwinding with an arbitrary object, for tests with arbitrary data.

use perfdata_symbols::{Elf, ObjectFiles};

use crate::{At, Machine, MappedObject, Maps, Object, ObjectId, Objects, Task, Unwinder};

/// One object at all addresses.
struct Everywhere(ObjectId);

impl Maps for Everywhere {
    fn at(&self, _: u64) -> At {
        At::Object(MappedObject {
            object: self.0,
            start: 0,
            pgoff: 0,
        })
    }
}

/// Maximum number of functions that are tried.
const MOST_FUNCTIONS: usize = 256;

/// Reads data as an object, and unwinds from its functions with a stack and registers that consist
/// of the same data. Returns the number of frames.
pub fn unwind_everything(data: &[u8]) -> usize {
    let Ok(elf) = Elf::from_bytes(data.to_vec()) else {
        return 0;
    };
    let segments = elf.segments().to_vec();
    let Ok(object) = Object::new(ObjectFiles::new(elf, None)) else {
        return 0;
    };
    let offset_of = |address: u64| {
        segments.iter().find_map(|segment| {
            let at = address.checked_sub(segment.address)?;
            segment.offset.checked_add(at)
        })
    };
    let functions: Vec<u64> = object.functions().take(MOST_FUNCTIONS).collect();
    let objects = Objects::known(vec![object]);
    let Some(id) = objects.id(0) else {
        return 0;
    };
    let mut frames = Vec::new();
    let word = |at: &[u8; 8]| u64::from_le_bytes(*at);
    let words: Vec<u64> = data.as_chunks::<8>().0.iter().map(word).collect();
    let mut count: usize = 0;
    for machine in Machine::ALL {
        let mut unwinder = Unwinder::new().with_frame_pointers(true);
        let (ip, sp) = machine.pointers();
        for function in &functions {
            let pc = offset_of(*function).unwrap_or(*function).wrapping_add(1);
            let registers: Vec<u64> = (0..64)
                .map(|bit| match bit {
                    bit if bit == ip => pc,
                    bit if bit == sp => 0x7000,
                    bit => {
                        let at = usize::try_from(bit).unwrap_or(0);
                        words.get(at).copied().unwrap_or(0x7000)
                    }
                })
                .collect();
            let task = Task {
                machine,
                mask: u64::MAX,
                registers: &registers,
                stack: data,
            };
            frames.clear();
            unwinder.unwind(&task, &Everywhere(id), &objects, 512, &mut frames);
            count = count.saturating_add(frames.len());
        }
    }
    count
}
