//! What runs, waits and is over in one in-process runtime.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use pydeno_engine as engine;
use pydeno_engine::{Ended, Isolate, StepLimits};
use pydeno_host::Error;
use pydeno_wire::Value;
use pydeno_wire::message::{HostError, STREAMS};
use pyo3::prelude::*;

use crate::errors;
use crate::functions::{Callbacks, Escaped, error_of_host, run_signal_handlers};
use crate::loop_turn::Started;
use crate::thread_bound::detach_here;

/// No request: they are numbered from 1.
pub(super) const NOBODY: u64 = 0;

pub(super) struct Inner {
    /// Empty once closed.
    pub(super) isolate: RefCell<Option<Rc<Isolate>>>,
    pub(super) shared: Rc<Shared>,
    pub(super) last_request: Cell<u64>,
}

/// What the bound functions of one isolate share.
pub(super) struct Shared {
    pub(super) callbacks: Callbacks,
    /// The requests whose code runs now, innermost last.
    pub(super) running: RefCell<Vec<u64>>,
    /// Whether the innermost is to be stopped.
    pub(super) interrupted: Cell<bool>,
    /// What host functions raised that no guest may catch, by request.
    pub(super) escaped: RefCell<HashMap<u64, Escaped>>,
    pub(super) last_call: Cell<u64>,
    /// The request of each asynchronous call that is not answered.
    pub(super) in_flight: RefCell<HashMap<u64, u64>>,
    /// Asynchronous calls that the event loop has not been told of.
    pub(super) started: RefCell<Vec<Started>>,
    /// Requests that have ended and of which nobody has been told.
    pub(super) ended: RefCell<Vec<Ended>>,
}

impl Inner {
    pub(super) fn isolate(&self, py: Python<'_>) -> PyResult<Rc<Isolate>> {
        self.isolate.borrow().clone().ok_or_else(|| errors::from_host(py, &Error::Closed))
    }

    /// Asks streams of the host for as long as the request waits for one.
    pub(super) fn serve_streams(&self, py: Python<'_>, request: u64) -> PyResult<()> {
        let shared = &self.shared;
        while !shared.has_ended(request) {
            let Some(started) = shared.take_stream_call(request) else { break };
            match shared.callbacks.call(py, STREAMS, &started.arguments) {
                Ok(outcome) => self.settle(py, started.call, outcome),
                Err(escaped) => {
                    shared.escaped.borrow_mut().entry(request).or_insert(escaped);
                    let isolate = self.isolate(py)?;
                    isolate.cancel(request);
                    shared.give_up(request);
                    shared.collect(py, &isolate);
                }
            }
        }
        Ok(())
    }

    /// Settles a call and runs what that sets going. An answer to a runtime that is closed is nobody's concern.
    pub(super) fn settle(&self, py: Python<'_>, call: u64, outcome: Result<Value, HostError>) {
        let Ok(isolate) = self.isolate(py) else { return };
        let shared = &self.shared;
        // One that was given up is not run for anybody.
        let request = shared.in_flight.borrow_mut().remove(&call).unwrap_or(NOBODY);
        shared.running_for(request, || {
            let limits = StepLimits { cancelled: &|| shared.is_interrupted() };
            detach_here(py, || isolate.settle(call, outcome, &limits));
        });
        shared.collect(py, &isolate);
        self.fire_timers(py, &isolate);
    }

    /// Lets every timer go off that can.
    pub(super) fn fire_timers(&self, py: Python<'_>, isolate: &Isolate) {
        let shared = &self.shared;
        while let Some(request) = isolate.next_timer() {
            shared.running_for(request, || {
                let limits = StepLimits { cancelled: &|| shared.is_interrupted() };
                detach_here(py, || isolate.fire_timers(&limits));
            });
            shared.collect(py, isolate);
        }
    }
}

impl Shared {
    /// Marks a request as the one whose code runs while `run` does.
    pub(super) fn running_for(&self, request: u64, run: impl FnOnce()) {
        self.running.borrow_mut().push(request);
        let outer = self.interrupted.replace(false);
        run();
        self.interrupted.set(outer);
        self.running.borrow_mut().pop();
    }

    /// Takes from the engine what has ended.
    pub(super) fn collect(&self, py: Python<'_>, isolate: &Isolate) {
        while let Some(mut ended) = isolate.take_ended() {
            for error in std::mem::take(&mut ended.unhandled) {
                if let Err(escaped) = self.callbacks.unhandled_rejection(py, error) {
                    self.escaped.borrow_mut().entry(ended.request).or_insert(escaped);
                }
            }
            self.ended.borrow_mut().push(ended);
        }
    }

    pub(super) fn call(&self, request: u64, function: u32, arguments: &[Value]) -> Result<Value, HostError> {
        Python::attach(|py| {
            self.callbacks.call(py, function, arguments).unwrap_or_else(|escaped| {
                self.escape(request, escaped);
                Err(error_of_host("the evaluation is being stopped"))
            })
        })
    }

    /// The function with this number for the guest.
    pub(super) fn synchronous(self: &Rc<Self>, number: u32) -> engine::HostFunction {
        let shared = Rc::clone(self);
        Box::new(move |request, arguments| shared.call(request, number, &arguments))
    }

    pub(super) fn start(&self, request: u64, function: u32, arguments: Vec<Value>) -> u64 {
        let call = self.last_call.get() + 1;
        self.last_call.set(call);
        self.in_flight.borrow_mut().insert(call, request);
        self.started.borrow_mut().push(Started { request, call, function, arguments });
        call
    }

    /// The calls of a request that nobody waits for any more; those that have not begun never do.
    pub(super) fn give_up(&self, request: u64) -> Vec<u64> {
        let mut in_flight = self.in_flight.borrow_mut();
        let given_up = in_flight.iter().filter(|&(_, &caller)| caller == request).map(|(&call, _)| call);
        let given_up: Vec<u64> = given_up.collect();
        in_flight.retain(|_, caller| *caller != request);
        self.started.borrow_mut().retain(|started| started.request != request);
        given_up
    }

    pub(super) fn has_ended(&self, request: u64) -> bool {
        self.ended.borrow().iter().any(|ended| ended.request == request)
    }

    /// The oldest call of a stream of the host's that a request has made and that nobody has begun to answer.
    pub(super) fn take_stream_call(&self, request: u64) -> Option<Started> {
        let mut started = self.started.borrow_mut();
        let is_it = |started: &Started| started.request == request && started.function == STREAMS;
        let index = started.iter().position(is_it)?;
        Some(started.remove(index))
    }

    /// The innermost request whose code runs.
    pub(super) fn running_now(&self) -> u64 {
        self.running.borrow().last().copied().unwrap_or(NOBODY)
    }

    pub(super) fn escape(&self, request: u64, escaped: Escaped) {
        self.interrupted.set(true);
        self.escaped.borrow_mut().entry(request).or_insert(escaped);
    }

    /// Whether Python wants the evaluation to end: a host function let an exception escape, or Ctrl-C was pressed.
    pub(super) fn is_interrupted(&self) -> bool {
        if self.interrupted.get() {
            return true;
        }
        match run_signal_handlers() {
            Ok(()) => false,
            Err(exception) => {
                self.escape(self.running_now(), Escaped(exception));
                true
            }
        }
    }
}
