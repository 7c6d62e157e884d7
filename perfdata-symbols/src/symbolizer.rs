//! The symbols of a recording: one table for each object, read at its first use.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use foldhash::fast::RandomState;
use perfdata_core::Recording;
use perfdata_core::record::CpuMode;
use perfdata_session::{BuildId, Dso, DsoId, DsoKind, Frame, Mapping, Sample, Session};

use crate::demangle::{Spelling, demangled};
use crate::evidence::{Times, Verified};
use crate::files::KernelMapping;
use crate::lines::{Lines, SourceFrame, WithoutDebugInfo};
use crate::machine::{is_this_machine, release};
use crate::object::{Host, Lookup, Symbols, Wanted, load};
use crate::reason::{Reason, SearchedSources, Unresolved};
use crate::sources::Sources;

/// Default maximum of the memory for all tables in bytes.
const MOST_MEMORY: usize = 1 << 30;

/// Identifies the symbols of an object: of a DSO, or of the generated code of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ObjectKey {
    Dso(DsoId),
    Process(DsoId, u32),
}

impl ObjectKey {
    fn of(id: DsoId, dso: &Dso, pid: u32) -> Self {
        match dso.kind {
            DsoKind::Anonymous => ObjectKey::Process(id, pid),
            _ => ObjectKey::Dso(id),
        }
    }
}

/// Returns the process of a sample.
fn pid_of(sample: &Sample<'_>) -> u32 {
    sample.thread().map_or(u32::MAX, |thread| thread.pid)
}

/// The state of an object's symbols.
#[derive(Debug)]
enum ObjectState {
    /// Not read yet, or dropped to make room for others.
    Unread,
    Known(Symbols),
    Missing(Reason),
}

#[derive(Debug)]
struct Object {
    name: Box<[u8]>,
    kind: DsoKind,
    build_id: Option<BuildId>,
    state: ObjectState,
    /// Whether it is a file whose symbol table was removed and not found elsewhere.
    is_stripped: bool,
    /// The time of the last use.
    used: AtomicU64,
    /// Number of addresses without a symbol.
    missed: AtomicU64,
}

/// Maximum number of addresses that are counted once.
const MOST_MISSED: usize = 1 << 20;

/// An address of an object without a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Missed {
    object: u32,
    /// The mapping, unless it is a file: processes map files at different addresses.
    mapping: Option<Mapping>,
    position: u64,
    mode: CpuMode,
    is_return: bool,
}

impl Missed {
    fn of(object: u32, frame: &Frame<'_>) -> Self {
        let kind = frame.dso().map(|dso| dso.kind);
        let is_file = matches!(kind, Some(DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32));
        let offset = frame.offset().filter(|_| is_file);
        Missed {
            object,
            mapping: frame.mapping().filter(|_| !is_file),
            position: offset.unwrap_or(frame.address),
            mode: frame.mode,
            is_return: frame.is_return,
        }
    }
}

/// Where a symbol was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SymbolPlace {
    /// The number of the object that contains it. The numbers of a [`Symbolizer`] count from 0.
    pub object: u32,
    /// The number of the symbol in its object.
    pub index: u32,
    /// Offset of the address in the symbol, in bytes.
    pub offset: u64,
}

/// A symbol that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Symbol<'a> {
    /// The number of the object that contains it. The numbers of a [`Symbolizer`] count from 0.
    pub object: u32,
    /// The number of the symbol in its object.
    pub index: u32,
    /// Offset of the address in the symbol, in bytes.
    pub offset: u64,
    /// The name as it is in the object: any bytes except NUL.
    pub name: &'a [u8],
    /// Whether the name may be mangled. Names of kernel symbols are not.
    pub is_mangled: bool,
    /// Whether the object has a complete table of symbols (`.symtab`), not only those for the dynamic
    /// linker.
    pub is_in_symtab: bool,
}

impl<'a> Symbol<'a> {
    /// Returns the name, demangled if it is a mangled one.
    pub fn demangled(&self) -> Cow<'a, [u8]> {
        if self.is_mangled {
            demangled(self.name)
        } else {
            Cow::Borrowed(self.name)
        }
    }
}

/// Finds the names of functions.
///
/// The symbols of an object are read when the first of its addresses is looked up. If all tables
/// together exceed the memory limit, those that were not used for the longest time are dropped, and
/// read again when they are needed.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-z.data");
/// use perfdata_symbols::{Sources, Symbolizer};
///
/// let mut symbols = Symbolizer::new(Sources::default());
/// let mut samples = perfdata_session::open(path)?;
/// while let Some(sample) = samples.next()? {
///     for frame in sample.frames() {
///         match symbols.resolve(&sample, &frame) {
///             Some(symbol) => println!("{}", String::from_utf8_lossy(&symbol.demangled())),
///             None => println!("{:#x}", frame.address),
///         }
///     }
/// }
/// for object in symbols.unresolved() {
///     println!("{}: {}", String::from_utf8_lossy(&object.name), object.reason);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Symbolizer {
    sources: Sources,
    host: Option<Host>,
    objects: Vec<Object>,
    numbers: HashMap<ObjectKey, u32, RandomState>,
    most_memory: usize,
    held: usize,
    now: AtomicU64,
    unmapped: u64,
    /// The name of the last symbol.
    name: Vec<u8>,
    /// Addresses without a symbol, which are counted once.
    missed: Mutex<HashSet<Missed, RandomState>>,
    lines: Option<Lines>,
    has_inlines: bool,
    has_lines: bool,
}

impl Symbolizer {
    /// Returns a symbolizer that searches `sources`, with 1 GiB of memory at most.
    pub fn new(sources: Sources) -> Self {
        Symbolizer {
            lines: None,
            has_inlines: false,
            has_lines: false,
            sources,
            host: None,
            objects: Vec::new(),
            numbers: HashMap::default(),
            most_memory: MOST_MEMORY,
            held: 0,
            now: AtomicU64::new(0),
            unmapped: 0,
            name: Vec::new(),
            missed: Mutex::default(),
        }
    }

    /// Returns the symbolizer with a maximum of the memory for all tables in bytes. The table in
    /// use is kept even if it exceeds the maximum.
    #[must_use]
    pub fn with_memory(self, most_memory: usize) -> Self {
        Symbolizer {
            most_memory,
            ..self
        }
    }

    /// Returns the symbolizer with whether [`source_frames`](Self::source_frames) contains inlined
    /// functions. By default, it does not.
    #[must_use]
    pub fn with_inlines(self, has_inlines: bool) -> Self {
        Symbolizer {
            has_inlines,
            ..self
        }
    }

    /// Returns the symbolizer with whether [`source_frames`](Self::source_frames) contains source
    /// files and lines. By default, it does not.
    #[must_use]
    pub fn with_lines(self, has_lines: bool) -> Self {
        Symbolizer { has_lines, ..self }
    }

    /// Returns whether [`source_frames`](Self::source_frames) contains inlined functions.
    pub fn has_inlines(&self) -> bool {
        self.has_inlines
    }

    /// Returns whether [`source_frames`](Self::source_frames) contains source files and lines.
    pub fn has_lines(&self) -> bool {
        self.has_lines
    }

    /// Returns the symbolizer with the version of perf whose choice it follows between symbols with
    /// the same address: [`Sources::spelling`].
    #[must_use]
    pub fn with_spelling(self, spelling: Spelling) -> Self {
        Symbolizer {
            sources: self.sources.with_spelling(spelling),
            ..self
        }
    }

    /// Returns the functions at the address of a frame as they are in the source code, from the
    /// innermost inlined function to the function of the address itself, whose
    /// [symbol](Self::resolve) is what perf shows. The list is empty if nothing is known, or if
    /// neither [inlined functions](Self::with_inlines) nor [lines](Self::with_lines) are wanted.
    ///
    /// They are those of the debug information (DWARF 2 to 5) in the object or in its debug file,
    /// verified as for symbols, with the supplementary file to which it refers (`dwz`), and the files of
    /// split units (`.dwo`, `.dwp`), verified by their IDs. For a return address, they are those of the call before it. The
    /// debug information of an object may have 1 GiB after decompression; larger one is not used. If
    /// that of all objects exceeds 1 GiB, what was not used for the longest time is dropped.
    pub fn source_frames(&mut self, sample: &Sample<'_>, frame: &Frame<'_>) -> Vec<SourceFrame> {
        if !self.has_inlines && !self.has_lines {
            return Vec::new();
        }
        let lines = self
            .lines
            .get_or_insert_with(|| Lines::new(self.sources.clone()));
        let mut frames = lines.find(sample, frame);
        if !self.has_inlines {
            frames.drain(..frames.len().saturating_sub(1));
        }
        if !self.has_lines {
            for frame in &mut frames {
                (frame.file, frame.line, frame.start_line) = (None, 0, 0);
            }
        }
        frames
    }

    /// Returns the symbol at the address of a frame, as perf chooses it; `None` if it is not known.
    pub fn resolve(&mut self, sample: &Sample<'_>, frame: &Frame<'_>) -> Option<Symbol<'_>> {
        let place = self.locate(sample, frame)?;
        self.symbol(place)
    }

    /// Returns where the symbol at the address of a frame is; `None` if it is not known.
    pub fn locate(&mut self, sample: &Sample<'_>, frame: &Frame<'_>) -> Option<SymbolPlace> {
        let Some((id, dso)) = frame.dso_id().zip(frame.dso()) else {
            self.unmapped = self.unmapped.saturating_add(1);
            return None;
        };
        let pid = pid_of(sample);
        let key = ObjectKey::of(id, dso, pid);
        let number = match self.numbers.get(&key) {
            Some(&number) => number,
            None => {
                let number = u32::try_from(self.objects.len()).ok()?;
                self.numbers.insert(key, number);
                self.objects.push(Object {
                    name: dso.name.clone(),
                    kind: dso.kind,
                    build_id: frame.build_id(),
                    state: ObjectState::Unread,
                    is_stripped: false,
                    used: AtomicU64::new(0),
                    missed: AtomicU64::new(0),
                });
                number
            }
        };
        let at = usize::try_from(number).ok()?;
        let is_unread = matches!(self.objects.get(at)?.state, ObjectState::Unread);
        if is_unread && dso.kind != DsoKind::KernelSymbol {
            let mapping = frame.mapping.and_then(|id| sample.session().mapping(id));
            let wanted = Wanted {
                dso,
                build_id: frame.build_id(),
                pid,
                start: mapping.map(|mapping| mapping.start),
                time: sample.session().mapped_at(id),
            };
            self.read(at, &wanted, sample);
        }
        self.find_in(number, frame)
    }

    /// Returns the same as [`locate`](Self::locate), if the object was read before; otherwise the outer
    /// `None`. Several threads can call it at the same time.
    pub fn find(&self, sample: &Sample<'_>, frame: &Frame<'_>) -> Option<Option<SymbolPlace>> {
        let (id, dso) = frame.dso_id().zip(frame.dso())?;
        let key = ObjectKey::of(id, dso, pid_of(sample));
        let &number = self.numbers.get(&key)?;
        let object = self.objects.get(usize::try_from(number).ok()?)?;
        let is_read = !matches!(object.state, ObjectState::Unread);
        (is_read || dso.kind == DsoKind::KernelSymbol).then(|| self.find_in(number, frame))
    }

    /// Returns where the symbol at the address of a frame is in an object that was read.
    fn find_in(&self, number: u32, frame: &Frame<'_>) -> Option<SymbolPlace> {
        let object = self.objects.get(usize::try_from(number).ok()?)?;
        if object.kind == DsoKind::KernelSymbol {
            // The name of the object is that of its only symbol.
            return Some(SymbolPlace {
                object: number,
                index: 0,
                offset: frame.offset()?,
            });
        }
        let now = self.now.fetch_add(1, Ordering::Relaxed);
        object.used.store(now, Ordering::Relaxed);
        let found = match &object.state {
            ObjectState::Known(symbols) => {
                let address = match symbols.lookup {
                    Lookup::Offset => frame.offset()?,
                    Lookup::Address => frame.address,
                    Lookup::Relocated(at) => frame.offset()?.wrapping_add(at),
                };
                let found = symbols.table.find(address);
                found.map(|found| (found.index, address.wrapping_sub(found.start)))
            }
            _ => None,
        };
        let Some((index, offset)) = found else {
            let missed = Missed::of(number, frame);
            let mut known = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MOST_MISSED || known.insert(missed) {
                object.missed.fetch_add(1, Ordering::Relaxed);
            }
            return None;
        };
        Some(SymbolPlace {
            object: number,
            index,
            offset,
        })
    }

    /// Returns the symbol at the place that [`locate`](Self::locate) returned last.
    pub fn symbol(&mut self, place: SymbolPlace) -> Option<Symbol<'_>> {
        let mut name = std::mem::take(&mut self.name);
        let found = self.with_symbol(place, |symbol| {
            name.clear();
            name.extend_from_slice(symbol.name);
            (symbol.is_mangled, symbol.is_in_symtab)
        });
        self.name = name;
        let (is_mangled, is_in_symtab) = found?;
        Some(Symbol {
            object: place.object,
            index: place.index,
            offset: place.offset,
            name: &self.name,
            is_mangled,
            is_in_symtab,
        })
    }

    /// Returns what `see` returns for the symbol at the place that [`locate`](Self::locate) or
    /// [`find`](Self::find) returned, if no object was read since.
    pub fn with_symbol<R>(
        &self,
        place: SymbolPlace,
        see: impl FnOnce(Symbol<'_>) -> R,
    ) -> Option<R> {
        let object = self.objects.get(usize::try_from(place.object).ok()?)?;
        let (name, is_mangled, is_in_symtab) = match &object.state {
            ObjectState::Known(symbols) => {
                let name = symbols.table.name(place.index);
                (name, symbols.is_mangled, symbols.has_symtab)
            }
            // The name of a symbol that the kernel added is that of its object.
            _ => (Cow::Borrowed(&*object.name), false, false),
        };
        Some(see(Symbol {
            object: place.object,
            index: place.index,
            offset: place.offset,
            name: &name,
            is_mangled,
            is_in_symtab,
        }))
    }

    /// Reads the symbols of an object.
    #[cold]
    fn read(&mut self, at: usize, wanted: &Wanted<'_>, sample: &Sample<'_>) {
        let host = self
            .host
            .get_or_insert_with(|| Host::of(sample.recording()));
        // The build ID and the relocation symbol may be later in the recording than other samples.
        if host.kernel.is_none() {
            host.learn_kernel(sample.session());
        }
        let state = match load(wanted, &self.sources, host) {
            Ok(symbols) => ObjectState::Known(symbols),
            Err(reason) => ObjectState::Missing(reason),
        };
        if let ObjectState::Known(symbols) = &state {
            self.held = self.held.saturating_add(symbols.table.held());
        }
        if let Some(object) = self.objects.get_mut(at) {
            object.is_stripped = object.kind == DsoKind::File
                && matches!(&state, ObjectState::Known(symbols) if !symbols.has_symtab);
            object.state = state;
        }
        while self.held > self.most_memory && self.drop_oldest(at) {}
    }

    /// Drops the table that was not used for the longest time. Returns false if only the table of
    /// the object `kept` is left.
    fn drop_oldest(&mut self, kept: usize) -> bool {
        let known = self.objects.iter_mut().enumerate();
        let known = known
            .filter(|(at, object)| *at != kept && matches!(object.state, ObjectState::Known(_)));
        let Some((_, oldest)) = known.min_by_key(|(_, object)| object.used.load(Ordering::Relaxed))
        else {
            return false;
        };
        if let ObjectState::Known(symbols) =
            std::mem::replace(&mut oldest.state, ObjectState::Unread)
        {
            self.held = self.held.saturating_sub(symbols.table.held());
        }
        true
    }

    /// Returns the number of lookups of addresses at which nothing was mapped.
    pub fn unmapped(&self) -> u64 {
        self.unmapped
    }

    /// Returns the objects at whose addresses inlined functions or lines were searched, but not all debug
    /// information was found.
    pub fn without_debug_info(&self) -> Vec<WithoutDebugInfo> {
        let lines = self.lines.as_ref();
        lines.map(Lines::without_debug_info).unwrap_or_default()
    }

    /// Returns the objects whose symbols are known, and why they are those of the recorded objects, sorted
    /// by their names. Objects that were dropped to make room for others are not listed.
    pub fn verified(&self) -> Vec<Verified> {
        let known = self
            .objects
            .iter()
            .filter_map(|object| match &object.state {
                ObjectState::Known(symbols) => Some(Verified {
                    name: object.name.clone(),
                    evidence: symbols.evidence.clone(),
                }),
                _ => None,
            });
        let mut known: Vec<Verified> = known.collect();
        known.sort_by(|one, other| one.name.cmp(&other.name));
        known
    }

    /// Returns where symbols were searched.
    pub fn searched(&self) -> SearchedSources {
        SearchedSources {
            is_own_machine: self.host.as_ref().is_some_and(|host| host.is_this),
            has_root: self.sources.root.is_some(),
            has_bundle: self.sources.bundle.is_some(),
            has_fetcher: self.sources.fetcher.is_some(),
        }
    }

    /// Returns the objects with addresses that have no names, those with the most lookups first.
    pub fn unresolved(&self) -> Vec<Unresolved> {
        let missed = self.objects.iter().filter_map(|object| {
            let lookups = object.missed.load(Ordering::Relaxed);
            (lookups > 0).then_some((object, lookups))
        });
        let mut list: Vec<Unresolved> = missed
            .map(|(object, lookups)| Unresolved {
                name: object.name.clone(),
                kind: object.kind,
                build_id: object.build_id,
                lookups,
                reason: match &object.state {
                    ObjectState::Missing(reason) => reason.clone(),
                    _ if object.is_stripped => Reason::NoRemainingSymbol,
                    _ => Reason::NoSymbol,
                },
            })
            .collect();
        list.sort_by(|a, b| (b.lookups, &a.name).cmp(&(a.lookups, &b.name)));
        list
    }
}

impl Host {
    /// Returns what the recording says about its machine, except for its kernel.
    pub(crate) fn of(recording: &Recording) -> Self {
        Host {
            is_this: is_this_machine(recording),
            release: release(recording),
            times: Times::of(recording),
            ..Host::default()
        }
    }

    /// Takes what the session says about the kernel of the recorded machine.
    pub(crate) fn learn_kernel(&mut self, session: &Session) {
        if let Some((kernel, build_id)) = KernelMapping::of_session(session) {
            self.set_kernel(kernel, build_id);
        }
    }

    /// Sets the kernel of the recorded machine.
    pub(crate) fn set_kernel(&mut self, mapping: KernelMapping, build_id: Option<BuildId>) {
        let KernelMapping {
            symbol,
            address,
            end,
        } = mapping;
        self.kernel = build_id;
        self.kernel_end = end;
        self.relocation = (!symbol.is_empty()).then_some((address, symbol));
    }
}
