//! Streams: what gives one item after the other when it is asked.
//!
//! One of the guest's is an object that can be iterated asynchronously. The host holds it, and asks it with a request of
//! its own. One of the host's is an async iterator of the prelude, which asks by an asynchronous call.

use std::cell::RefCell;

use pydeno_wire::message::{Failure, StreamRequest};
use pydeno_wire::{Stream, StreamOwner, Text};

use crate::async_function::{self, AsyncHostFunction};
use crate::deadline::EvalLimits;
use crate::ffi::{Context, EngineString, Kept, Local, Thrown};
use crate::isolate::{Isolate, Shared};
use crate::requests::RequestId;

/// The prelude's part, and how streams of the host are asked.
pub(crate) struct Streams {
    pull: Kept,
    finish: Kept,
    make: Kept,
    iterable: EngineString,
    done: EngineString,
    /// The function that asks one of the host's; none before [`Isolate::set_host_streams`].
    ask: RefCell<Option<Kept>>,
}

impl Streams {
    /// Takes the functions from the record that streams.js returns.
    pub(crate) fn new<'c>(context: &'c Context, record: Local<'c>) -> Result<Self, Thrown<'c>> {
        let string = |text| EngineString::from_str(context.table(), text);
        let kept = |name| context.get(record, &string(name)).map(|value| Kept::new(context, value));
        Ok(Self {
            pull: kept("pull")?,
            finish: kept("finish")?,
            make: kept("make")?,
            iterable: string("iterable"),
            done: string("done"),
            ask: RefCell::default(),
        })
    }

    /// Asks a stream of the guest; the promise is for a record of the prelude's.
    fn ask<'c>(
        &self,
        context: &'c Context,
        record: Local<'c>,
        what: StreamRequest,
    ) -> Result<Local<'c>, Thrown<'c>> {
        let function = match what {
            StreamRequest::Next => &self.pull,
            StreamRequest::Return => &self.finish,
        };
        context.call(function.get(context), &[record])
    }

    /// Whether the record that a request leaves says that a stream has ended. That of a script never does.
    pub(crate) fn has_ended<'c>(&self, context: &'c Context, record: Local<'c>) -> Result<bool, Thrown<'c>> {
        context.get(record, &self.done).map(|done| context.to_bool(done))
    }

    /// The value that stands for a stream in the guest: the object itself, or an iterator over one of the host's. `None`
    /// where there is no such stream.
    pub(crate) fn import<'c>(
        &self,
        context: &'c Context,
        shared: &Shared,
        stream: Stream,
    ) -> Result<Option<Local<'c>>, Thrown<'c>> {
        match stream.owner {
            StreamOwner::Guest => shared
                .held
                .stream(context, stream.handle)
                .map(|record| context.get(record, &self.iterable))
                .transpose(),
            StreamOwner::Host => {
                let Some(ask) = self.ask.borrow().as_ref().map(|ask| ask.get(context)) else {
                    return Ok(None);
                };
                let handle = context.number(stream.handle as f64);
                shared.prelude.call(context, &self.make, &[handle, ask]).map(Some)
            }
        }
    }
}

impl Isolate {
    /// Lets streams of the host cross. The function is called when the guest asks one: its arguments are the stream's handle
    /// and the number of a [`StreamRequest`], and the call is settled with an array of the next item, or an empty one at
    /// the end. Call it once, before any guest code.
    pub fn set_host_streams(&self, start: AsyncHostFunction) {
        let name = Text::from("next");
        let ask = async_function::make(&self.context, &self.shared, &name, start);
        *self.shared.streams().ask.borrow_mut() = Some(Kept::new(&self.context, ask.get(&self.context)));
        self.keep(ask);
    }

    /// Begins to ask a stream of the guest for its next item, or to end. At its end the request fails with
    /// [`Failure::StreamEnded`], once the calls that were made on its behalf have been settled. Within a host function
    /// it cannot wait for an item, so it is to be begun outside.
    ///
    /// # Panics
    ///
    /// As [`begin_eval`](Self::begin_eval).
    pub fn begin_pull(&self, request: RequestId, stream: u64, what: StreamRequest, limits: &EvalLimits<'_>) {
        self.begin_wrapped(request, limits, || {
            let (context, shared) = (&self.context, &*self.shared);
            let record = shared.held.stream(context, stream).ok_or(Failure::UnknownFunction)?;
            let asked = shared.streams().ask(context, record, what);
            self.go_on_unless_stopped()?;
            asked.map_err(|thrown| self.describe(thrown))
        });
    }
}
