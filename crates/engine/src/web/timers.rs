//! Timers on a time of their own, which stands still while anything runs and jumps to the next timer when nothing does.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};

use crate::ffi::{Context, Kept, Local, Thrown};
use crate::prelude::Prelude;
use crate::requests::RequestId;

/// The most timers that wait at a time.
const MOST: usize = 100_000;

/// A timer that is set by the callback of another, that by that of a third and so on is shortened no further than to
/// [`LEAST_OF_NESTED`] after so many, as in the HTML standard: time would stand still for ever.
const MOST_NESTED: u32 = 5;

/// The least period of a nested timer, in milliseconds.
const LEAST_OF_NESTED: u64 = 4;

/// A callback that is to be run at a time.
pub(crate) struct Timer {
    id: u64,
    /// The request that has set it, or on whose behalf it has gone off last.
    owner: RequestId,
    callback: Kept,
    arguments: Kept,
    period: u64,
    repeats: bool,
    nesting: u32,
}

/// When a timer goes off, in milliseconds, and its place among those of the same time.
type Place = (u64, u64);

/// The timers of an isolate. Nothing is borrowed while guest code runs.
#[derive(Default)]
pub(crate) struct Timers {
    now: Cell<u64>,
    last_id: Cell<u64>,
    last_place: Cell<u64>,
    /// How deeply the timer whose callback runs is nested.
    nesting: Cell<u32>,
    waiting: RefCell<BTreeMap<Place, Timer>>,
    /// Where each is that has not been cleared; one whose callback runs is nowhere.
    places: RefCell<HashMap<u64, Option<Place>>>,
    /// The function of the prelude that runs a callback.
    run: RefCell<Option<Kept>>,
}

impl Timers {
    /// The time, in milliseconds since the isolate was made.
    pub(crate) fn now(&self) -> u64 {
        self.now.get()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Says which function of the prelude runs a callback with its arguments and lets nothing out that it throws.
    pub(super) fn run_with(&self, run: Kept) {
        self.run.replace(Some(run));
    }

    /// Sets a timer; `None` when there are too many.
    pub(super) fn set(
        &self,
        owner: RequestId,
        callback: Kept,
        arguments: Kept,
        delay: u64,
        repeats: bool,
    ) -> Option<u64> {
        if self.places.borrow().len() >= MOST {
            return None;
        }
        let id = self.last_id.get() + 1;
        self.last_id.set(id);
        let nesting = self.nesting.get() + 1;
        self.insert(Timer { id, owner, callback, arguments, period: delay, repeats, nesting });
        Some(id)
    }

    fn insert(&self, timer: Timer) {
        let least = if timer.nesting > MOST_NESTED { LEAST_OF_NESTED } else { 0 };
        self.last_place.set(self.last_place.get() + 1);
        let place = (self.now.get().saturating_add(timer.period.max(least)), self.last_place.get());
        self.places.borrow_mut().insert(timer.id, Some(place));
        self.waiting.borrow_mut().insert(place, timer);
    }

    /// Clears a timer; of one that is not set, nothing.
    pub(super) fn clear(&self, id: u64) {
        let place = self.places.borrow_mut().remove(&id).flatten();
        let timer = place.and_then(|place| self.waiting.borrow_mut().remove(&place));
        drop(timer);
    }

    /// The owner of the next timer, where that is due or time may jump.
    pub(crate) fn next(&self, may_jump: bool) -> Option<RequestId> {
        let waiting = self.waiting.borrow();
        let (&(due, _), timer) = waiting.first_key_value()?;
        (may_jump || due <= self.now.get()).then_some(timer.owner)
    }

    /// Lets time jump to the next timer, and takes it.
    pub(crate) fn take_next(&self) -> Option<Timer> {
        let ((due, _), timer) = self.waiting.borrow_mut().pop_first()?;
        self.now.set(self.now.get().max(due));
        let mut places = self.places.borrow_mut();
        if timer.repeats {
            places.insert(timer.id, None);
        } else {
            places.remove(&timer.id);
        }
        Some(timer)
    }

    /// Sets a timer that repeats again, unless its callback has cleared it. From now on it is this request's.
    pub(crate) fn repeat(&self, timer: Timer, owner: RequestId) {
        let is_cleared = !self.places.borrow().contains_key(&timer.id);
        if timer.repeats && !is_cleared {
            self.insert(Timer { owner, nesting: timer.nesting.saturating_add(1), ..timer });
        }
    }

    /// Forgets a timer whose callback was stopped.
    pub(crate) fn forget(&self, timer: &Timer) {
        self.places.borrow_mut().remove(&timer.id);
    }

    /// Clears the timers of a request.
    pub(crate) fn give_up(&self, owner: RequestId) {
        if self.is_empty() {
            return;
        }
        let mut places = self.places.borrow_mut();
        self.waiting.borrow_mut().retain(|_, timer| {
            if timer.owner == owner {
                places.remove(&timer.id);
            }
            timer.owner != owner
        });
    }
}

impl Timer {
    /// Runs the callback at this time.
    pub(crate) fn run<'c>(
        &self,
        context: &'c Context,
        prelude: &Prelude,
        timers: &Timers,
    ) -> Result<Local<'c>, Thrown<'c>> {
        let Some(run) = timers.run.borrow().as_ref().map(|run| run.get(context)) else {
            return Ok(context.undefined());
        };
        prelude.set_jumped(context, timers.now())?;
        timers.nesting.set(self.nesting);
        let arguments = [self.callback.get(context), self.arguments.get(context)];
        let ran = context.call(run, &arguments);
        timers.nesting.set(0);
        ran
    }
}
