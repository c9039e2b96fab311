//! The requests of an isolate: what runs, what waits, what has ended.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use pydeno_wire::codec::bounds;
use pydeno_wire::message::{Failure, HostError, JsError};
use pydeno_wire::{Budget, Value};

use crate::deadline::Bounds;
use crate::ffi::{Context, Kept, Local};
use crate::web::Timers;

/// The number of an evaluation, an invocation or a stream's being asked, chosen by whoever begins it.
pub type RequestId = u64;

/// The number of an asynchronous call, chosen by the host function that starts it.
pub type CallId = u64;

/// A request that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// Which one.
    pub request: RequestId,
    /// Its value, or why there is none.
    pub outcome: Result<Value, Failure>,
    /// Promises that were rejected on its behalf and that nothing handled by the time their reactions had run; at most
    /// [`UNHANDLED`](bounds::UNHANDLED) of them.
    pub unhandled: Vec<JsError>,
}

/// A request that waits for asynchronous calls.
pub(crate) struct Request {
    pub(crate) id: RequestId,
    pub(crate) bounds: Bounds,
    pub(crate) budget: Budget,
    /// Its own asynchronous calls in flight.
    pub(crate) calls: usize,
    pub(crate) awaited: Awaited,
}

/// What the value of a waiting request will be.
pub(crate) enum Awaited {
    /// This; only calls are waited for.
    Value(Kept),
    /// How a promise ends, in the prelude's record.
    Promise(Kept),
    /// The same of a promise whose value stands in a record: that of a script with `await` at its top level, and that of a
    /// stream that is asked.
    Wrapped(Kept),
    /// None: a stream has ended. Only calls are waited for.
    StreamEnd,
}

/// An asynchronous call in flight: on whose behalf, and how to settle its promise.
pub(crate) struct Call {
    pub(crate) request: RequestId,
    pub(crate) resolve: Kept,
    pub(crate) reject: Kept,
}

/// A request whose code runs.
#[derive(Clone, Copy)]
pub(crate) struct Running {
    pub(crate) request: RequestId,
    pub(crate) budget: Budget,
}

/// A call that was settled while guest code ran.
type LateSettlement = (CallId, Result<Value, HostError>);

/// Something that was thrown and that nobody caught.
struct Rejection {
    request: RequestId,
    /// Whose reason it is; `None` for what a callback threw.
    promise: Option<Kept>,
    error: JsError,
}

/// Every request of an isolate. Nothing is borrowed while guest code runs.
#[derive(Default)]
pub(crate) struct Requests {
    /// The request on whose behalf code runs, and after it those that a host function has begun meanwhile, each within the
    /// one before.
    running: RefCell<Vec<Running>>,
    /// The asynchronous calls in flight of the outermost one.
    pub(crate) calls_of_outermost: Cell<usize>,
    pending: RefCell<Vec<Request>>,
    calls: RefCell<HashMap<CallId, Call>>,
    late: RefCell<VecDeque<LateSettlement>>,
    ended: RefCell<VecDeque<Ended>>,
    rejections: RefCell<Vec<Rejection>>,
    pub(crate) timers: Timers,
    /// The last requests that failed.
    failed: RefCell<VecDeque<RequestId>>,
}

/// Of how many requests that failed it is remembered that they did.
const MAX_FAILED: usize = 1024;

impl Requests {
    /// How many requests run, one within the other.
    pub(crate) fn depth(&self) -> usize {
        self.running.borrow().len()
    }

    /// The request whose code runs: the innermost.
    pub(crate) fn running(&self) -> Option<Running> {
        self.running.borrow().last().copied()
    }

    /// The request that asynchronous calls belong to: a request within a host function cannot wait for its own.
    pub(crate) fn outermost(&self) -> Option<RequestId> {
        self.running.borrow().first().map(|running| running.request)
    }

    /// At which depth a request runs, 0 for the outermost.
    pub(crate) fn depth_of(&self, request: RequestId) -> Option<usize> {
        self.running.borrow().iter().position(|running| running.request == request)
    }

    pub(crate) fn enter(&self, running: Running) {
        self.running.borrow_mut().push(running);
    }

    pub(crate) fn leave(&self) {
        self.running.borrow_mut().pop();
    }

    /// Whether a request waits.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.borrow().is_empty()
    }

    /// When the first of the waiting requests has had its time.
    pub(crate) fn earliest_end(&self) -> Duration {
        self.pending.borrow().iter().map(|request| request.bounds.end).min().unwrap_or(Duration::MAX)
    }

    pub(crate) fn wait(&self, request: Request) {
        self.pending.borrow_mut().push(request);
    }

    /// Takes the first waiting request that fits.
    pub(crate) fn take(&self, mut fits: impl FnMut(&Request) -> bool) -> Option<Request> {
        let mut pending = self.pending.borrow_mut();
        let index = pending.iter().position(&mut fits)?;
        Some(pending.remove(index))
    }

    /// The request on whose behalf something of this one goes on: itself while it waits, and otherwise the first of those that
    /// do.
    pub(crate) fn heir_of(&self, request: RequestId) -> Option<RequestId> {
        let pending = self.pending.borrow();
        let is_waiting = pending.iter().any(|waiting| waiting.id == request);
        if is_waiting { Some(request) } else { pending.iter().map(|waiting| waiting.id).min() }
    }

    /// Notes a call of the outermost request.
    pub(crate) fn add_call(&self, id: CallId, call: Call) {
        self.calls_of_outermost.update(|calls| calls + 1);
        self.calls.borrow_mut().insert(id, call);
    }

    pub(crate) fn take_call(&self, id: CallId) -> Option<Call> {
        self.calls.borrow_mut().remove(&id)
    }

    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.borrow().is_empty()
    }

    /// Puts off a settlement until guest code that runs has returned.
    pub(crate) fn settle_later(&self, call: CallId, outcome: Result<Value, HostError>) {
        self.late.borrow_mut().push_back((call, outcome));
    }

    pub(crate) fn take_late_settlement(&self) -> Option<LateSettlement> {
        self.late.borrow_mut().pop_front()
    }

    /// Whether another unhandled rejection is kept for this request. One more than are told is, because one of them may
    /// turn out to be of the request's own result.
    pub(crate) fn keeps_rejection(&self, request: RequestId) -> bool {
        let rejections = self.rejections.borrow();
        rejections.iter().filter(|rejection| rejection.request == request).count() <= bounds::UNHANDLED
    }

    pub(crate) fn add_rejection(
        &self,
        context: &Context,
        request: RequestId,
        promise: Local<'_>,
        error: JsError,
    ) {
        let promise = Some(Kept::new(context, promise));
        self.rejections.borrow_mut().push(Rejection { request, promise, error });
    }

    /// Notes what a callback threw that nobody waits for.
    pub(crate) fn add_uncaught(&self, request: RequestId, error: JsError) {
        self.rejections.borrow_mut().push(Rejection { request, promise: None, error });
    }

    /// Drops the rejection of a promise that turned out to be a request's own result.
    pub(crate) fn forget_rejection(&self, promise: Local<'_>) {
        self.rejections
            .borrow_mut()
            .retain(|rejection| !rejection.promise.as_ref().is_some_and(|rejected| rejected.is(promise)));
    }

    fn take_rejections(&self, request: RequestId) -> Vec<JsError> {
        let mut rejections = self.rejections.borrow_mut();
        if rejections.is_empty() {
            return Vec::new();
        }
        let mut unhandled = Vec::new();
        rejections.retain_mut(|rejection| {
            if rejection.request != request {
                return true;
            }
            unhandled.push(std::mem::take(&mut rejection.error));
            false
        });
        unhandled.truncate(bounds::UNHANDLED);
        unhandled
    }

    /// What is told of a request that has ended. The calls that it has in flight are given up where it failed, and so are its
    /// timers.
    pub(crate) fn end(&self, request: RequestId, outcome: Result<Value, Failure>) -> Ended {
        if outcome.is_err() {
            if self.has_calls() {
                self.calls.borrow_mut().retain(|_, call| call.request != request);
            }
            self.timers.give_up(request);
            let mut failed = self.failed.borrow_mut();
            if failed.len() == MAX_FAILED {
                failed.pop_front();
            }
            failed.push_back(request);
        }
        Ended { request, outcome, unhandled: self.take_rejections(request) }
    }

    /// Whether a request has failed, so that nothing goes on that waited for its calls. Nothing is known of request 0, a
    /// number that is used again and again.
    pub(crate) fn has_failed(&self, request: RequestId) -> bool {
        request != 0 && self.failed.borrow().contains(&request)
    }

    /// Keeps it until it is asked for.
    pub(crate) fn tell(&self, ended: Ended) {
        self.ended.borrow_mut().push_back(ended);
    }

    pub(crate) fn take_ended_of(&self, request: RequestId) -> Option<Ended> {
        let mut ended = self.ended.borrow_mut();
        let index = ended.iter().position(|ended| ended.request == request)?;
        ended.remove(index)
    }

    pub(crate) fn take_ended(&self) -> Option<Ended> {
        self.ended.borrow_mut().pop_front()
    }
}
