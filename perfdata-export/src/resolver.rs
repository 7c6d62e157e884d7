//! Resolves frames: searches their mappings' modules and functions, and remembers the results.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_core::record::CpuMode;
use perfdata_session::{Dso, DsoKind, Frame, Mapping, MappingId, Sample};
use perfdata_symbols::{Symbolizer, perf_map};

use crate::blocks::Blocks;
use crate::kept_stacks::{KeptId, KeptStacks};
use crate::places::PlaceId;
use crate::resolve::ResolvedFrame;
use crate::tables::{Function, FunctionId, Module, ModuleId, Tables};

/// Default maximum number of addresses whose functions are remembered.
const MOST_ADDRESSES: usize = 1 << 19;

/// `PROT_EXEC` on all architectures.
const PROT_EXEC: u32 = 4;

/// Returns the number of frames without a function.
pub(crate) fn unnamed(frames: &[ResolvedFrame]) -> u64 {
    let unnamed = frames.iter().filter(|frame| frame.function.is_none());
    unnamed.count() as u64
}

/// An address in a mapping, as a frame of a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    mapping: MappingId,
    address: u64,
    mode: CpuMode,
    is_return: bool,
    /// The process, for generated code.
    pid: Option<u32>,
}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Two numbers are hashed faster than each part.
        let mapping = self.mapping.index() as u64;
        let rest = u64::from(self.mode.0) << 1 | u64::from(self.is_return);
        state.write_u64(self.address);
        state.write_u64(mapping << 20 ^ rest);
        if let Some(pid) = self.pid {
            state.write_u32(pid);
        }
    }
}

/// A place that was looked up, and its number.
#[derive(Debug, Clone, Copy, Default)]
struct Recent(Option<(Place, PlaceId)>);

/// Number of recent places, a power of two.
const RECENT: usize = 1 << 13;

impl Place {
    /// Returns its index among the recent places.
    #[inline]
    fn recent(&self) -> usize {
        // Multiplication by the golden ratio distributes neighbouring addresses and mappings.
        let mapping = (self.mapping.index() as u64).rotate_left(32);
        let hash = (self.address ^ mapping).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        usize::try_from(hash).unwrap_or_default() & (RECENT - 1)
    }
}

/// What is known about a place.
#[derive(Debug, Clone)]
struct Known {
    module: ModuleId,
    /// The function, and the offset in it.
    function: Option<(FunctionId, u64)>,
    /// The line in the function.
    line: u32,
    /// The functions that are inlined here, the innermost one first, and their lines.
    inlined: Option<Inlined>,
}

impl ResolvedFrame {
    /// Returns a frame about whose address nothing is known.
    pub(crate) fn unmapped(address: u64, mode: CpuMode) -> Self {
        ResolvedFrame {
            address,
            mode,
            is_return: false,
            mapping: None,
            module: None,
            function: None,
            function_offset: 0,
            is_inlined: false,
            line: 0,
            place: None,
        }
    }

    fn set(&mut self, place: PlaceId, known: &Known) {
        self.place = Some(place);
        self.module = Some(known.module);
        self.function = known.function.map(|(id, _)| id);
        self.function_offset = known.function.map_or(0, |(_, offset)| offset);
        self.line = known.line;
    }
}

/// Resolves frames, and remembers the results.
#[derive(Debug)]
pub(crate) struct Resolver {
    pub symbols: Option<Symbolizer>,
    pub tables: Tables,
    known: HashMap<Place, PlaceId, RandomState>,
    /// What is known about each place: the first one has the number 1.
    places: Blocks<Known>,
    /// Maximum number of places. A sample has fewer frames.
    most_places: usize,
    recent: Box<[Recent]>,
    /// The module of each mapping that does not belong to a process, if no functions are searched.
    modules: Vec<Option<ModuleId>>,
    /// Whether frames without a mapping have the mapping of an earlier program.
    pub before_exec: bool,
}

impl Resolver {
    /// Returns a resolver that knows nothing; without `symbols`, it searches no functions.
    pub fn new(symbols: Option<Symbolizer>) -> Self {
        Resolver {
            symbols,
            tables: Tables::default(),
            known: HashMap::default(),
            places: Blocks::default(),
            most_places: MOST_ADDRESSES,
            recent: vec![Recent::default(); RECENT].into(),
            modules: Vec::new(),
            before_exec: false,
        }
    }

    /// Resolves the frames of a sample: returns the number of its stack if it repeats; otherwise
    /// appends the frames.
    pub fn stack(
        &mut self,
        sample: &Sample<'_>,
        stacks: &mut KeptStacks,
        frames: &mut Vec<ResolvedFrame>,
    ) -> Option<KeptId> {
        stacks.set(&self.tables, self.before_exec);
        // A single frame is found as fast without.
        let key = match stacks.is_searched() {
            true => sample.frames_key().filter(|key| !key.words.is_empty()),
            false => None,
        };
        let Some(key) = key else {
            self.frames(sample, frames);
            return None;
        };
        let pid = sample.thread().map(|thread| thread.pid);
        let hash = stacks.hash(&key);
        let known = stacks.find(hash, &key, pid);
        if known.is_some() {
            return known;
        }
        self.frames(sample, frames);
        stacks.set(&self.tables, self.before_exec);
        let resolved = (frames.as_slice(), unnamed(frames));
        stacks.add(hash, &key, pid, resolved, &self.tables)
    }

    /// Appends the frames of a sample.
    fn frames(&mut self, sample: &Sample<'_>, frames: &mut Vec<ResolvedFrame>) {
        let epoch = self.tables.epoch;
        self.append(sample, frames);
        if self.tables.epoch != epoch {
            // The numbers of places have started again.
            frames.clear();
            self.append(sample, frames);
        }
    }

    fn append(&mut self, sample: &Sample<'_>, frames: &mut Vec<ResolvedFrame>) {
        for frame in sample.frames() {
            match self.known(&frame) {
                Some(resolved) => frames.push(resolved),
                None => self.resolve_into(sample, &frame, frames),
            }
        }
    }

    /// Returns a frame about which everything is known without a search, as about most frames.
    #[inline]
    fn known(&self, frame: &Frame<'_>) -> Option<ResolvedFrame> {
        let before_exec = frame.before_exec.filter(|_| self.before_exec);
        let mut resolved = ResolvedFrame {
            is_return: frame.is_return,
            mapping: frame.mapping.or(before_exec),
            ..ResolvedFrame::unmapped(frame.address, frame.mode)
        };
        let Some(mapping) = resolved.mapping else {
            // Code of the kernel may follow its mapping.
            let is_unmapped = frame.mode != CpuMode::KERNEL;
            return is_unmapped.then_some(resolved);
        };
        if let Some(&Some(module)) = self.modules.get(mapping.index()) {
            resolved.module = Some(module);
            return Some(resolved);
        }
        let place = Place {
            mapping,
            address: frame.address,
            mode: frame.mode,
            is_return: frame.is_return,
            pid: None,
        };
        let &Recent(Some((known, number))) = self.recent.get(place.recent())? else {
            return None;
        };
        let at = usize::try_from(number.get()).ok()?.checked_sub(1)?;
        let found = self.places.get(at).filter(|_| known == place)?;
        if found.inlined.is_some() {
            return None;
        }
        resolved.set(number, found);
        Some(resolved)
    }

    /// Resolves a frame, and appends it after those of the functions that are inlined there.
    fn resolve_into(
        &mut self,
        sample: &Sample<'_>,
        frame: &Frame<'_>,
        frames: &mut Vec<ResolvedFrame>,
    ) {
        let (resolved, inlined) = self.resolve_all(sample, frame);
        if let Some(inlined) = inlined {
            frames.extend(inlined.iter().map(|&(function, line)| ResolvedFrame {
                function: Some(function),
                function_offset: 0,
                is_inlined: true,
                line,
                place: None,
                ..resolved
            }));
        }
        frames.push(resolved);
    }

    /// Resolves a frame to the function of its address.
    pub fn resolve(&mut self, sample: &Sample<'_>, frame: &Frame<'_>) -> ResolvedFrame {
        self.resolve_all(sample, frame).0
    }

    fn resolve_all(
        &mut self,
        sample: &Sample<'_>,
        frame: &Frame<'_>,
    ) -> (ResolvedFrame, Option<Inlined>) {
        let mut frame = *frame;
        if self.before_exec {
            frame.mapping = frame.mapping.or(frame.before_exec);
        }
        if let Some(behind) = sample.behind_kernel(&frame) {
            let resolved = self.resolve_mapped(sample, &behind);
            if resolved.0.function.is_some() {
                return resolved;
            }
        }
        self.resolve_mapped(sample, &frame)
    }

    /// Resolves a frame in its mapping.
    fn resolve_mapped(
        &mut self,
        sample: &Sample<'_>,
        frame: &Frame<'_>,
    ) -> (ResolvedFrame, Option<Inlined>) {
        let mut resolved = ResolvedFrame {
            is_return: frame.is_return,
            mapping: frame.mapping,
            ..ResolvedFrame::unmapped(frame.address, frame.mode)
        };
        let Some(id) = frame.mapping else {
            return (resolved, None);
        };
        if let Some(&Some(module)) = self.modules.get(id.index()) {
            resolved.module = Some(module);
            return (resolved, None);
        }
        let mut place = Place {
            mapping: id,
            address: frame.address,
            mode: frame.mode,
            is_return: frame.is_return,
            pid: None,
        };
        let recent = place.recent();
        if let Some(&Recent(Some((known, number)))) = self.recent.get(recent)
            && known == place
        {
            return self.known_at(number, resolved);
        }
        let (Some(mapping), Some(dso)) = (frame.mapping(), frame.dso()) else {
            return (resolved, None);
        };
        let pid = sample.thread().map(|thread| thread.pid);
        place.pid = pid.filter(|_| dso.kind == DsoKind::Anonymous);
        if let Some(&number) = self.known.get(&place) {
            self.set_recent(place, number);
            return self.known_at(number, resolved);
        }
        let pid = place.pid;
        let module = self.tables.module_of((mapping.dso, pid), || Module {
            name: shown_name(dso, &mapping, pid),
            kind: dso.kind,
            build_id: frame.build_id(),
        });
        let symbols = self.symbols.as_mut();
        let Some(symbols) = symbols else {
            resolved.module = Some(module);
            if dso.kind != DsoKind::Anonymous {
                if self.modules.len() <= id.index() {
                    self.modules.resize(id.index().saturating_add(1), None);
                }
                if let Some(known) = self.modules.get_mut(id.index()) {
                    *known = Some(module);
                }
            }
            return (resolved, None);
        };
        let mut inlined = symbols.source_frames(sample, frame);
        let own = inlined.pop().unwrap_or_default();
        let found = symbols.locate(sample, frame);
        let function = found.and_then(|found| {
            let key = ((found.object, found.index), own.file.clone());
            let make = || {
                let symbol = symbols.symbol(found)?;
                Some(Function {
                    name: symbol.demangled().as_ref().into(),
                    system_name: symbol.name.into(),
                    file: own.file.clone(),
                    start_line: own.start_line,
                })
            };
            Some((self.tables.function_of(key, make)?, found.offset))
        });
        // perf shows neither of them at an address without a symbol.
        let is_known = function.is_some();
        let inlined = inlined.iter().filter(|_| is_known).filter_map(|frame| {
            let id = self.tables.inlined_function(module, frame)?;
            Some((id, frame.line))
        });
        let inlined: Vec<(FunctionId, u32)> = inlined.collect();
        let known = Known {
            module,
            function,
            line: if is_known { own.line } else { 0 },
            inlined: (!inlined.is_empty()).then(|| inlined.into()),
        };
        if self.places.len() >= self.most_places {
            self.known.clear();
            self.places = Blocks::default();
            self.recent.fill(Recent::default());
            self.tables.epoch = self.tables.epoch.wrapping_add(1);
        }
        self.places.push(known);
        let number = u32::try_from(self.places.len()).ok();
        let Some(number) = number.and_then(PlaceId::new) else {
            return (resolved, None);
        };
        self.known.insert(place, number);
        self.set_recent(place, number);
        self.known_at(number, resolved)
    }

    /// Remembers a place. That of generated code depends on the process.
    fn set_recent(&mut self, place: Place, number: PlaceId) {
        if place.pid.is_none()
            && let Some(recent) = self.recent.get_mut(place.recent())
        {
            *recent = Recent(Some((place, number)));
        }
    }

    /// Returns a frame with what is known about its place, and the functions that are inlined there.
    #[inline]
    fn known_at(
        &self,
        number: PlaceId,
        mut resolved: ResolvedFrame,
    ) -> (ResolvedFrame, Option<Inlined>) {
        let at = usize::try_from(number.get().saturating_sub(1)).ok();
        let Some(known) = at.and_then(|at| self.places.get(at)) else {
            return (resolved, None);
        };
        resolved.set(number, known);
        (resolved, known.inlined.clone())
    }
}

/// The functions that are inlined at an address, and their lines.
type Inlined = Arc<[(FunctionId, u32)]>;

/// Returns perf's name for a DSO. Executable memory that is not a file has the name of the list of
/// its symbols (tools/perf/util/map.c, `map__new`).
fn shown_name(dso: &Dso, mapping: &Mapping, pid: Option<u32>) -> Box<[u8]> {
    let is_executable = match mapping.prot {
        Some(prot) => prot & PROT_EXEC != 0,
        None => mapping.is_executable,
    };
    let has_list = match dso.name.starts_with(b"[") {
        true => dso.name.starts_with(b"[stack") || dso.name.starts_with(b"[heap]"),
        // perf regards a file in memory as a file.
        false => !dso.name.starts_with(b"/memfd:"),
    };
    match pid.filter(|_| is_executable && has_list) {
        Some(pid) => perf_map::path(pid)
            .into_os_string()
            .into_encoded_bytes()
            .into(),
        None => dso.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use perfdata_symbols::Sources;

    use super::*;

    /// Returns the frames of all samples without the numbers of their places, and how often these
    /// started again.
    fn resolved(most_places: usize) -> (Vec<Vec<ResolvedFrame>>, u32) {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../fixtures/6.1-x86_64-file-g.data"
        );
        let mut samples = perfdata_session::open(path).unwrap();
        let mut stacks = KeptStacks::default();
        let mut resolver = Resolver {
            most_places,
            ..Resolver::new(Some(Symbolizer::new(Sources::default())))
        };
        let mut all = Vec::new();
        while let Some(sample) = samples.next().unwrap() {
            let mut frames = Vec::new();
            let kept = resolver.stack(&sample, &mut stacks, &mut frames);
            let kept = kept.map(|id| stacks.get(id).unwrap().0.to_vec());
            let mut frames = kept.unwrap_or(frames);
            for frame in &mut frames {
                let Some(place) = frame.place.take() else {
                    continue;
                };
                let known = resolver.places.get(place.get() as usize - 1).unwrap();
                let function = known.function.map(|(id, _)| id);
                let here = (frame.module, frame.function);
                assert_eq!((Some(known.module), function), here, "an older number");
            }
            all.push(frames);
        }
        (all, resolver.tables.epoch)
    }

    #[test]
    fn frames_remain_when_the_numbers_of_places_start_again() {
        let (expected, epoch) = resolved(MOST_ADDRESSES);
        assert_eq!(epoch, 0);
        // Frames with the same address and mode are at the same place.
        let places = |frames: &Vec<ResolvedFrame>| {
            let places = frames.iter();
            let places = places.map(|frame| (frame.address, frame.mode.0, frame.is_return));
            places.collect::<HashSet<_>>().len()
        };
        let most = expected.iter().map(places).max().unwrap();
        for most_places in [most, most + 1, most + 7] {
            let (found, epoch) = resolved(most_places);
            assert!(epoch > 1, "{most_places}");
            assert_eq!(found, expected, "{most_places}");
        }
    }
}
