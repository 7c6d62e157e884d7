//! A dump that is read: its functions become images, and their addresses mappings.

use std::collections::HashMap;
use std::path::PathBuf;

use perfdata_core::jitdump::{
    CodeLoad, CodeMove, JitBody, JitDebugInfo, JitRecord, JitRecordType, UnwindingInfo,
};
use perfdata_core::read::Limits;
use perfdata_core::record::SampleId;

use super::clock::Times;
use super::find::Reader;
use super::folder::{Identity, ImageFolders, image_name, p_align};
use super::image::{Image, SourceLine, Target};
use super::queue::{Mapping, Queue};
use super::ranges::Ranges;
use perfdata_convert::error::Result;

/// What V8 writes to the reserved field of the header (src/diagnostics/perf-jit.cc).
const V8_PADDING: u32 = 0xDEAD_BEEF;

/// Maximum number of bytes by which the mapped unwinding information may exceed its sections:
/// filling up to a page.
const MOST_FILLING: u64 = 0x1000;

/// A function with an image.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// Number of the function in the dump.
    pub index: u64,
    /// Number of previous functions of this process with the same number.
    pub copy: u32,
    /// The file with the image.
    pub identity: Identity,
    /// Size of the code in bytes.
    size: u64,
    /// Size of the mapped unwinding information after the code in bytes.
    mapped_size: u64,
}

impl Function {
    /// Returns the size of the mapping of `size` bytes of code.
    fn mapping_size(&self, size: u64) -> u64 {
        match self.mapped_size {
            0 => size,
            mapped => size.next_multiple_of(8).saturating_add(mapped),
        }
    }
}

/// The number of functions of each process and number.
pub type Copies = HashMap<(u32, u64), u32>;

/// The destinations of what a dump contains.
pub struct Targets<'a> {
    /// The folders of the images.
    pub folders: &'a ImageFolders,
    /// The mappings.
    pub queue: &'a mut Queue,
    /// The functions so far.
    pub copies: &'a mut Copies,
    /// The limits of the input.
    pub limits: Limits,
}

/// A dump, which may still grow.
#[derive(Debug)]
pub struct Dump {
    /// The process whose code it contains, as perf sees it.
    pub pid: u32,
    /// Its path on this machine.
    pub path: PathBuf,
    /// The folder of the images: an absolute path.
    pub folder: PathBuf,
    /// The trailer of the record that announced the dump.
    pub trailer: Option<SampleId>,
    /// The machine.
    pub target: Target,
    /// Whether the name or header of the dump contains the ID of the process.
    pub names_process: bool,
    /// The functions with an image.
    pub functions: Vec<Function>,
    /// The addresses of all functions.
    pub ranges: Ranges,
    /// Number of the dump.
    number: u32,
    reader: Reader,
    times: Times,
    lines: Option<JitDebugInfo>,
    unwinding: Option<UnwindingInfo>,
    /// The last function of each index.
    by_index: HashMap<u64, u32>,
    /// The number of bytes by which V8's source lines are too high, unless an entry shows that they
    /// are not.
    shift: Option<u64>,
    is_shifted: bool,
    moves: u64,
    /// The number of records that were skipped, and the reason for the first.
    skipped: u64,
    first_problem: Option<String>,
    is_closed: bool,
}

impl Dump {
    /// Returns a dump of which no record has been read. `number` is its index among all dumps.
    pub fn new(
        (number, pid): (u32, u32),
        (path, folder): (PathBuf, PathBuf),
        reader: Reader,
        names_process: bool,
        target: Target,
        times: Times,
        trailer: Option<SampleId>,
    ) -> Self {
        // Old versions of perf wrote the code directly after the header of the image, and source
        // lines without its offset. V8 still adds the size of this header to all addresses of
        // lines, although perf adds the offset since 5.8.
        let is_v8 = reader.header().pad1 == V8_PADDING;
        let shift = is_v8.then_some(if target.is_64 { 0x40 } else { 0x34 });
        Dump {
            pid,
            path,
            folder,
            trailer,
            target,
            names_process,
            functions: Vec::new(),
            ranges: Ranges::default(),
            number,
            reader,
            times,
            lines: None,
            unwinding: None,
            by_index: HashMap::new(),
            shift,
            is_shifted: false,
            moves: 0,
            skipped: 0,
            first_problem: None,
            is_closed: false,
        }
    }

    /// Returns whether the source lines may be those of V8, whose addresses are too high.
    pub fn may_be_shifted(&self) -> bool {
        self.shift.is_some()
    }

    /// Reads the source lines of the whole dump ahead, from `reader`: if one of them is below the
    /// size of a header after the start of its function, they are not too high.
    pub fn check_shift(&mut self, mut reader: Reader) {
        while self.shift.is_some() {
            match reader.next() {
                Ok(Some(record)) => {
                    if let JitBody::DebugInfo(lines) = &record.body {
                        self.see_lines(lines);
                    }
                }
                // After a record that cannot be read, the next one follows, or the end.
                Ok(None) => return,
                Err(_) => {}
            }
        }
    }

    fn see_lines(&mut self, lines: &JitDebugInfo) {
        if let (Some(first), Some(shift)) = (lines.entries.first(), self.shift)
            && first.addr < lines.code_addr.saturating_add(shift)
        {
            self.shift = None;
        }
    }

    /// Reads all complete records that the dump has by now.
    ///
    /// # Errors
    /// An image cannot be written.
    pub fn read(&mut self, to: &mut Targets<'_>) -> Result<()> {
        while !self.is_closed {
            let at = self.reader.offset();
            match self.reader.next() {
                Ok(Some(record)) => {
                    if let Err(problem) = self.record(record, to)? {
                        self.skip(format!("at offset {at:#x}: {problem}"));
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.skip(error.to_string());
                    if self.reader.last_kind() == Some(JitRecordType::CODE_LOAD) {
                        // What describes this function does not describe the next one.
                        (self.lines, self.unwinding) = (None, None);
                    }
                }
            }
        }
        Ok(())
    }

    fn skip(&mut self, problem: String) {
        self.skipped = self.skipped.saturating_add(1);
        self.first_problem.get_or_insert(problem);
    }

    /// Processes a record. The inner error is about the record.
    fn record(
        &mut self,
        record: JitRecord,
        to: &mut Targets<'_>,
    ) -> Result<std::result::Result<(), String>> {
        let time = self.times.time(record.timestamp);
        match record.body {
            JitBody::CodeLoad(load) => {
                let (lines, unwinding) = (self.lines.take(), self.unwinding.take());
                return self.load(&load, lines, unwinding, time, to);
            }
            JitBody::CodeMove(moved) => return Ok(self.moved(&moved, time, to)),
            JitBody::DebugInfo(lines) => {
                self.see_lines(&lines);
                self.lines = Some(lines);
            }
            JitBody::UnwindingInfo(unwinding) => {
                let most = unwinding.unwinding_size.saturating_add(MOST_FILLING);
                if unwinding.mapped_size > most {
                    let found = unwinding.mapped_size;
                    return Ok(Err(format!(
                        "jitdump record CODE_UNWINDING_INFO, field mapped_size: found {found}, expected at most {most}"
                    )));
                }
                self.unwinding = Some(unwinding);
            }
            JitBody::Close(_) => self.is_closed = true,
            // A newer record.
            _ => {}
        }
        Ok(Ok(()))
    }

    fn load(
        &mut self,
        load: &CodeLoad,
        lines: Option<JitDebugInfo>,
        unwinding: Option<UnwindingInfo>,
        time: u64,
        to: &mut Targets<'_>,
    ) -> Result<std::result::Result<(), String>> {
        // An empty mapping would contain no address.
        if load.code_size == 0 {
            return Ok(Ok(()));
        }
        let held = self.functions.len().saturating_mul(Self::HELD) as u64;
        if let Err(error) = to.limits.check_metadata("functions of a jitdump", held) {
            self.is_closed = true;
            return Ok(Err(error.to_string()));
        }
        let (shift, lines) = self.lines_of(load, lines.as_ref());
        let index = load.code_index;
        let copy = to.copies.get(&(self.pid, index)).copied().unwrap_or(0);
        let mapped_size = unwinding.as_ref().map_or(0, |info| info.mapped_size);
        let mut function = Function {
            index,
            copy,
            identity: Identity::BuildId(Default::default()),
            size: load.code_size,
            mapped_size,
        };
        if let Err(problem) = end_of(load.code_addr, function.mapping_size(load.code_size)) {
            return Ok(Err(format!("jitdump record CODE_LOAD, {problem}")));
        }
        let path = self.folder.join(image_name(self.pid, index, copy));
        let image = Image {
            target: self.target,
            name: load.name(),
            code: &load.code.0,
            unwinding: unwinding
                .as_ref()
                .filter(|info| info.unwinding_size > 0)
                .map(|info| (&*info.eh_frame.0, &*info.eh_frame_hdr.0)),
            lines: &lines,
            p_align: p_align(&path),
        };
        let written = match image.write() {
            Ok(written) => written,
            Err(problem) => return Ok(Err(problem)),
        };
        function.identity = to.folders.write(&path, &written)?;
        self.is_shifted |= shift > 0 && !lines.is_empty();
        to.copies.insert((self.pid, index), copy.saturating_add(1));
        let number = self.functions.len() as u32;
        self.functions.push(function);
        self.by_index.insert(index, number);
        let tid = if load.pid == self.pid {
            load.tid
        } else {
            self.pid
        };
        Ok(self.map((time, tid), number, load.code_addr, load.code_size, to))
    }

    /// Approximate memory for a function in bytes: itself, its number, and its mapping.
    const HELD: usize = size_of::<Function>() + size_of::<Mapping>() + 96;

    fn moved(
        &mut self,
        moved: &CodeMove,
        time: u64,
        to: &mut Targets<'_>,
    ) -> std::result::Result<(), String> {
        let what = "jitdump record CODE_MOVE";
        let index = moved.code_index;
        let Some(&number) = self.by_index.get(&index) else {
            return Err(format!(
                "{what}, field code_index: found {index}, expected that of a CODE_LOAD before"
            ));
        };
        let size = self.functions.get(number as usize).map_or(0, |f| f.size);
        if moved.code_size > size {
            return Err(format!(
                "{what}, field code_size: found {}, expected at most {size}, that of the CODE_LOAD",
                moved.code_size
            ));
        }
        let tid = if moved.pid == self.pid {
            moved.tid
        } else {
            self.pid
        };
        self.map(
            (time, tid),
            number,
            moved.new_code_addr,
            moved.code_size,
            to,
        )
        .map_err(|problem| format!("{what}, {problem}"))?;
        self.moves = self.moves.saturating_add(1);
        Ok(())
    }

    /// Adds a mapping of a function.
    fn map(
        &mut self,
        (time, tid): (u64, u32),
        number: u32,
        start: u64,
        size: u64,
        to: &mut Targets<'_>,
    ) -> std::result::Result<(), String> {
        let Some(function) = self.functions.get(number as usize) else {
            return Ok(());
        };
        let len = function.mapping_size(size);
        let end = end_of(start, len)?;
        self.ranges.add(start, end);
        to.queue.push(
            time,
            Mapping {
                dump: self.number,
                function: number,
                tid,
                start,
                len,
            },
        );
        Ok(())
    }

    /// Returns the source lines of a function, sorted and without those outside of it; and the
    /// number of bytes that were subtracted from their addresses.
    fn lines_of<'a>(
        &self,
        load: &CodeLoad,
        info: Option<&'a JitDebugInfo>,
    ) -> (u64, Vec<SourceLine<'a>>) {
        let shift = self.shift.unwrap_or(0);
        let mut lines = Vec::new();
        let mut file: &[u8] = b"";
        for entry in info.iter().flat_map(|info| info.entries.iter()) {
            file = entry.file().unwrap_or(file);
            let offset = entry
                .addr
                .checked_sub(shift)
                .and_then(|addr| addr.checked_sub(load.code_addr))
                .filter(|offset| *offset < load.code_size);
            if let Some(offset) = offset.filter(|_| !file.is_empty()) {
                lines.push(SourceLine {
                    offset,
                    file,
                    line: u32::try_from(entry.lineno).unwrap_or(0),
                    column: u32::try_from(entry.discrim).unwrap_or(0),
                });
            }
        }
        lines.sort_by_key(|line| line.offset);
        (shift, lines)
    }

    /// Returns notes about the dump.
    pub fn notes(&self) -> Vec<String> {
        let path = self.path.display();
        let functions = match self.functions.len() {
            1 => "1 generated function".to_owned(),
            count => format!("{count} generated functions"),
        };
        let moves = match self.moves {
            0 => String::new(),
            1 => ", 1 move".into(),
            count => format!(", {count} moves"),
        };
        let mut notes = vec![format!("{path}: {functions}{moves}")];
        if self.is_shifted {
            notes.push(format!(
                "{path}: subtracted the size of an ELF header from the addresses of source lines, to which V8 adds it"
            ));
        }
        if let Some(problem) = &self.first_problem {
            let count = match self.skipped {
                1 => "1 record".to_owned(),
                count => format!("{count} records"),
            };
            notes.push(format!("{path}: skipped {count}: {problem}"));
        }
        if self.reader.pending() > 0 && !self.is_closed {
            notes.push(format!(
                "{path}: the last record is incomplete, at offset {:#x}",
                self.reader.offset()
            ));
        }
        notes
    }
}

/// Returns the end of `len` bytes at `start`.
fn end_of(start: u64, len: u64) -> std::result::Result<u64, String> {
    start.checked_add(len).ok_or_else(|| {
        format!("field code_size: found {len} bytes at {start:#x}, expected an end below 2^64")
    })
}
