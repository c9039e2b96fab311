//! Promises that the host settles, promises that nobody handles, and the switch for making code from text.

use std::ptr;

use super::context::{Context, Thrown};
use super::function::NativeFunction;
use super::local::Local;
use super::string::EngineString;
use super::table::{ObjectRef, ValueRef};

/// A promise of the engine's own kind, and the two functions that settle it.
pub(crate) struct Deferred<'c> {
    pub(crate) promise: Local<'c>,
    pub(crate) resolve: Local<'c>,
    pub(crate) reject: Local<'c>,
}

impl Context {
    /// A promise that is pending until one of its functions is called. Nothing of the guest's is asked.
    pub(crate) fn deferred_promise(&self) -> Result<Deferred<'_>, Thrown<'_>> {
        let mut resolve: ObjectRef = ptr::null_mut();
        let mut reject: ObjectRef = ptr::null_mut();
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; the context is alive; the three are variables of this frame, where the collector
        // also finds what is written to them.
        let promise = unsafe {
            (self.table().JSObjectMakeDeferredPromise)(
                self.raw(),
                &raw mut resolve,
                &raw mut reject,
                &raw mut exception,
            )
        };
        let promise = self.outcome(promise, exception)?;
        Ok(Deferred { promise, resolve: self.local(resolve), reject: self.local(reject) })
    }

    /// Has the engine call `function` with each promise that was rejected and that nothing handles once its reactions
    /// have run, and with the reason. Does nothing where the engine cannot be asked to.
    pub(crate) fn report_unhandled_rejections_to(&self, function: &NativeFunction) {
        let Some(set) = self.table().set_unhandled_rejection_callback else { return };
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; the function object is on the stack, and the engine keeps it alive from then on.
        unsafe { set(self.raw(), function.get(self).object(), &raw mut exception) };
    }

    /// Makes the guest throw `message` where it makes code from text; tells whether this engine can be told.
    pub(crate) fn forbid_eval(&self, message: &EngineString) -> bool {
        let Some(set) = self.table().set_eval_enabled else { return false };
        // SAFETY: the table, one thread; the context is alive; the string outlives the call, which copies it.
        unsafe { set(self.raw(), false, message.raw()) };
        true
    }
}
