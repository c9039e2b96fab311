//! Rust closures as functions of the guest.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use pydeno_wire::message::HostError;
use pydeno_wire::{Text, Value};

use crate::conversion_error::ConversionError;
use crate::ffi::{Context, EngineString, Local, NativeFunction, Thrown};
use crate::isolate::Shared;
use crate::prelude::Prelude;
use crate::{export, import};

/// What the host does when the guest calls: arguments to a value, or to the error that the guest sees thrown.
pub type HostFunction = Box<dyn FnMut(Vec<Value>) -> Result<Value, HostError>>;

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
    let function = RefCell::new(function);
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

fn call<'c>(
    context: &'c Context,
    shared: &Shared,
    function: &RefCell<HostFunction>,
    arguments: &[Local<'c>],
) -> Result<Local<'c>, Thrown<'c>> {
    let prelude = &shared.prelude;
    let mut budget = shared.budget.get();
    let mut values = Vec::with_capacity(arguments.len());
    for (index, &argument) in arguments.iter().enumerate() {
        match export::value(context, prelude, argument, &mut budget) {
            Ok(value) => values.push(value),
            Err(ConversionError::Refused(refused)) => {
                let message = refused.message(&format!("argument {}", index + 1));
                return Err(throw(context, prelude, "TypeError", &message));
            }
            // Its stack tells of the prelude; the guest gets one that does not.
            Err(ConversionError::Engine(_)) => {
                let message = Text::from("Maximum call stack size exceeded or out of memory.");
                return Err(throw(context, prelude, "RangeError", &message));
            }
        }
    }
    // Guest code does not run while a host function does, unless that function evaluates: then it may come back here.
    let Ok(mut function) = function.try_borrow_mut() else {
        return Err(throw(context, prelude, "Error", &Text::from("The host function is running already.")));
    };
    let outcome = shared.deadline.paused(|| function(values));
    drop(function);
    match outcome {
        Ok(value) => import::value(context, prelude, &value),
        Err(error) => Err(throw_named(context, prelude, &error.name, &error.message)),
    }
}

fn throw<'c>(context: &'c Context, prelude: &Prelude, name: &str, message: &Text) -> Thrown<'c> {
    throw_named(context, prelude, &Text::from(name), message)
}

fn throw_named<'c>(context: &'c Context, prelude: &Prelude, name: &Text, message: &Text) -> Thrown<'c> {
    let message = EngineString::new(context.table(), message);
    let engine_name = EngineString::new(context.table(), name);
    prelude.error(context, &engine_name, name.as_str(), &message).map_or_else(|thrown| thrown, Thrown)
}
