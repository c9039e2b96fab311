//! The conversation with one worker as a state machine without input or output.
//!
//! A driver feeds it bytes and clock readings and carries out what it asks for; a blocking and an asynchronous one share
//! all of it. Every message of the worker is checked against what the state allows; the first that does not fit is
//! a [`Violation`], after which the session says nothing more.

use std::fmt;
use std::time::Duration;

use pydeno_wire::frame::{FrameReader, encode_frame};
use pydeno_wire::message::BUILD;
use pydeno_wire::message::{
    Binding, ConsoleLevel, Failure, HostError, HostMessage, Limits, Ready, SandboxReport, Start,
    WorkerMessage,
};
use pydeno_wire::{Budget, EncodeError, Message, Text, Value};

use crate::clock::Nanos;
use crate::options::Options;

/// What the engine may need beyond `timeout` to notice that it has passed, before the host stops the worker itself.
const GRACE: Duration = Duration::from_millis(500);
/// Console text that one evaluation may send, in bytes; what goes beyond is dropped.
const MAX_CONSOLE_BYTES: usize = 1 << 20;

/// One conversation.
#[derive(Debug)]
pub(crate) struct Session {
    state: State,
    reader: FrameReader,
    output: Vec<u8>,
    budget: Budget,
    limits: SessionLimits,
    functions: u32,
    last_request: u64,
    last_call: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct SessionLimits {
    timeout: Duration,
    request_timeout: Duration,
    max_host_calls: u64,
    console: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Starting,
    Idle,
    Running { request: Request, resumed: Nanos },
    HostCall { request: Request, call: u64 },
    Ended,
}

/// The evaluation that runs.
#[derive(Clone, Copy, Debug)]
struct Request {
    id: u64,
    started: Nanos,
    /// Time the guest has run, host functions not counted.
    used: Duration,
    calls: u64,
    console_bytes: usize,
    stopping: Option<Stopping>,
}

/// Why the host asked for the evaluation's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopping {
    /// The caller wanted it.
    Cancelled,
    /// It called too many host functions.
    HostCallBudget,
}

/// What a message of the worker means to the driver.
#[derive(Debug, PartialEq)]
pub(crate) enum Event {
    /// The worker is confined and has a context.
    Ready(Ready),
    /// The worker has ended because its sandbox is not what was asked for.
    Refused(SandboxReport),
    /// A host function is called; the session waits for [`Session::answer`].
    Call {
        function: u32,
        arguments: Vec<Value>,
    },
    Console {
        level: ConsoleLevel,
        text: Text,
    },
    /// The evaluation has ended.
    Done {
        outcome: Result<Value, Failure>,
        stopped: Option<Stopping>,
    },
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
                max_host_calls: 0,
                console: false,
            },
            functions: 0,
            last_request: 0,
            last_call: None,
        }
    }

    /// A worker's first words are a report of a few lines; nothing larger is accepted before its limits are known.
    const START_FRAME: usize = 256 << 10;

    /// Sets the limits and tells them to the worker; once, when it is ready.
    pub(crate) fn configure(&mut self, options: &Options) {
        self.limits = SessionLimits {
            timeout: options.timeout,
            request_timeout: options.request_timeout,
            max_host_calls: options.max_host_calls,
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
        let start = Start { limits, clock: None, random_seed: None, strict_eval: false };
        self.push(&HostMessage::Start(start)).expect("a message of a few numbers is within every bound");
    }

    /// Makes host functions visible, numbered from the number returned.
    ///
    /// # Errors
    ///
    /// A name, or the list of them, is longer than a message may hold: nothing was sent.
    pub(crate) fn bind(&mut self, object: Option<&Text>, names: &[Text]) -> Result<u32, EncodeError> {
        let first = self.functions;
        let bindings = (first..)
            .zip(names)
            .map(|(function, name)| Binding {
                function,
                object: object.cloned(),
                name: name.clone(),
                asynchronous: false,
            })
            .collect();
        self.push(&HostMessage::Bind(bindings))?;
        self.functions += names.len() as u32;
        Ok(first)
    }

    /// Starts an evaluation; the number is its name in [`crate::watch::Watch`].
    ///
    /// # Errors
    ///
    /// The source or its name is longer than a message may hold: nothing was sent.
    pub(crate) fn eval(&mut self, now: Nanos, source: Text, name: String) -> Result<u64, EncodeError> {
        debug_assert!(matches!(self.state, State::Idle), "the driver evaluates one script at a time");
        let id = self.last_request + 1;
        let timeout_ms = u64::try_from(self.limits.timeout.as_millis()).unwrap_or(u64::MAX);
        self.push(&HostMessage::Eval { id, source, name, timeout_ms })?;
        self.last_request = id;
        let request =
            Request { id, started: now, used: Duration::ZERO, calls: 0, console_bytes: 0, stopping: None };
        self.state = State::Running { request, resumed: now };
        Ok(id)
    }

    /// Answers the call that the session waits for.
    ///
    /// # Errors
    ///
    /// The value is over budget or too deep: nothing was sent, and the session still waits for an answer.
    pub(crate) fn answer(
        &mut self,
        now: Nanos,
        outcome: Result<Value, HostError>,
    ) -> Result<(), EncodeError> {
        let State::HostCall { request, call } = self.state else {
            unreachable!("the driver answers only what was called")
        };
        self.push(&HostMessage::Answer { id: call, outcome })?;
        self.state = State::Running { request, resumed: now };
        Ok(())
    }

    /// Asks the worker to stop what it evaluates; it then ends as [`Event::Done`].
    pub(crate) fn stop(&mut self, why: Stopping) {
        let (State::Running { request, .. } | State::HostCall { request, .. }) = &mut self.state else {
            return;
        };
        if request.stopping.is_none() {
            request.stopping = Some(why);
            let id = request.id;
            self.push(&HostMessage::Cancel { id }).expect("a message of a few numbers is within every bound");
        }
    }

    /// When the worker must be killed if it has not said anything else by then.
    pub(crate) fn deadline(&self) -> Nanos {
        match &self.state {
            State::Running { request, resumed } => {
                let whole = request.started.plus(self.limits.request_timeout);
                let left = self.limits.timeout.saturating_sub(request.used);
                resumed.plus(left + GRACE).min(whole)
            }
            State::HostCall { request, .. } => request.started.plus(self.limits.request_timeout),
            State::Starting | State::Idle | State::Ended => Nanos(u64::MAX),
        }
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
            let message = match self.reader.next_frame() {
                Ok(None) => return Ok(None),
                Ok(Some(payload)) => WorkerMessage::decode(payload, &self.budget)
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
            (State::Running { request, resumed }, WorkerMessage::Call { id, function, arguments, .. }) => {
                self.called(now, request, resumed, id, function, arguments)
            }
            (State::Running { mut request, resumed }, WorkerMessage::Console { level, text })
                if self.limits.console =>
            {
                request.console_bytes += text.len_bytes();
                let within = request.console_bytes <= MAX_CONSOLE_BYTES;
                self.state = State::Running { request, resumed };
                Ok(within.then_some(Event::Console { level, text }))
            }
            (State::Running { request, .. }, WorkerMessage::Done { id, outcome, .. }) if id == request.id => {
                self.state = State::Idle;
                Ok(Some(Event::Done { outcome, stopped: request.stopping }))
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
        mut request: Request,
        resumed: Nanos,
        id: u64,
        function: u32,
        arguments: Vec<Value>,
    ) -> Result<Option<Event>, Violation> {
        if function >= self.functions {
            return Err(self.violation(format!("a call of function {function} of {}", self.functions)));
        }
        if self.last_call.is_some_and(|last| id <= last) {
            return Err(self.violation(format!("call {id} after call {}", self.last_call.unwrap_or(0))));
        }
        self.last_call = Some(id);
        request.used += now.since(resumed);
        request.calls += 1;
        let over_budget = request.calls > self.limits.max_host_calls;
        self.state = State::HostCall { request, call: id };
        if over_budget {
            self.stop(Stopping::HostCallBudget);
        }
        if over_budget || request.stopping.is_some() {
            let refusal =
                HostError { name: "Error".into(), message: "the evaluation is being stopped".into() };
            self.answer(now, Err(refusal)).map_err(|error| self.violation(error.to_string()))?;
            return Ok(None);
        }
        Ok(Some(Event::Call { function, arguments }))
    }

    fn push(&mut self, message: &HostMessage) -> Result<(), EncodeError> {
        encode_frame(&mut self.output, message, &self.budget)
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
            Self::HostCall { .. } => "it was to wait for a host function",
            Self::Ended => "the conversation was over",
        }
    }
}

fn name_of(message: &WorkerMessage) -> &'static str {
    match message {
        WorkerMessage::Ready(_) => "a readiness report",
        WorkerMessage::Refused(_) => "a refusal",
        WorkerMessage::Call { .. } => "a call",
        WorkerMessage::Waiting { .. } => "a wait",
        WorkerMessage::Console { .. } => "console text",
        WorkerMessage::Done { .. } => "a result",
    }
}

#[cfg(test)]
mod tests;
