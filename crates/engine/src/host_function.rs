//! Rust closures as functions of the guest.

use std::fmt;
use std::rc::Rc;

use pydeno_wire::message::HostError;
use pydeno_wire::{Text, Value};

use crate::conversion_error::ConversionError;
use crate::ffi::{Context, EngineString, Local, NativeFunction, Thrown};
use crate::isolate::Shared;
use crate::prelude::Prelude;
use crate::requests::{RequestId, Running};
use crate::{export, import};

/// What the host does when the guest calls, on behalf of which request: arguments to a value, or to the error that the
/// guest sees thrown. It may be called again before it returns, by a request that it begins.
pub type HostFunction = Box<dyn Fn(RequestId, Vec<Value>) -> Result<Value, HostError>>;

/// The guest has taken the name of a host function and forbids another value, with a frozen object or a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindError {
    /// The global object that was to hold the function.
    pub object: Option<Text>,
    /// The function's name.
    pub name: Text,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.display_safe();
        match &self.object {
            Some(object) => write!(f, "{}.{name} cannot be bound", object.display_safe())?,
            None => write!(f, "{name} cannot be bound")?,
        }
        f.write_str(": guest code has taken the name and made it read-only; bind before evaluating")
    }
}

impl std::error::Error for BindError {}

/// The function object for a host function.
pub(crate) fn make(
    context: &Context,
    shared: &Rc<Shared>,
    name: &Text,
    function: HostFunction,
) -> NativeFunction {
    let shared = Rc::clone(shared);
    NativeFunction::new(
        context,
        &EngineString::new(context.table(), name),
        Box::new(move |context, arguments| call(context, &shared, &function, arguments)),
    )
}

/// Makes a function visible to the guest.
pub(crate) fn define(
    context: &Context,
    prelude: &Prelude,
    object: Option<&Text>,
    name: &Text,
    function: &NativeFunction,
) -> Result<(), BindError> {
    let holder = object.map(|object| EngineString::new(context.table(), object));
    let bound = prelude.bind(context, holder.as_ref(), &EngineString::new(context.table(), name), function);
    if bound { Ok(()) } else { Err(BindError { object: object.cloned(), name: name.clone() }) }
}

/// Calls a host function on behalf of the guest.
pub(crate) fn call<'c>(
    context: &'c Context,
    shared: &Shared,
    function: &HostFunction,
    arguments: &[Local<'c>],
) -> Result<Local<'c>, Thrown<'c>> {
    let running = caller(context, shared)?;
    let values = export_arguments(context, shared, running, arguments)?;
    match shared.deadline.paused(|| function(running.request, values)) {
        Ok(value) => import::value(context, shared, &value),
        Err(told) => Err(error(context, &shared.prelude, &told)),
    }
}

/// The request that calls, if it can.
pub(crate) fn caller<'c>(context: &'c Context, shared: &Shared) -> Result<Running, Thrown<'c>> {
    let refuse = |why: &str| {
        // What calls goes on as it likes until the engine stops it, too. Not an error object: where the engine makes one it asks
        // whether to stop, and what ends a guest is to a host that calls the engine an exception as any other, which the guest
        // would then catch.
        shared.deadline.hurry();
        Err(Thrown(context.string(&EngineString::from_str(context.table(), why))))
    };
    let Some(running) = shared.requests.running() else {
        // A reaction that is left over from a request that was stopped.
        return refuse("The evaluation has ended.");
    };
    if shared.deadline.is_over() {
        return refuse("The evaluation is being stopped.");
    }
    if shared.stack.is_enough_for_a_call() { Ok(running) } else { Err(exhausted(context, &shared.prelude)) }
}

/// The arguments of a call; functions among them are held, or none is where one of the arguments does not cross.
pub(crate) fn export_arguments<'c>(
    context: &'c Context,
    shared: &Shared,
    running: Running,
    arguments: &[Local<'c>],
) -> Result<Vec<Value>, Thrown<'c>> {
    let before = shared.held.mark();
    let mut budget = running.budget;
    let mut values = Vec::with_capacity(arguments.len());
    for (index, &argument) in arguments.iter().enumerate() {
        let refused = match export::value(context, shared, argument, &mut budget) {
            Ok(value) => {
                values.push(value);
                continue;
            }
            Err(refused) => refused,
        };
        shared.held.release_since(before);
        return Err(match refused {
            ConversionError::Refused(refused) => {
                let message = refused.message(&format!("argument {}", index + 1));
                throw(context, &shared.prelude, "TypeError", &message)
            }
            // Its stack tells of the prelude; the guest gets one that does not.
            ConversionError::Engine(_) | ConversionError::NoStack => exhausted(context, &shared.prelude),
        });
    }
    Ok(values)
}

/// The error that the guest sees for one of the host's.
pub(crate) fn error<'c>(context: &'c Context, prelude: &Prelude, told: &HostError) -> Thrown<'c> {
    throw_named(context, prelude, &told.name, &told.message)
}

fn exhausted<'c>(context: &'c Context, prelude: &Prelude) -> Thrown<'c> {
    let message = Text::from("Maximum call stack size exceeded or out of memory.");
    throw(context, prelude, "RangeError", &message)
}

fn throw<'c>(context: &'c Context, prelude: &Prelude, name: &str, message: &Text) -> Thrown<'c> {
    throw_named(context, prelude, &Text::from(name), message)
}

fn throw_named<'c>(context: &'c Context, prelude: &Prelude, name: &Text, message: &Text) -> Thrown<'c> {
    let message = EngineString::new(context.table(), message);
    let engine_name = EngineString::new(context.table(), name);
    prelude.error(context, &engine_name, name.as_str(), &message).map_or_else(|thrown| thrown, Thrown)
}
