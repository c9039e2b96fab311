//! The one thread that watches busy workers from outside.
//!
//! It sleeps while nothing is busy. A call does not wake it: only a call that turns out to take longer than a moment
//! does, so that short calls cost no thread switch. It also starts zygotes, because the kernel ties a child's
//! parent-death signal to the *thread* that made it, and this thread lives as long as the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::clock::Nanos;
use crate::signal_mask::with_all_blocked;
use crate::watch::{Verdict, Watch};

/// How long the monitor stays awake after the last busy worker; keeps a run of short host calls from waking it
/// again and again.
const LINGER: Duration = Duration::from_millis(200);
/// How often it looks at workers that do something, at the least.
pub(crate) const PERIOD: Duration = Duration::from_millis(10);

type Job = Box<dyn FnOnce() + Send>;

/// A handle to the monitor thread.
#[derive(Debug)]
pub(crate) struct Monitor {
    shared: Arc<Shared>,
    thread: Thread,
}

#[derive(Default)]
struct Shared {
    awake: AtomicBool,
    watches: Mutex<Vec<Weak<Watch>>>,
    jobs: Mutex<Vec<Job>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("awake", &self.awake).finish_non_exhaustive()
    }
}

impl Monitor {
    pub(crate) fn start() -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        let builder = thread::Builder::new().name("pydeno-monitor".into()).stack_size(256 << 10);
        let running = with_all_blocked(|| builder.spawn(move || for_thread.run()))?;
        Ok(Self { thread: running.thread().clone(), shared })
    }

    /// Watches a worker until its `Arc` is gone.
    pub(crate) fn add(&self, watch: &Arc<Watch>) {
        let Ok(mut watches) = self.shared.watches.lock() else { return };
        // Those of ended workers are dropped while the monitor looks; where nothing ever takes long, it does not.
        if watches.len() == watches.capacity() {
            watches.retain(|weak| weak.strong_count() > 0);
        }
        watches.push(Arc::downgrade(watch));
    }

    /// Kills every worker.
    pub(crate) fn close_all(&self) {
        self.shared.for_each(|watch| watch.kill(Verdict::Closed));
    }

    /// Makes sure that busy workers are being looked at.
    pub(crate) fn ensure_awake(&self) {
        if !self.shared.awake.swap(true, Ordering::SeqCst) {
            self.thread.unpark();
        }
    }

    /// Runs `job` on the monitor's thread and waits for its result.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (send, receive) = mpsc::sync_channel(1);
        let boxed: Job = Box::new(move || {
            // The caller may have stopped waiting only by dying itself.
            let _ = send.send(job());
        });
        self.shared.jobs.lock().ok()?.push(boxed);
        self.shared.awake.store(true, Ordering::SeqCst);
        self.thread.unpark();
        receive.recv().ok()
    }
}

impl Shared {
    fn run(&self) {
        let mut quiet_since = Nanos::now();
        loop {
            for job in self.jobs.lock().map(|mut jobs| std::mem::take(&mut *jobs)).unwrap_or_default() {
                job();
            }
            let now = Nanos::now();
            if let Some(wait) = self.check_all(now) {
                quiet_since = now;
                if wait > PERIOD {
                    self.doze();
                } else {
                    thread::park_timeout(wait);
                }
            } else if now.since(quiet_since) < LINGER {
                thread::park_timeout(PERIOD);
            } else {
                self.awake.store(false, Ordering::SeqCst);
                // One that became busy before the store may not have seen the need to wake this thread.
                let nothing_to_do = !self.any_busy() && self.jobs.lock().is_ok_and(|jobs| jobs.is_empty());
                if nothing_to_do {
                    self.for_each(Watch::rest);
                    thread::park();
                }
                self.awake.store(true, Ordering::SeqCst);
                quiet_since = Nanos::now();
            }
        }
    }

    /// Sleeps until a worker could do harm that now does nothing, or until something is asked of one.
    fn doze(&self) {
        self.awake.store(false, Ordering::SeqCst);
        // Whoever asked something before the store may not have seen the need to wake this thread.
        if let Some(wait) = self.check_all(Nanos::now()) {
            thread::park_timeout(wait);
        }
        self.awake.store(true, Ordering::SeqCst);
    }

    /// Checks every busy worker; how long until the next look, or `None` when nothing is busy.
    fn check_all(&self, now: Nanos) -> Option<Duration> {
        let mut next: Option<Duration> = None;
        self.for_each(|watch| {
            if let Some(wait) = watch.check(now) {
                next = Some(next.map_or(wait, |shorter| shorter.min(wait)));
            }
        });
        next
    }

    fn any_busy(&self) -> bool {
        let mut busy = false;
        self.for_each(|watch| busy |= watch.is_busy());
        busy
    }

    fn for_each(&self, mut look: impl FnMut(&Watch)) {
        let Ok(mut watches) = self.watches.lock() else { return };
        watches.retain(|weak| weak.upgrade().inspect(|watch| look(watch)).is_some());
    }
}
