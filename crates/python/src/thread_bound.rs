//! Something that only the thread that made it may touch.

#![allow(
    unsafe_code,
    reason = "lets a value that is not Send sit in a Python object, behind a check of the thread"
)]

use std::mem::ManuallyDrop;
use std::thread::{self, ThreadId};

use pyo3::Python;

/// A value that stays with its thread. On another thread it cannot be reached, and dropping it there leaks it.
pub(crate) struct ThreadBound<T> {
    owner: ThreadId,
    value: ManuallyDrop<T>,
}

// SAFETY: `value` is reached only through `get` and `drop`, which both compare the calling thread with the one that
// made it; moving the wrapper's bytes to another thread touches nothing of `T`.
unsafe impl<T> Send for ThreadBound<T> {}
// SAFETY: as above: a shared reference on another thread gives access to `owner` alone.
unsafe impl<T> Sync for ThreadBound<T> {}

impl<T> ThreadBound<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { owner: thread::current().id(), value: ManuallyDrop::new(value) }
    }

    /// The value, on the thread that it belongs to.
    pub(crate) fn get(&self) -> Option<&T> {
        (thread::current().id() == self.owner).then_some(&*self.value)
    }
}

impl<T> Drop for ThreadBound<T> {
    fn drop(&mut self) {
        if thread::current().id() == self.owner {
            // SAFETY: this is the value's own thread, and `self` is being dropped, so that nothing reaches it again.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

/// Runs `action` on this thread with the Python interpreter released, so that other threads can use it.
pub(crate) fn detach_here<T>(py: Python<'_>, action: impl FnOnce() -> T) -> T {
    struct StaysHere<T>(T);
    // SAFETY: `Python::detach` asks for `Send` as a stand-in for "uses no Python object"; it calls the closure on the
    // calling thread, so nothing in here moves to another one.
    unsafe impl<T> Send for StaysHere<T> {}
    impl<T, F: FnOnce() -> T> StaysHere<F> {
        fn call(self) -> StaysHere<T> {
            StaysHere((self.0)())
        }
    }
    let action = StaysHere(action);
    py.detach(move || action.call()).0
}
