//! Pools: workers that are confined, limited and bound before anybody asks for them.
//!
//! A pool has one thread, its *keeper*, which starts workers and waits for them, so that a checkout is only taking one
//! from a queue. A worker serves one checkout and is never put back; its place is free again when it has ended, however
//! it ended.

use std::collections::HashMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use pydeno_wire::Text;
use pydeno_wire::message::{ConsoleLevel, JsError, Place};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::error::Error;
use crate::fork_generation;
use crate::host_functions::Interrupted;
use crate::options::{JitTier, Options, WorkerStart};
use crate::runtime::{Runtime, too_long};
use crate::session::Session;
use crate::signal_mask::with_all_blocked;
use crate::supervisor::Supervisor;

mod keeper;
mod ledger;
mod template;

use ledger::Ledger;

/// How long the successor of a worker that was taken from a well-filled pool is put off: its first milliseconds would cost the
/// caller a core just when its first evaluation needs one.
const COURTESY: Duration = Duration::from_millis(2);
/// How often a long wait looks whether the caller was interrupted.
const WAIT: Duration = Duration::from_millis(100);

/// Workers ready ahead. Dropping it closes it; runtimes that were checked out go on.
pub struct Pool {
    shared: Arc<PoolShared>,
}

/// A worker ready to be used, and what its bootstrap script had to say.
#[derive(Debug)]
pub struct Spare {
    /// The runtime, with the pool's limits and bindings.
    pub runtime: Runtime,
    /// How many of the pool's functions it has: the first ones.
    pub functions: usize,
    /// What the bootstrap script wrote to its console.
    pub console: Vec<(ConsoleLevel, Text)>,
    /// Promises that the bootstrap script rejected and nothing handled.
    pub unhandled: Vec<JsError>,
    /// How many of the pool's bindings were made.
    batches: usize,
}

/// A place in the queue of those who wait for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(u64);

impl Ticket {
    /// The number by which it can be told apart.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The ticket of this number; one that was never drawn brings nothing.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }
}

/// What a pool has, and what has happened to it so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Workers that wait to be checked out.
    pub ready: usize,
    /// Workers that were checked out and have not ended.
    pub in_use: usize,
    /// Workers that confine themselves or run the bootstrap script.
    pub starting: usize,
    /// Callers that wait for a worker.
    pub waiting: usize,
    /// Workers that became ready.
    pub created: u64,
    /// Workers that were handed out.
    pub checkouts: u64,
    /// Checkouts that found none ready and waited.
    pub waits: u64,
    /// Checkouts that waited in vain.
    pub timeouts: u64,
    /// Workers that could not be started, or died before they were used.
    pub failures: u64,
}

/// What a pool's handle, its keeper and its leases share.
pub(crate) struct PoolShared {
    supervisor: Arc<Supervisor>,
    options: Options,
    bootstrap: Option<Text>,
    /// Whether workers are forks of a process that has run the script.
    template: bool,
    generation: u32,
    state: Mutex<State>,
    /// Tells the keeper that there is something to look at.
    keeper: OwnedFd,
    /// Tells it the same, but after a moment: a timer wakes nobody when it is set.
    soon: OwnedFd,
    /// Tells an event loop that a ticket has brought something.
    bell: Arc<OwnedFd>,
}

struct State {
    ledger: Ledger<Spare, Error>,
    bindings: Vec<Arc<Bindings>>,
    /// Threads that wait for their ticket.
    sleepers: HashMap<u64, Arc<Condvar>>,
    /// Whether workers are missing that the keeper is to start when its timer goes off.
    put_off: bool,
}

/// Host functions that were bound together.
struct Bindings {
    object: Option<Text>,
    names: Vec<Text>,
    asynchronous: Vec<bool>,
}

/// A place in a pool, given back when this is dropped.
pub(crate) struct Lease {
    pool: Weak<PoolShared>,
    generation: u32,
}

impl Pool {
    /// A pool that keeps `size` workers ready and never has more than `max_workers`, those in use included. It
    /// returns at once; the workers are being started. Each evaluates `bootstrap` before it is ready.
    ///
    /// With `template` one confined process evaluates it, and workers are forks of that: they begin with everything that the
    /// script has made, and share its namespaces and its address space's layout.
    ///
    /// # Errors
    ///
    /// The pool's thread, or its three descriptors, cannot be had; a template is asked for together with a compiler, whose
    /// threads a fork would lose, or with an address space for each worker.
    pub fn new(
        supervisor: &Arc<Supervisor>,
        options: Options,
        bootstrap: Option<Text>,
        template: bool,
        size: usize,
        max_workers: usize,
    ) -> Result<Self, Error> {
        if template && options.jit != JitTier::Off {
            let what =
                "a template needs jit=\"off\": a fork would lose the threads that a compiler has started";
            return Err(Error::InvalidInput { what: what.to_owned() });
        }
        if template && options.worker_start == WorkerStart::Exec {
            let what = "workers of a template are its forks: worker_start=\"exec\" is for pools without one";
            return Err(Error::InvalidInput { what: what.to_owned() });
        }
        let unavailable = |what: &str, error: &dyn fmt::Display| Error::WorkerUnavailable {
            reason: format!("{what} cannot be had: {error}"),
        };
        let signal = || {
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .map_err(|error| unavailable("a descriptor for the pool", &error))
        };
        let shared = Arc::new(PoolShared {
            supervisor: Arc::clone(supervisor),
            options,
            bootstrap,
            template,
            generation: fork_generation::current(),
            state: Mutex::new(State {
                ledger: Ledger::new(size, max_workers),
                bindings: Vec::new(),
                sleepers: HashMap::new(),
                put_off: false,
            }),
            keeper: signal()?,
            soon: timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
                .map_err(|error| unavailable("a timer for the pool", &error))?,
            bell: Arc::new(signal()?),
        });
        supervisor.add_pool(&shared);
        let for_keeper = Arc::clone(&shared);
        let builder = thread::Builder::new().name("pydeno-pool".into()).stack_size(512 << 10);
        with_all_blocked(|| builder.spawn(move || keeper::run(&for_keeper)))
            .map_err(|error| unavailable("a thread for the pool", &error))?;
        Ok(Self { shared })
    }

    /// A worker that is ready, if nobody waits for one; does not wait.
    pub fn take(&self) -> Result<Option<Spare>, Error> {
        loop {
            let mut state = self.shared.enter()?;
            let Some(spare) = state.ledger.take() else { return Ok(None) };
            let bindings = state.missing_in(&spare);
            if spare.runtime.is_dead() {
                state.ledger.was_dead();
                drop(state);
                self.shared.wake_keeper();
                continue;
            }
            self.shared.replace_taken(state);
            return self.shared.hand_out(spare, &bindings).map(Some);
        }
    }

    /// A worker, waiting for one for as long as `patience`. `interrupted` is asked now and then.
    ///
    /// # Errors
    ///
    /// [`Error::CheckoutTimeout`]; [`Error::PoolClosed`]; [`Error::Cancelled`] when interrupted; or why a worker could
    /// not be started, as [`Runtime::new`] would say it.
    pub fn checkout(
        &self,
        patience: Duration,
        mut interrupted: impl FnMut() -> Result<(), Interrupted>,
    ) -> Result<Spare, Error> {
        if let Some(spare) = self.take()? {
            return Ok(spare);
        }
        let until = Instant::now().checked_add(patience);
        let ticket = self.wait()?;
        let bell = Arc::new(Condvar::new());
        let mut state = self.shared.lock();
        state.sleepers.insert(ticket.0, Arc::clone(&bell));
        let outcome = loop {
            if let Some(outcome) = state.collect(ticket) {
                break outcome;
            }
            let left = until.map_or(WAIT, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                let max_workers = state.ledger.max_workers();
                self.shared.withdraw(&mut state, ticket, true);
                break Err(Error::CheckoutTimeout { waited: patience, max_workers });
            }
            (state, _) = bell.wait_timeout(state, left.min(WAIT)).unwrap_or_else(PoisonError::into_inner);
            drop(state);
            let wanted = interrupted();
            state = self.shared.lock();
            if wanted.is_err() {
                self.shared.withdraw(&mut state, ticket, false);
                break Err(Error::Cancelled);
            }
        };
        state.sleepers.remove(&ticket.0);
        let bindings = outcome.as_ref().map(|spare| state.missing_in(spare)).unwrap_or_default();
        drop(state);
        self.shared.wake_keeper();
        self.shared.hand_out(outcome?, &bindings)
    }

    /// Joins the queue without waiting. [`bell`](Self::bell) becomes readable when a ticket has brought something.
    pub fn wait(&self) -> Result<Ticket, Error> {
        let ticket = self.shared.enter()?.ledger.wait();
        self.shared.wake_keeper();
        Ok(Ticket(ticket))
    }

    /// What the ticket has brought, once.
    pub fn collect(&self, ticket: Ticket) -> Result<Option<Spare>, Error> {
        self.shared.check_process()?;
        let mut state = self.shared.lock();
        let Some(outcome) = state.collect(ticket) else { return Ok(None) };
        let spare = outcome?;
        let bindings = state.missing_in(&spare);
        drop(state);
        self.shared.hand_out(spare, &bindings).map(Some)
    }

    /// Leaves the queue.
    pub fn withdraw(&self, ticket: Ticket) {
        if self.shared.check_process().is_ok() {
            self.shared.withdraw(&mut self.shared.lock(), ticket, false);
            self.shared.wake_keeper();
        }
    }

    /// Leaves the queue after waiting for `waited` in vain; the error to say so with.
    pub fn time_out(&self, ticket: Ticket, waited: Duration) -> Error {
        if let Err(foreign) = self.shared.check_process() {
            return foreign;
        }
        let mut state = self.shared.lock();
        self.shared.withdraw(&mut state, ticket, true);
        Error::CheckoutTimeout { waited, max_workers: state.ledger.max_workers() }
    }

    /// Readable when some ticket has brought something, until it is [hushed](Self::hush).
    pub fn bell(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.shared.bell)
    }

    /// Makes the bell silent until it rings again.
    pub fn hush(&self) {
        let mut rung = [0; 8];
        // It may not have been rung.
        let _ = rustix::io::read(&self.shared.bell, &mut rung);
    }

    /// Makes host functions visible to the guests of workers that are checked out from now on. They are numbered in the
    /// order of the calls; `remember` is called once they are certain to be.
    pub fn bind(
        &self,
        object: Option<&Text>,
        names: &[Text],
        asynchronous: &[bool],
        remember: impl FnOnce(),
    ) -> Result<(), Error> {
        // A message that is too long for one worker is too long for all.
        let mut trial = Session::new();
        trial.configure(&self.shared.options);
        trial.bind(&Place::from(object), names, asynchronous).map_err(|error| too_long(&error))?;
        let mut state = self.shared.enter()?;
        state.bindings.push(Arc::new(Bindings {
            object: object.cloned(),
            names: names.to_vec(),
            asynchronous: asynchronous.to_vec(),
        }));
        remember();
        Ok(())
    }

    /// What the pool has, and what has happened to it so far.
    pub fn stats(&self) -> Result<PoolStats, Error> {
        self.shared.check_process()?;
        let state = self.shared.lock();
        let (places, counts) = (state.ledger.places(), state.ledger.counts());
        Ok(PoolStats {
            ready: places.ready,
            in_use: places.in_use,
            starting: places.starting,
            waiting: places.waiting,
            created: counts.created,
            checkouts: counts.checkouts,
            waits: counts.waits,
            timeouts: counts.timeouts,
            failures: counts.failures,
        })
    }

    /// Ends the workers that are ready and everybody's wait. Runtimes that were checked out go on.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Whether the pool hands out no more workers; a forked copy of a pool never does.
    pub fn is_closed(&self) -> bool {
        self.shared.check_process().is_err() || self.shared.lock().ledger.is_closed()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl PoolShared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Another thread may have panicked between two operations on the books, each of which is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A forked process has no keeper, and a lock that it inherited may be held by nobody.
    fn check_process(&self) -> Result<(), Error> {
        if self.generation == fork_generation::current() {
            return Ok(());
        }
        let what =
            "this pool belongs to the process that this one was forked from; make a new pool after the fork";
        Err(Error::InvalidInput { what: what.to_owned() })
    }

    fn enter(&self) -> Result<MutexGuard<'_, State>, Error> {
        self.check_process()?;
        let state = self.lock();
        if state.ledger.is_closed() { Err(Error::PoolClosed) } else { Ok(state) }
    }

    fn withdraw(&self, state: &mut State, Ticket(ticket): Ticket, timed_out: bool) {
        let served = state.ledger.withdraw(ticket, timed_out);
        self.tell(state, served);
    }

    /// Wakes whoever has the ticket that has just brought something.
    fn tell(&self, state: &State, ticket: Option<u64>) {
        let Some(ticket) = ticket else { return };
        match state.sleepers.get(&ticket) {
            Some(sleeper) => sleeper.notify_one(),
            None => ring(&self.bell),
        }
    }

    fn wake_keeper(&self) {
        ring(&self.keeper);
    }

    /// Has the keeper replace a worker that was taken: at once where it is missed.
    fn replace_taken(&self, mut state: MutexGuard<'_, State>) {
        if !state.ledger.can_wait() {
            drop(state);
            return self.wake_keeper();
        }
        let was_put_off = std::mem::replace(&mut state.put_off, true);
        drop(state);
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec::try_from(COURTESY).expect("a moment fits a timespec"),
        };
        if !was_put_off && timerfd_settime(&self.soon, TimerfdTimerFlags::empty(), &once).is_err() {
            self.wake_keeper();
        }
    }

    /// Gives a spare what it lacks, and has its place given back when it ends.
    fn hand_out(self: &Arc<Self>, mut spare: Spare, missing: &[Arc<Bindings>]) -> Result<Spare, Error> {
        spare.runtime.watch.hold(Lease { pool: Arc::downgrade(self), generation: self.generation });
        spare.bind(missing)?;
        Ok(spare)
    }

    pub(crate) fn close(&self) {
        if self.check_process().is_err() {
            // Its parent's sockets are closed here, unless a thread held the lock when the process was forked.
            let inherited = self.state.try_lock().map(|mut state| state.ledger.close());
            drop(inherited);
            return;
        }
        let mut state = self.lock();
        let left = state.ledger.close();
        state.sleepers.values().for_each(|sleeper| sleeper.notify_one());
        drop(state);
        ring(&self.bell);
        self.wake_keeper();
        drop(left);
    }
}

impl State {
    /// What the ticket has brought, once.
    fn collect(&mut self, Ticket(ticket): Ticket) -> Option<Result<Spare, Error>> {
        match self.ledger.collect(ticket) {
            None if self.ledger.is_closed() => Some(Err(Error::PoolClosed)),
            outcome => outcome,
        }
    }

    /// The bindings that a worker has not been told of.
    fn missing_in(&self, spare: &Spare) -> Vec<Arc<Bindings>> {
        self.bindings[spare.batches..].to_vec()
    }
}

impl Spare {
    fn bind(&mut self, missing: &[Arc<Bindings>]) -> Result<(), Error> {
        for bindings in missing {
            let Bindings { object, names, asynchronous } = &**bindings;
            self.runtime.bind(object.as_ref(), names, asynchronous, |_| ())?;
            self.batches += 1;
            self.functions += names.len();
        }
        Ok(())
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").finish_non_exhaustive()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.generation == fork_generation::current()
            && let Some(pool) = self.pool.upgrade()
        {
            let mut state = pool.lock();
            state.ledger.returned();
            // Mostly nothing is missing, or the keeper comes to it anyway.
            let is_missed = !state.put_off && state.ledger.missing() > 0;
            drop(state);
            if is_missed || pool.template {
                pool.wake_keeper();
            }
        }
    }
}

fn ring(bell: &OwnedFd) {
    // Fails only when it has been rung 2^64 times and nobody came.
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
}
