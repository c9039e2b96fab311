//! The driver for an event loop: nothing here waits. What is begun overlaps.

use std::time::Duration;

use pydeno_wire::message::{HostError, Language, StreamRequest, WasmModule};
use pydeno_wire::{Text, Value};
use rustix::net::RecvFlags;

use crate::blocking::answer_call;
use crate::clock::Nanos;
use crate::error::Error;
use crate::host_functions::HostFunctions;
use crate::link::Link;
use crate::runtime::{LinkGuard, Runtime, conversion, too_long};
use crate::session::{Call, Event, Stopping};
use crate::watch::Verdict;

/// How much is taken of a worker in one turn of the loop, give or take a message, in bytes.
const MOST_RECEIVED: usize = 64 << 10;
/// When to look again where another thread uses the worker.
const TAKEN: Duration = Duration::from_millis(5);

/// What one turn of the event loop has brought.
#[derive(Debug, Default)]
pub struct Progress {
    /// Requests that have ended.
    pub ended: Vec<Ended>,
    /// Whether there is more to write than the socket took: [`Runtime::advance`] wants to be called when it takes more.
    pub wants_to_write: bool,
    /// After how long [`Runtime::advance`] wants to be called even if nothing arrives.
    pub look_again: Option<Duration>,
}

/// The end of a request that [`Runtime::begin_eval`], [`Runtime::begin_invoke`] or [`Runtime::begin_pull`] began.
#[derive(Debug)]
pub struct Ended {
    /// Its number.
    pub request: u64,
    /// Its value, or why there is none.
    pub outcome: Result<Value, Error>,
    /// Calls of asynchronous host functions that nobody waits for any more.
    pub given_up: Vec<u64>,
}

impl Runtime {
    /// Begins an evaluation and returns its number; its end is told by [`advance`](Self::advance).
    pub fn begin_eval(
        &self,
        source: Text,
        name: &str,
        language: Language,
        redeclare: bool,
    ) -> Result<u64, Error> {
        self.check_source(&source)?;
        self.begin(|link| {
            link.session
                .eval(Nanos::now(), source, name.to_owned(), language, redeclare)
                .map_err(|error| too_long(&error))
        })
    }

    /// Begins to evaluate a module and returns its number, like [`begin_eval`](Self::begin_eval).
    pub fn begin_eval_module(&self, source: Text, name: &str, language: Language) -> Result<u64, Error> {
        self.check_source(&source)?;
        self.begin(|link| {
            link.session
                .eval_module(Nanos::now(), source, name.to_owned(), language)
                .map_err(|error| too_long(&error))
        })
    }

    /// Begins to load a WebAssembly module and returns its number, like [`begin_eval`](Self::begin_eval); otherwise as
    /// [`load_wasm`](Self::load_wasm).
    pub fn begin_load_wasm(&self, module: WasmModule, remember: impl FnOnce(u32)) -> Result<u64, Error> {
        self.check_wasm(&module)?;
        self.begin(|link| {
            let begun = link.session.load_wasm(Nanos::now(), module);
            let (request, first) = begun.map_err(|error| too_long(&error))?;
            remember(first);
            Ok(request)
        })
    }

    /// Begins a call of a guest's function and returns its number, like [`begin_eval`](Self::begin_eval).
    pub fn begin_invoke(&self, function: u64, arguments: Vec<Value>) -> Result<u64, Error> {
        self.begin(|link| {
            link.session.invoke(Nanos::now(), function, arguments).map_err(|error| conversion(&error))
        })
    }

    /// Begins to ask a stream of the guest and returns its number, like [`begin_eval`](Self::begin_eval).
    pub fn begin_pull(&self, stream: u64, what: StreamRequest) -> Result<u64, Error> {
        self.begin(|link| Ok(link.session.pull(Nanos::now(), stream, what)))
    }

    fn begin(&self, request: impl FnOnce(&mut Link) -> Result<u64, Error>) -> Result<u64, Error> {
        let mut guard = self.enter_at_once()?;
        let link = self.linked(&mut guard)?;
        if link.session.is_blocked() {
            return Err(Error::Busy);
        }
        link.part(self.watch.pid());
        self.tell_released(link);
        let request = request(link)?;
        if !link.watched_by(&self.watch) {
            return Err(self.ended());
        }
        self.supervisor.monitor().ensure_awake();
        // What it does not take now, or whether it has hung up, is for `advance` to see.
        let _ = link.write();
        Ok(request)
    }

    /// Answers a call that [`HostFunctions::start`] was told of. One that was given up meanwhile needs no answer.
    pub fn answer(&self, call: u64, outcome: Result<Value, HostError>) -> Result<(), Error> {
        let mut guard = self.lock()?;
        let link = self.linked(&mut guard)?;
        answer_call(link, Nanos::now(), call, outcome);
        link.watched_by(&self.watch);
        self.supervisor.monitor().ensure_awake();
        let _ = link.write();
        Ok(())
    }

    /// Asks for a request's end; it then ends with [`Error::Cancelled`]. One that has ended is not an error.
    pub fn cancel(&self, request: u64) -> Result<(), Error> {
        let mut guard = self.lock()?;
        let link = self.linked(&mut guard)?;
        link.session.stop(Nanos::now(), request, Stopping::Cancelled);
        link.watched_by(&self.watch);
        let _ = link.write();
        Ok(())
    }

    /// Takes what the worker has sent and sends what it is to be told, as far as that is possible at once.
    ///
    /// # Errors
    ///
    /// The runtime is closed; every request that had not ended has ended with this error.
    pub fn advance(&self, host: &mut dyn HostFunctions) -> Result<Progress, Error> {
        if self.is_held_here() {
            return Err(Error::Reentrant);
        }
        let Some(guard) = self.try_lock_again()? else {
            // A thread that evaluates takes what arrives; one that binds is done in a moment.
            return Ok(Progress { look_again: Some(TAKEN), ..Progress::default() });
        };
        let before = self.hold();
        let mut turn = LoopTurn { runtime: self, guard: Some(guard), host, progress: Progress::default() };
        let outcome = turn.run();
        let LoopTurn { guard, progress, .. } = turn;
        self.let_go(before);
        if let Some(guard) = guard {
            self.leave(guard);
        }
        outcome.map(|()| progress)
    }
}

struct LoopTurn<'a, 'h> {
    runtime: &'a Runtime,
    /// Empty while a host function runs, and when the runtime was closed meanwhile.
    guard: Option<LinkGuard<'a>>,
    host: &'h mut dyn HostFunctions,
    progress: Progress,
}

impl LoopTurn<'_, '_> {
    fn run(&mut self) -> Result<(), Error> {
        let runtime = self.runtime;
        let mut received = 0;
        loop {
            while let Some(event) = self.next_event()? {
                self.take(event)?;
            }
            // A worker that never stops talking must not keep the loop from its other work: it is called again.
            if received >= MOST_RECEIVED {
                break;
            }
            match self.link()?.read(RecvFlags::DONTWAIT).map_err(|_| runtime.lost())? {
                Ok(count) => received += count,
                Err(_) => break,
            }
        }
        let now = Nanos::now();
        let link = self.link()?;
        let next = link.session.tick(now);
        let all_written = link.write().map_err(|_| runtime.lost())?;
        if !link.watched_by(&runtime.watch) {
            return Err(runtime.explain(runtime.watch.verdict().unwrap_or(Verdict::Lost)));
        }
        self.progress.wants_to_write = !all_written;
        self.progress.look_again = (next != Nanos(u64::MAX)).then(|| next.since(now));
        Ok(())
    }

    fn link(&mut self) -> Result<&mut Link, Error> {
        match &mut self.guard {
            Some(guard) => self.runtime.linked(guard),
            None => Err(self.runtime.ended()),
        }
    }

    fn next_event(&mut self) -> Result<Option<Event>, Error> {
        let runtime = self.runtime;
        self.link()?.session.next_event(Nanos::now()).map_err(|violation| {
            runtime.watch.kill(Verdict::Violation);
            Error::ProtocolViolation { what: violation.0 }
        })
    }

    fn take(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Call(call) if call.asynchronous => {
                self.host.start(call.request, call.id, call.function, call.arguments);
            }
            Event::Call(call) => self.call(call)?,
            Event::Console { level, text } => {
                // What was raised is with the host, whose loop is to end; the evaluation is not.
                let _ = self.host.console(level, text);
            }
            Event::Done(mut done) => {
                let watch = &self.runtime.watch;
                self.link()?.renew(watch);
                for error in std::mem::take(&mut done.unhandled) {
                    let _ = self.host.unhandled_rejection(error);
                }
                let request = done.request;
                let given_up = std::mem::take(&mut done.given_up);
                let outcome = self.runtime.outcome(done);
                self.progress.ended.push(Ended { request, outcome, given_up });
            }
            Event::Ready(_) | Event::Refused(_) => unreachable!("the session is past its start"),
        }
        Ok(())
    }

    /// The loop stands still for as long as the function takes; a function that takes long is to be asynchronous.
    fn call(&mut self, call: Call) -> Result<(), Error> {
        let watch = &self.runtime.watch;
        self.link()?.watched_by(watch);
        self.guard = None;
        let answer = self.runtime.calling(|| self.host.call(call.request, call.function, call.arguments));
        self.guard = Some(self.runtime.lock_again()?);
        let now = Nanos::now();
        let session = &mut self.link()?.session;
        if answer.is_err() {
            session.stop(now, call.request, Stopping::Cancelled);
        }
        session.tick(now);
        let answer = match answer {
            Ok(answer) if !session.is_stopping(call.request) => answer,
            _ => Err(HostError { name: "Error".into(), message: "the evaluation is being stopped".into() }),
        };
        answer_call(self.link()?, now, call.id, answer);
        self.link()?.watched_by(watch);
        Ok(())
    }
}
