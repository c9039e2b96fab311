//! Keeping a worker and its caller on one core.
//!
//! On the blocking path the caller sleeps while its worker runs and the other way round, so both fit one core, and waking
//! somebody there costs a few microseconds where waking an idle core costs tens. The scheduler does not know that: on a
//! machine with an idle core it moves whoever wakes there. So the worker follows its caller from call to call, and where
//! the caller was seen to be moved it does not fall asleep at first: it gives the core to the worker and is still there when
//! that has answered. One that has to sleep after all is held for as long as it does, and no longer: what it does between,
//! and the threads that it starts, run wherever they may. A wait that turns out to be long lets both go, so that neither
//! holds up others on that core.

use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity, sched_yield};

use crate::clock::Nanos;

/// Where the core is shared with others, somebody who sleeps has it back sooner than somebody who gives it away; so now and
/// then a wait shows whether there still is an idle one.
const WAITS_BETWEEN_LOOKS: u8 = 250;
/// How often the core is given away in one wait. The second time is for a scheduler that did not take the first.
const HAND_OVERS: u8 = 2;
/// A core that comes back later than this had other work, or the wait is no short one.
const SOON: Duration = Duration::from_millis(1);

/// Where one worker is allowed to run, as last set, and what the scheduler does to its caller.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    pinned: Option<usize>,
    refused: bool,
    /// Whether the caller woke on another core than it fell asleep on, when it was last free to.
    caller_moves: bool,
    waits: u8,
    /// How often the core may still be given away in this wait.
    hand_overs: u8,
    /// For how many waits the caller is held at once: it was moved while it gave its core away, as the scheduler does now and
    /// then, and always where both have a real-time priority.
    holds: u8,
}

/// The calling thread, held on its core until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    before: CpuSet,
}

impl Placement {
    /// Before the calling thread waits: moves the worker to its core. A hint: where the kernel refuses, nothing is tried again.
    pub(crate) fn together(&mut self, worker: Pid) {
        let here = sched_getcpu();
        if self.refused || here >= CpuSet::MAX_CPU {
            return;
        }
        if self.pinned != Some(here) {
            let mut only = CpuSet::new();
            only.set(here);
            self.refused = sched_setaffinity(Some(worker), &only).is_err();
            self.pinned = Some(here);
        }
        self.waits = (self.waits + 1) % WAITS_BETWEEN_LOOKS;
        self.hand_overs = HAND_OVERS;
        self.holds = self.holds.saturating_sub(1);
    }

    /// Whether the calling thread looks for its answer, and [hands its core over](Self::hand_over), before it sleeps.
    pub(crate) fn does_not_sleep(&self) -> bool {
        self.is_to_stay() && self.holds == 0
    }

    /// Whether the calling thread would be moved when it sleeps.
    fn is_to_stay(&self) -> bool {
        self.caller_moves && !self.refused && self.pinned.is_some() && self.waits != 0
    }

    /// Lets whoever waits for this core have it: the worker, which was just told something. False when that was not done,
    /// because it was done often enough.
    pub(crate) fn hand_over(&mut self) -> bool {
        let Some(left) = self.hand_overs.checked_sub(1) else { return false };
        self.hand_overs = left;
        let before = Nanos::now();
        sched_yield();
        if Some(sched_getcpu()) != self.pinned {
            self.hand_overs = 0;
            self.holds = WAITS_BETWEEN_LOOKS;
        }
        if Nanos::now().since(before) > SOON {
            self.hand_overs = 0;
            self.caller_moves = false;
        }
        true
    }

    /// Before the calling thread sleeps: holds it where it would be moved.
    pub(crate) fn hold(&self) -> Option<Held> {
        if !self.is_to_stay() {
            return None;
        }
        let mut only = CpuSet::new();
        only.set(self.pinned?);
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
    fn a_core_is_given_away_only_where_a_caller_that_sleeps_is_moved_and_not_for_ever() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let worker = Pid::from_child(&child);
        let mut placement = Placement::default();
        placement.together(worker);
        assert!(!placement.does_not_sleep());
        placement.caller_moves = true;
        placement.together(worker);
        assert!(placement.does_not_sleep());
        // A busy machine may take the core for long enough to be noticed the first time.
        let times = (0..10).filter(|_| placement.hand_over()).count();
        assert!((1..=usize::from(HAND_OVERS)).contains(&times), "{times}");
        // It wakes on another core than the worker's, whichever that is.
        placement.caller_moves = true;
        placement.pinned = Some(CpuSet::MAX_CPU);
        placement.hand_overs = HAND_OVERS;
        assert!(placement.hand_over());
        assert!(
            !placement.does_not_sleep() && !placement.hand_over(),
            "it was moved, and is held from now on"
        );
        assert_eq!(placement.holds, WAITS_BETWEEN_LOOKS);
        placement.holds = 0;
        placement.caller_moves = true;
        placement.release(worker);
        assert!(!placement.does_not_sleep(), "they have parted");
        for _ in 0..WAITS_BETWEEN_LOOKS {
            placement.together(worker);
            if !placement.does_not_sleep() {
                break;
            }
        }
        assert!(!placement.does_not_sleep(), "now and then a wait shows whether it is still needed");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_caller_is_held_for_a_wait_and_then_as_free_as_before() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let worker = Pid::from_child(&child);
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
        placement.release(worker);
        assert_eq!(sched_getaffinity(Some(worker)).unwrap(), before);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
