//! One worker as the monitor sees it: whether it is busy, until when, and why it was killed.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, pidfd_send_signal};

use crate::cgroup::Group;
use crate::clock::Nanos;
use crate::error::Limit;
use crate::fork_generation;
use crate::monitor::PERIOD;
use crate::pool::Lease;
use crate::process_usage::{Usage, UsageReader};

/// Why the host killed a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It passed a limit.
    Over(Limit),
    /// Its memory, time and threads cannot be read any longer.
    Unmeasurable,
    /// The runtime was closed.
    Closed,
    /// The runtime was terminated from another thread.
    Terminated,
    /// It broke the protocol.
    Violation,
    /// Its socket is closed: it has ended by itself, or is about to be ended for having hung up.
    Lost,
}

/// What the monitor holds a worker to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchLimits {
    /// Private memory in bytes.
    pub(crate) memory: u64,
    /// Live threads.
    pub(crate) threads: u64,
    /// CPU time of all threads in one request. Wall time bounds one thread; this bounds what others burn meanwhile.
    pub(crate) cpu: Duration,
}

/// What a process that is about to end needs for it.
pub(crate) const MOMENT: Duration = Duration::from_millis(100);

/// `activity` is one of these or the number of the request that runs, which is neither.
const IDLE: u64 = 0;
const KILLED: u64 = u64::MAX;

/// Shared by a runtime and the monitor. The runtime's path through it is a few atomic stores.
#[derive(Debug)]
pub(crate) struct Watch {
    pid: Pid,
    pidfd: OwnedFd,
    limits: WatchLimits,
    generation: u32,
    activity: AtomicU64,
    deadline: AtomicU64,
    verdict: OnceLock<Verdict>,
    meter: Mutex<Option<Meter>>,
    lease: Mutex<Option<Lease>>,
    group: OnceLock<Group>,
}

#[derive(Debug)]
struct Meter {
    reader: UsageReader,
    /// The request that `cpu_before` belongs to.
    request: u64,
    cpu_before: Duration,
    last: Usage,
    /// How many samples in a row showed nothing new.
    still: u32,
}

/// After how many samples without anything new a worker is looked at less often. The kernel's clock of processor time goes in
/// steps as long as a look is apart, so one such sample says nothing.
const STILL: u32 = 4;
/// How far apart two looks at a worker may be that waits for the host or does nothing else.
const FARTHEST: Duration = Duration::from_millis(100);

impl Watch {
    pub(crate) fn new(pid: Pid, pidfd: OwnedFd, limits: WatchLimits) -> Self {
        Self {
            pid,
            pidfd,
            limits,
            generation: fork_generation::current(),
            activity: AtomicU64::new(IDLE),
            deadline: AtomicU64::new(u64::MAX),
            verdict: OnceLock::new(),
            meter: Mutex::new(None),
            lease: Mutex::new(None),
            group: OnceLock::new(),
        }
    }

    /// Gives the lease back when the worker ends.
    pub(crate) fn hold(&self, lease: Lease) {
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = Some(lease);
    }

    /// Keeps the group that the worker is in.
    pub(crate) fn contain(&self, group: Group) {
        let first = self.group.set(group);
        debug_assert!(first.is_ok(), "a worker starts once");
    }

    /// Whether the kernel ended the worker because its group was over the memory limit.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.group.get().is_some_and(Group::ran_out_of_memory)
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// The request with this number (neither 0 nor `u64::MAX`) starts. False when the worker was killed before.
    pub(crate) fn begin(&self, request: u64, deadline: Nanos) -> bool {
        self.set_deadline(deadline);
        self.activity.compare_exchange(IDLE, request, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    pub(crate) fn set_deadline(&self, deadline: Nanos) {
        self.deadline.store(deadline.0, Ordering::Relaxed);
    }

    /// What ran goes on under another number, and with CPU time of its own. False when the worker was killed before.
    pub(crate) fn renew(&self, before: u64, request: u64) -> bool {
        self.activity.compare_exchange(before, request, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// The request ends. False when a kill was decided before: then it has failed, whatever it returned.
    pub(crate) fn end(&self, request: u64) -> bool {
        self.activity.compare_exchange(request, IDLE, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Why the worker was killed, if the host did it.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        (self.activity.load(Ordering::SeqCst) == KILLED).then(|| *self.verdict.wait())
    }

    pub(crate) fn is_busy(&self) -> bool {
        !matches!(self.activity.load(Ordering::SeqCst), IDLE | KILLED)
    }

    /// Kills the worker whatever it does. The first verdict stays.
    pub(crate) fn kill(&self, verdict: Verdict) {
        if self.activity.swap(KILLED, Ordering::SeqCst) != KILLED {
            self.execute(verdict);
        }
    }

    /// Whether the process ends within this time. One that is being killed may take a moment: it has ended when the last
    /// of its threads has, and shows no memory before that.
    pub(crate) fn ends_within(&self, patience: Duration) -> bool {
        let timeout = Timespec::try_from(patience).expect("a moment fits a timespec");
        matches!(poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&timeout)), Ok(1))
    }

    /// For a worker that has hung up: gives it a moment to end by itself, so that its own exit status is seen, and kills
    /// it if it does not.
    pub(crate) fn put_to_rest(&self) {
        self.ends_within(MOMENT);
        self.kill(Verdict::Lost);
    }

    /// Gives back the descriptors through which an idle worker was measured; they are opened again when it is next.
    pub(crate) fn rest(&self) {
        if !self.is_busy()
            && let Ok(mut meter) = self.meter.try_lock()
        {
            meter.take();
        }
    }

    /// Kills the worker unless `request` has ended meanwhile.
    fn kill_during(&self, request: u64, verdict: Verdict) {
        if self.activity.compare_exchange(request, KILLED, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            self.execute(verdict);
        }
    }

    fn execute(&self, verdict: Verdict) {
        // A forked copy of the host must not end its parent's worker.
        if self.generation == fork_generation::current() {
            // A worker that has already ended answers ESRCH, and that is all that was wanted.
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
        // Two descriptors less; the monitor that may hold the lock has no use for them any more either.
        if let Ok(mut meter) = self.meter.try_lock() {
            meter.take();
        }
        let first = self.verdict.set(verdict);
        debug_assert!(first.is_ok(), "only the thread that changed `activity` to KILLED comes here");
        if self.generation == fork_generation::current() {
            let lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner).take();
            // Without the lock: it wakes whoever waits for the place.
            drop(lease);
        }
    }

    /// Checks a busy worker against its limits, kills it when it is over one, and says after how long to look again.
    pub(crate) fn check(&self, now: Nanos) -> Option<Duration> {
        let request = self.activity.load(Ordering::SeqCst);
        if matches!(request, IDLE | KILLED) {
            return None;
        }
        if now.0 >= self.deadline.load(Ordering::Relaxed) {
            self.kill_during(request, Verdict::Over(Limit::Time));
            return None;
        }
        let Some((usage, cpu, still)) = self.measure(request) else {
            // One that has ended is its runtime's to notice, by the socket, and no fault of /proc.
            if !self.ends_within(Duration::ZERO) {
                self.kill_during(request, Verdict::Unmeasurable);
            }
            return None;
        };
        let over = if usage.memory > self.limits.memory {
            Limit::Memory
        } else if usage.threads > self.limits.threads {
            Limit::Threads
        } else if cpu > self.limits.cpu {
            Limit::Cpu
        } else {
            let mut wait = until_memory_could_be_over(self.limits.memory - usage.memory);
            if still < STILL {
                wait = wait.min(PERIOD);
            }
            // What is asked of it meanwhile wakes the monitor.
            let until_deadline = Nanos(self.deadline.load(Ordering::Relaxed)).since(now);
            return Some(wait.min(FARTHEST).min(until_deadline.max(MOMENT_BEFORE_DEADLINE)));
        };
        self.kill_during(request, Verdict::Over(over));
        None
    }

    /// A sample, the CPU time since the request was first seen, and how many samples showed nothing new.
    fn measure(&self, request: u64) -> Option<(Usage, Duration, u32)> {
        let mut slot = self.meter.lock().ok()?;
        if slot.is_none() {
            let reader = UsageReader::open(self.pid.as_raw_pid()).ok()?;
            *slot = Some(Meter {
                reader,
                request: IDLE,
                cpu_before: Duration::ZERO,
                last: Usage::default(),
                still: 0,
            });
        }
        let meter = slot.as_mut()?;
        let usage = meter.reader.sample().ok()?;
        let is_still = meter.request == request && meter.last == usage;
        if meter.request != request {
            meter.request = request;
            meter.cpu_before = usage.cpu;
        }
        meter.still = if is_still { meter.still.saturating_add(1) } else { 0 };
        meter.last = usage;
        Some((usage, usage.cpu.saturating_sub(meter.cpu_before), meter.still))
    }
}

/// How soon after a look the next one may be, however near the deadline is.
const MOMENT_BEFORE_DEADLINE: Duration = Duration::from_millis(1);

/// The fastest a process was seen to fault pages in is about 4 GiB a second; looking again before `headroom` could be
/// gone keeps the overshoot small without sampling an ordinary worker all the time.
fn until_memory_could_be_over(headroom: u64) -> Duration {
    const BYTES_PER_MILLISECOND: u64 = 4 << 20;
    Duration::from_millis((headroom / BYTES_PER_MILLISECOND).max(1))
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.kill(Verdict::Closed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{PidfdFlags, pidfd_open};
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Child, Command};

    const GENEROUS: WatchLimits =
        WatchLimits { memory: u64::MAX, threads: u64::MAX, cpu: Duration::from_secs(3600) };

    fn watched(limits: WatchLimits) -> (Child, Watch) {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        (child, Watch::new(pid, pidfd, limits))
    }

    /// Waits until a program has started and does nothing any more.
    fn settle(watch: &Watch) {
        while watch.measure(IDLE).unwrap().2 < STILL {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_request_past_its_deadline_is_killed_and_says_so() {
        let (mut child, watch) = watched(GENEROUS);
        let now = Nanos::now();
        assert!(watch.begin(1, now.plus(Duration::from_secs(5))));
        assert!(watch.check(now).is_some());
        assert_eq!(watch.check(now.plus(Duration::from_secs(6))), None);
        assert!(!watch.end(1));
        assert_eq!(watch.verdict(), Some(Verdict::Over(Limit::Time)));
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn an_idle_worker_is_left_alone_however_late_it_is() {
        let (mut child, watch) = watched(WatchLimits { memory: 0, ..GENEROUS });
        let now = Nanos::now();
        assert!(watch.begin(1, now));
        assert!(watch.end(1));
        assert_eq!(watch.check(now.plus(Duration::from_secs(6))), None);
        assert!(child.try_wait().unwrap().is_none());
        watch.kill(Verdict::Closed);
        child.wait().unwrap();
    }

    #[test]
    fn memory_over_the_limit_is_killed_as_memory() {
        let (mut child, watch) = watched(WatchLimits { memory: 1, ..GENEROUS });
        let now = Nanos::now();
        watch.begin(1, now.plus(Duration::from_secs(5)));
        assert_eq!(watch.check(now), None);
        assert_eq!(watch.verdict(), Some(Verdict::Over(Limit::Memory)));
        child.wait().unwrap();
    }

    #[test]
    fn a_worker_that_does_nothing_is_looked_at_less_often_but_never_too_late() {
        let (mut child, watch) = watched(GENEROUS);
        settle(&watch);
        let now = Nanos::now();
        assert!(watch.begin(1, now.plus(Duration::from_secs(5))));
        let waits: Vec<Duration> = (0..=STILL + 1).map(|_| watch.check(now).unwrap()).collect();
        assert!(waits[..STILL as usize].iter().all(|wait| *wait <= PERIOD), "{waits:?}");
        assert_eq!(waits.last(), Some(&FARTHEST));
        watch.set_deadline(now.plus(Duration::from_millis(30)));
        assert_eq!(watch.check(now), Some(Duration::from_millis(30)), "the deadline is nearer");
        watch.set_deadline(now.plus(Duration::from_secs(5)));
        assert!(watch.renew(1, 2));
        assert!(watch.check(now).unwrap() <= PERIOD, "something else runs");
        watch.kill(Verdict::Closed);
        child.wait().unwrap();
        // A control: one that could be over its limit in a moment is looked at as often as ever.
        let (mut child, generous) = watched(GENEROUS);
        settle(&generous);
        let used = generous.measure(IDLE).unwrap().0.memory;
        let limits = WatchLimits { memory: used + (8 << 20), ..GENEROUS };
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        let watch = Watch::new(Pid::from_child(&child), pidfd, limits);
        watch.begin(1, now.plus(Duration::from_secs(5)));
        let waits: Vec<Duration> = (0..=STILL + 1).map(|_| watch.check(now).unwrap()).collect();
        assert!(waits.iter().all(|wait| *wait <= Duration::from_millis(2)), "{waits:?}");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_worker_that_cannot_be_read_is_not_trusted() {
        let (mut gone, _) = watched(GENEROUS);
        gone.kill().unwrap();
        gone.wait().unwrap();
        // Alive, under a number that /proc does not have.
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        let watch = Watch::new(Pid::from_child(&gone), pidfd, GENEROUS);
        let now = Nanos::now();
        watch.begin(1, now.plus(Duration::from_secs(5)));
        assert_eq!(watch.check(now), None);
        assert_eq!(watch.verdict(), Some(Verdict::Unmeasurable));
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_worker_that_has_ended_is_not_called_unmeasurable() {
        let (mut child, watch) = watched(GENEROUS);
        child.kill().unwrap();
        child.wait().unwrap();
        let now = Nanos::now();
        watch.begin(1, now.plus(Duration::from_secs(5)));
        assert_eq!(watch.check(now), None);
        assert_eq!(watch.verdict(), None);
    }

    #[test]
    fn the_first_verdict_stays_and_no_request_starts_after_it() {
        let (mut child, watch) = watched(GENEROUS);
        watch.kill(Verdict::Terminated);
        watch.kill(Verdict::Closed);
        assert_eq!(watch.verdict(), Some(Verdict::Terminated));
        assert!(!watch.begin(1, Nanos::now()));
        child.wait().unwrap();
    }
}
