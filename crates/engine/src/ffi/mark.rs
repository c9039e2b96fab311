//! What the engine's objects have in memory.

use std::sync::atomic::{AtomicU64, Ordering};

use super::local::Local;

/// What the engine keeps in the first eight bytes of every object, the last two left out. What they mean is for
/// `shape.rs` to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The properties' names, their order and attributes.
    pub(crate) shape: u32,
    /// How elements, the properties whose names are indices, are stored.
    pub(crate) elements: u8,
    /// The class of the engine's own source.
    pub(crate) class: u8,
}

impl Local<'_> {
    /// An object's mark; that of a value outside the engine's heap is all zeros.
    pub(crate) fn mark(self) -> Mark {
        if !self.is_cell() {
            return Mark { shape: 0, elements: 0, class: 0 };
        }
        let first = self.raw().cast::<u64>().cast_mut();
        // SAFETY: a reference to an object is the address of its cell in the engine's heap, aligned for and at least
        // sixteen bytes; the object is on this thread's stack and therefore alive.
        let first = unsafe { AtomicU64::from_ptr(first) };
        // Threads of the engine's own may set bits of the last two bytes; hence atomic, in any order.
        let [a, b, c, d, elements, class, _, _] = first.load(Ordering::Relaxed).to_le_bytes();
        Mark { shape: u32::from_le_bytes([a, b, c, d]), elements, class }
    }

    /// What an object that the engine's interface has made keeps after its first sixteen bytes: its first properties.
    pub(crate) fn first_slots(self) -> Option<[u64; 4]> {
        if !self.is_cell() {
            return None;
        }
        let slots = self.raw().cast::<u64>().wrapping_add(2).cast::<[u64; 4]>();
        // SAFETY: a reference to an object is the address of its cell, aligned for this; the interface makes objects with room for
        // six properties after sixteen bytes; the object is on this thread's stack and therefore alive, and only this
        // thread writes properties.
        Some(unsafe { slots.read() })
    }
}
