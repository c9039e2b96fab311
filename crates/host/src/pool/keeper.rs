//! A pool's thread: starts workers, waits for all of them at once, and looks after those that are ready.

use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pydeno_wire::message::Language;
use pydeno_wire::message::{ConsoleLevel, HostError, JsError};
use pydeno_wire::{Text, Value};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{PoolShared, Spare};
use crate::clock::Nanos;
use crate::error::Error;
use crate::event_loop::Progress;
use crate::host_functions::{HostFunctions, Interrupted};
use crate::runtime::Runtime;
use crate::worker::Confining;

/// How many workers start at the same time. Each is busy with itself for a few milliseconds; more of them than cores only
/// makes the first one later.
const AT_ONCE: usize = 4;

/// How long the successor of a worker that was taken from a well-filled pool is put off: its first milliseconds would cost the
/// caller a core just when its first evaluation needs one.
const COURTESY: Duration = Duration::from_millis(2);

/// Keeps the pool until it is closed.
pub(super) fn run(shared: &Arc<PoolShared>) {
    // Should this thread end for another reason, nobody must wait for it.
    let _closed_at_the_end = CloseAtTheEnd(shared);
    let mut keeper = Keeper { shared, starting: Vec::new() };
    while keeper.turn() {}
}

struct CloseAtTheEnd<'a>(&'a PoolShared);

impl Drop for CloseAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct Keeper<'a> {
    shared: &'a Arc<PoolShared>,
    starting: Vec<Start>,
}

/// A worker on its way to being a spare.
struct Start {
    stage: Stage,
    /// Whether it stands in for one that died while it started, as one does whose zygote has been killed.
    second_try: bool,
}

enum Stage {
    Confining(Box<Confining>),
    /// It evaluates the bootstrap script.
    Booting(Box<Booting>),
}

struct Booting {
    runtime: Runtime,
    socket: Arc<OwnedFd>,
    progress: Progress,
    heard: Heard,
}

impl Keeper<'_> {
    /// One round; false when the pool is closed.
    fn turn(&mut self) -> bool {
        let number = {
            let mut state = self.shared.lock();
            if state.ledger.is_closed() {
                return false;
            }
            if state.ledger.can_wait() && self.starting.is_empty() {
                drop(state);
                thread::sleep(COURTESY);
                state = self.shared.lock();
            }
            state.ledger.begin_starts(AT_ONCE)
        };
        self.request(number, false);
        self.wait();
        let mut starting = mem::take(&mut self.starting);
        for Start { stage, second_try } in starting.drain(..) {
            match self.advance(stage) {
                Ok(Ok(spare)) => self.ready(spare),
                Ok(Err(Error::WorkerCrashed { .. } | Error::WorkerUnavailable { .. })) if !second_try => {
                    self.request(1, true);
                }
                Ok(Err(error)) => self.failed(error),
                Err(stage) => self.starting.push(Start { stage, second_try }),
            }
        }
        let dead = self.shared.lock().ledger.remove_dead(Spare::is_dead);
        drop(dead);
        true
    }

    /// Asks for all of them before it waits for any to be forked.
    fn request(&mut self, number: usize, second_try: bool) {
        let PoolShared { supervisor, options, .. } = &**self.shared;
        let asked: Vec<_> = (0..number).map(|_| supervisor.ask_for_worker(options)).collect();
        for worker in asked {
            let forked = match worker.and_then(|worker| worker.fork(options)) {
                // The zygote was killed since it was last used; the supervisor has another one.
                Err(Error::WorkerUnavailable { .. }) if !second_try => {
                    supervisor.ask_for_worker(options).and_then(|worker| worker.fork(options))
                }
                forked => forked,
            };
            match forked {
                Ok(worker) => {
                    self.starting.push(Start { stage: Stage::Confining(Box::new(worker)), second_try });
                }
                Err(error) => self.failed(error),
            }
        }
    }

    /// Waits until something has happened to a worker or to the pool.
    fn wait(&self) {
        let ready: Vec<Arc<OwnedFd>> =
            self.shared.lock().ledger.ready().filter_map(|spare| spare.runtime.socket()).collect();
        let now = Nanos::now();
        let mut patience: Option<Duration> = None;
        let mut waits = vec![PollFd::new(&self.shared.keeper, PollFlags::IN)];
        for Start { stage, .. } in &self.starting {
            let (socket, events, look_again) = match stage {
                Stage::Confining(worker) => {
                    (worker.socket().as_fd(), PollFlags::IN, Some(worker.until().since(now)))
                }
                Stage::Booting(booting) => {
                    let Progress { wants_to_write, look_again, .. } = booting.progress;
                    let write = if wants_to_write { PollFlags::OUT } else { PollFlags::empty() };
                    (booting.socket.as_fd(), PollFlags::IN | write, look_again)
                }
            };
            waits.push(PollFd::from_borrowed_fd(socket, events));
            patience = [patience, look_again].into_iter().flatten().min();
        }
        // A spare has nothing to say: it is readable when it is dead.
        waits.extend(ready.iter().map(|socket| PollFd::new(socket, PollFlags::IN)));
        // A moment is added, so that what is waited for has passed when the wait is over.
        let timeout =
            patience.and_then(|patience| Timespec::try_from(patience + Duration::from_millis(1)).ok());
        // Interrupted or refused, it looks once more.
        let _ = poll(&mut waits, timeout.as_ref());
        let mut rung = [0; 8];
        // It may not have been rung.
        let _ = rustix::io::read(&self.shared.keeper, &mut rung);
    }

    fn advance(&self, stage: Stage) -> Result<Result<Spare, Error>, Stage> {
        let shared = self.shared;
        match stage {
            Stage::Confining(worker) => {
                let worker = match worker.advance(&shared.options).map_err(Stage::Confining)? {
                    Ok(worker) => worker,
                    Err(error) => return Ok(Err(error)),
                };
                let runtime = Runtime::of_worker(&shared.supervisor, shared.options.clone(), worker);
                // Even an empty script is worth while: a worker's first evaluation makes what later ones find, in it and in
                // the pages that it shares with its zygote until then.
                match Booting::begin(runtime, shared.bootstrap.clone().unwrap_or_default()) {
                    Ok(booting) => self.boot(booting),
                    Err(error) => Ok(Err(error)),
                }
            }
            Stage::Booting(booting) => self.boot(booting),
        }
    }

    fn boot(&self, mut booting: Box<Booting>) -> Result<Result<Spare, Error>, Stage> {
        match booting.advance() {
            Ok(false) => Err(Stage::Booting(booting)),
            Ok(true) => Ok(self.provide(booting.runtime, booting.heard)),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Tells a worker its limits and the bindings that there are.
    fn provide(&self, runtime: Runtime, heard: Heard) -> Result<Spare, Error> {
        let Heard { console, unhandled } = heard;
        let mut spare = Spare { runtime, functions: 0, console, unhandled, batches: 0 };
        let bindings = self.shared.lock().missing_in(&spare);
        spare.bind(&bindings)?;
        spare.runtime.tell()?;
        Ok(spare)
    }

    fn ready(&self, spare: Spare) {
        let mut state = self.shared.lock();
        if state.ledger.is_closed() {
            drop(state);
            drop(spare);
            return;
        }
        let served = state.ledger.started(spare);
        self.shared.tell(&state, served);
    }

    fn failed(&self, error: Error) {
        let mut state = self.shared.lock();
        let told = state.ledger.failed(error);
        self.shared.tell(&state, told);
    }
}

impl Booting {
    fn begin(runtime: Runtime, bootstrap: Text) -> Result<Box<Self>, Error> {
        runtime.begin_eval(bootstrap, "bootstrap.js", Language::JavaScript, false)?;
        let socket = runtime.socket().ok_or(Error::Closed)?;
        let (progress, heard) = (Progress::default(), Heard::default());
        Ok(Box::new(Self { runtime, socket, progress, heard }))
    }

    /// Takes what there is; whether the script has ended.
    fn advance(&mut self) -> Result<bool, Error> {
        self.progress = self.runtime.advance(&mut self.heard)?;
        match self.progress.ended.pop() {
            Some(ended) => ended.outcome.map(|_| true),
            None => Ok(false),
        }
    }
}

/// What a bootstrap script said, for whoever checks its runtime out. The session bounds it.
#[derive(Default)]
struct Heard {
    console: Vec<(ConsoleLevel, Text)>,
    unhandled: Vec<JsError>,
}

impl HostFunctions for Heard {
    fn call(&mut self, _: u64, _: u32, _: Vec<Value>) -> Result<Result<Value, HostError>, Interrupted> {
        unreachable!("nothing is bound before the bootstrap script has ended")
    }

    fn start(&mut self, _: u64, _: u64, _: u32, _: Vec<Value>) {
        unreachable!("nothing is bound before the bootstrap script has ended")
    }

    fn console(&mut self, level: ConsoleLevel, text: Text) -> Result<(), Interrupted> {
        self.console.push((level, text));
        Ok(())
    }

    fn unhandled_rejection(&mut self, error: JsError) -> Result<(), Interrupted> {
        self.unhandled.push(error);
        Ok(())
    }

    fn check_interrupt(&mut self) -> Result<(), Interrupted> {
        Ok(())
    }
}
