//! The conversation with one worker as a state machine without input or output.
//!
//! A driver feeds it bytes and clock readings and carries out what it asks for; a blocking and an asynchronous one share
//! all of it. Every message of the worker is checked against what the state allows; the first that does not fit is
//! a [`Violation`], after which the session says nothing more.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pydeno_wire::codec::bounds;
use pydeno_wire::frame::{FrameReader, encode_frame};
use pydeno_wire::message::{BUILD, CONSOLE_BYTES, CONSOLE_LINE_BYTES};
use pydeno_wire::message::{
    Binding, ConsoleLevel, Failure, HostError, HostMessage, JsError, Language, Limits, Place, Ready, STREAMS,
    SandboxReport, Start, StreamRequest, WasmModule, WorkerMessage,
};
use pydeno_wire::{Budget, EncodeError, Message, Text, Value};

use crate::clock::Nanos;
use crate::options::Options;
use crate::session::request::Request;
pub(crate) use crate::session::request::Stopping;

mod request;

/// The most calls that wait inside one another. The worker allows fewer.
const MAX_NESTING: usize = 32;
/// The most notes on dropped console text that are passed on while a request runs. Others that overlap it may end, and each tells.
const MAX_CONSOLE_NOTES: u32 = 64;

/// One conversation.
#[derive(Debug)]
pub(crate) struct Session {
    state: State,
    reader: FrameReader,
    output: Vec<u8>,
    budget: Budget,
    limits: SessionLimits,
    /// Whether each function is asynchronous, by number.
    functions: Vec<bool>,
    /// Whether streams of the host cross, which the guest may then ask.
    streams: Arc<AtomicBool>,
    last_request: u64,
    last_call: Option<u64>,
    /// What has not ended, oldest first.
    requests: Vec<Request>,
    /// The synchronous calls that the guest waits for, innermost last.
    blocked: Vec<u64>,
    /// The request of each asynchronous call that is not answered.
    in_flight: HashMap<u64, u64>,
    /// Requests, answers to asynchronous calls, and cancellations that were sent since the start: whatever makes a
    /// worker that waits go on.
    sent: u64,
    /// The guest's clock: how long it has run, without what it is running now.
    ran: Duration,
    /// What the worker was told last of how its answers are waited for.
    attentive: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLimits {
    pub(crate) timeout: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) max_host_wait: Duration,
    max_host_calls: u64,
    max_inflight_host_calls: u64,
    console: bool,
}

/// What the worker does.
#[derive(Clone, Copy, Debug)]
enum State {
    Starting,
    /// Nothing: there is no request.
    Idle,
    /// It runs the guest, or is about to.
    Running {
        since: Nanos,
    },
    /// The guest stands still until the innermost synchronous call is answered.
    Blocked,
    /// Nothing is left to run before an asynchronous call is answered.
    Waiting,
    Ended,
}

/// What a message of the worker means to the driver.
#[derive(Debug, PartialEq)]
pub(crate) enum Event {
    /// The worker is confined and has a context.
    Ready(Ready),
    /// The worker has ended because its sandbox is not what was asked for.
    Refused(SandboxReport),
    /// A host function is called; the session waits for [`Session::answer`].
    Call(Call),
    Console {
        level: ConsoleLevel,
        text: Text,
    },
    /// A request has ended.
    Done(Done),
}

/// A call of a host function.
#[derive(Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: u64,
    pub(crate) request: u64,
    pub(crate) function: u32,
    pub(crate) arguments: Vec<Value>,
    /// Whether the guest goes on meanwhile.
    pub(crate) asynchronous: bool,
}

/// How a request ended.
#[derive(Debug, PartialEq)]
pub(crate) struct Done {
    pub(crate) request: u64,
    pub(crate) outcome: Result<Value, Failure>,
    /// Why the host had asked for its end, if it had.
    pub(crate) stopped: Option<Stopping>,
    /// Promises that were rejected and that nothing handled.
    pub(crate) unhandled: Vec<JsError>,
    /// Its asynchronous calls whose answers nobody waits for any more.
    pub(crate) given_up: Vec<u64>,
}

/// Something the worker must not do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Violation(pub(crate) String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Session {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Starting,
            reader: FrameReader::new(Self::START_FRAME),
            output: Vec::new(),
            budget: Budget { bytes: 0, nodes: 0, depth: 0 },
            limits: SessionLimits {
                timeout: Duration::ZERO,
                request_timeout: Duration::ZERO,
                max_host_wait: Duration::ZERO,
                max_host_calls: 0,
                max_inflight_host_calls: 0,
                console: false,
            },
            functions: Vec::new(),
            streams: Arc::default(),
            last_request: 0,
            last_call: None,
            requests: Vec::new(),
            blocked: Vec::new(),
            in_flight: HashMap::new(),
            sent: 0,
            ran: Duration::ZERO,
            attentive: false,
        }
    }

    /// A worker's first words are a report of a few lines; nothing larger is accepted before its limits are known.
    const START_FRAME: usize = 256 << 10;

    /// Sets the limits and tells them to the worker; once, when it is ready.
    pub(crate) fn configure(&mut self, options: &Options) {
        self.limits = SessionLimits {
            timeout: options.timeout,
            request_timeout: options.request_timeout,
            max_host_wait: options.max_host_wait,
            max_host_calls: options.max_host_calls,
            max_inflight_host_calls: options.max_inflight_host_calls,
            console: options.console,
        };
        let limits = Limits {
            max_heap_bytes: options.max_heap_size,
            max_value_bytes: options.max_value_bytes,
            max_value_nodes: options.max_value_nodes,
            max_value_depth: options.max_value_depth,
            console: options.console,
        };
        self.budget = Budget::from(&limits);
        self.reader.set_limit(WorkerMessage::max_encoded_bytes(&self.budget));
        let start = Start {
            limits,
            clock: options.clock,
            random_seed: options.random_seed,
            strict_eval: options.strict_eval,
            web: options.web,
        };
        self.push_small(&HostMessage::Start(start));
    }

    /// Makes host functions visible, numbered from the number returned; `asynchronous` has an entry for each name.
    ///
    /// # Errors
    ///
    /// A name, or the list of them, is longer than a message may hold: nothing was sent.
    pub(crate) fn bind(
        &mut self,
        place: &Place,
        names: &[Text],
        asynchronous: &[bool],
    ) -> Result<u32, EncodeError> {
        debug_assert_eq!(names.len(), asynchronous.len());
        let first = self.functions.len() as u32;
        let bindings = (first..)
            .zip(names.iter().zip(asynchronous))
            .map(|(function, (name, &asynchronous))| Binding {
                function,
                place: place.clone(),
                name: name.clone(),
                asynchronous,
            })
            .collect();
        self.push(&HostMessage::Bind(bindings))?;
        self.functions.extend_from_slice(asynchronous);
        Ok(first)
    }

    /// The switch that lets streams of the host cross; off at first.
    pub(crate) fn streams(&self) -> &Arc<AtomicBool> {
        &self.streams
    }

    /// Starts an evaluation and returns its number. With `redeclare`, what its top level declares can be declared again.
    ///
    /// # Errors
    ///
    /// The source or its name is longer than a message may hold: nothing was sent.
    pub(crate) fn eval(
        &mut self,
        now: Nanos,
        source: Text,
        name: String,
        language: Language,
        redeclare: bool,
    ) -> Result<u64, EncodeError> {
        let id = self.last_request + 1;
        let timeout_ms = self.timeout_ms();
        self.push(&HostMessage::Eval { id, source, name, language, redeclare, timeout_ms })?;
        self.begin(now, id);
        Ok(id)
    }

    /// Starts the evaluation of a module and returns its number.
    ///
    /// # Errors
    ///
    /// As [`eval`](Self::eval).
    pub(crate) fn eval_module(
        &mut self,
        now: Nanos,
        source: Text,
        name: String,
        language: Language,
    ) -> Result<u64, EncodeError> {
        let id = self.last_request + 1;
        self.push(&HostMessage::EvalModule { id, source, name, language, timeout_ms: self.timeout_ms() })?;
        self.begin(now, id);
        Ok(id)
    }

    /// Starts the loading of a module and returns its number, and that of the function that is its first import; the others
    /// follow.
    ///
    /// # Errors
    ///
    /// The module is longer than a message may hold: nothing was sent.
    pub(crate) fn load_wasm(&mut self, now: Nanos, module: WasmModule) -> Result<(u64, u32), EncodeError> {
        let id = self.last_request + 1;
        let first_function = self.functions.len() as u32;
        let (imports, exports) = (module.imports.len(), module.exports.clone());
        let timeout_ms = self.timeout_ms();
        self.push(&HostMessage::LoadWasm { id, module, first_function, timeout_ms })?;
        self.functions.resize(self.functions.len() + imports, false);
        self.begin(now, id);
        if let Some(request) = self.request(id) {
            request.loads = Some(exports);
        }
        Ok((id, first_function))
    }

    /// Calls a function of the guest and returns the invocation's number.
    ///
    /// # Errors
    ///
    /// The arguments are over budget or too deep: nothing was sent.
    pub(crate) fn invoke(
        &mut self,
        now: Nanos,
        function: u64,
        arguments: Vec<Value>,
    ) -> Result<u64, EncodeError> {
        let id = self.last_request + 1;
        let within = self.blocked.last().copied();
        let timeout_ms = self.timeout_ms();
        self.push(&HostMessage::Invoke { id, function, arguments, timeout_ms, within })?;
        self.begin(now, id);
        Ok(id)
    }

    /// Asks a stream of the guest and returns the request's number.
    pub(crate) fn pull(&mut self, now: Nanos, stream: u64, what: StreamRequest) -> u64 {
        let id = self.last_request + 1;
        let timeout_ms = self.timeout_ms();
        self.push_small(&HostMessage::Pull { id, stream, what, timeout_ms });
        self.begin(now, id);
        if let Some(request) = self.request(id) {
            request.asks_stream = true;
        }
        id
    }

    fn begin(&mut self, now: Nanos, id: u64) {
        self.last_request = id;
        self.requests.push(Request::new(id, self.blocked.len(), now, self.ran_until(now)));
        self.sent += 1;
        self.run(now);
    }

    fn timeout_ms(&self) -> u64 {
        u64::try_from(self.limits.timeout.as_millis()).unwrap_or(u64::MAX)
    }

    /// Lets go of functions and streams of the guest.
    pub(crate) fn release(&mut self, functions: &[u64]) {
        for some in functions.chunks(bounds::RELEASED) {
            self.push_small(&HostMessage::Release(some.to_vec()));
        }
    }

    /// Tells the worker, with what is said next, whether its answers are looked for without sleeping.
    pub(crate) fn set_attentive(&mut self, attentive: bool) {
        if attentive != self.attentive {
            self.attentive = attentive;
            self.push_small(&HostMessage::Attentive(attentive));
        }
    }

    /// Answers a call. One that was given up meanwhile needs no answer, and none is sent.
    ///
    /// # Errors
    ///
    /// The value is over budget or too deep: nothing was sent, and the session still waits for an answer.
    pub(crate) fn answer(
        &mut self,
        now: Nanos,
        call: u64,
        outcome: Result<Value, HostError>,
    ) -> Result<(), EncodeError> {
        if self.blocked.last() == Some(&call) {
            self.push(&HostMessage::Answer { id: call, outcome })?;
            self.blocked.pop();
            self.run(now);
        } else if let Some(&request) = self.in_flight.get(&call) {
            self.push(&HostMessage::Answer { id: call, outcome })?;
            self.in_flight.remove(&call);
            if let Some(request) = self.request(request) {
                request.in_flight -= 1;
            }
            self.sent += 1;
            self.wake(now);
        }
        Ok(())
    }

    /// Asks the worker to stop a request; it then ends as [`Event::Done`].
    pub(crate) fn stop(&mut self, now: Nanos, request: u64, why: Stopping) {
        let Some(request) = self.request(request) else { return };
        if request.stopping.is_none() {
            request.stopping = Some(why);
            let id = request.id;
            self.push_small(&HostMessage::Cancel { id });
            self.sent += 1;
            self.wake(now);
        }
    }

    /// Whether a request has been asked to end.
    pub(crate) fn is_stopping(&self, request: u64) -> bool {
        self.requests.iter().any(|other| other.id == request && other.stopping.is_some())
    }

    /// Stops what has waited for host functions too long, and says when to look again.
    pub(crate) fn tick(&mut self, now: Nanos) -> Nanos {
        let ran = self.ran_until(now);
        let mut next = Nanos(u64::MAX);
        let mut late = Vec::new();
        for request in self.requests.iter().filter(|request| request.stopping.is_none()) {
            let (until, why) = request.patience(&self.limits, ran);
            if until <= now { late.push((request.id, why)) } else { next = next.min(until) }
        }
        for (request, why) in late {
            self.stop(now, request, why);
        }
        next
    }

    /// When the worker must be killed if it has not said anything else by then.
    pub(crate) fn deadline(&self) -> Nanos {
        let running = match self.state {
            State::Running { since } => Some(since),
            _ => None,
        };
        let deadlines = self.requests.iter().map(|request| request.deadline(&self.limits, self.ran, running));
        deadlines.min().unwrap_or(Nanos(u64::MAX))
    }

    /// Whether nothing has been asked of the worker that it has not answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether the guest stands still, inside a synchronous call.
    pub(crate) fn is_blocked(&self) -> bool {
        matches!(self.state, State::Blocked)
    }

    /// Whether nothing is left to run before an asynchronous call is answered.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting)
    }

    /// What is to be written to the worker; emptied by the driver.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Where what the worker wrote is to be put.
    pub(crate) fn reader(&mut self) -> &mut FrameReader {
        &mut self.reader
    }

    /// The next thing that the received bytes say, or `None` when more bytes are needed.
    pub(crate) fn next_event(&mut self, now: Nanos) -> Result<Option<Event>, Violation> {
        loop {
            let message = match self.reader.next_message(&self.budget) {
                Ok(None) => return Ok(None),
                Ok(Some(decoded)) => decoded
                    .map_err(|error| self.violation(format!("a message that does not decode: {error}")))?,
                Err(error) => return Err(self.violation(error.to_string())),
            };
            if let Some(event) = self.accept(now, message)? {
                return Ok(Some(event));
            }
        }
    }

    fn accept(&mut self, now: Nanos, message: WorkerMessage) -> Result<Option<Event>, Violation> {
        match (self.state, message) {
            (State::Starting, WorkerMessage::Ready(ready)) => {
                if ready.build != BUILD {
                    return Err(self.violation(format!("build {:?} instead of {BUILD}", ready.build)));
                }
                self.state = State::Idle;
                Ok(Some(Event::Ready(ready)))
            }
            (State::Starting, WorkerMessage::Refused(report)) => {
                self.state = State::Ended;
                Ok(Some(Event::Refused(report)))
            }
            (State::Running { .. }, WorkerMessage::Call { id, request, function, arguments }) => {
                self.called(now, id, request, function, arguments)
            }
            (State::Running { .. }, WorkerMessage::Waiting { taken }) => {
                self.waits(now, taken)?;
                Ok(None)
            }
            (State::Running { .. }, WorkerMessage::Console { level, text }) if self.limits.console => {
                let Some(oldest) = self.requests.first_mut() else { return Ok(None) };
                let line = text.len_bytes() + CONSOLE_LINE_BYTES;
                oldest.console_bytes = oldest.console_bytes.saturating_add(line);
                let within = oldest.console_bytes <= CONSOLE_BYTES;
                Ok(within.then_some(Event::Console { level, text }))
            }
            (State::Running { .. }, WorkerMessage::ConsoleDropped { lines, bytes })
                if self.limits.console =>
            {
                let Some(oldest) = self.requests.first_mut() else { return Ok(None) };
                oldest.console_notes += 1;
                let told = oldest.console_notes <= MAX_CONSOLE_NOTES;
                Ok(told.then(|| Event::Console { level: ConsoleLevel::Dropped, text: dropped(lines, bytes) }))
            }
            (State::Running { .. }, WorkerMessage::Done { id, outcome, unhandled }) => {
                self.done(now, id, outcome, unhandled).map(Some)
            }
            (state, message) => {
                let what = format!("{} while {}", name_of(&message), state.name());
                Err(self.violation(what))
            }
        }
    }

    fn called(
        &mut self,
        now: Nanos,
        id: u64,
        request: u64,
        function: u32,
        arguments: Vec<Value>,
    ) -> Result<Option<Event>, Violation> {
        let asynchronous = match self.functions.get(function as usize) {
            Some(&asynchronous) => asynchronous,
            // Which streams there are is known to whoever gives them out.
            None if function == STREAMS && self.streams.load(Ordering::Relaxed) => true,
            None => {
                let what = format!("a call of function {function} of {}", self.functions.len());
                return Err(self.violation(what));
            }
        };
        if self.last_call.is_some_and(|last| id <= last) {
            return Err(self.violation(format!("call {id} after call {}", self.last_call.unwrap_or(0))));
        }
        self.last_call = Some(id);
        let limits = self.limits;
        let Some(caller) = self.request(request) else {
            return Err(self.violation(format!("a call for request {request}, which does not run")));
        };
        caller.calls += 1;
        let mut why = caller.stopping;
        if asynchronous {
            caller.in_flight += 1;
            if caller.in_flight > limits.max_inflight_host_calls {
                why.get_or_insert(Stopping::InflightLimit);
            }
            self.in_flight.insert(id, request);
        } else {
            self.ran = self.ran_until(now);
            self.state = State::Blocked;
            self.blocked.push(id);
            if self.blocked.len() > MAX_NESTING {
                return Err(self.violation("calls that are nested without end".to_owned()));
            }
        }
        if self.request(request).is_some_and(|caller| caller.calls > limits.max_host_calls) {
            why.get_or_insert(Stopping::HostCallBudget);
        }
        if let Some(why) = why {
            self.stop(now, request, why);
            let refusal =
                HostError { name: "Error".into(), message: "the evaluation is being stopped".into() };
            self.answer(now, id, Err(refusal)).map_err(|error| self.violation(error.to_string()))?;
            return Ok(None);
        }
        Ok(Some(Event::Call(Call { id, request, function, arguments, asynchronous })))
    }

    fn waits(&mut self, now: Nanos, taken: u64) -> Result<(), Violation> {
        if !self.blocked.is_empty() {
            return Err(self.violation("a wait inside a call".to_owned()));
        }
        if taken > self.sent {
            return Err(self.violation(format!("{taken} messages taken of {}", self.sent)));
        }
        // Otherwise something crossed it, and the worker goes on.
        if taken == self.sent {
            if self.in_flight.is_empty() {
                return Err(self.violation("a wait for nothing".to_owned()));
            }
            self.ran = self.ran_until(now);
            self.state = State::Waiting;
        }
        Ok(())
    }

    fn done(
        &mut self,
        now: Nanos,
        id: u64,
        outcome: Result<Value, Failure>,
        unhandled: Vec<JsError>,
    ) -> Result<Event, Violation> {
        let nesting = self.blocked.len();
        let Some(index) =
            self.requests.iter().position(|request| request.id == id && request.nesting == nesting)
        else {
            return Err(self.violation(format!("a result of request {id}, which does not run")));
        };
        let request = self.requests.remove(index);
        if outcome == Err(Failure::StreamEnded) && !request.asks_stream {
            return Err(self.violation("the end of a stream that was not asked".to_owned()));
        }
        if outcome.as_ref().is_ok_and(|value| !request.may_be(value)) {
            return Err(self.violation("exports that the module does not have".to_owned()));
        }
        if outcome.is_ok() && request.in_flight > 0 {
            return Err(self.violation("a result before its calls were answered".to_owned()));
        }
        let given_up: Vec<u64> =
            self.in_flight.iter().filter(|&(_, &caller)| caller == id).map(|(&call, _)| call).collect();
        self.in_flight.retain(|_, &mut caller| caller != id);
        let rest = self.requests.iter().any(|request| request.nesting == nesting);
        self.ran = self.ran_until(now);
        self.state = match (nesting, rest) {
            (0, false) => State::Idle,
            (_, true) => State::Running { since: now },
            (_, false) => State::Blocked,
        };
        Ok(Event::Done(Done { request: id, outcome, stopped: request.stopping, unhandled, given_up }))
    }

    fn request(&mut self, id: u64) -> Option<&mut Request> {
        self.requests.iter_mut().find(|request| request.id == id)
    }

    /// The worker goes on, if it waits.
    fn wake(&mut self, now: Nanos) {
        if matches!(self.state, State::Waiting) {
            self.run(now);
        }
    }

    /// The guest runs, if it did not already.
    fn run(&mut self, now: Nanos) {
        if !matches!(self.state, State::Running { .. }) {
            self.state = State::Running { since: now };
        }
    }

    /// The guest's clock at this moment.
    fn ran_until(&self, now: Nanos) -> Duration {
        match self.state {
            State::Running { since } => self.ran + now.since(since),
            _ => self.ran,
        }
    }

    fn push(&mut self, message: &HostMessage) -> Result<(), EncodeError> {
        encode_frame(&mut self.output, message, &self.budget)
    }

    /// Says something that is only numbers.
    fn push_small(&mut self, message: &HostMessage) {
        self.push(message).expect("a message of a few numbers is within every bound");
    }

    fn violation(&mut self, what: String) -> Violation {
        self.state = State::Ended;
        Violation(what)
    }
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Starting => "it was to report its sandbox",
            Self::Idle => "nothing was asked of it",
            Self::Running { .. } => "it was to evaluate",
            Self::Blocked => "it was to wait for a host function",
            Self::Waiting => "it had nothing to run",
            Self::Ended => "the conversation was over",
        }
    }
}

/// The note on console text that was dropped.
fn dropped(lines: u64, bytes: u64) -> Text {
    let text = format!(
        "(console output was dropped: {lines} more lines, {bytes} bytes; one evaluation may write {CONSOLE_BYTES} bytes)"
    );
    Text::from(text)
}

fn name_of(message: &WorkerMessage) -> &'static str {
    match message {
        WorkerMessage::Ready(_) => "a readiness report",
        WorkerMessage::Refused(_) => "a refusal",
        WorkerMessage::Call { .. } => "a call",
        WorkerMessage::Waiting { .. } => "a wait",
        WorkerMessage::Console { .. } => "console text",
        WorkerMessage::ConsoleDropped { .. } => "a note on console text",
        WorkerMessage::Done { .. } => "a result",
    }
}

#[cfg(test)]
mod tests;
