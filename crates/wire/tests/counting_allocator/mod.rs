//! The system's allocator, which notes the most memory that a thread has held since it asked.

#![allow(unsafe_code, reason = "an allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

pub(crate) struct CountingAllocator;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The most memory that `work` held at once beyond what was held before, on this thread.
pub(crate) fn peak_of<T>(work: impl FnOnce() -> T) -> usize {
    let before = HELD.get();
    PEAK.set(before);
    drop(work());
    usize::try_from(PEAK.get() - before).unwrap()
}

fn note(change: isize) {
    HELD.set(HELD.get() + change);
    PEAK.set(PEAK.get().max(HELD.get()));
}

// SAFETY: every call is passed on to `System` unchanged, which keeps the contract; the counters allocate nothing,
// being thread-locals that need neither initialisation nor a destructor.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size().cast_signed());
        // SAFETY: the caller keeps `alloc`'s contract, which is `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(-layout.size().cast_signed());
        // SAFETY: the pointer came from `System` with this layout, since all of ours do.
        unsafe { System.dealloc(pointer, layout) }
    }
}
