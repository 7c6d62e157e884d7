//! The end of a command that does not get the memory that it needs.
//!
//! The standard library aborts the process in this case. With [`Allocator`], it ends with a message
//! and status 2 like after any other error of the system, and temporary files are removed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{panic, thread};

use perfdata_convert::interrupt;

use super::{signals, system};

/// Number of blocks of each size in a reserve.
const BLOCKS: usize = 8;

/// Sizes of blocks in bytes. The C library keeps the small ones for the first thread. The large
/// ones return to the system, from which threads without a heap of their own take memory.
const SIZES: [usize; 2] = [1 << 16, 1 << 18];

/// Time until other threads have noticed that there is no memory.
const PAUSE: Duration = Duration::from_millis(100);

/// Memory that nobody uses.
type Reserve = Mutex<Vec<Vec<u8>>>;

/// Memory that is free after every failure of a library that does not use [`Allocator`], in bytes:
/// if there is less, the failure was due to the lack of memory.
const ENOUGH: usize = 8 << 20;

/// The message, without the means of [`Messages`](crate::messages::Messages), which need memory.
const MESSAGE: &[u8] = b"perfconv: error: not enough memory\n";

/// Memory for work that must be finished, such as the exchange of two files.
static FOR_WORK: Reserve = Mutex::new(Vec::new());

/// Memory for the end. Other threads still run at that time, and also take memory.
static FOR_END: Reserve = Mutex::new(Vec::new());

/// Whether a thread ends the process.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Whether the message was written.
static SAID: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this is that thread.
    static IS_ENDING: Cell<bool> = const { Cell::new(false) };
}

/// The allocator of the system, which ends the process if there is no memory.
pub struct Allocator;

// SAFETY: each function has the conditions and the result of the same function of the system's
// allocator. Only a null pointer is replaced, by the result of a second call.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller satisfies the conditions.
        or_end(|| unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller satisfies the conditions.
        or_end(|| unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller satisfies the conditions.
        unsafe { System.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller satisfies the conditions. After a failure, `memory` is as before.
        or_end(|| unsafe { System.realloc(memory, layout, size) })
    }
}

/// Keeps memory for the end. Panics of libraries due to a lack of memory become such an end, too.
pub fn prepare() {
    for reserve in [&FOR_WORK, &FOR_END] {
        let memory = (0..BLOCKS)
            .flat_map(|_| SIZES.map(Vec::with_capacity))
            .collect();
        *reserve.lock().unwrap_or_else(PoisonError::into_inner) = memory;
    }
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        require();
        usual(info);
    }));
}

/// Ends the process if there is little memory. Libraries that have their own allocator panic or
/// abort without it.
pub fn require() {
    drop(black_box(Vec::<u8>::with_capacity(ENOUGH)));
}

#[inline]
fn or_end(allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let memory = allocate();
    if memory.is_null() {
        return with_reserve(&allocate);
    }
    memory
}

/// Repeats a failed allocation for work that must be finished. Otherwise, ends the process.
#[cold]
#[inline(never)]
fn with_reserve(allocate: &dyn Fn() -> *mut u8) -> *mut u8 {
    if !interrupt::is_undisturbed() && !IS_ENDING.get() {
        end();
    }
    release(&FOR_WORK);
    let memory = allocate();
    if memory.is_null() {
        say();
        system::exit_now(2);
    }
    memory
}

/// Ends the process, without temporary files.
fn end() -> ! {
    if ENDS.swap(true, Ordering::Relaxed) {
        loop {
            thread::sleep(Duration::from_secs(1));
        }
    }
    IS_ENDING.set(true);
    interrupt::undisturbed(|| {
        if io::stderr().is_terminal() {
            signals::clear_terminal();
        }
        say();
        // Other threads that need memory wait from now on, and do not take that of the reserve.
        thread::sleep(PAUSE);
        release(&FOR_END);
        interrupt::end(|| system::exit_now(2));
        system::exit_now(2)
    })
}

fn release(reserve: &Reserve) {
    // Whoever holds the lock releases it, too.
    if let Ok(mut memory) = reserve.try_lock() {
        *memory = Vec::new();
    }
}

/// Writes the message, once. If that fails, there is no other way to report it.
fn say() {
    if SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    system::write_error(MESSAGE);
}
