//! The time that a guest has had.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A clock that runs while guest code does, conversions included, and stands still in host functions and between two
/// steps.
#[derive(Default)]
pub(crate) struct GuestTime {
    spent: Cell<Duration>,
    since: Cell<Option<Instant>>,
    /// How long it has stood still in host functions.
    paused: Cell<Duration>,
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
        let (began, before) = (Instant::now(), self.now());
        let value = body();
        let stood = began.elapsed().saturating_sub(self.now().saturating_sub(before));
        self.paused.update(|paused| paused.saturating_add(stood));
        value
    }

    /// Runs `body`, several short pieces of guest code, and counts what comes between them too: it is done for the guest. Host
    /// functions still do not count.
    pub(crate) fn including_what_is_between<R>(&self, body: impl FnOnce() -> R) -> R {
        let (began, before, paused) = (Instant::now(), self.now(), self.paused.get());
        let value = body();
        let counted =
            self.now().saturating_sub(before).saturating_add(self.paused.get().saturating_sub(paused));
        let between = began.elapsed().saturating_sub(counted);
        self.spent.update(|spent| spent.saturating_add(between));
        value
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
