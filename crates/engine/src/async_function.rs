//! Rust closures as functions of the guest that give it a promise.

use std::rc::Rc;

use pydeno_wire::message::HostError;
use pydeno_wire::{Text, Value};

use crate::ffi::{Context, Deferred, EngineString, Kept, Local, NativeFunction, Thrown};
use crate::host_function::{self, caller, export_arguments};
use crate::isolate::Shared;
use crate::requests::{Call, CallId, RequestId, Running};

/// Starts a call that the guest makes, on behalf of which request and with which arguments, and tells the number that
/// [`Isolate::settle`](crate::Isolate::settle) will know it by: one that is not in flight in this isolate. The error is
/// what the promise is rejected with at once.
pub type AsyncHostFunction = Box<dyn Fn(RequestId, Vec<Value>) -> Result<CallId, HostError>>;

/// The function object for an asynchronous host function.
pub(crate) fn make(
    context: &Context,
    shared: &Rc<Shared>,
    name: &Text,
    start: AsyncHostFunction,
) -> NativeFunction {
    let shared = Rc::clone(shared);
    NativeFunction::new(
        context,
        &EngineString::new(context.table(), name),
        Box::new(move |context, arguments| call(context, &shared, &start, arguments)),
    )
}

fn call<'c>(
    context: &'c Context,
    shared: &Shared,
    start: &AsyncHostFunction,
    arguments: &[Local<'c>],
) -> Result<Local<'c>, Thrown<'c>> {
    let running = caller(context, shared)?;
    let Deferred { promise, resolve, reject } = context.deferred_promise()?;
    match begin(context, shared, running, start, arguments, [resolve, reject]) {
        Ok(()) => {}
        Err(Thrown(reason)) => drop(context.call(reject, &[reason])?),
    }
    Ok(promise)
}

/// Starts a call whose outcome one of two functions of the prelude will be called with.
pub(crate) fn start<'c>(
    context: &'c Context,
    shared: &Shared,
    start: &AsyncHostFunction,
    arguments: &[Local<'c>],
    settle: [Local<'c>; 2],
) -> Result<(), Thrown<'c>> {
    let running = caller(context, shared)?;
    begin(context, shared, running, start, arguments, settle)
}

fn begin<'c>(
    context: &'c Context,
    shared: &Shared,
    running: Running,
    start: &AsyncHostFunction,
    arguments: &[Local<'c>],
    settle: [Local<'c>; 2],
) -> Result<(), Thrown<'c>> {
    let request = shared.requests.outermost().unwrap_or(running.request);
    let values = export_arguments(context, shared, running, arguments)?;
    let call = shared
        .deadline
        .paused(|| start(request, values))
        .map_err(|told| host_function::error(context, &shared.prelude, &told))?;
    let [resolve, reject] = settle.map(|function| Kept::new(context, function));
    shared.requests.add_call(call, Call { request, resolve, reject });
    Ok(())
}
