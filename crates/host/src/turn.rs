//! Whose turn it is: blocking evaluations of one runtime come one after the other.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a waiting thread looks whether it is still to wait.
const WAIT: Duration = Duration::from_millis(50);

/// A lock whose wait can be given up.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    taken: bool,
    /// How many threads wait. Where none does, nobody is to be woken, which would be a system call in every evaluation.
    waiting: usize,
}

/// A turn; the next begins when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a>(&'a Turns);

impl Turns {
    /// Waits for a turn. `go_on` is asked now and then, with nothing locked; the error is its own.
    pub(crate) fn wait<E>(&self, mut go_on: impl FnMut() -> Result<(), E>) -> Result<Turn<'_>, E> {
        let mut state = self.lock();
        while state.taken {
            state.waiting += 1;
            let (guard, waited) =
                self.freed.wait_timeout(state, WAIT).unwrap_or_else(PoisonError::into_inner);
            state = guard;
            state.waiting -= 1;
            if waited.timed_out() && state.taken {
                drop(state);
                go_on()?;
                state = self.lock();
            }
        }
        state.taken = true;
        Ok(Turn(self))
    }

    /// A turn, if it is nobody's.
    pub(crate) fn take(&self) -> Option<Turn<'_>> {
        let mut state = self.lock();
        let free = !state.taken;
        state.taken = true;
        free.then(|| Turn(self))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.taken = false;
        let somebody_waits = state.waiting > 0;
        drop(state);
        if somebody_waits {
            self.0.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_one_at_a_time_and_passes_on_when_it_is_dropped() {
        let turns = Turns::default();
        let first = turns.take().unwrap();
        assert!(turns.take().is_none());
        std::thread::scope(|scope| {
            let second = scope.spawn(|| turns.wait(|| Ok::<_, ()>(())).is_ok());
            drop(first);
            assert!(second.join().unwrap());
        });
        assert!(turns.take().is_some());
    }

    #[test]
    fn a_wait_for_a_turn_ends_when_it_is_told_to() {
        let turns = Turns::default();
        let first = turns.take().unwrap();
        assert_eq!(turns.wait(|| Err("enough")).err(), Some("enough"));
        drop(first);
        assert!(turns.take().is_some());
    }
}
