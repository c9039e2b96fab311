//! One evaluation, one invocation or one asking of a stream, and what it has used so far.

use std::time::Duration;

use pydeno_wire::Value;
use pydeno_wire::message::WasmExport;

use crate::clock::Nanos;
use crate::session::SessionLimits;
use crate::webassembly;

/// What the engine may need beyond `timeout`, and the worker beyond `request_timeout`, to end by itself before the host
/// ends the worker.
pub(crate) const GRACE: Duration = Duration::from_millis(500);

/// Why the host asked for a request's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopping {
    /// The caller wanted it.
    Cancelled,
    /// It called too many host functions.
    HostCallBudget,
    /// It had too many asynchronous calls in flight.
    InflightLimit,
    /// It waited too long for host functions.
    HostWait,
    /// It took too long in all.
    RequestTimeout,
}

/// An evaluation or invocation that has not ended.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: u64,
    /// How many synchronous calls the guest was waiting for when it began: it ends before they are answered.
    pub(crate) nesting: usize,
    started: Nanos,
    /// The guest's clock when it began.
    ran_before: Duration,
    pub(crate) calls: u64,
    /// Its asynchronous calls that have not been answered.
    pub(crate) in_flight: u64,
    pub(crate) console_bytes: usize,
    pub(crate) console_notes: u32,
    pub(crate) stopping: Option<Stopping>,
    /// Whether it asks a stream, which may then have ended.
    pub(crate) asks_stream: bool,
    /// What the module exports that it loads, if it loads one: its value has exactly that.
    pub(crate) loads: Option<Vec<WasmExport>>,
}

impl Request {
    pub(crate) fn new(id: u64, nesting: usize, now: Nanos, ran: Duration) -> Self {
        Self {
            id,
            nesting,
            started: now,
            ran_before: ran,
            calls: 0,
            in_flight: 0,
            console_bytes: 0,
            console_notes: 0,
            stopping: None,
            asks_stream: false,
            loads: None,
        }
    }

    /// Whether it may have this value.
    pub(crate) fn may_be(&self, value: &Value) -> bool {
        self.loads.as_deref().is_none_or(|exports| webassembly::is_what_is_exported(exports, value))
    }

    /// When the worker must be killed if this request has not ended; `ran` is the guest's clock, `running` since when
    /// it runs.
    pub(crate) fn deadline(&self, limits: &SessionLimits, ran: Duration, running: Option<Nanos>) -> Nanos {
        let whole = self.started.plus(limits.request_timeout);
        match running {
            Some(since) => {
                let left = limits.timeout.saturating_sub(ran.saturating_sub(self.ran_before));
                since.plus(left + GRACE).min(whole.plus(GRACE))
            }
            None => whole.plus(GRACE),
        }
    }

    /// When it is to be asked to end, if it is still waiting for host functions then; and why.
    pub(crate) fn patience(&self, limits: &SessionLimits, ran: Duration) -> (Nanos, Stopping) {
        let whole = self.started.plus(limits.request_timeout);
        let wait = self.started.plus(limits.max_host_wait + ran.saturating_sub(self.ran_before));
        if wait <= whole { (wait, Stopping::HostWait) } else { (whole, Stopping::RequestTimeout) }
    }
}
