//! Functions and streams of the guest that the host holds.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::ffi::{Context, Kept, Local};

/// The guest's functions and streams by the numbers that the host knows them by, kept alive until the host lets go of
/// them.
#[derive(Default)]
pub(crate) struct HeldFunctions {
    functions: RefCell<BTreeMap<u64, Held>>,
    last: Cell<u64>,
}

enum Held {
    Function(Kept),
    /// The record that flatten.js makes.
    Stream(Kept),
}

/// What was held before a conversion began, for one that fails.
#[derive(Clone, Copy)]
pub(crate) struct Mark(u64);

impl HeldFunctions {
    /// How many may be held at a time.
    const MOST: usize = 10_000;

    /// How many more may be held.
    pub(crate) fn room(&self) -> usize {
        Self::MOST.saturating_sub(self.functions.borrow().len())
    }

    /// Holds a function; the same one twice under two handles. A handle is never used again.
    pub(crate) fn hold(&self, context: &Context, function: Local<'_>) -> u64 {
        self.insert(Held::Function(Kept::new(context, function)))
    }

    /// As [`hold`](Self::hold), for the record of a stream.
    pub(crate) fn hold_stream(&self, context: &Context, record: Local<'_>) -> u64 {
        self.insert(Held::Stream(Kept::new(context, record)))
    }

    fn insert(&self, held: Held) -> u64 {
        let handle = self.last.get() + 1;
        self.last.set(handle);
        self.functions.borrow_mut().insert(handle, held);
        handle
    }

    /// The function with this handle, if it is held.
    pub(crate) fn get<'c>(&self, context: &'c Context, handle: u64) -> Option<Local<'c>> {
        match self.functions.borrow().get(&handle)? {
            Held::Function(function) => Some(function.get(context)),
            Held::Stream(_) => None,
        }
    }

    /// The record of the stream with this handle, if it is held.
    pub(crate) fn stream<'c>(&self, context: &'c Context, handle: u64) -> Option<Local<'c>> {
        match self.functions.borrow().get(&handle)? {
            Held::Stream(record) => Some(record.get(context)),
            Held::Function(_) => None,
        }
    }

    /// Lets go of a function or stream; of one that is not held, nothing.
    pub(crate) fn release(&self, handle: u64) {
        self.functions.borrow_mut().remove(&handle);
    }

    /// What is held now.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.last.get())
    }

    /// Lets go of everything that was held since.
    pub(crate) fn release_since(&self, mark: Mark) {
        if self.last.get() > mark.0 {
            self.functions.borrow_mut().split_off(&(mark.0 + 1));
        }
    }
}
