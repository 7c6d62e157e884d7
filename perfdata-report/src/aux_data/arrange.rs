//! Arranges the pieces of one queue in the order of their offsets, without repeated bytes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use perfdata_core::read::Source;
use perfdata_core::record::{AuxtraceInfo, AuxtracePrivate, CsEtmContent};

use super::piece::Piece;

/// The meaning of the offsets of a recording's pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offsets {
    /// They count all bytes of a trace: a lower offset is earlier.
    Count,
    /// They are offsets in a ring buffer that is overwritten (snapshots of Intel PT and BTS): two
    /// pieces with the same offset are different data.
    Wrap,
    /// The recording does not specify it. Two pieces with the same offset are the same data if
    /// their bytes are equal.
    Unknown,
}

impl Offsets {
    /// Returns the meaning in a recording with `info`.
    pub fn of(info: Option<&AuxtraceInfo>) -> Self {
        let intel = |snapshot: u64| {
            if snapshot == 0 {
                Offsets::Count
            } else {
                Offsets::Wrap
            }
        };
        // Before perf 5.14, each CoreSight snapshot contained the whole buffer, including old data.
        let coresight = |snapshot: u64| {
            if snapshot == 0 {
                Offsets::Count
            } else {
                Offsets::Unknown
            }
        };
        match info.map(|info| &info.private) {
            Some(AuxtracePrivate::IntelPt(pt)) => intel(pt.snapshot_mode),
            Some(AuxtracePrivate::IntelBts(bts)) => intel(bts.snapshot_mode),
            Some(AuxtracePrivate::CsEtm(etm)) => match &etm.content {
                CsEtmContent::V0(etm) => coresight(etm.snapshot),
                CsEtmContent::V1(etm) => coresight(etm.snapshot),
                _ => Offsets::Unknown,
            },
            // perf has no snapshots for these.
            Some(
                AuxtracePrivate::S390Cpumsf(_)
                | AuxtracePrivate::HisiPtt(_)
                | AuxtracePrivate::VpaDtl(_),
            ) => Offsets::Count,
            // ARM SPE, and traces that are not known.
            _ => Offsets::Unknown,
        }
    }
}

/// A piece at its position in the output.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Placed {
    /// The piece, with position and size in the file of its queue.
    pub piece: Piece,
    /// Bytes between it and the previous piece that are missing in the recording.
    pub gap: u64,
    /// Bytes at its start that are omitted because the previous pieces contain them.
    pub overlap: u64,
    /// Zeros at its end that are omitted because the next piece starts at their offsets.
    pub padding: u64,
    /// Whether its offset does not follow from the previous pieces, so that the data restart.
    pub restart: bool,
}

/// Maximum number of zeros that perf appends to a piece, up to a multiple of 8
/// (PERF_AUXTRACE_RECORD_ALIGNMENT).
const PADDING: u64 = 7;

/// Offsets of consecutive pieces without a gap.
#[derive(Debug, Clone, Copy)]
struct PieceRun {
    start: u64,
    end: u64,
}

/// Determines the position of each piece in order, without changes to the pieces.
#[derive(Debug)]
pub struct PiecePlaces {
    offsets: Offsets,
    run: Option<PieceRun>,
}

impl PiecePlaces {
    /// Returns an empty sequence for pieces with such offsets.
    pub fn new(offsets: Offsets) -> Self {
        PiecePlaces { offsets, run: None }
    }

    /// Determines the position of the next piece from its offset.
    pub fn next(&mut self, piece: Piece) -> Placed {
        let mut placed = Placed {
            piece,
            gap: 0,
            overlap: 0,
            padding: 0,
            restart: false,
        };
        let Some(offset) = placed.piece.origin.offset() else {
            self.run = None;
            return placed;
        };
        let start = match self.run {
            Some(run) if offset == run.end => run.start,
            Some(run) if offset > run.end && self.offsets != Offsets::Wrap => {
                placed.gap = offset - run.end;
                offset
            }
            run => {
                placed.restart = run.is_some();
                offset
            }
        };
        self.run = Some(PieceRun {
            start,
            end: offset.saturating_add(placed.piece.size),
        });
        placed
    }
}

/// Copies pieces from a file that contains them in order of arrival to another file, without
/// repeated bytes.
#[derive(Debug)]
struct Copier {
    places: PiecePlaces,
    from: File,
    to: File,
    len: u64,
}

impl Copier {
    /// Copies the next piece; `before` is the previous one.
    fn next(&mut self, piece: Piece, before: Option<&mut Placed>) -> io::Result<Placed> {
        let run = self.places.run;
        let mut placed = self.places.next(piece);
        if let Some(run) = run.filter(|_| placed.restart && self.places.offsets != Offsets::Wrap) {
            self.join(run, &mut placed, before)?;
        }
        let from = placed.piece.at.saturating_add(placed.overlap);
        placed.piece.size = placed.piece.size.saturating_sub(placed.overlap);
        placed.piece.at = self.append(from, placed.piece.size)?;
        Ok(placed)
    }

    /// Joins `placed` to the pieces of `run`, which precede it, if its first bytes equal their last
    /// bytes, or have the same offsets as their padding.
    fn join(
        &mut self,
        run: PieceRun,
        placed: &mut Placed,
        before: Option<&mut Placed>,
    ) -> io::Result<()> {
        let Some(offset) = placed
            .piece
            .origin
            .offset()
            .filter(|&offset| offset >= run.start)
        else {
            return Ok(());
        };
        let behind = run.end.saturating_sub(offset);
        let Some(place) = self.len.checked_sub(behind) else {
            return Ok(());
        };
        let end = offset.saturating_add(placed.piece.size);
        let shared = behind.min(placed.piece.size);
        let end = if self.is_there(place, placed.piece.at, shared)? {
            placed.overlap = shared;
            end.max(run.end)
        } else if let Some(before) =
            before.filter(|before| behind <= PADDING.min(before.piece.size))
            && self.is_zero(place, behind)?
        {
            before.padding = behind;
            before.piece.size -= behind;
            self.len = place;
            end
        } else {
            return Ok(());
        };
        placed.restart = false;
        self.places.run = Some(PieceRun {
            start: run.start,
            end,
        });
        Ok(())
    }

    /// Returns whether the `len` bytes at `place` in the new file equal those at `at` in the old
    /// file.
    fn is_there(&self, place: u64, at: u64, len: u64) -> io::Result<bool> {
        let mut here = vec![0; BLOCK];
        let mut there = vec![0; BLOCK];
        let mut done = 0;
        while done < len {
            let some = usize::try_from(len - done).unwrap_or(BLOCK).min(BLOCK);
            let (here, there) = (here.get_mut(..some), there.get_mut(..some));
            let (Some(here), Some(there)) = (here, there) else {
                break;
            };
            self.to.read_exact_at(here, place.saturating_add(done))?;
            self.from.read_exact_at(there, at.saturating_add(done))?;
            if here != there {
                return Ok(false);
            }
            done += some as u64;
        }
        Ok(true)
    }

    fn is_zero(&self, place: u64, len: u64) -> io::Result<bool> {
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        self.to.read_exact_at(&mut bytes, place)?;
        Ok(bytes.iter().all(|&byte| byte == 0))
    }

    /// Appends `len` bytes at `from` of the old file to the new file, and returns their offset
    /// there.
    fn append(&mut self, from: u64, len: u64) -> io::Result<u64> {
        let at = self.to.seek(SeekFrom::Start(self.len))?;
        loop {
            let done = self.to.stream_position()?.saturating_sub(at);
            self.from.seek(SeekFrom::Start(from.saturating_add(done)))?;
            let left = len.saturating_sub(done);
            match io::copy(&mut (&self.from).take(left), &mut self.to) {
                // The system copies from file to file. The library does not repeat such a call.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => {
                    result?;
                    break;
                }
            }
        }
        self.len = self.to.stream_position()?;
        Ok(at)
    }
}

/// Bytes that are compared at a time.
const BLOCK: usize = 64 << 10;

/// Copies `pieces` of the file `from` in order to the empty file `to`.
pub fn arrange(
    offsets: Offsets,
    mut pieces: Vec<Piece>,
    from: File,
    to: File,
) -> io::Result<Vec<Placed>> {
    if offsets == Offsets::Count {
        pieces.sort_by_key(|piece| piece.origin.offset());
    }
    let mut copier = Copier {
        places: PiecePlaces::new(offsets),
        from,
        to,
        len: 0,
    };
    let mut placed: Vec<Placed> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let next = copier.next(piece, placed.last_mut())?;
        placed.push(next);
    }
    copier.to.set_len(copier.len)?;
    Ok(placed)
}
