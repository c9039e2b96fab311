//! How requests run, wait and end.

mod firing;

use std::panic::resume_unwind;
use std::rc::Rc;
use std::time::Duration;

use pydeno_wire::message::{Failure, HostError, JsError, Language};
use pydeno_wire::{Text, Value};

use crate::conversion_error::ConversionError;
use crate::deadline::{Bounds, EvalLimits, StepLimits};
use crate::ffi::{EngineString, Kept, Local, ScriptError, Thrown};
use crate::isolate::Isolate;
use crate::modules::Module;
use crate::prelude::Settled;
use crate::requests::{Awaited, CallId, Ended, Request, RequestId, Running};
use crate::{exception, export, host_function, import, language, syntax};

/// A script as its author wrote it.
#[derive(Clone, Copy, Debug)]
pub struct Script<'s> {
    /// Its text.
    pub source: &'s Text,
    /// Its name in stacks and errors.
    pub name: &'s str,
    /// What it is written in.
    pub language: Language,
    /// Whether `let`, `const` and `class` of its top level can be declared again by a later script.
    pub redeclare: bool,
}

impl<'s> Script<'s> {
    fn javascript(source: &'s Text, name: &'s str) -> Self {
        Self { source, name, language: Language::JavaScript, redeclare: false }
    }
}

/// How far a request has come.
enum Progress {
    Ended(Result<Value, Failure>),
    Waits(Awaited),
}

impl Isolate {
    /// The request that [`eval`](Self::eval) runs as.
    const EVAL: RequestId = 0;

    /// A script that declares nothing and whose value crosses as most do.
    const WARM_UP: &str = "({ list: [1, 'text', null], text: 'text' })";

    /// How many reactions are stopped after their request was, before no more code is run.
    const MOST_STOPPED_REACTIONS: u32 = 1000;

    /// How many of them are stopped at the usual pace, which lets short ones come to their end.
    const PATIENT_ATTEMPTS: u32 = 8;

    /// Begins to evaluate a script whose value is that of its last expression. It may have ended when this returns.
    ///
    /// The number must not be that of a request that has not ended.
    ///
    /// # Panics
    ///
    /// With the panic of a host function, of the console hook or of the cancel question, once the engine has returned. The
    /// request is gone then, without an end; so it is with every method that runs guest code.
    pub fn begin_eval(&self, request: RequestId, source: &Text, name: &str, limits: &EvalLimits<'_>) {
        self.begin_script(request, &Script::javascript(source, name), limits);
    }

    /// As [`begin_eval`](Self::begin_eval), for a script in any [`Language`]. `await` may stand at its top level.
    ///
    /// # Panics
    ///
    /// As [`begin_eval`](Self::begin_eval).
    pub fn begin_script(&self, request: RequestId, script: &Script<'_>, limits: &EvalLimits<'_>) {
        if let Some(ended) = self.evaluate(request, script, limits) {
            self.shared.requests.tell(ended);
        }
    }

    /// Begins to evaluate a module. Its value has the exports as they are when it has been evaluated. From then on it can be
    /// imported by its name, in the place of one that had it before.
    ///
    /// # Panics
    ///
    /// As [`begin_eval`](Self::begin_eval).
    pub fn begin_module(&self, request: RequestId, module: &Module<'_>, limits: &EvalLimits<'_>) {
        let ended = self.begin(request, limits, || Ok((self.evaluate_module(module)?, true)));
        if let Some(ended) = ended {
            self.shared.requests.tell(ended);
        }
    }

    /// Begins to call a function of the guest that was a value, with `this` undefined.
    ///
    /// # Panics
    ///
    /// As [`begin_eval`](Self::begin_eval).
    pub fn begin_invoke(
        &self,
        request: RequestId,
        function: u64,
        arguments: &[Value],
        limits: &EvalLimits<'_>,
    ) {
        self.begin_plain(request, limits, || self.invoke(function, arguments));
    }

    /// Begins a request whose function gives its value.
    pub(crate) fn begin_plain<'s>(
        &'s self,
        request: RequestId,
        limits: &EvalLimits<'_>,
        start: impl FnOnce() -> Result<Local<'s>, Failure>,
    ) {
        if let Some(ended) = self.begin(request, limits, || Ok((start()?, false))) {
            self.shared.requests.tell(ended);
        }
    }

    /// Begins a request whose function gives a promise for a record of the prelude's.
    pub(crate) fn begin_wrapped<'s>(
        &'s self,
        request: RequestId,
        limits: &EvalLimits<'_>,
        start: impl FnOnce() -> Result<Local<'s>, Failure>,
    ) {
        if let Some(ended) = self.begin(request, limits, || Ok((start()?, true))) {
            self.shared.requests.tell(ended);
        }
    }

    /// Settles the promise of an asynchronous call and runs what that sets going. A call that is unknown, settled before
    /// or given up is ignored. Within a host function it takes effect when the guest code around it has returned.
    ///
    /// # Panics
    ///
    /// As [`begin_eval`](Self::begin_eval).
    pub fn settle(&self, call: CallId, outcome: Result<Value, HostError>, limits: &StepLimits<'_>) {
        if self.shared.requests.depth() > 0 {
            self.shared.requests.settle_later(call, outcome);
            return;
        }
        self.settle_now(call, &outcome, limits.cancelled);
        self.advance(limits.cancelled);
    }

    /// Ends a waiting request as [`Failure::Cancelled`] at once; one that runs is stopped as soon as possible. One that
    /// has ended is ignored.
    pub fn cancel(&self, request: RequestId) {
        let requests = &self.shared.requests;
        if let Some(depth) = requests.depth_of(request) {
            self.shared.deadline.cancel(depth as u32);
            return;
        }
        if requests.take(|pending| pending.id == request).is_some() {
            requests.tell(requests.end(request, Err(Failure::Cancelled)));
            if requests.depth() == 0 {
                self.end_what_nothing_can_settle();
            }
        }
    }

    /// The next request that has ended and was not told of yet.
    pub fn take_ended(&self) -> Option<Ended> {
        self.shared.requests.take_ended()
    }

    /// Whether a request waits for calls.
    pub fn is_pending(&self) -> bool {
        self.shared.requests.is_pending()
    }

    /// Evaluates a script to its end; that of a promise is its value. For isolates without asynchronous host functions:
    /// what would wait for one ends as [`Failure::CannotWait`]. It runs as request 0.
    ///
    /// # Errors
    ///
    /// [`Failure`]; the isolate is usable again after each.
    ///
    /// # Panics
    ///
    /// As [`begin_eval`](Self::begin_eval).
    pub fn eval(&self, source: &Text, name: &str, limits: &EvalLimits<'_>) -> Result<Value, Failure> {
        if let Some(ended) = self.evaluate(Self::EVAL, &Script::javascript(source, name), limits) {
            return ended.outcome;
        }
        while self.next_timer().is_some() {
            self.fire_timers(&StepLimits { cancelled: limits.cancelled });
        }
        let requests = &self.shared.requests;
        if requests.take(|pending| pending.id == Self::EVAL).is_some() {
            let ended = requests.end(Self::EVAL, Err(Failure::CannotWait));
            self.end_what_nothing_can_settle();
            return ended.outcome;
        }
        requests.take_ended_of(Self::EVAL).map_or(Err(Failure::NeverSettles), |ended| ended.outcome)
    }

    /// Does once what requests do, so that the first of them finds made what the engine makes on first use, and, in a fork, has
    /// the memory for it. A guest cannot tell. Call it before any guest code.
    pub fn warm_up(&self) {
        // Whether it succeeds is told by the requests that follow.
        let _ = self.eval(&Text::from(Self::WARM_UP), "", &EvalLimits::default());
    }

    fn evaluate(&self, request: RequestId, script: &Script<'_>, limits: &EvalLimits<'_>) -> Option<Ended> {
        self.begin(request, limits, || {
            let prepared = language::prepare(script, &self.shared.positions)?;
            if prepared.imports {
                self.provide_import()?;
            }
            Ok((self.run(&prepared.text, script.name)?, prepared.is_wrapped))
        })
    }

    /// The value of a script's last expression. One of the last scripts is not read again.
    fn run(&self, text: &Text, name: &str) -> Result<Local<'_>, Failure> {
        let (context, recent) = (&self.context, &self.shared.recent_scripts);
        let known = recent.find(text, name);
        let value = if let Some(script) = known {
            context.run(&script)
        } else {
            let (source, engine_name) =
                (EngineString::new(context.table(), text), EngineString::from_str(context.table(), name));
            match context.parse(&source, &engine_name) {
                Ok(Some(script)) => {
                    let script = Rc::new(script);
                    recent.keep(text, name, &script);
                    context.run(&script)
                }
                Ok(None) => context.evaluate_publicly(&source, &engine_name),
                Err(ScriptError::Syntax { message, line }) => {
                    let mut failure = syntax::error(context, &source, &engine_name, &message, line);
                    if let Failure::Js(error) = &mut failure {
                        self.shared.positions.lead_back(&mut error.frames);
                    }
                    return Err(failure);
                }
                Err(ScriptError::Thrown(thrown)) => Err(thrown),
            }
        };
        value.map_err(|thrown| self.describe(thrown))
    }

    fn invoke(&self, function: u64, arguments: &[Value]) -> Result<Local<'_>, Failure> {
        let (context, shared) = (&self.context, &*self.shared);
        let function = shared.held.get(context, function).ok_or(Failure::UnknownFunction)?;
        let arguments = import::list(context, shared, arguments).map_err(|thrown| self.describe(thrown))?;
        self.go_on_unless_stopped()?;
        let called = shared.prelude.invoke(context, function, arguments);
        self.go_on_unless_stopped()?;
        called
            .and_then(|ending| shared.prelude.returned(context, ending))
            .map_err(|thrown| self.describe(thrown))
    }

    /// Begins a request, and ends it where it need not wait.
    fn begin<'s>(
        &'s self,
        request: RequestId,
        limits: &EvalLimits<'_>,
        start: impl FnOnce() -> Result<(Local<'s>, bool), Failure>,
    ) -> Option<Ended> {
        let shared = &*self.shared;
        let requests = &shared.requests;
        let nesting = requests.depth();
        if let Some(failure) = self.refusal_to_nest(nesting) {
            return Some(Ended { request, outcome: Err(failure), unhandled: Vec::new() });
        }
        if nesting == 0 {
            requests.calls_of_outermost.set(0);
        }
        let bounds = Bounds {
            // A timeout beyond what the clock can tell is none.
            end: shared.deadline.now().saturating_add(limits.timeout),
            max_heap_bytes: limits.max_heap_bytes,
        };
        let running = Running { request, budget: limits.budget };
        let progress = self.step(running, bounds, limits.cancelled, || {
            let (value, is_wrapped) = match start() {
                Ok(started) => started,
                Err(failure) => return Progress::Ended(Err(failure)),
            };
            self.progress_of(value, running, nesting > 0, is_wrapped)
                .unwrap_or_else(|failure| Progress::Ended(Err(failure)))
        });
        let ended = match progress {
            Progress::Ended(outcome) => Some(requests.end(request, outcome)),
            Progress::Waits(awaited) => {
                let calls = requests.calls_of_outermost.get();
                requests.wait(Request { id: request, bounds, budget: limits.budget, calls, awaited });
                None
            }
        };
        if nesting == 0 {
            self.advance(limits.cancelled);
        }
        ended
    }

    /// Why no request can be begun within those that run.
    fn refusal_to_nest(&self, nesting: usize) -> Option<Failure> {
        if nesting == 0 {
            return None;
        }
        if let Some(stop) = self.shared.deadline.stopped() {
            return Some(stop.into());
        }
        if nesting > Self::DEEPEST_NESTING {
            return Some(range_error("Calls between host and guest are nested too deeply."));
        }
        if !self.shared.stack.is_enough_for_a_call() {
            return Some(range_error("Maximum call stack size exceeded."));
        }
        None
    }

    /// Runs guest code on behalf of a request, and tells how far the request has come.
    fn step(
        &self,
        running: Running,
        bounds: Bounds,
        cancelled: &dyn Fn() -> bool,
        body: impl FnOnce() -> Progress,
    ) -> Progress {
        let (requests, deadline) = (&self.shared.requests, &self.shared.deadline);
        let is_outermost = requests.depth() == 0;
        if is_outermost && let Err(failure) = self.clear_stopped_reactions() {
            return Progress::Ended(Err(failure));
        }
        // What waits shares the isolate's time, and this request may be what keeps it waiting.
        let end = if is_outermost { bounds.end.min(requests.earliest_end()) } else { bounds.end };
        requests.enter(running);
        let (progress, stop) = deadline.during(Bounds { end, ..bounds }, cancelled, body);
        requests.leave();
        let panic = self.context.take_panic();
        if is_outermost && (stop.is_some() || panic.is_some()) {
            self.leave_stopped_state();
        }
        if let Some(payload) = panic {
            drop(requests.end(running.request, Err(Failure::Cancelled)));
            if is_outermost {
                self.end_what_nothing_can_settle();
            }
            resume_unwind(payload);
        }
        // Why the guest was stopped is known here; what the engine threw for it is the guest's to see, not ours.
        match stop {
            Some(stop) => Progress::Ended(Err(stop.into())),
            None => progress,
        }
    }

    /// How far a request has come whose script or function has this value, or, of a wrapped one, has it in the record that
    /// the promise is fulfilled with.
    fn progress_of(
        &self,
        value: Local<'_>,
        running: Running,
        is_nested: bool,
        is_wrapped: bool,
    ) -> Result<Progress, Failure> {
        let (context, shared) = (&self.context, &*self.shared);
        self.go_on_unless_stopped()?;
        let waits = !is_nested && shared.requests.calls_of_outermost.get() > 0;
        let wait = |value: Local<'_>| Progress::Waits(Awaited::Value(Kept::new(context, value)));
        let mut budget = running.budget;
        if !waits && let Some(value) = export::primitive(context, value, &mut budget)? {
            return Ok(Progress::Ended(Ok(value)));
        }
        let settled = shared.prelude.settle(context, value).map_err(|thrown| self.describe(thrown))?;
        self.go_on_unless_stopped()?;
        if !matches!(settled, Settled::Itself) {
            shared.requests.forget_rejection(value);
        }
        let value = match settled {
            Settled::Rejected(reason) => return Err(self.describe(Thrown(reason))),
            // Reactions do not run before the host function around it has returned, so this is all that can be told.
            Settled::Pending(_) if is_nested => return Err(Failure::CannotWait),
            Settled::Pending(ending) => {
                let awaited = if is_wrapped { Awaited::Wrapped } else { Awaited::Promise };
                return Ok(Progress::Waits(awaited(Kept::new(context, ending))));
            }
            Settled::Fulfilled(record) if is_wrapped => {
                return self.progress_of_record(record, running, is_nested);
            }
            Settled::Itself => value,
            Settled::Fulfilled(value) => value,
        };
        if waits {
            Ok(wait(value))
        } else {
            self.export(value, running).map(|value| Progress::Ended(Ok(value)))
        }
    }

    /// As [`Self::progress_of`], from the record that the promise was fulfilled with.
    fn progress_of_record(
        &self,
        record: Local<'_>,
        running: Running,
        is_nested: bool,
    ) -> Result<Progress, Failure> {
        let has_ended = self.shared.streams().has_ended(&self.context, record);
        if !has_ended.map_err(|thrown| self.describe(thrown))? {
            return self.progress_of(self.unwrapped(record)?, running, is_nested, false);
        }
        if !is_nested && self.shared.requests.calls_of_outermost.get() > 0 {
            return Ok(Progress::Waits(Awaited::StreamEnd));
        }
        Err(Failure::StreamEnded)
    }

    /// The value in the record that a script with `await` at its top level gives.
    fn unwrapped(&self, record: Local<'_>) -> Result<Local<'_>, Failure> {
        self.shared.prelude.wrapped(&self.context, record).map_err(|thrown| self.describe(thrown))
    }

    fn export(&self, value: Local<'_>, running: Running) -> Result<Value, Failure> {
        let mut budget = running.budget;
        export::value(&self.context, &self.shared, value, &mut budget).map_err(|error| match error {
            ConversionError::Refused(refused) => refused.into(),
            ConversionError::Engine(thrown) => self.describe(thrown),
            ConversionError::NoStack => range_error("Maximum call stack size exceeded."),
        })
    }

    fn settle_now(&self, call: CallId, outcome: &Result<Value, HostError>, cancelled: &dyn Fn() -> bool) {
        let (context, shared) = (&self.context, &*self.shared);
        let requests = &shared.requests;
        let Some(call) = requests.take_call(call) else { return };
        let Some(mut request) = requests.take(|pending| pending.id == call.request) else { return };
        requests.calls_of_outermost.set(request.calls - 1);
        let running = Running { request: request.id, budget: request.budget };
        let Request { bounds, awaited, .. } = request;
        let progress = self.step(running, bounds, cancelled, || {
            let settled = match outcome {
                Ok(value) => import::value(context, shared, value),
                Err(error) => Err(host_function::error(context, &shared.prelude, error)),
            };
            if let Err(failure) = self.go_on_unless_stopped() {
                return Progress::Ended(Err(failure));
            }
            // Neither throws, and what they set going throws into promises.
            let _ = match settled {
                Ok(value) => context.call(call.resolve.get(context), &[value]),
                Err(Thrown(reason)) => context.call(call.reject.get(context), &[reason]),
            };
            Progress::Waits(awaited)
        });
        match progress {
            Progress::Ended(outcome) => requests.tell(requests.end(running.request, outcome)),
            Progress::Waits(awaited) => {
                request = Request { awaited, calls: requests.calls_of_outermost.get(), ..request };
                requests.wait(request);
            }
        }
    }

    /// Ends every waiting request that can be, and settles what was settled while guest code ran.
    fn advance(&self, cancelled: &dyn Fn() -> bool) {
        let requests = &self.shared.requests;
        loop {
            if let Some(request) = requests.take(|pending| self.can_be_unwrapped(pending)) {
                self.unwrap(request, cancelled);
            } else if let Some(request) = requests.take(|pending| self.can_end(pending)) {
                let outcome = self.end_of(&request, cancelled);
                requests.tell(requests.end(request.id, outcome));
            } else if let Some((call, outcome)) = requests.take_late_settlement() {
                self.settle_now(call, &outcome, cancelled);
            } else {
                break;
            }
        }
        if !requests.is_pending() {
            return;
        }
        let now = self.shared.deadline.now();
        while let Some(late) = requests.take(|pending| pending.bounds.end <= now) {
            requests.tell(requests.end(late.id, Err(Failure::Timeout)));
        }
        self.end_what_nothing_can_settle();
    }

    fn can_be_unwrapped(&self, request: &Request) -> bool {
        let Awaited::Wrapped(ending) = &request.awaited else { return false };
        let prelude = &self.shared.prelude;
        !self.shared.deadline.stops_everything()
            && matches!(prelude.ending(&self.context, ending.get(&self.context)), Ok(Settled::Fulfilled(_)))
    }

    /// Goes on with a request whose script has come to its end and left a record with its value.
    fn unwrap(&self, request: Request, cancelled: &dyn Fn() -> bool) {
        let (context, requests) = (&self.context, &self.shared.requests);
        let Request { id, bounds, budget, calls, awaited } = request;
        let Awaited::Wrapped(ending) = &awaited else { return };
        requests.calls_of_outermost.set(calls);
        let running = Running { request: id, budget };
        let progress = self.step(running, bounds, cancelled, || {
            let ending = self.shared.prelude.ending(context, ending.get(context));
            let Ok(Settled::Fulfilled(record)) = ending else {
                return Progress::Ended(Err(Failure::NeverSettles));
            };
            self.progress_of_record(record, running, false)
                .unwrap_or_else(|failure| Progress::Ended(Err(failure)))
        });
        match progress {
            Progress::Ended(outcome) => requests.tell(requests.end(id, outcome)),
            Progress::Waits(awaited) => {
                let calls = requests.calls_of_outermost.get();
                requests.wait(Request { id, bounds, budget, calls, awaited });
            }
        }
    }

    fn can_end(&self, request: &Request) -> bool {
        if self.shared.deadline.stops_everything() {
            return false;
        }
        match &request.awaited {
            Awaited::Value(_) | Awaited::StreamEnd => request.calls == 0,
            Awaited::Promise(ending) | Awaited::Wrapped(ending) => {
                match self.shared.prelude.ending(&self.context, ending.get(&self.context)) {
                    Ok(Settled::Rejected(_)) | Err(_) => true,
                    Ok(Settled::Fulfilled(_)) if matches!(request.awaited, Awaited::Wrapped(_)) => false,
                    Ok(Settled::Fulfilled(_)) => request.calls == 0,
                    Ok(_) => false,
                }
            }
        }
    }

    /// How a request ends whose value has settled.
    fn end_of(&self, request: &Request, cancelled: &dyn Fn() -> bool) -> Result<Value, Failure> {
        let context = &self.context;
        let running = Running { request: request.id, budget: request.budget };
        let progress = self.step(running, request.bounds, cancelled, || {
            let value = match &request.awaited {
                Awaited::Value(value) => Ok(value.get(context)),
                Awaited::StreamEnd => Err(Failure::StreamEnded),
                Awaited::Promise(ending) | Awaited::Wrapped(ending) => {
                    match self.shared.prelude.ending(context, ending.get(context)) {
                        Ok(Settled::Fulfilled(value)) => Ok(value),
                        Ok(Settled::Rejected(reason)) | Err(Thrown(reason)) => {
                            Err(self.describe(Thrown(reason)))
                        }
                        Ok(Settled::Pending(_) | Settled::Itself) => Err(Failure::NeverSettles),
                    }
                }
            };
            Progress::Ended(value.and_then(|value| self.export(value, running)))
        });
        match progress {
            Progress::Ended(outcome) => outcome,
            Progress::Waits(_) => Err(Failure::NeverSettles),
        }
    }

    fn end_what_nothing_can_settle(&self) {
        let requests = &self.shared.requests;
        if requests.has_calls() || !requests.timers.is_empty() {
            return;
        }
        while let Some(request) = requests.take(|_| true) {
            requests.tell(requests.end(request.id, Err(Failure::NeverSettles)));
        }
    }

    /// Brings the engine out of the state that [`Self::go_on_unless_stopped`] tells of, and runs what is left of the
    /// reactions that were queued when it was stopped, for as long as each alone is short. They run on nobody's behalf, so
    /// they get nothing from the host.
    fn leave_stopped_state(&self) {
        let table = self.context.table();
        let nothing = EngineString::from_str(table, "");
        let deadline = &self.shared.deadline;
        let overdue = Bounds { end: Duration::ZERO, max_heap_bytes: u64::MAX };
        deadline.stop_everything(true);
        let is_left = (0..Self::MOST_STOPPED_REACTIONS).any(|attempt| {
            if attempt == Self::PATIENT_ATTEMPTS {
                deadline.lose_patience();
            }
            // An empty script has no way to fail, and whatever the engine says of it is about what was stopped.
            let ((), stop) = deadline.during(overdue, &|| false, || {
                let _ = self.context.evaluate(&nothing, &nothing);
            });
            stop.is_none()
        });
        deadline.regain_patience();
        deadline.stop_everything(!is_left);
    }

    /// Tries again to come to the end of reactions that were stopped; without that no code may run.
    fn clear_stopped_reactions(&self) -> Result<(), Failure> {
        let deadline = &self.shared.deadline;
        if deadline.stops_everything() {
            self.leave_stopped_state();
        }
        if deadline.stops_everything() { Err(Failure::Timeout) } else { Ok(()) }
    }

    /// A guest that is stopped in a promise reaction leaves the call before with a value all the same, and the engine
    /// in a state in which the next call of a function ends the process.
    pub(crate) fn go_on_unless_stopped(&self) -> Result<(), Failure> {
        match self.shared.deadline.stopped() {
            Some(stop) => Err(stop.into()),
            None => Ok(()),
        }
    }

    pub(crate) fn describe(&self, thrown: Thrown<'_>) -> Failure {
        if self.shared.deadline.stopped().is_some() || self.context.has_panicked() {
            // Nothing of the guest is looked at any more.
            return Failure::Js(JsError::default());
        }
        Failure::Js(exception::describe(&self.context, &self.shared, thrown))
    }
}

/// What the guest's own code would throw.
fn range_error(message: &str) -> Failure {
    Failure::Js(JsError { name: "RangeError".into(), message: message.into(), ..JsError::default() })
}
