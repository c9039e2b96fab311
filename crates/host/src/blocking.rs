//! The blocking driver: one request, on the calling thread, which moves the bytes itself.

use std::time::Duration;

use pydeno_wire::Value;
use pydeno_wire::attention::Attention;
use pydeno_wire::message::{HostError, STREAMS};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::affinity::Held;
use crate::clock::Nanos;
use crate::error::Error;
use crate::host_functions::{HostFunctions, Interrupted};
use crate::link::Link;
use crate::runtime::{LinkGuard, Runtime};
use crate::session::{Call, Event, Stopping};
use crate::watch::Verdict;

/// How often a long wait looks whether the caller was interrupted.
const WAIT: Duration = Duration::from_millis(100);
/// After how many reads that brought something the monitor is to look, also where none had to wait: a worker that never stops
/// talking never lets the caller wait.
const TALKATIVE: u32 = 16;
/// How long an interrupted script has to stop before its worker is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// Waits until `request`, which the session has just begun, has ended.
pub(crate) fn run<'a>(
    runtime: &'a Runtime,
    mut guard: LinkGuard<'a>,
    request: u64,
    host: &mut dyn HostFunctions,
) -> Result<Value, Error> {
    if !runtime.linked(&mut guard)?.watched_by(&runtime.watch) {
        return Err(runtime.ended());
    }
    let before = runtime.hold();
    let mut evaluation =
        Evaluation { runtime, guard: Some(guard), request, host, interrupted_at: None, held: None, reads: 0 };
    let outcome = evaluation.run();
    let guard = evaluation.guard.take();
    drop(evaluation);
    runtime.let_go(before);
    let Some(mut guard) = guard else { return outcome.and(Err(runtime.ended())) };
    let alive = guard.as_mut().is_some_and(|link| link.watched_by(&runtime.watch));
    runtime.leave(guard);
    match (alive, outcome) {
        (true, outcome) => outcome,
        (false, Err(error)) if !error.runtime_survives() => Err(error),
        // The kill was decided just as the evaluation ended by itself.
        (false, _) => Err(runtime.explain(runtime.watch.verdict().unwrap_or(Verdict::Lost))),
    }
}

/// One request on the calling thread.
struct Evaluation<'a, 'h> {
    runtime: &'a Runtime,
    /// Empty while a host function runs, and when the runtime was closed meanwhile.
    guard: Option<LinkGuard<'a>>,
    request: u64,
    host: &'h mut dyn HostFunctions,
    interrupted_at: Option<Nanos>,
    /// While the calling thread sleeps.
    held: Option<Held>,
    /// How often something was read.
    reads: u32,
}

impl Evaluation<'_, '_> {
    fn run(&mut self) -> Result<Value, Error> {
        loop {
            // Before anything is read: what the worker sent unasked after its last answer is held against it now.
            while let Some(event) = self.next_event()? {
                match event {
                    Event::Call(call) if call.asynchronous => {
                        self.host.start(call.request, call.id, call.function, call.arguments);
                    }
                    Event::Call(call) => self.call(call)?,
                    Event::Console { level, text } => {
                        if self.host.console(level, text) == Err(Interrupted) {
                            self.interrupt()?;
                        }
                    }
                    Event::Done(mut done) if done.request == self.request => {
                        let unhandled = std::mem::take(&mut done.unhandled);
                        for error in unhandled {
                            // The evaluation is over; what was raised is with the host.
                            let _ = self.host.unhandled_rejection(error);
                        }
                        return self.runtime.outcome(done);
                    }
                    Event::Done(_) | Event::Ready(_) | Event::Refused(_) => {
                        unreachable!("the session has one request at this depth, and is past its start")
                    }
                }
            }
            if self.serve_stream()? {
                continue;
            }
            let worker = self.runtime.watch.pid();
            let attentive = self.link()?.meet(worker);
            self.write()?;
            self.read(attentive)?;
        }
    }

    /// Has a stream of the host's asked, if the guest waits for one; whether it did.
    fn serve_stream(&mut self) -> Result<bool, Error> {
        if !self.link()?.session.is_waiting() {
            return Ok(false);
        }
        let Some((request, id, arguments)) = self.host.take_stream_call() else { return Ok(false) };
        self.call(Call { id, request, function: STREAMS, arguments, asynchronous: true })?;
        Ok(true)
    }

    fn link(&mut self) -> Result<&mut Link, Error> {
        match &mut self.guard {
            Some(guard) => self.runtime.linked(guard),
            None => Err(self.runtime.ended()),
        }
    }

    fn next_event(&mut self) -> Result<Option<Event>, Error> {
        let runtime = self.runtime;
        self.link()?.session.next_event(Nanos::now()).map_err(|violation| {
            runtime.watch.kill(Verdict::Violation);
            Error::ProtocolViolation { what: violation.0 }
        })
    }

    fn call(&mut self, call: Call) -> Result<(), Error> {
        let watch = &self.runtime.watch;
        self.link()?.watched_by(watch);
        self.runtime.supervisor.monitor().ensure_awake();
        // The function may invoke functions of the guest, which takes the link.
        self.guard = None;
        let answer = self.runtime.calling(|| self.host.call(call.request, call.function, call.arguments));
        self.guard = Some(self.runtime.lock_again()?);
        let now = Nanos::now();
        let session = &mut self.link()?.session;
        session.tick(now);
        let stopping = session.is_stopping(call.request);
        let answer = match answer {
            Ok(answer) if !stopping => answer,
            interrupted => {
                if interrupted.is_err() {
                    self.interrupt()?;
                }
                Err(HostError { name: "Error".into(), message: "the evaluation is being stopped".into() })
            }
        };
        answer_call(self.link()?, now, call.id, answer);
        self.link()?.watched_by(watch);
        Ok(())
    }

    fn interrupt(&mut self) -> Result<(), Error> {
        let now = *self.interrupted_at.get_or_insert_with(Nanos::now);
        let request = self.request;
        self.link()?.session.stop(now, request, Stopping::Cancelled);
        Ok(())
    }

    /// Writes what the session has to say. The worker reads whenever it does not evaluate, so this waits only for
    /// values larger than the socket's buffer, or for a worker that misbehaves and is killed at the deadline.
    fn write(&mut self) -> Result<(), Error> {
        let runtime = self.runtime;
        while !self.link()?.write().map_err(|_| runtime.lost())? {
            self.wait(PollFlags::OUT)?;
        }
        Ok(())
    }

    /// Waits for bytes of the worker.
    fn read(&mut self, attentive: bool) -> Result<(), Error> {
        if !attentive || !self.has_read_awake()? {
            self.held = self.link()?.placement.hold();
            self.read_asleep()?;
            let held = self.held.take();
            self.link()?.placement.woke(held);
        }
        self.link()?.rhythm.end(Nanos::now());
        Ok(())
    }

    /// Looks for bytes of the worker for a moment; whether there were some.
    fn has_read_awake(&mut self) -> Result<bool, Error> {
        let attention = Attention::begin();
        while attention.goes_on() {
            if self.has_read(RecvFlags::DONTWAIT)?.is_ok() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads what is there, or says why nothing was.
    fn has_read(&mut self, flags: RecvFlags) -> Result<Result<(), Errno>, Error> {
        let runtime = self.runtime;
        let read = self.link()?.read(flags).map_err(|_| runtime.lost())?;
        if read.is_ok() {
            self.reads = self.reads.wrapping_add(1);
            if self.reads.is_multiple_of(TALKATIVE) {
                runtime.supervisor.monitor().ensure_awake();
            }
        }
        Ok(read.map(|_| ()))
    }

    fn read_asleep(&mut self) -> Result<(), Error> {
        loop {
            match self.has_read(RecvFlags::empty())? {
                Ok(()) => return Ok(()),
                Err(Errno::AGAIN) => self.wait(PollFlags::IN)?,
                Err(_) => {
                    self.look_after_the_caller()?;
                    self.write()?;
                }
            }
        }
    }

    /// A wait that has turned out to be long.
    fn wait(&mut self, what: PollFlags) -> Result<(), Error> {
        self.part()?;
        let runtime = self.runtime;
        runtime.supervisor.monitor().ensure_awake();
        let timeout = Timespec::try_from(WAIT).expect("a tenth of a second fits a timespec");
        match poll(&mut [PollFd::new(&self.link()?.socket, what)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => {
                self.look_after_the_caller()?;
                if what == PollFlags::IN {
                    self.write()?;
                }
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(_) => Err(runtime.lost()),
        }
    }

    /// Lets worker and caller go their own ways.
    fn part(&mut self) -> Result<(), Error> {
        self.held = None;
        let worker = self.runtime.watch.pid();
        self.link()?.part(worker);
        Ok(())
    }

    fn look_after_the_caller(&mut self) -> Result<(), Error> {
        // Python's signal handlers may run here, and are not to be held on a core.
        self.part()?;
        let now = Nanos::now();
        self.link()?.session.tick(now);
        match self.interrupted_at {
            None if self.host.check_interrupt() == Err(Interrupted) => self.interrupt()?,
            Some(since) if now.since(since) > STOP_PATIENCE => {
                self.runtime.watch.kill(Verdict::Terminated);
            }
            _ => {}
        }
        let watch = &self.runtime.watch;
        self.link()?.watched_by(watch);
        Ok(())
    }
}

/// Answers a call, or says in its place why the answer cannot cross.
pub(crate) fn answer_call(link: &mut Link, now: Nanos, call: u64, answer: Result<Value, HostError>) {
    if let Err(error) = link.session.answer(now, call, answer) {
        let message = format!("the host function's value cannot cross: {error}");
        let refusal = HostError { name: "TypeError".into(), message: message.into() };
        link.session.answer(now, call, Err(refusal)).expect("an error of a few words is within every budget");
    }
}
