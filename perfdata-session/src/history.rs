//! The address spaces of processes at any moment, for records that are not in the order of time.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::change::{Change, Owner};
use crate::space::{Pieces, Space};

/// Maximum number of kept states of a program.
const MOST_STATES: usize = 16;

/// A mapping: its time, first address, the address after the last one, and its description.
type TimedMapping<T> = (u64, (u64, u64), T);

/// A process from its start, or from the start of a program in it, up to the next one.
#[derive(Debug)]
struct Program<T> {
    start: u64,
    /// The program that it was forked from, a lower number.
    parent: Option<usize>,
    children: Vec<usize>,
    /// Its own mappings, in the order of time.
    mappings: Vec<TimedMapping<T>>,
    /// States that were computed: the number of applied mappings, ascending, and the address space.
    states: Vec<(usize, Space<T>)>,
}

impl<T> Program<T> {
    /// Returns the number of mappings that are not newer than `time`.
    fn applied_at(&self, time: u64) -> usize {
        self.mappings.partition_point(|mapping| mapping.0 <= time)
    }

    /// Returns the last known state with at most `applied` mappings.
    fn state(&self, applied: usize) -> Option<&(usize, Space<T>)> {
        let after = self.states.partition_point(|state| state.0 <= applied);
        self.states.get(after.checked_sub(1)?)
    }

    /// Keeps a state. Of too many, the one that is closest to its neighbours is dropped, but never
    /// the first or the last one.
    fn keep(&mut self, applied: usize, space: Space<T>) {
        let at = self.states.partition_point(|state| state.0 < applied);
        if self.states.get(at).is_some_and(|state| state.0 == applied) {
            return;
        }
        self.states.insert(at, (applied, space));
        if self.states.len() > MOST_STATES {
            let gaps = self.states.windows(3).enumerate();
            let gap = |states: &[(usize, Space<T>)]| match states {
                [before, _, after] => after.0.saturating_sub(before.0),
                _ => usize::MAX,
            };
            if let Some((closest, _)) = gaps.min_by_key(|(_, states)| gap(states)) {
                self.states.remove(closest.saturating_add(1));
            }
        }
    }
}

/// The address spaces of all processes at any moment. `T` represents a mapping.
///
/// [`AddressSpaces`](crate::AddressSpaces) are the state at one moment, for programs that read
/// records in the order of time. This history answers for samples in any order, for instance that
/// of the file, after it has received all changes. Kernels are not contained.
///
/// ```
/// use perfdata_session::{AddressSpaceHistory, Change, Machine, Owner};
///
/// let owner = Owner::Process(Machine::HOST, 1);
/// let map = |start, what| Change::Map { owner, range: (start, start + 0x1000), what };
/// let mut history = AddressSpaceHistory::default();
/// history.add(Some(20), map(0x1000, "new"));
/// history.add(Some(10), map(0x1000, "old"));
/// let mut at = |time| Some(history.at(owner, time)?.find(0x1000)?.1);
/// assert_eq!([5, 10, 25].map(&mut at), [None, Some("old"), Some("new")]);
/// ```
#[derive(Debug)]
pub struct AddressSpaceHistory<T> {
    /// The changes that were added since the last query, with their times.
    added: Vec<(u64, Change<T>)>,
    programs: Vec<Program<T>>,
    /// The programs of each process, in the order of time.
    by_owner: HashMap<Owner, Vec<usize>, RandomState>,
    pieces: Pieces,
    mappings: usize,
}

impl<T> Default for AddressSpaceHistory<T> {
    fn default() -> Self {
        AddressSpaceHistory {
            added: Vec::new(),
            programs: Vec::new(),
            by_owner: HashMap::default(),
            pieces: Pieces::default(),
            mappings: 0,
        }
    }
}

impl<T: Copy> AddressSpaceHistory<T> {
    /// Adds a change at `time` in nanoseconds; without a time, it precedes the recording. Of
    /// changes with the same time, the one that was added last is the newest. After the first
    /// query, a process that starts, or a new program, must not be older than the last one of the
    /// process.
    pub fn add(&mut self, time: Option<u64>, change: Change<T>) {
        self.added.push((time.unwrap_or(0), change));
    }

    /// Returns the approximate memory use in bytes.
    pub fn held(&self) -> usize {
        let sizes = [
            (self.added.len(), size_of::<(u64, Change<T>)>()),
            (self.mappings, size_of::<TimedMapping<T>>()),
            (
                self.programs.len(),
                size_of::<Program<T>>().saturating_add(64),
            ),
        ];
        sizes.iter().fold(self.pieces.held(), |sum, (count, size)| {
            sum.saturating_add(count.saturating_mul(*size))
        })
    }

    /// Returns the address space of `owner` at `time`, including the changes at this time; `None`
    /// if it is not known.
    pub fn at(&mut self, owner: Owner, time: u64) -> Option<Space<T>> {
        self.enter();
        let programs = self.by_owner.get(&owner)?;
        let after = programs
            .partition_point(|&number| self.programs.get(number).is_some_and(|p| p.start <= time));
        let program = *programs.get(after.checked_sub(1)?)?;
        self.state(program, time)
    }

    /// Enters the changes that were added.
    fn enter(&mut self) {
        if self.added.is_empty() {
            return;
        }
        let mut added = std::mem::take(&mut self.added);
        added.sort_by_key(|(time, _)| *time);
        for (time, change) in added {
            match change {
                Change::Map { owner, range, what } => self.map(owner, (time, range, what)),
                Change::Fork { child, parent } => {
                    let parent = parent.and_then(|parent| self.last(parent));
                    self.begin(child, time, parent);
                }
                Change::Exec(owner) => {
                    self.begin(owner, time, None);
                }
                _ => {}
            }
        }
    }

    /// Returns the last program of a process.
    fn last(&self, owner: Owner) -> Option<usize> {
        self.by_owner.get(&owner)?.last().copied()
    }

    /// Adds a program.
    fn begin(&mut self, owner: Owner, start: u64, parent: Option<usize>) -> usize {
        let number = self.programs.len();
        self.programs.push(Program {
            start,
            parent,
            children: Vec::new(),
            mappings: Vec::new(),
            states: Vec::new(),
        });
        if let Some(parent) = parent.and_then(|parent| self.programs.get_mut(parent)) {
            parent.children.push(number);
        }
        self.by_owner.entry(owner).or_default().push(number);
        number
    }

    fn map(&mut self, owner: Owner, mapping: TimedMapping<T>) {
        if matches!(owner, Owner::Kernel(_)) {
            return;
        }
        let time = mapping.0;
        let programs = self.by_owner.get(&owner).map(Vec::as_slice);
        let mut programs = programs.unwrap_or_default().iter().rev();
        let number = programs
            .find(|&&number| self.programs.get(number).is_some_and(|p| p.start <= time))
            .copied();
        let number = match number {
            Some(number) => number,
            None => self.begin(owner, 0, None),
        };
        let Some(program) = self.programs.get_mut(number) else {
            return;
        };
        let at = program.applied_at(time);
        program.mappings.insert(at, mapping);
        self.mappings = self.mappings.saturating_add(1);
        // A child is only known with its parent.
        if program.states.is_empty() {
            return;
        }
        program.states.retain(|state| state.0 <= at);
        // What was forked later starts with this mapping.
        let mut changed = vec![number];
        while let Some(parent) = changed.pop() {
            let Some(parent) = self.programs.get(parent) else {
                continue;
            };
            let children = parent.children.iter().rev().copied();
            let is_later =
                |&child: &usize| self.programs.get(child).is_some_and(|c| c.start >= time);
            let later: Vec<usize> = children.take_while(is_later).collect();
            for child in later {
                if let Some(known) = self.programs.get_mut(child)
                    && !known.states.is_empty()
                {
                    known.states.clear();
                    changed.push(child);
                }
            }
        }
    }

    /// Returns the address space of a program at `time`.
    fn state(&mut self, number: usize, time: u64) -> Option<Space<T>> {
        // The programs without a known state, from the last one to its ancestors.
        let mut unknown = Vec::new();
        let mut next = Some((number, time));
        let mut space = Space::default();
        while let Some((number, time)) = next {
            let program = self.programs.get(number)?;
            let applied = program.applied_at(time);
            if let Some((known, state)) = program.state(applied) {
                space = state.clone();
                unknown.push((number, *known, applied));
                break;
            }
            unknown.push((number, 0, applied));
            next = program.parent.map(|parent| (parent, program.start));
        }
        for (number, known, applied) in unknown.into_iter().rev() {
            let program = self.programs.get_mut(number)?;
            if known == 0 {
                program.keep(0, space.clone());
            }
            let rest = program.mappings.get(known..applied).unwrap_or_default();
            for (_, (start, end), what) in rest {
                self.pieces.map(&mut space, *start..*end, *what);
            }
            program.keep(applied, space.clone());
        }
        Some(space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::made::{fork, map, process};

    fn at(history: &mut AddressSpaceHistory<u32>, pid: u32, time: u64, page: u64) -> Option<u32> {
        Some(history.at(process(pid), time)?.find(page << 12)?.1)
    }

    #[test]
    fn changes_apply_from_their_time_on_in_any_order() {
        let mut history = AddressSpaceHistory::default();
        let changes = [
            (Some(50), Change::Exec(process(2))),
            (Some(30), map(1, 1, 8)),
            (Some(20), fork(2, 1)),
            (None, map(1, 1, 7)),
            (Some(60), map(2, 1, 9)),
        ];
        changes
            .into_iter()
            .for_each(|(time, change)| history.add(time, change));
        let times = [0, 19, 20, 30, 49, 50, 60];
        let of = |history: &mut _, pid| times.map(|time| at(history, pid, time, 1));
        let (old, new) = (Some(7), Some(8));
        assert_eq!(
            of(&mut history, 1),
            [old, old, old, new, new, new, new],
            "of the parent"
        );
        let expected = [None, None, old, old, old, None, Some(9)];
        assert_eq!(of(&mut history, 2), expected, "of the child");
        assert_eq!(at(&mut history, 3, 60, 1), None);
    }

    /// Mappings that are added after a query replace what was known, also in children.
    #[test]
    fn later_mappings_are_seen() {
        let mut history = AddressSpaceHistory::default();
        history.add(Some(10), map(1, 1, 7));
        history.add(Some(40), fork(2, 1));
        history.add(Some(50), fork(3, 2));
        assert_eq!(at(&mut history, 3, 60, 2), None);
        history.add(Some(30), map(1, 2, 8));
        let found = [1, 2, 3].map(|pid| at(&mut history, pid, 60, 2));
        assert_eq!(found, [Some(8); 3]);
        assert_eq!(at(&mut history, 1, 29, 2), None);
        history.add(Some(45), map(1, 2, 9));
        let found = [1, 2, 3].map(|pid| at(&mut history, pid, 60, 2));
        assert_eq!(found, [Some(9), Some(8), Some(8)]);
    }

    /// The states that are kept do not change any answer, and their number is bounded.
    #[test]
    fn any_order_of_queries_has_the_same_answers() {
        let mut history = AddressSpaceHistory::default();
        for time in 0..1000 {
            history.add(Some(time), map(1, time % 7, time as u32));
        }
        let mut time = 1;
        for _ in 0..3000 {
            time = time * 389 % 1009;
            let newest = (0..7).map(|page| {
                let last = (0..=time.min(999)).rev().find(|at| at % 7 == page);
                last.map(|at| at as u32)
            });
            let found = (0..7).map(|page| at(&mut history, 1, time, page));
            assert!(newest.eq(found.collect::<Vec<_>>()), "at {time}");
        }
        assert!(history.programs[0].states.len() <= MOST_STATES);
    }

    /// Processes that fork from each other need no stack, and little memory.
    #[test]
    fn a_long_line_of_forks_is_no_problem() {
        let mut history = AddressSpaceHistory::default();
        history.add(None, map(0, 1, 7));
        for pid in 1..200_000 {
            history.add(Some(u64::from(pid)), fork(pid, pid - 1));
        }
        assert_eq!(at(&mut history, 199_999, 1 << 20, 1), Some(7));
        assert!(history.held() < 200_000 * 300, "{}", history.held());
    }
}
