//! Prints the callchain of every sample, from the outermost caller to where the sample was taken, each address with the
//! object that is mapped there and the offset in its file. The lines are what a tool for flame graphs counts:
//!
//!     cargo run -p perfdata-core --example callchains -- perf.data | sort | uniq -c

use std::{
    collections::{BTreeMap, HashMap},
    env,
    error::Error,
    fs::File,
    io::{self, Write},
    sync::Arc,
};

use perfdata_core::read::{Piece, RecordingReader};
use perfdata_core::record::{Body, CallchainContext, Record};

/// The kernel's objects belong to no process.
const KERNEL: u32 = u32::MAX;

/// What is mapped where in a process, by start: end, offset in the file, name.
type Space = BTreeMap<u64, (u64, u64, String)>;

fn place(spaces: &HashMap<u32, Space>, pid: u32, address: u64) -> String {
    let found = [pid, KERNEL].iter().find_map(|pid| {
        let (start, (end, offset, name)) = spaces.get(pid)?.range(..=address).next_back()?;
        (address < *end).then(|| format!("{name}+{:#x}", (address - start).wrapping_add(*offset)))
    });
    found.unwrap_or_else(|| format!("{address:#x}"))
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("usage: callchains RECORDING")?;
    let mut reader = RecordingReader::open(Arc::new(File::open(path)?))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut spaces: HashMap<u32, Space> = HashMap::new();
    let mut map = |pid, start: u64, len, offset, name: &[u8]| {
        let name = String::from_utf8_lossy(name).into_owned();
        spaces.entry(pid).or_default().insert(start, (start.saturating_add(len), offset, name));
    };
    let mut chains = Vec::new();
    while let Some((piece, recording)) = reader.next_with_model()? {
        let Piece::Record(raw) = piece else { continue };
        match Record::decode(&raw, &recording.events.layout_of(&raw))?.body {
            Body::Mmap(m) => map(m.pid, m.addr, m.len, m.pgoff, m.filename.text()),
            Body::Mmap2(m) => map(m.pid, m.addr, m.len, m.pgoff, m.filename.text()),
            Body::Sample(sample) => {
                let pid = sample.tid.map_or(0, |tid| tid.pid);
                let words = match sample.callchain {
                    Some(chain) => chain.into_inner(),
                    None => sample.ip.into_iter().collect(),
                };
                chains.push((pid, words));
            }
            _ => {}
        }
    }
    for (pid, words) in chains {
        let places = words.iter().rev().filter(|word| CallchainContext::of(**word).is_none());
        let places = places.map(|word| place(&spaces, pid, *word));
        writeln!(out, "{}", places.collect::<Vec<_>>().join(";"))?;
    }
    Ok(())
}
