//! Values of a context: on the stack and kept.

use std::marker::PhantomData;
use std::ptr::NonNull;

use super::context::Context;
use super::table::{ObjectRef, OpaqueValue, ValueRef};

/// A value of a context, for local variables and arguments only: the collector finds it on the stack.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Local<'c> {
    raw: NonNull<OpaqueValue>,
    context: PhantomData<&'c Context>,
}

impl<'c> Local<'c> {
    /// A value that the engine gave out for this context, or `None` for its NULL.
    pub(super) fn new(_: &'c Context, raw: ValueRef) -> Option<Self> {
        Some(Self { raw: NonNull::new(raw.cast_mut())?, context: PhantomData })
    }

    /// Whether both are the very same object.
    pub(crate) fn is(self, other: Self) -> bool {
        self.raw == other.raw
    }

    pub(super) fn raw(self) -> ValueRef {
        self.raw.as_ptr()
    }

    /// Where the object is, which no other has while it lives.
    pub(crate) fn address(self) -> usize {
        self.raw.addr().get()
    }

    /// Whether the reference is the address of something in the engine's heap: other values have bits set above or below
    /// what an address has, or are too small for one.
    pub(super) fn is_cell(self) -> bool {
        const NO_ADDRESS: u64 = 0xfffe_0000_0000_0007;
        size_of::<usize>() == 8 && self.address() as u64 & NO_ADDRESS == 0 && self.address() > 0xffff
    }

    pub(super) fn object(self) -> ObjectRef {
        self.raw.as_ptr()
    }
}

/// What a value is, told without running anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Undefined,
    Null,
    Boolean,
    Number,
    String,
    Object,
    Symbol,
    BigInt,
}

/// A value that is kept alive wherever it is stored.
pub(crate) struct Kept {
    context: Context,
    raw: NonNull<OpaqueValue>,
}

impl Kept {
    /// Keeps a value alive.
    pub(crate) fn new(context: &Context, value: Local<'_>) -> Self {
        context.protect(value);
        Self { context: context.clone(), raw: value.raw }
    }

    /// The value, for use with its own context.
    pub(crate) fn get<'c>(&self, context: &'c Context) -> Local<'c> {
        debug_assert!(self.context.is(context), "a value is used with the context that it belongs to");
        Local { raw: self.raw, context: PhantomData }
    }

    /// Whether this is the very same object.
    pub(crate) fn is(&self, object: Local<'_>) -> bool {
        self.raw == object.raw
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let value = self.get(&self.context);
        self.context.unprotect(value);
    }
}
