//! The threads that samples of tracepoints name.

use perfdata_core::Recording;
use perfdata_core::attr::EventType;
use perfdata_core::record::SampleView;
use perfdata_tracepoint::{Field, Formats, Like};

/// The formats of tracepoints, whose fields contain IDs of threads.
#[derive(Debug, Default)]
pub(super) struct Related {
    /// `None` before they are known.
    formats: Option<Formats>,
}

impl Related {
    /// Returns the IDs of threads in the fields of a sample of an event. The thread that caused it,
    /// `common_pid`, is not among them.
    pub(super) fn tasks_of<'a>(
        &'a mut self,
        recording: &Recording,
        event: usize,
        sample: &SampleView<'a>,
    ) -> impl Iterator<Item = u32> + use<'a> {
        let attr = recording.events.get(event).map(|event| &event.attr);
        let attr = attr.filter(|attr| attr.kind == EventType::TRACEPOINT);
        if attr.is_some() && self.formats.is_none() {
            self.formats = Formats::of(recording, Like::default());
        }
        let formats = self.formats.as_ref().zip(attr);
        let format = formats.and_then(|(formats, attr)| formats.of_event(attr));
        let fields = format.map(|format| format.fields()).unwrap_or_default();
        let raw = sample.raw().unwrap_or_default();
        let fields = fields.iter().filter(|field| is_task(field));
        fields.filter_map(move |field| u32::try_from(field.number(raw)?).ok())
    }
}

/// Returns whether a field contains the ID of a thread: the kernel calls it `pid`.
fn is_task(field: &Field) -> bool {
    let name = field.name();
    let before = name.strip_suffix(b"pid").or(name.strip_suffix(b"tid"));
    before.is_some_and(|before| before.is_empty() || before.ends_with(b"_"))
}
