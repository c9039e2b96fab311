//! When an evaluation is stopped from inside, and how its own fault is told from the engine's words.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use pydeno_wire::Budget;
use pydeno_wire::message::Failure;

use crate::ffi::{Context, EngineString, Interrupt, Lent, Watchdog};

/// What one evaluation may use.
pub struct EvalLimits<'a> {
    /// How long the guest may run, time spent in host functions not counted.
    pub timeout: Duration,
    /// Asked every few milliseconds of the guest's processor time; `true` stops it.
    pub cancelled: &'a dyn Fn() -> bool,
    /// How large the engine's heap may become, buffers included.
    pub max_heap_bytes: u64,
    /// Bounds the value, and the arguments of each host call.
    pub budget: Budget,
}

impl Default for EvalLimits<'_> {
    /// A minute, never cancelled, 1 GiB, and the default [`Budget`].
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            cancelled: &|| false,
            max_heap_bytes: 1 << 30,
            budget: Budget::default(),
        }
    }
}

/// A look at the heap takes longer the larger the heap is. It is done again after this many times as long.
const HEAP_CHECK_SPACING: u32 = 20;

/// Why the guest was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Timeout,
    HeapLimit,
    Cancelled,
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Timeout => Self::Timeout,
            Stop::HeapLimit => Self::HeapLimit,
            Stop::Cancelled => Self::Cancelled,
        }
    }
}

/// The soft deadline of an isolate: armed for each evaluation, asleep between them.
pub(crate) struct Deadline {
    question: Rc<Question>,
    watchdog: Option<Watchdog>,
}

struct Question {
    context: Context,
    heap_names: [EngineString; 2],
    armed: Cell<bool>,
    stop: Cell<Option<Stop>>,
    end: Cell<Option<Instant>>,
    max_heap_bytes: Cell<u64>,
    next_heap_check: Cell<Option<Instant>>,
    cancel: Lent,
}

impl Deadline {
    /// The deadline of this context.
    pub(crate) fn new(context: &Context) -> Self {
        let question = Rc::new(Question {
            context: context.clone(),
            heap_names: ["heapSize", "extraMemorySize"]
                .map(|name| EngineString::from_str(context.table(), name)),
            armed: Cell::new(false),
            stop: Cell::new(None),
            end: Cell::new(None),
            max_heap_bytes: Cell::new(u64::MAX),
            next_heap_check: Cell::new(None),
            cancel: Lent::default(),
        });
        let watchdog = Watchdog::start(context, Rc::clone(&question) as Rc<dyn Interrupt>);
        Self { question, watchdog }
    }

    /// Runs `body` under these limits and tells why it was stopped, if it was.
    pub(crate) fn during<R>(&self, limits: &EvalLimits<'_>, body: impl FnOnce() -> R) -> (R, Option<Stop>) {
        let question = &*self.question;
        // A timeout beyond what the clock can tell is none.
        question.end.set(Instant::now().checked_add(limits.timeout));
        question.max_heap_bytes.set(limits.max_heap_bytes);
        question.stop.set(None);
        question.armed.set(true);
        let result = question.cancel.during(limits.cancelled, body);
        question.armed.set(false);
        let stop = question.stop.take();
        if stop.is_some()
            && let Some(watchdog) = &self.watchdog
        {
            watchdog.ask_at_the_usual_pace();
        }
        (result, stop)
    }

    /// Why the guest has been stopped in this evaluation, if it has.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.question.stop.get()
    }

    /// Runs `body`, a host function, outside the guest's time.
    pub(crate) fn paused<R>(&self, body: impl FnOnce() -> R) -> R {
        let question = &*self.question;
        let began = Instant::now();
        if question.end.get().is_some_and(|end| end <= began)
            && let Some(watchdog) = &self.watchdog
        {
            // A chain of promise reactions that call the host never runs long enough in one piece to be asked about.
            watchdog.ask_soon();
        }
        let result = body();
        question.end.set(question.end.get().and_then(|end| end.checked_add(began.elapsed())));
        result
    }
}

impl Question {
    fn reason_to_stop(&self) -> Option<Stop> {
        let now = Instant::now();
        if self.end.get().is_some_and(|end| end <= now) {
            return Some(Stop::Timeout);
        }
        if self.cancel.ask() {
            return Some(Stop::Cancelled);
        }
        if self.next_heap_check.get().is_none_or(|next| next <= now) {
            let over = self.heap_is_over_its_limit();
            let spacing = now.elapsed() * HEAP_CHECK_SPACING;
            self.next_heap_check.set(Instant::now().checked_add(spacing));
            if over {
                return Some(Stop::HeapLimit);
            }
        }
        None
    }

    fn heap_is_over_its_limit(&self) -> bool {
        let limit = self.max_heap_bytes.get() as f64;
        if self.heap_bytes() <= limit {
            return false;
        }
        // Much of it may be garbage that the engine has not collected yet.
        self.context.collect_garbage();
        self.heap_bytes() > limit
    }

    fn heap_bytes(&self) -> f64 {
        let Some(statistics) = self.context.memory_statistics() else { return 0.0 };
        self.heap_names
            .iter()
            .filter_map(|name| self.context.get(statistics, name).ok())
            .map(|bytes| self.context.to_number(bytes))
            .filter(|bytes| bytes.is_finite())
            .fold(0.0, f64::max)
    }
}

impl Interrupt for Question {
    fn should_stop(&self) -> bool {
        // A timer of an evaluation that is over may fire in the next one, or between two.
        if !self.armed.get() {
            return false;
        }
        if self.stop.get().is_none() {
            self.stop.set(self.reason_to_stop());
        }
        self.stop.get().is_some()
    }
}
