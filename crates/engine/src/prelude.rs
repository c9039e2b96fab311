//! The JavaScript of this crate, run in an isolate before any guest code, and what it offers to Rust.

use std::fmt;
use std::rc::Rc;

use crate::class::{Class, Prototypes};
use crate::ffi::{Context, EngineString, Kept, Kind, Local, NativeFunction, ScriptError, Thrown};
use crate::isolate::{IsolateOptions, Surface, WebAssembly};
use crate::pieces::Pieces;
use crate::shape::{Marks, Shapes};
use crate::stream::Streams;

const BUILTINS: &str = include_str!("js/builtins.js");
const FLATTEN: &str = include_str!("js/flatten.js");
const INSPECT: &str = include_str!("js/inspect.js");
const DESCRIBE: &str = include_str!("js/describe.js");
const BRIDGE: &str = include_str!("js/bridge.js");
const STREAMS: &str = include_str!("js/streams.js");
const CLOCK: &str = include_str!("js/clock.js");
const SURFACE: &str = include_str!("js/surface.js");
const DISPOSAL: &str = include_str!("js/disposal.js");
const DISPOSABLE_STACKS: &str = include_str!("js/disposable_stacks.js");
const WEBASSEMBLY: &str = include_str!("js/webassembly.js");

/// The constructors that a host function's error may name; any other name becomes a property of an `Error`.
const ERRORS: [&str; 7] =
    ["Error", "TypeError", "RangeError", "SyntaxError", "ReferenceError", "URIError", "EvalError"];

/// The functions of the prelude. The guest reaches none of them.
pub(crate) struct Prelude {
    prototypes: Rc<Prototypes>,
    shapes: Rc<Shapes>,
    /// The built-ins as they were before any guest code, for parts of the prelude that are loaded later.
    pub(crate) builtins: Kept,
    flatten: Kept,
    pub(crate) release: Kept,
    pub(crate) result: FlattenResult,
    pub(crate) inspect: Kept,
    pub(crate) describe: Kept,
    pub(crate) make_map: Kept,
    pub(crate) make_set: Kept,
    pub(crate) unpin: Kept,
    pub(crate) pieces: Pieces,
    pub(crate) negate: Kept,
    hide: Kept,
    bind: Kept,
    watch: Kept,
    invoke: Kept,
    clock: Clock,
    pub(crate) streams: Streams,
    /// The engine's WebAssembly, where the host may use it.
    pub(crate) compiler: Kept,
    errors: [Kept; ERRORS.len()],
    failure: Kept,
    thrown: EngineString,
    error_name: EngineString,
    ending_state: EngineString,
    ending_value: EngineString,
}

/// The record that `flatten` fills, and the names in it.
pub(crate) struct FlattenResult {
    record: Kept,
    pub(crate) tape: EngineString,
    pub(crate) text: EngineString,
    pub(crate) buffers: EngineString,
    pub(crate) functions: EngineString,
    pub(crate) path: EngineString,
    pub(crate) steps: EngineString,
}

impl FlattenResult {
    fn new(context: &Context, record: Kept) -> Self {
        let string = |text| EngineString::from_str(context.table(), text);
        Self {
            record,
            tape: string("tape"),
            text: string("text"),
            buffers: string("buffers"),
            functions: string("functions"),
            path: string("path"),
            steps: string("steps"),
        }
    }
}

impl FlattenResult {
    /// A field of the record.
    pub(crate) fn get<'c>(&self, context: &'c Context, name: &EngineString) -> Result<Local<'c>, Thrown<'c>> {
        context.get(self.record.get(context), name)
    }

    /// A number of the record.
    pub(crate) fn number<'c>(&self, context: &'c Context, name: &EngineString) -> Result<f64, Thrown<'c>> {
        Ok(context.to_number(self.get(context, name)?))
    }
}

/// What stands in the place of the engine's clocks, once it does.
struct Clock {
    functions: Kept,
    record: Kept,
    jumped: EngineString,
}

/// How the value of a script that may be a promise ends.
pub(crate) enum Settled<'c> {
    /// It is no promise, or one that cannot be awaited.
    Itself,
    Fulfilled(Local<'c>),
    Rejected(Local<'c>),
    /// The record tells later how it ended.
    Pending(Local<'c>),
}

/// The prelude threw on this engine.
#[derive(Debug)]
pub(crate) struct PreludeError(String);

impl PreludeError {
    /// No guest code has run, so the engine's own words can be had in the ordinary way.
    pub(crate) fn new(context: &Context, error: ScriptError<'_>) -> Self {
        let text = match error {
            ScriptError::Syntax { message, .. } => Some(message),
            ScriptError::Thrown(Thrown(thrown)) => {
                let message = EngineString::from_str(context.table(), "message");
                context.get(thrown, &message).ok().and_then(|message| context.to_string(message))
            }
        };
        Self(text.map_or_else(|| "it gave no reason".to_owned(), |text| text.to_text().to_string()))
    }
}

impl fmt::Display for PreludeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Prelude {
    /// Runs the prelude in a new context. `functions` receives what has to live as long as the context.
    pub(crate) fn install(
        context: &Context,
        options: &IsolateOptions,
        marks: Option<&'static Marks>,
        functions: &mut Vec<NativeFunction>,
    ) -> Result<Self, PreludeError> {
        Self::run(context, options, marks, functions).map_err(|error| PreludeError::new(context, error))
    }

    fn run<'c>(
        context: &'c Context,
        options: &IsolateOptions,
        marks: Option<&'static Marks>,
        functions: &mut Vec<NativeFunction>,
    ) -> Result<Self, ScriptError<'c>> {
        let table = context.table();
        let string = |text: &str| EngineString::from_str(table, text);
        let script = |source: &str| context.evaluate(&string(source), &string(""));
        let field = |record: Local<'_>, name: &str| {
            context.get(record, &string(name)).map(|value| Kept::new(context, value))
        };

        let builtins = context.call(script(BUILTINS)?, &[])?;
        let prototypes = Rc::new(Prototypes::new(context, builtins)?);
        let told = Rc::clone(&prototypes);
        let classify = NativeFunction::new(
            context,
            &string("classify"),
            Box::new(move |context, values| {
                Ok(context.number(f64::from(told.classify_first(context, values))))
            }),
        );
        let shapes = Rc::new(Shapes::new(context, builtins, marks)?);
        let (seen, told) = (Rc::clone(&shapes), Rc::clone(&prototypes));
        let look = NativeFunction::new(
            context,
            &string("look"),
            Box::new(move |context, objects| {
                Ok(context.number(f64::from(seen.look(context, &told, objects))))
            }),
        );
        let seen = Rc::clone(&shapes);
        let learn = NativeFunction::new(
            context,
            &string("learn"),
            Box::new(move |context, objects| {
                let shape = objects.first().map_or(0, |&object| seen.learn(context, object));
                Ok(context.number(f64::from(shape)))
            }),
        );
        let link = |source: &str, natives: &[&NativeFunction]| -> Result<Local<'c>, ScriptError<'c>> {
            let mut arguments = vec![builtins];
            arguments.extend(natives.iter().map(|native| native.get(context)));
            Ok(context.call(script(source)?, &arguments)?)
        };
        let flatten = link(FLATTEN, &[&look, &learn])?;
        let inspect = link(INSPECT, &[&classify])?;
        let describe = context.call(script(DESCRIBE)?, &[builtins, classify.get(context), inspect])?;
        let bridge = link(BRIDGE, &[&classify])?;
        let clock = context.call(script(CLOCK)?, &[builtins])?;
        let streams = link(STREAMS, &[])?;
        let &IsolateOptions { surface, webassembly, .. } = options;
        let kept = [
            context.boolean(surface != Surface::Full),
            context.boolean(webassembly != WebAssembly::None),
            context.boolean(webassembly == WebAssembly::Guest),
        ];
        let compiler = context.call(script(SURFACE)?, &kept)?;
        let stacks = Self::add_disposal(context, builtins)?;
        if webassembly == WebAssembly::Guest {
            context.call(script(WEBASSEMBLY)?, &[])?;
        }

        let [error, type_error, range_error, syntax_error, reference_error, uri_error, eval_error] =
            ERRORS.map(|name| field(builtins, name));
        let prelude = Self {
            prototypes,
            shapes,
            builtins: Kept::new(context, builtins),
            flatten: field(flatten, "flatten")?,
            release: field(flatten, "release")?,
            result: FlattenResult::new(context, field(flatten, "result")?),
            inspect: field(inspect, "inspect")?,
            describe: field(describe, "describe")?,
            make_map: field(bridge, "makeMap")?,
            make_set: field(bridge, "makeSet")?,
            unpin: field(bridge, "unpin")?,
            pieces: Pieces::new(context, bridge, flatten)?,
            negate: field(bridge, "negate")?,
            hide: field(bridge, "hide")?,
            bind: field(bridge, "bind")?,
            watch: field(bridge, "watch")?,
            invoke: field(bridge, "invoke")?,
            clock: Clock {
                record: field(clock, "clock")?,
                functions: Kept::new(context, clock),
                jumped: string("jumped"),
            },
            streams: Streams::new(context, streams)?,
            compiler: Kept::new(context, compiler),
            errors: [
                error?,
                type_error?,
                range_error?,
                syntax_error?,
                reference_error?,
                uri_error?,
                eval_error?,
            ],
            failure: field(builtins, "failure")?,
            thrown: string("thrown"),
            error_name: string("name"),
            ending_state: string("state"),
            ending_value: string("value"),
        };
        functions.extend([classify, look, learn, stacks]);
        Ok(prelude)
    }

    /// Adds what `using` needs where the engine lacks it. The stacks of resources are made when the guest first asks for them, by
    /// the function that is returned.
    fn add_disposal<'c>(
        context: &'c Context,
        builtins: Local<'c>,
    ) -> Result<NativeFunction, ScriptError<'c>> {
        let table = context.table();
        let stacks = NativeFunction::new(
            context,
            &EngineString::from_str(table, "stacks"),
            Box::new(|context, _| context.evaluate_own(DISPOSABLE_STACKS)),
        );
        let script = EngineString::from_str(table, DISPOSAL);
        let add = context.evaluate(&script, &EngineString::from_str(table, ""))?;
        context.call(add, &[builtins, stacks.get(context)])?;
        Ok(stacks)
    }

    /// Calls a function of the prelude. They throw nothing but return a record of what was thrown inside.
    pub(crate) fn call<'c>(
        &self,
        context: &'c Context,
        function: &Kept,
        arguments: &[Local<'_>],
    ) -> Result<Local<'c>, Thrown<'c>> {
        let value = context.call(function.get(context), arguments)?;
        if self.failure.is(value) {
            return Err(Thrown(context.get(value, &self.thrown)?));
        }
        Ok(value)
    }

    /// Flattens a value into [`result`](Self::result), or gives the number of the reason why not.
    pub(crate) fn flatten<'c>(
        &self,
        context: &'c Context,
        arguments: &[Local<'_>],
    ) -> Result<Local<'c>, Thrown<'c>> {
        self.shapes.forget();
        self.call(context, &self.flatten, arguments)
    }

    /// The class of a value.
    pub(crate) fn classify(&self, context: &Context, value: Local<'_>) -> Class {
        self.prototypes.classify(context, value)
    }

    /// How a value ends, now that every promise reaction has run.
    pub(crate) fn settle<'c>(
        &self,
        context: &'c Context,
        value: Local<'c>,
    ) -> Result<Settled<'c>, Thrown<'c>> {
        if self.classify(context, value) != Class::Promise {
            return Ok(Settled::Itself);
        }
        let ending = self.call(context, &self.watch, &[value])?;
        if context.kind(ending) != Kind::Object {
            return Ok(Settled::Itself);
        }
        self.ending(context, ending)
    }

    /// How a promise has ended by now, from the record of it.
    pub(crate) fn ending<'c>(
        &self,
        context: &'c Context,
        ending: Local<'c>,
    ) -> Result<Settled<'c>, Thrown<'c>> {
        let state = context.to_number(context.get(ending, &self.ending_state)?) as u8;
        let value =
            |settled: fn(Local<'c>) -> Settled<'c>| context.get(ending, &self.ending_value).map(settled);
        match state {
            1 => value(Settled::Fulfilled),
            2 => value(Settled::Rejected),
            _ => Ok(Settled::Pending(ending)),
        }
    }

    /// The value in the record that a script with `await` at its top level leaves.
    pub(crate) fn wrapped<'c>(
        &self,
        context: &'c Context,
        record: Local<'_>,
    ) -> Result<Local<'c>, Thrown<'c>> {
        context.get(record, &self.ending_value)
    }

    /// Calls a function of the guest; the record of how that ended is for [`Self::returned`] to read.
    pub(crate) fn invoke<'c>(
        &self,
        context: &'c Context,
        function: Local<'_>,
        arguments: Local<'_>,
    ) -> Result<Local<'c>, Thrown<'c>> {
        context.call(self.invoke.get(context), &[function, arguments])
    }

    /// What a function of the guest returned or threw.
    pub(crate) fn returned<'c>(
        &self,
        context: &'c Context,
        ending: Local<'c>,
    ) -> Result<Local<'c>, Thrown<'c>> {
        match self.ending(context, ending)? {
            Settled::Fulfilled(value) => Ok(value),
            Settled::Rejected(thrown) => Err(Thrown(thrown)),
            Settled::Pending(other) => Err(Thrown(other)),
            Settled::Itself => Err(Thrown(ending)),
        }
    }

    /// Lets the guest's clocks stand still.
    pub(crate) fn freeze_clock(&self, context: &Context, milliseconds: i64) -> Result<(), PreludeError> {
        let now = context.number(milliseconds as f64);
        self.call_clock(context, "freeze", &[now])
    }

    /// Lets the guest's clocks jump with the timers.
    pub(crate) fn take_clock(&self, context: &Context) -> Result<(), PreludeError> {
        self.call_clock(context, "take", &[])
    }

    /// Has what counts from the beginning of the guest's time count from now on.
    pub(crate) fn begin_time(&self, context: &Context) -> Result<(), PreludeError> {
        self.call_clock(context, "begin", &[])
    }

    fn call_clock(&self, context: &Context, name: &str, arguments: &[Local<'_>]) -> Result<(), PreludeError> {
        let name = EngineString::from_str(context.table(), name);
        let called = context
            .get(self.clock.functions.get(context), &name)
            .and_then(|function| self.call(context, &Kept::new(context, function), arguments));
        called.map(drop).map_err(|thrown| PreludeError::new(context, thrown.into()))
    }

    /// Says by how much the guest's clocks have jumped, in milliseconds.
    pub(crate) fn set_jumped<'c>(&self, context: &'c Context, milliseconds: u64) -> Result<(), Thrown<'c>> {
        let jumped = context.number(milliseconds as f64);
        context.set(self.clock.record.get(context), &self.clock.jumped, jumped)
    }

    /// Links another script to the prelude: calls the function that it is with the built-ins, the clock and `natives`.
    pub(crate) fn link<'c>(
        &self,
        context: &'c Context,
        script: &str,
        natives: Local<'_>,
    ) -> Result<Local<'c>, PreludeError> {
        let string = |text: &str| EngineString::from_str(context.table(), text);
        let function = context.evaluate(&string(script), &string(""));
        function
            .and_then(|function| {
                let clock = self.clock.functions.get(context);
                Ok(context.call(function, &[self.builtins.get(context), clock, natives])?)
            })
            .map_err(|error| PreludeError::new(context, error))
    }

    /// An error of the guest's realm, made without the guest's help. Its stack begins where the guest called the host.
    pub(crate) fn error<'c>(
        &self,
        context: &'c Context,
        name: &EngineString,
        known: Option<&str>,
        message: &EngineString,
    ) -> Result<Local<'c>, Thrown<'c>> {
        let known = ERRORS.iter().position(|&error| Some(error) == known);
        let constructor = self.errors[known.unwrap_or(0)].get(context);
        let error = context.construct(constructor, &[context.string(message)])?;
        if known.is_none() {
            self.call(context, &self.hide, &[error, context.string(&self.error_name), context.string(name)])?;
        }
        Ok(error)
    }

    /// Defines a property as the language defines its own globals.
    pub(crate) fn define_hidden<'c>(
        &self,
        context: &'c Context,
        object: Local<'_>,
        name: &EngineString,
        value: Local<'_>,
    ) -> Result<(), Thrown<'c>> {
        self.call(context, &self.hide, &[object, context.string(name), value]).map(drop)
    }

    /// Defines a host function; tells whether the guest allowed it.
    pub(crate) fn bind(
        &self,
        context: &Context,
        holder: Option<&EngineString>,
        name: &EngineString,
        function: &NativeFunction,
    ) -> bool {
        let holder = holder.map_or_else(|| context.undefined(), |holder| context.string(holder));
        let arguments = [context.global(), holder, context.string(name), function.get(context)];
        self.call(context, &self.bind, &arguments).is_ok_and(|bound| context.to_bool(bound))
    }
}
