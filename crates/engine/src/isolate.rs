//! An engine of its own for one guest.

use std::cell::Cell;
use std::fmt;
use std::panic::resume_unwind;
use std::rc::Rc;

use pydeno_wire::message::{Failure, JsError};
use pydeno_wire::{Budget, Text, Value};

use crate::console::{self, ConsoleHook};
use crate::conversion_error::ConversionError;
use crate::deadline::{Deadline, EvalLimits};
use crate::engine::Engine;
use crate::ffi::{Context, EngineString, Local, NativeFunction, ScriptError, Thrown, retire_alternate_stack};
use crate::host_function::{self, BindError, HostFunction};
use crate::prelude::{Prelude, Settled};
use crate::random::{self, RandomSource};
use crate::{exception, export};

/// Which of the engine's globals a guest finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Surface {
    /// The language without `SharedArrayBuffer`, `Atomics` and `WebAssembly`.
    #[default]
    Guest,
    /// Everything that the engine has.
    Full,
}

/// How an isolate is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct IsolateOptions {
    /// Which globals there are.
    pub surface: Surface,
    /// What `Math.random` draws from.
    pub random: RandomSource,
}

/// Why an isolate could not be made. The engine is as usable as before.
#[derive(Debug)]
pub enum IsolateError {
    /// This process is a fork of one that has made isolates, and the engine does not survive that.
    Forked,
    /// The engine has no memory for another heap.
    NoContext,
    /// The operating system gave no seed for `Math.random`.
    Random(std::io::Error),
    /// The prelude failed on this engine; the text is the engine's. Another version of it is needed.
    Prelude(String),
}

impl fmt::Display for IsolateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forked => f.write_str(
                "this process is a fork of one that has used JavaScriptCore; start it by executing a program instead, \
                 or fork before the first use",
            ),
            Self::NoContext => f.write_str("JavaScriptCore could not make a context; free some memory"),
            Self::Random(error) => write!(f, "the system gave no random seed: {error}"),
            Self::Prelude(reason) => write!(
                f,
                "this JavaScriptCore does not run the prelude ({reason}); update it, or name another with PYDENO_JSC"
            ),
        }
    }
}

impl std::error::Error for IsolateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Random(error) => Some(error),
            Self::Forked | Self::NoContext | Self::Prelude(_) => None,
        }
    }
}

/// A heap with one global object, for one guest. It belongs to the thread that made it.
///
/// What the guest declared stays for the next evaluation. After every [`Failure`] the isolate is usable again. In a fork
/// of its process it must be left alone, also by its destructor: the engine's thread that watches the deadline is not
/// there.
pub struct Isolate {
    // Fields are dropped in this order: functions and watchdog before the context they belong to.
    functions: Vec<NativeFunction>,
    shared: Rc<Shared>,
    context: Context,
}

/// What evaluations and the callbacks of host functions share.
pub(crate) struct Shared {
    pub(crate) prelude: Prelude,
    pub(crate) deadline: Deadline,
    /// Bounds the values of the evaluation that is running.
    pub(crate) budget: Cell<Budget>,
}

impl Isolate {
    /// A new isolate on this thread.
    ///
    /// The thread loses its alternate signal stack, on which the engine's collector could wait for it for ever.
    ///
    /// # Errors
    ///
    /// [`IsolateError`], a variant a step.
    pub fn new(engine: &'static Engine, options: &IsolateOptions) -> Result<Self, IsolateError> {
        if !engine.is_this_process() {
            return Err(IsolateError::Forked);
        }
        engine.ensure_started();
        retire_alternate_stack();
        let context = Context::new(engine.table()).ok_or(IsolateError::NoContext)?;
        let mut functions = Vec::new();
        let prelude = Prelude::install(&context, options.surface, &mut functions)
            .map_err(|error| IsolateError::Prelude(error.to_string()))?;
        let shared = Rc::new(Shared { prelude, deadline: Deadline::new(&context), budget: Cell::default() });
        functions
            .push(random::install(&context, &shared.prelude, options.random).map_err(IsolateError::Random)?);
        Ok(Self { functions, shared, context })
    }

    /// Gives the guest a `console` with `debug`, `log`, `info`, `warn` and `error`, whose lines the hook receives. There
    /// is none before.
    pub fn set_console(&mut self, hook: ConsoleHook) {
        self.functions.extend(console::install(&self.context, &self.shared, hook));
    }

    /// Makes a host function visible as a global, or as a property of a global object that is made where it is
    /// missing. It replaces one of the same name; like the language's own functions it is writable, configurable and
    /// not enumerable.
    ///
    /// # Errors
    ///
    /// [`BindError`] where the guest has taken the name and forbids another value.
    pub fn bind(
        &mut self,
        object: Option<&Text>,
        name: &Text,
        function: HostFunction,
    ) -> Result<(), BindError> {
        let native = host_function::make(&self.context, &self.shared, name, function);
        host_function::define(&self.context, &self.shared.prelude, object, name, &native)?;
        self.functions.push(native);
        Ok(())
    }

    /// Evaluates a script and gives back the value of its last expression; that of a promise once it is fulfilled.
    ///
    /// Promise reactions run before this returns, whether or not the value depends on them.
    ///
    /// # Errors
    ///
    /// [`Failure`]; the isolate is usable again after each.
    ///
    /// # Panics
    ///
    /// With the panic of a host function, of the console hook or of the cancel question, once the engine has returned.
    pub fn eval(&mut self, source: &Text, name: &str, limits: &EvalLimits<'_>) -> Result<Value, Failure> {
        let table = self.context.table();
        let source = EngineString::new(table, source);
        let name = EngineString::from_str(table, name);
        self.shared.budget.set(limits.budget);
        let (outcome, stop) = self.shared.deadline.during(limits, || self.run(&source, &name));
        if let Some(payload) = self.context.take_panic() {
            resume_unwind(payload);
        }
        // Why the guest was stopped is known here; what the engine threw for it is the guest's to see, not ours.
        match stop {
            Some(stop) => {
                self.leave_stopped_state();
                Err(stop.into())
            }
            None => outcome,
        }
    }

    fn run(&self, source: &EngineString, name: &EngineString) -> Result<Value, Failure> {
        let context = &self.context;
        let value = context.evaluate(source, name).map_err(|error| match error {
            ScriptError::Syntax { message, line } => exception::syntax_error(&message, name, line),
            ScriptError::Thrown(thrown) => self.describe(thrown),
        })?;
        self.go_on_unless_stopped()?;
        let mut budget = self.shared.budget.get();
        if let Some(value) = export::primitive(context, value, &mut budget)? {
            return Ok(value);
        }
        let settled = self.settle(value)?;
        self.go_on_unless_stopped()?;
        let value = match settled {
            Settled::Itself => value,
            Settled::Fulfilled(value) => value,
            Settled::Rejected(reason) => return Err(self.describe(Thrown(reason))),
            Settled::Pending => return Err(Failure::NeverSettles),
        };
        export::value(context, &self.shared.prelude, value, &mut budget).map_err(|error| match error {
            ConversionError::Refused(refused) => refused.into(),
            ConversionError::Engine(thrown) => self.describe(thrown),
        })
    }

    /// Evaluating anything brings the engine out of the state that [`Self::go_on_unless_stopped`] tells of.
    fn leave_stopped_state(&self) {
        let table = self.context.table();
        let nothing = EngineString::from_str(table, "");
        // An empty script has no way to fail, and whatever the engine says of it is about the one that was stopped.
        let _ = self.context.evaluate(&nothing, &nothing);
    }

    /// A guest that is stopped in a promise reaction leaves the call before with a value all the same, and the engine
    /// in a state in which the next call of a function ends the process.
    fn go_on_unless_stopped(&self) -> Result<(), Failure> {
        match self.shared.deadline.stopped() {
            Some(stop) => Err(stop.into()),
            None => Ok(()),
        }
    }

    fn settle<'c>(&'c self, value: Local<'c>) -> Result<Settled<'c>, Failure> {
        self.shared.prelude.settle(&self.context, value).map_err(|thrown| self.describe(thrown))
    }

    fn describe(&self, thrown: Thrown<'_>) -> Failure {
        if self.shared.deadline.stopped().is_some() || self.context.has_panicked() {
            // Nothing of the guest is looked at any more.
            return Failure::Js(JsError::default());
        }
        Failure::Js(exception::describe(&self.context, &self.shared.prelude, thrown))
    }
}

impl fmt::Debug for Isolate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Isolate").field("functions", &self.functions.len()).finish_non_exhaustive()
    }
}
