//! An engine of its own for one guest.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use pydeno_wire::Text;

use crate::async_function::{self, AsyncHostFunction};
use crate::console::{self, ConsoleHook, HookTime};
use crate::deadline::Deadline;
use crate::engine::Engine;
use crate::ffi::{Context, EngineString, NativeFunction, StackRoom, retire_alternate_stack};
use crate::heap::HeapReader;
use crate::held_functions::HeldFunctions;
use crate::host_function::{self, BindError, HostFunction};
use crate::language::Positions;
use crate::modules::Modules;
use crate::prelude::Prelude;
use crate::random::{Generator, RandomSource};
use crate::recent_scripts::RecentScripts;
use crate::requests::Requests;
use crate::stream::Streams;
use crate::webassembly::WebAssemblyLoader;
use crate::{unhandled_rejections, web};

/// Which of the engine's globals a guest finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Surface {
    /// The language without `SharedArrayBuffer` and `Atomics`.
    #[default]
    Guest,
    /// With them.
    Full,
}

/// Who compiles WebAssembly, in a process that has it among its [`Features`](crate::Features).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebAssembly {
    /// Nobody.
    #[default]
    None,
    /// The host: what it [loads](Isolate::begin_load_wasm). The guest has no `WebAssembly`, and nothing that leads to it.
    Host,
    /// The guest too, with the global `WebAssembly`.
    Guest,
}

/// How an isolate is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct IsolateOptions {
    /// Which globals there are.
    pub surface: Surface,
    /// Who compiles WebAssembly.
    pub webassembly: WebAssembly,
    /// What `Math.random` draws from.
    pub random: RandomSource,
    /// Whether the process is to be forked, and the isolate to go on in the forks. Until
    /// [`Isolate::go_on_in_fork`] it has no thread that watches deadlines, so nothing it runs is stopped from inside.
    pub for_forks: bool,
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
    /// This engine cannot be kept from making code from text.
    NoStrictEval,
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
            Self::NoStrictEval => f.write_str(
                "this JavaScriptCore cannot be kept from making code from text; update it, or name another with PYDENO_JSC",
            ),
        }
    }
}

impl std::error::Error for IsolateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Random(error) => Some(error),
            Self::Forked | Self::NoContext | Self::Prelude(_) | Self::NoStrictEval => None,
        }
    }
}

/// A heap with one global object, for one guest. It belongs to the thread that made it.
///
/// What the guest declared stays for the next request. After every [`Failure`] the isolate is usable again. In a fork
/// of its process it must be left alone, also by its destructor: the engine's thread that watches the deadline is not
/// there. Only one that was made [for forks](IsolateOptions::for_forks) goes on in them.
///
/// # Requests
///
/// A **request** is an evaluation, the invocation of a function, or a stream that is asked. It ends successfully when its value has settled *and*
/// every asynchronous call that was made on its behalf has been settled; when it fails, it ends at once, and its calls are
/// given up. [`take_ended`](Self::take_ended) tells of each exactly once. Several may wait at a time. Guest code runs in
/// **steps**: the beginning of a request, and what a settled call sets going, each until nothing is left to run.
/// What runs, runs on behalf of the request that was begun, or that made the call.
///
/// Every method takes `&self`. A host function may begin requests in the isolate that calls it, which then run **nested**,
/// at most [`Isolate::DEEPEST_NESTING`] within each other.
pub struct Isolate {
    // Fields are dropped in this order: functions and watchdog before the context they belong to.
    functions: RefCell<Vec<NativeFunction>>,
    random: Generator,
    pub(crate) shared: Rc<Shared>,
    pub(crate) context: Context,
}

/// What requests and the callbacks of host functions share.
pub(crate) struct Shared {
    pub(crate) prelude: Prelude,
    pub(crate) deadline: Deadline,
    pub(crate) held: HeldFunctions,
    pub(crate) requests: Requests,
    pub(crate) stack: StackRoom,
    pub(crate) positions: Positions,
    pub(crate) modules: Modules,
    pub(crate) webassembly: WebAssemblyLoader,
    pub(crate) recent_scripts: RecentScripts,
}

impl Shared {
    pub(crate) fn streams(&self) -> &Streams {
        &self.prelude.streams
    }
}

impl Isolate {
    /// How many requests may run within each other, the outermost not counted.
    pub const DEEPEST_NESTING: usize = 8;

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
        let prelude = Prelude::install(&context, options, engine.marks(), &mut functions)
            .map_err(|error| IsolateError::Prelude(error.to_string()))?;
        let shared = Rc::new(Shared {
            prelude,
            deadline: Deadline::new(
                &context,
                HeapReader::new(&context, engine.reads_heap_directly(&context)),
            ),
            held: HeldFunctions::default(),
            requests: Requests::default(),
            stack: StackRoom::of_this_thread(),
            positions: Positions::default(),
            modules: Modules::default(),
            webassembly: WebAssemblyLoader::default(),
            recent_scripts: RecentScripts::default(),
        });
        if !options.for_forks {
            shared.deadline.start();
        }
        let random = Generator::new(options.random).map_err(IsolateError::Random)?;
        functions.push(random.install(&context, &shared.prelude));
        functions.push(unhandled_rejections::watch(&context, &shared));
        Ok(Self { functions: RefCell::new(functions), random, shared, context })
    }

    /// Makes an isolate that came with a fork this process's own: its deadlines are watched, and `Math.random`, also as
    /// somebody has kept it, draws from `random`. With `None` it goes on where it stopped, alike in every fork.
    ///
    /// The process that was forked must have had one thread, which with the JIT off it has.
    ///
    /// # Errors
    ///
    /// [`IsolateError::Random`]; no guest code may run then.
    pub fn go_on_in_fork(&self, random: Option<RandomSource>) -> Result<(), IsolateError> {
        if let Some(random) = random {
            self.random.renew(random).map_err(IsolateError::Random)?;
        }
        self.shared.deadline.start();
        Ok(())
    }

    /// Gives the guest a `console` with `debug`, `log`, `info`, `warn` and `error`, whose lines the hook receives, in
    /// the time of the guest or of the host. There is none before.
    pub fn set_console(&self, hook: ConsoleHook, time: HookTime) {
        let methods: Vec<NativeFunction> =
            console::install(&self.context, &self.shared, hook, time).collect();
        self.functions.borrow_mut().extend(methods);
    }

    /// Makes a host function visible as a global, or as a property of a global object that is made where it is
    /// missing. It replaces one of the same name; like the language's own functions it is writable, configurable and
    /// not enumerable.
    ///
    /// # Errors
    ///
    /// [`BindError`] where the guest has taken the name and forbids another value.
    pub fn bind(&self, object: Option<&Text>, name: &Text, function: HostFunction) -> Result<(), BindError> {
        self.define(object, name, host_function::make(&self.context, &self.shared, name, function))
    }

    /// As [`bind`](Self::bind), for a function that only starts a call and tells its number. The guest gets a promise,
    /// which [`settle`](Self::settle) settles. Where the call cannot be started, the promise is rejected; where it is made
    /// within a nested request, it is made on behalf of the outermost.
    ///
    /// # Errors
    ///
    /// As `bind`.
    pub fn bind_async(
        &self,
        object: Option<&Text>,
        name: &Text,
        start: AsyncHostFunction,
    ) -> Result<(), BindError> {
        self.define(object, name, async_function::make(&self.context, &self.shared, name, start))
    }

    /// Keeps a native function for as long as the isolate.
    pub(crate) fn keep(&self, function: NativeFunction) {
        self.functions.borrow_mut().push(function);
    }

    fn define(&self, object: Option<&Text>, name: &Text, function: NativeFunction) -> Result<(), BindError> {
        host_function::define(&self.context, &self.shared.prelude, object, name, &function)?;
        self.keep(function);
        Ok(())
    }

    /// Keeps a function for as long as the isolate.
    pub(crate) fn keep_function(&self, function: NativeFunction) {
        self.functions.borrow_mut().push(function);
    }

    /// As [`keep_function`](Self::keep_function), of several.
    pub(crate) fn keep_functions(&self, functions: Vec<NativeFunction>) {
        self.functions.borrow_mut().extend(functions);
    }

    /// Begins the numbers of `Math.random` anew from this seed: the same ones each time.
    pub fn seed_random(&self, seed: u64) {
        self.random.seed(seed);
    }

    /// Lets every clock that the guest can read stand still, at this many milliseconds since 1970-01-01T00:00:00Z, within
    /// ±8.64e15: `Date` without arguments, `Date.now` and `Intl.DateTimeFormat`. Call it once, before any guest code.
    ///
    /// The language has no other clock. What still varies with time is when the collector clears a `WeakRef`.
    ///
    /// # Errors
    ///
    /// [`IsolateError::Prelude`] on an engine where this fails; no guest code may run then.
    pub fn freeze_clock(&self, milliseconds: i64) -> Result<(), IsolateError> {
        self.shared
            .prelude
            .freeze_clock(&self.context, milliseconds)
            .map_err(|error| IsolateError::Prelude(error.to_string()))
    }

    /// Gives the guest timers, `URL`, `TextEncoder`, `structuredClone` and the other interfaces that scripts expect of the web and
    /// that need nothing outside. Call it once, before any guest code. Where that is long before, or before
    /// [`freeze_clock`](Self::freeze_clock), call [`begin_time`](Self::begin_time) afterwards.
    ///
    /// Timers take no time: when a request waits, nothing is left to run and no call is in flight, the guest's clocks jump to
    /// the next one. Whoever keeps the isolate lets them go off, see [`fire_timers`](Self::fire_timers).
    ///
    /// # Errors
    ///
    /// [`IsolateError::Prelude`] on an engine where this fails; no guest code may run then.
    pub fn install_web(&self) -> Result<(), IsolateError> {
        let natives = web::install(&self.context, &self.shared, &self.random)
            .map_err(|error| IsolateError::Prelude(error.to_string()))?;
        self.functions.borrow_mut().extend(natives);
        Ok(())
    }

    /// Has the guest's `performance.now()` and the times of events count from now on. Call it before any guest code, after
    /// [`install_web`](Self::install_web) and [`freeze_clock`](Self::freeze_clock).
    ///
    /// # Errors
    ///
    /// [`IsolateError::Prelude`] on an engine where this fails; no guest code may run then.
    pub fn begin_time(&self) -> Result<(), IsolateError> {
        let begun = self.shared.prelude.begin_time(&self.context);
        begun.map_err(|error| IsolateError::Prelude(error.to_string()))
    }

    /// Makes the guest throw an `EvalError` where it makes code from text: `eval`, `Function` and its kin. It cannot be
    /// undone.
    ///
    /// # Errors
    ///
    /// [`IsolateError::NoStrictEval`] on an engine that cannot; no guest code may run then.
    pub fn forbid_eval(&self) -> Result<(), IsolateError> {
        let message =
            EngineString::from_str(self.context.table(), "making code from text is not allowed here");
        if self.context.forbid_eval(&message) { Ok(()) } else { Err(IsolateError::NoStrictEval) }
    }

    /// Lets go of functions and streams of the guest that were values. One that is not held is ignored.
    pub fn release(&self, functions: &[u64]) {
        for &handle in functions {
            self.shared.held.release(handle);
        }
    }
}

impl fmt::Debug for Isolate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Isolate").field("functions", &self.functions.borrow().len()).finish_non_exhaustive()
    }
}
