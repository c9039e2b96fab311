//! A worker at work: a loop over what the host asks.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use pydeno_engine::{Bound, Ended, EvalLimits, HookTime, HostFunction, Isolate, Module, Script, StepLimits};
use pydeno_wire::message::{
    Binding, CONSOLE_BYTES, CONSOLE_LINE_BYTES, ConsoleLevel, Failure, HostError, HostMessage, JsError,
    Limits, STREAMS, Start, WorkerMessage,
};
use pydeno_wire::{Budget, EncodeError, Stream, StreamOwner, Text, Value};

use crate::link::Link;
use crate::process;

/// The exit code of a worker that could not go on.
pub(crate) const FAILED: i32 = 1;

/// The loop over what the host asks, and what its parts share. Guest code runs inside most of its methods and calls back
/// into others, so nothing is borrowed while it does.
pub(crate) struct Worker {
    isolate: Isolate,
    link: RefCell<Link>,
    limits: Limits,
    last_call: Cell<u64>,
    /// How much may be written to the console until nothing runs or waits.
    console_left: Cell<usize>,
    /// How many lines, and how many bytes of text, were not written since that was told.
    console_dropped: Cell<(u64, u64)>,
    /// Requests, answers to asynchronous calls, and cancellations that were taken so far.
    taken: Cell<u64>,
    /// The requests on whose behalf the guest runs now, innermost last.
    running: RefCell<Vec<u64>>,
    /// Those of them that the host wants stopped.
    cancelled: RefCell<Vec<u64>>,
    /// The request of each asynchronous call that is not answered.
    in_flight: RefCell<HashMap<u64, u64>>,
    /// What came while the guest waited for a synchronous call and has to wait for the guest.
    later: RefCell<VecDeque<HostMessage>>,
    /// What ended while the guest waited for a synchronous call.
    ended: RefCell<Vec<Ended>>,
    /// A binding that the guest's own globals forbid. Bindings are not answered, so the next evaluation says it.
    refused_binding: Cell<Option<Failure>>,
    /// Why nothing can be evaluated: something that was asked for at the start is not to be had of this engine.
    unusable: Option<Failure>,
}

impl Worker {
    /// A worker in this world, which could be made as the host wants it or could not.
    pub(crate) fn new(isolate: Isolate, link: Link, start: &Start, prepared: Result<(), String>) -> Rc<Self> {
        let unusable = prepared.err().map(|reason| Failure::Js(type_error(&reason)));
        let worker = Rc::new(Self {
            isolate,
            link: RefCell::new(link),
            limits: start.limits,
            last_call: Cell::new(0),
            console_left: Cell::new(CONSOLE_BYTES),
            console_dropped: Cell::default(),
            taken: Cell::new(0),
            running: RefCell::default(),
            cancelled: RefCell::default(),
            in_flight: RefCell::default(),
            later: RefCell::default(),
            ended: RefCell::default(),
            refused_binding: Cell::new(None),
            unusable,
        });
        let streams = Rc::downgrade(&worker);
        worker.isolate.set_host_streams(Box::new(move |request, arguments| match streams.upgrade() {
            Some(worker) => worker.start_call(request, STREAMS, arguments),
            None => process::exit(FAILED),
        }));
        if start.limits.console {
            let console = Rc::downgrade(&worker);
            let hook = Box::new(move |level, text| {
                if let Some(worker) = console.upgrade() {
                    worker.tell_console(level, text);
                }
            });
            // The host's deadline knows nothing of lines.
            worker.isolate.set_console(hook, HookTime::Guest);
        }
        worker
    }

    /// Does what the host asks until it hangs up.
    pub(crate) fn serve(self: &Rc<Self>) -> io::Result<()> {
        loop {
            let later = self.later.borrow_mut().pop_front();
            let timer = self.isolate.next_timer();
            let message = match (later, timer) {
                (Some(message), _) => Some(message),
                // What the host says comes first: it may want the request stopped whose timers go off for ever.
                (None, Some(_)) => self.link.borrow_mut().receive_at_once()?,
                (None, None) => Some(self.link.borrow_mut().receive()?),
            };
            match (message, timer) {
                (Some(HostMessage::Start(_)), _) => {
                    return Err(io::Error::other("limits for a second time"));
                }
                (Some(message), _) => self.take(message),
                (None, Some(request)) => self.step(request, |cancelled| {
                    self.isolate.fire_timers(&StepLimits { cancelled });
                }),
                (None, None) => {}
            }
            self.tell_ended();
            let mut link = self.link.borrow_mut();
            let has_nothing_to_run = self.isolate.next_timer().is_none() && self.later.borrow().is_empty();
            if self.isolate.is_pending() && has_nothing_to_run {
                // A message of a number is within every bound.
                let _ = link.queue(&WorkerMessage::Waiting { taken: self.taken.get() });
            }
            link.flush();
        }
    }

    /// The guest's world; the link is closed.
    pub(crate) fn into_isolate(self) -> Isolate {
        self.isolate
    }

    /// Does what a message asks for.
    fn take(self: &Rc<Self>, message: HostMessage) {
        match message {
            HostMessage::Bind(bindings) => bindings.into_iter().for_each(|binding| self.bind(binding)),
            HostMessage::Eval { id, source, name, language, redeclare, timeout_ms } => {
                let script = Script { source: &source, name: &name, language, redeclare };
                self.request(id, timeout_ms, |limits| {
                    self.isolate.begin_script(id, &script, limits);
                });
            }
            HostMessage::EvalModule { id, source, name, language, timeout_ms } => {
                let module = Module { source: &source, name: &name, language };
                self.request(id, timeout_ms, |limits| self.isolate.begin_module(id, &module, limits));
            }
            HostMessage::LoadWasm { id, module, first_function, timeout_ms } => {
                let functions =
                    (first_function..).take(module.imports.len()).map(|function| self.synchronous(function));
                let functions: Vec<HostFunction> = functions.collect();
                self.request(id, timeout_ms, |limits| {
                    self.isolate.begin_load_wasm(id, &module, functions, limits);
                });
            }
            HostMessage::Invoke { id, function, arguments, timeout_ms, within: _ } => {
                self.request(id, timeout_ms, |limits| {
                    self.isolate.begin_invoke(id, function, &arguments, limits);
                });
            }
            HostMessage::Pull { id, stream, what, timeout_ms } => {
                self.request(id, timeout_ms, |limits| self.isolate.begin_pull(id, stream, what, limits));
            }
            HostMessage::Answer { id, outcome } => {
                self.count();
                let request = self.in_flight.borrow_mut().remove(&id);
                if let Some(request) = request {
                    self.step(request, |cancelled| {
                        self.isolate.settle(id, outcome, &StepLimits { cancelled });
                    });
                }
            }
            HostMessage::Cancel { id } => {
                self.count();
                self.isolate.cancel(id);
            }
            HostMessage::Release(functions) => self.isolate.release(&functions),
            // What comes twice ends the process elsewhere, and how the host waits is the link's affair.
            HostMessage::Start(_) | HostMessage::Attentive(_) => {}
        }
    }

    fn count(&self) {
        self.taken.set(self.taken.get() + 1);
    }

    /// Begins a request, unless there is a reason why none can be.
    fn request(&self, id: u64, timeout_ms: u64, begin: impl FnOnce(&EvalLimits<'_>)) {
        self.count();
        if self.running.borrow().is_empty() && !self.isolate.is_pending() {
            self.console_left.set(CONSOLE_BYTES);
        }
        let refusal = self.unusable.clone().or_else(|| self.refused_binding.take());
        if let Some(failure) = refusal {
            self.queue_done(id, Err(failure), Vec::new());
            return;
        }
        self.step(id, |cancelled| {
            begin(&EvalLimits {
                timeout: Duration::from_millis(timeout_ms),
                cancelled,
                max_heap_bytes: self.limits.max_heap_bytes,
                budget: Budget::from(&self.limits),
            });
        });
    }

    /// Runs the guest on behalf of a request.
    fn step(&self, request: u64, run: impl FnOnce(&dyn Fn() -> bool)) {
        self.running.borrow_mut().push(request);
        run(&|| self.is_cancelled());
        self.running.borrow_mut().pop();
        if self.running.borrow().is_empty() {
            self.cancelled.borrow_mut().clear();
        }
    }

    /// Whether the host wants the guest stopped. Asked now and then while it runs, so this is also when calls that it
    /// has started meanwhile go out.
    fn is_cancelled(&self) -> bool {
        // A guest that is stopped in the middle of a message, in a host function, is asked again later.
        let Ok(mut link) = self.link.try_borrow_mut() else { return false };
        link.flush();
        let running = self.running.borrow();
        // A request may have been put off, and its end with it.
        let is_meant =
            |message: &HostMessage| matches!(message, HostMessage::Cancel { id } if running.contains(id));
        self.cancelled.borrow().iter().any(|id| running.contains(id))
            || self.later.borrow().iter().any(is_meant)
            || link.is_cancelled(&running).unwrap_or(true)
    }

    /// Queues the outcomes of the requests that have ended.
    fn tell_ended(&self) {
        let mut ended: Vec<Ended> = self.ended.take();
        ended.extend(std::iter::from_fn(|| self.isolate.take_ended()));
        for ended in ended {
            self.tell(ended);
        }
    }

    /// Queues the outcome of a request that has ended inside a synchronous call. What else has ended meanwhile is told
    /// when the guest has left the call.
    fn tell_nested(&self, request: u64) {
        while let Some(ended) = self.isolate.take_ended() {
            if ended.request == request {
                self.tell(ended);
            } else {
                self.ended.borrow_mut().push(ended);
            }
        }
    }

    fn tell(&self, Ended { request, outcome, unhandled }: Ended) {
        self.in_flight.borrow_mut().retain(|_, caller| *caller != request);
        self.queue_done(request, outcome, unhandled);
    }

    /// Queues an outcome, or why it cannot cross after all.
    fn queue_done(&self, id: u64, outcome: Result<Value, Failure>, unhandled: Vec<JsError>) {
        let mut link = self.link.borrow_mut();
        let (lines, bytes) = self.console_dropped.take();
        if lines > 0 {
            // A message of two numbers is within every bound.
            let _ = link.queue(&WorkerMessage::ConsoleDropped { lines, bytes });
        }
        let mut done = WorkerMessage::Done { id, outcome, unhandled };
        if let Err(error) = link.queue(&done) {
            if let WorkerMessage::Done { outcome, .. } = &mut done {
                if let Ok(value) = outcome {
                    self.release_functions_in(value);
                }
                *outcome = Err(conversion_failure(&error));
            }
            // What is left are sentences, which are cut to their bounds.
            let _ = link.queue(&done);
        }
    }

    fn bind(self: &Rc<Self>, binding: Binding) {
        let Binding { function, place, name, asynchronous } = binding;
        let function = if asynchronous {
            let worker = Rc::downgrade(self);
            Bound::Asynchronous(Box::new(move |request, arguments| match worker.upgrade() {
                Some(worker) => worker.start_call(request, function, arguments),
                None => process::exit(FAILED),
            }))
        } else {
            Bound::Synchronous(self.synchronous(function))
        };
        let bound = self.isolate.bind_in(&place, &name, function);
        if let Err(error) = bound {
            let refusal = Failure::Js(type_error(&error.to_string()));
            let first = self.refused_binding.take();
            self.refused_binding.set(first.or(Some(refusal)));
        }
    }

    /// A function for the guest that waits for the host's.
    fn synchronous(self: &Rc<Self>, function: u32) -> HostFunction {
        let worker = Rc::downgrade(self);
        Box::new(move |request, arguments| match worker.upgrade() {
            Some(worker) => worker.call_host(request, function, arguments),
            None => process::exit(FAILED),
        })
    }

    /// Sends a line of the console, unless there were too many: sending waits for the host, and that is not the guest's
    /// time.
    fn tell_console(&self, level: ConsoleLevel, text: Text) {
        let line = text.len_bytes() + CONSOLE_LINE_BYTES;
        if let Some(left) = self.console_left.get().checked_sub(line) {
            self.console_left.set(left);
            // A line is cut to its bound, so it has no budget to pass.
            let _ = self.link.borrow_mut().send(&WorkerMessage::Console { level, text });
        } else {
            self.console_left.set(0);
            let (lines, bytes) = self.console_dropped.get();
            self.console_dropped.set((lines + 1, bytes + text.len_bytes() as u64));
        }
    }

    fn next_call(&self) -> u64 {
        self.last_call.set(self.last_call.get() + 1);
        self.last_call.get()
    }

    /// A call of an asynchronous host function. It goes out when the guest has nothing left to run, or with the next look
    /// at what the host wants.
    fn start_call(&self, request: u64, function: u32, arguments: Vec<Value>) -> Result<u64, HostError> {
        let id = self.next_call();
        self.call_out(id, request, function, arguments)?;
        self.in_flight.borrow_mut().insert(id, request);
        Ok(id)
    }

    /// Queues a call, or tells why its arguments cannot cross.
    fn call_out(&self, id: u64, request: u64, function: u32, arguments: Vec<Value>) -> Result<(), HostError> {
        let call = WorkerMessage::Call { id, request, function, arguments };
        let Err(error) = self.link.borrow_mut().queue(&call) else { return Ok(()) };
        if let WorkerMessage::Call { arguments, .. } = &call {
            for argument in arguments {
                self.release_functions_in(argument);
            }
        }
        Err(cannot_cross(&error))
    }

    /// Lets go of the functions and streams in a value that the host does not get after all.
    fn release_functions_in(&self, value: &Value) {
        let mut handles = Vec::new();
        let mut values = vec![value];
        while let Some(value) = values.pop() {
            match value {
                Value::Function(function) => handles.push(function.handle),
                Value::Stream(Stream { handle, owner: StreamOwner::Guest }) => handles.push(*handle),
                Value::Array(items) | Value::Set(items) => values.extend(items),
                Value::Object(entries) => values.extend(entries.iter().map(|(_, value)| value)),
                Value::Map(entries) => values.extend(entries.iter().flat_map(|(key, value)| [key, value])),
                _ => {}
            }
        }
        self.isolate.release(&handles);
    }

    /// A call of a synchronous host function: the guest stands still until the answer is there, unless the host invokes a
    /// function of it meanwhile.
    fn call_host(
        self: &Rc<Self>,
        request: u64,
        function: u32,
        arguments: Vec<Value>,
    ) -> Result<Value, HostError> {
        let id = self.next_call();
        self.call_out(id, request, function, arguments)?;
        self.link.borrow_mut().flush();
        loop {
            let message = self.link.borrow_mut().receive();
            match message {
                Ok(HostMessage::Answer { id: answered, outcome }) if answered == id => return outcome,
                Ok(message @ HostMessage::Invoke { id: nested, within: Some(call), .. }) if call == id => {
                    self.take(message);
                    self.tell_nested(nested);
                    self.link.borrow_mut().flush();
                }
                Ok(message @ (HostMessage::Release(_) | HostMessage::Attentive(_))) => self.take(message),
                Ok(HostMessage::Cancel { id }) if self.running.borrow().contains(&id) => {
                    self.count();
                    self.cancelled.borrow_mut().push(id);
                }
                Ok(
                    message @ (HostMessage::Eval { .. }
                    | HostMessage::EvalModule { .. }
                    | HostMessage::LoadWasm { .. }
                    | HostMessage::Invoke { within: None, .. }
                    | HostMessage::Pull { .. }
                    | HostMessage::Answer { .. }
                    | HostMessage::Bind(_)
                    | HostMessage::Cancel { .. }),
                ) => self.later.borrow_mut().push_back(message),
                // The host is gone or talks nonsense; either way there is nothing to go on with.
                Ok(HostMessage::Start(_) | HostMessage::Invoke { .. }) | Err(_) => process::exit(FAILED),
            }
        }
    }
}

fn type_error(message: &str) -> JsError {
    JsError { name: "TypeError".into(), message: message.into(), ..JsError::default() }
}

fn cannot_cross(error: &EncodeError) -> HostError {
    HostError { name: "TypeError".into(), message: format!("the arguments cannot cross: {error}").into() }
}

fn conversion_failure(error: &EncodeError) -> Failure {
    let path = error.path().map_or_else(|| "$".to_owned(), ToString::to_string);
    Failure::Conversion { path, reason: error.reason() }
}
