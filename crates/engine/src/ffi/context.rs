//! An engine of its own, and what can be done with its values.

use std::any::Any;
use std::cell::Cell;
use std::ffi::{c_int, c_uint};
use std::ptr::{self, NonNull};
use std::rc::Rc;

use super::local::Local;
use super::string::EngineString;
use super::table::{
    ContextRef, GroupRef, ObjectRef, OpaqueContext, OpaqueGroup, OpaqueScript, ScriptRef, StringRef, Table,
    ValueRef,
};

/// A context alone in its group: a heap, a global object, and one thread that may use them. Clones share it.
#[derive(Clone)]
pub(crate) struct Context(Rc<Owner>);

struct Owner {
    table: &'static Table,
    group: NonNull<OpaqueGroup>,
    global: NonNull<OpaqueContext>,
    panic: Cell<Option<Box<dyn Any + Send>>>,
}

/// A script as the engine has read it.
pub(crate) struct ParsedScript {
    context: Context,
    raw: NonNull<OpaqueScript>,
    evaluate: unsafe extern "C" fn(ContextRef, ScriptRef, ValueRef, *mut ValueRef) -> ValueRef,
    release: unsafe extern "C" fn(ScriptRef),
}

impl Drop for ParsedScript {
    fn drop(&mut self) {
        // SAFETY: the table, one thread; gives back the one reference that this owns, while its context is alive.
        unsafe { (self.release)(self.raw.as_ptr()) };
    }
}

/// What a call of the engine threw.
#[derive(Clone, Copy)]
pub(crate) struct Thrown<'c>(pub(crate) Local<'c>);

/// Why a script has no value.
pub(crate) enum ScriptError<'c> {
    /// The text is no script.
    Syntax {
        /// The engine's words.
        message: EngineString,
        /// Where, counted from 1.
        line: c_int,
    },
    /// It threw.
    Thrown(Thrown<'c>),
}

impl<'c> From<Thrown<'c>> for ScriptError<'c> {
    fn from(thrown: Thrown<'c>) -> Self {
        Self::Thrown(thrown)
    }
}

/// `kJSPropertyAttributeNone`: writable, enumerable, configurable.
const ORDINARY: c_uint = 0;

impl Context {
    /// A new group with one context, or `None` when the engine has no memory for them.
    pub(crate) fn new(table: &'static Table) -> Option<Self> {
        // SAFETY: the table; takes nothing. It initialises the engine when it is the process's first call.
        let group = NonNull::new(unsafe { (table.JSContextGroupCreate)() }.cast_mut())?;
        // SAFETY: the table; the group is alive, a NULL class is the default one.
        let global = unsafe { (table.JSGlobalContextCreateInGroup)(group.as_ptr(), ptr::null_mut()) };
        let Some(global) = NonNull::new(global) else {
            // SAFETY: the table; gives back the one reference, which nothing else holds.
            unsafe { (table.JSContextGroupRelease)(group.as_ptr()) };
            return None;
        };
        Some(Self(Rc::new(Owner { table, group, global, panic: Cell::new(None) })))
    }

    pub(crate) fn table(&self) -> &'static Table {
        self.0.table
    }

    pub(super) fn raw(&self) -> ContextRef {
        self.0.global.as_ptr()
    }

    pub(super) fn group(&self) -> GroupRef {
        self.0.group.as_ptr()
    }

    /// Whether both are the same context.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Keeps the first panic of a callback until the engine has returned.
    pub(super) fn store_panic(&self, payload: Box<dyn Any + Send>) {
        let first = self.0.panic.take().unwrap_or(payload);
        self.0.panic.set(Some(first));
    }

    /// Whether a callback has panicked since the last [`take_panic`](Self::take_panic).
    pub(crate) fn has_panicked(&self) -> bool {
        let payload = self.0.panic.take();
        let panicked = payload.is_some();
        self.0.panic.set(payload);
        panicked
    }

    /// The panic of a callback, to be resumed where no frame of the engine is left.
    pub(crate) fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        self.0.panic.take()
    }

    /// A value of the engine, `undefined` for its NULL.
    pub(super) fn local(&self, raw: ValueRef) -> Local<'_> {
        Local::new(self, raw).unwrap_or_else(|| self.undefined())
    }

    /// What a call gave back, or what it threw.
    pub(super) fn outcome(&self, raw: ValueRef, exception: ValueRef) -> Result<Local<'_>, Thrown<'_>> {
        if !exception.is_null() || raw.is_null() {
            return Err(Thrown(self.local(exception)));
        }
        Ok(self.local(raw))
    }

    /// The value of a script's last expression.
    ///
    /// What it throws is handed out untouched. The engine's public way to evaluate is the second choice, because it
    /// shows an exception to the engine's debugger first, and that asks the exception's own `toString` for its text.
    pub(crate) fn evaluate(
        &self,
        source: &EngineString,
        name: &EngineString,
    ) -> Result<Local<'_>, ScriptError<'_>> {
        let value = match self.parse(source, name)? {
            Some(script) => self.run(&script),
            None => self.evaluate_publicly(source, name),
        };
        value.map_err(ScriptError::Thrown)
    }

    /// As [`evaluate`](Self::evaluate), of a script that was parsed for this context.
    pub(crate) fn run(&self, script: &ParsedScript) -> Result<Local<'_>, Thrown<'_>> {
        debug_assert!(self.is(&script.context), "a script is run in the context that it was parsed for");
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; the script is alive, this borrows the owner of a reference, and of this group;
        // without a `this` it is the global object.
        let value =
            unsafe { (script.evaluate)(self.raw(), script.raw.as_ptr(), ptr::null(), &raw mut exception) };
        self.outcome(value, exception)
    }

    /// The value of a script of this crate, on the guest's behalf: where its time or its stack ends, so does this.
    pub(crate) fn evaluate_own(&self, script: &str) -> Result<Local<'_>, Thrown<'_>> {
        let source = EngineString::from_str(self.0.table, script);
        self.evaluate(&source, &EngineString::from_str(self.0.table, "")).map_err(|error| match error {
            ScriptError::Thrown(thrown) => thrown,
            // The text is a script; what it lacks is stack to be read.
            ScriptError::Syntax { .. } => Thrown(self.undefined()),
        })
    }

    /// A script to be [run](Self::run) any number of times; `None` where this engine does not make them.
    pub(crate) fn parse(
        &self,
        source: &EngineString,
        name: &EngineString,
    ) -> Result<Option<ParsedScript>, ScriptError<'_>> {
        let table = self.0.table;
        let (Some(create), Some(evaluate), Some(release)) =
            (table.script_create, table.script_evaluate, table.script_release)
        else {
            return Ok(None);
        };
        let mut message: StringRef = ptr::null_mut();
        let mut line = 0;
        // SAFETY: the table, one thread; both strings outlive the call; message and line are variables of this frame.
        let script =
            unsafe { create(self.group(), name.raw(), 1, source.raw(), &raw mut message, &raw mut line) };
        let message = NonNull::new(message).map(|message| EngineString::owning(table, message.as_ptr()));
        let Some(raw) = NonNull::new(script) else {
            let message = message.unwrap_or_else(|| EngineString::from_str(table, ""));
            return Err(ScriptError::Syntax { message, line });
        };
        Ok(Some(ParsedScript { context: self.clone(), raw, evaluate, release }))
    }

    /// What the engine says is wrong with a text as a script, and in which line. `None` for one that is a script, and
    /// where this engine cannot tell without running it.
    pub(crate) fn syntax_error(&self, source: &EngineString) -> Option<(EngineString, c_int)> {
        match self.parse(source, &EngineString::from_str(self.0.table, "")) {
            Err(ScriptError::Syntax { message, line }) => Some((message, line)),
            Ok(_) | Err(ScriptError::Thrown(_)) => None,
        }
    }

    /// As [`evaluate`](Self::evaluate), in the way of an engine that does not make scripts.
    pub(crate) fn evaluate_publicly(
        &self,
        source: &EngineString,
        name: &EngineString,
    ) -> Result<Local<'_>, Thrown<'_>> {
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; both strings outlive the call; without a `this` it is the global object.
        let value = unsafe {
            (self.0.table.JSEvaluateScript)(
                self.raw(),
                source.raw(),
                ptr::null_mut(),
                name.raw(),
                1,
                &raw mut exception,
            )
        };
        self.outcome(value, exception)
    }

    /// Calls a function with `this` the global object.
    pub(crate) fn call(&self, function: Local<'_>, arguments: &[Local<'_>]) -> Result<Local<'_>, Thrown<'_>> {
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; `Local` is transparent over a value reference, so the slice is an array of
        // them; function and arguments are on this stack or kept by the caller. The engine throws for what is not a
        // function.
        let value = unsafe {
            (self.0.table.JSObjectCallAsFunction)(
                self.raw(),
                function.object(),
                ptr::null_mut(),
                arguments.len(),
                arguments.as_ptr().cast::<ValueRef>(),
                &raw mut exception,
            )
        };
        self.outcome(value, exception)
    }

    /// What `new constructor(...arguments)` makes.
    pub(crate) fn construct(
        &self,
        constructor: Local<'_>,
        arguments: &[Local<'_>],
    ) -> Result<Local<'_>, Thrown<'_>> {
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; as in `call`.
        let object = unsafe {
            (self.0.table.JSObjectCallAsConstructor)(
                self.raw(),
                constructor.object(),
                arguments.len(),
                arguments.as_ptr().cast::<ValueRef>(),
                &raw mut exception,
            )
        };
        self.outcome(object, exception)
    }

    /// The global object.
    pub(crate) fn global(&self) -> Local<'_> {
        // SAFETY: the table, one thread; the context is alive.
        self.local(unsafe { (self.0.table.JSContextGetGlobalObject)(self.raw()) })
    }

    /// `object[name]`; runs a getter where there is one.
    pub(crate) fn get(&self, object: Local<'_>, name: &EngineString) -> Result<Local<'_>, Thrown<'_>> {
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; object and name outlive the call.
        let raw = unsafe {
            (self.0.table.JSObjectGetProperty)(self.raw(), object.object(), name.raw(), &raw mut exception)
        };
        self.outcome(raw, exception)
    }

    /// `object[name] = value`.
    pub(crate) fn set(
        &self,
        object: Local<'_>,
        name: &EngineString,
        value: Local<'_>,
    ) -> Result<(), Thrown<'_>> {
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; object, name and value outlive the call.
        unsafe {
            (self.0.table.JSObjectSetProperty)(
                self.raw(),
                object.object(),
                name.raw(),
                value.raw(),
                ORDINARY,
                &raw mut exception,
            );
        };
        if exception.is_null() { Ok(()) } else { Err(Thrown(self.local(exception))) }
    }

    /// `object[index]`; runs a getter where there is one.
    pub(crate) fn get_index(&self, object: Local<'_>, index: u32) -> Result<Local<'_>, Thrown<'_>> {
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; the object is on the stack.
        let raw = unsafe {
            (self.0.table.JSObjectGetPropertyAtIndex)(self.raw(), object.object(), index, &raw mut exception)
        };
        self.outcome(raw, exception)
    }

    /// `object[index] = value`.
    pub(crate) fn set_index(
        &self,
        object: Local<'_>,
        index: u32,
        value: Local<'_>,
    ) -> Result<(), Thrown<'_>> {
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; object and value are on the stack.
        unsafe {
            (self.0.table.JSObjectSetPropertyAtIndex)(
                self.raw(),
                object.object(),
                index,
                value.raw(),
                &raw mut exception,
            );
        };
        if exception.is_null() { Ok(()) } else { Err(Thrown(self.local(exception))) }
    }

    /// An object that describes the heap, where this engine has it.
    pub(crate) fn memory_statistics(&self) -> Option<Local<'_>> {
        let statistics = self.0.table.memory_usage_statistics?;
        // SAFETY: the table, one thread; the context is alive.
        Local::new(self, unsafe { statistics(self.raw()) })
    }

    /// Collects everything that nothing refers to, where this engine can be asked to.
    pub(crate) fn collect_garbage(&self) {
        if let Some(collect) = self.0.table.collect_garbage_now {
            // SAFETY: the table, one thread; the context is alive. What the guest still uses is on the scanned
            // stack or reachable from a root.
            unsafe { collect(self.raw()) };
        }
    }

    pub(super) fn protect(&self, value: Local<'_>) {
        // SAFETY: the table, one thread; the value is on the stack. Each is undone by one `unprotect`.
        unsafe { (self.0.table.JSValueProtect)(self.raw(), value.raw()) };
    }

    pub(super) fn unprotect(&self, value: Local<'_>) {
        // SAFETY: the table, one thread; undoes one `protect` of the same value.
        unsafe { (self.0.table.JSValueUnprotect)(self.raw(), value.raw()) };
    }

    /// A function object that calls back.
    pub(super) fn function_object(
        &self,
        name: &EngineString,
        callback: super::table::FunctionCallback,
    ) -> ObjectRef {
        // SAFETY: the table, one thread; the name outlives the call; the callback is a function of this program.
        unsafe { (self.0.table.JSObjectMakeFunctionWithCallback)(self.raw(), name.raw(), callback) }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: the table, one thread; gives back the one reference to the context; values of it are borrowed
        // from, or share, this owner and are gone.
        unsafe { (self.table.JSGlobalContextRelease)(self.global.as_ptr()) };
        // SAFETY: the table, one thread; gives back the one reference to the group.
        unsafe { (self.table.JSContextGroupRelease)(self.group.as_ptr()) };
    }
}
