//! Keeping a worker and its caller on one core.
//!
//! On the blocking path the caller sleeps while its worker runs and the other way round, so both fit one core, and waking
//! somebody there costs a few microseconds where waking an idle core costs tens. The scheduler does not know that: on a
//! machine with an idle core it moves whoever wakes there. So the worker follows its caller from call to call, and where
//! the caller was seen to be moved it is held for as long as it sleeps, and no longer: what it does between, and the
//! threads that it starts, run wherever they may. A wait that turns out to be long lets both go, so that neither holds up
//! others on that core.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Holding the caller costs two system calls a wait, so now and then a wait shows whether it is still needed.
const WAITS_BETWEEN_LOOKS: u8 = 250;

/// Where one worker is allowed to run, as last set, and what the scheduler does to its caller.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    pinned: Option<usize>,
    refused: bool,
    /// Whether the caller woke on another core than it fell asleep on, when it was last free to.
    caller_moves: bool,
    waits: u8,
}

/// The calling thread, held on its core until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    before: CpuSet,
}

impl Placement {
    /// Before the calling thread sleeps: moves the worker to its core, and holds the thread there if it would be moved. A
    /// hint: where the kernel refuses, nothing is tried again.
    pub(crate) fn together(&mut self, worker: Pid) -> Option<Held> {
        let here = sched_getcpu();
        if self.refused || here >= CpuSet::MAX_CPU {
            return None;
        }
        let mut only = CpuSet::new();
        only.set(here);
        if self.pinned != Some(here) {
            self.refused = sched_setaffinity(Some(worker), &only).is_err();
            self.pinned = Some(here);
        }
        self.waits = (self.waits + 1) % WAITS_BETWEEN_LOOKS;
        if !self.caller_moves || self.waits == 0 {
            return None;
        }
        let before = sched_getaffinity(None).ok()?;
        if before.count() == 1 {
            return None;
        }
        sched_setaffinity(None, &only).is_ok().then_some(Held { before })
    }

    /// After the calling thread has slept: lets it go, or looks where it woke.
    pub(crate) fn woke(&mut self, held: Option<Held>) {
        match (held, self.pinned) {
            (Some(held), _) => drop(held),
            (None, Some(asleep_on)) => self.caller_moves = sched_getcpu() != asleep_on,
            (None, None) => {}
        }
    }

    /// Lets the worker run wherever the calling thread may.
    pub(crate) fn release(&mut self, worker: Pid) {
        if self.refused || self.pinned.take().is_none() {
            return;
        }
        self.refused = sched_getaffinity(None).and_then(|all| sched_setaffinity(Some(worker), &all)).is_err();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // It was allowed before, and nothing but the machine's own cores could have changed that meanwhile.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_caller_is_held_for_a_wait_and_then_as_free_as_before() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let worker = Pid::from_child(&child);
        let before = sched_getaffinity(None).unwrap();
        let mut placement = Placement::default();
        assert!(placement.together(worker).is_none(), "nothing is held before it was seen to be moved");
        placement.caller_moves = true;
        let held = placement.together(worker);
        assert_eq!(held.is_some(), before.count() > 1);
        assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        assert_eq!(sched_getaffinity(Some(worker)).unwrap().count(), 1);
        placement.woke(held);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        placement.release(worker);
        assert_eq!(sched_getaffinity(Some(worker)).unwrap(), before);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
