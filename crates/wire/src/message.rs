//! The messages of the two conversations: host with worker, host with zygote.

use crate::text::Text;
use crate::value::Value;

/// The build that host, zygote and worker must share; they do not talk across builds.
pub const BUILD: &str = env!("CARGO_PKG_VERSION");

/// From the host to a worker.
#[derive(Clone, Debug, PartialEq)]
pub enum HostMessage {
    /// The limits of this runtime and how its engine behaves; the first message, sent once.
    Start(Start),
    /// Makes host functions visible to the guest. Not answered: a later `Bind` of the same name replaces it, and one that
    /// the guest's own globals forbid fails the next evaluation with a `TypeError`.
    Bind(Vec<Binding>),
    /// Evaluate a script; answered by exactly one [`WorkerMessage::Done`] with the same `id`.
    Eval {
        /// Chosen by the host, increasing.
        id: u64,
        /// The script's text.
        source: Text,
        /// The script's name in stacks and errors.
        name: String,
        /// What it is written in.
        language: Language,
        /// Whether `let`, `const` and `class` of its top level can be declared again by a later script.
        redeclare: bool,
        /// How long the guest may run, in milliseconds, time spent in host functions not counted.
        timeout_ms: u64,
    },
    /// Evaluate a module; answered like `Eval`, with its exports as an object. From then on it can be imported by its name,
    /// in the place of one that had it before.
    EvalModule {
        /// Chosen by the host, increasing, from the same numbers as those of `Eval`.
        id: u64,
        /// The module's text.
        source: Text,
        /// Its name: what it is imported by, and what it is called in stacks and errors.
        name: String,
        /// What it is written in.
        language: Language,
        /// As in `Eval`.
        timeout_ms: u64,
    },
    /// Compile a WebAssembly module and make what it exports a global object of the guest's; answered like `Eval`, with that
    /// object. The guest gets functions around the module's, and neither the module nor anything that leads to `WebAssembly`.
    LoadWasm {
        /// Chosen by the host, increasing, from the same numbers as those of `Eval`.
        id: u64,
        /// The module.
        module: WasmModule,
        /// The function that the module's first import is in a [`WorkerMessage::Call`]; the others follow. All are synchronous.
        first_function: u32,
        /// As in `Eval`.
        timeout_ms: u64,
    },
    /// Call a function of the guest; answered like `Eval`.
    Invoke {
        /// Chosen by the host, increasing, from the same numbers as those of `Eval`.
        id: u64,
        /// The function, as a [`Function`] named it.
        function: u64,
        /// The arguments.
        arguments: Vec<Value>,
        /// As in `Eval`.
        timeout_ms: u64,
        /// The [`WorkerMessage::Call`] of a synchronous function that the guest waits for and inside which the function is to
        /// run. Otherwise it runs when the guest has left every call, like an `Eval`: it may have crossed a call.
        within: Option<u64>,
    },
    /// Ask a stream of the guest for its next item, or to end; answered like `Eval`, at the end of the stream with
    /// [`Failure::StreamEnded`]. It runs when the guest has left every call.
    Pull {
        /// Chosen by the host, increasing, from the same numbers as those of `Eval`.
        id: u64,
        /// The stream, as a [`Stream`](crate::Stream) of the guest's named it.
        stream: u64,
        /// What it is asked.
        what: StreamRequest,
        /// As in `Eval`.
        timeout_ms: u64,
    },
    /// The host has let go of these functions and streams of the guest, at most [`RELEASED`](crate::codec::bounds::RELEASED) of them.
    /// Not answered.
    Release(Vec<u64>),
    /// The answer to the [`WorkerMessage::Call`] with the same `id`.
    Answer {
        /// The call's id.
        id: u64,
        /// The function's value, or the error the guest sees thrown.
        outcome: Result<Value, HostError>,
    },
    /// Stop the evaluation or invocation with this id as soon as possible; it then ends as [`Failure::Cancelled`]. One
    /// that has ended meanwhile is not an error.
    Cancel {
        /// The evaluation's id.
        id: u64,
    },
    /// Whether the host, from now on, looks for what the worker says for [a moment](crate::attention) before it sleeps. A worker
    /// that does the same need not be woken up. About speed alone, and not answered.
    Attentive(bool),
}

/// A WebAssembly module, and what the host has read in it. It is the host's, which vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WasmModule {
    /// The global's name.
    pub name: Text,
    /// The module in the binary format.
    pub code: Vec<u8>,
    /// What it imports, in its order: functions only.
    pub imports: Vec<WasmImport>,
    /// What the guest gets of its exports.
    pub exports: Vec<WasmExport>,
}

/// A function that a WebAssembly module imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WasmImport {
    /// The first of its two names.
    pub module: Text,
    /// The second.
    pub name: Text,
    /// What it returns.
    pub result: Option<WasmNumber>,
}

/// Something that a WebAssembly module exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WasmExport {
    /// Its name.
    pub name: Text,
    /// What it is.
    pub kind: WasmExportKind,
}

/// What a WebAssembly module can export to a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WasmExportKind {
    /// A function with these parameters, whose results are numbers, too.
    Function(Vec<WasmNumber>),
    /// A memory, of which the guest gets functions that copy out of it and into it.
    Memory,
    /// A number that does not change.
    Constant,
}

/// A number as WebAssembly has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WasmNumber {
    /// A number of JavaScript's, as a 32-bit integer.
    I32,
    /// A `BigInt` of JavaScript's, as a 64-bit integer.
    I64,
    /// A number of JavaScript's, as the nearest of single precision.
    F32,
    /// A number of JavaScript's.
    F64,
}

/// What a stream can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRequest {
    /// For the next item.
    Next,
    /// To end: nobody wants more.
    Return,
}

/// The function that a guest calls to ask a stream of the host, in a [`WorkerMessage::Call`] that is asynchronous. Its
/// arguments are the stream's handle and the number of a [`StreamRequest`]; its value is an array of the next item, or an
/// empty one at the stream's end.
pub const STREAMS: u32 = u32::MAX;

/// What a script is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// JavaScript.
    #[default]
    JavaScript,
    /// TypeScript, whose types are removed and not checked.
    TypeScript,
    /// JavaScript with nothing in it that has to be made for the engine: it is evaluated as it is, at once.
    PlainJavaScript,
}

/// What a worker is told before anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// What the runtime may use.
    pub limits: Limits,
    /// Where every clock of the guest stands still, in milliseconds since 1970-01-01T00:00:00Z, within ±8.64e15. `None`
    /// leaves the guest the real ones.
    pub clock: Option<i64>,
    /// Where `Math.random` begins; `None` for a seed of the system's.
    pub random_seed: Option<u64>,
    /// Whether making code from text (`eval`, `Function` and its kin) throws.
    pub strict_eval: bool,
    /// Whether the guest has timers, `URL` and the other web interfaces.
    pub web: bool,
}

/// What a runtime may use; checked by the worker for the guest's sake and by the host for its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The engine's heap, in bytes, buffers included.
    pub max_heap_bytes: u64,
    /// One value's encoding, in bytes.
    pub max_value_bytes: u64,
    /// One value's number of nodes (a key is not a node).
    pub max_value_nodes: u64,
    /// One value's nesting.
    pub max_value_depth: u32,
    /// Whether `console` exists and is forwarded as [`WorkerMessage::Console`].
    pub console: bool,
}

/// One host function and where the guest finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Names the function in [`WorkerMessage::Call`].
    pub function: u32,
    /// Where the guest finds it.
    pub place: Place,
    /// The function's name.
    pub name: Text,
    /// Whether the guest gets a promise at once instead of waiting for the answer.
    pub asynchronous: bool,
}

/// Where the guest finds a host function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is a global function.
    Global,
    /// It is a property of this global object, which is made where it is missing.
    Object(Text),
    /// It is an export of the module with this name, which `Import` says it has, and to be had in no other way.
    Module(Text),
    /// The guest does not find it: its imports call it. The arguments are the specifier, the referrer's name, the value of
    /// the attribute `type` or `null`, and whether the source is wanted although it was given before. The answer is an
    /// array of a refusal's text, the module's name, its kind (`js`, `ts`, `json` or `values`), its source, its values,
    /// and the names of its functions; each is `null` where there is none, and after the name all are in the answer
    /// about a module that was given before.
    Import,
}

impl Place {
    /// The global object or the module that holds the function.
    pub fn holder(&self) -> Option<&Text> {
        match self {
            Self::Object(holder) | Self::Module(holder) => Some(holder),
            Self::Global | Self::Import => None,
        }
    }
}

impl From<Option<&Text>> for Place {
    /// A global function, or a property of a global object.
    fn from(object: Option<&Text>) -> Self {
        object.map_or(Self::Global, |object| Self::Object(object.clone()))
    }
}

/// An error of a host function as the guest is shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    /// The error's `name`, such as `"Error"` or `"TypeError"`.
    pub name: Text,
    /// The error's `message`.
    pub message: Text,
}

/// From a worker to the host. Every one is a claim of an untrusted process.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkerMessage {
    /// The worker has confined itself, proved it and made a context; the first message of one that starts.
    Ready(Ready),
    /// The worker will not start: a layer that was asked for is not in force. The only message of one that does not.
    Refused(SandboxReport),
    /// The guest calls a host function. It waits for the [`HostMessage::Answer`] with the same `id`, or, where the function
    /// is asynchronous, goes on with a promise.
    Call {
        /// Chosen by the worker, increasing.
        id: u64,
        /// The evaluation or invocation on whose behalf.
        request: u64,
        /// The function, from its [`Binding`].
        function: u32,
        /// The arguments.
        arguments: Vec<Value>,
    },
    /// Nothing is left to run before an answer to an asynchronous call, or another request, arrives.
    Waiting {
        /// How many requests, answers to asynchronous calls and cancellations the worker has taken since its start. Fewer
        /// than the host has sent means that something crossed this message, and that the worker goes on at once.
        taken: u64,
    },
    /// The guest wrote to `console`.
    Console {
        /// Which method was called.
        level: ConsoleLevel,
        /// The text, arguments joined by a space.
        text: Text,
    },
    /// Lines of the guest's console were dropped, because there were more than [`CONSOLE_BYTES`] allow. Sent when a request
    /// ends, of what was dropped since the last.
    ConsoleDropped {
        /// How many lines.
        lines: u64,
        /// How much text they had, in bytes.
        bytes: u64,
    },
    /// The evaluation or invocation has ended, and so have the asynchronous calls that it made; those of one that failed
    /// are given up.
    Done {
        /// Its id.
        id: u64,
        /// The value of the last expression or of the function, or why there is none.
        outcome: Result<Value, Failure>,
        /// Promises that were rejected meanwhile and that nothing handled, at most
        /// [`UNHANDLED`](crate::codec::bounds::UNHANDLED) of them; more are dropped.
        unhandled: Vec<JsError>,
    },
}

/// A worker's first words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The build that the worker belongs to; host and worker of different builds do not talk.
    pub build: String,
    /// The engine's library, as it was found.
    pub engine: String,
    /// What the worker applied and proved.
    pub sandbox: SandboxReport,
}

/// The layers of a worker's sandbox, in the order they were applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxReport {
    /// One entry a layer.
    pub layers: Vec<LayerReport>,
}

/// One layer of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerReport {
    /// The layer's name: `landlock`, `seccomp`, ...
    pub name: String,
    /// Whether it is in force, as checked after it was applied.
    pub applied: bool,
    /// What was checked, or why the layer is not in force.
    pub detail: String,
    /// What would put it in force; empty when it is.
    pub fix: String,
}

/// How much console text one request may send; what goes beyond is dropped and counted, by the worker for the guest's sake and by the
/// host for its own.
pub const CONSOLE_BYTES: usize = 1 << 20;
/// What a line of the console counts beside its text.
pub const CONSOLE_LINE_BYTES: usize = 64;

/// A method of the guest's `console`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleLevel {
    /// `console.debug`.
    Debug,
    /// `console.log`.
    Log,
    /// `console.info`.
    Info,
    /// `console.warn`.
    Warn,
    /// `console.error`.
    Error,
    /// None: the host's own note that lines were dropped. A worker cannot send it.
    Dropped,
}

/// Why an evaluation has no value. After each of these the worker is usable again.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The guest threw, or its promise was rejected.
    Js(JsError),
    /// The guest ran longer than its `timeout_ms`.
    Timeout,
    /// The engine's heap passed `max_heap_bytes`.
    HeapLimit,
    /// The host asked for it with [`HostMessage::Cancel`].
    Cancelled,
    /// The value cannot cross.
    Conversion {
        /// Where, from the value's root: `$.items[3].x`.
        path: String,
        /// What stands there and why it does not cross.
        reason: String,
    },
    /// The value is a promise, and nothing that could settle it is left.
    NeverSettles,
    /// The value is a promise, and promises do not settle while the guest waits for a host function that is not
    /// asynchronous.
    CannotWait,
    /// The function to call, or the stream to ask, is not one that the host holds.
    UnknownFunction,
    /// The stream has no more items.
    StreamEnded,
}

/// An exception of the guest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsError {
    /// The error's `name`, or empty when something else than an `Error` was thrown.
    pub name: Text,
    /// The error's `message`, or the text of what was thrown.
    pub message: Text,
    /// The engine's stack text.
    pub stack: Text,
    /// The stack, innermost frame first.
    pub frames: Vec<Frame>,
    /// What else it carries, for those that carry anything.
    pub details: Option<Box<ErrorDetails>>,
}

/// What an exception of the guest carries beyond its text: an excerpt, as far as it crosses and as much as
/// [`bounds`](crate::codec::bounds) allow. Values in it hold no functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ErrorDetails {
    /// What was thrown, when that is no `Error`.
    pub value: Option<Value>,
    /// Its own enumerable properties that hold data, without those that have a field of their own here or in [`JsError`].
    pub properties: Vec<(Text, Value)>,
    /// The `cause` of an `Error`.
    pub cause: Option<JsError>,
    /// The `errors` of an `AggregateError`.
    pub errors: Vec<JsError>,
}

impl JsError {
    /// What the exception carries, to be filled.
    pub fn details_mut(&mut self) -> &mut ErrorDetails {
        self.details.get_or_insert_default()
    }
}

/// One frame of a guest's stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The function, or empty for the script itself.
    pub function: Text,
    /// The script's name, `<eval>` for code that the guest made from a text, or empty for native code and where it is not
    /// known.
    pub file: Text,
    /// 1-based, or 0 when unknown.
    pub line: u32,
    /// 1-based, or 0 when unknown.
    pub column: u32,
}

/// From the host to a zygote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZygoteRequest {
    /// Fork a worker. One descriptor travels with it: the worker's end of its socket.
    Spawn {
        /// Which layers may be missing.
        sandbox: SandboxMode,
        /// Whether the worker enters an empty root in namespaces of its own.
        empty_root: bool,
        /// Whether the guest will have the web interfaces, so that they are there before [`Start`] asks for them. Never asked of
        /// a template, whose workers have what it has.
        web: bool,
    },
    /// Report how the worker with this process id ended, once it has.
    Collect {
        /// From [`ZygoteReply::Spawned`].
        pid: i32,
    },
    /// Confine this process, evaluate on the socket that travels with it what a worker would, and fork workers that begin
    /// there once the other end of that socket hangs up. Only ever asked of a zygote that has forked nothing.
    BecomeTemplate {
        /// Which layers may be missing; each [`Self::Spawn`] asks for the same.
        sandbox: SandboxMode,
        /// Whether the process enters an empty root in namespaces of its own, which its workers then share.
        empty_root: bool,
    },
}

/// From a zygote to the host; one reply a request, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZygoteReply {
    /// The zygote has initialised the engine and takes requests. Sent once, unasked.
    Listening {
        /// The build that the zygote belongs to.
        build: String,
        /// The engine's library, as it was found.
        engine: String,
    },
    /// The engine cannot be used; the zygote exits. Sent instead of `Listening`.
    EngineUnavailable {
        /// What was tried and what to install.
        reason: String,
    },
    /// A worker was forked. One descriptor travels with it: the worker's pidfd.
    Spawned {
        /// The worker's process id in the zygote's namespace, which is the host's.
        pid: i32,
    },
    /// No worker could be forked.
    SpawnFailed {
        /// Which step failed and the operating system's words.
        reason: String,
    },
    /// The zygote has become a template and has one thread.
    TemplateReady,
    /// How a worker ended.
    Exited {
        /// The worker's process id.
        pid: i32,
        /// How it ended.
        status: ExitStatus,
    },
}

/// What a missing layer of the sandbox means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxMode {
    /// The worker does not start.
    Require,
    /// The worker starts and says so.
    Auto,
    /// Nothing is applied beyond descriptors and limits; for debugging.
    Off,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// The zygote does not know the process, or no longer.
    Unknown,
}
