//! Small numbers that stand for what the tables of a session hold.

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);

        impl $name {
            /// Its number: those of a table count from 0 without gaps.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The ID of entry `index`.
            pub(crate) fn of(index: usize) -> Self {
                // Tables end long before: each entry takes memory, which the limits bound.
                $name(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    )* };
}

ids! {
    /// A thread of a session. A thread ID that the kernel gives to another thread later stands for another one here.
    ThreadId,
    /// A name of threads.
    CommId,
    /// A mapping of a part of a DSO to some addresses.
    MappingId,
    /// A DSO: a file, a kernel, a module, or memory that code runs from.
    DsoId,
    /// A callchain in a table of [`Stacks`](crate::Stacks).
    StackId,
}
