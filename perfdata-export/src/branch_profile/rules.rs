//! Which branches of a sample are counted, as the readers of each format do it: `DataAggregator.cpp`
//! of BOLT and `PerfReader.cpp` of llvm-profgen (LLVM 19), `sample_reader.cc` of AutoFDO.

use super::ProfileForm;
use super::entries::{Entries, Entry};
use super::objects::Place;
use crate::error::Result;

/// The first address that belongs to the kernel for BOLT.
pub(super) const KERNEL: u64 = 0xffff_8000_0000_0000;

/// Maximum distance between two branches in AutoFDO, in bytes.
const MOST_BETWEEN: u64 = 1 << 20;

/// Distance in bytes above which AutoFDO takes a repeated first branch for an error of the hardware.
const MOST_REPEATED: u64 = 0x1000;

/// `PERF_BR_SPEC_WRONG_PATH`.
const WRONG_PATH: u8 = 1;

/// A branch of a sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    pub from: Place,
    pub to: Place,
    pub is_mispredicted: bool,
    /// Whether one of the addresses is in the kernel.
    pub is_kernel: bool,
    /// `PERF_BR_SPEC_*`.
    pub speculation: u8,
}

/// Counts the branches of a sample, newest first.
pub(super) fn count(
    form: ProfileForm,
    counts_kernel: bool,
    branches: &[Taken],
    entries: &mut Entries,
) -> Result<()> {
    match form {
        ProfileForm::Bolt => bolt(counts_kernel, branches, entries),
        ProfileForm::LlvmProfgen => llvm_profgen(branches, entries),
        ProfileForm::AutoFdo => autofdo(branches, entries),
    }
}

/// Interrupts are left out: they are no branches of the program.
fn bolt(counts_kernel: bool, branches: &[Taken], entries: &mut Entries) -> Result<()> {
    let mut end = Place::OUTSIDE;
    for branch in branches {
        if branch.is_kernel && !counts_kernel {
            continue;
        }
        add(branch, end, entries)?;
        end = branch.from;
    }
    Ok(())
}

/// Branches outside of an object do not separate those inside of it.
fn llvm_profgen(branches: &[Taken], entries: &mut Entries) -> Result<()> {
    for (at, branch) in branches.iter().enumerate() {
        let object = branch.to.object();
        let newer = branches.get(..at).unwrap_or_default().iter().rev();
        let mut touching =
            newer.filter(|newer| newer.from.object() == object || newer.to.object() == object);
        let end = touching.next().map_or(Place::OUTSIDE, |next| next.from);
        add(branch, end, entries)?;
    }
    Ok(())
}

/// Of the newest branch, it is not known where the code after it was left. A branch without a valid
/// fall-through after it is not counted.
fn autofdo(branches: &[Taken], entries: &mut Entries) -> Result<()> {
    let is_right = |branch: &&Taken| branch.speculation != WRONG_PATH;
    let first = branches.iter().position(|branch| is_right(&branch));
    let Some(first) = first else { return Ok(()) };
    let is_repeated = branches.get(..2).is_some_and(|newest| match newest {
        [one, other] => {
            let stride = one.from.offset().wrapping_sub(one.to.offset());
            (one.from, one.to) == (other.from, other.to) && stride > MOST_REPEATED
        }
        _ => false,
    });
    for (at, branch) in branches.iter().enumerate().skip(first) {
        let newer = at.checked_sub(1).and_then(|at| branches.get(at));
        let Some(newer) = newer.filter(|_| at > first) else {
            add(branch, Place::OUTSIDE, entries)?;
            continue;
        };
        let is_same = newer.from.object() == branch.to.object();
        let between = newer.from.offset().checked_sub(branch.to.offset());
        let is_valid = is_same && between.is_some_and(|between| between <= MOST_BETWEEN);
        if is_right(&branch) && is_valid && !(at == 1 && is_repeated) {
            add(branch, newer.from, entries)?;
        }
    }
    Ok(())
}

fn add(branch: &Taken, end: Place, entries: &mut Entries) -> Result<()> {
    let &Taken {
        from,
        to,
        is_mispredicted,
        ..
    } = branch;
    if (from, to) == (Place::OUTSIDE, Place::OUTSIDE) {
        return Ok(());
    }
    let end = match end.object() == to.object() {
        true => end,
        false => Place::OUTSIDE,
    };
    entries.add(Entry { from, to, end }, is_mispredicted)
}
