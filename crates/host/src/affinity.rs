//! Where a worker runs, as seen from its caller.
//!
//! Where the two take turns, waking somebody on the same core costs a few microseconds, and waking an idle core tens. The scheduler
//! does not know that: on a machine with an idle core it moves whoever wakes there. So a worker follows its caller from call
//! to call, on the same core, and where the caller was seen to be moved it is held for as long as it sleeps, and no longer:
//! what it does between, and the threads that it starts, run wherever they may.
//!
//! Where they take turns so fast that [neither sleeps](crate::rhythm), the worker is kept off its caller's core.
//!
//! A wait that turns out to be long lets both go, so that neither holds up others.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Where the core is shared with others nobody is moved, and holding is for nothing; so now and then a wait shows whether there still
/// is an idle one.
const WAITS_BETWEEN_TRIALS: u8 = 250;

/// Where one worker is allowed to run, as last set, and what the scheduler does to its caller.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    worker: Cores,
    refused: bool,
    /// Whether the caller woke on another core than it fell asleep on, when it was last free to.
    caller_moves: bool,
    waits: u8,
}

/// The cores of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cores {
    /// All that it began with, which are its caller's.
    #[default]
    All,
    Only(usize),
    AllBut(usize),
}

/// The calling thread, held on its core until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    before: CpuSet,
}

impl Placement {
    /// Before the calling thread sleeps: moves the worker to its core. A hint: where the kernel refuses, nothing is tried again.
    pub(crate) fn together(&mut self, worker: Pid) {
        let here = sched_getcpu();
        if self.refused || here >= CpuSet::MAX_CPU {
            return;
        }
        if self.worker != Cores::Only(here) {
            let mut only = CpuSet::new();
            only.set(here);
            self.refused = sched_setaffinity(Some(worker), &only).is_err();
            self.worker = Cores::Only(here);
        }
        self.waits = (self.waits + 1) % WAITS_BETWEEN_TRIALS;
    }

    /// Before the calling thread waits without sleeping: moves the worker off its core. False where that cannot be.
    pub(crate) fn apart(&mut self, worker: Pid) -> bool {
        let here = sched_getcpu();
        if self.refused || here >= CpuSet::MAX_CPU {
            return false;
        }
        if self.worker == Cores::AllBut(here) {
            return true;
        }
        let Ok(mut others) = sched_getaffinity(None) else { return false };
        others.unset(here);
        if others.count() == 0 {
            return false;
        }
        self.refused = sched_setaffinity(Some(worker), &others).is_err();
        self.worker = Cores::AllBut(here);
        !self.refused
    }

    /// Before the calling thread sleeps: holds it where it would be moved.
    pub(crate) fn hold(&self) -> Option<Held> {
        let Cores::Only(here) = self.worker else { return None };
        if !self.caller_moves || self.refused || self.waits == 0 {
            return None;
        }
        let mut only = CpuSet::new();
        only.set(here);
        let before = sched_getaffinity(None).ok()?;
        if before.count() == 1 {
            return None;
        }
        sched_setaffinity(None, &only).is_ok().then_some(Held { before })
    }

    /// After the calling thread has slept: lets it go, or looks where it woke.
    pub(crate) fn woke(&mut self, held: Option<Held>) {
        match (held, self.worker) {
            (Some(held), _) => drop(held),
            (None, Cores::Only(asleep_on)) => self.caller_moves = sched_getcpu() != asleep_on,
            (None, Cores::All | Cores::AllBut(_)) => {}
        }
    }

    /// Lets the worker run wherever the calling thread may.
    pub(crate) fn release(&mut self, worker: Pid) {
        if self.refused || std::mem::take(&mut self.worker) == Cores::All {
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
    use std::process::{Child, Command};

    fn sleeper() -> (Child, Pid) {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let worker = Pid::from_child(&child);
        (child, worker)
    }

    #[test]
    fn a_worker_is_put_on_its_callers_core_or_on_all_others_and_let_go() {
        let (mut child, worker) = sleeper();
        let before = sched_getaffinity(None).unwrap();
        let mut placement = Placement::default();
        let is_apart = placement.apart(worker);
        assert_eq!(is_apart, before.count() > 1, "with one core there is no other one");
        if is_apart {
            let Cores::AllBut(here) = placement.worker else { panic!("{placement:?}") };
            let cores = sched_getaffinity(Some(worker)).unwrap();
            assert!(!cores.is_set(here), "{cores:?}");
            assert_eq!(cores.count(), before.count() - 1);
        }
        placement.together(worker);
        let Cores::Only(here) = placement.worker else { panic!("{placement:?}") };
        let cores = sched_getaffinity(Some(worker)).unwrap();
        assert!(cores.is_set(here) && cores.count() == 1, "{cores:?}");
        placement.release(worker);
        assert_eq!(sched_getaffinity(Some(worker)).unwrap(), before);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn what_the_kernel_refuses_is_not_tried_again() {
        let (mut child, worker) = sleeper();
        child.kill().unwrap();
        child.wait().unwrap();
        // There is no such process any more.
        let mut placement = Placement::default();
        placement.together(worker);
        assert!(placement.refused);
        assert!(!placement.apart(worker));
        placement.caller_moves = true;
        assert!(placement.hold().is_none(), "its worker is elsewhere");
        let mut placement = Placement::default();
        let answers: Vec<bool> = (0..100).map(|_| placement.apart(worker)).collect();
        assert_eq!(answers, [false; 100], "on whichever cores this thread was meanwhile");
    }

    #[test]
    fn the_caller_is_held_for_a_wait_and_then_as_free_as_before() {
        let (mut child, worker) = sleeper();
        let before = sched_getaffinity(None).unwrap();
        let mut placement = Placement::default();
        placement.together(worker);
        assert!(placement.hold().is_none(), "nothing is held before it was seen to be moved");
        placement.caller_moves = true;
        placement.together(worker);
        let held = placement.hold();
        assert_eq!(held.is_some(), before.count() > 1);
        assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        assert_eq!(sched_getaffinity(Some(worker)).unwrap().count(), 1);
        placement.woke(held);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        let trials = (0..WAITS_BETWEEN_TRIALS).filter(|_| {
            placement.together(worker);
            placement.hold().is_none()
        });
        assert_eq!(trials.count(), if before.count() > 1 { 1 } else { WAITS_BETWEEN_TRIALS.into() });
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
