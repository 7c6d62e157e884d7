//! IDs: small numbers that identify entries in the tables of a session.

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);

        impl $name {
            /// Returns the ID as an index. The IDs of a table count from 0 without gaps.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// Returns the ID of entry `index`.
            pub(crate) fn of(index: usize) -> Self {
                // No table reaches 2^32 entries: each entry takes memory, which the limits bound.
                $name(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    )* };
}

ids! {
    /// A thread of a session. If the kernel reuses a thread ID (TID), the new thread has another
    /// `ThreadId`.
    ThreadId,
    /// A name of threads.
    CommId,
    /// A mapping of a part of a DSO to a range of addresses.
    MappingId,
    /// A DSO: a file, a kernel, a module, or memory that contains code.
    DsoId,
    /// A callchain in a table of [`Stacks`](crate::Stacks).
    StackId,
}
