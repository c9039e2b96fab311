//! Rust closures that the guest can call.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use super::context::{Context, Thrown};
use super::local::{Kept, Local};
use super::string::EngineString;
use super::table::{ContextRef, ObjectRef, ValueRef};

/// What a native function does: its arguments to its value, or to what it throws.
type Body = dyn for<'c> Fn(&'c Context, &[Local<'c>]) -> Result<Local<'c>, Thrown<'c>>;

struct Native {
    context: Context,
    body: Box<Body>,
}

thread_local! {
    /// The native functions of this thread's contexts by the address of their function object, which is all that the
    /// engine hands back. The entry's [`NativeFunction`] keeps the object alive, so no address is used twice.
    static NATIVES: RefCell<HashMap<usize, Rc<Native>>> = RefCell::new(HashMap::new());
}

/// A function object of a context, and the closure behind it.
pub(crate) struct NativeFunction {
    object: Kept,
    address: usize,
}

impl NativeFunction {
    /// A function with this name. Guests see a native function that is no constructor.
    pub(crate) fn new(context: &Context, name: &EngineString, body: Box<Body>) -> Self {
        let object = context.function_object(name, trampoline);
        let address = object as usize;
        let object = Kept::new(context, context.local(object));
        let native = Rc::new(Native { context: context.clone(), body });
        NATIVES.with_borrow_mut(|natives| natives.insert(address, native));
        Self { object, address }
    }

    /// The function object.
    pub(crate) fn get<'c>(&self, context: &'c Context) -> Local<'c> {
        self.object.get(context)
    }
}

impl Drop for NativeFunction {
    fn drop(&mut self) {
        // A thread that is ending may have dropped the map already, and every closure with it.
        let _ = NATIVES.try_with(|natives| natives.borrow_mut().remove(&self.address));
    }
}

unsafe extern "C" fn trampoline(
    _: ContextRef,
    function: ObjectRef,
    _this: ObjectRef,
    count: usize,
    arguments: *const ValueRef,
    exception: *mut ValueRef,
) -> ValueRef {
    let Some(native) = NATIVES.with_borrow(|natives| natives.get(&(function as usize)).cloned()) else {
        return std::ptr::null();
    };
    let context = &native.context;
    let called = if context.has_panicked() {
        Ok(Err(Thrown(context.undefined())))
    } else {
        let arguments: &[Local<'_>] = if count == 0 {
            &[]
        } else {
            // SAFETY: the engine passes `count` references that live until the callback returns, none of them NULL,
            // and `Local` is transparent over such a reference.
            unsafe { std::slice::from_raw_parts(arguments.cast::<Local<'_>>(), count) }
        };
        catch_unwind(AssertUnwindSafe(|| (native.body)(context, arguments)))
    };
    let thrown = match called {
        Ok(Ok(value)) => return value.raw(),
        Ok(Err(Thrown(thrown))) => thrown,
        Err(payload) => {
            context.store_panic(payload);
            context.undefined()
        }
    };
    // SAFETY: the engine passes the address of a variable of its own frame.
    unsafe { *exception = thrown.raw() };
    context.undefined().raw()
}
