//! The end of the first pass: the parts and their order, and the records about tasks that they
//! need.

use perfdata_core::read::Limits;

use super::{Survey, belongs_to};
use crate::slice::by::By;
use crate::slice::decisions::{Decisions, Part, PartKey};
use crate::slice::numbers::Bits;
use crate::slice::parts::Parts;
use crate::slice::processes::{Needed, Processes};
use crate::slice::select::Sideband;
use perfdata_convert::error::{Error, Result};

impl Survey<'_> {
    /// Decides about everything that depends on the whole recording.
    pub(super) fn finish(mut self) -> Result<Decisions> {
        while let Some(sample) = self.last.pop_front() {
            self.decide(sample, true)?;
        }
        let Survey {
            select,
            conditions,
            limits,
            mut decisions,
            mut tasks,
            mut processes,
            deferred,
            aux,
            mut parts,
            event_names,
            times,
            runs,
            all,
            ..
        } = self;
        deferred.finish(|number, its| belongs_to(&mut decisions, &mut parts, number, its));
        let traces = aux.finish(select, &mut tasks, &mut decisions.dropped, parts.as_mut())?;
        if all.samples == 0 && traces == 0 && !select.allow_empty {
            let what = match decisions.other_samples {
                0 => "the recording contains no samples",
                _ => "no sample meets the conditions",
            };
            return Err(Error::Refused(what.into()));
        }
        let by = parts.as_ref().map(Parts::by);
        match parts {
            None => decisions.parts.push(all),
            Some(parts) => {
                let by = parts.by();
                decisions.start = parts.start();
                let (list, divided, new) = parts.finish();
                processes.renumber(&new);
                let parts = list.into_iter().map(|part| Part {
                    key: PartKey::of(part.key, by, &tasks, &event_names),
                    samples: part.samples,
                    first: part.first,
                    last: part.last,
                    ..Part::default()
                });
                decisions.parts = parts.collect();
                decisions.divided = Some(divided);
                decisions.times = times.range();
            }
        }
        let span = conditions.span().filter(|_| !select.invert);
        for part in &mut decisions.parts {
            part.span = part.span(decisions.start, span);
        }
        // Samples that perf decodes from AUX data may be of any process.
        if select.sideband == Sideband::Used && !decisions.has_aux_data {
            let is_of_threads = select.has_threads() || by.is_some_and(By::is_of_threads);
            let is_of_count = matches!(by, Some(By::Samples(_) | By::Size(_)))
                || select.first.or(select.last).is_some() && !select.invert;
            let start = if select.invert { 0 } else { conditions.start() };
            leave_out(&mut decisions, &processes, limits, |part| {
                if is_of_threads {
                    return Needed::Sampled;
                }
                Needed::LivingFrom(match part.key {
                    PartKey::Interval(..) => part.span.map_or(start, |span| span.start),
                    _ if is_of_count => part.first.unwrap_or(0).max(start),
                    _ => start,
                })
            })?;
            decisions.names = processes.into_names();
        }
        if let Some(runs) = runs {
            decisions.gaps = runs.gaps(&decisions.dropped, times.range());
        }
        Ok(decisions)
    }
}

/// Decides which records about tasks each part does not need.
fn leave_out(
    decisions: &mut Decisions,
    processes: &Processes,
    limits: Limits,
    needed: impl Fn(&Part) -> Needed,
) -> Result<()> {
    let Decisions {
        dropped,
        divided,
        parts,
        ..
    } = decisions;
    let mut held = 0u64;
    for (number, part) in (0..).zip(parts) {
        let mut numbers = Bits::default();
        let left_out = processes.leave_out(number, needed(part), |number| numbers.insert(number));
        part.left_out = left_out.records;
        let size = numbers.held().saturating_add(left_out.mapped.held());
        part.mapped = (left_out.records > 0).then_some(left_out.mapped);
        match divided {
            None => dropped.extend(&numbers),
            Some(divided) => {
                held = held.saturating_add(size as u64);
                limits.check_metadata("the records of each part", held)?;
                divided.left_out.push(numbers);
            }
        }
    }
    Ok(())
}
