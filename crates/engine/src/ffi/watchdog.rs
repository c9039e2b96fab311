//! The engine's timer, and the question it asks.

use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::rc::Rc;
use std::time::Duration;

use super::context::Context;
use super::table::ContextRef;

/// Answers the engine's question whether to go on.
pub(crate) trait Interrupt {
    /// Whether the guest is to be stopped. Called between two of its instructions.
    fn should_stop(&self) -> bool;
}

struct Question {
    context: Context,
    interrupt: Rc<dyn Interrupt>,
    /// Whether the engine is to ask at once whenever it is entered.
    at_every_entry: Cell<bool>,
}

/// How much of the guest's processor time passes between two questions. No timer of the engine's takes longer.
///
/// It is the same for every evaluation and stays set between them: setting it anew would wake the engine's timer thread
/// each time, which costs more than a small evaluation does.
pub(crate) const PERIOD: Duration = Duration::from_millis(25);

/// The engine's own unit is a microsecond.
const AT_ONCE: Duration = Duration::from_micros(1);

impl Question {
    fn ask_after(&self, period: Duration) -> bool {
        let Some(set) = self.context.table().set_execution_time_limit else { return false };
        let data = (&raw const *self).cast_mut().cast::<c_void>();
        // SAFETY: the table, one thread; the group is alive. `data` is the question in the box of its watchdog; it
        // outlives the timer, because dropping the watchdog clears it first.
        unsafe { set(self.context.group(), period.as_secs_f64(), should_terminate, data) };
        true
    }
}

/// Asks an [`Interrupt`] again and again while the guest runs.
pub(crate) struct Watchdog {
    question: Box<Question>,
}

impl Watchdog {
    /// Starts asking, or returns `None` where this engine cannot.
    pub(crate) fn start(context: &Context, interrupt: Rc<dyn Interrupt>) -> Option<Self> {
        // Without the function that stops the asking the question could be asked of freed memory.
        context.table().clear_execution_time_limit?;
        let watchdog = Self {
            question: Box::new(Question {
                context: context.clone(),
                interrupt,
                at_every_entry: Cell::new(false),
            }),
        };
        watchdog.question.ask_after(PERIOD).then_some(watchdog)
    }

    /// Asks at once, and then at the usual pace.
    ///
    /// There must be no other timer of the engine's on its way. Its timer thread tells the guest to ask, and then takes a lock to
    /// have it stopped for that; when the guest has answered both this timer and another in between, the thread finds a
    /// state that it holds impossible, and aborts the process (`VMTraps::requestThreadStopIfNeeded`, `JavaScriptCore` 2.50.6).
    pub(crate) fn ask_at_once(&self) {
        self.question.ask_after(AT_ONCE);
    }

    /// Asks at once whenever the engine is entered, which must not be now, and as long as the answer is to stop. The same holds
    /// for other timers, so that each entry must be stopped before the next.
    pub(crate) fn ask_at_every_entry(&self) {
        self.question.at_every_entry.set(true);
        self.question.ask_after(AT_ONCE);
    }

    /// Asks at the usual pace from now on.
    pub(crate) fn ask_at_the_usual_pace(&self) {
        self.question.at_every_entry.set(false);
        self.question.ask_after(PERIOD);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let context = &self.question.context;
        if let Some(clear) = context.table().clear_execution_time_limit {
            // SAFETY: the table, one thread; the group is alive; afterwards the engine has forgotten the question.
            unsafe { clear(context.group()) };
        }
    }
}

unsafe extern "C" fn should_terminate(_: ContextRef, data: *mut c_void) -> bool {
    // SAFETY: `data` is the address of a question whose watchdog is alive, or the engine would have forgotten it; it
    // asks on the thread that runs the guest, which is the watchdog's own.
    let question = unsafe { &*data.cast::<Question>() };
    let stop =
        catch_unwind(AssertUnwindSafe(|| question.interrupt.should_stop())).unwrap_or_else(|payload| {
            question.context.store_panic(payload);
            true
        });
    let stop = stop || question.context.has_panicked();
    // The engine asks once. It goes on asking only when the limit is set anew, from within the question. That is also done for
    // a guest that is stopped: with the limit of a question that was to come at once, each call of the engine that is an
    // entry of its own would start a timer.
    if !(stop && question.at_every_entry.get()) {
        question.ask_after(PERIOD);
    }
    stop
}

/// A question of a caller's, lent for the length of a call.
#[derive(Default)]
pub(crate) struct Lent(Cell<Option<NonNull<dyn Fn() -> bool>>>);

impl Lent {
    /// Runs `body` while `question` can be asked.
    pub(crate) fn during<R>(&self, question: &dyn Fn() -> bool, body: impl FnOnce() -> R) -> R {
        struct Restore<'a>(&'a Lent, Option<NonNull<dyn Fn() -> bool>>);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.0.set(self.1);
            }
        }
        // SAFETY: only the lifetime changes. The guard below takes the pointer back before this function returns,
        // also when `body` unwinds, and `question` lives longer than that.
        let erased = unsafe {
            std::mem::transmute::<NonNull<dyn Fn() -> bool + '_>, NonNull<dyn Fn() -> bool + 'static>>(
                NonNull::from(question),
            )
        };
        let _restore = Restore(self, self.0.replace(Some(erased)));
        body()
    }

    /// The answer, or `false` while nothing is lent.
    pub(crate) fn ask(&self) -> bool {
        self.0.get().is_some_and(|question| {
            // SAFETY: set only within `during`, whose caller's reference is alive.
            let question = unsafe { question.as_ref() };
            question()
        })
    }
}
