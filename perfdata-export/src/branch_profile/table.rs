//! The lines of a profile: fall-throughs, addresses and branches of one object, with their counts.

use std::io::Write;

use super::ProfileForm;
use super::code::Code;
use super::entries::{Entry, halves};
use super::objects::Place;
use crate::counts::{Counts, Sums, line, numbers};
use crate::error::{Error, Result};
use crate::spool::Spool;

/// What llvm-profgen takes for any address outside of the object.
const EXTERNAL: u64 = 1;

/// A kind of line, in the order of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Code that ran from one address to another one without a branch.
    FallThrough = 0,
    /// The same, entered from another function.
    EnteredFallThrough = 1,
    /// A sampled address.
    Address = 2,
    Branch = 3,
}

impl Line {
    const ALL: [Line; 4] = [
        Line::FallThrough,
        Line::EnteredFallThrough,
        Line::Address,
        Line::Branch,
    ];
}

/// The counts of an object.
#[derive(Debug)]
pub(super) struct Table<'a> {
    form: ProfileForm,
    object: u16,
    code: &'a mut Code,
    counts: Counts,
    /// Number of fall-throughs that no program can have run.
    pub impossible: u64,
    /// Number of branches.
    pub branches: u64,
    /// Number of sampled addresses.
    pub addresses: u64,
}

impl<'a> Table<'a> {
    /// Returns the table of an object with its code.
    pub fn new(form: ProfileForm, object: u16, code: &'a mut Code) -> Self {
        Table {
            form,
            object,
            code,
            counts: Counts::default(),
            impossible: 0,
            branches: 0,
            addresses: 0,
        }
    }

    /// Adds what an entry says about the object.
    pub fn add(&mut self, entry: Entry, sums: Sums) -> Result<()> {
        let is_own = |place: &Place| place.object() == self.object;
        let (to, end) = (
            Some(entry.to).filter(is_own),
            Some(entry.end).filter(is_own),
        );
        if entry.from == Place::SAMPLED {
            if let Some(to) = to.and_then(|to| self.number(to)) {
                self.addresses = self.addresses.saturating_add(sums.samples);
                self.put(Line::Address, to, 0, sums)?;
            }
            return Ok(());
        }
        let from = Some(entry.from).filter(is_own);
        if from.is_some() || to.is_some() {
            self.branches = self.branches.saturating_add(sums.samples);
        }
        match self.form {
            ProfileForm::Bolt => self.bolt(from, to, end, sums),
            ProfileForm::LlvmProfgen => self.llvm_profgen(from, to, end, sums),
            ProfileForm::AutoFdo => self.autofdo(from, to, end, sums),
        }
    }

    /// Returns how the form names a place.
    fn number(&self, place: Place) -> Option<u64> {
        match self.form {
            ProfileForm::AutoFdo => Some(place.offset()),
            ProfileForm::Bolt | ProfileForm::LlvmProfgen => self.code.address(place),
        }
    }

    /// BOLT knows functions and procedure linkage tables, and of a fall-through whether it was entered
    /// from its own function: then it begins at the target, otherwise perhaps after a call.
    fn bolt(
        &mut self,
        from: Option<Place>,
        to: Option<Place>,
        end: Option<Place>,
        sums: Sums,
    ) -> Result<()> {
        let located = |place: Option<Place>| {
            let address = self.code.address(place?)?;
            Some((address, self.code.function_or_stub(address)?))
        };
        let (from, to, end) = (located(from), located(to), located(end));
        if let (Some((start, function)), Some((last, last_function))) = (to, end) {
            let kind = match from.is_some_and(|(_, own)| own == function) {
                true => Line::FallThrough,
                false => Line::EnteredFallThrough,
            };
            match function == last_function && start <= last {
                true => self.put(kind, start, last, sums)?,
                false => self.impossible = self.impossible.saturating_add(sums.samples),
            }
        }
        let address = |located: Option<(u64, u64)>| located.map_or(0, |(address, _)| address);
        match from.is_some() || to.is_some() {
            true => self.put(Line::Branch, address(from), address(to), sums),
            false => Ok(()),
        }
    }

    /// llvm-profgen knows instructions, and counts the branches to them.
    fn llvm_profgen(
        &mut self,
        from: Option<Place>,
        to: Option<Place>,
        end: Option<Place>,
        sums: Sums,
    ) -> Result<()> {
        let mut located = |place: Option<Place>| {
            let address = self.code.address(place?)?;
            self.code.is_instruction(address).then_some(address)
        };
        let (from, to, end) = (located(from), located(to), located(end));
        let Some(to) = to else { return Ok(()) };
        let base = self.code.base();
        // Also of the address for all that is external, the reader adds the base.
        let from = from.unwrap_or(EXTERNAL).wrapping_sub(base);
        self.put(Line::Branch, from, to.wrapping_sub(base), sums)?;
        let Some(end) = end else { return Ok(()) };
        match self.code.is_fall_through(to, end) {
            true => {
                let (start, end) = (to.wrapping_sub(base), end.wrapping_sub(base));
                self.put(Line::FallThrough, start, end, sums)
            }
            false => {
                self.impossible = self.impossible.saturating_add(sums.samples);
                Ok(())
            }
        }
    }

    /// AutoFDO counts branches inside of the object, and takes offsets in the file.
    fn autofdo(
        &mut self,
        from: Option<Place>,
        to: Option<Place>,
        end: Option<Place>,
        sums: Sums,
    ) -> Result<()> {
        let Some(to) = to.map(Place::offset) else {
            return Ok(());
        };
        if let Some(end) = end {
            self.put(Line::FallThrough, to, end.offset(), sums)?;
        }
        match from {
            Some(from) => self.put(Line::Branch, from.offset(), to, sums),
            None => Ok(()),
        }
    }

    fn put(&mut self, kind: Line, one: u64, other: u64, sums: Sums) -> Result<()> {
        let ([a, b], [c, d]) = (halves(one), halves(other));
        self.counts.add_sums(&[kind as u32, a, b, c, d], sums, line)
    }

    /// Writes the profile.
    pub fn write(self, out: &mut dyn Write) -> Result<()> {
        match self.form {
            ProfileForm::Bolt => self.write_bolt(out),
            ProfileForm::LlvmProfgen => self.write_lists(out, &[Line::FallThrough, Line::Branch]),
            ProfileForm::AutoFdo => {
                self.write_lists(out, &[Line::FallThrough, Line::Address, Line::Branch])
            }
        }
    }

    /// Passes the lines in their order.
    fn each(self, mut see: impl FnMut(Line, u64, u64, Sums) -> Result<()>) -> Result<()> {
        self.counts.finish(line, &mut |line, sums| {
            let mut words = numbers(line);
            let kind = words.next().unwrap_or_default();
            let mut word = || {
                let mut half = || words.next().map_or(0, u64::from);
                half() << 32 | half()
            };
            let (one, other) = (word(), word());
            let kind = Line::ALL.into_iter().find(|&known| known as u32 == kind);
            kind.map_or(Ok(()), |kind| see(kind, one, other, sums))
        })
    }

    /// Addresses are for recordings without branches (LLVM 21).
    fn write_bolt(self, out: &mut dyn Write) -> Result<()> {
        let has_branches = self.branches > 0;
        self.each(|kind, one, other, Sums { samples, weight }| {
            match kind {
                Line::FallThrough => writeln!(out, "F {one:x} {other:x} {samples}"),
                Line::EnteredFallThrough => writeln!(out, "f {one:x} {other:x} {samples}"),
                Line::Address if has_branches => Ok(()),
                Line::Address => writeln!(out, "S {one:x} {samples}"),
                Line::Branch => writeln!(out, "B {one:x} {other:x} {samples} {weight}"),
            }
            .map_err(Error::Output)
        })
    }

    /// Writes lists, each after its length.
    fn write_lists(self, out: &mut dyn Write, lists: &[Line]) -> Result<()> {
        let mut spool = Spool::default();
        let mut lens: Vec<(Line, usize, u64)> = Vec::new();
        lens.extend(lists.iter().map(|&kind| (kind, spool.add(), 0)));
        self.each(|kind, one, other, sums| {
            let list = lens.iter_mut().find(|(known, ..)| *known == kind);
            let Some((_, stream, len)) = list else {
                return Ok(());
            };
            *len = len.saturating_add(1);
            let samples = sums.samples;
            let text = match kind {
                Line::Branch => format!("{one:x}->{other:x}:{samples}\n"),
                Line::Address => format!("{one:x}:{samples}\n"),
                _ => format!("{one:x}-{other:x}:{samples}\n"),
            };
            spool.write(*stream, text.as_bytes())
        })?;
        for (_, stream, len) in lens {
            writeln!(out, "{len}").map_err(Error::Output)?;
            spool.read(stream, &mut |bytes| {
                out.write_all(bytes).map_err(Error::Output)
            })?;
        }
        Ok(())
    }
}
