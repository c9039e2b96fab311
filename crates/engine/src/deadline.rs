//! When an evaluation is stopped from inside, and how its own fault is told from the engine's words.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use pydeno_wire::Budget;
use pydeno_wire::message::Failure;

use crate::ffi::{Context, Interrupt, Lent, PERIOD, Watchdog};
use crate::guest_time::GuestTime;
use crate::heap::HeapReader;

/// What one request may use.
pub struct EvalLimits<'a> {
    /// How long the guest may run, on behalf of whichever request, until this one has ended. Time spent in host functions
    /// and waiting for calls is not counted.
    pub timeout: Duration,
    /// Asked every few milliseconds of the guest's processor time, until the request has ended or waits for calls; `true`
    /// stops it.
    pub cancelled: &'a dyn Fn() -> bool,
    /// How large the engine's heap may become, buffers included.
    pub max_heap_bytes: u64,
    /// Bounds the value, and the arguments of each host call on the request's behalf.
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

/// What the step that a settled call causes may use, besides what its request may.
pub struct StepLimits<'a> {
    /// Asked every few milliseconds of the guest's processor time; `true` stops the request that made the call.
    pub cancelled: &'a dyn Fn() -> bool,
}

impl Default for StepLimits<'_> {
    /// Never cancelled.
    fn default() -> Self {
        Self { cancelled: &|| false }
    }
}

/// A look at the heap takes longer the larger the heap is. It is done again after this many times as long.
const HEAP_CHECK_SPACING: u32 = 20;

/// How long a guest sleeps, and with it starts no timer, until every timer of the engine's that was on its way has gone off.
const TIMERS_OUT: Duration = PERIOD.saturating_add(Duration::from_millis(2));

/// How long a guest that calls the host sleeps for the timer that has just been started.
const MOMENT: Duration = Duration::from_millis(1);

/// For how long it does so, call after call.
const TIMER_PATIENCE: Duration = Duration::from_millis(10);

/// How often the deadline is looked at between sections.
const LOOK_SPACING: Duration = Duration::from_millis(2);

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

/// The soft deadline of an isolate: armed while guest code runs, asleep otherwise.
pub(crate) struct Deadline {
    question: Rc<Question>,
    /// Empty where the engine cannot be asked, and until [`start`](Self::start).
    watchdog: OnceCell<Watchdog>,
    /// When the engine was last told to ask at once.
    told: Cell<Option<Instant>>,
    /// Whether the engine is to ask at once in every section, until all that was stopped has come to its end.
    impatient: Cell<bool>,
    looked: Cell<Option<Instant>>,
}

struct Question {
    context: Context,
    heap: HeapReader,
    time: GuestTime,
    stop: Cell<Option<Stop>>,
    /// When the guest is stopped, in its own time.
    end: Cell<Duration>,
    max_heap_bytes: Cell<u64>,
    next_heap_check: Cell<Option<Instant>>,
    cancel: Lent,
    /// How many sections are open, one inside the other.
    depth: Cell<u32>,
    /// The outermost section that was cancelled, and with it those inside it.
    cancelled: Cell<Option<u32>>,
    /// Whether what runs between two sections is stopped.
    everything: Cell<bool>,
    /// Whether the engine has asked since it was last told to do so at once.
    has_asked: Cell<bool>,
}

/// What one section of guest code may use.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// When it is stopped, in guest time.
    pub(crate) end: Duration,
    pub(crate) max_heap_bytes: u64,
}

impl Deadline {
    /// The deadline of this context, which nobody looks at before it is [started](Self::start).
    pub(crate) fn new(context: &Context, heap: HeapReader) -> Self {
        let question = Rc::new(Question {
            context: context.clone(),
            heap,
            time: GuestTime::default(),
            stop: Cell::new(None),
            end: Cell::new(Duration::MAX),
            max_heap_bytes: Cell::new(u64::MAX),
            next_heap_check: Cell::new(None),
            cancel: Lent::default(),
            depth: Cell::new(0),
            cancelled: Cell::new(None),
            everything: Cell::new(false),
            has_asked: Cell::new(true),
        });
        Self {
            question,
            watchdog: OnceCell::new(),
            told: Cell::new(None),
            impatient: Cell::new(false),
            looked: Cell::new(None),
        }
    }

    /// Has the engine look at it from now on, which takes a thread of the engine's.
    pub(crate) fn start(&self) {
        let question = Rc::clone(&self.question) as Rc<dyn Interrupt>;
        if self.watchdog.get().is_none()
            && let Some(watchdog) = Watchdog::start(&self.question.context, question)
        {
            // It was empty a moment ago, on this thread.
            let _ = self.watchdog.set(watchdog);
        }
    }

    /// The guest's time so far.
    pub(crate) fn now(&self) -> Duration {
        self.question.time.now()
    }

    /// Runs `body`, a section of guest code, within these bounds and tells why it was stopped, if it was. One within a
    /// host function has no more than the section around it; where it is stopped, so is that.
    pub(crate) fn during<R>(
        &self,
        bounds: Bounds,
        cancelled: &dyn Fn() -> bool,
        body: impl FnOnce() -> R,
    ) -> (R, Option<Stop>) {
        let question = &*self.question;
        let depth = question.depth.get();
        let (end, heap) = (question.end.get(), question.max_heap_bytes.get());
        question.end.set(if depth == 0 { bounds.end } else { end.min(bounds.end) });
        question.max_heap_bytes.set(if depth == 0 {
            bounds.max_heap_bytes
        } else {
            heap.min(bounds.max_heap_bytes)
        });
        question.depth.set(depth + 1);
        if self.impatient.get() {
            self.has_been_told();
        }
        let result = question.time.running(|| question.cancel.during(cancelled, body));
        let stop = question.stop.get();
        // The engine goes on stopping until its outermost call has returned.
        if depth == 0 {
            question.stop.set(None);
        }
        question.end.set(end);
        question.max_heap_bytes.set(heap);
        question.depth.set(depth);
        if question.cancelled.get().is_some_and(|outermost| outermost >= depth) {
            question.cancelled.set(None);
        }
        // It has not come to where it asks, and is to leave the next section its time.
        if depth == 0
            && !self.impatient.get()
            && !question.has_asked.replace(true)
            && let Some(watchdog) = self.watchdog.get()
        {
            watchdog.ask_at_the_usual_pace();
        }
        (result, stop)
    }

    /// Runs `body`, several sections, and counts what is between them as the guest's time too.
    pub(crate) fn including_what_is_between<R>(&self, body: impl FnOnce() -> R) -> R {
        self.question.time.including_what_is_between(body)
    }

    /// Why no other section is to begin on behalf of the same request, if there is a reason. Asked between sections that may
    /// each be too short for the engine to ask; looks now and then only, since looking takes time.
    pub(crate) fn look(&self, bounds: Bounds, cancelled: &dyn Fn() -> bool) -> Option<Stop> {
        let now = Instant::now();
        if self.looked.get().is_some_and(|looked| now.duration_since(looked) < LOOK_SPACING) {
            return None;
        }
        self.looked.set(Some(now));
        let question = &*self.question;
        let ((), stop) = self.during(bounds, cancelled, || question.stop.set(question.reason_to_stop()));
        stop
    }

    /// Why the section that runs has been stopped, if it has.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.question.stop.get()
    }

    /// Whether the section that runs has been stopped, or is now because its time is over or it was cancelled: then the host
    /// does nothing more for it, whether or not the engine has come to ask.
    pub(crate) fn is_over(&self) -> bool {
        let question = &*self.question;
        if question.stop.get().is_none() {
            question.stop.set(question.plain_reason_to_stop());
        }
        question.stop.get().is_some()
    }

    /// Stops the section at this depth, 0 for the outermost, and those inside it, as cancelled: when they next call the host,
    /// or the engine asks.
    pub(crate) fn cancel(&self, depth: u32) {
        let cancelled = &self.question.cancelled;
        cancelled.set(Some(cancelled.get().map_or(depth, |outermost| outermost.min(depth))));
    }

    /// Stops also what a call of the engine between two sections sets going: reactions that are left over.
    pub(crate) fn stop_everything(&self, everything: bool) {
        self.question.everything.set(everything);
    }

    pub(crate) fn stops_everything(&self) -> bool {
        self.question.everything.get()
    }

    /// While everything is stopped, has the engine ask as soon as a section has begun, until [patience](Self::regain_patience) has
    /// been regained.
    pub(crate) fn lose_patience(&self) {
        if let Some(watchdog) = self.watchdog.get()
            && !self.impatient.replace(true)
        {
            thread::sleep(TIMERS_OUT);
            watchdog.ask_at_every_entry();
        }
    }

    /// Has it ask at the usual pace again.
    pub(crate) fn regain_patience(&self) {
        if self.impatient.replace(false)
            && let Some(watchdog) = self.watchdog.get()
        {
            watchdog.ask_at_the_usual_pace();
        }
    }

    /// For a guest whose time is over and that still calls the host: has the engine ask, which it else does at a pace of processor
    /// time, of which one that mostly waits uses little. It may take some calls: the engine's timer needs a processor, too,
    /// which a guest that only ran on might never leave it on a busy machine.
    ///
    /// A guest does not sleep for long: an exception that every frame of a deep stack catches and throws again leads from one
    /// host call to the next without coming to where the engine asks.
    pub(crate) fn hurry(&self) {
        let Some(watchdog) = self.watchdog.get() else { return };
        if self.question.has_asked.get() {
            if !self.impatient.get() {
                thread::sleep(TIMERS_OUT);
            }
            self.has_been_told();
            watchdog.ask_at_once();
        }
        if self.told.get().is_some_and(|told| told.elapsed() < TIMER_PATIENCE) {
            thread::sleep(MOMENT);
        }
    }

    fn has_been_told(&self) {
        self.question.has_asked.set(false);
        self.told.set(Some(Instant::now()));
    }

    /// Runs `body`, a host function, outside the guest's time.
    pub(crate) fn paused<R>(&self, body: impl FnOnce() -> R) -> R {
        self.question.time.paused(body)
    }
}

impl Question {
    /// What a look at the clock and at the notes of this thread tells.
    fn plain_reason_to_stop(&self) -> Option<Stop> {
        if self.end.get() <= self.time.now() {
            return Some(Stop::Timeout);
        }
        let section = self.depth.get().saturating_sub(1);
        self.cancelled.get().filter(|&outermost| outermost <= section).map(|_| Stop::Cancelled)
    }

    fn reason_to_stop(&self) -> Option<Stop> {
        if let Some(stop) = self.plain_reason_to_stop() {
            return Some(stop);
        }
        if self.cancel.ask() {
            return Some(Stop::Cancelled);
        }
        let now = Instant::now();
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
        if self.heap.bytes() <= limit {
            return false;
        }
        // Much of it may be garbage that the engine has not collected yet.
        self.context.collect_garbage();
        self.heap.bytes() > limit
    }
}

impl Interrupt for Question {
    /// The guest may have thrown something that is still under way, see [`crate::heap`].
    fn should_stop(&self) -> bool {
        self.has_asked.set(true);
        // A timer of a section that is over may fire in the next one, or between two.
        if !self.time.is_running() {
            return self.everything.get();
        }
        if self.stop.get().is_none() {
            self.stop.set(self.reason_to_stop());
        }
        self.stop.get().is_some()
    }
}
