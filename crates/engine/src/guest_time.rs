//! The time that a guest has had.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A clock that runs while guest code does, conversions included, and stands still in host functions and between two
/// steps.
#[derive(Default)]
pub(crate) struct GuestTime {
    spent: Cell<Duration>,
    since: Cell<Option<Instant>>,
}

impl GuestTime {
    /// How long it has run so far.
    pub(crate) fn now(&self) -> Duration {
        let running = self.since.get().map_or(Duration::ZERO, |since| since.elapsed());
        self.spent.get().saturating_add(running)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.since.get().is_some()
    }

    /// Runs `body` with the clock running.
    pub(crate) fn running<R>(&self, body: impl FnOnce() -> R) -> R {
        let _restore = self.switch(true);
        body()
    }

    /// Runs `body` with the clock standing still.
    pub(crate) fn paused<R>(&self, body: impl FnOnce() -> R) -> R {
        let _restore = self.switch(false);
        body()
    }

    fn switch(&self, on: bool) -> Restore<'_> {
        let was_on = self.is_running();
        self.set(on);
        Restore { time: self, was_on }
    }

    fn set(&self, on: bool) {
        match (self.since.get(), on) {
            (Some(_), false) => {
                self.spent.set(self.now());
                self.since.set(None);
            }
            (None, true) => self.since.set(Some(Instant::now())),
            _ => {}
        }
    }
}

/// Puts the clock back, also when a host function panics.
struct Restore<'a> {
    time: &'a GuestTime,
    was_on: bool,
}

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        self.time.set(self.was_on);
    }
}
