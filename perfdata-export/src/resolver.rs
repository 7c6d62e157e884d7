//! Resolves frames: searches their mappings' modules and functions, and remembers the results.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::num::NonZeroU32;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use perfdata_core::record::CpuMode;
use perfdata_session::{Dso, Frame, Mapping, MappingId, Sample};
use perfdata_symbols::perf_map;

use crate::places::PlaceId;
use crate::positions::{Base, MOST_WITHIN, Place, Within};
use crate::resolve::ResolvedFrame;
use crate::shared_symbols::SharedSymbols;
use crate::table_entries::ModuleKey;
use crate::tables::{Function, FunctionId, Module, ModuleId, Tables};

/// Default maximum number of addresses whose functions are remembered.
const MOST_ADDRESSES: usize = 1 << 19;

/// `PROT_EXEC` on all architectures.
const PROT_EXEC: u32 = 4;

/// Returns whether a frame belongs to a guest.
pub(crate) fn is_guest(mode: CpuMode) -> bool {
    matches!(mode, CpuMode::GUEST_KERNEL | CpuMode::GUEST_USER)
}

/// Returns the number of frames without a function.
pub(crate) fn unnamed(frames: &[ResolvedFrame]) -> u64 {
    let unnamed = frames.iter().filter(|frame| frame.function.is_none());
    unnamed.count() as u64
}

/// What is known about a place. Two of them fit into a line of the cache.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// The parts of the [`Place`].
    position: u64,
    rest: u32,
    number: PlaceId,
    /// Offset of the position in the function.
    offset: u64,
    /// The number of the function, from 1.
    function: Option<NonZeroU32>,
    /// The line in the function.
    line: u32,
}

impl Known {
    #[inline]
    fn place(&self) -> Place {
        Place {
            position: self.position,
            rest: self.rest,
        }
    }
}

impl ResolvedFrame {
    /// Returns a frame about whose address nothing is known.
    #[inline]
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

    #[inline]
    fn set(&mut self, known: &Known, module: Option<ModuleId>) {
        self.place = Some(known.number);
        self.module = module;
        self.function = known
            .function
            .map(|number| FunctionId(number.get().saturating_sub(1)));
        self.function_offset = known.offset;
        self.line = known.line;
    }
}

/// Resolves frames, and remembers the results.
#[derive(Debug)]
pub(crate) struct Resolver {
    pub symbols: Option<SharedSymbols>,
    pub tables: Tables,
    /// How the addresses in each mapping become positions, except in generated code.
    bases: Vec<Option<Base>>,
    /// The numbers of what contains code.
    withins: HashMap<Within, u32, RandomState>,
    /// By these numbers.
    within_modules: Vec<ModuleId>,
    /// What is known about each place: the first one has the number 1.
    places: HashTable<Known>,
    hasher: RandomState,
    /// The functions that are inlined at places, the innermost one first, by the numbers of the
    /// places.
    inlined: Vec<Option<Inlined>>,
    /// Maximum number of places. A sample has fewer frames.
    most_places: usize,
    /// The module of each mapping that does not belong to a process, if no functions are searched.
    modules: Vec<Option<ModuleId>>,
    /// Whether frames without a mapping have the mapping of an earlier program.
    pub before_exec: bool,
    /// Whether inlined functions and lines are searched at return addresses, not at the calls before.
    pub at_return_addresses: bool,
    /// Whether the function of an address is also a frame as if it were inlined there.
    pub outermost_inlined: bool,
    /// Whether samples have only the innermost frame.
    pub innermost_frame: bool,
    /// Whether the functions of frames are not searched.
    pub without_functions: bool,
}

impl Resolver {
    /// Returns a resolver that knows nothing; without `symbols`, it searches no functions.
    pub fn new(symbols: Option<SharedSymbols>) -> Self {
        Resolver {
            symbols,
            tables: Tables::default(),
            bases: Vec::new(),
            withins: HashMap::default(),
            within_modules: Vec::new(),
            places: HashTable::new(),
            hasher: RandomState::default(),
            inlined: Vec::new(),
            most_places: MOST_ADDRESSES,
            modules: Vec::new(),
            before_exec: false,
            at_return_addresses: false,
            outermost_inlined: false,
            innermost_frame: false,
            without_functions: false,
        }
    }

    /// Appends the frames of a sample.
    pub fn frames(&mut self, sample: &Sample<'_>, frames: &mut Vec<ResolvedFrame>) {
        let epoch = self.tables.epoch;
        self.append(sample, frames);
        if self.tables.epoch != epoch {
            // The numbers of places have started again.
            frames.clear();
            self.append(sample, frames);
        }
    }

    fn append(&mut self, sample: &Sample<'_>, frames: &mut Vec<ResolvedFrame>) {
        for frame in sample.frames().with_before_exec(self.before_exec) {
            match self.known(&frame) {
                Some(resolved) => frames.push(resolved),
                None => self.resolve_into(sample, &frame, frames),
            }
            if self.innermost_frame {
                break;
            }
        }
    }

    /// Returns a frame about which everything is known without a search, as about most frames.
    #[inline]
    fn known(&self, frame: &Frame<'_>) -> Option<ResolvedFrame> {
        let mut resolved = ResolvedFrame {
            is_return: frame.is_return,
            mapping: frame.mapping.or(frame.before_exec),
            ..ResolvedFrame::unmapped(frame.address, frame.mode)
        };
        let Some(mapping) = resolved.mapping else {
            // Code of the kernel may follow its mapping, and guests have names.
            let is_unmapped = frame.mode != CpuMode::KERNEL && !is_guest(frame.mode);
            return is_unmapped.then_some(resolved);
        };
        if let Some(&Some(module)) = self.modules.get(mapping.index()) {
            resolved.module = Some(module);
            return Some(resolved);
        }
        let known = self.known_place(&self.base(mapping)?.place(frame))?;
        if self.inlined_at(known.number).is_some() {
            return None;
        }
        resolved.set(known, self.module_at(known));
        Some(resolved)
    }

    /// Returns how addresses in a mapping become positions, if one of them was resolved before.
    #[inline]
    fn base(&self, mapping: MappingId) -> Option<Base> {
        self.bases.get(mapping.index()).copied().flatten()
    }

    /// Returns what is known about a place.
    #[inline]
    fn known_place(&self, place: &Place) -> Option<&Known> {
        let hash = self.hasher.hash_one(place);
        self.places.find(hash, |known| known.place() == *place)
    }

    /// Returns the functions that are inlined at a place.
    #[inline]
    fn inlined_at(&self, number: PlaceId) -> Option<&Inlined> {
        let at = usize::try_from(number.get()).ok()?;
        self.inlined.get(at)?.as_ref()
    }

    /// Returns the module of a place.
    #[inline]
    fn module_at(&self, known: &Known) -> Option<ModuleId> {
        let within = usize::try_from(known.place().within()).ok()?;
        self.within_modules.get(within).copied()
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
            resolved.module = is_guest(frame.mode).then(|| self.tables.guest(frame.mode));
            return (resolved, None);
        };
        if let Some(&Some(module)) = self.modules.get(id.index()) {
            resolved.module = Some(module);
            return (resolved, None);
        }
        let base = match self.base(id) {
            Some(known) => known,
            None => match self.base_of(sample, id, frame) {
                Some(new) => new,
                None => return (resolved, None),
            },
        };
        let place = base.place(frame);
        if let Some(known) = self.known_place(&place) {
            return self.known_at(known, resolved);
        }
        let within = usize::try_from(place.within()).ok();
        let module = within.and_then(|within| self.within_modules.get(within));
        let Some(&module) = module else {
            return (resolved, None);
        };
        let symbols = self.symbols.as_ref();
        let Some(symbols) = symbols.filter(|_| !self.without_functions) else {
            resolved.module = Some(module);
            if self.base(id).is_some() {
                set_at(&mut self.modules, id.index(), module);
            }
            return (resolved, None);
        };
        let mut searched = *frame;
        searched.is_return &= !self.at_return_addresses;
        let mut inlined = symbols.source_frames(sample, &searched);
        let own = match self.outermost_inlined {
            true => inlined.last().cloned(),
            false => inlined.pop(),
        };
        let own = own.unwrap_or_default();
        let (found, symbols) = symbols.locate(sample, frame);
        let function = found.and_then(|found| {
            let key = ((found.object, found.index), own.file.clone());
            let make = || {
                symbols.with_symbol(found, |symbol| Function {
                    name: symbol.demangled().as_ref().into(),
                    system_name: symbol.name.into(),
                    file: own.file.clone(),
                    start_line: own.start_line,
                    is_in_symtab: symbol.is_in_symtab,
                })
            };
            Some((self.tables.function_of(key, make)?, found.offset))
        });
        drop(symbols);
        // perf shows neither of them at an address without a symbol.
        let is_known = function.is_some();
        let inlined = inlined.iter().filter(|_| is_known).filter_map(|frame| {
            let id = self.tables.inlined_function(module, frame)?;
            Some((id, frame.line))
        });
        let inlined: Vec<(FunctionId, u32)> = inlined.collect();
        if self.places.len() >= self.most_places {
            self.places = HashTable::new();
            self.inlined.clear();
            self.tables.epoch = self.tables.epoch.wrapping_add(1);
        }
        let number = u32::try_from(self.places.len()).ok();
        let number = number.and_then(|number| PlaceId::new(number.saturating_add(1)));
        let Some(number) = number else {
            return (resolved, None);
        };
        let known = Known {
            position: place.position,
            rest: place.rest,
            number,
            function: function.and_then(|(id, _)| NonZeroU32::new(id.0.saturating_add(1))),
            offset: function.map_or(0, |(_, offset)| offset),
            line: if is_known { own.line } else { 0 },
        };
        let hasher = &self.hasher;
        let hash = hasher.hash_one(place);
        self.places
            .insert_unique(hash, known, |known| hasher.hash_one(known.place()));
        if !inlined.is_empty()
            && let Ok(at) = usize::try_from(number.get())
        {
            set_at(&mut self.inlined, at, inlined.into());
        }
        self.known_at(&known, resolved)
    }

    /// Returns how addresses in the mapping of a frame become positions, and remembers it. That of
    /// generated code depends on the process.
    fn base_of(&mut self, sample: &Sample<'_>, id: MappingId, frame: &Frame<'_>) -> Option<Base> {
        let (mapping, dso) = frame.mapping().zip(frame.dso())?;
        let pid = sample.thread().map(|thread| thread.pid);
        let within = Within::of(id, &mapping, dso, pid);
        let number = match self.withins.get(&within) {
            Some(&number) => number,
            None => {
                let number = u32::try_from(self.within_modules.len()).ok()?;
                if number > MOST_WITHIN {
                    return None;
                }
                let pid = match within {
                    Within::Process(_, pid) => pid.filter(|_| has_list(dso, &mapping)),
                    Within::Mapping(_) | Within::File(_) => None,
                };
                let module = self
                    .tables
                    .module_of(ModuleKey::Dso(mapping.dso, pid), || Module {
                        name: shown_name(dso, pid),
                        kind: dso.kind,
                        build_id: frame.build_id(),
                    });
                self.within_modules.push(module);
                self.withins.insert(within, number);
                number
            }
        };
        let base = Base::of(number, within, &mapping, dso);
        if !matches!(within, Within::Process(..)) {
            set_at(&mut self.bases, id.index(), base);
        }
        Some(base)
    }

    /// Returns a frame with what is known about its place, and the functions that are inlined there.
    #[inline]
    fn known_at(
        &self,
        known: &Known,
        mut resolved: ResolvedFrame,
    ) -> (ResolvedFrame, Option<Inlined>) {
        resolved.set(known, self.module_at(known));
        (resolved, self.inlined_at(known.number).cloned())
    }
}

/// Sets an entry of a list, which is extended if it is shorter.
fn set_at<T: Clone>(list: &mut Vec<Option<T>>, at: usize, value: T) {
    if list.len() <= at {
        list.resize(at.saturating_add(1), None);
    }
    if let Some(place) = list.get_mut(at) {
        *place = Some(value);
    }
}

/// The functions that are inlined at an address, and their lines.
type Inlined = Arc<[(FunctionId, u32)]>;

/// Returns whether perf looks for the functions of a mapping in the list of a JIT compiler: if it is
/// executable memory that is not a file (tools/perf/util/map.c, `map__new`).
fn has_list(dso: &Dso, mapping: &Mapping) -> bool {
    let is_executable = match mapping.prot {
        Some(prot) => prot & PROT_EXEC != 0,
        None => mapping.is_executable,
    };
    is_executable
        && match dso.name.starts_with(b"[") {
            true => dso.name.starts_with(b"[stack") || dso.name.starts_with(b"[heap]"),
            // perf regards a file in memory as a file.
            false => !dso.name.starts_with(b"/memfd:"),
        }
}

/// Returns perf's name for a DSO: that of the list with its functions, if it is one of the process
/// `pid`.
fn shown_name(dso: &Dso, pid: Option<u32>) -> Box<[u8]> {
    match pid {
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

    use perfdata_symbols::{Sources, Symbolizer};

    use super::*;

    const RECORDING: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/6.1-x86_64-file-g.data"
    );

    fn symbols() -> SharedSymbols {
        SharedSymbols::new(Symbolizer::new(Sources::default()))
    }

    /// Returns the frames of all samples without the numbers of their places, and how often these
    /// started again.
    fn resolved(most_places: usize) -> (Vec<Vec<ResolvedFrame>>, u32) {
        let mut samples = perfdata_session::open(RECORDING).unwrap();
        let mut resolver = Resolver {
            most_places,
            ..Resolver::new(Some(symbols()))
        };
        let mut all = Vec::new();
        while let Some(sample) = samples.next().unwrap() {
            let mut frames = Vec::new();
            resolver.frames(&sample, &mut frames);
            let mut known = HashMap::new();
            for known_place in resolver.places.clone() {
                let function = known_place.function.map(|number| number.get() - 1);
                let place = (resolver.module_at(&known_place), function);
                known.insert(known_place.number, place);
            }
            for frame in &mut frames {
                let Some(place) = frame.place.take() else {
                    continue;
                };
                let here = (frame.module, frame.function.map(|id| id.0));
                assert_eq!(known[&place], here, "an older number");
            }
            all.push(frames);
        }
        (all, resolver.tables.epoch)
    }

    #[test]
    fn frames_of_a_place_differ_in_addresses_of_one_offset() {
        // Several processes of the same program.
        let path = RECORDING.replace("file-g", "file-a-g-C0");
        let mut samples = perfdata_session::open(path).unwrap();
        let mut resolver = Resolver::new(Some(symbols()));
        let mut known: HashMap<PlaceId, (ResolvedFrame, u64)> = HashMap::new();
        let mut moved = HashSet::new();
        while let Some(sample) = samples.next().unwrap() {
            for frame in sample.frames() {
                let resolved = resolver.resolve(&sample, &frame);
                let Some(place) = resolved.place else {
                    continue;
                };
                let offset = frame.offset().unwrap();
                let (first, of_first) = *known.entry(place).or_insert((resolved, offset));
                let here = ResolvedFrame {
                    address: first.address,
                    mapping: first.mapping,
                    ..resolved
                };
                assert_eq!((here, offset), (first, of_first));
                if resolved.address != first.address {
                    moved.insert(place);
                }
            }
        }
        assert!(known.len() > moved.len() && !moved.is_empty(), "{moved:?}");
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
