//! A pool's thread: starts workers, waits for all of them at once, and looks after those that are ready.

use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use pydeno_wire::message::Language;
use pydeno_wire::message::{ConsoleLevel, HostError, JsError};
use pydeno_wire::{Text, Value};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::template::{Forked, Templates};
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

/// Keeps the pool until it is closed.
pub(super) fn run(shared: &Arc<PoolShared>) {
    // Should this thread end for another reason, nobody must wait for it.
    let _closed_at_the_end = CloseAtTheEnd(shared);
    let templates = shared.template.then(Templates::new);
    let mut keeper = Keeper { shared, starting: Vec::new(), templates, is_time: false };
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
    /// For a pool whose workers begin where its bootstrap script has ended.
    templates: Option<Templates>,
    /// Whether the timer for what was put off has gone off.
    is_time: bool,
}

/// A worker on its way to being a spare.
struct Start {
    stage: Stage,
    /// Whether it stands in for one that died while it started, as one does whose zygote has been killed.
    second_try: bool,
    /// What the bootstrap script said in the template.
    heard: Option<Arc<Heard>>,
}

/// How far a process is that was started to evaluate a script.
pub(super) enum Stage {
    Confining(Box<Confining>),
    /// It evaluates the bootstrap script.
    Booting(Box<Booting>),
}

pub(super) struct Booting {
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
            let is_put_off = state.put_off && !self.is_time;
            if is_put_off && state.ledger.can_wait() && self.starting.is_empty() {
                0
            } else {
                state.put_off = false;
                state.ledger.begin_starts(AT_ONCE)
            }
        };
        self.request(number, false);
        if let Some(templates) = &mut self.templates {
            let forked = templates.serve(self.shared);
            self.take(forked);
        }
        self.wait();
        if let Some(templates) = &mut self.templates {
            let failed = templates.advance(self.shared);
            self.take(failed);
        }
        // A template's forks have run the script already.
        let bootstrap = if self.templates.is_some() { None } else { self.shared.bootstrap.as_ref() };
        let mut starting = mem::take(&mut self.starting);
        for Start { stage, second_try, heard } in starting.drain(..) {
            match stage.advance(self.shared, bootstrap) {
                Ok(Ok((runtime, own))) => {
                    match self.provide(runtime, heard.map_or(own, |heard| Heard::clone(&heard))) {
                        Ok(spare) => self.ready(spare),
                        Err(error) => self.failed(error),
                    }
                }
                Ok(Err(Error::WorkerCrashed { .. } | Error::WorkerUnavailable { .. })) if !second_try => {
                    self.request(1, true);
                }
                Ok(Err(error)) => self.failed(error),
                Err(stage) => self.starting.push(Start { stage, second_try, heard }),
            }
        }
        let dead = self.shared.lock().ledger.remove_dead(|spare| spare.runtime.is_dead());
        drop(dead);
        true
    }

    /// Asks for all of them before it waits for any to be forked.
    fn request(&mut self, number: usize, second_try: bool) {
        if let Some(templates) = &mut self.templates {
            return templates.owe(number, second_try);
        }
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
                Ok(worker) => self.start(worker, second_try, None),
                Err(error) => self.failed(error),
            }
        }
    }

    /// Takes what a template has forked, or could not.
    fn take(&mut self, forked: Vec<Forked>) {
        for Forked { worker, second_try, heard } in forked {
            match worker {
                Ok(worker) => self.start(worker, second_try, Some(heard)),
                Err(Error::WorkerUnavailable { .. }) if !second_try => self.request(1, true),
                Err(error) => self.failed(error),
            }
        }
    }

    fn start(&mut self, worker: Confining, second_try: bool, heard: Option<Arc<Heard>>) {
        self.starting.push(Start { stage: Stage::Confining(Box::new(worker)), second_try, heard });
    }

    /// Waits until something has happened to a worker or to the pool.
    fn wait(&mut self) {
        let ready: Vec<Arc<OwnedFd>> =
            self.shared.lock().ledger.ready().filter_map(|spare| spare.runtime.socket()).collect();
        let now = Nanos::now();
        let mut patience: Option<Duration> = None;
        let mut waits = vec![
            PollFd::new(&self.shared.keeper, PollFlags::IN),
            PollFd::new(&self.shared.soon, PollFlags::IN),
        ];
        let template = self.templates.as_ref().and_then(Templates::coming);
        // What is owed after this round has begun is for the next one.
        if self.templates.as_ref().is_some_and(Templates::wants_a_turn) {
            patience = Some(Duration::ZERO);
        }
        for stage in self.starting.iter().map(|start| &start.stage).chain(template) {
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
        self.is_time = rustix::io::read(&self.shared.soon, &mut rung).is_ok();
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

impl Stage {
    /// The runtime whose script has ended, and what it said; or the stage it is at.
    pub(super) fn advance(
        self,
        shared: &PoolShared,
        bootstrap: Option<&Text>,
    ) -> Result<Result<(Runtime, Heard), Error>, Self> {
        let mut booting = match self {
            Self::Booting(booting) => booting,
            Self::Confining(worker) => {
                let worker = match worker.advance(&shared.options).map_err(Self::Confining)? {
                    Ok(worker) => worker,
                    Err(error) => return Ok(Err(error)),
                };
                let runtime = Runtime::of_worker(&shared.supervisor, shared.options.clone(), worker);
                // Even an empty script is worth while: a worker's first evaluation makes what later ones find, in it and in
                // the pages that it shares with its zygote until then.
                match Booting::begin(runtime, bootstrap.cloned().unwrap_or_default()) {
                    Ok(booting) => booting,
                    Err(error) => return Ok(Err(error)),
                }
            }
        };
        match booting.advance() {
            Ok(false) => Err(Self::Booting(booting)),
            Ok(true) => {
                let Booting { runtime, heard, .. } = *booting;
                Ok(Ok((runtime, heard)))
            }
            Err(error) => Ok(Err(error)),
        }
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
#[derive(Clone, Default)]
pub(super) struct Heard {
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
