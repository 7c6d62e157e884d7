//! The loop over the records.

use std::time::Duration;

use perfdata_core::Recording;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::{Chunk, Tail};

use super::chain::{ChainEnd, Sink, Step};
use super::{Form, Summary};
use crate::count::Counts;
use crate::error::{Error, Result};
use crate::io::BoxedSource;
use crate::leftover::Leftover;

/// Moves all records through the stages.
pub(super) fn pump(
    reader: &mut BoxedSource,
    steps: &mut [Step],
    recording: &mut Recording,
    sink: impl Sink,
    container: ContainerKind,
) -> Result<Summary> {
    pump_all(reader, steps, recording, sink, container).map_err(Error::of_records)
}

fn pump_all(
    reader: &mut BoxedSource,
    steps: &mut [Step],
    recording: &mut Recording,
    sink: impl Sink,
    container: ContainerKind,
) -> Result<Summary> {
    let from = Form::of(reader.recording(), reader.container_layout());
    let is_copy = from.container == container
        && steps
            .iter()
            .all(|step| step.stage.requirements().is_neutral);
    let mut counts = Counts::default();
    if let ContainerLayout::Pipe(head) = reader.container_layout() {
        counts.metadata = head.slots.len() as u64;
    }
    let mut unreadable = 0;
    let mut writer = ChainEnd::new(sink);
    while let Some((chunk, _)) = reader.next_chunk()? {
        match chunk {
            Chunk::Records(batch) => counts.add_batch(&batch),
            Chunk::Unreadable(bytes) => unreadable += bytes.len() as u64,
            Chunk::Payload(_) => {}
        }
        // The command fails without waiting for the end of an input that it refuses.
        if unreadable > Tail::MOST && !is_copy {
            break;
        }
        writer.chain(steps).chunk(&chunk)?;
    }
    let unreadable = Leftover::of(reader, unreadable);
    if let Some(leftover) = unreadable.as_ref().filter(|_| !is_copy) {
        leftover.check()?;
        if container == ContainerKind::File {
            leftover.check_payload()?;
        }
    }
    writer.finish(steps, recording)?;
    Ok(Summary {
        from,
        to: Form {
            container,
            endian: recording.endian,
        },
        counts,
        features: recording.features.len(),
        bytes_in: 0,
        bytes_out: 0,
        elapsed: Duration::ZERO,
        unfinished: container == ContainerKind::File && !reader.container_layout().is_finished(),
        unreadable,
        notes: steps
            .iter()
            .flat_map(|step| step.note().into_iter().chain(step.stage.notes()))
            .collect(),
    })
}
