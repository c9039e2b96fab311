//! Keeping a worker on its caller's core.
//!
//! On the blocking path the caller sleeps while its worker runs, so both fit one core, and waking a process on the
//! core that is about to sleep is several times cheaper than waking an idle one. The worker follows its caller from
//! call to call; one that turns out to run long is let go, so that it does not hold up others on that core.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Where one worker is allowed to run, as last set.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    pinned: Option<usize>,
    refused: bool,
}

impl Placement {
    /// Moves the worker to the calling thread's core. A hint: where the kernel refuses, nothing is tried again.
    pub(crate) fn follow_caller(&mut self, worker: Pid) {
        if self.refused {
            return;
        }
        let here = sched_getcpu();
        if self.pinned == Some(here) || here >= CpuSet::MAX_CPU {
            return;
        }
        let mut only = CpuSet::new();
        only.set(here);
        self.refused = sched_setaffinity(Some(worker), &only).is_err();
        self.pinned = Some(here);
    }

    /// Lets the worker run wherever the calling thread may.
    pub(crate) fn release(&mut self, worker: Pid) {
        if self.refused || self.pinned.take().is_none() {
            return;
        }
        self.refused = sched_getaffinity(None).and_then(|all| sched_setaffinity(Some(worker), &all)).is_err();
    }
}
