//! The kind of content in each field, in regard to who may see it: the basis for removing from a
//! recording what others must not learn.
//!
//! Every field of every structure has a [`Content`]. Its display style implies it where the style
//! says what the field is (a process, an address, a time); otherwise it follows the type in the
//! declaration: `lost: u64 => Number`. A structure may have a content for all of its fields
//! (`pub struct IntelPt(layout) => Trace { … }`), but only one that is never published. A field
//! without content does not compile, and neither does a line of the tables of records and features
//! without one.
//!
//! [`Rewrite`] visits the fields of a value like [`Describe`](crate::describe::Describe), and lets
//! a [`Rewriter`] replace each of them. The declaration generates it.

use crate::describe::Style;

/// The kind of content in a field.
///
/// A program that publishes recordings must decide about each of them, so code that ignores a new
/// kind does not compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Content {
    /// A number or a text that says nothing about persons, programs or addresses: a count, a size,
    /// a flag.
    Number,
    /// A CPU number, or all ones.
    Cpu,
    /// The protection of a mapping, `PROT_*`.
    Protection,
    /// The flags of a mapping, `MAP_*`.
    MapFlags,
    /// The size of a build ID in bytes.
    BuildIdSize,
    /// A structure, a record or a section whose fields have contents of their own.
    Fields,
    /// An address of code or data in a process or the kernel.
    Address,
    /// A callchain: addresses with context markers between them.
    Callchain,
    /// The file offset of a mapping: in anonymous memory and for a kernel's image it is an address.
    MappingOffset,
    /// A physical address.
    PhysicalAddress,
    /// A process or thread ID.
    Pid,
    /// Nanoseconds on the recording's clock.
    Time,
    /// Ticks of the kernel's timer since boot (jiffies).
    Ticks,
    /// The relation of the recording's clock to another one.
    Clock,
    /// An event ID, which the kernel counts since boot.
    Id,
    /// The ID of an event's instance.
    StreamId,
    /// A number that joins a deferred callchain with its sample.
    Cookie,
    /// The ID of a cgroup.
    CgroupId,
    /// The ID of a BPF program or another BPF object.
    BpfId,
    /// The name of a thread.
    Comm,
    /// The name of a mapping or DSO: a path, or a name in brackets.
    Path,
    /// The path of a cgroup.
    CgroupPath,
    /// The name of a function or a BPF program.
    Symbol,
    /// The name of an event, a tracepoint's subsystem, or a group of events.
    EventName,
    /// The name of a PMU.
    PmuName,
    /// The host name.
    Host,
    /// A word of a command line.
    Argument,
    /// A release of the kernel or of perf.
    Release,
    /// The model of the processor and its abilities.
    Processor,
    /// Sizes and arrangement of CPUs, caches and memory.
    Topology,
    /// A message of a decoder.
    Message,
    /// The identity of a file: device, inode, generation.
    FileId,
    /// The inode of a namespace.
    Namespace,
    /// A user ID.
    User,
    /// The hash of a program: a build ID, the tag of a BPF program.
    BuildId,
    /// A word that configures an event, or the address of its breakpoint or probe.
    Config,
    /// A copy of memory.
    Memory,
    /// Registers.
    Registers,
    /// The raw data of a tracepoint or PMU.
    Raw,
    /// Code.
    Code,
    /// AUX data and the description of its hardware.
    Trace,
    /// Descriptions of BPF programs.
    Bpf,
    /// The text of a tracepoint's format.
    Format,
    /// Tables of the kernel with addresses or names of tasks.
    KernelTable,
    /// Padding, and the bytes after the NUL of a text, which may contain old data.
    Padding,
    /// Bytes of unknown meaning.
    Unknown,
}

impl Content {
    /// All kinds, in the order of their declaration.
    pub const ALL: [Content; 46] = [
        Content::Number,
        Content::Cpu,
        Content::Protection,
        Content::MapFlags,
        Content::BuildIdSize,
        Content::Fields,
        Content::Address,
        Content::Callchain,
        Content::MappingOffset,
        Content::PhysicalAddress,
        Content::Pid,
        Content::Time,
        Content::Ticks,
        Content::Clock,
        Content::Id,
        Content::StreamId,
        Content::Cookie,
        Content::CgroupId,
        Content::BpfId,
        Content::Comm,
        Content::Path,
        Content::CgroupPath,
        Content::Symbol,
        Content::EventName,
        Content::PmuName,
        Content::Host,
        Content::Argument,
        Content::Release,
        Content::Processor,
        Content::Topology,
        Content::Message,
        Content::FileId,
        Content::Namespace,
        Content::User,
        Content::BuildId,
        Content::Config,
        Content::Memory,
        Content::Registers,
        Content::Raw,
        Content::Code,
        Content::Trace,
        Content::Bpf,
        Content::Format,
        Content::KernelTable,
        Content::Padding,
        Content::Unknown,
    ];

    /// Returns whether `value`, a number of `size` bytes, can be of this kind. Recorders leave parts
    /// of pointers and old memory in fields that they do not set.
    #[inline]
    pub const fn permits(self, value: u64, size: usize) -> bool {
        /// The most CPUs that a kernel of any machine supports.
        const CPUS: u64 = 1 << 16;
        /// Read, write, execute.
        const PROT: u64 = 0b111;
        /// What the kernel and perf write: MAP_SHARED, MAP_PRIVATE, MAP_ANONYMOUS, MAP_DENYWRITE,
        /// MAP_EXECUTABLE, MAP_LOCKED and MAP_HUGETLB of all machines.
        const MAP: u64 = 0x1c_f9b3;
        /// SHA-1.
        const BUILD_ID: u64 = 20;
        match self {
            Content::Cpu => value < CPUS || value == all_ones(size),
            Content::Protection => value & !PROT == 0,
            Content::MapFlags => value & !MAP == 0,
            Content::BuildIdSize => value <= BUILD_ID,
            _ => true,
        }
    }

    /// Returns whether the content may be the one of all fields of a structure: nobody publishes
    /// it, so a new field of the structure is not published, either.
    pub(crate) const fn is_private(self) -> bool {
        matches!(
            self,
            Content::Trace | Content::Bpf | Content::Code | Content::Topology | Content::Clock
        )
    }
}

/// Returns the largest number of `size` bytes.
#[inline]
const fn all_ones(size: usize) -> u64 {
    match size {
        1 => u8::MAX as u64,
        2 => u16::MAX as u64,
        4 => u32::MAX as u64,
        _ => u64::MAX,
    }
}

impl Style {
    /// Returns the content of fields with this style, if the style implies it.
    pub const fn content(self) -> Option<Content> {
        Some(match self {
            Style::Plain | Style::Hex | Style::Optional | Style::Text => return None,
            Style::Callchain => Content::Callchain,
            Style::Time => Content::Time,
            Style::Id => Content::Id,
            Style::StreamId => Content::StreamId,
            Style::Pid => Content::Pid,
            Style::Cpu => Content::Cpu,
            Style::Address => Content::Address,
            Style::CgroupId => Content::CgroupId,
            Style::BpfId => Content::BpfId,
            Style::Pad => Content::Padding,
            Style::Opaque => Content::Unknown,
        })
    }
}

/// Receives the fields of a value in file order, and replaces them.
pub trait Rewriter {
    /// Starts a structure or list; its fields follow up to [`end`](Self::end). Elements of lists
    /// have an empty name.
    fn begin(&mut self, _name: &'static str) {}
    /// Ends the structure or list that was started last.
    fn end(&mut self) {}
    /// Returns the new value of a number of `size` bytes. It must fit into them.
    fn number(&mut self, name: &'static str, value: u64, size: usize, content: Content) -> u64;
    /// Returns the new text, of at most `most` bytes, or nothing to keep it. The text is the one
    /// before the first NUL.
    fn text(
        &mut self,
        name: &'static str,
        text: &[u8],
        most: usize,
        content: Content,
    ) -> Option<Vec<u8>>;
    /// Replaces bytes.
    fn bytes(&mut self, name: &'static str, bytes: &mut [u8], content: Content);
    /// Replaces a list of numbers of 8 bytes.
    fn words(&mut self, name: &'static str, words: &mut [u64], content: Content) {
        for word in words {
            *word = self.number(name, *word, size_of::<u64>(), content);
        }
    }
}

/// A value whose fields can be replaced.
pub trait Rewrite {
    /// Whether the type does not imply a content: its field must declare one.
    const NEEDS_CONTENT: bool;

    /// Passes this value to `rewriter`, under the name and with the content that its container
    /// gives it.
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter);
}

/// Passes the text at the start of `bytes`, and what follows its NUL, to `rewriter`. Pads a new
/// text to a multiple of `align` bytes.
pub(crate) fn rewrite_text(
    bytes: &mut Vec<u8>,
    align: usize,
    name: &'static str,
    content: Content,
    rewriter: &mut dyn Rewriter,
) {
    let text = crate::wire::until_nul(bytes);
    let end = text.len();
    match rewriter.text(name, text, usize::from(u16::MAX), content) {
        Some(new) => *bytes = crate::wire::Text::padded(&new, align).0,
        None => rewrite_padding(bytes, end, name, rewriter),
    }
}

/// Passes the text in `bytes`, a field of fixed size, and what follows its NUL, to `rewriter`.
pub(crate) fn rewrite_fixed_text(
    bytes: &mut [u8],
    name: &'static str,
    content: Content,
    rewriter: &mut dyn Rewriter,
) {
    let text = crate::wire::until_nul(bytes);
    let end = text.len();
    // The NUL.
    let most = bytes.len().saturating_sub(1);
    match rewriter.text(name, text, most, content) {
        Some(new) => {
            bytes.fill(0);
            for (to, from) in bytes.iter_mut().zip(new) {
                *to = from;
            }
        }
        None => rewrite_padding(bytes, end, name, rewriter),
    }
}

/// Passes the bytes from `end` on, after a text, to `rewriter`.
fn rewrite_padding(bytes: &mut [u8], end: usize, name: &'static str, rewriter: &mut dyn Rewriter) {
    let rest = bytes.get_mut(end..).unwrap_or_default();
    if rest.iter().any(|&byte| byte != 0) {
        rewriter.bytes(name, rest, Content::Padding);
    }
}

macro_rules! rewrite_numbers {
    ($($t:ty),*) => { $(
        impl Rewrite for $t {
            const NEEDS_CONTENT: bool = true;
            #[inline]
            fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
                // A rewriter returns numbers of the same size.
                *self = rewriter.number(name, u64::from(*self), size_of::<$t>(), content) as $t;
            }
        }
    )* };
}
rewrite_numbers!(u8, u16, u32, u64);

impl Rewrite for i32 {
    const NEEDS_CONTENT: bool = true;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        let mut bits = self.cast_unsigned();
        bits.rewrite(name, content, rewriter);
        *self = bits.cast_signed();
    }
}

impl Rewrite for f64 {
    const NEEDS_CONTENT: bool = true;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        let mut bits = self.to_bits();
        bits.rewrite(name, content, rewriter);
        *self = f64::from_bits(bits);
    }
}

impl<const N: usize> Rewrite for [u8; N] {
    const NEEDS_CONTENT: bool = true;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        rewriter.bytes(name, self, content);
    }
}

impl<T: Rewrite> Rewrite for Option<T> {
    const NEEDS_CONTENT: bool = T::NEEDS_CONTENT;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        if let Some(value) = self {
            value.rewrite(name, content, rewriter);
        }
    }
}

impl<T: Rewrite> Rewrite for [T] {
    const NEEDS_CONTENT: bool = T::NEEDS_CONTENT;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        rewriter.begin(name);
        for item in self {
            item.rewrite("", content, rewriter);
        }
        rewriter.end();
    }
}

impl<T: Rewrite> Rewrite for Vec<T> {
    const NEEDS_CONTENT: bool = T::NEEDS_CONTENT;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        self.as_mut_slice().rewrite(name, content, rewriter);
    }
}

impl<T: Rewrite + ?Sized> Rewrite for Box<T> {
    const NEEDS_CONTENT: bool = T::NEEDS_CONTENT;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        (**self).rewrite(name, content, rewriter);
    }
}

/// Implements [`Rewrite`] for words of which unknown bits are the only content.
macro_rules! rewrite_known_bits {
    ($name:ident: $word:ty) => {
        impl $crate::content::Rewrite for $name {
            const NEEDS_CONTENT: bool = false;
            fn rewrite(
                &mut self,
                name: &'static str,
                _: $crate::content::Content,
                rewriter: &mut dyn $crate::content::Rewriter,
            ) {
                let unknown = self.unknown();
                if unknown != 0 {
                    let content = $crate::content::Content::Unknown;
                    let size = size_of::<$word>();
                    let new = rewriter.number(name, u64::from(unknown), size, content);
                    // A rewriter returns numbers of the same size.
                    self.0 = self.0 & !unknown | new as $word;
                }
            }
        }
    };
}
pub(crate) use rewrite_known_bits;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_contents_are_listed_in_order() {
        assert!(Content::ALL.is_sorted_by(|a, b| a < b));
        assert_eq!(Content::ALL.last(), Some(&Content::Unknown));
        assert_eq!(Content::ALL.len(), Content::Unknown as usize + 1);
    }
}
