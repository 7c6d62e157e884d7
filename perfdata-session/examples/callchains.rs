//! Prints the callchain of every sample, from the outermost caller to the sampled function. Each
//! address is printed with the file that was mapped there at that time and the offset in it. Flame
//! graph tools count such lines:
//!
//!     cargo run -p perfdata-session --example callchains -- perf.data | sort | uniq -c

use std::{
    env,
    error::Error,
    io::{self, Write},
};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("usage: callchains RECORDING")?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut samples = perfdata_session::open(path)?;
    while let Some(sample) = samples.next()? {
        let mut places: Vec<String> = Vec::new();
        for frame in sample.frames() {
            places.push(match frame.dso().zip(frame.offset()) {
                Some((dso, offset)) => {
                    format!("{}+{offset:#x}", String::from_utf8_lossy(&dso.name))
                }
                None => format!("{:#x}", frame.address),
            });
        }
        places.reverse();
        writeln!(out, "{}", places.join(";"))?;
    }
    Ok(())
}
